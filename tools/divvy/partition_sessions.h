/* The options of each member, where --sessions divides those of the process. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PARTITION_SESSIONS_H
#define DV_PARTITION_SESSIONS_H

#include <stddef.h>

#include "partition_options.h"

/* Returns why the options cannot be divided, or NULL. */
const char *dv_partition_sessions_wrong(const dv_partition_options *options);

/* Writes the options of member `index`, from 0, to *own: an even part of weight and cap, a name and a file of metrics
 * with its number. With one session it has all as it was given. The rest points to what `options` point to. Returns 0,
 * or -1 when an allocation failed. Release *own with dv_partition_sessions_free() in each case. */
int dv_partition_sessions_divide(const dv_partition_options *options, size_t index, dv_partition_options *own);

void dv_partition_sessions_free(dv_partition_options *own);

#endif
