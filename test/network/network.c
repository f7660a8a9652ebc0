/* Pools on bad networks. SPDX-License-Identifier: Apache-2.0
 *
 * A stall is what a lost packet looks like to a program: nothing comes for a time, then all of it does, in order. So
 * the network emulation of the kernel is not needed.
 *
 * Each condition has a pool, lines and names of its own, and a thread that watches the pool. All of them run at the
 * same time, on one server. Three members divide the items, hold them for a time, and a fourth joins. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "divvy/divvy.h"
#include "lib/line.h"
#include "lib/names.h"
#include "lib/seed.h"
#include "lib/server.h"
#include "lib/wait.h"

enum { MEMBERS = 4, ITEMS = 24, LINES = 2, HOSTS_BYTES = 128, LOOK_MS = 5 };

static struct {
    int hold_ms, session_ms, tick_ms, patience_ms, scale_percent;
    bool verbose;
    const char *only;
} options = {60000, 10000, 500, 120000, 100, false, NULL};

typedef struct {
    divvy_client *client;
    divvy_partitioner *partitioner;
    atomic_int losses, suspensions;
} member;

typedef struct world world;

typedef struct {
    const char *name;
    dv_test_line_config line;
    /* Starts the lines, and writes what the members are told of them; NULL: one line. */
    void (*begin)(world *w);
    /* Is called all the time with how much of the time of holding has gone, in percent. */
    void (*disturb)(world *w, int percent);
} condition;

struct world {
    const condition *condition;
    pthread_t thread;
    uint64_t seed;
    dv_test_line *lines[LINES];
    char hosts[HOSTS_BYTES], path[32];
    member members[MEMBERS];
    int count;        /* of members that were started */
    int owner[ITEMS]; /* a member; -1: none */
    int disturbed;    /* percent of the last disturbance */
    int changes, doubles, join_ms;
    const char *failure;
};

static const char *upstream;
static char items_text[ITEMS][12];
static const char *items[ITEMS];

/* ---- the pool ---- */

static void on_session(divvy_client *client, divvy_session_state state, void *user) {
    (void)client;
    member *m = user;
    if (state == DIVVY_LOST) atomic_fetch_add(&m->losses, 1);
    if (state == DIVVY_SUSPENDED) atomic_fetch_add(&m->suspensions, 1);
}

static void on_log(int level, const char *message, void *user) {
    (void)level, (void)user;
    if (options.verbose) fprintf(stderr, "%s\n", message);
}

static void start_member(world *w) {
    member *m = &w->members[w->count++];
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = w->hosts;
    config.session_timeout_ms = options.session_ms;
    config.ensemble_tick_ms = options.tick_ms;
    config.on_session = on_session;
    config.on_log = on_log;
    config.user = m;
    divvy_partitioner_config pool = DIVVY_PARTITIONER_CONFIG_INIT;
    pool.path = w->path;
    pool.items = items;
    pool.item_count = ITEMS;
    pool.on_session_loss = DIVVY_REJOIN;
    if (divvy_client_open(&m->client, &config) != 0 || divvy_partitioner_create(&m->partitioner, m->client, &pool) != 0)
        dv_test_die("%s: no member", w->condition->name);
}

static bool owns(const world *w, int m, int item) {
    return divvy_partitioner_owns(w->members[m].partitioner, items[item]) == 1;
}

/* Two owned it at one moment for certain, if the first of them still does after the second was seen to. */
static void look_at(world *w, int item) {
    int owner = -1;
    for (int m = 0; m < w->count; m++) {
        if (!owns(w, m, item)) continue;
        if (owner >= 0 && owns(w, owner, item)) w->doubles++;
        owner = m;
    }
    if (owner != w->owner[item]) w->changes++;
    w->owner[item] = owner;
}

/* Looks at all items, and answers members that ask for a release. Returns whether each member has its share. */
static bool look(world *w) {
    int shares[MEMBERS] = {0};
    for (int m = 0; m < w->count; m++) {
        divvy_partitioner *p = w->members[m].partitioner;
        if (divvy_partitioner_state(p) == DIVVY_RELEASE) divvy_partitioner_release_set(p);
        divvy_partition *mine = divvy_partitioner_partition(p);
        for (size_t i = 0; i < divvy_partition_count(mine); i++) {
            if (!divvy_partition_revoked(mine, i)) continue;
            divvy_partitioner_release_set(p);
            break;
        }
        divvy_partition_unref(mine);
    }
    for (int i = 0; i < ITEMS; i++) {
        look_at(w, i);
        if (w->owner[i] >= 0) shares[w->owner[i]]++;
    }
    bool settled = true;
    for (int m = 0; m < w->count; m++) settled &= shares[m] == ITEMS / w->count;
    return settled;
}

static void pass(world *w, int64_t began_ms) {
    int64_t percent = (dv_test_now_ms() - began_ms) * 100 / options.hold_ms;
    if (w->condition->disturb) w->condition->disturb(w, (int)percent);
    dv_test_sleep_ms(LOOK_MS);
}

