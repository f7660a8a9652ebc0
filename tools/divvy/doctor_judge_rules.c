/* The faults of a pool's rules: loads, tags, caps, and operators' wishes. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "doctor_judge.h"
#include "shell_word.h"
#include "status_plan.h"
#include "status_rules.h"
#include "table.h"

/* A name as it stands in a sentence. */
#define NAME "%.160s"

/* Counts paused items that somebody works on. */
static size_t count_running(const dv_doctor *d) {
    size_t count = 0;
    for (size_t i = 0; i < d->status.item_count; i++) {
        const dv_status_item *item = &d->status.items[i];
        count += item->head && dv_wishes_find(d->status.rules.plan->wishes, DV_WISH_PAUSE, item->name);
    }
    return count;
}

static void judge_waiting(const dv_doctor *d, dv_findings *f) {
    char why[DV_RULE_BYTES];
    const dv_status_member *member;
    if (!dv_status_rules_wait(&d->status, &member, why)) return;
    dv_finding *finding = dv_findings_add(f, member ? DV_DOCTOR_WARNING : DV_DOCTOR_NOTE, "wishes",
                                          member ? member->identifier : d->path);
    dv_finding_what(finding, "loads and operators' wishes wait: %.500s", why);
    if (!member) return;
    size_t running = count_running(d);
    if (running > 0)
        dv_finding_what(finding, "loads and operators' wishes wait, and %zu paused item%s worked on: %.400s", running,
                        running == 1 ? " is" : "s are", why);
    dv_finding_why(finding, "it would undo what they move; the items are dealt by %s",
                   member->follows ? "their number" : "names");
    dv_finding_todo(finding, "%s",
                    member->kazoo ? "replace members of kazoo's by members of divvy"
                                  : "start all members with this release, and without --assign and --mode");
}

/* Returns the level of what a plan lacks, since a member has gone: it may be back soon. */
static dv_doctor_level level_of_plan(const dv_doctor *d) {
    return dv_doctor_level_of(dv_doctor_plan_age_ms(d));
}

static void judge_pins(const dv_doctor *d, const dv_pool_rules *r, dv_findings *f) {
    char pool[DV_SHELL_WORD_BYTES], start[DV_SHELL_WORD_BYTES], operand[DV_SHELL_WORD_BYTES];
    if (!r->lost) return;
    const char *whom = dv_pool_rules_whom(r, r->lost);
    dv_finding *finding = dv_findings_add(f, level_of_plan(d), "pin", whom);
    dv_finding_what(finding, "%zu item%s pinned to a member that is not there; the first is " NAME, r->lost_count,
                    r->lost_count == 1 ? " is" : "s are", r->lost->name);
    bool kept = dv_pool_rules_is_kept(r, r->lost);
    dv_finding_why(finding, "%s; " NAME " asked for the first",
                   kept ? "the plan keeps the first for that member, and nobody has it"
                        : "until that member is there, others have the first",
                   *r->lost->by ? r->lost->by : "somebody");
    dv_shell_operand(operand, kept ? "MEMBER" : "ITEM", kept ? whom : r->lost->name);
    dv_finding_todo(finding, "start %s; or: divvy %s --path %s %s", dv_shell_word(start, "MEMBER", "%s", whom),
                    kept ? "forget" : "unpin", dv_shell_word(pool, "PATH", "%s", d->path), operand);
}

/* Tells of the first pin, or move, that overrides a tag or a cap. */
static void judge_overrides(const dv_doctor *d, const dv_pool_rules *r, dv_findings *f) {
    char why[DV_RULE_BYTES], pool[DV_SHELL_WORD_BYTES], item[DV_SHELL_WORD_BYTES];
    const dv_wishes *wishes = r->plan->wishes;
    for (size_t i = 0; wishes && i < wishes->count; i++) {
        const dv_wish *wish = &wishes->list[i];
        if (!dv_pool_rules_override(r, wish, why)) continue;
        dv_finding *finding = dv_findings_add(f, DV_DOCTOR_NOTE, "pin", d->path);
        dv_finding_what(finding, NAME " is %s to " NAME ", and %.300s", wish->name,
                        wish->kind == DV_WISH_PIN ? "pinned" : "moved", dv_pool_rules_whom(r, wish), why);
        dv_finding_why(finding, "a pin, and a move, beat tags and caps; " NAME " asked for it",
                       *wish->by ? wish->by : "somebody");
        dv_finding_todo(finding, "if it should not: divvy unpin --path %s %s",
                        dv_shell_word(pool, "PATH", "%s", d->path), dv_shell_operand(item, "ITEM", wish->name));
        return;
    }
}

