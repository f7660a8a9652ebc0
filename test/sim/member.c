/* A process: its client, what runs on it, and how it ends. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "follow/follower.h"
#include "mutant.h"
#include "operator.h"
#include "rolls.h"
#include "steps.h"
#include "watches.h"

/* ---- how it is made ---- */

static void draw_user(sim_member *m, sim_random *r) {
    const sim_script *s = m->world->script;
    sim_user *u = &m->user;
    u->style = (sim_style)SIM_ONE_OF(r, SIM_AT_ONCE, SIM_LATER, SIM_LATER, SIM_POLLS, SIM_KAZOO_LOOP);
    u->react_ms = sim_between(r, 1, s->react_ms ? s->react_ms : 1);
    u->poll_ms = u->style == SIM_AT_ONCE || u->style == SIM_LATER ? SIM_ONE_OF(r, 500, 1000, 3000)
                                                                  : sim_between(r, 20, 100 + s->react_ms / 2);
    u->twice = sim_chance(r, 40);
    u->by_id = sim_chance(r, 25);
    u->stays = sim_chance(r, 50);
    u->closes_first = sim_chance(r, 20);
    u->destroys_inside = sim_chance(r, 15);
    u->random = sim_random_of(sim_draw(r), 7);
}

/* A tick that is told too large is as safe as the right one; one that is not told is refused, but by the mutant. */
static int64_t draw_tick(const sim_member *m, sim_random *r) {
    const sim_script *s = m->world->script;
    int64_t tick_ms = s->tick_ms + (sim_chance(r, 70) ? 0 : sim_between(r, 1, s->tick_ms));
    if (sim_least_timeout_ms(s, tick_ms) > m->client_config.session_timeout_ms) tick_ms = s->tick_ms;
    return DV_MUTANT(unknown_tick_half) ? 0 : tick_ms;
}

static void draw_client(sim_member *m, sim_random *r) {
    const sim_script *s = m->world->script;
    m->client_config = (divvy_client_config)DIVVY_CLIENT_CONFIG_INIT;
    divvy_client_config *c = &m->client_config;
    c->session_timeout_ms = s->timeout_ms;
    if (sim_chance(r, 20)) c->session_timeout_ms = sim_between(r, s->timeout_ms, 20 * s->tick_ms);
    c->ensemble_tick_ms = draw_tick(m, r);
    if (c->session_timeout_ms > m->world->timeout_max_ms) m->world->timeout_max_ms = c->session_timeout_ms;
    c->manual = 1;
    c->user = m;
    enum { MEMBER_BYTES = 75, PLACE_BYTES = 75 };
    if (s->small_budgets && sim_chance(r, 50))
        c->ephemeral_path_bytes = MEMBER_BYTES + PLACE_BYTES * (size_t)sim_between(r, 1, (int64_t)s->items / 2 + 1);
    if (s->small_budgets && sim_chance(r, 30))
        c->watch_path_bytes = 2 * PLACE_BYTES * (size_t)sim_between(r, 1, (int64_t)s->items / 2 + 1);
}

static void draw_boundaries(divvy_partitioner_config *c, const sim_script *s, sim_random *r) {
    c->time_boundary_ms = sim_chance(r, 70) ? s->boundary_ms : SIM_ONE_OF(r, 0, 50, 200, 1000);
    c->leave_boundary_ms = sim_chance(r, 70) ? -1 : SIM_ONE_OF(r, 0, 50, 500);
    int64_t longer = c->leave_boundary_ms > c->time_boundary_ms ? c->leave_boundary_ms : c->time_boundary_ms;
    c->settle_max_ms = sim_chance(r, 70) ? 0 : longer + sim_between(r, 0, 2 * longer);
    if (sim_chance(r, 6)) c->allocate_timeout_ms = sim_between(r, s->timeout_ms / 2, 3 * s->timeout_ms);
    if (sim_chance(r, 20)) c->release_warn_ms = 100;
}

static void draw_partitioner(sim_member *m, sim_random *r) {
    sim_world *w = m->world;
    const sim_script *s = w->script;
    divvy_partitioner_config *c = &m->config;
    *c = (divvy_partitioner_config)DIVVY_PARTITIONER_CONFIG_INIT;
    uint32_t preset = sim_below(r, 100);
    if (preset >= 80) *c = (divvy_partitioner_config)DIVVY_PARTITIONER_CONFIG_KAZOO;
    else if (preset >= 65) c->mode = DIVVY_EAGER;
    c->path = "/pool";
    c->items = w->items;
    c->item_count = s->items;
    c->identifier = m->name;
    draw_boundaries(c, s, r);
    if (sim_chance(r, 15)) c->on_suspend = DIVVY_RELEASE_ON_SUSPEND;
    if (sim_chance(r, 50)) c->on_session_loss = DIVVY_REJOIN;
    if (preset < 80)
        c->assign =
            (int)SIM_ONE_OF(r, DIVVY_ASSIGN_AUTO, DIVVY_ASSIGN_AUTO, DIVVY_ASSIGN_ROUND_ROBIN, DIVVY_ASSIGN_RENDEZVOUS);
    sim_plans_configure(m, r);
    c->identifier = m->name;
    sim_user_callbacks(m, c);
}

