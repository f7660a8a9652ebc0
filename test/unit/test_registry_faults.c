/* Tests of divvy/registry.h under faults, on an in-memory ensemble in virtual time: replies that are lost at every
 * point, random schedules, and hostile entries. SPDX-License-Identifier: Apache-2.0
 *
 * DIVVY_TEST_SEED=n replays one random schedule. */
#include "registry_fixture.h"

#include "lib/seed.h"
#include "testing/ensemble.h"

/* Behind those in which a parameter has the name of its variable. */
#include "claim.h"

#define ROOT "/divvy/services"
#define TTL_S 3

enum { USERS = 4, SERVICES_MOST = 64 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SCHEDULES = 12, FRESH = 4, HOSTILE = 2000 }; /* They take forty times as long there. */
#else
enum { SCHEDULES = 60, FRESH = 20, HOSTILE = 10000 };
#endif

/* ---- the truth: each entry as it is committed, and what may happen to it ---- */

typedef struct {
    char path[128], host[32];
    int64_t mtime_ms;
    bool there;
    int32_t version, former_version; /* of the node; of the one that stood there before, when that went, or -1 */
} service;

typedef struct {
    int64_t zxid, age_ms;
    service *of;         /* NULL: none */
    bool is_like_former; /* the node before had the same version once */
} deletion;

/* When each write was stamped, by its attempt: of the last ones. */
enum { STAMPS = 4096 };
static struct {
    char attempt[40];
    int64_t mtime_ms;
} stamps[STAMPS];
static size_t stamp_count;

static world w;
static service services[SERVICES_MOST];
static size_t service_count;
static deletion last_deletion;
static bool retiring;                                               /* users delete their own */
static unsigned claims, keeps, take_overs, purges, expiries, looks; /* to see that schedules come to all of them */

static service *find(const char *path) {
    for (size_t i = 0; i < service_count; i++) {
        if (strcmp(services[i].path, path) == 0) return &services[i];
    }
    CLAIM(service_count < SERVICES_MOST, "too many services");
    snprintf(services[service_count].path, sizeof services->path, "%s", path);
    services[service_count].former_version = -1;
    return &services[service_count++];
}

static bool is_unique(const service *s) {
    return strstr(s->path, "/leader/leader") != NULL;
}

/* A deletion that nothing took the place of, in the same transaction: a purge, of what was older than its ttl. */
static void judge_deletion(void) {
    /* V14: an entry that heartbeats have put in the place of a stale one may go with it, if its version is one that the
     * stale one had; its next heartbeat puts it back. */
    bool may_go = last_deletion.of && last_deletion.is_like_former && !is_unique(last_deletion.of);
    if (last_deletion.of && !retiring && !may_go) {
        CLAIM(last_deletion.age_ms > TTL_S * 1000, "%s was deleted at an age of %lld ms", last_deletion.of->path,
              (long long)last_deletion.age_ms);
        purges++;
    }
    last_deletion.of = NULL;
}

/* One holder takes the place of another only when the other's ttl has passed; and nobody writes into another's node. */
static void judge_write(service *s, const divvy_testing_transaction *t, const char *host) {
    bool replaces = last_deletion.of == s && last_deletion.zxid == t->zxid;
    bool other = strcmp(s->host, host) != 0;
    if (t->kind == DIVVY_TESTING_SET) {
        CLAIM(!other, "%s: %s writes into the node of %s", s->path, host, s->host);
        keeps += is_unique(s);
    } else if (replaces) {
        if (other && is_unique(s)) {
            CLAIM(last_deletion.age_ms >= TTL_S * 1000, "%s: %s displaces %s at an age of %lld ms", s->path, host,
                  s->host, (long long)last_deletion.age_ms);
            take_overs++;
        }
        last_deletion.of = NULL;
    } else {
        claims += is_unique(s);
    }
}

