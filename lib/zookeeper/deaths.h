/* Writing down that members of pools have died. SPDX-License-Identifier: Apache-2.0
 *
 * Rule D45 of docs/protocol.md. The members that are left see a session end, and cannot know why. */
#ifndef DV_DEATHS_H
#define DV_DEATHS_H

#include "client/will.h"
#include "divvy/client.h"

/* Writes it down in each pool of the will, on a session of its own, once the will's session has ended. `seen_ms`: that
 * long after its process. Gives up at until_ms by CLOCK_BOOTTIME. */
void dv_deaths_record(const divvy_client_config *config, const dv_will *will, int64_t seen_ms, int64_t until_ms);

#endif
