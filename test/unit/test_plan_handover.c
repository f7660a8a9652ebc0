/* Handovers: an item that moves keeps its owner until the next one is ready. SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ITEMS = 1000, OLD = 4, MOVED = ITEMS / (OLD + 1) };

static void add_patient(pool *l, size_t n, int64_t handover_timeout_ms) {
    divvy_partitioner_config config;
    member_config(l, &config);
    config.handover_timeout_ms = handover_timeout_ms;
    add(l, n, &config);
}

static void open_with(pool *l, int64_t handover_timeout_ms) {
    pool_open(l, ITEMS);
    for (size_t n = 0; n < OLD; n++) add_patient(l, n, handover_timeout_ms);
    settle(l);
}

/* A member that prepares for as long as it takes. */
static member *add_preparing(pool *l, size_t n, int64_t prepare_timeout_ms) {
    divvy_partitioner_config config;
    member_config(l, &config);
    config.prepare_timeout_ms = prepare_timeout_ms;
    return add(l, n, &config);
}

static size_t count_revoked(const pool *l) {
    size_t count = 0;
    for (size_t n = 0; n < OLD; n++) {
        for (size_t r = 0; r < REASONS; r++) count += l->members[n].revoked[r];
    }
    return count;
}

static size_t count_leaving(const pool *l) {
    size_t count = 0;
    for (size_t n = 0; n < OLD; n++) count += l->members[n].leaving - l->members[n].staying;
    return count;
}

/* How many items the snapshots of the old members show as leaving. */
static size_t count_shown_leaving(const pool *l) {
    size_t count = 0;
    for (size_t n = 0; n < OLD; n++) {
        divvy_partition *share = l->members[n].client ? divvy_partitioner_partition(l->members[n].partitioner) : NULL;
        for (size_t k = 0; k < divvy_partition_count(share); k++) count += (size_t)divvy_partition_leaving(share, k);
        divvy_partition_unref(share);
    }
    return count;
}

static size_t count_owned(const pool *l) {
    owners o = look(l);
    size_t owned = o.owned;
    owners_free(&o);
    return owned;
}

/* Time in which items have no owner: item-milliseconds, looked at each millisecond until all are ACQUIRED. */
static size_t unowned_until_settled(pool *l) {
    size_t sum = 0;
    for (int ms = 0; ms < 60000; ms++) {
        divvy_testing_run(l->ensemble, 1);
        size_t owned = count_owned(l);
        if (owned == ITEMS && all_acquired(l)) return sum;
        sum += ITEMS - owned;
    }
    fail_msg("the pool does not settle");
    return 0;
}

static divvy_stats stats_of(const pool *l, size_t n) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(l->members[n].client, &stats, sizeof stats), 0);
    return stats;
}

/* T6: whom an item is given needs no list of its queue, and one multi moves many. */
TEST(test_join_lists_no_queue) {
    pool l;
    open_with(&l, 30000);
    divvy_stats before[OLD];
    for (size_t n = 0; n < OLD; n++) before[n] = stats_of(&l, n);
    add(&l, OLD, NULL);
    settle(&l);
    divvy_stats stats = stats_of(&l, OLD);
    assert_true(stats.children <= 4);
    assert_true(stats.requests <= 60);
    for (size_t n = 0; n < OLD; n++) {
        stats = stats_of(&l, n);
        assert_true(stats.children - before[n].children <= 4);
        assert_true(stats.requests - before[n].requests <= 60);
    }
    assert_int_equal(count_revoked(&l), MOVED);
    pool_close(&l);
}

/* Lets another member join, and counts the requests of all members in the next seconds. *gained: how many items the new
 * member has at the end. */
static size_t count_requests_of_join(size_t items, uint32_t weight, size_t *gained) {
    enum { SECONDS_MS = 5000 };
    pool l;
    size_t before = 0, after = 0;
    pool_open(&l, items);
    for (size_t n = 0; n < OLD; n++) add(&l, n, NULL);
    settle(&l);
    for (size_t n = 0; n < OLD; n++) before += stats_of(&l, n).requests;
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.weight = weight;
    add(&l, OLD, &config);
    divvy_testing_run(l.ensemble, SECONDS_MS);
    for (size_t n = 0; n <= OLD; n++) after += stats_of(&l, n).requests;
    divvy_partition *share = divvy_partitioner_partition(l.members[OLD].partitioner);
    *gained = divvy_partition_count(share);
    divvy_partition_unref(share);
    pool_close(&l);
    return after - before;
}

