/* The pages and JSON of a pool that was read: `divvy status`, `explain`, `doctor`, and what operators are told.
 * SPDX-License-Identifier: Apache-2.0
 *
 * As in pages.c: whatever allocation fails, a text is made whole, or it is not made. */
#include "../../tools/divvy/doctor_judge.h"
#include "../../tools/divvy/explain_json.h"
#include "../../tools/divvy/operator.h"
#include "../../tools/divvy/status_plan.h"
#include "../../tools/divvy/status_print.h"
#include "command_world.h"
#include "scenarios.h"
#include "show.h"

enum { MEMBERS = 3, ITEMS = 5, NOW_MS = 1000000000 };

static const char *const names[ITEMS] = {"a", "b", "c\xff", "d", "e"};
static const char *const nodes[MEMBERS] = {"g1,a=3-m0", "g2,a=3-m1\xfe", "g3,a=3-m2"};

typedef struct {
    dv_pool_plan plan;
    dv_status_member members[MEMBERS];
    dv_status_item items[ITEMS];
    dv_status status;
} pool;

static char *text(const char *constant) {
    return (char *)(uintptr_t)constant; /* Nobody writes it. */
}

static void wish(sweep *s, dv_plan *plan, dv_wish_kind kind, const char *name, const char *value) {
    const dv_wish_event event = {.wish = {kind, name, value, "ann", "a trial", NOW_MS - 5000}};
    dv_wishes *wishes;
    SWEEP_CHECK(s, dv_wishes_change(&wishes, plan->wishes, &event) == 0);
    dv_wishes_unref(plan->wishes);
    plan->wishes = wishes;
}

/* Items of three members, with loads, tags, caps and wishes. Some of the wishes wait. */
static dv_plan *make_plan(sweep *s, uint64_t generation) {
    static const uint32_t given[] = {1};
    dv_plan *plan = dv_plan_make(dv_plan_set_make(names, ITEMS));
    SWEEP_CHECK(s, plan);
    for (uint32_t n = 0; n < MEMBERS; n++) {
        const dv_plan_member m = {.slot = n,
                                  .key = text(nodes[n]),
                                  .weight = n == 2 ? 0 : 1000,
                                  .zone = text("z"),
                                  .leaving = text(""),
                                  .tags = text(n ? "" : "hdd,ssd"),
                                  .cap = n ? 9 : 1};
        SWEEP_CHECK(s, dv_plan_add_member(plan, &m));
    }
    for (size_t i = 0; i < ITEMS; i++) plan->owners[i] = i == 4 ? DV_PLAN_NO_SLOT : (uint32_t)i % 2;
    plan->header = (dv_plan_header){.generation = generation, .is_balanced = true};
    wish(s, plan, DV_WISH_PIN, "a", "m0");
    wish(s, plan, DV_WISH_PIN, "b", "m9");
    wish(s, plan, DV_WISH_NEED, "a*", "gpu");
    wish(s, plan, DV_WISH_OPTION, "max-moves", "2");
    wish(s, plan, DV_WISH_PAUSE, "e", nodes[1]);
    plan->loads = dv_loads_make("cores", ITEMS);
    SWEEP_CHECK(s, plan->loads && dv_loads_add_giver(plan->loads, "m2", 1310, given, 1));
    plan->loads->classes[0] = DV_CLASS_ONE + 16;
    plan->loads->classes[1] = DV_CLASS_ONE;
    return plan;
}

static void make_pool(sweep *s, pool *p) {
    *p = (pool){.plan.memory = {.plan = make_plan(s, 7), .standing = DV_PLAN_GOOD}};
    for (size_t n = 0; n < MEMBERS; n++)
        p->members[n] = (dv_status_member){.node = text(nodes[n]),
                                           .identifier = nodes[n] + 7,
                                           .host = text(n ? "host" : ""),
                                           .pid = 12,
                                           .since = text("2026-01-31T12:00:00Z"),
                                           .session = (int64_t)n + 1,
                                           .made_ms = NOW_MS - 90000,
                                           .zone = text("z"),
                                           .tags = text(""),
                                           .weight = 1000,
                                           .follows = true,
                                           .can_balance = true};
    for (size_t i = 0; i < ITEMS; i++)
        p->items[i] = (dv_status_item){.name = text(names[i]),
                                       .node = text(names[i]),
                                       .there = true,
                                       .head = i == 4 ? NULL : text("g1__lock__0000000001"),
                                       .owner = i == 4 ? NULL : text(nodes[i % 3] + 7),
                                       .member = i == 4 ? DV_NO_MEMBER : i % 3,
                                       .waiting = i == 1,
                                       .session = (int64_t)i % 3 + 1};
    p->status = (dv_status){.path = "/q\xff",
                            .plan = &p->plan,
                            .found = true,
                            .members = p->members,
                            .member_count = MEMBERS,
                            .items = p->items,
                            .item_count = ITEMS,
                            .stray_count = 1,
                            .stray = text("backup"),
                            .least_load = 1,
                            .most_load = 2,
                            .read_at_ms = NOW_MS};
}

