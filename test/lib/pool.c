/* Members: made, driven, ended. See pool.h. SPDX-License-Identifier: Apache-2.0 */
#include "pool_internal.h"

#include "expire.h"

#include <stdint.h>
#include <string.h>

#define SESSION_TIMEOUT_MS 60000
#define POOL_ITEMS 10

static dv_test_server *server;
static dv_test_zk *truth;

/* ---- fixtures ---- */

static int start(int servers) {
    server = dv_test_server_start(servers, DV_TEST_TICK_MS);
    truth = dv_test_zk_open(dv_test_server_connect(server));
    return 0;
}

int dv_test_pool_group_setup(void **state) {
    (void)state;
    return start(1);
}

int dv_test_pool_group_setup_ensemble(void **state) {
    (void)state;
    return start(3);
}

int dv_test_pool_group_teardown(void **state) {
    (void)state;
    dv_test_zk_close(truth);
    dv_test_server_stop(server);
    return 0;
}

dv_test_server *dv_test_pool_server(void) {
    return server;
}

int dv_test_pool_setup(void **state) {
    static unsigned made;
    dv_test_pool *pool = dv_test_alloc(1, sizeof *pool);
    pool->connect = dv_test_server_connect(server);
    pool->truth = truth;
    snprintf(pool->path, sizeof pool->path, "/pool-%u", ++made);
    dv_test_pool_set_items(pool, "item-%zu", POOL_ITEMS);
    *state = pool;
    return 0;
}

void dv_test_pool_use_items(dv_test_pool *pool, const char *const *items, size_t count) {
    assert_null(pool->members);
    dv_test_free_copies(pool->items, pool->item_count);
    pool->items = dv_test_sorted_copy(items, count);
    pool->item_count = count;
}

void dv_test_pool_set_items(dv_test_pool *pool, const char *format, size_t count) {
    char **names = dv_test_alloc(count, sizeof *names);
    for (size_t i = 0; i < count; i++) {
        char name[200];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(name, sizeof name, format, i);
#pragma GCC diagnostic pop
        if (!(names[i] = strdup(name))) dv_test_die("no memory");
    }
    dv_test_pool_use_items(pool, (const char *const *)names, count);
    dv_test_free_copies(names, count);
}

static void free_member(dv_test_member *m) {
    dv_test_record_free(m);
    dv_test_free_copies(m->items, m->item_count);
    free(m);
}

static bool is_connected(const dv_test_member *m) {
    return !m->killed && divvy_client_state(m->client) == DIVVY_CONNECTED;
}

/* L3: what is destroyed leaves nothing, while its session lives on. */
static void check_nothing_left(dv_test_pool *pool) {
    for (dv_test_member *m = pool->members; m; m = m->next) {
        if (!is_connected(m)) continue;
        DV_POOL_UNTIL(pool, dv_test_member_stats(m).ephemerals == 0);
        if (!m->config.silent) DV_POOL_UNTIL(pool, atomic_load(&m->destroyed));
    }
}

int dv_test_pool_teardown(void **state) {
    dv_test_pool *pool = *state;
    for (dv_test_member *m = pool->members; m; m = m->next) {
        if (m->partitioner) dv_test_member_destroy(m);
    }
    check_nothing_left(pool);
    bool all_connected = true;
    for (dv_test_member *m = pool->members; m; m = m->next) all_connected &= is_connected(m);
    if (all_connected) assert_int_equal(dv_test_pool_nodes(pool), 0);
    for (dv_test_member *m = pool->members; m; m = m->next) {
        divvy_client_close(m->client);
        dv_test_proxy_stop(m->proxy);
        dv_test_record_check(m);
    }
    for (dv_test_member *m; (m = pool->members);) {
        pool->members = m->next;
        free_member(m);
    }
    dv_test_zk_delete_all(truth, pool->path);
    dv_test_free_copies(pool->items, pool->item_count);
    free(pool);
    return 0;
}

/* ---- members ---- */

static int64_t or_default(int64_t value, int64_t otherwise) {
    return value ? value : otherwise;
}

