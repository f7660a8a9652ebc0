/* A request to the native client, and the lists of them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PENDING_H
#define DV_PENDING_H

#include "znode/apache/apache.h"

struct dv_pending {
    dv_event event;    /* runs once it is answered, by a server or by us */
    dv_apache *apache; /* NULL: an orphan, whose answer nobody waits for; under the lock of shared.h */
    dv_shared *shared; /* the host's handle that it was given to; NULL: ours */
    dv_pending *next, *previous;
    dv_pending_list *list;
    bool completed;       /* its function was called already; only the native client still knows of it */
    int64_t sent_us;      /* 0: the native client never had it */
    uint64_t number;      /* in the log */
    int64_t submitted_at; /* of the client's clock */
    uint64_t connection;  /* the connection that it was submitted for, or an earlier one than it went by */

    dv_op *ops; /* one, or those of a multi */
    size_t count;
    dv_reply_fn done;
    dv_multi_fn multi_done; /* NULL: a single operation */
    void *context;
    dv_watch *watch;
    dv_watched *watched;

    zoo_op_t *native_ops; /* multi: must live until the answer, as the buffers for made paths must */
    zoo_op_result_t *native_results;
    struct Stat *native_stats; /* of those that set data, by the index of the operation */
    char *path_buffers;

    dv_reply reply;
    dv_stat stat;
    void *copied; /* path, data or children of the reply */
};

/* Puts a request at the end of a list. It stands in one list at most. */
void dv_pending_append(dv_pending_list *list, dv_pending *p);
void dv_pending_remove(dv_pending *p);
/* Takes the first one off the list. Returns NULL when there is none. */
dv_pending *dv_pending_take_first(dv_pending_list *list);
void dv_pending_free(dv_pending *p);

/* On a host's handle, with the lock of shared.h held. Returns whether a request that was given to it is unanswered. */
bool dv_apache_awaits_answers(const dv_apache *apache);
/* Moves such requests to `orphans`, where their answers find nobody. All have been completed before. */
void dv_apache_orphan_all(dv_apache *apache, dv_pending_list *orphans);
/* The handle is gone: no answer will come. */
void dv_apache_free_orphans(dv_pending_list *orphans);

/* ---- copies.c: for completions. malloc'ed; NULL when an allocation fails. ---- */
char **dv_copy_names(const struct String_vector *names);
char **dv_copy_acl(const struct ACL_vector *acl);

#endif
