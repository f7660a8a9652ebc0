/* Collect: all entries of a role, or of all, for a caller that waits. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_COLLECT_H
#define DV_COLLECT_H

#include "registry/registry.h"

typedef struct {
    dv_entry **entries;
    size_t count;
} dv_collected;

/* With the client lock held. The servers' clock is known afterwards, unless no entry asks for it, and was learned
 * lately, unless that was denied. 0, or an error with its message. */
int dv_collect(divvy_registry *registry, const char *role_node, dv_collected *out, int64_t timeout_ms);
void dv_collected_free(dv_collected *collected);

/* The roles that have a child of this name; the strings are the caller's. As above. */
int dv_collect_roles_of(divvy_registry *registry, const char *id_node, char ***roles, size_t *count,
                        dv_deadline deadline);

#endif
