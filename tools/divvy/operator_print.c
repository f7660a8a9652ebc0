/* The operator's commands: what was done, for people and as JSON. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "nearest.h"
#include "operator.h"
#include "plan/tags.h"
#include "pool/changes.h"
#include "pool/whom.h"
#include "pool/wishes.h"
#include "pool_rules.h"
#include "status_plan.h"
#include "table.h"
#include "table_json.h"
#include "text.h"

/* ---- what the plans say ---- */

static bool is_of_item(const dv_errand *e) {
    return e->ask.kind == DV_ASK_PIN || e->ask.kind == DV_ASK_MOVE || e->ask.kind == DV_ASK_PAUSE;
}

static bool is_of_member(const dv_errand *e) {
    return e->ask.kind == DV_ASK_WEIGHT || e->ask.kind == DV_ASK_FORGET;
}

static bool has_changed(const dv_errand *e) {
    return e->result.before != e->result.after;
}

/* Returns the identifier of the owner, or NULL: nobody. */
static const char *owner_of(const dv_plan *plan, const char *item) {
    const dv_plan_member *owner = dv_status_plan_owner(plan, item);
    return owner ? dv_whom_identifier(owner) : NULL;
}

static const char *or_nobody(const char *owner) {
    return owner ? owner : "nobody";
}

static const char *name_or_nobody(const dv_plan_member *m) {
    return m ? dv_whom_identifier(m) : "nobody";
}

/* ---- for people ---- */

/* Returns the need that holds for the item, or the prefix, once its own is undone; NULL: none. */
static const dv_wish *rest_of_need(const dv_errand *e) {
    const dv_wishes *wishes = e->result.after->wishes;
    const char *name = e->ask.name;
    size_t longest = 0, name_bytes = strlen(name);
    const dv_wish *found = NULL;
    for (size_t i = 0; wishes && i < wishes->count; i++) {
        const dv_wish *wish = &wishes->list[i];
        size_t bytes = strlen(wish->name);
        bool prefix = wish->kind == DV_WISH_NEED && wish->name[bytes - 1] == '*' && bytes <= name_bytes;
        if (!prefix || bytes < longest || strncmp(wish->name, name, bytes - 1) != 0) continue;
        longest = bytes;
        found = wish;
    }
    return found;
}

static void say_need_undone(const dv_errand *e, FILE *to) {
    char undo[DV_RULE_BYTES];
    const dv_wish *rest = rest_of_need(e);
    const char *already = has_changed(e) ? "" : " already";
    if (!rest) {
        fprintf(to, "needs no tag%s", already);
        return;
    }
    dv_pool_rules_tell_undo(rest, e->path, undo);
    fprintf(to, "%s%s, but %s needs %s; undo that: %s",
            has_changed(e) ? "no longer needs a tag by itself" : "needs no tag by itself", already, rest->name,
            rest->value, undo);
}

static void say_unpinned(const dv_errand *e, FILE *to) {
    bool was_moved = dv_wishes_find(e->result.before->wishes, DV_WISH_MOVE, e->ask.name) != NULL;
    if (has_changed(e)) fprintf(to, "no longer %s", was_moved ? "moved" : "pinned");
    else fputs("not pinned, nor moved (a move ends with its member)", to);
}

static void say_wish(const dv_errand *e, FILE *to) {
    const dv_ask *ask = &e->ask;
    const char *already = has_changed(e) || ask->undo ? "" : " already";
    switch (ask->kind) {
    case DV_ASK_PIN:
        if (ask->undo) say_unpinned(e, to);
        else fprintf(to, "pinned to %s%s", ask->value, already);
        break;
    case DV_ASK_MOVE: fprintf(to, "moved to %s%s", ask->value, already); break;
    case DV_ASK_PAUSE:
        if (ask->undo) fputs(has_changed(e) ? "resumed" : "not paused", to);
        else fprintf(to, "paused%s", already);
        break;
    case DV_ASK_NEED:
        if (ask->undo) say_need_undone(e, to);
        else fprintf(to, "needs the tag %s%s", ask->value, already);
        break;
    case DV_ASK_FORGET: fputs("no longer waited for", to); break;
    default:
        if (ask->undo) fprintf(to, "as the members were started%s", has_changed(e) ? "" : ", already");
        else fprintf(to, "%s%s", ask->value, already);
    }
}

