/* The assignments against kazoo's rule, a naive reading of A1, A2 and A5, and fixed vectors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "assign_fixture.h"

static pool second;

/* --- chance, replayable --- */

static uint64_t chance_state;

static void chance_begin(void) {
    chance_state = dv_test_seed("unit_assign");
}

/* A number below `bound`, by Knuth's MMIX generator. */
static size_t chance(size_t bound) {
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(chance_state >> 33) % bound;
}

/* Few enough that equal names are common. Those of eleven characters are pairs of one FNV-1a hash each, the first two
 * as members, the others as items, so that the ties of A5 occur. */
static const char *const few_names[] = {
    "5nr7f1oj3v0", "3i72bi44o5M", "li58ph67lk0", "3fxtvu8hcwF", "y8zjn1y08o0", "15jvnzlc33Q", "",
    "a",           "b",           "zo\xc3\xab"};

static void pool_fill_by_chance(pool *p) {
    p->member_count = 1 + chance(9);
    p->item_count = chance(40);
    size_t distinct_percent = chance(101);
    for (size_t m = 0; m < p->member_count; m++) {
        bool distinct = chance(100) < distinct_percent;
        p->members[m].identifier = distinct ? worker_names[m] : few_names[chance(COUNT(few_names))];
    }
    for (size_t i = 0; i < p->item_count; i++) {
        bool distinct = chance(100) < distinct_percent;
        p->items[i] = distinct ? item_names[i] : few_names[chance(COUNT(few_names))];
    }
}

/* --- the naive reading of A1, A2 and A5 --- */

static uint64_t naive_mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

static uint64_t naive_fnv1a(const void *data, size_t bytes, uint64_t hash) {
    for (size_t b = 0; b < bytes; b++) hash = (hash ^ ((const unsigned char *)data)[b]) * 0x100000001b3U;
    return hash;
}

static uint64_t naive_key(const char *kind, const char *name, size_t rank) {
    uint64_t hash = naive_fnv1a(kind, 1, 0xcbf29ce484222325U);
    return naive_mix(naive_fnv1a(name, strlen(name), hash) + rank);
}

static const char *item_name(const pool *p, size_t i) {
    return p->items[i];
}

static const char *member_name(const pool *p, size_t m) {
    return p->members[m].identifier;
}

/* Returns how many names stand before that of `index` in the order of A1; *rank is how many of them are equal to it. */
static size_t naive_place(const pool *p, const char *(*name)(const pool *, size_t), size_t count, size_t index,
                          size_t *rank) {
    size_t place = 0;
    *rank = 0;
    for (size_t other = 0; other < count; other++) {
        int order = strcmp(name(p, other), name(p, index));
        if (order < 0 || (order == 0 && other < index)) place++;
        if (order == 0 && other < index) ++*rank;
    }
    return place;
}

static size_t member_place(const pool *p, size_t member) {
    size_t rank;
    return naive_place(p, member_name, p->member_count, member, &rank);
}

static size_t item_place(const pool *p, size_t item) {
    size_t rank;
    return naive_place(p, item_name, p->item_count, item, &rank);
}

typedef struct {
    uint64_t weight;
    size_t item, item_place;
    size_t member, member_place;
} pair;

static int pair_compare(const void *left, const void *right) {
    const pair *a = left;
    const pair *b = right;
    if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
    if (a->item_place != b->item_place) return a->item_place < b->item_place ? -1 : 1;
    return a->member_place < b->member_place ? -1 : 1;
}

static size_t pairs_list(const pool *p, pair *pairs) {
    size_t count = 0;
    for (size_t i = 0; i < p->item_count; i++) {
        for (size_t m = 0; m < p->member_count; m++) {
            pair *next = &pairs[count++];
            size_t item_rank, member_rank;
            next->item = i;
            next->item_place = naive_place(p, item_name, p->item_count, i, &item_rank);
            next->member = m;
            next->member_place = naive_place(p, member_name, p->member_count, m, &member_rank);
            next->weight =
                naive_mix(naive_key("m", member_name(p, m), member_rank) ^ naive_key("i", item_name(p, i), item_rank));
        }
    }
    qsort(pairs, count, sizeof *pairs, pair_compare);
    return count;
}

