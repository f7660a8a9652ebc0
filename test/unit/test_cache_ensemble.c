/* Tests of registry/cache.h on the in-memory ensemble, with faults. SPDX-License-Identifier: Apache-2.0
 *
 * DIVVY_TEST_SEED=n replays one history; with DIVVY_TEST_RUNS=m it begins there, and does so many. */
#include "cache_fixture.h"
#include "test_ensemble.h"

#include "lib/seed.h"

enum { WRITERS = 3, ROLES = 4, IDS = 6, STEPS = 400, TICK_MS = 200, SESSION_MS = 3000, CALM_MS = 15000 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RUNS = 5, FRESH = 2 }; /* They take forty times as long there. */
#else
enum { RUNS = 25, FRESH = 8 };
#endif

static divvy_testing_ensemble *e;
static divvy_client *watcher, *writers[WRITERS];
static uint64_t random_state;
static unsigned seed;

#define check(condition)                                                                                    \
    do {                                                                                                    \
        if (!(condition)) fail_msg("%s; replay: DIVVY_TEST_SEED=%u unit_cache_ensemble", #condition, seed); \
    } while (0)

static unsigned below(unsigned n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

/* ---- what is told must make sense ---- */

static int64_t newest[ROLES][IDS]; /* mzxid that was shown, of each path */

/* Checks that the news of a path go forward only: no version is shown twice, none after a younger one. */
static void check_forward(const dv_slot *slot, const dv_cached *before, const dv_cached *after) {
    int64_t *shown = &newest[slot->node.role->dir.node.name[0] - 'a'][slot->node.name[0] - 'a'];
    if (before && after && after->preserved) return;
    if (!after) return;
    check(after->stat.mzxid > *shown);
    *shown = after->stat.mzxid;
}

/* ---- the truth, by a fresh read ---- */

static void read_text(const char *path, char *out, size_t out_bytes) {
    outcome o;
    int error = do_op(writers[0], &o, op_of(DV_GET, path));
    check(error == 0);
    snprintf(out, out_bytes, "%s", o.data);
}

static void find_slot(void *context, dv_slot *slot) {
    struct {
        const char *id;
        const dv_slot *found;
    } *want = context;
    if (slot->current && strcmp(slot->node.name, want->id) == 0) want->found = slot;
}

static size_t compare_role(const char *role) {
    char path[64], text[256];
    size_t count = 0;
    snprintf(path, sizeof path, ROOT "/%s", role);
    divvy_strings *ids = divvy_testing_children(e, path);
    for (size_t i = 0; i < divvy_strings_count(ids); i++) {
        struct {
            const char *id;
            const dv_slot *found;
        } want = {divvy_strings_get(ids, i), NULL};
        snprintf(path, sizeof path, ROOT "/%s/%s", role, want.id);
        read_text(path, text, sizeof text);
        dv_cache_each(told.cache, role, find_slot, &want);
        if (strncmp(text, "bad", 3) == 0) {
            check(!want.found);
            continue;
        }
        check(want.found);
        check(!want.found->current->preserved);
        check(strcmp(want.found->current->entry, text) == 0);
        count++;
    }
    divvy_strings_free(ids);
    return count;
}

static void compare_with_truth(void) {
    size_t count = 0;
    divvy_strings *roles = divvy_testing_children(e, ROOT);
    for (size_t i = 0; i < divvy_strings_count(roles); i++) count += compare_role(divvy_strings_get(roles, i));
    divvy_strings_free(roles);
    check(count == told.shown);
}

/* ---- writers, and what happens to everybody ---- */

static void ignore_reply(void *context, const dv_reply *reply, int64_t now) {
    (void)context, (void)reply, (void)now;
}

static void ignore_multi(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    (void)context, (void)error, (void)replies, (void)count, (void)now;
}

static void write_something(void) {
    static unsigned count;
    divvy_client *client = writers[below(WRITERS)];
    char path[64], text[32];
    snprintf(path, sizeof path, ROOT "/%c/%c", 'a' + below(ROLES), 'a' + below(IDS));
    snprintf(text, sizeof text, "%s%u", below(10) ? "" : "bad", ++count);
    if (divvy_client_state(client) != DIVVY_CONNECTED) return;
    dv_client_lock(client);
    switch (below(6)) {
    case 0:
    case 1:
        dv_znode_create(client->znode, path, text, strlen(text), below(3) ? DV_EPHEMERAL : 0, ignore_reply, NULL);
        break;
    case 2: dv_znode_delete(client->znode, path, -1, ignore_reply, NULL); break;
    case 3: { /* one goes and another comes in one transaction */
        dv_op ops[] = {op_of(DV_DELETE, path), op_create(path, text, DV_EPHEMERAL)};
        dv_znode_multi(client->znode, ops, 2, ignore_multi, NULL);
        break;
    }
    default: {
        dv_op op = op_set(path, text, -1);
        client->znode->backend->submit(client->znode, &op, NULL, ignore_reply, NULL);
    }
    }
    dv_client_unlock(client);
}

static void change_a_role(void) {
    char path[64];
    snprintf(path, sizeof path, ROOT "/%c", 'a' + below(ROLES));
    if (below(3)) divvy_testing_put(e, path, "", 0, DIVVY_TESTING_PERSISTENT);
    else divvy_testing_remove(e, path); /* refused while anything is in it */
}

static void do_harm(void) {
    switch (below(8)) {
    case 0: divvy_testing_disconnect(e, watcher, DIVVY_TESTING_NOT_APPLIED, 0); break;
    case 1: divvy_testing_disconnect(e, watcher, DIVVY_TESTING_APPLIED, 0); break;
    case 2: divvy_testing_expire(e, watcher); break;
    case 3: divvy_testing_expire(e, writers[below(WRITERS)]); break;
    case 4: divvy_testing_lag_server(e, below(3), 50 + below(300)); break;
    case 5: divvy_testing_link_client(e, watcher, below(2) ? DIVVY_TESTING_LINK_DOWN : DIVVY_TESTING_LINK_UP); break;
    case 6: divvy_testing_kill_server(e, below(3)); break;
    default:
        for (unsigned i = 0; i < 3; i++) divvy_testing_start_server(e, i);
        divvy_testing_heal(e);
    }
}

/* ---- a history ---- */

static divvy_client *open_one(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.session_timeout_ms = SESSION_MS;
    config.ensemble_tick_ms = TICK_MS;
    return open_client_with(e, config, -1);
}

static void close_all(void) {
    end_cache(watcher);
    check(watcher->watched.used_bytes == 0 || told.cache);
    divvy_client_close(watcher);
    check(!told.cache && told.gone == 1);
    for (int i = 0; i < WRITERS; i++) divvy_client_close(writers[i]);
    divvy_testing_ensemble_destroy(e);
}

static void begin_history(const dv_cache_options *options, const char *role) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.seed = seed;
    config.tick_ms = TICK_MS;
    config.client_delay_max_ms = config.server_delay_max_ms = 3;
    random_state = seed * 2654435761u + 1;
    memset(newest, 0, sizeof newest);
    e = open_ensemble(&config);
    watcher = open_one();
    for (int i = 0; i < WRITERS; i++) writers[i] = open_one();
    divvy_testing_put(e, ROOT, "", 0, DIVVY_TESTING_PERSISTENT);
    begin_cache(watcher, options, role);
    told.quiet = true;
    told.check = check_forward;
}

static void run_history(const dv_cache_options *options, bool with_harm) {
    begin_history(options, NULL);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < STEPS / 4; i++) {
            if (below(8) == 0) change_a_role();
            else write_something();
            if (with_harm && below(25) == 0) do_harm();
            divvy_testing_run(e, below(4) ? below(10) : below(400));
            check(watcher->watched.used_bytes <= (options ? options : &usual_options)->watch_bytes);
        }
        for (unsigned i = 0; i < 3; i++) divvy_testing_start_server(e, i);
        divvy_testing_heal(e);
        divvy_testing_run(e, CALM_MS);
        check(is_primed(NULL));
        compare_with_truth();
    }
    close_all();
}

