/* Connect strings, and resolving their names ourselves (H1 to H4). SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/hosts.h"

#include <assert.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/threads.h"
#include "znode/path.h"

enum { HOSTS_MAX = 64, ADDRESSES_MAX = 4 * HOSTS_MAX };

/* ---- connect strings ---- */

/* Returns false with a reason when the name or the port is none. */
static bool set_host(dv_host *host, const char *name, const char *port, const char **reason) {
    *reason = "has a host without a name";
    if (!*name) return false;
    *reason = "has a host name longer than 255 bytes";
    if (strlen(name) >= sizeof host->name) return false;
    *reason = "has a character in a host name that cannot stand there";
    for (const char *at = name; *at; at++) {
        if (!dv_is_alphanumeric(*at) && !strchr("-._:%", *at)) return false;
    }
    *reason = "has a port that is not a number from 1 to 65535";
    if (strlen(port) >= sizeof host->port || strspn(port, "0123456789") != strlen(port)) return false;
    long number = strtol(port, NULL, 10);
    if (number < 1 || number > 65535) return false;
    strcpy(host->name, name);
    strcpy(host->port, port);
    return true;
}

/* One "name", "name:port", "[ip6]:port" or "ip6" of the list. It is taken apart. */
static bool parse_host(dv_host *host, char *text, const char **reason) {
    text += strspn(text, " ");
    for (size_t bytes = strlen(text); bytes && text[bytes - 1] == ' '; bytes--) text[bytes - 1] = '\0';
    const char *name = text, *port = "2181";
    char *colon = strchr(text, ':');
    if (*text == '[') {
        char *close = strchr(text, ']');
        *reason = "has a '[' without ']'";
        if (!close) return false;
        *reason = "has something other than ':' and a port after ']'";
        if (close[1] && close[1] != ':') return false;
        if (close[1]) port = close + 2;
        *close = '\0';
        name++;
    } else if (colon && !strchr(colon + 1, ':')) {
        port = colon + 1;
        *colon = '\0';
    }
    return set_host(host, name, port, reason);
}

int dv_hosts_parse(dv_hosts *out, const char *text, const char **reason) {
    const char *unused;
    if (!reason) reason = &unused;
    size_t list_bytes = strcspn(text, "/");
    char *list = strndup(text, list_bytes), *rest = list;
    *out = (dv_hosts){.hosts = calloc(HOSTS_MAX, sizeof *out->hosts), .text = strdup(text)};
    int error = list && out->hosts && out->text ? 0 : DIVVY_ENOMEM;
    if (!error && dv_chroot_check(text + list_bytes, reason) != 0) error = DIVVY_EINVAL;
    for (char *host; !error && (host = strsep(&rest, ","));) {
        *reason = out->count == HOSTS_MAX ? "has more than 64 hosts" : NULL;
        if (*reason || !parse_host(&out->hosts[out->count++], host, reason)) error = DIVVY_EINVAL;
    }
    free(list);
    if (error) dv_hosts_free(out);
    else out->chroot = strcmp(text + list_bytes, "/") == 0 ? "" : out->text + list_bytes;
    return error;
}

void dv_hosts_free(dv_hosts *hosts) {
    for (size_t i = 0; i < hosts->count; i++) free(hosts->hosts[i].known);
    free(hosts->hosts);
    free(hosts->text);
    *hosts = (dv_hosts){.hosts = NULL};
}

/* ---- their addresses ---- */

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
    dv_address *addresses = calloc(most, sizeof *addresses);
    bool enough = addresses;
    for (const struct addrinfo *a = found; a && addresses; a = a->ai_next) {
        char ip[INET6_ADDRSTRLEN];
        if (getnameinfo(a->ai_addr, a->ai_addrlen, ip, sizeof ip, NULL, 0, NI_NUMERICHOST) != 0) continue;
        addresses[count].where = dv_server_address_of(a->ai_addr, a->ai_addrlen);
        snprintf(addresses[count++].literal, sizeof addresses->literal, "%s:%s", ip, host->port);
    }
    freeaddrinfo(found);
    if (count) {
        free(host->known);
        host->known = addresses;
        host->known_count = count;
    } else {
        free(addresses);
    }
    return enough;
}

/* A server that was found, and what is seen of it over TLS. */
typedef struct {
    dv_address address; /* first */
    const char *name;   /* under which it was found */
    const dv_tls *tls;
    pthread_t thread;
    bool has_thread;
    dv_tls_verdict verdict;
    char why[DV_TLS_MESSAGE_BYTES];
} server;

static size_t add_servers(server *servers, size_t count, const dv_host *host) {
    for (size_t k = 0; k < host->known_count && count < ADDRESSES_MAX; k++) {
        const dv_address *address = &host->known[k];
        bool repeated = false;
        for (size_t i = 0; i < count; i++) repeated |= strcmp(servers[i].address.literal, address->literal) == 0;
        if (!repeated) servers[count++] = (server){.address = *address, .name = host->name};
    }
    return count;
}

static void *look_at(void *argument) {
    server *s = argument;
    s->verdict = dv_tls_check(s->tls, &s->address.where, s->name, s->why);
    return NULL;
}

static void add_refusal(char **refusals, const server *s) {
    char *more;
    bool named = strncmp(s->address.literal, s->name, strlen(s->name)) != 0;
    if (asprintf(&more, "%sthe server %s%s%s%s is not used: %s\n", *refusals ? *refusals : "", s->address.literal,
                 named ? " (" : "", named ? s->name : "", named ? ")" : "", s->why) < 0)
        return;
    free(*refusals);
    *refusals = more;
}

