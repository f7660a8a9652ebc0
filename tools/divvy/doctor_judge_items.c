/* The faults of a pool's items. SPDX-License-Identifier: Apache-2.0
 *
 * Where a plan decides, an item that is not where the plan wants it has a reason. `divvy explain` tells it for one
 * item, and here they are counted by reason and member. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_judge.h"
#include "pool/whom.h"
#include "pool/wishes.h"
#include "shell_word.h"
#include "status_plan.h"
#include "status_room.h"
#include "table.h"

enum { SHOWN_MAX = 20 };

/* A name as it stands in a sentence. */
#define NAME "%.160s"

/* Items of one kind. */
typedef struct {
    size_t count;
    const char *first;
    const char *next; /* of the first one */
    int64_t age_ms;   /* of the oldest */
} pile;

static void add_to(pile *p, const char *item, const char *next, int64_t age_ms) {
    if (p->count++ == 0) *p = (pile){.count = 1, .first = item, .next = next, .age_ms = age_ms};
    if (age_ms > p->age_ms) p->age_ms = age_ms;
}

static const char *plural(size_t count) {
    return count == 1 ? "" : "s";
}

static void todo_explain(const dv_doctor *d, const char *item, dv_finding *finding) {
    char pool[DV_SHELL_WORD_BYTES], word[DV_SHELL_WORD_BYTES];
    dv_finding_todo(finding, "divvy explain --path %s %s", dv_shell_word(pool, "PATH", "%s", d->path),
                    dv_shell_operand(word, "ITEM", item));
}

/* ---- items that are not released ---- */

/* Returns the age of the plan, or of the pause of an item that it gives to nobody. Plans that were written since the
 * pause only repeat it. */
static int64_t given_up_ms(const dv_doctor *d, const dv_plan *plan, const dv_status_item *item) {
    const dv_wish *pause = item->planned ? NULL : dv_wishes_find(plan->wishes, DV_WISH_PAUSE, item->name);
    int64_t plan_ms = dv_doctor_plan_age_ms(d), pause_ms = pause ? dv_doctor_age_ms(d, pause->at_ms) : 0;
    return pause_ms > plan_ms ? pause_ms : plan_ms;
}

/* Returns since when the item's owner was asked to release it, at least; -1: it was not, as its next owner prepares. */
static int64_t asked_for_ms(const dv_doctor *d, const dv_plan *plan, const dv_status_item *item) {
    size_t next = item->planned ? item->planned->member : DV_NO_MEMBER;
    size_t number = dv_pool_item(plan, item->name);
    const dv_doctor_note *of_owner = &d->notes[item->member];
    const dv_doctor_note *of_next = next == DV_NO_MEMBER ? NULL : &d->notes[next];
    if (number == SIZE_MAX || !of_next || !of_owner->there || !of_next->there) return given_up_ms(d, plan, item);
    if (!dv_note_is_ready(&of_next->note, (uint32_t)number)) return -1;
    return dv_doctor_age_ms(d, of_next->written_ms);
}

static void judge_held(const dv_doctor *d, const dv_status_member *m, const pile *held, dv_findings *f) {
    char age[DV_AGE_BYTES], host[DV_SHELL_WORD_BYTES];
    dv_finding *finding = dv_findings_add(f, dv_doctor_level_of(held->age_ms), "release", m->identifier);
    dv_finding_what(finding, "it was asked to release %zu item%s, for %s now, and has not; the first is " NAME,
                    held->count, plural(held->count), dv_age_text(held->age_ms, age), held->first);
    dv_finding_why(finding, "%s%.160s%s", held->next ? "" : "the plan gives it to nobody", held->next ? held->next : "",
                   held->next
                       ? " waits for it: this one's program has not confirmed the RELEASE, or its command runs on"
                       : ", and this one's program has not confirmed the RELEASE");
    if (*m->host)
        dv_finding_todo(finding, "look at process %" PRId64 " on %s; ending it frees all that it has: kill %" PRId64,
                        m->pid, dv_shell_word(host, "HOST", "%s", m->host), m->pid);
    else todo_explain(d, held->first, finding);
}

