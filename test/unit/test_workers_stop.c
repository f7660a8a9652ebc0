/* The end of workers: handing over, preparing, signals, destroying. SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workers_fixture.h"

/* ---- handing over ---- */

/* At a stop the worker goes on while the next owner prepares. That one then works with what it has prepared. */
TEST_IN(test_hands_over, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    dv_member *bert = start_preparing(1, 25000);
    assert_true(DV_WAIT(works_on(anna, 2) && works_on(bert, 2), DEADLINE_MS));
    assert_int_equal(sum(bert->given), 2);
    atomic_store(&bert->prepare_lasts, true);
    divvy_workers_stop(anna->workers);
    assert_true(DV_WAIT(atomic_load(&bert->prepare_begun) == 4, DEADLINE_MS));
    assert_false(DV_WAIT(sum(anna->told) > 2, LOOK_MS));
    atomic_store(&bert->prepare_lasts, false);
    assert_true(DV_WAIT(works_on(bert, ITEMS), DEADLINE_MS));
    assert_int_equal(join(anna), 0);
    assert_int_equal(sum(bert->given), ITEMS);
    assert_int_equal(sum(bert->discarded), 0);
    assert_int_equal(stop(bert), 0);
}

/* A second stop tells all to stop at once, though the next owner is not ready. */
TEST_IN(test_second_stop, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    dv_member *bert = start_preparing(1, 25000);
    assert_true(DV_WAIT(works_on(anna, 2) && works_on(bert, 2), DEADLINE_MS));
    atomic_store(&bert->prepare_lasts, true);
    divvy_workers_stop(anna->workers);
    assert_true(DV_WAIT(atomic_load(&bert->prepare_begun) == 4, DEADLINE_MS));
    assert_int_equal(sum(anna->told), 2);
    assert_int_equal(stop(anna), 0);
    assert_int_equal(sum(anna->told), ITEMS);
    atomic_store(&bert->prepare_lasts, false);
    assert_true(DV_WAIT(works_on(bert, ITEMS), DEADLINE_MS));
    assert_int_equal(stop(bert), 0);
}

/* A static member hands nothing over: its items wait for it. */
TEST_IN(test_static_member, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    pool.static_membership = 1;
    pool.rejoin_delay_ms = 60000;
    divvy_workers_config config = workers_config(&members[0], &pool);
    dv_member *anna = start_with(0, &config);
    dv_member *bert = start(1);
    assert_true(DV_WAIT(works_on(anna, 2) && works_on(bert, 2), DEADLINE_MS));
    int begun = sum(bert->begun);
    assert_int_equal(stop(anna), 0);
    assert_false(DV_WAIT(sum(bert->begun) > begun, LOOK_MS));
    assert_int_equal(stop(bert), 0);
}

/* Without a connection nobody could take over, so a stop tells all to stop at once. The run says that no server has
 * confirmed its end. */
TEST_IN(test_stop_without_connection, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.finish_timeout_ms = 100;
    dv_member *anna = start_with(0, &config);
    dv_member *bert = start(1);
    assert_true(DV_WAIT(works_on(anna, 2) && works_on(bert, 2), DEADLINE_MS));
    for (unsigned i = 0; i < 3; i++) divvy_testing_kill_server(ensemble, i);
    assert_true(DV_WAIT(divvy_client_state(anna->client) == DIVVY_SUSPENDED, DEADLINE_MS));
    assert_int_equal(sum(anna->told), 2 * (sum(anna->begun) == 4));
    assert_int_equal(stop(anna), DIVVY_ETIMEDOUT);
    assert_string_not_equal(anna->why, "");
    divvy_testing_heal(ensemble);
    assert_true(DV_WAIT(works_on(bert, ITEMS), DEADLINE_MS));
}