/* Returns in how many milliseconds the pool has settled, or -1. */
static int settle(world *w, int64_t began_ms) {
    int64_t from_ms = dv_test_now_ms();
    bool settled = false;
    while (!(settled = look(w)) && dv_test_now_ms() < from_ms + options.patience_ms) {
        if (began_ms) pass(w, began_ms);
        else dv_test_sleep_ms(LOOK_MS);
    }
    return settled ? (int)(dv_test_now_ms() - from_ms) : -1;
}

/* ---- the conditions ---- */

static void start_line(world *w, int i, const char *ip, int port) {
    w->lines[i] = dv_test_line_start(upstream, ip, port, &w->condition->line, w->seed + (uint64_t)i);
}

static void stop_line(world *w, int i) {
    dv_test_line_stop(w->lines[i]);
    w->lines[i] = NULL;
}

static void cut_lines(world *w) {
    for (int i = 0; i < LINES; i++) {
        if (w->lines[i]) dv_test_line_cut(w->lines[i]);
    }
}

/* Returns whether a step of a disturbance is due, each of them once. */
static bool is_due(world *w, int percent, int at) {
    if (percent < at || w->disturbed >= at) return false;
    w->disturbed = at;
    return true;
}

static void begin_ipv6(world *w) {
    start_line(w, 0, "::1", 0);
    snprintf(w->hosts, sizeof w->hosts, "[::1]:%d", dv_test_line_port(w->lines[0]));
}

/* One name with three addresses: nobody listens at the second one. */
static void begin_several(world *w) {
    start_line(w, 0, "127.0.0.2", 0);
    start_line(w, 1, "::1", dv_test_line_port(w->lines[0]));
    dv_names_set("several.names", "127.0.0.2 127.0.0.3 ::1");
    snprintf(w->hosts, sizeof w->hosts, "several.names:%d", dv_test_line_port(w->lines[0]));
}

static void disturb_several(world *w, int percent) {
    for (int at = 10; at <= 90; at += 20) {
        if (is_due(w, percent, at)) cut_lines(w);
    }
}

static void begin_names(world *w) {
    for (int i = 0; i < LINES; i++) start_line(w, i, "127.0.0.1", 0);
    dv_names_set("one.names", "127.0.0.1");
    dv_names_set("two.names", "127.0.0.1");
    snprintf(w->hosts, sizeof w->hosts, "one.names:%d,two.names:%d", dv_test_line_port(w->lines[0]),
             dv_test_line_port(w->lines[1]));
}

/* The second name is not to be resolved when it is needed, then none is, and they come back after the join. */
static void disturb_names(world *w, int percent) {
    if (is_due(w, percent, 10)) {
        dv_names_set("two.names", NULL);
        cut_lines(w);
    }
    if (is_due(w, percent, 20)) stop_line(w, 0);
    if (is_due(w, percent, 90)) {
        dv_names_set("one.names", NULL);
        cut_lines(w);
    }
    if (is_due(w, percent, 110)) dv_names_set("two.names", "127.0.0.1");
}

static void begin_moving(world *w) {
    start_line(w, 0, "127.0.0.2", 0);
    start_line(w, 1, "127.0.0.3", dv_test_line_port(w->lines[0]));
    dv_names_set("moving.names", "127.0.0.2");
    snprintf(w->hosts, sizeof w->hosts, "moving.names:%d", dv_test_line_port(w->lines[0]));
}

/* The name server knows of the move a moment after the server has gone from the old address. */
static void disturb_moving(world *w, int percent) {
    if (is_due(w, percent, 30)) stop_line(w, 0);
    if (is_due(w, percent, 35)) dv_names_set("moving.names", "127.0.0.3");
}

#define FAR .delay_ms = 85, .jitter_ms = 30
#define STALLS .stall_least_ms = 200, .stall_most_ms = 3000, .stall_every_ms
#define SLOW .bytes_per_s = 64000

/* A short run scales the times of the lines. */
static const condition conditions[] = {
    {.name = "none"},
    {.name = "IPv6", .begin = begin_ipv6},
    {.name = "a name with three addresses, one dead; 5 cuts", .begin = begin_several, .disturb = disturb_several},
    {.name = "DNS fails and comes back", .begin = begin_names, .disturb = disturb_names},
    {.name = "a name gets another address", .begin = begin_moving, .disturb = disturb_moving},
    {.name = "cut after 3 s idle", .line = {.idle_cut_ms = 3000}},
    {.name = "cut after 0.5 s idle", .line = {.idle_cut_ms = 500}},
    {.name = "200 ms round trip, jitter 60 ms", .line = {FAR}},
    {.name = "stalls of 0.2 to 3 s, each 20 s", .line = {STALLS = 20000}},
    {.name = "stalls of 0.2 to 3 s, each 5 s", .line = {STALLS = 5000}},
    {.name = "64 kB/s", .line = {SLOW}},
    {.name = "64 kB/s, 200 ms, jitter, stalls each 20 s", .line = {FAR, SLOW, STALLS = 20000}},
};
enum { CONDITIONS = sizeof conditions / sizeof *conditions };

