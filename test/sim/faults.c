/* The events of a script: what they do, and how their effects end. SPDX-License-Identifier: Apache-2.0 */
#include "handovers.h"
#include "operator.h"
#include "rolls.h"
#include "testing/ensemble.h"

/* ---- effects that end ---- */

static void undo_later(sim_world *w, int64_t after_ms, sim_undo_kind kind, unsigned a, unsigned b) {
    if (w->undo_count == SIM_UNDO_MAX) return; /* It lasts until all is healed. */
    bool of_member = kind == SIM_UNDO_LINK || kind == SIM_UNDO_PAUSE || kind == SIM_UNDO_CALLBACK;
    unsigned incarnation = of_member ? w->members[a].incarnation : 0;
    w->undos[w->undo_count++] = (sim_undo){w->now_ms + after_ms, kind, a, b, incarnation};
    sim_handovers_note_faults(w);
}

int64_t sim_next_undo(const sim_world *w) {
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < w->undo_count; i++) {
        if (w->undos[i].at_ms < next) next = w->undos[i].at_ms;
    }
    return next;
}

static void cut_follower(sim_world *w, const sim_event *e);

static void undo(sim_world *w, const sim_undo *u) {
    bool of_member = u->kind == SIM_UNDO_LINK || u->kind == SIM_UNDO_PAUSE || u->kind == SIM_UNDO_CALLBACK;
    sim_member *m = of_member ? &w->members[u->a] : NULL;
    if (of_member && (m->phase == SIM_ABSENT || m->incarnation != u->incarnation)) return;
    switch (u->kind) {
    case SIM_LATER_CUT: /* mostly so that the follower still hears its leader */
        if (!w->healed)
            cut_follower(
                w, &(sim_event){.kind = SIM_FOLLOWER_CUT, .a = u->a, .b = u->b % 5 ? 3 : u->b, .c = u->b >> 3, .d = 9});
        break;
    case SIM_UNDO_LINK: divvy_testing_link_client(w->ensemble, m->client, DIVVY_TESTING_LINK_UP); break;
    case SIM_UNDO_PAUSE:
        sim_trace(w, "%s goes on", m->name);
        divvy_testing_pause_client(w->ensemble, m->client, 0);
        m->paused = false;
        break;
    case SIM_UNDO_CALLBACK: sim_user_hold_callbacks(m, false); break;
    case SIM_UNDO_SERVER: divvy_testing_start_server(w->ensemble, u->a); break;
    case SIM_UNDO_SERVER_PAUSE: divvy_testing_pause_server(w->ensemble, u->a, 0); break;
    case SIM_UNDO_CUT: divvy_testing_link_servers(w->ensemble, u->a, u->b, DIVVY_TESTING_LINK_UP); break;
    }
}

void sim_undo_due(sim_world *w) {
    for (size_t i = 0; i < w->undo_count;) {
        if (w->undos[i].at_ms > w->now_ms) {
            i++;
            continue;
        }
        sim_undo u = w->undos[i];
        w->undos[i] = w->undos[--w->undo_count];
        undo(w, &u);
    }
}

void sim_heal(sim_world *w) {
    w->plan_trap = w->newer_trap = false;
    for (size_t i = 0; i < w->undo_count; i++) {
        if (w->undos[i].kind != SIM_LATER_CUT) undo(w, &w->undos[i]);
    }
    w->undo_count = 0;
    divvy_testing_heal(w->ensemble);
    sim_answers_heal(w);
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[i];
        m->trap_set = m->cut_set = false;
        sim_user_hold_callbacks(m, false);
        if (m->phase == SIM_ABSENT || !m->paused) continue;
        divvy_testing_pause_client(w->ensemble, m->client, 0);
        m->paused = false;
    }
}

/* ---- lost replies ---- */

static uint64_t trap_counter(const sim_member *m, bool *in_flight) {
    divvy_stats stats;
    divvy_client_stats(m->client, &stats, sizeof stats);
    *in_flight = stats.in_flight > 0;
    switch (m->trap_what) {
    case 0: return stats.creates;
    case 1: return stats.deletes;
    case 2: return stats.creates + stats.deletes;
    case 3: return stats.gets;
    case 5: return stats.multis;
    default: return stats.requests;
    }
}

