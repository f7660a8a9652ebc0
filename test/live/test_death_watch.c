/* Death watch: what ends a session, and what does not. SPDX-License-Identifier: Apache-2.0
 *
 * Shows processes that die, stop, fork and become another program, on a real server (C10). */
#include "death_watch_fixture.h"

#include <poll.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

/* --- a process that has ended ----------------------------------------------------------------------------------- */

static void check_dies(const char *path, dv_order how, const char *options) {
    member m = start_member(hosts(), path, LONG_MS, options);
    pid_t watch = watch_of(&m);
    heir next = next_owner(path);
    assert_int_equal(divvy_lock_try_acquire(next.lock), DIVVY_EBUSY);
    order(&m, how);
    check_soon(&next, LONG_MS);
    check_watch_goes(watch);
    leave(&next);
    end_member(&m);
}

/* However a process ends, the next owner has its lock well before its session would have ended; then its death watch
 * goes. */
TEST(test_dies) {
    check_dies("/dies/kill", DV_ORDER_KILL, "");
    check_dies("/dies/segmentation", DV_ORDER_SEGMENTATION, "");
    check_dies("/dies/abort", DV_ORDER_ABORT, "");
    check_dies("/dies/exit", DV_ORDER_EXIT, "");
}

/* So it is where the process takes no status of children, where it takes that of all, where it has closed its standard
 * input, output and error, and where it may have little memory. */
TEST(test_odd_hosts) {
    check_dies("/odd/ignores", DV_ORDER_KILL, (char[]){DV_MEMBER_IGNORES_CHILDREN, '\0'});
    check_dies("/odd/reaps", DV_ORDER_KILL, (char[]){DV_MEMBER_REAPS_ALL, '\0'});
    check_dies("/odd/closed", DV_ORDER_KILL, (char[]){DV_MEMBER_CLOSED_STDIO, '\0'});
#ifndef SANITIZED /* Sanitizers need terabytes. */
    check_dies("/odd/memory", DV_ORDER_KILL, (char[]){DV_MEMBER_LITTLE_MEMORY, '\0'});
#endif
}

/* A child that was forked, and lives on with the socket to the watch, holds up nothing. */
TEST(test_child_lives_on) {
    member m = start_member(hosts(), "/child", LONG_MS, "");
    pid_t watch = watch_of(&m), child = atoi(ask(&m, DV_ORDER_FORK));
    heir next = next_owner("/child");
    assert_true(child > 0);
    order(&m, DV_ORDER_KILL);
    check_soon(&next, LONG_MS);
    check_watch_goes(watch);
    assert_int_equal(status_of(m.pid), SIGKILL);
    assert_true(lives(child)); /* An orphan, and ours since. */
    kill(child, SIGKILL);
    status_of(child);
    leave(&next);
    close(m.control_fd);
    close(m.pipe_fd);
}

/* Returns the letter of a process's state. */
static char state_of(const char *path) {
    char state = 0;
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 0;
    fclose(file);
    return state;
}

/* --- a process that has not ended ------------------------------------------------------------------------------- */

/* A client that is closed in good order ends its watch, and the process goes on. */
TEST(test_closed) {
    member m = start_member(hosts(), "/closed", LONG_MS, "");
    pid_t watch = watch_of(&m);
    heir next = next_owner("/closed");
    assert_string_equal(ask(&m, DV_ORDER_CLOSE), "closed");
    check_watch_goes(watch);
    check_soon(&next, LONG_MS);
    assert_true(lives(m.pid));
    assert_string_equal(ask(&m, DV_ORDER_CHILDREN), "none");
    leave(&next);
    end_member(&m);
}

/* A process that is stopped keeps its lock until its session ends, and no sooner: nothing but the process's end makes
 * the watch act. */
TEST(test_stopped) {
    member m = start_member(hosts(), "/stopped", SHORT_MS, "");
    pid_t watch = watch_of(&m);
    heir next = next_owner("/stopped");
    kill(m.pid, SIGSTOP);
    check_by_timeout(&next, SHORT_MS);
    assert_true(lives(watch));
    leave(&next);
    end_member(&m);
    check_watch_goes(watch);
}

/* A process whose first thread has ended lives on in its others, and keeps its lock. */
TEST(test_first_thread_ends) {
    char path[64];
    member m = start_member(hosts(), "/thread", LONG_MS, "");
    pid_t watch = watch_of(&m);
    heir next = next_owner("/thread");
    assert_string_equal(ask(&m, DV_ORDER_END_FIRST_THREAD), "another");
    snprintf(path, sizeof path, "/proc/%d/stat", (int)m.pid);
    assert_true(DV_WAIT(state_of(path) == 'Z', PATIENCE_MS));
    assert_int_equal(divvy_lock_acquire(next.lock, 500), DIVVY_ETIMEDOUT);
    assert_true(lives(watch));
    assert_string_equal(ask(&m, DV_ORDER_HELD), "held");
    order(&m, DV_ORDER_KILL);
    check_soon(&next, LONG_MS);
    check_watch_goes(watch);
    leave(&next);
    end_member(&m);
}

