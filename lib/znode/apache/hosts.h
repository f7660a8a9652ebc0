/* Connect strings and their names. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_HOSTS_H
#define DV_HOSTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "znode/apache/tls.h"
#include "znode/znode.h"

typedef char dv_literal[INET6_ADDRSTRLEN + 8]; /* "ip:port" */

typedef struct {
    char *name; /* without brackets */
    char port[6];
    dv_literal *known; /* its addresses when it was last resolved; NULL: never yet */
    size_t known_count;
} dv_host;

typedef struct {
    dv_host *hosts;
    size_t count;
    char *chroot; /* "" or "/a/b" */
} dv_hosts;

/* "h1:2181,[::1]:2182/chroot". 0, or DIVVY_EINVAL with *reason set to a static text, or DIVVY_ENOMEM. */
int dv_hosts_parse(dv_hosts *out, const char *text, const char **reason);
void dv_hosts_free(dv_hosts *hosts);

/* Returns whether every host is an IP literal: then resolving them needs no thread. */
bool dv_hosts_are_literal(const dv_hosts *hosts);

/* Returns the literals "ip:port,ip:port,..." of all hosts, an odd number of them, in an order mixed by `seed`. The
 * caller frees them. A name that cannot be resolved now keeps the addresses that it had, which `hosts` remembers (H1).
 * NULL with *error DIVVY_ERESOLVE when no address is known of any, or DIVVY_ENOMEM. May block on names. */
char *dv_hosts_resolve(dv_hosts *hosts, uint64_t seed, int *error);

/* The same over TLS: of servers that dv_tls_check() passes, and of those that are not there. Takes its time. *refusals
 * gets a line on each of the others, or NULL; malloc'ed. DIVVY_ECONNECTION when there were only others. */
char *dv_hosts_resolve_tls(dv_hosts *hosts, uint64_t seed, const dv_tls *tls, char **refusals, int *error);

/* A resolution in the background. It is repeated each second until an address is known, and then ends in one event in
 * the queue, which calls `done` unless the job was dropped; `done` owns what it is given. Over TLS, literals is NULL
 * when all servers were refused. */
typedef struct dv_resolve_job dv_resolve_job;
typedef void (*dv_resolved_fn)(void *context, char *literals, char *refusals);
/* The first try is made after delay_ms. `hosts` outlives the job, or its being dropped, and has learned the addresses
 * when `done` is called. `tls` NULL: no TLS. NULL when memory or threads are out. */
dv_resolve_job *dv_resolve_start(dv_hosts *hosts, uint64_t seed, dv_tls *tls, int delay_ms, dv_sink sink,
                                 dv_resolved_fn done, void *context);
/* DIVVY_ERESOLVE once a try has failed, else 0. */
int dv_resolve_error(dv_resolve_job *job);
/* With the client lock held: `done` will not be called. The job's memory goes when its thread has ended. */
void dv_resolve_drop(dv_resolve_job *job);
/* The same where its first try has not been made yet. Returns whether that is so. */
bool dv_resolve_drop_waiting(dv_resolve_job *job);

#endif
