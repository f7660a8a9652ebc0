/* docs/migrate.md: a candidate beside Curator's LeaderLatch. It leads until its input ends. SPDX-License-Identifier:
 * Apache-2.0 */
#include <divvy/divvy.h>
#include <inttypes.h>
#include <stdio.h>

static void on_elected(divvy_election *election, int64_t token, void *user) {
    (void)election, (void)user;
    printf("elected, token %" PRId64 "\n", token);
}

static void on_lost(divvy_election *election, void *user) {
    (void)election, (void)user;
    printf("lost\n");
}

static divvy_election *start_latch(divvy_client *client, const char *id) {
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    config.path = "/app/leader";         /* the latchPath */
    config.data = id;                    /* what getLeader().getId() returns */
    config.names = DIVVY_ELECTION_LATCH; /* one queue with LeaderLatch */
    config.on_elected = on_elected;      /* isLeader() */
    config.on_lost = on_lost;            /* notLeader() */
    divvy_election *election = NULL;
    if (divvy_election_create(&election, client, &config) != 0) return NULL;
    divvy_election_stand(election); /* start(); divvy_election_leads() is hasLeadership() */
    return election;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0); /* Whole lines at once, in a pipe too. */
    divvy_client *client;
    if (divvy_client_open(&client, NULL) != 0) {
        fprintf(stderr, "latch: %s\n", divvy_client_error(NULL));
        return 1;
    }
    divvy_election *election = start_latch(client, argc > 1 ? argv[1] : "divvy");
    if (!election) fprintf(stderr, "latch: %s\n", divvy_client_error(client));
    while (election && getchar() != EOF) continue;
    divvy_election_destroy(election);
    divvy_client_close(client);
    return election ? 0 : 1;
}
