/* The servers of a list, each looked at by itself. SPDX-License-Identifier: Apache-2.0
 *
 * A thread for each server asks, and writes what it learned into a round that it shares with the caller. Who comes too
 * late finds the round abandoned: a name server may take its time, and cannot be interrupted. */
#include "doctor_servers.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <divvy/divvy.h>

#include "base/threads.h"
#include "znode/apache/hosts.h"

enum { ADDRESSES_MAX = 4, WORD_BYTES = 16 * 1024, CLIENTS_BYTES = 4 * 1024 * 1024, MARGIN_MS = 20 };

typedef struct {
    dv_server found; /* without its host */
    dv_word_connection *connections;
    size_t connection_count;
} answer;

/* A server's part of a round. */
typedef struct {
    char *host, *port;
    bool finished;
    answer answer;
} task;

/* One question to all. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned refs; /* the caller's, and one for each thread */
    size_t left;   /* threads that have not finished */
    bool clients;  /* it is about their clients */
    dv_tls *tls;
    int64_t until_ms;
    size_t count;
    task *tasks;
} round;

typedef struct {
    round *round;
    size_t index;
} errand;

/* ---- one server, on its thread ---- */

/* Returns 0 when a connection came about, else an errno; ETIMEDOUT once the time is over. */
static int try_to_connect(const struct addrinfo *where, int64_t until_ms) {
    int error = 0;
    socklen_t bytes = sizeof error;
    int s = socket(where->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0) return errno;
    if (connect(s, where->ai_addr, where->ai_addrlen) != 0) {
        error = errno;
        int64_t left_ms = until_ms - dv_monotonic_ms();
        struct pollfd p = {.fd = s, .events = POLLOUT};
        if (error == EINPROGRESS && (left_ms <= 0 || poll(&p, 1, (int)left_ms) != 1)) error = ETIMEDOUT;
        else if (error == EINPROGRESS && getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
    }
    close(s);
    return error;
}

static size_t ask(const round *r, const struct addrinfo *where, const char *word, char *out, size_t bytes,
                  int64_t until_ms) {
    dv_server_address address = dv_server_address_of(where->ai_addr, where->ai_addrlen);
    return dv_word_ask(r->tls, &address, word, out, bytes, until_ms);
}

static void ask_who(const round *r, const struct addrinfo *where, const char *host, dv_server *out, int64_t until_ms) {
    char text[WORD_BYTES];
    int64_t asked_ms = dv_monotonic_ms();
    int error = try_to_connect(where, until_ms);
    bool closed = error == EPIPE || error == ECONNRESET; /* before we could look: a refusal is ECONNREFUSED */
    out->state = closed ? DV_SERVER_CLOSES : DV_SERVER_UNREACHABLE;
    snprintf(out->reason, sizeof out->reason, "%s", strerror(error));
    if (error) return;
    out->state = DV_SERVER_SILENT;
    size_t bytes = ask(r, where, "srvr", text, sizeof text, until_ms);
    if (bytes > 0) {
        out->state = DV_SERVER_ANSWERS;
        out->took_ms = dv_monotonic_ms() - asked_ms;
        out->srvr = dv_word_srvr_parse(text, bytes);
        bytes = ask(r, where, "conf", text, sizeof text, until_ms);
        out->conf = dv_word_conf_parse(text, bytes);
        return;
    }
    if (dv_monotonic_ms() < until_ms) out->state = DV_SERVER_CLOSES; /* Nothing but the end has come. */
    if (r->tls) {
        char why[DV_TLS_MESSAGE_BYTES];
        dv_server_address address = dv_server_address_of(where->ai_addr, where->ai_addrlen);
        if (dv_tls_check(r->tls, &address, host, why) != DV_TLS_REFUSED) return;
        out->state = DV_SERVER_REFUSED;
        snprintf(out->reason, sizeof out->reason, "%.300s", why);
    }
}

static void tell_address(const struct addrinfo *where, dv_server *out) {
    char ip[64], port[16];
    if (getnameinfo(where->ai_addr, where->ai_addrlen, ip, sizeof ip, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(out->address, sizeof out->address, "%s:%s", ip, port);
}

/* Lets the caller know how far we are, in case that it does not wait for us. */
static void publish(round *r, size_t index, dv_server *found) {
    if (found->state < DV_SERVER_SILENT) found->state = DV_SERVER_SILENT;
    pthread_mutex_lock(&r->mutex);
    r->tasks[index].answer.found = *found;
    pthread_mutex_unlock(&r->mutex);
}

static void ask_clients(round *r, size_t index, const struct addrinfo *where, answer *out) {
    char *text = malloc(CLIENTS_BYTES);
    if (!text) return;
    size_t bytes = ask(r, where, "srvr", text, CLIENTS_BYTES, r->until_ms);
    out->found.later = dv_word_srvr_parse(text, bytes);
    bytes = ask(r, where, "mntr", text, CLIENTS_BYTES, r->until_ms); /* A long list must not keep it out. */
    out->found.mismatches = dv_word_mntr_mismatches(text, bytes);
    publish(r, index, &out->found);
    bytes = ask(r, where, "cons", text, CLIENTS_BYTES, r->until_ms);
    bool whole = bytes < CLIENTS_BYTES && dv_monotonic_ms() < r->until_ms;
    bool listed = dv_word_cons_parse(text, bytes, &out->connections, &out->connection_count);
    out->found.lists_clients = whole && listed;
    free(text);
}

/* Tries the addresses of a name in turn, each for its share of the time. */
static void look_at(round *r, size_t index, answer *out) {
    const char *host = r->tasks[index].host;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int error = getaddrinfo(host, r->tasks[index].port, &hints, &list), count = 0;
    if (error) {
        snprintf(out->found.reason, sizeof out->found.reason, "%s", gai_strerror(error));
        return;
    }
    for (const struct addrinfo *a = list; a && count < ADDRESSES_MAX; a = a->ai_next) count++;
    for (const struct addrinfo *a = list; a && count > 0; a = a->ai_next, count--) {
        int64_t left_ms = r->until_ms - dv_monotonic_ms();
        tell_address(a, &out->found);
        publish(r, index, &out->found);
        if (r->clients) ask_clients(r, index, a, out);
        else ask_who(r, a, host, &out->found, dv_monotonic_ms() + left_ms / count);
        if (r->clients || out->found.state >= DV_SERVER_REFUSED) break;
    }
    freeaddrinfo(list);
}

/* ---- rounds ---- */

static void free_round(round *r) {
    for (size_t i = 0; i < r->count; i++) {
        free(r->tasks[i].host);
        free(r->tasks[i].port);
        free(r->tasks[i].answer.connections);
    }
    free(r->tasks);
    dv_tls_unref(r->tls);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}

static void let_go(round *r) {
    pthread_mutex_lock(&r->mutex);
    bool last = --r->refs == 0;
    pthread_mutex_unlock(&r->mutex);
    if (last) free_round(r);
}

static void *run(void *argument) {
    errand e = *(errand *)argument;
    answer found = {.connections = NULL};
    free(argument);
    look_at(e.round, e.index, &found);
    pthread_mutex_lock(&e.round->mutex);
    e.round->tasks[e.index].answer = found;
    e.round->tasks[e.index].finished = true;
    e.round->left--;
    pthread_cond_signal(&e.round->changed);
    pthread_mutex_unlock(&e.round->mutex);
    let_go(e.round);
    return NULL;
}

static round *new_round(size_t count, bool clients, int64_t limit_ms) {
    round *r = calloc(1, sizeof *r);
    task *tasks = calloc(count + 1, sizeof *tasks);
    if (!r || !tasks) {
        free(r);
        free(tasks);
        return NULL;
    }
    *r = (round){.refs = 1,
                 .clients = clients,
                 .until_ms = dv_monotonic_ms() + limit_ms - MARGIN_MS,
                 .count = count,
                 .tasks = tasks};
    pthread_mutex_init(&r->mutex, NULL);
    dv_condition_init(&r->changed);
    return r;
}

static bool send_out(round *r, size_t index) {
    pthread_t thread;
    errand *e = malloc(sizeof *e);
    if (!e) return false;
    *e = (errand){r, index};
    pthread_mutex_lock(&r->mutex);
    r->refs++;
    r->left++;
    pthread_mutex_unlock(&r->mutex);
    if (pthread_create(&thread, NULL, run, e) == 0) {
        pthread_detach(thread);
        return true;
    }
    pthread_mutex_lock(&r->mutex);
    r->refs--;
    r->left--;
    pthread_mutex_unlock(&r->mutex);
    free(e);
    return false;
}

/* Waits for all, or until the time is over; takes over what has come. */
static void gather(round *r, answer *out, bool *finished) {
    int64_t until_ms = r->until_ms + MARGIN_MS;
    pthread_mutex_lock(&r->mutex);
    while (r->left > 0 && dv_condition_wait(&r->changed, &r->mutex, until_ms)) continue;
    for (size_t i = 0; i < r->count; i++) {
        finished[i] = r->tasks[i].finished;
        out[i] = r->tasks[i].answer;
        r->tasks[i].answer.connections = NULL;
    }
    pthread_mutex_unlock(&r->mutex);
}

static int take_tls(round *r, const dv_tls_options *options) {
    char message[DV_TLS_MESSAGE_BYTES];
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    dv_tls_options_apply(options, &config);
    return config.tls_ca_file ? dv_tls_new(&r->tls, &config, message) : 0;
}

/* ---- who they are ---- */

/* Puts "host:port" into the list, and into the round. */
static int take_hosts(dv_servers *servers, round *r, const dv_hosts *hosts) {
    for (size_t i = 0; i < hosts->count; i++) {
        const char *name = hosts->hosts[i].name, *port = hosts->hosts[i].port;
        bool is_ip6 = strchr(name, ':') != NULL;
        char *host = NULL;
        if (asprintf(&host, "%s%s%s:%s", is_ip6 ? "[" : "", name, is_ip6 ? "]" : "", port) < 0) return DIVVY_ENOMEM;
        servers->list[servers->count++].host = host;
        r->tasks[i].host = strdup(name);
        r->tasks[i].port = strdup(port);
        if (!r->tasks[i].host || !r->tasks[i].port) return DIVVY_ENOMEM;
    }
    return 0;
}

static int ask_all(dv_servers *servers, round *r) {
    answer *answers = calloc(r->count + 1, sizeof *answers);
    bool *finished = calloc(r->count + 1, sizeof *finished);
    int error = answers && finished ? 0 : DIVVY_ENOMEM;
    for (size_t i = 0; !error && i < r->count; i++) error = send_out(r, i) ? 0 : DIVVY_ENOMEM;
    if (!error) gather(r, answers, finished);
    for (size_t i = 0; !error && i < r->count; i++) {
        dv_server *server = &servers->list[i];
        char *host = server->host;
        *server = answers[i].found;
        server->host = host;
        if (!finished[i] && server->state == DV_SERVER_UNRESOLVED)
            snprintf(server->reason, sizeof server->reason, "no name server has answered yet");
    }
    free(answers);
    free(finished);
    return error;
}

int dv_servers_ask(dv_servers *servers, const char *connect, const dv_tls_options *tls, int64_t limit_ms,
                   const char **reason) {
    dv_hosts hosts;
    *servers = (dv_servers){.chroot = connect + strcspn(connect, "/")};
    if (strcmp(servers->chroot, "/") == 0) servers->chroot = "";
    int error = dv_hosts_parse(&hosts, connect, reason);
    if (error) return error;
    servers->list = calloc(hosts.count + 1, sizeof *servers->list);
    round *r = servers->list ? new_round(hosts.count, false, limit_ms) : NULL;
    error = r ? take_hosts(servers, r, &hosts) : DIVVY_ENOMEM;
    if (!error) error = take_tls(r, tls) == DIVVY_ENOMEM ? DIVVY_ENOMEM : 0; /* The look says what is wrong. */
    if (!error) error = ask_all(servers, r);
    if (r) let_go(r);
    dv_hosts_free(&hosts);
    return error;
}

/* ---- their clients ---- */

/* Splits "ip:port". */
static int take_address(round *r, size_t i, const char *address) {
    const char *colon = strrchr(address, ':');
    r->tasks[i].host = strndup(address, colon ? (size_t)(colon - address) : 0);
    r->tasks[i].port = strdup(colon ? colon + 1 : "");
    return r->tasks[i].host && r->tasks[i].port ? 0 : DIVVY_ENOMEM;
}

static int take_clients(dv_servers *servers, const answer *a) {
    if (a->connection_count == 0) return 0;
    size_t count = servers->connection_count + a->connection_count;
    dv_word_connection *grown = realloc(servers->connections, count * sizeof *grown);
    if (!grown) return DIVVY_ENOMEM;
    memcpy(grown + servers->connection_count, a->connections, a->connection_count * sizeof *grown);
    servers->connections = grown;
    servers->connection_count = count;
    return 0;
}

/* Two names in the list may be of one server. */
static void count_listing(dv_servers *servers) {
    servers->listing_count = servers->ensemble_count = 0;
    for (size_t i = 0; i < servers->count; i++) {
        const dv_server *server = &servers->list[i];
        bool again = false;
        if (server->conf.server_count > servers->ensemble_count) servers->ensemble_count = server->conf.server_count;
        for (size_t k = 0; k < i && !again; k++)
            again = servers->list[k].lists_clients && servers->list[k].conf.server_id == server->conf.server_id;
        bool all = server->lists_clients && server->conf.server_count && !server->conf.has_two_ports;
        servers->listing_count += all && !again;
    }
    servers->all_clients = servers->ensemble_count > 0 && servers->listing_count >= servers->ensemble_count;
}

int dv_servers_ask_clients(dv_servers *servers, const dv_tls_options *tls, int64_t limit_ms) {
    round *r = new_round(servers->count, true, limit_ms);
    answer *answers = calloc(servers->count + 1, sizeof *answers);
    bool *finished = calloc(servers->count + 1, sizeof *finished);
    int error = r && answers && finished ? take_tls(r, tls) : DIVVY_ENOMEM;
    for (size_t i = 0; !error && i < servers->count; i++) {
        if (servers->list[i].state != DV_SERVER_ANSWERS) continue;
        error = take_address(r, i, servers->list[i].address);
        if (!error && !send_out(r, i)) error = DIVVY_ENOMEM;
    }
    if (!error) gather(r, answers, finished);
    for (size_t i = 0; i < servers->count && answers; i++) {
        if (!error) error = take_clients(servers, &answers[i]);
        servers->list[i].later = answers[i].found.later;
        servers->list[i].mismatches = answers[i].found.mismatches;
        servers->list[i].lists_clients = answers[i].found.lists_clients;
        free(answers[i].connections);
    }
    count_listing(servers);
    if (r) let_go(r);
    free(answers);
    free(finished);
    return error;
}

/* ---- the whole ---- */

bool dv_server_serves(const dv_server *server) {
    return server->state == DV_SERVER_ANSWERS && !server->srvr.not_serving && !server->srvr.read_only;
}

char *dv_servers_good(const dv_servers *servers) {
    size_t bytes = strlen(servers->chroot) + 1, good = 0;
    for (size_t i = 0; i < servers->count; i++) bytes += strlen(servers->list[i].host) + 1;
    char *connect = malloc(bytes), *at = connect;
    if (!connect) return NULL;
    *connect = '\0';
    for (size_t i = 0; i < servers->count; i++) {
        if (!dv_server_serves(&servers->list[i])) continue;
        if (good++) at = stpcpy(at, ",");
        at = stpcpy(at, servers->list[i].host);
    }
    if (good) strcpy(at, servers->chroot);
    return connect;
}

void dv_servers_clear(dv_servers *servers) {
    for (size_t i = 0; i < servers->count; i++) free(servers->list[i].host);
    free(servers->list);
    free(servers->connections);
    *servers = (dv_servers){.list = NULL};
}