/* L5: what a join costs beyond one that moves nothing. A plan that moves items is longer: a chunk is written,
 * and each member reads it. */
TEST(test_join_costs_few_requests) {
    enum { MANY = 10000, IN_A_MULTI = 199 };
    size_t none = 1, gained = 0;
    size_t still = count_requests_of_join(MANY, 0, &none), moving = count_requests_of_join(MANY, 1000, &gained);
    assert_int_equal(none, 0);
    assert_int_equal(gained, MANY / (OLD + 1));
    print_message("%zu requests for %zu items, and %zu without\n", moving, gained, still);
    /* Each old member reads one note that says that all is ready (T0); it read three when they were said in parts. */
    assert_true(moving <= still + 4 * gained / IN_A_MULTI + 4 * OLD + 6);
}

/* T0: a next owner whose places come in several multis says of all of them that they are ready without a pause. */
TEST(test_join_waits_for_no_timer) {
    enum { MANY = 10000 };
    pool l;
    pool_open(&l, MANY);
    for (size_t n = 0; n < OLD; n++) add(&l, n, NULL);
    settle(&l);
    add(&l, OLD, NULL);
    int ms = 0;
    for (; l.members[OLD].states[DIVVY_ACQUIRED] == 0 && ms < 60000; ms++) divvy_testing_run(l.ensemble, 1);
    assert_true(ms < 100 + 90); /* time_boundary_ms, and less than one more pause */
    pool_close(&l);
}

/* T1 to T3: nobody stops work while the next owner prepares; then the items move at once. */
TEST(test_no_gap_while_preparing) {
    pool l;
    open_with(&l, 30000);
    member *next = add_preparing(&l, OLD, 25000);
    divvy_testing_run(l.ensemble, 20000);
    assert_int_equal(next->prepare, MOVED);
    assert_int_equal(count_leaving(&l), MOVED);
    assert_int_equal(count_shown_leaving(&l), MOVED);
    assert_int_equal(count_revoked(&l), 0);
    assert_int_equal(count_owned(&l), ITEMS);
    for (size_t n = 0; n < OLD; n++)
        assert_int_equal(divvy_partitioner_state(l.members[n].partitioner), DIVVY_ACQUIRED);
    assert_int_equal(divvy_partitioner_prepared(next->partitioner, NULL), 0);
    size_t unowned = unowned_until_settled(&l);
    assert_true(unowned <= 20 * MOVED); /* a few message delays for each */
    assert_int_equal(count_revoked(&l), MOVED);
    assert_int_equal(count_shown_leaving(&l), 0);
    assert_at_rest(&l);
    pool_close(&l);
}

/* T1: nobody stops work for a member that it has not seen in the party yet, when the plan comes first. */
TEST(test_plan_before_party) {
    pool l;
    open_with(&l, 30000);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.time_boundary_ms = 300; /* the others have 100 */
    member *late = add(&l, OLD, &config);
    settle(&l);
    member *next = add_preparing(&l, OLD + 1, 25000);
    divvy_testing_run(l.ensemble, 20000);
    assert_int_equal(next->prepare, ITEMS / (OLD + 2));
    assert_int_equal(late->revoked[DIVVY_REASON_JOIN], 0);
    assert_true(late->leaving > 0);
    assert_int_equal(count_owned(&l), ITEMS);
    pool_close(&l);
}

/* T2: who has read the owner's note before a plan gives it more is told of that, though nothing happens after it. */
TEST(test_told_to_prepare_more) {
    pool l;
    open_with(&l, 30000);
    member *next = add_preparing(&l, OLD, 60000);
    divvy_testing_run(l.ensemble, 3000);
    assert_int_equal(next->prepare, MOVED);
    assert_int_equal(divvy_testing_pause_client(l.ensemble, next->client, 1), 0);
    assert_int_equal(divvy_partitioner_set_weight(l.members[0].partitioner, 0), 0);
    divvy_testing_run(l.ensemble, 2000);
    assert_int_equal(divvy_testing_pause_client(l.ensemble, next->client, 0), 0);
    divvy_testing_run(l.ensemble, 2000);
    divvy_partition *share = divvy_partitioner_to_prepare(next->partitioner);
    assert_true(divvy_partition_count(share) > MOVED);
    assert_int_equal(next->prepare, divvy_partition_count(share));
    divvy_partition_unref(share);
    pool_close(&l);
}

