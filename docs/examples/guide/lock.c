/* docs/guide.md, step 8: a lock. SPDX-License-Identifier: Apache-2.0 */
#include <divvy/divvy.h>
#include <inttypes.h>
#include <stdio.h>

static int complain(const char *why) {
    fprintf(stderr, "lock: %s\n", why);
    return 1;
}

static int report_once(divvy_client *client) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = "/guide-report";
    divvy_lock *lock;
    if (divvy_lock_create(&lock, client, &config) != 0) return complain(divvy_client_error(client));
    int error = divvy_lock_acquire(lock, 60000);
    if (error == 0) {
        for (int page = 1; page <= 3 && divvy_lock_held(lock); page++) /* asks before each piece of work */
            printf("page %d, token %" PRId64 "\n", page, divvy_lock_token(lock));
        if (divvy_lock_release(lock) != 0) error = complain("the lock was lost on the way");
    } else {
        complain(divvy_client_error(client));
    }
    divvy_lock_destroy(lock);
    return error != 0;
}

int main(void) {
    divvy_client *client;
    if (divvy_client_open(&client, NULL) != 0) return complain(divvy_client_error(NULL));
    int status = report_once(client);
    divvy_client_close(client);
    return status;
}
