/* The members of a pool that died, as a death watch wrote them down. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_DEATHS_READ_H
#define DV_DEATHS_READ_H

#include "look.h"
#include "plan/deaths.h"

/* Reads them, inside of `ask` of dv_look_at(), of the pool that stands at `root` at the servers. What cannot be read
 * counts as none. Returns 0, or an error of the look. */
int dv_deaths_read(dv_look *look, const char *root, dv_plan_deaths *out);

#endif
