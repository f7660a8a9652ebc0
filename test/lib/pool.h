/* Pools of members on a real server: made, driven step by step, recorded, checked. SPDX-License-Identifier: Apache-2.0
 *
 * A member is a client with one partitioner. Members are manual unless they ask for threads: then nothing of theirs
 * happens but in dv_test_pool_step() or dv_test_member_step(), so that a test decides who hears of what, and when.
 * Callbacks are recorded, and checked at once against the rules of docs/protocol.md: only transitions of the table,
 * gained and lost in turn for each item, nothing after on_destroyed. All checks fail the running test, but in a
 * thread of the library's they note a violation, which the next dv_test_pool_step() fails on. */
#ifndef DV_TEST_POOL_H
#define DV_TEST_POOL_H

#include "proxy.h"
#include "server.h"
#include "test.h"
#include "wait.h"
#include "zk.h"

#include <pthread.h>
#include <stdatomic.h>

#include "divvy/partitioner.h"

#define DV_TEST_PATIENCE_MS 40000
#define DV_TEST_TICK_MS 100

typedef struct dv_test_pool dv_test_pool;
typedef struct dv_test_member dv_test_member;

enum dv_test_kind { DV_TEST_STATE, DV_TEST_GAINED, DV_TEST_REVOKED, DV_TEST_LOST, DV_TEST_WARNING, DV_TEST_DESTROYED };

/* One thing that a callback said. */
typedef struct {
    enum dv_test_kind kind;
    int64_t at_ms;
    int from, to; /* of a state; to: the code of a warning */
    int reason;   /* of an item */
    size_t item;  /* its place among the member's sorted items */
    int64_t token;
} dv_test_record;

/* The configuration of a member. All zero: a manual one with the pool's items, incremental, without a boundary,
 * that answers RELEASE by itself in each step. */
typedef struct {
    const char *identifier; /* NULL: the library's own */
    bool threaded;
    bool proxied; /* through a proxy of its own */
    bool patient; /* the test answers RELEASE */
    bool silent;  /* without callbacks, so that nothing but the test's own calls tells of a state */
    bool kazoo;   /* DIVVY_PARTITIONER_CONFIG_KAZOO instead of _INIT, but for the boundary */
    bool rejoins; /* DIVVY_REJOIN */
    int64_t ensemble_tick_ms;
    bool suspends;    /* DIVVY_RELEASE_ON_SUSPEND */
    bool unconnected; /* the partitioner is made without waiting for the connection */
    int assign;
    divvy_partition_func func;
    bool is_static;
    int64_t rejoin_delay_ms;
    size_t max_moves;
    uint32_t weight; /* 0: the library's own */
    const char *zone;
    int64_t boundary_ms, leave_boundary_ms, settle_max_ms, allocate_timeout_ms, release_warn_ms;
    int64_t session_timeout_ms; /* 0: 60 s, so that a slow machine makes no difference */
    size_t ephemeral_path_bytes, watch_path_bytes;
    const char *const *items; /* NULL: the pool's */
    size_t item_count;
    /* Called after a callback was recorded, in its place; NULL for none. */
    void (*on_state)(dv_test_member *member, divvy_partition_state from, divvy_partition_state to);
    void (*on_items)(dv_test_member *member, const divvy_items_event *event);
} dv_test_member_config;

struct dv_test_member {
    dv_test_pool *pool;
    dv_test_member_config config;
    divvy_client *client;
    divvy_partitioner *partitioner;
    dv_test_proxy *proxy;
    atomic_bool destroyed; /* on_destroyed came */
    /* The rest belongs to pool.c; use the functions below. */
    pthread_mutex_t mutex;
    char **items;
    size_t item_count;
    dv_test_record *records;
    size_t record_count, record_room;
    divvy_partition_state told_state; /* by on_state */
    uint8_t *shown, *revoked;         /* by on_items */
    int64_t *tokens;
    uint64_t generation;
    int64_t *marked; /* see dv_test_member_mark() */
    bool marking, killed;
    char violation[200];
    dv_test_member *next;
};

