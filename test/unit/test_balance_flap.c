/* The deal by size does not flap: an item goes straight back only when the loads have drifted by the margin.
 * SPDX-License-Identifier: Apache-2.0
 *
 * All drifts of small pools by one class, and 100,000 histories of noise, swings and spite. */
#include "balance_pool.h"

static pool p;

/* Without rounding. Drifts are sums of both members' levels: twice the margin of A10. */
static const double drift_least = 0.1 - 1e-9;

enum { FEW = 48 };

/* How things stood after the last step that moved anything. */
typedef struct {
    uint32_t from[FEW]; /* who lost each item in it; NONE: nobody */
    double levels[8];
    double sizes[FEW]; /* in fair shares, as A10 counts them */
} past;

static double weights[8]; /* of the members: the mean is 1 */

static void weights_find(void) {
    double sum = 0;
    for (size_t m = 0; m < p.member_count; m++) sum += p.members[m].weight;
    for (size_t m = 0; m < p.member_count; m++) {
        weights[m] = p.members[m].weight * (double)p.member_count / sum;
    }
}

static void look(past *now) {
    double fair = dv_balance_loads(p.members, p.member_count, p.items, p.item_count, now->levels);
    double sum = 0, strongest = 0;
    for (size_t i = 0; i < p.item_count; i++) sum += p.items[i].size;
    for (size_t m = 0; m < p.member_count; m++) strongest = fmax(strongest, weights[m]);
    for (size_t i = 0; i < p.item_count; i++) {
        now->sizes[i] = fmin(strongest, fmax(p.items[i].size, sum / (double)p.item_count / 20) / fair);
    }
}

static size_t reversals;
static double least_drift;

/* How far both members have drifted since, the item left out; what it weighs more at one than at the other counts. */
static double drift_of(size_t i, uint32_t a, uint32_t b, const past *before, const past *now) {
    double kept = before->levels[b] - before->sizes[i] / weights[b],
           keeps = now->levels[b] - now->sizes[i] / weights[b];
    double own = (now->sizes[i] - before->sizes[i]) * (1 / weights[a] - 1 / weights[b]);
    return fabs(now->levels[a] - before->levels[a]) + fabs(keeps - kept) + fabs(own);
}

/* One step: deals, looks for items that went straight back, and takes the deal over. */
static void step(past *before) {
    past now;
    look(&now);
    pool_deal(&p);
    for (size_t i = 0; i < p.item_count; i++) {
        uint32_t a = p.owners[i], b = p.items[i].owner;
        if (a == b || before->from[i] != a) continue;
        double drift = drift_of(i, a, b, before, &now);
        least_drift = fmin(least_drift, drift);
        reversals++;
        assert_true(drift >= drift_least);
    }
    if (p.result.moves == 0) return;
    for (size_t i = 0; i < p.item_count; i++)
        before->from[i] = p.owners[i] != p.items[i].owner ? p.items[i].owner : NONE;
    pool_adopt(&p);
    look(before);
}

/* Deals what there is until nothing moves. Returns after how many steps that is. */
static size_t settle(past *before) {
    size_t steps = 0;
    do {
        step(before);
        assert_true(++steps < 10);
    } while (p.result.moves > 0);
    return steps;
}

/* --- all drifts of small pools --- */

enum { CLASSES = 3, ITEMS = 4, STATES = 81, OWNERS = 81 }; /* CLASSES and 3 members, to the power of ITEMS */

static double size_of_class(size_t class) {
    return exp2((double)class / 4);
}

/* Three members, four items of three neighbouring classes, all owners: it comes to rest. Then each item goes a class up
 * or down, or stays, in all combinations: none goes straight back unless the drift is that of the margin. */
