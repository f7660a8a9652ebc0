/* Following the sticky plan: what it gives us, and when the next one is to be written. SPDX-License-Identifier:
 * Apache-2.0
 *
 * docs/protocol.md, section Following. The follower stands between the settled party, the memory of P/plan (plan_read.h
 * keeps it up) and the attempts to write (plan_write.h). A member that chose a rule of names has none (NULL), and the
 * calls below do nothing for it. */
#ifndef DV_FOLLOW_H
#define DV_FOLLOW_H

#include "plan/text.h"

struct divvy_client;
struct divvy_partitioner;
typedef struct dv_follower dv_follower;

/* 0, or DIVVY_ENOMEM; before anything starts. */
int dv_follow_init(struct divvy_partitioner *p, struct divvy_client *client);
void dv_follow_free(struct divvy_partitioner *p);
/* Takes part, for the first time or again: reads and watches P/plan, also while names decide. */
void dv_follow_start(struct divvy_partitioner *p);
/* Begins nothing from now on, as the session is over or we leave. Keeps what is remembered of the plan. */
void dv_follow_stop(struct divvy_partitioner *p);
/* Returns whether nothing is under way; after dv_follow_stop() that comes about by itself, and dv_members_rejoin() is
 * called. */
bool dv_follow_at_rest(const struct divvy_partitioner *p);
void dv_follow_connected(struct divvy_partitioner *p, int64_t now);

/* Takes a settled p->party. Returns whether a plan decides (P3): then the target is the follower's affair. */
bool dv_follow_settled(struct divvy_partitioner *p, int64_t pzxid, int64_t now);
/* Remembers what a rule of names gave: a first plan begins with it. `owners`, which it takes over, are indices
 * into `nodes`, of the items that are dealt. */
void dv_follow_remember(struct divvy_partitioner *p, const char *const *nodes, size_t count, uint32_t *owners);
/* Returns whether nothing can be wanted of a plan now: a member of the settled party, or this one, does not follow
 * plans. */
bool dv_follow_names_rule(const struct divvy_partitioner *p);
/* Returns whether a plan is in force by which the pool divides our items, and we are the first in the row of its
 * writers. */
bool dv_follow_sweeps(const struct divvy_partitioner *p);
/* Returns whether the share is what it is to be, as far as a plan has a say in that. */
bool dv_follow_agrees(const struct divvy_partitioner *p);

/* The users' wishes for the next plan. Each waits until a plan is in force that contains it. */
void dv_follow_want_weight(struct divvy_partitioner *p, uint32_t weight, int64_t now);
/* Takes a reference. */
void dv_follow_want_set(struct divvy_partitioner *p, dv_plan_set *set, int64_t now);
/* Our place in the plan is given up; dv_partitioner_left() tells when it is. False: there is none to give up. */
bool dv_follow_want_leave(struct divvy_partitioner *p, int64_t now);
/* Returns whether the plan has the node as a member that is not static. */
bool dv_follow_is_dynamic(const struct divvy_partitioner *p, const char *node);
/* Returns whether another live member has our identifier, and came later (D38). */
bool dv_follow_is_replaced(const struct divvy_partitioner *p);

#endif