/* T1, D36: nor does anybody stop for a static member, whose node's data only the writer of the plan has read. */
TEST(test_no_gap_for_static_member) {
    pool l;
    pool_open(&l, ITEMS);
    for (size_t n = 0; n <= OLD; n++) {
        divvy_partitioner_config config;
        char identifier[16];
        snprintf(identifier, sizeof identifier, "static-%zu", n);
        member_config(&l, &config);
        config.identifier = identifier;
        config.static_membership = 1;
        if (n == OLD) settle(&l);
        config.prepare_timeout_ms = n == OLD ? 25000 : 0;
        add(&l, n, &config);
    }
    divvy_testing_run(l.ensemble, 20000);
    assert_int_equal(l.members[OLD].prepare, MOVED);
    assert_int_equal(count_leaving(&l), MOVED);
    assert_int_equal(count_revoked(&l), 0);
    assert_int_equal(count_owned(&l), ITEMS);
    assert_int_equal(divvy_partitioner_prepared(l.members[OLD].partitioner, NULL), 0);
    assert_true(unowned_until_settled(&l) <= 20 * MOVED);
    pool_close(&l);
}

static void all_are_prepared(const pool *l) {
    for (size_t n = 0; n <= OLD; n++) assert_int_equal(divvy_partitioner_prepared(l->members[n].partitioner, NULL), 0);
}

/* T2: a next owner that knows the owner's note from an earlier change, and reads its news before the plan, prepares. */
TEST(test_prepares_each_time) {
    pool l;
    pool_open(&l, ITEMS);
    for (size_t n = 0; n <= OLD; n++) {
        if (n == OLD) settle(&l);
        add_preparing(&l, n, 25000);
    }
    divvy_testing_run(l.ensemble, 3000);
    all_are_prepared(&l);
    settle(&l);
    for (size_t change = 0; change < 2 * OLD; change++) {
        size_t revoked = count_revoked(&l);
        assert_int_equal(divvy_partitioner_set_weight(l.members[change / 2].partitioner, change % 2 ? 1000 : 0), 0);
        divvy_testing_run(l.ensemble, 3000);
        assert_int_equal(count_revoked(&l), revoked);
        assert_int_equal(count_owned(&l), ITEMS);
        all_are_prepared(&l);
        settle(&l);
    }
    pool_close(&l);
}

/* T2: each item moves when it is prepared, and not before. Who polls sees the same. */
TEST(test_one_by_one) {
    pool l;
    open_with(&l, 30000);
    member *next = add_preparing(&l, OLD, 25000);
    divvy_testing_run(l.ensemble, 2000);
    divvy_partition *list = divvy_partitioner_to_prepare(next->partitioner);
    assert_int_equal(divvy_partition_count(list), MOVED);
    assert_int_equal(divvy_partition_token(list, 0), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(divvy_partitioner_prepared(next->partitioner, divvy_partition_item(list, i)), 0);
        divvy_testing_run(l.ensemble, 500);
        divvy_partition *share = divvy_partitioner_partition(next->partitioner);
        assert_int_equal(divvy_partition_count(share), i + 1);
        divvy_partition_unref(share);
        assert_int_equal(count_owned(&l), ITEMS);
        assert_int_equal(count_revoked(&l), i + 1);
    }
    divvy_partition_unref(list);
    assert_int_equal(divvy_partitioner_prepared(next->partitioner, "nothing"), DIVVY_ENOENT);
    assert_int_equal(divvy_partitioner_prepared(NULL, NULL), DIVVY_EINVAL);
    assert_null(divvy_partitioner_to_prepare(NULL));
    pool_close(&l);
}

/* Has the member prepare for the first of the items that are to come. Returns its number. */
static int prepare_one(member *next) {
    divvy_partition *list = divvy_partitioner_to_prepare(next->partitioner);
    assert_true(divvy_partition_count(list) > 0);
    const char *item = divvy_partition_item(list, 0);
    int number = item_number(item);
    assert_int_equal(divvy_partitioner_prepared(next->partitioner, item), 0);
    divvy_partition_unref(list);
    return number;
}

/* T3: what is ready while its owner's note is being written for another item is revoked when that write is done, and so
 * has no owner for four messages only: the deletes, the event, the read, its answer. */