/* Counts the items that move besides the one that is asked about. Returns whether there was memory for it. */
static bool count_others(const dv_errand *e, const dv_outcome *o, size_t *others) {
    const dv_errand_result *r = &e->result;
    size_t count, own = dv_pool_item(r->after, e->ask.name);
    dv_change *changes = dv_changes_list(r->before, o->plan, &count);
    *others = 0;
    for (size_t i = 0; i < count; i++) *others += changes[i].item != own;
    free(changes);
    return changes != NULL;
}

/* Says which plan has it so, or that rounds lead there. */
static void say_when(const dv_errand *e, const dv_outcome *o, FILE *to) {
    const dv_plan_header *after = &e->result.after->header;
    if (dv_outcome_has_rounds(o, e))
        fprintf(to, " in the end, in rounds of %" PRIu32 " from plan %" PRIu64 " on", after->options.max_moves,
                after->generation);
    else fprintf(to, " by plan %" PRIu64, after->generation);
}

/* Returns whether there was memory for it. */
static bool say_plan(const dv_errand *e, const dv_outcome *o, FILE *to) {
    const dv_errand_result *r = &e->result;
    bool good = true;
    if (is_of_item(e)) {
        const char *owner = owner_of(o->plan, e->ask.name), *was = owner_of(r->before, e->ask.name);
        bool paused = e->ask.kind != DV_ASK_PAUSE && dv_wishes_find(r->after->wishes, DV_WISH_PAUSE, e->ask.name);
        fprintf(to, "; %s", or_nobody(owner));
        say_when(e, o, to);
        if (paused) fputs(", as it is paused", to);
        if (has_changed(e)) fprintf(to, " (before: %s)", or_nobody(was));
        size_t others;
        good = count_others(e, o, &others);
        if (others > 0) fprintf(to, "; %zu other item%s", others, others == 1 ? " moves" : "s move");
    } else if (has_changed(e)) {
        size_t moved = dv_changes_count(r->before, o->plan);
        fprintf(to, "; %zu item%s", moved, moved == 1 ? " moves" : "s move");
        say_when(e, o, to);
    }
    return good;
}

static void say_weight(const dv_errand *e, const dv_outcome *o, FILE *to) {
    const dv_errand_result *r = &e->result;
    const dv_plan_member *m = dv_plan_find(r->after, r->is_static, r->key);
    if (!m) return;
    bool already = m->weight == r->weight_before;
    fprintf(to, "weight %" PRIu32, m->weight);
    if (already) fputs(" already", to);
    else fprintf(to, " (before: %" PRIu32 ")", r->weight_before);
    fprintf(to, "; %zu items", dv_whom_load(e, o->plan));
    say_when(e, o, to);
    if (!already) fprintf(to, " (before: %zu)", r->items_before);
}

static const dv_column columns[] = {{"ITEM", false, false}, {"FROM", false, false}, {"TO", false, false}};
enum { COLUMNS = 3 };

/* Returns 0, or -1 when an allocation fails. */
static int say_moves(const dv_errand *e, const dv_outcome *o, FILE *to) {
    size_t count;
    dv_change *changes = dv_changes_list(e->result.before, o->plan, &count);
    dv_table *table = changes ? dv_table_new(columns, COLUMNS) : NULL;
    int error = table ? 0 : -1;
    for (size_t i = 0; !error && i < count; i++) {
        const char *item = o->plan->set->names[changes[i].item];
        const char *cells[COLUMNS] = {item, name_or_nobody(changes[i].from), name_or_nobody(changes[i].to)};
        error = dv_table_add(table, item, cells);
    }
    if (!error && count > 0) dv_table_print(table, false, to);
    dv_table_free(table);
    free(changes);
    return error;
}

