/* What `divvy doctor` makes of what it read. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "divvy/doctor_judge.h"
#include "divvy/status_plan.h"
#include "lib/test.h"

enum { NOW_MS = 1000000000, SECOND_MS = 1000 };

static char *text(const char *constant) {
    return (char *)(uintptr_t)constant; /* Nobody writes it. */
}

/* Returns whether there is a finding of that level and check which says so. */
static bool says(const dv_findings *f, dv_doctor_level level, const char *check, const char *what) {
    for (size_t i = 0; i < f->count; i++) {
        const dv_finding *found = &f->list[i];
        bool same = found->level == level && strcmp(found->check, check) == 0;
        if (same && strstr(found->what, what)) return true;
    }
    return false;
}

static bool has(const dv_findings *f, const char *check) {
    for (size_t i = 0; i < f->count; i++) {
        if (f->list[i].level > DV_DOCTOR_OK && strcmp(f->list[i].check, check) == 0) return true;
    }
    return false;
}

/* ---- servers ---- */

static dv_server server(const char *host, dv_server_state state) {
    dv_server s = {.host = text(host), .state = state, .srvr = {.told = true, .mode = "follower"}, .took_ms = 1};
    s.conf = (dv_word_conf){2000, 4000, 40000, 1, 5, false};
    s.lists_clients = state == DV_SERVER_ANSWERS;
    return s;
}

typedef struct {
    dv_server servers[3];
    dv_word_connection connections[2];
    dv_doctor doctor;
} scene;

/* Three servers that answer, a session on them, and the clock right. */
static void set_scene(scene *s) {
    *s = (scene){.servers = {server("a:1", DV_SERVER_ANSWERS), server("b:1", DV_SERVER_ANSWERS),
                             server("c:1", DV_SERVER_ANSWERS)}};
    s->connections[0] = (dv_word_connection){.session = 7, .timeout_ms = 10000, .established_ms = NOW_MS};
    s->doctor = (dv_doctor){.session_timeout_ms = 10000,
                            .tick_ms = 2000,
                            .server_timeout_ms = 400,
                            .servers = {.list = s->servers,
                                        .count = 3,
                                        .chroot = "",
                                        .connections = s->connections,
                                        .connection_count = 1,
                                        .all_clients = true},
                            .looked = true,
                            .session = 7,
                            .granted_ms = 10000,
                            .opened_ms = NOW_MS - 10,
                            .connected_ms = NOW_MS + 10,
                            .read_us = {900, 100, 300, 200, 400},
                            .read_count = 5};
}

static dv_findings judge_servers(const scene *s) {
    dv_findings f = {.list = NULL};
    dv_doctor_judge_servers(&s->doctor, &f);
    return f;
}

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

/* ---- a pool ---- */

typedef struct {
    scene scene;
    dv_status_member members[2];
    dv_status_item items[2];
    dv_doctor_settings settings[2];
    dv_doctor_note notes[2];
    dv_pool_plan plan;
    uint32_t leaving[1], ready[1];
} pool;

static dv_status_member member(const char *node, const char *identifier, int64_t session) {
    return (dv_status_member){.node = text(node),
                              .identifier = identifier,
                              .host = text("host"),
                              .pid = 12,
                              .since = text("1970-01-01T00:00:00Z"),
                              .session = session,
                              .made_ms = NOW_MS - 100 * SECOND_MS,
                              .follows = true};
}

static dv_status_item item(const char *name, size_t owner) {
    return (dv_status_item){.name = text(name),
                            .node = text(name),
                            .there = true,
                            .head = text("g__lock__0000000001"),
                            .owner = text("m"),
                            .member = owner,
                            .session = (int64_t)owner + 1};
}

/* Two members with one item each, as the plan of `age_ms` ago wants it. */
static void set_pool(pool *p, int64_t age_ms) {
    static const char *const names[] = {"x", "y"};
    *p = (pool){.members = {member("g1-a", "a", 1), member("g2-b", "b", 2)}, .items = {item("x", 0), item("y", 1)}};
    set_scene(&p->scene);
    dv_plan *plan = dv_plan_make(dv_plan_set_make(names, 2));
    assert_non_null(plan);
    for (uint32_t slot = 0; slot < 2; slot++) {
        dv_plan_member m = {
            .slot = slot, .key = p->members[slot].node, .weight = 1000, .zone = text(""), .leaving = text("")};
        assert_true(dv_plan_add_member(plan, &m));
        plan->owners[slot] = slot;
    }
    plan->header.generation = 3;
    p->plan.memory = (dv_plan_memory){.plan = plan, .standing = DV_PLAN_GOOD};
    dv_doctor *d = &p->scene.doctor;
    d->path = "/q";
    d->settings = p->settings;
    d->notes = p->notes;
    d->planned_ms = NOW_MS - age_ms;
    d->status = (dv_status){.path = "/q",
                            .plan = &p->plan,
                            .found = true,
                            .members = p->members,
                            .member_count = 2,
                            .items = p->items,
                            .item_count = 2,
                            .read_at_ms = NOW_MS};
    d->servers.connections[0] = (dv_word_connection){.session = 1, .timeout_ms = 9000, .address = "10.0.0.1:5"};
    d->servers.connections[1] = (dv_word_connection){.session = 2, .timeout_ms = 9000, .address = "10.0.0.2:5"};
    d->servers.connection_count = 2;
}

static dv_findings judge(pool *p) {
    dv_findings f = {.list = NULL};
    dv_status *status = &p->scene.doctor.status;
    assert_int_equal(dv_status_plan_match(status), 0);
    dv_doctor_judge_pool(&p->scene.doctor, &f);
    dv_doctor_judge_members(&p->scene.doctor, &f);
    dv_doctor_judge_items(&p->scene.doctor, &f);
    dv_status_plan_clear(status);
    for (size_t i = 0; i < 2; i++) p->members[i].releasing = p->members[i].item_count = 0, p->members[i].entry = NULL;
    return f;
}

static void clear(pool *p, dv_findings *f) {
    dv_findings_clear(f);
    dv_plan_memory_clear(&p->plan.memory);
}

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

/* A member that no plan knows is told when it should long be known. */
TEST(test_old_plan) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.members[1].node = text("g3-b");
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "plan", "does not have b, which joined 1m40s ago"));
    dv_findings_clear(&f);
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
