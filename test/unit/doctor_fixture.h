/* Servers and a pool that are well, for the tests of what `divvy doctor` finds. SPDX-License-Identifier: Apache-2.0
 */
#ifndef DV_TEST_DOCTOR_FIXTURE_H
#define DV_TEST_DOCTOR_FIXTURE_H

#include <string.h>

#include <divvy/divvy.h>

#include "divvy/doctor_judge.h"
#include "divvy/status_plan.h"
#include "lib/test.h"

enum { NOW_MS = 1000000000, SECOND_MS = 1000 };

static inline char *text(const char *constant) {
    return (char *)(uintptr_t)constant; /* Nobody writes it. */
}

/* Returns whether there is a finding of that level and check which says so. */
static inline bool says(const dv_findings *f, dv_doctor_level level, const char *check, const char *what) {
    for (size_t i = 0; i < f->count; i++) {
        const dv_finding *found = &f->list[i];
        bool same = found->level == level && strcmp(found->check, check) == 0;
        if (same && strstr(found->what, what)) return true;
    }
    return false;
}

static inline bool has(const dv_findings *f, const char *check) {
    for (size_t i = 0; i < f->count; i++) {
        if (f->list[i].level > DV_DOCTOR_OK && strcmp(f->list[i].check, check) == 0) return true;
    }
    return false;
}

/* Returns the first finding of a check. */
static inline const dv_finding *found(const dv_findings *f, const char *check) {
    for (size_t i = 0; i < f->count; i++) {
        if (strcmp(f->list[i].check, check) == 0) return &f->list[i];
    }
    fail_msg("nothing of %s", check);
    return NULL;
}

static inline dv_server server(const char *host, dv_server_state state) {
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
static inline void set_scene(scene *s) {
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

static inline dv_findings judge_servers(const scene *s) {
    dv_findings f = {.list = NULL};
    dv_doctor_judge_servers(&s->doctor, &f);
    return f;
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

static inline dv_status_member member(const char *node, const char *identifier, int64_t session) {
    return (dv_status_member){.node = text(node),
                              .identifier = identifier,
                              .host = text("host"),
                              .pid = 12,
                              .since = text("1970-01-01T00:00:00Z"),
                              .session = session,
                              .made_ms = NOW_MS - 100 * SECOND_MS,
                              .follows = true};
}

static inline dv_status_item item(const char *name, size_t owner) {
    return (dv_status_item){.name = text(name),
                            .node = text(name),
                            .there = true,
                            .head = text("g__lock__0000000001"),
                            .owner = text("m"),
                            .member = owner,
                            .session = (int64_t)owner + 1};
}

/* Two members with one item each, whose names are sorted, as the plan of `age_ms` ago wants it. */
static inline void set_pool_of(pool *p, const char *const names[2], int64_t age_ms) {
    *p = (pool){.members = {member("g1-a", "a", 1), member("g2-b", "b", 2)},
                .items = {item(names[0], 0), item(names[1], 1)}};
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

static inline void set_pool(pool *p, int64_t age_ms) {
    static const char *const names[] = {"x", "y"};
    set_pool_of(p, names, age_ms);
}

static inline dv_findings judge(pool *p) {
    dv_findings f = {.list = NULL};
    dv_status *status = &p->scene.doctor.status;
    assert_int_equal(dv_status_plan_match(status), 0);
    dv_doctor_judge_pool(&p->scene.doctor, &f);
    dv_doctor_judge_members(&p->scene.doctor, &f);
    dv_doctor_judge_items(&p->scene.doctor, &f);
    dv_doctor_judge_rules(&p->scene.doctor, &f);
    dv_status_plan_clear(status);
    for (size_t i = 0; i < 2; i++) p->members[i].releasing = p->members[i].item_count = 0, p->members[i].entry = NULL;
    return f;
}

static inline void clear(pool *p, dv_findings *f) {
    dv_findings_clear(f);
    dv_plan_memory_clear(&p->plan.memory);
}

#endif
