/* One leads, and all know who: a scheduler that runs once, on one of many machines. SPDX-License-Identifier:
 * Apache-2.0
 *
 * Try it: run this in two or three terminals. Type Enter in the leader's: it steps down. Kill one with SIGKILL. A kazoo
 * process that uses Election("/example-election") stands in the same queue.
 *
 *     export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
 *     election 127.0.0.1:2181 /example-election anna
 *
 * It ends when its input does. A third number, as in "anna 10", is its preference: it takes over from a leader with a
 * smaller one.
 */
#include <divvy/divvy.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what, const char *why) {
    fprintf(stderr, "election: %s: %s\n", what, why);
    return 1;
}

/* All of these come on the client's callback thread, one at a time. Here the work would be started ... */
static void on_elected(divvy_election *election, int64_t token, void *user) {
    (void)election, (void)token, (void)user;
    printf("I lead\n");
}

/* ... and stopped: at once, as another may lead soon. It stands again by itself. */
static void on_lost(divvy_election *election, void *user) {
    (void)election, (void)user;
    printf("I no longer lead\n");
}

/* Everybody is told, candidates and observers. A program would send its requests there. */
static void on_leader(divvy_election *election, const divvy_leader *leader, void *user) {
    (void)election, (void)user;
    if (leader) printf("%s leads\n", leader->data);
    else printf("nobody leads\n");
}

/* It may be declined by doing nothing. The work is to be stopped first. */
static void on_step_down(divvy_election *election, const char *who, size_t who_bytes, void *user) {
    (void)who_bytes, (void)user;
    printf("%s asks me to step down, and I do\n", who);
    divvy_election_resign(election);
    divvy_election_stand(election); /* at the end of the queue */
}

/* Where an access list denies the path, for example. A program would end here, or stand again later. */
static void on_failed(divvy_election *election, int error, void *user) {
    (void)election, (void)user;
    fail("it stands no longer", divvy_strerror(error));
}

/* Enter is a request to the leader, this one or another, to step down. */
static int take_part(divvy_client *client, const divvy_election_config *config) {
    divvy_election *election;
    if (divvy_election_create(&election, client, config) != 0) return fail("no election", divvy_client_error(client));
    int status = 0;
    if (divvy_election_stand(election) != 0) status = fail("it cannot stand", divvy_client_error(client));
    for (int c; status == 0 && (c = getchar()) != EOF;) {
        if (c == '\n' && divvy_election_ask_step_down(election, 10000) != 0)
            printf("the leader stays: %s\n", divvy_client_error(client));
    }
    divvy_election_destroy(election); /* Ends a leadership without on_lost: the work would be stopped before. */
    return status;
}

int main(int argc, char **argv) {
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: election HOSTS PATH NAME [PREFERENCE]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* Whole lines at once, in a pipe too. */

    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.hosts = argv[1];
    divvy_client *client;
    if (divvy_client_open(&client, &client_config) != 0) return fail("no client", divvy_client_error(NULL));
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    config.path = argv[2];
    config.data = argv[3];
    config.preference = argc > 4 ? atoi(argv[4]) : 0;
    config.on_elected = on_elected;
    config.on_lost = on_lost;
    config.on_leader = on_leader;
    config.on_step_down = on_step_down;
    config.on_failed = on_failed;
    int status = take_part(client, &config);
    divvy_client_close(client);
    return status;
}
