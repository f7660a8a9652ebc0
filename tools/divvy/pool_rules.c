/* The rules of a pool: loads, tags, caps, and operators' wishes. SPDX-License-Identifier: Apache-2.0 */
#include "pool_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "look.h"
#include "plan/table.h"
#include "plan/tags.h"
#include "pool/whom.h"
#include "pool/wishes.h"
#include "shell_word.h"
#include "status_plan.h"

/* A name as it stands in a sentence. */
#define NAME "%.160s"

/* ---- members ---- */

static bool is_there(const dv_plan_member *m) {
    return m->leaving[0] == '\0' && m->absent == 0;
}

/* Returns whether it is there, or the plan keeps its place. */
static bool may_return(const dv_plan_member *m) {
    return m->leaving[0] == '\0' && (m->absent == 0 || (m->is_static && m->rejoin_delay_ms > 0));
}

/* Returns the member with a key, static or not, or NULL. */
static const dv_plan_member *find_key(const dv_plan *plan, const char *key) {
    const dv_plan_member *found = dv_plan_find(plan, false, key);
    return found ? found : dv_plan_find(plan, true, key);
}

const char *dv_pool_rules_whom(const dv_pool_rules *r, const dv_wish *wish) {
    const dv_plan_member *m = wish->kind == DV_WISH_MOVE ? find_key(r->plan, wish->value) : NULL;
    return m ? dv_whom_identifier(m) : wish->value;
}

bool dv_pool_rules_can_hold(const dv_pool_rules *r, const dv_wish *wish) {
    const dv_plan *plan = r->plan;
    const dv_plan_member *keyed = wish->kind == DV_WISH_MOVE ? find_key(plan, wish->value) : NULL;
    if (wish->kind == DV_WISH_MOVE) return keyed && is_there(keyed);
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        if (is_there(m) && strcmp(dv_whom_identifier(m), wish->value) == 0) return true;
    }
    return false;
}

/* ---- counting ---- */

size_t dv_pool_rules_find(const dv_pool_rules *r, const char *item) {
    return dv_pool_item(r->plan, item);
}

const dv_wish *dv_pool_rules_hold(const dv_pool_rules *r, const char *item) {
    static const dv_wish_kind kinds[] = {DV_WISH_PAUSE, DV_WISH_PIN, DV_WISH_MOVE};
    const dv_wish *found = NULL;
    for (size_t k = 0; !found && r->any && k < sizeof kinds / sizeof *kinds; k++)
        found = dv_wishes_find(r->plan->wishes, kinds[k], item);
    return found;
}

const dv_wish *dv_pool_rules_need(const dv_pool_rules *r, const char *item) {
    const dv_wishes *wishes = r->plan->wishes;
    const dv_wish *exact = dv_wishes_find(wishes, DV_WISH_NEED, item), *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; !exact && wishes && i < wishes->count; i++) {
        const dv_wish *wish = &wishes->list[i];
        size_t bytes = strlen(wish->name);
        bool fits = wish->kind == DV_WISH_NEED && wish->name[bytes - 1] == '*' && bytes > longest &&
                    strncmp(wish->name, item, bytes - 1) == 0;
        if (!fits) continue;
        longest = bytes;
        found = wish;
    }
    return exact ? exact : found;
}

void dv_pool_rules_tell_undo(const dv_wish *need, const char *path, char out[DV_RULE_BYTES]) {
    char pool[DV_SHELL_WORD_BYTES], name[DV_SHELL_WORD_BYTES];
    snprintf(out, DV_RULE_BYTES, "divvy need --path %s --undo %s", dv_shell_word(pool, "PATH", "%s", path),
             dv_shell_operand(name, "ITEM", need->name));
}

static bool has_any(const dv_plan *plan) {
    bool any = plan->loads || (plan->wishes && plan->wishes->count > 0);
    for (size_t n = 0; !any && n < plan->member_count; n++) any = plan->members[n].cap != 0 || *plan->members[n].tags;
    return any;
}

static void count_wishes(dv_pool_rules *r) {
    const dv_wishes *wishes = r->plan->wishes;
    for (size_t i = 0; wishes && i < wishes->count; i++) {
        const dv_wish *wish = &wishes->list[i];
        bool places = wish->kind == DV_WISH_PIN || wish->kind == DV_WISH_MOVE;
        r->needs += wish->kind == DV_WISH_NEED;
        if ((!places && wish->kind != DV_WISH_PAUSE) || dv_pool_rules_find(r, wish->name) == SIZE_MAX) continue;
        r->pinned += wish->kind == DV_WISH_PIN;
        r->moved += wish->kind == DV_WISH_MOVE;
        r->paused += wish->kind == DV_WISH_PAUSE;
        if (!places || dv_pool_rules_can_hold(r, wish)) continue;
        if (r->lost_count++ == 0) r->lost = wish;
    }
}

