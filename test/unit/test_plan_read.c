/* Tests of plan/reader.h on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include "plan/loads.h"
#include "plan/wish.h"
#include "plan_read_fixture.h"

static void chunk_path(char path[128], const dv_plan_part *part, size_t n) {
    snprintf(path, 128, ROOT "/%s", part->chunks[n].name);
}

/* Where there is no plan yet an exists leaves the watch, by which the first one is found. */
TEST(test_no_plan_then_one) {
    start_reader(NULL);
    assert_string_equal(dv_fake_pending(nodes.fake), "get! /p/plan");
    serve();
    assert_string_equal(dv_fake_pending(nodes.fake), "exists! /p/plan");
    assert_int_equal(heard.changed, 0);
    serve();
    assert_int_equal(heard.changed, 1);
    assert_int_equal(heard.memory.standing, DV_PLAN_MISSING);
    dv_plan *plan = small_plan();
    write_base(plan);
    assert_string_equal(dv_fake_pending(nodes.fake), "get! /p/plan");
    assert_int_equal(serve_all(), 1);
    assert_int_equal(heard.changed, 2);
    assert_follows();
    dv_plan_free(plan);
}

/* A plan that comes between the read and the exists is not missed. */
TEST(test_created_between) {
    start_reader(NULL);
    serve();
    dv_plan *plan = small_plan();
    write_base(plan);
    assert_int_equal(serve_all(), 2);
    assert_int_equal(heard.changed, 1);
    assert_follows();
    dv_plan_free(plan);
}

/* A plan without members and items, which only holds the place, is one like others. */
TEST(test_generation_0) {
    dv_plan *plan = plan_of(0);
    write_base(plan);
    start_reader(NULL);
    assert_int_equal(serve_all(), 1);
    assert_follows();
    dv_plan_free(plan);
}

/* Items are read only by who has not got that set; of a change only what changed is read. */
TEST(test_what_is_read) {
    dv_plan *plan = write_in_chunks(200);
    size_t items = writer.root.items.chunk_count, base = writer.root.base.chunk_count;
    assert_true(items > 20 && base > 2);

    start_reader(NULL);
    assert_int_equal(serve_all(), 1 + items + base);
    assert_follows();
    assert_int_equal(heard.changed, 1);

    for (uint32_t n = 2; n < 5; n++) {
        write_next(write_delta, n);
        size_t chunks = writer.root.deltas[n - 2].part.chunk_count;
        assert_int_equal(serve_all(), 1 + chunks);
        assert_follows();
        assert_int_equal(heard.changed, n);
    }
    stop_reader();

    write_next(write_delta, 5);
    size_t last = writer.root.deltas[3].part.chunk_count;
    write_next(write_delta, 6);
    last += writer.root.deltas[4].part.chunk_count;
    start_reader(NULL); /* Its memory is two behind. */
    assert_int_equal(serve_all(), 1 + last);
    assert_follows();
    stop_reader();

    dv_plan_memory_clear(&heard.memory);
    start_reader(plan->set); /* This one knows the items only. */
    size_t deltas = 0;
    for (size_t d = 0; d < writer.root.delta_count; d++) deltas += writer.root.deltas[d].part.chunk_count;
    assert_int_equal(serve_all(), 1 + base + deltas);
    assert_follows();

    write_next(write_base, 7); /* And this one has them from the plan before. */
    assert_int_equal(serve_all(), 1 + writer.root.base.chunk_count);
    assert_follows();
    dv_plan_free(plan);
}

/* The items of another set are read. */
TEST(test_other_items) {
    dv_plan *plan = write_in_chunks(50);
    start_reader(plan->set);
    serve_all();
    dv_plan *other = plan_of(60);
    write_base(other);
    assert_int_equal(serve_all(), 1 + writer.root.items.chunk_count + writer.root.base.chunk_count);
    assert_follows();
    dv_plan_free(plan);
    dv_plan_free(other);
}

