/* Tests of plan/writer.h on the in-memory ensemble: what an attempt comes to. SPDX-License-Identifier:
 * Apache-2.0 */
#include "plan_writers.h"

/* ---- first plans ---- */

/* The first plan of a small pool is one multi: root, epoch and data come into being together. */
TEST(test_first_plan) {
    open_pool(10, 3);
    divvy_stats before, after;
    assert_int_equal(divvy_client_stats(users[0].client, &before, sizeof before), 0);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    assert_int_equal(divvy_client_stats(users[0].client, &after, sizeof after), 0);
    assert_int_equal(after.multis - before.multis, 2);   /* the barrier is the other one */
    assert_int_equal(after.creates - before.creates, 2); /* both in that multi */
    assert_int_equal(after.gets - before.gets, 1 + 3);   /* the root, and who the members are */
    const dv_plan *plan = users[0].memory.plan;
    assert_int_equal(plan->header.generation, 1);
    assert_int_equal(plan->header.reason, DV_PLAN_CREATE);
    assert_int_equal(plan->header.pzxid, stat_of(PARTY).pzxid);
    assert_int_equal(plan->member_count, 3);
    assert_string_equal(plan->header.after, "");
    assert_int_equal(stat_of(ROOT).version, 1);
    assert_int_equal(child_count(), 1);
    assert_reads_as(&users[0].memory);
    close_pool();
}

/* A first plan with chunks finds a root to make them under: one of generation 0, which nobody has to be in. */
TEST(test_first_plan_with_chunks) {
    use_chunks(100);
    open_pool(50, 3);
    begin_attempt(&users[0]);
    STEP_UNTIL(is_there(ROOT));
    user fresh;
    read_anew(&fresh);
    assert_int_equal(fresh.memory.standing, DV_PLAN_GOOD);
    if (fresh.memory.plan->header.generation == 0) {
        assert_int_equal(fresh.memory.plan->set->count, 0);
        assert_int_equal(fresh.memory.plan->member_count, 0);
    }
    dv_plan_memory_clear(&fresh.memory);
    STEP_UNTIL(users[0].gone);
    assert_int_equal(users[0].outcome, DV_PLAN_WRITTEN);
    assert_int_equal(users[0].memory.plan->header.generation, 1);
    assert_int_equal(users[0].memory.version, 2);
    assert_true(dv_plan_root_chunk_count(&users[0].memory.root) > 5);
    assert_reads_as(&users[0].memory);
    assert_int_equal(garbage_count(&users[0].memory), 0);
    close_pool();
}

/* B8: a chunk that the servers refuse, as they lack create2, is made otherwise, though it was a client's first node. */
TEST(test_chunks_on_old_servers) {
    use_chunks(100);
    open_pool(50, 3);
    ensemble->config.release = DIVVY_TESTING_3_4;
    assert_true(write_all(&users[0]) > 0);
    assert_true(dv_plan_root_chunk_count(&users[0].memory.root) > 5);
    assert_reads_as(&users[0].memory);
    close_pool();
}

/* A member that finds a root of generation 0 begins the plan in its place, under its epoch. */
TEST(test_place_left_alone) {
    use_chunks(100);
    open_pool(50, 3);
    begin_attempt(&users[0]);
    STEP_UNTIL(is_there(ROOT));
    crash(&users[0]);
    refresh(&users[1]);
    if (users[1].memory.plan->header.generation > 0) fail_msg("the first writer was too fast for this test");
    char epoch[DV_GUID_BYTES];
    strcpy(epoch, users[1].memory.plan->header.epoch);
    assert_int_equal(attempt(&users[1]), DV_PLAN_WRITTEN);
    assert_int_equal(users[1].memory.plan->header.generation, 1);
    assert_int_equal(users[1].memory.plan->member_count, 3);
    assert_string_equal(users[1].memory.plan->header.epoch, epoch);
    assert_reads_as(&users[1].memory);
    assert_int_equal(garbage_count(&users[1].memory), 0);

    close_pool();
}

/* ---- nothing to write ---- */

/* A second attempt writes nothing: it reads the root and the party behind a barrier, and that is all. */
TEST(test_needless) {
    open_pool(10, 3);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    dv_stat written = stat_of(ROOT);
    divvy_stats before, after;
    assert_int_equal(divvy_client_stats(users[0].client, &before, sizeof before), 0);
    assert_int_equal(attempt(&users[0]), DV_PLAN_NEEDLESS);
    assert_int_equal(divvy_client_stats(users[0].client, &after, sizeof after), 0);
    assert_int_equal(after.requests - before.requests, 3);
    assert_int_equal(stat_of(ROOT).mzxid, written.mzxid);
    refresh(&users[1]);
    assert_int_equal(attempt(&users[1]), DV_PLAN_NEEDLESS);
    assert_int_equal(stat_of(ROOT).mzxid, written.mzxid);
    close_pool();
}

