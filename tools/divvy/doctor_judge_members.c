/* The faults of a pool's members. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "doctor_judge.h"
#include "plan/party.h"
#include "shell_word.h"
#include "status_plan.h"
#include "table.h"

enum { SKEW_MS = 2000, SHOWN_MAX = 20 };

/* A name as it stands in a sentence. */
#define NAME "%.160s"

/* "host (pid 12)", or what else is known of where it is. The host says its name itself, so it is a word of a shell. */
static void print_place(const dv_doctor *d, const dv_status_member *m, char out[DV_FINDING_BYTES]) {
    char host[DV_SHELL_WORD_BYTES];
    const dv_word_connection *connection = dv_doctor_connection(d, m->session);
    dv_shell_word(host, "HOST", "%s", m->host);
    if (*m->host) snprintf(out, DV_FINDING_BYTES, "%s (pid %" PRId64 ")", host, m->pid);
    else if (connection) snprintf(out, DV_FINDING_BYTES, "%s", connection->address);
    else snprintf(out, DV_FINDING_BYTES, "session 0x%" PRIx64, (uint64_t)m->session);
}

/* ---- strays ---- */

static void judge_strays(const dv_doctor *d, dv_findings *f) {
    char where[DV_FINDING_BYTES], word[DV_SHELL_WORD_BYTES];
    if (d->status.stray_count == 0) return;
    const char *stray = d->status.stray ? d->status.stray : "?";
    snprintf(where, sizeof where, "%.300s/party/%.300s", d->path, stray);
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "stray", where);
    dv_finding_what(finding, "%zu node%s in the party %s no member's: a name of another form, or not ephemeral",
                    d->status.stray_count, d->status.stray_count == 1 ? "" : "s",
                    d->status.stray_count == 1 ? "is" : "are");
    dv_finding_why(finding, "kazoo's members give it a share, which nobody works on");
    dv_finding_todo(finding, "zkCli.sh delete %s",
                    dv_shell_word(word, "PATH", "%s%s/party/%s", d->servers.chroot, dv_doctor_root(d), stray));
}

/* ---- who is there no longer ---- */

static void judge_ghost(const dv_doctor *d, const dv_status_member *m, dv_findings *f) {
    char place[DV_FINDING_BYTES];
    print_place(d, m, place);
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "ghost", m->identifier);
    dv_finding_what(finding, "its node is there, and its session 0x%" PRIx64 " has no connection to any server",
                    (uint64_t)m->session);
    dv_finding_why(finding, "its process has died or is cut off; its %zu items wait until the session ends",
                   m->item_count);
    dv_finding_todo(finding, "look at it on %s; its node goes by itself within the session's timeout", place);
}

static void judge_silent(const dv_doctor *d, const dv_status_member *m, const dv_word_connection *c, dv_findings *f) {
    char place[DV_FINDING_BYTES];
    print_place(d, m, place);
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "silent", m->identifier);
    dv_finding_what(finding, "it has sent nothing for at least %.1f s; its session ends after %.1f s",
                    (double)c->silent_ms / 1000, (double)c->timeout_ms / 1000);
    dv_finding_why(finding, "it is frozen or cut off: it no longer works on its %zu items", m->item_count);
    if (m->pid) dv_finding_todo(finding, "look at the process on %s: kill -CONT %" PRId64, place, m->pid);
    else dv_finding_todo(finding, "look at the process on %s", place);
}

/* Clients ping after a third of their timeout, kazoo's after 0.4 of it. */
static void judge_links(const dv_doctor *d, dv_findings *f) {
    for (size_t i = 0; i < d->status.member_count; i++) {
        const dv_status_member *m = &d->status.members[i];
        const dv_word_connection *connection = dv_doctor_connection(d, m->session);
        if (!connection && d->servers.all_clients) judge_ghost(d, m, f);
        else if (connection && connection->timeout_ms > 0 && 2 * connection->silent_ms > connection->timeout_ms)
            judge_silent(d, m, connection, f);
    }
}

/* ---- namesakes ---- */