/* Breaks the connection when the next request of a kind, drawn by `e`, is under way. */
static void set_trap(sim_world *w, sim_member *m, const sim_event *e, divvy_testing_fate fate) {
    bool in_flight;
    m->trap_set = true;
    m->trap_fate = fate;
    m->trap_late_ms = 1 + e->c % (uint32_t)(w->script->timeout_ms / 4);
    m->trap_until = w->now_ms + w->script->timeout_ms;
    m->trap_what = e->b % (w->script->theme == SIM_OF_POOLS ? 5u : 6u);
    m->trap_leaves = (e->b >> 8) % 5 == 0;
    m->trap_count = trap_counter(m, &in_flight);
}

static void snap_cut(sim_world *w, sim_member *m) {
    divvy_stats stats;
    bool gone = m->phase == SIM_ABSENT || w->now_ms > m->trap_until;
    if (gone) m->cut_set = false;
    if (gone || m->paused || divvy_client_stats(m->client, &stats, sizeof stats) != 0) return;
    if (stats.writes <= m->cut_count || stats.in_flight) return;
    m->cut_set = false;
    cut_follower(w, &m->cut);
}

void sim_traps(sim_world *w) {
    sim_plans_trap(w);
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[i];
        if (m->cut_set) snap_cut(w, m);
        if (!m->trap_set) continue;
        bool in_flight, gone = m->phase == SIM_ABSENT || w->now_ms > m->trap_until;
        if (gone) m->trap_set = false;
        if (gone || m->paused || trap_counter(m, &in_flight) <= m->trap_count || !in_flight) continue;
        m->trap_set = false;
        if (m->trap_leaves && m->partitioner && m->phase == SIM_RUNS && !m->failing) sim_member_finish(m, 0);
        if (m->trap_leaves) sim_claims_give_up(m);
        sim_trace(w, "%s: the connection breaks, fate %d", m->name, (int)m->trap_fate);
        divvy_testing_disconnect(w->ensemble, m->client, m->trap_fate, m->trap_late_ms);
    }
}

/* ---- who is meant ---- */

static sim_member *present(sim_world *w, uint32_t choice) {
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[(choice + i) % w->script->slots];
        if (m->phase != SIM_ABSENT) return m;
    }
    return NULL;
}

/* One that is not stopped, and takes part. */
static sim_member *working(sim_world *w, uint32_t choice) {
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[(choice + i) % w->script->slots];
        if (m->phase == SIM_RUNS && !m->paused &&
            (m->partitioner || m->kazoo || m->kazoo_claim || m->claim_count || m->services))
            return m;
    }
    return NULL;
}

static void join(sim_world *w, const sim_event *e) {
    for (size_t i = 0; i < w->script->slots; i++) {
        size_t slot = (e->a + i) % w->script->slots;
        if (w->members[slot].phase != SIM_ABSENT) continue;
        sim_member_start(w, slot, e);
        return;
    }
}

/* ---- kinds ---- */

static int64_t some_time(const sim_world *w, const sim_event *e) {
    uint32_t timeout_ms = (uint32_t)w->script->timeout_ms;
    return e->d % 10 < 6 ? 10 + e->c % (timeout_ms / 3) : timeout_ms / 3 + e->c % (2 * timeout_ms);
}

static int64_t session_at_servers(const sim_member *m) {
    return ((const dv_mem_client *)(const void *)m->client->znode)->session_id;
}

static void link_client(sim_world *w, sim_member *m, const sim_event *e, divvy_testing_link link) {
    divvy_testing_link_client(w->ensemble, m->client, link);
    undo_later(w, some_time(w, e), SIM_UNDO_LINK, (unsigned)m->slot, 0);
}

static void pause_member(sim_world *w, sim_member *m, int64_t ms) {
    if (m->paused) return;
    sim_trace(w, "%s stops for %lld ms", m->name, (long long)ms);
    divvy_testing_pause_client(w->ensemble, m->client, 1);
    m->paused = true;
    undo_later(w, ms, SIM_UNDO_PAUSE, (unsigned)m->slot, 0);
}

static sim_member *stallable(sim_world *w, uint32_t choice) {
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[(choice + i) % w->script->slots];
        if (m->phase == SIM_RUNS && !m->paused && m->partitioner && m->config.static_membership) return m;
    }
    return NULL;
}

/* Beyond the end of its session, so that it comes back with another one. */
static void stall(sim_world *w, const sim_event *e) {
    sim_member *m = stallable(w, e->a);
    if (!m) return;
    int64_t session_ms = m->client_config.session_timeout_ms + w->script->tick_ms;
    pause_member(w, m, session_ms + (int64_t)(e->c % (uint32_t)(2 * session_ms)));
}

