/* The two kinds of worlds: servers of tools/zookeeper-local, and the ensemble in memory. SPDX-License-Identifier:
 * Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "expire.h"
#include "proxy.h"
#include "server.h"
#include "wait.h"

/* Sessions last long enough that hardly a machine stands still for so long, and the native client looks for a server
 * again every sixtieth part of it. */
enum { TICK_MS = 100, TIMEOUT_MS = 30000, PATIENCE_MS = 90000 };

int world_session_timeout_ms = TIMEOUT_MS;

static divvy_client_config config_of(const session_plan *plan) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.session_timeout_ms = world_session_timeout_ms;
    config.ensemble_tick_ms = TICK_MS;
    config.acl = plan->acl;
    config.auth = plan->auth;
    config.auth_scheme = plan->auth ? "digest" : NULL;
    return config;
}

static void must(int error, const char *what) {
    if (error) dv_test_die("conformance: %s: %s", what, divvy_client_error(NULL));
}

bool is_settled(const seat *s) {
    return s->outstanding == 0;
}

bool is_connected(const seat *s) {
    return s->client->state == DIVVY_CONNECTED;
}

/* ---- real servers ---- */

static void cut_all(seat *s) {
    for (int i = 0; i < s->world->servers; i++) dv_test_proxy_cut(s->proxies[i]);
}

/* Starts proxies to all servers. One of them lets through. */
static void start_proxies(seat *s, int server, char *hosts, size_t hosts_bytes) {
    size_t at = 0;
    for (int i = 0; i < s->world->servers; i++) {
        s->proxies[i] = dv_test_proxy_start(dv_test_server_address(s->world->server, i + 1));
        at +=
            (size_t)snprintf(hosts + at, hosts_bytes - at, "%s%s", i ? "," : "", dv_test_proxy_address(s->proxies[i]));
    }
    cut_all(s);
    dv_test_proxy_restore(s->proxies[server]);
}

static void open_real(seat *s, const session_plan *plan) {
    divvy_client_config config = config_of(plan);
    char hosts[128];
    config.hosts = dv_test_server_address(s->world->server, plan->server + 1);
    if (plan->mortal) {
        start_proxies(s, plan->server, hosts, sizeof hosts);
        config.hosts = hosts;
    }
    must(divvy_client_open(&s->client, &config), "open");
}

static void pump_real(seat *s) {
    divvy_client_process(s->client, 100);
}

static void cut_real(seat *s) {
    cut_all(s);
}

static void restore_real(seat *s, int server) {
    dv_test_proxy_restore(s->proxies[server]);
}

static bool expire_real(seat *s) {
    return dv_test_expire(dv_test_server_connect(s->world->server), divvy_client_session_id(s->client), NULL);
}

static void leave_real(seat *s) {
    for (int i = 0; i < SERVERS_MAX; i++) {
        dv_test_proxy_stop(s->proxies[i]);
        s->proxies[i] = NULL;
    }
}

static void destroy_real(world *w) {
    dv_test_server_stop(w->server);
}

void world_begin_real(world *w, int servers) {
    static const world_calls calls = {open_real,   pump_real,  cut_real,    restore_real,
                                      expire_real, leave_real, destroy_real};
    w->name = "real";
    w->calls = &calls;
    w->servers = servers;
    w->server = dv_test_server_start(servers, TICK_MS);
    int release = dv_test_server_release(w->server, w->version, sizeof w->version);
    static const int known[] = {DIVVY_TESTING_3_8, DIVVY_TESTING_3_9, DIVVY_TESTING_3_9_6};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (release >= known[i]) w->release = known[i];
}

/* ---- in memory ---- */

static void open_memory(seat *s, const session_plan *plan) {
    divvy_client_config config = config_of(plan);
    must(divvy_testing_client_open(&s->client, s->world->ensemble, &config), "open");
    must(divvy_testing_prefer(s->world->ensemble, s->client, plan->server), "prefer");
}

static void pump_memory(seat *s) {
    divvy_testing_step(s->world->ensemble, divvy_testing_now_ms(s->world->ensemble) + 100);
}

static void cut_memory(seat *s) {
    must(divvy_testing_link_client(s->world->ensemble, s->client, DIVVY_TESTING_LINK_DOWN), "cut");
    must(divvy_testing_disconnect(s->world->ensemble, s->client, DIVVY_TESTING_APPLIED, 0), "disconnect");
}

static void restore_memory(seat *s, int server) {
    must(divvy_testing_prefer(s->world->ensemble, s->client, server), "prefer");
    must(divvy_testing_link_client(s->world->ensemble, s->client, DIVVY_TESTING_LINK_UP), "restore");
    /* An attempt that got stuck, if there is one. */
    divvy_testing_disconnect(s->world->ensemble, s->client, DIVVY_TESTING_APPLIED, 0);
}

static bool expire_memory(seat *s) {
    must(divvy_testing_expire(s->world->ensemble, s->client), "expire");
    return true;
}

static void leave_memory(seat *s) {
    (void)s;
}

static void destroy_memory(world *w) {
    divvy_testing_ensemble_destroy(w->ensemble);
}

void world_begin_memory(world *w, int servers, uint64_t seed, const world *like) {
    static const world_calls calls = {open_memory,   pump_memory,  cut_memory,    restore_memory,
                                      expire_memory, leave_memory, destroy_memory};
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.servers = (unsigned)servers;
    config.tick_ms = TICK_MS;
    config.min_session_timeout_ms = 200;
    config.max_session_timeout_ms = 60000;
    config.sync_limit_ticks = 10;
    config.seed = seed;
    if (like) config.release = like->release;
    w->release = config.release;
    w->name = "memory";
    w->calls = &calls;
    w->servers = servers;
    must(divvy_testing_ensemble_create(&w->ensemble, &config), "ensemble");
}

/* ---- either ---- */

void world_end(world *w) {
    for (int i = 0; i <= SEATS; i++) {
        seat *s = &w->seats[i];
        session_close(s);
        w->calls->leave(s);
        told_list_clear(&s->log);
        free(s->log.items);
    }
    w->calls->destroy(w);
    free(w->session_ids);
}

void world_surprise(const seat *s, const char *what) {
    world *w = s->world;
    if (!w->surprise[0]) snprintf(w->surprise, sizeof w->surprise, "session %d %s", s->number, what);
}

/* Serves all sessions whose link is up, and not only the one that is waited for: a real one ends without that. */
static void pump_others(const seat *s) {
    for (int i = 0; i <= SEATS; i++) {
        const seat *other = &s->world->seats[i];
        if (other != s && other->client && !other->cut) divvy_client_process(other->client, 0);
    }
}

void world_await(seat *s, bool (*met)(const seat *s), const char *what) {
    int64_t deadline = dv_test_now_ms() + PATIENCE_MS;
    while (!met(s)) {
        s->world->calls->pump(s);
        if (s->world->server) pump_others(s);
        if (dv_test_now_ms() >= deadline && !met(s))
            dv_test_die("conformance: session %d, %s, waits in vain for %s", s->number, s->world->name, what);
    }
}