TEST(test_revoked_when_the_note_is_free) {
    enum { DELAY_MS = 20, NOT_YET_MS = 30, OWNER = 0, FIRST, SECOND };
    pool l;
    pool_open_far(&l, ITEMS, DELAY_MS, DELAY_MS);
    add_patient(&l, OWNER, 60000);
    settle(&l);
    member *first = add_preparing(&l, FIRST, 45000), *second = add_preparing(&l, SECOND, 45000);
    divvy_testing_run(l.ensemble, 5000);
    prepare_one(first);
    divvy_testing_run(l.ensemble, NOT_YET_MS);
    int item = prepare_one(second), gap_ms = 0, owner = OWNER;
    for (int ms = 0; ms < 1000; ms++, gap_ms += owner == NOBODY) {
        divvy_testing_run(l.ensemble, 1);
        owners o = look(&l);
        owner = o.owners[item];
        owners_free(&o);
    }
    assert_int_equal(owner, SECOND);
    assert_in_range(gap_ms, DELAY_MS, 4 * DELAY_MS + 1);
    pool_close(&l);
}

/* T2: who does not say that he is prepared is taken to be after prepare_timeout_ms. */
TEST(test_prepare_timeout) {
    pool l;
    open_with(&l, 30000);
    add_preparing(&l, OLD, 3000);
    divvy_testing_run(l.ensemble, 2500);
    assert_int_equal(count_revoked(&l), 0);
    divvy_testing_run(l.ensemble, 3000);
    assert_int_equal(count_revoked(&l), MOVED);
    settle(&l);
    pool_close(&l);
}

/* T2: an item that its last owner by the plan does not have, as he prepares for it himself, is asked for all the same,
 * and so is one whose time to prepare is shorter than the patience for such an owner. */
TEST(test_given_by_one_who_prepares) {
    pool l;
    open_with(&l, 30000);
    add_preparing(&l, OLD, 25000);
    divvy_testing_run(l.ensemble, 2000);
    member *next = add_preparing(&l, OLD + 1, 20);
    divvy_testing_run(l.ensemble, 5000);
    divvy_partition *share = divvy_partitioner_partition(next->partitioner);
    assert_true(divvy_partition_count(share) >= ITEMS / (OLD + 2));
    divvy_partition_unref(share);
    assert_int_equal(divvy_partitioner_state(next->partitioner), DIVVY_ACQUIRED);
    pool_close(&l);
}

/* T4: an owner waits for handover_timeout_ms, and no longer. */
TEST(test_overdue) {
    pool l;
    open_with(&l, 2000);
    add_preparing(&l, OLD, 60000);
    divvy_testing_run(l.ensemble, 1500);
    assert_int_equal(count_revoked(&l), 0);
    divvy_testing_run(l.ensemble, 2500);
    assert_int_equal(count_revoked(&l), MOVED);
    assert_int_equal(count_owned(&l), ITEMS - MOVED); /* they wait for who prepares */
    assert_int_equal(divvy_partitioner_prepared(l.members[OLD].partitioner, NULL), 0);
    settle(&l);
    pool_close(&l);
}

/* What must hold, 4: a plan that goes back interrupts nobody. */
TEST(test_plan_goes_back) {
    for (int ends = 0; ends < 2; ends++) {
        pool l;
        open_with(&l, 30000);
        owners before = look(&l);
        add_preparing(&l, OLD, 25000);
        divvy_testing_run(l.ensemble, 3000);
        assert_int_equal(count_leaving(&l), MOVED);
        if (ends) finish(&l, OLD);
        else crash(&l, OLD);
        settle(&l);
        owners after = look(&l);
        assert_int_equal(moved(&l, &before, &after), 0);
        assert_int_equal(count_revoked(&l), 0);
        assert_int_equal(count_leaving(&l), 0);
        assert_at_rest(&l);
        owners_free(&before);
        owners_free(&after);
        pool_close(&l);
    }
}

/* T1, T3: a static member is found by its identifier, though its owners have not read its node; also when it is started
 * again long before its old session ends, for which no plan is written. */
TEST(test_static_next_owner) {
    pool l;
    open_with(&l, 30000);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.prepare_timeout_ms = 60000;
    config.static_membership = 1;
    config.rejoin_delay_ms = 20000;
    add(&l, OLD, &config);
    divvy_testing_run(l.ensemble, 2000);
    assert_int_equal(count_leaving(&l), MOVED);
    assert_int_equal(divvy_testing_crash_client(l.ensemble, l.members[OLD].client), 0);
    forget_client(&l.members[OLD]);
    member *next = add(&l, OLD, &config);
    divvy_testing_run(l.ensemble, 2000);
    assert_int_equal(divvy_partitioner_prepared(next->partitioner, NULL), 0);
    divvy_testing_run(l.ensemble, 1000);
    assert_int_equal(count_revoked(&l), MOVED);
    divvy_partition *share = divvy_partitioner_partition(next->partitioner);
    assert_int_equal(divvy_partition_count(share), MOVED);
    divvy_partition_unref(share);
    pool_close(&l);
}