static void open_client(dv_test_member *m, divvy_client_config *config) {
    const dv_test_member_config *c = &m->config;
    if (c->proxied) m->proxy = dv_test_proxy_start(m->pool->connect);
    config->hosts = m->proxy ? dv_test_proxy_address(m->proxy) : m->pool->connect;
    config->manual = !c->threaded;
    config->session_timeout_ms = or_default(c->session_timeout_ms, SESSION_TIMEOUT_MS);
    config->ensemble_tick_ms = or_default(c->ensemble_tick_ms, DV_TEST_TICK_MS);
    config->ephemeral_path_bytes = c->ephemeral_path_bytes;
    config->watch_path_bytes = c->watch_path_bytes;
    assert_int_equal(divvy_client_open(&m->client, config), 0);
    if (!c->unconnected) assert_int_equal(divvy_client_wait_connected(m->client, DV_TEST_PATIENCE_MS), 0);
}

static void create_partitioner(dv_test_member *m, divvy_partitioner_config *config) {
    const dv_test_member_config *c = &m->config;
    config->path = m->pool->path;
    config->items = (const char *const *)m->items;
    config->item_count = m->item_count;
    config->identifier = c->identifier;
    if (!c->kazoo) config->assign = c->assign;
    if (c->func) config->assign = DIVVY_ASSIGN_FUNC;
    config->func = c->func;
    config->time_boundary_ms = c->boundary_ms;
    config->leave_boundary_ms = or_default(c->leave_boundary_ms, -1);
    config->settle_max_ms = c->settle_max_ms;
    config->allocate_timeout_ms = c->allocate_timeout_ms;
    config->release_warn_ms = c->release_warn_ms;
    config->static_membership = c->is_static;
    config->rejoin_delay_ms = c->rejoin_delay_ms;
    config->max_moves = c->max_moves;
    if (c->weight > 0) config->weight = c->weight;
    config->zone = c->zone;
    if (c->suspends) config->on_suspend = DIVVY_RELEASE_ON_SUSPEND;
    if (c->rejoins) config->on_session_loss = DIVVY_REJOIN;
    assert_int_equal(divvy_partitioner_create(&m->partitioner, m->client, config), 0);
}

dv_test_member *dv_test_pool_add(dv_test_pool *pool, const dv_test_member_config *config) {
    static const divvy_partitioner_config kazoo = DIVVY_PARTITIONER_CONFIG_KAZOO;
    dv_test_member *m = dv_test_alloc(1, sizeof *m);
    m->pool = pool;
    m->config = *config;
    bool own = config->items != NULL;
    m->item_count = own ? config->item_count : pool->item_count;
    m->items = dv_test_sorted_copy(own ? config->items : (const char *const *)pool->items, m->item_count);
    dv_test_record_init(m);
    dv_test_member **end = &pool->members;
    while (*end) end = &(*end)->next;
    *end = m;

    divvy_client_config client = DIVVY_CLIENT_CONFIG_INIT;
    divvy_partitioner_config partitioner = DIVVY_PARTITIONER_CONFIG_INIT;
    if (config->kazoo) partitioner = kazoo;
    dv_test_record_hook(m, &client, &partitioner);
    open_client(m, &client);
    create_partitioner(m, &partitioner);
    return m;
}

void dv_test_pool_add_many(dv_test_pool *pool, dv_test_member **out, size_t first, size_t count,
                           const dv_test_member_config *config) {
    for (size_t i = 0; i < count; i++) {
        char name[40];
        snprintf(name, sizeof name, "member-%02zu", first + i);
        dv_test_member_config own = *config;
        own.identifier = name;
        out[i] = dv_test_pool_add(pool, &own);
        out[i]->config.identifier = NULL; /* it was copied */
    }
}

bool dv_test_member_lives(const dv_test_member *m) {
    return m->partitioner && m->client && !m->killed;
}

/* ---- turns ---- */

