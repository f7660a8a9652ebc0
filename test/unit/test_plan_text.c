/* The sticky plan's texts: the bytes, round trips, size. SPDX-License-Identifier: Apache-2.0 */
#include "plan_fixture.h"

/* --- the bytes --- */

static void assert_prints(const dv_plan *plan, const char *expected) {
    dv_plan_text text;
    print_whole(&text, plan);
    assert_int_equal(text.count, strlen(expected));
    assert_memory_equal(text.bytes, expected, text.count);
    dv_plan *read;
    assert_int_equal(read_whole(&read, text.bytes, text.count, NULL), 0);
    assert_plans_equal(read, plan);
    dv_plan_free(read);
    free(text.bytes);
}

/* A small plan is these bytes (D2 to D5), whatever is in its names, and these bytes are that plan. */
TEST(test_golden_small) {
    dv_plan *plan = small_plan();
    assert_prints(
        plan,
        "{\"v\":1,\"generation\":18,\"guid\":\"00000000001aaaaaaaaaaa7\",\"after\":\"00000000001aaaaaaaaaaa6\","
        "\"epoch\":\"00000000001aaaaaaaaaaa1\",\"pzxid\":\"1a0000002f\",\"reason\":\"join\",\"options\":{"
        "\"algorithm\":1,\"max_moves\":2,\"spread_zones\":1,\"round_timeout_ms\":60000},\"tag\":\"1a2b3c4d\",\"set\":{"
        "\"count\":5,\"crc\":\"cdf7223d\",\"hash\":\"321c4cfe7edc3073\"},\"items\":{\"inline\":[\"a%2Fb\","
        "\"q\\\"uote\\\\\",\"tenant:42\",\"x%2541\",\"\xc3\xa9\"]},\"base\":{\"inline\":{\"members\":[{\"slot\":0,"
        "\"key\":\"n1,a=2,s=1a2b3c4d-w\",\"static\":0,\"weight\":1000,\"zone\":\"\",\"rejoin_delay_ms\":0,"
        "\"absent\":\"0\",\"leaving\":\"\"},{\"slot\":2,\"key\":\"host-2\",\"static\":1,\"weight\":4294967295,"
        "\"zone\":\"r\\u0001\\\"\xc3\xa4\",\"rejoin_delay_ms\":30000,\"absent\":\"1a0000002e\",\"leaving\":\"\"},"
        "{\"slot\":3,\"key\":\"n3-w\",\"static\":0,\"weight\":0,\"zone\":\"\",\"rejoin_delay_ms\":0,\"absent\":\"0\","
        "\"leaving\":\"n3-w\"}],\"width\":1,\"owners\":\"02z02\"}},\"base_guid\":\"00000000001aaaaaaaaaaa7\","
        "\"deltas\":[],\"moved\":[1,4],\"sum\":\"20739048\"}");
    dv_plan_free(plan);
}

/* A guid of the most bytes is taken. */
TEST(test_longest_guid) {
    dv_plan *plan = small_plan(), *read;
    dv_plan_text text;
    memset(plan->header.guid, 'g', DV_GUID_BYTES - 1);
    print_whole(&text, plan);
    assert_int_equal(read_whole(&read, text.bytes, text.count, NULL), 0);
    assert_string_equal(read->header.guid, plan->header.guid);
    assert_int_equal(strlen(read->header.guid), DV_GUID_BYTES - 1);
    free(text.bytes);
    dv_plan_free(read);
    dv_plan_free(plan);
}

/* The least cap, and the shortest list of tags, are read as they were written. */
TEST(test_least_cap_and_tags) {
    dv_plan *plan = small_plan(), *read;
    dv_plan_text text;
    plan->members[1].cap = 1;
    free(plan->members[1].tags);
    plan->members[1].tags = strdup("g");
    print_whole(&text, plan);
    assert_int_equal(read_whole(&read, text.bytes, text.count, NULL), 0);
    assert_int_equal(read->members[1].cap, 1);
    assert_string_equal(read->members[1].tags, "g");
    free(text.bytes);
    dv_plan_free(read);
    dv_plan_free(plan);
}

