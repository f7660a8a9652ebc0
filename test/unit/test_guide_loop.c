/* The loop of docs/guide.md, as it stands there, on the in-memory ensemble. SPDX-License-Identifier: Apache-2.0
 *
 * loop.inc is the loop in one piece, of docs/examples/guide. The functions that it leaves to its reader are here: jobs
 * whose pieces of work take 3 s each, which nothing interrupts, as a worker thread's may be. Time is virtual, so a turn
 * of the loop counts, and no machine is too slow. */
#include <stdio.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

enum { PIECE_MS = 3000, MAX_TURNS = 100000, MAX_JOBS = 8 };

typedef struct job {
    struct job *next;
    const char *queue;
    int64_t token;
    int64_t piece_ends_ms;
    int told_to_stop, at_work;
} job;

static const char *const all_queues[] = {"alpha", "beta", "gamma", "delta"};
static const char *const *queues = all_queues;
static size_t queue_count;

static divvy_testing_ensemble *ensemble;
static divvy_client *own_client, *other_client;
static divvy_partitioner *other;
static job *jobs, job_memory[MAX_JOBS];
static int64_t start_ms, quiet_from_ms, quiet_to_ms, end_ms;
static size_t turns, quiet_turns, releases, releases_waited, jobs_started;
static int cut, lost, healed;

static int64_t now_ms(void) {
    return divvy_testing_now_ms(ensemble) - start_ms;
}

static int complain(const char *why) {
    fail_msg("%s", why);
    return 1;
}

/* ---- the workers: what each thread would do ---- */

/* A piece that has ended is followed by another one, if the thread may go on. */
static void let_workers_work(divvy_partitioner *p) {
    for (job *j = jobs; j; j = j->next) {
        if (!j->at_work || now_ms() < j->piece_ends_ms) continue;
        j->at_work = !j->told_to_stop && divvy_partitioner_owns_token(p, j->queue, j->token);
        j->piece_ends_ms = now_ms() + PIECE_MS;
    }
}

static void tell_to_stop(job *j) {
    j->told_to_stop = 1;
}

/* Removes the jobs that have ended. Returns how many were told to stop and still work. */
static size_t forget_ended_jobs(void) {
    size_t stopping = 0;
    for (job **at = &jobs; *at;) {
        job *j = *at;
        if (j->at_work) {
            stopping += j->told_to_stop != 0;
            at = &j->next;
        } else {
            *at = j->next;
            j->queue = NULL;
        }
    }
    return stopping;
}

static void start_job(const char *queue, int64_t token) {
    job *j = job_memory;
    for (const job *k = jobs; k; k = k->next)
        if (strcmp(k->queue, queue) == 0) return;
    while (j->queue) j++;
    assert_true(j < job_memory + MAX_JOBS);
    for (size_t i = 0; i < queue_count; i++)
        if (strcmp(queues[i], queue) == 0) queue = queues[i]; /* a string that outlives the snapshot */
    *j = (job){jobs, queue, token, now_ms() + PIECE_MS, 0, 1};
    jobs = j;
    jobs_started++;
}

static void stop_all_jobs_and_wait(void) {
    for (job *j = jobs; j; j = j->next) j->told_to_stop = 1;
    while (forget_ended_jobs() > 0) {
        divvy_testing_run(ensemble, 10);
        for (job *j = jobs; j; j = j->next) j->at_work = now_ms() < j->piece_ends_ms;
    }
}

/* ---- what is looked at ---- */

/* No RELEASE is confirmed while a job works that is not ours under its token. */
static int checked_release(divvy_partitioner *p, uint64_t state_id) {
    for (const job *j = jobs; j; j = j->next)
        if (j->at_work && !divvy_partitioner_owns_token(p, j->queue, j->token))
            fail_msg("at %lld ms a RELEASE is confirmed while %s is worked on", (long long)now_ms(), j->queue);
    int error = divvy_partitioner_release_set_id(p, state_id);
    releases += error == 0;
    return error;
}

/* An item that the other member owns is not worked on; after the loss of the session no thread can know at once. */
static void check_overlap(void) {
    for (const job *j = jobs; j && !cut; j = j->next)
        if (j->at_work && divvy_partitioner_owns(other, j->queue)) fail_msg("%s is worked on by two", j->queue);
}