static void look_at_marks(dv_test_member *m) {
    for (size_t i = 0; m->marking && i < m->item_count; i++) {
        if (m->marked[i] && !divvy_partitioner_owns(m->partitioner, m->items[i])) m->marked[i] = 0;
    }
}

bool dv_test_member_step(dv_test_member *m) {
    if (m->killed || !m->client) return false;
    bool worked = !m->config.threaded && divvy_client_process(m->client, 0) > 0;
    dv_test_record_check(m);
    if (!m->partitioner) return worked;
    look_at_marks(m);
    if (!m->config.patient && divvy_partitioner_state(m->partitioner) == DIVVY_RELEASE) {
        int error = divvy_partitioner_release_set(m->partitioner);
        assert_true(error == 0 || (m->config.threaded && error == DIVVY_ESTATE));
        worked = true;
    }
    return worked;
}

static bool both_own(dv_test_member *a, dv_test_member *b, size_t item) {
    return dv_test_member_owns(a, item) && dv_test_member_owns(b, item);
}

/* A threaded member may lose an item between two looks; it does not gain it back from another in that time. */
void dv_test_pool_look(dv_test_pool *pool) {
    if (pool->unwatched) return;
    for (size_t i = 0; i < pool->item_count; i++) {
        dv_test_member *owner = NULL;
        for (dv_test_member *m = pool->members; m; m = m->next) {
            if (!dv_test_member_owns(m, i)) continue;
            if (owner && both_own(owner, m, i) && both_own(owner, m, i)) dv_test_pool_fail(pool, pool->items[i]);
            owner = m;
        }
    }
}

void dv_test_pool_step(dv_test_pool *pool) {
    bool worked = false;
    for (dv_test_member *m = pool->members; m; m = m->next) worked |= dv_test_member_step(m);
    dv_test_pool_look(pool);
    if (!worked) dv_test_sleep_ms(1);
}

void dv_test_pool_step_for(dv_test_pool *pool, int ms) {
    for (int64_t end = dv_test_now_ms() + ms; dv_test_now_ms() < end;) dv_test_pool_step(pool);
}

void dv_test_member_drain(dv_test_member *m) {
    assert_false(m->config.threaded);
    while (dv_test_member_step(m)) continue;
    dv_test_record_compare(m);
}

void dv_test_pool_fail(dv_test_pool *pool, const char *text) {
    fprintf(stderr, "%s: %s\n", pool->path, text);
    for (dv_test_member *m = pool->members; m; m = m->next) {
        if (!m->partitioner) continue;
        fprintf(stderr, "  %s: %s\n", divvy_partitioner_identifier(m->partitioner), dv_test_member_states(m));
        if (m->item_count < 50) fprintf(stderr, "    owns %s\n", dv_test_member_share(m));
    }
    fail_msg("%s", text);
}

bool dv_test_pool_acquired(dv_test_pool *pool) {
    for (dv_test_member *m = pool->members; m; m = m->next) {
        if (!dv_test_member_lives(m)) continue;
        divvy_partition_state state = divvy_partitioner_state(m->partitioner);
        if (state != DIVVY_ACQUIRED && state != DIVVY_FAILURE) return false;
    }
    return true;
}

static bool is_balanced(dv_test_pool *pool) {
    size_t members = 0, total = 0, least = SIZE_MAX, most = 0;
    for (dv_test_member *m = pool->members; m; m = m->next) {
        if (!dv_test_member_lives(m) || divvy_partitioner_state(m->partitioner) == DIVVY_FAILURE) continue;
        size_t load = dv_test_member_load(m);
        members++;
        total += load;
        if (load < least) least = load;
        if (load > most) most = load;
    }
    return members && total == pool->item_count && most - least <= 1;
}

static bool is_settled(dv_test_pool *pool) {
    return dv_test_pool_acquired(pool) && is_balanced(pool);
}

void dv_test_pool_settle(dv_test_pool *pool) {
    do { /* Changes still on their way, a late one of the party for example, may begin another round. */
        DV_POOL_UNTIL(pool, is_settled(pool));
        for (dv_test_member *m = pool->members; m; m = m->next) {
            if (dv_test_member_lives(m) && !m->config.threaded) dv_test_member_drain(m);
        }
    } while (!is_settled(pool));
    dv_test_pool_check_owners(pool, false);
}

