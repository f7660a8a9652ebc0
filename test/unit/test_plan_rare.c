/* What random histories hardly ever meet: bugs that were found once, each in a history that is written down here. The
 * simulator's mutants put them back, and sim-mutants runs these tests on them. SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "plan_pool.h"

enum { ITEMS = 100, OLD = 2, DELAY_MS = 10 };

static const char root[] = "/pool/plan";

static void open_pool(pool *l) {
    pool_open_far(l, ITEMS, DELAY_MS, DELAY_MS);
    for (size_t n = 0; n < OLD; n++) add(l, n, NULL);
    settle(l);
}

/* T8: a member without items leaves, and its connection breaks when it has written the plan without it. Somebody has
 * come and gone before it is back, so that it waits for the party to settle again. When that has, nothing else is
 * under way: it has to see by itself that it is done. Mutant leave_unheard. */
TEST(test_leave_unheard) {
    static const char visitor[] = "/pool/party/visitor";
    pool l;
    divvy_partitioner_config config;
    open_pool(&l);
    member_config(&l, &config);
    config.weight = 0;
    config.handover_timeout_ms = 0;
    member *m = add(&l, OLD, &config);
    settle(&l);
    unsigned written = l.plan_writes;
    assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 0), DIVVY_ETIMEDOUT);
    for (int ms = 0; l.plan_writes == written && ms < 1000; ms++) divvy_testing_run(l.ensemble, 1);
    assert_int_equal(l.plan_writes, written + 1);
    assert_int_equal(divvy_testing_disconnect(l.ensemble, m->client, DIVVY_TESTING_APPLIED, 0), 0);
    assert_int_equal(divvy_testing_put(l.ensemble, visitor, "", 0, 0), 0);
    assert_int_equal(divvy_testing_remove(l.ensemble, visitor), 0);
    assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 20000), 0);
    pool_close(&l);
}

static unsigned some_follower(const pool *l) {
    return divvy_testing_leader(l->ensemble) == 0 ? 1 : 0;
}

/* P10: the session of a member took so long to be made that nothing is believed before the first proof. By then it has
 * read a plan that gives it items to prepare for, and its user is told of them all the same. Mutant
 * prepare_lost_unproven. */
TEST(test_prepare_lost_unproven) {
    enum { CREATION_MS = 6000, PREPARE_MS = 30000 };
    pool l;
    divvy_partitioner_config config;
    open_pool(&l);
    unsigned server = some_follower(&l);
    for (size_t n = 0; n < OLD; n++) {
        int other = (int)(server + 1) % 3;
        assert_int_equal(divvy_testing_prefer(l.ensemble, l.members[n].client, other), 0);
        divvy_testing_disconnect(l.ensemble, l.members[n].client, DIVVY_TESTING_APPLIED, 0);
    }
    settle(&l);
    member_config(&l, &config);
    config.prepare_timeout_ms = PREPARE_MS;
    member *next = add(&l, OLD, &config);
    assert_int_equal(divvy_testing_prefer(l.ensemble, next->client, (int)server), 0);
    assert_int_equal(divvy_testing_pause_server(l.ensemble, server, 1), 0);
    divvy_testing_run(l.ensemble, CREATION_MS);
    assert_int_equal(divvy_testing_pause_server(l.ensemble, server, 0), 0);
    divvy_testing_run(l.ensemble, 10000);
    divvy_partition *list = divvy_partitioner_to_prepare(next->partitioner);
    assert_true(divvy_partition_count(list) > 0);
    assert_int_equal(next->prepare, divvy_partition_count(list));
    divvy_partition_unref(list);
    pool_close(&l);
}

/* D34: a plan of a later release comes just as a member begins to write, whose attempt therefore finds nothing to do.
 * That is no reason to forget that the plan is to be replaced when nobody is left who follows it. Mutant
 * plan_newer_concluded. */