/* Looks at all servers at once, as each may hang. Leaves those that pass or are not there. Returns how many. */
static size_t keep_admitted(server *servers, size_t count, const dv_tls *tls, char **refusals) {
    size_t kept = 0;
    for (server *s = servers; s < servers + count; s++) {
        s->tls = tls;
        s->has_thread = pthread_create(&s->thread, NULL, look_at, s) == 0;
        if (!s->has_thread) look_at(s);
    }
    for (server *s = servers; s < servers + count; s++) {
        if (s->has_thread) pthread_join(s->thread, NULL);
    }
    for (server *s = servers; s < servers + count; s++) {
        if (s->verdict == DV_TLS_REFUSED) add_refusal(refusals, s);
        else servers[kept++] = *s;
    }
    return kept;
}

/* The literal stands first in a server. */
static int compare(const void *a, const void *b) {
    return strcmp(a, b);
}

/* Name servers give the addresses of a name in any order: the same ones must lead to the same list. */
static void shuffle(server *servers, size_t count, uint64_t seed) {
    qsort(servers, count, sizeof *servers, compare);
    for (size_t i = count; i > 1; i--) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t j = (size_t)(seed >> 33) % i;
        server swap = servers[i - 1];
        servers[i - 1] = servers[j];
        servers[j] = swap;
    }
}

/* Returns "ip:port,ip:port,...", malloc'ed. */
static char *join(const server *servers, size_t count) {
    char *text = calloc(count + 2, sizeof servers->address.literal + 1), *at = text;
    for (size_t i = 0; i < count && text; i++) at += sprintf(at, "%s%s", i ? "," : "", servers[i].address.literal);
    /* H3: with an even number of addresses the native client may never reconnect (ZOOKEEPER-2466). */
    if (text && count % 2 == 0) sprintf(at, ",%s", servers[0].address.literal);
    return text;
}

char *dv_hosts_resolve(dv_hosts *hosts, uint64_t seed, const dv_tls *tls, char **refusals, int *error) {
    server *servers = calloc(ADDRESSES_MAX, sizeof *servers);
    char *text = NULL;
    size_t count = 0;
    bool enough = servers;
    *refusals = NULL;
    for (size_t i = 0; i < hosts->count && servers; i++) {
        enough &= look_again(&hosts->hosts[i]);
        count = add_servers(servers, count, &hosts->hosts[i]);
    }
    if (tls) count = keep_admitted(servers, count, tls, refusals);
    if (count) {
        shuffle(servers, count, seed);
        text = join(servers, count);
    }
    *error = text ? 0 : count || !enough ? DIVVY_ENOMEM : *refusals ? DIVVY_ECONNECTION : DIVVY_ERESOLVE;
    free(servers);
    return text;
}

/* ---- in the background ---- */

typedef struct {
    dv_job job;     /* first */
    dv_hosts hosts; /* the thread's own */
    dv_hosts *learns;
    uint64_t seed;
    dv_tls *tls;
    int delay_ms;
    dv_resolved_fn done;
    void *context;
    char *literals, *refusals;
    int error;
    atomic_bool waits; /* it has not begun to look */
} resolve_job;

static void free_job(dv_job *base) {
    resolve_job *job = (resolve_job *)(void *)base;
    dv_hosts_free(&job->hosts);
    dv_tls_unref(job->tls);
    free(job->literals);
    free(job->refusals);
    free(job);
}

/* The caller's hosts get what the thread has found. */
static void on_done(dv_job *base, int64_t now) {
    (void)now;
    resolve_job *job = (resolve_job *)(void *)base;
    char *literals = job->literals, *refusals = job->refusals;
    dv_host *found = job->hosts.hosts;
    assert(job->learns->count == job->hosts.count && !literals == !!job->error);
    job->literals = job->refusals = NULL;
    job->hosts.hosts = job->learns->hosts;
    job->learns->hosts = found;
    job->done(job->context, literals, refusals, job->error);
}

static void work(dv_job *base) {
    resolve_job *job = (resolve_job *)(void *)base;
    bool goes_on = !job->delay_ms || dv_job_sleep(base, job->delay_ms);
    atomic_store(&job->waits, false);
    if (goes_on) job->literals = dv_hosts_resolve(&job->hosts, job->seed, job->tls, &job->refusals, &job->error);
}

/* Returns false when an allocation fails. Only the addresses may be missing then. */
static bool copy_hosts(dv_hosts *to, const dv_hosts *from) {
    *to = (dv_hosts){.hosts = calloc(from->count, sizeof *to->hosts)};
    for (; to->hosts && to->count < from->count; to->count++) {
        const dv_host *host = &from->hosts[to->count];
        dv_host *copy = &to->hosts[to->count];
        *copy = *host;
        copy->known = host->known_count ? malloc(host->known_count * sizeof *host->known) : NULL;
        if (copy->known) memcpy(copy->known, host->known, host->known_count * sizeof *host->known);
        else copy->known_count = 0;
    }
    return to->hosts;
}

dv_job *dv_resolve_start(dv_hosts *hosts, uint64_t seed, dv_tls *tls, int delay_ms, dv_sink sink, dv_resolved_fn done,
                         void *context) {
    resolve_job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    *job = (resolve_job){.job = {.work = work, .done = on_done, .free = free_job, .sink = sink},
                         .learns = hosts,
                         .seed = seed,
                         .tls = dv_tls_ref(tls),
                         .delay_ms = delay_ms,
                         .done = done,
                         .context = context,
                         .waits = delay_ms > 0};
    if (copy_hosts(&job->hosts, hosts)) return dv_job_start(&job->job) ? &job->job : NULL;
    free_job(&job->job);
    return NULL;
}

bool dv_resolve_waits(const dv_job *job) {
    return atomic_load(&((const resolve_job *)(const void *)job)->waits);
}
