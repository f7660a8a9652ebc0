/* The plan before, in a memory that needs no more of it than its owners. SPDX-License-Identifier: Apache-2.0 */
#include "plan/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/test.h"

enum { ITEMS = 100, NAME_BYTES = 16 };

static dv_plan_set *make_set(unsigned from) {
    char texts[ITEMS][NAME_BYTES];
    const char *names[ITEMS];
    for (unsigned i = 0; i < ITEMS; i++) {
        snprintf(texts[i], NAME_BYTES, "item-%06u", from + i);
        names[i] = texts[i];
    }
    dv_plan_set *set = dv_plan_set_make(names, ITEMS);
    assert_non_null(set);
    return set;
}

/* A plan whose item i has the slot of i + shift, for the first `moved` of them, and else that of i. */
static dv_plan *make_plan(dv_plan_set *set, int64_t mzxid, uint32_t shift, size_t moved) {
    dv_plan *plan = dv_plan_make(dv_plan_set_ref(set));
    assert_non_null(plan);
    plan->mzxid = mzxid;
    for (uint32_t i = 0; i < ITEMS; i++) plan->owners[i] = i < moved ? i + shift : i;
    return plan;
}

static void take(dv_plan_memory *memory, dv_plan *plan) {
    dv_plan_root root = {.set_count = ITEMS};
    dv_plan_memory_take(memory, plan, &root, 0);
}

static void assert_before(const dv_plan_memory *memory, uint32_t shift, size_t moved) {
    uint32_t owners[ITEMS];
    dv_plan_memory_owners_before(memory, owners);
    for (uint32_t i = 0; i < ITEMS; i++) assert_int_equal(owners[i], i < moved ? i + shift : i);
}

/* Where few items move, only those are kept of the plan before. It tells the owners all the same, also when the newest
 * plan is read again. */
TEST(test_few_moves) {
    dv_plan_set *set = make_set(0);
    dv_plan_memory memory = {.is_lean = true};
    take(&memory, make_plan(set, 1, 7, 10));
    assert_null(memory.before);
    take(&memory, make_plan(set, 2, 3, 4));
    assert_null(memory.before->owners);
    assert_int_equal(memory.former_count, 10);
    assert_before(&memory, 7, 10);
    take(&memory, make_plan(set, 2, 3, 4));
    assert_before(&memory, 7, 10);
    take(&memory, make_plan(set, 3, 0, 0));
    assert_int_equal(memory.former_count, 4);
    assert_before(&memory, 3, 4);
    dv_plan_memory_clear(&memory);
    assert_true(memory.is_lean && !memory.formers && !memory.before);
    dv_plan_set_unref(set);
}

/* An item that moved takes twice the memory of an owner. */
TEST(test_half_moves) {
    for (size_t moved = ITEMS / 4; moved <= ITEMS / 2; moved += ITEMS / 4) {
        dv_plan_set *set = make_set(0);
        dv_plan_memory memory = {.is_lean = true};
        take(&memory, make_plan(set, 1, 7, moved));
        take(&memory, make_plan(set, 2, 0, 0));
        assert_int_equal(memory.before->owners == NULL, moved < ITEMS / 2);
        assert_before(&memory, 7, moved);
        dv_plan_memory_clear(&memory);
        dv_plan_set_unref(set);
    }
}

/* Where most of them move, or there are other items, or it is not asked for, the plan before stays as it is. */
TEST(test_whole) {
    dv_plan_set *set = make_set(0), *other = make_set(5);
    dv_plan_memory memory = {.is_lean = true};
    take(&memory, make_plan(set, 1, 7, ITEMS));
    take(&memory, make_plan(set, 2, 0, 0));
    assert_non_null(memory.before->owners);
    assert_before(&memory, 7, ITEMS);
    take(&memory, make_plan(other, 3, 0, 0));
    assert_non_null(memory.before->owners);
    assert_before(&memory, 0, 0);
    dv_plan_memory_clear(&memory);
    memory.is_lean = false;
    take(&memory, make_plan(set, 1, 7, 1));
    take(&memory, make_plan(set, 2, 0, 0));
    assert_non_null(memory.before->owners);
    assert_before(&memory, 7, 1);
    dv_plan_memory_clear(&memory);
    dv_plan_set_unref(set);
    dv_plan_set_unref(other);
}

/* An item is found from wherever the search begins, near or far, there or not. */
TEST(test_find) {
    dv_plan_set *set = make_set(10);
    char name[NAME_BYTES];
    for (size_t from = 0; from <= ITEMS; from++) {
        for (unsigned i = 0; i < ITEMS + 20; i++) {
            snprintf(name, sizeof name, "item-%06u", i);
            size_t at = i <= 10 ? 0 : i >= ITEMS + 10 ? ITEMS : i - 10;
            assert_int_equal(dv_plan_set_find(set, name, from), at > from ? at : from);
            assert_int_equal(dv_plan_set_has(set, name), i >= 10 && i < ITEMS + 10);
        }
    }
    dv_plan_set_unref(set);
}
