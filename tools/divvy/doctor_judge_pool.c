/* The faults of a pool's nodes: access lists, the plan, limits, what is left over. SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "client/client.h"
#include "doctor_judge.h"
#include "pool/wishes.h"
#include "shell_word.h"
#include "status_plan.h"
#include "status_room.h"
#include "table.h"

/* REPLY_BYTES: the default of jute.maxbuffer, which bounds what a list may be. SETTLE_MS: a plan that is older than its
 * party for so long will not be written. COUNTED_MIN: fewer items cannot fill a session. */
enum { WATCHED_BYTES = 512 * 1024, COUNTED_MIN = 100 };
enum { REPLY_BYTES = 1048575, FULL_PERCENT = 80, SETTLE_MS = 30000, SHOWN_MAX = 20 };

/* A name as it stands in a sentence. */
#define NAME "%.160s"

/* ---- access lists ---- */

/* Returns whether an entry, as in "cdrwa digest:bob:hash", lets us in. A server that does not let us administrate the
 * node leaves the hash out. */
static bool is_for_us(const dv_doctor *d, const char *who) {
    if (strcmp(who, "world:anyone") == 0) return true;
    if (strncmp(who, "digest:", 7) == 0) {
        size_t bytes = strcspn(who + 7, ":");
        return d->user && strlen(d->user) == bytes && strncmp(d->user, who + 7, bytes) == 0;
    }
    return d->hides_names;
}

/* Writes those of `needed` that nobody has, or that we have not. */
static void find_missing(const dv_doctor *d, const dv_doctor_acl *acl, const char *needed, char *nobody, char *us) {
    for (; *needed; needed++) {
        bool somebody = false, we = false;
        for (size_t i = 0; i < acl->entry_count; i++) {
            const char *entry = acl->entries[i], *space = strchr(entry, ' ');
            if (!space || !memchr(entry, *needed, (size_t)(space - entry))) continue;
            somebody = true;
            we = we || is_for_us(d, space + 1);
        }
        if (!somebody) *nobody++ = *needed;
        else if (!we) *us++ = *needed;
    }
    *nobody = *us = '\0';
}

static void print_entries(const dv_doctor_acl *acl, char *out, size_t bytes) {
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < acl->entry_count && used < bytes; i++) {
        int printed = snprintf(out + used, bytes - used, "%s%.80s", i ? ", " : "", acl->entries[i]);
        if (printed > 0) used += (size_t)printed;
    }
}

/* Returns what members do to a node: c creates and d deletes below it, r reads and w writes it. */
static const char *needed_of(const dv_doctor *d, const dv_doctor_acl *acl) {
    size_t root = strlen(d->path);
    const char *name = strcmp(d->path, "/") == 0 ? acl->path : acl->path + root;
    if (*name == '\0' || strcmp(acl->path, d->path) == 0) return "cr";
    return strcmp(name, "/plan") == 0 ? "cdrw" : "cdr";
}

static const char *word_of(char permission) {
    return permission == 'c'   ? "create below"
           : permission == 'd' ? "delete below"
           : permission == 'r' ? "read"
                               : "write";
}

/* Returns whether a server has hidden the hash of an entry, as from clients that may not administrate the node. */
static bool is_masked(const char *who) {
    if (strncmp(who, "digest:", 7) != 0) return false;
    const char *hash = strchr(who + 7, ':');
    return !hash || strcmp(hash, ":x") == 0;
}

static bool has_masked(const dv_doctor_acl *acl) {
    bool masked = false;
    for (size_t i = 0; i < acl->entry_count && !masked; i++) {
        const char *space = strchr(acl->entries[i], ' ');
        masked = space && is_masked(space + 1);
    }
    return masked;
}

