/* The rules of a pool, as commands show them. SPDX-License-Identifier: Apache-2.0 */
#include "status_rules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "status_plan.h"
#include "text.h"

/* A name as it stands in a sentence. */
#define NAME "%.160s"

/* ---- what waits ---- */

bool dv_status_rules_hold(const dv_status *status) {
    return status->rules.any && status->in_force && status->rules.plan->header.is_balanced;
}

bool dv_status_rules_wait(const dv_status *status, const dv_status_member **member, char out[DV_RULE_BYTES]) {
    const dv_status_member *found = NULL;
    bool waits = status->rules.any && status->member_count > 0 && !dv_status_rules_hold(status);
    for (size_t i = 0; waits && !found && i < status->member_count; i++) {
        const dv_status_member *m = &status->members[i];
        if (!m->follows || !m->can_balance) found = m;
    }
    if (member) *member = found;
    out[0] = '\0';
    if (found)
        snprintf(out, DV_RULE_BYTES, "the member " NAME " is %s", found->identifier,
                 found->kazoo     ? "kazoo's"
                 : found->follows ? "of an earlier release"
                                  : "of an earlier release, or has a rule of its own");
    else if (waits) snprintf(out, DV_RULE_BYTES, "they are in force with the next plan");
    return waits;
}

/* ---- one item ---- */

const char *dv_status_rules_why(const dv_status *status, const char *item, char out[DV_RULE_BYTES]) {
    const dv_pool_rules *rules = &status->rules;
    size_t number = rules->any ? dv_pool_rules_find(rules, item) : SIZE_MAX;
    bool asked = number != SIZE_MAX && dv_pool_rules_hold(rules, item);
    out[0] = '\0';
    return asked || (number != SIZE_MAX && status->in_force) ? dv_pool_rules_why(rules, number, out) : NULL;
}

bool dv_status_rules_is_paused(const dv_status *status, const dv_status_item *item) {
    return !item->head && !item->planned && dv_status_rules_hold(status) &&
           dv_pool_rules_find(&status->rules, item->name) != SIZE_MAX &&
           dv_wishes_find(status->rules.plan->wishes, DV_WISH_PAUSE, item->name);
}

/* ---- the whole pool ---- */

enum { NOTES_MAX = 8, SHOWN_MAX = 4 };

/* Sentences that an operator should know. */
typedef struct {
    size_t count;
    char text[NOTES_MAX][DV_RULE_BYTES];
} notes;

static const char *plural(size_t count) {
    return count == 1 ? "" : "s";
}

static char *next_note(notes *n) {
    return n->text[n->count++];
}

static void note_room(const dv_pool_rules *r, notes *n) {
    size_t items = r->plan->set->count - r->paused;
    if (!r->is_limited || r->room >= items) return;
    snprintf(next_note(n), DV_RULE_BYTES, "the caps of all members allow %" PRIu64 " items, and there are %zu", r->room,
             items);
}

static void note_faults(const dv_pool_rules *r, notes *n) {
    if (r->lost)
        snprintf(next_note(n), DV_RULE_BYTES,
                 "%zu item%s %s to a member that is not there; the first is " NAME ", which " NAME " is to have: %s",
                 r->lost_count, plural(r->lost_count), r->lost_count == 1 ? "is pinned" : "are pinned", r->lost->name,
                 dv_pool_rules_whom(r, r->lost),
                 dv_pool_rules_is_kept(r, r->lost) ? "the plan keeps it for that" : "others have it until then");
    if (r->tag)
        snprintf(next_note(n), DV_RULE_BYTES, "no member has the tag %s, which %zu item%s need%s; the first is " NAME,
                 r->tag, r->tag_count, plural(r->tag_count), r->tag_count == 1 ? "s" : "",
                 r->plan->set->names[r->tag_item]);
    note_room(r, n);
    if (r->heavy)
        snprintf(next_note(n), DV_RULE_BYTES,
                 "%zu item%s more than a fair share of the load; the most is " NAME " with %.0f %% of it", r->heavy,
                 r->heavy == 1 ? " is" : "s are", r->plan->set->names[r->heaviest], 100 * r->heaviest_part);
}

/* Writes how many wishes override tags and caps, and the first. */
static void note_overrides(const dv_pool_rules *r, notes *n) {
    char why[DV_RULE_BYTES], first[DV_RULE_BYTES];
    const dv_wish *wish = NULL;
    size_t count = 0;
    for (size_t i = 0; r->plan->wishes && i < r->plan->wishes->count; i++) {
        if (!dv_pool_rules_override(r, &r->plan->wishes->list[i], why)) continue;
        if (count++ > 0) continue;
        wish = &r->plan->wishes->list[i];
        memcpy(first, why, sizeof first);
    }
    if (wish)
        snprintf(next_note(n), DV_RULE_BYTES,
                 "%zu pin%s or move%s beat%s a tag or a cap; the first is of " NAME ": %.600s", count, plural(count),
                 plural(count), count == 1 ? "s" : "", wish->name, first);
}

