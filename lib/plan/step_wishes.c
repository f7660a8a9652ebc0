/* The step's part for what operators ask: docs/protocol.md, D48. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "divvy/error.h"
#include "plan/step_internal.h"
#include "znode/path.h"

/* ---- whom and what a wish names ---- */

/* Returns the index of an item of the plan, or SIZE_MAX. */
static size_t find_item(const dv_plan *plan, const char *name) {
    size_t low = 0, high = plan->set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, plan->set->names[middle]);
        if (order == 0) return middle;
        if (order > 0) low = middle + 1;
        else high = middle;
    }
    return SIZE_MAX;
}

static const dv_plan_member *find_key(const dv_plan *plan, const char *key) {
    const dv_plan_member *member = dv_plan_find(plan, false, key);
    return member != NULL ? member : dv_plan_find(plan, true, key);
}

/* P2: the identifier of a node's name follows its first '-'. */
static bool has_identifier(const dv_plan_member *m, const char *identifier) {
    const char *dash = m->is_static ? NULL : strchr(m->key, '-');
    return strcmp(dash != NULL ? dash + 1 : m->key, identifier) == 0;
}

/* Returns the member that a pinned item goes to: of several with the identifier its owner, else the first. NULL: none
 * is there. */
static const dv_plan_member *find_pinned(const dv_plan *plan, const char *identifier, uint32_t owner) {
    const dv_plan_member *found = NULL;
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        if (!dv_step_takes_part(m, false) || !has_identifier(m, identifier)) continue;
        if (found == NULL || m->slot == owner) found = m;
    }
    return found;
}

/* ---- wishes that come and go ---- */

static int change(dv_step *s, const dv_wish_event *event) {
    dv_wishes *wishes;
    int error = dv_wishes_change(&wishes, s->next->wishes, event);
    if (error != 0) return error;
    dv_wishes_unref(s->next->wishes);
    s->next->wishes = wishes;
    return 0;
}

/* A pause remembers who had the item. */
static int begin_pause(dv_step *s, dv_wish_event event) {
    const dv_plan *plan = s->next;
    size_t item = find_item(plan, event.wish.name);
    if (dv_wishes_find(plan->wishes, DV_WISH_PAUSE, event.wish.name) != NULL) return 0;
    uint32_t slot = item != SIZE_MAX ? plan->owners[item] : DV_PLAN_NO_SLOT;
    const dv_plan_member *owner = slot != DV_PLAN_NO_SLOT ? dv_plan_member_at(plan, slot) : NULL;
    event.wish.value = owner != NULL ? owner->key : "";
    return change(s, &event);
}

/* The item goes back to the member that had it, if that is still there. */
static int end_pause(dv_step *s, const dv_wish_event *event) {
    dv_plan *plan = s->next;
    const dv_wish *pause = dv_wishes_find(plan->wishes, DV_WISH_PAUSE, event->wish.name);
    size_t item = find_item(plan, event->wish.name);
    if (pause == NULL) return 0;
    const dv_plan_member *before = find_key(plan, pause->value);
    bool returns = item != SIZE_MAX && before != NULL && before->weight > 0 && dv_step_takes_part(before, false);
    if (returns && plan->owners[item] == DV_PLAN_NO_SLOT) plan->owners[item] = before->slot;
    return change(s, event);
}

static void tell_end(dv_plan *plan, const char *item) {
    char text[2 * DV_PLAN_TOLD_BYTES];
    snprintf(text, sizeof text, "the move of %.200s has ended with its member", item);
    dv_step_tell(plan, text);
}

/* Returns whether the member that the item is moved to stays in the pool. */
static bool has_target(const dv_plan *plan, const dv_wish *move) {
    const dv_plan_member *member = find_key(plan, move->value);
    return member != NULL && member->leaving[0] == '\0';
}

/* A move ends with its member, which the history tells. */
static int end_moves(dv_step *s) {
    dv_plan *plan = s->next;
    int error = 0;
    for (size_t i = 0; error == 0 && s->next->wishes != NULL && i < s->next->wishes->count;) {
        const dv_wish *wish = &s->next->wishes->list[i];
        if (wish->kind != DV_WISH_MOVE) break; /* They stand first. */
        if (has_target(plan, wish)) {
            i++;
            continue;
        }
        tell_end(plan, wish->name);
        error = change(s, &(dv_wish_event){.wish = *wish, .undo = true});
    }
    return error;
}

