/* The cost of a change of a large pool for each of its members, in the in-memory ensemble.
 * SPDX-License-Identifier: Apache-2.0
 *
 * All members of the pool are in this one process, on a virtual clock, so that a pool of 1,000 can be looked at as a
 * whole. Requests and bytes are those that the members' clients count (divvy_client_stats()); times are the virtual
 * clock's, by which a message takes up to a millisecond and computing nothing. docs/scale.md says what comes of it;
 * one JSON line for each change says it here. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"

enum {
    MEMBERS_MAX = 2000,
    ITEMS_MAX = 1000000,
    ITEM_BYTES = 16,
    STEP_MS = 20,
    PATIENCE_MS = 3600000,
    REST_MS = 70000,
    CHANGES_MAX = 10000,
    LOOKOUTS = 3 /* W18 */
};
enum { SESSION_TIMEOUT_MS = 20000, REJOIN_DELAY_MS = 120000 };

#define ITEM_PREFIX "item-"
#define NOBODY UINT32_MAX

typedef struct {
    uint32_t members, items, restarts, changes, mass;
    int64_t boundary_ms;
    bool names; /* rendezvous, by names alone, instead of the plan */
    bool without_lookouts;
    uint64_t seed;
} options;

typedef struct pool pool;

typedef struct {
    pool *pool;
    uint32_t index;
    divvy_client *client; /* NULL: it is not running */
    divvy_partitioner *partitioner;
    divvy_partition_state state;
    divvy_stats begin; /* when the change began */
} member;

struct pool {
    const options *options;
    divvy_testing_ensemble *ensemble;
    char (*names)[ITEM_BYTES];
    const char **items;
    member *members; /* room for one more than options->members, and for options->mass */
    uint32_t room, running, acquired;

    uint32_t *owner, *last_owner; /* of each item: who shows it, not revoked; who did last */
    int64_t *unowned_since;
    uint32_t owned;
    uint32_t moved;      /* since the change began: gained by another than the last owner */
    uint64_t unowned_ms; /* likewise, over all items */
    int64_t unowned_max_ms;
};

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("bench_scale: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void *allocate(size_t count, size_t bytes) {
    void *memory = calloc(count, bytes);
    if (!memory) die("out of memory");
    return memory;
}

static double cpu_s(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

/* ---- who owns what ---- */

static uint32_t index_of(const char *item) {
    uint32_t index = 0;
    for (const char *c = item + sizeof ITEM_PREFIX - 1; *c; c++) index = index * 10 + (uint32_t)(*c - '0');
    return index;
}

static void gain(pool *all, uint32_t item, uint32_t owner) {
    if (all->owner[item] != NOBODY) die("%s has two owners", all->items[item]);
    int64_t gap_ms = divvy_testing_now_ms(all->ensemble) - all->unowned_since[item];
    all->unowned_ms += (uint64_t)gap_ms;
    if (gap_ms > all->unowned_max_ms) all->unowned_max_ms = gap_ms;
    all->moved += all->last_owner[item] != owner;
    all->owner[item] = all->last_owner[item] = owner;
    all->owned++;
}

static void lose(pool *all, uint32_t item, uint32_t owner) {
    if (all->owner[item] != owner) return; /* revoked before */
    all->owner[item] = NOBODY;
    all->unowned_since[item] = divvy_testing_now_ms(all->ensemble);
    all->owned--;
}

static void lose_all(pool *all, uint32_t owner) {
    for (uint32_t i = 0; i < all->options->items; i++) lose(all, i, owner);
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    member *m = user;
    (void)p;
    for (size_t i = 0; i < event->lost_count; i++) lose(m->pool, index_of(event->lost[i]), m->index);
    for (size_t i = 0; i < event->gained_count; i++) gain(m->pool, index_of(event->gained[i]), m->index);
    for (size_t i = 0; i < event->revoked_count; i++) lose(m->pool, index_of(event->revoked[i]), m->index);
}

/* A user without work: what is revoked is released at once. */
static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    member *m = user;
    (void)from;
    m->pool->acquired -= m->state == DIVVY_ACQUIRED;
    m->pool->acquired += to == DIVVY_ACQUIRED;
    m->state = to;
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p);
    if (to == DIVVY_FAILURE && m->client) {
        char why[256];
        divvy_partitioner_failure(p, why, sizeof why);
        die("member %" PRIu32 " failed: %s", m->index, why);
    }
}

