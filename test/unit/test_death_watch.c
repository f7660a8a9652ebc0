/* Tests of client/death_watch.h: the client's side, and its program. SPDX-License-Identifier: Apache-2.0 */
#include "client/death_watch.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/scarce.h"
#include "lib/test.h"
#include "lib/wait.h"

enum { PATIENCE_MS = 30000 };

/* What pidfd_open(2) says; 0: what the kernel does. */
static int refusal;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* Every call of ours, of at most six arguments. */
long __wrap_syscall(long number, ...) {
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_pidfd_open && refusal) {
        errno = refusal;
        return -1;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static divvy_client_config watched(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = "127.0.0.1:1"; /* where no server is */
    config.ensemble_tick_ms = 2000;
    config.death_watch = 1;
    return config;
}

static unsigned descriptors(void) {
    unsigned count = 0;
    DIR *entries = opendir("/proc/self/fd");
    assert_non_null(entries);
    while (readdir(entries)) count++;
    closedir(entries);
    return count;
}

static int set_up(void **state) {
    (void)state;
    setenv("DIVVY_LIBEXEC", DIVVY_BINARY_DIR "/tools", 1);
    return 0;
}

static bool has_no_child(void) {
    return waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD;
}

/* A client that cannot have its watch is refused with these words, and leaves nothing. */
static void check_refused(const divvy_client_config *config, int expected, const char *words) {
    divvy_client *client = (divvy_client *)(void *)&client;
    unsigned before = descriptors();
    int error = divvy_client_open(&client, config);
    if (error != expected || !strstr(divvy_client_error(NULL), words))
        fail_msg("%s: %s", divvy_strerror(error), divvy_client_error(NULL));
    assert_null(client);
    assert_int_equal(descriptors(), before);
    assert_true(has_no_child());
}

/* --- the program ------------------------------------------------------------------------------------------------ */

/* A client that has no session yet has its watch, which goes with it. */
TEST_IN(test_comes_and_goes, set_up, NULL) {
    divvy_client *client;
    divvy_client_config config = watched();
    unsigned before = descriptors();
    int status;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* The watch, an orphan, is our child then. */
    assert_int_equal(divvy_client_open(&client, &config), 0);
    pid_t watch = -1;
    assert_int_equal(waitpid(-1, &status, WNOHANG), 0);
    divvy_client_close(client);
    assert_true(DV_WAIT((watch = waitpid(-1, &status, WNOHANG)) != 0, PATIENCE_MS));
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    assert_true(watch > 0);
    assert_int_equal(status, 0);
    assert_true(has_no_child());
    assert_int_equal(descriptors(), before);
}

/* Makes a folder with a program of that text. Returns its path. */
static const char *folder_with(const char *text, mode_t mode) {
    static char folder[64];
    char path[128];
    snprintf(folder, sizeof folder, "/tmp/divvy-death-watch-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/divvy-death-watch", folder);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(path, mode);
    return folder;
}

static void check_program(const char *text, mode_t mode, const char *words) {
    char path[128];
    const char *folder = folder_with(text, mode);
    divvy_client_config config = watched();
    setenv("DIVVY_LIBEXEC", folder, 1);
    check_refused(&config, DIVVY_ESYSTEM, words);
    assert_non_null(strstr(divvy_client_error(NULL), folder));
    snprintf(path, sizeof path, "%s/divvy-death-watch", folder);
    unlink(path);
    rmdir(folder);
}

/* A signal to the host's whole group does not end the program, and what the host ignores is of no concern to it. */
TEST_IN(test_signals, set_up, NULL) {
    const char *folder = folder_with(
        "#!/bin/sh\nexec sed -n 's/^SigBlk://p;s/^SigIgn://p' /proc/self/status > \"${0%/*}/signals\"\n", 0700);
    divvy_client_config config = watched();
    char path[128];
    unsigned long long blocked, ignored;
    setenv("DIVVY_LIBEXEC", folder, 1);
    signal(SIGUSR1, SIG_IGN);
    check_refused(&config, DIVVY_ESYSTEM, folder);
    signal(SIGUSR1, SIG_DFL);
    snprintf(path, sizeof path, "%s/signals", folder);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llx %llx", &blocked, &ignored), 2);
    fclose(file);
    assert_true(blocked & 1ULL << (SIGTERM - 1) && blocked & 1ULL << (SIGHUP - 1));
    assert_false(ignored & 1ULL << (SIGUSR1 - 1));
    unlink(path);
    snprintf(path, sizeof path, "%s/divvy-death-watch", folder);
    unlink(path);
    rmdir(folder);
}

/* A program that is missing, that may not be run, that ends at once, that says something else, and that says nothing,
 * is none: the message says where it is. One that says nothing is killed. */
TEST_IN(test_no_program, set_up, NULL) {
    divvy_client_config config = watched();
    setenv("DIVVY_LIBEXEC", "/nonexistent", 1);
    check_refused(&config, DIVVY_ESYSTEM, "/nonexistent/divvy-death-watch cannot be started: No such file");
    assert_non_null(strstr(divvy_client_error(NULL), "$DIVVY_LIBEXEC"));
    check_program("#!/bin/sh\n", 0644, "Permission denied");
    check_program("#!/bin/sh\nexit 0\n", 0755, "ended or said nothing");
    check_program("#!/bin/sh\nprintf x >&3\n", 0755, "ended or said nothing");
    check_program("#!/bin/sh\nexec sleep 1000\n", 0755, "ended or said nothing");
}

/* --- when it is refused ----------------------------------------------------------------------------------------- */

/* On or off, and nothing else. */
TEST_IN(test_values, set_up, NULL) {
    divvy_client_config config = watched();
    config.death_watch = 2;
    check_refused(&config, DIVVY_EINVAL, "death_watch is 2");
    config.death_watch = -1;
    check_refused(&config, DIVVY_EINVAL, "death_watch is -1");
}

/* A kernel without pidfds has no watch, and the message names the release that has. Where there are too many open
 * files, that is said. */
TEST_IN(test_no_pidfd, set_up, NULL) {
    static const struct {
        int refusal, error;
        const char *words;
    } cases[] = {{ENOSYS, DIVVY_EUNSUPPORTED, "5.3"},
                 {EPERM, DIVVY_EUNSUPPORTED, "pidfd"},
                 {EMFILE, DIVVY_ESYSTEM, "Too many open files"}};
    divvy_client_config config = watched();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        refusal = cases[i].refusal;
        check_refused(&config, cases[i].error, cases[i].words);
        refusal = 0;
    }
}

