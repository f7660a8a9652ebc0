/* A candidate: it leads for a while, resigns, and stands again; all others are told who leads. One member alone is
 * preferred, now and then for two turns: while one is, all others give up theirs (J4).
 * SPDX-License-Identifier: Apache-2.0 */
#include "member.h"

#include <stdio.h>
#include <string.h>

enum {
    PREFERENCE = 10,
    TURNS = 20,
    PREFERRED_TURNS = 2,
    PREFERRED_ONCE_IN = 4,
    ASKS_ONCE_IN = 200,
    WAIT_MS = 2 * CHAOS_CALL_MS
};

/* What callbacks tell the thread, and remember for themselves. */
typedef struct {
    atomic_bool asked; /* to step down */
    bool told;         /* of a leader, or of none */
    int64_t token;     /* of the one told of last */
} candidate;

/* ---- callbacks ---- */

static void on_leader(divvy_election *election, const divvy_leader *leader, void *user) {
    (void)election;
    candidate *c = user;
    int64_t token = leader ? leader->token : 0;
    if (c->told && c->token == token)
        chaos_log("V %lld J3 one leader was told twice: %lld", (long long)chaos_now_ms(), (long long)token);
    c->told = true;
    c->token = token;
    chaos_log("K %lld %lld %.30s", (long long)chaos_now_ms(), (long long)token, leader ? leader->data : "-");
}

static void on_step_down(divvy_election *election, const char *who, size_t who_bytes, void *user) {
    (void)election;
    (void)who;
    (void)who_bytes;
    ((candidate *)user)->asked = true;
}

/* ---- the thread ---- */

/* Leads until its time is over, it is lost, or a moment after somebody asked; then gives it up. */
static void lead(chaos_member *m, divvy_election *election, candidate *c) {
    chaos_belief belief = {.kind = "leader", .object = "e0"};
    c->asked = false;
    int64_t session = divvy_client_session_id(m->client), token = divvy_election_token(election);
    bool leads = token && divvy_election_leads(election);
    if (leads && divvy_client_session_id(m->client) == session) chaos_believe(&belief, session, token, "-");
    int64_t until_ms = chaos_now_ms() + chaos_random(CHAOS_HOLD_MS);
    while (belief.held && chaos_now_ms() < until_ms && !m->stopping) {
        int64_t asked_ms = chaos_now_ms();
        if (atomic_exchange(&c->asked, false)) until_ms = asked_ms + chaos_random(CHAOS_RELEASE_MS);
        /* A loss and another turn between two looks have another token. */
        if (divvy_election_leads(election) && divvy_election_token(election) == token) chaos_confirm(&belief, asked_ms);
        else chaos_lose(&belief);
        chaos_sleep_ms(CHAOS_POLL_MS);
    }
    int64_t asked_ms = chaos_now_ms();
    if (belief.held && divvy_election_token(election) == token) chaos_confirm(&belief, asked_ms);
    else if (belief.held) chaos_lose(&belief);
    chaos_give_up(&belief);
    divvy_election_resign(election);
}

/* Waits for its turn, and now and then asks the leader for it. Returns whether it has come. */
static bool wait_for_turn(const chaos_member *m, divvy_election *election) {
    int64_t until_ms = chaos_now_ms() + WAIT_MS;
    while (!m->stopping && chaos_now_ms() < until_ms) {
        if (divvy_election_leads(election)) return true;
        if (chaos_random(ASKS_ONCE_IN) == 0) {
            int64_t asked_ms = chaos_now_ms();
            int result = divvy_election_ask_step_down(election, CHAOS_CALL_MS);
            chaos_log_call("ask_step_down", asked_ms, CHAOS_CALL_MS, result);
        }
        chaos_sleep_ms(CHAOS_POLL_MS);
    }
    return false;
}

static void be_candidate(chaos_member *m, candidate *c) {
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    config.path = CHAOS_ROOT "/elections/e0";
    config.data = m->name;
    bool preferred = strcmp(m->name, "m3") == 0 && chaos_random(PREFERRED_ONCE_IN) == 0;
    config.preference = preferred ? PREFERENCE : 0;
    config.on_leader = on_leader;
    config.on_step_down = on_step_down;
    config.user = c;
    divvy_election *election;
    if (divvy_election_create(&election, m->client, &config)) {
        chaos_sleep_ms(100);
        return;
    }
    int turns = preferred ? PREFERRED_TURNS : TURNS;
    for (int turn = 0; turn < turns && !m->stopping; turn++) {
        divvy_election_stand(election); /* It may stand already, having waited in vain. */
        if (wait_for_turn(m, election)) lead(m, election, c);
    }
    divvy_election_destroy(election);
}

void *chaos_election_run(void *argument) {
    chaos_member *m = argument;
    while (!m->stopping) {
        candidate c = {.token = 0};
        be_candidate(m, &c);
    }
    return NULL;
}
