/* Tests of pools whose members tell loads, on the in-memory ensemble. SPDX-License-Identifier: Apache-2.0 */
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
static dv_reply_fn list_done;
static void *list_context;

static void count(const dv_znode *znode, const char *path, bool reads) {
    for (size_t n = 0; counted && strstr(path, "/pool/loads") && n < MEMBERS_MAX; n++) {
        if (counted->members[n].client != znode->context) continue;
        asked[n].reads += reads;
        asked[n].writes += !reads;
    }
}

static void keep(const dv_znode *znode, const char *path, const void *data, size_t bytes) {
    for (size_t n = 0; counted && bytes > 0 && strstr(path, "/pool/loads/") && n < MEMBERS_MAX; n++) {
        if (counted->members[n].client == znode->context)
            snprintf(asked[n].report, sizeof asked[n].report, "%.*s", (int)bytes, (const char *)data);
    }
}

static void on_denied(void *context, const dv_reply *reply, int64_t now) {
    const dv_reply denied = {.error = reply->error ? reply->error : DIVVY_EACCES};
    (void)context;
    list_done(list_context, &denied, now);
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
    return __real_dv_znode_multi(znode, ops, op_count, done, context);
}

static unsigned reads_of(size_t from, size_t to) {
    unsigned sum = 0;
    for (size_t n = from; n < to; n++) sum += asked[n].reads;
    return sum;
}

static unsigned writes_of(size_t from, size_t to) {
    unsigned sum = 0;
    for (size_t n = from; n < to; n++) sum += asked[n].writes;
    return sum;
}

/* ---- pools ---- */

/* The loads of items in truth. */
static double truth[ITEMS];

static void be_even(void) {
    for (size_t i = 0; i < ITEMS; i++) truth[i] = 1;
}

/* Each member tells the loads of what it owns. */
static void tell(pool *l) {
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

static void run_telling(pool *l, int64_t ms) {
    for (int64_t end = divvy_testing_now_ms(l->ensemble) + ms; divvy_testing_now_ms(l->ensemble) < end;) {
        tell(l);
        divvy_testing_run(l->ensemble, TELL_MS);
    }
}

/* Returns the load of a member, of what it owns. */
static double load_of(const pool *l, size_t n) {
    owners o = look(l);
    double load = 0;
    for (size_t i = 0; i < l->count; i++) load += o.owners[i] == (int)n ? truth[i] : 0;
    owners_free(&o);
    return load;
}

/* Returns the fullest member's load by the mean. */
static double worst(const pool *l, size_t members) {
    double most = 0, sum = 0;
    for (size_t n = 0; n < members; n++) {
        double load = load_of(l, n);
        sum += load;
        if (load > most) most = load;
    }
    return most / (sum / (double)members);
}

/* Makes what member 0 owns `factor` times as much as the rest. */
static void burden_first(const pool *l, double factor) {
    owners o = look(l);
    for (size_t i = 0; i < l->count; i++) truth[i] = o.owners[i] == 0 ? factor : 1;
    owners_free(&o);
}

static void open_members(pool *l, const divvy_partitioner_config *config, size_t members) {
    be_even();
    pool_open(l, ITEMS);
    memset(asked, 0, sizeof asked);
    counted = l;
    for (size_t n = 0; n < members; n++) add(l, n, config);
    if (members > 0) settle(l);
}

static divvy_partitioner_config base_config(pool *l) {
    divvy_partitioner_config config;
    member_config(l, &config);
    return config;
}

/* A pool whose loads are uneven evens out, and then it is at rest: nothing moves back. */
TEST(test_evens_out) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    burden_first(&l, 5);
    double before = worst(&l, MEMBERS);
    assert_true(before > 2);
    unsigned plans = l.plan_writes;
    while (l.plan_writes - plans < 2 && asked[0].reads < 1000)
        run_telling(&l, TELL_MS); /* the second one moves items */
    unsigned reads = asked[0].reads;
    run_telling(&l, 170000);
    assert_int_equal(asked[0].reads, reads); /* it rests for three minutes */
    settle(&l);
    run_telling(&l, MINUTE_MS);
    assert_true(asked[0].reads > reads);
    double after = worst(&l, MEMBERS);
    if (after > 1.21) fail_msg("the fullest has %.2f of a share, %.2f before", after, before);
    size_t gained = 0;
    for (size_t n = 1; n < MEMBERS; n++) gained += l.members[n].gained[DIVVY_REASON_LOAD];
    assert_true(gained > 0);
    owners then = look(&l);
    plans = l.plan_writes;
    run_telling(&l, 12 * MINUTE_MS);
    owners now = look(&l);
    assert_int_equal(moved(&l, &then, &now), 0);
    assert_in_range(l.plan_writes - plans, 0, 2); /* classes that have drifted */
    owners_free(&then);
    owners_free(&now);
    pool_close(&l);
}

