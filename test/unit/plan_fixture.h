/* Shared by the tests of the sticky plan: chance, sets, plans side by side. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PLAN_FIXTURE_H
#define DV_TEST_PLAN_FIXTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "divvy/error.h"
#include "lib/seed.h"
#include "lib/test.h"
#include "plan/loads.h"
#include "plan/step.h"
#include "plan/text.h"
#include "plan/wish.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NONE DV_PLAN_NO_SLOT

/* --- chance, replayable --- */

static uint64_t chance_state;

static inline void chance_begin(void) {
    chance_state = dv_test_seed("unit_plan_*");
}

/* A number below `bound`, by Knuth's MMIX generator. */
static inline size_t chance(size_t bound) {
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(chance_state >> 33) % bound;
}

static inline double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* --- sets and plans --- */

/* The items `<prefix>000001` and on. */
static inline dv_plan_set *numbered_set(const char *prefix, size_t count) {
    char **names = calloc(count + 1, sizeof *names);
    assert_non_null(names);
    for (size_t i = 0; i < count; i++) {
        names[i] = malloc(strlen(prefix) + 8);
        assert_non_null(names[i]);
        sprintf(names[i], "%s%06u", prefix, (unsigned)(i + 1) % 1000000);
    }
    dv_plan_set *set = dv_plan_set_make((const char *const *)names, count);
    assert_non_null(set);
    for (size_t i = 0; i < count; i++) free(names[i]);
    free(names);
    return set;
}

static inline void add_member(dv_plan *plan, dv_plan_member member) {
    if (member.zone == NULL) member.zone = (char *)(uintptr_t) "";
    if (member.leaving == NULL) member.leaving = (char *)(uintptr_t) "";
    assert_true(dv_plan_add_member(plan, &member));
}

static inline void set_moved(dv_plan *plan, const uint32_t *moved, size_t count) {
    free(plan->moved);
    plan->moved = malloc((count + 1) * sizeof *moved);
    assert_non_null(plan->moved);
    if (count > 0) memcpy(plan->moved, moved, count * sizeof *moved);
    plan->moved_count = count;
}

/* Members, owners, set; of the header what a step decides, but for generation, guids, pzxid and reason. */
static inline bool states_equal(const dv_plan *a, const dv_plan *b) {
    const dv_plan_options *x = &a->header.options, *y = &b->header.options;
    bool same = dv_plan_set_equal(a->set, b->set) && a->member_count == b->member_count &&
                memcmp(a->owners, b->owners, a->set->count * sizeof *a->owners) == 0 &&
                a->header.tag == b->header.tag && x->max_moves == y->max_moves &&
                x->round_timeout_ms == y->round_timeout_ms && a->header.is_balanced == b->header.is_balanced &&
                dv_loads_equal(a->loads, b->loads) && dv_wishes_equal(a->wishes, b->wishes);
    for (size_t m = 0; same && m < a->member_count; m++) {
        same = dv_plan_member_equal(&a->members[m], &b->members[m]);
    }
    return same;
}

static inline void assert_plans_equal(const dv_plan *a, const dv_plan *b) {
    assert_true(states_equal(a, b));
    assert_int_equal(a->header.generation, b->header.generation);
    assert_int_equal(a->header.pzxid, b->header.pzxid);
    assert_int_equal(a->header.reason, b->header.reason);
    assert_string_equal(a->header.guid, b->header.guid);
    assert_string_equal(a->header.after, b->header.after);
    assert_string_equal(a->header.epoch, b->header.epoch);
    assert_int_equal(a->moved_count, b->moved_count);
    if (a->moved_count > 0) assert_memory_equal(a->moved, b->moved, a->moved_count * sizeof *a->moved);
}

