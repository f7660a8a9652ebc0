/* The program in a member: how it works on items, and how it answers RELEASE. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "handovers.h"
#include "operator.h"
#include "steps.h"

static size_t item_of_name(const sim_world *w, const char *name) {
    size_t item = 0;
    for (const char *c = name + 5; *c; c++) item = item * 10 + (size_t)(*c - '0');
    return item < w->script->items ? item : 0;
}

static int64_t session_of_token(const sim_world *w, size_t item, int64_t token) {
    const sim_queue *q = &w->truth.queues[item];
    for (size_t i = q->owner_count; i-- > 0;) {
        if (q->owners[i].token == token) return q->owners[i].session;
    }
    return 0;
}

/* ---- work ---- */

/* T6: a place that somebody deleted while it waited for a note, as its owner does not know yet; the note gave it the
 * item. */
static bool was_given(const sim_member *m, size_t item, int64_t token) {
    const dv_item *own = sim_item_of(m, item);
    bool shown = own && own->life.contender && dv_contender_token(own->life.contender) == token;
    return shown && sim_truth_excused(&m->world->truth, item, token) &&
           sim_given_to(m->world, item, dv_contender_sequence(own->life.contender), token);
}

static void begin_work(sim_member *m, size_t item, int64_t token) {
    sim_holding *h = &m->items[item];
    int64_t session = session_of_token(m->world, item, token);
    h->works_blind = session == 0 && was_given(m, item, token);
    if (h->works_blind) session = divvy_client_session_id(m->client);
    if (session == 0) {
        sim_violate(m->world, "S4", "%s was told that it owns %s with token %lld, whose place was never the first",
                    m->name, m->world->items[item], (long long)token);
        return;
    }
    h->works = true;
    h->work_token = token;
    h->work_session = session;
    sim_resource_write(m, item); /* the token is shown before anything else */
    sim_check_work(m, item);
}

static void end_work(sim_member *m, size_t item) {
    m->items[item].works = false;
    m->items[item].knows_revoked = false;
}

void sim_user_stop_all(sim_member *m) {
    for (size_t i = 0; i < m->world->script->items; i++) end_work(m, i);
    m->release_at = 0;
}

/* The user does not ask before each write whether it still owns the item: the resource must withstand that. */
static void write_somewhere(sim_member *m) {
    for (size_t i = 0; i < m->world->script->items; i++) {
        if (m->items[i].works && sim_chance(&m->user.random, 30)) sim_resource_write(m, i);
    }
}

/* Returns whether somebody else or an administrator is the cause that an item is gone without a RELEASE. */
static bool is_excused(sim_member *m, size_t item, int64_t token) {
    int64_t session = divvy_client_session_id(m->client);
    return sim_truth_excused(&m->world->truth, item, token) || sim_truth_killed(&m->world->truth, session) ||
           m->items[item].work_session != session || !sim_member_alive(m);
}

/* ---- releasing ---- */

static void release_now(sim_member *m) {
    sim_world *w = m->world;
    m->release_at = 0;
    uint64_t id = m->release_id;
    sim_steps_items_look(m); /* what is revoked */
    for (size_t i = 0; i < w->script->items; i++) {
        if (m->items[i].knows_revoked || m->user.style == SIM_KAZOO_LOOP) end_work(m, i);
    }
    int error = m->user.by_id ? divvy_partitioner_release_set_id(m->partitioner, id)
                              : divvy_partitioner_release_set(m->partitioner);
    sim_trace(w, "%s releases: %s", m->name, divvy_strerror(error));
    sim_check_released(m);
    if (!m->user.twice || !m->partitioner) return;
    /* Two threads that share a partitioner, and have both seen the same RELEASE. */
    error = m->user.by_id ? divvy_partitioner_release_set_id(m->partitioner, id)
                          : divvy_partitioner_release_set(m->partitioner);
    if (error) w->coverage->meetings[SIM_MET_UNSEEN]++;
    else sim_trace(w, "%s releases a second time", m->name);
}

static void plan_release(sim_member *m) {
    if (m->release_at) return;
    m->release_at = m->world->now_ms + sim_between(&m->user.random, 1, m->user.react_ms);
    sim_user_plan(m);
}

/* ---- callbacks ---- */

