/* Watch: live views of a registry, as the rest of it uses them. SPDX-License-Identifier: Apache-2.0
 *
 * All calls are made with the client lock held. Roles are names of nodes; NULL: all. */
#ifndef DV_WATCH_H
#define DV_WATCH_H

#include "registry/cache.h"
#include "registry/registry.h"

/* W17: returns whether lookups in a role are answered from a view. */
bool dv_registry_view_ready(const divvy_registry *registry, const char *role_node);
/* Gives the healthy services of a view that is ready; *out is the caller's. Returns 0 or DIVVY_ENOMEM. */
int dv_registry_view_services(divvy_registry *registry, const char *role_node, divvy_services **out);
/* Visits all slots of the view, also those with no entry (dv_cache_each()). */
void dv_registry_view_each(const divvy_registry *registry, const char *role_node,
                           void (*visit)(void *context, dv_slot *slot), void *context);
/* Ends all views, once, when the registry is closed. `waits`: gives up the client lock while a callback runs. */
void dv_registry_end_watches(divvy_registry *registry, bool waits);

#endif