static void judge_releases(const dv_doctor *d, const dv_plan *plan, dv_findings *f) {
    pile *piles = calloc(d->status.member_count + 1, sizeof *piles); /* of each member */
    f->incomplete = f->incomplete || !piles;
    for (size_t i = 0; piles && i < d->status.item_count; i++) {
        const dv_status_item *item = &d->status.items[i];
        if (item->member == DV_NO_MEMBER || (item->planned && item->planned->member == item->member)) continue;
        int64_t age_ms = asked_for_ms(d, plan, item);
        if (age_ms < 0) continue;
        const char *next = item->planned ? dv_whom_identifier(item->planned->entry) : NULL;
        add_to(&piles[item->member], item->name, next, age_ms);
    }
    for (size_t k = 0; piles && k < d->status.member_count; k++) {
        if (piles[k].count) judge_held(d, &d->status.members[k], &piles[k], f);
    }
    free(piles);
}

/* ---- items of strangers ---- */

static void judge_strangers(const dv_doctor *d, dv_findings *f) {
    pile held = {0};
    const dv_status_item *first = NULL;
    for (size_t i = 0; i < d->status.item_count; i++) {
        const dv_status_item *item = &d->status.items[i];
        if (!item->head || item->member != DV_NO_MEMBER || item->session == 0) continue;
        if (!first) first = item;
        add_to(&held, item->name, NULL, dv_doctor_age_ms(d, item->made_ms));
    }
    if (!first) return;
    const dv_word_connection *connection = dv_doctor_connection(d, first->session);
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "stranger", first->owner);
    dv_finding_what(finding, "%zu item%s held by one that is not in the party; the first is " NAME, held.count,
                    held.count == 1 ? " is" : "s are", held.first);
    if (connection)
        dv_finding_why(finding, "it has left, and its session 0x%" PRIx64 " is still connected, from %s",
                       (uint64_t)first->session, connection->address);
    else
        dv_finding_why(finding, "it has died or is cut off; its place goes when session 0x%" PRIx64 " ends",
                       (uint64_t)first->session);
    todo_explain(d, held.first, finding);
}

/* They have no session that could end. */
static void judge_persistent(const dv_doctor *d, dv_findings *f) {
    char word[DV_SHELL_WORD_BYTES];
    pile held = {0};
    const dv_status_item *first = NULL;
    for (size_t i = 0; i < d->status.item_count; i++) {
        const dv_status_item *item = &d->status.items[i];
        if (!item->head || item->member != DV_NO_MEMBER || item->session != 0) continue;
        if (!first) first = item;
        add_to(&held, item->name, NULL, 0);
    }
    if (!first) return;
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "persistent", d->path);
    dv_finding_what(finding, "a persistent node stands first in the queue%s of %zu item%s; the first is " NAME,
                    plural(held.count), held.count, plural(held.count), held.first);
    dv_finding_why(finding, "no member makes such nodes: some tool did, as from a backup; they go only when somebody "
                            "deletes them");
    dv_finding_todo(finding, "zkCli.sh delete %s",
                    dv_shell_word(word, "PATH", "%s%s/locks/%s/%s", d->servers.chroot, dv_doctor_root(d), first->node,
                                  first->head));
}

/* ---- items that nobody owns ---- */

static void judge_taking(const dv_doctor *d, const pile *p, size_t member, dv_findings *f) {
    char age[DV_AGE_BYTES], host[DV_SHELL_WORD_BYTES];
    const dv_status_member *m = &d->status.members[member];
    dv_finding *finding = dv_findings_add(f, dv_doctor_level_of(p->age_ms), "unowned", m->identifier);
    dv_finding_what(finding, "it is to have %zu item%s that nobody owns, and has not taken; the first is " NAME,
                    p->count, plural(p->count), p->first);
    if (dv_status_room_short(m)) {
        dv_finding_why(finding, "its session has no room for them");
        dv_finding_todo(finding, "start more members; see limits");
        return;
    }
    dv_finding_why(finding, "it has not read the plan of %s ago, still prepares, or hangs",
                   dv_age_text(p->age_ms, age));
    if (*m->host)
        dv_finding_todo(finding, "look at process %" PRId64 " on %s", m->pid,
                        dv_shell_word(host, "HOST", "%s", m->host));
    else todo_explain(d, p->first, finding);
}