static void on_failure(sim_member *m) {
    m->failing = true;
    if (m->user.destroys_inside) {
        sim_user_stop_all(m);
        sim_member_destroy(m);
        return;
    }
    m->release_at = 0;
    m->end_at = m->world->now_ms + sim_between(&m->user.random, 1, m->user.react_ms);
    sim_user_plan(m);
}

static bool may_be_told(sim_member *m, const char *what) {
    if (!m->destroyed) return true;
    sim_violate(m->world, "S6", "%s was told of %s after its partitioner was destroyed", m->name, what);
    return false;
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    sim_member *m = user;
    (void)p;
    if (!may_be_told(m, "a state")) return;
    sim_trace(m->world, "%s is told %s -> %s", m->name, divvy_partition_state_name(from),
              divvy_partition_state_name(to));
    sim_check_told(m, from, to);
    if (to == DIVVY_FAILURE && !m->ended) on_failure(m);
    if (to != DIVVY_RELEASE || m->ended) return;
    m->release_id = divvy_partitioner_state_id(m->partitioner);
    if (m->user.style == SIM_AT_ONCE) release_now(m);
    else plan_release(m);
}

static void lose(sim_member *m, size_t item, int reason) {
    sim_holding *h = &m->items[item];
    bool prepares = h->prepares && !h->gained;
    h->prepares = h->knows_leaving = false;
    if (prepares) return; /* It is not needed any longer. */
    if (!h->gained) sim_violate(m->world, "S8", "%s lost %s, and had not gained it", m->name, m->world->items[item]);
    h->gained = false;
    if (reason == DIVVY_REASON_RELEASED && h->works && !is_excused(m, item, h->work_token))
        sim_violate(m->world, "S7", "%s is told that %s was released, and its user has not stopped work", m->name,
                    m->world->items[item]);
    /* After a loss the user may go on for a while: the deadline, or the lock that stays, protects the others. */
    bool winds_down = reason == DIVVY_REASON_SESSION || reason == DIVVY_REASON_TIMEOUT;
    if (!winds_down) h->works = false;
    h->knows_revoked = false;
}

/* `again`: it was lost by the same call. Under the same token it was kept (P6), under another it had gone (P17). */
static void gain(sim_member *m, size_t item, int64_t token, bool again) {
    sim_holding *h = &m->items[item];
    sim_check_gained(m, item, token);
    if (h->gained) sim_violate(m->world, "S8", "%s gained %s twice", m->name, m->world->items[item]);
    if (again && token == h->gained_token) m->world->coverage->meetings[SIM_MET_KEPT]++;
    if (token < h->gained_token)
        sim_violate(m->world, "S3", "%s is told of %s with token %lld after %lld", m->name, m->world->items[item],
                    (long long)token, (long long)h->gained_token);
    h->gained = true;
    h->gained_token = token;
    h->prepares = h->knows_revoked = h->knows_leaving = false;
    begin_work(m, item, token);
}

