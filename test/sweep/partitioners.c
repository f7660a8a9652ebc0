/* Partitioners: join, allocate, change, release, lose and rejoin, finish. SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>
#include <unistd.h>

#include "client/death_watch.h"
#include "client/will.h"
#include "scenarios.h"

#define PATH "/pool/p"

enum { ITEMS = 5, MEMBERS = 2, LOADS_MS = 150000 };

static const char *const items[ITEMS] = {"a", "b/c", "d", "e", "f"};

typedef struct {
    divvy_partitioner *partitioner;
    divvy_partitioner_config config;
    bool wanted;
} member;

/* What the members use beside the items. */
typedef struct {
    bool loads, handover, rolls;
    int client, watch; /* the ends of a socket, between the first one and its death watch; 0: it has none */
} extras;

typedef struct {
    member members[MEMBERS];
    extras extras;
} pool;

/* S2: no two members own an item at one moment. */
static void check(sweep *s, void *context) {
    const pool *p = context;
    for (size_t i = 0; i < ITEMS; i++) {
        int owners = 0;
        for (size_t m = 0; m < MEMBERS; m++)
            owners += p->members[m].partitioner && divvy_partitioner_owns(p->members[m].partitioner, items[i]);
        if (owners > 1) sweep_fail(s, "%s has two owners", items[i]);
    }
}

static void create(sweep *s, pool *p, size_t m) {
    p->members[m].wanted = true;
    SWEEP_DO(s, divvy_partitioner_create(&p->members[m].partitioner, s->clients[m], &p->members[m].config));
}

/* Does what a member's program does when it has time: it releases. If the partitioner failed because the sweep refused
 * an allocation or a request, it destroys it and creates a new one. */
static void act(sweep *s, pool *p, size_t m) {
    member *u = &p->members[m];
    if (!u->partitioner) return;
    divvy_partition_state state = divvy_partitioner_state(u->partitioner);
    if (state == DIVVY_RELEASE) SWEEP_DO(s, divvy_partitioner_release_set(u->partitioner));
    if (p->extras.handover && state != DIVVY_FAILURE) SWEEP_DO(s, divvy_partitioner_prepared(u->partitioner, NULL));
    if (state != DIVVY_FAILURE || !u->wanted) return;
    char why[256];
    int error = divvy_partitioner_failure(u->partitioner, why, sizeof why);
    if (!sweep_excuses(s, error)) sweep_fail(s, "member %zu failed: %s", m, why);
    divvy_partitioner *gone = u->partitioner;
    u->partitioner = NULL;
    divvy_partitioner_destroy(gone);
    create(s, p, m);
}

/* Until each item has an owner, and all are content. */
static void settle(sweep *s, pool *p, const char *what) {
    int64_t end = divvy_testing_now_ms(s->ensemble) + SWEEP_WAIT_MS;
    for (;;) {
        size_t owned = 0;
        bool content = true;
        for (size_t m = 0; m < MEMBERS; m++) {
            act(s, p, m);
            divvy_partitioner *one = p->members[m].partitioner;
            if (!one || !p->members[m].wanted) continue;
            content = content && divvy_partitioner_state(one) == DIVVY_ACQUIRED;
            for (size_t i = 0; i < ITEMS; i++) owned += divvy_partitioner_owns(one, items[i]) != 0;
        }
        if (content && owned == ITEMS) return;
        if (divvy_testing_now_ms(s->ensemble) >= end) sweep_fail(s, "hangs: %s; %zu are owned", what, owned);
        sweep_pass(s, 20);
    }
}

/* D46: the members tell loads for so long that they count, and one item is most of them. */
static void tell_loads(sweep *s, pool *p) {
    for (int64_t end = divvy_testing_now_ms(s->ensemble) + LOADS_MS; divvy_testing_now_ms(s->ensemble) < end;) {
        for (size_t m = 0; m < MEMBERS; m++) {
            divvy_partitioner *one = p->members[m].partitioner;
            for (size_t i = 0; one && i < ITEMS; i++) {
                if (divvy_partitioner_owns(one, items[i]))
                    SWEEP_DO(s, divvy_partitioner_set_load(one, items[i], i == 0 ? 4 : 1));
            }
            act(s, p, m);
        }
        sweep_pass(s, LOADS_MS / 20);
    }
}

static void look(sweep *s, const pool *p) {
    divvy_partition *mine = NULL;
    for (int i = 0; i < 60 && !mine; i++) mine = divvy_partitioner_partition(p->members[0].partitioner);
    SWEEP_CHECK(s, mine != NULL);
    divvy_partition_unref(mine);
}

static void finish(sweep *s, pool *p, size_t m) {
    p->members[m].wanted = false;
    int error = divvy_partitioner_finish(p->members[m].partitioner, SWEEP_WAIT_MS);
    if (error && error != DIVVY_ELOST) sweep_fail(s, "finish: %s", divvy_errname(error));
}

/* ---- a death watch: the other end of a socket, where nobody acts ---- */

