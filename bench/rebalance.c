/* The cost of a change of membership with divvy: first allocation, one member joining, allocation on known paths.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The scenario is that of peers/kazoo_partition.py, with the same clock: time runs from the moment before the first
 * (or the joining) member is started until all members say ACQUIRED and show every item exactly once. README.md of
 * this folder says what each field of the JSON line means. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "divvy/divvy.h"
#include "server_counters.h"

enum { MEMBERS_MAX = 1000, ITEMS_MAX = 1000000, ITEM_BYTES = 12, LOOK_INTERVAL_MS = 2, SETTLE_TIMEOUT_S = 300 };
enum { FINISH_TIMEOUT_MS = 60000, BOUNDARY_MAX_MS = 3600000 };

#define ITEM_PREFIX "item-"
#define NOBODY UINT32_MAX

typedef struct {
    const char *hosts;
    uint32_t members, items;
    int64_t boundary_ms;
    const char *mode, *assign;
    const char *counters; /* where the server answers to srvr: its port of `hosts`, but over TLS */
} options;

/* The traffic so far: the first four numbers as the members count it, the others as the server does. */
typedef struct {
    int64_t requests, writes, reads, multis, packets, transactions;
} traffic;

typedef struct {
    double beyond_boundary_s;
    uint32_t fewest_owned;
    traffic sent;
} phase;

typedef struct {
    divvy_client *client;
    divvy_partitioner *partitioner;
} member;

/* The member that showed each item, and with which token, at one look. */
typedef struct {
    uint32_t *owner;
    int64_t *token;
} view;

typedef struct {
    const options *options;
    char path[64];
    char (*names)[ITEM_BYTES];
    const char **items;
    member *members; /* room for one more than options->members */
    uint32_t count;
    atomic_bool stopping;

    view now, before;         /* `before`: when the join began */
    uint32_t *looked_with;    /* the number of the last look at which an item's owner of `before` showed it */
    uint32_t looks;           /* since the join began; 0: it has not */
    uint8_t *missed;          /* some look since then found the item not with its owner of `before` */
    atomic_uchar *taken_away; /* since then some member was told that the item is revoked or lost */
} pool;

typedef struct {
    uint32_t moved, moved_between_old; /* the second: not to the one that joined, part of the first */
    uint32_t kept, missing, revoked, token_changed;
} comparison;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("bench_rebalance: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    _exit(1); /* Other threads still run: what exit() tears down they may be using. */
}

static void *allocate(size_t count, size_t bytes) {
    void *memory = calloc(count, bytes);
    if (!memory) die("out of memory");
    return memory;
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* ---- members ---- */

/* By hand, for it is done for every item at every look, and strtoul() would weigh upon what is measured. */
static uint32_t index_of(const char *item) {
    uint32_t index = 0;
    for (const char *c = item + sizeof ITEM_PREFIX - 1; *c; c++) index = index * 10 + (uint32_t)(*c - '0');
    return index;
}

/* A user without work: nothing has to be stopped, so what is revoked is released at once. */
static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    const pool *all = user;
    (void)from;
    if (to == DIVVY_RELEASE) {
        /* A newer RELEASE that nobody was told of yet has a call of its own coming. */
        int error = divvy_partitioner_release_set(p);
        if (error && error != DIVVY_ESTATE) die("release_set: %s", divvy_strerror(error));
    } else if (to == DIVVY_FAILURE && !atomic_load(&all->stopping)) {
        char why[256];
        divvy_partitioner_failure(p, why, sizeof why);
        die("member %s failed: %s", divvy_partitioner_identifier(p), why);
    }
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    pool *all = user;
    (void)p;
    for (size_t i = 0; i < event->revoked_count; i++) atomic_store(&all->taken_away[index_of(event->revoked[i])], 1);
    for (size_t i = 0; i < event->lost_count; i++) atomic_store(&all->taken_away[index_of(event->lost[i])], 1);
}

static int assign_of(const char *name) {
    if (strcmp(name, "rendezvous") == 0) return DIVVY_ASSIGN_RENDEZVOUS;
    return strcmp(name, "round_robin") == 0 ? DIVVY_ASSIGN_ROUND_ROBIN : DIVVY_ASSIGN_STICKY;
}