/* From a stream of their own, so that histories are what they were but for this. */
static void draw_handovers(sim_member *m, sim_random random) {
    sim_random *r = &random;
    divvy_partitioner_config *c = &m->config;
    m->user.prepares = (int)SIM_ONE_OF(r, SIM_NEVER, SIM_PREPARED_AT_ONCE, SIM_PREPARED_LATER);
    if (sim_chance(r, 60)) c->prepare_timeout_ms = sim_between(r, 1, SIM_PREPARES_MS);
    if (sim_chance(r, 10)) c->handover_timeout_ms = 0;
    else if (sim_chance(r, 20)) c->handover_timeout_ms = sim_between(r, 300, SIM_PREPARES_MS);
}

static void note_settle_max(sim_member *m) {
    const divvy_partitioner_config *c = &m->config;
    int64_t longer = c->leave_boundary_ms > c->time_boundary_ms ? c->leave_boundary_ms : c->time_boundary_ms;
    int64_t settle_max_ms = c->settle_max_ms ? c->settle_max_ms : 4 * longer;
    m->settle_max_ms = settle_max_ms;
    if (settle_max_ms > m->world->settle_max_ms) m->world->settle_max_ms = settle_max_ms;
}

static void reset_seen(sim_member *m) {
    memset(m->items, 0, sizeof m->items);
    m->seen_generation = m->seen_state_id = m->release_id = 0;
    m->seen_change = m->ended = m->destroyed = m->failing = m->leaving = m->hands_over = false;
    m->roll_pzxid = 0;
    m->plan_mzxid = m->plan_found = m->plan_standing = m->plan_rule = 0;
    m->plan_wishes = m->plan_loads = false;
    m->seen_state = m->told_state = DIVVY_ALLOCATING;
    m->last_reason = -1;
    m->release_at = m->end_at = m->unserved_since = 0;
}

/* A partitioner on the client there is; where the member has none, its locks alone. */
static bool take_part(sim_member *m) {
    reset_seen(m);
    m->phase = SIM_RUNS;
    m->act_at = 0;
    if (m->world->script->theme == SIM_OF_SERVICES) sim_services_start(m, &m->user.random);
    if (!m->has_partitioner) {
        sim_user_plan(m);
        return true;
    }
    int error = divvy_partitioner_create(&m->partitioner, m->client, &m->config);
    if (error == DIVVY_EUNSUPPORTED) {
        m->config.on_session_loss = DIVVY_FAIL;
        error = divvy_partitioner_create(&m->partitioner, m->client, &m->config);
    }
    if (error) {
        sim_trace(m->world, "%s cannot have a partitioner: %s", m->name, divvy_client_error(m->client));
        m->partitioner = NULL;
        return false;
    }
    if (m->partitioner->follower) m->partitioner->follower->config.sizes = &m->world->script->plan_sizes;
    sim_loads_begin(m);
    m->partitioners++;
    m->life = ++m->world->lives;
    m->world->quiet_since = m->world->now_ms;
    note_settle_max(m);
    sim_user_plan(m);
    return true;
}

static void describe(sim_member *m) {
    static const char *const styles[] = {"at once", "later", "polls", "kazoo's loop"};
    const divvy_partitioner_config *c = &m->config;
    sim_trace(m->world,
              "%s joins: timeout %lld ms, tick %lld, %s, boundary %lld, leave %lld, settle max %lld, %s, %s, assign "
              "%d, %zu items, "
              "weight %u%s%s, %s %lld ms, user: %s, %lld ms%s%s%s",
              m->name, (long long)m->client_config.session_timeout_ms, (long long)m->client_config.ensemble_tick_ms,
              c->mode == DIVVY_EAGER ? "eager" : "incremental", (long long)c->time_boundary_ms,
              (long long)c->leave_boundary_ms, (long long)c->settle_max_ms,
              c->on_suspend == DIVVY_HOLD ? "holds" : "releases on suspend",
              c->on_session_loss == DIVVY_REJOIN ? "rejoins" : "fails", c->assign, c->item_count, c->weight,
              c->zone ? ", zone " : "", c->zone ? c->zone : "", c->static_membership ? "static" : "not static",
              (long long)c->rejoin_delay_ms, styles[m->user.style], (long long)m->user.react_ms,
              m->user.twice ? ", twice" : "", m->user.by_id ? ", by id" : "", m->party ? ", in a party too" : "");
}

