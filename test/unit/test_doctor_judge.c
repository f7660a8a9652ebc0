/* What `divvy doctor` makes of what it read. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "doctor_fixture.h"

/* ---- servers ---- */

/* A server that closes connections at once is not frozen; one that is read-only is not well. Neither serves. */
TEST(test_closes_and_read_only) {
    scene s;
    set_scene(&s);
    s.servers[0].state = DV_SERVER_CLOSES;
    s.servers[1].srvr = (dv_word_srvr){.told = true, .read_only = true, .mode = "read-only"};
    assert_false(dv_server_serves(&s.servers[0]));
    assert_false(dv_server_serves(&s.servers[1]));
    assert_true(dv_server_serves(&s.servers[2]));
    dv_findings f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_ERROR, "connection", "closes each connection at once"));
    assert_true(says(&f, DV_DOCTOR_ERROR, "connection", "is read-only"));
    assert_false(says(&f, DV_DOCTOR_ERROR, "connection", "has not answered"));
    dv_findings_clear(&f);
}

/* A check that has nothing to look at says nothing, least of all that nothing is wrong. */
TEST(test_nothing_to_look_at) {
    scene s;
    set_scene(&s);
    for (size_t i = 0; i < 3; i++) s.servers[i].conf = (dv_word_conf){.tick_ms = 0};
    s.doctor.looked = false;
    s.doctor.look_error = DIVVY_ETIMEDOUT;
    dv_findings f = judge_servers(&s);
    assert_false(says(&f, DV_DOCTOR_OK, "timeouts", ""));
    assert_false(says(&f, DV_DOCTOR_OK, "latency", ""));
    dv_findings_clear(&f);
}

/* Nothing is wrong with servers that are well. */
TEST(test_well) {
    scene s;
    set_scene(&s);
    dv_findings f = judge_servers(&s);
    assert_int_equal(dv_findings_of(&f, DV_DOCTOR_OK), f.count);
    assert_true(says(&f, DV_DOCTOR_OK, "latency", "a read takes 0.3 ms, the longest of 5 took 0.9 ms"));
    dv_findings_clear(&f);
}

/* The loss of a minority is a warning, that of a majority an error; each way to be lost has its words. */
TEST(test_lost_servers) {
    scene s;
    set_scene(&s);
    s.servers[0] = server("a:1", DV_SERVER_SILENT);
    dv_findings f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_WARNING, "connection", "has not answered within 400 ms"));
    dv_findings_clear(&f);
    s.servers[1].srvr = (dv_word_srvr){.not_serving = true};
    s.servers[2] = server("c:1", DV_SERVER_UNRESOLVED);
    f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_ERROR, "connection", "has not answered"));
    assert_true(says(&f, DV_DOCTOR_ERROR, "connection", "sees no majority"));
    assert_true(says(&f, DV_DOCTOR_ERROR, "connection", "cannot be resolved"));
    dv_findings_clear(&f);
}

/* A smaller tick than the servers have is an error; a larger one, or none, is told. */
TEST(test_tick) {
    static const struct {
        int64_t told_ms;
        dv_doctor_level level;
        const char *what;
    } rows[] = {{2000, DV_DOCTOR_OK, "tickTime is 2000"},
                {1999, DV_DOCTOR_ERROR, "told a tick of 1999 ms, and the servers have 2000"},
                {2001, DV_DOCTOR_NOTE, "told a tick of 2001 ms"},
                {0, DV_DOCTOR_NOTE, "tickTime is 2000"}};
    scene s;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_scene(&s);
        s.doctor.tick_ms = rows[i].told_ms;
        dv_findings f = judge_servers(&s);
        assert_true(says(&f, rows[i].level, "tick", rows[i].what));
        dv_findings_clear(&f);
    }
    set_scene(&s);
    s.servers[2].conf.tick_ms = 3000;
    dv_findings f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_ERROR, "tick", "its tickTime is 3000 ms, and that of another server 2000 ms"));
    dv_findings_clear(&f);
}

