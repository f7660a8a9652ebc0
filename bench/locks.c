/* The cost of divvy's locks and semaphores, in time and in requests. SPDX-License-Identifier: Apache-2.0
 *
 * usage: bench_locks HOSTS, and commands as in locks_peer.h. A hand-over is the time from a release to the callback
 * that tells the next one. */
#include <divvy/divvy.h>

#include "locks_peer.h"

enum { CONTENDERS_MAX = WAITERS_MAX + 1, PATIENCE_MS = 60000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int granted_count;
static double granted_s;
static const char *hosts;
static divvy_client *client; /* of all but those that count */

static const char *error_text(int error) {
    static char text[1024];
    const char *why = divvy_client_error(client);
    snprintf(text, sizeof text, "%s%s%s; the session is %s", error < 0 ? divvy_strerror(error) : "failed",
             *why ? ": " : "", why, divvy_session_state_name(divvy_client_state(client)));
    return text;
}

/* Why a session is lost, and with it each lock, is a line of this. */
static void on_log(int level, const char *message, void *user) {
    (void)user;
    if (level <= DIVVY_LOG_WARN) fprintf(stderr, "bench/locks: %s\n", message);
}

static void lost(const char *what) {
    fprintf(stderr, "bench/locks: a %s was lost\n", what);
}

static void granted(int result) {
    double at_s = now_s();
    check(result, "a waiting acquire");
    pthread_mutex_lock(&mutex);
    granted_s = at_s;
    granted_count++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_granted(int count) {
    pthread_mutex_lock(&mutex);
    while (granted_count < count) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

/* ---- both recipes in one form ---- */

typedef struct {
    const char *name;
    void *(*make)(divvy_client *on, const char *path, uint32_t limit);
    int (*acquire)(void *object);
    int (*acquire_async)(void *object);
    int (*release)(void *object);
    int (*wait_gone)(void *object);
    void (*destroy)(void *object);
    unsigned head_watches; /* of the next in the queue */
} recipe;

static void on_lock_lost(divvy_lock *lock, void *user) {
    (void)lock, (void)user;
    lost("lock");
}

static void *make_lock(divvy_client *on, const char *path, uint32_t limit) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    (void)limit;
    config.path = path;
    config.on_lost = on_lock_lost;
    check(divvy_lock_create(&lock, on, &config), "divvy_lock_create");
    return lock;
}

static void on_lock(divvy_lock *lock, int result, void *user) {
    (void)lock, (void)user;
    granted(result);
}

static int acquire_lock(void *lock) {
    return divvy_lock_acquire(lock, PATIENCE_MS);
}

static int acquire_lock_async(void *lock) {
    return divvy_lock_acquire_async(lock, -1, on_lock, NULL);
}

static int release_lock(void *lock) {
    return divvy_lock_release(lock);
}

static int wait_lock_gone(void *lock) {
    return divvy_lock_wait_gone(lock, PATIENCE_MS);
}

static void destroy_lock(void *lock) {
    divvy_lock_destroy(lock);
}

static void on_semaphore_lost(divvy_semaphore *semaphore, void *user) {
    (void)semaphore, (void)user;
    lost("slot");
}

static void *make_semaphore(divvy_client *on, const char *path, uint32_t limit) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore *semaphore;
    config.path = path;
    config.limit = limit;
    config.on_lost = on_semaphore_lost;
    check(divvy_semaphore_create(&semaphore, on, &config), "divvy_semaphore_create");
    return semaphore;
}

static void on_semaphore(divvy_semaphore *semaphore, int result, void *user) {
    (void)semaphore, (void)user;
    granted(result);
}

static int acquire_semaphore(void *semaphore) {
    return divvy_semaphore_acquire(semaphore, PATIENCE_MS);
}

static int acquire_semaphore_async(void *semaphore) {
    return divvy_semaphore_acquire_async(semaphore, -1, on_semaphore, NULL);
}

static int release_semaphore(void *semaphore) {
    return divvy_semaphore_release(semaphore);
}

static int wait_semaphore_gone(void *semaphore) {
    return divvy_semaphore_wait_gone(semaphore, PATIENCE_MS);
}

static void destroy_semaphore(void *semaphore) {
    divvy_semaphore_destroy(semaphore);
}

static const recipe recipes[] = {
    {"lock", make_lock, acquire_lock, acquire_lock_async, release_lock, wait_lock_gone, destroy_lock, 1},
    {"semaphore", make_semaphore, acquire_semaphore, acquire_semaphore_async, release_semaphore, wait_semaphore_gone,
     destroy_semaphore, 2},
};

enum { RECIPES = sizeof recipes / sizeof recipes[0] };

static divvy_client *open_client(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *opened;
    config.hosts = hosts;
    config.session_timeout_ms = SESSION_TIMEOUT_MS;
    config.on_log = on_log;
    check(divvy_client_open(&opened, &config), "divvy_client_open");
    check(divvy_client_wait_connected(opened, PATIENCE_MS), "divvy_client_wait_connected");
    return opened;
}

static divvy_stats stats_of(divvy_client *of) {
    divvy_stats stats;
    check(divvy_client_stats(of, &stats, sizeof stats), "divvy_client_stats");
    return stats;
}

/* ---- pairs and hand-overs, on one client ---- */

static void *alone[RECIPES], *chained[RECIPES][CONTENDERS_MAX];

/* `gone`: the delete of a release is waited for. */
static void run_pairs(const recipe *r, void *object, int milliseconds, bool gone) {
    double start_s = now_s();
    int pairs = 0;
    for (; (now_s() - start_s) * 1e3 < milliseconds; pairs++) {
        check(r->acquire(object), "acquire");
        check(r->release(object), "release");
        if (gone) check(r->wait_gone(object), "wait_gone");
    }
    print_pairs(pairs, now_s() - start_s);
}

/* Until it has set the watches by which it waits. */
static void wait_watching(divvy_client *of, unsigned count) {
    for (;;) {
        divvy_stats stats = stats_of(of);
        if (stats.watches == count && stats.in_flight == 0) return;
        usleep(500);
    }
}

static void run_chain(const recipe *r, void **objects, int waiters) {
    double us[WAITERS_MAX];
    granted_count = 0;
    check(r->acquire_async(objects[0]), "acquire_async");
    wait_granted(1);                     /* Where the directory has to be made first, others could overtake it. */
    for (int i = 1; i <= waiters; i++) { /* One by one, as a shortcut in vain comes to the queue later (E14). */
        check(r->acquire_async(objects[i]), "acquire_async");
        wait_watching(client, (unsigned)i - 1 + r->head_watches);
    }
    for (int i = 0; i < waiters; i++) {
        double released_s = now_s();
        check(r->release(objects[i]), "release");
        wait_granted(i + 2);
        us[i] = (granted_s - released_s) * 1e6;
    }
    check(r->release(objects[waiters]), "release");
    print_hand_overs(us, waiters);
}

/* ---- what a hand-over costs, with a client for each contender ---- */

typedef struct {
    uint64_t watch_events, reads, writes;
} cost;

/* A request is a write whatever it writes, a transaction included. Heartbeats, which are checks, belong to sessions. */
static cost spent(const divvy_stats *before, const divvy_stats *after) {
    return (cost){after->watch_events - before->watch_events, after->reads - before->reads,
                  (after->requests - after->reads - after->checks) -
                      (before->requests - before->reads - before->checks)};
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void note_most(cost *most, cost c) {
    *most = (cost){larger(most->watch_events, c.watch_events), larger(most->reads, c.reads),
                   larger(most->writes, c.writes)};
}

static void print_cost(const char *name, cost c) {
    printf("\"%s\": {\"watch_events\": %llu, \"reads\": %llu, \"writes\": %llu}", name,
           (unsigned long long)c.watch_events, (unsigned long long)c.reads, (unsigned long long)c.writes);
}

typedef struct {
    divvy_client *clients[CONTENDERS_MAX];
    void *objects[CONTENDERS_MAX];
    divvy_stats before[CONTENDERS_MAX];
    int count;
    cost release, taker, next, others; /* the most of any hand-over */
} counted;

/* They come one after the other, so that each waits for the one before. */
static void queue_up(const recipe *r, counted *c) {
    char path[64];
    snprintf(path, sizeof path, "/bench-count-%s", r->name);
    granted_count = 0;
    for (int i = 0; i < c->count; i++) {
        c->clients[i] = open_client();
        c->objects[i] = r->make(c->clients[i], path, 1);
        check(r->acquire_async(c->objects[i]), "acquire_async");
        if (i == 0) wait_granted(1);
        wait_watching(c->clients[i], i == 0 ? 0 : i == 1 ? r->head_watches : 1);
    }
}

/* From one calm to the next: i releases, i + 1 takes, i + 2 becomes the next. */
static void count_one(const recipe *r, counted *c, int i) {
    for (int k = 0; k < c->count; k++) c->before[k] = stats_of(c->clients[k]);
    check(r->release(c->objects[i]), "release");
    wait_granted(i + 2);
    if (i + 2 < c->count) wait_watching(c->clients[i + 2], r->head_watches);
    cost others = {0, 0, 0};
    for (int k = 0; k < c->count; k++) {
        wait_watching(c->clients[k], k <= i + 1 ? 0 : k == i + 2 ? r->head_watches : 1);
        divvy_stats after = stats_of(c->clients[k]);
        cost one = spent(&c->before[k], &after);
        if (k == i) note_most(&c->release, one);
        else if (k == i + 1) note_most(&c->taker, one);
        else if (k == i + 2) note_most(&c->next, one);
        else
            others =
                (cost){others.watch_events + one.watch_events, others.reads + one.reads, others.writes + one.writes};
    }
    note_most(&c->others, others);
}

static void run_count(const recipe *r, int waiters) {
    static counted c;
    memset(&c, 0, sizeof c);
    c.count = waiters + 1;
    queue_up(r, &c);
    for (int i = 0; i < waiters; i++) count_one(r, &c, i);
    printf("{\"waiters\": %d, ", waiters);
    print_cost("release", c.release);
    printf(", ");
    print_cost("taker", c.taker);
    printf(", ");
    print_cost("next", c.next);
    printf(", ");
    print_cost("others", c.others);
    printf("}\n");
    for (int i = 0; i < c.count; i++) {
        r->destroy(c.objects[i]);
        divvy_client_close(c.clients[i]);
    }
}

/* ---- the whole ---- */

static bool run(const char *verb, const char *name, int number) {
    for (int i = 0; i < RECIPES; i++) {
        const recipe *r = &recipes[i];
        if (strcmp(name, r->name) != 0) continue;
        if (strcmp(verb, "pairs") == 0) run_pairs(r, alone[i], number, false);
        else if (strcmp(verb, "gone") == 0) run_pairs(r, alone[i], number, true);
        else if (number > WAITERS_MAX) return false;
        else if (strcmp(verb, "hand_over") == 0) run_chain(r, chained[i], number);
        else if (strcmp(verb, "count") == 0) run_count(r, number);
        else return false;
        return true;
    }
    return false;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("usage: bench_locks HOSTS\n", stderr);
        return 2;
    }
    hosts = argv[1];
    client = open_client();
    for (int i = 0; i < RECIPES; i++) {
        char path[64];
        snprintf(path, sizeof path, "/bench-%s", recipes[i].name);
        alone[i] = recipes[i].make(client, path, POOL_LIMIT);
        snprintf(path, sizeof path, "/bench-chain-%s", recipes[i].name);
        for (int k = 0; k < CONTENDERS_MAX; k++) chained[i][k] = recipes[i].make(client, path, 1);
    }
    serve_commands(run);
    for (int i = 0; i < RECIPES; i++) {
        recipes[i].destroy(alone[i]);
        for (int k = 0; k < CONTENDERS_MAX; k++) recipes[i].destroy(chained[i][k]);
    }
    divvy_client_close(client);
    return 0;
}
