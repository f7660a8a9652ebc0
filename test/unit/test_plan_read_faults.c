/* Tests of the reader of plans: connections, sessions, audits, and hostile claims. SPDX-License-Identifier:
 * Apache-2.0 */
#include "plan_read_fixture.h"

/* After a reconnect the root is read again, since an event may have been missed; if nothing is new, nothing is told. */
TEST(test_reconnect) {
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

/* D23: somebody has deleted a chunk of the plan that is followed. The number of children tells, once. */
TEST(test_chunk_deleted) {
    dv_plan *plan = write_in_chunks(50);
    start_reader(NULL);
    serve_all();
    assert_true(dv_plan_memory_is_whole(&heard.memory));
    char path[128];
    snprintf(path, sizeof path, ROOT "/%s", writer.root.base.chunks[0].name);
    put_away(path);
    for (int audits = 0; audits < 2; audits++) {
        dv_fake_session(nodes.fake, DIVVY_SUSPENDED);
        dv_fake_session(nodes.fake, DIVVY_CONNECTED);
        assert_int_equal(serve_all(), 1);
        assert_int_equal(heard.changed, 2);
        assert_false(dv_plan_memory_is_whole(&heard.memory));
        assert_int_equal(heard.memory.standing, DV_PLAN_GOOD);
    }
    writer.chunk_bytes = 0;
    write_base(plan); /* Somebody has written it again. */
    serve_all();
    assert_true(dv_plan_memory_is_whole(&heard.memory));
    assert_follows();
    dv_plan_free(plan);
}

/* Wherever the connection breaks, the plan is read in the end. */
TEST(test_disconnect_anywhere) {
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
TEST(test_loss_anywhere) {
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
TEST(test_stop_anywhere) {
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
TEST(test_stop_without_connection) {
    dv_fake_session(nodes.fake, DIVVY_SUSPENDED);
    start_reader(NULL);
    assert_int_equal(under_way(), 0);
    stop_reader();
    assert_int_equal(heard.gone, 1);
    dv_fake_session(nodes.fake, DIVVY_CONNECTED);
}

/* A call that asks for a look is answered, though nothing is new; during a read, after the next one. */
TEST(test_look) {
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

/* A plan of our own, taken into memory, is not read again; nor does an older read overtake it. */
TEST(test_own_write) {
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
TEST(test_audit) {
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
TEST(test_no_access) {
    start_reader(NULL);
    dv_fake_answer(nodes.fake, &(dv_reply){.error = DIVVY_EACCES});
    assert_int_equal(heard.failed, 1);
    assert_int_equal(heard.error, DIVVY_EACCES);
    assert_int_equal(heard.gone, 1);
    assert_int_equal(heard.changed, 0);
}

/* A root that claims chunks without end, which nobody wrote, costs one round of reads and another look. */
TEST(test_hostile_claims) {
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
TEST(test_large) {
    writer.chunk_bytes = DV_PLAN_CHUNK_BYTES;
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

TEST_EACH(set_up_nodes, tear_down_nodes);