/* An item is listed two minutes after the first load of it, by its mean; and as long again after another gain. */
TEST(test_settles) {
    pool l;
    open_members(&l, NULL, 1);
    run_telling(&l, 115000);
    assert_non_null(strstr(asked[0].report, "\"total\":121,")); /* 40 */
    assert_non_null(strstr(asked[0].report, "\"classes\":[]"));
    run_telling(&l, 15000);
    assert_non_null(strstr(asked[0].report, "\"classes\":[[100,[0,1,1,"));
    for (size_t i = 0; i < ITEMS; i++) truth[i] = 4;
    run_telling(&l, MINUTE_MS + INTERVAL_MS); /* half of the way to 4, and a little: 2.4 to 2.7 */
    unsigned class = 0;
    assert_int_equal(sscanf(strstr(asked[0].report, "\"classes\":"), "\"classes\":[[%u", &class), 1);
    assert_in_range(class, 105, 106);
    add(&l, 1, NULL);
    settle(&l);
    finish(&l, 1);
    settle(&l);
    run_telling(&l, MINUTE_MS);
    size_t listed = 0;
    for (const char *c = strstr(asked[0].report, "\"classes\":"); *c; c++) listed += *c == ',';
    assert_in_range(listed, ITEMS / 2, ITEMS / 2 + 4); /* those that it has kept */
    run_telling(&l, 2 * MINUTE_MS);
    listed = 0;
    for (const char *c = strstr(asked[0].report, "\"classes\":"); *c; c++) listed += *c == ',';
    assert_in_range(listed, ITEMS, ITEMS + 4);
    pool_close(&l);
}

/* The plan knows the loads: what a crash leaves is dealt by them, before any new owner has told one. */
TEST(test_crash_by_load) {
    pool l;
    bool has_heavy[MEMBERS] = {false};
    open_members(&l, NULL, MEMBERS);
    owners o = look(&l);
    for (size_t i = 0; i < l.count; i++) {
        truth[i] = has_heavy[o.owners[i]] ? 1 : 8;
        has_heavy[o.owners[i]] = true;
    }
    run_telling(&l, 3 * MINUTE_MS);
    owners now = look(&l);
    assert_int_equal(moved(&l, &o, &now), 0);
    owners_free(&o);
    owners_free(&now);
    crash(&l, 0);
    settle(&l);
    double most = 0;
    for (size_t n = 1; n < MEMBERS; n++) most = load_of(&l, n) > most ? load_of(&l, n) : most;
    assert_in_range((int)most, 22, 26); /* 68 in all; by count it would be 28 or more */
    pool_close(&l);
}

/* Where nobody tells a load nothing is asked of P/loads, and a quiet pool stays quiet. */
TEST(test_nobody_reports) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    divvy_testing_run(l.ensemble, 10 * MINUTE_MS);
    assert_int_equal(reads_of(0, MEMBERS) + writes_of(0, MEMBERS), 0);
    assert_false(divvy_testing_exists(l.ensemble, "/pool/loads"));
    assert_at_rest(&l);
    /* One member that begins is heard by the first, though that one has nothing to tell. */
    truth[0] = 1;
    divvy_partition *share = divvy_partitioner_partition(l.members[3].partitioner);
    assert_int_equal(divvy_partitioner_set_load(l.members[3].partitioner, divvy_partition_item(share, 0), 3), 0);
    divvy_partition_unref(share);
    divvy_testing_run(l.ensemble, MINUTE_MS);
    assert_true(divvy_testing_exists(l.ensemble, "/pool/loads"));
    assert_true(asked[0].reads > 0);
    assert_int_equal(reads_of(1, MEMBERS), 0);
    assert_int_equal(writes_of(0, MEMBERS - 1), 0);
    pool_close(&l);
}

