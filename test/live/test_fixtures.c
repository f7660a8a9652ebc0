/* The fixtures of the live tests do what they promise. SPDX-License-Identifier: Apache-2.0
 *
 * Shows that the private servers, forced expiry and the look at the truth are what all live tests take them for. */
#include "fixtures_fixture.h"

/* --- helpers ---------------------------------------------------------------------------------------------------- */

/* Returns whether a process that has not ended mentions `text` in its command line. */
static bool a_process_mentions(const char *text) {
    bool found = false;
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    for (struct dirent *entry; !found && (entry = readdir(proc));) {
        char path[300], line[16384];
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "re") : NULL;
        if (!file) continue;
        /* A process that has ended, and that nobody has reaped, has an empty command line. */
        size_t length = fread(line, 1, sizeof line, file);
        fclose(file);
        found = memmem(line, length, text, strlen(text)) != NULL;
    }
    closedir(proc);
    return found;
}

static int64_t owner_of(const char *path) {
    struct Stat stat = {0};
    return dv_test_zk_exists(truth, path, &stat) ? stat.ephemeralOwner : 0;
}

/* --- the server ------------------------------------------------------------------------------------------------- */

/* A stopped server leaves neither a process nor its folder. */
TEST(test_server_leaves_nothing) {
    char dir[256];
    unsigned fds = open_fds();
    dv_test_server *server = dv_test_server_start(1, TICK_MS);
    assert_true(is_ok(dv_test_server_address(server, 1)));
    snprintf(dir, sizeof dir, "%s", dv_test_server_dir(server));
    assert_int_equal(access(dir, F_OK), 0);
    assert_true(a_process_mentions(dir));
    dv_test_server_stop(server);
    assert_int_equal(access(dir, F_OK), -1);
    assert_false(a_process_mentions(dir));
    assert_int_equal(open_fds(), fds);
}

/* The servers of a test program that is killed go with it, even while nobody has reaped it. */
TEST(test_server_goes_with_its_parent) {
    char dir[256] = "";
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dv_test_server *server = dv_test_server_start(1, TICK_MS);
        const char *name = dv_test_server_dir(server);
        if (write(ends[1], name, strlen(name)) > 0) raise(SIGKILL);
        _exit(1);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], dir, sizeof dir - 1);
    assert_true(got > 0);
    close(ends[0]);
    assert_true(DV_WAIT(access(dir, F_OK) != 0 && !a_process_mentions(dir), PATIENCE_MS));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A paused server accepts and is silent; resumed, it answers what it was asked during the pause. */
TEST(test_server_pauses) {
    char text[16];
    dv_test_server_pause(shared, 1);
    int fd = dial(dv_test_server_address(shared, 1));
    say(fd, "ruok");
    assert_false(readable(fd, SILENCE_MS));
    dv_test_server_resume(shared, 1);
    hear(fd, text, sizeof text);
    close(fd);
    assert_string_equal(text, "imok");
}