static void fault_of_member(sim_world *w, const sim_event *e) {
    sim_member *m = present(w, e->a);
    uint32_t timeout_ms = (uint32_t)w->script->timeout_ms;
    bool behind;
    if (!m) return;
    switch (e->kind) {
    case SIM_CRASH: sim_member_crash(m); break;
    case SIM_PAUSE_SHORT: pause_member(w, m, 1 + e->c % (timeout_ms / 2)); break;
    case SIM_PAUSE_LONG: pause_member(w, m, timeout_ms / 2 + e->c % (2 * timeout_ms)); break;
    case SIM_LINK_DOWN: link_client(w, m, e, DIVVY_TESTING_LINK_DOWN); break;
    case SIM_LINK_NO_REQUESTS: link_client(w, m, e, DIVVY_TESTING_LINK_NO_REQUESTS); break;
    case SIM_LINK_NO_REPLIES: link_client(w, m, e, DIVVY_TESTING_LINK_NO_REPLIES); break;
    case SIM_LOSE_NOT_APPLIED: set_trap(w, m, e, DIVVY_TESTING_NOT_APPLIED); break;
    case SIM_LOSE_APPLIED: set_trap(w, m, e, DIVVY_TESTING_APPLIED); break;
    case SIM_LOSE_APPLIED_LATE:
        /* kazoo never looks for what comes behind, and registries have ttls for it (R3). */
        behind = e->d % 4 == 2 && !m->kazoo && !m->kazoo_claim && w->script->theme != SIM_OF_SERVICES;
        set_trap(w, m, e, behind ? DIVVY_TESTING_APPLIED_BEHIND : DIVVY_TESTING_APPLIED_LATE);
        break;
    case SIM_EXPIRE:
        sim_truth_kill(&w->truth, divvy_client_session_id(m->client));
        sim_truth_kill(&w->truth, session_at_servers(m)); /* Its client may not have heard of it yet. */
        m->killed_at = w->now_ms;
        divvy_testing_expire(w->ensemble, m->client);
        break;
    case SIM_PREFER:
        divvy_testing_prefer(w->ensemble, m->client, (int)(e->b % (w->script->servers + 1)) - 1);
        if (e->c % 2) divvy_testing_disconnect(w->ensemble, m->client, DIVVY_TESTING_APPLIED, 0);
        break;
    case SIM_DRIFT:
        sim_services_drift(w);
        divvy_testing_drift_client(w->ensemble, m->client, (int)(e->b % 10001) - 5000);
        break;
    default: break;
    }
}

static void cut(sim_world *w, unsigned a, unsigned b, const sim_event *e, divvy_testing_link link) {
    if (a == b) return;
    divvy_testing_link_servers(w->ensemble, a, b, link);
    undo_later(w, some_time(w, e), SIM_UNDO_CUT, a, b);
}

static void cut_follower(sim_world *w, const sim_event *e) {
    static const divvy_testing_link links[] = {DIVVY_TESTING_LINK_DOWN, DIVVY_TESTING_LINK_DOWN,
                                               DIVVY_TESTING_LINK_NO_REQUESTS, DIVVY_TESTING_LINK_NO_REPLIES};
    sim_member *m = present(w, e->a);
    int server = m ? divvy_testing_server_of(w->ensemble, m->client) : -1, leader = divvy_testing_leader(w->ensemble);
    if (server < 0 || leader < 0) return;
    cut(w, (unsigned)leader, (unsigned)server, e, links[e->b % 4]);
}

/* At once, or right after the server has answered a write. */
static void cut_a_follower(sim_world *w, const sim_event *e) {
    sim_member *m = present(w, e->a);
    divvy_stats stats;
    if (!m || e->d % 3 == 0 || divvy_client_stats(m->client, &stats, sizeof stats) != 0) {
        cut_follower(w, e);
        return;
    }
    m->cut_set = true;
    m->cut = *e;
    m->cut_count = stats.writes;
    m->trap_until = w->now_ms + w->script->timeout_ms;
}

