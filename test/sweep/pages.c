/* The lines and pages that commands print of what they know: no more is read for them. SPDX-License-Identifier:
 * Apache-2.0
 *
 * Whatever allocation fails, a text is made whole, as without a failure, or it is not made. A page or a line of the
 * log may have "?" instead of a name, but never a line less. */
#include <sys/mman.h>
#include <unistd.h>

#include "../../tools/divvy/forecast.h"
#include "../../tools/divvy/history_json.h"
#include "../../tools/divvy/line.h"
#include "../../tools/divvy/line_log.h"
#include "../../tools/divvy/locks_print.h"
#include "../../tools/divvy/table.h"
#ifdef SWEEP_PAGE
#include "../../tools/divvy/serve_rows.h"
#endif
#include "command_world.h"
#include "scenarios.h"
#include "show.h"

static void begin(sweep *s) {
    sweep_command_world(s);
    sweep_begin(s);
}

static void end(sweep *s) {
    sweep_allocations_disarm();
    sweep_end(s);
}

/* ---- lines of members ---- */

static void show_line(sweep *s, const dv_ledger *ledger, const dv_line *line) {
    SHOW(s, dv_line_json(ledger, line));
    SHOW(s, dv_line_readable(ledger, line));
    SHOW(s, dv_line_log(ledger, line));
}

static void show_child(sweep *s, const dv_ledger *ledger, const dv_child_event *event) {
    SHOW(s, dv_line_child_json(ledger, event));
    SHOW(s, dv_line_child_readable(ledger, event));
    SHOW(s, dv_line_child_log(event));
}

void sweep_print_lines(sweep *s) {
    static const char *const names[] = {"a", "b\xff"};
    const dv_names_view one = {names, 1}, two = {names, 2};
    dv_owned owned[] = {{.name = (char[]){"a"}, .token = 7}, {.name = (char[]){"b\xff"}, .token = INT64_MAX}};
    dv_ledger ledger = {.owned = owned, .owned_count = 2, .generation = 3, .member = "m\t0", .timestamps = true};
    begin(s);
    show_line(s, &ledger, &(dv_line){.event = "items", .gained = two, .lost = one, .revoked = one});
    show_line(s, &ledger, &(dv_line){.event = "items", .leaving = one, .staying = one, .prepare = two});
    ledger.state = DIVVY_FAILURE;
    show_line(s, &ledger, &(dv_line){.event = "state", .reason = "the session\nis lost"});
    show_line(s, &ledger, &(dv_line){.event = "state", .reason = "finished"});
    ledger.timestamps = false;
    ledger.member = NULL;
    show_line(s, &ledger, &(dv_line){.event = "state"});
    for (int kind = DV_CHILD_STARTED; kind <= DV_CHILD_FAILED; kind++) {
        dv_child_event event = {.kind = (dv_child_kind)kind, .item = "b\xff", .restart_ms = -1};
        show_child(s, &ledger, &event);
        event.token = 7;
        event.pid = 9;
        event.restart_ms = 100;
        event.reason = "it ran too long";
        show_child(s, &ledger, &event);
    }
    end(s);
}

/* What cannot be remembered or said is noted, so that the member ends; else all of it is. */
void sweep_print_ledger(sweep *s) {
    static const char *const names[] = {"c", "a", "b"};
    static const int64_t tokens[] = {7, 8, 9};
    dv_output output = {.instead_fd = memfd_create("lines", MFD_CLOEXEC), .stop_fd = -1};
    dv_ledger ledger;
    SWEEP_CHECK(s, output.instead_fd > 0);
    dv_ledger_init(&ledger, &output);
    begin(s);
    dv_ledger_items(&ledger, &(divvy_items_event){.gained = names, .gained_tokens = tokens, .gained_count = 3});
    SWEEP_CHECK(s, ledger.out_of_memory || (ledger.owned_count == 3 && dv_ledger_find(&ledger, "b")->token == 9));
    dv_ledger_revoke_all(&ledger);
    SWEEP_CHECK(s, ledger.out_of_memory || ledger.owned_count == 0);
    SWEEP_CHECK(s, ledger.out_of_memory == (sweep_allocations_refused() > 0));
    dv_ledger_free(&ledger);
    close(output.instead_fd);
    end(s);
}

