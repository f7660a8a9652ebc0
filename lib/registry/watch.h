/* Watch: live views of a registry, as the rest of it uses them. SPDX-License-Identifier: Apache-2.0
 *
 * All calls are made with the client lock held. Roles are names of nodes; NULL: all. */
#ifndef DV_WATCH_H
#define DV_WATCH_H

#include "registry/registry.h"

/* Returns whether lookups in a role are to be answered from a view: it is watched, and was read as a whole in this
 * session. */
bool dv_registry_view_ready(const divvy_registry *registry, const char *role_node);
/* All entries of the view, healthy or not. A preserved one counts as healthy, and ranks after all others. `visit`
 * copies what it wants to keep. */
void dv_registry_view_each(const divvy_registry *registry, const char *role_node,
                           void (*visit)(void *context, const dv_entry *entry, bool preserved), void *context);
/* Returns how many entries the views have, healthy or not. */
size_t dv_registry_count_watched(const divvy_registry *registry);
/* Once, when the registry is closed. `waits`: gives up the client lock while a callback runs. */
void dv_registry_end_watches(divvy_registry *registry, bool waits);

#endif