/* A timeout that the servers cut, one that is too short to own anything, and one that is just short. */
TEST(test_timeouts) {
    scene s;
    set_scene(&s);
    s.doctor.session_timeout_ms = 60000;
    s.doctor.granted_ms = 40000;
    dv_findings f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_WARNING, "timeouts", "asks for 60000 ms gets 40000 ms"));
    dv_findings_clear(&f);
    s.doctor.session_timeout_ms = s.doctor.granted_ms = 1000;
    f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_ERROR, "timeouts", "1000 ms is short for a tick of 2000 ms"));
    dv_findings_clear(&f);
    s.doctor.session_timeout_ms = s.doctor.granted_ms = 9999;
    f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_WARNING, "timeouts", "is short"));
    dv_findings_clear(&f);
}

/* The servers' clock is that by which they date our connection. */
TEST(test_clock) {
    scene s;
    set_scene(&s);
    assert_int_equal(dv_doctor_skew_ms(&s.doctor), 0);
    s.connections[0].established_ms = NOW_MS + 10 + 5000;
    assert_int_equal(dv_doctor_skew_ms(&s.doctor), 5000);
    dv_findings f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_WARNING, "clock", "is 5.0 s behind that"));
    dv_findings_clear(&f);
    s.connections[0].established_ms = NOW_MS - 10 - 3000;
    assert_int_equal(dv_doctor_skew_ms(&s.doctor), -3000);
    s.doctor.status.read_at_ms = NOW_MS;
    assert_int_equal(dv_doctor_age_ms(&s.doctor, NOW_MS - 4000), 1000);
    s.doctor.session = 8;
    assert_int_equal(dv_doctor_skew_ms(&s.doctor), 0);
}

/* A follower that has not applied what another had applied before it was asked. */
TEST(test_lag) {
    scene s;
    set_scene(&s);
    s.servers[0].srvr.zxid = 0x100000050;
    s.servers[1].srvr.zxid = 0x100000010;
    s.servers[1].later = (dv_word_srvr){.told = true, .zxid = 0x100000050};
    dv_findings f = judge_servers(&s);
    assert_false(has(&f, "lag"));
    dv_findings_clear(&f);
    s.servers[1].later.zxid = 0x100000020;
    f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_WARNING, "lag", "48 transactions behind"));
    dv_findings_clear(&f);
}

/* A server whose tree was not its leader's gets the others' data. Half of all may be right, and are not emptied. */
TEST(test_tree) {
    scene s;
    set_scene(&s);
    for (size_t i = 0; i < 3; i++) s.servers[i].conf.server_count = 4;
    s.servers[1].mismatches = 155;
    dv_findings f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_ERROR, "tree", "after 155 transactions its tree was not its leader's"));
    assert_non_null(strstr(found(&f, "tree")->todo, "stop it, empty the folders version-2"));
    dv_findings_clear(&f);
    s.servers[2].mismatches = 1;
    f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_ERROR, "tree", "not its leader's; so it is on 2 of 4 servers"));
    assert_null(strstr(found(&f, "tree")->todo, "stop it, empty"));
    assert_non_null(strstr(found(&f, "tree")->todo, "empty those of one wrong server, and wait"));
    dv_findings_clear(&f);
}

/* The data of a server that stands alone, or may do so, are nowhere else: nobody is told to empty them. */
TEST(test_tree_of_one) {
    static const struct {
        dv_word_srvr srvr;
        size_t server_count;
        bool alone;
    } rows[] = {{{.told = true, .mode = "standalone"}, 0, true},
                {{.told = true, .mode = "standalone"}, 5, true},
                {{.told = true, .mode = "leader"}, 1, true},
                {{.told = false}, 0, true},
                {{.told = false}, 5, false},
                {{.told = true, .mode = "follower"}, 0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        set_scene(&s);
        s.servers[1].mismatches = 155;
        s.servers[1].srvr = rows[i].srvr;
        s.servers[1].conf.server_count = rows[i].server_count;
        dv_findings f = judge_servers(&s);
        assert_int_equal(strstr(found(&f, "tree")->todo, "restore a backup") != NULL, rows[i].alone);
        assert_int_equal(strstr(found(&f, "tree")->todo, "empty the folders") == NULL, rows[i].alone);
        dv_findings_clear(&f);
    }
}

/* ---- a pool ---- */

TEST(test_pool_is_well) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    dv_findings f = judge(&p);
    assert_int_equal(dv_findings_of(&f, DV_DOCTOR_OK), f.count);
    clear(&p, &f);
}

