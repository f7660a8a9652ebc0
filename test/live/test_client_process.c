/* Tests of what a client does to its process: threads, signals, forks, output. SPDX-License-Identifier: Apache-2.0
 *
 * Shows what the kernel shows of a client: threads, signals, forks, descriptors, output. */
#include "client_fixture.h"

/* --- what a process notices ------------------------------------------------------------------------------------- */

/* Bits of a thread's blocked signals that a program can block: all but SIGKILL, SIGSTOP, and the two of glibc's. */
#define BLOCKABLE (~(1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) | 1ull << 31 | 1ull << 32))

/* Returns whether the thread is still there: one that asks the server for its tick, or for names, ends by itself. */
static bool check_signals_blocked(const char *task) {
    char path[300], line[256];
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "re");
    if (!file && errno == ENOENT) return false;
    assert_non_null(file);
    bool read = false;
    while (fgets(line, sizeof line, file)) read |= sscanf(line, "SigBlk: %llx", &blocked) == 1;
    fclose(file);
    if (!read) return false;
    if ((blocked & BLOCKABLE) != BLOCKABLE) fail_msg("thread %s takes signals: SigBlk %llx", task, blocked);
    return true;
}

/* All threads that a client starts have all signals blocked; its own descriptors are not inherited by a program that
 * is executed; after close none of either is left. */
TEST(test_threads_and_descriptors) {
    enum { KNOWN_MAX = 64 };
    char known[KNOWN_MAX][32];
    size_t known_count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks)) && known_count < KNOWN_MAX;)
        snprintf(known[known_count++], sizeof known[0], "%.31s", entry->d_name);
    closedir(tasks);
    witness w;
    char list[64];
    snprintf(list, sizeof list, "localhost:%s", strrchr(hosts(), ':') + 1); /* the native threads are started by ours */
    divvy_client_config config = witness_config(&w, list);
    divvy_client *client = open_connected(&config);
    unsigned seen = 0, ours = 0;
    tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));) {
        bool is_known = entry->d_name[0] == '.';
        for (size_t i = 0; i < known_count; i++) is_known |= strcmp(known[i], entry->d_name) == 0;
        if (is_known) continue;
        seen += check_signals_blocked(entry->d_name);
    }
    closedir(tasks);
    assert_true(seen >= 4);
    DIR *fds = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(fds));) {
        char path[300], target[256] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof target - 1) < 0 || !strstr(target, "eventfd")) continue;
        assert_true(fcntl(atoi(entry->d_name), F_GETFD) & FD_CLOEXEC);
        ours++;
    }
    closedir(fds);
    assert_true(ours >= 1);
    divvy_client_close(client);
    assert_true(DV_WAIT(threads() == threads_at_rest, PATIENCE_MS));
    assert_int_equal(descriptors(), descriptors_at_rest);
    witness_end(&w);
}

static volatile sig_atomic_t signals_seen;

static void on_signal(int number) {
    (void)number;
    signals_seen++;
}

/* A signal sent to the process is taken by the host's own thread, also while that waits in a call of ours. */
TEST(test_signals_go_to_the_host) {
    int fd;
    witness w;
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigaction(SIGUSR1, &action, &before);
    divvy_client_config config = witness_config(&w, dead_address(&fd));
    divvy_client *client = open_with(&config);
    signals_seen = 0;
    for (int i = 1; i <= 20; i++) {
        kill(getpid(), SIGUSR1); /* Delivered before it returns, if no other thread has it unblocked. */
        assert_int_equal(signals_seen, i);
    }
    ASSERT_FAILS(divvy_client_wait_connected(client, 100), DIVVY_ETIMEDOUT, client, "");
    divvy_client_close(client);
    sigaction(SIGUSR1, &before, NULL);
    witness_end(&w);
    close(fd);
}