static void run_histories(const dv_cache_options *options, bool with_harm) {
    const char *given = getenv("DIVVY_TEST_SEED"), *runs = getenv("DIVVY_TEST_RUNS");
    unsigned first = given ? (unsigned)atoi(given) : 0, count = runs ? (unsigned)atoi(runs) : given ? 1 : RUNS + FRESH;
    for (unsigned i = 0; i < count; i++) {
        seed = given ? first + i : (unsigned)dv_test_seed_of_run(i, RUNS, "unit_cache_ensemble");
        run_history(options, with_harm);
    }
}

/* The view at rest is what a fresh read says, whatever others do and without the help of an audit. No version of an
 * entry is told twice, and none after a younger one. */
TEST(test_random_writes) {
    run_histories(NULL, false);
}

/* The same with connections, sessions and servers that end at any moment, and servers that lag. */
TEST(test_random_faults) {
    run_histories(NULL, true);
}

/* The same where roles change between being watched and being polled. */
TEST(test_random_faults_polled) {
    dv_cache_options options = usual_options;
    options.watch_bytes = 3 * 8 + 7 * 10;
    options.poll_ms = 700;
    run_histories(&options, true);
}

/* The same with self-preservation: what it keeps is gone after the longest time. */
TEST(test_random_faults_preserving) {
    dv_cache_options options = usual_options;
    options.preserve_share = 0.3;
    options.preserve_settle_ms = 1000;
    options.preserve_max_ms = CALM_MS / 2;
    run_histories(&options, true);
}