void sim_member_start(sim_world *w, size_t slot, const sim_event *event) {
    sim_member *m = &w->members[slot];
    sim_random random = sim_random_of((uint64_t)event->c << 32 | event->d, 3), *r = &random;
    unsigned incarnation = m->incarnation + 1;
    *m =
        (sim_member){.world = w, .slot = slot, .incarnation = incarnation, .act_at = INT64_MAX, .opened_zxid = w->zxid};
    snprintf(m->name, sizeof m->name, "m%zu-%u", slot, incarnation);
    bool of_pools = w->script->theme == SIM_OF_POOLS || w->script->theme == SIM_OF_PLANS;
    bool is_kazoo = w->script->kazoo && of_pools && sim_chance(r, 40);
    bool is_kazoo_claim = w->script->kazoo_claims && sim_chance(r, 40);
    draw_user(m, r);
    draw_client(m, r);
    /* Two kazoo members of one name wait for each other for ever. */
    if (sim_chance(r, 3) && !is_kazoo) snprintf(m->name, sizeof m->name, "same");
    if (divvy_testing_client_open(&m->client, w->ensemble, &m->client_config) != 0) {
        sim_violate(w, "open", "no client: %s", divvy_client_error(NULL));
        return;
    }
    m->phase = SIM_RUNS;
    sim_rolls_configure(m);
    if (!is_kazoo && !is_kazoo_claim) sim_watch_begin(m, sim_random_of((uint64_t)event->c << 32 | event->d, 17));
    if (is_kazoo_claim) {
        sim_kazoo_claim_start(m, r);
        return;
    }
    if (!is_kazoo) sim_steps_open(m);
    if (is_kazoo) {
        w->quiet_since = w->now_ms;
        m->kazoo = sim_kazoo_start(m, event);
        m->act_at = w->now_ms + 1;
        return;
    }
    if (sim_chance(r, 15)) divvy_party_join(&m->party, m->client, "/crew", m->name, (int)sim_below(r, 2));
    draw_partitioner(m, r);
    draw_handovers(m, sim_random_of((uint64_t)event->c << 32 | event->d, 14));
    sim_plans_name(m, sim_random_of((uint64_t)event->c << 32 | event->d, 16));
    sim_loads_configure(m, sim_random_of((uint64_t)event->c << 32 | event->d, 22));
    m->has_partitioner = of_pools;
    if (sim_has_claims(w->script->theme)) {
        m->has_partitioner = w->script->partitioners && sim_chance(r, 50);
        sim_claims_draw(m, r);
    }
    if (m->has_partitioner) describe(m);
    if (!take_part(m)) sim_member_close(m);
}

/* Mostly its items are all there are. */
dv_item *sim_item_of(const sim_member *m, size_t item) {
    const char *name = m->world->items[item];
    const divvy_partitioner *p = m->partitioner;
    if (item < dv_item_count(p) && strcmp(dv_item_name(p, item), name) == 0) return dv_item_at(p, item);
    return dv_item_find(p, name);
}

/* ---- how it ends ---- */

int sim_member_finish(sim_member *m, int64_t timeout_ms) {
    sim_user_stop_all(m);
    m->ended = true;
    m->phase = SIM_ENDING;
    m->act_at = 0;
    m->world->quiet_since = m->world->now_ms;
    sim_trace(m->world, "%s finishes", m->name);
    int64_t began_ms = m->world->now_ms;
    int error = divvy_partitioner_finish(m->partitioner, timeout_ms);
    sim_check_anew(m->world);
    if (m->world->now_ms > began_ms + timeout_ms + 1000)
        sim_violate(m->world, "L2", "finish() with a timeout of %lld ms took %lld ms", (long long)timeout_ms,
                    (long long)(m->world->now_ms - began_ms));
    if (error == 0) sim_check_gone(m);
    m->end_at = m->world->now_ms + (error == 0 ? 1 : sim_between(&m->user.random, 100, 3000));
    sim_user_plan(m);
    return error;
}

void sim_member_leave(sim_member *m, int64_t timeout_ms) {
    sim_user_stop_all(m);
    m->ended = m->leaving = true;
    m->phase = SIM_ENDING;
    m->act_at = 0;
    m->world->quiet_since = m->world->now_ms;
    sim_trace(m->world, "%s leaves", m->name);
    int64_t began_ms = m->world->now_ms;
    int error = divvy_partitioner_leave(m->partitioner, 0, timeout_ms);
    sim_check_anew(m->world);
    if (m->world->now_ms > began_ms + timeout_ms + 1000)
        sim_violate(m->world, "L2", "leave() with a timeout of %lld ms took %lld ms", (long long)timeout_ms,
                    (long long)(m->world->now_ms - began_ms));
    if (error == 0) sim_check_gone(m);
    m->end_at = m->world->now_ms + (error == 0 ? 1 : sim_between(&m->user.random, 100, 6000));
    sim_user_plan(m);
}

