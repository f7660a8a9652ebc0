/* The warnings of a member whose plan has other settings than its own. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D13, D15 to D17, D38. Each warning says what differs, and what to do. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "follow/follower.h"
#include "plan/wish.h"

enum { NAMES_TOLD = 3, NAMES_BYTES = 160, TEXT_BYTES = 512 };

void dv_follow_warn(const dv_follower *f, int code, const char *format, ...) {
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    f->events->warn(f->owner, code, text);
}

void dv_follow_fail(dv_follower *f, int error, int reason, int64_t now, const char *format, ...) {
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    f->events->fail(f->owner, error, reason, text, now);
}

/* ---- items ---- */

/* Writes the first few names of `set` that `other` lacks, and returns how many it lacks. Both are sorted. */
static size_t list_missing(char out[NAMES_BYTES], const dv_plan_set *set, const dv_plan_set *other) {
    size_t missing = 0, used = 0;
    out[0] = '\0';
    for (size_t i = 0, k = 0; i < set->count; i++) {
        int order = 1;
        while (k < other->count && (order = strcmp(other->names[k], set->names[i])) < 0) k++;
        if (k < other->count && order == 0) continue;
        if (missing++ >= NAMES_TOLD) continue;
        int bytes = snprintf(out + used, NAMES_BYTES - used, "%s\"%.40s\"", missing > 1 ? ", " : "", set->names[i]);
        if (bytes > 0 && used + (size_t)bytes < NAMES_BYTES) used += (size_t)bytes;
    }
    if (missing > NAMES_TOLD && used < NAMES_BYTES) snprintf(out + used, NAMES_BYTES - used, ", ...");
    return missing;
}

static void tell_items(const dv_follower *f, const dv_plan *plan) {
    const dv_plan_set *configured = f->config.configured, *user_set = f->requests.new_set;
    char only_plan[NAMES_BYTES], only_own[NAMES_BYTES];
    if (dv_plan_set_equal(plan->set, configured)) return;
    if (user_set && dv_plan_set_equal(plan->set, user_set)) return; /* D17: our user knows. */
    bool requested = plan->set->crc != plan->header.tag && plan->header.tag == configured->crc;
    size_t more = list_missing(only_plan, plan->set, configured);
    size_t less = list_missing(only_own, configured, plan->set);
    dv_follow_warn(f, DIVVY_WARN_ITEMS_DIFFER,
                   "%s: the pool divides %zu items, and %s was configured with %zu: %zu only in the pool%s%s%s; "
                   "%zu only configured%s%s%s. %s",
                   f->config.path, plan->set->count, f->config.identifier, configured->count, more, more ? " (" : "",
                   only_plan, more ? ")" : "", less, less ? " (" : "", only_own, less ? ")" : "",
                   requested ? "Somebody asked for them: configure members with them, or start all again to go back"
                             : "Configure all live members with the same items: then the pool takes these up");
}

/* ---- options, weight ---- */

static void tell_options(const dv_follower *f, const dv_plan *plan) {
    const dv_plan_party *party = dv_roster_party(f->roster);
    const dv_plan_options *h = &plan->header.options, *own = &party->options;
    if (dv_plan_options_equal(h, own)) return;
    if (dv_wishes_find(plan->wishes, DV_WISH_OPTION, "max-moves") ||
        dv_wishes_find(plan->wishes, DV_WISH_OPTION, "round-timeout"))
        return; /* D48: an operator decides. */
    dv_plan_options agreed = *h;
    dv_plan_agree_options(plan, party, &agreed);
    if (!dv_plan_options_equal(&agreed, h)) return; /* D16: all carry ours, and the next plan has them. */
    dv_follow_warn(f, DIVVY_WARN_ASSIGN_DIFFERS,
                   "%s: the pool goes by max_moves %u and round_timeout_ms %lld, and %s was configured with %u and "
                   "%lld: the pool takes these up when all live members are configured with them",
                   f->config.path, h->max_moves, (long long)h->round_timeout_ms, f->config.identifier, own->max_moves,
                   (long long)own->round_timeout_ms);
}

/* Only when the plan knows what this member is configured with is its weight one that was set. */
static void tell_weight(dv_follower *f, const dv_plan_member *own) {
    uint32_t configured = f->config.weight;
    if (f->told.weight || !own->is_static || !own->says_configured || own->configured != configured) return;
    f->told.weight = true;
    if (own->weight == configured || f->requests.weight.number > 0) return;
    dv_follow_warn(f, DIVVY_WARN_WEIGHT,
                   "%s: the weight of the static member %s was set to %u, and stays over its restart; the "
                   "configured %u does not count. Set it with divvy_partitioner_set_weight() or `divvy drain "
                   "--weight`",
                   f->config.path, f->config.identifier, own->weight, configured);
}

/* ---- places that are kept ---- */

static size_t count_items(const dv_plan *plan, uint32_t slot) {
    size_t count = 0;
    for (size_t i = 0; i < plan->set->count; i++) count += plan->owners[i] == slot;
    return count;
}

/* D13: a member that joins learns why its share is small; one of the same identifier learns it at any time. */
static void tell_absences(const dv_follower *f, const dv_plan *plan, bool joins) {
    for (size_t m = 0; m < plan->member_count; m++) {
        const dv_plan_member *absent = &plan->members[m];
        if (absent->absent == 0) continue;
        bool same = strcmp(absent->key, f->config.identifier) == 0;
        if (!same && !joins) continue;
        dv_follow_warn(f, DIVVY_WARN_ABSENT,
                       "%s: a place is kept for the static member \"%.100s\" for %.1f s: its %zu items have no "
                       "owner until then%s",
                       f->config.path, absent->key, (double)absent->rejoin_delay_ms / 1000,
                       count_items(plan, absent->slot),
                       same ? ". This member has the same identifier, but is not static, so it does not take that "
                              "place: configure static_membership (--rejoin-delay)"
                            : "");
    }
}

/* ---- all of it ---- */

void dv_follow_tell_fenced(const dv_follower *f) {
    dv_follow_warn(f, DIVVY_WARN_FENCED,
                   "%s: a process that came later has the identifier \"%s\" of this static member; "
                   "it takes over what this one has, and this one gets nothing while the other lives. Unless this "
                   "is a restart, give each process an identifier of its own",
                   f->config.path, f->config.identifier);
}

void dv_follow_tell(dv_follower *f, const dv_plan *plan, const dv_plan_member *own) {
    if (f->told.mzxid != plan->mzxid) {
        f->told.mzxid = plan->mzxid;
        f->events->other_plan(f->owner);
    }
    tell_items(f, plan);
    tell_options(f, plan);
    if (!own) return;
    tell_absences(f, plan, !f->told.joined);
    tell_weight(f, own);
    f->told.joined = true;
}

void dv_follow_tell_again(dv_follower *f) {
    f->told.joined = f->told.weight = false;
}