static void judge_namesakes(const dv_doctor *d, dv_findings *f) {
    char first[DV_FINDING_BYTES], second[DV_FINDING_BYTES];
    for (size_t i = 1; i < d->status.member_count; i++) {
        const dv_status_member *a = &d->status.members[i - 1], *b = &d->status.members[i];
        if (strcmp(a->identifier, b->identifier) != 0) continue;
        bool is_restart = a->is_static && b->is_static;
        print_place(d, a, first);
        print_place(d, b, second);
        dv_finding *finding =
            dv_findings_add(f, is_restart ? DV_DOCTOR_NOTE : DV_DOCTOR_WARNING, "identifier", a->identifier);
        dv_finding_what(finding, "two members go by this identifier: on %s, and on %s", first, second);
        if (is_restart) {
            dv_finding_why(finding, "the one that was started later takes over what the other has, as at a restart");
            dv_finding_todo(finding,
                            "wait until the older one ends: by itself, if it has --replace, else by SIGTERM. If "
                            "this is no restart, give each an --identifier of its own");
            continue;
        }
        dv_finding_why(finding, "logs cannot tell them apart, and with members of kazoo's items have no owner");
        dv_finding_todo(finding, "give each process an identifier of its own: --identifier NAME");
    }
}

/* ---- settings ---- */

/* Returns how many members came after items were requested, and with others than these; *first is one of them. Earlier
 * ones have other items in their names, and work on the requested ones (D17). */
static size_t find_late(const dv_doctor *d, const dv_plan *plan, int64_t asked_at, size_t *first) {
    size_t count = 0;
    for (size_t i = 0; i < d->status.member_count; i++) {
        const dv_status_member *m = &d->status.members[i];
        const dv_plan_node node = {.node = m->node, .czxid = m->czxid, .first_czxid = m->first_czxid};
        if (!d->settings[i].has_set || d->settings[i].set == plan->set->crc) continue;
        if (dv_plan_start(&node) > asked_at && count++ == 0) *first = i;
    }
    return count;
}

static void judge_late(const dv_doctor *d, const dv_status_member *m, dv_findings *f) {
    dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "items", d->path);
    dv_finding_what(finding, NAME " was started with other items than the pool was changed to before", m->identifier);
    dv_finding_why(finding, "the pool goes on with what it was changed to; what only that member has nobody works on");
    dv_finding_todo(finding, "start it with the same --items-from FILE as the pool was changed to");
}

static void judge_sets(const dv_doctor *d, dv_findings *f) {
    const dv_plan *plan = d->status.in_force ? dv_status_plan(&d->status) : NULL;
    int64_t asked_at = plan ? dv_plan_asked_at(plan, &(const dv_plan_party){.pzxid = INT64_MAX}) : 0;
    size_t first = DV_NO_MEMBER, late = asked_at > 0 ? find_late(d, plan, asked_at, &first) : 0;
    if (late > 0 && late < d->status.member_count) judge_late(d, &d->status.members[first], f);
    if (asked_at > 0 && late < d->status.member_count) return;
    first = DV_NO_MEMBER; /* Nothing was requested, or nobody is left who was there. */
    for (size_t i = 0; i < d->status.member_count; i++) {
        if (!d->settings[i].has_set) continue;
        if (first == DV_NO_MEMBER) first = i;
        if (d->settings[i].set == d->settings[first].set) continue;
        dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "items", d->path);
        dv_finding_what(finding, NAME " and " NAME " were started with other items",
                        d->status.members[first].identifier, d->status.members[i].identifier);
        dv_finding_why(finding, "the pool goes on with the older set; what only the newer one has nobody works on");
        dv_finding_todo(finding, "start all members with the same --items-from FILE");
        return;
    }
}

