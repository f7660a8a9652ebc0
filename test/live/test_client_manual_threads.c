/* Tests of manual mode with several threads, and of its end. SPDX-License-Identifier: Apache-2.0
 *
 * Shows threads of the program's, signals and wake-ups around one loop; the virtual clock has one thread. */
#include "client_manual_fixture.h"

static void on_signal(int number) {
    (void)number;
}

/* A signal that interrupts the wait does not end process() before its time. */
TEST(test_interrupted) {
    int fd;
    witness w;
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigaction(SIGALRM, &action, &before);
    divvy_client_config config = manual_config(&w, dead_address(&fd));
    divvy_client *client = open_with(&config);
    while (divvy_client_process(client, 100) > 0) continue;
    int64_t before_ms = dv_test_now_ms();
    ualarm(50000, 50000);
    ASSERT_FAILS(divvy_client_wait_connected(client, 400), DIVVY_ETIMEDOUT, client, "");
    ualarm(0, 0);
    assert_true(dv_test_now_ms() - before_ms >= 400);
    sigaction(SIGALRM, &before, NULL);
    divvy_client_close(client);
    witness_end(&w);
    close(fd);
}

/* --- other threads ---------------------------------------------------------------------------------------------- */

typedef struct {
    divvy_client *client;
    divvy_party *party;
    divvy_partitioner *partitioner;
    uint64_t since;
    int64_t timeout_ms;
    atomic_int result, begun, ended;
    pthread_t thread;
} call;

static void *run_process(void *argument) {
    call *c = argument;
    atomic_store(&c->begun, 1);
    int result;
    do result = divvy_client_process(c->client, c->timeout_ms);
    while (result >= 0 && c->timeout_ms < 0);
    atomic_store(&c->result, result);
    atomic_store(&c->ended, 1);
    return NULL;
}

static void *run_members(void *argument) {
    call *c = argument;
    divvy_strings *members;
    atomic_store(&c->begun, 1);
    int result = divvy_party_members(c->party, &members, c->timeout_ms);
    divvy_strings_free(members);
    atomic_store(&c->result, result);
    atomic_store(&c->ended, 1);
    return NULL;
}

static void *run_wait_change(void *argument) {
    call *c = argument;
    atomic_store(&c->begun, 1);
    atomic_store(&c->result, divvy_partitioner_wait_change(c->partitioner, c->since, c->timeout_ms));
    atomic_store(&c->ended, 1);
    return NULL;
}

static void start(call *c, void *(*run)(void *)) {
    assert_int_equal(pthread_create(&c->thread, NULL, run, c), 0);
    assert_true(DV_WAIT(atomic_load(&c->begun), PATIENCE_MS));
}

static int join(call *c) {
    pthread_join(c->thread, NULL);
    return atomic_load(&c->result);
}

/* A second process() at the same time is DIVVY_ESTATE; all else may be called meanwhile, from several threads. */
TEST(test_one_process_at_a_time) {
    enum { LISTERS = 3 };
    witness w;
    divvy_stats stats;
    divvy_party *party;
    divvy_client_config config = manual_config(&w, hosts());
    divvy_client *client = open_with(&config);
    assert_int_equal(divvy_party_join(&party, client, "/manual/shared", "me", DIVVY_PARTY), 0);
    call loop = {.client = client, .timeout_ms = -1}, listers[LISTERS];
    start(&loop, run_process);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_CONNECTED, PATIENCE_MS));
    assert_true(DV_WAIT(divvy_client_process(client, 0) == DIVVY_ESTATE, PATIENCE_MS));
    assert_non_null(strstr(divvy_client_error(client), "another thread"));
    for (int i = 0; i < LISTERS; i++) {
        listers[i] = (call){.party = party, .timeout_ms = PATIENCE_MS};
        start(&listers[i], run_members);
    }
    assert_int_equal(divvy_client_stats(client, &stats, sizeof stats), 0);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    for (int i = 0; i < LISTERS; i++) assert_int_equal(join(&listers[i]), 0);
    assert_int_equal(divvy_party_leave(party, PATIENCE_MS), 0);
    divvy_party_destroy(party);
    divvy_client_close(client);
    assert_int_equal(join(&loop), DIVVY_ECLOSED);
    witness_end(&w);
}