static void on_transaction(const divvy_testing_transaction *t, void *user) {
    const dv_mem *mem = ((world *)user)->ensemble;
    if (t->zxid != last_deletion.zxid) judge_deletion();
    if (t->kind == DIVVY_TESTING_SESSION_END) last_deletion.of = NULL; /* Its nodes went with it. */
    if (!t->path || strncmp(t->path, ROOT "/", strlen(ROOT "/")) != 0 || !strchr(t->path + strlen(ROOT "/"), '/'))
        return;
    service *s = find(t->path);
    if (t->kind == DIVVY_TESTING_DELETE) {
        s->there = false;
        expiries += t->expired != 0;
        int64_t age_ms = divvy_testing_wall_clock_ms(mem) - s->mtime_ms;
        bool is_like_former = s->version <= s->former_version;
        if (!t->expired) last_deletion = (deletion){t->zxid, age_ms, s, is_like_former};
        s->former_version = s->version;
        return;
    }
    const dv_mem_node *node = dv_mem_path_find(mem, t->path)->places[mem->truth_server].node;
    cJSON *entry = node && node->data ? cJSON_ParseWithLength((const char *)node->data->data, node->data->bytes) : NULL;
    CLAIM(entry, "%s was written with what is no entry", t->path);
    judge_write(s, t, text_of(entry, "host"));
    snprintf(s->host, sizeof s->host, "%s", text_of(entry, "host"));
    s->mtime_ms = node->mtime_ms;
    snprintf(stamps[stamp_count % STAMPS].attempt, sizeof stamps->attempt, "%s", text_of(entry, "attempt"));
    stamps[stamp_count++ % STAMPS].mtime_ms = node->mtime_ms;
    s->there = true;
    s->version = node->version;
    cJSON_Delete(entry);
}

/* ---- users ---- */

typedef struct {
    int asked, told;
} user;

static user users[USERS];

static void on_done(divvy_registry *registry, int result, const cJSON *stored, void *context) {
    user *u = context;
    (void)registry;
    CLAIM((result == 0) == (stored != NULL), "a result without an entry, or the reverse");
    u->told++;
    CLAIM(result == 0 || result == DIVVY_ETIMEDOUT, "a heartbeat ends with %s", divvy_strerror(result));
    CLAIM(u->told <= u->asked, "told %d times of %d heartbeats", u->told, u->asked);
}

static void open_user(int n) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    char host[16];
    snprintf(host, sizeof host, "h%d", n);
    config.host = host;
    config.nonce = host;
    config.persistent = n == 3; /* one of them */
    open_registry(&w, n, &config);
}

static void begin(uint64_t with) {
    seed = random_state = with;
    service_count = 0;
    stamp_count = 0;
    last_deletion = (deletion){.of = NULL};
    retiring = false;
    memset(services, 0, sizeof services);
    memset(users, 0, sizeof users);
    open_world(&w, on_transaction, with);
    for (int i = 0; i < USERS; i++) open_user(i);
}

/* S10: what is returned as healthy stood there, and is strictly younger than its ttl right now. */
static void judge_answer(const cJSON *entry, bool own) {
    if (!entry) return;
    for (size_t i = 0; i < STAMPS; i++) {
        if (strcmp(stamps[i].attempt, text_of(entry, "attempt")) != 0) continue;
        double age_ms = (double)(divvy_testing_wall_clock_ms(w.ensemble) - stamps[i].mtime_ms);
        CLAIM(own || age_ms < number_of(entry, "ttl") * 1000, "an entry is returned at an age of %g ms", age_ms);
        looks += !own;
        return;
    }
    CLAIM(false, "an entry is returned that nobody has stored");
}