static void fault_of_servers(sim_world *w, const sim_event *e) {
    unsigned servers = w->script->servers, a = e->a % servers, b = (a + 1 + e->b % servers) % servers;
    int leader = divvy_testing_leader(w->ensemble);
    bool of_leader = e->kind == SIM_LEADER_KILL || e->kind == SIM_LEADER_PAUSE;
    if (of_leader && leader < 0) return;
    if (of_leader) a = (unsigned)leader;
    switch (e->kind) {
    case SIM_SERVER_KILL:
    case SIM_LEADER_KILL:
        divvy_testing_kill_server(w->ensemble, a);
        undo_later(w, some_time(w, e), SIM_UNDO_SERVER, a, 0);
        break;
    case SIM_SERVER_PAUSE:
    case SIM_LEADER_PAUSE:
        divvy_testing_pause_server(w->ensemble, a, 1);
        undo_later(w, some_time(w, e), SIM_UNDO_SERVER_PAUSE, a, 0);
        /* A follower loses a leader that is stopped, and had sent it something. */
        if (of_leader && e->d % 3)
            undo_later(w, 1 + (e->c >> 8) % some_time(w, e), SIM_LATER_CUT, e->b >> 4, e->d >> 4);
        break;
    case SIM_SERVERS_CUT: cut(w, a, b, e, DIVVY_TESTING_LINK_DOWN); break;
    case SIM_SERVERS_CUT_ONE_WAY:
        cut(w, a, b, e, e->c % 2 ? DIVVY_TESTING_LINK_NO_REQUESTS : DIVVY_TESTING_LINK_NO_REPLIES);
        break;
    default: break;
    }
}

/* L2: a waiting call, in which time goes on. */
static void wait(sim_world *w, sim_member *m, const sim_event *e, bool party) {
    int64_t timeout_ms = e->c % 200, began_ms = w->now_ms;
    if (party) {
        divvy_strings *members = NULL;
        divvy_party_members(m->party, &members, timeout_ms);
        divvy_strings_free(members);
    } else if (m->partitioner && e->b % 2) {
        divvy_partitioner_wait_for_acquire(m->partitioner, timeout_ms);
    } else if (m->partitioner) {
        divvy_partitioner_wait_change(m->partitioner, m->seen_state_id, timeout_ms);
    }
    sim_check_anew(w);
    if (w->now_ms > began_ms + timeout_ms + 1000)
        sim_violate(w, "L2", "a call of %s with a timeout of %lld ms took %lld ms", m->name, (long long)timeout_ms,
                    (long long)(w->now_ms - began_ms));
}

static sim_member *in_crew(sim_world *w, uint32_t choice) {
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[(choice + i) % w->script->slots];
        if (m->phase != SIM_ABSENT && !m->paused && m->party) return m;
    }
    return NULL;
}

/* The user does nothing for a while, or a callback does not return for a while, whatever else the user does. */
static void slow_down(sim_world *w, sim_member *m, const sim_event *e) {
    int64_t slow_ms = e->b % (uint32_t)(w->script->timeout_ms / 2);
    bool has_callbacks = m->partitioner && m->config.on_items && m->claim_count == 0;
    if (has_callbacks && e->c % 2) {
        if (m->callback_runs) return;
        sim_user_hold_callbacks(m, true);
        undo_later(w, 1 + slow_ms, SIM_UNDO_CALLBACK, (unsigned)m->slot, 0);
        return;
    }
    m->act_at = w->now_ms + slow_ms;
    if (m->release_at) m->release_at = m->act_at;
}

static void act_of_member(sim_world *w, const sim_event *e) {
    sim_member *m = e->kind == SIM_PARTY_LOOK ? in_crew(w, e->a) : working(w, e->a);
    if (!m) return;
    bool kazoo = m->kazoo || m->kazoo_claim;
    switch (e->kind) {
    case SIM_FINISH:
        if (!kazoo) sim_claims_give_up(m);
        if (kazoo) sim_member_close(m);
        else if (!m->partitioner) sim_member_destroy(m);
        else sim_member_finish(m, e->b % 3 || w->script->profile == SIM_CHURN ? 0 : e->c % 300);
        break;
    case SIM_DESTROY:
        if (kazoo) sim_member_close(m);
        else sim_member_destroy(m);
        break;
    case SIM_LEAVE:
        if (m->partitioner && (e->b >> 8) % 2) sim_member_hand_over(m);
        else if (m->partitioner) sim_member_leave(m, e->b % 3 || w->script->profile == SIM_CHURN ? 0 : e->c % 300);
        break;
    case SIM_SET_ITEMS: sim_plans_set_items(m, e); break;
    case SIM_SET_WEIGHT: sim_plans_set_weight(m, e); break;
    case SIM_CLOSE: sim_member_close(m); break;
    case SIM_SLOW_USER: slow_down(w, m, e); break;
    case SIM_PARTY_LOOK: wait(w, m, e, true); break;
    case SIM_WAIT:
        if (!kazoo) wait(w, m, e, false);
        break;
    case SIM_ACQUIRE_WAIT: sim_claims_acquire(m, e); break;
    case SIM_RESIZE: sim_claims_resize(m, e); break;
    case SIM_CLAIMS_LOOK: sim_claims_look(m, e); break;
    case SIM_SERVICES_LOOK:
    case SIM_SERVICES_CLAIM:
    case SIM_SERVICES_UNREGISTER:
    case SIM_SERVICES_PURGE: sim_services_call(m, e); break;
    default: break;
    }
}