/* ---- members ---- */

static void start(pool *all, uint32_t index) {
    const options *o = all->options;
    member *m = &all->members[index];
    m->pool = all;
    m->index = index;
    m->state = DIVVY_ALLOCATING;
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.manual = 1;
    client_config.session_timeout_ms = SESSION_TIMEOUT_MS;
    client_config.ensemble_tick_ms = 2000;
    if (divvy_testing_client_open(&m->client, all->ensemble, &client_config) != 0) die("%s", divvy_client_error(NULL));
    char identifier[24];
    snprintf(identifier, sizeof identifier, "worker-%04" PRIu32, index);
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/pool";
    config.items = all->items;
    config.item_count = o->items;
    config.identifier = identifier;
    config.assign = o->names ? DIVVY_ASSIGN_RENDEZVOUS : DIVVY_ASSIGN_STICKY;
    if (!o->names && index < o->members) { /* the one that joins and crashes is not waited for */
        config.static_membership = 1;
        config.rejoin_delay_ms = REJOIN_DELAY_MS;
    }
    config.time_boundary_ms = o->boundary_ms;
    config.on_state = on_state;
    config.on_items = on_items;
    config.user = m;
    if (divvy_partitioner_create(&m->partitioner, m->client, &config) != 0) die("%s", divvy_client_error(m->client));
    memset(&m->begin, 0, sizeof m->begin);
    all->running++;
}

static void end(pool *all, uint32_t index, bool crash) {
    member *m = &all->members[index];
    divvy_client *client = m->client;
    if (crash) divvy_testing_crash_client(all->ensemble, client);
    m->client = NULL; /* so that its failure is none */
    divvy_partitioner_destroy(m->partitioner);
    divvy_client_close(client);
    all->acquired -= m->state == DIVVY_ACQUIRED;
    all->running--;
    m->state = DIVVY_FAILURE;
    lose_all(all, index);
}

/* ---- a change ---- */

typedef struct {
    int64_t at_ms;
    double cpu_s;
} moment;

static moment begin(pool *all) {
    for (uint32_t i = 0; i < all->room; i++) {
        if (all->members[i].client)
            divvy_client_stats(all->members[i].client, &all->members[i].begin, sizeof all->members[i].begin);
    }
    all->moved = 0;
    all->unowned_ms = 0;
    all->unowned_max_ms = 0;
    return (moment){divvy_testing_now_ms(all->ensemble), cpu_s()};
}

static bool settled(const pool *all) {
    return all->acquired == all->running && all->owned == all->options->items;
}

/* Until every item has its owner, and all members say that they have theirs. */
static void settle(pool *all) {
    int64_t until = divvy_testing_now_ms(all->ensemble) + PATIENCE_MS;
    do {
        if (divvy_testing_run(all->ensemble, STEP_MS) < 0) die("the ensemble does not run");
        if (divvy_testing_now_ms(all->ensemble) > until)
            die("nothing has settled in an hour: %" PRIu32 " of %" PRIu32 " acquired, %" PRIu32 " items owned",
                all->acquired, all->running, all->owned);
    } while (!settled(all));
}

typedef struct {
    uint32_t members;
    uint64_t requests, bytes, lists, requests_max, bytes_max;
} traffic;

static void add(traffic *t, const member *m) {
    divvy_stats now;
    if (divvy_client_stats(m->client, &now, sizeof now) != 0) die("no statistics");
    uint64_t requests = now.requests - m->begin.requests;
    uint64_t bytes = now.bytes_sent + now.bytes_received - m->begin.bytes_sent - m->begin.bytes_received;
    t->members++;
    t->requests += requests;
    t->bytes += bytes;
    t->lists += now.children - m->begin.children;
    if (requests > t->requests_max) t->requests_max = requests;
    if (bytes > t->bytes_max) t->bytes_max = bytes;
}

