/* The administrator: deletes nodes of others, and leaves strays. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "claims.h"
#include "handovers.h"
#include "services.h"

enum { PATH_BYTES = 160 };

bool sim_admin_open(sim_world *w) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.session_timeout_ms = 20 * w->script->tick_ms;
    config.ensemble_tick_ms = w->script->tick_ms;
    return divvy_testing_client_open(&w->admin, w->ensemble, &config) == 0;
}

void sim_admin_close(sim_world *w) {
    divvy_client_close(w->admin);
    w->admin = NULL;
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    (void)context;
    (void)reply;
    (void)now;
}

bool sim_is_admin(const sim_world *w, int64_t session) {
    for (size_t i = 0; i < w->admin_session_count; i++) {
        if (w->admin_sessions[i] == session) return true;
    }
    return false;
}

void sim_admin_note_session(sim_world *w) {
    int64_t session = divvy_client_session_id(w->admin);
    if (!sim_is_admin(w, session) && w->admin_session_count < SIM_ADMIN_SESSIONS_MAX)
        w->admin_sessions[w->admin_session_count++] = session;
}

/* Through the seam, as there is no public call for single nodes. */
static void ask_with(sim_world *w, const char *path, const char *data, int mode, bool make) {
    dv_client_lock(w->admin);
    if (!dv_client_connected(w->admin)) {
        dv_client_unlock(w->admin);
        return;
    }
    sim_admin_note_session(w);
    if (!make) w->foreign_at = w->now_ms;
    sim_trace(w, "somebody %s %s", make ? "makes" : "deletes", path);
    if (make) dv_znode_create(w->admin->znode, path, data, strlen(data), mode, on_reply, NULL);
    else dv_znode_delete(w->admin->znode, path, -1, on_reply, NULL);
    dv_client_unlock(w->admin);
}

static void ask(sim_world *w, const char *path, int mode, bool make) {
    ask_with(w, path, "", mode, make);
}

static bool is_of_kazoo(const sim_world *w, int64_t session) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        if (m->phase != SIM_ABSENT && (m->kazoo || m->kazoo_claim) && divvy_client_session_id(m->client) == session)
            return true;
    }
    return false;
}

static void delete_note(sim_world *w, uint32_t choice) {
    const struct sim_handovers *h = w->plans_truth->handovers;
    char path[PATH_BYTES];
    for (size_t i = 0; i < h->note_count; i++) {
        const sim_note *n = &h->notes[(choice + i) % h->note_count];
        if (!n->stands) continue;
        w->coverage->plan_meetings[SIM_MET_NOTE_DELETED]++;
        snprintf(path, sizeof path, "/pool/notes/%s", n->node);
        ask(w, path, 0, false);
        return;
    }
}

/* A queue that is empty loses its directory, and begins with 0 again. */
static bool delete_empty_queue(sim_world *w) {
    char path[PATH_BYTES];
    for (size_t item = 0; item < w->script->items; item++) {
        snprintf(path, sizeof path, "/pool/locks/%s", w->items[item]);
        if (w->truth.queues[item].count || !divvy_testing_exists(w->ensemble, path)) continue;
        ask(w, path, 0, false);
        return true;
    }
    return false;
}

/* The same of one in which only the owner stands. */
static bool delete_queue(sim_world *w, size_t item) {
    const sim_queue *q = &w->truth.queues[item];
    char path[PATH_BYTES];
    if (q->count != 1 || !q->nodes[0].contends) return false;
    snprintf(path, sizeof path, "/pool/locks/%s/%s", w->items[item], q->nodes[0].name);
    ask(w, path, 0, false);
    snprintf(path, sizeof path, "/pool/locks/%s", w->items[item]);
    ask(w, path, 0, false);
    return true;
}

/* The numbers of a queue go on further up, as after places that came and went. */
static void leap_ahead(sim_world *w, size_t item, uint32_t choice) {
    enum { LEAP_MAX = 3 };
    const sim_queue *q = &w->truth.queues[item];
    int32_t last = -1;
    char path[PATH_BYTES];
    for (size_t i = 0; i < q->count; i++) {
        if (q->nodes[i].contends && q->nodes[i].sequence > last) last = q->nodes[i].sequence;
    }
    snprintf(path, sizeof path, "/pool/locks/%s", w->items[item]);
    if (last >= 0) divvy_testing_set_sequence(w->ensemble, path, last + 2 + (int32_t)(choice % LEAP_MAX));
}