static void judge_away(const dv_doctor *d, const pile *p, const dv_plan_member *entry, dv_findings *f) {
    char kept[DV_AGE_BYTES];
    char pool[DV_SHELL_WORD_BYTES], value[DV_SHELL_WORD_BYTES], operand[DV_SHELL_WORD_BYTES];
    bool is_kept = strcmp(dv_status_plan_state(entry, NULL), "absent") == 0;
    const char *name = dv_whom_identifier(entry);
    /* A plan that does not know it yet is old; the next one is due. */
    int64_t age_ms = is_kept && entry->absent == 0 ? 0 : p->age_ms;
    dv_finding *finding = dv_findings_add(f, dv_doctor_level_of(age_ms), is_kept ? "absent" : "unowned", name);
    if (is_kept) {
        dv_finding_what(finding, "it is away, and %zu item%s wait%s for it; the first is " NAME, p->count,
                        plural(p->count), p->count == 1 ? "s" : "", p->first);
        dv_finding_why(finding, "it is static: they go to others when it is away for longer than %s",
                       dv_age_text(entry->rejoin_delay_ms, kept));
        dv_finding_todo(finding,
                        "start it again, with --identifier %s; or give them to others: divvy forget --path %s %s",
                        dv_shell_word(value, "MEMBER", "%s", name), dv_shell_word(pool, "PATH", "%s", d->path),
                        dv_shell_operand(operand, "MEMBER", name));
        return;
    }
    dv_finding_what(finding, "it has gone, and the plan still gives it %zu item%s; the first is " NAME, p->count,
                    plural(p->count), p->first);
    dv_finding_why(finding, "the others write the next plan when the party has stood still for the time boundary");
    dv_finding_todo(finding, "wait for it; if it does not come, see what members write to standard error");
}

static void judge_unassigned(const dv_doctor *d, const pile *p, dv_findings *f) {
    char why[DV_RULE_BYTES] = "", pool[DV_SHELL_WORD_BYTES];
    size_t item = d->status.rules.any ? dv_pool_rules_find(&d->status.rules, p->first) : SIZE_MAX;
    if (item != SIZE_MAX) dv_pool_rules_why_nobody(&d->status.rules, item, why);
    dv_finding *finding = dv_findings_add(f, dv_doctor_level_of(p->age_ms), "unowned", d->path);
    dv_finding_what(finding, "the plan gives %zu item%s to nobody; the first is " NAME, p->count, plural(p->count),
                    p->first);
    dv_finding_why(finding, "%.300s", *why ? why : "all members are drained, or leave");
    if (*why) todo_explain(d, p->first, finding);
    else
        dv_finding_todo(finding, "start a member, or undo a drain: divvy drain --path %s --undo MEMBER",
                        dv_shell_word(pool, "PATH", "%s", d->path));
}

/* Returns whether somebody owns the item, or it cannot be told. Items come in the order of the plan: `at` goes on. */
static bool is_owned(const dv_status *status, size_t *at, const char *name) {
    while (*at < status->item_count && strcmp(status->items[*at].name, name) < 0) ++*at;
    const dv_status_item *item = *at < status->item_count ? &status->items[*at] : NULL;
    return item && strcmp(item->name, name) == 0 && (item->head || item->denied);
}

/* Piles up what nobody owns: for each member of the plan, and last what the plan gives to nobody. */
static void pile_up(const dv_doctor *d, const dv_plan *plan, pile *piles) {
    size_t at = 0;
    for (size_t i = 0; i < plan->set->count; i++) {
        const char *name = plan->set->names[i];
        if (is_owned(&d->status, &at, name)) continue;
        const dv_plan_member *next = dv_plan_member_at(plan, plan->owners[i]);
        if (!next && dv_doctor_rules_tell(d, i)) continue;
        add_to(&piles[next ? (size_t)(next - plan->members) : plan->member_count], name, NULL,
               dv_doctor_plan_age_ms(d));
    }
}

