/* The sticky plan's step by step: rounds (D19), and all small worlds. SPDX-License-Identifier: Apache-2.0 */
#include "plan_world.h"

static world w;

/* A pool of so many dynamic members that has its plan. */
static void pool(size_t members, size_t items) {
    world_begin(&w, items);
    for (size_t m = 0; m < members; m++) join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_CREATE);
    assert_even(w.plan);
}

/* --- rounds --- */

/* Rule 12, D19: no more than max_moves are on their way at a time; ceil(n / max_moves) rounds are enough; a round is
 * over when somebody says so of this very plan. */
TEST(test_rule_12_rounds) {
    for (uint32_t max_moves = 1; max_moves < 8; max_moves++) {
        pool(3, 24);
        w.plan->header.options.max_moves = max_moves;
        join_dynamic(&w);
        size_t rounds = 0, moved = 0;
        dv_plan_events over = {0};
        while (step(&w, &over) == DV_PLAN_NEXT) {
            assert_int_equal(w.plan->header.reason, rounds == 0 ? DV_PLAN_JOIN : DV_PLAN_ROUND);
            assert_int_equal(w.plan->moved_count, moves_of(w.before, w.plan));
            assert_in_range(w.plan->moved_count, 1, max_moves);
            for (size_t n = 0; n < w.plan->moved_count; n++) {
                uint32_t i = w.plan->moved[n];
                assert_int_not_equal(w.plan->owners[i], w.before->owners[i]);
            }
            moved += w.plan->moved_count;
            rounds++;
            over.round_over = w.before->header.guid; /* of another round */
            assert_int_equal(step(&w, &over), DV_PLAN_NOTHING);
            over.round_over = w.plan->header.guid;
        }
        assert_int_equal(moved, 6);
        assert_int_equal(rounds, (6 + max_moves - 1) / max_moves);
        assert_even(w.plan);
        world_end(&w);
    }
}

/* Rule 12: orphans are dealt out in an open round too, and are not counted; what is on its way stays listed, unless its
 * new owner is gone; then another round begins at once. */
TEST(test_rule_12_orphans_do_not_wait) {
    pool(3, 24);
    w.plan->header.options.max_moves = 2;
    const char *joiner = join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->moved_count, 2);
    die(&w, 1);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(moves_of(w.before, w.plan), 0);
    assert_int_equal(w.plan->moved_count, 2);
    assert_memory_equal(w.plan->moved, w.before->moved, 2 * sizeof *w.plan->moved);
    assert_true(load_named(w.plan, joiner) > 2);
    die(&w, w.count - 1);
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(moves_of(w.before, w.plan), w.plan->moved_count);
    world_end(&w);
}

/* --- all small worlds --- */

enum { GONE, ALIVE, STATIC_ALIVE, STATIC_GONE, STATIC_ABSENT, STATIC_BACK, LEAVING, LEFT, LIVES };

/* A member of the plan that is being built, and whether its node lives. */
static void member_in(world *all, dv_plan *plan, size_t m, int life) {
    char key[] = {'m', (char)('0' + m), '\0'};
    bool is_static = life >= STATIC_ALIVE && life <= STATIC_BACK,
         was_absent = life == STATIC_ABSENT || life == STATIC_BACK;
    const char *node = NULL;
    if (life == ALIVE || life == STATIC_ALIVE || life == STATIC_BACK || life == LEAVING) {
        node = join(all, key, is_static ? 30000 : -1);
    }
    dv_plan_member member = {.slot = (uint32_t)m,
                             .is_static = is_static,
                             .key = (char *)(uintptr_t)(is_static || node == NULL ? key : node),
                             .weight = 1000,
                             .rejoin_delay_ms = is_static ? 30000 : 0,
                             .absent = was_absent ? 50 : 0};
    if (life == LEAVING || life == LEFT) member.leaving = (char *)(uintptr_t)member.key;
    add_member(plan, member);
}

/* Said once more and plainly: how many items must move between those who work, from loads that they had, if those
 * without an owner are dealt out. Weights are equal: the largest loads are those that may be larger. */
