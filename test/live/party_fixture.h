/* Parties on a real server. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PARTY_FIXTURE_H
#define DV_TEST_PARTY_FIXTURE_H

#include "server_fixture.h"

#include "lib/seed.h"

#define GONE_MS 300 /* for calls that are to run out of time */

/* A client with a party, for as long as a test wants it. */
typedef struct {
    witness witness;
    divvy_client *client;
    divvy_party *party;
} member;

static inline void enter_on(member *m, const char *list, const char *path, const char *identifier, int kind) {
    divvy_client_config config = witness_config(&m->witness, list);
    m->client = open_with(&config);
    int error = divvy_party_join(&m->party, m->client, path, identifier, kind);
    if (error) fail_msg("join: %s", divvy_client_error(m->client));
}

static inline void enter(member *m, const char *path, const char *identifier, int kind) {
    enter_on(m, hosts(), path, identifier, kind);
}

static inline void leave(member *m) {
    divvy_party_destroy(m->party);
    divvy_client_close(m->client);
    witness_end(&m->witness);
}

/* The identifiers, each followed by a space; in the order of the node names, or sorted, as these are random. */
static inline const char *listed(divvy_party *party) {
    static char text[1024];
    divvy_strings *members = NULL;
    const char *names[32];
    int error = divvy_party_members(party, &members, PATIENCE_MS);
    if (error) {
        snprintf(text, sizeof text, "%s", divvy_errname(error));
        return text;
    }
    size_t count = divvy_strings_count(members);
    assert_true(count <= 32);
    for (size_t i = 0; i < count; i++) names[i] = divvy_strings_get(members, i);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            if (strcmp(names[j], names[i]) >= 0) continue;
            const char *swap = names[i];
            names[i] = names[j];
            names[j] = swap;
        }
    }
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) sprintf(text + strlen(text), "%s ", names[i]);
    assert_null(divvy_strings_get(members, count));
    divvy_strings_free(members);
    return text;
}

static inline size_t nodes(const char *path) {
    return dv_test_zk_count(truth, path);
}

/* The only node below `path`; its name, malloc'ed. */
static inline char *only_node(const char *path) {
    size_t count;
    char **names = dv_test_zk_children(truth, path, &count);
    assert_int_equal(count, 1);
    char *name = strdup(names[0]);
    dv_test_zk_free_names(names);
    return name;
}

typedef struct {
    divvy_party *party;
    atomic_int result, begun;
} call;

static inline bool expected(int error) {
    return error == 0 || error == DIVVY_ETIMEDOUT || error == DIVVY_ESTATE;
}

#endif
