/* Tests of the plan's step, its texts and their reading, with memory that runs out at each allocation in turn.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lib/scarce.h"
#include "plan/draft.h"
#include "plan_wishes_fixture.h"

/* Makes the step that the events ask for, with each of its allocations failing in turn. Then the step says so, and
 * makes no plan; with memory it makes the same plan as ever, which becomes the world's. */
static void step_scarcely(const dv_plan_events *events) {
    dv_plan_node nodes[NODES_MAX];
    dv_plan_party party = party_of(&w, nodes, false);
    dv_plan *right, *next;
    int failures = 0, result = DIVVY_ENOMEM;
    assert_int_equal(dv_plan_step(&right, w.plan, &party, events), DV_PLAN_NEXT);
    for (bool failed = true; failed; failures++) {
        scarce_after = failures;
        result = dv_plan_step(&next, w.plan, &party, events);
        failed = scarce_after < 0;
        scarce_after = -1;
        if (!failed) break;
        assert_int_equal(result, DIVVY_ENOMEM);
        assert_null(next);
    }
    assert_int_equal(result, DV_PLAN_NEXT);
    assert_true(failures > 5);
    assert_true(states_equal(next, right));
    dv_plan_free(right);
    dv_plan_free(next);
    assert_int_equal(step(&w, events), DV_PLAN_NEXT);
}

/* Drafts the world's plan, whole or in chunks. */
static void draft_scarcely(const dv_plan_sizes *sizes) {
    dv_plan_draft draft;
    int failures = 0, error = DIVVY_ENOMEM;
    for (; error; failures++) {
        scarce_after = failures;
        error = dv_plan_draft_make(&draft, w.plan, w.before, NULL, sizes);
        bool failed = scarce_after < 0;
        scarce_after = -1;
        assert_int_equal(error, failed ? DIVVY_ENOMEM : 0);
    }
    assert_true(failures > 5);
    dv_plan_draft_clear(&draft);
}

/* Drafts and reads the world's plan, with each allocation failing in turn. */
static void write_and_read_scarcely(void) {
    dv_plan_text text;
    dv_plan *read = NULL;
    int failures, error;
    draft_scarcely(NULL);
    draft_scarcely(&(dv_plan_sizes){.inline_root_bytes = 0, .chunk_bytes = 100});
    print_whole(&text, w.plan);
    dv_plan_root root;
    for (error = DIVVY_ENOMEM, failures = 0; error; failures++) {
        scarce_after = failures;
        error = dv_plan_root_parse(&root, text.bytes, text.count, NULL);
        scarce_after = -1;
        if (error) assert_int_equal(error, DIVVY_ENOMEM);
    }
    dv_plan_set *set = NULL;
    for (error = DIVVY_ENOMEM, failures = 0; error; failures++) {
        scarce_after = failures;
        error = dv_plan_items_parse(&set, &root, root.items.text, root.items.bytes, NULL);
        scarce_after = -1;
        if (error) assert_int_equal(error, DIVVY_ENOMEM);
    }
    assert_true(failures > 2);
    for (error = DIVVY_ENOMEM, failures = 0; error; failures++) {
        scarce_after = failures;
        error = dv_plan_from_base(&read, set, root.base.text, root.base.bytes, NULL);
        scarce_after = -1;
        if (error) assert_int_equal(error, DIVVY_ENOMEM);
    }
    assert_true(failures > 5);
    assert_true(dv_plan_set_equal(read->set, w.plan->set));
    assert_int_equal(read->member_count, w.plan->member_count);
    dv_plan_free(read);
    dv_plan_set_unref(set);
    dv_plan_root_clear(&root);
    free(text.bytes);
}

/* Shares are computed whole or not at all. */
static void share_scarcely(void) {
    double *shares = NULL;
    for (int failures = 0; !shares; failures++) {
        scarce_after = failures;
        shares = dv_plan_shares(w.plan);
        bool failed = scarce_after < 0;
        scarce_after = -1;
        assert_true(shares || failed);
    }
    free(shares);
}

