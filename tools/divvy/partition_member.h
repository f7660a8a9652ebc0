/* One member of a pool in `divvy partition`: its session, what it owns, and the commands of its items.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A process has one, or with --sessions several, each with a client of its own. What they share is the process's: the
 * output, signals, the list of items, and the loop that runs them. Everything here is called on its thread. */
#ifndef DV_PARTITION_MEMBER_H
#define DV_PARTITION_MEMBER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include <divvy/divvy.h>

#include "connection.h"
#include "guardian.h"
#include "ledger.h"
#include "partition_load.h"
#include "partition_options.h"
#include "quarantine.h"
#include "supervise.h"

/* How many descriptors a member has for poll(2). */
enum { DV_PARTITION_MEMBER_FDS = 3 };

typedef struct {
    dv_partition_options options; /* the process's, but for what --sessions divides: dv_partition_sessions_divide() */
    dv_ledger ledger;
    dv_partition_load load;
    dv_quarantine quarantine;
    dv_session session; /* its `ending`, where that is not the partitioner's own failure, is told in FAILURE too */
    divvy_partitioner *p;
    dv_guardians *guardians;
    dv_supervisor *supervisor; /* NULL: there is no command */
    int64_t session_id;        /* under which commands were started */
    bool session_over;         /* and some still run */
    bool to_release;           /* DIVVY_RELEASE was told, and not answered */
    bool hands_over;           /* it has begun to, at the end */
} dv_partition_member;

/* Sets the fields that others rely on; `options` is filled in. The member stays where it is from now on. */
void dv_partition_member_init(dv_partition_member *member);

/* Prepares to run commands, where `guardians` is not NULL. Returns 0, or -1 with errno set. */
int dv_partition_member_prepare(dv_partition_member *member, const char *program);

/* Opens the session. Returns 0, or the exit code with the reason told. */
int dv_partition_member_open(dv_partition_member *member);

/* Joins the pool with these items. Returns 0, or the exit code with the reason told. */
int dv_partition_member_join(dv_partition_member *member, const char *const *items, size_t item_count);

/* Returns 0 while the session stands or may come about, else the exit code, with the reason told. */
int dv_partition_member_check(dv_partition_member *member);

/* When there is something to do by the clock: in so many ms; -1: never. */
int64_t dv_partition_member_next_ms(const dv_partition_member *member);

/* Fills in DV_PARTITION_MEMBER_FDS places. */
void dv_partition_member_poll(const dv_partition_member *member, struct pollfd *fds);

/* Does what is due. */
void dv_partition_member_step(dv_partition_member *member);

/* Returns how many of its commands run. */
size_t dv_partition_member_running(const dv_partition_member *member);

/* Returns whether the member cannot go on. */
bool dv_partition_member_must_end(const dv_partition_member *member);

/* Returns whether a process that was started later has taken all over that was ours: --replace. */
bool dv_partition_member_is_replaced(const dv_partition_member *member);

/* Returns why it must end, as an exit code, with the reason told; 0: it need not. */
int dv_partition_member_judge(dv_partition_member *member);

/* Begins to hand its items over, if it can. */
void dv_partition_member_hand_over(dv_partition_member *member);

/* Returns whether it still does. */
bool dv_partition_member_is_handing_over(const dv_partition_member *member);

/* Ends its commands, at once or by and by. */
void dv_partition_member_end_commands(dv_partition_member *member, bool at_once);

/* Tells that it has left, unless that was told. */
void dv_partition_member_tell_end(dv_partition_member *member);

/* Closes the client, and what stands on it. */
void dv_partition_member_close(dv_partition_member *member);

/* After dv_partition_member_close() of all members, and when the items' feed is closed. */
void dv_partition_member_free(dv_partition_member *member);

#endif
