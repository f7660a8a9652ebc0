/* Other servers for a handle that is open: docs/protocol.md, H1. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "znode/apache/apache.h"

int dv_apache_silent_ms(const dv_apache *apache) {
    int silent_ms = apache->requested_timeout_ms / 3 * 2;
    return silent_ms > DV_SILENCE_MIN_MS ? silent_ms : DV_SILENCE_MIN_MS;
}

/* Where a connection ends that was made, the native client still has to tell of it, and would not once it has other
 * servers. Then the next one that fails will do. */
void dv_apache_take_servers(dv_apache *apache, const char *line) {
    if (!strstr(line, " zk retcode=")) return;
    pthread_mutex_lock(&apache->next_mutex);
    int state = apache->next_servers ? zoo_state(apache->handle) : ZOO_CONNECTED_STATE;
    char *servers = state == ZOO_CONNECTED_STATE || state == ZOO_READONLY_STATE ? NULL : apache->next_servers;
    if (servers) apache->next_servers = NULL;
    pthread_mutex_unlock(&apache->next_mutex);
    if (!servers) return;
    zoo_set_servers(apache->handle, servers);
    dv_silence_watch(apache->silence, servers, dv_apache_silent_ms(apache));
}

/* zoo_set_servers() may close the connection, here under the native client's I/O thread. In a TLS handshake that is a
 * crash, so that over TLS this thread does it itself, where it tells of a connection that has failed. A session without
 * a slot of the log has no such moment. */
bool dv_apache_give_servers(dv_apache *apache) {
    char *servers = apache->tls ? strdup(apache->servers) : NULL;
    if (apache->tls && !servers) return false;
    if (!apache->tls || apache->log_slot < 0) {
        zoo_set_servers(apache->handle, apache->servers);
        if (servers) dv_silence_watch(apache->silence, servers, dv_apache_silent_ms(apache));
        return true;
    }
    pthread_mutex_lock(&apache->next_mutex);
    char *before = apache->next_servers;
    apache->next_servers = servers;
    pthread_mutex_unlock(&apache->next_mutex);
    free(before);
    if (apache->state != DIVVY_CONNECTED) dv_silence_allow(apache->silence, DV_SILENCE_MIN_MS);
    return true;
}