/* Where loads stand still nothing is sent but the reads of the first: a list, and a get for each member. */
TEST(test_idle_cost) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    run_telling(&l, 8 * MINUTE_MS);
    unsigned writes = l.writes, reads = asked[0].reads, others = reads_of(1, MEMBERS);
    unsigned told = writes_of(0, MEMBERS);
    run_telling(&l, 10 * MINUTE_MS);
    assert_int_equal(l.writes, writes);
    assert_int_equal(writes_of(0, MEMBERS), told);
    assert_int_equal(reads_of(1, MEMBERS), others);
    assert_in_range(asked[0].reads - reads, 59 * (1 + MEMBERS), 61 * (1 + MEMBERS));
    pool_close(&l);
}

/* When the reader is gone the next one reads: what became uneven since is evened out. */
TEST(test_reader_gone) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    run_telling(&l, 3 * MINUTE_MS);
    assert_true(asked[0].reads > 0);
    crash(&l, 0);
    settle(&l);
    owners o = look(&l);
    for (size_t i = 0; i < l.count; i++) truth[i] = o.owners[i] == 1 ? 6 : 1;
    owners_free(&o);
    run_telling(&l, 10 * MINUTE_MS);
    settle(&l);
    assert_true(asked[1].reads > 0);
    assert_int_equal(reads_of(2, MEMBERS), 0);
    double most = 0, sum = 0;
    for (size_t n = 1; n < MEMBERS; n++) {
        double load = load_of(&l, n);
        sum += load;
        if (load > most) most = load;
    }
    assert_true(most / (sum / (MEMBERS - 1)) < 1.21);
    divvy_strings *reports = divvy_testing_children(l.ensemble, "/pool/loads");
    assert_int_equal(divvy_strings_count(reports), MEMBERS - 1);
    divvy_strings_free(reports);
    pool_close(&l);
}

/* A member that tells another unit is passed over, with one warning that names it. */
TEST(test_another_unit) {
    pool l;
    divvy_partitioner_config config;
    be_even();
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < MEMBERS; n++) {
        config = base_config(&l);
        config.load_unit = n == 2 ? "req/s" : "cores";
        add(&l, n, &config);
    }
    settle(&l);
    owners then = look(&l);
    for (size_t i = 0; i < l.count; i++) truth[i] = then.owners[i] == 2 ? 1000 : 1;
    /* The others begin, so the pool's unit is theirs. */
    divvy_partition *share = divvy_partitioner_partition(l.members[0].partitioner);
    assert_int_equal(divvy_partitioner_set_load(l.members[0].partitioner, divvy_partition_item(share, 0), 1), 0);
    divvy_partition_unref(share);
    divvy_testing_run(l.ensemble, 2000);
    run_telling(&l, 10 * MINUTE_MS);
    settle(&l);
    owners now = look(&l);
    assert_int_equal(moved(&l, &then, &now), 0);
    assert_int_equal(l.members[0].warnings[DIVVY_WARN_LOAD_UNIT], 1);
    assert_non_null(strstr(l.members[0].warned, "member-2"));
    assert_non_null(strstr(l.members[0].warned, "\"cores\""));
    assert_int_equal(l.members[1].warnings[DIVVY_WARN_LOAD_UNIT], 0);
    owners_free(&then);
    owners_free(&now);
    pool_close(&l);
}

/* A pool whose members have all gone over to another unit takes that up. */
TEST(test_unit_changes) {
    pool l;
    divvy_partitioner_config config;
    be_even();
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 2; n++) {
        config = base_config(&l);
        config.load_unit = "cores";
        add(&l, n, &config);
    }
    settle(&l);
    run_telling(&l, MINUTE_MS);
    for (size_t n = 0; n < 2; n++) {
        config = base_config(&l);
        config.load_unit = "req/s";
        add(&l, n + 2, &config);
        finish(&l, n);
    }
    settle(&l);
    owners o = look(&l);
    for (size_t i = 0; i < l.count; i++) truth[i] = o.owners[i] == 2 ? 400 : 100;
    owners_free(&o);
    run_telling(&l, 8 * MINUTE_MS);
    settle(&l);
    double more = load_of(&l, 2), less = load_of(&l, 3);
    assert_true(more / (more + less) < 0.61 && more / (more + less) > 0.39);
    pool_close(&l);
}

/* Below the floor a pool is left alone, however uneven it is. */
TEST(test_floor) {
    pool l;
    open_members(&l, NULL, 0);
    divvy_partitioner_config config = base_config(&l);
    config.load_floor = 1000;
    for (size_t n = 0; n < MEMBERS; n++) {
        config.identifier = NULL;
        add(&l, n, &config);
    }
    settle(&l);
    burden_first(&l, 5);
    owners then = look(&l);
    run_telling(&l, 8 * MINUTE_MS);
    owners now = look(&l);
    assert_int_equal(moved(&l, &then, &now), 0);
    assert_true(asked[0].reads > 0);
    owners_free(&then);
    owners_free(&now);
    pool_close(&l);
}

