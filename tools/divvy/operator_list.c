/* The options and needs that operators have set, listed. SPDX-License-Identifier: Apache-2.0 */
#include "operator_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "plan/wish.h"
#include "pool_plan.h"
#include "shell_word.h"
#include "table.h"
#include "table_json.h"

enum { COLUMNS = 5, VALUE_BYTES = 64 };

/* One that stands in the plan, or an option that nobody has set. */
typedef struct {
    const char *name, *value, *shown;
    const dv_wish *wish; /* NULL: nobody has set it */
} entry;

typedef int (*visit)(void *to, const entry *one);

/* ---- entries ---- */

/* Shows an option that is in force: as a wish waits while an older member is there, the plan says it. */
static int visit_option(const dv_plan *plan, const char *name, const char *otherwise, visit see, void *to) {
    const dv_wish *wish = dv_wishes_find(plan->wishes, DV_WISH_OPTION, name);
    char shown[DV_AGE_BYTES] = "";
    if (wish && !plan->header.is_balanced) wish = NULL;
    const char *value = wish ? wish->value : otherwise;
    int64_t ms = plan->header.options.round_timeout_ms;
    if (strcmp(name, "round-timeout") == 0) (ms % 1000 ? dv_duration_text : dv_age_text)(ms, shown);
    return see(to, &(entry){name, value, *shown ? shown : value, wish});
}

static int visit_options(const dv_plan *plan, visit see, void *to) {
    char max_moves[VALUE_BYTES], timeout[VALUE_BYTES];
    snprintf(max_moves, sizeof max_moves, "%" PRIu32, plan->header.options.max_moves);
    snprintf(timeout, sizeof timeout, "%" PRId64, plan->header.options.round_timeout_ms);
    int error = visit_option(plan, "imbalance-max", "0.2", see, to);
    if (!error) error = visit_option(plan, "max-moves", max_moves, see, to);
    return error ? error : visit_option(plan, "round-timeout", timeout, see, to);
}

static int visit_needs(const dv_plan *plan, visit see, void *to) {
    int error = 0;
    for (size_t i = 0; !error && plan->wishes && i < plan->wishes->count; i++) {
        const dv_wish *wish = &plan->wishes->list[i];
        if (wish->kind == DV_WISH_NEED) error = see(to, &(entry){wish->name, wish->value, wish->value, wish});
    }
    return error;
}

static int visit_all(const dv_plan *plan, bool needs, visit see, void *to) {
    return needs ? visit_needs(plan, see, to) : visit_options(plan, see, to);
}

/* ---- for people ---- */

static int add_row(void *to, const entry *one) {
    char since[DV_UTC_BYTES];
    const char *cells[COLUMNS] = {one->name, one->shown, "", "", ""};
    if (one->wish) {
        cells[2] = one->wish->by;
        cells[3] = dv_look_utc(one->wish->at_ms, since);
        cells[4] = one->wish->why;
    }
    return dv_table_add(to, one->name, cells);
}

static char *make_table(const dv_plan *plan, bool needs) {
    static const dv_column columns[2][COLUMNS] = {
        {{"OPTION", false, false},
         {"VALUE", false, false},
         {"SET BY", false, false},
         {"SINCE", false, false},
         {"REASON", false, false}},
        {{"ITEM", false, false},
         {"TAG", false, false},
         {"SET BY", false, false},
         {"SINCE", false, false},
         {"REASON", false, false}},
    };
    char *text = NULL;
    size_t bytes = 0;
    dv_table *table = dv_table_new(columns[needs], COLUMNS);
    FILE *to = table ? open_memstream(&text, &bytes) : NULL;
    int error = to ? visit_all(plan, needs, add_row, table) : -1;
    if (!error) dv_table_print(table, false, to);
    if (!error && ftell(to) == 0) fputs("no item needs a tag\n", to);
    dv_table_free(table);
    if (to && fclose(to) == 0 && !error) return text;
    free(text);
    return NULL;
}

/* ---- JSON ---- */

static int add_object(void *to, const entry *one) {
    cJSON *json = dv_json_add_object(to);
    const dv_wish *wish = one->wish;
    bool good = json && dv_json_text(json, "name", one->name) && dv_json_text(json, "value", one->value) &&
                dv_json_text_or_null(json, "by", wish ? wish->by : NULL) &&
                dv_json_number_or_null(json, "at_ms", wish ? wish->at_ms : 0) &&
                dv_json_text_or_null(json, "why", wish ? wish->why : NULL);
    return good ? 0 : -1;
}

static char *make_json(const char *command, const char *path, const dv_plan *plan, bool needs) {
    cJSON *json = cJSON_CreateObject();
    bool good = json && dv_json_text(json, "path", path) && dv_json_text(json, "command", command) &&
                dv_json_number(json, "generation", (int64_t)plan->header.generation);
    cJSON *list = good ? cJSON_AddArrayToObject(json, needs ? "needs" : "options") : NULL;
    return dv_json_line(json, list && visit_all(plan, needs, add_object, list) == 0);
}

/* ---- reading ---- */

static int read_plan(dv_look *look, void *plan) {
    (void)look;
    return dv_pool_plan_read(plan);
}

static int print(const char *command, bool needs, const dv_operator_options *o, const dv_plan_memory *memory) {
    char pool[DV_SHELL_WORD_BYTES];
    const dv_plan *plan = memory->plan;
    if (memory->standing != DV_PLAN_GOOD || !plan || plan->header.generation == 0)
        return dv_command_failed("no plan of %s can be read; is the path right? divvy doctor --path %s says more",
                                 o->path, dv_shell_word(pool, "PATH", "%s", o->path));
    if (!plan->header.is_balanced && plan->wishes && plan->wishes->count > 0)
        dv_command_say("warning: a member of an earlier release is in the pool: until it has left, what operators set "
                       "is not in force");
    return dv_command_print(o->json ? make_json(command, o->path, plan, needs) : make_table(plan, needs));
}

int dv_operator_list(const char *command, bool needs, const dv_operator_options *o) {
    dv_pool_plan plan = {.look = NULL};
    dv_look *look = NULL;
    int code = dv_look_open(&look, &o->look, command, -1), error = 0;
    if (code == 0) error = dv_pool_plan_init(&plan, look, o->path);
    if (code == 0 && !error) error = dv_look_at(look, read_plan, &plan);
    if (error) code = dv_look_failed(look, error);
    if (code == 0) code = print(command, needs, o, &plan.memory);
    dv_look_close(look);
    dv_pool_plan_free(&plan);
    return code;
}
