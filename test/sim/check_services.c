/* The results of a registry's calls, held against the truth, and the rest at the end: S10, L1 to L3, L6.
 * SPDX-License-Identifier: Apache-2.0
 *
 * S10. A read shows a state that is no older than what its session had seen before; a view, which follows changes,
 * one that is no older than its session. An entry that is returned as healthy stood in such a state, and its age by
 * the servers' clock was below its ttl. A list of a view has the healthy entries that the view has, and no others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "registry/service.h"
#include "registry/watch.h"
#include "services.h"
#include "testing/ensemble.h"

/* ---- calls ---- */

sim_call sim_call_begin(const sim_services *s, int64_t timeout_ms) {
    const sim_world *w = s->m->world;
    const dv_mem_client *client = (const dv_mem_client *)(const void *)s->m->client->znode;
    return (sim_call){.zxid = w->services_truth->zxid,
                      .seen_zxid = client->last_zxid,
                      .began_ms = divvy_testing_now_ms(w->ensemble),
                      .timeout_ms = timeout_ms};
}

void sim_check_result(sim_services *s, const sim_call *call, const char *what, int result) {
    sim_world *w = s->m->world;
    int64_t now_ms = divvy_testing_now_ms(w->ensemble), limit_ms = call->began_ms + call->timeout_ms + 1000;
    if (call->timeout_ms >= 0 && now_ms > limit_ms && now_ms > s->m->last_paused + 1000)
        sim_violate(w, "L2", "%s of %s with a timeout of %lld ms took %lld ms", what, s->m->name,
                    (long long)call->timeout_ms, (long long)(now_ms - call->began_ms));
    sim_trace(w, "%s: %s: %s", s->m->name, what, result ? divvy_strerror(result) : "well");
    if (result == DIVVY_ETIMEDOUT) w->coverage->service_meetings[SIM_MET_CALL_TIMED_OUT]++;
    /* Nobody interferes as often as DIVVY_EBUSY takes. */
    bool legal = result == 0 || (result == DIVVY_ETIMEDOUT && call->timeout_ms >= 0);
    bool ends = s->m->ended || !s->registry;
    legal |= result == DIVVY_ENOENT && strcmp(what, "unregister") == 0;
    bool stores = strcmp(what, "heartbeat") == 0 || strcmp(what, "unique_service") == 0;
    legal |= result == DIVVY_ECANCELED && stores; /* It was unregistered. */
    legal |= ends && (result == DIVVY_ECANCELED || result == DIVVY_ECLOSED);
    if (!legal) sim_violate(w, "S8", "%s of %s ended with \"%s\"", what, s->m->name, divvy_strerror(result));
}

/* ---- time: V6 ---- */

/* Returns how wrong the registry's estimate of the servers' time may be. */
static int64_t tolerance_ms(const sim_services *s) {
    enum { MOST_PPM_BEYOND = 6000 };
    const struct sim_services_truth *truth = s->m->world->services_truth;
    const dv_server_time *time = &s->registry->time;
    int64_t tolerance = 2 + truth->wall_high_ms - truth->wall_low_ms;
    if (!truth->drifts) return tolerance;
    int64_t age_ms = dv_client_now(s->m->client) - time->learned_at;
    return tolerance + age_ms * MOST_PPM_BEYOND / 1000000 + time->ahead_most_ms - time->ahead_least_ms + 10;
}

void sim_check_time(sim_services *s) {
    sim_world *w = s->m->world;
    if (!s->registry || !dv_registry_knows_time(s->registry)) return;
    dv_server_now now = dv_registry_server_now(s->registry);
    int64_t true_ms = divvy_testing_wall_clock_ms(w->ensemble), tolerance = tolerance_ms(s);
    if (now.earliest_ms <= true_ms + tolerance && now.latest_ms >= true_ms - tolerance) return;
    sim_violate(w, "S10", "%s takes the servers' time for %lld to %lld ms later than it is", s->m->name,
                (long long)(now.earliest_ms - true_ms), (long long)(now.latest_ms - true_ms));
}

/* ---- entries that were returned ---- */

static const sim_version *find_version(sim_services *s, const cJSON *entry, sim_entry **e) {
    sim_world *w = s->m->world;
    const char *role = sim_text_of(entry, "role"), *id = sim_text_of(entry, "id");
    *e = sim_entry_of(w, role, id, false);
    const sim_version *v = *e ? sim_entry_version(*e, sim_text_of(entry, "attempt")) : NULL;
    if (!v) sim_violate(w, "S10", "%s was given an entry of %s/%s that never stood", s->m->name, role, id);
    return v;
}

