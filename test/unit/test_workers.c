/* Workers: one for each item in the whole pool, and what an item waits for. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <poll.h>
#include <stdlib.h>

#include "workers/workers.h"
#include "workers_fixture.h"

static atomic_int polls; /* of all threads; the library's own loop has eventfds as well */

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

/* The run of a client that has threads waits until it is woken: nothing comes about because it looks every second. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
    bool is_run = count == 2 && fds[1].fd == -1;
    atomic_fetch_add(&polls, 1);
    return __real_poll(fds, count, is_run && timeout_ms > 0 ? -1 : timeout_ms);
}

/* One member works on all items. Another joins, and works on half of them; what need not move has no new job. When the
 * first one is stopped the other works on all. */
TEST_IN(test_two_members, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    dv_member *bert = start(1);
    assert_true(DV_WAIT(works_on(anna, 2) && works_on(bert, 2), DEADLINE_MS));
    assert_int_equal(sum(anna->begun), ITEMS);
    assert_int_equal(sum(anna->told), 2);
    assert_int_equal(stop(anna), 0);
    assert_true(works_on(anna, 0));
    assert_true(DV_WAIT(works_on(bert, ITEMS), DEADLINE_MS));
    assert_int_equal(sum(bert->begun), ITEMS);
    assert_int_equal(stop(bert), 0);
    assert_int_equal(sum(bert->ended), ITEMS);
    assert_int_equal(atomic_load(&bert->restart_ms[0]), -1);
    divvy_strings *left = divvy_testing_children(ensemble, "/pool/party");
    assert_int_equal(divvy_strings_count(left), 0);
    divvy_strings_free(left);
}

/* An item whose worker was told to stop stays with it until it returns, however long that takes. The run waits for it
 * without spinning. Then the other member begins. */
TEST_IN(test_released_when_returned, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    atomic_store(&anna->lingers, true);
    dv_member *bert = start(1);
    assert_true(DV_WAIT(sum(anna->told) == 2, DEADLINE_MS));
    int before = atomic_load(&polls);
    assert_false(DV_WAIT(sum(bert->begun) > 0, LOOK_MS));
    assert_in_range(atomic_load(&polls) - before, 0, 200);
    assert_true(works_on(anna, ITEMS));
    atomic_store(&anna->lingers, false);
    assert_true(DV_WAIT(works_on(anna, 2) && works_on(bert, 2), DEADLINE_MS));
    assert_int_equal(stop(bert), 0);
    assert_int_equal(stop(anna), 0);
}

/* So it is at a stop that does not hand over. */
TEST_IN(test_stopped_when_returned, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.hand_over = 0;
    dv_member *anna = start_with(0, &config);
    dv_member *bert = start(1);
    assert_true(DV_WAIT(works_on(anna, 2) && works_on(bert, 2), DEADLINE_MS));
    atomic_store(&anna->lingers, true);
    divvy_workers_stop(anna->workers);
    assert_true(DV_WAIT(sum(anna->told) == 2, DEADLINE_MS));
    assert_false(DV_WAIT(sum(bert->begun) > 2 || anna->has_returned, LOOK_MS));
    atomic_store(&anna->lingers, false);
    assert_int_equal(join(anna), 0);
    assert_true(DV_WAIT(works_on(bert, ITEMS), DEADLINE_MS));
    assert_int_equal(stop(bert), 0);
}

/* Where the session is lost, all jobs are told to stop. The member takes part again when all have returned, with new
 * jobs under new tokens. */