/* Who prepares hears that he need not when the plan gives the items to another. */
TEST(test_not_needed) {
    pool l;
    open_with(&l, 30000);
    member *next = add_preparing(&l, OLD, 25000);
    divvy_testing_run(l.ensemble, 3000);
    assert_int_equal(next->prepare, MOVED);
    assert_int_equal(divvy_partitioner_set_weight(next->partitioner, 0), 0);
    divvy_testing_run(l.ensemble, 3000);
    size_t lost = 0;
    for (size_t r = 0; r < REASONS; r++) lost += next->lost[r];
    assert_int_equal(lost, MOVED);
    divvy_partition *list = divvy_partitioner_to_prepare(next->partitioner);
    assert_int_equal(divvy_partition_count(list), 0);
    divvy_partition_unref(list);
    assert_int_equal(count_revoked(&l), 0);
    assert_int_equal(count_owned(&l), ITEMS);
    pool_close(&l);
}

/* Without a note on either side items move as they always did: revoked at once. */
TEST(test_without_notes) {
    for (int side = 0; side < 2; side++) {
        pool l;
        open_with(&l, side ? 0 : 30000);
        divvy_partitioner_config config;
        member_config(&l, &config);
        config.prepare_timeout_ms = 25000;
        config.handover_timeout_ms = side ? 30000 : 0;
        add(&l, OLD, &config);
        divvy_testing_run(l.ensemble, 1000);
        assert_int_equal(count_revoked(&l), MOVED);
        assert_int_equal(count_leaving(&l), 0);
        settle(&l);
        assert_int_equal(count_owned(&l), ITEMS);
        pool_close(&l);
    }
}

static void delete_note(const pool *l, size_t n) {
    char path[300] = "", end[40];
    snprintf(end, sizeof end, "-%s", l->members[n].identifier);
    divvy_strings *nodes = divvy_testing_children(l->ensemble, "/pool/notes");
    for (size_t i = 0; i < divvy_strings_count(nodes); i++) {
        const char *node = divvy_strings_get(nodes, i), *at = strstr(node, end);
        if (at && at[strlen(end)] == '\0') snprintf(path, sizeof path, "/pool/notes/%s", node);
    }
    divvy_strings_free(nodes);
    assert_int_equal(divvy_testing_remove(l->ensemble, path), 0);
}

/* What does not fit into a note is said later, and nobody writes all the time until then. */
TEST(test_note_too_small) {
    enum { MANY = 72000, SIX = 6, WAIT_MS = 20000 };
    pool l;
    pool_open(&l, MANY);
    for (size_t n = 0; n < SIX; n++) add_preparing(&l, n, WAIT_MS + 5000);
    settle(&l);
    assert_int_equal(divvy_partitioner_set_weight(l.members[0].partitioner, 0), 0);
    divvy_testing_run(l.ensemble, 3000);
    divvy_partition *share = divvy_partitioner_partition(l.members[0].partitioner);
    size_t leaving = 0;
    for (size_t k = 0; k < divvy_partition_count(share); k++) leaving += (size_t)divvy_partition_leaving(share, k);
    divvy_partition_unref(share);
    assert_int_equal(leaving, MANY / SIX);
    unsigned writes = l.writes;
    divvy_testing_run(l.ensemble, WAIT_MS);
    assert_true(l.writes - writes <= 2 * WAIT_MS / 1000);
    for (size_t n = 1; n < SIX; n++) assert_int_equal(divvy_partitioner_prepared(l.members[n].partitioner, NULL), 0);
    settle(&l);
    pool_close(&l);
}

/* T4, T6: a note that somebody deletes makes its member one without, on either side; nobody waits for it. */
TEST(test_note_deleted) {
    for (size_t side = 0; side < 2; side++) {
        pool l;
        open_with(&l, 30000);
        member *next = add_preparing(&l, OLD, 25000);
        divvy_testing_run(l.ensemble, 3000);
        delete_note(&l, side ? OLD : 0);
        divvy_testing_run(l.ensemble, 30000);
        if (side) assert_int_equal(count_revoked(&l), MOVED);
        assert_int_equal(divvy_partitioner_prepared(next->partitioner, NULL), 0);
        settle(&l);
        assert_int_equal(count_owned(&l), ITEMS);
        pool_close(&l);
    }
}
