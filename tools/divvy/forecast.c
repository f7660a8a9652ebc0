/* A forecast of the items that a change of members would move. SPDX-License-Identifier: Apache-2.0 */
#include "forecast.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <divvy/divvy.h>

#include "table.h"
#include "table_json.h"
#include "text.h"

#define NOBODY UINT32_MAX

int dv_forecast_init(dv_forecast *f, size_t member_count, const char *const *items, size_t item_count) {
    f->items = items;
    f->item_count = item_count;
    f->members = calloc(member_count + 1, sizeof *f->members);
    f->before = calloc(item_count + 1, sizeof *f->before);
    f->after = calloc(item_count + 1, sizeof *f->after);
    if (!f->members || !f->before || !f->after) return DIVVY_ENOMEM;
    f->member_count = member_count;
    return 0;
}

void dv_forecast_free(dv_forecast *f) {
    for (size_t m = 0; m < f->member_count; m++) {
        free(f->members[m].name);
        free(f->members[m].key);
        free(f->members[m].zone);
    }
    free(f->members);
    free(f->before);
    free(f->after);
    free(f->unowned_why);
}

/* ---- what follows ---- */

static void count_loads(dv_forecast *f) {
    for (size_t i = 0; i < f->item_count; i++) {
        dv_forecast_member *from = f->before[i] == NOBODY ? NULL : &f->members[f->before[i]];
        dv_forecast_member *to = f->after[i] == NOBODY ? NULL : &f->members[f->after[i]];
        if (from) from->before++;
        if (to) to->after++;
        if (from == to) continue;
        if (from) from->loses++;
        if (to) to->gains++;
        f->moves += from && to;
        f->given += !from;
    }
}

/* Counts the moves of what has the fewest: A6 and A7 choose shares so. Items of the absent are kept for them. */
static int find_floor(dv_forecast *f) {
    divvy_sticky_options options = DIVVY_STICKY_OPTIONS_INIT;
    options.spread_zones = 1;
    divvy_member *members = calloc(f->member_count + 1, sizeof *members);
    uint32_t *places = calloc(f->member_count + 1, sizeof *places);
    const char **items = (const char **)calloc(f->item_count + 1, sizeof *items);
    uint32_t *previous = calloc(f->item_count + 1, sizeof *previous), *next = calloc(f->item_count + 1, sizeof *next);
    int error = members && places && items && previous && next ? 0 : DIVVY_ENOMEM;
    size_t count = 0, dealt = 0;
    for (size_t m = 0; !error && m < f->member_count; m++) {
        const dv_forecast_member *own = &f->members[m];
        places[m] = own->leaves || own->absent ? NOBODY : (uint32_t)count;
        if (places[m] != NOBODY) members[count++] = (divvy_member){own->key, own->weight_after, own->zone};
    }
    f->floor = 0;
    for (size_t i = 0; !error && i < f->item_count; i++) {
        const dv_forecast_member *owner = f->before[i] == NOBODY ? NULL : &f->members[f->before[i]];
        if (!owner || (owner->absent && !owner->leaves)) continue;
        items[dealt] = f->items[i];
        previous[dealt++] = places[f->before[i]];
    }
    if (!error && count > 0) error = divvy_assign_sticky(members, count, items, dealt, previous, &options, next);
    for (size_t i = 0; !error && count > 0 && i < dealt; i++) f->floor += next[i] != previous[i];
    if (f->floor > f->moves) f->floor = f->moves; /* D18: the plan waits for who is absent. */
    free(members);
    free(places);
    free((void *)items);
    free(previous);
    free(next);
    return error;
}

/* Returns the most that a member has of its fair share of the load. */
static double load_balance_of(const dv_forecast *f, bool after) {
    double most = 0;
    for (size_t m = 0; m < f->member_count; m++) {
        const dv_forecast_member *own = &f->members[m];
        double share = after ? own->share_after : own->share_before;
        if ((after ? own->weight_after : own->weight_before) > 0 && share > most) most = share;
    }
    return most;
}

static double balance_of(const dv_forecast *f, bool after) {
    double total = 0, most = 0;
    if (f->has_loads) return load_balance_of(f, after);
    for (size_t m = 0; m < f->member_count; m++) {
        const dv_forecast_member *own = &f->members[m];
        if (after ? !own->leaves : !own->joins) total += after ? own->weight_after : own->weight_before;
    }
    for (size_t m = 0; m < f->member_count && f->item_count > 0; m++) {
        const dv_forecast_member *own = &f->members[m];
        double weight = after ? own->weight_after : own->weight_before;
        double share = (double)f->item_count * weight / total; /* one of weight 0 has none */
        double load = (double)(after ? own->after : own->before);
        if (weight > 0 && load / share > most) most = load / share;
    }
    return most;
}