static void start_member(pool *all) {
    member *m = &all->members[all->count];
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.hosts = all->options->hosts;
    if (divvy_client_open(&m->client, &client_config) != 0) die("%s", divvy_client_error(NULL));

    char identifier[16];
    snprintf(identifier, sizeof identifier, "w%04" PRIu32, all->count);
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = all->path;
    config.items = all->items;
    config.item_count = all->options->items;
    config.identifier = identifier;
    config.mode = strcmp(all->options->mode, "eager") == 0 ? DIVVY_EAGER : DIVVY_INCREMENTAL;
    config.assign = assign_of(all->options->assign);
    config.time_boundary_ms = all->options->boundary_ms;
    config.on_state = on_state;
    config.on_items = on_items;
    config.user = all;
    if (divvy_partitioner_create(&m->partitioner, m->client, &config) != 0) die("%s", divvy_client_error(m->client));
    all->count++;
}

/* With `tidy` the last to leave says finish(), which removes the locks' directories; else the paths stay known. */
static void stop_all(pool *all, bool tidy) {
    atomic_store(&all->stopping, true);
    while (all->count > 0) {
        member *m = &all->members[--all->count];
        if (tidy && all->count == 0 && divvy_partitioner_finish(m->partitioner, FINISH_TIMEOUT_MS) != 0)
            die("%s", divvy_client_error(m->client));
        divvy_partitioner_destroy(m->partitioner);
        divvy_client_close(m->client);
    }
    atomic_store(&all->stopping, false);
}

/* ---- looking ---- */

typedef struct {
    uint32_t owned; /* distinct items */
    uint32_t shown; /* the same with repetition */
    bool all_acquired;
} look;

static void look_at(pool *all, uint32_t index, look *seen) {
    divvy_partitioner *p = all->members[index].partitioner;
    if (divvy_partitioner_state(p) != DIVVY_ACQUIRED) seen->all_acquired = false;
    divvy_partition *snapshot = divvy_partitioner_partition(p);
    size_t count = divvy_partition_count(snapshot);
    for (size_t entry = 0; entry < count; entry++) {
        if (divvy_partition_revoked(snapshot, entry)) continue;
        uint32_t i = index_of(divvy_partition_item(snapshot, entry));
        seen->shown++;
        if (all->now.owner[i] == NOBODY) seen->owned++;
        all->now.owner[i] = index;
        all->now.token[i] = divvy_partition_token(snapshot, entry);
        if (all->looks && all->before.owner[i] == index) all->looked_with[i] = all->looks;
    }
    divvy_partition_unref(snapshot);
}

/* The snapshots are taken one after the other, so that an item that moves between two of them may be seen nowhere:
 * `owned` errs to the low side only. An item that stays is not affected. */
static look look_at_all(pool *all) {
    look seen = {.all_acquired = true};
    uint32_t items = all->options->items;
    if (all->before.owner[0] != NOBODY) all->looks++;
    for (uint32_t i = 0; i < items; i++) all->now.owner[i] = NOBODY;
    for (uint32_t index = 0; index < all->count; index++) look_at(all, index, &seen);
    for (uint32_t i = 0; all->looks && i < items; i++) all->missed[i] |= all->looked_with[i] != all->looks;
    return seen;
}

static traffic read_traffic(const pool *all, uint32_t members) {
    traffic sum = {0};
    server_counters server;
    if (server_counters_read(&server, all->options->counters) != 0)
        die("the server %s does not answer to srvr (4lw.commands.whitelist)", all->options->counters);
    sum.packets = server.packets;
    sum.transactions = server.transactions;
    for (uint32_t i = 0; i < members && i < all->count; i++) {
        divvy_stats stats;
        if (divvy_client_stats(all->members[i].client, &stats, sizeof stats) != 0) die("no statistics");
        sum.requests += (int64_t)stats.requests;
        sum.writes += (int64_t)stats.writes;
        sum.reads += (int64_t)stats.reads;
        sum.multis += (int64_t)stats.multis;
    }
    return sum;
}

static traffic difference(const traffic *from, const traffic *to) {
    return (traffic){to->requests - from->requests, to->writes - from->writes,   to->reads - from->reads,
                     to->multis - from->multis,     to->packets - from->packets, to->transactions - from->transactions};
}