static void spoil_plan(sim_world *w, const sim_event *e) {
    if (!w->script->spoils) return;
    switch (e->kind) {
    case SIM_DELETE_PLAN:
        if (e->b % 2) w->plan_trap = true;
        else sim_admin_delete_plan(w, e->b % 4 == 0);
        break;
    case SIM_SPOIL_PLAN: sim_admin_spoil_plan(w, e); break;
    case SIM_RESTORE_PLAN: sim_admin_restore_plan(w, e); break;
    default:
        if (e->b % 2) w->newer_trap = true;
        else sim_admin_newer_plan(w);
    }
}

void sim_apply(sim_world *w, const sim_event *e) {
    w->coverage->kinds[e->kind]++;
    w->coverage->script_events++;
    sim_trace(w, "-- %s", sim_kind_name(e->kind));
    switch (e->kind) {
    case SIM_JOIN: join(w, e); break;
    case SIM_PARTY_LOOK:
        sim_rolls_spoil(w, e->d);
        act_of_member(w, e);
        break;
    case SIM_FINISH:
    case SIM_DESTROY:
    case SIM_CLOSE:
    case SIM_SLOW_USER:
    case SIM_WAIT:
    case SIM_ACQUIRE_WAIT:
    case SIM_RESIZE:
    case SIM_CLAIMS_LOOK:
    case SIM_SERVICES_LOOK:
    case SIM_SERVICES_CLAIM:
    case SIM_SERVICES_UNREGISTER:
    case SIM_SERVICES_PURGE:
    case SIM_LEAVE:
    case SIM_SET_ITEMS:
    case SIM_SET_WEIGHT: act_of_member(w, e); break;
    case SIM_DEPLOY: sim_plans_deploy(w, e); break;
    case SIM_DELETE_PLAN:
    case SIM_SPOIL_PLAN:
    case SIM_RESTORE_PLAN:
    case SIM_NEWER_PLAN: spoil_plan(w, e); break;
    case SIM_WALL_CLOCK:
        if (w->script->wall_clocks)
            sim_services_wall_clock(w, e->a % w->script->servers, (int64_t)(e->b % 6001) - 3000);
        break;
    case SIM_DELETE_SERVICE: sim_admin_delete_service(w, e->a); break;
    case SIM_SERVER_KILL:
    case SIM_SERVER_PAUSE:
    case SIM_LEADER_KILL:
    case SIM_LEADER_PAUSE:
    case SIM_SERVERS_CUT:
    case SIM_SERVERS_CUT_ONE_WAY: fault_of_servers(w, e); break;
    case SIM_FOLLOWER_CUT: cut_a_follower(w, e); break;
    case SIM_HEAL: sim_heal(w); break;
    case SIM_DELETE_PLACE: sim_admin_delete_place(w, e->a); break;
    case SIM_DELETE_MEMBER: sim_admin_delete_member(w, e->a); break;
    case SIM_STRAY: sim_admin_stray(w, e->a); break;
    case SIM_DELETE_CLAIM: sim_admin_delete_claim(w, e->a); break;
    case SIM_DELETE_DIRECTORY: sim_admin_delete_directory(w, e->a); break;
    case SIM_SEQUENCE_END: sim_sequence_end(w, e); break;
    case SIM_STALL: stall(w, e); break;
    case SIM_ASK: sim_operator_ask(w, e); break;
    case SIM_OLDER_ROOT: sim_older_root(w); break;
    default: fault_of_member(w, e);
    }
}