static void check_there(sim_services *s, const sim_call *call, sim_entry *e, const sim_version *v) {
    sim_world *w = s->m->world;
    const sim_session *session = sim_truth_session(&w->truth, divvy_client_session_id(s->m->client));
    int64_t session_zxid = session ? session->begun_zxid : 0;
    int64_t least = call->viewed || call->seen_zxid < session_zxid ? session_zxid : call->seen_zxid;
    if (v->to_zxid <= least)
        sim_violate(w, "S10",
                    "%s was given the entry %s/%s of %s%s, which was over at zxid 0x%llx; 0x%llx was to be seen",
                    s->m->name, e->role, e->id, v->nonce, call->viewed ? " by its view" : "",
                    (unsigned long long)v->to_zxid, (unsigned long long)least);
    if (!call->viewed) return;
    int64_t *seen = &s->seen_zxid[e - w->services_truth->entries];
    if (v->from_zxid < *seen)
        sim_violate(w, "S10", "the view of %s shows an entry of %s/%s that is older than what it has shown", s->m->name,
                    e->role, e->id);
    *seen = v->from_zxid;
}

void sim_check_healthy(sim_services *s, const sim_call *call, const cJSON *entry) {
    sim_world *w = s->m->world;
    sim_entry *e;
    const sim_version *v = find_version(s, entry, &e);
    if (!v) return;
    check_there(s, call, e, v);
    int64_t age_ms = divvy_testing_wall_clock_ms(w->ensemble) - v->mtime_ms;
    if ((double)(age_ms - tolerance_ms(s)) >= v->ttl_ms)
        sim_violate(w, "S10", "%s was given the entry %s/%s of %s, which is %lld ms old, of %.0f", s->m->name, e->role,
                    e->id, v->nonce, (long long)age_ms, v->ttl_ms);
}

static bool contains(const cJSON *array, const sim_entry *e) {
    const cJSON *entry;
    cJSON_ArrayForEach(entry, array) {
        if (strcmp(sim_text_of(entry, "role"), e->role) == 0 && strcmp(sim_text_of(entry, "id"), e->id) == 0)
            return true;
    }
    return false;
}

/* None is left out that stood all the time, and is certainly young enough; and they are in order. */
static void check_complete(sim_services *s, const sim_call *call, const char *role, const cJSON *array) {
    sim_world *w = s->m->world;
    int64_t latest_ms = dv_registry_knows_time(s->registry) ? dv_registry_server_now(s->registry).latest_ms : 0;
    for (size_t i = 0; i < w->services_truth->entry_count; i++) {
        const sim_entry *e = &w->services_truth->entries[i];
        const sim_version *v = sim_entry_current(e);
        bool wanted = v && (!role || strcmp(e->role, role) == 0) && v->from_zxid <= call->seen_zxid;
        if (wanted && latest_ms && (double)(latest_ms - v->mtime_ms) < v->ttl_ms && !contains(array, e))
            sim_violate(w, "S10", "%s was not given %s/%s of %s, which is healthy", s->m->name, e->role, e->id,
                        v->nonce);
    }
}

static double load_of(const cJSON *entry) {
    const cJSON *load = cJSON_GetObjectItemCaseSensitive(entry, "load");
    return cJSON_IsNumber(load) ? load->valuedouble : 0;
}

void sim_check_all_healthy(sim_services *s, const sim_call *call, const char *role, const cJSON *array) {
    const cJSON *entry, *before = NULL;
    cJSON_ArrayForEach(entry, array) {
        sim_check_healthy(s, call, entry);
        if (role && strcmp(sim_text_of(entry, "role"), role) != 0)
            sim_violate(s->m->world, "S10", "%s was given a service of another role", s->m->name);
        if (before && load_of(before) > load_of(entry))
            sim_violate(s->m->world, "S10", "%s was given services out of order", s->m->name);
        before = entry;
    }
    if (!call->viewed) check_complete(s, call, role, array);
}

typedef struct {
    const divvy_services *list;
    int64_t latest_ms;
    size_t healthy, missing;
} list_check;

static void find_in_list(void *context, dv_slot *slot) {
    list_check *c = context;
    const dv_entry *entry = slot->current ? slot->current->entry : NULL;
    if (!entry || !dv_entry_is_healthy(entry, c->latest_ms)) return;
    bool found = false;
    for (size_t i = 0; i < divvy_services_count(c->list); i++) found |= divvy_services_entry(c->list, i) == entry->json;
    c->healthy++;
    c->missing += !found;
}

