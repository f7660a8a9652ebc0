/* The follower of the plan: tells its host our items, writes plans in our turn. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules P3, D34, D36 to D38, D42. It reads and watches P/plan itself. The host gives it the settled
 * party, news of the connection and the requests of its user; it tells by events what comes of them. A host that goes
 * by names alone has no follower (NULL): the calls below do nothing for it. */
#ifndef DV_FOLLOW_H
#define DV_FOLLOW_H

#include "client/client.h"
#include "plan/text.h"

typedef struct dv_follower dv_follower;

/* All that it points to lives as long as the follower. */
typedef struct {
    divvy_client *client;
    const char *path, *locks_path, *party_path; /* P, P/locks and P/party */
    const char *identifier;                     /* as it stands in our node's name */
    dv_plan_set *configured;
    uint32_t weight, max_moves;
    int64_t round_timeout_ms, settle_max_ms;
    size_t min_members;
    int64_t min_members_wait_ms;
    const char *load_unit;
    int64_t load_interval_ms;
    double load_floor;
    bool is_static;             /* static_membership */
    bool is_eager;              /* P5: a share is complete only when no other one is to be expected */
    bool hands_over;            /* a target tells of owners */
    const dv_plan_sizes *sizes; /* of plans that we write; NULL: those of plan/text.h */
} dv_follow_config;

typedef struct {
    const char *const *nodes; /* of its members, without strays; of no interest where not all follow plans */
    size_t count;
    const char *own; /* our node */
    int64_t pzxid;
    bool all_follow_plans;
} dv_follow_party;

/* ---- what the host is told ---- */

typedef enum {
    DV_FOLLOW_KEEP,    /* D34: no plan was seen yet, so what a rule of names gave is kept */
    DV_FOLLOW_NOTHING, /* a later release wrote the plan, or we are fenced */
    DV_FOLLOW_NAMES,   /* the plan is broken: the host goes by names, with the items that it was configured with */
    DV_FOLLOW_PLAN     /* as the plan says */
} dv_follow_source;

/* The owner of an item that a plan gives to nobody, since all leave. */
extern const char dv_nobody[];

/* Nodes by item of the set: of the owner by the plan, and by the plan before. NULL: that member is not there. */
typedef struct {
    const char *const *now;
    const char *const *before;    /* never our own node */
    const char *const *namesakes; /* T9: the other live nodes of our identifier, if ours counts */
    size_t namesake_count;
    bool party_is_older; /* the plan was made for a later party, which settles here in a moment */
    int64_t mzxid;       /* of the plan */
} dv_follow_owners;

/* The items that are ours. It lives during the event. */
typedef struct {
    dv_follow_source source;
    bool is_settled;                /* the party has just settled, so that it counts even if nothing has changed */
    int reason;                     /* why it may be another than before: DIVVY_REASON_* */
    uint64_t generation;            /* of the plan that we go by; 0: none */
    dv_plan_set *set;               /* DV_FOLLOW_PLAN only, as all that follows: what the pool divides */
    const uint8_t *mine;            /* by item of the set */
    const dv_follow_owners *owners; /* NULL: without hands_over, or there was no memory for it */
} dv_follow_target;

/* They may come inside a call to the follower. */
typedef struct {
    void (*target)(void *owner, const dv_follow_target *target, int64_t now);
    void (*no_plan)(void *owner);    /* none is in force from now on */
    void (*other_plan)(void *owner); /* a new plan is in force; target() follows */
    /* Our place in the plan is given up, or, by `error`, cannot be. DIVVY_ESTATE: no plan is in force. */
    void (*left)(void *owner, int error, int64_t now);
    /* T8: a plan has us again after left(). Returns whether to give the place up again; then left() follows. */
    bool (*member_again)(void *owner);
    void (*ghost)(void *owner, const char *node);          /* P2: the node was read, and is persistent */
    void (*warn)(void *owner, int code, const char *text); /* The same text may come again: it is told once. */
    void (*fail)(void *owner, int error, int reason, const char *text, int64_t now); /* we cannot go on */
    void (*begun)(void *owner);              /* something is under way, and keeps the follower until ended() */
    void (*ended)(void *owner, int64_t now); /* may free the follower, if it was the last */
} dv_follow_events;

/* The facts that the host knows. */
typedef struct {
    /* P2: returns whether all nodes of the party were looked at. Else looks at them, and gives the party again. */
    bool (*knows_all_members)(void *owner);
    bool (*shows)(void *owner, const char *item);
    bool (*is_never_used)(void *owner); /* nobody has ever owned an item of the pool */
    /* D44: returns when the last item of the plan of that mzxid was handed over; 0: that is not known. */
    int64_t (*handed_over_ms)(void *owner, int64_t mzxid);
} dv_follow_questions;

/* ---- life ---- */

/* Returns NULL when an allocation fails. `events` and `questions` live as long as the follower. */
dv_follower *dv_follow_new(const dv_follow_config *config, const dv_follow_events *events,
                           const dv_follow_questions *questions, void *owner);
/* Frees it; it is stopped and at rest, or was never started. */
void dv_follow_free(dv_follower *f);
/* Takes part, for the first time or again: reads and watches P/plan, also while names decide. */
void dv_follow_start(dv_follower *f, int64_t now);
/* Begins nothing from now on, as the session is over or we leave. Keeps what is remembered of the plan. */
void dv_follow_stop(dv_follower *f);
/* Returns whether nothing is under way. After dv_follow_stop() that comes about by itself, and ended() tells. */
bool dv_follow_at_rest(const dv_follower *f);

/* ---- news from the host ---- */

/* Goes on with what waits for a connection, or for memory. */
void dv_follow_connected(dv_follower *f, int64_t now);
/* Takes a party that has settled. Returns whether a plan decides (P3). Otherwise names do. */
bool dv_follow_settled(dv_follower *f, const dv_follow_party *party, int64_t now);
/* D10: remembers what a rule of names gave. Takes over `owners`, of the items of `set`, as indices into `nodes`. */
void dv_follow_remember(dv_follower *f, const char *const *nodes, size_t count, uint32_t *owners, dv_plan_set *set);

/* Our user tells loads: the plan has to say that there are some (D47). To be called now and then. */
void dv_follow_report_loads(dv_follower *f, int64_t now);

/* ---- requests of the user: each waits until a plan is in force that contains it ---- */

void dv_follow_request_weight(dv_follower *f, uint32_t weight, int64_t now);
/* Takes a reference. */
void dv_follow_request_set(dv_follower *f, dv_plan_set *set, int64_t now);
/* Asks to give our place in the plan up; left() tells when it is. `hands_over`: until then we keep our items as others
 * get ready for them (T8); a second request without it ends that. Returns false: there is no place to give up. */
bool dv_follow_request_leave(dv_follower *f, bool hands_over, int64_t now);

/* ---- questions of the host ---- */

/* Returns whether the share is what it is to become, as far as a plan has a say in that. */
bool dv_follow_agrees(const dv_follower *f);
/* Returns whether nothing can be requested of a plan now: a member of the settled party, or this one, follows none. */
bool dv_follow_names_decide(const dv_follower *f);
/* P12: returns whether a plan is in force that divides this set, and we are the first of those who write it. */
bool dv_follow_is_first_of(const dv_follower *f, const dv_plan_set *set);
/* Returns whether the plan has the node as a member that is not static. */
bool dv_follow_is_dynamic(const dv_follower *f, const char *node);
/* D38: returns whether another live process has our identifier, and came later. */
bool dv_follow_is_replaced(const dv_follower *f);

#endif
