/*
 * A process that wants a lock by ZooKeeper's own recipe, for test/holders/run. SPDX-License-Identifier: Apache-2.0
 *
 * usage: textbook plain|listener HOSTS PATH TIMEOUT_MS
 *
 * The section "Locks" of https://zookeeper.apache.org/doc/r3.8.0/recipes.html, step by step, on libzookeeper_mt alone.
 * Prints the same lines as holder.py. "plain": to have been first is to hold. "listener": it holds while the newest
 * session event says that it is connected. A handle whose session has expired never connects again. An acquire that
 * fails since the session has ended begins again with a new one; a lock that it had and lost it does not want back.
 */
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

enum { PERIOD_NS = 10000000, AGAIN_NS = 100000000, PATH_BYTES = 256, SEQUENCE_BYTES = 10 };

static const char *hosts, *lock_path;
static int timeout_ms;
static atomic_bool first, connected;
static sem_t news; /* posted for each event of the node before ours */

static void die(const char *what) {
    fprintf(stderr, "holder: %s\n", what);
    exit(1);
}

static struct timespec read_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now;
}

static void pause_ns(long ns) {
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void on_session(zhandle_t *zh, int type, int state, const char *path, void *context) {
    (void)zh, (void)path, (void)context;
    if (type == ZOO_SESSION_EVENT) connected = state == ZOO_CONNECTED_STATE;
}

/* A watch hears of the session, too, so that the next step finds out that it has ended. */
static void on_news(zhandle_t *zh, int type, int state, const char *path, void *context) {
    (void)zh, (void)type, (void)state, (void)path, (void)context;
    sem_post(&news);
}

/* Returns whether the request is worth another attempt in the same session, after a while. */
static bool is_lost(int error) {
    if (error != ZCONNECTIONLOSS && error != ZOPERATIONTIMEOUT) return false;
    pause_ns(AGAIN_NS);
    return true;
}

static int list(zhandle_t *zh, struct String_vector *names) {
    int error;
    do error = zoo_get_children(zh, lock_path, 0, names);
    while (is_lost(error));
    return error;
}

/* Returns the sequence number of a name, as text: the server gives each the same length. */
static const char *sequence(const char *name) {
    size_t bytes = strlen(name);
    return bytes < SEQUENCE_BYTES ? name : name + bytes - SEQUENCE_BYTES;
}

/* Looks for the node of a create whose answer was lost. */
static int find_mine(zhandle_t *zh, const char *prefix, char *mine, bool *found) {
    struct String_vector names;
    int error = list(zh, &names);
    if (error) return error;
    *found = false;
    for (int i = 0; i < names.count; i++) {
        if (strncmp(names.data[i], prefix, strlen(prefix)) != 0) continue;
        snprintf(mine, PATH_BYTES, "%s", names.data[i]);
        *found = true;
    }
    deallocate_String_vector(&names);
    return ZOK;
}

/* Step 1: creates guid-lock-, ephemeral and with a sequence number, and sets `mine` to its name. */
static int create_mine(zhandle_t *zh, char *mine) {
    char prefix[PATH_BYTES / 2], path[PATH_BYTES], made[PATH_BYTES];
    struct timespec now = read_clock();
    snprintf(prefix, sizeof prefix, "%d-%" PRId64 "%09ld-lock-", getpid(), (int64_t)now.tv_sec, now.tv_nsec);
    snprintf(path, sizeof path, "%s/%s", lock_path, prefix);
    while (true) {
        int error = zoo_create(zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, made, sizeof made);
        if (error == ZOK) {
            snprintf(mine, PATH_BYTES, "%s", strrchr(made, '/') + 1);
            return ZOK;
        }
        bool found = false;
        if (!is_lost(error)) return error;
        if ((error = find_mine(zh, prefix, mine, &found)) || found) return error;
    }
}

/* Steps 2 and 3: sets `before` to the path of the node with the next lower number, or to "" where there is none. */
static int look(zhandle_t *zh, const char *mine, char *before) {
    struct String_vector names;
    int error = list(zh, &names);
    if (error) return error;
    const char *next = NULL;
    for (int i = 0; i < names.count; i++) {
        const char *name = names.data[i];
        bool is_lower = strcmp(sequence(name), sequence(mine)) < 0;
        if (is_lower && (!next || strcmp(sequence(name), sequence(next)) > 0)) next = name;
    }
    if (next) snprintf(before, PATH_BYTES, "%s/%s", lock_path, next);
    else *before = 0;
    deallocate_String_vector(&names);
    return ZOK;
}

/* Waits until it is the first in line. Returns ZOK, or the error that ends the attempt. */
static int stand_in_line(zhandle_t *zh) {
    char mine[PATH_BYTES], before[PATH_BYTES];
    int error;
    do error = zoo_create(zh, lock_path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    while (is_lost(error));
    if (error && error != ZNODEEXISTS) return error;
    if ((error = create_mine(zh, mine))) return error;
    while (true) {
        if ((error = look(zh, mine, before))) return error;
        if (!*before) return ZOK;
        error = zoo_wexists(zh, before, on_news, NULL, NULL); /* step 4 */
        if (error == ZOK) {
            while (sem_wait(&news)) continue; /* step 5 */
        } else if (error != ZNONODE && !is_lost(error)) {
            return error;
        }
    }
}

static void *acquire(void *unused) {
    while (true) {
        connected = false;
        zhandle_t *zh = zookeeper_init(hosts, on_session, timeout_ms, NULL, NULL, 0);
        if (!zh) die("zookeeper_init() failed");
        int error = stand_in_line(zh);
        if (error == ZOK) break; /* The handle stays open. */
        fprintf(stderr, "holder: acquires again after %s\n", zerror(error));
        zookeeper_close(zh);
        pause_ns(AGAIN_NS);
    }
    first = true;
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 5) die("usage: textbook plain|listener HOSTS PATH TIMEOUT_MS");
    bool listens = strcmp(argv[1], "listener") == 0;
    hosts = argv[2], lock_path = argv[3], timeout_ms = atoi(argv[4]);
    zoo_set_debug_level((ZooLogLevel)0);
    pthread_t thread;
    if (sem_init(&news, 0, 0) || pthread_create(&thread, NULL, acquire, NULL)) die("no thread");
    while (true) {
        struct timespec now = read_clock();
        bool held = first && (!listens || connected);
        printf("%" PRId64 ".%06ld %s 0\n", (int64_t)now.tv_sec, now.tv_nsec / 1000, held ? "yes" : "no");
        fflush(stdout);
        pause_ns(PERIOD_NS);
    }
}
