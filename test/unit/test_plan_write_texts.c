/* Tests of the writer: deltas, chunks, and garbage. SPDX-License-Identifier: Apache-2.0 */
#include "plan/loads.h"
#include "plan/wish.h"
#include "plan_writers.h"

/* A hostile generation, the highest that a text can tell, does not keep anybody from writing. */
TEST(test_highest_generation) {
    open_pool(10, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    dv_plan *plan = dv_plan_copy(users[0].memory.plan);
    plan->header.generation = DV_PLAN_INTEGER_MAX;
    dv_plan_text text;
    print_whole(&text, plan);
    put_data(ROOT, text.bytes, text.count);
    free(text.bytes);
    dv_plan_free(plan);
    refresh(&users[0]);
    assert_int_equal(users[0].memory.standing, DV_PLAN_GOOD);
    for (uint32_t n = 0; n < 3; n++) {
        assert_int_equal(write_weight(&users[0], 500 + n), DV_PLAN_WRITTEN);
        assert_reads_as(&users[0].memory);
    }
    close_pool();
}

/* ---- deltas and bases ---- */

/* Small changes are deltas, 16 at most and no more than half the base. Then the plan before is a new base, and what no
 * plan needs is gone. */
TEST(test_deltas_then_base) {
    use_chunks(1000);
    open_pool(2000, 4);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    size_t most = 0, bases = 0;
    for (uint32_t n = 0; n < 60; n++) {
        size_t deltas = users[0].memory.root.delta_count, base_bytes = users[0].memory.root.base.bytes, before = 0;
        for (size_t d = 0; d < deltas; d++) before += users[0].memory.root.deltas[d].part.bytes;
        char items[DV_PLAN_CHUNK_NAME_BYTES], base_guid[DV_GUID_BYTES], guid[DV_GUID_BYTES];
        strcpy(items, users[0].memory.root.items.chunks[0].name);
        strcpy(base_guid, users[0].memory.root.base_guid);
        strcpy(guid, users[0].memory.root.header.guid);
        assert_int_equal(write_weight(&users[0], 1010 + n * 10), DV_PLAN_WRITTEN);
        const dv_plan_root *root = &users[0].memory.root;
        assert_string_equal(root->items.chunks[0].name, items); /* never written again */
        bool has_new_base = strcmp(root->base_guid, base_guid) != 0;
        if (has_new_base) assert_string_equal(root->base_guid, guid); /* that of the plan before */
        assert_int_equal(root->delta_count, has_new_base ? 1 : deltas + 1);
        if (root->delta_count > most) most = root->delta_count;
        size_t bytes = 0;
        for (size_t d = 0; d < root->delta_count; d++) bytes += root->deltas[d].part.bytes;
        assert_true(bytes <= root->base.bytes / 2);
        if (has_new_base) {
            if (deltas < 16) assert_true(before + bytes > base_bytes / 2);
            bases++;
            assert_int_equal(garbage_count(&users[0].memory), 0);
            assert_int_equal(child_count(), dv_plan_root_chunk_count(root) + 1);
        }
        assert_reads_as(&users[0].memory);
    }
    assert_true(most >= 3 && most <= 16);
    assert_true(bases >= 3);
    close_pool();
}

/* 16 deltas and not more, however small they are. */
TEST(test_sixteen_deltas) {
    use_chunks(100000);
    open_pool(20000, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    for (uint32_t n = 1; n <= 18; n++) {
        assert_int_equal(write_weight(&users[0], 1000 + n), DV_PLAN_WRITTEN);
        assert_int_equal(users[0].memory.root.delta_count, n <= 16 ? n : n - 16);
    }
    close_pool();
}

/* Who follows reads of a new base the delta alone; who comes by then reads it whole. */
TEST(test_new_base_costs_followers_a_delta) {
    use_chunks(100000);
    open_pool(20000, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    refresh(&users[1]);
    for (uint32_t n = 1; n <= 40; n++) {
        assert_int_equal(write_weight(&users[0], 1000 + n), DV_PLAN_WRITTEN);
        divvy_stats before, after;
        assert_int_equal(divvy_client_stats(users[1].client, &before, sizeof before), 0);
        refresh(&users[1]);
        assert_int_equal(divvy_client_stats(users[1].client, &after, sizeof after), 0);
        assert_string_equal(users[1].memory.plan->header.guid, users[0].memory.plan->header.guid);
        assert_int_equal(after.requests - before.requests, 3); /* the root, again when it looks, and the delta */
        assert_true(after.bytes_received - before.bytes_received < 5000);
    }
    assert_reads_as(&users[0].memory);
    close_pool();
}

/* A plan that outgrows its root is written as a base of the plan before, too. */
TEST(test_outgrown_root) {
    sizes.inline_root_bytes = DV_PLAN_ROOT_BYTES_MAX;
    open_pool(2000, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    refresh(&users[1]);
    char guid[DV_GUID_BYTES];
    strcpy(guid, users[0].memory.root.header.guid);
    use_chunks(1000);
    assert_int_equal(write_weight(&users[0], 1001), DV_PLAN_WRITTEN);
    const dv_plan_root *root = &users[0].memory.root;
    assert_int_equal(root->delta_count, 1);
    assert_string_equal(root->base_guid, guid);
    assert_true(root->items.text == NULL && root->base.text == NULL);
    assert_reads_as(&users[0].memory);
    refresh(&users[1]);
    assert_plans_equal(users[1].memory.plan, users[0].memory.plan);
    close_pool();
}

/* A step that changes most of the plan is a base of its own. */
TEST(test_large_step_is_a_base) {
    use_chunks(1000);
    open_pool(2000, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    assert_int_equal(write_weight(&users[0], 100), DV_PLAN_WRITTEN);
    const dv_plan_root *root = &users[0].memory.root;
    assert_int_equal(root->delta_count, 0);
    assert_string_equal(root->base_guid, root->header.guid);
    assert_reads_as(&users[0].memory);
    close_pool();
}

/* Another set of items is written whole, and the one before is garbage. */
TEST(test_other_set) {
    use_chunks(100);
    open_pool(60, 3);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    dv_plan_set *set = numbered_set("item-", 70);
    users[0].events = (dv_plan_events){.set = set};
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    users[0].events = (dv_plan_events){0};
    assert_int_equal(users[0].memory.plan->set->count, 70);
    assert_int_equal(users[0].memory.root.delta_count, 0);
    assert_reads_as(&users[0].memory);
    assert_int_equal(garbage_count(&users[0].memory), 0);
    /* One that fits the root leaves no chunks at all. */
    dv_plan_set *small = numbered_set("item-", 2);
    sizes.inline_root_bytes = DV_PLAN_INLINE_ROOT_BYTES;
    users[0].events = (dv_plan_events){.set = small};
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    users[0].events = (dv_plan_events){0};
    assert_reads_as(&users[0].memory);
    assert_int_equal(child_count(), 1);
    dv_plan_set_unref(set);
    dv_plan_set_unref(small);
    close_pool();
}

/* Loads and wishes that stay as they are stay in their chunks, be it one. */
TEST(test_parts_stay) {
    use_chunks(1000);
    open_pool(50, 0);
    char node[64];
    snprintf(node, sizeof node, "00000000001000000000011,a=3,s=%08x-m", users[0].set->crc);
    join(node, "{}");
    settle(&users[0]);
    const dv_wish_event pin = {.wish = {DV_WISH_PIN, "item-000007", "m", "anna", "", 7}};
    users[0].events = (dv_plan_events){.loads = dv_loads_make("jobs", 50), .wishes = &pin, .wish_count = 1};
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    dv_loads_unref(users[0].events.loads);
    const dv_plan_root *root = &users[0].memory.root;
    assert_true(root->loads.chunk_count == 1 && root->wishes.chunk_count == 1);
    const dv_plan_chunk loads = root->loads.chunks[0], wishes = root->wishes.chunks[0];
    assert_int_equal(write_weight(&users[0], 500), DV_PLAN_WRITTEN);
    assert_string_equal(root->loads.chunks[0].name, loads.name);
    assert_string_equal(root->wishes.chunks[0].name, wishes.name);
    assert_reads_as(&users[0].memory);
    close_pool();
}

/* ---- garbage ---- */

/* More garbage than one multi takes is deleted all; later generations, names that are no chunks, and the epoch stay. */
TEST(test_much_garbage) {
    open_pool(10, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    char path[256];
    for (unsigned n = 0; n < 1203; n++) {
        snprintf(path, sizeof path, ROOT "/%u-00000000002000000000031-%u", n % 2 + 1, n);
        assert_int_equal(divvy_testing_put(ensemble, path, "x", 1, DIVVY_TESTING_PERSISTENT), 0);
    }
    put_text(ROOT "/9-00000000002000000000031-0", "x");
    put_text(ROOT "/foreign", "x");
    put_text(ROOT "/2-a_b-0", "x");
    assert_int_equal(write_weight(&users[0], 500), DV_PLAN_WRITTEN);
    assert_int_equal(users[0].memory.plan->header.generation, 2);
    assert_int_equal(child_count(), 1 + 3);
    assert_int_equal(garbage_count(&users[0].memory), 1);
    assert_reads_as(&users[0].memory);
    close_pool();
}

/* Where nothing can be garbage, nobody looks for it. */
TEST(test_no_garbage_no_look) {
    use_chunks(1000);
    open_pool(2000, 4);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    divvy_stats before, after;
    assert_int_equal(divvy_client_stats(users[0].client, &before, sizeof before), 0);
    assert_int_equal(write_weight(&users[0], 1001), DV_PLAN_WRITTEN);
    assert_int_equal(divvy_client_stats(users[0].client, &after, sizeof after), 0);
    assert_int_equal(users[0].memory.root.delta_count, 1);
    assert_int_equal(after.children - before.children, 1);     /* the party */
    assert_int_equal(after.requests - before.requests, 3 + 1); /* the delta goes with the root */
    close_pool();
}

/* ---- size ---- */

static void told(const char *what, const divvy_stats *before, const divvy_stats *after) {
    print_message("%s: %llu requests, %llu bytes sent, %llu received\n", what,
                  (unsigned long long)(after->requests - before->requests),
                  (unsigned long long)(after->bytes_sent - before->bytes_sent),
                  (unsigned long long)(after->bytes_received - before->bytes_received));
}

/* 100,000 items: the first plan is a few chunks, a join one small delta beside the root. */
TEST(test_many_items) {
    open_pool(100000, 90);
    divvy_stats before, after;
    assert_int_equal(divvy_client_stats(users[0].client, &before, sizeof before), 0);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    assert_int_equal(divvy_client_stats(users[0].client, &after, sizeof after), 0);
    told("first plan, 100,000 items, 90 members", &before, &after);
    size_t chunks = dv_plan_root_chunk_count(&users[0].memory.root);
    assert_true(chunks >= 8 && chunks <= 12);
    assert_reads_as(&users[0].memory);

    join(member(95), "{}");
    settle(&users[0]);
    assert_int_equal(divvy_client_stats(users[0].client, &before, sizeof before), 0);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    assert_int_equal(divvy_client_stats(users[0].client, &after, sizeof after), 0);
    told("a join", &before, &after);
    assert_int_equal(after.requests - before.requests, 3 + 1 + 1); /* who came; the delta and the root */
    assert_true(after.bytes_sent - before.bytes_sent < 20000);
    assert_reads_as(&users[0].memory);
    close_pool();
}

TEST_EACH(NULL, restore_sizes);