/* Returns how many neighbours in the order of A5 tie, so that a test can tell that ties did occur. */
static size_t naive_rendezvous(const pool *p, uint32_t *owners) {
    pair *pairs = calloc(p->item_count * p->member_count + 1, sizeof *pairs);
    assert_non_null(pairs);
    size_t count = pairs_list(p, pairs);
    size_t room = p->item_count / p->member_count;
    size_t extras = p->item_count % p->member_count;
    size_t loads[MEMBERS_MAX] = {0};
    size_t ties = 0;
    for (size_t i = 0; i < p->item_count; i++) owners[i] = UNTOUCHED;
    for (size_t n = 0; n < count; n++) {
        const pair *next = &pairs[n];
        ties += n > 0 && pairs[n - 1].weight == next->weight;
        if (owners[next->item] != UNTOUCHED) continue;
        if (loads[next->member] > room) continue;
        if (loads[next->member] == room && extras == 0) continue;
        if (loads[next->member] == room) extras--;
        loads[next->member]++;
        owners[next->item] = (uint32_t)next->member;
    }
    free(pairs);
    return ties;
}

static void pool_fill_by_vector(pool *p, const vector *v) {
    p->member_count = v->member_count;
    p->item_count = v->item_count;
    for (size_t m = 0; m < v->member_count; m++) p->members[m].identifier = v->members[m];
    for (size_t i = 0; i < v->item_count; i++) p->items[i] = v->items[i];
}

static uint64_t owners_digest(const pool *p) {
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t i = 0; i < p->item_count; i++) {
        unsigned char owner = (unsigned char)p->owners[i];
        hash = naive_fnv1a(&owner, 1, hash);
    }
    return hash;
}

/* Round robin deals as Python's sorted(items)[i::n] does, in UTF-8 and with equal names. */
TEST(test_round_robin_deals_as_kazoo) {
    for (size_t v = 0; v < COUNT(vectors); v++) {
        pool_fill_by_vector(&first, &vectors[v]);
        pool_assign(&first, divvy_assign_round_robin);
        assert_memory_equal(first.owners, vectors[v].round_robin, first.item_count * sizeof first.owners[0]);
    }
    pool_fill(&first, 7, 1000);
    pool_assign(&first, divvy_assign_round_robin);
    assert_int_equal(owners_digest(&first), 0x2496dc29a34226fc);
}

/* By number round robin deals as Python deals integers, and refuses what Python would not write as one. */
TEST(test_round_robin_of_numbers) {
    static const divvy_member members[] = {{"b", 1000, NULL}, {"a", 1000, NULL}, {"c", 1000, NULL}};
    static const char *const items[] = {"10", "-2", "0", "9", "100", "-10", "2", "99999999999999999999", "1", "2"};
    /* sorted: -10 -2 0 1 2 2 9 10 100 99999999999999999999, dealt to a b c a b c a b c a */
    static const uint32_t expected[] = {0, 0, 2, 1, 2, 1, 0, 1, 1, 2};
    static const char *const wrong[] = {"", "-", "-0", "01", "1 ", "+1", "1.0", "x", "--1", "1-"};
    uint32_t owners[COUNT(items)];
    assert_int_equal(divvy_assign_round_robin_ordered(members, 3, items, COUNT(items), DIVVY_ORDER_NUMERIC, owners), 0);
    assert_memory_equal(owners, expected, sizeof expected);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const char *const mixed[] = {"1", wrong[i]};
        assert_int_equal(divvy_assign_round_robin_ordered(members, 3, mixed, 2, DIVVY_ORDER_NUMERIC, owners),
                         DIVVY_EINVAL);
        assert_int_equal(divvy_assign_round_robin_ordered(members, 3, mixed, 2, DIVVY_ORDER_BYTES, owners), 0);
    }
    assert_int_equal(divvy_assign_round_robin_ordered(members, 3, items, 2, DIVVY_ORDER_NUMERIC + 1, owners),
                     DIVVY_EINVAL);
}

/* Rendezvous assigns today what the independent implementation in Python assigned when the rules were written. */
TEST(test_rendezvous_never_changes) {
    for (size_t v = 0; v < COUNT(vectors); v++) {
        pool_fill_by_vector(&first, &vectors[v]);
        pool_assign(&first, divvy_assign_rendezvous);
        assert_memory_equal(first.owners, vectors[v].rendezvous, first.item_count * sizeof first.owners[0]);
    }
    pool_fill(&first, 7, 1000);
    pool_assign(&first, divvy_assign_rendezvous);
    assert_int_equal(owners_digest(&first), 0x032d49c5fa046ca8);
}