/* The plan of no members and no items, which makes the root before the first chunks are written. */
TEST(test_golden_empty) {
    dv_plan *plan = dv_plan_make(dv_plan_set_make(NULL, 0));
    assert_non_null(plan);
    plan->header = (dv_plan_header){.guid = "g1", .epoch = "e1", .reason = DV_PLAN_CREATE};
    assert_prints(
        plan, "{\"v\":1,\"generation\":0,\"guid\":\"g1\",\"after\":\"\",\"epoch\":\"e1\",\"pzxid\":\"0\","
              "\"reason\":\"create\",\"options\":{\"algorithm\":1,\"max_moves\":0,\"spread_zones\":1,"
              "\"round_timeout_ms\":0},\"tag\":\"00000000\",\"set\":{\"count\":0,\"crc\":\"00000000\","
              "\"hash\":\"cbf29ce484222325\"},\"items\":{\"inline\":[]},\"base\":{\"inline\":{\"members\":[],"
              "\"width\":1,\"owners\":\"\"}},\"base_guid\":\"g1\",\"deltas\":[],\"moved\":[],\"sum\":\"1044a0e2\"}");
    dv_plan_free(plan);
}

/* A root names its chunks so (D7), and deltas are these bytes (D6). */
TEST(test_golden_chunks) {
    dv_plan *from = small_plan(), *to = dv_plan_copy(from);
    assert_non_null(to);
    to->members[0].weight = 500;
    dv_plan_member_clear(&to->members[2]);
    to->member_count = 2;
    add_member(to, (dv_plan_member){.slot = 34, .key = "n4-w", .weight = 1000});
    const uint32_t owners[] = {34, NONE, 34, 2, 2};
    memcpy(to->owners, owners, sizeof owners);
    strcpy(to->header.guid, "g2");
    dv_plan_text items, base, delta, root_text;
    dv_plan_root root;
    uint32_t number = 0;
    assert_int_equal(dv_plan_root_describe(&root, to), 0);
    assert_int_equal(dv_plan_print_items(&items, to->set), 0);
    assert_int_equal(dv_plan_print_base(&base, from), 0);
    assert_int_equal(dv_plan_print_delta(&delta, from, to), 0);
    const char *expected =
        "{\"members\":[{\"slot\":0,\"key\":\"n1,a=2,s=1a2b3c4d-w\",\"static\":0,\"weight\":500,\"zone\":\"\","
        "\"rejoin_delay_ms\":0,\"absent\":\"0\",\"leaving\":\"\"},{\"slot\":34,\"key\":\"n4-w\",\"static\":0,"
        "\"weight\":1000,\"zone\":\"\",\"rejoin_delay_ms\":0,\"absent\":\"0\",\"leaving\":\"\"}],\"gone\":[3],"
        "\"moves\":[[-1,1],[2,3],[34,0,2]]}";
    assert_int_equal(delta.count, strlen(expected));
    assert_memory_equal(delta.bytes, expected, delta.count);
    assert_int_equal(dv_plan_part_cut(&root.items, &items, DV_PLAN_CHUNK_BYTES, 17, "g1", &number), 0);
    assert_int_equal(dv_plan_part_cut(&root.base, &base, DV_PLAN_CHUNK_BYTES, 17, "g1", &number), 0);
    strcpy(root.base_guid, "g1");
    root.deltas = calloc(1, sizeof *root.deltas);
    assert_non_null(root.deltas);
    root.delta_count = 1;
    strcpy(root.deltas[0].guid, "g2");
    number = 0;
    assert_int_equal(dv_plan_part_cut(&root.deltas[0].part, &delta, DV_PLAN_CHUNK_BYTES, 18, "g2", &number), 0);
    assert_int_equal(dv_plan_print_root(&root_text, &root), 0);
    expected =
        "{\"v\":1,\"generation\":18,\"guid\":\"g2\",\"after\":\"00000000001aaaaaaaaaaa6\","
        "\"epoch\":\"00000000001aaaaaaaaaaa1\",\"pzxid\":\"1a0000002f\",\"reason\":\"join\",\"options\":{"
        "\"algorithm\":1,\"max_moves\":2,\"spread_zones\":1,\"round_timeout_ms\":60000},\"tag\":\"1a2b3c4d\",\"set\":{"
        "\"count\":5,\"crc\":\"cdf7223d\",\"hash\":\"321c4cfe7edc3073\"},\"items\":{\"chunks\":[[\"17-g1-0\",47,"
        "\"95ca563d\"]]},"
        "\"base\":{\"chunks\":[[\"17-g1-1\",403,\"20739048\"]]},\"base_guid\":\"g1\",\"deltas\":[[\"g2\",{\"chunks\":[["
        "\"18-g2-0\",281,\"4c8ad1c1\"]]}]],\"moved\":[1,4],\"sum\":\"f4e542f5\"}";
    assert_int_equal(root_text.count, strlen(expected));
    assert_memory_equal(root_text.bytes, expected, root_text.count);
    dv_plan_root_clear(&root);
    free(root_text.bytes);
    assert_int_equal(dv_plan_root_parse(&root, expected, strlen(expected), NULL), 0);
    assert_int_equal(root.items.bytes, items.count);
    assert_int_equal(root.base.bytes, base.count);
    assert_true(dv_plan_chunk_matches(&root.deltas[0].part.chunks[0], delta.bytes, delta.count));
    assert_int_equal(dv_plan_print_root(&root_text, &root), 0);
    assert_string_equal(root.base_guid, "g1");
    assert_int_equal(root_text.count, strlen(expected));
    assert_memory_equal(root_text.bytes, expected, root_text.count);
    assert_int_equal(dv_plan_apply(from, delta.bytes, delta.count, NULL), 0);
    assert_int_equal(dv_plan_complete(from, &root, NULL), 0);
    assert_plans_equal(from, to);
    dv_plan_root_clear(&root);
    free(items.bytes);
    free(base.bytes);
    free(delta.bytes);
    free(root_text.bytes);
    dv_plan_free(from);
    dv_plan_free(to);
}