static void act(int n) {
    divvy_registry *r = w.registries[n];
    int64_t timeout_ms = (int64_t)draw(30);
    cJSON *candidate = json("{'ttl':%d,'n':%d}", TTL_S, (int)draw(1000)), *entry = NULL;
    cJSON *status = json("{'id':'own%d','role':'web','load':%d,'ttl':%d}", n, (int)draw(10), TTL_S);
    int error = 0;
    switch (draw(8)) {
    case 0:
    case 1:
    case 2: error = divvy_registry_unique_service(r, "leader", candidate, &entry, timeout_ms); break;
    case 3: error = divvy_registry_unique_service(r, "leader", NULL, &entry, timeout_ms); break;
    case 4: error = divvy_registry_heartbeat(r, status, &entry, timeout_ms); break;
    case 5: error = divvy_registry_healthy_services(r, draw(2) ? "web" : NULL, &entry, timeout_ms); break;
    case 6: error = divvy_registry_purge_stale_services(r, 1, NULL, timeout_ms); break;
    default:
        error = divvy_registry_heartbeat_async(r, status, draw(2) ? -1 : timeout_ms, on_done, &users[n]);
        if (error == 0) users[n].asked++;
    }
    CLAIM(error == 0 || error == DIVVY_ETIMEDOUT, "a call ends with %s", divvy_client_error(w.clients[n]));
    if (cJSON_IsArray(entry)) {
        const cJSON *one;
        cJSON_ArrayForEach(one, entry) judge_answer(one, false);
    } else {
        judge_answer(entry, entry && divvy_registry_is_ours(r, entry));
    }
    cJSON_Delete(candidate);
    cJSON_Delete(status);
    cJSON_Delete(entry);
}

static void disturb(void) {
    divvy_client *client = w.clients[draw(USERS)];
    unsigned server = (unsigned)draw(3);
    switch (draw(12)) {
    case 0: divvy_testing_disconnect(w.ensemble, client, DIVVY_TESTING_NOT_APPLIED, 0); break;
    case 1:
    case 2: divvy_testing_disconnect(w.ensemble, client, DIVVY_TESTING_APPLIED, 0); break;
    case 3:
    case 4: divvy_testing_disconnect(w.ensemble, client, DIVVY_TESTING_APPLIED_LATE, (int64_t)draw(300)); break;
    case 5: divvy_testing_link_client(w.ensemble, client, (divvy_testing_link)draw(4)); break;
    case 6: divvy_testing_expire(w.ensemble, client); break;
    case 7: divvy_testing_kill_server(w.ensemble, server); break;
    case 8: divvy_testing_lag_server(w.ensemble, server, (int64_t)draw(800)); break;
    case 9: divvy_testing_drift_client(w.ensemble, client, (int)draw(180) - 90); break;
    case 10: divvy_testing_pause_server(w.ensemble, server, 1); break;
    default:
        for (unsigned s = 0; s < 3; s++) divvy_testing_start_server(w.ensemble, s);
        divvy_testing_heal(w.ensemble);
    }
}

static void heal(void) {
    for (unsigned s = 0; s < 3; s++) divvy_testing_start_server(w.ensemble, s);
    divvy_testing_heal(w.ensemble);
    run(&w, 30000);
}

