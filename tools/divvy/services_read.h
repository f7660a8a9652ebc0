/* The registry as it stands. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SERVICES_READ_H
#define DV_SERVICES_READ_H

#include "look.h"
#include "registry/entry.h"

/* A node of the registry. */
typedef struct {
    char *role_node, *id_node;
    dv_entry *entry; /* NULL: it is none, or has gone */
} dv_services_node;

typedef struct {
    const char *path; /* of the registry, as it was given */
    const char *role; /* NULL: all */
    dv_services_node *nodes;
    size_t node_count;
    dv_entry **entries; /* those of the nodes: by role, then by load */
    size_t entry_count;
    size_t malformed_count; /* nodes that are no entries */
    size_t hidden;          /* nodes that may not be read; of a role that was asked for only those in it */
    int64_t server_ms;      /* what the servers' clock shows, as far as can be told without a write */
} dv_services;

/* For dv_look_at(): fills in all but `path` and `role` of the dv_services at `context`. Its former contents are
 * freed. */
int dv_services_read(dv_look *look, void *context);

/* All but `path` and `role`. */
void dv_services_clear(dv_services *services);

/* Returns "healthy", "stale" or "disabled". */
const char *dv_services_health(const dv_services *services, const dv_entry *entry);
/* Returns a number that the entry has, or 0. */
int64_t dv_services_number(const dv_entry *entry, const char *key);
/* Returns Curator's address and port, or the host that doublethink's entries have; malloc'ed. */
char *dv_services_address(const dv_entry *entry);

#endif