/* A place; in pools of plans also a note, an empty directory, or some numbers. */
void sim_admin_delete_place(sim_world *w, uint32_t choice) {
    enum { OTHERS = 5 };
    uint32_t what = (choice >> 8) % OTHERS;
    if (w->script->theme == SIM_OF_PLANS && !w->script->kazoo && what < 2) {
        if (what == 0) delete_note(w, choice >> 11);
        else if (!delete_empty_queue(w) && (choice % 3 == 0 || !delete_queue(w, (choice >> 11) % w->script->items)))
            leap_ahead(w, (choice >> 11) % w->script->items, choice >> 20);
        return;
    }
    for (size_t i = 0; i < w->script->items; i++) {
        size_t item = (choice + i) % w->script->items;
        const sim_queue *q = &w->truth.queues[item];
        if (q->count == 0) continue;
        const sim_node *node = &q->nodes[(choice >> 16) % q->count];
        char path[PATH_BYTES];
        if (is_of_kazoo(w, node->session) || !node->contends) return;
        snprintf(path, sizeof path, "/pool/locks/%s/%s", w->items[item], node->name);
        ask(w, path, 0, false);
        return;
    }
}

void sim_admin_delete_member(sim_world *w, uint32_t choice) {
    if (w->truth.party_count == 0) return;
    const sim_node *node = &w->truth.party[choice % w->truth.party_count];
    char path[PATH_BYTES];
    if (is_of_kazoo(w, node->session)) return;
    snprintf(path, sizeof path, "/pool/party/%s", node->name);
    ask(w, path, 0, false);
}

/* A node that has a member's name and is none, because it is persistent: as a restored backup leaves them. */
static void ghost(sim_world *w, uint32_t choice, unsigned number) {
    static const char *const data[] = {"", "{\"static\":true,\"rejoin_delay_ms\":600000}", "{\"weight\":3000}"};
    static const char *const abilities[] = {"2", "2", "1", "0"};
    char path[PATH_BYTES];
    const sim_member *like = &w->members[(choice >> 8) % w->script->slots];
    const char *name = like->phase != SIM_ABSENT && choice & 128 ? like->name : "ghost";
    const char *ability = abilities[(choice >> 16) % (sizeof abilities / sizeof *abilities)];
    snprintf(path, sizeof path, "/pool/party/%010u,a=%s-%s", number, ability, name);
    w->coverage->meetings[SIM_MET_GHOST]++;
    ask_with(w, path, data[(choice >> 20) % (sizeof data / sizeof *data)], DV_PERSISTENT, true);
}

void sim_admin_stray(sim_world *w, uint32_t choice) {
    char path[PATH_BYTES];
    unsigned number = ++w->strays;
    if (number > SIM_STRAYS_MAX) return;
    w->coverage->meetings[SIM_MET_STRAY]++;
    if (choice % 5 > 2) {
        ghost(w, choice / 5, number);
        return;
    }
    if (choice % 5 == 0)
        snprintf(path, sizeof path, "/pool/locks/%s/note-%u", w->items[choice % w->script->items], number);
    else if (choice % 5 == 1) snprintf(path, sizeof path, "/pool/party/stray%u", number);
    else snprintf(path, sizeof path, "/pool/party/0123456789abcdef0123456789abcd%02x-stray", number);
    ask(w, path, DV_PERSISTENT, true);
}

static void claim_path(const sim_world *w, uint32_t choice, sim_claim_path *kind, size_t *place, char *path,
                       size_t bytes) {
    bool of_lock = w->script->pools == 0 || choice % 2;
    *place = (choice >> 4) % (of_lock ? w->script->locks : w->script->pools);
    *kind = of_lock ? SIM_LOCK_PATH : choice % 4 ? SIM_POOL_PATH : SIM_QUEUE_PATH;
    if (of_lock) snprintf(path, bytes, "/locks/l%zu", *place);
    else snprintf(path, bytes, "/sem/p%zu%s", *place, *kind == SIM_QUEUE_PATH ? "-__lock__" : "");
}

void sim_admin_delete_claim(sim_world *w, uint32_t choice) {
    size_t place;
    sim_claim_path kind;
    char directory[32], path[PATH_BYTES + 64];
    claim_path(w, choice, &kind, &place, directory, sizeof directory);
    const sim_claim_list *list = sim_claim_list_of(w, kind, place);
    if (list->count == 0) return;
    const sim_claim_node *node = &list->nodes[(choice >> 16) % list->count];
    if (is_of_kazoo(w, node->session)) return;
    snprintf(path, sizeof path, "%s/%s", directory, node->name);
    ask(w, path, 0, false);
}

void sim_admin_delete_service(sim_world *w, uint32_t choice) {
    const struct sim_services_truth *truth = w->services_truth;
    for (size_t i = 0; i < truth->entry_count; i++) {
        const sim_entry *e = &truth->entries[(choice + i) % truth->entry_count];
        char path[PATH_BYTES];
        if (!e->present) continue;
        snprintf(path, sizeof path, SIM_REGISTRY_PATH "/%s/%s", e->role, e->id);
        ask(w, path, 0, false);
        return;
    }
}

/* Fails unless it is empty, as it is when nobody contends. */
void sim_admin_delete_directory(sim_world *w, uint32_t choice) {
    size_t place;
    sim_claim_path kind;
    char path[32];
    claim_path(w, choice, &kind, &place, path, sizeof path);
    if (!w->script->kazoo_claims) ask(w, path, 0, false);
}
