/* Connect strings, and resolving their names ourselves (docs/protocol.md, rules H1 to H4).
 * SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/hosts.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/signals.h"
#include "znode/apache/apache.h"
#include "znode/path.h"

enum { RETRY_MS = 1000, HOSTS_MAX = 64, HOST_NAME_BYTES_MAX = 255 };
static const char DEFAULT_PORT[] = "2181";

static int set_host(dv_host *host, const char *name, size_t name_bytes, const char *port, size_t port_bytes,
                    const char **reason) {
    *reason = "has a host without a name";
    if (name_bytes == 0) return DIVVY_EINVAL;
    *reason = "has a host name longer than 255 bytes";
    if (name_bytes > HOST_NAME_BYTES_MAX) return DIVVY_EINVAL;
    *reason = "has a character in a host name that cannot stand there";
    for (size_t i = 0; i < name_bytes; i++) {
        if (!dv_is_alphanumeric(name[i]) && !strchr("-._:%", name[i])) return DIVVY_EINVAL;
    }
    *reason = "has a port that is not a number from 1 to 65535";
    if (port_bytes == 0 || port_bytes >= sizeof host->port) return DIVVY_EINVAL;
    for (size_t i = 0; i < port_bytes; i++) {
        if (!dv_is_digit(port[i])) return DIVVY_EINVAL;
    }
    memcpy(host->port, port, port_bytes);
    host->port[port_bytes] = '\0';
    long number = strtol(host->port, NULL, 10);
    if (number < 1 || number > 65535) return DIVVY_EINVAL;
    host->name = strndup(name, name_bytes);
    return host->name ? 0 : DIVVY_ENOMEM;
}

/* One "name", "name:port", "[ip6]:port" or "ip6" of the list. */
static int parse_host(dv_host *host, const char *text, size_t bytes, const char **reason) {
    while (bytes && *text == ' ') text++, bytes--;
    while (bytes && text[bytes - 1] == ' ') bytes--;
    const char *end = text + bytes;
    const char *port = DEFAULT_PORT;
    size_t port_bytes = strlen(DEFAULT_PORT);
    if (bytes && *text == '[') {
        const char *close = memchr(text, ']', bytes);
        *reason = "has a '[' without ']'";
        if (!close) return DIVVY_EINVAL;
        *reason = "has something other than ':' and a port after ']'";
        if (close + 1 < end && close[1] != ':') return DIVVY_EINVAL;
        if (close + 1 < end) port = close + 2, port_bytes = (size_t)(end - port);
        return set_host(host, text + 1, (size_t)(close - text - 1), port, port_bytes, reason);
    }
    const char *colon = memchr(text, ':', bytes);
    const char *last_colon = memrchr(text, ':', bytes);
    if (colon && colon == last_colon) {
        port = colon + 1;
        port_bytes = (size_t)(end - port);
        end = colon;
    }
    return set_host(host, text, (size_t)(end - text), port, port_bytes, reason);
}

static int parse_chroot(dv_hosts *out, const char *chroot, const char **reason) {
    if (dv_chroot_check(chroot, reason) != 0) return DIVVY_EINVAL;
    out->chroot = strdup(strcmp(chroot, "/") == 0 ? "" : chroot);
    return out->chroot ? 0 : DIVVY_ENOMEM;
}

int dv_hosts_parse(dv_hosts *out, const char *text, const char **reason) {
    const char *unused;
    if (!reason) reason = &unused;
    *out = (dv_hosts){NULL, 0, NULL};
    size_t list_bytes = strcspn(text, "/");
    int error = parse_chroot(out, text + list_bytes, reason);
    out->hosts = calloc(HOSTS_MAX, sizeof *out->hosts);
    if (!error && !out->hosts) error = DIVVY_ENOMEM;
    const char *at = text, *end = text + list_bytes;
    while (!error) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *host_end = comma ? comma : end;
        if (out->count == HOSTS_MAX) {
            *reason = "has more than 64 hosts";
            error = DIVVY_EINVAL;
        } else {
            error = parse_host(&out->hosts[out->count], at, (size_t)(host_end - at), reason);
            if (!error) out->count++;
        }
        if (!comma) break;
        at = comma + 1;
    }
    if (error) dv_hosts_free(out);
    return error;
}

void dv_hosts_free(dv_hosts *hosts) {
    for (size_t i = 0; i < hosts->count; i++) {
        free(hosts->hosts[i].name);
        free(hosts->hosts[i].known);
    }
    free(hosts->hosts);
    free(hosts->chroot);
    *hosts = (dv_hosts){NULL, 0, NULL};
}

