/* Pools whose set of items is changed while they work: docs/protocol.md, D17. On the in-memory ensemble, in virtual
 * time. SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ALL = 60 }; /* items that there may be; members are configured with some of them */

/* Some of the pool's items, in their order. */
typedef struct {
    const char *names[ALL];
    size_t count;
} set;

static set items(const pool *l, size_t from, size_t to) {
    set s = {.count = to - from};
    for (size_t i = from; i < to; i++) s.names[i - from] = l->items[i];
    return s;
}

static member *add_with(pool *l, size_t n, const set *s, int assign) {
    divvy_partitioner_config config;
    member_config(l, &config);
    config.items = s->names;
    config.item_count = s->count;
    config.assign = assign;
    return add(l, n, &config);
}

static int ask(member *m, const set *s) {
    return divvy_partitioner_set_items(m->partitioner, s->names, s->count);
}

/* Each of these items has one owner, and no other has any. */
static void settle_on(pool *l, const set *s) {
    settle_owned(l, s->count);
    owners o = look(l);
    for (size_t i = 0; i < s->count; i++) assert_int_not_equal(o.owners[item_number(s->names[i])], NOBODY);
    owners_free(&o);
}

/* Time goes on; at no moment has an item two owners. */
static void watch(pool *l, int64_t ms) {
    for (int64_t at = 0; at < ms; at += 10) {
        divvy_testing_run(l->ensemble, 10);
        owners o = look(l);
        owners_free(&o);
    }
}

/* One call at one member changes the set for all, by one write; items of both sets stay where they are and keep their
 * tokens, and what comes and goes does so because of the set. The order in which items are given does not matter. */
TEST(test_changed) {
    pool l;
    pool_open(&l, ALL);
    set old = items(&l, 0, 50), next = items(&l, 5, 60);
    for (size_t n = 0; n < 5; n++) add_with(&l, n, &old, DIVVY_ASSIGN_AUTO);
    settle_on(&l, &old);
    owners before = look(&l);
    unsigned plan_writes = l.plan_writes;
    for (size_t i = 0; i < next.count / 2; i++) {
        const char *name = next.names[i];
        next.names[i] = next.names[next.count - 1 - i];
        next.names[next.count - 1 - i] = name;
    }
    assert_int_equal(ask(&l.members[3], &next), 0);
    settle_on(&l, &next);
    owners after = look(&l);
    for (size_t i = 5; i < 50; i++) {
        assert_int_equal(before.owners[i], after.owners[i]);
        assert_int_equal(before.tokens[i], after.tokens[i]);
    }
    assert_int_equal(l.plan_writes, plan_writes + 1);
    size_t gained = 0, revoked = 0;
    for (size_t n = 0; n < 5; n++) {
        gained += l.members[n].gained[DIVVY_REASON_SET];
        revoked += l.members[n].revoked[DIVVY_REASON_SET];
        assert_int_equal(after.loads[n], 11);
    }
    assert_int_equal(gained, 10);
    assert_int_equal(revoked, 5);
    assert_int_equal(ask(&l.members[0], &next), 0); /* what is there already */
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&after);
    pool_close(&l);
}

/* Removed items stay locked until their owners release them. A member that is dealt them again before waits for
 * that. */
TEST(test_slow_release) {
    pool l;
    pool_open(&l, ALL);
    set all = items(&l, 0, 12), few = items(&l, 4, 12);
    for (size_t n = 0; n < 3; n++) add_with(&l, n, &all, DIVVY_ASSIGN_AUTO)->patient = true;
    settle_on(&l, &all);
    assert_int_equal(ask(&l.members[0], &few), 0);
    watch(&l, 2000);
    size_t held = 0;
    for (size_t n = 0; n < 3; n++) {
        divvy_partition *share = divvy_partitioner_partition(l.members[n].partitioner);
        held += divvy_partition_count(share);
        divvy_partition_unref(share);
    }
    assert_int_equal(held, 12);
    assert_int_equal(ask(&l.members[1], &all), 0);
    watch(&l, 2000);
    for (size_t n = 0; n < 3; n++) l.members[n].patient = false;
    for (size_t n = 0; n < 3; n++) {
        if (divvy_partitioner_state(l.members[n].partitioner) == DIVVY_RELEASE)
            assert_int_equal(divvy_partitioner_release_set(l.members[n].partitioner), 0);
    }
    settle_on(&l, &all);
    pool_close(&l);
}