/* While a waiting call of another thread drives the loop, process() of the program's own thread does not fail. */
TEST(test_process_beside_a_waiting_call) {
    int fd;
    witness w;
    divvy_party *party;
    divvy_client_config config = manual_config(&w, dead_address(&fd));
    divvy_client *client = open_with(&config);
    assert_int_equal(divvy_party_join(&party, client, "/manual/party", "me", DIVVY_PARTY), 0);
    call lister = {.party = party, .timeout_ms = 1000};
    start(&lister, run_members);
    while (!atomic_load(&lister.ended)) assert_true(divvy_client_process(client, 10) >= 0);
    assert_int_equal(join(&lister), DIVVY_ETIMEDOUT);
    assert_true(divvy_client_process(client, 0) >= 0);
    divvy_party_destroy(party);
    divvy_client_close(client);
    witness_end(&w);
    close(fd);
}

/* An act of another thread wakes a waiting call that drives the loop, though no event comes of it: a release while
 * the link is down. */
TEST(test_waiting_call_is_woken) {
    static const char *const items[] = {"a"};
    witness w;
    divvy_partitioner *p;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_partitioner_config p_config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_client_config config = manual_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = 60000; /* so that nothing else wakes it for 20 s, */
    config.on_log = NULL;              /* not even the native client's lines about its attempts */
    divvy_client *client = open_connected(&config);
    p_config.path = "/manual/woken";
    p_config.items = items;
    p_config.item_count = 1;
    p_config.time_boundary_ms = 0;
    p_config.on_suspend = DIVVY_RELEASE_ON_SUSPEND; /* released, the item stays ours: nothing is to be sent */
    assert_int_equal(divvy_partitioner_create(&p, client, &p_config), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    dv_test_proxy_cut(proxy);
    POLL_UNTIL(client, divvy_partitioner_state(p) == DIVVY_RELEASE);
    while (divvy_client_process(client, 100) > 0) continue;
    uint64_t id = divvy_partitioner_state_id(p);
    call waiter = {.partitioner = p, .since = id, .timeout_ms = 60000};
    start(&waiter, run_wait_change);
    dv_test_sleep_ms(100); /* so that it sleeps by now; were it not, the test would only be easier */
    int64_t before_ms = dv_test_now_ms();
    assert_int_equal(divvy_partitioner_release_set_id(p, id), 0);
    assert_int_equal(join(&waiter), 0);
    assert_true(dv_test_now_ms() - before_ms < 18000);
    dv_test_proxy_restore(proxy);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    dv_test_proxy_stop(proxy);
    witness_end(&w);
}

/* A timer that was set while a waiting call of another thread drove the loop reaches the thread that polls the
 * descriptor with the
 * timeout that it was told before. */
TEST(test_timer_reaches_the_poller) {
    static const char *const items[] = {"a"};
    witness w;
    divvy_stats stats;
    divvy_partitioner *p;
    divvy_partitioner_config p_config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_client_config config = manual_config(&w, hosts());
    config.session_timeout_ms = 60000;
    config.ensemble_tick_ms = TICK_MS; /* heartbeats every six seconds, docs/protocol.md, C4 */
    divvy_client *client = open_connected(&config);
    int64_t due_ms = come_to_rest(client, 5000);
    assert_int_equal(divvy_partitioner_create(&p, client, &p_config), DIVVY_EINVAL);
    p_config.path = "/manual/timer";
    p_config.items = items;
    p_config.item_count = 1;
    p_config.time_boundary_ms = 2000;
    assert_int_equal(divvy_partitioner_create(&p, client, &p_config), 0);
    call waiter = {.partitioner = p, .since = 1, .timeout_ms = 1000};
    start(&waiter, run_wait_change);
    assert_int_equal(join(&waiter), DIVVY_ETIMEDOUT); /* The boundary's timer runs by now. */
    assert_int_equal(divvy_client_stats(client, &stats, sizeof stats), 0);
    assert_true(stats.children + stats.exists >= 1);
    /* A program would sleep as long as next_deadline() said: nobody but the library can end this poll before. */
    assert_true(readable(client, due_ms - dv_test_now_ms() - 500));
    POLL_UNTIL(client, divvy_partitioner_state(p) == DIVVY_ACQUIRED);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    witness_end(&w);
}

/* Threads in waiting calls and one in process(), all at once, on a link that comes and goes: everybody gets through. */
TEST(test_many_threads) {
    enum { LISTERS = 4, ROUNDS = 6 };
    witness w;
    divvy_party *party;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = manual_config(&w, dv_test_proxy_address(proxy));
    divvy_client *client = open_with(&config);
    assert_int_equal(divvy_party_join(&party, client, "/manual/many", "me", DIVVY_PARTY), 0);
    call listers[LISTERS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LISTERS; i++) {
            listers[i] = (call){.party = party, .timeout_ms = PATIENCE_MS};
            start(&listers[i], run_members);
        }
        if (round % 2) dv_test_proxy_cut(proxy);
        if (round % 2) dv_test_proxy_restore(proxy);
        for (int i = 0; i < 10; i++) assert_true(divvy_client_process(client, 5) >= 0);
        for (int i = 0; i < LISTERS; i++) assert_int_equal(join(&listers[i]), 0);
    }
    divvy_party_destroy(party);
    divvy_client_close(client);
    dv_test_proxy_stop(proxy);
    witness_end(&w);
}