TEST(test_plan_newer_concluded) {
    static const char text[] = "{\"v\":2,\"something\":[]}";
    for (int64_t late_ms = 0; late_ms <= 3 * DELAY_MS; late_ms += DELAY_MS / 2) {
        pool l;
        pool_open_far(&l, ITEMS, DELAY_MS, DELAY_MS);
        member *m = add(&l, 0, NULL);
        settle(&l);
        unsigned written = l.plan_writes;
        assert_int_equal(divvy_testing_put(l.ensemble, root, text, sizeof text - 1, 0), 0);
        for (int ms = 0; l.plan_writes == written && ms < 1000; ms++) divvy_testing_run(l.ensemble, 1);
        divvy_testing_run(l.ensemble, late_ms);
        assert_int_equal(divvy_partitioner_set_weight(m->partitioner, 500), 0);
        divvy_testing_run(l.ensemble, 5000);
        assert_false(all_acquired(&l));
        settle(&l); /* a minute later */
        pool_close(&l);
    }
}

static member *add_static(pool *l, size_t n, const char *identifier, uint32_t weight) {
    divvy_partitioner_config config;
    member_config(l, &config);
    config.identifier = identifier;
    config.static_membership = 1;
    config.weight = weight;
    return add(l, n, &config);
}

static size_t count_in_party(const pool *l) {
    divvy_strings *nodes = divvy_testing_children(l->ensemble, "/pool/party");
    size_t count = divvy_strings_count(nodes);
    divvy_strings_free(nodes);
    return count;
}

static size_t share_of(const member *m) {
    divvy_partition *share = divvy_partitioner_partition(m->partitioner);
    size_t count = divvy_partition_count(share);
    divvy_partition_unref(share);
    return count;
}

/* T1, D12: an owner that has read none of several nodes of the next owner's identifier finds out which one counts, and
 * so does not wait for a process that is dead. Their names, by which they are listed, are in no order. Mutant
 * any_namesake. */
TEST(test_any_namesake) {
    enum { FIRST, AGAIN, LATE, RESTARTS = 5 };
    for (size_t restarts = 1; restarts <= RESTARTS; restarts++) {
        pool l;
        pool_open(&l, ITEMS);
        member *first = add_static(&l, FIRST, "a", 1000);
        for (size_t n = 0; n < restarts; n++) {
            add_static(&l, AGAIN, "b", 0);
            divvy_testing_run(l.ensemble, 500);
            assert_int_equal(divvy_testing_crash_client(l.ensemble, l.members[AGAIN].client), 0);
            forget_client(&l.members[AGAIN]);
        }
        member *newest = add_static(&l, AGAIN, "b", 0);
        divvy_testing_run(l.ensemble, 1000);
        member *late = add_static(&l, LATE, "z", 1000);
        divvy_testing_run(l.ensemble, 1000);
        assert_int_equal(share_of(late), ITEMS / 2);
        assert_int_equal(divvy_partitioner_set_weight(first->partitioner, 500), 0);
        assert_int_equal(divvy_partitioner_set_weight(newest->partitioner, 1000), 0);
        divvy_testing_run(l.ensemble, 1000);
        assert_int_equal(share_of(newest), 2 * ITEMS / 5);
        pool_close(&l);
    }
}

/* D38: a member never hears of its first node, and gives its session up before the servers do, whose new leader began
 * the timeout again. That node counts as later
 * than the next one, whose member does not know when it came. But no process has come in its place. Mutant
 * replaced_by_itself. */
TEST(test_replaced_by_itself) {
    enum { LATE_MS = 10000, SOON_MS = 100 };
    pool l;
    divvy_partitioner_config config;
    open_pool(&l);
    member_config(&l, &config);
    config.identifier = "static";
    config.static_membership = 1;
    config.on_session_loss = DIVVY_REJOIN;
    member *m = add(&l, OLD, &config);
    for (int ms = 0; count_in_party(&l) == OLD && ms < LATE_MS; ms++) divvy_testing_run(l.ensemble, 1);
    assert_int_equal(count_in_party(&l), OLD + 1);
    assert_int_equal(divvy_testing_link_client(l.ensemble, m->client, DIVVY_TESTING_LINK_DOWN), 0);
    divvy_testing_run(l.ensemble, LATE_MS / 2);
    assert_int_equal(divvy_testing_kill_server(l.ensemble, (unsigned)divvy_testing_leader(l.ensemble)), 0);
    for (int ms = 0; divvy_client_time_left_ms(m->client) > SOON_MS && ms < LATE_MS; ms++)
        divvy_testing_run(l.ensemble, 1);
    assert_int_equal(divvy_testing_link_client(l.ensemble, m->client, DIVVY_TESTING_LINK_UP), 0);
    bool both = false;
    for (int ms = 0; ms < LATE_MS; ms++) {
        divvy_testing_run(l.ensemble, 1);
        both |= count_in_party(&l) == OLD + 2;
        assert_false(divvy_partitioner_is_replaced(m->partitioner));
    }
    assert_true(both);
    assert_true(share_of(m) > 0);
    assert_int_equal(m->warnings[DIVVY_WARN_FENCED], 0);
    pool_close(&l);
}