/* Writes a list as setAcl takes it. Returns false for one that it does not take: it divides at each comma. */
static bool print_acl(const dv_doctor_acl *acl, char *out, size_t bytes) {
    size_t used = 0;
    for (size_t i = 0; i < acl->entry_count && used < bytes; i++) {
        const char *entry = acl->entries[i], *space = strchr(entry, ' ');
        if (!space || space == entry || strchr(entry, ',')) return false;
        int printed =
            snprintf(out + used, bytes - used, "%s%s:%.*s", i ? "," : "", space + 1, (int)(space - entry), entry);
        if (printed > 0) used += (size_t)printed;
    }
    return acl->entry_count > 0;
}

static bool is_open(const dv_doctor_acl *acl) {
    bool open = true;
    for (size_t i = 0; i < acl->entry_count && open; i++) {
        const char *space = strchr(acl->entries[i], ' ');
        open = space && strcmp(space + 1, "world:anyone") == 0;
    }
    return open;
}

/* P/party, which members make first, shows what the pool's lists are like, unless it lacks the same. */
static void advise_acl(const dv_doctor *d, const dv_doctor_acl *acl, dv_finding *finding) {
    char node[DV_SHELL_WORD_BYTES], word[DV_SHELL_WORD_BYTES], list[2 * DV_SHELL_WORD_BYTES], nobody[8], us[8];
    const char *chroot = d->servers.chroot; /* zkCli.sh is called without one. */
    const dv_doctor_acl *model = d->acl_count > 1 ? &d->acls[1] : acl;
    find_missing(d, model, needed_of(d, acl), nobody, us);
    if (*nobody) model = acl;
    bool known = model == acl ? is_open(acl) : print_acl(model, list, sizeof list);
    if (model == acl) strcpy(list, "world:anyone:cdrwa");
    if (has_masked(model))
        dv_finding_todo(finding, "run it again with the pool's credentials, as the list to set is hidden from others: "
                                 "--auth-file FILE");
    else if (known)
        dv_finding_todo(
            finding, "zkCli.sh setAcl %s %s",
            dv_shell_word(node, "PATH", "%s%s", chroot, *chroot && strcmp(acl->path, "/") == 0 ? "" : acl->path),
            dv_shell_word(word, "ACL", "%s", list));
    else dv_finding_todo(finding, "give the pool's members the permissions cdrwa there");
}

static void judge_acl(const dv_doctor *d, const dv_doctor_acl *acl, dv_findings *f) {
    char nobody[8], us[8], entries[300];
    if (acl->error == DIVVY_EACCES) {
        dv_finding *finding = dv_findings_add(f, DV_DOCTOR_ERROR, "acl", acl->path);
        dv_finding_what(finding, "we may not read it%s%s", d->user ? ", as " : "", d->user ? d->user : "");
        dv_finding_why(finding, "it is of other credentials%s", d->user ? "" : ", and we have none");
        dv_finding_todo(finding, "give the pool's credentials: --auth-file FILE");
    }
    if (acl->error) return;
    find_missing(d, acl, needed_of(d, acl), nobody, us);
    if (!*nobody && !*us) return;
    print_entries(acl, entries, sizeof entries);
    dv_finding *finding = dv_findings_add(f, *nobody ? DV_DOCTOR_ERROR : DV_DOCTOR_WARNING, "acl", acl->path);
    dv_finding_what(finding, "%s may %s it: the access list is %s", *nobody ? "nobody" : "others, and not we,",
                    word_of(*nobody ? *nobody : *us), entries);
    if (strcmp(needed_of(d, acl), "cdrw") == 0)
        dv_finding_why(finding, "no next plan can be written, so that items of members that go wait for an owner");
    else if (acl->is_directory) dv_finding_why(finding, "members cannot stand in this item's queue");
    else dv_finding_why(finding, "members cannot take part");
    if (*nobody) advise_acl(d, acl, finding);
    else dv_finding_todo(finding, "start members with the pool's credentials: --auth-file FILE");
}

static bool has_same_entries(const dv_doctor_acl *a, const dv_doctor_acl *b) {
    bool same = a->entry_count == b->entry_count;
    for (size_t i = 0; same && i < a->entry_count; i++) same = strcmp(a->entries[i], b->entries[i]) == 0;
    return same;
}

