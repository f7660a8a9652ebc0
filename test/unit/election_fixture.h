/* Shared by the tests of divvy/election.h: candidates and observers on an ensemble in memory.
 * SPDX-License-Identifier: Apache-2.0
 *
 * After each step it is checked that at most one leads. */
#ifndef DV_TEST_ELECTION_FIXTURE_H
#define DV_TEST_ELECTION_FIXTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claim.h"
#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/seed.h"
#include "lib/test.h"
#include "recipe/queue.h"

#define PATH "/elections/e"
#define SESSION_MS INT64_C(4000)

enum { CLIENTS = 5, MEMBERS = 12, NODES = 4096, TICK_MS = 500, TEXT_BYTES = 32 };

typedef struct {
    char path[160];
    int64_t czxid;
    bool foreign; /* put by the test */
} node;

/* A user of an election, and what it was told. */
typedef struct {
    divvy_election *election;
    divvy_client *client;
    bool agrees, stands_again; /* when it is asked to step down */
    bool destroys_when_elected, destroys_when_asked, destroys_when_lost;
    int elected, lost, failed, failure, asked, told;
    int64_t token, elected_at, lost_at; /* of the last time */
    char asked_by[TEXT_BYTES], leader[TEXT_BYTES];
    bool has_leader;
    int64_t leader_token;
    size_t last_bytes;
} member;

typedef struct {
    const char *data;
    int names, preference;
    bool agrees, stands_again, destroys_when_elected, destroys_when_asked, destroys_when_lost;
} config_of;

static divvy_testing_ensemble *ensemble;
static divvy_client *clients[CLIENTS];
static member members[MEMBERS];
static node nodes[NODES];
static size_t node_count, member_count, client_count;
static int64_t last_token;
static bool killed; /* a session by an administrator: what the session clock cannot know of */

/* ---- the truth ---- */

static inline void on_transaction(const divvy_testing_transaction *t, void *user) {
    (void)user;
    if (!t->path || strncmp(t->path, PATH "/", strlen(PATH) + 1) != 0) return;
    if (t->kind == DIVVY_TESTING_CREATE) {
        CLAIM(node_count < NODES, "too many nodes");
        snprintf(nodes[node_count].path, sizeof nodes->path, "%s", t->path);
        nodes[node_count].foreign = t->ephemeral_owner == 0;
        nodes[node_count++].czxid = t->czxid;
    } else if (t->kind == DIVVY_TESTING_DELETE) {
        for (size_t i = 0; i < node_count; i++) {
            if (strcmp(nodes[i].path, t->path) != 0) continue;
            nodes[i] = nodes[--node_count];
            break;
        }
    }
}

static inline size_t count_nodes(const char *part) {
    size_t found = 0;
    for (size_t i = 0; i < node_count; i++) found += strstr(nodes[i].path, part) != NULL;
    return found;
}

/* S1, S2: at most one believes to lead. */
static inline void check_belief(void) {
    size_t leaders = 0;
    for (size_t i = 0; i < member_count; i++) {
        int64_t token = divvy_election_token(members[i].election);
        leaders += token != 0;
    }
    CLAIM(killed || leaders <= 1, "%zu lead", leaders);
}

static inline void run(int64_t ms) {
    int64_t until = divvy_testing_now_ms(ensemble) + ms;
    while (divvy_testing_step(ensemble, until) == 1) check_belief();
}

/* ---- users ---- */

static inline void destroy(member *m) {
    divvy_election *election = m->election;
    m->election = NULL;
    divvy_election_destroy(election);
}

static inline void on_elected(divvy_election *election, int64_t token, void *user) {
    member *m = user;
    CLAIM(election == m->election, "told of another election");
    CLAIM(m->elected == m->lost || token > m->token, "elected twice");
    CLAIM(token > last_token, "token %lld after %lld", (long long)token, (long long)last_token);
    m->elected++;
    m->token = last_token = token;
    m->elected_at = divvy_testing_now_ms(ensemble);
    if (m->destroys_when_elected) destroy(m);
}

static inline void on_lost(divvy_election *election, void *user) {
    member *m = user;
    CLAIM(!divvy_election_leads(election), "told of a loss while it leads");
    m->lost++;
    CLAIM(m->lost <= m->elected, "lost more often than elected");
    m->lost_at = divvy_testing_now_ms(ensemble);
    if (m->destroys_when_lost) destroy(m);
}

static inline void on_leader(divvy_election *election, const divvy_leader *leader, void *user) {
    member *m = user;
    int64_t token = leader ? leader->token : 0;
    (void)election;
    CLAIM(!m->told || token != m->leader_token, "told twice of %lld", (long long)token);
    m->told++;
    m->has_leader = leader != NULL;
    m->leader_token = token;
    m->last_bytes = leader ? leader->data_bytes : 0;
    snprintf(m->leader, sizeof m->leader, "%s", leader ? leader->data : "");
}