static size_t least_moves(const dv_plan *before, const dv_plan *after) {
    size_t loads[NODES_MAX], count = 0, total = 0, kept = 0, least = SIZE_MAX, most = 0;
    for (size_t m = 0; m < after->member_count; m++) {
        const dv_plan_member *now = &after->members[m], *old = dv_plan_find(before, now->is_static, now->key);
        size_t load = old != NULL && now->leaving[0] == '\0' ? load_of(before, old->slot) : 0;
        if (now->leaving[0] != '\0') continue;
        kept += load;
        if (load < least) least = load;
        if (load > most) most = load;
        if (now->absent != 0) total += load;
        else loads[count++] = load;
    }
    if (count == 0) return 0;
    if (kept == after->set->count && most <= least + 1) return 0; /* D18: balanced with those who are absent */
    total = after->set->count - total;
    size_t moves = 0, room = total / count, larger = total % count;
    for (size_t n = 0; n < count; n++) {
        if (loads[n] > room) moves += loads[n] - room;
        if (loads[n] > room && larger > 0) {
            larger--;
            moves--;
        }
    }
    return moves;
}

static void try_world(const int lives[3], size_t joiners, const uint32_t owners[3], uint32_t max_moves) {
    world_begin(&w, 3);
    dv_plan *plan = dv_plan_make(dv_plan_set_ref(w.set));
    assert_non_null(plan);
    for (size_t m = 0; m < 3; m++) member_in(&w, plan, m, lives[m]);
    for (size_t n = 0; n < joiners; n++) join_dynamic(&w);
    for (size_t i = 0; i < 3; i++) plan->owners[i] = owners[i] < 3 ? owners[i] : NONE;
    plan->header = (dv_plan_header){
        .generation = 5, .guid = "g", .pzxid = 60, .tag = w.set->crc, .options = {.max_moves = max_moves}};
    strcpy(plan->header.epoch, "e");
    plan->mzxid = 61;
    w.plan = plan;
    if (step(&w, NULL) == DV_PLAN_NEXT) {
        size_t least = least_moves(w.before, w.plan), moves = moves_of(w.before, w.plan);
        if (max_moves > 0 && least > max_moves) least = max_moves;
        assert_int_equal(moves, least);
        assert_int_equal(w.plan->moved_count, max_moves > 0 ? moves : 0); /* what the dead had is not counted */
        for (size_t m = 0; m < 3; m++) {
            bool stays = lives[m] != GONE && lives[m] != LEFT;
            const dv_plan_member *old = &w.before->members[m], *now = dv_plan_find(w.plan, old->is_static, old->key);
            assert_int_equal(now != NULL, stays);
            if (now == NULL) continue;
            bool absent = lives[m] == STATIC_GONE || lives[m] == STATIC_ABSENT;
            assert_int_equal(now->absent, !absent ? 0 : lives[m] == STATIC_ABSENT ? 50 : w.plan->header.pzxid);
            if (absent) assert_int_equal(load_of(w.plan, now->slot), load_of(w.before, old->slot));
        }
        assert_int_equal(w.plan->member_count + (size_t)(lives[0] == GONE || lives[0] == LEFT) +
                             (size_t)(lives[1] == GONE || lives[1] == LEFT) +
                             (size_t)(lives[2] == GONE || lives[2] == LEFT),
                         3 + joiners);
    } else {
        assert_int_equal(joiners, 0);
        assert_int_equal(least_moves(w.plan, w.plan), 0);
    }
    world_end(&w);
}

/* For all fates of three members, all joins and all owners, with and without a limit: the plan has exactly those
 * members that it should, and as few moves as there can be. */
TEST(test_small_worlds) {
    for (size_t n = 0; n < LIVES * LIVES * LIVES * 64 * 4; n++) {
        const int lives[] = {(int)(n % LIVES), (int)(n / LIVES % LIVES), (int)(n / LIVES / LIVES % LIVES)};
        size_t rest = n / LIVES / LIVES / LIVES;
        const uint32_t owners[] = {rest % 4, rest / 4 % 4, rest / 16 % 4};
        if (lives[0] > lives[1] || lives[1] > lives[2]) continue; /* the same by other names */
        try_world(lives, rest / 64 % 2, owners, (uint32_t)(rest / 128));
    }
}