struct dv_test_pool {
    const char *connect;
    dv_test_zk *truth;
    char path[64];
    char **items;
    size_t item_count;
    bool unwatched; /* steps do not look for two owners: for large sets */
    dv_test_member *members;
};

/* Group and test fixtures for cmocka: one server for a program, `*state` is a pool of ten items, "item-0" and on. The
 * test's teardown also fails on a violation that no step has met. */
int dv_test_pool_group_setup(void **state);
int dv_test_pool_group_setup_ensemble(void **state); /* three servers */
int dv_test_pool_group_teardown(void **state);
int dv_test_pool_setup(void **state);
int dv_test_pool_teardown(void **state);
dv_test_server *dv_test_pool_server(void);

/* Returns the state of the member's partitioner. */
static inline divvy_partition_state dv_test_member_state(dv_test_member *m) {
    return divvy_partitioner_state(m->partitioner);
}

/* Defines a test, like TEST(), whose body finds the pool of its fixture in `pool`. */
#define TEST_OF_POOL(name)                     \
    static void name##_of(dv_test_pool *pool); \
    TEST(name) {                               \
        name##_of(*state);                     \
    }                                          \
    static void name##_of(dv_test_pool *pool)

/* Other items: `count` names made by printf of `format` and the number from 0. Before the first member. */
void dv_test_pool_set_items(dv_test_pool *pool, const char *format, size_t count);
void dv_test_pool_use_items(dv_test_pool *pool, const char *const *items, size_t count);

/* A member. Without `unconnected` it waits for the connection before it makes the partitioner. */
dv_test_member *dv_test_pool_add(dv_test_pool *pool, const dv_test_member_config *config);
/* Several, alike but for their identifiers, "member-<first>" and on. */
void dv_test_pool_add_many(dv_test_pool *pool, dv_test_member **out, size_t first, size_t count,
                           const dv_test_member_config *config);

/* One turn for all members, answers to RELEASE included; a millisecond's rest when nothing was to be done. */
void dv_test_pool_step(dv_test_pool *pool);
/* Part of each such turn: S2, fails when two members own one item. */
void dv_test_pool_look(dv_test_pool *pool);
void dv_test_pool_step_for(dv_test_pool *pool, int ms);
/* One turn for one member; whether something was done. */
bool dv_test_member_step(dv_test_member *member);
/* Turns for one member until nothing is to be done; then what it owns must be what callbacks have said. */
void dv_test_member_drain(dv_test_member *member);