/* The session that follows the first one, which is lost, is the first that it is told of. */
static void begin_watch(sweep *s, int client_end) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = "ensemble";
    config.session_timeout_ms = SWEEP_TIMEOUT_MS;
    if (dv_death_watch_use(&s->clients[0]->death_watch, &config, client_end)) sweep_fail(s, "no death watch");
}

/* C10: each message is a will. The last one names the session, and no pool, since the member has left its pool. */
static void check_watch(sweep *s, int watch) {
    static char message[DV_WILL_BYTES_MAX];
    dv_will will = {.session_id = 0};
    size_t wills = 0, with_pool = 0;
    for (ssize_t bytes; (bytes = recv(watch, message, sizeof message, MSG_DONTWAIT)) > 0; wills++) {
        SWEEP_CHECK(s, dv_will_parse(&will, message, (size_t)bytes) == 0);
        SWEEP_CHECK(s, will.pool_count <= 2); /* One that failed may leave while the next one joins. */
        with_pool += will.pool_count;
    }
    SWEEP_CHECK(s, wills > 0 && with_pool > 0 && will.pool_count == 0);
    SWEEP_CHECK(s, will.session_id == divvy_client_session_id(s->clients[0]));
}

/* ---- the life of a pool ---- */

/* W18 to W21: from two members on one lists the party for the other, which reads the roll. */
static void use_rolls(const sweep *s) {
    for (size_t m = 0; m < MEMBERS; m++) {
        s->clients[m]->listen_from = 2;
        s->clients[m]->lookouts = 1;
    }
}

static size_t to_prepare;

static void run(sweep *s, divvy_partitioner_config config, extras more) {
    pool p = {.members = {{.partitioner = NULL}}, .extras = more};
    config.path = PATH;
    config.items = items;
    config.item_count = ITEMS;
    config.time_boundary_ms = 100;
    config.on_session_loss = DIVVY_REJOIN;
    for (size_t m = 0; m < MEMBERS; m++) {
        p.members[m].config = config;
        p.members[m].config.identifier = m ? "second" : NULL;
        sweep_open(s, (int)m);
    }
    if (more.loads) s->empty_paths[2] = PATH "/loads";
    if (more.handover) s->empty_paths[2] = PATH "/notes";
    if (more.rolls) use_rolls(s);
    if (more.watch) begin_watch(s, more.client);
    s->check = check;
    s->user = &p;
    s->empty_paths[0] = PATH "/locks/a";
    s->empty_paths[1] = PATH "/party";
    to_prepare = 0;
    sweep_begin(s);
    create(s, &p, 0);
    settle(s, &p, "the first member");
    look(s, &p);
    create(s, &p, 1);
    sweep_pass(s, 500);
    settle(s, &p, "two members");
    if (more.loads) tell_loads(s, &p);
    settle(s, &p, "two members with loads");
    if (more.handover) SWEEP_CHECK(s, to_prepare > 0);
    divvy_testing_expire(s->ensemble, s->clients[0]);
    sweep_pass(s, 2 * SWEEP_TIMEOUT_MS);
    settle(s, &p, "after a lost session");
    finish(s, &p, 1);
    sweep_pass(s, 500);
    settle(s, &p, "the member that is left");
    finish(s, &p, 0);
    for (size_t m = 0; m < MEMBERS; m++) {
        divvy_partitioner *gone = p.members[m].partitioner;
        p.members[m].partitioner = NULL;
        divvy_partitioner_destroy(gone);
    }
    if (more.watch) check_watch(s, more.watch);
    sweep_end(s);
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)p, (void)from, (void)to, (void)user;
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p, (void)user;
    to_prepare += event->prepare_count;
}

void sweep_partitioner_incremental(sweep *s) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.on_state = on_state;
    config.on_items = on_items;
    run(s, config, (extras){0});
}

void sweep_partitioner_eager(sweep *s) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.mode = DIVVY_EAGER;
    config.assign = DIVVY_ASSIGN_ROUND_ROBIN;
    run(s, config, (extras){0});
}

void sweep_partitioner_kazoo(sweep *s) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_KAZOO;
    config.on_state = on_state;
    run(s, config, (extras){0});
}

void sweep_loads_told(sweep *s) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.load_unit = "req/s";
    config.load_interval_ms = 5000;
    config.tags = "ssd,gpu";
    run(s, config, (extras){.loads = true});
}

void sweep_handover_prepared(sweep *s) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.on_items = on_items;
    config.prepare_timeout_ms = 2000;
    config.handover_timeout_ms = 5000;
    run(s, config, (extras){.handover = true});
}

void sweep_roll_followed(sweep *s) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.on_items = on_items;
    run(s, config, (extras){.rolls = true});
}

void sweep_death_watch_told(sweep *s) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) sweep_fail(s, "no socket");
    run(s, config, (extras){.client = ends[0], .watch = ends[1]});
    close(ends[0]);
    close(ends[1]);
}
