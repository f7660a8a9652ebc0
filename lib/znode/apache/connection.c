/* A session of our own on the native client: addresses, states, its end. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/threads.h"
#include "znode/apache/apache.h"

static dv_apache *of(dv_znode *znode) {
    return (dv_apache *)(void *)znode;
}

int64_t dv_apache_now_ms(const dv_znode *znode) {
    (void)znode;
    return dv_clock_ms(CLOCK_BOOTTIME); /* unlike CLOCK_MONOTONIC it goes on while the machine sleeps */
}

int dv_apache_random(dv_znode *znode, void *bytes, size_t count) {
    (void)znode;
    for (size_t done = 0; done < count;) {
        ssize_t n = getrandom((char *)bytes + done, count - done, 0);
        if (n < 0 && errno != EINTR) return DIVVY_ESYSTEM;
        if (n > 0) done += (size_t)n;
    }
    return 0;
}

enum { RESOLVE_AGAIN_MS = 5000, FAILED_AGAIN_MS = 1000, SASL_AGAIN_MS = 1000 };
static void start_resolving(dv_apache *apache, int delay_ms);

/* The native client takes no credentials after a failed attempt (ZOOKEEPER-800): then they wait for a connection. */
static bool add_credentials(dv_apache *apache) {
    if (!apache->auth || apache->auth_added || !apache->handle) return true;
    apache->auth_added =
        zoo_add_auth(apache->handle, apache->auth_scheme, apache->auth, (int)strlen(apache->auth), NULL, NULL) == ZOK;
    return apache->auth_added;
}

static void say(dv_apache *apache, int level, const char *message) {
    apache->znode.on_log(apache->znode.context, level, message);
}

static void on_tick(void *context, int64_t tick_ms, int64_t now) {
    dv_apache *apache = context;
    assert(apache->tick_job);
    apache->tick_job = NULL;
    if (tick_ms) apache->znode.on_tick(apache->znode.context, tick_ms, now);
    else
        say(apache, DIVVY_LOG_INFO,
            "the server does not say its tickTime: it does not allow the four letter word \"conf\", is no ZooKeeper, "
            "or did not answer in time. ensemble_tick_ms was not checked; make sure that it is not smaller than "
            "tickTime");
}

/* B8, B9: ClickHouse Keeper counts its sessions from 1. Numbers of ZooKeeper's hold a server's number and the time. */
static bool is_counted(int64_t session_id) {
    return session_id > 0 && session_id <= UINT32_MAX;
}

static void ask_tick(dv_apache *apache, const dv_server_address *server) {
    if (apache->tick_asked || !server->bytes) return;
    assert(!apache->tick_job);
    apache->tick_asked = true;
    apache->tick_job = dv_tick_ask(server, apache->tls, apache->znode.sink, on_tick, apache);
}

static void drop(dv_job **job) {
    if (*job) dv_job_drop(*job);
    *job = NULL;
}

static void end_session(dv_apache *apache, const dv_session_news *news, int64_t now) {
    assert(apache->state == news->state);
    drop(&apache->resolve_job); /* It would open a handle behind the back of the next session. */
    dv_watches_clear(&apache->watches);
    apache->znode.on_session(apache->znode.context, news, now);
    /* The native client may keep operations of a dead session for ever. */
    dv_apache_fail_all(apache, news->state == DIVVY_LOST ? DIVVY_ELOST : DIVVY_EAUTH, now);
}

static void note_connection(dv_apache *apache, dv_session_news *news, const dv_server_address *server) {
    apache->answered = false;
    apache->stats.connects++;
    /* The first connection of a handle of ours is to a new session. */
    news->created_at = apache->key.client_id ? 0 : apache->opened_at;
    apache->opened_at = 0;
    if (apache->silence) dv_silence_allow(apache->silence, DV_SILENCE_ANY);
    /* The lookup was for the case that no server answers. */
    if (apache->resolve_job && dv_resolve_waits(apache->resolve_job)) drop(&apache->resolve_job);
    ask_tick(apache, server);
    news->ends_with_connection = is_counted(news->session_id);
    if (news->ends_with_connection) dv_znode_lacks_requests(&apache->znode);
}

static void take_news(dv_apache *apache, const dv_session_news *told, const dv_server_address *server, int64_t now) {
    dv_session_news news = *told;
    bool connected = news.state == DIVVY_CONNECTED, was_connected = apache->state == DIVVY_CONNECTED;
    if (dv_apache_is_over(apache)) return;
    assert(apache->handle);
    /* It has gone away again already if that fails; the news of the next connection follow. */
    if (connected && !add_credentials(apache)) return;
    apache->state = news.state;
    if (was_connected && !connected) apache->one_at_first = !apache->answered;
    if (!connected && apache->silence) dv_silence_allow(apache->silence, dv_apache_silent_ms(apache));
    if (connected) note_connection(apache, &news, server);
    if (dv_apache_is_over(apache)) {
        end_session(apache, &news, now);
        return;
    }
    if (was_connected && !connected) start_resolving(apache, 0); /* H1: addresses may have changed. */
    apache->znode.on_session(apache->znode.context, &news, now);
}