static void print_traffic(const char *who, const traffic *t) {
    double members = t->members ? t->members : 1;
    printf(", \"%s\": {\"members\": %" PRIu32 ", \"requests\": %.1f, \"lists\": %.1f, \"bytes\": %.0f"
           ", \"requests_max\": %" PRIu64 ", \"bytes_max\": %" PRIu64 "}",
           who, t->members, (double)t->requests / members, (double)t->lists / members, (double)t->bytes / members,
           t->requests_max, t->bytes_max);
}

/* `changed`: the one that the change was of, told apart from the others; NOBODY: none. */
static void report(pool *all, const char *change, moment since, uint32_t changed) {
    const options *o = all->options;
    double cpu = cpu_s() - since.cpu_s;
    traffic others = {0}, self = {0};
    for (uint32_t i = 0; i < all->room; i++) {
        if (all->members[i].client) add(i == changed ? &self : &others, &all->members[i]);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"change\": \"%s\", \"assign\": \"%s\", \"members\": %" PRIu32 ", \"items\": %" PRIu32
           ", \"boundary_ms\": %" PRId64 ", \"took_ms\": %" PRId64 ", \"moved\": %" PRIu32 ", \"unowned_ms\": %" PRIu64
           ", \"unowned_max_ms\": %" PRId64,
           change, o->names ? "rendezvous" : "plan", o->members, o->items, o->boundary_ms,
           divvy_testing_now_ms(all->ensemble) - since.at_ms, all->moved, all->unowned_ms, all->unowned_max_ms);
    print_traffic("others", &others);
    if (self.members) print_traffic("self", &self);
    printf(", \"cpu_s\": %.2f, \"resident_mib\": %ld}\n", cpu, usage.ru_maxrss / 1024);
    fflush(stdout);
}

/* Measures the traffic at rest: heartbeats, and a look at the party once a minute. */
static void rest(pool *all) {
    moment since = begin(all);
    divvy_testing_run(all->ensemble, REST_MS);
    report(all, "rest", since, NOBODY);
}

static void restart_in_turn(pool *all) {
    moment since = begin(all);
    for (uint32_t n = 0; n < all->options->restarts; n++) {
        end(all, n, false);
        divvy_testing_run(all->ensemble, 2 * all->options->boundary_ms); /* for long enough to be missed */
        start(all, n);
        settle(all);
    }
    report(all, "rolling", since, NOBODY);
}

/* So many joins and departures of one member, in turn: above 16 of them the plan gets a new base (D28). */
static void change_in_turn(pool *all) {
    uint32_t index = all->options->members;
    moment since = begin(all);
    for (uint32_t n = 0; n < all->options->changes; n++) {
        if (all->members[index].client) end(all, index, false);
        else start(all, index);
        settle(all);
    }
    if (all->members[index].client) end(all, index, false);
    report(all, "changes", since, NOBODY);
}

/* As many more members as options->mass, all at once; they stay. */
static void join_at_once(pool *all) {
    moment since = begin(all);
    for (uint32_t n = 1; n <= all->options->mass; n++) start(all, all->options->members + n);
    settle(all);
    report(all, "mass join", since, NOBODY);
}

/* One joins while all lookouts have stopped; their sessions have not ended, so nobody is told of that. Reported when it
 * has its share. */
static void join_without_lookouts(pool *all) {
    uint32_t index = all->options->members;
    rest(all);
    for (uint32_t n = 0; n < LOOKOUTS && n < index; n++) end(all, n, true);
    moment since = begin(all);
    start(all, index);
    while (all->members[index].state != DIVVY_ACQUIRED) {
        if (divvy_testing_run(all->ensemble, STEP_MS) < 0) die("the ensemble does not run");
        if (divvy_testing_now_ms(all->ensemble) - since.at_ms > PATIENCE_MS) die("nobody notices the new member");
    }
    report(all, "join without lookouts", since, index);
}

static void measure(pool *all) {
    const options *o = all->options;
    moment since = begin(all);
    for (uint32_t i = 0; i < o->members; i++) start(all, i);
    settle(all);
    report(all, "form", since, NOBODY);
    rest(all);

    since = begin(all);
    start(all, o->members);
    settle(all);
    report(all, "join", since, o->members);
    rest(all);

    since = begin(all);
    end(all, o->members, true);
    settle(all);
    report(all, "crash", since, NOBODY);
    rest(all);

    if (o->changes > 0) change_in_turn(all);
    if (o->restarts > 0) restart_in_turn(all);
    if (o->mass > 0) join_at_once(all);
    if (o->without_lookouts) join_without_lookouts(all);
}