/* --- closing ---------------------------------------------------------------------------------------------------- */

/* Closed by one thread while another is inside process() without a time limit, asleep or busy: both return. */
TEST(test_close_beside_process) {
    int fd;
    const char *dead = dead_address(&fd);
    for (int round = 0; round < 30; round++) {
        witness w;
        divvy_client_config config = manual_config(&w, round % 2 ? hosts() : dead);
        divvy_client *client = open_with(&config);
        call loop = {.client = client, .timeout_ms = -1};
        start(&loop, run_process);
        if (round % 3) dv_test_sleep_ms(round); /* any stage will do */
        /* Once it is inside: a call that begins after close would be the caller's fault. */
        assert_true(DV_WAIT(divvy_client_process(client, 0) == DIVVY_ESTATE, PATIENCE_MS));
        divvy_client_close(client);
        assert_int_equal(join(&loop), DIVVY_ECLOSED);
        witness_end(&w);
    }
    assert_true(DV_WAIT(threads() == threads_at_rest, PATIENCE_MS));
    close(fd);
}

static void close_inside(witness *w, divvy_client *client, divvy_session_state state) {
    atomic_int *closed = w->user;
    (void)state;
    if (atomic_fetch_add(closed, 1) == 0) divvy_client_close(client);
}

/* Closed inside a callback that process() ran: process() says so, and all is over when it returns. What was due is told
 * before that, such as another state of a short session, and nothing after. */
TEST(test_close_in_a_callback) {
    witness w;
    atomic_int closed = 0;
    divvy_client_config config = manual_config(&w, hosts());
    w.on_session = close_inside;
    w.user = &closed;
    config.ensemble_tick_ms = 1;
    config.session_timeout_ms = 190; /* A warning is queued together with the news of the connection. */
    divvy_client *client = open_with(&config);
    int result;
    do result = divvy_client_process(client, 1000);
    while (result >= 0);
    assert_int_equal(result, DIVVY_ECLOSED);
    int told = atomic_load(&closed);
    assert_true(told >= 1);
    assert_true(DV_WAIT(threads() == threads_at_rest, PATIENCE_MS));
    assert_int_equal(atomic_load(&closed), told);
    witness_end(&w);
}

