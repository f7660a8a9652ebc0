/* Tests of what members report of their loads: docs/protocol.md, D46. SPDX-License-Identifier: Apache-2.0 */
#include "loads_fixture.h"

/* An item is listed two minutes after the first load of it, by its mean; and as long again after another gain. */
TEST(test_settles) {
    pool l;
    open_members(&l, NULL, 1);
    run_telling(&l, 115000);
    assert_non_null(strstr(asked[0].report, "\"total\":121,")); /* 40 */
    assert_non_null(strstr(asked[0].report, "\"classes\":[]"));
    run_telling(&l, 15000);
    assert_non_null(strstr(asked[0].report, "\"classes\":[[100,[0,1,1,"));
    for (size_t i = 0; i < ITEMS; i++) truth[i] = 4;
    run_telling(&l, MINUTE_MS + INTERVAL_MS); /* half of the way to 4, and a little: 2.4 to 2.7 */
    unsigned class = 0;
    assert_int_equal(sscanf(strstr(asked[0].report, "\"classes\":"), "\"classes\":[[%u", &class), 1);
    assert_in_range(class, 105, 106);
    add(&l, 1, NULL);
    settle(&l);
    finish(&l, 1);
    settle(&l);
    run_telling(&l, MINUTE_MS);
    size_t listed = 0;
    for (const char *c = strstr(asked[0].report, "\"classes\":"); *c; c++) listed += *c == ',';
    assert_in_range(listed, ITEMS / 2, ITEMS / 2 + 4); /* those that it has kept */
    run_telling(&l, 2 * MINUTE_MS);
    listed = 0;
    for (const char *c = strstr(asked[0].report, "\"classes\":"); *c; c++) listed += *c == ',';
    assert_in_range(listed, ITEMS, ITEMS + 4);
    pool_close(&l);
}

/* Where nobody tells a load nothing is asked of P/loads, and a quiet pool stays quiet. */
TEST(test_nobody_reports) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    divvy_testing_run(l.ensemble, 10 * MINUTE_MS);
    assert_int_equal(reads_of(0, MEMBERS) + writes_of(0, MEMBERS), 0);
    assert_false(divvy_testing_exists(l.ensemble, "/pool/loads"));
    assert_at_rest(&l);
    /* One member that begins is heard by the first, though that one has nothing to tell. */
    truth[0] = 1;
    divvy_partition *share = divvy_partitioner_partition(l.members[3].partitioner);
    assert_int_equal(divvy_partitioner_set_load(l.members[3].partitioner, divvy_partition_item(share, 0), 3), 0);
    divvy_partition_unref(share);
    divvy_testing_run(l.ensemble, MINUTE_MS);
    assert_true(divvy_testing_exists(l.ensemble, "/pool/loads"));
    assert_true(asked[0].reads > 0);
    assert_int_equal(reads_of(1, MEMBERS), 0);
    assert_int_equal(writes_of(0, MEMBERS - 1), 0);
    pool_close(&l);
}

/* Where loads stand still nothing is sent but the reads of the first: a list, and a get for each member. */
TEST(test_idle_cost) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    run_telling(&l, 8 * MINUTE_MS);
    unsigned writes = l.writes, reads = asked[0].reads, others = reads_of(1, MEMBERS);
    unsigned told = writes_of(0, MEMBERS);
    run_telling(&l, 10 * MINUTE_MS);
    assert_int_equal(l.writes, writes);
    assert_int_equal(writes_of(0, MEMBERS), told);
    assert_int_equal(reads_of(1, MEMBERS), others);
    assert_in_range(asked[0].reads - reads, 59 * (1 + MEMBERS), 61 * (1 + MEMBERS));
    pool_close(&l);
}

