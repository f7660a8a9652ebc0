/* Waiting until items are where an operator's request wants them, in rounds too. SPDX-License-Identifier: Apache-2.0 */
#include "operator_wait.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "operator_rounds.h"
#include "pool/changes.h"
#include "pool/whom.h"

int dv_operator_wait_init(dv_operator_wait *w, dv_look *look, const dv_operator_options *options) {
    *w = (dv_operator_wait){.options = options, .look = look};
    return dv_held_wait_init(&w->held, look, options->path);
}

void dv_operator_wait_free(dv_operator_wait *w) {
    dv_held_wait_free(&w->held);
    dv_plan_free(w->before);
    free(w->kept);
}

/* ---- the items ---- */

static bool begins_so(const char *item, const char *prefix) {
    size_t bytes = strlen(prefix);
    return prefix[bytes - 1] == '*' && strncmp(item, prefix, bytes - 1) == 0;
}

/* Returns whether a request is about an item: by its name, or as the member of the request has it. */
static bool is_about(const dv_errand *e, size_t item) {
    const dv_errand_result *r = &e->result;
    const dv_plan *plan = r->after;
    if (e->ask.kind == DV_ASK_OPTION || e->ask.kind == DV_ASK_FORGET) return false;
    if (e->ask.kind == DV_ASK_WEIGHT) {
        const dv_plan_member *m = dv_plan_find(plan, r->is_static, r->key);
        return m && plan->owners[item] == m->slot;
    }
    const char *name = plan->set->names[item];
    return strcmp(name, e->ask.name) == 0 || begins_so(name, e->ask.name);
}

/* Adds what has moved from one plan to another, and what the errand is about; NULL: it is about nothing. */
static int add_items(dv_held_wait *held, const dv_plan *before, const dv_plan *after, const dv_errand *e) {
    size_t count;
    dv_change *changes = dv_changes_list(before, after, &count);
    int error = changes ? 0 : DIVVY_ENOMEM;
    for (size_t i = 0, c = 0; !error && i < after->set->count; i++) {
        bool moves = c < count && changes[c].item == i;
        c += moves;
        if (moves || (e && is_about(e, i))) error = dv_held_wait_add(held, after->set->names[i]);
    }
    free(changes);
    return error;
}

/* Notes the first item that the errand is about and that waits for an absent member. */
static int note_kept(dv_operator_wait *w, const dv_errand *e) {
    const dv_plan *plan = e->result.after;
    for (size_t i = 0; !w->kept && i < plan->set->count; i++) {
        const dv_plan_member *owner = dv_plan_member_at(plan, plan->owners[i]);
        if (!owner || owner->absent == 0 || !is_about(e, i)) continue;
        const char *item = plan->set->names[i], *member = dv_whom_identifier(owner);
        if (asprintf(&w->kept, "%s is kept for %s, which is absent", item, member) >= 0) continue;
        w->kept = NULL;
        return DIVVY_ENOMEM;
    }
    return 0;
}

int dv_operator_wait_note(dv_operator_wait *w, const dv_errand *e) {
    if (note_kept(w, e) != 0) return DIVVY_ENOMEM;
    if (!w->before) w->before = dv_plan_copy(e->result.before);
    return w->before ? add_items(&w->held, e->result.before, e->result.after, e) : DIVVY_ENOMEM;
}

/* ---- rounds ---- */

/* Looks whether the plan has further rounds. Where it has none, all that it has moved is waited for. Returns the exit
 * code. */
static int check_rounds(dv_operator_wait *w, const dv_ask *again) {
    dv_ask ask = *again;
    dv_errand *errand = NULL;
    dv_outcome outcome = {.plan = NULL};
    dv_operator_sign(&ask, w->options, w->by);
    ask.dry_run = true;
    int code = dv_asking_run(&errand, w->look, &w->options->look, w->options->path, &ask);
    if (code) return code;
    int error = dv_outcome_make(&outcome, errand);
    if (!error && !dv_outcome_has_rounds(&outcome, errand)) {
        w->checked = errand->result.after->header.generation;
        error = add_items(&w->held, w->before, errand->result.after, NULL);
    }
    dv_outcome_clear(&outcome);
    dv_asking_drop(errand, w->look);
    return error ? dv_command_out_of_memory() : 0;
}

/* Returns whether all is done, by the last look. */
static bool is_over(const dv_operator_wait *w) {
    const dv_plan_header *plan = &w->held.plan.memory.plan->header;
    return w->held.item_count == 0 && (plan->options.max_moves == 0 || w->checked == plan->generation);
}

static int tell_late(const dv_operator_wait *w) {
    const dv_held_wait *held = &w->held;
    int64_t limit_ms = w->options->wait_timeout_ms;
    if (held->item_count == 0) dv_command_say("the plan still moves items in rounds after %" PRId64 " ms", limit_ms);
    else if (held->item_count == 1)
        dv_command_say("%s is not where the plan wants it within %" PRId64 " ms", held->items[0], limit_ms);
    else
        dv_command_say("%zu items are not where the plan wants them within %" PRId64 " ms", held->item_count, limit_ms);
    return DV_EXIT_TIMED_OUT;
}

int dv_operator_check_weight(const dv_errand *e, const dv_plan *plan) {
    const dv_errand_result *r = &e->result;
    const dv_plan_member *m = dv_plan_find(plan, r->is_static, r->key);
    if (!m || m->weight == r->weight || plan->header.generation <= r->after->header.generation) return 0;
    return dv_command_failed("somebody has given %s the weight %" PRIu32, e->ask.name, m->weight);
}

/* Looks likewise, for a wait in which the member has to be there. */
static int check_member(const dv_errand *e, const dv_plan *plan) {
    const dv_errand_result *r = &e->result;
    const dv_plan_member *m = dv_plan_find(plan, r->is_static, r->key);
    bool later = plan->header.generation > r->after->header.generation;
    if (later && (!m || m->leaving[0]))
        return dv_command_failed("%s leaves the pool, so there is nothing to wait for", e->ask.name);
    return dv_operator_check_weight(e, plan);
}

int dv_operator_wait_run(dv_operator_wait *w, const dv_ask *again) {
    int64_t limit_ms = w->options->wait_timeout_ms, until_ms = dv_session_now_ms() + limit_ms;
    if (w->kept) return dv_command_failed("%s, so it is not waited for", w->kept);
    for (;;) {
        int error = dv_look_at(w->look, dv_held_wait_look, &w->held);
        if (error && !dv_look_may_recover(error)) return dv_look_failed(w->look, error);
        bool known = !error && dv_held_wait_known(&w->held);
        int code = known && w->weighed ? check_member(w->weighed, w->held.plan.memory.plan) : 0;
        if (code) return code;
        if (known && is_over(w)) return 0;
        if (limit_ms > 0 && dv_session_now_ms() >= until_ms) return tell_late(w);
        if (known && w->held.item_count == 0) code = check_rounds(w, again);
        if (code) return code;
        dv_look_pause(w->look, DV_OPERATOR_BETWEEN_LOOKS_MS, NULL);
    }
}
