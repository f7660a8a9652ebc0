/* Which of the processes that come from this one live. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "divvy/descendants.h"
#include "lib/test.h"

enum { CHAINS = 5, LINKS = 60 };

static const dv_descent everything = {.ours_only = false}, ours = {.ours_only = true};
static int said[2]; /* a pipe for what they say */

static void reap(void) {
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
}

static int setup(void **state) {
    (void)state;
    return prctl(PR_SET_CHILD_SUBREAPER, 1) || pipe(said);
}

static int teardown(void **state) {
    (void)state;
    while (!dv_descendants_are_gone(&everything)) dv_descendants_signal(&everything, SIGKILL);
    reap();
    close(said[0]);
    close(said[1]);
    return 0;
}

static void say(void) {
    char byte = 0;
    if (write(said[1], &byte, 1) != 1) _exit(1);
}

static void wait_said(void) {
    char byte;
    assert_int_equal(read(said[0], &byte, 1), 1);
}

static _Noreturn void stay(void) {
    say();
    for (;;) pause();
}

/* Starts a process that starts another one and exits, and so on. Returns a pipe that ends with the last of them. */
static int start_chain(void) {
    int life[2];
    assert_int_equal(pipe(life), 0);
    if (fork() == 0) {
        for (int i = 0; i < LINKS && fork() == 0; i++) continue;
        _exit(0);
    }
    close(life[1]);
    return life[0];
}

static void outlast_chain(bool reaping) {
    int life = start_chain();
    while (!dv_descendants_are_gone(&ours)) {
        if (reaping) reap();
    }
    struct pollfd end = {.fd = life, .events = POLLIN};
    assert_int_equal(poll(&end, 1, 0), 1);
    close(life);
}

/* A process that starts another one and exits does not hide it, where the dead are reaped between the looks. */
TEST(test_chain) {
    for (int i = 0; i < CHAINS; i++) outlast_chain(true);
}

/* Nor does it where nobody reaps them. */
TEST(test_chain_of_unreaped) {
    for (int i = 0; i < CHAINS; i++) {
        outlast_chain(false);
        reap();
    }
}

static void *stay_as_thread(void *user) {
    (void)user;
    stay();
}

/* A process lives as long as one of its threads does, also when its first one has ended. */
TEST(test_first_thread_has_ended) {
    dv_processes list;
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, stay_as_thread, NULL);
        pthread_exit(NULL);
    }
    wait_said();
    for (int i = 0; i < CHAINS; i++) {
        assert_false(dv_descendants_are_gone(&ours));
        usleep(1000); /* The first thread may need a moment to end. */
    }
    assert_int_equal(dv_descendants_find(&list, &ours), 0);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.all[0].pid, pid);
    free(list.all);
    while (!dv_descendants_are_gone(&ours)) dv_descendants_signal(&ours, SIGKILL);
}

/* Starts a daemon in a session of its own. A child that it has left in ours does the work. */
static void start_daemon(void (*work)(void)) {
    if (fork() == 0) {
        pid_t child = fork();
        if (child == 0) {
            work();
            _exit(0);
        }
        siginfo_t info;
        if (work != stay) waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
        setsid();
        stay();
    }
    wait_said();
}

static void do_nothing(void) {}

/* A daemon is none of our session, and what has died below it and is never reaped keeps nobody waiting. */
TEST(test_daemon) {
    start_daemon(do_nothing);
    assert_true(dv_descendants_are_gone(&ours));
    assert_false(dv_descendants_are_gone(&everything));
}

/* What a daemon has left in our session is found, and can be ended alone. */
TEST(test_left_by_daemon) {
    dv_processes list;
    start_daemon(stay);
    wait_said();
    assert_false(dv_descendants_are_gone(&ours));
    while (!dv_descendants_are_gone(&ours)) dv_descendants_signal(&ours, SIGKILL);
    assert_int_equal(dv_descendants_find(&list, &everything), 0);
    assert_int_equal(list.count, 1);
    free(list.all);
}

/* Those that are spared are not meant, nor what comes from them. */
TEST(test_spared) {
    pid_t spared = fork();
    if (spared == 0) {
        fork();
        stay();
    }
    pid_t other = fork();
    if (other == 0) stay();
    for (int i = 0; i < 3; i++) wait_said();
    dv_descent which = {.spared = &spared, .spared_count = 1};
    dv_processes list;
    assert_int_equal(dv_descendants_find(&list, &which), 0);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.all[0].pid, other);
    free(list.all);
    while (!dv_descendants_are_gone(&which)) dv_descendants_signal(&which, SIGKILL);
    assert_int_equal(dv_descendants_find(&list, &everything), 0);
    assert_int_equal(list.count, 2);
    free(list.all);
}

/* Calls that the kernel refuses, with this error; 0: none. */
static long refused_call;
static int refused_error;

/* Only dv_process_signal() uses syscall(3). */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
    long a[4];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 4; i++) a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (!refused_error || number != refused_call) return __real_syscall(number, a[0], a[1], a[2], a[3]);
    errno = refused_error;
    return -1;
}

static bool has_ended(pid_t pid) {
    for (int i = 0; i < 5000; i++) {
        if (waitpid(pid, NULL, WNOHANG) == pid) return true;
        usleep(1000);
    }
    return false;
}

