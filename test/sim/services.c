/* The registry of a member, and its user. SPDX-License-Identifier: Apache-2.0
 *
 * The user announces services, by itself or by the library's timer, claims unique roles, keeps a view and looks at it,
 * without waiting; waiting calls are events of the script. Claims that do not wait go the way that the waiting call
 * goes inside, so that their transactions, too, meet faults in each state. */
#include "services.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "registry/service.h"
#include "registry/watch.h"

enum { LOOK_MS = 400 };

static void met(const sim_services *s, sim_service_meeting what) {
    s->m->world->coverage->service_meetings[what]++;
}

/* ---- statuses ---- */

static cJSON *make_status(sim_services *s, const char *role, const char *id, double ttl_s) {
    char own[24];
    cJSON *status = cJSON_CreateObject();
    snprintf(own, sizeof own, "x%u", ++s->number);
    if (role) cJSON_AddStringToObject(status, "role", role);
    if (id) cJSON_AddStringToObject(status, "id", id);
    if (role) cJSON_AddNumberToObject(status, "load", sim_below(&s->random, 4));
    cJSON_AddNumberToObject(status, "ttl", ttl_s);
    cJSON_AddNumberToObject(status, "n", s->number);
    cJSON_AddNumberToObject(status, own, 1);
    return status;
}

static double on_load(divvy_registry *registry, const char *role, const char *id, double load, void *user) {
    sim_services *s = user;
    (void)registry, (void)role, (void)id;
    return load + sim_below(&s->random, 2);
}

/* ---- heartbeats ---- */

typedef struct {
    sim_services *s;
    sim_own *own;
    sim_unique *unique;
    sim_call call;
} asked;

static asked *new_asked(sim_services *s, int64_t timeout_ms) {
    asked *a = calloc(1, sizeof *a);
    if (!a) abort();
    *a = (asked){.s = s, .call = sim_call_begin(s, timeout_ms)};
    return a;
}

static void on_beat(divvy_registry *registry, int result, const cJSON *stored, void *user) {
    asked *a = user;
    (void)registry;
    a->own->under_way--;
    sim_check_result(a->s, &a->call, "heartbeat", result);
    if (result == 0) sim_check_stored(a->s, &a->call, stored);
    if (result == 0) met(a->s, a->s->persistent ? SIM_MET_PERSISTENT : SIM_MET_EPHEMERAL);
    free(a);
}

static int64_t some_timeout(sim_services *s) {
    return SIM_ONE_OF(&s->random, -1, -1, -1, 40, 500, 3000);
}

static void beat(sim_services *s, sim_own *own) {
    sim_world *w = s->m->world;
    int64_t timeout_ms = w->healed ? -1 : some_timeout(s), interval_ms = (int64_t)(own->ttl_s * 1000 / 3);
    asked *a = new_asked(s, timeout_ms);
    a->own = own;
    cJSON *status = make_status(s, sim_role_names[own->role], own->id, own->ttl_s);
    int error = divvy_registry_heartbeat_async(s->registry, status, timeout_ms, on_beat, a);
    cJSON_Delete(status);
    own->next_ms = w->now_ms + interval_ms;
    if (error == 0) {
        own->under_way++;
        own->wanted = true;
        return;
    }
    sim_violate(w, "S8", "a heartbeat of %s: %s", s->m->name, divvy_client_error(s->m->client));
    free(a);
}

/* One that sends them itself says only once that it is there, and again where that was in vain. */
static void beat_if_due(sim_services *s, sim_own *own) {
    sim_world *w = s->m->world;
    if (own->next_ms > w->now_ms || own->under_way > 2) return;
    if (!own->wanted && w->healed) return;
    const sim_entry *e = sim_entry_of(w, sim_role_names[own->role], own->id, false);
    const sim_version *v = e ? sim_entry_current(e) : NULL;
    bool stands = own->wanted && v && strcmp(v->nonce, w->services_truth->processes[s->process].nonce) == 0;
    if (s->automatic && stands && sim_chance(&s->random, 90)) own->next_ms = w->now_ms + (int64_t)(own->ttl_s * 1000);
    else beat(s, own);
}

/* ---- claims ---- */

/* Notes the end of a claim. A candidate that finds another holder comes back when that one's ttl ends, as near as it
 * can tell. */
