/* Pools whose members tell loads, on the in-memory ensemble. SPDX-License-Identifier: Apache-2.0
 *
 * For programs that are linked with what test/CMakeLists.txt says of them: what is asked of P/loads is counted. */
#ifndef DV_TEST_LOADS_FIXTURE_H
#define DV_TEST_LOADS_FIXTURE_H

#include "client/client.h"
#include "plan_pool.h"
#include "znode/znode.h"

enum { MINUTE_MS = 60000, TELL_MS = 5000, INTERVAL_MS = 10000, ITEMS = 40, MEMBERS = 4 };

/* ---- what is asked of P/loads ---- */

/* By each member. */
static struct {
    unsigned reads, writes;
    char report[4096]; /* that it has written last */
} asked[MEMBERS_MAX];
static pool *counted;
static bool is_denied; /* P/loads may not be listed */
static bool is_held;   /* nor does anybody hear so before the test says it */
static bool is_short;  /* no member has memory to write a plan */
static dv_reply_fn list_done;
static void *list_context;

static inline void count(const dv_znode *znode, const char *path, bool reads) {
    for (size_t n = 0; counted && strstr(path, "/pool/loads") && n < MEMBERS_MAX; n++) {
        if (counted->members[n].client != znode->context) continue;
        asked[n].reads += reads;
        asked[n].writes += !reads;
    }
}

static inline void keep(const dv_znode *znode, const char *path, const void *data, size_t bytes) {
    for (size_t n = 0; counted && bytes > 0 && strstr(path, "/pool/loads/") && n < MEMBERS_MAX; n++) {
        if (counted->members[n].client == znode->context)
            snprintf(asked[n].report, sizeof asked[n].report, "%.*s", (int)bytes, (const char *)data);
    }
}

static inline void on_denied(void *context, const dv_reply *reply, int64_t now) {
    const dv_reply denied = {.error = reply->error ? reply->error : DIVVY_EACCES};
    (void)context;
    if (!is_held) list_done(list_context, &denied, now);
}

int __real_dv_znode_submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context);
int __wrap_dv_znode_submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context);
int __wrap_dv_znode_submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    count(znode, op->path, op->kind == DV_GET || op->kind == DV_CHILDREN);
    if (!is_denied || op->kind != DV_CHILDREN || strcmp(op->path, "/pool/loads") != 0)
        return __real_dv_znode_submit(znode, op, watch, done, context);
    list_done = done;
    list_context = context;
    return __real_dv_znode_submit(znode, op, watch, on_denied, NULL);
}

int __real_dv_znode_create(dv_znode *znode, const char *path, const void *data, size_t data_bytes, int mode,
                           dv_reply_fn done, void *context);
int __wrap_dv_znode_create(dv_znode *znode, const char *path, const void *data, size_t data_bytes, int mode,
                           dv_reply_fn done, void *context);
int __wrap_dv_znode_create(dv_znode *znode, const char *path, const void *data, size_t data_bytes, int mode,
                           dv_reply_fn done, void *context) {
    count(znode, path, false);
    keep(znode, path, data, data_bytes);
    return __real_dv_znode_create(znode, path, data, data_bytes, mode, done, context);
}

int __real_dv_znode_multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context);
int __wrap_dv_znode_multi(dv_znode *znode, const dv_op *ops, size_t op_count, dv_multi_fn done, void *context);
int __wrap_dv_znode_multi(dv_znode *znode, const dv_op *ops, size_t op_count, dv_multi_fn done, void *context) {
    for (size_t i = 0; i < op_count; i++) count(znode, ops[i].path, false);
    for (size_t i = 0; i < op_count; i++) keep(znode, ops[i].path, ops[i].data, ops[i].data_bytes);
    if (is_short && strcmp(ops[op_count - 1].path, "/pool/plan") == 0) return DIVVY_ENOMEM;
    return __real_dv_znode_multi(znode, ops, op_count, done, context);
}

static inline unsigned reads_of(size_t from, size_t to) {
    unsigned sum = 0;
    for (size_t n = from; n < to; n++) sum += asked[n].reads;
    return sum;
}

static inline unsigned writes_of(size_t from, size_t to) {
    unsigned sum = 0;
    for (size_t n = from; n < to; n++) sum += asked[n].writes;
    return sum;
}

/* ---- pools ---- */

/* The loads of items in truth. */
static double truth[ITEMS];

static inline void be_even(void) {
    for (size_t i = 0; i < ITEMS; i++) truth[i] = 1;
}

/* Each member tells the loads of what it owns. */
static inline void tell(pool *l) {
    for (size_t n = 0; n < MEMBERS_MAX; n++) {
        if (!l->members[n].client) continue;
        divvy_partition *share = divvy_partitioner_partition(l->members[n].partitioner);
        for (size_t k = 0; k < divvy_partition_count(share); k++) {
            const char *item = divvy_partition_item(share, k);
            assert_int_equal(divvy_partitioner_set_load(l->members[n].partitioner, item, truth[item_number(item)]), 0);
        }
        divvy_partition_unref(share);
    }
}

static inline void run_telling(pool *l, int64_t ms) {
    for (int64_t end = divvy_testing_now_ms(l->ensemble) + ms; divvy_testing_now_ms(l->ensemble) < end;) {
        tell(l);
        divvy_testing_run(l->ensemble, TELL_MS);
    }
}

/* Returns the load of a member, of what it owns. */
static inline double load_of(const pool *l, size_t n) {
    owners o = look(l);
    double load = 0;
    for (size_t i = 0; i < l->count; i++) load += o.owners[i] == (int)n ? truth[i] : 0;
    owners_free(&o);
    return load;
}

/* Returns the fullest member's load by the mean. */
static inline double worst(const pool *l, size_t members) {
    double most = 0, sum = 0;
    for (size_t n = 0; n < members; n++) {
        double load = load_of(l, n);
        sum += load;
        if (load > most) most = load;
    }
    return most / (sum / (double)members);
}

/* Makes what member 0 owns `factor` times as much as the rest. */
static inline void burden_first(const pool *l, double factor) {
    owners o = look(l);
    for (size_t i = 0; i < l->count; i++) truth[i] = o.owners[i] == 0 ? factor : 1;
    owners_free(&o);
}

static inline void open_members(pool *l, const divvy_partitioner_config *config, size_t members) {
    be_even();
    pool_open(l, ITEMS);
    memset(asked, 0, sizeof asked);
    counted = l;
    for (size_t n = 0; n < members; n++) add(l, n, config);
    if (members > 0) settle(l);
}

static inline divvy_partitioner_config base_config(pool *l) {
    divvy_partitioner_config config;
    member_config(l, &config);
    return config;
}

#endif
