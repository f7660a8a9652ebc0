/* Connect strings and their names. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_HOSTS_H
#define DV_HOSTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "znode/apache/job.h"
#include "znode/apache/probe.h"

typedef struct {
    char literal[INET6_ADDRSTRLEN + 8]; /* "ip:port" */
    dv_server_address where;
} dv_address;

typedef struct {
    char name[256]; /* without brackets */
    char port[6];
    dv_address *known; /* its addresses when it was last resolved; NULL: never yet */
    size_t known_count;
} dv_host;

typedef struct {
    dv_host *hosts;
    size_t count;
    char *text;         /* all as given */
    const char *chroot; /* "" or "/a/b", in that text */
} dv_hosts;

/* "h1:2181,[::1]:2182/chroot". 0, or DIVVY_EINVAL with *reason set to a static text, or DIVVY_ENOMEM. */
int dv_hosts_parse(dv_hosts *out, const char *text, const char **reason);
void dv_hosts_free(dv_hosts *hosts);

/* Returns whether every host is an IP literal: then resolving them needs no thread. */
bool dv_hosts_are_literal(const dv_hosts *hosts);

/* Returns the literals "ip:port,ip:port,..." of all hosts by H1 and H3, in an order mixed by `seed`, which the caller
 * frees. Over TLS, unless `tls` is NULL, only of servers that dv_tls_check() passes or that are not there. *refusals
 * gets a line on each of the others, or NULL; malloc'ed. Blocks on names and handshakes. Returns NULL with *error
 * DIVVY_ERESOLVE when no address is known, DIVVY_ECONNECTION when all were refused, or DIVVY_ENOMEM. */
char *dv_hosts_resolve(dv_hosts *hosts, uint64_t seed, const dv_tls *tls, char **refusals, int *error);

/* `done` owns what it is given. Where literals is NULL, `error` says why, as of dv_hosts_resolve(). */
typedef void (*dv_resolved_fn)(void *context, char *literals, char *refusals, int error);
/* Resolves once, in the background, after delay_ms. `hosts` lives until `done`, by when it has learned them, or the
 * drop. Returns NULL when memory or threads are out. */
dv_job *dv_resolve_start(dv_hosts *hosts, uint64_t seed, dv_tls *tls, int delay_ms, dv_sink sink, dv_resolved_fn done,
                         void *context);
/* Returns whether the look has not begun yet. */
bool dv_resolve_waits(const dv_job *job);

#endif