/* So it is where the connection is lost while the workers wait for the next owner. */
TEST_IN(test_connection_lost_while_handing_over, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.finish_timeout_ms = 100;
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    atomic_store(&members[1].prepare_lasts, true);
    dv_member *bert = start_preparing(1, 25000);
    assert_true(DV_WAIT(atomic_load(&bert->prepare_begun) == 2, DEADLINE_MS));
    divvy_workers_stop(anna->workers);
    assert_true(DV_WAIT(atomic_load(&bert->prepare_begun) == 4, DEADLINE_MS));
    assert_int_equal(sum(anna->told), 0);
    for (unsigned i = 0; i < 3; i++) divvy_testing_kill_server(ensemble, i);
    assert_int_equal(join(anna), DIVVY_ETIMEDOUT);
    assert_int_equal(sum(anna->told), ITEMS);
}

/* ---- preparing ---- */

/* What was prepared for an item that does not come after all is discarded, and prepared again when it comes. */
TEST_IN(test_discards_what_does_not_come, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    atomic_store(&anna->lingers, true);
    dv_member *bert = start_preparing(1, 25000);
    assert_true(DV_WAIT(sum(bert->prepared) == 2 && sum(anna->told) > 0, DEADLINE_MS));
    divvy_partitioner *p = divvy_workers_partitioner(bert->workers);
    assert_int_equal(divvy_partitioner_set_weight(p, 0), 0);
    assert_true(DV_WAIT(sum(bert->discarded) == 2, DEADLINE_MS));
    atomic_store(&anna->lingers, false);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    assert_int_equal(sum(bert->begun), 0);
    assert_int_equal(divvy_partitioner_set_weight(p, 1000), 0);
    assert_true(DV_WAIT(works_on(bert, 2), DEADLINE_MS));
    assert_int_equal(sum(bert->given), 2);
    assert_int_equal(stop(bert), 0);
    assert_int_equal(stop(anna), 0);
}

static atomic_bool withdraws; /* the items that the run looks at next do not come, which is told before it goes on */

divvy_partition *__real_divvy_partitioner_to_prepare(divvy_partitioner *p);
divvy_partition *__wrap_divvy_partitioner_to_prepare(divvy_partitioner *p);

divvy_partition *__wrap_divvy_partitioner_to_prepare(divvy_partitioner *p) {
    divvy_partition *coming = __real_divvy_partitioner_to_prepare(p);
    if (divvy_partition_count(coming) == 0 || !atomic_exchange(&withdraws, false)) return coming;
    assert_int_equal(divvy_partitioner_set_weight(p, 0), 0);
    for (size_t left = 1; left > 0;) {
        divvy_partition *now = __real_divvy_partitioner_to_prepare(p);
        left = divvy_partition_count(now);
        divvy_partition_unref(now);
    }
    assert_false(DV_WAIT(false, LOOK_MS)); /* for the callback */
    return coming;
}

/* Nothing is prepared for an item that has gone before the run knew it. */
TEST_IN(test_goes_before_it_is_known, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    atomic_store(&anna->lingers, true);
    atomic_store(&withdraws, true);
    dv_member *bert = start_preparing(1, 25000);
    assert_true(DV_WAIT(!atomic_load(&withdraws), DEADLINE_MS));
    assert_false(DV_WAIT(sum(bert->prepared) > 0, 3 * LOOK_MS));
    atomic_store(&anna->lingers, false);
    assert_int_equal(divvy_partitioner_set_weight(divvy_workers_partitioner(bert->workers), 1000), 0);
    assert_true(DV_WAIT(works_on(bert, 2), DEADLINE_MS));
    assert_int_equal(sum(bert->given), 2);
    assert_int_equal(stop(bert), 0);
    assert_int_equal(stop(anna), 0);
}

/* What was prepared when the run ends is discarded. */
TEST_IN(test_discards_at_the_end, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    atomic_store(&anna->lingers, true);
    dv_member *bert = start_preparing(1, 25000);
    assert_true(DV_WAIT(sum(bert->prepared) == 2, DEADLINE_MS));
    assert_int_equal(stop(bert), 0);
    assert_int_equal(sum(bert->discarded), 2);
    assert_int_equal(sum(bert->given), 0);
}