/* ---- single histories ---- */

static void make(const char *path, const char *text, int mode) {
    outcome o;
    assert_int_equal(do_op(writers[0], &o, op_create(path, text, mode)), 0);
}

/* Three entries of role a are in the view, the third one ephemeral; b is another role. */
static void begin_with_three(const char *role) {
    seed = 1;
    begin_history(NULL, role);
    told.quiet = false;
    make(ROOT "/a", "", 0);
    make(ROOT "/b", "", 0);
    make(ROOT "/a/a", "1", 0);
    make(ROOT "/a/b", "2", 0);
    make(ROOT "/a/c", "3", DV_EPHEMERAL);
    divvy_testing_run(e, 500);
    assert_int_equal(told.shown, 3);
    assert_true(is_primed(role));
    told.log[0] = '\0';
}

static void set_text(const char *path, const char *text) {
    outcome o;
    assert_int_equal(do_op(writers[0], &o, op_set(path, text, -1)), 0);
}

/* Changes during a lost connection are told once when it is back: by the watches, and not all is read again. */
TEST(test_missed_while_away) {
    begin_with_three("a");
    divvy_testing_link_client(e, watcher, DIVVY_TESTING_LINK_DOWN);
    divvy_testing_disconnect(e, watcher, DIVVY_TESTING_NOT_APPLIED, 0);
    set_text(ROOT "/a/b", "4");
    outcome o;
    do_op(writers[0], &o, op_of(DV_DELETE, ROOT "/a/a"));
    do_op(writers[0], &o, op_of(DV_DELETE, ROOT "/a/c"));
    make(ROOT "/a/c", "5", DV_EPHEMERAL);
    divvy_testing_run(e, 100);
    expect_told("");
    divvy_stats before, after;
    divvy_client_stats(watcher, &before, sizeof before);
    divvy_testing_heal(e);
    divvy_testing_run(e, 2000);
    assert_non_null(strstr(told.log, "a/b=2>4 "));
    assert_non_null(strstr(told.log, "-a/a=1 "));
    assert_non_null(strstr(told.log, "a/c=3>5 "));
    assert_int_equal(told.shown, 2);
    divvy_client_stats(watcher, &after, sizeof after);
    assert_in_range(after.gets - before.gets, 2, 2);
    close_all();
}

/* On a new session all of it is read once, and only what is different is told. */
TEST(test_new_session) {
    begin_with_three("a");
    divvy_testing_expire(e, watcher);
    set_text(ROOT "/a/b", "4");
    divvy_stats before, after;
    divvy_client_stats(watcher, &before, sizeof before);
    divvy_testing_run(e, 3000);
    assert_int_equal(divvy_client_state(watcher), DIVVY_CONNECTED);
    assert_true(is_primed("a"));
    expect_told("a/b=2>4 ");
    divvy_client_stats(watcher, &after, sizeof after);
    assert_in_range(after.gets - before.gets, 3, 4);
    assert_int_equal(watcher->watched.used_bytes, dv_path_cost(ROOT "/a") + 3 * dv_path_cost(ROOT "/a/a"));
    assert_int_equal(after.watches, 4);
    close_all();
}

