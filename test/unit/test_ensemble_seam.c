/* The in-memory ensemble as a backend of the seam: what it tells its client, and when. SPDX-License-Identifier:
 * Apache-2.0
 */
#include "test_ensemble.h"

static divvy_testing_ensemble *e;
static divvy_client *c;
static outcome o;

/* ---- listening between the backend and the client ---- */

static dv_session_news news[16];
static dv_answer answers[64];
static int news_count, answer_count;
static void (*next_session)(void *context, const dv_session_news *news, int64_t now);
static void (*next_answer)(void *context, const dv_answer *answer, int64_t now);

static void hear_session(void *context, const dv_session_news *what, int64_t now) {
    assert_in_range(news_count, 0, 15);
    news[news_count++] = *what;
    next_session(context, what, now);
}

static void hear_answer(void *context, const dv_answer *what, int64_t now) {
    answers[answer_count++ % 64] = *what;
    next_answer(context, what, now);
}

static const dv_answer *last_answer(void) {
    return &answers[(answer_count - 1) % 64];
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.client_delay_min_ms = config.client_delay_max_ms = 5;
    config.server_delay_max_ms = 0;
    e = open_ensemble(&config);
    divvy_client_config client = DIVVY_CLIENT_CONFIG_INIT;
    client.manual = 1;
    client.ensemble_tick_ms = 2000;
    assert_int_equal(divvy_testing_client_open(&c, e, &client), 0);
    news_count = answer_count = 0;
    next_session = c->znode->on_session;
    next_answer = c->znode->on_answer;
    c->znode->on_session = hear_session;
    c->znode->on_answer = hear_answer;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (c) divvy_client_close(c);
    close_ensemble(e);
    return 0;
}

/* A new session was asked for at a known time of the client's clock; one that goes on has no such time. */
TEST(test_news) {
    int64_t asked_at = dv_client_now(c);
    assert_int_equal(divvy_client_wait_connected(c, 1000), 0);
    assert_int_equal(news_count, 1);
    assert_int_equal(news[0].state, DIVVY_CONNECTED);
    assert_int_equal(news[0].session_id, divvy_client_session_id(c));
    assert_int_equal(news[0].timeout_ms, 10000);
    assert_int_equal(news[0].created_at, asked_at);
    divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED, 0);
    divvy_testing_run(e, 100);
    assert_int_equal(news_count, 3);
    assert_int_equal(news[1].state, DIVVY_SUSPENDED);
    assert_int_equal(news[2].state, DIVVY_CONNECTED);
    assert_int_equal(news[2].session_id, news[0].session_id);
    assert_int_equal(news[2].created_at, 0);
}

/* An expired session is told as lost; the next one is new. */
TEST(test_reopen) {
    assert_int_equal(divvy_client_wait_connected(c, 1000), 0);
    divvy_testing_expire(e, c);
    int64_t expired_at = dv_client_now(c);
    divvy_testing_run(e, 20000);
    assert_int_equal(news_count, 4);
    assert_int_equal(news[1].state, DIVVY_SUSPENDED); /* the server has cut the connection */
    assert_int_equal(news[2].state, DIVVY_LOST);
    assert_int_equal(news[3].state, DIVVY_CONNECTED); /* the client has opened another by itself */
    assert_true(news[3].created_at > expired_at);
    assert_int_not_equal(news[3].session_id, news[0].session_id);
}

static int answers_before;

static void on_done(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    *(int *)context = reply->error;
    answers_before = answer_count;
}

/* Each answer of a server is told before the request's own function runs, with when it was sent, by which connection,
 * and whether it was a write. */
TEST(test_answers) {
    assert_int_equal(divvy_client_wait_connected(c, 1000), 0);
    divvy_testing_run(e, 100);
    for (int round = 1; round <= 2; round++) {
        int told = answer_count, error = NOT_YET;
        int64_t sent_at = dv_client_now(c);
        dv_op op = op_of(round == 1 ? DV_GET : DV_DELETE, "/none");
        dv_client_lock(c);
        assert_int_equal(c->znode->backend->submit(c->znode, &op, NULL, on_done, &error), 0);
        dv_client_unlock(c);
        while (error == NOT_YET) divvy_testing_step(e, e->now + 100);
        assert_int_equal(error, DIVVY_ENOENT);
        assert_int_equal(answers_before, told + 1);
        assert_int_equal(last_answer()->sent_at, sent_at);
        assert_int_equal(last_answer()->connection, round);
        assert_int_equal(last_answer()->wrote, round == 2);
        assert_int_equal(last_answer()->error, DIVVY_ENOENT);
        divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED, 0);
        divvy_testing_run(e, 100);
    }
    dv_op check = op_of(DV_CHECK, "/");
    ask_multi(c, &o, &check, 1);
    assert_int_equal(await(&o), 0);
    assert_true(last_answer()->wrote);
}