/* A process that becomes another program, by its first thread or by a later one, has not ended, though the socket to
 * the watch has closed: the session takes its time. The watch goes when the process has ended. */
TEST(test_becomes_another) {
    static const dv_order ways[] = {DV_ORDER_EXEC, DV_ORDER_EXEC_BY_THREAD};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        member m = start_member(hosts(), "/another", SHORT_MS, "");
        pid_t watch = watch_of(&m);
        heir next = next_owner("/another");
        order(&m, ways[i]);
        check_by_timeout(&next, SHORT_MS);
        assert_true(lives(m.pid));
        leave(&next);
        end_member(&m);
        check_watch_goes(watch);
    }
}

/* Where such a process lives on, the watch goes when the session must have ended, and not before. */
TEST(test_another_lives_on) {
    member m = start_member(hosts(), "/lives", SHORT_MS, "");
    pid_t watch = watch_of(&m);
    int64_t from_ms = dv_test_now_ms();
    order(&m, DV_ORDER_EXEC);
    check_watch_goes(watch);
    assert_true(dv_test_now_ms() - from_ms >= SHORT_MS);
    assert_true(lives(m.pid));
    end_member(&m);
}

/* --- a watch of its own ----------------------------------------------------------------------------------------- */

/* Returns the number behind a key of /proc/PID/status. */
static unsigned long long status_number(pid_t pid, const char *key, int base) {
    char path[64], line[256];
    unsigned long long number = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) != 0 || line[strlen(key)] != ':') continue;
        number = strtoull(line + strlen(key) + 1, NULL, base);
        found = true;
    }
    fclose(file);
    if (!found) fail_msg("no %s in %s", key, path);
    return number;
}

/* A watch is in a session of its own, is no child of the program, has all signals blocked, and its memory is locked. It
 * holds no descriptor that the program had for others to inherit. */
TEST(test_stands_apart) {
    char byte;
    member m = start_member(hosts(), "/apart", LONG_MS, "");
    pid_t watch = watch_of(&m);
    assert_string_equal(ask(&m, DV_ORDER_CHILDREN), "none");
    assert_int_equal(getsid(watch), watch);
    assert_int_equal(getpgid(watch), watch);
    const unsigned long long kept = 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) | 1ull << 31 | 1ull << 32;
    assert_int_equal(status_number(watch, "SigBlk", 16) | kept, ~0ull);
#ifndef SANITIZED /* Sanitizers lock no memory, and may have a thread of their own. */
    assert_int_equal(status_number(watch, "Threads", 10), 1);
    assert_true(status_number(watch, "VmLck", 10) * 1024 >= 64 * 1024);
#endif
    assert_string_equal(ask(&m, DV_ORDER_CLOSE_PIPE), "closed");
    assert_int_equal(poll(&(struct pollfd){.fd = m.pipe_fd, .events = POLLIN}, 1, PATIENCE_MS), 1);
    assert_int_equal(read(m.pipe_fd, &byte, 1), 0); /* Nobody else has that end. */
    assert_true(lives(watch));
    end_member(&m);
    check_watch_goes(watch);
}

/* Signals that end a process group do not end it, and it acts after them. */
TEST(test_signals_do_not_end_it) {
    static const int signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGPIPE, SIGUSR1, SIGALRM};
    member m = start_member(hosts(), "/signals", LONG_MS, "");
    pid_t watch = watch_of(&m);
    heir next = next_owner("/signals");
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) assert_int_equal(kill(watch, signals[i]), 0);
    order(&m, DV_ORDER_KILL);
    check_soon(&next, LONG_MS);
    check_watch_goes(watch);
    leave(&next);
    end_member(&m);
}

/* --- several ---------------------------------------------------------------------------------------------------- */

/* Two clients in a process have a watch each. Closing one ends its own; the process's end frees the other's lock. */
TEST(test_two_clients) {
    pid_t watches[CHILDREN_MAX];
    member m = start_member(hosts(), "/two", LONG_MS, (char[]){DV_MEMBER_TWO_CLIENTS, '\0'});
    assert_int_equal(find_watches(watches), 2);
    heir first = next_owner("/two"), second = next_owner("/two-2");
    assert_string_equal(ask(&m, DV_ORDER_CLOSE_FIRST), "closed");
    check_soon(&first, LONG_MS);
    assert_true(DV_WAIT(lives(watches[0]) != lives(watches[1]), PATIENCE_MS));
    assert_int_equal(divvy_lock_try_acquire(second.lock), DIVVY_EBUSY);
    order(&m, DV_ORDER_KILL);
    check_soon(&second, LONG_MS);
    check_watch_goes(watches[0]);
    check_watch_goes(watches[1]);
    leave(&first);
    leave(&second);
    end_member(&m);
}

TEST_EACH(NULL, end_children);
TEST_GROUP(set_up_watched, stop_server);