static void come_back(sim_services *s, sim_unique *u, const char *role, const cJSON *holder) {
    const sim_world *w = s->m->world;
    const sim_entry *e = sim_entry_of(s->m->world, role, role, false);
    const sim_version *v = e ? sim_entry_version(e, sim_text_of(holder, "attempt")) : NULL;
    if (!v || strcmp(v->nonce, w->services_truth->processes[s->process].nonce) == 0) return;
    int64_t end_ms = v->mtime_ms + (int64_t)v->ttl_ms - divvy_testing_wall_clock_ms(w->ensemble);
    u->next_ms = divvy_testing_now_ms(w->ensemble) + end_ms + sim_between(&s->random, -5, 5);
}

static void on_claimed(void *context, dv_task *task, int64_t now) {
    asked *a = context;
    (void)now;
    a->unique->under_way--;
    sim_check_result(a->s, &a->call, "unique_service", task->result);
    if (task->result == 0) sim_check_claimed(a->s, &a->call, task->entry);
    if (task->result == 0) come_back(a->s, a->unique, sim_unique_names[a->unique - a->s->uniques], task->entry);
    free(a);
}

/* As divvy_registry_unique_service() does it, but for the waiting. */
static void claim(sim_services *s, size_t k) {
    sim_unique *u = &s->uniques[k];
    sim_world *w = s->m->world;
    int64_t timeout_ms = w->healed ? -1 : some_timeout(s);
    u->next_ms = w->now_ms + (int64_t)(u->ttl_s * 1000 / 3);
    if (u->under_way > 2) return;
    cJSON *candidate = make_status(s, NULL, NULL, u->ttl_s);
    asked *a = new_asked(s, timeout_ms);
    a->unique = u;
    u->under_way++;
    dv_client_lock(s->m->client);
    int error = dv_service_store(s->registry, candidate, sim_unique_names[k], timeout_ms, on_claimed, a, NULL);
    dv_client_unlock(s->m->client);
    cJSON_Delete(candidate);
    if (error) sim_violate(w, "S8", "a claim of %s: %s", s->m->name, divvy_strerror(error));
}

/* ---- views ---- */

static sim_told *told_of(sim_services *s, const cJSON *entry) {
    for (size_t i = 0; i < s->told_count; i++) {
        sim_told *t = &s->told[i];
        if (strcmp(t->role, sim_text_of(entry, "role")) == 0 && strcmp(t->id, sim_text_of(entry, "id")) == 0) return t;
    }
    return NULL;
}

/* Added and removed take turns, and before is what after was. */
static void on_change(divvy_registry *registry, int change, const cJSON *before, const cJSON *after, void *user) {
    sim_services *s = user;
    sim_world *w = s->m->world;
    (void)registry;
    sim_told *t = told_of(s, before ? before : after);
    bool added = change == DIVVY_REGISTRY_ADDED, removed = change == DIVVY_REGISTRY_REMOVED;
    bool shaped = added ? !before && after : removed ? before && !after : before && after;
    if (!shaped || added != !t)
        sim_violate(w, "S8", "%s was told %d of a service that it %s", s->m->name, change, t ? "knew" : "did not know");
    if (t && before && strcmp(t->attempt, sim_text_of(before, "attempt")) != 0)
        sim_violate(w, "S8", "%s was told of a change of %s/%s, and not from what it was told last", s->m->name,
                    t->role, t->id);
    if (w->violation.set) return;
    met(s, added ? SIM_MET_ADDED : removed ? SIM_MET_REMOVED : SIM_MET_CHANGED);
    if (removed) {
        *t = s->told[--s->told_count];
        return;
    }
    if (!t) t = &s->told[s->told_count++];
    snprintf(t->role, sizeof t->role, "%s", sim_text_of(after, "role"));
    snprintf(t->id, sizeof t->id, "%s", sim_text_of(after, "id"));
    snprintf(t->attempt, sizeof t->attempt, "%s", sim_text_of(after, "attempt"));
}

static void watch(sim_services *s) {
    s->view = (int)sim_below(&s->random, SIM_ROLES + 1);
    s->watched = true;
    s->told_count = 0;
    const char *role = s->view == SIM_VIEW_ALL ? NULL : sim_role_names[s->view];
    if (divvy_registry_watch(s->registry, role, on_change, s) != 0)
        sim_violate(s->m->world, "S8", "%s cannot watch: %s", s->m->name, divvy_client_error(s->m->client));
}

static void unwatch(sim_services *s) {
    divvy_registry_unwatch(s->registry, s->view == SIM_VIEW_ALL ? NULL : sim_role_names[s->view]);
    s->view = SIM_VIEW_NONE;
    s->told_count = 0;
    memset(s->seen_zxid, 0, sizeof s->seen_zxid);
}