void dv_apache_progressed(dv_apache *apache) {
    apache->answered = true;
    apache->was_refused = false;
    if (!apache->shared) dv_pause_answered(&apache->pause);
}

/* H9: where a server refuses a request and closes, the native client loses the answer by writing the next one. */
size_t dv_apache_in_flight_max(const dv_apache *apache) {
    return apache->one_at_first && !apache->answered ? 1 : DV_IN_FLIGHT_MAX;
}

/* A host may give its handle credentials behind our first request, which is then refused once. */
int dv_apache_refused(dv_apache *apache, int64_t now) {
    if (dv_apache_is_over(apache)) return DIVVY_EAUTH;
    bool over = !apache->shared || apache->was_refused;
    apache->was_refused = true;
    if (!over) return DIVVY_ECONNECTION;
    apache->state = DIVVY_AUTH_FAILED;
    end_session(apache, &(dv_session_news){.state = DIVVY_AUTH_FAILED, .reason = dv_apache_demand(apache)}, now);
    return DIVVY_EAUTH;
}

/* On the native client's completion thread. */
static void on_session_event(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)path;
    if (type != ZOO_SESSION_EVENT) return;
    dv_session_news news = {.state = dv_apache_session_state(state)};
    if (news.state == DIVVY_CONNECTED) {
        news.session_id = zoo_client_id(handle)->client_id;
        news.timeout_ms = zoo_recv_timeout(handle);
    }
    dv_apache_post_news(context, handle, &news);
}

/* H10: a pause begins when all servers of the list have closed. */
static void start_pauses(dv_apache *apache) {
    unsigned count = 1;
    for (const char *comma = strchr(apache->servers, ','); comma; comma = strchr(comma + 1, ',')) count++;
    dv_pause_start(&apache->pause, count);
}

static int open_handle(dv_apache *apache) {
    assert(!apache->handle && apache->servers);
    sigset_t signals;
    start_pauses(apache);
    apache->opened_at = dv_apache_now_ms(&apache->znode);
    dv_signals_block(&signals);
    log_callback_fn log = dv_apache_log_function(apache->log_slot);
    const char *servers = apache->servers;
    int timeout_ms = apache->requested_timeout_ms;
    const clientid_t *key = apache->key.client_id ? &apache->key : NULL;
    if (apache->tls) apache->silence = dv_silence_start(servers, dv_apache_silent_ms(apache));
    if (apache->silence)
        apache->handle = dv_tls_open(apache->tls, servers, on_session_event, timeout_ms, key, apache, log);
    else if (apache->sasl)
        apache->handle = dv_sasl_open(apache->sasl, servers, on_session_event, timeout_ms, key, apache, log);
    else if (!apache->tls)
        apache->handle = zookeeper_init2(servers, on_session_event, timeout_ms, key, apache, ZOO_NO_LOG_CLIENTENV, log);
    dv_signals_restore(&signals);
    if (!apache->handle) {
        dv_silence_stop(apache->silence);
        apache->silence = NULL;
        return DIVVY_ESYSTEM;
    }
    zoo_set_servers_resolution_delay(apache->handle, -1);
    apache->auth_added = false;
    add_credentials(apache);
    return 0;
}

/* Warns of each server that is refused and was not, for the same reason, at the last look. */
static void tell_refusals(dv_apache *apache, char *refusals) {
    char *copy = refusals ? strdup(refusals) : NULL, *rest = copy;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        if (!apache->refusals || !strstr(apache->refusals, line))
            apache->on_warning(apache->znode.context, DIVVY_WARN_TLS, line);
    }
    free(copy);
    free(apache->refusals);
    apache->refusals = refusals;
}

/* Tells of names without an address, once for as long as they have none. */
static void tell_unknown(dv_apache *apache, int error) {
    char text[512];
    snprintf(text, sizeof text, "no host name of %.400s can be resolved (%s): looking again each second",
             apache->hosts.text, divvy_strerror(error));
    if (error && !apache->resolve_error) say(apache, DIVVY_LOG_WARN, text);
    apache->resolve_error = error;
}

static void use_servers(dv_apache *apache) {
    if (dv_apache_give_servers(apache)) {
        start_pauses(apache);
        return;
    }
    say(apache, DIVVY_LOG_WARN, "no memory for other servers: those in use stay until the next look");
    free(apache->servers);
    apache->servers = NULL;
}