/* Keys and weights, as the naive reading computes them, are those that docs/protocol.md and Python give. */
TEST(test_hash_is_as_documented) {
    assert_int_equal(naive_key("m", "alpha", 0), 0xa33f1bf08b456361);
    assert_int_equal(naive_key("m", "alpha", 1), 0x39f57ab3e74d43b6);
    assert_int_equal(naive_key("i", "item-000001", 0), 0x8cb75dbce297c1df);
    assert_int_equal(naive_mix(naive_key("m", "alpha", 0) ^ naive_key("i", "item-000001", 0)), 0x6fa4e7b2c32a3d21);
    assert_int_equal(naive_key("m", "5nr7f1oj3v0", 0), naive_key("m", "3i72bi44o5M", 0));
    assert_int_equal(naive_key("i", "li58ph67lk0", 0), naive_key("i", "3fxtvu8hcwF", 0));
}

/* Rendezvous equals the sort of all pairs, ties, equal names and extras included. */
TEST(test_rendezvous_equals_the_naive_reading) {
    chance_begin();
    static uint32_t expected[ITEMS_MAX];
    size_t ties = 0;
    for (int round = 0; round < 5000; round++) {
        pool_fill_by_chance(&first);
        pool_assign(&first, divvy_assign_rendezvous);
        ties += naive_rendezvous(&first, expected);
        assert_memory_equal(first.owners, expected, first.item_count * sizeof expected[0]);
    }
    assert_true(ties > 0);
}

/* Both assign each item exactly once, with loads within one, whatever the names. */
TEST(test_loads_are_within_one) {
    chance_begin();
    for (int round = 0; round < 2000; round++) {
        pool_fill_by_chance(&first);
        for (size_t f = 0; f < COUNT(both); f++) {
            pool_assign(&first, both[f]);
            assert_balanced(&first);
        }
    }
}

/* The order of both arrays changes nothing, equal names apart, which keep their places among themselves. */
TEST(test_order_changes_nothing) {
    chance_begin();
    for (int round = 0; round < 1000; round++) {
        assign_function assign = both[round % 2];
        pool_fill_by_chance(&first);
        second = first;
        for (size_t m = second.member_count; m > 1; m--) {
            size_t other = chance(m);
            divvy_member swapped = second.members[other];
            second.members[other] = second.members[m - 1];
            second.members[m - 1] = swapped;
        }
        for (size_t i = second.item_count; i > 1; i--) {
            size_t other = chance(i);
            const char *swapped = second.items[other];
            second.items[other] = second.items[i - 1];
            second.items[i - 1] = swapped;
        }
        pool_assign(&first, assign);
        pool_assign(&second, assign);
        size_t owner_at[40];
        for (size_t i = 0; i < first.item_count; i++) {
            owner_at[item_place(&first, i)] = member_place(&first, first.owners[i]);
        }
        for (size_t i = 0; i < second.item_count; i++) {
            assert_int_equal(owner_at[item_place(&second, i)], member_place(&second, second.owners[i]));
        }
    }
}

/* Returns how many items have another owner when the last of `member_count` members is not there: the moves of its
 * leave and, read backwards, of its join. *least is how many must move: the items of that member. */
static size_t moves_count(size_t member_count, size_t item_count, size_t *least) {
    pool_fill(&first, member_count, item_count);
    pool_assign(&first, divvy_assign_rendezvous);
    pool_fill(&second, member_count - 1, item_count);
    pool_assign(&second, divvy_assign_rendezvous);
    size_t moves = 0;
    *least = 0;
    for (size_t i = 0; i < item_count; i++) {
        moves += first.owners[i] != second.owners[i];
        *least += first.owners[i] == member_count - 1;
    }
    return moves;
}

/* A join or a leave moves little more than the joining or leaving member's items. */
TEST(test_few_items_move) {
    static const struct {
        size_t member_count, item_count, most_percent;
    } changes[] = {{11, 1000, 130}, {10, 1000, 130}, {4, 1000, 110},
                   {5, 10000, 110}, {4, 10000, 110}, {11, 100000, 110}};
    for (size_t c = 0; c < COUNT(changes); c++) {
        size_t least;
        size_t moves = moves_count(changes[c].member_count, changes[c].item_count, &least);
        print_message("%zu items, %zu <-> %zu members: %zu moved, least possible %zu\n", changes[c].item_count,
                      changes[c].member_count - 1, changes[c].member_count, moves, least);
        assert_in_range(moves, least, least * changes[c].most_percent / 100);
    }
}

TEST_GROUP(names_setup, NULL);