void sim_member_hand_over(sim_member *m) {
    sim_trace(m->world, "%s hands over", m->name);
    m->hands_over = true;
    m->world->quiet_since = m->world->now_ms;
    divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 0);
    sim_check_anew(m->world);
    sim_user_plan(m);
}

/* The process goes on without a partitioner for a while. */
static void idle(sim_member *m) {
    m->phase = SIM_IDLE;
    m->release_at = 0;
    m->act_at = 0;
    m->end_at = m->world->now_ms + (m->user.stays ? sim_between(&m->user.random, 100, 10000) : 1);
    sim_user_plan(m);
}

void sim_member_destroy(sim_member *m) {
    sim_user_stop_all(m);
    m->ended = m->destroyed = true;
    m->world->quiet_since = m->world->now_ms;
    sim_trace(m->world, "%s destroys its partitioner", m->name);
    sim_user_hold_callbacks(m, false); /* Destroying waits for its end. */
    divvy_partitioner *p = m->partitioner;
    m->partitioner = NULL;
    divvy_partitioner_destroy(p);
    sim_claims_destroy(m);
    sim_services_destroy(m);
    idle(m);
}

void sim_member_close(sim_member *m) {
    sim_world *w = m->world;
    sim_user_stop_all(m);
    sim_claims_stop(m);
    m->ended = true;
    w->quiet_since = w->now_ms;
    sim_trace(w, "%s closes its client", m->name);
    sim_user_hold_callbacks(m, false);
    int64_t began_ms = divvy_testing_now_ms(w->ensemble);
    divvy_partitioner *p = m->partitioner;
    divvy_client *client = m->client;
    int64_t session = divvy_client_session_id(client);
    m->phase = SIM_ABSENT; /* Time goes on inside the call, and it has ceased to be a member. */
    bool first = m->user.closes_first;
    m->partitioner = NULL;
    if (p && !first) divvy_partitioner_destroy(p);
    if (!first) sim_claims_destroy(m);
    sim_services_stop(m);
    if (!first) sim_services_destroy(m);
    m->destroyed = !first;
    divvy_client_close(client);
    m->destroyed = true;
    if (p && first) divvy_partitioner_destroy(p);
    sim_claims_destroy(m);
    sim_claims_closed(m);
    sim_services_destroy(m);
    sim_services_free(m);
    sim_kazoo_claim_free(m->kazoo_claim);
    divvy_party_destroy(m->party);
    sim_kazoo_free(m->kazoo);
    m->client = NULL;
    m->party = NULL;
    m->kazoo = NULL;
    m->kazoo_claim = NULL;
    sim_watch_closed(m, session);
    sim_check_anew(w);
    if (w->now_ms > began_ms + 3000)
        sim_violate(w, "L2", "close() of %s took %lld ms", m->name, (long long)(w->now_ms - began_ms));
}

/* Nothing of it is left but its session at the servers. */
void sim_member_crash(sim_member *m) {
    sim_trace(m->world, "%s crashes", m->name);
    sim_watch_crash(m);
    divvy_testing_crash_client(m->world->ensemble, m->client);
    sim_member_close(m);
}

/* ---- ending, and after it ---- */

static void go_on_ending(sim_member *m) {
    int error =
        m->leaving ? divvy_partitioner_leave(m->partitioner, 0, 0) : divvy_partitioner_finish(m->partitioner, 0);
    if (error == 0) sim_check_gone(m);
    if (error == 0 || error == DIVVY_ELOST || m->world->now_ms >= m->end_at) sim_member_destroy(m);
}

void sim_member_act(sim_member *m) {
    sim_world *w = m->world;
    if (m->kazoo) {
        sim_kazoo_act(m->kazoo);
        return;
    }
    if (m->kazoo_claim) {
        sim_kazoo_claim_act(m);
        return;
    }
    sim_claims_act(m);
    sim_services_act(m);
    if (m->phase == SIM_RUNS) {
        sim_user_act(m);
        return;
    }
    m->act_at = 0;
    if (m->phase == SIM_ENDING) go_on_ending(m);
    else if (m->phase == SIM_IDLE && w->now_ms >= m->end_at) {
        bool again = !w->healed && sim_chance(&m->user.random, 50) && take_part(m);
        if (!again && (!w->healed || !m->user.stays)) sim_member_close(m);
        else if (!again) m->end_at = INT64_MAX; /* The end of the history looks for what it left behind. */
    }
    if (m->phase != SIM_ABSENT) sim_user_plan(m);
}
