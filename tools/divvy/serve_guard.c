/* The guard of divvy serve. SPDX-License-Identifier: Apache-2.0 */
#include "serve_guard.h"

#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "connection.h"

void dv_serve_guard_init(dv_serve_guard *guard) {
    pthread_mutex_init(&guard->lock, NULL);
    for (size_t i = 0; i < DV_SERVE_CONNECTIONS_MAX; i++) guard->peers[i].fd = -1;
}

/* ---- how long ---- */

static dv_serve_peer *find_free(dv_serve_guard *guard) {
    for (size_t i = 0; i < DV_SERVE_CONNECTIONS_MAX; i++) {
        if (guard->peers[i].fd < 0) return &guard->peers[i];
    }
    return NULL;
}

void dv_serve_guard_notify(void *cls, struct MHD_Connection *connection, void **place,
                           enum MHD_ConnectionNotificationCode code) {
    dv_serve_guard *guard = cls;
    pthread_mutex_lock(&guard->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        dv_serve_peer *peer = find_free(guard);
        if (peer && info) *peer = (dv_serve_peer){info->connect_fd, DV_SERVE_ASKING, dv_session_now_ms()};
        *place = peer;
    } else if (*place) {
        ((dv_serve_peer *)*place)->fd = -1; /* Before its number is given to another. */
        *place = NULL;
    }
    pthread_mutex_unlock(&guard->lock);
}

void dv_serve_guard_phase(dv_serve_guard *guard, struct MHD_Connection *connection, dv_serve_phase phase) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    pthread_mutex_lock(&guard->lock);
    dv_serve_peer *peer = info ? info->socket_context : NULL;
    if (peer) {
        peer->phase = phase;
        peer->since_ms = dv_session_now_ms();
    }
    pthread_mutex_unlock(&guard->lock);
}

void dv_serve_guard_sweep(dv_serve_guard *guard) {
    int64_t now_ms = dv_session_now_ms();
    pthread_mutex_lock(&guard->lock);
    for (size_t i = 0; i < DV_SERVE_CONNECTIONS_MAX; i++) {
        const dv_serve_peer *peer = &guard->peers[i];
        int64_t most_ms = peer->phase == DV_SERVE_ASKING ? DV_SERVE_REQUEST_MS : DV_SERVE_ANSWER_MS;
        if (peer->fd < 0 || peer->phase == DV_SERVE_STREAMING || now_ms - peer->since_ms < most_ms) continue;
        shutdown(peer->fd, SHUT_RDWR); /* The daemon sees its end, and closes it. */
    }
    pthread_mutex_unlock(&guard->lock);
}

/* ---- who ---- */

/* Returns whether a Host is this machine's own: localhost, 127.*, or [::1]. A name that a name server leads here is a
 * foreign page's way to read what is served to this machine alone. Any port will do: tunnels have their own. */
static bool is_own_host(const char *host) {
    size_t bytes = 0;
    if (!host) return false;
    if (strncasecmp(host, "localhost", 9) == 0) bytes = 9;
    else if (strncmp(host, "[::1]", 5) == 0) bytes = 5;
    else if (strncmp(host, "127.", 4) == 0) bytes = strspn(host, "0123456789.");
    const char *port = host + bytes;
    return bytes && (*port == '\0' || (*port == ':' && strspn(port + 1, "0123456789") == strlen(port + 1)));
}

/* Returns whether a browser says that another site's page asks; a link from there to the page itself is welcome. */
static bool is_foreign(struct MHD_Connection *connection, const char *url) {
    const char *site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");
    return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0 && strcmp(url, "/") != 0;
}

static bool has_body(struct MHD_Connection *connection) {
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (length && strcmp(length, "0") != 0) ||
           MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

unsigned dv_serve_guard_judge(struct MHD_Connection *connection, const char *url, const char *method, bool loopback) {
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    if (has_body(connection)) return MHD_HTTP_BAD_REQUEST;
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    if (loopback && !is_own_host(host)) return MHD_HTTP_MISDIRECTED_REQUEST;
    return is_foreign(connection, url) ? MHD_HTTP_FORBIDDEN : 0;
}