/* ---- a plan that somebody restores ---- */

typedef struct {
    char *bytes; /* NULL: not read yet */
    size_t count;
} backup;

static void on_read(void *context, const dv_reply *reply, int64_t now) {
    backup *b = context;
    (void)now;
    assert_int_equal(reply->error, 0);
    b->count = reply->data_bytes;
    b->bytes = malloc(b->count + 1);
    assert_non_null(b->bytes);
    memcpy(b->bytes, reply->data, b->count);
    b->bytes[b->count] = '\0';
}

static backup read_plan(const pool *l) {
    backup b = {NULL, 0};
    divvy_client *client = l->members[0].client;
    dv_client_lock(client);
    assert_int_equal(dv_znode_get(client->znode, root, NULL, on_read, &b), 0);
    dv_client_unlock(client);
    for (int ms = 0; !b.bytes && ms < 1000; ms++) divvy_testing_run(l->ensemble, 1);
    assert_non_null(b.bytes);
    return b;
}

static bool is_for_a_leave(const pool *l) {
    backup b = read_plan(l);
    bool is = strstr(b.bytes, "\"reason\":\"leave\"") != NULL;
    free(b.bytes);
    return is;
}

/* T8: a member that hands over is marked in the plan as one that leaves. Then somebody puts the plan of before there
 * again, which lacks the mark. The member asks for it once more. Mutant leave_mark_lost. */
TEST(test_leave_mark_lost) {
    enum { PATIENCE_MS = 60000, SOON_MS = 5000 };
    pool l;
    divvy_partitioner_config config;
    pool_open(&l, ITEMS);
    for (size_t n = 0; n <= OLD; n++) {
        member_config(&l, &config);
        config.prepare_timeout_ms = config.handover_timeout_ms = PATIENCE_MS;
        add(&l, n, &config);
        settle(&l);
    }
    backup before = read_plan(&l);
    assert_int_equal(divvy_partitioner_leave(l.members[0].partitioner, DIVVY_LEAVE_WORKING, 0), DIVVY_ETIMEDOUT);
    divvy_testing_run(l.ensemble, SOON_MS);
    assert_true(is_for_a_leave(&l));
    assert_int_equal(divvy_testing_put(l.ensemble, root, before.bytes, before.count, 0), 0);
    free(before.bytes);
    divvy_testing_run(l.ensemble, SOON_MS);
    assert_true(is_for_a_leave(&l));
    pool_close(&l);
}

/* ---- a report of loads ---- */

static void tell_loads(const pool *l, const member *m) {
    for (size_t i = 0; i < l->count; i++)
        assert_int_equal(divvy_partitioner_set_load(m->partitioner, l->items[i], 1), 0);
}

/* D46: somebody deletes a member's node in the party, and the member makes another. Its report goes with the old one:
 * there is one report, of the name that its member has now. Mutant report_outlives_node. */
TEST(test_report_outlives_node) {
    enum { AUDIT_MS = 70000 };
    char path[256];
    pool l;
    pool_open(&l, 4);
    member *m = add(&l, 0, NULL);
    settle(&l);
    tell_loads(&l, m);
    divvy_testing_run(l.ensemble, AUDIT_MS);
    divvy_strings *nodes = divvy_testing_children(l.ensemble, "/pool/party");
    snprintf(path, sizeof path, "/pool/party/%s", divvy_strings_get(nodes, 0));
    divvy_strings_free(nodes);
    assert_int_equal(divvy_testing_remove(l.ensemble, path), 0);
    divvy_testing_run(l.ensemble, AUDIT_MS);
    tell_loads(&l, m);
    divvy_testing_run(l.ensemble, AUDIT_MS);
    nodes = divvy_testing_children(l.ensemble, "/pool/party");
    divvy_strings *reports = divvy_testing_children(l.ensemble, "/pool/loads");
    assert_int_equal(divvy_strings_count(nodes), 1);
    assert_int_equal(divvy_strings_count(reports), 1);
    assert_string_not_equal(divvy_strings_get(nodes, 0), path + sizeof "/pool/party");
    assert_string_equal(divvy_strings_get(reports, 0), divvy_strings_get(nodes, 0));
    divvy_strings_free(nodes);
    divvy_strings_free(reports);
    pool_close(&l);
}