/* A reader that may not list P/loads says so once, and nothing is moved while it is the first. */
TEST(test_not_readable) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    burden_first(&l, 5);
    owners then = look(&l);
    is_denied = true;
    run_telling(&l, 8 * MINUTE_MS);
    assert_int_equal(l.members[0].warnings[DIVVY_WARN_LOAD_UNIT], 1);
    assert_non_null(strstr(l.members[0].warned, "/pool/loads may not be read"));
    owners now = look(&l);
    assert_int_equal(moved(&l, &then, &now), 0);
    owners_free(&then);
    owners_free(&now);
    is_denied = false;
    run_telling(&l, 5 * MINUTE_MS);
    settle(&l);
    assert_true(worst(&l, MEMBERS) < 1.21);
    pool_close(&l);
}

/* An item that is more than a share is told of once, and its owner has little else. */
TEST(test_heavy) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    truth[7] = 60;
    for (int phase = 0; phase < 5; phase++) {
        truth[8] = phase % 2 ? 1 : 3; /* so that there is something to look at */
        run_telling(&l, 4 * MINUTE_MS);
    }
    settle(&l);
    assert_int_equal(l.members[0].warnings[DIVVY_WARN_HEAVY], 1);
    assert_non_null(strstr(l.members[0].warned, "\"item-00007\""));
    owners o = look(&l);
    assert_in_range(o.loads[o.owners[7]], 1, 4);
    owners_free(&o);
    pool_close(&l);
}

/* A member that leaves takes its report with it; a lost session ends the old one, and the next node has another. */
TEST(test_reports_end) {
    pool l;
    pool_open(&l, ITEMS);
    divvy_partitioner_config config = base_config(&l);
    config.on_session_loss = DIVVY_REJOIN;
    be_even();
    for (size_t n = 0; n < 2; n++) add(&l, n, &config);
    settle(&l);
    run_telling(&l, MINUTE_MS);
    divvy_strings *reports = divvy_testing_children(l.ensemble, "/pool/loads");
    divvy_strings *party = divvy_testing_children(l.ensemble, "/pool/party");
    assert_int_equal(divvy_strings_count(reports), 2);
    for (size_t n = 0; n < 2; n++) assert_string_equal(divvy_strings_get(reports, n), divvy_strings_get(party, n));
    divvy_strings_free(reports);
    divvy_strings_free(party);
    divvy_testing_expire(l.ensemble, l.members[1].client);
    divvy_testing_run(l.ensemble, 5000);
    settle(&l);
    run_telling(&l, MINUTE_MS);
    reports = divvy_testing_children(l.ensemble, "/pool/loads");
    party = divvy_testing_children(l.ensemble, "/pool/party");
    assert_int_equal(divvy_strings_count(reports), 2);
    for (size_t n = 0; n < 2; n++) assert_string_equal(divvy_strings_get(reports, n), divvy_strings_get(party, n));
    divvy_strings_free(reports);
    divvy_strings_free(party);
    finish(&l, 1);
    reports = divvy_testing_children(l.ensemble, "/pool/loads");
    assert_int_equal(divvy_strings_count(reports), 1);
    divvy_strings_free(reports);
    finish(&l, 0);
    reports = divvy_testing_children(l.ensemble, "/pool/loads");
    assert_int_equal(divvy_strings_count(reports), 0);
    divvy_strings_free(reports);
    pool_close(&l);
}

/* A report that somebody deletes is made again. */
TEST(test_report_deleted) {
    pool l;
    open_members(&l, NULL, 1);
    run_telling(&l, MINUTE_MS);
    divvy_strings *reports = divvy_testing_children(l.ensemble, "/pool/loads");
    char path[256];
    snprintf(path, sizeof path, "/pool/loads/%s", divvy_strings_get(reports, 0));
    divvy_strings_free(reports);
    assert_int_equal(divvy_testing_remove(l.ensemble, path), 0);
    for (size_t i = 0; i < ITEMS; i++) truth[i] = 2; /* something to write, so that it is missed */
    run_telling(&l, MINUTE_MS);
    assert_true(divvy_testing_exists(l.ensemble, path));
    pool_close(&l);
}