static inline void on_step_down(divvy_election *election, const char *who, size_t who_bytes, void *user) {
    member *m = user;
    CLAIM(who[who_bytes] == '\0', "no NUL");
    m->asked++;
    snprintf(m->asked_by, sizeof m->asked_by, "%s", who);
    if (m->destroys_when_asked) destroy(m);
    else if (m->agrees) divvy_election_resign(election);
    if (m->agrees && m->stands_again) divvy_election_stand(election);
}

static inline void on_failed(divvy_election *election, int error, void *user) {
    member *m = user;
    (void)election;
    m->failed++;
    m->failure = error;
}

static inline member *make(size_t client, const config_of *c) {
    member *m = &members[member_count++];
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    *m = (member){.client = clients[client],
                  .agrees = c->agrees,
                  .stands_again = c->stands_again,
                  .destroys_when_elected = c->destroys_when_elected,
                  .destroys_when_asked = c->destroys_when_asked,
                  .destroys_when_lost = c->destroys_when_lost};
    config.path = PATH;
    config.data = c->data;
    config.names = c->names;
    config.preference = c->preference;
    config.on_elected = on_elected;
    config.on_lost = on_lost;
    config.on_leader = on_leader;
    config.on_step_down = on_step_down;
    config.on_failed = on_failed;
    config.user = m;
    assert_int_equal(divvy_election_create(&m->election, m->client, &config), 0);
    return m;
}

/* Stands, and has a place when this returns. */
static inline member *join(size_t client, const config_of *c) {
    member *m = make(client, c);
    assert_int_equal(divvy_election_stand(m->election), 0);
    run(300);
    return m;
}

static inline member *watch(size_t client) {
    return make(client, &(config_of){.data = "observer"});
}

static inline int ask(member *m, int64_t timeout_ms) {
    int64_t began = divvy_testing_now_ms(ensemble);
    int error = divvy_election_ask_step_down(m->election, timeout_ms);
    int64_t took = divvy_testing_now_ms(ensemble) - began;
    CLAIM(took <= timeout_ms + 100, "a request took %lld ms", (long long)took); /* L2 */
    return error;
}

static inline void assert_leader(const member *m, const char *data, int64_t token) {
    assert_int_equal(m->has_leader, data != NULL);
    assert_int_equal(m->leader_token, token);
    if (data) assert_string_equal(m->leader, data);
}

/* ---- somebody else ---- */

static inline void put(const char *name, const void *data, size_t bytes, bool must) {
    char path[200];
    snprintf(path, sizeof path, PATH "/%s", name);
    int error = divvy_testing_put(ensemble, path, data, bytes, DIVVY_TESTING_PERSISTENT);
    assert_true(!must || error == 0);
    run(20);
}

static inline void delete_node_of(int64_t token) {
    killed = true;
    for (size_t i = 0; i < node_count; i++) {
        if (nodes[i].czxid == token) assert_int_equal(divvy_testing_remove(ensemble, nodes[i].path), 0);
    }
}

static inline void clear(void) {
    for (size_t i = 0; i < node_count; i++) {
        if (nodes[i].foreign) assert_int_equal(divvy_testing_remove(ensemble, nodes[i].path), 0);
    }
    run(100);
}

static inline void expire(const member *m) {
    killed = true;
    assert_int_equal(divvy_testing_expire(ensemble, m->client), 0);
}

/* ---- life ---- */

static inline void open_clients(size_t count) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.tick_ms = TICK_MS;
    config.seed = seed;
    config.on_transaction = on_transaction;
    node_count = member_count = 0;
    last_token = 0;
    killed = false;
    client_count = count;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    for (size_t i = 0; i < count; i++) {
        divvy_client_config client = DIVVY_CLIENT_CONFIG_INIT;
        client.manual = 1;
        client.session_timeout_ms = SESSION_MS;
        client.ensemble_tick_ms = TICK_MS;
        assert_int_equal(divvy_testing_client_open(&clients[i], ensemble, &client), 0);
    }
}

static inline divvy_client *take_client(size_t i) {
    divvy_client *client = clients[i];
    clients[i] = NULL;
    return client;
}

/* L3: nothing of any of them is left. */
static inline void close_all(void) {
    for (size_t i = 0; i < member_count; i++) destroy(&members[i]);
    divvy_testing_heal(ensemble);
    run(2 * SESSION_MS);
    CLAIM(node_count == 0, "%s is left", nodes[0].path);
    for (size_t i = 0; i < client_count; i++) {
        if (clients[i]) divvy_client_close(take_client(i));
    }
    divvy_testing_ensemble_destroy(ensemble);
}

#endif
