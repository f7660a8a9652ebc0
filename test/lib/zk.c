/* See zk.h. SPDX-License-Identifier: Apache-2.0 */
#include "zk.h"

#include "server.h"
#include "znode/apache/tls.h"

#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#define SESSION_TIMEOUT_MS 30000
#define PATIENCE_MS 15000
/* A server without a leader may leave a request unanswered; the client notices after 2/3 of its timeout. */
#define READ_PATIENCE_MS (3 * SESSION_TIMEOUT_MS)
#define DATA_BYTES_MAX (1 << 20)
#define SEQUENCE_BYTES 16

struct dv_test_zk {
    zhandle_t *handle;
};

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN
#endif
#elif defined(__SANITIZE_THREAD__)
#define UNDER_TSAN
#endif

#ifdef UNDER_TSAN
/* libzookeeper_mt writes an address into one static buffer by sprintf(), for a line of its log, whenever a connection
 * comes or goes (format_endpoint_info in its zookeeper.c). Two handles in one process race there. This passes over
 * races whose innermost call is that very function, which we ourselves never call; it hides none of our calls. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "race_top:vsprintf\n";
}
#endif

static void ignore_event(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)type, (void)state, (void)path, (void)context;
}

static void ignore_log(const char *message) {
    (void)message;
}

zhandle_t *dv_test_zk_init(const char *connect, watcher_fn watcher, int timeout_ms, void *context,
                           log_callback_fn log) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.tls_ca_file = getenv("DIVVY_TLS_CA_FILE");
    config.tls_certificate_file = getenv("DIVVY_TLS_CERTIFICATE_FILE");
    config.tls_key_file = getenv("DIVVY_TLS_KEY_FILE");
    char message[DV_TLS_MESSAGE_BYTES];
    dv_tls *tls;
    if (!getenv("DIVVY_TEST_TLS"))
        return zookeeper_init2(connect, watcher, timeout_ms, NULL, context, ZOO_NO_LOG_CLIENTENV, log);
    signal(SIGPIPE, SIG_IGN); /* The native client's threads raise it over TLS; a host has to see to that itself. */
    if (dv_tls_new(&tls, &config, message) != 0) dv_test_die("TLS: %s", message);
    zhandle_t *handle = dv_tls_open(tls, connect, watcher, timeout_ms, NULL, context, log);
    dv_tls_unref(tls);
    return handle;
}

dv_test_zk *dv_test_zk_open(const char *connect) {
    dv_test_zk *zk = calloc(1, sizeof *zk);
    if (!zk) dv_test_die("no memory");
    connect = dv_test_server_plain(connect);
    /* The client's threads inherit the mask: a signal is to reach the test's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    zk->handle =
        zookeeper_init2(connect, ignore_event, SESSION_TIMEOUT_MS, NULL, NULL, ZOO_NO_LOG_CLIENTENV, ignore_log);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!zk->handle) dv_test_die("zookeeper_init2(%s): %s", connect, strerror(errno));
    /* Else the client resolves and calls srandom() again and again, which would undo a test's seed. */
    zoo_set_servers_resolution_delay(zk->handle, -1);
    if (!DV_WAIT(zoo_state(zk->handle) == ZOO_CONNECTED_STATE, PATIENCE_MS))
        dv_test_die("no connection to %s", connect);
    return zk;
}

void dv_test_zk_close(dv_test_zk *zk) {
    if (!zk) return;
    zookeeper_close(zk->handle);
    free(zk);
}

zhandle_t *dv_test_zk_handle(dv_test_zk *zk) {
    return zk->handle;
}

int64_t dv_test_zk_session(dv_test_zk *zk) {
    return zoo_client_id(zk->handle)->client_id;
}

/* --- reads ------------------------------------------------------------------------------------------------------ */

struct sync_call {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended;
    int rc;
};

static void sync_ended(int rc, const char *path, const void *data) {
    struct sync_call *call = (struct sync_call *)(uintptr_t)data;
    (void)path;
    pthread_mutex_lock(&call->lock);
    call->has_ended = true;
    call->rc = rc;
    pthread_cond_signal(&call->ended);
    pthread_mutex_unlock(&call->lock);
}

/* Makes the server that we are connected to catch up with its leader: a follower may lag behind what a test has just
 * seen elsewhere. */
static int catch_up(dv_test_zk *zk, const char *path) {
    struct sync_call call = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, ZOK};
    int rc = zoo_async(zk->handle, path, sync_ended, &call);
    if (rc != ZOK) return rc;
    pthread_mutex_lock(&call.lock);
    while (!call.has_ended) pthread_cond_wait(&call.ended, &call.lock);
    pthread_mutex_unlock(&call.lock);
    pthread_cond_destroy(&call.ended);
    pthread_mutex_destroy(&call.lock);
    return call.rc;
}

/* One read, whichever it is, with room for its result. */
struct read_call {
    int (*run)(dv_test_zk *zk, struct read_call *call);
    const char *path;
    struct Stat stat;
    struct String_vector names;
    char *data;
    int data_bytes;
};

