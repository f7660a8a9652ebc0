/* A thread for each item that is ours, with all that a service needs. SPDX-License-Identifier: Apache-2.0
 *
 * Try it: run this in two or three terminals, with the same path and the same items, then stop one with Ctrl-C.
 *
 *     export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
 *     workers 127.0.0.1:2181 /example alpha beta gamma delta
 *
 * A piece of work takes its time, and nothing interrupts it: here it is a pause of $PIECE_MS. An item goes to its next
 * owner when its worker has returned. So a piece that was begun counts, but where the session was lost under it: then
 * the item may have had another owner already.
 *
 * thread_pool.c has a few threads for many items; guide/work.c is the shortest program of this kind.
 */
#include <divvy/divvy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static divvy_workers *workers;

static int fail(const char *what, const char *why) {
    fprintf(stderr, "workers: %s: %s\n", what, why);
    return 1;
}

/* Returns a number from the environment. */
static int64_t setting(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

/* Tells whether the job's item is still locked for us. It is until the worker returns, unless it was lost. */
static int is_still_locked(const divvy_job *job) {
    divvy_partition *mine = divvy_partitioner_partition(divvy_workers_partitioner(workers));
    int found = 0;
    for (size_t i = 0; i < divvy_partition_count(mine) && !found; i++)
        found = divvy_partition_token(mine, i) == divvy_job_token(job) &&
                strcmp(divvy_partition_item(mine, i), divvy_job_item(job)) == 0;
    divvy_partition_unref(mine);
    return found;
}

/* Gets ready for an item, as by filling a cache, while its present owner still works on it. */
static int prepare(void **prepared, const char *item, void *user) {
    (void)user;
    *prepared = strdup(item);
    return *prepared ? 0 : 1; /* Where it fails it is called again a little later. */
}

/* Releases what was prepared for an item that does not come after all. */
static void discard(void *prepared, const char *item, void *user) {
    (void)item, (void)user;
    free(prepared);
}

/* The worker: it returns soon after it is told to stop, and begins nothing more then. */
static int work(divvy_job *job, void *user) {
    int64_t ms = setting("PIECE_MS", 200);
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    void *cache = divvy_job_prepared(job); /* It is ours now. NULL: the item came at once, or this is a later job. */
    if (!cache && prepare(&cache, divvy_job_item(job), user) != 0) return 1;
    while (divvy_job_owns(job)) {
        printf("begin %s %lld\n", divvy_job_item(job), (long long)divvy_job_token(job));
        nanosleep(&pause, NULL); /* A pause between pieces would be divvy_job_wait(), which ends at a stop. */
        printf("%s %s %lld\n", is_still_locked(job) ? "done" : "dropped", divvy_job_item(job),
               (long long)divvy_job_token(job));
    }
    discard(cache, divvy_job_item(job), user);
    return 0;
}

/* ---- what is told ---- */

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)event, (void)user;
    divvy_partition *mine = divvy_partitioner_partition(p);
    flockfile(stdout); /* The line stays in one piece. */
    printf("owned:");
    for (size_t i = 0; i < divvy_partition_count(mine); i++)
        if (!divvy_partition_revoked(mine, i)) printf(" %s", divvy_partition_item(mine, i));
    printf("\n");
    funlockfile(stdout);
    divvy_partition_unref(mine);
}

static void on_end(divvy_workers *w, const divvy_job_end *end, void *user) {
    (void)w, (void)user;
    if (end->result) fprintf(stderr, "workers: %s has failed: %d\n", end->item, end->result);
}

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client, (void)user;
    fprintf(stderr, "workers: warning %s: %s\n", divvy_warning_name(code), message);
}

/* ---- joining and leaving ---- */

/* Joins the pool, works, leaves. The exit status. */
static int take_part(divvy_client *client, const divvy_partitioner_config *pool) {
    divvy_workers_config config = DIVVY_WORKERS_CONFIG_INIT;
    config.pool = pool;
    config.worker = work;
    config.prepare = prepare;
    config.discard = discard;
    config.on_end = on_end;
    if (divvy_client_wait_connected(client, 10000) != 0) return fail("no connection", divvy_client_error(client));
    if (divvy_workers_create(&workers, client, &config) != 0)
        return fail("cannot join the pool", divvy_client_error(client));
    int error = divvy_workers_run(workers); /* until SIGTERM or SIGINT; hands over */
    if (error) fail("failed", divvy_client_error(client));
    divvy_workers_destroy(workers);
    return error != 0;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: workers HOSTS PATH ITEM...\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* Whole lines at once, in a pipe too. */

    divvy_partitioner_config pool = DIVVY_PARTITIONER_CONFIG_INIT;
    pool.path = argv[2];
    pool.items = (const char *const *)&argv[3]; /* The same names in every member, in any order. */
    pool.item_count = (size_t)argc - 3;
    pool.on_session_loss = DIVVY_REJOIN; /* After a lost session it goes on, on a new one. */
    pool.on_items = on_items;
    pool.prepare_timeout_ms = 25000; /* Less than the others' handover_timeout_ms, which is 30 s by default. */

    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = argv[1];
    config.session_timeout_ms = setting("SESSION_TIMEOUT_MS", 10000);
    config.on_warning = on_warning;
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) return fail("cannot open a client", divvy_client_error(NULL));
    int status = take_part(client, &pool);
    divvy_client_close(client);
    return status;
}
