/* The reason why an item waits. SPDX-License-Identifier: Apache-2.0 */
#include "explain_judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pool/whom.h"
#include "shell_word.h"
#include "status_plan.h"
#include "status_rules.h"
#include "table.h"

/* A name as it stands in a sentence. */
#define NAME "%.160s"

enum { FATE_BYTES = 96 };

static const char not_there[] = "that member is not there", waits_for_round[] = "it waits for a round";

__attribute__((format(printf, 2, 3))) static void say(char *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out, DV_EXPLAIN_BYTES, format, arguments);
    va_end(arguments);
}

static const char *age(const dv_explanation *e, int64_t since_ms, char out[DV_AGE_BYTES]) {
    return dv_age_text(e->status->read_at_ms - since_ms, out);
}

/* ---- where no plan decides ---- */

static void judge_by_names(const dv_explanation *e, dv_explain_verdict *v) {
    const dv_status *status = e->status;
    const dv_explain_place *owner = e->place_count ? &e->places[0] : NULL;
    v->state = owner ? "by_names" : "unowned";
    for (size_t i = 0; i < status->member_count; i++) {
        const dv_status_member *m = &status->members[i];
        if (m->follows) continue;
        say(v->now, "no plan decides, since " NAME " follows none (%s): members deal the items out by names",
            m->identifier, m->kazoo ? "it is kazoo's" : "its release, mode or --assign");
        break;
    }
    if (status->member_count == 0) say(v->now, "nobody is in the pool");
    else if (!*v->now && status->plan && status->plan->memory.standing == DV_PLAN_MISSING)
        say(v->now,
            "there is no plan yet: members write the first one when enough of them are there (--min-members), and "
            "have settled");
    else if (!*v->now) say(v->now, "there is no plan that can be followed: members deal the items out by names");
    if (status->member_count == 0) say(v->next, "the member that joins first gets it");
    else if (!owner) say(v->next, "it is owned when the party has not changed for the members' time boundary");
}

/* ---- where one does ---- */

/* A node without a session: some tool has put it there, as from a backup. zkCli.sh is called without a chroot. */
static void judge_persistent(const dv_explanation *e, const dv_explain_place *owner, dv_explain_verdict *v) {
    char word[DV_SHELL_WORD_BYTES];
    v->state = "stranger";
    say(v->now,
        "a persistent node stands first in the queue; no member makes such nodes, and nobody works on the item");
    say(v->next, "it goes only when somebody deletes it: zkCli.sh delete %s",
        dv_shell_word(word, "PATH", "%s/%s", e->queue, owner->node));
}

static void judge_stranger(const dv_explanation *e, const dv_explain_place *owner, dv_explain_verdict *v) {
    if (owner->session == 0) {
        judge_persistent(e, owner, v);
        return;
    }
    v->state = "stranger";
    say(v->now, NAME " stands first in the queue, and is not in the party: it has left, or has lost its session",
        owner->name);
    say(v->next, "its place goes when session 0x%" PRIx64 " ends", (uint64_t)owner->session);
}

/* A plan without those that have gone is written within this time. */
enum { LATELY_MS = 60000 };

/* Writes how a member went that is not there, to stand behind its name. */
static const char *fate(const dv_explanation *e, const char *name, int64_t kept_ms, const char *otherwise,
                        char out[FATE_BYTES]) {
    char since[DV_AGE_BYTES], seen[DV_AGE_BYTES];
    const dv_plan_death *death = dv_plan_deaths_of(&e->deaths, name);
    bool lately = death && e->status->read_at_ms - death->at_ms <= kept_ms + LATELY_MS;
    if (!lately) return otherwise;
    snprintf(out, FATE_BYTES, "died %s ago (its session ended %s later)", age(e, death->at_ms, since),
             dv_duration_text(death->seen_ms, seen));
    return out;
}

/* The item waits for a member with its tag. */
static void tell_need(const dv_explanation *e, const char *item, dv_explain_verdict *v) {
    char undo[DV_RULE_BYTES];
    dv_pool_rules_tell_undo(dv_pool_rules_need(&e->status->rules, item), e->status->path, undo);
    say(v->next, "a member that comes with the tag gets it; or let it need none: %s", undo);
}

