/* divvy's election: from a leader's resignation to the next leader's callback, for bench/election.sh.
 * SPDX-License-Identifier: Apache-2.0
 *
 * usage: bench_election HOSTS PATH TURNS [OBSERVERS]
 *
 * Two candidates, each on a client of its own, lead in turn. Prints {"us": [...]}, one number for each turn: the time
 * from the call of resign until on_elected of the other has begun. Observers, on clients of their own, follow the
 * leader, and so do the candidates then; nobody waits for that. */
#include <inttypes.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <divvy/divvy.h>

enum { SESSION_TIMEOUT_MS = 30000, OBSERVERS_MAX = 100, WAIT_MS = 60000 };

typedef struct {
    divvy_client *client;
    divvy_election *election;
    sem_t elected;
    int64_t elected_ns;
} candidate;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void on_elected(divvy_election *election, int64_t token, void *user) {
    candidate *c = user;
    (void)election, (void)token;
    c->elected_ns = now_ns();
    sem_post(&c->elected);
}

static void on_leader(divvy_election *election, const divvy_leader *leader, void *user) {
    (void)election, (void)leader, (void)user;
}

_Noreturn static void die(const divvy_client *client, const char *what) {
    fprintf(stderr, "bench_election: %s: %s\n", what, divvy_client_error(client));
    exit(1);
}

static void open_candidate(candidate *c, const char *hosts, const char *path, bool follows) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_election_config election = DIVVY_ELECTION_CONFIG_INIT;
    config.hosts = hosts;
    config.session_timeout_ms = SESSION_TIMEOUT_MS;
    election.path = path;
    election.on_elected = on_elected;
    election.on_leader = follows ? on_leader : NULL;
    election.user = c;
    sem_init(&c->elected, 0, 0);
    if (divvy_client_open(&c->client, &config) != 0) die(NULL, "client");
    if (divvy_client_wait_connected(c->client, WAIT_MS) != 0) die(c->client, "connect");
    if (divvy_election_create(&c->election, c->client, &election) != 0) die(c->client, "election");
}

static void close_candidate(candidate *c) {
    divvy_election_destroy(c->election);
    divvy_client_close(c->client);
    sem_destroy(&c->elected);
}

static void stand(candidate *c) {
    if (divvy_election_stand(c->election) != 0) die(c->client, "stand");
}

/* Waits until both have a place, and for a moment in which the second one sets its watch. */
static void wait_for_two(const candidate *c) {
    size_t count = 0;
    while (count < 2) {
        divvy_strings *names = NULL;
        if (divvy_election_candidates(c->election, &names, WAIT_MS) != 0) die(c->client, "candidates");
        count = divvy_strings_count(names);
        divvy_strings_free(names);
    }
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

int main(int argc, char **argv) {
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: bench_election HOSTS PATH TURNS [OBSERVERS]\n");
        return 2;
    }
    int turns = atoi(argv[3]), observer_count = argc > 4 ? atoi(argv[4]) : 0;
    static candidate pair[2], observers[OBSERVERS_MAX];
    if (observer_count > OBSERVERS_MAX) observer_count = OBSERVERS_MAX;
    for (int i = 0; i < 2; i++) open_candidate(&pair[i], argv[1], argv[2], observer_count > 0);
    for (int i = 0; i < observer_count; i++) open_candidate(&observers[i], argv[1], argv[2], true);
    stand(&pair[0]);
    sem_wait(&pair[0].elected);
    printf("{\"us\": [");
    for (int turn = 0; turn < turns; turn++) {
        candidate *leader = &pair[turn % 2], *next = &pair[1 - turn % 2];
        stand(next);
        wait_for_two(leader);
        int64_t began_ns = now_ns();
        divvy_election_resign(leader->election);
        sem_wait(&next->elected);
        printf("%s%.1f", turn ? ", " : "", (double)(next->elected_ns - began_ns) / 1e3);
    }
    printf("]}\n");
    for (int i = 0; i < 2; i++) close_candidate(&pair[i]);
    for (int i = 0; i < observer_count; i++) close_candidate(&observers[i]);
    return 0;
}