/* Tells of nodes with other lists than P/party, which members make first. */
static void judge_acls_alike(const dv_doctor *d, dv_findings *f) {
    char entries[300];
    const dv_doctor_acl *party = d->acl_count > 1 && !d->acls[1].error ? &d->acls[1] : NULL, *other = NULL;
    size_t count = 0;
    for (size_t i = 2; party && i < d->acl_count; i++) {
        if (d->acls[i].error || has_same_entries(party, &d->acls[i])) continue;
        if (!other) other = &d->acls[i];
        count++;
    }
    if (!other) return;
    print_entries(other, entries, sizeof entries);
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "acl", other->path);
    dv_finding_what(finding, "%zu node%s another access list than %s/party; this one has %s", count,
                    count == 1 ? " has" : "s have", d->path, entries);
    dv_finding_why(finding, "members differ in --acl or in credentials, or somebody has changed it by hand");
    dv_finding_todo(finding, "start all members with the same --acl and --auth-file");
}

static void judge_acls(const dv_doctor *d, dv_findings *f) {
    size_t before = f->count, wrong = 0, seen = 0;
    for (size_t i = 0; i < d->acl_count && wrong < SHOWN_MAX; i++) {
        size_t had = f->count;
        judge_acl(d, &d->acls[i], f);
        wrong += f->count > had;
    }
    if (wrong == 0) judge_acls_alike(d, f);
    for (size_t i = 0; i < d->acl_count; i++) seen += !d->acls[i].error;
    if (f->count > before || seen == 0) return;
    dv_finding_what(dv_findings_add(f, DV_DOCTOR_OK, "acl", d->path),
                    "we may do what members must, to the %zu nodes looked at", seen);
}

/* ---- the plan ---- */

static dv_finding *add_plan(const dv_doctor *d, dv_findings *f, dv_doctor_level level) {
    char where[DV_FINDING_BYTES];
    snprintf(where, sizeof where, "%.500s/plan", d->path);
    return dv_findings_add(f, level, "plan", where);
}

static bool has_followers(const dv_status *status) {
    for (size_t i = 0; i < status->member_count; i++) {
        if (status->members[i].follows) return true;
    }
    return false;
}

static void judge_unusable(const dv_doctor *d, dv_plan_standing standing, dv_findings *f) {
    char word[DV_SHELL_WORD_BYTES];
    dv_finding *finding = add_plan(d, f, DV_DOCTOR_ERROR);
    if (standing == DV_PLAN_NEWER) {
        dv_finding_what(finding, "a later release of divvy wrote the plan");
        dv_finding_why(finding, "members of this release gain nothing while that one is in the pool");
        dv_finding_todo(finding, "upgrade divvy on all machines");
        return;
    }
    dv_finding_what(finding, "what stands there is no plan: it was damaged, or written by something else");
    dv_finding_why(finding, "members divide by names until one of them has written another");
    dv_finding_todo(finding, "zkCli.sh deleteall %s; a member writes it again at once",
                    dv_shell_word(word, "PATH", "%s%s/plan", d->servers.chroot, dv_doctor_root(d)));
}

/* Returns the member that has waited longest for a plan that knows it, or NULL. */
static const dv_status_member *find_unplanned(const dv_status *status) {
    const dv_status_member *oldest = NULL;
    for (size_t i = 0; i < status->member_count; i++) {
        const dv_status_member *m = &status->members[i];
        if (!m->follows || m->entry || m->fenced) continue;
        if (!oldest || m->made_ms < oldest->made_ms) oldest = m;
    }
    return oldest;
}