/* A list that is no set is refused, and so is a set where a rule of names decides. Nothing changes then. The
 * message says why. */
TEST(test_refused) {
    pool l;
    pool_open(&l, ALL);
    set old = items(&l, 0, 10), next = items(&l, 0, 20);
    member *m = add_with(&l, 0, &old, DIVVY_ASSIGN_AUTO);
    settle_on(&l, &old);
    const char *const doubled[] = {"a", "b", "a"}, *const empty[] = {"a", ""}, *const null[] = {NULL};
    assert_int_equal(divvy_partitioner_set_items(NULL, next.names, next.count), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_set_items(m->partitioner, NULL, 1), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_set_items(m->partitioner, next.names, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_set_items(m->partitioner, doubled, 3), DIVVY_EINVAL);
    assert_non_null(strstr(divvy_client_error(m->client), "set_items: the item \"a\" is given twice"));
    assert_int_equal(divvy_partitioner_set_items(m->partitioner, empty, 2), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_set_items(m->partitioner, null, 1), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_set_items(m->partitioner, next.names, 1000001), DIVVY_E2BIG);
    char *longest = malloc(70000);
    memset(longest, 'n', 69999);
    longest[69999] = '\0';
    const char *const too_long[] = {longest};
    assert_int_equal(divvy_partitioner_set_items(m->partitioner, too_long, 1), DIVVY_E2BIG);
    free(longest);

    member *other = add_with(&l, 1, &old, DIVVY_ASSIGN_RENDEZVOUS);
    settle_on(&l, &old);
    assert_int_equal(ask(m, &next), DIVVY_ESTATE);
    assert_non_null(strstr(divvy_client_error(m->client), "does not follow plans"));
    assert_int_equal(ask(other, &next), DIVVY_ESTATE);
    assert_non_null(strstr(divvy_client_error(other->client), "rule of names"));
    settle_on(&l, &old);
    finish(&l, 1);
    settle_on(&l, &old);
    assert_int_equal(ask(m, &next), 0);
    settle_on(&l, &next);
    assert_int_equal(divvy_partitioner_finish(m->partitioner, 30000), 0);
    assert_int_equal(ask(m, &next), DIVVY_ESTATE);
    pool_close(&l);
}

/* A set that is asked for before there is a party waits for the party; one that is asked for on a link that is down
 * waits for the link. */
TEST(test_asked_early) {
    pool l;
    pool_open(&l, ALL);
    set old = items(&l, 0, 10), next = items(&l, 3, 20), last = items(&l, 6, 30);
    member *m = add_with(&l, 0, &old, DIVVY_ASSIGN_AUTO);
    assert_int_equal(ask(m, &next), 0);
    add_with(&l, 1, &old, DIVVY_ASSIGN_AUTO);
    settle_on(&l, &next);
    assert_int_equal(divvy_testing_link_client(l.ensemble, m->client, DIVVY_TESTING_LINK_DOWN), 0);
    assert_int_equal(ask(m, &last), 0);
    divvy_testing_run(l.ensemble, 500);
    assert_int_equal(divvy_testing_link_client(l.ensemble, m->client, DIVVY_TESTING_LINK_UP), 0);
    settle_on(&l, &last);
    pool_close(&l);
}

/* The member that asks is lost at any moment after: all divide the old set, or all the new one. */
TEST(test_asker_dies) {
    unsigned taken = 0, left = 0;
    for (int64_t delay_ms = 0; delay_ms <= 40; delay_ms += delay_ms < 10 ? 1 : 10) {
        pool l;
        pool_open(&l, ALL);
        set old = items(&l, 0, 20), next = items(&l, 10, 30);
        for (size_t n = 0; n < 3; n++) add_with(&l, n, &old, DIVVY_ASSIGN_AUTO);
        settle_on(&l, &old);
        assert_int_equal(ask(&l.members[1], &next), 0);
        divvy_testing_run(l.ensemble, delay_ms);
        crash(&l, 1);
        settle_owned(&l, 20);
        owners o = look(&l);
        bool is_new = o.owners[0] == NOBODY;
        settle_on(&l, is_new ? &next : &old);
        taken += is_new;
        left += !is_new;
        owners_free(&o);
        pool_close(&l);
    }
    assert_true(taken > 0 && left > 0);
}

/* Two ask for different sets in one moment: all divide the one that was written last, and it stays. */
TEST(test_two_ask) {
    pool l;
    pool_open(&l, ALL);
    set old = items(&l, 0, 20), one = items(&l, 5, 25), two = items(&l, 10, 30);
    for (size_t n = 0; n < 4; n++) add_with(&l, n, &old, DIVVY_ASSIGN_AUTO);
    settle_on(&l, &old);
    for (int round = 0; round < 5; round++) {
        assert_int_equal(ask(&l.members[0], &one), 0);
        divvy_testing_run(l.ensemble, round);
        assert_int_equal(ask(&l.members[3], &two), 0);
        watch(&l, 3000);
        settle_owned(&l, 20);
        owners o = look(&l);
        settle_on(&l, o.owners[5] == NOBODY ? &two : &one);
        owners_free(&o);
        divvy_testing_run(l.ensemble, 61000); /* P12: directories that were being made when the other set came */
        assert_at_rest(&l);
    }
    pool_close(&l);
}

/* A deploy of a new set, one member after the other, in any order, by processes that end well or not: as long as one
 * has the old set, all divide it; then all divide the new one. Nobody waits for ever, and the whole share is worked on
 * throughout (kazoo #392, #386). */
TEST(test_rolling_deploy) {
    for (unsigned seed = 1; seed <= 12; seed++) {
        pool l;
        pool_open(&l, ALL);
        set old = items(&l, 0, 40), next = items(&l, 8, 56);
        size_t size = 2 + seed % 3;
        for (size_t n = 0; n < size; n++) add_with(&l, n, &old, DIVVY_ASSIGN_AUTO);
        settle_on(&l, &old);
        for (size_t n = 0; n < size; n++) {
            bool before = (seed >> n) & 1; /* the new one comes before the old one goes */
            if (before) add_with(&l, size + n, &next, DIVVY_ASSIGN_AUTO);
            if (before && seed % 2) settle_on(&l, &old);
            if (seed % 4 == 3) crash(&l, n);
            else finish(&l, n);
            watch(&l, 300);
            if (!before) add_with(&l, size + n, &next, DIVVY_ASSIGN_AUTO);
            watch(&l, 300);
            if (n + 1 == size) continue;
            settle_on(&l, &old);
            assert_int_equal(l.members[size + n].warnings[DIVVY_WARN_ITEMS_DIFFER], 1);
        }
        settle_on(&l, &next);
        divvy_testing_run(l.ensemble, 61000); /* P12: what the crashed have left */
        assert_at_rest(&l);
        pool_close(&l);
    }
}

/* Half of the members come up with one set and half with the other, at once. One is divided, those with the other are
 * told; it is the other half's when these go. */
TEST(test_half_and_half) {
    for (unsigned first = 0; first < 2; first++) {
        pool l;
        pool_open(&l, ALL);
        set a = items(&l, 0, 30), b = items(&l, 10, 40);
        for (size_t n = 0; n < 6; n++) add_with(&l, n, n % 2 == first ? &a : &b, DIVVY_ASSIGN_AUTO);
        settle_owned(&l, 30);
        owners o = look(&l);
        bool is_a = o.owners[0] != NOBODY;
        owners_free(&o);
        settle_on(&l, is_a ? &a : &b);
        for (size_t n = 0; n < 6; n++)
            assert_int_equal(l.members[n].warnings[DIVVY_WARN_ITEMS_DIFFER], (n % 2 == first) != is_a);
        for (size_t n = 0; n < 6; n++) {
            if ((n % 2 == first) == is_a) finish(&l, n);
        }
        settle_on(&l, is_a ? &b : &a);
        pool_close(&l);
    }
}

/* A set that was asked for is the plan's. A member that does not follow plans brings all back to what they are
 * configured with; when it has gone the plan's set is divided again. At no moment has an item two owners. */
TEST(test_change_over) {
    pool l;
    pool_open(&l, ALL);
    set old = items(&l, 0, 30), next = items(&l, 10, 50);
    for (size_t n = 0; n < 3; n++) add_with(&l, n, &old, DIVVY_ASSIGN_AUTO);
    settle_on(&l, &old);
    assert_int_equal(ask(&l.members[2], &next), 0);
    settle_on(&l, &next);
    for (int level = DIVVY_ASSIGN_ROUND_ROBIN; level <= DIVVY_ASSIGN_RENDEZVOUS; level++) {
        add_with(&l, 5, &old, level);
        watch(&l, 3000);
        settle_on(&l, &old);
        finish(&l, 5);
        watch(&l, 3000);
        settle_on(&l, &next);
    }
    pool_close(&l);
}

/* An eager member takes part in it: all of its share is released for a change that takes something from it (P5). */
TEST(test_eager) {
    pool l;
    pool_open(&l, ALL);
    set old = items(&l, 0, 12), next = items(&l, 3, 15);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.items = old.names;
    config.item_count = old.count;
    config.mode = DIVVY_EAGER;
    add(&l, 0, &config);
    add_with(&l, 1, &old, DIVVY_ASSIGN_AUTO);
    settle_on(&l, &old);
    unsigned releases = l.members[0].states[DIVVY_RELEASE];
    assert_int_equal(ask(&l.members[0], &next), 0);
    settle_on(&l, &next);
    assert_int_equal(ask(&l.members[1], &old), 0);
    settle_on(&l, &old);
    assert_true(l.members[0].states[DIVVY_RELEASE] > releases);
    pool_close(&l);
}

/* An eager member waits for what a member that goes by names does not release. That one dies, and the first plan gives
 * the eager one what it had waited for: it has its share then, though a change was seen (the simulator found it waiting
 * for ever). */
TEST(test_eager_at_first_plan) {
    for (size_t n = 2; n < 10; n++) { /* Some of these names are to get nothing beside the other two. */
        pool l;
        pool_open(&l, ALL);
        set two = items(&l, 0, 2);
        divvy_partitioner_config config;
        member_config(&l, &config);
        config.items = two.names;
        config.item_count = two.count;
        add_with(&l, n, &two, DIVVY_ASSIGN_RENDEZVOUS)->patient = true;
        settle_on(&l, &two);
        config.mode = DIVVY_EAGER;
        add(&l, 0, &config);
        add(&l, 1, &config);
        watch(&l, 2000);
        crash(&l, n);
        settle_on(&l, &two);
        pool_close(&l);
    }
}

/* Sets and members change at random, with losses of the link and of members; in the end the last set that was asked for
 * by a member that lives is divided, and at no moment has an item two owners. */
TEST(test_random) {
    for (unsigned seed = 1; seed <= 6; seed++) {
        unsigned random = seed * 2654435761u;
        pool l;
        pool_open(&l, ALL);
        set configured = items(&l, 0, 20), asked = configured;
        for (size_t n = 0; n < 3; n++) add_with(&l, n, &configured, DIVVY_ASSIGN_AUTO);
        for (int step = 0; step < 25; step++) {
            random = random * 1664525u + 1013904223u;
            unsigned dice = random >> 16;
            size_t n = dice % 5;
            member *m = &l.members[n];
            if (!m->client) add_with(&l, n, &configured, DIVVY_ASSIGN_AUTO);
            else if (dice % 7 == 0 && l.members[(n + 1) % 5].client) crash(&l, n);
            else if (dice % 7 < 3) divvy_testing_disconnect(l.ensemble, m->client, DIVVY_TESTING_APPLIED, 0);
            else {
                size_t from = dice / 7 % 30;
                asked = items(&l, from, from + 1 + dice / 210 % 30);
                assert_int_equal(ask(m, &asked), 0);
            }
            watch(&l, (dice / 3) % 400);
        }
        for (size_t n = 0; n < 5; n++) {
            if (!l.members[n].client) continue;
            assert_int_equal(ask(&l.members[n], &asked), 0);
        }
        settle_on(&l, &asked);
        pool_close(&l);
    }
}