/* Steps all until the condition holds; fails the test when the patience is over. */
#define DV_POOL_UNTIL(pool, condition)                                                                \
    do {                                                                                              \
        int64_t dv_deadline_ms_ = dv_test_now_ms() + DV_TEST_PATIENCE_MS;                             \
        while (!(condition)) {                                                                        \
            if (dv_test_now_ms() >= dv_deadline_ms_) dv_test_pool_fail(pool, "in vain: " #condition); \
            dv_test_pool_step(pool);                                                                  \
        }                                                                                             \
    } while (0)
/* The same, for one member alone. */
#define DV_MEMBER_UNTIL(member, condition)                                                                      \
    do {                                                                                                        \
        int64_t dv_deadline_ms_ = dv_test_now_ms() + DV_TEST_PATIENCE_MS;                                       \
        while (!(condition)) {                                                                                  \
            if (dv_test_now_ms() >= dv_deadline_ms_) dv_test_pool_fail((member)->pool, "in vain: " #condition); \
            if (!dv_test_member_step(member)) dv_test_sleep_ms(1);                                              \
        }                                                                                                       \
    } while (0)
/* Fails the test with the text and the states of all members. */
void dv_test_pool_fail(dv_test_pool *pool, const char *text);

/* Returns whether all members that have not failed are ACQUIRED. Tells of the states. */
bool dv_test_pool_acquired(dv_test_pool *pool);
/* Steps until all are ACQUIRED, own all items together, and none owns two more than another; then checks against
 * ZooKeeper: each item has one owner, whose session has the one node in its queue, with the token. */
void dv_test_pool_settle(dv_test_pool *pool);
/* The check of dv_test_pool_settle() alone; `queued`: other contenders may wait behind the owner. */
void dv_test_pool_check_owners(dv_test_pool *pool, bool queued);
/* Ephemeral nodes below the pool's path, members and locks together. */
size_t dv_test_pool_nodes(dv_test_pool *pool);
/* Children of P/locks. */
size_t dv_test_pool_directories(dv_test_pool *pool);

/* A connection away, kept away; and its end at the server as by expiry, with the connection back after it. */
void dv_test_member_cut(dv_test_member *member);
void dv_test_member_expire(dv_test_member *member);
/* The process is gone, as if killed by -9: its session is over at the server at once, and it never hears of it. */
void dv_test_member_kill(dv_test_member *member);
/* divvy_partitioner_destroy(), and from then on it is no member. The client stays. */
void dv_test_member_destroy(dv_test_member *member);
/* divvy_partitioner_finish() driven together with the others, to its end. */
void dv_test_member_finish(dv_test_member *member);

/* Returns how many records of a kind there are; of DV_TEST_STATE and _WARNING those with this `to`, -1 for any. */
size_t dv_test_member_count(dv_test_member *member, enum dv_test_kind kind, int to);
/* The index of the last such record, or SIZE_MAX. */
size_t dv_test_member_last(dv_test_member *member, enum dv_test_kind kind, int to);
/* All transitions since the beginning, as "ALLOCATING ACQUIRED RELEASE ...". Static memory. */
const char *dv_test_member_states(dv_test_member *member);
/* Returns how many items it owns, by divvy_partitioner_owns(), which tells nothing. */
size_t dv_test_member_load(dv_test_member *member);
bool dv_test_member_owns(dv_test_member *member, size_t item);
/* Its snapshot as a text: items in order, separated by blanks, revoked ones with a '!'. Tells. Static memory. */
const char *dv_test_member_share(dv_test_member *member);
/* The token of an item in its snapshot, 0 when it is not there. Tells. */
int64_t dv_test_member_token(dv_test_member *member, size_t item);
divvy_stats dv_test_member_stats(dv_test_member *member);
size_t dv_test_member_item(const dv_test_member *member, const char *name);

/* From here on each step looks whether what is owned now is still owned, with the same token... */
void dv_test_member_mark(dv_test_member *member);
/* ...and this says how many items have been. */
size_t dv_test_member_kept(dv_test_member *member);

/* ---- others in ZooKeeper, as the test's own session makes them ---- */

/* A child of the party with this name, ephemeral or persistent. */
void dv_test_pool_join(dv_test_pool *pool, const char *name, bool ephemeral);
void dv_test_pool_leave(dv_test_pool *pool, const char *name);
/* The name of our one node in the party; free it. */
char *dv_test_member_party_node(dv_test_member *member);
/* A contender in the queue of an item. Its path; free it after dv_test_pool_unblock(). */
char *dv_test_pool_block(dv_test_pool *pool, const char *item);
void dv_test_pool_unblock(dv_test_pool *pool, char *path);
/* P/locks/<item>, in static memory. */
const char *dv_test_pool_queue(dv_test_pool *pool, const char *item);
/* Contenders in it. */
size_t dv_test_pool_queue_length(dv_test_pool *pool, const char *item);
/* The session whose contender is the first there, with the czxid of its node; 0 for none. */
int64_t dv_test_pool_owner(dv_test_pool *pool, const char *item, int64_t *czxid);

/* ---- targets as a test wants them ----
 *
 * With this function a member's target is what the greatest party member named "target-<number>-<bits>" says: the i-th
 * bit '1' gives it the i-th item. Without such a member it has everything. Without a boundary it settles at once. */
int dv_test_pool_func(const char *identifier, const char *const *members, size_t member_count, const char *const *items,
                      size_t item_count, uint8_t *mine, void *user);
/* Replaces the target. Nothing waits for it to settle. */
void dv_test_pool_set_target(dv_test_pool *pool, const char *bits);

#endif