static int look_up(const dv_host *host, int flags, struct addrinfo **out) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    return getaddrinfo(host->name, host->port, &hints, out);
}

bool dv_hosts_are_literal(const dv_hosts *hosts) {
    for (size_t i = 0; i < hosts->count; i++) {
        struct addrinfo *found;
        if (look_up(&hosts->hosts[i], AI_NUMERICHOST, &found) != 0) return false;
        freeaddrinfo(found);
    }
    return true;
}

/* Looks a name up. One that cannot be resolved now keeps its addresses (H1). Returns false when an allocation fails. */
static bool look_again(dv_host *host) {
    struct addrinfo *found = NULL;
    size_t count = 0, most = 0;
    int error = look_up(host, 0, &found);
    if (error) return error != EAI_MEMORY;
    for (const struct addrinfo *a = found; a; a = a->ai_next) most++;
    dv_literal *literals = calloc(most, sizeof *literals);
    bool enough = literals;
    for (const struct addrinfo *a = found; a && literals; a = a->ai_next) {
        char ip[INET6_ADDRSTRLEN];
        if (getnameinfo(a->ai_addr, a->ai_addrlen, ip, sizeof ip, NULL, 0, NI_NUMERICHOST) != 0) continue;
        snprintf(literals[count++], sizeof *literals, "%s:%s", ip, host->port);
    }
    freeaddrinfo(found);
    if (count) {
        free(host->known);
        host->known = literals;
        host->known_count = count;
    } else {
        free(literals);
    }
    return enough;
}

/* An "ip:port" of ours. */
static socklen_t to_address(const char *literal, struct sockaddr_storage *out) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    dv_literal ip;
    memcpy(ip, literal, strlen(literal) + 1);
    char *colon = strrchr(ip, ':');
    *colon = '\0';
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    *out = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (getaddrinfo(ip, colon + 1, &hints, &found) != 0) return 0;
    socklen_t bytes = found->ai_addrlen;
    memcpy(out, found->ai_addr, bytes);
    freeaddrinfo(found);
    return bytes;
}

/* A resolution: what has been found so far. */
typedef struct {
    dv_literal *literals;
    const char **names; /* under which each was found */
    size_t count, max;
    char *refusals; /* lines; NULL: none */
} finding;

static void add_refusal(finding *f, const char *name, const char *address, const char *why) {
    char *more;
    bool literal_host = strncmp(address, name, strlen(name)) == 0;
    if (asprintf(&more, "%sthe server %s%s%s%s is not used: %s\n", f->refusals ? f->refusals : "", address,
                 literal_host ? "" : " (", literal_host ? "" : name, literal_host ? "" : ")", why) < 0)
        return;
    free(f->refusals);
    f->refusals = more;
}

static void add_literals(finding *f, const dv_host *host) {
    for (size_t k = 0; k < host->known_count && f->count < f->max; k++) {
        bool repeated = false;
        for (size_t i = 0; i < f->count; i++) repeated |= strcmp(f->literals[i], host->known[k]) == 0;
        if (repeated) continue;
        f->names[f->count] = host->name;
        memcpy(f->literals[f->count++], host->known[k], sizeof *f->literals);
    }
}

typedef struct {
    pthread_t thread;
    bool has_thread;
    const dv_tls *tls;
    const char *name, *address;
    dv_tls_verdict verdict;
    char why[DV_TLS_MESSAGE_BYTES];
} server_look;

static void *look_at(void *argument) {
    server_look *look = argument;
    struct sockaddr_storage where;
    socklen_t where_bytes = to_address(look->address, &where);
    look->verdict =
        dv_tls_check(look->tls, (struct sockaddr *)&where, where_bytes, look->name, look->why, sizeof look->why);
    return NULL;
}

/* Looks at all servers at the same time, as each that hangs takes its time. Leaves those that pass, and those that are
 * not there, which may come back and are left to the native client. Returns false when an allocation fails. */
