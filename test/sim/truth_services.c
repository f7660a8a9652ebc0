/* The commits below the registry's path: a mirror, and the conditions for each transaction: S10, S11.
 * SPDX-License-Identifier: Apache-2.0 */
#include "services.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/ensemble.h"

const char *const sim_role_names[SIM_ROLES] = {"r0", "r1"}, *const sim_unique_names[SIM_UNIQUES] = {"u0", "u1"};

enum { DRIFT_MS = 1000 }; /* what two clocks may part in a time that is known of and not old */

const char *sim_text_of(const cJSON *json, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* ---- entries ---- */

sim_entry *sim_entry_of(sim_world *w, const char *role, const char *id, bool make) {
    struct sim_services_truth *truth = w->services_truth;
    for (size_t i = 0; i < truth->entry_count; i++) {
        sim_entry *e = &truth->entries[i];
        if (strcmp(e->role, role) == 0 && strcmp(e->id, id) == 0) return e;
    }
    if (!make) return NULL;
    if (truth->entry_count == SIM_ENTRIES_MAX) abort();
    sim_entry *e = &truth->entries[truth->entry_count++];
    snprintf(e->role, sizeof e->role, "%s", role);
    snprintf(e->id, sizeof e->id, "%s", id);
    e->unique = strcmp(role, id) == 0;
    return e;
}

sim_version *sim_entry_current(const sim_entry *e) {
    return e->present ? &e->versions[e->count - 1] : NULL;
}

const sim_version *sim_entry_version(const sim_entry *e, const char *attempt) {
    for (size_t i = e->count; i-- > 0;) {
        if (strcmp(e->versions[i].attempt, attempt) == 0) return &e->versions[i];
    }
    return NULL;
}

static sim_entry *entry_of_path(sim_world *w, const char *path) {
    static const char prefix[] = SIM_REGISTRY_PATH "/";
    char role[8];
    if (strncmp(path, prefix, sizeof prefix - 1) != 0) return NULL;
    const char *rest = path + sizeof prefix - 1, *id = strchr(rest, '/');
    if (!id || (size_t)(id - rest) >= sizeof role) return NULL;
    snprintf(role, sizeof role, "%.*s", (int)(id - rest), rest);
    return sim_entry_of(w, role, id + 1, true);
}

/* ---- processes ---- */

size_t sim_process_open(sim_world *w, const divvy_client *client, const char *nonce) {
    struct sim_services_truth *truth = w->services_truth;
    if (truth->process_count == SIM_PROCESSES_MAX) abort();
    sim_process *p = &truth->processes[truth->process_count];
    *p = (sim_process){.client = client};
    snprintf(p->nonce, sizeof p->nonce, "%s", nonce);
    return truth->process_count++;
}

/* The last that was on the session. */
sim_process *sim_process_of(const struct sim_services_truth *truth, int64_t session) {
    for (size_t i = truth->process_count; i-- > 0;) {
        sim_process *p = &truth->processes[i];
        for (size_t k = 0; k < p->session_count; k++) {
            if (p->sessions[k] == session) return p;
        }
    }
    return NULL;
}

/* Returns whether any process that was on the session answers to `test`: more than one may have been. */
static bool any_process(const sim_world *w, int64_t session, bool (*test)(const sim_process *, const void *),
                        const void *context) {
    const struct sim_services_truth *truth = w->services_truth;
    for (size_t i = 0; i < truth->process_count; i++) {
        const sim_process *p = &truth->processes[i];
        for (size_t k = 0; k < p->session_count; k++) {
            if (p->sessions[k] == session && test(p, context)) return true;
        }
    }
    return false;
}

/* ---- transactions ---- */

/* The public face tells neither data nor times of nodes. */
static const dv_mem_txn *raw_transaction(const sim_world *w) {
    const dv_mem *mem = w->ensemble;
    return mem->history[mem->history_count - 1];
}

static const dv_mem_step *step_of(const dv_mem_txn *txn, const char *path, dv_mem_step_kind kind) {
    for (size_t i = 0; i < txn->count; i++) {
        const dv_mem_step *step = &txn->steps[i];
        if (step->kind == kind && step->path && strcmp(step->path->text, path) == 0) return step;
    }
    return NULL;
}

/* Each status has a number, and a field that no other has: what was in the one before is gone. */
static bool is_whole(const cJSON *json) {
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(json, "n"), *item;
    char own[24];
    unsigned fields = 0;
    snprintf(own, sizeof own, "x%d", cJSON_IsNumber(number) ? number->valueint : -1);
    cJSON_ArrayForEach(item, json) {
        fields += item->string[0] == 'x';
    }
    return fields == 1 && cJSON_GetObjectItemCaseSensitive(json, own);
}

static sim_version read_version(sim_world *w, const divvy_testing_transaction *t, const dv_mem_step *step,
                                int64_t time_ms) {
    sim_version v = {.from_zxid = t->zxid, .to_zxid = INT64_MAX, .mtime_ms = time_ms, .owner = t->ephemeral_owner};
    v.czxid = t->kind == DIVVY_TESTING_CREATE ? t->zxid : t->czxid;
    cJSON *json = step->data ? cJSON_ParseWithLength(step->data->data, step->data->bytes) : NULL;
    const cJSON *ttl = cJSON_GetObjectItemCaseSensitive(json, "ttl");
    snprintf(v.attempt, sizeof v.attempt, "%s", sim_text_of(json, "attempt"));
    snprintf(v.nonce, sizeof v.nonce, "%s", sim_text_of(json, "nonce"));
    snprintf(v.first, sizeof v.first, "%s", sim_text_of(json, "first_heartbeat"));
    v.ttl_ms = cJSON_IsNumber(ttl) ? ttl->valuedouble * 1000 : 0;
    if (!v.attempt[0] || v.ttl_ms <= 0) sim_violate(w, "S10", "%s has been given no whole entry", t->path);
    else if (!is_whole(json)) sim_violate(w, "S10", "%s has been given what is left of two statuses", t->path);
    cJSON_Delete(json);
    return v;
}

static int64_t tolerance_ms(const sim_world *w) {
    const struct sim_services_truth *truth = w->services_truth;
    return 2 + truth->wall_high_ms - truth->wall_low_ms + (truth->drifts ? DRIFT_MS : 0);
}

/* A role's holder changes only when its node is gone, or its ttl has passed; what a service was first is kept. */
static void check_replaced(sim_world *w, const divvy_testing_transaction *t, const sim_entry *e,
                           const sim_version *new) {
    const sim_version *old = e->count ? &e->versions[e->count - 1] : NULL;
    bool set = t->kind == DIVVY_TESTING_SET;
    if (!old || !(set ? e->present : old->to_zxid == t->zxid)) return;
    if (strcmp(old->nonce, new->nonce) == 0) {
        if (strcmp(old->first, new->first) != 0)
            sim_violate(w, "S10", "%s: its first heartbeat was %s, and is %s now", t->path, old->first, new->first);
        return;
    }
    if (!e->unique) return;
    int64_t age_ms = new->mtime_ms - old->mtime_ms;
    if (set) {
        sim_violate(w, "S10", "%s: %s wrote over the entry of %s", t->path, new->nonce, old->nonce);
    } else if ((double)(age_ms + tolerance_ms(w)) < old->ttl_ms) {
        sim_violate(w, "S10", "%s: %s took the place of %s, who was %lld ms old, of %.0f", t->path, new->nonce,
                    old->nonce, (long long)age_ms, old->ttl_ms);
    } else {
        w->coverage->service_meetings[SIM_MET_TAKEN_OVER]++;
    }
}

static void apply_written(sim_world *w, const divvy_testing_transaction *t, sim_entry *e) {
    bool set = t->kind == DIVVY_TESTING_SET;
    const dv_mem_txn *txn = raw_transaction(w);
    const dv_mem_step *step = step_of(txn, t->path, set ? DV_MEM_TXN_SET : DV_MEM_TXN_CREATE);
    if (!step) abort();
    sim_version v = read_version(w, t, step, txn->time_ms);
    if (set && e->present) {
        v.owner = e->versions[e->count - 1].owner;
        v.czxid = e->versions[e->count - 1].czxid;
        v.version = e->versions[e->count - 1].version + 1;
    }
    check_replaced(w, t, e, &v);
    if (set && e->present) {
        e->versions[e->count - 1].to_zxid = t->zxid;
        e->versions[e->count - 1].to_ms = t->at_ms;
    }
    if (e->count == e->room) {
        e->room = e->room ? 2 * e->room : 16;
        e->versions = realloc(e->versions, e->room * sizeof *e->versions);
        if (!e->versions) abort();
    }
    e->versions[e->count++] = v;
    e->present = true;
}

/* ---- deletions ---- */

typedef struct {
    const sim_world *w;
    const sim_entry *e;
    const sim_version *v;
    int64_t time_ms;
} deletion;

static bool was_asked(const sim_process *p, const void *context) {
    const deletion *d = context;
    return p->left >> (d->e - d->w->services_truth->entries) & 1;
}

/* V12: the node was made again since the process looked, and has come to the version that its own entry had. A delete
 * that waits in a server's queue may find more than one heartbeat of the new entry. Excused from S11 is that, and the
 * like of a purge: the next heartbeat brings the entry back, and a unique service cannot be lost so (V11). */
static bool stood_at_this_version(const sim_process *p, const deletion *d) {
    for (const sim_version *v = d->e->versions; v < d->v; v++)
        if (v->czxid != d->v->czxid && v->version == d->v->version && strcmp(p->nonce, v->nonce) == 0) return true;
    return false;
}

static bool closes_own(const sim_process *p, const void *context) {
    const deletion *d = context;
    if (!p->closed) return false;
    return strcmp(p->nonce, d->v->nonce) == 0 || (!d->e->unique && stood_at_this_version(p, d));
}

/* Strictly older than asked; V14: but for what was made again since it was read. */
static bool purges_old(const sim_process *p, const void *context) {
    const deletion *d = context;
    double age_ms = (double)(d->time_ms - d->v->mtime_ms + tolerance_ms(d->w));
    bool afresh = !d->e->unique && d->v->czxid > p->purge_zxid;
    return p->purges && (age_ms > p->purge_ttls * d->v->ttl_ms || afresh);
}

/* S11: a client deletes only entries that it was asked to delete, or that are its own or too old. */
static void check_deleted(sim_world *w, const divvy_testing_transaction *t, const sim_entry *e, const sim_version *v) {
    const dv_mem_txn *txn = raw_transaction(w);
    deletion d = {w, e, v, txn->time_ms};
    if (t->expired || step_of(txn, t->path, DV_MEM_TXN_SESSION_END)) return;
    if (txn->steps[txn->count - 1].kind == DV_MEM_TXN_SESSION_END) return; /* closed by its client */
    if (sim_is_admin(w, t->session_id)) {
        w->foreign_at = w->now_ms;
        return;
    }
    if (step_of(txn, t->path, DV_MEM_TXN_CREATE)) return; /* replaced: check_replaced() */
    if (any_process(w, t->session_id, was_asked, &d) || any_process(w, t->session_id, closes_own, &d)) return;
    if (any_process(w, t->session_id, purges_old, &d)) {
        w->coverage->service_meetings[SIM_MET_PURGED]++;
        return;
    }
    sim_violate(w, "S11", "session 0x%llx deleted %s of %s, which was %lld ms old, of %.0f, and nobody had asked it to",
                (unsigned long long)t->session_id, t->path, v->nonce, (long long)(d.time_ms - v->mtime_ms), v->ttl_ms);
}

static void apply_deleted(sim_world *w, const divvy_testing_transaction *t, sim_entry *e) {
    if (!e->present) return;
    sim_version *v = &e->versions[e->count - 1];
    check_deleted(w, t, e, v);
    v->to_zxid = t->zxid;
    v->to_ms = t->at_ms;
    e->present = false;
}

bool sim_services_transaction(sim_world *w, const divvy_testing_transaction *t) {
    if (w->script->theme != SIM_OF_SERVICES) return false;
    w->services_truth->zxid = t->zxid;
    /* Time may have gone on inside a call, and a session have begun in it. */
    for (size_t i = 0; i < w->script->slots && !sim_process_of(w->services_truth, t->session_id); i++) {
        if (w->members[i].phase != SIM_ABSENT) sim_services_check_step(&w->members[i]);
    }
    sim_entry *e = t->path ? entry_of_path(w, t->path) : NULL;
    if (e && t->kind == DIVVY_TESTING_DELETE) apply_deleted(w, t, e);
    else if (e) apply_written(w, t, e);
    bool probe = t->path && t->path[0] == '/' && !strchr(t->path + 1, '/'); /* of the servers' clock */
    return e || probe;
}

void sim_services_wall_clock(sim_world *w, unsigned server, int64_t offset_ms) {
    struct sim_services_truth *truth = w->services_truth;
    divvy_testing_set_wall_clock(w->ensemble, server, offset_ms);
    if (offset_ms < truth->wall_low_ms) truth->wall_low_ms = offset_ms;
    if (offset_ms > truth->wall_high_ms) truth->wall_high_ms = offset_ms;
}

void sim_services_drift(sim_world *w) {
    if (w->services_truth) w->services_truth->drifts = true;
}

/* ---- life ---- */

void sim_services_truth_new(sim_world *w) {
    if (w->script->theme != SIM_OF_SERVICES) return;
    w->services_truth = calloc(1, sizeof *w->services_truth);
    if (w->services_truth)
        w->services_truth->processes = calloc(SIM_PROCESSES_MAX, sizeof *w->services_truth->processes);
    if (!w->services_truth || !w->services_truth->processes) abort();
}

void sim_services_truth_free(sim_world *w) {
    struct sim_services_truth *truth = w->services_truth;
    if (!truth) return;
    for (size_t i = 0; i < truth->entry_count; i++) free(truth->entries[i].versions);
    free(truth->processes);
    free(truth);
    w->services_truth = NULL;
}