TEST_IN(test_lost_session, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    int64_t token = atomic_load(&anna->token[0]);
    atomic_store(&anna->lingers, true);
    divvy_testing_link_client(ensemble, anna->client, DIVVY_TESTING_LINK_DOWN);
    assert_true(DV_WAIT(sum(anna->told) == ITEMS, DEADLINE_MS));
    divvy_testing_link_client(ensemble, anna->client, DIVVY_TESTING_LINK_UP);
    assert_true(DV_WAIT(divvy_client_state(anna->client) == DIVVY_CONNECTED, DEADLINE_MS));
    divvy_partitioner *p = divvy_workers_partitioner(anna->workers);
    assert_false(DV_WAIT(divvy_partitioner_state(p) != DIVVY_RELEASE, LOOK_MS));
    assert_int_equal(sum(anna->begun), ITEMS);
    atomic_store(&anna->lingers, false);
    assert_true(DV_WAIT(sum(anna->begun) == 2 * ITEMS && works_on(anna, ITEMS), DEADLINE_MS));
    assert_true(atomic_load(&anna->token[0]) > token);
    assert_int_equal(stop(anna), 0);
}

/* Without DIVVY_REJOIN a lost session ends the run, when all have returned; the error says why. */
TEST_IN(test_lost_for_good, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    pool.on_session_loss = DIVVY_FAIL;
    divvy_workers_config config = workers_config(&members[0], &pool);
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    atomic_store(&anna->lingers, true);
    divvy_testing_expire(ensemble, anna->client);
    assert_true(DV_WAIT(sum(anna->told) == ITEMS, DEADLINE_MS));
    assert_false(DV_WAIT(atomic_load(&anna->has_returned), LOOK_MS));
    atomic_store(&anna->lingers, false);
    assert_int_equal(join(anna), DIVVY_ELOST);
    assert_string_not_equal(anna->why, "");
}

/* Deletes the node by which anna has an item, as somebody else may. */
static void delete_lock(const char *item) {
    char path[300];
    snprintf(path, sizeof path, "/pool/locks/%s", item);
    divvy_strings *nodes = divvy_testing_children(ensemble, path);
    assert_int_equal(divvy_strings_count(nodes), 1);
    snprintf(path, sizeof path, "/pool/locks/%s/%s", item, divvy_strings_get(nodes, 0));
    divvy_strings_free(nodes);
    assert_int_equal(divvy_testing_remove(ensemble, path), 0);
}

static int64_t token_of_a(const dv_member *m) {
    divvy_partition *mine = divvy_partitioner_partition(divvy_workers_partitioner(m->workers));
    int64_t token = divvy_partition_token(mine, 0);
    divvy_partition_unref(mine);
    return token;
}

static bool owns_newer(const dv_member *m, int64_t token) {
    divvy_partition *mine = divvy_partitioner_partition(divvy_workers_partitioner(m->workers));
    bool newer = divvy_partition_count(mine) == ITEMS && divvy_partition_token(mine, 0) > token;
    divvy_partition_unref(mine);
    return newer;
}

/* An item that is lost and comes again, while its worker goes on, has a new job when the old one has returned. */
TEST_IN(test_lost_and_gained_again, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    int64_t token = atomic_load(&anna->token[0]);
    atomic_store(&anna->lingers, true);
    delete_lock("a");
    assert_true(DV_WAIT(sum(anna->told) == 1 && owns_newer(anna, token), DEADLINE_MS));
    assert_false(DV_WAIT(sum(anna->begun) > ITEMS, LOOK_MS));
    atomic_store(&anna->lingers, false);
    assert_true(DV_WAIT(sum(anna->begun) == ITEMS + 1 && works_on(anna, ITEMS), DEADLINE_MS));
    assert_true(atomic_load(&anna->token[0]) > token);
    assert_int_equal(stop(anna), 0);
}

/* So it is where the run has seen nothing of it, as it was busy: the token is another. */
TEST_IN(test_lost_and_gained_unseen, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    int64_t token = atomic_load(&anna->token[0]);
    atomic_store(&anna->end_lasts, true);
    delete_lock("d");
    assert_true(DV_WAIT(sum(anna->ended) == 1, DEADLINE_MS));
    delete_lock("a");
    assert_true(DV_WAIT(owns_newer(anna, token), DEADLINE_MS));
    assert_int_equal(atomic_load(&anna->told[0]), 0);
    atomic_store(&anna->end_lasts, false);
    assert_true(DV_WAIT(atomic_load(&anna->begun[0]) == 2 && works_on(anna, ITEMS), DEADLINE_MS));
    assert_true(atomic_load(&anna->token[0]) > token);
    assert_int_equal(stop(anna), 0);
}