static bool keep_admitted(finding *f, const dv_tls *tls) {
    server_look *looks = calloc(f->count + 1, sizeof *looks);
    size_t kept = 0;
    for (size_t i = 0; i < f->count && looks; i++) {
        looks[i] = (server_look){.tls = tls, .name = f->names[i], .address = f->literals[i]};
        looks[i].has_thread = pthread_create(&looks[i].thread, NULL, look_at, &looks[i]) == 0;
        if (!looks[i].has_thread) look_at(&looks[i]);
    }
    for (size_t i = 0; i < f->count && looks; i++) {
        if (looks[i].has_thread) pthread_join(looks[i].thread, NULL);
    }
    for (size_t i = 0; i < f->count && looks; i++) {
        if (looks[i].verdict == DV_TLS_REFUSED) add_refusal(f, f->names[i], f->literals[i], looks[i].why);
        else memmove(f->literals[kept++], f->literals[i], sizeof *f->literals);
    }
    f->count = kept;
    free(looks);
    return looks != NULL;
}

static int compare(const void *a, const void *b) {
    return strcmp(a, b);
}

/* Name servers give the addresses of a name in any order: the same ones must lead to the same list. */
static void shuffle(dv_literal *literals, size_t count, uint64_t seed) {
    qsort(literals, count, sizeof *literals, compare);
    for (size_t i = count; i > 1; i--) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t j = (size_t)(seed >> 33) % i;
        dv_literal swap;
        memcpy(swap, literals[i - 1], sizeof swap);
        memcpy(literals[i - 1], literals[j], sizeof swap);
        memcpy(literals[j], swap, sizeof swap);
    }
}

char *dv_hosts_resolve_tls(dv_hosts *hosts, uint64_t seed, const dv_tls *tls, char **refusals, int *error) {
    enum { ADDRESSES_MAX = 4 * HOSTS_MAX };
    dv_literal *literals = calloc(ADDRESSES_MAX + 1, sizeof *literals);
    const char **names = (const char **)calloc(ADDRESSES_MAX, sizeof *names);
    char *text = calloc(ADDRESSES_MAX + 1, sizeof *literals + 1);
    finding f = {.literals = literals, .names = names, .max = ADDRESSES_MAX};
    bool enough = true;
    *error = DIVVY_ENOMEM;
    if (literals && names && text) {
        for (size_t i = 0; i < hosts->count; i++) {
            enough &= look_again(&hosts->hosts[i]);
            add_literals(&f, &hosts->hosts[i]);
        }
        if (tls) enough &= keep_admitted(&f, tls);
        size_t count = f.count;
        shuffle(literals, count, seed);
        /* H3: with an even number of addresses the native client may never reconnect (ZOOKEEPER-2466). */
        if (count && count % 2 == 0) memcpy(literals[count++], literals[0], sizeof *literals);
        for (size_t i = 0; i < count; i++) {
            if (i) strcat(text, ",");
            strcat(text, literals[i]);
        }
        *error = count ? 0 : !enough ? DIVVY_ENOMEM : f.refusals ? DIVVY_ECONNECTION : DIVVY_ERESOLVE;
    }
    free((void *)names);
    free(literals);
    *refusals = f.refusals;
    if (!*error) return text;
    free(text);
    return NULL;
}

char *dv_hosts_resolve(dv_hosts *hosts, uint64_t seed, int *error) {
    char *refusals;
    char *literals = dv_hosts_resolve_tls(hosts, seed, NULL, &refusals, error);
    assert(!refusals);
    return literals;
}

struct dv_resolve_job {
    dv_event event;
    dv_hosts hosts; /* the thread's own */
    dv_hosts *learns;
    uint64_t seed;
    dv_tls *tls;
    int delay_ms;
    dv_sink sink;
    dv_resolved_fn done;
    void *context;
    char *literals, *refusals;
    pthread_mutex_t mutex; /* guards what follows, and so the sink: nothing is posted to a client that went */
    pthread_cond_t dropping;
    bool dropped, waits; /* the second: it has not begun to look */
    int error;
};

static void free_job(dv_resolve_job *job) {
    dv_hosts_free(&job->hosts);
    dv_tls_unref(job->tls);
    free(job->literals);
    free(job->refusals);
    pthread_cond_destroy(&job->dropping);
    pthread_mutex_destroy(&job->mutex);
    free(job);
}

/* The caller's hosts get what the thread has found. */
static void learn(dv_resolve_job *job) {
    dv_host *found = job->hosts.hosts;
    assert(job->learns->count == job->hosts.count);
    job->hosts.hosts = job->learns->hosts;
    job->learns->hosts = found;
}

