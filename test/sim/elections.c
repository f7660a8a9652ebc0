/* Elections of a member, and their users. SPDX-License-Identifier: Apache-2.0
 *
 * An election is a claim (claims.c) whose acquires have no end but that it is elected, and begin again by themselves
 * after a loss. Besides, its user is told who leads, is asked to step down, and asks others. */
#include "claims.h"

#include <stdio.h>

#include "recipe/election.h"

static void met(const sim_claim *c, sim_election_meeting what) {
    c->m->world->coverage->election_meetings[what]++;
}

/* ---- the user ---- */

static void on_elected(divvy_election *election, int64_t token, void *user) {
    sim_claim *c = user;
    (void)election, (void)token;
    met(c, c->preference ? SIM_MET_PREFERRED : SIM_MET_ELECTED);
    sim_claim_done(c, 0);
}

static void on_lost(divvy_election *election, void *user) {
    (void)election;
    met(user, SIM_MET_DEPOSED);
    sim_claim_lost(user);
}

static void on_failed(divvy_election *election, int error, void *user) {
    (void)election;
    sim_claim_done(user, error);
}

static void on_leader(divvy_election *election, const divvy_leader *leader, void *user) {
    sim_claim *c = user;
    int64_t token = leader ? leader->token : 0;
    (void)election;
    if (!sim_claim_exists(c)) sim_claim_wrong(c, "a leader was told after a destroy", 0);
    if (c->told_leader && token == c->leader_token) sim_claim_wrong(c, "one leader was told twice", 0);
    met(c, leader ? SIM_MET_LEADER : SIM_MET_NO_LEADER);
    c->told_leader = true;
    c->leader_token = token;
}

/* It thinks about it, and may agree. */
static void on_step_down(divvy_election *election, const char *who, size_t who_bytes, void *user) {
    sim_claim *c = user;
    (void)election, (void)who, (void)who_bytes;
    if (!sim_claim_exists(c)) sim_claim_wrong(c, "a request was told after a destroy", 0);
    if (!c->owns) sim_claim_wrong(c, "a request was told, and it does not lead", 0);
    met(c, SIM_MET_ASKED);
    if (sim_chance(&c->m->claim_random, 70)) c->act_at = c->m->world->now_ms + sim_between(&c->m->claim_random, 0, 300);
}

/* ---- the object ---- */

void sim_election_draw(sim_claim *c, sim_random *r) {
    c->is_election = sim_chance(r, 75);
    c->preference = sim_chance(r, 40) ? (int)sim_between(r, 1, 2) : 0;
    if (c->is_election) c->mode = DIVVY_WRITE; /* It waits for all that stand before it. */
}

int sim_election_create(sim_claim *c) {
    char path[32];
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    snprintf(path, sizeof path, "/locks/l%zu", c->place);
    config.path = path;
    config.data = c->m->name;
    config.preference = c->preference;
    config.on_elected = on_elected;
    config.on_lost = on_lost;
    config.on_leader = on_leader;
    config.on_step_down = on_step_down;
    config.on_failed = on_failed;
    config.user = c;
    c->told_leader = false;
    c->unknown_since = 0;
    int error = divvy_election_create(&c->election, c->m->client, &config);
    if (!error) c->lock = c->election->lock;
    return error;
}

void sim_election_destroy(sim_claim *c) {
    divvy_election *election = c->election;
    c->election = NULL;
    c->acquiring = false;
    divvy_election_destroy(election);
}

int sim_election_let_go(sim_claim *c) {
    int error = divvy_election_resign(c->election);
    c->acquiring = false;
    return error;
}

void sim_election_stands_again(sim_claim *c) {
    c->acquiring = true;
    c->given_up = c->is_try = false;
    c->began_ms = c->m->world->now_ms;
    c->ends_by = INT64_MAX;
}

int sim_election_look(sim_claim *c, const sim_event *e, divvy_strings **names, int64_t timeout_ms) {
    if (e->d % 3 == 0) return divvy_election_candidates(c->election, names, timeout_ms);
    int result = divvy_election_ask_step_down(c->election, timeout_ms);
    if (result == 0) met(c, SIM_MET_STEPPED_DOWN);
    if (result == DIVVY_ETIMEDOUT) met(c, SIM_MET_DECLINED);
    return result == DIVVY_ENOENT ? 0 : result;
}

/* ---- the claims ---- */

/* S20. What stood there before its place became the first was in the list by which it took its turn (Q1, Q4). */
void sim_election_check_held(const sim_claim *c, const sim_claim_node *own) {
    sim_world *w = c->m->world;
    const sim_lock_truth *lock = &w->claims_truth->locks[c->place];
    for (size_t i = 0; i < lock->queue.count; i++) {
        const sim_claim_node *other = &lock->queue.nodes[i];
        bool seen = other->contends && other->czxid < lock->head_since && other->czxid != own->czxid;
        if (seen && dv_queue_preference(other->name) > c->preference)
            sim_violate(w, "S20", "%s leads at l%zu with preference %d, and %s stood behind it", c->m->name, c->place,
                        c->preference, other->name);
    }
}

/* J3, with a link and servers that work. */
void sim_election_check_step(sim_claim *c) {
    sim_world *w = c->m->world;
    const sim_lock_truth *lock = &w->claims_truth->locks[c->place];
    int64_t head = lock->head_czxid;
    const dv_leader_view *view = c->election ? &c->election->view : NULL;
    bool looks = view && view->follows && dv_client_connected(c->m->client) && !c->m->paused;
    bool known = looks && view->known;
    int64_t token = looks ? dv_leader_token(view->leader) : 0;
    bool well = !looks || (known && token == head);
    if (well || !c->unknown_since) c->unknown_since = w->now_ms;
    if (well) return;
    if (c->unknown_since < lock->head_at_ms) c->unknown_since = lock->head_at_ms;
    const sim_script *s = w->script;
    int64_t timeout_ms = c->m->client_config.session_timeout_ms;
    int64_t limit_ms = sim_answers_delay_ms(w) + 1000 + 20 * s->client_delay_max_ms + 20 * s->server_delay_max_ms;
    if (s->profile != SIM_REPLIES) limit_ms += timeout_ms + s->sync_limit_ticks * s->tick_ms;
    if (w->now_ms - c->unknown_since > limit_ms)
        sim_violate(w, "L1", "%s has not known for %lld ms who leads at l%zu: it thinks of %lld, and it is %lld",
                    c->m->name, (long long)(w->now_ms - c->unknown_since), c->place, (long long)token, (long long)head);
}

bool sim_election_well(const sim_claim *c) {
    return !sim_claim_exists(c) || (c->told_leader && c->leader_token == 0);
}