static void on_resolved(void *context, char *literals, char *refusals, int error) {
    dv_apache *apache = context;
    assert(apache->resolve_job);
    apache->resolve_job = NULL;
    tell_unknown(apache, refusals ? 0 : error);
    tell_refusals(apache, refusals);
    if (!literals) { /* A name server, the servers, or our files may be mended. */
        if (apache->state != DIVVY_CONNECTED) start_resolving(apache, FAILED_AGAIN_MS);
        return;
    }
    bool changed = !apache->servers || strcmp(apache->servers, literals) != 0;
    free(apache->servers);
    apache->servers = literals;
    if (!apache->handle) {
        if (open_handle(apache) != 0) say(apache, DIVVY_LOG_ERROR, "the native client could not be started");
    } else if (changed) {
        use_servers(apache);
    }
    /* The native client sends no event when SASL has failed. */
    if (apache->sasl && apache->handle && zoo_state(apache->handle) == ZOO_AUTH_FAILED_STATE) {
        dv_session_news news = {.state = DIVVY_AUTH_FAILED};
        dv_apache_post_news(apache, apache->handle, &news);
        return;
    }
    /* H1: and again for as long as none of them serves us. */
    if (apache->state != DIVVY_CONNECTED) start_resolving(apache, apache->sasl ? SASL_AGAIN_MS : RESOLVE_AGAIN_MS);
}

/* The same seed for the life of a session, so that unchanged addresses resolve to the same text. */
static uint64_t order_seed(const dv_apache *apache) {
    return (uint64_t)(uintptr_t)apache;
}

static void start_resolving(dv_apache *apache, int delay_ms) {
    bool known = apache->handle && !apache->tls && !apache->sasl && dv_hosts_are_literal(&apache->hosts);
    if (apache->shared || apache->resolve_job || known) return;
    apache->resolve_job = dv_resolve_start(&apache->hosts, order_seed(apache), apache->tls, delay_ms,
                                           apache->znode.sink, on_resolved, apache);
    if (!apache->resolve_job) say(apache, DIVVY_LOG_WARN, "no thread could be had to resolve host names");
}

static int start(dv_znode *znode) {
    dv_apache *apache = of(znode);
    assert(!apache->handle && !apache->resolve_job);
    if (apache->tls || apache->sasl || !dv_hosts_are_literal(&apache->hosts)) {
        start_resolving(apache, 0);
        return apache->resolve_job ? 0 : DIVVY_ESYSTEM;
    }
    int error;
    char *refusals;
    free(apache->servers);
    apache->servers = dv_hosts_resolve(&apache->hosts, order_seed(apache), NULL, &refusals, &error);
    assert(!refusals);
    return apache->servers ? open_handle(apache) : error;
}

static int reopen(dv_znode *znode) {
    dv_apache *apache = of(znode);
    assert(!apache->handle && !apache->resolve_job && !apache->waiting.first);
    dv_apache_forget_all(apache);
    apache->state = DIVVY_CONNECTING;
    return start(znode);
}

void dv_apache_stats(const dv_znode *znode, divvy_stats *out) {
    const dv_apache *apache = (const dv_apache *)(const void *)znode;
    *out = apache->stats;
    out->writes = out->creates + out->deletes + out->sets + out->checks;
    out->reads = out->gets + out->exists + out->children;
    /* After the session's end those that are left were answered by us. */
    out->in_flight = dv_apache_is_over(apache) ? 0 : apache->sent.count + apache->waiting.count;
}

static const char *get_servers(const dv_znode *znode, int *error) {
    const dv_apache *apache = (const dv_apache *)(const void *)znode;
    *error = apache->resolve_error;
    return apache->servers ? apache->servers : apache->hosts.text;
}

static const char *get_trouble(const dv_znode *znode) {
    return ((const dv_apache *)(const void *)znode)->refusals;
}

void dv_apache_abandon(dv_znode *znode, int error, int64_t now) {
    dv_apache *apache = of(znode);
    apache->state = DIVVY_LOST;
    drop(&apache->resolve_job);
    drop(&apache->tick_job);
    dv_watches_clear(&apache->watches);
    dv_apache_fail_all(apache, error, now);
}

static void close_handle(dv_znode *znode) {
    dv_apache *apache = of(znode);
    sigset_t signals;
    /* Over TLS the native client may write to a connection that is gone: SIGPIPE, here on the caller's thread. */
    if (apache->tls) dv_signals_block(&signals);
    if (apache->silence) dv_silence_allow(apache->silence, DV_SILENCE_MIN_MS); /* It is to be closed, come what may. */
    dv_pause_stop(&apache->pause);
    if (apache->handle) zookeeper_close(apache->handle); /* joins the native threads */
    dv_silence_stop(apache->silence);
    if (apache->tls) dv_signals_restore_but_pipe(&signals);
    free(apache->next_servers);
    apache->next_servers = NULL;
    apache->handle = NULL;
    apache->silence = NULL;
}

