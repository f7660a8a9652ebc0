/* A user whose callback takes its time: the news that it is told. docs/protocol.md, P17.
 * SPDX-License-Identifier: Apache-2.0 */
#include "items_set_fixture.h"

/* As if a callback ran in another thread: others wait, and the loop goes on. */
static void callback_begins(member *m) {
    run(1);
    m->client->in_callback = true;
    m->client->callback_object = NULL;
    memset(&m->client->callback_caller, 0, sizeof m->client->callback_caller);
}

static void callback_ends(member *m) {
    m->client->in_callback = false;
    run(1);
}

static size_t waiting(const member *m) {
    size_t count = 0;
    for (const dv_callback *c = m->client->callbacks; c; c = c->next) count++;
    return count;
}

/* The news as text: "lost a b; gained c; ALLOCATING>ACQUIRED; ". */
static char told[1024];
static divvy_partitioner *release_inside;

static void note(const char *what, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t at = strlen(told);
        snprintf(told + at, sizeof told - at, "%s%s%s", i ? " " : what, i ? "" : " ", names[i]);
    }
    if (count) strncat(told, "; ", sizeof told - strlen(told) - 1);
}

static void note_items(divvy_partitioner *p, const divvy_items_event *e, void *user) {
    on_items(p, e, user);
    note("lost", e->lost, e->lost_count);
    note("gained", e->gained, e->gained_count);
    note("revoked", e->revoked, e->revoked_count);
    for (size_t i = 0; i < e->gained_count; i++)
        assert_int_equal(divvy_partitioner_owns_token(p, e->gained[i], e->gained_tokens[i]), 1);
    if (release_inside != p) return;
    const char *outcome = divvy_partitioner_release_set(p) == 0 ? "(released) " : "(refused) ";
    strncat(told, outcome, sizeof told - strlen(told) - 1);
}

static void note_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    on_state(p, from, to, user);
    size_t at = strlen(told);
    snprintf(told + at, sizeof told - at, "%s>%s; ", divvy_partition_state_name(from), divvy_partition_state_name(to));
}

static void join_noting(member *m, const char *items, int on_session_loss) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.on_session_loss = on_session_loss;
    join(m, "m", items, config);
    m->p->config.on_items = note_items;
    m->p->config.on_state = note_state;
    told[0] = '\0';
    release_inside = NULL;
    callback_begins(m);
}

static void let_settle(member *m) {
    run(20);
    if (divvy_partitioner_state(m->p) == DIVVY_RELEASE) assert_int_equal(divvy_partitioner_release_set(m->p), 0);
    run(20);
    assert_int_equal(divvy_partitioner_state(m->p), DIVVY_ACQUIRED);
}

/* An item that is gained and given up with finish() before the user could be told is never told of. */
TEST(test_gained_and_finished) {
    member m;
    join_noting(&m, "a", DIVVY_FAIL);
    assert_int_equal(deal(&m, "a b", "a b"), 0);
    run(20);
    assert_int_equal(divvy_partitioner_owns(m.p, "b"), 1);
    assert_int_equal(divvy_partitioner_finish(m.p, PATIENCE_MS), 0);
    callback_ends(&m);
    assert_string_equal(told, "lost a; ACQUIRED>FAILURE; ");
    leave(&m);
}

/* A gain that waits when the session is past its deadline is not told, though no event has ended the session yet; what
 * the user was told of is told as lost. */
TEST(test_gained_and_passed) {
    member m;
    join_noting(&m, "a b", DIVVY_FAIL);
    assert_int_equal(deal(&m, "a c", "a c"), 0);
    run(20);
    assert_int_equal(divvy_partitioner_owns(m.p, "c"), 1);
    int64_t until = atomic_exchange(&m.client->alive_until, DV_PASSED);
    callback_ends(&m);
    assert_string_equal(told, "lost b; ACQUIRED>RELEASE; ");
    assert_int_equal(heard(&m, "b")->lost_reason, DIVVY_REASON_SESSION);
    (void)until;
    leave(&m);
}

/* An item that was gained and revoked before its call is not told; when it stays after all it is told as gained. */
TEST(test_gained_and_revoked) {
    member m;
    join_noting(&m, "a", DIVVY_FAIL);
    assert_int_equal(deal(&m, "a b", "a b"), 0);
    run(20);
    assert_int_equal(deal(&m, "a", "a"), 0);
    callback_ends(&m);
    assert_string_equal(told, "ACQUIRED>RELEASE; ");
    told[0] = '\0';
    assert_int_equal(deal(&m, "a b", "a b"), 0);
    assert_int_equal(divvy_partitioner_release_set(m.p), 0);
    run(20);
    assert_string_equal(told, "gained b; RELEASE>ALLOCATING; ALLOCATING>ACQUIRED; ");
    leave(&m);
}

