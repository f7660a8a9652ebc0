/* Collect: all entries of a role, or of all, for a caller that waits. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_COLLECT_H
#define DV_COLLECT_H

#include "registry/registry.h"

/* With the client lock held. The servers' clock is known afterwards, unless no entry asks for it, and was learned
 * lately, unless that was denied. 0, or an error with its message. */
int dv_collect(divvy_registry *registry, const char *role_node, dv_entries *out, int64_t timeout_ms);

/* The roles that have a child of this name, to be freed by the caller. As above. */
int dv_collect_roles_of(divvy_registry *registry, const char *id_node, divvy_strings **roles, dv_deadline deadline);

#endif