/* Two items on their way, a member who leaves, one who is absent, names that need care. */
static inline dv_plan *small_plan(void) {
    static const char *const names[] = {"a/b", "q\"uote\\", "tenant:42", "x%41", "\xc3\xa9"};
    static const uint32_t moved[] = {1, 4};
    dv_plan_set *set = dv_plan_set_make(names, COUNT(names));
    dv_plan *plan = dv_plan_make(set);
    assert_non_null(plan);
    plan->header = (dv_plan_header){.generation = 18,
                                    .guid = "00000000001aaaaaaaaaaa7",
                                    .after = "00000000001aaaaaaaaaaa6",
                                    .epoch = "00000000001aaaaaaaaaaa1",
                                    .pzxid = 0x1a0000002f,
                                    .reason = DV_PLAN_JOIN,
                                    .options = {.max_moves = 2, .round_timeout_ms = 60000},
                                    .tag = 0x1a2b3c4d};
    add_member(plan, (dv_plan_member){.slot = 0, .key = "n1,a=2,s=1a2b3c4d-w", .weight = 1000});
    add_member(plan, (dv_plan_member){.slot = 2,
                                      .is_static = true,
                                      .key = "host-2",
                                      .weight = 4294967295,
                                      .zone = "r\x01\"\xc3\xa4",
                                      .rejoin_delay_ms = 30000,
                                      .absent = 0x1a0000002e});
    add_member(plan, (dv_plan_member){.slot = 3, .key = "n3-w", .leaving = "n3-w"});
    const uint32_t owners[] = {0, 2, NONE, 0, 2};
    memcpy(plan->owners, owners, sizeof owners);
    set_moved(plan, moved, COUNT(moved));
    return plan;
}

/* --- a plan written in one node, and read again --- */

static inline void print_whole(dv_plan_text *out, const dv_plan *plan) {
    dv_plan_root root;
    dv_plan_text items, base;
    assert_int_equal(dv_plan_root_describe(&root, plan), 0);
    assert_int_equal(dv_plan_print_items(&items, plan->set), 0);
    assert_int_equal(dv_plan_print_base(&base, plan), 0);
    dv_plan_part_inline(&root.items, &items);
    dv_plan_part_inline(&root.base, &base);
    dv_plan_text loads, wishes;
    if (plan->loads != NULL) assert_int_equal(dv_loads_print(&loads, plan->loads), 0);
    if (plan->loads != NULL) dv_plan_part_inline(&root.loads, &loads);
    if (plan->wishes != NULL) assert_int_equal(dv_wishes_print(&wishes, plan->wishes), 0);
    if (plan->wishes != NULL) dv_plan_part_inline(&root.wishes, &wishes);
    strcpy(root.base_guid, plan->header.guid);
    assert_int_equal(dv_plan_print_root(out, &root), 0);
    dv_plan_root_clear(&root);
}

/* Reads a text. Returns 0 with *out, or an error. The bytes are copied to memory of their size, so that the
 * sanitizers find a reader that goes too far. */
static inline int read_whole(dv_plan **out, const char *text, size_t bytes, dv_plan_fault *fault) {
    dv_plan_root root;
    dv_plan_set *set = NULL;
    *out = NULL;
    char *exact = malloc(bytes);
    assert_true(exact != NULL || bytes == 0);
    if (bytes > 0) memcpy(exact, text, bytes);
    int error = dv_plan_root_parse(&root, exact, bytes, fault);
    free(exact);
    if (error != 0) return error;
    if (root.items.text == NULL || root.base.text == NULL) {
        dv_plan_root_clear(&root);
        return DIVVY_ENOENT; /* of chunks, which nobody wrote */
    }
    error = dv_plan_items_parse(&set, &root, root.items.text, root.items.bytes, fault);
    if (error == 0) error = dv_plan_from_base(out, set, root.base.text, root.base.bytes, fault);
    const dv_plan_part *loads = &root.loads, *wishes = &root.wishes;
    if (error == 0 && loads->text != NULL)
        error = dv_loads_parse(&(*out)->loads, set->count, loads->text, loads->bytes, fault);
    if (error == 0 && wishes->text != NULL)
        error = dv_wishes_parse(&(*out)->wishes, wishes->text, wishes->bytes, fault);
    if (error == 0) error = dv_plan_complete(*out, &root, fault);
    if (error != 0) {
        dv_plan_free(*out);
        *out = NULL;
    }
    dv_plan_set_unref(set);
    dv_plan_root_clear(&root);
    return error;
}

#endif