static bool is_viewed(const sim_services *s, const char *role) {
    dv_client_lock(s->m->client);
    bool viewed = dv_registry_knows_time(s->registry) && dv_registry_view_ready(s->registry, role);
    dv_client_unlock(s->m->client);
    return viewed;
}

/* ---- lookups ---- */

static uint64_t count_requests(const sim_services *s) {
    divvy_stats stats;
    return divvy_client_stats(s->m->client, &stats, sizeof stats) == 0 ? stats.requests : 0;
}

static void look(sim_services *s, const char *role, bool one, int64_t timeout_ms) {
    cJSON *found = NULL;
    sim_call call = sim_call_begin(s, timeout_ms);
    call.viewed = is_viewed(s, role);
    uint64_t requests = count_requests(s);
    int error = one ? divvy_registry_healthy_service(s->registry, role, &found, timeout_ms)
                    : divvy_registry_healthy_services(s->registry, role, &found, timeout_ms);
    if (call.viewed && count_requests(s) != requests)
        sim_violate(s->m->world, "S10", "%s looked at its view, and sent a request", s->m->name);
    sim_check_result(s, &call, "a lookup", error);
    sim_check_time(s);
    if (!error && !one) sim_check_all_healthy(s, &call, role, found);
    if (!error && one && found) sim_check_healthy(s, &call, found);
    if (!error) met(s, call.viewed ? SIM_MET_VIEWED : SIM_MET_READ_SERVICES);
    cJSON_Delete(found);
}

/* Takes the list of a view, and keeps it until the next one is taken. */
static void take_list(sim_services *s, const char *role) {
    divvy_services *list = NULL;
    uint64_t requests = count_requests(s);
    int error = divvy_registry_services(s->registry, role, &list, 0);
    if (error || count_requests(s) != requests)
        sim_violate(s->m->world, "S10", "%s asked its view for a list: %s", s->m->name,
                    error ? divvy_strerror(error) : "a request was sent");
    else sim_check_list(s, role, list);
    divvy_services_unref(s->list);
    s->list = list;
}

/* ---- by itself ---- */

int64_t sim_services_next(const sim_member *m) {
    const sim_services *s = m->services;
    if (!s || !s->registry) return INT64_MAX;
    int64_t next = s->next_look_ms;
    for (size_t i = 0; i < s->own_count; i++) {
        if (s->own[i].next_ms < next) next = s->own[i].next_ms;
    }
    for (size_t k = 0; k < SIM_UNIQUES; k++) {
        if (s->uniques[k].candidate && s->uniques[k].next_ms < next) next = s->uniques[k].next_ms;
    }
    return next;
}

static void look_at_view(sim_services *s) {
    sim_world *w = s->m->world;
    s->next_look_ms = w->now_ms + sim_between(&s->random, LOOK_MS / 4, LOOK_MS);
    bool changes = !w->healed && sim_chance(&s->random, 2);
    if (changes && s->view == SIM_VIEW_NONE) watch(s);
    else if (changes) unwatch(s);
    const char *role = s->view < SIM_VIEW_ALL && s->view >= 0 ? sim_role_names[s->view] : NULL;
    if (s->view == SIM_VIEW_NONE || !is_viewed(s, role)) return;
    look(s, role, false, 0);
    if (s->registry) take_list(s, role);
}

void sim_services_act(sim_member *m) {
    sim_services *s = m->services;
    sim_world *w = m->world;
    if (!s || !s->registry || m->phase != SIM_RUNS) return;
    for (size_t i = 0; i < s->own_count; i++) {
        sim_own *own = &s->own[i];
        if (w->healed && !own->wanted && own->next_ms <= w->now_ms) own->next_ms = INT64_MAX;
        beat_if_due(s, own);
    }
    for (size_t k = 0; k < SIM_UNIQUES; k++) {
        if (s->uniques[k].candidate && s->uniques[k].next_ms <= w->now_ms) claim(s, k);
    }
    if (s->next_look_ms <= w->now_ms) look_at_view(s);
    sim_check_time(s);
}

/* A session that the process has not been on before. */
void sim_services_check_step(sim_member *m) {
    sim_services *s = m->services;
    if (!s) return;
    int64_t session = divvy_client_session_id(m->client);
    if (session == s->session || session == 0) return;
    struct sim_services_truth *truth = m->world->services_truth;
    s->session = session;
    for (size_t i = 0; i < truth->process_count; i++) {
        sim_process *p = &truth->processes[i];
        if (p->client == m->client && p->session_count < SIM_PROCESS_SESSIONS_MAX)
            p->sessions[p->session_count++] = session;
    }
}

