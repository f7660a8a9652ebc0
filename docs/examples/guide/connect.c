/* docs/guide.md, step 1: a session. SPDX-License-Identifier: Apache-2.0 */
#include <divvy/divvy.h>
#include <inttypes.h>
#include <stdio.h>

int main(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT; /* $DIVVY_CONNECT and $DIVVY_ENSEMBLE_TICK_MS count */
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) {
        fprintf(stderr, "connect: %s\n", divvy_client_error(NULL));
        return 1;
    }
    int error = divvy_client_wait_connected(client, 10000);
    if (error) fprintf(stderr, "connect: %s\n", divvy_client_error(client));
    else printf("session %" PRIx64 "\n", (uint64_t)divvy_client_session_id(client));
    divvy_client_close(client);
    return error != 0;
}
