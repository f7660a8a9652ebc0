/* Services: the healthy ones of a role, or of all, at one moment. SPDX-License-Identifier: Apache-2.0
 *
 * A divvy_services (registry.h) is immutable and shared by reference, among threads, too. docs/protocol.md, V4, V5. */
#ifndef DV_SERVICES_H
#define DV_SERVICES_H

#include "divvy/registry.h"
#include "registry/entry.h"

/* Makes the list of those entries that are healthy then, in the order of lookups. NULL: no memory. */
divvy_services *dv_services_new(const dv_entries *entries, int64_t server_now_ms);
divvy_services *dv_services_ref(divvy_services *services);
/* Puts `after` in the place of `before`, as these are in the view; each may be NULL. *list becomes another list where
 * somebody else has it, too. Returns false when an allocation fails: then *list is of no further use. */
bool dv_services_change(divvy_services **list, dv_entry *before, dv_entry *after, int64_t server_now_ms);
/* Returns whether the same entries are healthy at another moment. False may be too careful, after a change. */
bool dv_services_hold_at(const divvy_services *services, int64_t server_now_ms);

#endif