/* ---- locks and semaphores ---- */

static void show_rows(sweep *s, const dv_locks *locks, const char *template, const dv_format_kind *kinds) {
    dv_format *parsed = NULL;
    sweep_allocations_pause(true);
    SWEEP_CHECK(s, dv_format_parse(&parsed, "locks", template, false, kinds) == 0);
    sweep_allocations_pause(false);
    SHOW(s, dv_locks_format(locks, parsed));
    dv_format_free(parsed);
}

void sweep_print_locks(sweep *s) {
    dv_record record = {.identifier = (char[]){"ann@host"}, .host = (char[]){"host"}, .time = (char[]){""}, .count = 3};
    dv_place places[] = {
        {.node = (char[]){"n1"},
         .holds = true,
         .there = true,
         .understood = true,
         .record = record,
         .session = 5,
         .token = 7,
         .slots = {.count = 3, .run_count = 2, .runs = {{0, 1}, {4, 2}}}},
        {.node = (char[]){"n2"}, .holds = true, .there = true},
        {.node = (char[]){"n3"}, .in_queue = true, .shared = true, .there = true, .session = 6},
    };
    dv_lock_entry entries[] = {
        {.name = (char[]){"a\xff"},
         .node = (char[]){"a\xff"},
         .there = true,
         .places = places,
         .place_count = 3,
         .held = 2,
         .waiting = 1},
        {.name = (char[]){"b"},
         .node = (char[]){"b"},
         .is_semaphore = true,
         .there = true,
         .limit = 9,
         .limit_state = DV_LIMIT_SET,
         .places = places,
         .place_count = 3,
         .held = 4,
         .waiting = 1},
        {.name = (char[]){"c"},
         .node = (char[]){"c"},
         .is_semaphore = true,
         .there = true,
         .limit_state = DV_LIMIT_BAD},
        {.name = (char[]){"d"},
         .node = (char[]){"d"},
         .is_semaphore = true,
         .there = true,
         .limit_state = DV_LIMIT_UNSET,
         .held = 1},
        {.name = (char[]){"e"}, .node = (char[]){"e"}},
    };
    dv_locks locks = {.root = "/divvy", .entries = entries, .entry_count = 5, .read_at_ms = 1000};
    begin(s);
    for (int named = 0; named < 2; named++) {
        locks.name = named ? "b" : NULL;
        SHOW(s, dv_locks_print(&locks));
        SHOW(s, dv_locks_json(&locks));
        if (named) show_rows(s, &locks, "{state} {identifier} {host}", dv_lock_formats);
        else show_rows(s, &locks, "{name} {limit} {held}", dv_locks_formats);
    }
    locks.name = NULL;
    locks.entry_count = 0;
    SHOW(s, dv_locks_print(&locks));
    SHOW(s, dv_locks_json(&locks));
    end(s);
}

/* ---- forecasts ---- */

static char *keep(const char *text) {
    sweep_allocations_pause(true);
    char *copy = sweep_strdup(text);
    sweep_allocations_pause(false);
    return copy;
}

static void fill(dv_forecast *f) {
    static const char *const names[] = {"m0", "m1", "m2", "m3"};
    for (size_t m = 0; m < f->member_count; m++) {
        dv_forecast_member *own = &f->members[m];
        own->name = keep(names[m]);
        own->key = keep(names[m]);
        own->zone = keep("z");
        own->weight_before = m == 2 ? 0 : 1000;
        own->weight_after = m == 0 ? 0 : 1000;
        own->leaves = m == 0;
        own->absent = m == 1;
        own->joins = m == 2;
    }
    for (size_t i = 0; i < f->item_count; i++) {
        f->before[i] = i == 4 ? UINT32_MAX : (uint32_t)(i % 2);
        f->after[i] = i == 5 ? UINT32_MAX : (uint32_t)(i % 3 + 1);
    }
}

