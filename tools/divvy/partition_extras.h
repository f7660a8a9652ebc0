/* The options of `divvy partition` for loads, rules of the deal, and quarantine. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PARTITION_EXTRAS_H
#define DV_PARTITION_EXTRAS_H

#include "partition_options.h"

/* Returns what is wrong with them, or NULL; it lives until the next call. Fills in what texts say. */
const char *dv_partition_extras_wrong(dv_partition_options *options);

/* Sets the defaults of what was not given. */
void dv_partition_extras_finish(dv_partition_options *options);

#endif