/* The same plan written once more, as who restores it does, is read without its texts. */
TEST(test_same_plan_again) {
    dv_plan *plan = write_in_chunks(50);
    start_reader(plan->set);
    serve_all();
    put_root();
    assert_int_equal(serve_all(), 1);
    assert_follows();
    assert_int_equal(heard.changed, 2);
    dv_plan_free(plan);
}

/* A few chunks are under way at a time, never all of a large plan. */
TEST(test_bound) {
    dv_plan *plan = write_in_chunks(2000);
    start_reader(NULL);
    assert_true(serve_all() > 200);
    assert_int_equal(nodes.most_under_way, 8);
    assert_follows();
    dv_plan_free(plan);
}

/* However often the root changes during a read, one more read follows, and the plan under way is taken first. */
TEST(test_changes_during_a_read) {
    dv_plan *plan = write_in_chunks(30);
    start_reader(NULL);
    serve();
    for (uint32_t n = 2; n < 6; n++) write_next(write_delta, n);
    size_t gets = nodes.gets;
    while (heard.changed == 0) assert_true(serve());
    assert_int_equal(heard.memory.plan->header.generation, 1);
    serve_all();
    assert_follows();
    assert_int_equal(heard.changed, 2);
    size_t deltas = 0;
    for (size_t d = 0; d < writer.root.delta_count; d++) deltas += writer.root.deltas[d].part.chunk_count;
    assert_int_equal(nodes.gets - gets, writer.root.items.chunk_count + writer.root.base.chunk_count + 1 + deltas);
    dv_plan_free(plan);
}

/* A chunk that is collected while its plan is read is no fault: the plan that stands there by then is read. */
TEST(test_torn) {
    dv_plan *plan = write_in_chunks(50);
    char path[128];
    start_reader(NULL);
    serve();
    dv_plan_root old = writer.root;
    writer.root = (dv_plan_root){0};
    write_next(write_base, 2);
    for (size_t c = 0; c < old.base.chunk_count; c++) {
        chunk_path(path, &old.base, c);
        put_away(path);
    }
    serve_all();
    assert_int_equal(heard.changed, 1);
    assert_follows();
    dv_plan_root_clear(&old);
    dv_plan_free(plan);
}

/* Expects that the plan is found broken, with one warning and the plan of before in memory, and what cures it. */
static void assert_broken(size_t generation) {
    size_t changed = heard.changed;
    serve_all();
    assert_int_equal(heard.changed, changed + 1);
    assert_int_equal(heard.memory.standing, DV_PLAN_BROKEN);
    assert_int_equal(heard.memory.mzxid, node_at(ROOT)->stat.mzxid);
    assert_int_equal(heard.memory.version, node_at(ROOT)->stat.version);
    assert_int_equal(heard.memory.plan ? heard.memory.plan->header.generation : 0, generation);
    look(); /* It is read again, and is what it was. */
    assert_int_equal(serve_all(), 1);
    assert_int_equal(heard.changed, changed + 2);
    assert_int_equal(heard.memory.standing, DV_PLAN_BROKEN);
    write_next(write_base, 3);
    serve_all();
    assert_follows();
    assert_int_equal(heard.changed, changed + 3);
}

/* A chunk that is missing under a root that stays makes the plan broken, until another one is written. */
TEST(test_missing_chunk) {
    dv_plan *plan = write_in_chunks(50);
    char path[128];
    start_reader(NULL);
    serve_all();
    write_next(write_base, 2);
    chunk_path(path, &writer.root.base, writer.root.base.chunk_count - 1);
    put_away(path);
    assert_broken(1);
    dv_plan_free(plan);
}

/* So does one of other bytes, or of another length, and where there was no plan before. */
TEST(test_wrong_chunk) {
    for (int longer = 0; longer < 2; longer++) {
        dv_plan *plan = write_in_chunks(50);
        char path[128];
        chunk_path(path, &writer.root.items, 1);
        plan_node *chunk = node_at(path);
        char bytes[101] = {0};
        memcpy(bytes, chunk->data, chunk->bytes);
        bytes[50] ^= 1;
        put(path, bytes, chunk->bytes + (size_t)longer);
        start_reader(NULL);
        assert_broken(0);
        stop_reader();
        dv_plan_memory_clear(&heard.memory);
        dv_plan_free(plan);
    }
}

