/* A pool as divvy serve remembers it: what was read last of each member and item. SPDX-License-Identifier: Apache-2.0
 *
 * The main thread alone changes it, with the lock of dv_serve held; all others that read it hold that lock. */
#ifndef DV_SERVE_POOL_H
#define DV_SERVE_POOL_H

#include "serve_history.h"
#include "serve_samples.h"
#include "status_pool.h"

/* A member that is in the party, or that the plan keeps a place for. */
typedef struct {
    char *node; /* its name in the party; of one that is away its key in the plan */
    char *identifier, *host, *since, *zone;
    int64_t pid;
    bool live, kazoo, in_plan, is_static;
    uint32_t weight;
    const char *state; /* one word, as of dv_status_plan_state() */
    double share;      /* its load as a part of its fair share, rounded; below 0: not known */
    char *tags;        /* by the plan; "": none */
    uint32_t cap;      /* likewise; 0: none */
    size_t items, planned;
    size_t counted; /* of the items, so far */
    size_t number;  /* among the live ones, in their order */
    /* Only divvy doctor judges by these. */
    int64_t session, made_ms, czxid, first_czxid;
    bool follows;
    bool marked, changed;
} dv_serve_member;

typedef struct {
    char *name;
    char *node;             /* of its directory; NULL: what our codec makes of the name */
    dv_serve_member *owner; /* NULL while it is held: `stranger`, who is not in the party */
    char *stranger;
    dv_serve_member *next; /* whose it is by the plan in force; NULL: nobody's, or none is */
    int64_t token;
    int64_t since_ms;              /* when it got its owner, or lost it; 0: not known */
    int64_t came_ms;               /* when it was seen first; 0: at the first look */
    int64_t asked_ms;              /* when it was seen that its owner has to give it away; 0: it has not */
    int64_t paused_ms, resumed_ms; /* of its last pause: when it was seen first, and when no longer */
    int64_t pzxid;                 /* of the directory when it was read; 0: there was none */
    int64_t session; /* of the place that is first in its queue; 0: the place is persistent, or there is none */
    char *head;      /* the name of a persistent one; NULL: it is none */
    uint16_t head_bytes;
    const char
        *rule; /* a word for the rule that holds it, or leaves it without an owner; NULL: none (status_rules.h) */
    char *why; /* of that rule; NULL: none */
    size_t waiting;
    bool held, in_plan;
    bool ruled;  /* the pool's rules are in force, and `rule` with them */
    bool paused; /* at the last look; nobody held it, then */
    bool seen;   /* so was the change at `since_ms`; otherwise its owner entered the queue then */
    bool marked, changed;
} dv_serve_item;

/* The counts of a pool. `absent` are those of the members away that items are kept for. Of the items each is owned,
 * unowned, or paused, which nobody is to own; `moving` and `strangers` are among the owned. */
typedef struct {
    size_t live, absent, away, strays, items, owned, unowned, paused, pinned, moving, strangers, waiting, least, most;
    double most_share;   /* of a fair share of the load; below 0: the plan has no loads */
    uint64_t generation; /* 0: no plan */
    const char *reason;
    const char *unusable; /* why a plan that stands there is not followed; NULL: it is */
    bool in_force, found;
    int64_t planned_ms;
} dv_serve_counts;

typedef struct {
    char *path;
    char *stray;               /* the name of one of the strays in its party; NULL: there is none */
    const char *trouble;       /* why it alone could not be read last; NULL: it could */
    dv_serve_member **members; /* by identifier, then by node */
    size_t member_count;
    dv_serve_item *items; /* by name, bytewise */
    size_t item_count, item_room;
    dv_serve_counts counts;
    dv_serve_history history;
    dv_serve_samples samples;
    int64_t read_at_ms, first_read_ms; /* 0: not read yet */
    const char *told_state;            /* the state that listeners know; "": none */
    uint64_t moves;                    /* items that were seen to change hands, from the start */
    bool gone;                         /* some that were shown have gone since dv_serve_pool_settle() */
} dv_serve_pool;

/* Each may fail with DIVVY_ENOMEM; then the pool has to be read as a whole again. */
int dv_serve_pool_init(dv_serve_pool *pool, const char *path);
/* Takes over what was read; `whole`: all that there is, otherwise all but items that are not in it. */
int dv_serve_pool_apply(dv_serve_pool *pool, const dv_status *status, bool whole, int64_t planned_ms);
void dv_serve_pool_free(dv_serve_pool *pool);

/* Forgets which members and items have changed, after they were told. */
void dv_serve_pool_settle(dv_serve_pool *pool);

dv_serve_item *dv_serve_pool_find(const dv_serve_pool *pool, const char *name);
/* Returns who owns it, or NULL. */
const char *dv_serve_item_owner(const dv_serve_item *item);
/* Returns whether somebody holds it, and the plan gives it to another live member. */
bool dv_serve_item_is_moving(const dv_serve_item *item);
/* Returns whether nobody holds it, because it is paused. */
bool dv_serve_item_is_paused(const dv_serve_item *item);
/* Notes, at the end of a look, whether it is paused. */
void dv_serve_item_note_pause(dv_serve_item *item, int64_t now_ms);
/* Returns whether its last pause was at that moment, and nobody held it. */
bool dv_serve_item_was_paused(const dv_serve_item *item, int64_t at_ms);
/* Returns one word. Nobody holds it: "paused"; "kept" where the plan gives it to a member that is away; else "unowned".
 * Somebody does: "moving", else "stranger" for one that is not in the party, else "owned". */
const char *dv_serve_item_state(const dv_serve_item *item);
#endif