/* Starts members until there are `members` of them, and waits until they have divided the items. */
static phase grow_to(pool *all, uint32_t members) {
    const options *o = all->options;
    traffic before = read_traffic(all, UINT32_MAX);
    phase result = {.fewest_owned = o->items};
    double start_s = now_s(), elapsed_s;
    while (all->count < members) start_member(all);
    for (;;) {
        look seen = look_at_all(all);
        elapsed_s = now_s() - start_s;
        if (seen.owned < result.fewest_owned) result.fewest_owned = seen.owned;
        if (seen.all_acquired && seen.shown == o->items && seen.owned == o->items) break;
        if (elapsed_s > SETTLE_TIMEOUT_S) die("the pool did not settle in %d s", SETTLE_TIMEOUT_S);
        sleep_ms(LOOK_INTERVAL_MS);
    }
    traffic after = read_traffic(all, UINT32_MAX);
    result.sent = difference(&before, &after);
    result.beyond_boundary_s = elapsed_s - (double)o->boundary_ms / 1000;
    return result;
}

static void begin_comparison(pool *all) {
    uint32_t items = all->options->items;
    memcpy(all->before.owner, all->now.owner, items * sizeof *all->now.owner);
    memcpy(all->before.token, all->now.token, items * sizeof *all->now.token);
    for (uint32_t i = 0; i < items; i++) atomic_store(&all->taken_away[i], 0);
}

static comparison end_comparison(pool *all) {
    comparison c = {0};
    for (uint32_t i = 0; i < all->options->items; i++) {
        if (all->now.owner[i] != all->before.owner[i]) {
            c.moved++;
            c.moved_between_old += all->now.owner[i] != all->options->members;
            continue;
        }
        c.kept++;
        c.missing += all->missed[i];
        c.revoked += atomic_load(&all->taken_away[i]);
        c.token_changed += all->now.token[i] != all->before.token[i];
    }
    all->before.owner[0] = NOBODY;
    all->looks = 0;
    return c;
}

/* ---- the whole ---- */

static pool new_pool(const options *o) {
    pool all = {.options = o};
    snprintf(all.path, sizeof all.path, "/divvy-%ld", (long)getpid());
    all.names = allocate(o->items, sizeof *all.names);
    all.items = allocate(o->items, sizeof *all.items);
    all.members = allocate(o->members + 1, sizeof *all.members);
    all.now = (view){allocate(o->items, sizeof(uint32_t)), allocate(o->items, sizeof(int64_t))};
    all.before = (view){allocate(o->items, sizeof(uint32_t)), allocate(o->items, sizeof(int64_t))};
    all.looked_with = allocate(o->items, sizeof *all.looked_with);
    all.missed = allocate(o->items, sizeof *all.missed);
    all.taken_away = allocate(o->items, sizeof *all.taken_away);
    all.before.owner[0] = NOBODY;
    for (uint32_t i = 0; i < o->items; i++) {
        snprintf(all.names[i], sizeof all.names[i], ITEM_PREFIX "%06u", i % ITEMS_MAX);
        all.items[i] = all.names[i];
    }
    return all;
}

static void free_pool(pool *all) {
    free(all->names);
    free(all->items);
    free(all->members);
    free(all->now.owner);
    free(all->now.token);
    free(all->before.owner);
    free(all->before.token);
    free(all->looked_with);
    free(all->missed);
    free(all->taken_away);
}

/* Prints the traffic. The server cannot tell members apart, so its two numbers are printed for all members only. */
static void print_traffic(const char *name, const traffic *t, bool of_all) {
    printf(", \"%s\": {\"requests\": %" PRId64 ", \"writes\": %" PRId64 ", \"reads\": %" PRId64
           ", \"multis\": %" PRId64,
           name, t->requests, t->writes, t->reads, t->multis);
    if (of_all) printf(", \"packets\": %" PRId64 ", \"transactions\": %" PRId64, t->packets, t->transactions);
    putchar('}');
}