TEST(test_all_drifts_of_small_pools) {
    size_t most_steps = 0;
    reversals = 0;
    least_drift = INFINITY;
    for (size_t number = 0; number < (size_t)STATES * OWNERS * OWNERS; number++) {
        size_t sizes = number % STATES, owners = number / STATES % OWNERS, drifts = number / STATES / OWNERS,
               moved = sizes;
        pool_fill(&p, 3, ITEMS);
        weights_find();
        for (size_t i = 0; i < ITEMS; i++, sizes /= CLASSES, owners /= 3) {
            p.items[i].size = size_of_class(sizes % CLASSES);
            p.items[i].owner = (uint32_t)(owners % 3);
        }
        past before;
        memset(before.from, 0xff, sizeof before.from);
        look(&before);
        size_t steps = settle(&before);
        for (size_t i = 0; i < ITEMS; i++, moved /= CLASSES, drifts /= 3) {
            p.items[i].size = size_of_class(moved % CLASSES + drifts % 3); /* from a class down to a class up */
        }
        steps = steps > settle(&before) ? steps : steps;
        most_steps = steps > most_steps ? steps : most_steps;
    }
    printf("%zu reversals, the least drift %.3f; at rest after %zu steps at most\n", reversals, least_drift,
           most_steps);
}

/* --- histories --- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HISTORIES = 2000 };
#else
enum { HISTORIES = 50000 }; /* and as many of weighted members */
#endif
enum { STEPS = 20 };

static double base[FEW];

static void history_begin(bool is_weighted) {
    pool_fill(&p, 2 + chance(7), 1 + chance(FEW - 8));
    size_t kind = chance(4);
    double spread = 12 * fraction();
    for (size_t m = 0; m < p.member_count; m++) {
        p.members[m].weight = is_weighted ? 500 * (uint32_t)(1 + chance(4)) : 1000;
    }
    for (size_t i = 0; i < p.item_count; i++) {
        double rank = (double)(i + 1);
        base[i] = kind == 0 ? 1 : kind == 1 ? exp2(spread * fraction()) : kind == 2 ? 1 / rank : 1 / sqrt(rank);
        p.items[i].size = base[i];
        p.items[i].owner = (uint32_t)chance(p.member_count);
    }
    weights_find();
}

/* Noise on each item; a swing, of another phase for each; or spite: what has moved grows, and its neighbours shrink. */
static void drift(size_t mode, double strength, size_t t, const past *before) {
    for (size_t i = 0; i < p.item_count; i++) {
        double up = exp2(0.25);
        if (mode == 0) p.items[i].size = base[i] * exp2((fraction() - 0.5) * strength);
        else if (mode == 1) p.items[i].size = base[i] * exp2(strength * sin((double)t * 0.7 + (double)i));
        else if (before->from[i] != NONE && !chance(3)) p.items[i].size *= up;
        else if (!chance(3)) p.items[i].size *= chance(2) ? up : 1 / up;
    }
}

/* Histories of pools of 2 to 8 members and up to 40 items: no direct reversal below the margin. */
static void run_histories(bool is_weighted) {
    const char *only = getenv("DIVVY_TEST_SEED");
    size_t moves = 0;
    reversals = 0;
    least_drift = INFINITY;
    for (uint64_t run = 0; run < (only ? 1 : HISTORIES); run++) {
        chance_from(only ? strtoull(only, NULL, 10)
                         : dv_test_seed_of_run(run, HISTORIES - HISTORIES / 4, "unit_balance_flap"));
        history_begin(is_weighted);
        size_t mode = chance(3);
        double strength = (mode == 0 ? 1 : 2) * fraction();
        past before;
        memset(before.from, 0xff, sizeof before.from);
        look(&before);
        for (size_t t = 0; t < STEPS; t++) {
            if (t > 0) drift(mode, strength, t, &before);
            step(&before);
            moves += p.result.moves;
        }
    }
    printf("%zu moves, %zu reversals, the least drift %.4f\n", moves, reversals, least_drift);
    assert_true(only || reversals > HISTORIES / 10); /* It would see one. */
}

TEST(test_histories_of_equal_members) {
    run_histories(false);
}

TEST(test_histories_of_weighted_members) {
    run_histories(true);
}

TEST_GROUP(NULL, NULL);