static bool contains(const char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

/* T1, T2. */
static void hear_of_handovers(sim_member *m, const divvy_items_event *e) {
    sim_world *w = m->world;
    for (size_t i = 0; i < e->leaving_count; i++) {
        sim_holding *h = &m->items[item_of_name(w, e->leaving[i])];
        sim_trace(w, "%s is told: leaving %s, reason %d", m->name, e->leaving[i], e->reason);
        if (!h->gained || h->knows_revoked || h->knows_leaving)
            sim_violate(w, "S8", "%s is told that %s is leaving, which it does not own, or knows", m->name,
                        e->leaving[i]);
        h->knows_leaving = true;
    }
    for (size_t i = 0; i < e->staying_count; i++) {
        sim_holding *h = &m->items[item_of_name(w, e->staying[i])];
        sim_trace(w, "%s is told: staying %s, reason %d", m->name, e->staying[i], e->reason);
        if (!h->knows_leaving || !h->gained)
            sim_violate(w, "S8", "%s is told that %s stays, and it was not leaving", m->name, e->staying[i]);
        h->knows_leaving = false;
    }
    for (size_t i = 0; i < e->prepare_count; i++) {
        sim_holding *h = &m->items[item_of_name(w, e->prepare[i])];
        sim_trace(w, "%s is told: prepare %s, reason %d", m->name, e->prepare[i], e->reason);
        if (h->gained || h->prepares)
            sim_violate(w, "S8", "%s is told to prepare %s, which it owns, or knows", m->name, e->prepare[i]);
        h->prepares = true;
    }
    if (e->prepare_count && m->user.prepares == SIM_PREPARED_AT_ONCE) divvy_partitioner_prepared(m->partitioner, NULL);
}

static void on_items(divvy_partitioner *p, const divvy_items_event *e, void *user) {
    sim_member *m = user;
    sim_world *w = m->world;
    (void)p;
    if (!may_be_told(m, "items")) return;
    for (size_t i = 0; i < e->lost_count; i++) {
        sim_trace(w, "%s is told: lost %s, reason %d", m->name, e->lost[i], e->reason);
        lose(m, item_of_name(w, e->lost[i]), e->reason);
    }
    for (size_t i = 0; i < e->gained_count; i++) {
        sim_trace(w, "%s is told: gained %s, token %lld", m->name, e->gained[i], (long long)e->gained_tokens[i]);
        gain(m, item_of_name(w, e->gained[i]), e->gained_tokens[i], contains(e->lost, e->lost_count, e->gained[i]));
    }
    for (size_t i = 0; i < e->revoked_count; i++) {
        sim_holding *h = &m->items[item_of_name(w, e->revoked[i])];
        sim_trace(w, "%s is told: revoked %s, reason %d", m->name, e->revoked[i], e->reason);
        if (!h->gained || h->knows_revoked)
            sim_violate(w, "S8", "%s had %s revoked, which it did not own", m->name, e->revoked[i]);
        h->knows_revoked = true;
        h->knows_leaving = false;
    }
    hear_of_handovers(m, e);
    m->last_reason = e->reason;
}

void sim_user_callbacks(sim_member *m, divvy_partitioner_config *config) {
    config->user = m;
    if (m->user.style != SIM_AT_ONCE && m->user.style != SIM_LATER) return;
    config->on_state = on_state;
    config->on_items = on_items;
}

void sim_user_hold_callbacks(sim_member *m, bool hold) {
    if (!m->client || m->callback_runs == hold) return;
    sim_trace(m->world, "%s: a callback %s", m->name, hold ? "takes its time" : "ends");
    m->callback_runs = m->client->in_callback = hold;
    m->client->callback_object = NULL;
    memset(&m->client->callback_caller, 0, sizeof m->client->callback_caller); /* not the thread of the simulator */
}

/* ---- polling ---- */

static void take_from_snapshot(sim_member *m, const divvy_partition *partition, bool *listed) {
    sim_world *w = m->world;
    for (size_t i = 0; i < divvy_partition_count(partition); i++) {
        size_t item = item_of_name(w, divvy_partition_item(partition, i));
        sim_holding *h = &m->items[item];
        int64_t token = divvy_partition_token(partition, i);
        bool revoked = divvy_partition_revoked(partition, i), leaving = divvy_partition_leaving(partition, i) != 0;
        listed[item] = true;
        if (h->works && h->work_token != token && !is_excused(m, item, h->work_token))
            sim_violate(w, "S3", "%s works on %s with token %lld, and its snapshot says %lld", m->name, w->items[item],
                        (long long)h->work_token, (long long)token);
        if (!revoked && (!h->works || h->work_token != token)) begin_work(m, item, token);
        if (leaving && revoked)
            sim_violate(w, "S8", "%s sees that %s is leaving, and to be released", m->name, w->items[item]);
        w->coverage->plan_meetings[SIM_MET_POLLED_LEAVING] += leaving && !h->knows_leaving;
        h->knows_leaving = leaving;
        h->knows_revoked = revoked;
    }
}

/* S7: an item that the user still works on is not taken away without its word. */
static void look_at_what_went(sim_member *m, const bool *listed, divvy_partition_state state) {
    sim_world *w = m->world;
    for (size_t i = 0; i < w->script->items; i++) {
        sim_holding *h = &m->items[i];
        if (listed[i] || !h->works) continue;
        if (!is_excused(m, i, h->work_token) && state != DIVVY_FAILURE && m->partitioner->life != DV_LIFE_REJOINING)
            sim_violate(w, "S7", "%s is gone from %s's snapshot, and its user has not released it", w->items[i],
                        m->name);
        if (state != DIVVY_FAILURE) end_work(m, i);
    }
}

static void poll_snapshot(sim_member *m, divvy_partition_state state) {
    bool listed[SIM_ITEMS_MAX] = {false};
    divvy_partition *partition = divvy_partitioner_partition(m->partitioner);
    if (!partition) return;
    take_from_snapshot(m, partition, listed);
    if (divvy_partition_short(partition)) m->world->coverage->meetings[SIM_MET_SHORT]++;
    divvy_partition_unref(partition);
    look_at_what_went(m, listed, state);
}

static void poll(sim_member *m) {
    divvy_partition_state state = divvy_partitioner_state(m->partitioner);
    if (m->user.style == SIM_POLLS || state == DIVVY_ACQUIRED) poll_snapshot(m, state);
    if (state == DIVVY_RELEASE && !m->release_at) {
        m->release_id = divvy_partitioner_state_id(m->partitioner);
        plan_release(m);
    }
    if (state == DIVVY_FAILURE && !m->failing) on_failure(m);
}

/* ---- what the user does without being told ---- */

static bool has_callbacks(const sim_member *m) {
    return m->user.style == SIM_AT_ONCE || m->user.style == SIM_LATER;
}

void sim_user_plan(sim_member *m) {
    int64_t next = m->world->now_ms + (m->user.poll_ms ? m->user.poll_ms : 1);
    if (m->act_at > m->world->now_ms && m->act_at < next) next = m->act_at;
    if (m->release_at && m->release_at < next) next = m->release_at;
    if (m->end_at && m->end_at < next) next = m->end_at;
    if (sim_claims_next(m) < next)
        next = sim_claims_next(m) > m->world->now_ms ? sim_claims_next(m) : m->world->now_ms + 1;
    if (sim_services_next(m) < next)
        next = sim_services_next(m) > m->world->now_ms ? sim_services_next(m) : m->world->now_ms + 1;
    m->act_at = next;
}

/* One item, or all: what it owns is not among them. */
static void say_prepared(sim_member *m) {
    sim_world *w = m->world;
    divvy_partition *list = divvy_partitioner_to_prepare(m->partitioner);
    const char *first = divvy_partition_item(list, 0);
    for (size_t i = 0; i < divvy_partition_count(list); i++) {
        const char *name = divvy_partition_item(list, i);
        if (divvy_partition_token(list, i) != 0 || divvy_partitioner_owns(m->partitioner, name))
            sim_violate(w, "S8", "%s is to prepare %s, and owns it", m->name, name);
    }
    if (first && !has_callbacks(m)) w->coverage->plan_meetings[SIM_MET_POLLED_PREPARE]++;
    if (first) divvy_partitioner_prepared(m->partitioner, sim_chance(&m->user.random, 50) ? first : NULL);
    divvy_partition_unref(list);
}

/* As `divvy partition --replace`: a later process has what was its own. */
static bool is_replaced(const sim_member *m) {
    if (!m->user.replaces || m->failing || m->partitioner->state == DIVVY_RELEASE) return false;
    for (size_t i = 0; i < m->world->script->items; i++) {
        if (m->items[i].works || m->items[i].gained || m->items[i].shown) return false;
    }
    return divvy_partitioner_is_replaced(m->partitioner);
}

void sim_user_act(sim_member *m) {
    sim_world *w = m->world;
    m->act_at = 0;
    if (m->partitioner && m->phase == SIM_RUNS) {
        write_somewhere(m);
        if (!has_callbacks(m) && !m->failing) poll(m);
        if (m->partitioner && !m->failing) sim_loads_tell(m);
        bool says =
            m->user.prepares == SIM_PREPARED_LATER || (m->user.prepares == SIM_PREPARED_AT_ONCE && !has_callbacks(m));
        if (m->partitioner && says) say_prepared(m);
        if (m->partitioner && m->release_at && m->release_at <= w->now_ms) release_now(m);
        if (m->partitioner && m->phase == SIM_RUNS && is_replaced(m)) {
            w->coverage->plan_meetings[SIM_MET_REPLACED]++;
            sim_member_finish(m, 0);
        }
        if (m->partitioner && m->failing && m->end_at <= w->now_ms) {
            sim_user_stop_all(m);
            if (m->user.closes_first) sim_member_close(m);
            else sim_member_destroy(m);
        }
    }
    if (m->phase != SIM_ABSENT) sim_user_plan(m);
}