static atomic_int disagreements, fails_now;

/* Goes on for as long as the item is ours, then fails; and fails when the test says so. */
static int fail_when_gone(divvy_job *job, void *user) {
    dv_member *m = user;
    int i = item_number(divvy_job_item(job));
    atomic_fetch_add(&m->working[i], 1);
    atomic_fetch_add(&m->begun[i], 1);
    while (divvy_job_owns(job) && !(i == 0 && atomic_load(&fails_now))) dv_test_sleep_ms(1);
    bool gone = !divvy_job_owns(job);
    if (gone && (!divvy_job_should_stop(job) || divvy_job_wait(job, 0) != 1)) atomic_fetch_add(&disagreements, 1);
    atomic_fetch_sub(&m->working[i], 1);
    return 9;
}

/* Starts anna, on all items, and has the run look at nothing. */
static dv_member *start_unseeing(int failure_ends) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.failure_ends = failure_ends;
    config.worker = fail_when_gone;
    atomic_store(&disagreements, 0);
    atomic_store(&fails_now, 0);
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    atomic_store(&anna->end_lasts, true);
    delete_lock("d");
    assert_true(DV_WAIT(sum(anna->ended) == 1, DEADLINE_MS));
    return anna;
}

/* A worker that saw its item go was told to stop by that, though the run has not seen it yet. So it has not failed. */
TEST_IN(test_gone_before_told, set_up, tear_down) {
    dv_member *anna = start_unseeing(1);
    delete_lock("a");
    assert_true(DV_WAIT(atomic_load(&anna->working[0]) == 0, DEADLINE_MS));
    atomic_store(&anna->end_lasts, false);
    assert_true(DV_WAIT(atomic_load(&anna->begun[0]) == 2 && works_on(anna, ITEMS), DEADLINE_MS));
    assert_int_equal(atomic_load(&anna->end_result[0]), 9);
    assert_int_equal(atomic_load(&anna->end_told[0]), 1);
    assert_int_equal(atomic_load(&anna->restart_ms[0]), -1);
    assert_int_equal(atomic_load(&disagreements), 0);
    assert_int_equal(stop(anna), 0);
}

/* One that failed while the item was ours has failed, though that has gone since: so no call is due. */
TEST_IN(test_gone_after_failure, set_up, tear_down) {
    dv_member *anna = start_unseeing(0);
    atomic_store(&fails_now, 1);
    assert_true(DV_WAIT(atomic_load(&anna->workers->places[0]->ended), DEADLINE_MS));
    int64_t token = token_of_a(anna);
    assert_true(token > 0);
    delete_lock("a");
    const divvy_partitioner *p = divvy_workers_partitioner(anna->workers);
    assert_true(DV_WAIT(!divvy_partitioner_owns_token(p, "a", token), DEADLINE_MS)); /* it may be ours again */
    atomic_store(&fails_now, 0);
    atomic_store(&anna->end_lasts, false);
    assert_true(DV_WAIT(atomic_load(&anna->begun[0]) == 2 && works_on(anna, ITEMS), DEADLINE_MS));
    assert_int_equal(atomic_load(&anna->end_told[0]), 0);
    assert_int_equal(atomic_load(&anna->restart_ms[0]), -1);
    assert_int_equal(stop(anna), 0);
}

/* A session that is lost while workers wait for the next owner is no failure of a run that was asked to end, though the
 * run has not seen that the connection was away: all have returned, and nothing is ours. */