static void judge_options(const dv_doctor *d, dv_findings *f) {
    size_t first = DV_NO_MEMBER;
    for (size_t i = 0; i < d->status.member_count; i++) {
        const dv_doctor_settings *s = &d->settings[i];
        if (!d->status.members[i].follows) continue;
        if (first == DV_NO_MEMBER) first = i;
        const dv_doctor_settings *other = &d->settings[first];
        if (s->max_moves == other->max_moves && s->round_timeout_ms == other->round_timeout_ms) continue;
        dv_finding *finding = dv_findings_add(f, DV_DOCTOR_NOTE, "settings", d->path);
        dv_finding_what(finding, NAME " and " NAME " differ in --max-moves or in their round timeout",
                        d->status.members[first].identifier, d->status.members[i].identifier);
        dv_finding_why(finding, "the plan keeps what it has until all members are configured alike");
        dv_finding_todo(finding, "start all members with the same --max-moves");
        return;
    }
}

static void judge_rule(const dv_doctor *d, dv_findings *f) {
    for (size_t i = 0; i < d->status.member_count; i++) {
        const dv_status_member *m = &d->status.members[i];
        if (m->follows) continue;
        dv_finding *finding = dv_findings_add(f, DV_DOCTOR_NOTE, "plan", m->identifier);
        dv_finding_what(finding, "it follows no plan (%s), so that names decide who owns what",
                        m->kazoo ? "it is kazoo's" : "its release, its mode or its --assign");
        dv_finding_why(finding, "more items move at a change, and none is handed over without a gap");
        dv_finding_todo(finding, "%s",
                        m->kazoo ? "replace members of kazoo's by members of divvy"
                                 : "start all members with this release, and without --assign and --mode");
        return;
    }
}

/* ---- clocks ---- */

/* Reads "2026-01-31T12:00:00Z" in milliseconds since 1970; -1 for what is no such time. */
static int64_t parse_utc(const char *text) {
    struct tm parts = {.tm_isdst = 0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    return end && (*end == 'Z' || *end == '.') ? (int64_t)timegm(&parts) * 1000 : -1;
}

/* A member says when it started, before it makes its node, which a server dates: it cannot be later. */
static void judge_clocks(const dv_doctor *d, dv_findings *f) {
    size_t told = 0;
    for (size_t i = 0; i < d->status.member_count && told < SHOWN_MAX; i++) {
        const dv_status_member *m = &d->status.members[i];
        int64_t ahead_ms = *m->host ? parse_utc(m->since) - m->made_ms : 0;
        if (ahead_ms < SKEW_MS) continue;
        told++;
        dv_finding *finding = dv_findings_add(f, DV_DOCTOR_WARNING, "clock", m->host);
        dv_finding_what(finding, "the clock of the machine of " NAME " is %.0f s ahead of that of the servers",
                        m->identifier, (double)ahead_ms / 1000);
        dv_finding_why(finding, "times in logs and pages are wrong by that; no ownership depends on it");
        dv_finding_todo(finding, "chronyc makestep, where the clock is wrong: there or at the servers");
    }
}

/* ---- the whole ---- */

void dv_doctor_judge_members(const dv_doctor *d, dv_findings *f) {
    size_t before = f->count;
    if (d->pool_error || !d->status.found) return;
    judge_strays(d, f);
    judge_links(d, f);
    judge_namesakes(d, f);
    judge_sets(d, f);
    judge_options(d, f);
    judge_rule(d, f);
    judge_clocks(d, f);
    if (d->status.member_count == 0) {
        char pool[DV_SHELL_WORD_BYTES];
        dv_finding *finding = dv_findings_add(f, DV_DOCTOR_ERROR, "members", d->path);
        dv_finding_what(finding, "nobody is in the pool");
        dv_finding_why(finding, "no item has an owner");
        dv_finding_todo(finding, "start members: divvy partition --path %s --items-from FILE",
                        dv_shell_word(pool, "PATH", "%s", d->path));
    }
    if (f->count > before) return;
    dv_finding_what(dv_findings_add(f, DV_DOCTOR_OK, "members", d->path), "%zu member%s %s there%s",
                    d->status.member_count, d->status.member_count == 1 ? "" : "s",
                    d->status.member_count == 1 ? "is" : "are",
                    d->servers.all_clients ? ", and all are connected" : "");
}