/* In a pool in which nobody is, no check says that nothing is wrong with members, items or limits. */
TEST(test_empty_pool) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    dv_plan_memory_clear(&p.plan.memory);
    p.plan.memory = (dv_plan_memory){.standing = DV_PLAN_MISSING};
    p.scene.doctor.status.member_count = 0;
    for (size_t i = 0; i < 2; i++) p.items[i].head = p.items[i].owner = NULL;
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_ERROR, "members", "nobody is in the pool"));
    assert_int_equal(dv_findings_of(&f, DV_DOCTOR_OK), 0);
    dv_findings_clear(&f);
    p.scene.doctor.status.item_count = 0;
    f = judge(&p);
    assert_int_equal(dv_findings_of(&f, DV_DOCTOR_OK), 0);
    clear(&p, &f);
}

/* An owner that was asked is named after a while as a warning; none that waits until the next owner is ready. */
TEST(test_release) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.plan.memory.plan->owners[0] = 1;
    dv_findings f = judge(&p);
    assert_true(
        says(&f, DV_DOCTOR_WARNING, "release", "asked to release 1 item, for 1m00s now, and has not; the first is x"));
    dv_findings_clear(&f);
    p.notes[0] = p.notes[1] = (dv_doctor_note){.there = true, .written_ms = NOW_MS - 3 * SECOND_MS};
    f = judge(&p);
    assert_false(has(&f, "release"));
    dv_findings_clear(&f);
    p.notes[1].note = (dv_note){.ready = p.ready, .ready_count = 1};
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "release", "for 3s now"));
    clear(&p, &f);
}

/* An item without an owner counts against the member that is to have it, or to the pool's when there is none. */
TEST(test_unowned) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.items[1].head = NULL;
    p.items[1].owner = NULL;
    p.items[1].member = DV_NO_MEMBER;
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "unowned",
                     "is to have 1 item that nobody owns, and has not taken; the first is y"));
    dv_findings_clear(&f);
    p.plan.memory.plan->owners[1] = DV_PLAN_NO_SLOT;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "unowned", "the plan gives 1 item to nobody; the first is y"));
    dv_findings_clear(&f);
    p.items[1].denied = true;
    p.scene.doctor.status.denied_count = 1;
    f = judge(&p);
    assert_false(has(&f, "unowned"));
    assert_true(says(&f, DV_DOCTOR_WARNING, "items", "of 1 item we may not read who owns it"));
    clear(&p, &f);
}

/* A session without a connection is a ghost's where all servers tell theirs, and nobody's where one does not. */
TEST(test_ghost_and_silence) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.scene.connections[1].silent_ms = 4500;
    p.scene.doctor.servers.connections[0].session = 99;
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "ghost", "its session 0x1 has no connection"));
    assert_false(has(&f, "silent"));
    dv_findings_clear(&f);
    p.scene.connections[1].silent_ms = 4501;
    p.scene.doctor.servers.all_clients = false;
    p.scene.doctor.servers.ensemble_count = 5;
    p.scene.doctor.servers.listing_count = 3;
    f = judge(&p);
    dv_doctor_judge_servers(&p.scene.doctor, &f);
    assert_true(says(&f, DV_DOCTOR_NOTE, "connection", "has 5 servers, and we have seen the clients of 3"));
    p.scene.servers[2].conf.has_two_ports = true;
    dv_doctor_judge_servers(&p.scene.doctor, &f);
    assert_true(says(&f, DV_DOCTOR_NOTE, "connection", "list those of our kind only"));
    assert_false(has(&f, "ghost"));
    assert_true(says(&f, DV_DOCTOR_WARNING, "silent", "nothing for at least 4.5 s; its session ends after 9.0 s"));
    clear(&p, &f);
}

/* Namesakes are a mistake, but for static ones, which restart so. Other items and settings are told. */
TEST(test_namesakes_and_settings) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.members[1].identifier = "a";
    p.settings[0] = (dv_doctor_settings){true, 1, 5, -1};
    p.settings[1] = (dv_doctor_settings){true, 2, -1, -1};
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "identifier", "on host (pid 12), and on host (pid 12)"));
    assert_true(says(&f, DV_DOCTOR_WARNING, "items", "were started with other items"));
    assert_true(says(&f, DV_DOCTOR_NOTE, "settings", "differ in --max-moves"));
    dv_findings_clear(&f);
    p.members[0].is_static = p.members[1].is_static = true;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "identifier", "two members"));
    clear(&p, &f);
}