/* An end waits for a `prepare` that goes on. */
TEST_IN(test_end_waits_for_prepare, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    atomic_store(&members[1].prepare_lasts, true);
    dv_member *bert = start_preparing(1, 25000);
    assert_true(DV_WAIT(atomic_load(&bert->prepare_begun) == 2, DEADLINE_MS));
    divvy_workers_stop(bert->workers);
    divvy_workers_stop(bert->workers);
    assert_false(DV_WAIT(atomic_load(&bert->has_returned), LOOK_MS));
    atomic_store(&bert->prepare_lasts, false);
    assert_int_equal(join(bert), 0);
    assert_int_equal(sum(bert->discarded), sum(bert->prepared));
    assert_int_equal(stop(anna), 0);
}

/* Where `prepare` fails it is told, and called again after pauses, which double. What a call has left is discarded. The
 * present owner, which was asked to end, works until one succeeds. */
TEST_IN(test_prepare_fails, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    atomic_store(&members[1].prepare_result, 3);
    dv_member *bert = start_preparing(1, 25000);
    assert_true(DV_WAIT(sum(bert->ended) >= 6, DEADLINE_MS)); /* Of 2 items: so each has had a pause of 200 ms. */
    assert_int_equal(sum(bert->end_result), 6);
    for (int i = 0; i < ITEMS; i++)
        assert_true(!atomic_load(&bert->ended[i]) || atomic_load(&bert->restart_ms[i]) >= 200);
    assert_true(sum(bert->discarded) >= 6);
    divvy_workers_stop(anna->workers);
    assert_true(DV_WAIT(sum(bert->end_result) == 3 * ITEMS, DEADLINE_MS));
    assert_int_equal(sum(anna->told), 0);
    atomic_store(&bert->prepare_result, 0);
    assert_true(DV_WAIT(works_on(bert, ITEMS), DEADLINE_MS));
    assert_int_equal(join(anna), 0);
    assert_int_equal(sum(bert->given), ITEMS);
    assert_int_equal(sum(bert->given) + sum(bert->discarded), sum(bert->prepared));
    assert_int_equal(stop(bert), 0);
}

/* With DIVVY_RESTART_NEVER it is not. Then the item comes unprepared when prepare_timeout_ms is over. */
TEST_IN(test_prepare_fails_once, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    atomic_store(&members[1].prepare_result, 3);
    dv_member *bert = start_preparing_with(1, 300, DIVVY_RESTART_NEVER);
    assert_true(DV_WAIT(works_on(bert, 2), DEADLINE_MS));
    assert_int_equal(atomic_load(&bert->prepare_begun), 2);
    assert_int_equal(sum(bert->ended), 2);
    assert_int_equal(sum(bert->end_result), 6);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(atomic_load(&bert->restart_ms[i]), atomic_load(&bert->ended[i]) ? -1 : 0);
    assert_int_equal(sum(bert->given), 0);
    assert_int_equal(sum(bert->discarded), 2);
    assert_int_equal(stop(bert), 0);
    assert_int_equal(stop(anna), 0);
}

/* ---- signals ---- */

static dv_member *start_with_signals(int signals) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.signals = signals;
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    return anna;
}

static void (*action_of(int number))(int) {
    struct sigaction now;
    sigaction(number, NULL, &now);
    return now.sa_handler;
}