static void on_job_done(dv_event *event, int64_t now) {
    (void)now;
    dv_resolve_job *job = DV_CONTAINER(event, dv_resolve_job, event);
    /* The thread posted this event with the mutex held: wait until it has let go of it. */
    pthread_mutex_lock(&job->mutex);
    bool dropped = job->dropped;
    assert(dropped || job->literals || job->refusals);
    pthread_mutex_unlock(&job->mutex);
    if (!dropped) {
        char *literals = job->literals, *refusals = job->refusals;
        job->literals = job->refusals = NULL;
        learn(job);
        job->done(job->context, literals, refusals);
    }
    free_job(job);
}

/* With the mutex held. */
static void wait_unless_dropped(dv_resolve_job *job, int delay_ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += delay_ms / 1000;
    int rc = 0;
    while (!job->dropped && rc == 0) rc = pthread_cond_timedwait(&job->dropping, &job->mutex, &until);
}

static void *run_job(void *argument) {
    dv_resolve_job *job = argument;
    pthread_mutex_lock(&job->mutex);
    if (job->delay_ms) wait_unless_dropped(job, job->delay_ms);
    job->waits = false;
    while (!job->dropped && !job->literals && !job->refusals) {
        pthread_mutex_unlock(&job->mutex);
        int error;
        char *refusals;
        char *literals = dv_hosts_resolve_tls(&job->hosts, job->seed, job->tls, &refusals, &error);
        pthread_mutex_lock(&job->mutex);
        job->literals = literals;
        job->refusals = refusals;
        job->error = error;
        if (!literals && !refusals)
            wait_unless_dropped(job, RETRY_MS); /* A name server may know later what it does not now. */
    }
    bool dropped = job->dropped;
    if (!dropped) job->sink.post(job->sink.queue, &job->event);
    pthread_mutex_unlock(&job->mutex);
    if (dropped) free_job(job);
    return NULL;
}

static int copy_hosts(dv_hosts *to, const dv_hosts *from) {
    *to = (dv_hosts){.hosts = calloc(from->count, sizeof *to->hosts), .chroot = strdup(from->chroot)};
    if (!to->hosts || !to->chroot) return DIVVY_ENOMEM;
    for (; to->count < from->count; to->count++) {
        const dv_host *host = &from->hosts[to->count];
        dv_host *copy = &to->hosts[to->count];
        memcpy(copy->port, host->port, sizeof copy->port);
        if (!(copy->name = strdup(host->name))) return DIVVY_ENOMEM;
        if (host->known_count == 0) continue;
        copy->known = malloc(host->known_count * sizeof *copy->known);
        if (copy->known) memcpy(copy->known, host->known, host->known_count * sizeof *copy->known);
        copy->known_count = copy->known ? host->known_count : 0;
    }
    return 0;
}

dv_resolve_job *dv_resolve_start(dv_hosts *hosts, uint64_t seed, dv_tls *tls, int delay_ms, dv_sink sink,
                                 dv_resolved_fn done, void *context) {
    dv_resolve_job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    *job = (dv_resolve_job){
        .learns = hosts, .seed = seed, .delay_ms = delay_ms, .sink = sink, .done = done, .context = context};
    job->waits = delay_ms > 0;
    if (tls) job->tls = dv_tls_ref(tls);
    job->event.run = on_job_done;
    pthread_mutex_init(&job->mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&job->dropping, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_t thread;
    sigset_t signals;
    dv_signals_block(&signals);
    bool started = copy_hosts(&job->hosts, hosts) == 0 && pthread_create(&thread, NULL, run_job, job) == 0;
    dv_signals_restore(&signals);
    if (!started) {
        free_job(job);
        return NULL;
    }
    /* Detached: a name server that does not answer must not hold up divvy_client_close(). */
    pthread_detach(thread);
    return job;
}

int dv_resolve_error(dv_resolve_job *job) {
    pthread_mutex_lock(&job->mutex);
    int error = job->error;
    pthread_mutex_unlock(&job->mutex);
    return error;
}

void dv_resolve_drop(dv_resolve_job *job) {
    pthread_mutex_lock(&job->mutex);
    assert(!job->dropped);
    job->dropped = true;
    pthread_cond_signal(&job->dropping);
    pthread_mutex_unlock(&job->mutex);
}

bool dv_resolve_drop_waiting(dv_resolve_job *job) {
    pthread_mutex_lock(&job->mutex);
    bool waits = job->waits;
    pthread_mutex_unlock(&job->mutex);
    if (waits) dv_resolve_drop(job); /* Should it begin in between, it is as one that was dropped while it looked. */
    return waits;
}