void dv_apache_free(dv_znode *znode) {
    dv_apache *apache = of(znode);
    assert(!apache->handle && !apache->shared);
    dv_apache_forget_all(apache);
    dv_apache_log_detach(apache->log_slot);
    dv_pause_destroy(&apache->pause);
    pthread_mutex_destroy(&apache->next_mutex);
    dv_hosts_free(&apache->hosts);
    if (apache->auth) explicit_bzero(apache->auth, strlen(apache->auth));
    explicit_bzero(&apache->key, sizeof apache->key);
    free(apache->auth);
    free(apache->auth_scheme);
    free(apache->servers);
    free(apache->refusals);
    dv_tls_unref(apache->tls);
    dv_sasl_free(apache->sasl);
    free(apache);
}

static void get_password(const dv_znode *znode, char *out) {
    const dv_apache *apache = (const dv_apache *)(const void *)znode;
    assert(apache->handle);
    memcpy(out, zoo_client_id(apache->handle)->passwd, sizeof apache->key.passwd);
}

static const char *get_chroot(const dv_znode *znode) {
    return ((const dv_apache *)(const void *)znode)->hosts.chroot;
}

static void choose_acl(dv_apache *apache, int acl) {
    apache->acl = ZOO_CREATOR_ALL_ACL;
    if (acl == DIVVY_ACL_OPEN) apache->acl = ZOO_OPEN_ACL_UNSAFE;
    if (acl != DIVVY_ACL_READABLE) return;
    apache->readable[0] = ZOO_CREATOR_ALL_ACL.data[0];
    apache->readable[1] = ZOO_READ_ACL_UNSAFE.data[0];
    apache->acl = (struct ACL_vector){2, apache->readable};
}

void dv_apache_init(dv_apache *apache, const dv_znode_backend *backend, const dv_backend_config *config) {
    apache->znode = (dv_znode){
        .backend = backend,
        .sink = config->sink,
        .on_session = config->on_session,
        .on_answer = config->on_answer,
        .on_tick = config->on_tick,
        .on_log = config->on_log,
        .traces = config->traces,
        .context = config->context,
    };
    apache->on_warning = config->on_warning;
    apache->take_news = take_news;
    apache->state = DIVVY_CONNECTING;
    apache->watches.stats = &apache->stats;
    apache->log_slot = -1;
    apache->requested_timeout_ms = (int)config->session_timeout_ms;
    dv_pause_init(&apache->pause, apache->requested_timeout_ms);
    pthread_mutex_init(&apache->next_mutex, NULL);
    choose_acl(apache, config->acl);
}

/* All but `reopen`, which a session that was taken up lacks: it is to be ended, and there is no other. */
#define BACKEND                                                                                                 \
    .submit = dv_apache_submit, .multi = dv_apache_multi, .unwatch = dv_watch_drop, .now_ms = dv_apache_now_ms, \
    .random = dv_apache_random, .stats = dv_apache_stats, .servers = get_servers, .trouble = get_trouble,       \
    .start = start, .password = get_password, .chroot = get_chroot, .close = close_handle,                      \
    .abandon = dv_apache_abandon, .free = dv_apache_free

/* A session that was taken up has its tick known to nobody, and needs none. */
static void take_up(dv_apache *apache, const dv_session_key *key) {
    apache->key.client_id = key->id;
    memcpy(apache->key.passwd, key->password, sizeof apache->key.passwd);
    apache->tick_asked = true;
}

int dv_apache_new(dv_znode **out, const dv_backend_config *config, const char **reason, void *context) {
    dv_protection *protection = context;
    static const dv_znode_backend backend = {BACKEND, .reopen = reopen}, taken_up = {BACKEND};
    *out = NULL;
    dv_apache *apache = calloc(1, sizeof *apache);
    if (!apache) return DIVVY_ENOMEM;
    dv_apache_init(apache, protection->key ? &taken_up : &backend, config);
    if (protection->key) take_up(apache, protection->key);
    apache->tls = dv_tls_ref(protection->tls);
    int error = dv_hosts_parse(&apache->hosts, config->hosts, reason);
    if (!error && config->auth) {
        apache->auth_scheme = strdup(config->auth_scheme);
        apache->auth = strdup(config->auth);
        if (!apache->auth || !apache->auth_scheme) error = DIVVY_ENOMEM;
    }
    if (error) {
        dv_apache_free(&apache->znode);
        return error;
    }
    apache->sasl = protection->sasl;
    protection->sasl = NULL;
    apache->logs = config->logs;
    apache->log_slot = dv_apache_log_attach(apache); /* also for pauses */
    *out = &apache->znode;
    return 0;
}