/* A first signal hands over, a second one stops at once. From then on their actions are what they were. */
TEST_IN(test_signals, set_up, tear_down) {
    dv_member *anna = start_with_signals(DIVVY_SIGNALS_UNHANDLED);
    dv_member *bert = start_preparing(1, 25000);
    assert_true(DV_WAIT(works_on(anna, 2) && works_on(bert, 2), DEADLINE_MS));
    atomic_store(&bert->prepare_lasts, true);
    kill(getpid(), SIGTERM);
    assert_true(DV_WAIT(atomic_load(&bert->prepare_begun) == 4, DEADLINE_MS));
    assert_int_equal(sum(anna->told), 2);
    assert_false(action_of(SIGINT) == SIG_DFL);
    atomic_store(&anna->lingers, true);
    kill(getpid(), SIGINT);
    assert_true(DV_WAIT(sum(anna->told) == ITEMS, DEADLINE_MS));
    assert_true(action_of(SIGTERM) == SIG_DFL && action_of(SIGINT) == SIG_DFL);
    atomic_store(&anna->lingers, false);
    assert_int_equal(join(anna), 0);
    assert_true(action_of(SIGTERM) == SIG_DFL && action_of(SIGINT) == SIG_DFL);
}

static atomic_int handled;

static void on_signal(int number) {
    (void)number;
    atomic_fetch_add(&handled, 1);
}

/* A handler of the program's stays, unless it asks for both; it is back after the run. */
TEST_IN(test_own_handler, set_up, tear_down) {
    signal(SIGTERM, on_signal);
    signal(SIGINT, SIG_IGN);
    atomic_store(&handled, 0);
    dv_member *anna = start_with_signals(DIVVY_SIGNALS_UNHANDLED);
    assert_true(action_of(SIGTERM) == on_signal && action_of(SIGINT) == SIG_IGN);
    kill(getpid(), SIGTERM);
    assert_true(DV_WAIT(atomic_load(&handled) == 1, DEADLINE_MS));
    assert_int_equal(stop(anna), 0);
    destroy(anna);
    anna->has_returned = false;
    memset(anna->begun, 0, sizeof anna->begun);
    anna = start_with_signals(DIVVY_SIGNALS_TAKE);
    kill(getpid(), SIGTERM);
    assert_int_equal(join(anna), 0);
    assert_int_equal(atomic_load(&handled), 1);
    assert_true(action_of(SIGTERM) == on_signal && action_of(SIGINT) == SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
}

/* With DIVVY_SIGNALS_LEAVE the default actions stay. */
TEST_IN(test_signals_left, set_up, tear_down) {
    dv_member *anna = start_with_signals(DIVVY_SIGNALS_LEAVE);
    assert_true(action_of(SIGTERM) == SIG_DFL && action_of(SIGINT) == SIG_DFL);
    assert_int_equal(stop(anna), 0);
}

/* Two runs of one process both end by one signal. */
TEST_IN(test_signal_ends_both, set_up, tear_down) {
    dv_member *anna = start_with_signals(DIVVY_SIGNALS_UNHANDLED);
    divvy_partitioner_config pool = pool_config("bert");
    divvy_workers_config config = workers_config(&members[1], &pool);
    config.signals = DIVVY_SIGNALS_UNHANDLED;
    dv_member *bert = start_with(1, &config);
    assert_true(DV_WAIT(works_on(bert, 2), DEADLINE_MS));
    kill(getpid(), SIGTERM);
    assert_int_equal(join(anna), 0);
    assert_int_equal(join(bert), 0);
    assert_true(action_of(SIGTERM) == SIG_DFL);
}

#ifndef __SANITIZE_THREAD__ /* It keeps signals from the child of a fork. */
/* The child of a fork, which has the handler, too, ends by the signal, and its parent goes on. */
TEST_IN(test_signal_of_a_child, set_up, tear_down) {
    dv_member *anna = start_with_signals(DIVVY_SIGNALS_UNHANDLED);
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        raise(SIGTERM);
        for (;;) pause();
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_false(DV_WAIT(!works_on(anna, ITEMS), LOOK_MS));
    assert_int_equal(stop(anna), 0);
}

/* A run in the child of a fork, in a pool of its own. Returns whether the actions are what they were, after it. */
static bool gives_back_in_a_child(void) {
    if (divvy_testing_ensemble_create(&ensemble, NULL) != 0) return false;
    dv_member *bert = &members[1];
    divvy_partitioner_config pool = pool_config("bert");
    divvy_workers_config config = workers_config(bert, &pool);
    config.signals = DIVVY_SIGNALS_UNHANDLED;
    open_client(bert, 1);
    if (divvy_workers_create(&bert->workers, bert->client, &config) != 0) return false;
    divvy_workers_stop(bert->workers);
    if (divvy_workers_run(bert->workers) != 0) return false;
    return action_of(SIGTERM) == SIG_DFL && action_of(SIGINT) == SIG_DFL;
}

/* The child of a fork has runs of its own, and gives the signals back when these have ended. */
TEST_IN(test_run_of_a_child, set_up, tear_down) {
    dv_member *anna = start_with_signals(DIVVY_SIGNALS_UNHANDLED);
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        _exit(gives_back_in_a_child() ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(stop(anna), 0);
}
#endif

/* ---- destroying ---- */

/* Workers that have not run leave the pool when they are destroyed. */
TEST_IN(test_destroyed_before_a_run, set_up, tear_down) {
    open_client(&members[0], 0);
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    assert_int_equal(divvy_workers_create(&members[0].workers, members[0].client, &config), 0);
    divvy_partitioner *p = divvy_workers_partitioner(members[0].workers);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, DEADLINE_MS), 0);
    destroy(&members[0]);
    dv_member *bert = start(1);
    assert_true(DV_WAIT(works_on(bert, ITEMS), DEADLINE_MS));
    assert_int_equal(stop(bert), 0);
}