static void count_owned(dv_pool_rules *r) {
    for (size_t i = 0; i < r->plan->set->count; i++) {
        const dv_plan_member *owner = dv_plan_member_at(r->plan, r->plan->owners[i]);
        if (owner) r->counts[owner - r->plan->members]++;
    }
}

static void add_room(dv_pool_rules *r) {
    size_t takers = 0, capped = 0;
    for (size_t n = 0; n < r->plan->member_count; n++) {
        const dv_plan_member *m = &r->plan->members[n];
        if (!is_there(m) || m->weight == 0) continue;
        takers++;
        capped += m->cap != 0;
        r->room += m->cap;
    }
    r->is_limited = takers > 0 && capped == takers;
}

static bool has_member_with(const dv_plan *plan, const char *tag) {
    bool found = false;
    for (size_t n = 0; !found && n < plan->member_count; n++)
        found = may_return(&plan->members[n]) && dv_tags_has(plan->members[n].tags, tag);
    return found;
}

/* Looks for a tag that no member has; of several for the one that the first item needs. */
static void find_tag(dv_pool_rules *r) {
    const dv_plan *plan = r->plan;
    const char *good = NULL;
    for (size_t i = 0; dv_wishes_need_tags(plan->wishes) && i < plan->set->count; i++) {
        const char *tag = dv_wishes_tag(plan->wishes, plan->set->names[i]);
        if (!tag || (good && strcmp(tag, good) == 0)) continue;
        if (r->tag && strcmp(tag, r->tag) == 0) r->tag_count++;
        else if (has_member_with(plan, tag)) good = tag;
        else if (!r->tag) {
            r->tag = tag;
            r->tag_item = i;
            r->tag_count = 1;
        }
    }
}

/* ---- loads ---- */

/* Returns the fair share (A10) of members with a weight, of what is not paused; 0 where there is none, below 0 when an
 * allocation fails. */
static double fair_share(const dv_plan *plan) {
    size_t members = 0, items = 0;
    dv_balance_member *m = calloc(plan->member_count + 1, sizeof *m);
    dv_balance_item *i = calloc(plan->set->count + 1, sizeof *i);
    double *levels = calloc(plan->member_count + 1, sizeof *levels);
    bool complete = m && i && levels;
    for (size_t n = 0; complete && n < plan->member_count; n++) {
        const dv_plan_member *own = &plan->members[n];
        if (!is_there(own) || own->weight == 0) continue;
        m[members++] = (dv_balance_member){.identifier = own->key, .zone = "", .weight = own->weight};
    }
    for (size_t n = 0; complete && n < plan->set->count; n++) {
        const char *name = plan->set->names[n];
        if (dv_wishes_find(plan->wishes, DV_WISH_PAUSE, name)) continue;
        i[items++] = (dv_balance_item){
            .name = name, .size = dv_class_size(plan->loads->classes[n]), .owner = UINT32_MAX, .tag = DV_NO_TAG};
    }
    double fair = !complete ? -1 : members > 0 ? dv_balance_loads(m, members, i, items, levels) : 0;
    free(m);
    free(i);
    free(levels);
    return fair;
}

/* Adds up the loads that are known. Returns how many these are. */
static size_t add_loads(dv_pool_rules *r) {
    const dv_plan *plan = r->plan;
    size_t known = 0;
    for (size_t i = 0; i < plan->set->count; i++) {
        if (plan->loads->classes[i] == DV_CLASS_NONE) continue;
        known++;
        r->all_load += dv_class_size(plan->loads->classes[i]);
    }
    return known;
}

bool dv_pool_rules_load(const dv_pool_rules *r, size_t item, double *load, double *part) {
    const dv_loads *loads = r->plan ? r->plan->loads : NULL;
    if (!loads || loads->classes[item] == DV_CLASS_NONE) return false;
    *load = dv_class_size(loads->classes[item]);
    *part = r->all_load > 0 ? *load / r->all_load : 0;
    return true;
}

static int weigh(dv_pool_rules *r) {
    const dv_plan *plan = r->plan;
    if (add_loads(r) == 0) return 0; /* All would count alike. */
    double fair = fair_share(plan), load, part;
    r->shares = dv_plan_shares(plan);
    if (!r->shares || fair < 0) return DIVVY_ENOMEM;
    for (size_t i = 0; fair > 0 && i < plan->set->count; i++) {
        if (!dv_pool_rules_load(r, i, &load, &part) || !(load > fair)) continue;
        if (dv_wishes_find(plan->wishes, DV_WISH_PAUSE, plan->set->names[i])) continue;
        r->heavy++;
        if (part <= r->heaviest_part) continue;
        r->heaviest = i;
        r->heaviest_part = part;
    }
    return 0;
}