/* Until the new session has read it the view is not primed, though it stands: nobody is given what may be gone. */
TEST(test_not_primed_without_session) {
    begin_with_three("a");
    divvy_testing_link_client(e, watcher, DIVVY_TESTING_LINK_DOWN);
    divvy_testing_run(e, SESSION_MS / 2);
    assert_true(is_primed("a"));
    divvy_testing_run(e, 2 * SESSION_MS);
    assert_false(is_primed("a"));
    assert_int_equal(told.shown, 3);
    divvy_testing_heal(e);
    divvy_testing_run(e, 3000);
    assert_true(is_primed("a"));
    expect_told("");
    close_all();
}

/* The end of another session takes its entries out of the view, and of these only. */
TEST(test_owner_expires) {
    begin_with_three(NULL);
    divvy_testing_expire(e, writers[0]);
    divvy_testing_run(e, 100);
    expect_told("-a/c=3 ");
    close_all();
}

/* Watches that were given back count until they have fired: views that come and go do not add up at the server. */
TEST(test_watches_given_back) {
    enum { ENTRIES = 20 };
    dv_cache_options options = usual_options;
    seed = 1;
    begin_history(&options, "a");
    told.check = NULL;
    make(ROOT "/a", "", 0);
    make(ROOT "/b", "", 0);
    for (int i = 0; i < ENTRIES; i++) {
        char path[64];
        snprintf(path, sizeof path, ROOT "/a/e%02d", i);
        make(path, "1", 0);
        snprintf(path, sizeof path, ROOT "/b/e%02d", i);
        make(path, "1", 0);
    }
    divvy_testing_run(e, 1000);
    size_t of_a = watcher->watched.used_bytes;
    assert_int_equal(of_a, dv_path_cost(ROOT "/a") + ENTRIES * dv_path_cost(ROOT "/a/e00"));
    watcher->watched.limit_bytes = 2 * (of_a + of_a / 2);
    dv_client_lock(watcher);
    dv_cache_unfollow(told.cache, "a");
    assert_int_equal(dv_cache_follow(told.cache, "b", NULL), 0);
    dv_client_unlock(watcher);
    divvy_testing_run(e, 1000);
    assert_true(is_primed("b"));
    divvy_stats stats;
    divvy_client_stats(watcher, &stats, sizeof stats);
    assert_true(stats.watch_path_bytes <= watcher->watched.limit_bytes / 2);
    for (int i = 0; i < ENTRIES; i++) { /* Those of a fire, one after the other, and b is watched. */
        char path[64];
        snprintf(path, sizeof path, ROOT "/a/e%02d", i);
        set_text(path, "2");
    }
    divvy_testing_run(e, 2 * options.poll_ms);
    divvy_client_stats(watcher, &stats, sizeof stats);
    assert_int_equal(watcher->watched.used_bytes, of_a);
    assert_true(stats.watch_path_bytes <= watcher->watched.limit_bytes / 2);
    close_all();
}

/* A burst of 1,000 changes of one role is a bounded number of lists, and of reads, and all of it is in the view
 * then. */
TEST(test_burst) {
    enum { BURST = 1000 };
    seed = 1;
    begin_history(NULL, "a");
    told.check = NULL;
    make(ROOT "/a", "", 0);
    divvy_testing_run(e, 500);
    divvy_stats before, after;
    divvy_client_stats(watcher, &before, sizeof before);
    int64_t began = divvy_testing_now_ms(e);
    for (int i = 0; i < BURST; i++) {
        char path[64];
        snprintf(path, sizeof path, ROOT "/a/e%d", i);
        dv_client_lock(writers[0]);
        dv_znode_create(writers[0]->znode, path, "1", 1, DV_EPHEMERAL, ignore_reply, NULL);
        dv_client_unlock(writers[0]);
        if (i % 10 == 0) divvy_testing_run(e, 10);
    }
    divvy_testing_run(e, 500);
    int64_t took_ms = divvy_testing_now_ms(e) - began;
    divvy_client_stats(watcher, &after, sizeof after);
    assert_int_equal(told.shown, BURST);
    assert_int_equal(after.gets - before.gets, BURST);
    assert_in_range(after.children - before.children, 2, took_ms / DV_CACHE_LIST_INTERVAL_MS + 1);
    close_all();
}