/* Returns the name of the member's node in the directory, a copy, or NULL. */
static char *node_of(const pool *l, const char *directory, const member *m) {
    char *name = NULL;
    divvy_strings *nodes = divvy_testing_children(l->ensemble, directory);
    for (size_t i = 0; i < divvy_strings_count(nodes); i++)
        if (strstr(divvy_strings_get(nodes, i), m->identifier)) name = strdup(divvy_strings_get(nodes, i));
    divvy_strings_free(nodes);
    return name;
}

/* Deletes its node in the party, and waits until it has a note under another name. Until then it looks at its items. */
static void have_join_again(pool *l, const member *m) {
    char path[256], *old = node_of(l, "/pool/party", m), *note = NULL;
    assert_non_null(old);
    snprintf(path, sizeof path, "/pool/party/%s", old);
    assert_int_equal(divvy_testing_remove(l->ensemble, path), 0);
    for (int ms = 0; !note || strcmp(note, old) == 0; ms++) {
        assert_true(ms < 1000);
        assert_int_equal(divvy_partitioner_prepared(m->partitioner, NULL), 0);
        divvy_testing_run(l->ensemble, 1);
        free(note);
        note = node_of(l, "/pool/notes", m);
    }
    free(old);
    free(note);
}

/* T1: somebody deletes the node of a member that is in RELEASE. It joins again, and its new note stands just before its
 * user has released: what has waited for its next owner waits on. Mutant note_stands_unheard. */
TEST(test_note_stands_again) {
    enum { OWNER, NEXT };
    pool l;
    divvy_partitioner_config config;
    pool_open_far(&l, ITEMS, DELAY_MS, DELAY_MS);
    member *owner = add(&l, OWNER, NULL);
    settle(&l);
    member_config(&l, &config);
    config.prepare_timeout_ms = 20000;
    member *next = add(&l, NEXT, &config);
    divvy_testing_run(l.ensemble, 3000);
    owner->patient = true;
    divvy_partition *list = divvy_partitioner_to_prepare(next->partitioner);
    assert_int_equal(divvy_partition_count(list), ITEMS / 2);
    assert_int_equal(divvy_partitioner_prepared(next->partitioner, divvy_partition_item(list, 0)), 0);
    divvy_partition_unref(list);
    for (int ms = 0; divvy_partitioner_state(owner->partitioner) != DIVVY_RELEASE; ms++) {
        assert_true(ms < 1000);
        divvy_testing_run(l.ensemble, 1);
    }
    have_join_again(&l, owner);
    divvy_testing_run(l.ensemble, DELAY_MS + 2);
    assert_int_equal(divvy_partitioner_release_set(owner->partitioner), 0);
    assert_int_equal(share_of(owner), ITEMS - 1);
    assert_int_equal(divvy_partitioner_state(owner->partitioner), DIVVY_ALLOCATING);
    owner->patient = false;
    pool_close(&l);
}

/* A9, D19: all items come to need a tag that nobody has, and one may move in a step. None has a new owner; yet rounds
 * go on until they have all been taken from their owners. Mutant nobody_is_no_round. */
TEST(test_nobody_is_no_round) {
    pool l;
    divvy_partitioner_config config;
    pool_open(&l, 12);
    for (size_t n = 0; n < 2; n++) {
        member_config(&l, &config);
        config.max_moves = 1;
        add(&l, n, &config);
    }
    settle(&l);
    assert_int_equal(divvy_pool_need(l.members[0].client, "/pool", "item-*", "rare", NULL), 0);
    divvy_testing_run(l.ensemble, 10000);
    assert_int_equal(share_of(&l.members[0]) + share_of(&l.members[1]), 0);
    pool_close(&l);
}