/* ---- the whole ---- */

static uint64_t number(const char *text, uint64_t least, uint64_t most, const char *what) {
    char *stop;
    uint64_t value = strtoull(text, &stop, 10);
    if (stop == text || *stop || text[0] == '-' || value < least || value > most)
        die("%s: a number from %" PRIu64 " to %" PRIu64 ", not %s", what, least, most, text);
    return value;
}

static bool parse(options *o, int argc, char **argv) {
    *o = (options){.boundary_ms = 10000, .restarts = 0, .seed = 1};
    int at = 1;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--names") == 0) o->names = true;
        else if (strcmp(argv[at], "--without-lookouts") == 0) o->without_lookouts = true;
        else if (at + 1 == argc) return false;
        else if (strcmp(argv[at], "--boundary") == 0)
            o->boundary_ms = (int64_t)number(argv[++at], 0, REJOIN_DELAY_MS / 2, "--boundary");
        else if (strcmp(argv[at], "--restarts") == 0)
            o->restarts = (uint32_t)number(argv[++at], 0, MEMBERS_MAX, "--restarts");
        else if (strcmp(argv[at], "--changes") == 0)
            o->changes = (uint32_t)number(argv[++at], 0, CHANGES_MAX, "--changes");
        else if (strcmp(argv[at], "--mass") == 0) o->mass = (uint32_t)number(argv[++at], 0, MEMBERS_MAX, "--mass");
        else if (strcmp(argv[at], "--seed") == 0) o->seed = number(argv[++at], 0, UINT64_MAX, "--seed");
        else return false;
    }
    if (argc - at != 2) return false;
    o->members = (uint32_t)number(argv[at], 1, MEMBERS_MAX, "MEMBERS");
    o->items = (uint32_t)number(argv[at + 1], 1, ITEMS_MAX, "ITEMS");
    if (o->restarts > o->members) o->restarts = o->members;
    return true;
}

static void make(pool *all, const options *o) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.servers = 1; /* More servers would not change the members' requests and answers. */
    config.max_session_timeout_ms = SESSION_TIMEOUT_MS;
    config.seed = o->seed;
    *all = (pool){.options = o};
    if (divvy_testing_ensemble_create(&all->ensemble, &config) != 0) die("no ensemble");
    all->names = allocate(o->items, sizeof *all->names);
    all->items = allocate(o->items, sizeof *all->items);
    all->room = o->members + 1 + o->mass;
    all->members = allocate(all->room, sizeof *all->members);
    all->owner = allocate(o->items, sizeof *all->owner);
    all->last_owner = allocate(o->items, sizeof *all->last_owner);
    all->unowned_since = allocate(o->items, sizeof *all->unowned_since);
    for (uint32_t i = 0; i < o->items; i++) {
        snprintf(all->names[i], sizeof all->names[i], ITEM_PREFIX "%06" PRIu32, i);
        all->items[i] = all->names[i];
        all->owner[i] = all->last_owner[i] = NOBODY;
        all->unowned_since[i] = divvy_testing_now_ms(all->ensemble);
    }
}

static void unmake(pool *all) {
    for (uint32_t i = 0; i < all->room; i++) {
        if (all->members[i].client) end(all, i, true);
    }
    divvy_testing_ensemble_destroy(all->ensemble);
    free(all->names);
    free(all->items);
    free(all->members);
    free(all->owner);
    free(all->last_owner);
    free(all->unowned_since);
}

int main(int argc, char **argv) {
    options o;
    if (!parse(&o, argc, argv)) {
        fputs("usage: bench_scale [--names] [--boundary MS] [--changes N] [--restarts N] [--mass N]\n"
              "                   [--without-lookouts] [--seed S] MEMBERS ITEMS\n",
              stderr);
        return 2;
    }
    pool all;
    make(&all, &o);
    measure(&all);
    unmake(&all);
    return 0;
}