/* --- round trips --- */

static const char *text_by_chance(char *space, const char *prefix, size_t number) {
    static const char *const odd[] = {"",     "\"",    "\\\\", "\xe2\x82\xac", "\n", " ", "\xf0\x9f\x98\x80",
                                      "\x7f", "{[,:]}"};
    sprintf(space, "%s%zu%s", prefix, number, odd[chance(COUNT(odd))]);
    return space;
}

/* Members with slots here and there, owners anyhow. */
static void members_by_chance(dv_plan *plan) {
    char key[64], zone[64];
    while (plan->member_count > 0) dv_plan_member_clear(&plan->members[--plan->member_count]);
    size_t count = chance(12), step = 1 + chance(2) * chance(1000);
    uint32_t slot = (uint32_t)chance(step);
    for (size_t m = 0; m < count; m++, slot += (uint32_t)(1 + chance(step))) {
        bool is_static = chance(2);
        add_member(plan, (dv_plan_member){.slot = slot,
                                          .is_static = is_static,
                                          .key = (char *)(uintptr_t)text_by_chance(key, "worker-", m),
                                          .weight = (uint32_t)chance(UINT32_MAX),
                                          .zone = (char *)(uintptr_t)text_by_chance(zone, "z", chance(3)),
                                          .rejoin_delay_ms = (int64_t)chance(100000),
                                          .absent = is_static ? (int64_t)chance(2) * 77 : 0,
                                          .leaving = chance(4) ? NULL : "n-1"});
    }
    for (size_t i = 0; i < plan->set->count; i++) {
        plan->owners[i] = count > 0 && chance(8) ? plan->members[chance(count)].slot : NONE;
    }
}

static dv_plan *plan_by_chance(void) {
    char names[40][64];
    const char *list[40];
    size_t count = chance(40);
    for (size_t i = 0; i < count; i++) {
        char prefix[32];
        sprintf(prefix, "%c%02zu%c%c", 'a' + (int)(i / 10), i, (int)(1 + chance(255)), "%/.\xc3"[chance(4)]);
        list[i] = text_by_chance(names[i], prefix, i);
    }
    dv_plan *plan = dv_plan_make(dv_plan_set_make(list, count));
    assert_non_null(plan);
    members_by_chance(plan);
    plan->header =
        (dv_plan_header){.generation = chance(1000000),
                         .pzxid = (int64_t)chance(1u << 30) << 20,
                         .reason = (dv_plan_reason)chance(DV_PLAN_REASONS),
                         .options = {.max_moves = (uint32_t)chance(9), .round_timeout_ms = (int64_t)chance(100000)},
                         .tag = (uint32_t)chance(UINT32_MAX)};
    sprintf(plan->header.guid, "g%zu", chance(1000));
    sprintf(plan->header.epoch, "e%zu", chance(1000));
    if (chance(2)) sprintf(plan->header.after, "a%zu", chance(1000));
    uint32_t moved[40];
    size_t moved_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (chance(4) == 0) moved[moved_count++] = (uint32_t)i;
    }
    set_moved(plan, moved, moved_count);
    return plan;
}

