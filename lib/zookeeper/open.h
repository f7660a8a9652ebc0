/* Clients with a session of their own on real servers. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_OPEN_H
#define DV_OPEN_H

#include "client/client.h"

/* Opens a client that reads and writes but owns nothing. Returns as divvy_client_open(). */
int dv_client_open_to_look(divvy_client **out, const divvy_client_config *config);

#endif