/* ---- waiting calls, by the script ---- */

static void look_by_event(sim_services *s, const sim_event *e) {
    int64_t timeout_ms = e->c % 800;
    bool one = e->d % 2;
    size_t role = e->b % (SIM_ROLES + 1);
    const char *name = role < SIM_ROLES ? sim_role_names[role] : one ? sim_unique_names[e->b % SIM_UNIQUES] : NULL;
    look(s, name, one, timeout_ms);
}

static void claim_by_event(sim_services *s, const sim_event *e) {
    int64_t timeout_ms = e->d % 3 ? e->c % 1500 : e->c % 30;
    size_t k = e->b % SIM_UNIQUES;
    sim_unique *u = &s->uniques[k];
    cJSON *candidate = u->candidate ? make_status(s, NULL, NULL, u->ttl_s) : NULL, *entry = NULL;
    sim_call call = sim_call_begin(s, timeout_ms);
    int error = divvy_registry_unique_service(s->registry, sim_unique_names[k], candidate, &entry, timeout_ms);
    sim_check_result(s, &call, "unique_service", error);
    sim_check_time(s);
    if (!error) sim_check_claimed(s, &call, entry);
    cJSON_Delete(candidate);
    cJSON_Delete(entry);
}

static void purge(sim_services *s, const sim_event *e) {
    static const double choices[] = {0.25, 0.5, 1, 2};
    double ttls = choices[e->b % 4];
    int64_t timeout_ms = 50 + e->c % 1000;
    size_t purged = 0;
    sim_call call = sim_call_begin(s, timeout_ms);
    sim_process *p = &s->m->world->services_truth->processes[s->process];
    p->purge_ttls = p->purges && p->purge_ttls < ttls ? p->purge_ttls : ttls;
    p->purge_zxid = call.seen_zxid;
    p->purges = true;
    int error = divvy_registry_purge_stale_services(s->registry, ttls, &purged, timeout_ms);
    sim_check_result(s, &call, "purge", error);
}

static void note_asked(sim_services *s, const char *role, const char *id) {
    struct sim_services_truth *truth = s->m->world->services_truth;
    for (size_t i = 0; i < truth->entry_count; i++) {
        const sim_entry *e = &truth->entries[i];
        bool meant = strcmp(e->id, id) == 0 && (!role || strcmp(e->role, role) == 0);
        if (meant) truth->processes[s->process].left |= UINT64_C(1) << i;
    }
}

static void unregister(sim_services *s, const sim_event *e) {
    sim_world *w = s->m->world;
    const struct sim_services_truth *truth = w->services_truth;
    int64_t timeout_ms = e->d % 2 ? e->c % 40 : e->c % 1000;
    char id[16], role_of[8];
    const char *role = NULL;
    if (e->b % 5 == 0 && truth->entry_count) { /* whosesoever */
        const sim_entry *other = &truth->entries[(e->b >> 4) % truth->entry_count];
        snprintf(id, sizeof id, "%s", other->id);
        snprintf(role_of, sizeof role_of, "%s", other->role);
        role = role_of;
        w->foreign_at = w->now_ms;
    } else {
        const sim_own *own = &s->own[e->b % s->own_count];
        snprintf(id, sizeof id, "%s", own->id);
        if (e->b % 3) role = sim_role_names[own->role];
        sim_entry_of(w, sim_role_names[own->role], own->id, true);
    }
    for (size_t i = 0; i < s->own_count; i++) {
        sim_own *o = &s->own[i];
        if (strcmp(o->id, id) != 0 || (role && strcmp(sim_role_names[o->role], role) != 0)) continue;
        o->wanted = false;
        o->next_ms = w->now_ms + sim_between(&s->random, 1, 6000);
    }
    note_asked(s, role, id);
    sim_call call = sim_call_begin(s, timeout_ms);
    int error = divvy_registry_unregister(s->registry, role, id, timeout_ms);
    sim_check_result(s, &call, "unregister", error);
    sim_check_removed(s, &call, role, id, error);
    if (error == 0) met(s, SIM_MET_UNREGISTERED);
    if (error == DIVVY_ENOENT) met(s, SIM_MET_NO_SERVICE);
}

