/* Tests of zookeeper/watcher.h: what a death watch takes in. SPDX-License-Identifier: Apache-2.0 */
#include "zookeeper/watcher.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/death_watch.h"
#include "lib/test.h"
#include "lib/wait.h"

/* A watch, the member's end of its socket, and a process in the member's place. */
typedef struct {
    dv_watcher watcher;
    int member_fd;
    pid_t member;
} scene;

static scene begin(void) {
    scene s;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    s.member = fork();
    if (s.member == 0)
        for (;;) pause();
    assert_true(s.member > 0);
    int process_fd = (int)syscall(SYS_pidfd_open, s.member, 0);
    assert_true(process_fd >= 0);
    assert_int_equal(dv_watcher_init(&s.watcher, ends[0], process_fd), 0);
    s.member_fd = ends[1];
    return s;
}

static void kill_member(scene *s) {
    siginfo_t info;
    kill(s->member, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)s->member, &info, WEXITED | WNOWAIT), 0); /* It stays a zombie. */
}

static void end(scene *s, int socket_fd) {
    if (!s->watcher.ended_ms) kill_member(s);
    waitpid(s->member, NULL, 0);
    close(s->member_fd);
    close(socket_fd);
    close(s->watcher.process_fd);
}

static void tell(const scene *s, int64_t session_id, int64_t timeout_ms) {
    char message[1024];
    dv_will will = {.session_id = session_id, .timeout_ms = timeout_ms, .texts = {[DV_WILL_HOSTS] = "127.0.0.1:1"}};
    size_t bytes = dv_will_print(&will, message, sizeof message);
    assert_int_equal(send(s->member_fd, message, bytes, 0), bytes);
}

/* The newest will counts. One without a session, or that cannot be understood, leaves none. */
TEST(test_newest_will) {
    scene s = begin();
    dv_watcher_listen(&s.watcher);
    assert_false(dv_watcher_has_will(&s.watcher));
    tell(&s, 5, 1000);
    tell(&s, 6, 3000);
    dv_watcher_listen(&s.watcher);
    dv_will will;
    assert_true(dv_watcher_has_will(&s.watcher));
    assert_int_equal(dv_will_parse(&will, s.watcher.message, s.watcher.bytes), 0);
    assert_int_equal(will.session_id, 6);
    tell(&s, 0, 0);
    dv_watcher_listen(&s.watcher);
    assert_false(dv_watcher_has_will(&s.watcher));
    tell(&s, 7, 1000);
    assert_int_equal(send(s.member_fd, "nonsense", 8, 0), 8);
    dv_watcher_listen(&s.watcher);
    assert_false(dv_watcher_has_will(&s.watcher));
    end(&s, s.watcher.socket_fd);
}

/* Nothing of a will that is void stays in memory. */
TEST(test_forgets) {
    static const char zeroes[DV_WILL_BYTES_MAX];
    scene s = begin();
    tell(&s, 5, 1000);
    tell(&s, 0, 0);
    dv_watcher_listen(&s.watcher);
    assert_memory_equal(s.watcher.message, zeroes, sizeof zeroes);
    end(&s, s.watcher.socket_fd);
}

/* That the socket closes leaves the will as it is, and is no end of the process. */
TEST(test_socket_closes) {
    scene s = begin();
    int socket_fd = s.watcher.socket_fd;
    tell(&s, 5, 1000);
    shutdown(s.member_fd, SHUT_RDWR);
    dv_watcher_listen(&s.watcher);
    assert_int_equal(s.watcher.socket_fd, -1);
    assert_true(dv_watcher_has_will(&s.watcher));
    assert_false(dv_watcher_has_ended(&s.watcher));
    dv_watcher_execute(&s.watcher); /* The process lives: nothing is done. */
    assert_true(dv_watcher_has_will(&s.watcher));
    end(&s, socket_fd);
}

/* A process that lives on without its socket is waited for until its session must have ended; without a session, not
 * at all. */
TEST(test_waits_in_silence) {
    enum { TIMEOUT_MS = 100 };
    for (int64_t session_id = 0; session_id <= 1; session_id++) {
        scene s = begin();
        int socket_fd = s.watcher.socket_fd;
        tell(&s, session_id, TIMEOUT_MS);
        shutdown(s.member_fd, SHUT_RDWR);
        int64_t from_ms = dv_test_now_ms();
        assert_false(dv_watcher_wait(&s.watcher));
        assert_int_equal(dv_test_now_ms() - from_ms >= 2 * TIMEOUT_MS, session_id);
        end(&s, socket_fd);
    }
}

/* What a process said just before its end has been taken in when it is seen to have ended. */
TEST(test_last_words) {
    scene s = begin();
    assert_false(dv_watcher_has_ended(&s.watcher));
    tell(&s, 5, 1000);
    kill_member(&s);
    assert_true(dv_watcher_has_ended(&s.watcher));
    assert_true(dv_watcher_has_will(&s.watcher));
    end(&s, s.watcher.socket_fd);
}

/* Where no server answers, the will is executed for twice its timeout, and void then. */
TEST(test_gives_up) {
    scene s = begin();
    tell(&s, 5, 100);
    kill_member(&s);
    assert_true(dv_watcher_has_ended(&s.watcher));
    dv_watcher_execute(&s.watcher);
    assert_false(dv_watcher_has_will(&s.watcher));
    end(&s, s.watcher.socket_fd);
}

/* A process that a watch forks has nothing of the will. */
TEST(test_fork_has_no_will) {
    scene s = begin();
    int status;
    tell(&s, 5, 1000);
    dv_watcher_listen(&s.watcher);
    assert_true(s.watcher.message[0] != 0);
    pid_t child = fork();
    if (child == 0) {
        char all = 0;
        for (size_t i = 0; i < DV_WILL_BYTES_MAX; i++) all = (char)(all | s.watcher.message[i]);
        _exit(all != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    end(&s, s.watcher.socket_fd);
}