/* A member that leaves takes its report with it; a lost session ends the old one, and the next node has another. */
TEST(test_reports_end) {
    pool l;
    pool_open(&l, ITEMS);
    divvy_partitioner_config config = base_config(&l);
    config.on_session_loss = DIVVY_REJOIN;
    be_even();
    for (size_t n = 0; n < 2; n++) add(&l, n, &config);
    settle(&l);
    run_telling(&l, MINUTE_MS);
    divvy_strings *reports = divvy_testing_children(l.ensemble, "/pool/loads");
    divvy_strings *party = divvy_testing_children(l.ensemble, "/pool/party");
    assert_int_equal(divvy_strings_count(reports), 2);
    for (size_t n = 0; n < 2; n++) assert_string_equal(divvy_strings_get(reports, n), divvy_strings_get(party, n));
    divvy_strings_free(reports);
    divvy_strings_free(party);
    divvy_testing_expire(l.ensemble, l.members[1].client);
    divvy_testing_run(l.ensemble, 5000);
    settle(&l);
    run_telling(&l, MINUTE_MS);
    reports = divvy_testing_children(l.ensemble, "/pool/loads");
    party = divvy_testing_children(l.ensemble, "/pool/party");
    assert_int_equal(divvy_strings_count(reports), 2);
    for (size_t n = 0; n < 2; n++) assert_string_equal(divvy_strings_get(reports, n), divvy_strings_get(party, n));
    divvy_strings_free(reports);
    divvy_strings_free(party);
    finish(&l, 1);
    reports = divvy_testing_children(l.ensemble, "/pool/loads");
    assert_int_equal(divvy_strings_count(reports), 1);
    divvy_strings_free(reports);
    finish(&l, 0);
    reports = divvy_testing_children(l.ensemble, "/pool/loads");
    assert_int_equal(divvy_strings_count(reports), 0);
    divvy_strings_free(reports);
    pool_close(&l);
}

/* A report that somebody deletes is made again. */
TEST(test_report_deleted) {
    pool l;
    open_members(&l, NULL, 1);
    run_telling(&l, MINUTE_MS);
    divvy_strings *reports = divvy_testing_children(l.ensemble, "/pool/loads");
    char path[256];
    snprintf(path, sizeof path, "/pool/loads/%s", divvy_strings_get(reports, 0));
    divvy_strings_free(reports);
    assert_int_equal(divvy_testing_remove(l.ensemble, path), 0);
    for (size_t i = 0; i < ITEMS; i++) truth[i] = 2; /* something to write, so that it is missed */
    run_telling(&l, MINUTE_MS);
    assert_true(divvy_testing_exists(l.ensemble, path));
    pool_close(&l);
}

/* What somebody writes over a report is passed over with a warning, and its member makes the report again. */
TEST(test_report_spoilt) {
    pool l;
    open_members(&l, NULL, 2);
    run_telling(&l, 3 * MINUTE_MS);
    divvy_strings *reports = divvy_testing_children(l.ensemble, "/pool/loads");
    for (size_t n = 0; n < 2; n++) {
        char path[256];
        snprintf(path, sizeof path, "/pool/loads/%s", divvy_strings_get(reports, n));
        assert_int_equal(divvy_testing_put(l.ensemble, path, "[{", 2, DIVVY_TESTING_PERSISTENT), 0);
    }
    divvy_strings_free(reports);
    divvy_testing_run(l.ensemble, MINUTE_MS);
    assert_int_equal(l.members[0].warnings[DIVVY_WARN_LOAD_UNIT], 1);
    assert_non_null(strstr(l.members[0].warned, "broken"));
    for (size_t i = 0; i < ITEMS; i++) truth[i] = 2; /* something to write */
    unsigned writes = writes_of(0, 2);
    run_telling(&l, 3 * MINUTE_MS);
    assert_true(writes_of(0, 2) > writes);
    reports = divvy_testing_children(l.ensemble, "/pool/loads");
    assert_int_equal(divvy_strings_count(reports), 2);
    for (size_t n = 0; n < 2; n++) {
        char path[256];
        snprintf(path, sizeof path, "/pool/loads/%s", divvy_strings_get(reports, n));
        assert_true(divvy_testing_owner(l.ensemble, path) != 0);
    }
    divvy_strings_free(reports);
    assert_int_equal(l.members[0].warnings[DIVVY_WARN_LOAD_UNIT], 1);
    pool_close(&l);
}