/* A destroy in another thread stops the run at once, and returns when that has ended. */
TEST_IN(test_destroyed_while_it_runs, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    divvy_workers_destroy(anna->workers);
    anna->workers = NULL;
    assert_int_equal(sum(anna->told), ITEMS);
    assert_true(works_on(anna, 0));
    assert_int_equal(join(anna), 0);
}

static atomic_int gone;

static void count_gone(void *user) {
    (void)user;
    atomic_fetch_add(&gone, 1);
}

static void destroy_at_end(divvy_workers *workers, const divvy_job_end *end, void *user) {
    dv_member *m = user;
    if (end->told_to_stop || !m->workers) return;
    m->workers = NULL;
    divvy_workers_destroy(workers);
}

static int destroy_in_worker(divvy_job *job, void *user) {
    dv_member *m = user;
    if (strcmp(divvy_job_item(job), "a") == 0) {
        divvy_workers *workers = m->workers;
        m->workers = NULL;
        divvy_workers_destroy_async(workers, count_gone, NULL);
    }
    return divvy_job_wait(job, -1) == 1 ? 0 : 1;
}

/* In on_end a destroy does not wait for the run, which ends then; nor does the asynchronous one in a worker. The last
 * word comes once, after the pool's on_destroyed. */
TEST_IN(test_destroyed_inside, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    pool.on_destroyed = count_gone;
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.on_end = destroy_at_end;
    atomic_store(&gone, 0);
    atomic_store(&members[0].returns[0], 1);
    start_with(0, &config);
    assert_int_equal(join(&members[0]), 0);
    assert_true(DV_WAIT(atomic_load(&gone) == 1, DEADLINE_MS));
    config.on_end = NULL;
    config.worker = destroy_in_worker;
    members[0].has_returned = false;
    start_with(0, &config);
    assert_int_equal(join(&members[0]), 0);
    assert_true(DV_WAIT(atomic_load(&gone) == 3, DEADLINE_MS));
}

/* Where the client is closed, the run ends when all workers have returned. */
TEST_IN(test_client_closed, set_up, tear_down) {
    dv_member *anna = start(0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    divvy_client_close(anna->client);
    assert_int_equal(join(anna), DIVVY_ECLOSED);
    assert_true(works_on(anna, 0));
    destroy(anna);
    anna->client = NULL;
}