int dv_forecast_count(dv_forecast *f) {
    count_loads(f);
    f->balance_before = balance_of(f, false);
    f->balance_after = balance_of(f, true);
    return f->is_ruled ? 0 : find_floor(f);
}

/* ---- for people ---- */

static const dv_column member_columns[] = {
    {"MEMBER", false, false}, {"BEFORE", true, false},       {"AFTER", true, false},       {"GAINS", true, false},
    {"LOSES", true, false},   {"SHARE BEFORE", true, false}, {"SHARE AFTER", true, false},
};

static const dv_column item_columns[] = {{"ITEM", false, false}, {"FROM", false, false}, {"TO", false, false}};

enum { MEMBER_COLUMNS = 5, LOADED_COLUMNS = 7, ITEM_COLUMNS = 3, NUMBER_BYTES = 32 };

static const char *number(size_t value, char out[NUMBER_BYTES]) {
    snprintf(out, NUMBER_BYTES, "%zu", value);
    return out;
}

static int add_member(dv_table *table, const dv_forecast_member *m) {
    char before[NUMBER_BYTES], after[NUMBER_BYTES], gains[NUMBER_BYTES], loses[NUMBER_BYTES];
    char share_before[NUMBER_BYTES], share_after[NUMBER_BYTES];
    snprintf(share_before, sizeof share_before, "%.2f", m->share_before);
    snprintf(share_after, sizeof share_after, "%.2f", m->share_after);
    const char *cells[LOADED_COLUMNS] = {
        m->name,
        m->joins ? "joins" : number(m->before, before),
        m->leaves ? "leaves" : number(m->after, after),
        number(m->gains, gains),
        number(m->loses, loses),
        m->joins ? "" : share_before,
        m->leaves ? "" : share_after,
    };
    return dv_table_add(table, m->name, cells);
}

static bool moves(const dv_forecast *f, size_t i) {
    return f->before[i] != f->after[i] && f->before[i] != NOBODY && f->after[i] != NOBODY;
}

static int print_moves(const dv_forecast *f, FILE *to) {
    dv_table *table = dv_table_new(item_columns, ITEM_COLUMNS);
    int error = table ? 0 : -1;
    for (size_t i = 0; !error && i < f->item_count; i++) {
        if (!moves(f, i)) continue;
        const char *cells[ITEM_COLUMNS] = {f->items[i], f->members[f->before[i]].name, f->members[f->after[i]].name};
        error = dv_table_add(table, cells[0], cells);
    }
    if (!error && f->moves) {
        fputs("\n", to);
        dv_table_print(table, false, to);
    }
    dv_table_free(table);
    return error;
}

static void print_pool(const dv_forecast *f, FILE *to) {
    char *path = f->path ? dv_text_readable(f->path) : NULL;
    if (f->path) fprintf(to, " %" PRIu64 " of %s", f->generation, path ? path : "?");
    free(path);
}

static void print_moved(const dv_forecast *f, FILE *to) {
    fprintf(to, "%zu item%s (%.1f %%", f->moves, f->moves == 1 ? " moves" : "s move",
            f->item_count ? 100.0 * (double)f->moves / (double)f->item_count : 0.0);
    if (f->has_loads) fprintf(to, ", and %.1f %% of the load", 100.0 * f->moved_load);
    fputs(")", to);
    if (!f->is_ruled) fprintf(to, "; the least that can be is %zu", f->floor);
    if (f->given)
        fprintf(to, "; %zu item%s an owner", f->given, f->given == 1 ? " without one gets" : "s without one get");
    fputs("\n", to);
}

static void print_summary(const dv_forecast *f, FILE *to) {
    size_t before = 0, after = 0;
    for (size_t m = 0; m < f->member_count; m++) {
        before += !f->members[m].joins;
        after += !f->members[m].leaves;
    }
    fprintf(to, "%zu item%s by %s", f->item_count, f->item_count == 1 ? "" : "s", f->assign);
    print_pool(f, to);
    fprintf(to, ": from %zu to %zu member%s\n", before, after, after == 1 ? "" : "s");
    if (f->unsettled) fputs("this plan is not carried out yet; before is what it leads to\n", to);
    print_moved(f, to);
    if (f->has_loads && !f->max_moves && f->rounds > 1)
        fprintf(to, "in %zu rounds; items of members that leave go at once\n", f->rounds);
    if (f->max_moves && f->rounds)
        fprintf(to, "in %zu round%s of at most %" PRIu32 "; items of members that leave go at once\n", f->rounds,
                f->rounds == 1 ? "" : "s", f->max_moves);
    if (f->unowned)
        fprintf(to, "%zu item%s no owner then: %s\n", f->unowned, f->unowned == 1 ? " has" : "s have", f->unowned_why);
    fprintf(to, "the fullest member has %.2f of its share%s before, %.2f after\n\n", f->balance_before,
            f->has_loads ? " of the load" : "", f->balance_after);
}