/* So it is where members come, go, and change, and where the pool gets other items. */
TEST(test_members) {
    world_begin(&w, 12);
    join_dynamic(&w);
    join(&w, "host", 30000);
    step_scarcely(NULL);
    write_and_read_scarcely();
    join_dynamic(&w);
    w.live[1].says.zone = "west";
    w.live[1].says.tags = "gpu,ssd";
    step_scarcely(NULL);
    write_and_read_scarcely();
    step_scarcely(&(dv_plan_events){.weight = {.key = "host", .weight = 500}});
    step_scarcely(&(dv_plan_events){.leaving = w.live[0].node});
    dv_plan_set *other = numbered_set("j", 20);
    step_scarcely(&(dv_plan_events){.set = other});
    dv_plan_set_unref(other);
    die(&w, 1);
    step_scarcely(NULL);
    const dv_plan_member *host = dv_plan_find(w.plan, true, "host");
    assert_true(host->absent != 0);
    const dv_plan_expiry gone = {.key = "host", .absent = host->absent};
    step_scarcely(&(dv_plan_events){.expired = &gone, .expired_count = 1});
    write_and_read_scarcely();
    world_end(&w);
}

/* So it is where names of items are encoded. */
TEST(test_names_encoded) {
    static const char *const names[] = {"a/b", "c"};
    world_begin(&w, 2);
    dv_plan_set_unref(w.set);
    w.set = dv_plan_set_make(names, COUNT(names));
    join_dynamic(&w);
    step_scarcely(NULL);
    write_and_read_scarcely();
    world_end(&w);
}

/* So it is where an operator asks for something. */
TEST(test_wishes) {
    pool(3, 12);
    w.live[2].says.tags = "gpu";
    const struct {
        dv_wish_kind kind;
        const char *name, *value;
    } wishes[] = {
        {DV_WISH_PIN, "i000001", w.live[0].node}, {DV_WISH_MOVE, "i000002", w.live[1].node},
        {DV_WISH_PAUSE, "i000003", ""},           {DV_WISH_NEED, "i00001*", "gpu"},
        {DV_WISH_OPTION, "max-moves", "2"},
    };
    for (size_t n = 0; n < COUNT(wishes); n++) {
        const dv_wish_event event = {.wish = wish_of(wishes[n].kind, wishes[n].name, wishes[n].value)};
        step_scarcely(&(dv_plan_events){.wishes = &event, .wish_count = 1, .told = "anna asked"});
        write_and_read_scarcely();
        share_scarcely();
    }
    const dv_wish_event undo = {.wish = wish_of(DV_WISH_PAUSE, "i000003", ""), .undo = true};
    step_scarcely(&(dv_plan_events){.wishes = &undo, .wish_count = 1, .told = "anna asked"});
    die(&w, 1);
    step_scarcely(NULL); /* The move ends with its member. */
    assert_null(dv_wishes_find(w.plan->wishes, DV_WISH_MOVE, "i000002"));
    world_end(&w);
}

/* So it is where items move for their load. */
TEST(test_loads) {
    pool(3, 12);
    dv_loads *loads = dv_loads_make("jobs", 12);
    assert_non_null(loads);
    for (size_t i = 0; i < 12; i++) loads->classes[i] = dv_class_of(w.plan->owners[i] == 0 ? 1000 : 10);
    step_scarcely(&(dv_plan_events){.loads = loads});
    assert_true(w.plan->loads->giver_count > 0);
    write_and_read_scarcely();
    share_scarcely();
    join_dynamic(&w);
    step_scarcely(NULL);
    dv_plan_set *other = numbered_set("i", 14);
    step_scarcely(&(dv_plan_events){.set = other});
    dv_plan_set_unref(other);
    dv_loads_unref(loads);
    world_end(&w);
}
