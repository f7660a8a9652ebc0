/* How full the sessions of a pool's members are: docs/protocol.md, B6. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_STATUS_ROOM_H
#define DV_STATUS_ROOM_H

#include <stdbool.h>
#include <stdio.h>

#include "status_pool.h"

/* The most bytes that the paths of one session's ephemeral nodes may have. */
enum { DV_SESSION_PATH_BYTES = 1024 * 1024 };

/* Sets path_bytes of all members. `root_bytes` is the length of the pool's path, with the chroot. */
void dv_status_room_count(dv_status *status, size_t root_bytes);

/* Returns how many items the plan gives the member that its session has no room for. */
size_t dv_status_room_short(const dv_status_member *member);

/* Returns how many sessions its process should have, that the share of each fits; it may have several already. */
size_t dv_status_room_sessions(const dv_status *status, const dv_status_member *member);

/* Prints a line about sessions that are full; nothing where there is none. */
void dv_status_room_print(const dv_status *status, FILE *to);

#endif