/* D48: a move to a member that has just gone does not come. D51 refuses it, so the item keeps its pin or move. */
static bool comes_too_late(const dv_step *s, const dv_wish_event *event) {
    return event->wish.kind == DV_WISH_MOVE && !event->undo && !has_target(s->next, &event->wish);
}

static int take(dv_step *s, const dv_wish_event *event) {
    if (event->wish.kind != DV_WISH_PAUSE) return change(s, event);
    return event->undo ? end_pause(s, event) : begin_pause(s, *event);
}

int dv_step_take_wishes(dv_step *s) {
    const dv_wishes *before = s->previous != NULL ? s->previous->wishes : NULL;
    int error = 0;
    for (size_t n = 0; error == 0 && n < s->events->wish_count; n++) {
        s->is_late = comes_too_late(s, &s->events->wishes[n]);
        if (!s->is_late) error = take(s, &s->events->wishes[n]);
    }
    if (error == 0) error = end_moves(s);
    if (error == 0 && !dv_wishes_equal(before, s->next->wishes)) dv_step_note(s, DV_PLAN_OPERATOR);
    return error;
}

void dv_step_tell(dv_plan *plan, const char *text) {
    size_t used = 0;
    uint32_t code_point;
    for (size_t bytes; *text != '\0'; text += bytes) {
        bytes = dv_utf8_read((const unsigned char *)text, &code_point);
        bool is_text = bytes > 0;
        if (!is_text) bytes = 1; /* An item may have any bytes. */
        if (used + bytes >= sizeof plan->told) break;
        memcpy(plan->told + used, is_text ? text : "?", bytes);
        used += bytes;
    }
    plan->told[used] = '\0';
}

/* ---- what is in force ---- */

bool dv_step_needs_balance(const dv_plan *plan) {
    bool needs = plan->loads != NULL || (plan->wishes != NULL && plan->wishes->count > 0);
    for (size_t n = 0; !needs && n < plan->member_count; n++) {
        needs = plan->members[n].cap != 0 || plan->members[n].tags[0] != '\0';
    }
    return needs;
}

void dv_step_choose_algorithm(dv_step *s) {
    dv_plan_header *h = &s->next->header;
    bool loads_come = s->events->loads != NULL;
    bool balanced = dv_plan_all_balance(s->party) && (loads_come || dv_step_needs_balance(s->next));
    if (balanced == h->is_balanced) return;
    h->is_balanced = balanced;
    if (!loads_come) dv_step_note(s, DV_PLAN_OPTIONS); /* Else whether the loads are worth a plan decides. */
}

static void pin(dv_plan *plan, const dv_wish *wish, uint8_t *holds) {
    size_t item = find_item(plan, wish->name);
    if (item == SIZE_MAX || holds[item] != DV_ITEM_DEALT) return;
    const dv_plan_member *member =
        wish->kind == DV_WISH_MOVE ? find_key(plan, wish->value) : find_pinned(plan, wish->value, plan->owners[item]);
    if (member == NULL || !dv_step_takes_part(member, false)) return; /* The wish waits for it. */
    plan->owners[item] = member->slot;
    holds[item] = DV_ITEM_PINNED;
}

void dv_step_place(dv_plan *plan, uint8_t *holds) {
    const dv_wishes *wishes = plan->wishes;
    for (size_t i = 0; wishes != NULL && i < wishes->count; i++) {
        if (wishes->list[i].kind != DV_WISH_PAUSE) continue;
        size_t item = find_item(plan, wishes->list[i].name);
        if (item == SIZE_MAX) continue;
        plan->owners[item] = DV_PLAN_NO_SLOT;
        holds[item] = DV_ITEM_PAUSED;
    }
    for (size_t i = 0; wishes != NULL && i < wishes->count; i++) {
        dv_wish_kind kind = wishes->list[i].kind;
        if (kind == DV_WISH_MOVE || kind == DV_WISH_PIN) pin(plan, &wishes->list[i], holds);
    }
}