/* Members that were there as items were requested work on these, whatever their names carry (D17). One that came later
 * with others does not. Where all came later, theirs are compared. */
TEST(test_requested_items) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    dv_plan *plan = p.plan.memory.plan;
    p.settings[0] = (dv_doctor_settings){true, 1, 5, -1};
    p.settings[1] = (dv_doctor_settings){true, plan->set->crc, 5, -1};
    plan->header.tag = 1;
    plan->header.pzxid = 70;
    plan->header.asked = 50;
    p.members[0].czxid = 49;
    p.members[1].czxid = 60;
    dv_findings f = judge(&p);
    assert_false(has(&f, "items"));
    dv_findings_clear(&f);
    p.members[0].czxid = 51;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "items", "a was started with other items than the pool was changed to"));
    dv_findings_clear(&f);
    p.members[0].first_czxid = 40; /* Its process was there: it only lost its session. */
    f = judge(&p);
    assert_false(has(&f, "items"));
    dv_findings_clear(&f);
    p.members[0].first_czxid = 0;
    p.settings[1].set = 2;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "items", "a and b were started with other items"));
    clear(&p, &f);
}

/* A member that no plan knows is told when it should long be known. */
TEST(test_old_plan) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.members[1].node = text("g3-b");
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "plan", "does not have b, which joined 1m40s ago"));
    dv_findings_clear(&f);
    p.members[0].follows = false; /* Names decide: nobody writes a plan, and why is told. */
    f = judge(&p);
    assert_false(says(&f, DV_DOCTOR_WARNING, "plan", ""));
    assert_true(says(&f, DV_DOCTOR_NOTE, "plan", "it follows no plan"));
    dv_findings_clear(&f);
    p.members[0].follows = true;
    p.members[1].made_ms = NOW_MS - 5 * SECOND_MS;
    f = judge(&p);
    assert_false(has(&f, "plan"));
    clear(&p, &f);
}

/* An access list that lets nobody do what members must is an error, one that lets others do it a warning. */
TEST(test_acl) {
    static const struct {
        const char *entry, *user;
        dv_doctor_level level;
        const char *what;
    } rows[] = {{"cdrwa world:anyone", NULL, DV_DOCTOR_OK, "we may do"},
                {"cdrwa digest:bob:hash", "bob", DV_DOCTOR_OK, "we may do"},
                {"cdrwa digest:bob", "bob", DV_DOCTOR_OK, "we may do"},
                {"cdrwa digest:bob:hash", "bo", DV_DOCTOR_WARNING, "others, and not we, may create below it"},
                {"cdrwa digest:bob:hash", NULL, DV_DOCTOR_WARNING, "others, and not we, may create below it"},
                {"cdra world:anyone", NULL, DV_DOCTOR_ERROR, "nobody may write it: the access list is cdra world"},
                {"odd", NULL, DV_DOCTOR_ERROR, "nobody may create below it"}};
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *entries[] = {text(rows[i].entry)};
        dv_doctor_acl acl = {.path = text("/q/plan"), .entries = entries, .entry_count = 1};
        p.scene.doctor.acls = &acl;
        p.scene.doctor.acl_count = 1;
        p.scene.doctor.user = rows[i].user;
        dv_findings f = judge(&p);
        assert_true(says(&f, rows[i].level, "acl", rows[i].what));
        dv_findings_clear(&f);
    }
    dv_findings none = {.list = NULL};
    clear(&p, &none);
}

/* The page has the worst first, shows no control characters, and counts. */
TEST(test_page) {
    dv_findings f = {.list = NULL};
    dv_finding_what(dv_findings_add(&f, DV_DOCTOR_OK, "clock", ""), "well");
    dv_finding *bad = dv_findings_add(&f, DV_DOCTOR_ERROR, "acl", "/q\033[2J");
    dv_finding_what(bad, "wrong");
    dv_finding_todo(bad, "mend it");
    char *page = dv_findings_page(&f), *json = dv_findings_json(&f, NULL);
    assert_string_equal(page, "error    acl         /q%1B[2J: wrong\n           do        mend it\n"
                              "ok       clock       well\n1 error, 0 warnings, 0 notes\n");
    assert_non_null(strstr(json, "{\"path\":null,\"errors\":1,\"warnings\":0,\"findings\":[{\"level\":\"error\""));
    free(page);
    free(json);
    dv_findings_clear(&f);
}