/* ---- the whole ---- */

int dv_pool_rules_make(dv_pool_rules *out, const dv_plan *plan) {
    *out = (dv_pool_rules){.plan = plan};
    if (!plan || !has_any(plan)) return 0;
    out->any = true;
    out->counts = calloc(plan->member_count + 1, sizeof *out->counts);
    if (!out->counts) return DIVVY_ENOMEM;
    count_owned(out);
    count_wishes(out);
    add_room(out);
    find_tag(out);
    return plan->loads ? weigh(out) : 0;
}

void dv_pool_rules_clear(dv_pool_rules *rules) {
    free(rules->counts);
    free(rules->shares);
    *rules = (dv_pool_rules){.plan = NULL};
}

/* ---- words ---- */

void dv_pool_rules_tell(const dv_pool_rules *r, const dv_wish *wish, char out[DV_RULE_BYTES]) {
    static const char *const verbs[DV_WISH_KINDS] = {"moved", "asked for", "set", "paused", "pinned"};
    char since[DV_UTC_BYTES];
    bool places = wish->kind == DV_WISH_PIN || wish->kind == DV_WISH_MOVE, dated = *dv_look_utc(wish->at_ms, since);
    snprintf(out, DV_RULE_BYTES, "%s%s" NAME "%s%s%s%s%s%s", verbs[wish->kind], places ? " to " : "",
             places ? dv_pool_rules_whom(r, wish) : "", *wish->by ? " by " : "", wish->by, dated ? " since " : "",
             since, *wish->why ? ": " : "", wish->why);
}

/* Members that could take an item. */
typedef struct {
    size_t count, free; /* of these are below their caps */
    bool has;           /* some member has the tag, be it drained or away */
} takers;

/* Counts the members for an item that needs a tag; NULL: none. */
static takers find_takers(const dv_pool_rules *r, const char *tag) {
    takers t = {0};
    for (size_t n = 0; n < r->plan->member_count; n++) {
        const dv_plan_member *m = &r->plan->members[n];
        if (!may_return(m) || (tag && !dv_tags_has(m->tags, tag))) continue;
        t.has = true;
        if (!is_there(m) || m->weight == 0) continue;
        t.count++;
        t.free += m->cap == 0 || r->counts[n] < m->cap;
    }
    return t;
}

const char *dv_pool_rules_why_nobody(const dv_pool_rules *r, size_t item, char out[DV_RULE_BYTES]) {
    out[0] = '\0';
    if (!r->any || !r->plan->header.is_balanced || r->plan->owners[item] != DV_PLAN_NO_SLOT) return NULL;
    const char *name = r->plan->set->names[item];
    const dv_wish *pause = dv_wishes_find(r->plan->wishes, DV_WISH_PAUSE, name);
    if (pause) {
        dv_pool_rules_tell(r, pause, out);
        return "paused";
    }
    const char *tag = dv_wishes_tag(r->plan->wishes, name);
    takers t = find_takers(r, tag);
    if (tag && !t.has) snprintf(out, DV_RULE_BYTES, "no member has the tag %s", tag);
    else if (tag && t.count == 0) snprintf(out, DV_RULE_BYTES, "all members with the tag %s are drained or away", tag);
    else if (tag && t.free == 0) snprintf(out, DV_RULE_BYTES, "all members with the tag %s are at their cap", tag);
    else if (!tag && t.count > 0 && t.free == 0) snprintf(out, DV_RULE_BYTES, "all members are at their cap");
    return *out == '\0' ? NULL : tag && (!t.has || t.count == 0) ? "tag" : "cap";
}

const char *dv_pool_rules_why(const dv_pool_rules *r, size_t item, char out[DV_RULE_BYTES]) {
    static const char *const words[DV_WISH_KINDS] = {"moved", "tag", "set", "paused", "pinned"};
    const dv_wish *hold = r->any ? dv_pool_rules_hold(r, r->plan->set->names[item]) : NULL;
    if (!hold) return dv_pool_rules_why_nobody(r, item, out);
    dv_pool_rules_tell(r, hold, out);
    return words[hold->kind];
}

