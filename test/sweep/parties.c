/* Parties: join, list, be deleted, lose the session, leave. SPDX-License-Identifier: Apache-2.0 */
#include "scenarios.h"

#define PATH "/pool/party"

static void list(sweep *s, divvy_party *party, size_t wanted) {
    divvy_strings *names = NULL;
    sweep_pass(s, 10); /* until the server that is asked has heard of it */
    SWEEP_DO(s, divvy_party_members(party, &names, SWEEP_WAIT_MS));
    if (divvy_strings_count(names) != wanted) sweep_fail(s, "members: %zu", divvy_strings_count(names));
    divvy_strings_free(names);
}

static void list_from_outside(sweep *s, int kind, size_t wanted) {
    divvy_strings *names = NULL;
    SWEEP_DO(s, divvy_party_list(s->clients[1], PATH, kind, &names, SWEEP_WAIT_MS));
    if (divvy_strings_count(names) != wanted) sweep_fail(s, "listed: %zu", divvy_strings_count(names));
    divvy_strings_free(names);
}

static void run(sweep *s, int kind) {
    divvy_party *a = NULL, *b = NULL;
    sweep_open(s, 0);
    sweep_open(s, 1);
    s->empty_paths[0] = PATH;
    sweep_begin(s);
    SWEEP_DO(s, divvy_party_join(&a, s->clients[0], PATH, "a", kind));
    list(s, a, 1);
    list_from_outside(s, kind, 1);
    SWEEP_DO(s, divvy_party_join(&b, s->clients[1], PATH, NULL, kind));
    list(s, b, 2);
    divvy_testing_expire(s->ensemble, s->clients[1]);
    sweep_pass(s, 2 * SWEEP_TIMEOUT_MS);
    list(s, a, 2); /* It has joined again. */
    SWEEP_DO(s, divvy_party_leave(a, SWEEP_WAIT_MS));
    list(s, b, 1);
    divvy_party_destroy(a);
    divvy_party_destroy(b);
    sweep_end(s);
}

void sweep_party_deep(sweep *s) {
    run(s, DIVVY_PARTY);
}

void sweep_party_shallow(sweep *s) {
    run(s, DIVVY_SHALLOW_PARTY);
}