/* Healed, everything works, all were told, and nothing is left of what was closed. */
static void finish(void) {
    heal();
    retiring = true; /* each puts its own in the place of its own */
    for (int i = 0; i < USERS; i++) {
        CLAIM(users[i].told == users[i].asked, "user %d was told of %d of %d heartbeats", i, users[i].told,
              users[i].asked);
        cJSON *stored = beat(w.registries[i], json("{'id':'own%d','role':'web','load':%d,'ttl':600}", i, i));
        cJSON_Delete(stored);
    }
    run(&w, 100); /* A server may lag behind the one that has answered. */
    for (int i = 0; i < USERS; i++)
        CLAIM(strcmp(healthy(w.registries[i], "web"), "own0 own1 own2 own3") == 0, "lost one");
    char first[256];
    snprintf(first, sizeof first, "%s", holder(w.registries[0], "leader", json("{'ttl':%d}", TTL_S)));
    run(&w, 100);
    for (int i = 1; i < USERS; i++)
        CLAIM(strcmp(holder(w.registries[i], "leader", json("{'ttl':%d}", TTL_S)), first) == 0, "two leaders");
    for (int i = 0; i < USERS; i++) {
        divvy_registry_close(w.registries[i]);
        w.registries[i] = NULL;
    }
    run(&w, 2000);
    for (size_t i = 0; i < service_count; i++) {
        bool stays = strcmp(services[i].host, "h3") == 0;
        CLAIM(stays || !services[i].there, "%s of %s is left", services[i].path, services[i].host);
    }
    for (int i = 0; i < USERS; i++) {
        divvy_stats stats;
        assert_int_equal(divvy_client_stats(w.clients[i], &stats, sizeof stats), 0);
        CLAIM(stats.ephemerals == 0 && stats.ephemeral_path_bytes == 0, "user %d counts %llu ephemeral nodes", i,
              (unsigned long long)stats.ephemerals);
    }
    close_world(&w);
}

/* Random schedules of four registries and all faults: never two holders of the role, nothing young is purged, nothing
 * is left behind, each heartbeat is told of once, and in the end all works. */
TEST(test_random) {
    const char *given = getenv("DIVVY_TEST_SEED");
    uint64_t first = given ? strtoull(given, NULL, 0) : 0, count = given ? 1 : SCHEDULES + FRESH;
    for (uint64_t i = 0; i < count; i++) {
        begin(given ? first : dv_test_seed_of_run(i, SCHEDULES, "unit_registry_faults"));
        for (int step = 0; step < 250; step++) {
            act((int)draw(USERS));
            if (draw(4) == 0) disturb();
            run(&w, (int64_t)draw(draw(6) ? 100 : 2500));
        }
        finish();
    }
    print_message("%u claims, %u kept, %u taken over, %u purged, %u expired, %u found\n", claims, keeps, take_overs,
                  purges, expiries, looks);
    /* Under a sanitizer, 16 schedules make 40 to 60 claims; the bounds lie far below what chance can bring. */
    if (!given)
        assert_true(claims > 20 && keeps > 50 && take_overs > 20 && purges > 20 && expiries > 20 && looks > 100);
}

/* ---- one lost reply, at every request ---- */

/* A heartbeat and a claim are stored once, by their own node, and the call says so, whatever the fate of the
 * requests under way when the link breaks. */
TEST(test_lost_reply) {
    for (int fate = DIVVY_TESTING_NOT_APPLIED; fate <= DIVVY_TESTING_APPLIED_BEHIND; fate++) {
        for (int steps = 1; steps < 60; steps++) {
            for (int kind = 0; kind < 3; kind++) {
                begin((uint64_t)(fate * 1000 + steps));
                divvy_registry *r = w.registries[0];
                cJSON *status = json("{'id':'a','role':'web','load':1,'ttl':600}"), *entry = NULL;
                cJSON *candidate = json("{'ttl':600}");
                assert_int_equal(divvy_client_wait_connected(w.clients[0], WAIT_MS), 0);
                if (kind == 2) beat_only(r, cJSON_Duplicate(status, 1));
                users[0].asked = kind != 1;
                if (kind != 1) assert_int_equal(divvy_registry_heartbeat_async(r, status, -1, on_done, &users[0]), 0);
                else divvy_registry_unique_service(r, "leader", candidate, &entry, 0);
                cJSON_Delete(entry);
                /* It goes on by itself, and is cut off somewhere on its way. */
                for (int i = 0; i < steps; i++) divvy_testing_step(w.ensemble, divvy_testing_now_ms(w.ensemble) + 5);
                divvy_testing_disconnect(w.ensemble, w.clients[0], (divvy_testing_fate)fate, 40);
                run(&w, 3000);
                CLAIM(users[0].told == users[0].asked, "fate %d, step %d: not told", fate, steps);
                if (kind != 1) entry = beat(r, cJSON_Duplicate(status, 1));
                else entry = unique(r, "leader", cJSON_Duplicate(candidate, 1));
                CLAIM(divvy_registry_is_ours(r, entry) == 1, "kind %d, fate %d, step %d: not ours", kind, fate, steps);
                CLAIM(strcmp(kind != 1 ? healthy(r, "web") : holder(r, "leader", NULL), kind != 1 ? "a" : "h0") == 0,
                      "kind %d, fate %d, step %d: not there", kind, fate, steps);
                retiring = true;
                cJSON_Delete(entry);
                cJSON_Delete(status);
                cJSON_Delete(candidate);
                close_world(&w);
            }
        }
    }
}