/* A root that does not parse is broken at once, and an empty one, too. */
TEST(test_broken_root) {
    dv_plan *plan = small_plan();
    write_base(plan);
    start_reader(NULL);
    serve_all();
    put(ROOT, "", 0);
    assert_broken(1);
    put(ROOT, "{\"v\":1,}", 8);
    assert_broken(2);
    dv_plan_free(plan);
}

/* A text that its chunks' sums confirm, but that is none, breaks the plan without another look. */
TEST(test_broken_text) {
    dv_plan *plan = write_in_chunks(20);
    writer.root.sum ^= 1;
    put_root();
    start_reader(NULL);
    assert_broken(0);
    dv_plan_free(plan);
}

/* A delta that does not lead from the plan in memory to where it should is forgiven, if the base does. */
TEST(test_memory_gone_wrong) {
    dv_plan *plan = write_in_chunks(50);
    start_reader(NULL);
    serve_all();
    heard.memory.plan->owners[7] = NONE;
    heard.memory.plan->owners[8] = NONE;
    write_next(write_delta, 5);
    size_t base = writer.root.base.chunk_count, delta = writer.root.deltas[0].part.chunk_count;
    assert_int_equal(serve_all(), 1 + delta + 1 + base + delta);
    assert_follows();
    assert_int_equal(heard.changed, 2);
    dv_plan_free(plan);
}

/* A plan of a later release is told, and stays what it is until one of this release takes its place. */
TEST(test_newer) {
    dv_plan *plan = small_plan();
    write_base(plan);
    start_reader(NULL);
    serve_all();
    put(ROOT, "{\"v\":2,\"x\"", 10);
    serve_all();
    assert_int_equal(heard.changed, 2);
    assert_int_equal(heard.memory.standing, DV_PLAN_NEWER);
    assert_int_equal(heard.memory.mzxid, node_at(ROOT)->stat.mzxid);
    assert_string_equal(heard.memory.plan->header.guid, writer.plan->header.guid);
    write_base(plan);
    serve_all();
    assert_follows();
    dv_plan_free(plan);
}

/* When the root goes, the plan in memory stays; and the one that comes then is followed. */
TEST(test_root_goes) {
    dv_plan *plan = small_plan();
    write_base(plan);
    start_reader(NULL);
    serve_all();
    put_away(ROOT);
    assert_int_equal(serve_all(), 2);
    assert_int_equal(heard.memory.standing, DV_PLAN_MISSING);
    assert_int_equal(heard.memory.mzxid, 0);
    assert_string_equal(heard.memory.plan->header.guid, writer.plan->header.guid);
    assert_int_equal(heard.changed, 2);
    write_base(plan);
    serve_all();
    assert_follows();
    assert_int_equal(heard.changed, 3);
    dv_plan_free(plan);
}

/* The root as it was: by a server that lags, with its own mzxid and version. */
static void put_back(const plan_node *old) {
    plan_node *root = node_at(ROOT);
    if (!root) {
        put_silently(ROOT, "", 0);
        root = node_at(ROOT);
    }
    free(root->data);
    root->data = malloc(old->bytes + 1);
    memcpy(root->data, old->data, old->bytes);
    root->bytes = old->bytes;
    root->stat = old->stat;
}

static plan_node keep_root(void) {
    plan_node old = *node_at(ROOT);
    old.data = malloc(old.bytes + 1);
    memcpy(old.data, node_at(ROOT)->data, old.bytes);
    return old;
}

/* On a server that lags an older root is seen after a newer one: it is passed over, good or broken, until the server
 * has caught up. */