/* The plan gives it to nobody. */
static void judge_unassigned(const dv_explanation *e, dv_explain_verdict *v) {
    char pool[DV_SHELL_WORD_BYTES], word[DV_SHELL_WORD_BYTES];
    const char *item = e->item->name;
    bool paused = v->rule && strcmp(v->rule, "paused") == 0;
    v->state = paused ? "paused" : "unassigned";
    say(v->now, "%s%s",
        v->rule ? "" : "the plan gives it to nobody: ", v->rule ? v->why : "all members are drained, or leave");
    if (paused)
        say(v->next, "when somebody resumes it, it goes back where it was: divvy resume --path %s %s",
            dv_shell_word(pool, "PATH", "%s", e->status->path), dv_shell_operand(word, "ITEM", item));
    else if (v->rule && strcmp(v->rule, "tag") == 0) tell_need(e, item, v);
    else if (v->rule) say(v->next, "a member that joins, or comes with a higher --cap, gets it");
    else say(v->next, "the plan that follows the next change of the members");
}

/* The plan gives it to one that is not there, or to nobody. */
static void judge_without_next(const dv_explanation *e, const dv_status_entry *next, dv_explain_verdict *v) {
    char kept[DV_AGE_BYTES], how[FATE_BYTES], pool[DV_SHELL_WORD_BYTES], word[DV_SHELL_WORD_BYTES];
    if (!next) {
        judge_unassigned(e, v);
        return;
    }
    v->state = dv_status_plan_state(next->entry, NULL);
    if (strcmp(v->state, "absent") == 0) {
        const char *name = dv_whom_identifier(next->entry);
        say(v->now, "it is kept for " NAME ", which %s", name,
            fate(e, name, next->entry->rejoin_delay_ms, "is not there", how));
        say(v->next,
            "it is " NAME
            "'s when that comes back, and goes to another when it is away for longer than %s; or at once: "
            "divvy forget --path %s %s",
            name, dv_age_text(next->entry->rejoin_delay_ms, kept), dv_shell_word(pool, "PATH", "%s", e->status->path),
            dv_shell_operand(word, "MEMBER", name));
    } else {
        const char *name = dv_whom_identifier(next->entry);
        say(v->now, NAME ", to which the plan gives it, %s", name, fate(e, name, 0, "has gone", how));
        say(v->next, "the next plan, which is on its way, gives it to another");
    }
}

/* The owner is one, and the plan gives it to another, which is there. */
static void judge_move(const dv_explanation *e, const dv_explain_place *owner, const dv_status_member *next,
                       dv_explain_verdict *v) {
    char since[DV_AGE_BYTES];
    bool handover = e->of_owner.there && e->of_next.there;
    if (handover && !e->of_next.ready) {
        v->state = "preparing";
        say(v->now, NAME " works on it until " NAME " is ready for it", owner->name, next->identifier);
        say(v->next,
            "when " NAME " says that it has prepared, or its --prepare-timeout is over, or the --handover-timeout of "
            "the owner, the owner is asked to release it",
            next->identifier);
        return;
    }
    v->state = "releasing";
    age(e, handover ? e->of_next.written_ms : e->planned_ms, since);
    say(v->now, NAME " was asked to release it at least %s ago, and has not", owner->name, since);
    say(v->next,
        NAME " owns it as soon as " NAME " has released it; if it does not, see what its program or command does",
        next->identifier, owner->name);
}

/* Returns for what an operator's wish for the item waits, "" where it does not. */
static const char *waits_for(const dv_explanation *e, const dv_status_item *item, char out[DV_RULE_BYTES]) {
    const dv_pool_rules *rules = &e->status->rules;
    const dv_wish *hold = dv_pool_rules_hold(rules, item->name);
    const char *owner = item->planned ? dv_whom_identifier(item->planned->entry) : "";
    size_t number = rules->any ? dv_pool_rules_find(rules, item->name) : SIZE_MAX;
    if (dv_status_rules_wait(e->status, NULL, out)) return out;
    if (number != SIZE_MAX && dv_pool_rules_waits_for_round(rules, number)) return waits_for_round;
    if (!hold || hold->kind == DV_WISH_PAUSE || strcmp(dv_pool_rules_whom(rules, hold), owner) == 0) return "";
    return not_there;
}