static void judge_tag(const dv_doctor *d, const dv_pool_rules *r, dv_findings *f) {
    char undo[DV_RULE_BYTES], tag[DV_SHELL_WORD_BYTES];
    if (!r->tag) return;
    const char *first = r->plan->set->names[r->tag_item];
    dv_finding *finding = dv_findings_add(f, level_of_plan(d), "tag", d->path);
    dv_finding_what(finding, "%zu item%s the tag %s, which no member has; the first is " NAME, r->tag_count,
                    r->tag_count == 1 ? " needs" : "s need", r->tag, first);
    dv_finding_why(finding, "nobody takes what needs a tag that it does not have, unless it is pinned");
    dv_pool_rules_tell_undo(dv_pool_rules_need(r, first), d->path, undo);
    dv_finding_todo(finding, "start a member with --tags %s; or let it need none: %s",
                    dv_shell_word(tag, "TAG", "%s", r->tag), undo);
}

static void judge_room(const dv_doctor *d, const dv_pool_rules *r, dv_findings *f) {
    size_t items = r->plan->set->count - r->paused;
    if (!r->is_limited || r->room >= items) return;
    dv_finding *finding = dv_findings_add(f, level_of_plan(d), "cap", d->path);
    dv_finding_what(finding, "the caps of all members allow %" PRIu64 " items, and there are %zu", r->room, items);
    dv_finding_why(finding, "a member takes no more items than its --cap, and the rest has no owner");
    dv_finding_todo(finding, "start more members, or start them with a higher --cap");
}

static void judge_heavy(const dv_doctor *d, const dv_pool_rules *r, dv_findings *f) {
    if (r->heavy == 0) return;
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_NOTE, "load", d->path);
    dv_finding_what(finding, "%zu item%s more than a fair share of the load; the most is " NAME " with %.0f %% of it",
                    r->heavy, r->heavy == 1 ? " is" : "s are", r->plan->set->names[r->heaviest],
                    100 * r->heaviest_part);
    dv_finding_why(finding, "no deal can even that out: its owner has as little else as possible");
    dv_finding_todo(finding, "split the item, if that can be done");
}

/* Returns whether a member has paused the item, by --quarantine. The reason is as dv_failures_print() writes it, or
 * Python's run(). */
static bool is_quarantine(const dv_wish *wish) {
    int bytes = 0;
    if (wish->kind != DV_WISH_PAUSE) return false;
    sscanf(wish->why, "failed %*u tim%*[es] in %*[0-9.e+] %*[hmins], last: %n", &bytes);
    return bytes > 0;
}

static void judge_quarantine(const dv_doctor *d, const dv_pool_rules *r, dv_findings *f) {
    char age[DV_AGE_BYTES], pool[DV_SHELL_WORD_BYTES], item[DV_SHELL_WORD_BYTES];
    const dv_wishes *wishes = r->plan->wishes;
    const dv_wish *oldest = NULL;
    size_t count = 0;
    for (size_t i = 0; wishes && i < wishes->count; i++) {
        const dv_wish *wish = &wishes->list[i];
        if (!is_quarantine(wish)) continue;
        count++;
        if (!oldest || wish->at_ms < oldest->at_ms) oldest = wish;
    }
    if (!oldest) return;
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "paused", d->path);
    dv_finding_what(finding, "%zu item%s in quarantine, and nobody works on %s; the first is " NAME ", for %s now",
                    count, count == 1 ? " is" : "s are", count == 1 ? "it" : "them", oldest->name,
                    dv_age_text(dv_doctor_age_ms(d, oldest->at_ms), age));
    dv_finding_why(finding, "it %.200s; its member %.160s has paused it", oldest->why,
                   *oldest->by ? oldest->by : "then");
    dv_finding_todo(finding, "mend what makes it fail, then: divvy resume --path %s %s",
                    dv_shell_word(pool, "PATH", "%s", d->path), dv_shell_operand(item, "ITEM", oldest->name));
}

void dv_doctor_judge_rules(const dv_doctor *d, dv_findings *f) {
    size_t before = f->count;
    const dv_pool_rules *r = &d->status.rules;
    if (d->pool_error || !d->status.found || !r->any || d->status.member_count == 0) return;
    judge_waiting(d, f);
    judge_pins(d, r, f);
    if (dv_status_rules_hold(&d->status)) {
        judge_overrides(d, r, f);
        judge_tag(d, r, f);
        judge_room(d, r, f);
        judge_heavy(d, r, f);
    }
    judge_quarantine(d, r, f);
    if (f->count > before) return;
    dv_finding_what(dv_findings_add(f, DV_DOCTOR_OK, "wishes", d->path),
                    "loads and operators' wishes are in force: %zu pinned, %zu moved, %zu paused", r->pinned, r->moved,
                    r->paused);
}

bool dv_doctor_rules_tell(const dv_doctor *d, size_t item) {
    char why[DV_RULE_BYTES];
    const dv_pool_rules *r = &d->status.rules;
    const char *rule = dv_status_rules_hold(&d->status) ? dv_pool_rules_why_nobody(r, item, why) : NULL;
    if (!rule) return false;
    /* Only the first tag that is missing is told of. */
    if (strcmp(rule, "tag") == 0)
        return r->tag && strcmp(dv_wishes_tag(r->plan->wishes, r->plan->set->names[item]), r->tag) == 0;
    return strcmp(rule, "paused") == 0 || (r->is_limited && r->room < r->plan->set->count - r->paused);
}
