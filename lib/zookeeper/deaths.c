/* Writing down that members of pools have died: docs/protocol.md, D45. SPDX-License-Identifier: Apache-2.0 */
#include "zookeeper/deaths.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/threads.h"
#include "plan/deaths.h"
#include "znode/path.h"
#include "zookeeper/open.h"

/* TRIES: each but the last has lost to another death watch, or its connection. STEP_MS, APART: two that met once meet
 * no second time, as sessions that began together have other ids. */
enum { TRIES = 16, STEP_MS = 2, APART = 16 };

/* One request at a time. It outlives the client, as an answer may be given up. */
typedef struct {
    divvy_client *client;
    int64_t until_ms;
    bool reads, answered;
    int error; /* of the answer */
    dv_stat stat;
    dv_plan_deaths deaths; /* that it told of */
} recorder;

static int64_t now_ms(void) {
    return dv_clock_ms(CLOCK_BOOTTIME);
}

/* ---- a request ---- */

/* D45: a text that is none counts as none. */
static void take(recorder *r, const dv_reply *reply) {
    r->stat = *reply->stat;
    int error = dv_plan_deaths_parse(&r->deaths, reply->data, reply->data_bytes, r->stat.mtime_ms, NULL);
    if (error == DIVVY_ENOMEM) r->error = error;
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    recorder *r = context;
    (void)now;
    r->answered = true;
    r->error = reply->error;
    if (reply->error == 0 && r->reads) take(r, reply);
}

static int ask(recorder *r, const dv_op *op) {
    dv_znode *znode = r->client->znode;
    int error = dv_client_enter(r->client);
    if (error) return error;
    r->reads = op->kind == DV_GET;
    r->answered = false;
    error = op->kind == DV_CREATE ? dv_znode_submit_create(znode, op, on_reply, r)
                                  : dv_znode_submit(znode, op, NULL, on_reply, r);
    dv_client_unlock(r->client);
    for (int64_t left_ms; !error && !r->answered;) {
        left_ms = r->until_ms - now_ms();
        if (left_ms <= 0) return DIVVY_ETIMEDOUT;
        int done = divvy_client_process(r->client, left_ms);
        if (done < 0) error = done;
    }
    return error ? error : r->error;
}

/* ---- a pool ---- */

static bool has(const dv_plan_deaths *deaths, const dv_plan_death *death) {
    for (size_t n = 0; n < deaths->count; n++) {
        const dv_plan_death *other = &deaths->deaths[n];
        if (other->session == death->session && strcmp(other->name, death->name) == 0) return true;
    }
    return false;
}

/* Reads and writes once. Returns 0 when it stands there, DIVVY_ENOENT where there is no pool. */
static int try_once(recorder *r, const char *path, const dv_plan_death *death) {
    dv_plan_text text;
    const dv_op get = {.kind = DV_GET, .path = path};
    r->deaths.count = 0;
    int error = ask(r, &get);
    bool missing = error == DIVVY_ENOENT;
    if (error && !missing) return error;
    if (has(&r->deaths, death)) return 0; /* An earlier try has done it, though its answer was lost. */
    dv_plan_deaths_add(&r->deaths, death);
    error = dv_plan_print_deaths(&text, &r->deaths);
    if (error) return error;
    const dv_op write = {.kind = missing ? DV_CREATE : DV_SET,
                         .path = path,
                         .data = text.bytes,
                         .data_bytes = text.count,
                         .mode = DV_PERSISTENT,
                         .version = r->stat.version};
    error = ask(r, &write);
    free(text.bytes);
    return error;
}

/* Returns whether another try may do. A node that is deleted after it was read is made by the next one. */
static bool may_do(int error, int attempt) {
    return error == DIVVY_EVERSION || error == DIVVY_EEXIST || error == DIVVY_ECONNECTION ||
           (error == DIVVY_ENOENT && attempt == 0);
}

static void record_in(recorder *r, const char *path, const dv_plan_death *death) {
    int error = 0;
    for (int n = 0; n < TRIES; n++) {
        int64_t pause_ms = (int64_t)n * STEP_MS * (1 + (int64_t)((uint64_t)death->session % APART));
        if (n > 0) nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000}, NULL);
        int64_t left_ms = r->until_ms - now_ms();
        if (left_ms <= 0 || divvy_client_wait_connected(r->client, left_ms) != 0) return;
        error = try_once(r, path, death);
        if (!may_do(error, n)) return;
    }
}

static void record(recorder *r, const dv_will_pool *pool, dv_plan_death *death) {
    char *path = dv_path_join(pool->path, "deaths");
    dv_plan_name_cut(death->name, pool->member);
    if (path) record_in(r, path, death);
    free(path);
}

void dv_deaths_record(const divvy_client_config *config, const dv_will *will, int64_t seen_ms, int64_t until_ms) {
    recorder *r = will->pool_count ? calloc(1, sizeof *r) : NULL;
    dv_plan_death death = {.session = will->session_id, .seen_ms = seen_ms};
    if (!r) return;
    r->until_ms = until_ms;
    if (dv_client_open_to_look(&r->client, config) == 0) {
        for (size_t i = 0; i < will->pool_count; i++) record(r, &will->pools[i], &death);
        divvy_client_close(r->client);
    }
    free(r);
}