TEST(test_older_root) {
    dv_plan *plan = small_plan();
    write_base(plan);
    plan_node old = keep_root();
    plan->owners[0] = 2;
    write_base(plan);
    plan_node good = keep_root();
    start_reader(NULL);
    serve_all();
    stop_reader();
    put_back(&old);
    start_reader(NULL);
    assert_int_equal(serve_all(), 1);
    assert_int_equal(heard.changed, 0);
    assert_string_equal(heard.memory.plan->header.guid, writer.plan->header.guid);
    put_back(&good);
    dv_fake_fire(nodes.fake, ROOT, DV_WATCH_CHANGED, true);
    serve_all();
    assert_int_equal(heard.changed, 0);
    assert_follows();

    put(ROOT, "?", 1);
    serve_all();
    assert_int_equal(heard.memory.standing, DV_PLAN_BROKEN);
    stop_reader();
    put_back(&good);
    start_reader(NULL); /* The root of before does not cure a broken plan. */
    serve_all();
    assert_int_equal(heard.memory.standing, DV_PLAN_BROKEN);
    assert_int_equal(heard.changed, 0);
    write_base(plan);
    serve_all();
    assert_follows();
    free(old.data);
    free(good.data);
    dv_plan_free(plan);
}

/* A server that lags may not have the root yet: the plan in memory stays, and is confirmed when the root shows. */
TEST(test_root_not_there_yet) {
    dv_plan *plan = write_in_chunks(50);
    start_reader(NULL);
    serve_all();
    stop_reader();
    plan_node root = keep_root();
    put_away(ROOT);
    start_reader(NULL);
    serve_all();
    assert_int_equal(heard.memory.standing, DV_PLAN_MISSING);
    put_back(&root);
    dv_fake_fire(nodes.fake, ROOT, DV_WATCH_CREATED, true);
    assert_int_equal(serve_all(), 1);
    assert_follows();
    free(root.data);
    dv_plan_free(plan);
}

/* Writes a plan of 50 items with loads and wishes, all in chunks. */
static dv_plan *write_with_parts(void) {
    dv_plan *plan = write_in_chunks(50), *known = writer.plan;
    const dv_wish_event pin = {.wish = {DV_WISH_PIN, "item-000007", "w", "anna", "", 7}};
    dv_plan_text loads, wishes;
    uint32_t number = 1000;
    known->loads = dv_loads_make("jobs", 50);
    assert_int_equal(dv_wishes_change(&known->wishes, NULL, &pin), 0);
    assert_int_equal(dv_loads_print(&loads, known->loads), 0);
    assert_int_equal(dv_wishes_print(&wishes, known->wishes), 0);
    place(&writer.root.loads, &loads, known, &number);
    place(&writer.root.wishes, &wishes, known, &number);
    writer.root.header.is_balanced = known->header.is_balanced = true;
    put_root();
    return plan;
}

/* D22: loads and wishes that the root names as before are not read again, and one who reads a plan in vain keeps none
 * of them. */
TEST(test_parts) {
    dv_plan *plan = write_with_parts();
    start_reader(plan->set);
    assert_int_equal(serve_all(),
                     1 + writer.root.base.chunk_count + writer.root.loads.chunk_count + writer.root.wishes.chunk_count);
    assert_follows();
    put_root();
    assert_int_equal(serve_all(), 1);
    assert_follows();
    dv_loads *loads = dv_loads_ref(heard.memory.plan->loads);
    dv_wishes *wishes = dv_wishes_ref(heard.memory.plan->wishes);
    char path[128];
    write_next(write_base, 2);
    chunk_path(path, &writer.root.base, 0);
    put_away(path);
    serve_all();
    assert_int_equal(heard.memory.standing, DV_PLAN_BROKEN);
    dv_plan_memory_clear(&heard.memory);
    assert_int_equal(loads->references, 1);
    assert_int_equal(wishes->references, 1);
    dv_loads_unref(loads);
    dv_wishes_unref(wishes);
    dv_plan_free(plan);
}

TEST_EACH(set_up_nodes, tear_down_nodes);