/* Returns the line, made readable. NULL: an allocation failed. */
static char *make_line(const dv_errand *e, const dv_outcome *o) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) return NULL;
    fprintf(to, "%s%s: ", e->ask.dry_run ? "dry run: " : "", e->ask.name);
    bool good = true;
    if (e->ask.kind == DV_ASK_WEIGHT) {
        say_weight(e, o, to);
    } else {
        say_wish(e, to);
        good = say_plan(e, o, to);
    }
    good = good && !ferror(to);
    good = fclose(to) == 0 && good;
    char *readable = good ? dv_text_readable(text) : NULL;
    free(text);
    return readable;
}

static char *make_page(const dv_errand *e, const dv_outcome *o) {
    char *text = NULL, *line = make_line(e, o);
    size_t bytes = 0;
    FILE *to = line ? open_memstream(&text, &bytes) : NULL;
    if (to) fprintf(to, "%s\n", line);
    free(line);
    int error = !to || !e->ask.dry_run ? 0 : say_moves(e, o, to);
    if (to && fclose(to) == 0 && !error) return text;
    free(text);
    return NULL;
}

/* ---- JSON ---- */

static bool put_owners(cJSON *json, const dv_errand *e, const dv_outcome *o) {
    const dv_errand_result *r = &e->result;
    return dv_json_text_or_null(json, "owner", owner_of(o->plan, e->ask.name)) &&
           dv_json_text_or_null(json, "owner_before", owner_of(r->before, e->ask.name)) &&
           dv_json_bool(json, "absent", r->absent);
}

static bool put_member(cJSON *json, const dv_errand *e, const dv_outcome *o) {
    const dv_errand_result *r = &e->result;
    const dv_plan_member *m = dv_plan_find(r->after, r->is_static, r->key);
    return dv_json_text(json, "key", r->key) &&
           (m ? dv_json_number(json, "weight", m->weight) : cJSON_AddNullToObject(json, "weight") != NULL) &&
           dv_json_number(json, "weight_before", r->weight_before) &&
           dv_json_number(json, "items", (int64_t)dv_whom_load(e, o->plan)) &&
           dv_json_number(json, "items_before", (int64_t)r->items_before);
}

static bool put_moves(cJSON *json, const dv_errand *e, const dv_outcome *o) {
    size_t count;
    dv_change *changes = dv_changes_list(e->result.before, o->plan, &count);
    cJSON *array = changes ? cJSON_AddArrayToObject(json, "moves") : NULL;
    bool good = array != NULL;
    for (size_t i = 0; good && i < count; i++) {
        cJSON *move = dv_json_add_object(array);
        const dv_plan_member *from = changes[i].from, *to = changes[i].to;
        good = move && dv_json_text(move, "item", o->plan->set->names[changes[i].item]) &&
               dv_json_text_or_null(move, "from", from ? dv_whom_identifier(from) : NULL) &&
               dv_json_text_or_null(move, "to", to ? dv_whom_identifier(to) : NULL);
    }
    free(changes);
    return good;
}

static char *make_json(const char *command, const dv_errand *e, const dv_outcome *o, const char *path) {
    const dv_errand_result *r = &e->result;
    cJSON *json = cJSON_CreateObject();
    bool good = json && dv_json_text(json, "path", path) && dv_json_text(json, "command", command) &&
                dv_json_text(json, "name", e->ask.name) && dv_json_text_or_null(json, "value", e->ask.value) &&
                dv_json_bool(json, "undo", e->ask.undo) && dv_json_bool(json, "dry_run", e->ask.dry_run) &&
                dv_json_bool(json, "changed", has_changed(e)) &&
                dv_json_number(json, "generation", (int64_t)r->after->header.generation) &&
                dv_json_number(json, "moved", (int64_t)dv_changes_count(r->before, o->plan)) &&
                dv_json_number(json, "rounds", (int64_t)o->rounds);
    if (is_of_item(e)) good = good && put_owners(json, e, o);
    if (is_of_member(e)) good = good && put_member(json, e, o);
    if (e->ask.dry_run) good = good && put_moves(json, e, o);
    return dv_json_line(json, good);
}