/* ---- ends ---- */

void dv_test_member_cut(dv_test_member *m) {
    assert_non_null(m->proxy);
    dv_test_proxy_cut(m->proxy);
}

/* A session that has ended of itself already is as good. */
void dv_test_member_expire(dv_test_member *m) {
    dv_test_member_cut(m);
    dv_test_expire(m->pool->connect, divvy_client_session_id(m->client), NULL);
    dv_test_proxy_restore(m->proxy);
}

void dv_test_member_kill(dv_test_member *m) {
    dv_test_member_cut(m);
    dv_test_expire(m->pool->connect, divvy_client_session_id(m->client), NULL);
    m->killed = true;
}

void dv_test_member_destroy(dv_test_member *m) {
    divvy_partitioner *p = m->partitioner;
    m->partitioner = NULL;
    m->marking = false;
    divvy_partitioner_destroy(p);
}

void dv_test_member_finish(dv_test_member *m) {
    int failure = divvy_partitioner_failure(m->partitioner, NULL, 0);
    int error = divvy_partitioner_finish(m->partitioner, 0);
    assert_true(error == 0 || error == DIVVY_ETIMEDOUT);
    DV_POOL_UNTIL(m->pool, divvy_partitioner_finish(m->partitioner, 0) == 0);
    assert_int_equal(divvy_partitioner_state(m->partitioner), DIVVY_FAILURE);
    assert_int_equal(divvy_partitioner_failure(m->partitioner, NULL, 0), failure ? failure : DIVVY_ECANCELED);
}

/* ---- what a member has ---- */

bool dv_test_member_owns(dv_test_member *m, size_t item) {
    return dv_test_member_lives(m) && divvy_partitioner_owns(m->partitioner, m->pool->items[item]);
}

size_t dv_test_member_load(dv_test_member *m) {
    size_t load = 0;
    for (size_t i = 0; i < m->item_count; i++) load += (size_t)divvy_partitioner_owns(m->partitioner, m->items[i]);
    return load;
}

const char *dv_test_member_share(dv_test_member *m) {
    static char text[8000];
    divvy_partition *share = divvy_partitioner_partition(m->partitioner);
    assert_non_null(share);
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < divvy_partition_count(share) && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s", i ? " " : "",
                                 divvy_partition_item(share, i), divvy_partition_revoked(share, i) ? "!" : "");
    divvy_partition_unref(share);
    return text;
}

int64_t dv_test_member_token(dv_test_member *m, size_t item) {
    divvy_partition *share = divvy_partitioner_partition(m->partitioner);
    assert_non_null(share);
    int64_t token = 0;
    for (size_t i = 0; i < divvy_partition_count(share); i++) {
        if (strcmp(divvy_partition_item(share, i), m->items[item]) == 0) token = divvy_partition_token(share, i);
    }
    divvy_partition_unref(share);
    return token;
}

divvy_stats dv_test_member_stats(dv_test_member *m) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(m->client, &stats, sizeof stats), 0);
    return stats;
}

static size_t walk_marks(dv_test_member *m, bool set) {
    divvy_partition *share = divvy_partitioner_partition(m->partitioner);
    assert_non_null(share);
    size_t kept = 0;
    for (size_t at = 0; at < divvy_partition_count(share); at++) {
        size_t i = dv_test_member_item(m, divvy_partition_item(share, at));
        int64_t token = divvy_partition_token(share, at);
        if (set) m->marked[i] = token;
        else kept += m->marked[i] == token;
    }
    divvy_partition_unref(share);
    return kept;
}

void dv_test_member_mark(dv_test_member *m) {
    memset(m->marked, 0, m->item_count * sizeof *m->marked);
    walk_marks(m, true);
    m->marking = true;
}

size_t dv_test_member_kept(dv_test_member *m) {
    look_at_marks(m);
    return walk_marks(m, false);
}