/* A server killed and restarted has the same port, the same nodes and the same sessions. */
TEST(test_server_restarts) {
    dv_test_zk *zk = dv_test_zk_open(dv_test_server_connect(shared));
    int64_t session = dv_test_zk_session(zk);
    assert_int_equal(dv_test_zk_create(zk, "/restart", "kept", 0, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(zk, "/restart/own", NULL, ZOO_EPHEMERAL, NULL), ZOK);
    dv_test_server_kill(shared, 1);
    assert_true(DV_WAIT(!has_state(zk, ZOO_CONNECTED_STATE), PATIENCE_MS));
    dv_test_server_restart(shared, 1);
    assert_true(DV_WAIT(has_state(zk, ZOO_CONNECTED_STATE), PATIENCE_MS));
    assert_int_equal(dv_test_zk_session(zk), session);
    assert_int_equal(owner_of("/restart/own"), session);
    dv_test_zk_close(zk);
    assert_false(dv_test_zk_exists(truth, "/restart/own", NULL));
    assert_int_equal(dv_test_zk_delete_all(truth, "/restart"), ZOK);
}

/* Returns whether the node is there now: it may be by an attempt whose answer was lost. */
static bool is_made(dv_test_zk *zk, const char *path) {
    int rc = dv_test_zk_create(zk, path, "x", 0, NULL);
    return rc == ZOK || rc == ZNODEEXISTS;
}

/* An ensemble of three serves on three addresses, goes on without one of them, and comes back when all were killed. */
TEST(test_server_ensemble) {
    char connect[128];
    dv_test_server *server = dv_test_server_start(3, TICK_MS);
    snprintf(connect, sizeof connect, "%s,%s,%s", dv_test_server_address(server, 1), dv_test_server_address(server, 2),
             dv_test_server_address(server, 3));
    assert_string_equal(dv_test_server_connect(server), connect);
    dv_test_zk *zk = dv_test_zk_open(connect);
    assert_true(DV_WAIT(is_made(zk, "/a"), PATIENCE_MS));
    for (int number = 1; number <= 3; number++) {
        dv_test_server_kill(server, number);
        assert_true(dv_test_zk_exists(zk, "/a", NULL));
        dv_test_server_restart(server, number);
    }
    dv_test_server_kill(server, DV_TEST_SERVER_ALL);
    dv_test_server_restart(server, DV_TEST_SERVER_ALL);
    assert_true(dv_test_zk_exists(zk, "/a", NULL));
    dv_test_zk_close(zk);
    dv_test_server_stop(server);
}

/* --- expiry ----------------------------------------------------------------------------------------------------- */

/* A session expired while its client is cut off has lost its nodes at once; healed, the client is told. */
static void expire_behind_a_cut(const char *path, bool know_password) {
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(shared, 1));
    dv_test_zk *zk = dv_test_zk_open(dv_test_proxy_address(proxy));
    clientid_t id = *zoo_client_id(dv_test_zk_handle(zk));
    assert_int_equal(dv_test_zk_create(zk, path, NULL, ZOO_EPHEMERAL, NULL), ZOK);
    dv_test_proxy_cut(proxy);
    assert_int_equal(owner_of(path), id.client_id);
    assert_true(dv_test_expire(dv_test_server_connect(shared), id.client_id, know_password ? id.passwd : NULL));
    assert_false(dv_test_zk_exists(truth, path, NULL));
    assert_false(has_state(zk, ZOO_EXPIRED_SESSION_STATE));
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(has_state(zk, ZOO_EXPIRED_SESSION_STATE), PATIENCE_MS));
    dv_test_zk_close(zk);
    dv_test_proxy_stop(proxy);
}

/* Expiry with the password that the native client tells. */
TEST(test_expire_with_password) {
    expire_behind_a_cut("/expire-known", true);
}

/* Expiry by the session's id alone. */
TEST(test_expire_without_password) {
    for (int i = 0; i < 3; i++) expire_behind_a_cut("/expire-computed", false);
}

/* A session that is not there, or a wrong password, is reported and does no harm. */
TEST(test_expire_refuses) {
    const char *connect = dv_test_server_connect(shared);
    char password[DV_TEST_PASSWORD_BYTES] = "wrong";
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(shared, 1));
    dv_test_zk *zk = dv_test_zk_open(dv_test_proxy_address(proxy));
    int64_t session = dv_test_zk_session(zk);
    assert_int_equal(dv_test_zk_create(zk, "/refuse", NULL, ZOO_EPHEMERAL, NULL), ZOK);
    dv_test_proxy_cut(proxy);
    assert_false(dv_test_expire(connect, session, password));
    assert_false(dv_test_expire(connect, session + 12345, NULL));
    assert_int_equal(owner_of("/refuse"), session);
    dv_test_proxy_restore(proxy);
    assert_true(dv_test_zk_exists(zk, "/refuse", NULL));
    assert_int_equal(dv_test_zk_session(zk), session);
    dv_test_zk_close(zk);
    assert_false(dv_test_expire(connect, session, NULL));
    dv_test_proxy_stop(proxy);
}