static atomic_bool closed_now, ended_now;
static atomic_int last_state;

static void close_on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)p, (void)from;
    if (atomic_load(&ended_now)) dv_test_die("on_state after the client has ended");
    atomic_store(&last_state, (int)to);
    if (!atomic_exchange(&closed_now, true)) divvy_client_close(user);
}

static void late_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p, (void)event, (void)user;
    if (atomic_load(&ended_now)) dv_test_die("on_items after the client has ended");
}

/* Closed inside a callback that a waiting call ran: that call returns DIVVY_ECLOSED, and the client is closed when it
 * does. What was due is told before, the end last; nothing is told after. */
TEST(test_close_inside_a_waiting_call) {
    static const char *const items[] = {"a", "b"};
    for (int call_kind = 0; call_kind < 4; call_kind++) {
        witness w;
        divvy_party *party;
        divvy_strings *members;
        divvy_partitioner *p;
        atomic_int closed = 0;
        divvy_client_config config = manual_config(&w, hosts());
        if (call_kind < 2) w.on_session = close_inside;
        w.user = &closed;
        divvy_client *client = open_with(&config);
        divvy_partitioner_config p_config = dv_test_partitioner_config("/manual/closing", items, 2, 0);
        p_config.on_state = close_on_state;
        p_config.on_items = late_items;
        p_config.user = client;
        atomic_store(&closed_now, call_kind < 2);
        atomic_store(&ended_now, false);
        assert_int_equal(divvy_party_join(&party, client, "/manual/closing-party", "me", DIVVY_PARTY), 0);
        if (call_kind >= 2) assert_int_equal(divvy_partitioner_create(&p, client, &p_config), 0);
        int result = -99;
        if (call_kind == 0) result = divvy_client_wait_connected(client, PATIENCE_MS);
        if (call_kind == 1) result = divvy_party_members(party, &members, PATIENCE_MS);
        if (call_kind == 2) result = divvy_partitioner_wait_change(p, 1, PATIENCE_MS);
        if (call_kind == 3) result = divvy_partitioner_finish(p, PATIENCE_MS);
        assert_int_equal(result, DIVVY_ECLOSED);
        atomic_store(&ended_now, true);
        if (call_kind >= 2) assert_int_equal(atomic_load(&last_state), DIVVY_FAILURE);
        assert_true(DV_WAIT(threads() == threads_at_rest, PATIENCE_MS));
        if (call_kind >= 2) divvy_partitioner_destroy(p);
        divvy_party_destroy(party);
        witness_end(&w);
    }
    assert_int_equal(dv_test_zk_count(truth, "/manual/closing-party"), 0);
}

/* A close that a callback asked for, with one thread in process() and others in waiting calls, is carried out once. */
TEST(test_close_in_a_callback_among_threads) {
    enum { LISTERS = 3, ROUNDS = 40 };
    for (int round = 0; round < ROUNDS; round++) {
        witness w;
        divvy_party *party;
        atomic_int closed = 0;
        divvy_client_config config = manual_config(&w, hosts());
        w.on_session = close_inside;
        w.user = &closed;
        divvy_client *client = open_with(&config);
        assert_int_equal(divvy_party_join(&party, client, "/manual/among", "me", DIVVY_PARTY), 0);
        call listers[LISTERS];
        /* Nobody drives before all are there, but the listers themselves: the first event may come at any time. The
         * party keeps the client for them. */
        for (int i = 0; i < LISTERS; i++) {
            listers[i] = (call){.party = party, .timeout_ms = PATIENCE_MS};
            start(&listers[i], run_members);
        }
        for (int i = 0; i < LISTERS; i++) assert_int_equal(join(&listers[i]), DIVVY_ECLOSED);
        divvy_party_destroy(party);
        assert_true(DV_WAIT(threads() == threads_at_rest, PATIENCE_MS));
        assert_int_equal(atomic_load(&closed), 1);
        witness_end(&w);
    }
}

TEST_GROUP(set_up, stop_server);