void sweep_print_forecast(sweep *s) {
    static const char *const items[] = {"a", "b/c", "d", "e", "f", "g\xff"};
    begin(s);
    for (int with = 0; with < 4; with++) {
        dv_forecast f = {.assign = NULL};
        int error = DIVVY_ENOMEM;
        for (int i = 0; i < SHOW_TRIES && error; i++) {
            dv_forecast_free(&f);
            f = (dv_forecast){.assign = NULL};
            error = dv_forecast_init(&f, 4, items, 6);
            if (error) SWEEP_CHECK(s, sweep_excuses(s, error));
        }
        SWEEP_CHECK(s, !error);
        fill(&f);
        f.assign = "sticky";
        f.path = with & 1 ? "/pool/p\xff" : NULL;
        f.unsettled = with & 1;
        f.has_loads = f.is_ruled = with & 2;
        f.max_moves = with == 3 ? 2 : 0;
        f.rounds = 3;
        f.unowned = with & 2 ? 1 : 0;
        f.unowned_why = with & 2 ? keep("all members are at their cap") : NULL;
        error = dv_forecast_count(&f);
        SWEEP_CHECK(s, error == 0 || sweep_excuses(s, error));
        SHOW(s, dv_forecast_print(&f, with & 1));
        SHOW(s, dv_forecast_json(&f, with & 1));
        dv_forecast_free(&f);
    }
    end(s);
}

/* ---- a table and the one before ---- */

/* A failed comparison leaves nothing to show. */
static char *compare(const dv_column *columns, const char *const (*before)[2], const char *const (*after)[2]) {
    dv_table *old = dv_table_new(columns, 2), *new = dv_table_new(columns, 2);
    char *text = NULL;
    size_t bytes = 0;
    bool good = old && new;
    for (size_t i = 0; good && i < 3; i++)
        good = dv_table_add(old, before[i][0], before[i]) == 0 && dv_table_add(new, after[i][0], after[i]) == 0;
    good = good && dv_table_compare(new, old) == 0;
    FILE *to = good ? open_memstream(&text, &bytes) : NULL;
    if (to) dv_table_print(new, true, to);
    if (to) fclose(to);
    dv_table_free(old);
    dv_table_free(new);
    return text;
}

void sweep_print_changes(sweep *s) {
    static const dv_column columns[] = {{"ITEM", false, false}, {"OWNER", false, false}};
    static const char *const before[3][2] = {{"a", "m0"}, {"b", "m0"}, {"c", "m1"}};
    static const char *const after[3][2] = {{"a", "m0"}, {"b", "m1"}, {"d", "m1"}};
    begin(s);
    SHOW(s, compare(columns, before, after));
    end(s);
}

/* ---- histories ---- */

static char *history(const dv_pool_history *h) {
    cJSON *json = dv_history_json(h);
    return dv_json_line(json, json != NULL);
}

/* Generations that nobody wrote down, a member that died, and a plan that is not in the history yet. */
void sweep_print_history(sweep *s) {
    static dv_pool_history h;
    dv_plan plan = {.header = {.generation = 9}};
    dv_pool_plan pool = {.memory = {.plan = &plan, .standing = DV_PLAN_GOOD}};
    h = (dv_pool_history){.path = "/pool/p\xff", .plan = &pool, .found = true, .read_at_ms = 5000, .took_ms = -1};
    h.told.count = 2;
    h.told.changes[0] = (dv_plan_change){.generation = 2, .reason = "join", .took_ms = -1};
    h.told.changes[0].joined = (dv_plan_named){.count = 2, .named = 1, .names = {"m1"}};
    h.told.changes[1] = (dv_plan_change){.generation = 5, .reason = "loss", .at_ms = 3000, .took_ms = 7, .moved = 3};
    h.told.changes[1].left = (dv_plan_named){.count = 1, .named = 1, .names = {"m1"}};
    strcpy(h.told.changes[1].told, "pin a m0");
    h.deaths = (dv_plan_deaths){.count = 1, .deaths = {{.name = "m1", .session = 5, .at_ms = 2900, .seen_ms = 40}}};
    begin(s);
    SHOW(s, history(&h));
    h.planned_ms = 4000;
    h.under_way = true;
    SHOW(s, history(&h));
    plan.header.generation = 5;
    h.ends_with_it = true;
    h.under_way = false;
    SHOW(s, history(&h));
    end(s);
}

