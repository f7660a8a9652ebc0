/* Queue: who stands in a directory of sequential nodes, and who waits for whom. SPDX-License-Identifier: Apache-2.0
 *
 * Pure functions of the names in it. docs/protocol.md, N6 and Q3. */
#ifndef DV_QUEUE_H
#define DV_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The nodes of a directory that form the queue. */
typedef struct {
    const char *marker;            /* stands between our unique prefix and the sequence number */
    const char *const *blocked_by; /* markers of those that we wait for; NULL at the end */
    bool alone; /* Q1: created by a request of its own, so that no two have one czxid, and with it one token */
    bool fresh; /* Q9: its directory has just been made, so the list waits until a number shows that it is needed */
    bool
        renews; /* Q11: fresh, because the transaction that makes the place makes its directory again, if it is empty */
    bool parks; /* Q10: the owner says when its turn comes */
    bool yields; /* J4: to those of a higher preference */
} dv_queue_kind;

/* For items: a client has one place in a queue, and places in many queues. */
extern const dv_queue_kind dv_exclusive_queue;
/* The same, in a directory that its client has just made, or makes with it; and where the owner says when its turn
 * comes. */
extern const dv_queue_kind dv_fresh_queue, dv_renewed_queue, dv_parked_queue;
/* kazoo's Lock, WriteLock and ReadLock. */
extern const dv_queue_kind dv_lock_queue, dv_write_queue, dv_read_queue;

/* The markers that an election waits for, whatever its own is: the locks', and that of Curator's LeaderLatch (J1). */
extern const char *const dv_election_markers[];

/* Returns the last before us that we wait for, or NULL. `own` is our name, `own_sequence` its number. */
const char *dv_queue_before(const dv_queue_kind *kind, const char *const *names, size_t count, const char *own,
                            int32_t own_sequence);
/* Returns whether none of those that we would wait for stands there. */
bool dv_queue_is_empty(const dv_queue_kind *kind, const char *const *names, size_t count);
/* Returns the first name that begins with `prefix`, or NULL. */
const char *dv_queue_find(const char *const *names, size_t count, const char *prefix);
/* Takes those of `names` that contend for any lock into `out`, as long as `names`, in queue order. Returns how many. */
size_t dv_queue_contenders(const char *const *names, size_t count, const char **out);
/* The same for those that stand in an election's queue. */
size_t dv_queue_candidates(const char *const *names, size_t count, const char **out);
/* Returns the first in an election's queue, or NULL. */
const char *dv_queue_first(const char *const *names, size_t count);

enum { DV_PREFERENCE_MAX = 1000 };
/* J4: returns the preference that a name tells, from 0. */
int dv_queue_preference(const char *name);
/* J4: returns whether somebody behind us in an election's queue has a higher preference than we. */
bool dv_queue_outranked(const char *const *names, size_t count, const char *own, int32_t own_sequence);

#endif
