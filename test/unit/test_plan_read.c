/* Tests of partitioner/plan_read.h on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include "plan_nodes.h"

/* A plan of some items in chunks of 100 bytes, and one member. */
static dv_plan *write_in_chunks(size_t items) {
    writer.chunks = true;
    dv_plan_chunk_bytes = 100;
    dv_plan *empty = plan_of(items), *plan = next_plan(empty, 1);
    dv_plan_free(empty);
    write_base(plan);
    return plan;
}

static void write_next(void (*write)(dv_plan *), uint32_t n) {
    dv_plan *plan = next_plan(writer.plan, n);
    write(plan);
    dv_plan_free(plan);
}

static void chunk_path(char path[128], const dv_plan_part *part, size_t n) {
    snprintf(path, 128, ROOT "/%s", part->chunks[n].name);
}

/* Where there is no plan yet an exists leaves the watch, by which the first one is found. */
static void test_no_plan_then_one(void **state) {
    (void)state;
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
static void test_created_between(void **state) {
    (void)state;
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
static void test_generation_0(void **state) {
    (void)state;
    dv_plan *plan = plan_of(0);
    write_base(plan);
    start_reader(NULL);
    assert_int_equal(serve_all(), 1);
    assert_follows();
    dv_plan_free(plan);
}

/* Items are read only by who has not got that set; of a change only what changed is read. */
static void test_what_is_read(void **state) {
    (void)state;
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
static void test_other_items(void **state) {
    (void)state;
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
static void test_same_plan_again(void **state) {
    (void)state;
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
static void test_bound(void **state) {
    (void)state;
    dv_plan *plan = write_in_chunks(2000);
    start_reader(NULL);
    assert_true(serve_all() > 200);
    assert_int_equal(nodes.most_under_way, 8);
    assert_follows();
    dv_plan_free(plan);
}

/* However often the root changes during a read, one more read follows, and the plan under way is taken first. */
static void test_changes_during_a_read(void **state) {
    (void)state;
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
static void test_torn(void **state) {
    (void)state;
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
    assert_int_equal(heard.memory.found_version, node_at(ROOT)->stat.version);
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
static void test_missing_chunk(void **state) {
    (void)state;
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
static void test_wrong_chunk(void **state) {
    (void)state;
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
static void test_broken_root(void **state) {
    (void)state;
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
static void test_broken_text(void **state) {
    (void)state;
    dv_plan *plan = write_in_chunks(20);
    writer.root.sum ^= 1;
    put_root();
    start_reader(NULL);
    assert_broken(0);
    dv_plan_free(plan);
}

/* A delta that does not lead from the plan in memory to where it should is forgiven, if the base does. */
static void test_memory_gone_wrong(void **state) {
    (void)state;
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
static void test_newer(void **state) {
    (void)state;
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
static void test_root_goes(void **state) {
    (void)state;
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
static void test_older_root(void **state) {
    (void)state;
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
    start_reader(NULL); /* What was found broken is not cured by what stood there before. */
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
static void test_root_not_there_yet(void **state) {
    (void)state;
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

/* After a reconnect the root is read again, since an event may have been missed; if nothing is new, nothing is told. */
static void test_reconnect(void **state) {
    (void)state;
    dv_plan *plan = small_plan();
    write_base(plan);
    start_reader(NULL);
    serve_all();
    dv_fake_session(nodes.fake, DIVVY_SUSPENDED);
    assert_int_equal(under_way(), 0);
    dv_fake_session(nodes.fake, DIVVY_CONNECTED);
    assert_int_equal(serve_all(), 1);
    assert_int_equal(heard.changed, 1);
    dv_fake_session(nodes.fake, DIVVY_SUSPENDED);
    writer.written += 5;
    dv_plan *other = small_plan();
    dv_plan_text text;
    sign(other);
    print_whole(&text, other);
    put_silently(ROOT, text.bytes, text.count);
    dv_fake_session(nodes.fake, DIVVY_CONNECTED);
    serve_all();
    assert_string_equal(heard.memory.plan->header.guid, other->header.guid);
    free(text.bytes);
    dv_plan_free(other);
    dv_plan_free(plan);
}

/* Wherever the connection breaks, the plan is read in the end. */
static void test_disconnect_anywhere(void **state) {
    (void)state;
    dv_plan *plan = write_in_chunks(50);
    for (size_t at = 0;; at++) {
        dv_plan_memory_clear(&heard.memory);
        start_reader(NULL);
        size_t served = 0;
        while (served < at && serve()) served++;
        if (served < at) break;
        dv_fake_session(nodes.fake, DIVVY_SUSPENDED);
        dv_fake_session(nodes.fake, DIVVY_CONNECTED);
        serve_all();
        assert_follows();
        assert_int_equal(heard.changed, 1);
        stop_reader();
    }
    stop_reader();
    dv_plan_free(plan);
}

/* Wherever the session is lost, the reader goes, with what was read before in memory. */
static void test_loss_anywhere(void **state) {
    for (size_t at = 0;; at++) {
        dv_plan *plan = write_in_chunks(50);
        start_reader(NULL);
        for (size_t served = 0; served < at; served++) serve();
        bool read = under_way() == 0;
        dv_fake_session(nodes.fake, DIVVY_LOST);
        assert_int_equal(heard.gone, 1);
        assert_int_equal(heard.failed, 0);
        if (read) assert_follows();
        else assert_null(heard.memory.plan);
        dv_plan_free(plan);
        if (read) break;
        assert_int_equal(tear_down_nodes(state), 0);
        set_up_nodes(state);
    }
}

/* It can be stopped at any moment, inside its own call too; then all is answered and it goes, once, and silently. */
static void test_stop_anywhere(void **state) {
    (void)state;
    dv_plan *plan = write_in_chunks(50);
    size_t all = 1 + writer.root.items.chunk_count + writer.root.base.chunk_count;
    for (size_t at = 0; at <= all; at++) {
        dv_plan_memory_clear(&heard.memory);
        start_reader(NULL);
        for (size_t served = 0; served < at; served++) assert_true(serve());
        stop_reader();
        if (under_way() > 0) assert_int_equal(heard.gone, 0);
        serve_all();
        assert_int_equal(heard.gone, 1);
        assert_int_equal(heard.changed, at == all);
    }
    start_reader(NULL);
    heard.stop_at = 1;
    look();
    serve_all();
    assert_int_equal(heard.gone, 1);
    put_away(ROOT);
    start_reader(NULL);
    serve();
    stop_reader();
    serve_all();
    assert_int_equal(heard.gone, 1);
    dv_plan_free(plan);
}

/* Stopped before there was ever a connection, it goes all the same. */
static void test_stop_without_connection(void **state) {
    (void)state;
    dv_fake_session(nodes.fake, DIVVY_SUSPENDED);
    start_reader(NULL);
    assert_int_equal(under_way(), 0);
    stop_reader();
    assert_int_equal(heard.gone, 1);
    dv_fake_session(nodes.fake, DIVVY_CONNECTED);
}

/* A call that asks for a look is answered, though nothing is new; during a read, after the next one. */
static void test_look(void **state) {
    (void)state;
    dv_plan *plan = write_in_chunks(20);
    start_reader(NULL);
    serve();
    size_t chunks = writer.root.items.chunk_count + writer.root.base.chunk_count;
    look();
    assert_int_equal(under_way(), chunks);
    assert_int_equal(serve_all(), chunks + 1);
    assert_int_equal(heard.changed, 2);
    look();
    assert_string_equal(dv_fake_pending(nodes.fake), "get! /p/plan");
    serve();
    assert_int_equal(heard.changed, 3);
    dv_plan_free(plan);
}

/* What we wrote ourselves, and took into memory, is not read again; nor does an older read overtake it. */
static void test_own_write(void **state) {
    (void)state;
    dv_plan *plan = write_in_chunks(50);
    start_reader(NULL);
    serve();
    write_next(write_base, 2); /* By us, while we read the one before. */
    dv_plan_root root;
    dv_plan_text text;
    assert_int_equal(dv_plan_print_root(&text, &writer.root), 0);
    assert_int_equal(dv_plan_root_parse(&root, text.bytes, text.count, NULL), 0);
    dv_plan *mine = dv_plan_copy(writer.plan);
    mine->mzxid = node_at(ROOT)->stat.mzxid;
    dv_plan_memory_take(&heard.memory, mine, &root, node_at(ROOT)->stat.version);
    serve_all();
    assert_follows();
    assert_ptr_equal(heard.memory.plan, mine);
    free(text.bytes);
    dv_plan_free(plan);
}

/* Once a minute the root is read, lest a watch was lost. */
static void test_audit(void **state) {
    (void)state;
    dv_plan *plan = small_plan();
    write_base(plan);
    start_reader(NULL);
    serve_all();
    dv_plan_text text;
    plan->owners[0] = 2;
    sign(plan);
    print_whole(&text, plan);
    put_silently(ROOT, text.bytes, text.count);
    dv_fake_advance(nodes.fake, 59999);
    assert_int_equal(under_way(), 0);
    dv_fake_advance(nodes.fake, 1);
    assert_int_equal(serve_all(), 1);
    assert_string_equal(heard.memory.plan->header.guid, plan->header.guid);
    free(text.bytes);
    dv_plan_free(plan);
}

/* A root that may not be read ends the reader with that error. */
static void test_no_access(void **state) {
    (void)state;
    start_reader(NULL);
    dv_fake_answer(nodes.fake, &(dv_reply){.error = DIVVY_EACCES});
    assert_int_equal(heard.failed, 1);
    assert_int_equal(heard.error, DIVVY_EACCES);
    assert_int_equal(heard.gone, 1);
    assert_int_equal(heard.changed, 0);
}

/* A root that claims chunks without end, which nobody wrote, costs one round of reads and another look. */
static void test_hostile_claims(void **state) {
    (void)state;
    dv_plan *plan = write_in_chunks(50);
    dv_plan_part *base = &writer.root.base;
    base->chunks = realloc(base->chunks, 320 * sizeof *base->chunks);
    for (size_t c = 0; c < 320; c++) {
        base->chunks[c] = (dv_plan_chunk){.bytes = DV_PLAN_CHUNK_BYTES};
        snprintf(base->chunks[c].name, sizeof base->chunks[c].name, "7-00000000001aaaaaaaaaaa7-%zu", c);
    }
    base->chunk_count = 320;
    put_root();
    start_reader(plan->set);
    assert_true(serve_all() <= 1 + 8 + 1);
    assert_int_equal(heard.memory.standing, DV_PLAN_BROKEN);
    dv_plan_free(plan);
}

/* 100,000 items in chunks of the usual size. */
static void test_large(void **state) {
    (void)state;
    writer.chunks = true;
    dv_plan *empty = plan_of(100000), *plan = next_plan(empty, 1);
    write_base(plan);
    start_reader(NULL);
    assert_int_equal(serve_all(), 1 + writer.root.items.chunk_count + 1);
    assert_in_range(writer.root.items.chunk_count, 5, 10);
    assert_follows();
    write_next(write_delta, 1000);
    assert_int_equal(serve_all(), 2);
    assert_follows();
    dv_plan_free(empty);
    dv_plan_free(plan);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_nodes, tear_down_nodes)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_no_plan_then_one),
        TEST(test_created_between),
        TEST(test_generation_0),
        TEST(test_what_is_read),
        TEST(test_other_items),
        TEST(test_same_plan_again),
        TEST(test_bound),
        TEST(test_changes_during_a_read),
        TEST(test_torn),
        TEST(test_missing_chunk),
        TEST(test_wrong_chunk),
        TEST(test_broken_root),
        TEST(test_broken_text),
        TEST(test_memory_gone_wrong),
        TEST(test_newer),
        TEST(test_root_goes),
        TEST(test_older_root),
        TEST(test_root_not_there_yet),
        TEST(test_reconnect),
        TEST(test_disconnect_anywhere),
        TEST(test_loss_anywhere),
        TEST(test_stop_anywhere),
        TEST(test_stop_without_connection),
        TEST(test_look),
        TEST(test_own_write),
        TEST(test_audit),
        TEST(test_no_access),
        TEST(test_hostile_claims),
        TEST(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
