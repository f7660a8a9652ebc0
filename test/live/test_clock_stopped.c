/* A process that is stopped past the end of its session. SPDX-License-Identifier: Apache-2.0
 *
 * The holder is a process of its own: this program again, as `live_clock_stopped child HOSTS POOL manual|threaded`. It
 * asks owns() over and over, and when it finds itself woken up it tells what the first call answered: before any event
 * can have been handled, in manual mode, and whatever its other threads have got to, in threaded mode.
 *
 * Shows that a process which the kernel has stopped owns nothing when it wakes up. */
#include "test_client_witness.h"

#include "lib/server.h"
#include "lib/zk.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

enum { TICK_MS = 50, TIMEOUT_MS = 2000, ASLEEP_MS = 1500, STOPS = 3 };

#define ITEM "item"

extern char **environ;

static dv_test_server *server;
static dv_test_zk *truth;
static const char *own_path;

/* ---- the child ---- */

static int64_t child_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns the time left to `session`: 0 when a thread of the library has opened the next one. */
static long long time_left_ms(divvy_client *client, int64_t session) {
    int64_t left_ms = divvy_client_time_left_ms(client);
    return divvy_client_session_id(client) == session ? left_ms : 0;
}

/* Pieces of work of a millisecond each, with the check before each. A process is almost always stopped in the pause; if
 * it was inside owns(), which may have read the time before, the next call is the first one that is wholly after. */
static void child_work(divvy_client *client, divvy_partitioner *p, bool manual) {
    int64_t session = divvy_client_session_id(client);
    for (int64_t last_ms = child_now_ms();;) {
        dv_test_sleep_ms(1);
        int64_t before_ms = child_now_ms();
        int owns = divvy_partitioner_owns(p, ITEM);
        int64_t after_ms = child_now_ms();
        if (after_ms - before_ms >= ASLEEP_MS) owns = divvy_partitioner_owns(p, ITEM);
        if (after_ms - last_ms >= ASLEEP_MS) {
            printf("woke %lld %d %lld\n", (long long)(after_ms - last_ms), owns, time_left_ms(client, session));
            fflush(stdout);
            return;
        }
        last_ms = after_ms;
        if (manual) divvy_client_process(client, 0);
    }
}

/* Runs the process that is stopped. In the end, when the loop has run, it says that nothing is owned either. */
static int child_main(const char *hosts, const char *pool, bool manual) {
    static const char *const items[] = {ITEM};
    divvy_client *client;
    divvy_partitioner *p;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = hosts;
    config.session_timeout_ms = TIMEOUT_MS;
    config.ensemble_tick_ms = TICK_MS;
    config.manual = manual;
    if (divvy_client_open(&client, &config)) return 2;
    divvy_partitioner_config pool_config = dv_test_partitioner_config(pool, items, 1, 0);
    if (divvy_partitioner_create(&p, client, &pool_config)) return 3;
    while (!divvy_partitioner_owns(p, ITEM)) {
        if (manual) divvy_client_process(client, 10);
        else dv_test_sleep_ms(1);
    }
    printf("owns\n");
    fflush(stdout);
    child_work(client, p, manual);
    while (divvy_partitioner_state(p) != DIVVY_FAILURE) {
        if (divvy_partitioner_owns(p, ITEM)) return 4;
        if (manual) divvy_client_process(client, 10);
        else dv_test_sleep_ms(1);
    }
    printf("ended\n");
    fflush(stdout);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    return 0;
}

/* ---- the test ---- */

static int setup(void **state) {
    (void)state;
    server = dv_test_server_start(1, TICK_MS);
    truth = dv_test_zk_open(dv_test_server_connect(server));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    dv_test_zk_close(truth);
    dv_test_server_stop(server);
    return 0;
}

static pid_t spawn_child(const char *pool, const char *mode, FILE **output) {
    int ends[2];
    pid_t pid;
    posix_spawn_file_actions_t actions;
    const char *const arguments[] = {own_path, "child", dv_test_server_connect(server), pool, mode, NULL};
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    assert_int_equal(posix_spawn(&pid, own_path, &actions, NULL, (char *const *)(uintptr_t)arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *output = fdopen(ends[0], "r");
    assert_non_null(*output);
    return pid;
}

static size_t queue_length(const char *pool) {
    char path[100];
    snprintf(path, sizeof path, "%s/locks/" ITEM, pool);
    return dv_test_zk_count(truth, path);
}

static void check_stop(const char *mode) {
    static int made;
    char pool[64], line[100];
    FILE *output;
    int status, owns;
    long long asleep_ms, left_ms;
    snprintf(pool, sizeof pool, "/stopped-%d", ++made);
    pid_t pid = spawn_child(pool, mode, &output);
    assert_non_null(fgets(line, sizeof line, output));
    assert_string_equal(line, "owns\n");
    assert_int_equal(queue_length(pool), 1);
    dv_test_sleep_ms(made * 137 % 400); /* another point between two heartbeats each time */
    int64_t stopped_ms = dv_test_now_ms();
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    /* Expired at the server; and not so early that the child cannot tell it from a hitch. */
    assert_true(DV_WAIT(queue_length(pool) == 0 && dv_test_now_ms() - stopped_ms > ASLEEP_MS, PATIENCE_MS));
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_non_null(fgets(line, sizeof line, output));
    if (sscanf(line, "woke %lld %d %lld", &asleep_ms, &owns, &left_ms) != 3) fail_msg("the child said %s", line);
    print_message("%s: asleep for %lld ms, then owns() said %d, with %lld ms left\n", mode, asleep_ms, owns, left_ms);
    assert_int_equal(owns, 0);
    assert_int_equal(left_ms, 0);
    assert_non_null(fgets(line, sizeof line, output));
    assert_string_equal(line, "ended\n");
    fclose(output);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* With nothing but the clock to go by: no event is handled but by the loop that has not run yet. */
TEST(test_manual) {
    for (int i = 0; i < STOPS; i++) check_stop("manual");
}

/* With threads of the library's that wake up at the same moment. */
TEST(test_threaded) {
    for (int i = 0; i < STOPS; i++) check_stop("threaded");
}

TEST_GROUP(setup, teardown);

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "child") == 0) return child_main(argv[2], argv[3], strcmp(argv[4], "manual") == 0);
    own_path = argv[0];
    return dv_test_run();
}