char *dv_forecast_print(const dv_forecast *f, bool list) {
    char *text = NULL;
    size_t bytes = 0;
    dv_table *table = dv_table_new(member_columns, f->has_loads ? LOADED_COLUMNS : MEMBER_COLUMNS);
    FILE *to = open_memstream(&text, &bytes);
    int error = table && to ? 0 : -1;
    for (size_t m = 0; !error && m < f->member_count; m++) error = add_member(table, &f->members[m]);
    if (!error) {
        print_summary(f, to);
        dv_table_print(table, false, to);
    }
    if (!error && list) error = print_moves(f, to);
    dv_table_free(table);
    if (to && ferror(to)) error = -1;
    if (to && fclose(to) == 0 && !error) return text;
    free(text);
    return NULL;
}

/* ---- JSON ---- */

static bool put_count_or_null(cJSON *json, const char *key, bool is_null, size_t count) {
    return is_null ? cJSON_AddNullToObject(json, key) != NULL : dv_json_number(json, key, (int64_t)count);
}

/* Adds a number with as many digits as tell something, or null. */
static bool put_digits(cJSON *json, const char *key, bool is_null, double number) {
    enum { DIGITS = 10000 };
    if (is_null) return cJSON_AddNullToObject(json, key) != NULL;
    return cJSON_AddNumberToObject(json, key, (double)(int64_t)(number * DIGITS + 0.5) / DIGITS);
}

static bool put_shares(cJSON *json, const dv_forecast_member *m) {
    return put_digits(json, "share_before", m->joins, m->share_before) &&
           put_digits(json, "share_after", m->leaves, m->share_after);
}

static bool put_member(cJSON *array, const dv_forecast_member *m, bool has_loads) {
    cJSON *json = dv_json_add_object(array);
    return json && dv_json_text(json, "identifier", m->name) &&
           put_count_or_null(json, "weight", m->leaves, m->weight_after) &&
           put_count_or_null(json, "before", m->joins, m->before) &&
           put_count_or_null(json, "after", m->leaves, m->after) && dv_json_number(json, "gains", (int64_t)m->gains) &&
           dv_json_number(json, "loses", (int64_t)m->loses) && (!has_loads || put_shares(json, m));
}

static bool put_moves(cJSON *json, const dv_forecast *f) {
    cJSON *array = cJSON_AddArrayToObject(json, "moved");
    bool good = array;
    for (size_t i = 0; good && i < f->item_count; i++) {
        if (!moves(f, i)) continue;
        cJSON *move = dv_json_add_object(array);
        good = move && dv_json_text(move, "item", f->items[i]) &&
               dv_json_text(move, "from", f->members[f->before[i]].name) &&
               dv_json_text(move, "to", f->members[f->after[i]].name);
    }
    return good;
}

static bool put_balance(cJSON *json, const dv_forecast *f) {
    cJSON *balance = cJSON_AddObjectToObject(json, "balance");
    return balance && put_digits(balance, "before", false, f->balance_before) &&
           put_digits(balance, "after", false, f->balance_after);
}

/* Adds what loads, tags, caps and wishes say, where they have a say. */
static bool put_rules(cJSON *json, const dv_forecast *f) {
    return !f->is_ruled ||
           (put_digits(json, "moved_load", !f->has_loads, f->moved_load) &&
            dv_json_number(json, "given", (int64_t)f->given) && dv_json_number(json, "unowned", (int64_t)f->unowned) &&
            dv_json_text_or_null(json, "unowned_why", f->unowned_why));
}

static bool put_pool(cJSON *json, const dv_forecast *f) {
    return !f->path ||
           (dv_json_text(json, "path", f->path) && dv_json_number(json, "generation", (int64_t)f->generation) &&
            dv_json_bool(json, "settled", !f->unsettled));
}

char *dv_forecast_json(const dv_forecast *f, bool list) {
    cJSON *json = cJSON_CreateObject();
    bool good =
        json && dv_json_text(json, "assign", f->assign) && put_pool(json, f) &&
        dv_json_number(json, "items", (int64_t)f->item_count) && dv_json_number(json, "moves", (int64_t)f->moves) &&
        put_count_or_null(json, "floor", f->is_ruled, f->floor) && dv_json_number(json, "rounds", (int64_t)f->rounds) &&
        dv_json_number(json, "max_moves", (int64_t)f->max_moves) && put_balance(json, f) && put_rules(json, f);
    cJSON *members = good ? cJSON_AddArrayToObject(json, "members") : NULL;
    good = members;
    for (size_t m = 0; good && m < f->member_count; m++) good = put_member(members, &f->members[m], f->has_loads);
    return dv_json_line(json, good && (!list || put_moves(json, f)));
}