char *dv_operator_text(const char *command, const dv_errand *e, const dv_outcome *outcome,
                       const dv_operator_options *o) {
    return o->json ? make_json(command, e, outcome, o->path) : make_page(e, outcome);
}

/* ---- warnings ---- */

static bool is_needy(const dv_errand *e, const char *item) {
    size_t bytes = strlen(e->ask.name);
    bool prefix = bytes > 0 && e->ask.name[bytes - 1] == '*';
    return prefix ? strncmp(item, e->ask.name, bytes - 1) == 0 : strcmp(item, e->ask.name) == 0;
}

/* Adds the tag to the text, unless it is there. */
static void add_tag(char *text, size_t bytes, const char *tag, size_t tag_bytes) {
    size_t used = strlen(text);
    for (const char *at = text; *at; at += strcspn(at, ","), at += strspn(at, ", ")) {
        if (strcspn(at, ",") == tag_bytes && strncmp(at, tag, tag_bytes) == 0) return;
    }
    if (used + tag_bytes + 3 > bytes) return;
    snprintf(text + used, bytes - used, "%s%.*s", used ? ", " : "", (int)tag_bytes, tag);
}

/* Lists the tags of all members. Returns whether the one that is asked for is among them. */
static bool list_tags(const dv_errand *e, char *text, size_t bytes) {
    const dv_plan *plan = e->result.after;
    bool found = false;
    text[0] = '\0';
    for (size_t n = 0; n < plan->member_count; n++) {
        const char *at = plan->members[n].tags;
        found = found || dv_tags_has(at, e->ask.value);
        for (; *at; at += strcspn(at, ","), at += *at == ',') add_tag(text, bytes, at, strcspn(at, ","));
    }
    return found;
}

static void warn_of_tag(const dv_errand *e) {
    char tags[1024];
    if (list_tags(e, tags, sizeof tags)) return;
    dv_command_say("warning: no member of %s has the tag %s; %s%s", e->path, e->ask.value,
                   *tags ? "there are: " : "no member has any", tags);
}

static void warn_of_need(const dv_errand *e, const dv_outcome *o) {
    if (!e->ask.undo) warn_of_tag(e);
    const dv_plan *plan = o->plan;
    size_t matches = 0, unowned = 0;
    for (size_t i = 0; i < plan->set->count; i++) {
        bool needy = is_needy(e, plan->set->names[i]);
        matches += needy;
        unowned += needy && plan->owners[i] == DV_PLAN_NO_SLOT;
    }
    if (matches == 0) dv_command_say("warning: no item of %s begins so yet: %s", e->path, e->ask.name);
    else if (!e->ask.undo && unowned > 0)
        dv_command_say("warning: of %zu item%s that need%s the tag %s, %zu %s without an owner", matches,
                       matches == 1 ? "" : "s", matches == 1 ? "s" : "", e->ask.value, unowned,
                       unowned == 1 ? "is" : "are");
}

/* A member that the plan waits for is no typing mistake. */
static void warn_of_absent(const dv_errand *e) {
    const dv_plan *plan = e->result.after;
    const char *owner = or_nobody(owner_of(plan, e->ask.name));
    char names[1024];
    if (e->result.key) {
        dv_command_say("warning: %s is absent; until it is back, the owner of %s is %s%s", e->ask.value, e->ask.name,
                       owner, e->ask.kind == DV_ASK_MOVE ? ", and the move is over if it comes too late" : "");
        return;
    }
    dv_nearest nearest = dv_nearest_to(e->ask.value, strlen(e->ask.value));
    for (size_t n = 0; n < plan->member_count; n++) dv_nearest_try(&nearest, dv_whom_identifier(&plan->members[n]));
    dv_whom_list(plan, names, sizeof names);
    dv_command_say("warning: %s is not in the pool %s; until it comes, the owner of %s is %s; there are: %s%s",
                   e->ask.value, e->path, e->ask.name, owner, names, dv_nearest_question(&nearest, ""));
}

void dv_operator_warn(const dv_errand *e, const dv_outcome *o) {
    if (e->result.absent) warn_of_absent(e);
    if (e->ask.kind == DV_ASK_NEED) warn_of_need(e, o);
}