static int scaled(int ms) {
    return (int)((int64_t)ms * options.scale_percent / 100);
}

/* ---- a run ---- */

static void begin(world *w) {
    if (w->condition->begin) {
        w->condition->begin(w);
        return;
    }
    start_line(w, 0, "127.0.0.1", 0);
    snprintf(w->hosts, sizeof w->hosts, "127.0.0.1:%d", dv_test_line_port(w->lines[0]));
}

static void live(world *w) {
    for (int i = 0; i < ITEMS; i++) w->owner[i] = -1;
    while (w->count < MEMBERS - 1) start_member(w);
    if (settle(w, 0) < 0) {
        w->failure = "did not settle at the start";
        return;
    }
    int64_t began_ms = dv_test_now_ms();
    w->changes = 0;
    while (dv_test_now_ms() < began_ms + options.hold_ms) {
        look(w);
        pass(w, began_ms);
    }
    int changes = w->changes;
    start_member(w);
    w->join_ms = settle(w, began_ms);
    w->changes = changes;
    if (w->join_ms < 0) w->failure = "did not settle after the join";
}

static void *run_world(void *argument) {
    world *w = argument;
    begin(w);
    live(w);
    for (int m = 0; m < w->count; m++) {
        divvy_partitioner_destroy(w->members[m].partitioner);
        divvy_client_close(w->members[m].client);
    }
    for (int i = 0; i < LINES; i++) stop_line(w, i);
    return NULL;
}

/* Prints a row. Returns whether all was well: a pool stays up wherever its sessions do. */
static bool print(const world *w) {
    int losses = 0, suspensions = 0;
    for (int m = 0; m < w->count; m++) {
        losses += w->members[m].losses;
        suspensions += w->members[m].suspensions;
    }
    printf("| %s | %d | %d | %d | %.1f s | %d |\n", w->condition->name, suspensions, losses, w->changes,
           w->join_ms / 1000.0, w->doubles);
    if (w->failure) printf("%s: %s\n", w->condition->name, w->failure);
    return !w->failure && w->doubles == 0 && (w->changes == 0 || losses > 0);
}

static bool run_all(uint64_t seed) {
    static condition used[CONDITIONS];
    static world worlds[CONDITIONS];
    size_t count = 0;
    for (size_t i = 0; i < CONDITIONS; i++) {
        if (options.only && !strstr(conditions[i].name, options.only)) continue;
        used[count] = conditions[i];
        dv_test_line_config *line = &used[count].line;
        line->delay_ms = scaled(line->delay_ms);
        line->jitter_ms = scaled(line->jitter_ms);
        line->stall_every_ms = scaled(line->stall_every_ms);
        line->stall_least_ms = scaled(line->stall_least_ms);
        line->stall_most_ms = scaled(line->stall_most_ms);
        line->idle_cut_ms = scaled(line->idle_cut_ms);
        world *w = &worlds[count];
        *w = (world){.condition = &used[count], .seed = seed + 100 * i};
        snprintf(w->path, sizeof w->path, "/network/%zu", i);
        if (pthread_create(&w->thread, NULL, run_world, w) != 0) dv_test_die("no thread");
        count++;
    }
    for (size_t i = 0; i < count; i++) pthread_join(worlds[i].thread, NULL);
    printf("session timeout %.1f s, the times of all lines times %.1f; held for %.1f s\n", options.session_ms / 1000.0,
           options.scale_percent / 100.0, options.hold_ms / 1000.0);
    printf("| network | disconnects | sessions lost | owners changed unasked | settled after a join | two owners |\n"
           "| --- | --- | --- | --- | --- | --- |\n");
    bool well = count > 0;
    for (size_t i = 0; i < count; i++) well &= print(&worlds[i]);
    return well;
}

static bool parse(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--short") == 0) {
            options.hold_ms = 4000;
            options.session_ms = 3000;
            options.scale_percent = 30;
            options.tick_ms = 100;
            options.patience_ms = 60000;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            options.verbose = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--only") == 0) {
            options.only = argv[++i];
        } else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0) {
            options.hold_ms = atoi(argv[++i]) * 1000;
        } else if (i + 1 < argc && strcmp(argv[i], "--session-seconds") == 0) {
            options.session_ms = atoi(argv[++i]) * 1000;
        } else {
            return false;
        }
    }
    return options.hold_ms > 0 && options.session_ms > 0;
}

int main(int argc, char **argv) {
    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: network [--short] [--seconds N] [--session-seconds N] [--only TEXT] [--verbose]\n");
        return 2;
    }
    uint64_t seed = dv_test_seed("test/network/run");
    for (int i = 0; i < ITEMS; i++) {
        snprintf(items_text[i], sizeof items_text[i], "%d", i);
        items[i] = items_text[i];
    }
    dv_test_server *server = dv_test_server_start(1, options.tick_ms);
    upstream = dv_test_server_connect(server);
    bool well = run_all(seed);
    dv_test_server_stop(server);
    return well ? 0 : 1;
}