/* The link is cut until the client has given its session up: its jobs are at work then. */
static void lose_session(void) {
    if (!cut) assert_int_equal(divvy_testing_link_client(ensemble, own_client, DIVVY_TESTING_LINK_DOWN), 0);
    cut = 1;
    if (healed || !lost) return;
    for (const job *j = jobs; j; j = j->next) releases_waited += (size_t)j->at_work;
    assert_int_equal(divvy_testing_link_client(ensemble, own_client, DIVVY_TESTING_LINK_UP), 0);
    healed = 1;
}

static int64_t lose_at_ms, join_at_ms;
static void start_other(void);

/* Stands where the loop asks whether to end: once a turn. */
static int end_of_turn(divvy_partitioner *p) {
    if (++turns > MAX_TURNS) fail_msg("the loop spins: %d turns within %lld ms", MAX_TURNS, (long long)now_ms());
    quiet_turns += now_ms() >= quiet_from_ms && now_ms() < quiet_to_ms;
    let_workers_work(p);
    if (join_at_ms && !other && now_ms() >= join_at_ms) start_other();
    check_overlap();
    if (lose_at_ms && now_ms() >= lose_at_ms) lose_session();
    return now_ms() >= end_ms;
}

static void on_session(divvy_client *client, divvy_session_state state, void *user) {
    (void)client;
    (void)user;
    lost |= state == DIVVY_LOST;
}

static int open_here(divvy_client **out, const divvy_client_config *config) {
    divvy_client_config here = *config;
    here.hosts = NULL;
    here.manual = 1;
    here.on_session = on_session;
    int error = divvy_testing_client_open(out, ensemble, &here);
    own_client = *out;
    return error;
}

static void close_here(divvy_client *client) {
    own_client = NULL;
    divvy_client_close(client);
}

/* ---- the loop ---- */

#define stopping end_of_turn(p)
#define divvy_client_open open_here
#define divvy_client_close close_here
#define divvy_partitioner_release_set_id checked_release
static int run_loop(void) {
#include "loop.inc"
    return 0;
}
#undef stopping
#undef divvy_client_open
#undef divvy_client_close
#undef divvy_partitioner_release_set_id

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from;
    (void)user;
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p);
}

/* Another member of the pool, which works on nothing. */
static void start_other(void) {
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.manual = 1;
    client_config.ensemble_tick_ms = 2000;
    assert_int_equal(divvy_testing_client_open(&other_client, ensemble, &client_config), 0);
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/work_queues";
    config.items = queues;
    config.item_count = queue_count;
    config.identifier = "other";
    config.on_state = on_state;
    assert_int_equal(divvy_partitioner_create(&other, other_client, &config), 0);
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    start_ms = divvy_testing_now_ms(ensemble);
    turns = quiet_turns = releases = releases_waited = jobs_started = 0;
    quiet_from_ms = quiet_to_ms = lose_at_ms = join_at_ms = 0;
    cut = lost = healed = 0;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_partitioner_destroy(other);
    divvy_client_close(other_client);
    divvy_client_close(own_client); /* if the test has failed */
    divvy_testing_ensemble_destroy(ensemble);
    other = NULL;
    other_client = NULL;
    return 0;
}

/* In a process that owns nothing the loop waits: it takes no more than ten turns a second. */
TEST(test_owns_nothing) {
    queue_count = 1;
    start_other();
    assert_int_equal(divvy_partitioner_wait_for_acquire(other, 30000), 0);
    quiet_from_ms = now_ms() + 10000;
    quiet_to_ms = quiet_from_ms + 10000;
    end_ms = quiet_to_ms;
    assert_int_equal(run_loop(), 0);
    assert_int_equal(jobs_started, 0);
    assert_in_range(quiet_turns, 1, 101);
}

/* A member that joins gets its items when the pieces of work on them have ended. When the session is lost under others,
 * the member takes part again after these have ended: no two jobs work on one item, and none under an old token. */
TEST(test_jobs_end_first) {
    queue_count = sizeof all_queues / sizeof *all_queues;
    join_at_ms = 15000;
    lose_at_ms = 30000;
    quiet_from_ms = 70000;
    quiet_to_ms = 80000;
    end_ms = 90000;
    assert_int_equal(run_loop(), 0);
    assert_true(healed);
    assert_true(releases_waited > 0); /* Jobs were at work when the session was lost. */
    assert_true(releases >= 2);       /* one for the member that joins, one for the session that is lost */
    assert_true(jobs_started >= 6);   /* on four items, then again on two after the loss */
    assert_in_range(quiet_turns, 1, 101);
}

TEST_EACH(set_up, tear_down);