static void judge_by_plan(const dv_explanation *e, const dv_status_item *item, dv_explain_verdict *v) {
    char since[DV_AGE_BYTES], why[DV_RULE_BYTES];
    const dv_explain_place *owner = e->place_count ? &e->places[0] : NULL;
    const dv_status_entry *next = item->planned;
    if (!e->is_planned && owner) {
        v->state = "removed";
        say(v->now, "the pool's items are without it since the plan of %s ago, and " NAME " has not released it yet",
            age(e, e->planned_ms, since), owner->name);
    } else if (!e->is_planned) {
        v->state = "unknown";
        say(v->now, "it is none of the pool's items");
    } else if (owner && owner->member == DV_NO_MEMBER) {
        judge_stranger(e, owner, v);
    } else if (!next || next->member == DV_NO_MEMBER) {
        judge_without_next(e, next, v);
    } else if (owner && owner->member == next->member) {
        v->state = "settled";
        bool obeys = v->rule && !*waits_for(e, item, why);
        bool round = strcmp(waits_for(e, item, why), waits_for_round) == 0;
        say(v->now, "it is where the plan %s it%s%s", round ? "leaves" : "wants", obeys ? ": " : "",
            obeys ? v->why : "");
    } else if (owner) {
        judge_move(e, owner, &e->status->members[next->member], v);
    } else {
        v->state = "taking";
        say(v->now, "nobody owns it, and " NAME ", to which the plan of %s ago gives it, has not asked for it",
            e->status->members[next->member].identifier, age(e, e->planned_ms, since));
        say(v->next, "it does so when it has read the plan, and has prepared; if it does not, see whether it hangs");
    }
}

/* Finds out why the plan has the item where it has it. */
static void judge_rule(const dv_explanation *e, const char *item, dv_explain_verdict *v) {
    const dv_status *status = e->status;
    v->rule = dv_status_rules_why(status, item, v->why);
    size_t number = !v->rule && dv_status_rules_hold(status) ? dv_pool_rules_find(&status->rules, item) : SIZE_MAX;
    if (number != SIZE_MAX) v->rule = dv_pool_rules_why_there(&status->rules, number, v->why);
}

/* Says why the plan has it so, where the state has not said it; and whether that waits. */
static void tell_rule(const dv_explanation *e, const dv_status_item *item, dv_explain_verdict *v) {
    char why[DV_RULE_BYTES];
    char more[DV_RULE_BYTES], pool[DV_SHELL_WORD_BYTES], word[DV_SHELL_WORD_BYTES];
    const dv_wish *hold = dv_pool_rules_hold(&e->status->rules, item->name);
    const char *but = v->rule ? waits_for(e, item, why) : "";
    size_t at = strlen(v->now);
    if (v->rule && !strstr(v->now, v->why))
        at += (size_t)snprintf(v->now + at, DV_EXPLAIN_BYTES - at, "%s%s", at ? "; " : "", v->why);
    bool round = strcmp(but, waits_for_round) == 0;
    if (*but && at < DV_EXPLAIN_BYTES)
        snprintf(v->now + at, DV_EXPLAIN_BYTES - at, "; %s%.300s", round ? "" : "that waits: ", but);
    else if (hold && at < DV_EXPLAIN_BYTES && dv_pool_rules_override(&e->status->rules, hold, more))
        snprintf(v->now + at, DV_EXPLAIN_BYTES - at, "; %.600s", more);
    if (*but && hold && !*v->next && strcmp(but, not_there) == 0)
        say(v->next, "it goes there when that member comes; or: divvy unpin --path %s %s",
            dv_shell_word(pool, "PATH", "%s", e->status->path), dv_shell_operand(word, "ITEM", item->name));
    if (round && !*v->next) say(v->next, "a later plan moves it, when the moves before it have ended (max-moves)");
}

dv_explain_verdict dv_explain_judge(const dv_explanation *e) {
    dv_explain_verdict v = {.state = "unknown"};
    const dv_status *status = e->status;
    const dv_status_item *item = e->item;
    if (!item) return v;
    bool stranger = e->place_count && e->places[0].member == DV_NO_MEMBER;
    judge_rule(e, item->name, &v);
    if (status->in_force) judge_by_plan(e, item, &v);
    else if (stranger) judge_stranger(e, &e->places[0], &v);
    else judge_by_names(e, &v);
    tell_rule(e, item, &v);
    return v;
}