/* ---- hostile entries ---- */

static char big[1000 * 1000];

static size_t make_hostile(int n, const char **data) {
    static char text[4096];
    *data = text;
    switch (n % 8) {
    case 0: /* random bytes */
        for (size_t i = 0; i < 200; i++) text[i] = (char)draw(256);
        return 200;
    case 1: /* nested deep */ memset(text, '[', sizeof text); return sizeof text;
    case 2: return (size_t)snprintf(text, sizeof text, "{\"name\":7,\"id\":[],\"load\":\"x\",\"ttl\":{}}");
    case 3: return (size_t)snprintf(text, sizeof text, "{\"name\":\"web\",\"id\":\"h%d\",\"load\":\"1\",\"ttl\":1}", n);
    case 4: return 0; /* no data */
    case 5:
        return (size_t)snprintf(text, sizeof text,
                                "{\"name\":\"web\",\"id\":\"a\",\"load\":-1,\"ttl\":60}"); /* a liar */
    case 6: return (size_t)snprintf(text, sizeof text, "{\"name\":\"web\",\"id\":\"h%d\",\"ttl\":1e999}", n);
    default: *data = big; return n % 800 == 7 ? 900 * 1000 : 5000; /* a good beginning, and more than is looked at */
    }
}

/* 10,000 entries that are none, up to 900 KB each, among good ones: none is returned, all good ones are, each is
 * counted once, and the warnings stay few. */
TEST(test_hostile) {
    begin(1);
    divvy_registry *r = w.registries[0], *reader = w.registries[1];
    for (int i = 0; i < 10; i++) beat_only(r, json("{'id':'%d','role':'web','load':%d,'ttl':600}", i, i));
    w.ensemble->config.on_transaction = NULL;
    memset(big, ' ', sizeof big);
    memcpy(big, "{\"name\":\"web\",\"id\":\"x\"", strlen("{\"name\":\"web\",\"id\":\"x\""));
    for (int n = 0; n < HOSTILE; n++) {
        char path[64];
        const char *data;
        size_t bytes = make_hostile(n, &data);
        snprintf(path, sizeof path, ROOT "/web/h%d", n);
        assert_int_equal(divvy_testing_put(w.ensemble, path, data, bytes, DIVVY_TESTING_PERSISTENT), 0);
        if (n % 100 == 0) run(&w, 20);
    }
    divvy_testing_put(w.ensemble, ROOT "/junk", "", 0, DIVVY_TESTING_PERSISTENT);
    run(&w, 100);
    assert_string_equal(healthy(reader, "web"), "0 1 2 3 4 5 6 7 8 9");
    assert_string_equal(least(reader, "web"), "0");
    assert_string_equal(healthy(reader, NULL), "0 1 2 3 4 5 6 7 8 9");
    assert_int_equal(divvy_registry_malformed(reader), HOSTILE);
    run(&w, 100);
    int warnings = count_warnings(&w, DIVVY_WARN_ENTRY);
    assert_true(warnings > 0 && warnings <= 60);
    size_t purged;
    assert_int_equal(divvy_registry_purge_stale_services(reader, 0, &purged, WAIT_MS), 0);
    assert_int_equal(purged, 10);
    retiring = true;
    close_world(&w);
}