/* The ensemble in memory has no session that another process could end. */
TEST_IN(test_ensemble, set_up, NULL) {
    divvy_client *client;
    divvy_testing_ensemble *ensemble;
    divvy_client_config config = watched();
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, NULL), 0);
    config.manual = 1;
    int error = divvy_testing_client_open(&client, ensemble, &config);
    if (error != DIVVY_EUNSUPPORTED) fail_msg("%s", divvy_client_error(NULL));
    assert_non_null(strstr(divvy_client_error(NULL), "death_watch"));
    divvy_testing_ensemble_destroy(ensemble);
}

/* What does not fit into one message is refused, as the watch could not be told. */
TEST_IN(test_too_long, set_up, NULL) {
    static char service[DV_WILL_BYTES_MAX + 1];
    divvy_client *client;
    divvy_client_config config = watched();
    memset(service, 's', sizeof service - 1);
    config.sasl_service = service; /* Other texts have limits of their own. */
    config.death_watch = 0;
    assert_int_equal(divvy_client_open(&client, &config), 0);
    divvy_client_close(client);
    config.death_watch = 1;
    check_refused(&config, DIVVY_EINVAL, "65536");
}

/* Whichever allocation fails, the client is opened, or refused for it; then its watch has gone, and nothing is left. */
TEST_IN(test_scarce_memory, set_up, NULL) {
    divvy_client *client;
    divvy_client_config config = watched();
    unsigned before = descriptors(), refused = 0;
    int status;
    config.manual = 1;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (bool failed = true; failed;) {
        static long after;
        assert_int_equal(divvy_client_open(NULL, &config), DIVVY_EINVAL); /* "out is NULL" */
        scarce_after = after++;
        int error = divvy_client_open(&client, &config);
        failed = scarce_after < 0;
        scarce_after = -1;
        refused += error != 0;
        if (error) assert_int_equal(error, DIVVY_ENOMEM);
        if (error) assert_null(strstr(divvy_client_error(NULL), "out is NULL"));
        else divvy_client_close(client);
        assert_true(DV_WAIT(waitpid(-1, &status, WNOHANG) < 0 && errno == ECHILD, PATIENCE_MS));
        assert_int_equal(descriptors(), before);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    assert_true(refused > 5);
}

/* --- what it is told -------------------------------------------------------------------------------------------- */

/* Returns the will that comes next; the rest of the message is kept until the next call. */
static dv_will hear(int fd) {
    static char message[DV_WILL_BYTES_MAX];
    dv_will will;
    ssize_t bytes = recv(fd, message, sizeof message, 0);
    assert_true(bytes > 0);
    assert_int_equal(dv_will_parse(&will, message, (size_t)bytes), 0);
    return will;
}

static dv_death_watch *use(int ends[2], const divvy_client_config *config) {
    dv_death_watch *watch;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(dv_death_watch_use(&watch, config, ends[0]), 0);
    return watch;
}

/* A will has the session, its password, and how to reach the servers, but for the chroot. After "forget" it has
 * neither session nor password. */
TEST(test_told) {
    static const char password[DV_SESSION_PASSWORD_BYTES] = "0123456789abcde", none[DV_SESSION_PASSWORD_BYTES];
    int ends[2];
    divvy_client_config config = watched();
    config.hosts = "a:1,b:2/some/root";
    config.auth_scheme = "digest";
    config.auth = "u:p";
    config.acl = DIVVY_ACL_CREATOR;
    config.failover_delay_ms = 4321;
    config.tls_ca_file = "/ca";
    config.sasl_host = "host";
    dv_death_watch *watch = use(ends, &config);
    dv_death_watch_tell(watch, -7, 12000, password);
    dv_will will = hear(ends[1]);
    assert_int_equal(will.session_id, -7);
    assert_int_equal(will.timeout_ms, 12000);
    assert_int_equal(will.acl, DIVVY_ACL_CREATOR);
    assert_int_equal(will.delay_ms, 4321);
    assert_memory_equal(will.password, password, sizeof password);
    assert_string_equal(will.texts[DV_WILL_HOSTS], "a:1,b:2");
    assert_string_equal(will.texts[DV_WILL_AUTH], "u:p");
    assert_string_equal(will.texts[DV_WILL_TLS_CA_FILE], "/ca");
    assert_string_equal(will.texts[DV_WILL_SASL_HOST], "host");
    assert_null(will.texts[DV_WILL_TLS_KEY_FILE]);
    dv_death_watch_forget(watch);
    will = hear(ends[1]);
    assert_int_equal(will.session_id, 0);
    assert_memory_equal(will.password, none, sizeof none);
    dv_death_watch_free(watch);
    assert_int_equal(close(ends[0]), 0); /* It was the caller's. */
    close(ends[1]);
}

/* A watch that reads nothing holds nobody up; one that has ended is known to have. */
TEST(test_does_not_listen) {
    enum { MANY = 100000 };
    static const char password[DV_SESSION_PASSWORD_BYTES] = "0123456789abcde";
    int ends[2];
    divvy_client_config config = watched();
    dv_death_watch *watch = use(ends, &config);
    for (int i = 1; i <= MANY; i++) dv_death_watch_tell(watch, i, 12000, password);
    assert_true(dv_death_watch_lives(watch));
    close(ends[1]);
    assert_false(dv_death_watch_lives(watch));
    dv_death_watch_tell(watch, 1, 12000, password);
    dv_death_watch_forget(watch);
    dv_death_watch_free(watch);
    close(ends[0]);
    assert_false(dv_death_watch_lives(NULL));
    dv_death_watch_forget(NULL);
    dv_death_watch_free(NULL);
}