/* In the child of a fork every call says DIVVY_EFORK, close and destroy do nothing; the parent goes on undisturbed. */
TEST(test_fork) {
    static const char *const items[] = {"a", "b"};
    witness w;
    divvy_party *party;
    divvy_partitioner *p;
    divvy_strings *members;
    divvy_client_config config = witness_config(&w, hosts());
    divvy_client *client = open_connected(&config);
    divvy_partitioner_config p_config = dv_test_partitioner_config("/fork/pool", items, 2, 0);
    assert_int_equal(divvy_party_join(&party, client, "/fork/party", "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_partitioner_create(&p, client, &p_config), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    int64_t session = divvy_client_session_id(client);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        divvy_party *another_party;
        divvy_partitioner *another_p;
        divvy_stats stats;
        int wrong = 0;
        wrong |= (divvy_client_wait_connected(client, 0) != DIVVY_EFORK) << 0;
        wrong |= (!strstr(divvy_client_error(client), "fork")) << 1;
        wrong |= (divvy_client_process(client, 0) != DIVVY_EFORK) << 2;
        wrong |= (divvy_client_stats(client, &stats, sizeof stats) != DIVVY_EFORK) << 3;
        wrong |= (divvy_party_join(&another_party, client, "/fork/party", "x", DIVVY_PARTY) != DIVVY_EFORK) << 4;
        wrong |= (divvy_party_members(party, &members, 1000) != DIVVY_EFORK || members) << 5;
        wrong |= (divvy_party_leave(party, 1000) != DIVVY_EFORK) << 6;
        wrong |= (divvy_partitioner_create(&another_p, client, &p_config) != DIVVY_EFORK) << 7;
        wrong |= (divvy_partitioner_wait_for_acquire(p, 1000) != DIVVY_EFORK) << 8;
        wrong |= (divvy_partitioner_wait_change(p, 0, 1000) != DIVVY_EFORK) << 9;
        wrong |= (divvy_partitioner_release_set(p) != DIVVY_EFORK) << 10;
        wrong |= (divvy_partitioner_finish(p, 1000) != DIVVY_EFORK) << 11;
        wrong |= (divvy_partitioner_owns(p, "a") != 0) << 12;
        wrong |= (divvy_client_time_left_ms(client) != 0) << 13;
        divvy_partitioner_destroy(p);
        divvy_party_destroy(party);
        divvy_client_close(client);
        if (wrong) fprintf(stderr, "in the child, by bits: %#x\n", wrong);
        _exit(wrong != 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    assert_int_equal(divvy_strings_count(members), 1);
    divvy_strings_free(members);
    assert_int_equal(divvy_partitioner_owns(p, "a"), 1);
    assert_int_equal(divvy_partitioner_finish(p, PATIENCE_MS), 0);
    divvy_partitioner_destroy(p);
    divvy_party_destroy(party);
    assert_int_equal(divvy_client_session_id(client), session);
    assert_true(DV_WAIT(witness_told(&w, "C"), PATIENCE_MS));
    divvy_client_close(client);
    witness_end(&w);
}
#if !defined(__SANITIZE_THREAD__)
/* A child of a fork may open a client of its own, also while the parent's threads are busy. */
TEST(test_open_in_the_child) {
    witness w;
    divvy_client_config config = witness_config(&w, hosts());
    divvy_client *client = open_connected(&config);
    for (int round = 0; round < 5; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            witness own_witness;
            divvy_client_config own_config = witness_config(&own_witness, hosts());
            divvy_client *own;
            alarm(PATIENCE_MS / 1000);
            int error = divvy_client_open(&own, &own_config);
            if (!error) error = divvy_client_wait_connected(own, PATIENCE_MS / 2);
            if (error) fprintf(stderr, "in the child: %s\n", divvy_client_error(error ? NULL : own));
            if (!error) divvy_client_close(own);
            _exit(error != 0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED);
    divvy_client_close(client);
    witness_end(&w);
}
#endif

/* --- what it says ----------------------------------------------------------------------------------------------- */

static void work_and_suffer(divvy_client_config *config, dv_test_proxy *proxy) {
    divvy_party *party;
    divvy_strings *members;
    divvy_client *client = open_connected(config);
    assert_int_equal(divvy_party_join(&party, client, "/said", "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    divvy_strings_free(members);
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_SUSPENDED, PATIENCE_MS));
    dv_test_proxy_restore(proxy);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    dv_test_proxy_cut(proxy);
    witness *w = config->user;
    assert_true(DV_WAIT(witness_told(w, "CSCSLN"), PATIENCE_MS));
    ASSERT_FAILS(divvy_client_wait_connected(client, 100), DIVVY_ETIMEDOUT, client, "wait_connected");
    ASSERT_FAILS(divvy_party_members(party, &members, 100), DIVVY_ETIMEDOUT, client, "/said");
    dv_test_proxy_restore(proxy);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    divvy_strings_free(members);
    divvy_party_destroy(party);
    /* Before the close, which drops what is queued. */
    assert_true(DV_WAIT(witness_told(w, "CSCSLNC"), PATIENCE_MS));
    assert_true(!config->on_log || DV_WAIT(witness_logged(w, "has ended"), PATIENCE_MS));
    divvy_client_close(client);
}

/* Nothing is written to stdout or stderr, whether there is a log callback or not, through reconnect, loss and a new
 * session. */
TEST(test_silence) {
    char name[] = "/tmp/divvy-silence-XXXXXX", text[4096];
    witness w;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    int file = mkostemp(name, O_CLOEXEC), out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    assert_true(file >= 0 && out >= 0 && err >= 0);
    unlink(name);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    for (int round = 0; round < 2; round++) {
        divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
        config.session_timeout_ms = 6000;
        if (round == 1) config.on_log = NULL;
        work_and_suffer(&config, proxy);
        if (w.log) free(w.log);
    }
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    ssize_t bytes = pread(file, text, sizeof text - 1, 0);
    assert_true(bytes >= 0);
    text[bytes] = '\0';
    close(file);
    dv_test_proxy_stop(proxy);
    assert_string_equal(text, "");
}

/* The log has lines of ours and of the native client's, with levels; the password is in none of them, at whatever
 * level, nor in any message. */
TEST(test_log_without_credentials) {
    witness w;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = 6000;
    config.auth_scheme = "digest";
    config.auth = "someone:open-sesame";
    zoo_set_debug_level(ZOO_LOG_LEVEL_DEBUG);
    work_and_suffer(&config, proxy);
    zoo_set_debug_level(ZOO_LOG_LEVEL_INFO);
    assert_non_null(strstr(w.log, "3 connected: session 0x"));
    assert_non_null(strstr(w.log, "2 the connection is down"));
    assert_non_null(strstr(w.log, "has ended"));
    assert_non_null(strstr(w.log, "4 ")); /* a line of the native client's at the level that was set */
    assert_non_null(strstr(w.log, "zk")); /* it names its functions */
    assert_null(strstr(w.log, "sesame"));
    assert_null(strstr(divvy_client_error(NULL), "sesame"));
    witness_end(&w);
    dv_test_proxy_stop(proxy);
}

/* The counters tell what was done, and what is there now goes back to nothing. */
TEST(test_stats) {
    witness w;
    divvy_stats s, before;
    divvy_party *party;
    divvy_strings *members;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    divvy_client *client = open_with(&config);
    memset(&before, 0xff, sizeof before);
    assert_int_equal(divvy_client_stats(client, &before, sizeof before), 0);
    assert_int_equal(before.requests, 0);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_int_equal(divvy_party_join(&party, client, "/stats", "me", DIVVY_PARTY), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
        divvy_strings_free(members);
    }
    assert_true(DV_WAIT(divvy_client_stats(client, &s, sizeof s) == 0 && s.in_flight == 0, PATIENCE_MS));
    assert_int_equal(s.connects, 1);
    assert_int_equal(s.session_events, 1);
    assert_int_equal(s.children, 3);
    assert_true(s.creates == 2 || s.creates == 1); /* the directory, if this test is the first to use it; the node */
    assert_int_equal(s.ephemerals, 1);
    assert_true(s.ephemeral_path_bytes > strlen("/stats/__party__"));
    assert_int_equal(s.watches, 1);
    assert_true(s.watch_path_bytes > strlen("/stats/__party__"));
    assert_true(s.gets >= 4); /* one to watch our node, three to list */
    assert_int_equal(s.deletes + s.sets + s.failed, 0);
    assert_true(s.checks >= 1); /* a connection begins with a heartbeat; there may have been more by now */
    assert_int_equal(s.multis, s.checks);
    assert_int_equal(s.writes, s.creates + s.deletes + s.sets + s.checks);
    assert_int_equal(s.reads, s.gets + s.exists + s.children);
    assert_int_equal(s.requests, s.writes + s.reads);
    assert_int_equal(s.round_trips, s.requests);
    assert_true(s.round_trip_total_us >= s.round_trip_max_us && s.round_trip_max_us > 0);
    assert_true(s.bytes_sent > 0 && s.bytes_received > 0 && s.events >= s.requests);
    dv_test_proxy_cut(proxy);
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(divvy_client_stats(client, &s, sizeof s) == 0 && s.connects == 2, PATIENCE_MS));
    assert_int_equal(divvy_party_leave(party, PATIENCE_MS), 0);
    assert_int_equal(divvy_client_stats(client, &s, sizeof s), 0);
    assert_int_equal(s.session_events, 3);
    assert_int_equal(s.deletes, 1);
    assert_int_equal(s.ephemerals, 0);
    assert_int_equal(s.ephemeral_path_bytes, 0);
    /* A heartbeat may be under way. */
    assert_true(DV_WAIT(divvy_client_stats(client, &s, sizeof s) == 0 && s.in_flight == 0, PATIENCE_MS));
    divvy_party_destroy(party);
    divvy_client_close(client);
    dv_test_proxy_stop(proxy);
    witness_end(&w);
}

TEST_GROUP(set_up_told, stop_server);