/* A printed plan is read as it was, and a plan that was read is printed as the same bytes. */
TEST(test_round_trip) {
    chance_begin();
    for (int round = 0; round < 2000; round++) {
        dv_plan *plan = plan_by_chance(), *read;
        dv_plan_text text, again;
        dv_plan_fault fault = {0};
        print_whole(&text, plan);
        if (read_whole(&read, text.bytes, text.count, &fault) != 0) fail_msg("%s at %zu", fault.why, fault.at);
        assert_plans_equal(read, plan);
        print_whole(&again, read);
        assert_int_equal(again.count, text.count);
        assert_memory_equal(again.bytes, text.bytes, text.count);
        free(text.bytes);
        free(again.bytes);
        dv_plan_free(plan);
        dv_plan_free(read);
    }
}

/* A delta leads from any plan to any other of the same set; both the sum and the plan say so. */
TEST(test_deltas) {
    chance_begin();
    for (int round = 0; round < 2000; round++) {
        dv_plan *from = plan_by_chance(), *to = dv_plan_copy(from);
        assert_non_null(to);
        members_by_chance(to);
        dv_plan_text delta;
        dv_plan_root root;
        dv_plan_fault fault = {0};
        assert_int_equal(dv_plan_print_delta(&delta, from, to), 0);
        assert_int_equal(dv_plan_root_describe(&root, to), 0);
        if (dv_plan_apply(from, delta.bytes, delta.count, &fault) != 0) fail_msg("%s at %zu", fault.why, fault.at);
        if (dv_plan_complete(from, &root, &fault) != 0) fail_msg("%s", fault.why);
        assert_plans_equal(from, to);
        if (from->set->count > 0 && from->member_count > 0) { /* another owner is another sum */
            uint32_t slot = from->members[0].slot;
            from->owners[0] = from->owners[0] == slot ? NONE : slot;
            assert_int_equal(dv_plan_complete(from, &root, &fault), DIVVY_EPROTO);
        }
        dv_plan_root_clear(&root);
        free(delta.bytes);
        dv_plan_free(from);
        dv_plan_free(to);
    }
}

/* --- chunks --- */

/* Chunks have names of one form; all else below P/plan is left alone (D7). */
TEST(test_chunk_names) {
    static const char *const good[] = {"0-g-0", "18-00000000001aaaaaaaaaaa7-0", "9007199254740991-aZ09-399"};
    static const char *const bad[] = {"",
                                      "18",
                                      "18-",
                                      "18-g",
                                      "18-g-",
                                      "18-g-00",
                                      "018-g-0",
                                      "-g-0",
                                      "18--0",
                                      "18--g-0",
                                      "18-",
                                      "18-g-0-",
                                      "18-g-0x",
                                      "18-g.-0",
                                      "x8-g-0",
                                      "18-g-12345",
                                      "18 g 0",
                                      "18-g-0 ",
                                      "+1-g-0",
                                      "18-g-0-0",
                                      "00000000001aaaaaaaaaaa1",
                                      "12345678901234567-g-0",
                                      "1-0123456789012345678901234567890123456789-0"};
    for (size_t n = 0; n < COUNT(good); n++) {
        uint64_t generation;
        assert_true(dv_plan_chunk_parse(good[n], &generation));
        assert_int_equal(generation, strtoull(good[n], NULL, 10));
    }
    for (size_t n = 0; n < COUNT(bad); n++) {
        uint64_t generation;
        if (dv_plan_chunk_parse(bad[n], &generation)) fail_msg("\"%s\" is taken for a chunk", bad[n]);
    }
}

