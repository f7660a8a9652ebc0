/* The forker of guardians as a death watch. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "divvy/dispositions.h"
#include "divvy/guardian.h"
#include "lib/test.h"
#include "lib/wait.h"

enum { WAIT_MS = 30000, DEADLINE_MS = 600000 };

static dv_guardian *guardian;

static bool has_started(void) {
    dv_guardian_event event;
    return dv_guardian_read(guardian, &event) == 1 && event.kind == DV_GUARDIAN_STARTED;
}

/* Returns the only child that this process has, but for one that is known; 0: none is. */
static pid_t only_child_but(pid_t known) {
    int pid = 0, other = 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d %d", &pid, &other), known ? 2 : 1);
    fclose(file);
    return pid == known ? other : pid;
}

static pid_t only_child(void) {
    return only_child_but(0);
}

static bool is_hung_up(int fd) {
    struct pollfd end = {.fd = fd, .events = POLLIN};
    return poll(&end, 1, 0) > 0 && (end.revents & POLLHUP) != 0;
}

static bool has_died(void) {
    dv_guardian_event event;
    return dv_guardian_read(guardian, &event) == 1 && event.kind == DV_GUARDIAN_DIED;
}

/* Starts a command, and waits until it runs. */
static void start(dv_guardians *guardians) {
    const char *const arguments[] = {"sleep", "600", NULL}, *const environment[] = {NULL};
    const dv_guardian_config config = {
        .program = "/bin/sleep", .arguments = arguments, .environment = environment, .grace_ms = 10, .kill_ms = 25};
    dv_guardians_set_deadline(guardians, dv_guardians_now_ms() + DEADLINE_MS);
    assert_int_equal(dv_guardian_start(&guardian, guardians, &config), 0);
    assert_true(DV_WAIT(has_started(), WAIT_MS));
}

/* That a forker was killed shows at its socket at once, though guardians that it forked live on: they hold no end of
 * it. Else the client would say that its death watch lives (G10). */
TEST(test_forker_killed) {
    dv_guardians *guardians;
    dv_dispositions_remember();
    assert_int_equal(dv_guardians_open(&guardians), 0);
    assert_true(dv_guardians_watch_fd(guardians) >= 0);
    start(guardians);
    assert_false(is_hung_up(dv_guardians_watch_fd(guardians)));

    pid_t forker = only_child();
    assert_int_equal(kill(forker, SIGKILL), 0);
    assert_int_equal(waitpid(forker, NULL, 0), forker);
    /* The guardian is ours now, as the next subreaper, and lives. */
    pid_t orphan = only_child();
    assert_int_equal(waitpid(orphan, NULL, WNOHANG), 0);
    assert_true(DV_WAIT(is_hung_up(dv_guardians_watch_fd(guardians)), WAIT_MS));
    assert_int_equal(waitpid(orphan, NULL, WNOHANG), 0);

    dv_guardian_free(guardian); /* ends the command, and then itself */
    assert_int_equal(waitpid(orphan, NULL, 0), orphan);
    dv_guardians_close(guardians);
}

/* Of two forkers the second holds no end of the first one's sockets: so the first ends when it is let go of, as it does
 * when its parent dies, while the second lives. */
TEST(test_two_forkers) {
    dv_guardians *first, *second;
    assert_int_equal(dv_guardians_open(&first), 0);
    pid_t forker = only_child();
    assert_int_equal(dv_guardians_open(&second), 0);
    int watch = dup(dv_guardians_watch_fd(first)); /* a client has it, and its end shows the forker's */
    assert_false(is_hung_up(watch));
    dv_guardians_close(first);
    assert_true(DV_WAIT(waitpid(forker, NULL, WNOHANG) != 0, WAIT_MS));
    assert_true(DV_WAIT(is_hung_up(watch), WAIT_MS));
    assert_false(is_hung_up(dv_guardians_watch_fd(second)));
    close(watch);
    pid_t other = only_child();
    dv_guardians_close(second);
    assert_true(DV_WAIT(waitpid(other, NULL, WNOHANG) != 0, WAIT_MS));
}

/* A forker is killed, and then the guardian that it leaves to us: all that is left there is killed, but the other
 * forker is spared (G4). */
TEST(test_other_forker_spared) {
    dv_guardians *first, *second;
    assert_int_equal(dv_guardians_open(&first), 0);
    start(first);
    pid_t forker = only_child();
    assert_int_equal(kill(forker, SIGKILL), 0);
    assert_int_equal(waitpid(forker, NULL, 0), forker);
    pid_t orphan = only_child();
    assert_int_equal(dv_guardians_open(&second), 0);
    pid_t other = only_child_but(orphan);
    assert_int_equal(kill(orphan, SIGKILL), 0);
    assert_true(DV_WAIT(has_died(), WAIT_MS));
    assert_int_equal(waitpid(orphan, NULL, 0), orphan);
    dv_guardian_free(guardian);

    start(second); /* it can still start commands */
    assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
    dv_guardian_free(guardian);
    dv_guardians_close(first);
    dv_guardians_close(second);
    assert_true(DV_WAIT(waitpid(other, NULL, WNOHANG) != 0, WAIT_MS));
}