static void print_comparison(const options *o, const comparison *c, uint32_t fewest_owned) {
    printf(", \"moved\": %" PRIu32 ", \"moved_floor\": %" PRIu32 ", \"moved_between_old\": %" PRIu32
           ", \"fewest_owned_during_join\": %" PRIu32,
           c->moved, o->items / (o->members + 1), c->moved_between_old, fewest_owned);
    printf(", \"kept\": %" PRIu32 ", \"kept_missing\": %" PRIu32 ", \"kept_revoked\": %" PRIu32
           ", \"kept_token_changed\": %" PRIu32,
           c->kept, c->missing, c->revoked, c->token_changed);
}

static void print_result(const options *o, const phase *first, const phase *join, const phase *known,
                         const traffic *old_members, const comparison *c) {
    printf("{\"peer\": \"divvy\", \"mode\": \"%s\", \"assign\": \"%s\", \"members\": %" PRIu32 ", \"items\": %" PRIu32
           ", \"boundary_ms\": %" PRId64,
           o->mode, o->assign, o->members, o->items, o->boundary_ms);
    printf(", \"first_beyond_boundary_s\": %.3f, \"join_beyond_boundary_s\": %.3f, \"known_beyond_boundary_s\": %.3f",
           first->beyond_boundary_s, join->beyond_boundary_s, known->beyond_boundary_s);
    print_comparison(o, c, join->fewest_owned);
    print_traffic("first", &first->sent, true);
    print_traffic("join", &join->sent, true);
    print_traffic("join_old_members", old_members, false);
    print_traffic("known", &known->sent, true);
    double items = o->items;
    printf(", \"known_writes_per_item\": %.3f, \"known_reads_per_item\": %.3f}\n", (double)known->sent.writes / items,
           (double)known->sent.reads / items);
}

static uint32_t number(const char *text, uint32_t least, uint32_t most, const char *what) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end || text[0] == '-' || value < least || value > most)
        die("%s: a number from %" PRIu32 " to %" PRIu32 ", not %s", what, least, most, text);
    return (uint32_t)value;
}

static bool is_one_of(const char *text, const char *a, const char *b) {
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

static bool parse(options *o, int argc, char **argv) {
    *o = (options){.mode = "incremental", .assign = "sticky"};
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--mode") == 0) o->mode = argv[at + 1];
        else if (strcmp(argv[at], "--assign") == 0) o->assign = argv[at + 1];
        else if (strcmp(argv[at], "--counters") == 0) o->counters = argv[at + 1];
        else return false;
    }
    bool known_assign = strcmp(o->assign, "sticky") == 0 || is_one_of(o->assign, "rendezvous", "round_robin");
    if (argc - at != 4 || !is_one_of(o->mode, "incremental", "eager") || !known_assign) return false;
    o->hosts = argv[at];
    if (!o->counters) o->counters = o->hosts;
    o->members = number(argv[at + 1], 1, MEMBERS_MAX, "MEMBERS");
    o->items = number(argv[at + 2], 1, ITEMS_MAX, "ITEMS");
    o->boundary_ms = number(argv[at + 3], 0, BOUNDARY_MAX_MS, "BOUNDARY_MS");
    return true;
}

/* A pool that has just settled looks at its party at the earliest B/4 after the last look; what joins is to meet one at
 * rest. */
static void rest(const options *o) {
    struct timespec boundary = {.tv_sec = o->boundary_ms / 1000, .tv_nsec = o->boundary_ms % 1000 * 1000000};
    nanosleep(&boundary, NULL);
}

int main(int argc, char **argv) {
    options o;
    if (!parse(&o, argc, argv)) {
        fputs("usage: bench_rebalance [--mode incremental|eager] [--assign sticky|rendezvous|round_robin] "
              "[--counters HOST:PORT] HOSTS MEMBERS ITEMS BOUNDARY_MS\n",
              stderr);
        return 2;
    }
    pool all = new_pool(&o);

    phase first = grow_to(&all, o.members);
    rest(&o);
    begin_comparison(&all);
    traffic old_before = read_traffic(&all, o.members);
    phase join = grow_to(&all, o.members + 1);
    traffic old_after = read_traffic(&all, o.members);
    comparison c = end_comparison(&all);
    traffic old_members = difference(&old_before, &old_after);
    stop_all(&all, false);

    phase known = grow_to(&all, o.members);
    stop_all(&all, true);
    print_result(&o, &first, &join, &known, &old_members, &c);
    free_pool(&all);
    return 0;
}
