/* The script of a history: what happens when, drawn from a seed. SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/text.h"

enum { SIM_EVENTS_MAX = 400 };

typedef enum {
    SIM_JOIN,
    SIM_FINISH,
    SIM_DESTROY,
    SIM_CLOSE,
    SIM_CRASH,
    SIM_PAUSE_SHORT,
    SIM_PAUSE_LONG,
    SIM_LINK_DOWN,
    SIM_LINK_NO_REQUESTS,
    SIM_LINK_NO_REPLIES,
    SIM_LOSE_NOT_APPLIED,
    SIM_LOSE_APPLIED,
    SIM_LOSE_APPLIED_LATE,
    SIM_EXPIRE,
    SIM_PREFER,
    SIM_DRIFT,
    SIM_SERVER_KILL,
    SIM_SERVER_PAUSE,
    SIM_LEADER_KILL,
    SIM_LEADER_PAUSE,
    SIM_SERVERS_CUT,
    SIM_SERVERS_CUT_ONE_WAY,
    SIM_FOLLOWER_CUT, /* the server of a member loses its leader */
    SIM_HEAL,
    SIM_DELETE_PLACE,
    SIM_DELETE_MEMBER,
    SIM_STRAY,
    SIM_SLOW_USER,
    SIM_PARTY_LOOK,
    SIM_WAIT,
    /* with locks and semaphores: */
    SIM_ACQUIRE_WAIT,
    SIM_RESIZE,
    SIM_CLAIMS_LOOK,
    SIM_DELETE_CLAIM,
    SIM_DELETE_DIRECTORY,
    SIM_SEQUENCE_END,
    /* with registries: */
    SIM_SERVICES_LOOK,
    SIM_SERVICES_CLAIM,
    SIM_SERVICES_UNREGISTER,
    SIM_SERVICES_PURGE,
    SIM_DELETE_SERVICE,
    SIM_WALL_CLOCK,
    /* with plans: */
    SIM_SET_ITEMS,
    SIM_SET_WEIGHT,
    SIM_LEAVE,
    SIM_DEPLOY,
    SIM_DELETE_PLAN,
    SIM_SPOIL_PLAN,
    SIM_RESTORE_PLAN,
    SIM_NEWER_PLAN,
    SIM_STALL,      /* a static member is stopped beyond its session; not drawn as the others are, nor are the next */
    SIM_ASK,        /* the operator asks for something */
    SIM_OLDER_ROOT, /* an older release writes the plan, without wishes and loads */
    SIM_KINDS,
    SIM_KINDS_OF_POOLS = SIM_ACQUIRE_WAIT,  /* the first that only histories of locks have */
    SIM_KINDS_OF_LOCKS = SIM_SERVICES_LOOK, /* and of registries */
    SIM_KINDS_OF_SERVICES = SIM_SET_ITEMS   /* and of plans */
} sim_kind;

typedef struct {
    int64_t at_ms; /* from the beginning */
    sim_kind kind;
    uint32_t a, b, c, d; /* what it means is up to the kind; each event has its own, so that others can be taken out */
} sim_event;

typedef enum { SIM_MIXED, SIM_CHURN, SIM_SERVERS, SIM_LINKS, SIM_REPLIES, SIM_PROFILES } sim_profile;

/* The members' work: partitioners that divide a pool; or locks and semaphores, besides or instead; or registries;
 * or partitioners with all that plans can. */
typedef enum { SIM_OF_POOLS, SIM_OF_LOCKS, SIM_OF_SERVICES, SIM_OF_PLANS, SIM_OF_ELECTIONS } sim_theme;

/* Elections are locks of some users. */
static inline bool sim_has_claims(sim_theme theme) {
    return theme == SIM_OF_LOCKS || theme == SIM_OF_ELECTIONS;
}

enum { SIM_LOCKS_MAX = 4, SIM_POOLS_MAX = 2, SIM_CLAIMS_MAX = 3 };

typedef struct {
    uint64_t seed;
    sim_theme theme;
    size_t locks, pools;            /* paths; every second lock is for readers and writers */
    uint32_t limits[SIM_POOLS_MAX]; /* of the semaphores' pools, as most of their users have them */
    int64_t hold_ms;                /* the longest that something is held */
    bool partitioners;              /* some members have one beside their locks */
    bool sequence_ends;             /* sequence numbers come near their end */
    bool kazoo_claims;              /* kazoo takes locks and semaphores, too */
    int64_t ttl_ms;                 /* the longest of a service */
    bool wall_clocks;               /* servers' are wrong */
    sim_profile profile;
    unsigned servers;
    size_t slots, items;
    int64_t tick_ms, timeout_ms, sync_limit_ticks;
    int64_t client_delay_max_ms, server_delay_max_ms, election_max_ms;
    int64_t boundary_ms; /* around which members choose theirs */
    int64_t react_ms;    /* the longest that a user takes to release */
    bool kazoo;          /* kazoo members may join */
    bool old_servers;    /* they lack create2 and containers (B8); not drawn */
    bool odd_answers;    /* they throttle, refuse by quotas, and answer by unknown codes; not drawn */
    bool death_watch;    /* members have death watches; not drawn */
    bool rolls;          /* small parties have a roll, too (check_rolls.c); not drawn */
    bool small_budgets;
    bool lower;       /* members that go by rules of names */
    size_t namesakes; /* so many identifiers for all static members; 0: mostly each has its own */
    bool statics, weights, zones, deploys, spoils;
    bool operated;                 /* there is an operator, */
    bool loads, tags, caps, older; /* and members that tell loads, have tags or caps, are of an older release */
    size_t max_moves;
    int64_t round_timeout_ms, rejoin_delay_max_ms;
    dv_plan_sizes plan_sizes; /* by which plans are cut */
    size_t count;
    sim_event events[SIM_EVENTS_MAX];
} sim_script;

typedef enum { SIM_KAZOO_SOMETIMES, SIM_KAZOO_OFTEN } sim_kazoo_share;

void sim_script_draw(sim_script *out, uint64_t seed, sim_kazoo_share kazoo, sim_theme theme);
/* The least timeout that clients can hold something with, when servers' ticks are told as tick_ms, over such delays. */
int64_t sim_least_timeout_ms(const sim_script *script, int64_t tick_ms);
void sim_script_print(const sim_script *script);
const char *sim_kind_name(sim_kind kind);
/* Returns whether histories of that theme have such events. */
bool sim_kind_belongs(sim_kind kind, sim_theme theme);
/* The option of the programs that asks for it. */
const char *sim_theme_option(sim_theme theme);

#endif