static void kill_daemon(long call, int error) {
    dv_processes list;
    start_daemon(do_nothing);
    assert_int_equal(dv_descendants_find(&list, &everything), 0);
    assert_int_equal(list.count, 1);
    refused_call = call;
    refused_error = error;
    dv_process former = list.all[0];
    former.started--;
    dv_process_signal(&former, SIGKILL);
    assert_false(dv_descendants_are_gone(&everything));
    dv_process_signal(&list.all[0], SIGTERM);
    refused_error = 0;
    assert_true(has_ended(list.all[0].pid));
    free(list.all);
}

/* A daemon is ended also where the kernel refuses pidfds, but not the process that has a former one's number. */
TEST(test_without_pidfds) {
    kill_daemon(SYS_pidfd_open, ENOSYS);
    kill_daemon(SYS_pidfd_open, EPERM);
    kill_daemon(SYS_pidfd_send_signal, EPERM);
}

static pthread_barrier_t looked;

static void *start_child(void *nothing) {
    if (fork() == 0) stay();
    wait_said();
    pthread_barrier_wait(&looked);
    pthread_barrier_wait(&looked);
    return nothing;
}

/* A child is found whichever thread has started it. */
TEST(test_child_of_thread) {
    pthread_t thread;
    dv_processes list;
    pthread_barrier_init(&looked, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, start_child, NULL), 0);
    pthread_barrier_wait(&looked);
    assert_int_equal(dv_descendants_find(&list, &everything), 0);
    assert_int_equal(list.count, 1);
    free(list.all);
    pthread_barrier_wait(&looked);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&looked);
}

/* Returns how many bytes this process has read; -1 where the kernel does not count them. */
static long read_bytes(void) {
    long bytes = -1;
    FILE *file = fopen("/proc/self/io", "r");
    if (!file) return -1;
    if (fscanf(file, "rchar: %ld", &bytes) != 1) bytes = -1;
    fclose(file);
    return bytes;
}

enum { STRANGERS = 200 };

/* Begins with a child of its own. Tells by its status whether that was found without a look at the others. */
static _Noreturn void find_child(void) {
    dv_processes list;
    if (fork() == 0) stay();
    long before = read_bytes();
    bool found = dv_descendants_find(&list, &everything) == 0 && list.count == 1;
    long used = read_bytes() - before;
    bool listed = before >= 0 && access("/proc/thread-self/children", R_OK) == 0;
    _exit(!found || (listed && used >= 50 * STRANGERS));
}

/* Hundreds of guardians look at the same moment: each at what comes from it, and not at all processes. */
TEST(test_strangers) {
    for (int i = 0; i < STRANGERS; i++) {
        if (fork() == 0) stay();
    }
    pid_t one = fork();
    if (one == 0) find_child();
    for (int i = 0; i < STRANGERS + 1; i++) wait_said();
    int status;
    assert_int_equal(waitpid(one, &status, 0), one);
    assert_int_equal(status, 0);
}

enum { DENIED = 3 }; /* Some containers deny namespaces to root. */

/* Runs `check` as the first process of a namespace of its own, whose status is that of `check`. It takes root. */
static int in_namespace(void (*check)(void), int flags) {
    int status;
    pid_t outer = fork();
    if (outer == 0) {
        if (unshare(flags) != 0) _exit(DENIED);
        pid_t first = fork();
        if (first == 0) check();
        waitpid(first, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    assert_int_equal(waitpid(outer, &status, 0), outer);
    return WEXITSTATUS(status);
}

static void look_at_daemon(void) {
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("proc", "/proc", "proc", 0, NULL) != 0)
        _exit(DENIED);
    start_daemon(do_nothing);
    _exit(!(getsid(0) == 0 && dv_descendants_are_gone(&ours) && !dv_descendants_are_gone(&everything)));
}

/* A daemon is none of our session also where that began in a namespace above ours, and has no number here. */
TEST(test_session_from_above) {
    int status = geteuid() == 0 ? in_namespace(look_at_daemon, CLONE_NEWPID | CLONE_NEWNS) : DENIED;
    if (status == DENIED) skip();
    assert_int_equal(status, 0);
}

/* Tells whether somebody is taken for gone in a namespace whose processes /proc does not show. */
static void look_from_namespace(void) {
    enum { AGAIN = 2 };
    for (;;) {
        char path[32];
        int status;
        pid_t pid = fork();
        snprintf(path, sizeof path, "/proc/%d", (int)getpid());
        if (pid == 0 && access(path, F_OK) == 0) _exit(AGAIN); /* Its number is another's there. */
        if (pid == 0 && fork() == 0) stay();
        if (pid == 0) _exit(dv_descendants_are_gone(&everything));
        if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != AGAIN) _exit(WEXITSTATUS(status));
    }
}

/* Where /proc has the numbers of another namespace, nobody is taken for gone. */
TEST(test_other_numbers) {
    int status = geteuid() == 0 ? in_namespace(look_from_namespace, CLONE_NEWPID) : DENIED;
    if (status == DENIED) skip();
    assert_int_equal(status, 0);
}

TEST_EACH(setup, teardown);