static void judge_age(const dv_doctor *d, const dv_plan *plan, dv_findings *f) {
    char age[DV_AGE_BYTES], since[DV_AGE_BYTES];
    const dv_status_member *late = find_unplanned(&d->status);
    /* While names decide nobody writes the next plan. */
    bool old = late && d->status.in_force && dv_doctor_age_ms(d, late->made_ms) > SETTLE_MS;
    dv_finding *finding = add_plan(d, f, old ? DV_DOCTOR_WARNING : DV_DOCTOR_OK);
    size_t count = 0;
    for (size_t i = 0; i < d->status.entry_count; i++) count += !dv_status_plan_has_left(&d->status.entries[i]);
    dv_age_text(dv_doctor_age_ms(d, d->planned_ms), age);
    if (!old) {
        dv_finding_what(finding, "plan %" PRIu64 " of %s ago divides %zu item%s among %zu member%s",
                        plan->header.generation, age, plan->set->count, plan->set->count == 1 ? "" : "s", count,
                        count == 1 ? "" : "s");
        return;
    }
    dv_finding_what(finding, "the plan is %s old, and does not have " NAME ", which joined %s ago", age,
                    late->identifier, dv_age_text(dv_doctor_age_ms(d, late->made_ms), since));
    dv_finding_why(
        finding,
        "members write a plan when the party has stood still for their --time-boundary; none did, or none could");
    dv_finding_todo(finding, "see what members write to standard error: they tell why a plan cannot be written");
}

static void judge_plan(const dv_doctor *d, dv_findings *f) {
    dv_plan_standing standing = d->status.plan->memory.standing;
    const dv_plan *plan = dv_status_plan(&d->status);
    if (standing == DV_PLAN_BROKEN || standing == DV_PLAN_NEWER) {
        judge_unusable(d, standing, f);
    } else if (plan) {
        judge_age(d, plan, f);
    } else if (standing == DV_PLAN_MISSING && has_followers(&d->status)) {
        const dv_status_member *m = find_unplanned(&d->status);
        bool old = m && dv_doctor_age_ms(d, m->made_ms) > SETTLE_MS;
        dv_finding *finding = add_plan(d, f, old ? DV_DOCTOR_WARNING : DV_DOCTOR_NOTE);
        dv_finding_what(finding, "there is no plan");
        dv_finding_why(finding,
                       "the members have just come, wait for more of them (--min-members), or may not write one");
        dv_finding_todo(finding, "see what members write to standard error");
    }
}

/* ---- limits ---- */

static void judge_list(const dv_doctor *d, const char *name, size_t bytes, dv_findings *f) {
    char where[DV_FINDING_BYTES];
    if (bytes < (size_t)REPLY_BYTES / 100 * FULL_PERCENT) return;
    snprintf(where, sizeof where, "%.500s/%s", d->path, name);
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "limits", where);
    dv_finding_what(finding, "the list of its children takes %zu KiB of the %d KiB of jute.maxbuffer", bytes / 1024,
                    REPLY_BYTES / 1024 + 1);
    dv_finding_why(finding, "a list that is longer cannot be read, and nobody can take part");
    dv_finding_todo(finding, "divide the items among several pools, or set a larger jute.maxbuffer everywhere");
}

/* Judges the most that one member may watch. A member that waits watches the place before its own, and it was not read
 * which member that is. */
static void judge_watched(const dv_doctor *d, dv_findings *f) {
    size_t bytes = 0, root = strlen(d->path) + strlen("/locks//") + strlen(d->servers.chroot) + 4;
    for (size_t i = 0; i < d->status.item_count; i++) {
        const dv_status_item *item = &d->status.items[i];
        if (item->head && item->waiting) bytes += root + strlen(item->node) + strlen(item->head);
    }
    if (bytes < (size_t)WATCHED_BYTES / 100 * FULL_PERCENT) return;
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "limits", d->path);
    dv_finding_what(finding, "members wait in queues whose paths take %zu KiB; a session may watch %d KiB",
                    bytes / 1024, WATCHED_BYTES / 1024);
    dv_finding_why(finding, "who cannot watch another place takes its item later");
    dv_finding_todo(finding, "start more members, or set --max-moves");
}