/* A request that no server has answered is not told as an answer, whether it was lost or could not be sent. */
TEST(test_no_answers) {
    ask_op(c, &o, op_of(DV_GET, "/"), NULL); /* before the first connection */
    assert_int_equal(await(&o), DIVVY_ECONNECTION);
    assert_int_equal(answer_count, 0);
    assert_int_equal(divvy_client_wait_connected(c, 1000), 0);
    divvy_testing_run(e, 100);
    int told = answer_count;
    ask_op(c, &o, op_of(DV_GET, "/"), NULL);
    divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED, 0);
    assert_int_equal(await(&o), DIVVY_ECONNECTION);
    assert_int_equal(answer_count, told);
    divvy_stats stats;
    divvy_client_stats(c, &stats, sizeof stats);
    assert_int_equal(stats.failed, 2);
}

/* A multi that this side refuses as a whole was not sent, so that none of its operations is to blame or done. */
TEST(test_multi_not_sent) {
    assert_int_equal(divvy_client_wait_connected(c, 1000), 0);
    dv_op ops[] = {op_create("/a", "", DV_PERSISTENT), op_of(DV_CHECK, "/a/../b")};
    ask_multi(c, &o, ops, 2);
    assert_int_equal(await(&o), DIVVY_EINVAL);
    assert_int_equal(o.errors[0], DIVVY_EROLLEDBACK);
    assert_int_equal(o.errors[1], DIVVY_EROLLEDBACK);
    assert_false(divvy_testing_exists(e, "/a"));
}

/* A request under way ends when the client is closed, once. */
TEST(test_close) {
    assert_int_equal(divvy_client_wait_connected(c, 1000), 0);
    outcome several;
    dv_op check = op_of(DV_CHECK, "/");
    ask_op(c, &o, op_of(DV_GET, "/"), NULL);
    ask_multi(c, &several, &check, 1);
    divvy_client_close(c);
    c = NULL;
    assert_int_equal(o.error, DIVVY_ECANCELED);
    assert_int_equal(several.error, DIVVY_ECANCELED);
    assert_int_equal(several.errors[0], DIVVY_ECANCELED);
    divvy_testing_run(e, 1000); /* answers that come later find nobody */
}

/* ---- calls that wait, inside other calls ---- */

static divvy_client *second;
static int waited = NOT_YET;

static void on_state(divvy_client *client, divvy_session_state state, void *user) {
    (void)client, (void)user;
    if (state == DIVVY_CONNECTED && waited == NOT_YET) waited = divvy_client_wait_connected(second, 3000);
}

/* A client that waits inside another's callback lets the time of all others go on; it never stands still. */
TEST(test_wait_in_callback) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    assert_int_equal(divvy_testing_client_open(&second, e, &config), 0);
    divvy_testing_link_client(e, second, DIVVY_TESTING_LINK_DOWN);
    config.on_session = on_state;
    divvy_client *first;
    assert_int_equal(divvy_testing_client_open(&first, e, &config), 0);
    int64_t at = e->now;
    assert_int_equal(divvy_client_wait_connected(first, 1000), 0);
    divvy_testing_run(e, 5000);
    assert_int_equal(waited, DIVVY_ETIMEDOUT);
    assert_in_range(e->now, at + 3000, at + 9000);
    divvy_client_close(first);
    divvy_client_close(second);
}

/* Memory of what stays is small: an ensemble whose clients come and go keeps no paths. */
TEST(test_no_growth) {
    assert_int_equal(divvy_client_wait_connected(c, 1000), 0);
    assert_int_equal(do_create(c, "/x", DV_PERSISTENT), 0);
    size_t paths = e->path_count;
    for (int i = 0; i < 300; i++) {
        char path[32];
        snprintf(path, sizeof path, "/node%d", i);
        assert_int_equal(do_create(c, path, DV_EPHEMERAL), 0);
        assert_int_equal(do_op(c, &o, op_of(DV_DELETE, path)), 0);
    }
    for (int i = 0; i < 3000; i++) assert_int_equal(do_op(c, &o, op_set("/x", "x", -1)), 0);
    assert_in_range(e->history_count, 1, 4096);
    assert_in_range(e->path_count, paths, paths + 4096);
}

TEST_EACH(set_up, tear_down);
