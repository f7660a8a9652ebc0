/* Elections: stand, lead, be asked to step down, yield to a preferred one, lose. SPDX-License-Identifier: Apache-2.0 */
#include "scenarios.h"

#define PATH "/pool/e"

typedef struct {
    divvy_election *election;
    int elected, lost, asked, failure;
    int64_t leader; /* that it was told of last */
} user;

typedef struct {
    user a, b, observer;
} users;

static void on_elected(divvy_election *election, int64_t token, void *context) {
    user *u = context;
    (void)election, (void)token;
    u->elected++;
}

static void on_lost(divvy_election *election, void *context) {
    user *u = context;
    (void)election;
    u->lost++;
}

static void on_leader(divvy_election *election, const divvy_leader *leader, void *context) {
    user *u = context;
    (void)election;
    u->leader = leader ? leader->token : 0;
}

/* It agrees, and stands again by the scenario. */
static void on_step_down(divvy_election *election, const char *who, size_t who_bytes, void *context) {
    user *u = context;
    (void)who, (void)who_bytes;
    u->asked++;
    divvy_election_resign(election);
}

static void on_failed(divvy_election *election, int error, void *context) {
    user *u = context;
    (void)election;
    u->failure = error;
}

/* S2: no two lead at one moment. */
static void check(sweep *s, void *context) {
    const users *u = context;
    bool first = divvy_election_leads(u->a.election), second = divvy_election_leads(u->b.election);
    if (sweep_is_spoilt(s, "belief")) second = true;
    if (first && second) sweep_fail(s, "two lead");
}

static bool leads(sweep *s, void *context) {
    const user *u = context;
    return divvy_election_leads(u->election) && !sweep_is_spoilt(s, "hang");
}

static bool knows(sweep *s, void *context) {
    const users *u = context;
    const user *leader = divvy_election_leads(u->a.election) ? &u->a : &u->b;
    (void)s;
    return u->observer.leader && u->observer.leader == divvy_election_token(leader->election);
}

static bool has_lost(sweep *s, void *context) {
    (void)s;
    return ((user *)context)->lost == 1;
}

static void wait_for_leader(sweep *s, users *u, user *leader) {
    sweep_until(s, leads, leader, SWEEP_WAIT_MS, "a leader");
    sweep_until(s, knows, u, SWEEP_WAIT_MS, "the observer, who leads");
}

static void make(sweep *s, user *u, int client, int preference) {
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    config.path = PATH;
    config.preference = preference;
    config.on_elected = on_elected;
    config.on_lost = on_lost;
    config.on_leader = on_leader;
    config.on_step_down = on_step_down;
    config.on_failed = on_failed;
    config.user = u;
    SWEEP_DO(s, divvy_election_create(&u->election, s->clients[client], &config));
}

static void destroy(user *u) {
    divvy_election *election = u->election;
    u->election = NULL;
    divvy_election_destroy(election);
}

/* The observer asks; the leader resigns, and the other one is next. */
static void hand_over(sweep *s, users *u) {
    divvy_strings *names = NULL;
    divvy_leader *leader = NULL;
    SWEEP_DO(s, divvy_election_stand(u->b.election));
    sweep_pass(s, 2000);
    SWEEP_DO(s, divvy_election_candidates(u->observer.election, &names, SWEEP_WAIT_MS));
    divvy_strings_free(names);
    SWEEP_DO(s, divvy_election_leader(u->observer.election, &leader, SWEEP_WAIT_MS));
    divvy_leader_free(leader);
    SWEEP_DO(s, divvy_election_ask_step_down(u->observer.election, SWEEP_WAIT_MS));
    SWEEP_CHECK(s, u->a.asked <= 1 && !divvy_election_leads(u->a.election));
    wait_for_leader(s, u, &u->b);
}

static void run(sweep *s, int preference) {
    users u = {.a.elected = 0};
    for (int i = 0; i < 3; i++) sweep_open(s, i);
    s->check = check;
    s->user = &u;
    s->empty_paths[0] = PATH;
    sweep_begin(s);
    make(s, &u.a, 0, 0);
    make(s, &u.b, 1, preference);
    make(s, &u.observer, 2, 0);
    SWEEP_DO(s, divvy_election_stand(u.a.election));
    wait_for_leader(s, &u, &u.a);
    if (preference) {
        SWEEP_DO(s, divvy_election_stand(u.b.election)); /* J5: it asks by itself. */
        wait_for_leader(s, &u, &u.b);
    } else {
        hand_over(s, &u);
    }
    u.b.lost = 0;
    divvy_testing_expire(s->ensemble, s->clients[1]);
    sweep_until(s, has_lost, &u.b, 3 * SWEEP_TIMEOUT_MS, "on_lost");
    wait_for_leader(s, &u, &u.b); /* J2: it stands again by itself. */
    SWEEP_CHECK(s, u.a.failure == 0 && u.b.failure == 0);
    destroy(&u.a);
    destroy(&u.b);
    destroy(&u.observer);
    sweep_end(s);
}

void sweep_election_asked(sweep *s) {
    run(s, 0);
}

void sweep_election_preferred(sweep *s) {
    run(s, 9);
}