TEST_IN(test_session_lost_while_handing_over, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    atomic_store(&members[1].prepare_lasts, true);
    dv_member *bert = start_preparing(1, 25000);
    assert_true(DV_WAIT(atomic_load(&bert->prepare_begun) == 2, DEADLINE_MS));
    divvy_workers_stop(anna->workers);
    assert_true(DV_WAIT(atomic_load(&bert->prepare_begun) == ITEMS, DEADLINE_MS));
    atomic_store(&anna->end_lasts, true);
    delete_lock("a");
    assert_true(DV_WAIT(sum(anna->ended) == 1, DEADLINE_MS));
    int64_t session = divvy_client_session_id(anna->client);
    divvy_testing_expire(ensemble, anna->client);
    assert_true(
        DV_WAIT(divvy_client_state(anna->client) == DIVVY_CONNECTED && divvy_client_session_id(anna->client) != session,
                DEADLINE_MS));
    atomic_store(&anna->end_lasts, false);
    assert_int_equal(join(anna), 0);
    assert_true(works_on(anna, 0));
    atomic_store(&bert->prepare_lasts, false);
    assert_true(DV_WAIT(works_on(bert, ITEMS), DEADLINE_MS));
    assert_int_equal(stop(bert), 0);
}

/* A client in manual mode is driven by the run, which keeps its session while a worker takes its time. */
TEST_IN(test_manual_mode, set_up, tear_down) {
    open_client(&members[0], 1);
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    int64_t session = divvy_client_session_id(anna->client);
    atomic_store(&anna->lingers, true);
    dv_member *bert = start(1);
    assert_true(DV_WAIT(sum(anna->told) == 2, DEADLINE_MS));
    assert_false(DV_WAIT(sum(anna->told) != 2 || sum(bert->begun) > 0, SESSION_MS + LOOK_MS));
    assert_int_equal(divvy_client_session_id(anna->client), session);
    assert_true(divvy_client_time_left_ms(anna->client) > 0);
    atomic_store(&anna->lingers, false);
    assert_true(DV_WAIT(works_on(anna, 2) && works_on(bert, 2), DEADLINE_MS));
    assert_int_equal(stop(anna), 0);
    assert_true(DV_WAIT(works_on(bert, ITEMS), DEADLINE_MS));
    assert_int_equal(stop(bert), 0);
}

/* ---- loads ---- */

static divvy_partitioner *_Atomic told_to;
static _Atomic(double) loads[ITEMS]; /* that the partitioner was told */
static atomic_int load_errors, refused_loads;

int __real_divvy_partitioner_set_load(divvy_partitioner *p, const char *item, double load);
int __wrap_divvy_partitioner_set_load(divvy_partitioner *p, const char *item, double load);

int __wrap_divvy_partitioner_set_load(divvy_partitioner *p, const char *item, double load) {
    int error = __real_divvy_partitioner_set_load(p, item, load);
    atomic_store(&told_to, p);
    if (!error) atomic_store(&loads[item_number(item)], load);
    return error;
}

/* Tells a load of each item; then one that is none, which changes nothing. */
static int tell_load(divvy_job *job, void *user) {
    if (divvy_job_set_load(job, item_number(divvy_job_item(job)) + 0.5) != 0) atomic_fetch_add(&load_errors, 1);
    if (divvy_job_set_load(job, -1) == DIVVY_EINVAL && divvy_job_set_load(job, NAN) == DIVVY_EINVAL &&
        strstr(divvy_client_error(((dv_member *)user)->client), divvy_job_item(job)))
        atomic_fetch_add(&refused_loads, 1);
    int result = fixture_work(job, user);
    if (divvy_job_set_load(job, 1000) != 0) atomic_fetch_add(&load_errors, 1); /* revoked, and still the pool's */
    return result;
}

/* A worker tells the load of its own item, to its own member. */
TEST_IN(test_job_set_load, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.worker = tell_load;
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    for (int i = 0; i < ITEMS; i++) assert_true(atomic_load(&loads[i]) == i + 0.5);
    assert_int_equal(refused_loads, ITEMS);
    assert_ptr_equal(atomic_load(&told_to), divvy_workers_partitioner(anna->workers));
    assert_int_equal(stop(anna), 0);
    for (int i = 0; i < ITEMS; i++) assert_true(atomic_load(&loads[i]) == 1000);
    assert_int_equal(load_errors, 0);
    assert_int_equal(divvy_job_set_load(NULL, 1), DIVVY_EINVAL);
    assert_string_equal(divvy_client_error(NULL), "set_load: job is NULL");
}
