/* Commands that stand by, with guardians that do what the test says, and real sockets and pipes.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "supervise_fixture.h"

static int setup(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    standby = true;
    open_supervisor(DV_RESTART_ALWAYS);
    return 0;
}

static void prepare(const char *item) {
    dv_supervisor_prepare(s, &item, 1);
    dv_supervisor_process(s);
}

static void lose(const char *item) {
    dv_supervisor_lose(s, &item, 1);
    dv_supervisor_process(s);
}

/* The newest one runs, and is told to stand by. */
static dv_guardian *stands_by(void) {
    dv_guardian *g = newest();
    tell(g, DV_GUARDIAN_STARTED, FIRST_PID + (int)start_count, DV_ENDED_BY_ITSELF);
    dv_supervisor_process(s);
    assert_int_equal(last.kind, DV_CHILD_STANDBY);
    assert_int_equal(last.token, 0);
    return g;
}

/* Sends a datagram to the worker's socket; returns whether that is there. */
static bool send_text(const dv_guardian *g, const char *text) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(g->notify);
    assert_int_equal(g->notify[0], '@');
    memcpy(address.sun_path + 1, g->notify + 1, length - 1);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ssize_t sent = sendto(fd, text, strlen(text), 0, (const struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(fd);
    return sent >= 0;
}

static void say(const dv_guardian *g, const char *text) {
    assert_true(send_text(g, text));
    dv_supervisor_process(s);
}

/* Asserts what has come on the worker's pipe: a line, "" its end, NULL nothing yet. */
static void assert_told_worker(const dv_guardian *g, const char *expected) {
    char line[64] = "";
    int flags = fcntl(g->start_fd, F_GETFL);
    fcntl(g->start_fd, F_SETFL, flags | O_NONBLOCK);
    ssize_t bytes = read(g->start_fd, line, sizeof line - 1);
    if (!expected) {
        assert_int_equal(bytes, -1);
        assert_int_equal(errno, EAGAIN);
        return;
    }
    assert_int_equal(bytes, strlen(expected));
    assert_string_equal(line, expected);
    if (bytes > 0) assert_int_equal(read(g->start_fd, line, sizeof line), 0);
}

/* A command stands by for an item that is on its way, without a token. It says that it is ready, which is told once
 * for each time, and begins when the item is gained: with its token, and without another start. */
TEST(test_stands_by_and_begins) {
    prepare("b");
    dv_guardian *g = stands_by();
    assert_string_equal(g->item, "b");
    assert_string_equal(g->token, "");
    assert_int_equal(ready, 0);
    say(g, "READY=1");
    assert_int_equal(ready, 1);
    assert_string_equal(ready_item, "b");
    assert_int_equal(last.kind, DV_CHILD_READY);
    assert_told_worker(g, NULL);
    assert_int_equal(dv_supervisor_next_ms(s), -1);
    assert_false(dv_supervisor_works(s));
    gain("b", 42);
    assert_true(dv_supervisor_works(s));
    assert_told_worker(g, "42\n");
    assert_int_equal(last.kind, DV_CHILD_BEGUN);
    assert_int_equal(last.token, 42);
    assert_int_equal(start_count, 1);
    assert_true(dv_supervisor_is_clear(s));
    assert_int_equal(dv_supervisor_next_ms(s), -1);
    give_back("b");
    assert_int_equal(g->end_grace_ms, DRAIN_MS);
    assert_false(dv_supervisor_is_clear(s));
    gone(g, 0, DV_ENDED_BY_ORDER);
    assert_true(dv_supervisor_is_clear(s));
    assert_int_equal(last.token, 42);
}

/* An item that is gained without notice has its command told at once; that may say READY=1 too, to no effect. */
TEST(test_gained_without_notice) {
    gain("a", 7);
    dv_guardian *g = runs();
    assert_string_equal(g->token, "7");
    assert_int_equal(last.token, 7);
    assert_told_worker(g, "7\n");
    say(g, "READY=1");
    assert_int_equal(ready, 0);
    assert_int_equal(last.kind, DV_CHILD_STARTED);
}

/* A standby whose item is gained before its start is told of is told as started, since it has begun by then. */
TEST(test_gained_before_it_runs) {
    prepare("a");
    gain("a", 9);
    dv_guardian *g = runs();
    assert_int_equal(last.token, 9);
    assert_told_worker(g, "9\n");
    assert_int_equal(start_count, 1);
}

/* Only the line READY=1 counts, in whichever place; other keys are passed over. */
TEST(test_what_is_ready) {
    prepare("a");
    dv_guardian *g = stands_by();
    static const char *const others[] = {"", "\n", "READY=0", "READY=10", "XREADY=1", "READY=1 ", "STATUS=READY=1"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) say(g, others[i]);
    assert_int_equal(ready, 0);
    static const char *const right[] = {"READY=1", "READY=1\n", "STATUS=warm\nREADY=1\nMAINPID=4\n", "\nREADY=1"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        say(g, right[i]);
        assert_int_equal(ready, i + 1);
    }
}

/* A helper that says it and has gone by the time that it is read counts all the same. */
TEST(test_helper_that_has_gone) {
    prepare("a");
    dv_guardian *g = stands_by();
    pid_t helper = fork();
    if (helper == 0) _exit(send_text(g, "READY=1") ? 0 : 1);
    int status;
    assert_int_equal(waitpid(helper, &status, 0), helper);
    assert_int_equal(status, 0);
    dv_supervisor_process(s);
    assert_int_equal(ready, 1);
}

/* What a process of another user says counts if it is in the worker's group, and else does not. */
static void hear_other_user(const char *item, bool in_group) {
    prepare(item);
    dv_guardian *g = newest();
    int said[2], over[2];
    char byte = 0;
    assert_int_equal(pipe(said), 0);
    assert_int_equal(pipe(over), 0);
    pid_t other = fork();
    if (other == 0) {
        close(over[1]);
        setpgid(0, 0);
        bool sent = setuid(65534) == 0 && send_text(g, "READY=1") && write(said[1], &byte, 1) == 1;
        _exit(sent && read(over[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(said[1]);
    close(over[0]);
    assert_int_equal(read(said[0], &byte, 1), 1);
    tell(g, DV_GUARDIAN_STARTED, in_group ? other : other + 1, DV_ENDED_BY_ITSELF);
    ready = 0;
    dv_supervisor_process(s);
    assert_int_equal(ready, in_group);
    close(over[1]);
    int status;
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(status, 0);
    close(said[0]);
}

/* It takes root to be another user. */
TEST(test_other_user) {
    if (geteuid() != 0) skip();
    hear_other_user("a", false);
    hear_other_user("b", true);
}

/* A standby that dies is started again, later each time; each has a socket of its own. When its item is gained while it
 * waits for that, it is started at once. */
TEST(test_dies_and_restarts) {
    char first[64];
    prepare("a");
    dv_guardian *g = stands_by();
    snprintf(first, sizeof first, "%s", g->notify);
    gone(g, 1 << 8, DV_ENDED_BY_ITSELF);
    assert_int_equal(last.kind, DV_CHILD_EXITED);
    assert_int_equal(last.token, 0);
    assert_int_equal(last.restart_ms, 100);
    assert_false(send_text(g, "READY=1"));
    pass(100);
    g = stands_by();
    assert_string_not_equal(g->notify, first);
    say(g, "READY=1");
    assert_int_equal(ready, 1);
    gone(g, SIGSEGV, DV_ENDED_BY_ITSELF);
    assert_int_equal(last.restart_ms, 200);
    gain("a", 3);
    assert_int_equal(start_count, 3);
    assert_told_worker(runs(), "3\n");
}

/* A standby whose item goes elsewhere sees the end of its pipe, and has the time to drain. It is no reason to hold a
 * RELEASE, but runs until it has gone. */
TEST(test_not_needed) {
    prepare("a");
    dv_guardian *g = stands_by();
    lose("a");
    assert_int_equal(g->end_grace_ms, DRAIN_MS);
    assert_told_worker(g, "");
    assert_true(dv_supervisor_is_clear(s));
    assert_int_equal(dv_supervisor_running(s), 1);
    say(g, "READY=1");
    assert_int_equal(ready, 0);
    gone(g, SIGTERM, DV_ENDED_BY_ORDER);
    assert_int_equal(last.kind, DV_CHILD_ENDED);
    assert_string_equal(last.reason, "not needed");
    assert_int_equal(last.restart_ms, -1);
    assert_int_equal(dv_supervisor_running(s), 0);
    assert_int_equal(dv_supervisor_next_ms(s), -1);
}

/* An item that comes after all, while its standby ends, has another command when that one has gone. */
TEST(test_needed_after_all) {
    prepare("a");
    dv_guardian *g = stands_by();
    lose("a");
    gain("a", 5);
    assert_told_worker(g, "");
    assert_int_equal(start_count, 1);
    assert_true(dv_supervisor_is_clear(s));
    gone(g, 0, DV_ENDED_BY_ORDER);
    assert_int_equal(start_count, 2);
    assert_told_worker(runs(), "5\n");
}

/* An item that was ours, and is on its way again, has its standby started when the last command has gone. */
TEST(test_prepared_while_it_ends) {
    gain("a", 1);
    dv_guardian *g = runs();
    give_back("a");
    prepare("a");
    assert_int_equal(start_count, 1);
    assert_false(dv_supervisor_is_clear(s));
    gone(g, 0, DV_ENDED_BY_ORDER);
    assert_true(dv_supervisor_is_clear(s));
    assert_told_worker(stands_by(), NULL);
}

/* A RELEASE of other items does not wait for a standby, and does not end it. */
TEST(test_release_while_standing_by) {
    prepare("a");
    dv_guardian *waiting = stands_by();
    gain("b", 1);
    dv_guardian *g = runs();
    give_back("b");
    assert_false(dv_supervisor_is_clear(s));
    gone(g, 0, DV_ENDED_BY_ORDER);
    assert_true(dv_supervisor_is_clear(s));
    assert_int_equal(waiting->end_grace_ms, -1);
    gain("a", 2);
    assert_told_worker(waiting, "2\n");
}

/* Telling of an item that is owned, or stands by already, changes nothing. */
TEST(test_prepared_twice) {
    prepare("a");
    dv_guardian *g = stands_by();
    prepare("a");
    gain("a", 1);
    prepare("a");
    assert_int_equal(start_count, 1);
    assert_told_worker(g, "1\n");
    assert_true(dv_supervisor_is_clear(s));
}

/* A standby begins only while the item is owned, whatever was told, and the session has time left. */
TEST(test_begins_only_if_owned) {
    prepare("a");
    dv_guardian *g = stands_by();
    owned = false;
    gain("a", 1);
    assert_told_worker(g, NULL);
    owned = true;
    dv_supervisor_set_time_left(s, now_ms + 50, 2500);
    pass(50);
    assert_told_worker(g, NULL);
    assert_int_equal(dv_supervisor_next_ms(s), -1);
    dv_supervisor_set_time_left(s, now_ms, LEFT_MS);
    dv_supervisor_process(s);
    assert_told_worker(g, "1\n");
}

/* When the session is over all that stand by are ended, and those that wait to be started are forgotten. What works on
 * items is left to those who tell of their loss. */
TEST(test_session_over) {
    gain("a", 1);
    dv_guardian *works = runs();
    prepare("b");
    dv_guardian *g = stands_by();
    prepare("c");
    gone(stands_by(), 0, DV_ENDED_BY_ITSELF);
    dv_supervisor_dismiss(s);
    assert_int_equal(works->end_grace_ms, -1);
    assert_int_equal(g->end_grace_ms, DRAIN_MS);
    assert_told_worker(g, "");
    assert_int_equal(dv_supervisor_next_ms(s), -1);
    gone(g, 0, DV_ENDED_BY_ORDER);
    assert_int_equal(dv_supervisor_running(s), 1);
}

/* A standby that the deadline has ended is started again, as a standby. */
TEST(test_ended_by_deadline) {
    prepare("a");
    gone(stands_by(), SIGTERM, DV_ENDED_BY_DEADLINE);
    assert_int_equal(last.kind, DV_CHILD_ENDED);
    assert_int_equal(start_count, 2);
    assert_told_worker(stands_by(), NULL);
}

/* Told to end, it ends standbys with the rest, and starts none. */
TEST(test_end) {
    prepare("a");
    dv_guardian *g = stands_by();
    dv_supervisor_end(s, DRAIN_MS);
    assert_told_worker(g, "");
    prepare("b");
    assert_int_equal(start_count, 1);
    dv_supervisor_end(s, 0);
    assert_int_equal(g->end_grace_ms, 0);
    gone(g, SIGKILL, DV_ENDED_BY_ORDER);
    assert_string_equal(last.reason, "leaving");
    assert_int_equal(dv_supervisor_running(s), 0);
}

static void reopen(dv_restart restart) {
    dv_supervisor_close(s);
    open_supervisor(restart);
}

/* One whose item is gained, and that has closed its pipe by then. */
static dv_guardian *closes_pipe(const char *item) {
    prepare(item);
    dv_guardian *g = stands_by();
    say(g, "READY=1");
    close(g->start_fd);
    g->start_fd = -1;
    gain(item, 1);
    assert_int_equal(last.kind, DV_CHILD_READY);
    assert_int_equal(g->end_grace_ms, DRAIN_MS);
    assert_int_equal(dv_supervisor_next_ms(s), -1);
    assert_true(dv_supervisor_is_clear(s));
    return g;
}

/* A worker that closes its pipe before it is told to begin has failed, also with --restart never: it is ended, and
 * another one works on the item. */
TEST(test_closed_pipe) {
    reopen(DV_RESTART_NEVER);
    gone(closes_pipe("a"), SIGTERM, DV_ENDED_BY_ORDER);
    assert_int_equal(last.kind, DV_CHILD_FAILED);
    assert_non_null(strstr(last.reason, "DIVVY_START_FD"));
    assert_int_equal(last.pid, FIRST_PID + 1);
    assert_int_equal(last.restart_ms, 100);
    assert_int_equal(dv_supervisor_error(s), 0);
    pass(100);
    assert_int_equal(start_count, 2);
    assert_told_worker(runs(), "1\n");
    assert_int_equal(last.token, 1);
}

/* Its pipe closes as well when it exits: that counts as an exit, and as one that has done nothing for the item. */
TEST(test_exits_as_item_comes) {
    reopen(DV_RESTART_NEVER);
    gone(closes_pipe("a"), 0, DV_ENDED_BY_ITSELF);
    assert_int_equal(last.kind, DV_CHILD_EXITED);
    pass(100);
    assert_told_worker(runs(), "1\n");
}

/* When the item goes elsewhere, a worker that has closed its pipe is not started again. */
TEST(test_closed_pipe_and_revoked) {
    dv_guardian *g = closes_pipe("a");
    give_back("a");
    assert_true(dv_supervisor_is_clear(s));
    gone(g, SIGTERM, DV_ENDED_BY_ORDER);
    assert_int_equal(last.kind, DV_CHILD_FAILED);
    assert_int_equal(last.restart_ms, -1);
    assert_int_equal(dv_supervisor_running(s), 0);
}

/* A worker whose item is owned when it starts has its line by then. It has the token, and may close its pipe. */
TEST(test_told_before_start) {
    gain("a", 7);
    dv_guardian *g = runs();
    assert_int_equal(g->told_bytes, 2);
    prepare("b");
    assert_int_equal(stands_by()->told_bytes, 0);
}

/* Descriptors that a worker sends along are closed. */
TEST(test_sent_descriptors) {
    prepare("a");
    dv_guardian *g = stands_by();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(g->notify);
    memcpy(address.sun_path + 1, g->notify + 1, length - 1);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), before = dup(fd);
    close(before);
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    char text[] = "FDSTORE=1\nREADY=1";
    struct iovec payload = {text, strlen(text)};
    struct msghdr message = {.msg_name = &address,
                             .msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length),
                             .msg_iov = &payload,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(header), (int[2]){0, 0}, 2 * sizeof(int));
    assert_true(sendmsg(fd, &message, 0) > 0);
    dv_supervisor_process(s);
    assert_int_equal(ready, 1);
    int after = dup(fd);
    assert_int_equal(after, before);
    close(after);
    close(fd);
}

TEST_EACH(setup, teardown);