/* A user is told of the difference in the end, and one call waits, whatever happens while a callback runs. Here
 * there is no difference, though another thread of the user has released an item a hundred times. The table keeps
 * no items for it. */
TEST(test_many_changes) {
    member m;
    join_noting(&m, "a b", DIVVY_FAIL);
    for (int round = 0; round < 100; round++) {
        assert_int_equal(deal(&m, "a c d", "a c d"), 0);
        let_settle(&m);
        assert_int_equal(deal(&m, "a", "a"), 0);
        let_settle(&m);
        assert_true(waiting(&m) <= 1);
    }
    run(20);
    assert_table(&m, "a b"); /* b was told of, and its loss was not */
    callback_ends(&m);
    assert_string_equal(told, "lost b; ");
    run(1);
    assert_table(&m, "a");
    leave(&m);
}

/* An item that went and came back under another token is told as lost and gained; under the same one, as nothing. */
TEST(test_back_again_untold) {
    member m;
    join_noting(&m, "a b", DIVVY_FAIL);
    int64_t a = heard(&m, "a")->token, b = heard(&m, "b")->token;
    assert_int_equal(deal(&m, "a", "a"), 0);
    let_settle(&m);
    assert_int_equal(deal(&m, "a b", "b"), 0); /* a is revoked, and is in the target again when it is released */
    assert_int_equal(deal(&m, "a b", "a b"), 0);
    let_settle(&m);
    callback_ends(&m);
    assert_string_equal(told, "lost b; gained b; ");
    assert_int_equal(heard(&m, "a")->token, a);
    assert_true(heard(&m, "b")->token > b);
    assert_snapshot(&m, "a b");
    leave(&m);
}

/* Differences of several reasons are told by a call for each. A release inside one of them is refused as long as some
 * of what the RELEASE revokes is not told, and confirms all of it afterwards. */
TEST(test_reasons) {
    member m;
    join_noting(&m, "a b c", DIVVY_FAIL);
    assert_int_equal(deal(&m, "a b", "a b"), 0);
    assert_int_equal(divvy_partitioner_release_set_id(m.p, m.p->state_id), 0); /* which tells of nothing */
    run(20);
    assert_int_equal(deal(&m, "a", "a"), 0);
    assert_true(m.p->told_id < m.p->state_id);
    release_inside = m.p;
    callback_ends(&m);
    run(20);
    assert_string_equal(told, "lost c; (refused) revoked b; (released) lost b; (refused) ACQUIRED>RELEASE; "
                              "RELEASE>ALLOCATING; ALLOCATING>ACQUIRED; ");
    assert_int_equal(heard(&m, "b")->revoked_reason, DIVVY_REASON_FOREIGN);
    assert_int_equal(heard(&m, "c")->lost_reason, DIVVY_REASON_RELEASED);
    leave(&m);
}

/* The loss of a session, a rejoin and all of the share again, in one callback's time: told once, under new tokens. */
TEST(test_rejoined_untold) {
    member m;
    join_noting(&m, "a", DIVVY_REJOIN);
    int64_t token = heard(&m, "a")->token;
    assert_int_equal(divvy_testing_expire(ensemble, m.client), 0);
    run(PATIENCE_MS);
    assert_int_equal(divvy_partitioner_state(m.p), DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(m.p), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m.p, PATIENCE_MS), 0);
    callback_ends(&m);
    assert_string_equal(told, "lost a; gained a; ");
    assert_true(heard(&m, "a")->token > token);
    leave(&m);
}

/* After leave() nothing is gained, whatever the plan gives before it knows. */
TEST(test_leaving) {
    member m;
    join_noting(&m, "a", DIVVY_FAIL);
    assert_int_equal(deal(&m, "a b", "a b"), 0);
    run(20);
    dv_life_enter(m.p, DV_LIFE_LEAVING);
    assert_int_equal(deal(&m, "a b c", "a b c"), 0);
    run(20);
    callback_ends(&m);
    assert_string_equal(told, "ACQUIRED>ALLOCATING; ");
    assert_int_equal(divvy_partitioner_owns(m.p, "c"), 0);
    leave(&m);
}

TEST_EACH(set_up, tear_down);