void sim_check_list(sim_services *s, const char *role, const divvy_services *list) {
    list_check c = {.list = list, .latest_ms = dv_registry_server_now(s->registry).latest_ms};
    dv_registry_view_each(s->registry, role, find_in_list, &c);
    if (c.missing || c.healthy != divvy_services_count(list))
        sim_violate(s->m->world, "S10", "the list of %s has %zu entries, and lacks %zu of the %zu of its view",
                    s->m->name, divvy_services_count(list), c.missing, c.healthy);
}

/* Checks that the entry of a heartbeat or a claim was committed within the call that reports it stored. */
void sim_check_stored(sim_services *s, const sim_call *call, const cJSON *entry) {
    sim_entry *e;
    const sim_version *v = find_version(s, entry, &e);
    const char *nonce = s->m->world->services_truth->processes[s->process].nonce;
    if (!v) return;
    if (v->from_zxid <= call->zxid || strcmp(v->nonce, nonce) != 0)
        sim_violate(s->m->world, "S10", "%s was told that it stored %s/%s, which it did not in that call", s->m->name,
                    e->role, e->id);
}

/* Checks that a candidate who is told that it holds a role really did, at a moment of the call. */
void sim_check_claimed(sim_services *s, const sim_call *call, const cJSON *entry) {
    sim_world *w = s->m->world;
    bool ours = entry && strcmp(sim_text_of(entry, "nonce"), w->services_truth->processes[s->process].nonce) == 0;
    if (ours) sim_check_stored(s, call, entry);
    else if (entry) sim_check_healthy(s, call, entry);
    w->coverage->service_meetings[ours ? SIM_MET_HELD : entry ? SIM_MET_HELD_BY_ANOTHER : SIM_MET_HELD_BY_NOBODY]++;
}

void sim_check_removed(sim_services *s, const sim_call *call, const char *role, const char *id, int result) {
    sim_world *w = s->m->world;
    for (size_t i = 0; i < w->services_truth->entry_count && (result == 0 || result == DIVVY_ENOENT); i++) {
        const sim_entry *e = &w->services_truth->entries[i];
        const sim_version *v = sim_entry_current(e);
        bool meant = (!role || strcmp(e->role, role) == 0) && strcmp(e->id, id) == 0;
        if (meant && v && v->czxid <= call->seen_zxid)
            sim_violate(w, "S10", "%s was told that %s/%s %s, and it stands there as before", s->m->name, e->role,
                        e->id, result ? "is not there" : "was removed");
    }
}

/* ---- the end ---- */

static bool is_young(const sim_world *w, const sim_version *v) {
    int64_t age_ms = divvy_testing_wall_clock_ms(w->ensemble) + w->services_truth->wall_low_ms - v->mtime_ms;
    return (double)age_ms < v->ttl_ms;
}

/* Checks that all announced services stand there, and that each unique role with candidates has a holder. */
static bool all_announced(const sim_world *w, sim_fault *f) {
    bool candidates[SIM_UNIQUES] = {false};
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        const sim_services *s = m->services;
        if (m->phase != SIM_RUNS || !s || !s->registry) continue;
        for (size_t k = 0; k < SIM_UNIQUES; k++) candidates[k] |= s->uniques[k].candidate;
        for (size_t k = 0; k < s->own_count; k++) {
            const sim_own *own = &s->own[k];
            if (!own->wanted) continue;
            const sim_entry *e = sim_entry_of((sim_world *)(uintptr_t)w, sim_role_names[own->role], own->id, false);
            const sim_version *v = e ? sim_entry_current(e) : NULL;
            if (!v || !is_young(w, v))
                return sim_wrong(f, "L1", "%s/%s of %s is %s", sim_role_names[own->role], own->id, m->name,
                                 v ? "stale" : "not there");
        }
    }
    for (size_t k = 0; k < SIM_UNIQUES; k++) {
        const sim_entry *e = sim_entry_of((sim_world *)(uintptr_t)w, sim_unique_names[k], sim_unique_names[k], false);
        const sim_version *v = e ? sim_entry_current(e) : NULL;
        if (candidates[k] && (!v || !is_young(w, v))) return sim_wrong(f, "L1", "nobody holds %s", sim_unique_names[k]);
    }
    return true;
}

static const sim_services *owner_of(const sim_world *w, int64_t session) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        if (m->phase != SIM_ABSENT && m->services && divvy_client_session_id(m->client) == session) return m->services;
    }
    return NULL;
}

static bool announces(const sim_services *s, const sim_entry *e) {
    if (!s->registry) return false;
    for (size_t k = 0; k < s->own_count; k++) {
        const sim_own *own = &s->own[k];
        if (own->wanted && strcmp(sim_role_names[own->role], e->role) == 0 && strcmp(own->id, e->id) == 0) return true;
    }
    for (size_t k = 0; k < SIM_UNIQUES; k++) {
        if (s->uniques[k].candidate && strcmp(sim_unique_names[k], e->role) == 0) return true;
    }
    return false;
}