/* Runs a read to its end: true, or false when there is no such node. */
static bool read_node(dv_test_zk *zk, struct read_call *call) {
    int64_t deadline_ms = dv_test_now_ms() + READ_PATIENCE_MS;
    for (;;) {
        int rc = catch_up(zk, call->path);
        if (rc == ZOK) rc = call->run(zk, call);
        if (rc == ZOK) return true;
        if (rc == ZNONODE) return false;
        if ((rc != ZCONNECTIONLOSS && rc != ZOPERATIONTIMEOUT) || dv_test_now_ms() >= deadline_ms) {
            dv_test_die("cannot read %s: %s", call->path, zerror(rc));
        }
        dv_test_sleep_ms(5);
    }
}

static int run_children(dv_test_zk *zk, struct read_call *call) {
    return zoo_get_children(zk->handle, call->path, 0, &call->names);
}

static int run_get(dv_test_zk *zk, struct read_call *call) {
    call->data_bytes = DATA_BYTES_MAX;
    return zoo_get(zk->handle, call->path, 0, call->data, &call->data_bytes, &call->stat);
}

static int run_exists(dv_test_zk *zk, struct read_call *call) {
    return zoo_exists(zk->handle, call->path, 0, &call->stat);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **dv_test_zk_children(dv_test_zk *zk, const char *path, size_t *count) {
    struct read_call call = {.run = run_children, .path = path};
    if (count) *count = 0;
    if (!read_node(zk, &call)) return NULL;
    size_t found = (size_t)call.names.count;
    char **names = calloc(found + 1, sizeof *names);
    if (!names) dv_test_die("no memory");
    for (size_t i = 0; i < found; i++) {
        names[i] = strdup(call.names.data[i]);
        if (!names[i]) dv_test_die("no memory");
    }
    deallocate_String_vector(&call.names);
    qsort(names, found, sizeof *names, compare_names);
    if (count) *count = found;
    return names;
}

void dv_test_zk_free_names(char **names) {
    for (char **name = names; name && *name; name++) free(*name);
    free(names);
}

size_t dv_test_zk_count(dv_test_zk *zk, const char *path) {
    size_t count;
    dv_test_zk_free_names(dv_test_zk_children(zk, path, &count));
    return count;
}

char *dv_test_zk_get(dv_test_zk *zk, const char *path, int *bytes, struct Stat *stat) {
    struct read_call call = {.run = run_get, .path = path, .data = malloc(DATA_BYTES_MAX + 1)};
    if (!call.data) dv_test_die("no memory");
    if (!read_node(zk, &call)) {
        free(call.data);
        return NULL;
    }
    /* The native client cuts off silently what does not fit. */
    if (call.stat.dataLength > DATA_BYTES_MAX) dv_test_die("%s holds %d bytes", path, call.stat.dataLength);
    size_t length = call.data_bytes > 0 ? (size_t)call.data_bytes : 0;
    char *data = realloc(call.data, length + 1);
    if (!data) dv_test_die("no memory");
    data[length] = '\0';
    if (bytes) *bytes = call.data_bytes;
    if (stat) *stat = call.stat;
    return data;
}

bool dv_test_zk_exists(dv_test_zk *zk, const char *path, struct Stat *stat) {
    struct read_call call = {.run = run_exists, .path = path};
    bool exists = read_node(zk, &call);
    if (exists && stat) *stat = call.stat;
    return exists;
}

/* --- writes ----------------------------------------------------------------------------------------------------- */

static int text_bytes(const char *data) {
    return data ? (int)strlen(data) : -1;
}

int dv_test_zk_create(dv_test_zk *zk, const char *path, const char *data, int flags, char **created) {
    /* A path that does not fit would be cut off silently. */
    size_t room = strlen(path) + SEQUENCE_BYTES;
    char *result = calloc(1, room);
    if (!result) dv_test_die("no memory");
    int rc = zoo_create(zk->handle, path, data, text_bytes(data), &ZOO_OPEN_ACL_UNSAFE, flags, result, (int)room);
    if (created) *created = rc == ZOK ? result : NULL;
    if (rc != ZOK || !created) free(result);
    return rc;
}

int dv_test_zk_set(dv_test_zk *zk, const char *path, const char *data) {
    return zoo_set(zk->handle, path, data, text_bytes(data), -1);
}

int dv_test_zk_delete(dv_test_zk *zk, const char *path) {
    return zoo_delete(zk->handle, path, -1);
}

int dv_test_zk_delete_all(dv_test_zk *zk, const char *path) {
    char **names = dv_test_zk_children(zk, path, NULL);
    int rc = ZOK;
    for (char **name = names; rc == ZOK && name && *name; name++) {
        size_t room = strlen(path) + strlen(*name) + 2;
        char *child = malloc(room);
        if (!child) dv_test_die("no memory");
        snprintf(child, room, "%s/%s", strcmp(path, "/") ? path : "", *name);
        rc = dv_test_zk_delete_all(zk, child);
        free(child);
    }
    dv_test_zk_free_names(names);
    if (rc == ZOK) rc = dv_test_zk_delete(zk, path);
    return rc == ZNONODE ? ZOK : rc;
}
