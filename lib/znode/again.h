/* Requests that were put off, and those of unknown outcome: B10 to B12. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_AGAIN_H
#define DV_AGAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "znode/answers.h"

struct dv_op;
struct dv_watch;
struct dv_znode;
typedef struct dv_sent dv_sent;

/* One answer that is no ordinary one, for who tells the user. */
typedef struct {
    dv_answer_meaning meaning;
    const struct dv_op *op; /* the only one of the request, or the first of a multi */
    bool is_multi;
} dv_odd_answer;

/* A part of each session object. The client sets the first three; without `wake` nothing is put off. */
typedef struct {
    void (*wake)(void *context, int64_t at); /* dv_again_run() is wanted at that time */
    void (*tell)(void *context, const dv_odd_answer *answer, int64_t now);
    void *context;
    dv_sent *first, *last; /* what was put off once and has not ended, in the order of submission */
    uint64_t numbers;      /* of requests, and of each time that one is sent */
    size_t waiting;        /* of the list: not with the backend now */
    size_t behind;         /* of the list: what later requests are to be answered behind */
    uint64_t put_off;      /* how often something was, for the metrics */
} dv_again;

/* Sends again what is due, and gives back what has waited long enough. */
void dv_again_run(struct dv_znode *znode, int64_t now);
/* Ends all that waits, with an error: the connection is down, or the session over. */
void dv_again_end(struct dv_znode *znode, int error, int64_t now);
/* A read that waits to be sent again is sent without this watch. */
void dv_again_unwatch(struct dv_znode *znode, struct dv_watch *watch);

#endif