/* In an ensemble a session is expired by way of any server, and all servers know. */
TEST(test_expire_in_an_ensemble) {
    dv_test_server *server = dv_test_server_start(3, TICK_MS);
    dv_test_zk *other = dv_test_zk_open(dv_test_server_connect(server));
    for (int number = 1; number <= 3; number++) {
        dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, number));
        dv_test_zk *zk = dv_test_zk_open(dv_test_proxy_address(proxy));
        assert_int_equal(dv_test_zk_create(zk, "/own", NULL, ZOO_EPHEMERAL, NULL), ZOK);
        dv_test_proxy_cut(proxy);
        assert_true(dv_test_expire(dv_test_server_address(server, 1 + number % 3), dv_test_zk_session(zk), NULL));
        assert_false(dv_test_zk_exists(other, "/own", NULL));
        dv_test_proxy_restore(proxy);
        assert_true(DV_WAIT(has_state(zk, ZOO_EXPIRED_SESSION_STATE), PATIENCE_MS));
        dv_test_zk_close(zk);
        dv_test_proxy_stop(proxy);
    }
    dv_test_zk_close(other);
    dv_test_server_stop(server);
}

/* --- the look at the truth -------------------------------------------------------------------------------------- */

/* Nodes are created, listed in order, read, and deleted as a whole. */
TEST(test_zk_reads_and_writes) {
    size_t count;
    int bytes;
    struct Stat stat;
    char *created;
    assert_null(dv_test_zk_children(truth, "/zk", NULL));
    assert_null(dv_test_zk_get(truth, "/zk", NULL, NULL));
    assert_int_equal(dv_test_zk_create(truth, "/zk", "data", 0, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(truth, "/zk", "data", 0, NULL), ZNODEEXISTS);
    assert_int_equal(dv_test_zk_create(truth, "/zk/b", NULL, 0, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(truth, "/zk/b/deep", "", 0, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(truth, "/zk/a-", NULL, ZOO_SEQUENCE, &created), ZOK);
    assert_string_equal(created, "/zk/a-0000000001");
    free(created);

    char **names = dv_test_zk_children(truth, "/zk", &count);
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "a-0000000001");
    assert_string_equal(names[1], "b");
    assert_null(names[2]);
    dv_test_zk_free_names(names);

    assert_int_equal(dv_test_zk_set(truth, "/zk", "other data"), ZOK);
    char *data = dv_test_zk_get(truth, "/zk", &bytes, &stat);
    assert_string_equal(data, "other data");
    assert_int_equal(bytes, 10);
    assert_int_equal(stat.version, 1);
    free(data);
    data = dv_test_zk_get(truth, "/zk/b", &bytes, NULL);
    assert_string_equal(data, "");
    assert_int_equal(bytes, -1);
    free(data);

    assert_int_equal(dv_test_zk_delete(truth, "/zk"), ZNOTEMPTY);
    assert_int_equal(dv_test_zk_delete_all(truth, "/zk"), ZOK);
    assert_int_equal(dv_test_zk_delete_all(truth, "/zk"), ZOK);
    assert_false(dv_test_zk_exists(truth, "/zk", NULL));
}

/* A wait ends when its condition holds, and at the deadline when it does not. */
TEST(test_wait) {
    int asked = 0;
    assert_true(DV_WAIT(++asked == 3, PATIENCE_MS));
    assert_int_equal(asked, 3);
    int64_t before_ms = dv_test_now_ms();
    assert_false(DV_WAIT(asked == 4, 20));
    assert_true(dv_test_now_ms() - before_ms >= 20);
    assert_true(DV_WAIT(true, 0));
}

TEST_GROUP(set_up, tear_down);
