/* SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#include "server.h"
#include "wait.h"

enum { PROBE_SESSION_MS = 3000, PATIENCE_MS = 1000, NO_ANSWER = 1 };

struct dv_test_probe {
    char *connect;
    zhandle_t *handle; /* NULL: not open */
    atomic_int answer; /* of the write under way, or NO_ANSWER */
};

static void ignore_event(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)type, (void)state, (void)path, (void)context;
}

static void ignore_log(const char *message) {
    (void)message;
}

static void on_answer(int rc, const struct Stat *stat, const void *data) {
    dv_test_probe *probe = (dv_test_probe *)(uintptr_t)data;
    (void)stat;
    probe->answer = rc;
}

dv_test_probe *dv_test_probe_new(const char *connect) {
    dv_test_probe *probe = calloc(1, sizeof *probe);
    if (!probe || !(probe->connect = strdup(dv_test_server_plain(connect)))) dv_test_die("no memory");
    return probe;
}

static bool connects(dv_test_probe *probe) {
    if (!probe->handle) {
        probe->handle = zookeeper_init2(probe->connect, ignore_event, PROBE_SESSION_MS, NULL, NULL,
                                        ZOO_NO_LOG_CLIENTENV, ignore_log);
    }
    if (!probe->handle) dv_test_die("zookeeper_init2(%s): %s", probe->connect, strerror(errno));
    return DV_WAIT(zoo_state(probe->handle) == ZOO_CONNECTED_STATE, PATIENCE_MS);
}

bool dv_test_probe_commits(dv_test_probe *probe) {
    probe->answer = NO_ANSWER;
    bool commits = connects(probe) && zoo_aset(probe->handle, "/", "", 0, -1, on_answer, probe) == ZOK &&
                   DV_WAIT(probe->answer != NO_ANSWER, PATIENCE_MS) && probe->answer == ZOK;
    if (!commits) dv_test_probe_rest(probe);
    return commits;
}

void dv_test_probe_rest(dv_test_probe *probe) {
    if (probe->handle) zookeeper_close(probe->handle); /* which answers what is under way */
    probe->handle = NULL;
}

void dv_test_probe_free(dv_test_probe *probe) {
    if (!probe) return;
    dv_test_probe_rest(probe);
    free(probe->connect);
    free(probe);
}
