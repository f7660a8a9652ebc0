/* Pools under a random mix of all that may happen to them. SPDX-License-Identifier: Apache-2.0
 *
 * Members are stepped in random order, so that some hear late what others know already. After each turn no item may
 * have two owners; when the faults are over, the pool must become whole. Each run prints its seed: DIVVY_TEST_SEED
 * replays its choices (not the timing of the network), DIVVY_TEST_SOAK_MS makes it longer.
 *
 * Shows random faults of real links and sessions; the simulator has those of the ensemble in memory. */
#include "lib/pool.h"

#include <inttypes.h>
#include <string.h>

#include "lib/seed.h"
#include "znode/path.h"

enum { MEMBERS_MAX = 5, ITEMS = 20, RUN_MS = 6000 };

typedef struct {
    dv_test_pool *pool;
    uint64_t seed;
    dv_test_member *members[MEMBERS_MAX]; /* NULL: free */
    char *foreign[ITEMS];                 /* contenders of nobody's */
    bool guest;
    unsigned made;
} world;

static unsigned pick(world *w, unsigned count) {
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(w->seed >> 33) % count;
}

static void add_member(world *w, size_t i, bool lasting) {
    dv_test_member_config config = {
        .proxied = true,
        .patient = pick(w, 3) == 0,
        .kazoo = pick(w, 4) == 0,
        .suspends = pick(w, 4) == 0,
        .assign = pick(w, 4) == 0 ? DIVVY_ASSIGN_ROUND_ROBIN : DIVVY_ASSIGN_AUTO,
        .boundary_ms = pick(w, 3) * 40,
        .session_timeout_ms = lasting || pick(w, 2) ? 30000 : 4000,
        .watch_path_bytes = pick(w, 3) ? 0 : 800,
    };
    config.rejoins = pick(w, 2) && !config.kazoo;
    char name[20];
    snprintf(name, sizeof name, "m%u", w->made++);
    config.identifier = name;
    w->members[i] = dv_test_pool_add(w->pool, &config);
    w->members[i]->config.identifier = NULL;
}

static void remove_member(world *w, size_t i) {
    dv_test_member *m = w->members[i];
    switch (pick(w, 4)) {
    case 0: dv_test_member_kill(m); break;
    case 1: divvy_partitioner_finish(m->partitioner, 0); break;
    default: dv_test_member_destroy(m); break;
    }
    w->members[i] = NULL;
}

/* Deletes one of our nodes that holds nothing: somebody else's mistake. */
static void delete_foreign(world *w, dv_test_member *m) {
    if (pick(w, 2)) {
        char *node = dv_test_member_party_node(m);
        if (node) dv_test_pool_leave(w->pool, node);
        free(node);
        return;
    }
    char *queue = strdup(dv_test_pool_queue(w->pool, w->pool->items[pick(w, ITEMS)]));
    size_t count = 0;
    char **names = queue ? dv_test_zk_children(w->pool->truth, queue, &count) : NULL;
    for (size_t i = 0; names && count > 1 && i < count; i++) {
        char *path = dv_path_join(queue, names[i]);
        struct Stat stat;
        int64_t first;
        const char *item = queue + strlen(w->pool->path) + strlen("/locks/");
        dv_test_pool_owner(w->pool, item, &first);
        if (path && dv_test_zk_exists(w->pool->truth, path, &stat) && stat.czxid != first &&
            stat.ephemeralOwner == divvy_client_session_id(m->client))
            dv_test_zk_delete(w->pool->truth, path);
        free(path);
    }
    dv_test_zk_free_names(names);
    free(queue);
}

static void toggle_guest(world *w) {
    if (w->guest) dv_test_pool_leave(w->pool, "guest,a=1-guest");
    else dv_test_pool_join(w->pool, "guest,a=1-guest", true);
    w->guest = !w->guest;
}

static void toggle_foreign(world *w, size_t i) {
    if (w->foreign[i]) dv_test_pool_unblock(w->pool, w->foreign[i]);
    w->foreign[i] = w->foreign[i] ? NULL : dv_test_pool_block(w->pool, w->pool->items[i]);
}

static void act(world *w) {
    size_t i = pick(w, MEMBERS_MAX);
    dv_test_member *m = w->members[i];
    unsigned action = pick(w, 24);
    if (!m) {
        if (action < 6) add_member(w, i, i == 0);
        return;
    }
    switch (action) {
    case 0: dv_test_proxy_cut(m->proxy); break;
    case 1: dv_test_proxy_drop_replies(m->proxy, true); break;
    case 2: dv_test_proxy_freeze(m->proxy); break;
    case 3:
    case 4:
    case 5:
    case 6: dv_test_proxy_restore(m->proxy); break;
    case 7: toggle_guest(w); break;
    case 8: toggle_foreign(w, pick(w, ITEMS)); break;
    case 9: delete_foreign(w, m); break;
    case 10:
        if (i > 0) remove_member(w, i);
        break;
    case 11:
    case 12: divvy_partitioner_release_set(m->partitioner); break;
    default: break;
    }
}

/* Some members hear of what has happened, others do not yet. */
static void turn(world *w) {
    for (unsigned n = pick(w, 8); n > 0; n--) {
        dv_test_member *m = w->members[pick(w, MEMBERS_MAX)];
        if (m) dv_test_member_step(m);
    }
    if (pick(w, 4) == 0) dv_test_sleep_ms((int)pick(w, 20));
    if (pick(w, 3) == 0) dv_test_pool_step(w->pool);
    else dv_test_pool_look(w->pool);
}

static void end_faults(world *w) {
    if (w->guest) toggle_guest(w);
    for (size_t i = 0; i < ITEMS; i++) {
        if (w->foreign[i]) toggle_foreign(w, i);
    }
    for (dv_test_member *m = w->pool->members; m; m = m->next) {
        m->config.patient = false;
        if (!m->killed) dv_test_proxy_restore(m->proxy);
    }
    /* A member that has lost its session makes room for the others. */
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        dv_test_member *m = w->members[i];
        if (m && divvy_partitioner_state(m->partitioner) == DIVVY_FAILURE) dv_test_member_destroy(m);
    }
}

/* Returns whether each living member has one node, and each item one. Sessions may still end, on a machine that stands
 * still. */
static bool has_no_node_too_many(const world *w) {
    size_t living = 0;
    for (dv_test_member *m = w->pool->members; m; m = m->next)
        living += !m->killed && m->partitioner && divvy_partitioner_state(m->partitioner) == DIVVY_ACQUIRED;
    return dv_test_pool_nodes(w->pool) == living + ITEMS;
}

/* No item has two owners, whatever happens in whatever order, and afterwards each has one, with no node too many. */
TEST(test_random) {
    world w = {.pool = *state};
    const char *soak = getenv("DIVVY_TEST_SOAK_MS");
    w.seed = dv_test_seed("live_partitioner_random");
    add_member(&w, 0, true);
    add_member(&w, 1, false);
    int64_t end_ms = dv_test_now_ms() + (soak ? strtoll(soak, NULL, 10) : RUN_MS);
    while (dv_test_now_ms() < end_ms) {
        act(&w);
        turn(&w);
    }
    end_faults(&w);
    dv_test_pool_settle(w.pool);
    DV_POOL_UNTIL(w.pool, has_no_node_too_many(&w));
}

static int setup(void **state) {
    dv_test_pool_setup(state);
    dv_test_pool_set_items(*state, "item-%02zu", ITEMS);
    return 0;
}

TEST_EACH(setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
