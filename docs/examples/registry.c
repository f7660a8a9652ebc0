/* Workers that are found: each announces itself with its load, others ask for the least loaded one.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Try it: run two workers in two terminals, ask in a third one, then stop a worker and ask again. A Java program with
 * Curator's ServiceDiscovery on /divvy/services sees the same workers.
 *
 *     export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
 *     registry 127.0.0.1:2181 work resizer 60 &       a worker, for 60 seconds
 *     registry 127.0.0.1:2181 find resizer            the least loaded one that is healthy
 *     registry 127.0.0.1:2181 lead resizer-boss 60    the one boss, as long as no other is
 *
 * A worker says once what it is. From then on the library sends its heartbeats, every third of its ttl, each with the
 * load that on_load tells then; if the worker hangs, or its machine goes, its entry is no longer healthy. That is so
 * when the ttl has passed or the session has ended, whichever comes first.
 */
#include <cjson/cJSON.h>
#include <divvy/divvy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, TTL_S = 5 };

static int fail(const char *what, const char *why) {
    fprintf(stderr, "registry: %s: %s\n", what, why);
    return 1;
}

/* The load of now. A real worker would count what it has to do; this one has more to do from one time to the next. */
static double on_load(divvy_registry *registry, const char *role, const char *id, double load, void *user) {
    (void)registry, (void)role, (void)id, (void)user;
    return load + 1;
}

static void print(const char *what, const cJSON *entry) {
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(entry, "id"),
                *load = cJSON_GetObjectItemCaseSensitive(entry, "load");
    const cJSON *pid = cJSON_GetObjectItemCaseSensitive(entry, "pid");
    printf("%s %s pid %.0f load %g\n", what, cJSON_IsString(id) ? id->valuestring : "?",
           cJSON_IsNumber(pid) ? pid->valuedouble : 0, cJSON_IsNumber(load) ? load->valuedouble : 0);
    fflush(stdout);
}

static int work(divvy_registry *registry, divvy_client *client, const char *role, unsigned seconds) {
    cJSON *status = cJSON_CreateObject(), *stored = NULL;
    cJSON_AddStringToObject(status, "role", role);
    cJSON_AddNumberToObject(status, "load", getpid() % 100); /* any scale, the same for all of a role */
    cJSON_AddNumberToObject(status, "ttl", TTL_S);
    cJSON_AddStringToObject(status, "color", "green"); /* any other fields */
    int error = divvy_registry_heartbeat(registry, status, &stored, PATIENCE_MS);
    cJSON_Delete(status);
    if (error) return fail("not announced", divvy_client_error(client));
    print("announced", stored);
    cJSON_Delete(stored);
    sleep(seconds);
    return 0; /* Closing the registry takes the entry away. */
}

static int find(divvy_registry *registry, divvy_client *client, const char *role) {
    cJSON *entry = NULL;
    if (divvy_registry_healthy_service(registry, role, &entry, PATIENCE_MS) != 0)
        return fail("not asked", divvy_client_error(client));
    if (!entry) {
        printf("nobody\n");
        return 0;
    }
    print("found", entry);
    cJSON_Delete(entry);
    return 0;
}

/* Calls once a second: more often than every ttl/3, which a holder must do, and soon enough to take over. */
static int lead(divvy_registry *registry, divvy_client *client, const char *role, unsigned seconds) {
    cJSON *candidate = cJSON_CreateObject();
    cJSON_AddNumberToObject(candidate, "ttl", TTL_S);
    int status = 0, led = -1; /* not known yet */
    for (unsigned second = 0; second < seconds && status == 0; second++) {
        cJSON *holder = NULL;
        if (divvy_registry_unique_service(registry, role, candidate, &holder, PATIENCE_MS) != 0)
            status = fail("not asked", divvy_client_error(client));
        int leads = divvy_registry_is_ours(registry, holder);
        if (holder && leads != led) print(leads ? "leading" : "following", holder);
        led = leads;
        cJSON_Delete(holder);
        sleep(1);
    }
    cJSON_Delete(candidate);
    return status;
}

static int run(divvy_client *client, const char *what, const char *role, unsigned seconds) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    divvy_registry *registry;
    config.heartbeat = 1;
    config.on_load = on_load;
    if (divvy_registry_open(&registry, client, &config) != 0) return fail("no registry", divvy_client_error(client));
    int status = strcmp(what, "work") == 0   ? work(registry, client, role, seconds)
                 : strcmp(what, "find") == 0 ? find(registry, client, role)
                                             : lead(registry, client, role, seconds);
    divvy_registry_close(registry);
    return status;
}

int main(int argc, char **argv) {
    int known =
        argc >= 4 && (strcmp(argv[2], "work") == 0 || strcmp(argv[2], "find") == 0 || strcmp(argv[2], "lead") == 0);
    if (!known) {
        fprintf(stderr, "usage: registry HOSTS work|find|lead ROLE [SECONDS]\n");
        return 2;
    }
    unsigned seconds = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 10;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client;
    config.hosts = argv[1];
    if (divvy_client_open(&client, &config) != 0) return fail("no client", divvy_client_error(NULL));
    int status = run(client, argv[2], argv[3], seconds);
    divvy_client_close(client);
    return status;
}