/* Texts of any length are cut into chunks that together are the text, and no byte of one may be another. */
TEST(test_cut) {
    static const size_t lengths[] = {1, 199999, 200000, 200001, 400000, 400001};
    for (size_t n = 0; n < COUNT(lengths); n++) {
        dv_plan_text text = {malloc(lengths[n]), lengths[n]};
        assert_non_null(text.bytes);
        memset(text.bytes, 'a', text.count);
        dv_plan_part part, copy;
        uint32_t number = 7;
        assert_int_equal(dv_plan_part_cut(&part, &text, DV_PLAN_CHUNK_BYTES, 3, "g", &number), 0);
        assert_int_equal(dv_plan_part_copy(&copy, &part), 0);
        assert_int_equal(number, 7 + part.chunk_count);
        size_t from = 0;
        for (size_t c = 0; c < copy.chunk_count; c++) {
            char name[32];
            sprintf(name, "3-g-%zu", 7 + c);
            assert_string_equal(copy.chunks[c].name, name);
            assert_in_range(copy.chunks[c].bytes, 1, DV_PLAN_CHUNK_BYTES);
            assert_true(dv_plan_chunk_matches(&copy.chunks[c], text.bytes + from, copy.chunks[c].bytes));
            assert_false(dv_plan_chunk_matches(&copy.chunks[c], text.bytes + from, copy.chunks[c].bytes - 1));
            text.bytes[from] = 'b';
            assert_false(dv_plan_chunk_matches(&copy.chunks[c], text.bytes + from, copy.chunks[c].bytes));
            text.bytes[from] = 'a';
            from += copy.chunks[c].bytes;
        }
        assert_int_equal(from, text.count);
        dv_plan_part_clear(&part);
        dv_plan_part_clear(&copy);
        assert_true(copy.text == NULL && copy.chunks == NULL && copy.bytes == 0 && copy.chunk_count == 0);
        dv_plan_part_clear(&copy); /* once more does no harm */
        free(text.bytes);
    }
}

/* --- size --- */

/* 100,000 items and 1,000 members are read and written in the time of a few round trips. */
TEST(test_large) {
    enum { ITEMS = 100000, MEMBERS = 1000 };
    dv_plan *plan = dv_plan_make(numbered_set("tenant-item-", ITEMS));
    assert_non_null(plan);
    for (uint32_t m = 0; m < MEMBERS; m++) {
        char key[96];
        sprintf(key, "0000000%04uabcdefghijk1,a=2,s=1a2b3c4d-host-%04u.example.org-4711", m, m);
        add_member(plan, (dv_plan_member){.slot = m, .key = key, .weight = 1000});
    }
    for (size_t i = 0; i < ITEMS; i++) plan->owners[i] = (uint32_t)(i * 7919 % MEMBERS);
    strcpy(plan->header.guid, "g1");
    strcpy(plan->header.epoch, "e1");
    dv_plan *joined = dv_plan_copy(plan);
    assert_non_null(joined);
    add_member(joined, (dv_plan_member){.slot = MEMBERS, .key = "new", .weight = 1000});
    for (size_t i = 0; i < ITEMS; i += MEMBERS + 1) joined->owners[i] = MEMBERS;
    dv_plan_text items, base, delta;
    dv_plan_root root;
    double at = now_ms();
    assert_int_equal(dv_plan_print_items(&items, plan->set), 0);
    print_message("items: %zu bytes, printed in %.2f ms\n", items.count, now_ms() - at);
    at = now_ms();
    assert_int_equal(dv_plan_print_base(&base, plan), 0);
    print_message("base: %zu bytes, printed in %.2f ms\n", base.count, now_ms() - at);
    at = now_ms();
    assert_int_equal(dv_plan_print_delta(&delta, plan, joined), 0);
    print_message("delta: %zu bytes, printed in %.2f ms\n", delta.count, now_ms() - at);
    at = now_ms();
    assert_int_equal(dv_plan_root_describe(&root, joined), 0);
    print_message("sum: %.2f ms\n", now_ms() - at);
    dv_plan_set *set;
    dv_plan *read;
    at = now_ms();
    assert_int_equal(dv_plan_items_parse(&set, &root, items.bytes, items.count, NULL), 0);
    print_message("items parsed in %.2f ms\n", now_ms() - at);
    at = now_ms();
    assert_int_equal(dv_plan_from_base(&read, set, base.bytes, base.count, NULL), 0);
    print_message("base parsed in %.2f ms\n", now_ms() - at);
    at = now_ms();
    assert_int_equal(dv_plan_apply(read, delta.bytes, delta.count, NULL), 0);
    print_message("delta applied in %.2f ms\n", now_ms() - at);
    at = now_ms();
    assert_int_equal(dv_plan_complete(read, &root, NULL), 0);
    print_message("checked in %.2f ms\n", now_ms() - at);
    assert_plans_equal(read, joined);
    dv_plan_root_clear(&root);
    dv_plan_set_unref(set);
    free(items.bytes);
    free(base.bytes);
    free(delta.bytes);
    dv_plan_free(plan);
    dv_plan_free(joined);
    dv_plan_free(read);
}