static void make_notes(const dv_status *status, notes *n) {
    char why[DV_RULE_BYTES];
    n->count = 0;
    if (!status->rules.any || status->member_count == 0) return;
    if (dv_status_rules_wait(status, NULL, why))
        snprintf(next_note(n), DV_RULE_BYTES, "loads and operators' wishes wait: %.900s", why);
    note_faults(&status->rules, n);
    note_overrides(&status->rules, n);
}

/* Prints the options that an operator has set, and what items need. */
static void print_asked(const dv_status *status, FILE *to) {
    char asked[DV_RULE_BYTES], line[2 * DV_RULE_BYTES];
    const dv_wishes *wishes = status->rules.any ? status->rules.plan->wishes : NULL;
    size_t count = 0;
    for (size_t i = 0; wishes && i < wishes->count; i++) {
        const dv_wish *wish = &wishes->list[i];
        bool option = wish->kind == DV_WISH_OPTION;
        if ((!option && wish->kind != DV_WISH_NEED) || ++count > SHOWN_MAX) continue;
        dv_pool_rules_tell(&status->rules, wish, asked);
        snprintf(line, sizeof line, NAME "%s%.160s, %s", wish->name, option ? "=" : " needs the tag ", wish->value,
                 asked);
        char *readable = dv_text_readable(line);
        fprintf(to, "%s\n", readable ? readable : "?");
        free(readable);
    }
    if (count > SHOWN_MAX) fprintf(to, "%zu more options and needs: --json shows all\n", count - SHOWN_MAX);
}

void dv_status_rules_print(const dv_status *status, FILE *to) {
    notes n;
    print_asked(status, to);
    make_notes(status, &n);
    for (size_t i = 0; i < n.count; i++) {
        char *readable = dv_text_readable(n.text[i]);
        fprintf(to, "%s\n", readable ? readable : "?");
        free(readable);
    }
}

/* ---- JSON ---- */

static bool put_notes(cJSON *json, const dv_status *status) {
    notes n;
    make_notes(status, &n);
    cJSON *array = cJSON_AddArrayToObject(json, "notes");
    bool good = array;
    for (size_t i = 0; good && i < n.count; i++) {
        char *plain = dv_text_plain(n.text[i]);
        cJSON *note = plain ? cJSON_CreateString(plain) : NULL;
        good = note && cJSON_AddItemToArray(array, note);
        free(plain);
    }
    return good;
}

static bool put_wish(cJSON *array, const dv_pool_rules *r, const dv_wish *wish) {
    cJSON *json = dv_json_add_object(array);
    bool places = wish->kind == DV_WISH_PIN || wish->kind == DV_WISH_MOVE;
    return json && dv_json_text(json, "kind", dv_wish_kind_text(wish->kind)) &&
           dv_json_text(json, "name", wish->name) &&
           dv_json_text_or_null(json, "value", places ? dv_pool_rules_whom(r, wish) : wish->value) &&
           dv_json_text_or_null(json, "by", wish->by) && dv_json_number(json, "at_ms", wish->at_ms) &&
           dv_json_text_or_null(json, "why", wish->why);
}

bool dv_status_rules_json(cJSON *plan, const dv_status *status) {
    const dv_pool_rules *r = &status->rules;
    if (!r->any) return true;
    const dv_wishes *wishes = r->plan->wishes;
    cJSON *json = cJSON_AddObjectToObject(plan, "rules");
    bool good =
        json && dv_json_bool(json, "in_force", dv_status_rules_hold(status)) &&
        dv_json_number(json, "pinned", (int64_t)r->pinned) && dv_json_number(json, "moved", (int64_t)r->moved) &&
        dv_json_number(json, "paused", (int64_t)r->paused) && dv_json_number(json, "needs", (int64_t)r->needs) &&
        dv_json_text_or_null(json, "load_unit", r->plan->loads ? r->plan->loads->unit : NULL) &&
        put_notes(json, status);
    cJSON *array = good ? cJSON_AddArrayToObject(json, "wishes") : NULL;
    good = array;
    for (size_t i = 0; good && wishes && i < wishes->count; i++) good = put_wish(array, r, &wishes->list[i]);
    return good;
}

static bool put_tags(cJSON *json, const char *tags) {
    cJSON *array = cJSON_AddArrayToObject(json, "tags");
    bool good = array;
    for (const char *at = tags; good && *at; at += *at == ',') {
        char tag[DV_RULE_BYTES];
        size_t bytes = strcspn(at, ",");
        snprintf(tag, sizeof tag, "%.*s", (int)bytes, at);
        cJSON *text = cJSON_CreateString(tag);
        good = text && cJSON_AddItemToArray(array, text);
        at += bytes;
    }
    return good;
}

bool dv_status_rules_json_member(cJSON *member, const dv_status *status, const dv_status_entry *entry) {
    enum { DIGITS = 1000 };
    const dv_pool_rules *r = &status->rules;
    const dv_plan_member *m = entry->entry;
    bool good = true;
    if (r->shares) {
        double share = r->shares[m - r->plan->members];
        good = cJSON_AddNumberToObject(member, "share", (double)(int64_t)(share * DIGITS + 0.5) / DIGITS);
    }
    if (good && m->tags && *m->tags) good = put_tags(member, m->tags);
    return good && (m->cap == 0 || dv_json_number(member, "cap", m->cap));
}