void sim_services_call(sim_member *m, const sim_event *e) {
    sim_services *s = m->services;
    if (!s || !s->registry) return;
    switch (e->kind) {
    case SIM_SERVICES_LOOK: look_by_event(s, e); break;
    case SIM_SERVICES_CLAIM: claim_by_event(s, e); break;
    case SIM_SERVICES_PURGE: purge(s, e); break;
    default: unregister(s, e); break;
    }
    sim_check_anew(m->world);
    sim_user_plan(m);
}

/* ---- life ---- */

static double some_ttl(sim_services *s) {
    int64_t most_ms = s->m->world->script->ttl_ms;
    return (double)sim_between(&s->random, most_ms / 2, most_ms) / 1000;
}

static void draw_announced(sim_services *s) {
    const sim_member *m = s->m;
    s->own_count = 1 + sim_below(&s->random, SIM_OWN_MAX);
    for (size_t i = 0; i < s->own_count; i++) {
        sim_own *own = &s->own[i];
        own->role = sim_below(&s->random, SIM_ROLES);
        own->ttl_s = some_ttl(s);
        own->next_ms = m->world->now_ms + sim_between(&s->random, 1, 500);
        snprintf(own->id, sizeof own->id, "s%u-%u", (unsigned)(m->slot % 100), (unsigned)(i % 10));
    }
    for (size_t k = 0; k < SIM_UNIQUES; k++) {
        sim_unique *u = &s->uniques[k];
        u->candidate = sim_chance(&s->random, 60);
        u->ttl_s = some_ttl(s);
        u->next_ms = m->world->now_ms + sim_between(&s->random, 1, 500);
    }
}

static void open_registry(sim_services *s) {
    static const size_t watch_bytes[] = {0, 0, 0, 60, 400};
    sim_world *w = s->m->world;
    char nonce[24];
    snprintf(nonce, sizeof nonce, "%.8s-%u", s->m->name, (unsigned)w->services_truth->process_count);
    s->process = sim_process_open(w, s->m->client, nonce);
    s->session = 0;
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.path = SIM_REGISTRY_PATH;
    config.host = "host";
    config.pid = 1;
    config.nonce = nonce;
    config.persistent = s->persistent;
    config.heartbeat = s->automatic;
    config.on_load = sim_chance(&s->random, 50) ? on_load : NULL;
    config.watch_bytes = watch_bytes[sim_below(&s->random, 5)];
    config.poll_ms = SIM_POLL_MS;
    config.user = s;
    if (divvy_registry_open(&s->registry, s->m->client, &config) != 0)
        sim_violate(w, "open", "no registry: %s", divvy_client_error(s->m->client));
    sim_services_check_step(s->m);
    sim_trace(w, "%s has the registry %s%s%s", s->m->name, nonce, s->persistent ? ", persistent" : "",
              s->automatic ? ", with heartbeats by itself" : "");
}

/* Also again, after a destroy: what it announced before is another process's by then. */
void sim_services_start(sim_member *m, sim_random *r) {
    sim_services *s = m->services;
    if (!s) {
        s = m->services = calloc(1, sizeof *s);
        if (!s) abort();
        s->random = sim_random_of(sim_draw(r), 11);
    }
    s->m = m;
    s->view = SIM_VIEW_NONE;
    s->automatic = sim_chance(&s->random, 50);
    s->persistent = sim_chance(&s->random, 25);
    s->told_count = 0;
    memset(s->seen_zxid, 0, sizeof s->seen_zxid);
    draw_announced(s);
    open_registry(s);
    s->next_look_ms = m->world->now_ms + LOOK_MS;
    if (!m->world->violation.set && sim_chance(&s->random, 60)) watch(s);
}

void sim_services_destroy(sim_member *m) {
    sim_services *s = m->services;
    if (!s || !s->registry) return;
    divvy_registry *registry = s->registry;
    m->world->services_truth->processes[s->process].closed = true;
    s->registry = NULL;
    s->view = SIM_VIEW_NONE;
    divvy_registry_close(registry);
}

/* Its process ends: what it has is deleted from now on. */
void sim_services_stop(sim_member *m) {
    if (m->services) m->world->services_truth->processes[m->services->process].closed = true;
}

void sim_services_free(sim_member *m) {
    struct sim_services_truth *truth = m->world->services_truth;
    for (size_t i = 0; truth && i < truth->process_count; i++) {
        if (truth->processes[i].client == m->client) truth->processes[i].client = NULL;
    }
    if (m->services) divvy_services_unref(m->services->list);
    free(m->services);
    m->services = NULL;
}