/* Returns the member to which the plan gives an item, if it is the one of a pin or a move. */
static const dv_plan_member *held_by(const dv_pool_rules *r, const dv_wish *wish) {
    const dv_plan_member *owner = dv_status_plan_owner(r->plan, wish->name);
    bool places = wish->kind == DV_WISH_PIN || wish->kind == DV_WISH_MOVE;
    bool is_its = owner && places && strcmp(dv_whom_identifier(owner), dv_pool_rules_whom(r, wish)) == 0;
    return is_its ? owner : NULL;
}

bool dv_pool_rules_is_kept(const dv_pool_rules *r, const dv_wish *wish) {
    const dv_plan_member *owner = held_by(r, wish);
    return owner && !is_there(owner);
}

bool dv_pool_rules_override(const dv_pool_rules *r, const dv_wish *wish, char out[DV_RULE_BYTES]) {
    const dv_plan_member *owner = held_by(r, wish);
    const char *tag = dv_wishes_tag(r->plan->wishes, wish->name);
    out[0] = '\0';
    if (!owner || !r->plan->header.is_balanced) return false;
    const char *name = dv_whom_identifier(owner);
    uint32_t count = r->counts[owner - r->plan->members];
    if (tag && !dv_tags_has(owner->tags, tag))
        snprintf(out, DV_RULE_BYTES, "that overrides the tag %.200s, which " NAME " does not have", tag, name);
    else if (owner->cap && count > owner->cap)
        snprintf(out, DV_RULE_BYTES,
                 "that overrides the cap of " NAME ", which has %" PRIu32 " items and takes %" PRIu32, name, count,
                 owner->cap);
    return *out != '\0';
}

/* Returns whom the rules give an item; NULL: nobody, or there are none in force. */
static const dv_plan_member *owner_by_rules(const dv_pool_rules *r, size_t item) {
    bool in_force = r->any && r->plan->header.is_balanced;
    return in_force ? dv_plan_member_at(r->plan, r->plan->owners[item]) : NULL;
}

bool dv_pool_rules_waits_for_round(const dv_pool_rules *r, size_t item) {
    const dv_plan_member *owner = owner_by_rules(r, item);
    const char *name = r->plan->set->names[item], *tag = dv_wishes_tag(r->plan->wishes, name);
    const dv_wish *hold = owner ? dv_pool_rules_hold(r, name) : NULL;
    if (!owner || (hold && held_by(r, hold))) return false;
    if (hold && hold->kind != DV_WISH_PAUSE && dv_pool_rules_can_hold(r, hold)) return true;
    return (hold && hold->kind == DV_WISH_PAUSE) || (is_there(owner) && tag && !dv_tags_has(owner->tags, tag));
}

static int by_number(const void *left, const void *right) {
    const uint32_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* Returns the member that gave the item away in the last step by load. */
static const dv_load_giver *find_giver(const dv_plan *plan, size_t item) {
    uint32_t number = (uint32_t)item;
    for (size_t n = 0; plan->loads && n < plan->loads->giver_count; n++) {
        const dv_load_giver *giver = &plan->loads->givers[n];
        if (giver->count > 0 && bsearch(&number, giver->items, giver->count, sizeof number, by_number)) return giver;
    }
    return NULL;
}

/* Writes which tag an item needs, who asked for it, and whether its owner has it. */
static void tell_tag(const dv_pool_rules *r, size_t item, const dv_plan_member *owner, char out[DV_RULE_BYTES]) {
    char asked[DV_RULE_BYTES];
    const dv_wish *need = dv_pool_rules_need(r, r->plan->set->names[item]);
    dv_pool_rules_tell(r, need, asked);
    bool has = dv_tags_has(owner->tags, need->value);
    snprintf(out, DV_RULE_BYTES, "it needs the tag %.200s (%.600s)%s" NAME "%s", need->value, asked,
             has ? "" : ", and ", has ? "" : dv_whom_identifier(owner), has ? "" : " does not have it");
}

const char *dv_pool_rules_why_there(const dv_pool_rules *r, size_t item, char out[DV_RULE_BYTES]) {
    out[0] = '\0';
    const dv_plan_member *owner = owner_by_rules(r, item);
    if (!owner) return NULL;
    const char *name = dv_whom_identifier(owner), *tag = dv_wishes_tag(r->plan->wishes, r->plan->set->names[item]);
    const dv_load_giver *giver = find_giver(r->plan, item);
    if (giver && strcmp(giver->from, name) != 0) {
        snprintf(out, DV_RULE_BYTES, "moved for load: " NAME " was at %.2f of its share", giver->from,
                 (double)giver->permille / 1000);
        return "load";
    }
    if (tag) tell_tag(r, item, owner, out);
    return tag ? "tag" : NULL;
}
