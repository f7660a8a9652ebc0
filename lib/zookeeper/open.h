/* Clients with a session of their own on real servers. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_OPEN_H
#define DV_OPEN_H

#include "client/client.h"
#include "znode/apache/backend.h"

/* Opens a client that reads and writes but owns nothing. Returns as divvy_client_open(). */
int dv_client_open_to_look(divvy_client **out, const divvy_client_config *config);

/* Opens a client whose death watch runs already, at the other end of a socket, which stays the caller's. Returns as
 * divvy_client_open(). */
int dv_client_open_watched(divvy_client **out, const divvy_client_config *config, int watch_fd);

/* Takes up a session that was another process's, to end it by divvy_client_close() once it is connected. Where that
 * session has ended, divvy_client_wait_connected() says DIVVY_ELOST. Returns as divvy_client_open(). */
int dv_client_open_to_end(divvy_client **out, const divvy_client_config *config, const dv_session_key *key);

#endif