/* L3: each ephemeral entry is of a registry that wants it, on its session. */
static bool no_orphans(const sim_world *w, sim_fault *f) {
    for (size_t i = 0; i < w->services_truth->entry_count; i++) {
        const sim_entry *e = &w->services_truth->entries[i];
        const sim_version *v = sim_entry_current(e);
        if (!v || !v->owner) continue;
        const sim_services *s = owner_of(w, v->owner);
        bool wanted = s && announces(s, e) && strcmp(v->nonce, w->services_truth->processes[s->process].nonce) == 0;
        if (!wanted)
            return sim_wrong(f, "L3", "%s/%s of %s stands there, of session 0x%llx of %s, who does not want it",
                             e->role, e->id, v->nonce, (unsigned long long)v->owner, s ? s->m->name : "nobody");
    }
    return true;
}

static const sim_told *told_of(const sim_services *s, const sim_entry *e) {
    for (size_t i = 0; i < s->told_count; i++) {
        if (strcmp(s->told[i].role, e->role) == 0 && strcmp(s->told[i].id, e->id) == 0) return &s->told[i];
    }
    return NULL;
}

/* Returns whether a view's user was told of the present entries, or of those a moment ago. */
static bool view_is_true(const sim_services *s, sim_fault *f) {
    const sim_world *w = s->m->world;
    enum { MOMENT_MS = 1500 };
    for (size_t i = 0; s->view != SIM_VIEW_NONE && i < w->services_truth->entry_count; i++) {
        const sim_entry *e = &w->services_truth->entries[i];
        const sim_version *now = sim_entry_current(e);
        bool in_view = s->view == SIM_VIEW_ALL || strcmp(e->role, sim_role_names[s->view]) == 0;
        const sim_told *told = told_of(s, e);
        const sim_version *v = told ? sim_entry_version(e, told->attempt) : NULL;
        bool late = told && (!v || (v->to_zxid != INT64_MAX && v->to_ms + SIM_POLL_MS + MOMENT_MS < w->now_ms));
        bool missing = in_view && now && !told && now->mtime_ms + MOMENT_MS < divvy_testing_wall_clock_ms(w->ensemble);
        if (late || missing || (told && !in_view))
            return sim_wrong(f, "L1", "the view of %s shows %s/%s %s", s->m->name, e->role, e->id,
                             missing ? "not" : "as it was long ago");
    }
    return true;
}

/* L6. A watch on the party, on a node of its own, on lists and entries; and each that was given up, until it fires. */
static bool no_leaks(const sim_services *s, sim_fault *f) {
    divvy_stats stats;
    const sim_world *w = s->m->world;
    size_t own = s->m->party ? 1 : 0;
    uint64_t watches = own + 2;
    for (size_t k = 0; s->registry && k < s->own_count; k++) own += s->own[k].wanted && !s->persistent;
    for (size_t k = 0; s->registry && k < SIM_UNIQUES; k++) own += s->uniques[k].candidate && !s->persistent;
    if (s->watched) watches += 1 + SIM_ROLES + SIM_UNIQUES + w->services_truth->entry_count;
    if (divvy_client_stats(s->m->client, &stats, sizeof stats) != 0) return true;
    if (stats.ephemerals > own)
        return sim_wrong(f, "L6", "%s counts %llu ephemeral nodes, and wants %zu", s->m->name,
                         (unsigned long long)stats.ephemerals, own);
    if (stats.watches > watches)
        return sim_wrong(f, "L6", "%s has %llu watches, and needs no more than %llu", s->m->name,
                         (unsigned long long)stats.watches, (unsigned long long)watches);
    return true;
}

bool sim_services_well(sim_world *w, sim_fault *f) {
    if (w->script->theme != SIM_OF_SERVICES) return true;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_services *s = w->members[i].services;
        if (w->members[i].phase == SIM_ABSENT || !s) continue;
        if (s->registry && !view_is_true(s, f)) return false;
        if (!no_leaks(s, f)) return false;
    }
    return all_announced(w, f) && no_orphans(w, f);
}

/* Holders that are gone are waited for a ttl; with wrong clocks also until the clock is asked again. */
int64_t sim_services_bound_ms(const sim_world *w) {
    if (w->script->theme != SIM_OF_SERVICES) return 0;
    int64_t clocks_ms = w->services_truth->wall_high_ms - w->services_truth->wall_low_ms;
    return 2 * (int64_t)w->script->ttl_ms + 5000 + (clocks_ms ? DV_SERVER_TIME_FRESH_MS + 2 * clocks_ms : 0);
}