/* ---- rows of the page ---- */

#ifdef SWEEP_PAGE

typedef struct {
    dv_serve_member members[2];
    dv_serve_item items[3];
    dv_lock_entry locks[2];
} page;

static bool put_rows(cJSON *rows, const page *p) {
    static const dv_serve_event moved = {.number = 1, .ms = 9, .what = "a", .from = "m0", .to = "m1"};
    static const dv_serve_event came = {.number = 2, .ms = 9, .what = "m1"};
    bool good = dv_serve_row_event(rows, &moved) && dv_serve_row_event(rows, &came);
    for (size_t i = 0; good && i < 3; i++) good = dv_serve_row_item(rows, &p->items[i]);
    for (size_t m = 0; good && m < 2; m++) good = dv_serve_row_member(rows, &p->members[m]);
    for (size_t i = 0; good && i < 2; i++) good = dv_serve_row_lock(rows, &p->locks[i]);
    return good && dv_serve_row_sample(rows, &(dv_serve_sample){.ms = 9, .items = 3, .members = 2}) &&
           dv_serve_row_past(rows, &(dv_serve_past_item){.name = "a", .owner = "m0", .since_ms = 9}) &&
           dv_serve_row_past(rows, &(dv_serve_past_item){.name = "b"}) &&
           dv_serve_row_holdup(
               rows,
               &(dv_serve_holdup){.holder = "m0", .waiter = "m1", .items = 2, .first = &p->items[0], .since_ms = 9});
}

static char *rows(const page *p) {
    cJSON *array = cJSON_CreateArray();
    return dv_json_line(array, array && put_rows(array, p));
}

void sweep_print_rows(sweep *s) {
    dv_record record = {.identifier = (char[]){"ann"}, .host = (char[]){"h"}, .time = (char[]){""}};
    dv_place places[8] = {{.holds = true, .there = true, .made_ms = 7}, {.holds = true}, {.there = true}};
    for (size_t i = 3; i < 8; i++)
        places[i] = (dv_place){.holds = true, .there = true, .understood = true, .record = record, .session = 5};
    page p = {
        .members =
            {{.node = (char[]){"n0"}, .identifier = (char[]){"m0"}, .state = "working", .share = -1, .kazoo = true},
             {.node = (char[]){"n1"},
              .identifier = (char[]){"m1"},
              .state = "working",
              .live = true,
              .host = (char[]){"h"},
              .pid = 4,
              .in_plan = true,
              .share = 0.5,
              .tags = (char[]){"ssd"},
              .cap = 3}},
        .locks = {{.name = (char[]){"x"}, .places = places, .place_count = 3, .held = 2},
                  {.name = (char[]){"y"},
                   .is_semaphore = true,
                   .limit_state = DV_LIMIT_SET,
                   .limit = 9,
                   .places = places,
                   .place_count = 8}},
    };
    p.items[0] = (dv_serve_item){.name = (char[]){"a"},
                                 .owner = &p.members[0],
                                 .next = &p.members[1],
                                 .held = true,
                                 .token = 7,
                                 .since_ms = 9,
                                 .seen = true,
                                 .waiting = 1};
    p.items[1] = (dv_serve_item){.name = (char[]){"b\xff"},
                                 .next = &p.members[1],
                                 .rule = "cap",
                                 .why = (char[]){"all members are at their cap"}};
    p.items[2] = (dv_serve_item){.name = (char[]){"c"}, .owner = &p.members[1], .next = &p.members[1]};
    begin(s);
    SHOW(s, rows(&p));
    end(s);
}

#else

void sweep_print_rows(sweep *s) {
    (void)s;
}

#endif