/* A writer that is no member, and has no items, begins no plan. */
TEST(test_administrator_begins_none) {
    open_pool(10, 3);
    dv_roster_party(users[0].roster)->set = NULL;
    assert_int_equal(attempt(&users[0]), DV_PLAN_NEEDLESS);
    assert_false(is_there(ROOT));
    close_pool();
}

/* A plan that was made for a later party is left alone, unless its own mzxid says that it came from elsewhere. */
TEST(test_older_never_replaces_newer) {
    open_pool(10, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    for (int n = 0; n < 5; n++) put_text("/p/other", "x");
    for (int elsewhere = 0; elsewhere <= 1; elsewhere++) {
        dv_plan *plan = dv_plan_copy(users[0].memory.plan);
        plan->header.pzxid = stat_of(PARTY).pzxid + (elsewhere ? 1000000 : 1);
        dv_plan_text text;
        print_whole(&text, plan);
        put_data(ROOT, text.bytes, text.count);
        free(text.bytes);
        dv_plan_free(plan);
        refresh(&users[0]);
        int64_t mzxid = stat_of(ROOT).mzxid;
        assert_true(elsewhere || users[0].memory.plan->header.pzxid < mzxid);
        assert_int_equal(write_weight(&users[0], 700), elsewhere ? DV_PLAN_WRITTEN : DV_PLAN_NEEDLESS);
        assert_int_equal(stat_of(ROOT).mzxid == mzxid, !elsewhere);
    }
    assert_reads_as(&users[0].memory);
    close_pool();
}

/* ---- what has to be known first ---- */

/* A party other than the one that settled, and one that is not there at all, end the attempt before it has written. */
TEST(test_unsettled) {
    open_pool(10, 2);
    join(member(7), "{}");
    assert_int_equal(attempt(&users[0]), DV_PLAN_UNSETTLED);
    assert_false(is_there(ROOT));
    settle(&users[0]);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    assert_int_equal(users[0].memory.plan->member_count, 3);
    part(member(7)), part(member(1)), part(member(0));
    put_away(PARTY);
    assert_int_equal(attempt(&users[0]), DV_PLAN_UNSETTLED);
    close_pool();
}

/* A root that is not the memory's is to be read first: one that came, one that is another, one that has gone, one never
 * read. */
TEST(test_behind) {
    open_pool(10, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    assert_int_equal(attempt(&users[1]), DV_PLAN_BEHIND);
    refresh(&users[1]);
    assert_int_equal(write_weight(&users[1], 500), DV_PLAN_WRITTEN);
    assert_int_equal(write_weight(&users[0], 600), DV_PLAN_BEHIND);
    dv_plan_memory_clear(&users[2].memory);
    assert_int_equal(attempt(&users[2]), DV_PLAN_BEHIND);
    remove_plan();
    assert_int_equal(write_weight(&users[1], 700), DV_PLAN_BEHIND);
    assert_false(is_there(ROOT));
    close_pool();
}

/* A party without access to its data, or a root without, is an error that is told. */
TEST(test_next_generation) {
    open_pool(10, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    char guid[DV_GUID_BYTES];
    strcpy(guid, users[0].memory.plan->header.guid);
    join(member(2), "{}");
    settle(&users[0]);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    const dv_plan *plan = users[0].memory.plan;
    assert_int_equal(plan->header.generation, 2);
    assert_int_equal(plan->header.reason, DV_PLAN_JOIN);
    assert_string_equal(plan->header.after, guid);
    assert_string_not_equal(plan->header.guid, guid);
    assert_int_equal(plan->header.pzxid, stat_of(PARTY).pzxid);
    size_t loads[3] = {0};
    for (size_t i = 0; i < 10; i++) loads[plan->owners[i]]++;
    assert_int_equal(loads[2], 3);
    assert_reads_as(&users[0].memory);
    close_pool();
}

/* ---- the root has gone, or cannot be followed ---- */

/* A member that remembers the plan writes it again when the root was deleted: no item has another owner for it. */
static void root_gone(size_t chunk_bytes) {
    if (chunk_bytes > 0) use_chunks(chunk_bytes);
    open_pool(40, 3);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    refresh(&users[1]);
    dv_plan *before = dv_plan_copy(users[0].memory.plan);
    remove_plan();
    refresh(&users[0]);
    assert_int_equal(users[0].memory.standing, DV_PLAN_MISSING);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    const dv_plan *plan = users[0].memory.plan;
    assert_true(states_equal(plan, before));
    assert_int_equal(plan->header.generation, 2);
    assert_string_equal(plan->header.after, before->header.guid);
    assert_string_not_equal(plan->header.epoch, before->header.epoch);
    assert_reads_as(&users[0].memory);
    assert_int_equal(garbage_count(&users[0].memory), 0);
    assert_int_equal(attempt(&users[0]), DV_PLAN_NEEDLESS);
    assert_int_equal(write_all(&users[1]), 0);
    dv_plan_free(before);
    close_pool();
}

TEST(test_root_gone) {
    root_gone(0);
}

TEST(test_root_gone_with_chunks) {
    root_gone(100);
}

/* A place that somebody held for a plan that is remembered is filled from memory, under the epoch that it has. */
TEST(test_place_filled_from_memory) {
    use_chunks(100);
    open_pool(40, 3);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    refresh(&users[1]);
    dv_plan *before = dv_plan_copy(users[0].memory.plan);
    remove_plan();
    refresh(&users[0]);
    begin_attempt(&users[0]);
    STEP_UNTIL(is_there(ROOT));
    crash(&users[0]);
    refresh(&users[1]);
    assert_int_equal(users[1].memory.standing, DV_PLAN_MISSING);
    assert_true(users[1].memory.mzxid > 0);
    assert_true(states_equal(users[1].memory.plan, before));
    assert_int_equal(attempt(&users[1]), DV_PLAN_WRITTEN);
    assert_true(states_equal(users[1].memory.plan, before));
    assert_int_equal(users[1].memory.version, 2);
    assert_reads_as(&users[1].memory);
    assert_int_equal(garbage_count(&users[1].memory), 0);
    dv_plan_free(before);
    close_pool();
}

/* A plan with a missing chunk is replaced from memory, under its epoch, by one of a higher generation. */
TEST(test_broken_by_a_chunk) {
    use_chunks(100);
    open_pool(40, 3);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    refresh(&users[1]);
    for (uint32_t n = 0; n < 5; n++) assert_int_equal(write_weight(&users[0], 500 + n), DV_PLAN_WRITTEN);
    char path[256], epoch[DV_GUID_BYTES];
    const dv_plan_root *root = &users[0].memory.root;
    const dv_plan_part *last = root->delta_count > 0 ? &root->deltas[root->delta_count - 1].part : &root->base;
    snprintf(path, sizeof path, ROOT "/%s", last->chunks[0].name);
    strcpy(epoch, root->header.epoch);
    put_away(path);
    refresh(&users[1]);
    assert_int_equal(users[1].memory.standing, DV_PLAN_BROKEN);
    assert_int_equal(users[1].memory.plan->header.generation, 1);
    assert_int_equal(attempt(&users[1]), DV_PLAN_WRITTEN);
    assert_int_equal(users[1].memory.plan->header.generation, 7);
    assert_string_equal(users[1].memory.plan->header.epoch, epoch);
    assert_reads_as(&users[1].memory);
    assert_int_equal(garbage_count(&users[1].memory), 0);
    close_pool();
}

/* A root that is no plan at all is replaced, under an epoch that is made for it; without a memory the plan starts
 * again. */
static void broken_root(const char *text, bool remembered) {
    open_pool(10, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    dv_plan *before = dv_plan_copy(users[0].memory.plan);
    put_text(ROOT, text);
    user *u = remembered ? &users[0] : &users[1];
    refresh(u);
    assert_int_equal(u->memory.standing, DV_PLAN_BROKEN);
    assert_int_equal(attempt(u), DV_PLAN_WRITTEN);
    if (remembered) assert_true(states_equal(u->memory.plan, before));
    else assert_int_equal(u->memory.plan->header.generation, 1);
    assert_string_not_equal(u->memory.plan->header.epoch, before->header.epoch);
    assert_reads_as(&u->memory);
    assert_int_equal(attempt(u), DV_PLAN_NEEDLESS);
    dv_plan_free(before);
    close_pool();
}

TEST(test_broken_root) {
    broken_root("{\"v\":1}", true);
    broken_root("", true);
    broken_root("nonsense", false);
}

/* A root whose epoch child somebody deleted is written under a new epoch; otherwise nobody could ever write. */
TEST(test_epoch_missing) {
    open_pool(10, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    char path[256];
    snprintf(path, sizeof path, ROOT "/%s", users[0].memory.plan->header.epoch);
    put_away(path);
    assert_int_equal(write_weight(&users[0], 500), DV_PLAN_WRITTEN);
    assert_reads_as(&users[0].memory);
    assert_int_equal(child_count(), 1);
    assert_int_equal(write_weight(&users[0], 600), DV_PLAN_WRITTEN);
    assert_int_equal(child_count(), 1);
    close_pool();
}

/* A plan of a later release is left alone, until its replacement is asked for. */
TEST(test_newer) {
    open_pool(10, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    put_text(ROOT, "{\"v\":2,\"whatever\":[]}");
    refresh(&users[0]);
    assert_int_equal(users[0].memory.standing, DV_PLAN_NEWER);
    assert_int_equal(write_weight(&users[0], 500), DV_PLAN_NEEDLESS);
    users[0].over_newer = true;
    assert_int_equal(write_weight(&users[0], 500), DV_PLAN_WRITTEN);
    assert_reads_as(&users[0].memory);
    close_pool();
}

TEST_EACH(NULL, restore_sizes);