/* Begins with what is read from ZooKeeper in life, for which nothing fails. */
static void begin(sweep *s, pool *p) {
    sweep_allocations_pause(true);
    make_pool(s, p);
    sweep_allocations_pause(false);
    sweep_command_world(s);
    sweep_begin(s);
}

static void end(sweep *s, pool *p) {
    dv_plan_memory_clear(&p->plan.memory);
    sweep_allocations_disarm();
    sweep_end(s);
}

static bool match(pool *p) {
    bool good = dv_status_plan_match(&p->status) == 0;
    if (!good) dv_status_plan_clear(&p->status);
    return good;
}

static void forget(pool *p) {
    dv_status_plan_clear(&p->status);
    for (size_t n = 0; n < MEMBERS; n++) p->members[n].releasing = 0, p->members[n].entry = NULL;
    for (size_t i = 0; i < ITEMS; i++) p->items[i].planned = NULL;
}

/* ---- divvy status ---- */

static char *page(pool *p) {
    dv_status_page page = {.members = NULL};
    const dv_status_page before = {.members = NULL};
    char *out = match(p) ? dv_status_page_print(&p->status, &page, &before, false, 0) : NULL;
    dv_status_page_free(&page);
    forget(p);
    return out;
}

static char *json(pool *p) {
    char *out = match(p) ? dv_status_page_json(&p->status) : NULL;
    forget(p);
    return out;
}

void sweep_print_status(sweep *s) {
    pool p;
    begin(s, &p);
    SHOW(s, page(&p));
    SHOW(s, json(&p));
    end(s, &p);
}

/* ---- divvy explain ---- */

static char *explain(pool *p, size_t item) {
    dv_explain_place places[] = {
        {.node = text("g1__lock__0000000001"), .name = text("m0\xff"), .token = 5, .session = 1, .made_ms = NOW_MS},
        {.node = text("g2__lock__0000000002"), .name = text("m1"), .member = 1, .session = 2, .made_ms = NOW_MS}};
    dv_status status = p->status;
    if (!match(p)) return NULL;
    status = p->status;
    status.items = &p->items[item];
    status.item_count = 1;
    const dv_explanation e = {.status = &status,
                              .item = status.items,
                              .places = places,
                              .place_count = p->items[item].head ? 2 : 0,
                              .is_planned = true,
                              .planned_ms = NOW_MS - 9000};
    cJSON *object = dv_explain_json(&e);
    char *out = dv_json_line(object, object != NULL);
    forget(p);
    return out;
}

void sweep_print_explain(sweep *s) {
    pool p;
    begin(s, &p);
    for (size_t i = 0; i < ITEMS; i++) SHOW(s, explain(&p, i));
    end(s, &p);
}

/* ---- divvy doctor ---- */

static char *examine(pool *p, bool as_json) {
    char *none[] = {text("r world:anyone")};
    dv_doctor_acl acls[] = {{.path = text("/q"), .entries = none, .entry_count = 1},
                            {.path = text("/q/party"), .entries = none, .entry_count = 1}};
    dv_doctor_settings settings[MEMBERS] = {{.has_set = true}, {.has_set = true, .set = 1}};
    dv_doctor_note notes[MEMBERS] = {{.there = false}};
    dv_findings f = {.list = NULL};
    if (!match(p)) return NULL;
    dv_doctor d = {.path = "/q",
                   .servers.chroot = "",
                   .status = p->status,
                   .acls = acls,
                   .acl_count = 2,
                   .settings = settings,
                   .notes = notes,
                   .planned_ms = NOW_MS - 90000,
                   .left_notes = 1};
    dv_doctor_judge_pool(&d, &f);
    dv_doctor_judge_members(&d, &f);
    dv_doctor_judge_items(&d, &f);
    dv_doctor_judge_rules(&d, &f);
    char *out = as_json ? dv_findings_json(&f, "/q") : dv_findings_page(&f);
    dv_findings_clear(&f);
    forget(p);
    return out;
}

void sweep_print_doctor(sweep *s) {
    pool p;
    begin(s, &p);
    SHOW(s, examine(&p, false));
    SHOW(s, examine(&p, true));
    end(s, &p);
}

/* ---- what operators are told ---- */

void sweep_print_operator(sweep *s) {
    static const dv_ask asks[] = {{.kind = DV_ASK_PIN, .name = "d", .value = "m0"},
                                  {.kind = DV_ASK_NEED, .name = "d", .value = "ssd"},
                                  {.kind = DV_ASK_WEIGHT, .name = "m1", .dry_run = true}};
    pool p;
    begin(s, &p);
    sweep_allocations_pause(true);
    dv_plan *after = make_plan(s, 8);
    for (size_t i = 0; i < ITEMS; i++) after->owners[i] = 0;
    sweep_allocations_pause(false);
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        const dv_errand errand = {.ask = asks[i],
                                  .path = text("/q"),
                                  .result = {.before = p.plan.memory.plan, .after = after, .key = text(nodes[1])}};
        const dv_outcome outcome = {.plan = after, .rounds = 1};
        for (int with = 0; with < 2; with++) {
            const dv_operator_options options = {.path = "/q", .json = with};
            SHOW(s, dv_operator_text("pin", &errand, &outcome, &options));
        }
    }
    dv_plan_free(after);
    end(s, &p);
}