static void judge_planned(const dv_doctor *d, const dv_plan *plan, dv_findings *f) {
    pile *piles = calloc(plan->member_count + 1, sizeof *piles);
    if (!piles) {
        f->incomplete = true;
        return;
    }
    pile_up(d, plan, piles);
    for (size_t n = 0, told = 0; n < d->status.entry_count && told < SHOWN_MAX; n++) {
        const dv_status_entry *entry = &d->status.entries[n]; /* They are in the order of the plan's members. */
        if (piles[n].count == 0) continue;
        told++;
        if (entry->member == DV_NO_MEMBER) judge_away(d, &piles[n], entry->entry, f);
        else judge_taking(d, &piles[n], entry->member, f);
    }
    if (piles[plan->member_count].count) judge_unassigned(d, &piles[plan->member_count], f);
    free(piles);
}

/* Names decide. They are all taken when the party has stood still for a while. */
static void judge_named(const dv_doctor *d, dv_findings *f) {
    pile p = {0};
    int64_t newest_ms = 0;
    for (size_t i = 0; i < d->status.item_count; i++) {
        const dv_status_item *item = &d->status.items[i];
        if (!item->head && !item->denied) add_to(&p, item->name, NULL, 0);
    }
    for (size_t i = 0; i < d->status.member_count; i++) {
        if (d->status.members[i].made_ms > newest_ms) newest_ms = d->status.members[i].made_ms;
    }
    if (p.count == 0 || d->status.member_count == 0) return;
    dv_finding *finding = dv_findings_add(f, dv_doctor_level_of(dv_doctor_age_ms(d, newest_ms)), "unowned", d->path);
    dv_finding_what(finding, "nobody owns %zu item%s; the first is " NAME, p.count, plural(p.count), p.first);
    dv_finding_why(finding,
                   "the party has just changed, members differ in their items, or a member does not take part");
    todo_explain(d, p.first, finding);
}

/* ---- the whole ---- */

static void judge_denied(const dv_doctor *d, dv_findings *f) {
    if (d->status.denied_count == 0) return;
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "items", d->path);
    dv_finding_what(finding, "of %zu item%s we may not read who owns it", d->status.denied_count,
                    plural(d->status.denied_count));
    dv_finding_why(finding, "the queues are of other credentials");
    dv_finding_todo(finding, "give the pool's credentials: --auth-file FILE");
}

/* Says that nothing is wrong. Items that nobody is to have, by other findings or an operator, may lack a directory. */
static void tell_nothing_wrong(const dv_doctor *d, const dv_plan *plan, dv_findings *f) {
    size_t owned = d->status.item_count, rest = 0, at = 0;
    for (size_t i = 0; plan && d->status.rules.any && i < plan->set->count; i++) {
        if (!dv_doctor_rules_tell(d, i) || is_owned(&d->status, &at, plan->set->names[i])) continue;
        bool listed = at < d->status.item_count && strcmp(d->status.items[at].name, plan->set->names[i]) == 0;
        owned -= listed;
        rest++;
    }
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_OK, "items", d->path);
    if (rest == 0) dv_finding_what(finding, "all %zu have the owner that they should", owned);
    else
        dv_finding_what(finding, "%zu of %zu have the owner that they should, and nobody is to have the rest", owned,
                        owned + rest);
}

void dv_doctor_judge_items(const dv_doctor *d, dv_findings *f) {
    size_t before = f->count;
    if (d->pool_error || !d->status.found) return;
    const dv_plan *plan = dv_status_plan(&d->status);
    judge_denied(d, f);
    judge_strangers(d, f);
    judge_persistent(d, f);
    if (plan && d->status.in_force) {
        judge_releases(d, plan, f);
        judge_planned(d, plan, f);
    } else {
        judge_named(d, f);
    }
    if (f->count > before || d->status.item_count == 0 || d->status.member_count == 0) return;
    tell_nothing_wrong(d, plan, f);
}