static void judge_session(const dv_status *status, const dv_status_member *m, dv_findings *f) {
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "limits", m->identifier);
    size_t lacking = dv_status_room_short(m);
    dv_finding_what(finding, "its session holds %zu items, whose paths take %zu KiB of %d KiB", m->item_count,
                    m->path_bytes / 1024, DV_SESSION_PATH_BYTES / 1024);
    if (lacking)
        dv_finding_why(finding,
                       "a larger session could stop the servers when it ends: %zu more items of its share stay unowned",
                       lacking);
    else dv_finding_why(finding, "a larger session could stop the servers when it ends: more items would stay unowned");
    dv_finding_todo(finding,
                    "start more members, or divvy partition --sessions %zu; or divide fewer, larger items: divvy help "
                    "bucket",
                    lacking ? dv_status_room_sessions(status, m) : 2);
}

static void judge_limits(const dv_doctor *d, dv_findings *f) {
    size_t before = f->count, most = 0;
    for (size_t i = 0; i < d->status.member_count; i++) {
        const dv_status_member *m = &d->status.members[i];
        if (m->item_count < COUNTED_MIN) continue;
        if (m->path_bytes > most) most = m->path_bytes;
        if (m->path_bytes >= (size_t)DV_SESSION_PATH_BYTES / 100 * FULL_PERCENT) judge_session(&d->status, m, f);
    }
    judge_watched(d, f);
    judge_list(d, "party", d->party_bytes, f);
    judge_list(d, "locks", d->locks_bytes, f);
    if (f->count > before || d->status.member_count == 0) return;
    dv_finding_what(dv_findings_add(f, DV_DOCTOR_OK, "limits", d->path),
                    "the fullest session uses %zu %% of its bytes, the longest list %zu %%",
                    most / (DV_SESSION_PATH_BYTES / 100),
                    (d->party_bytes > d->locks_bytes ? d->party_bytes : d->locks_bytes) / (REPLY_BYTES / 100));
}

/* ---- left over ---- */

static void judge_left(const dv_doctor *d, dv_findings *f) {
    const dv_plan *plan = dv_status_plan(&d->status);
    const dv_status_item *first = NULL;
    size_t count = 0;
    for (size_t i = 0; plan && i < d->status.item_count; i++) {
        const dv_status_item *item = &d->status.items[i];
        if (item->head || item->denied || !item->there || dv_pool_item(plan, item->name) != SIZE_MAX) continue;
        if (!first) first = item;
        count++;
    }
    if (first) {
        char where[DV_FINDING_BYTES], word[DV_SHELL_WORD_BYTES];
        snprintf(where, sizeof where, "%.300s/locks/%.300s", d->path, first->node);
        dv_finding *finding = dv_findings_add(f, DV_DOCTOR_NOTE, "left over", where);
        dv_finding_what(finding, "%zu director%s left of items that the pool no longer has", count,
                        count == 1 ? "y is" : "ies are");
        dv_finding_why(finding, "they do no harm; the member that leaves last deletes them");
        dv_finding_todo(
            finding, "zkCli.sh delete %s",
            dv_shell_word(word, "PATH", "%s%s/locks/%s", d->servers.chroot, dv_doctor_root(d), first->node));
    }
    if (d->left_notes == 0) return;
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_NOTE, "left over", d->path);
    dv_finding_what(finding, "%zu note%s of members that are not in the party", d->left_notes,
                    d->left_notes == 1 ? " is" : "s are");
    dv_finding_why(finding, "a note is ephemeral, and goes with its member's session");
}

/* ---- the whole ---- */

void dv_doctor_judge_pool(const dv_doctor *d, dv_findings *f) {
    judge_acls(d, f);
    if (d->pool_error) return;
    if (!d->status.found) {
        dv_finding *finding = dv_findings_add(f, DV_DOCTOR_ERROR, "pool", d->path);
        dv_finding_what(finding, "there is no pool: it has neither members nor locks");
        dv_finding_why(finding, "nobody has joined yet, or the path, or the chroot of --connect, is another");
        dv_finding_todo(finding, "compare --path and --connect with those of the members");
        return;
    }
    judge_plan(d, f);
    judge_limits(d, f);
    judge_left(d, f);
}
