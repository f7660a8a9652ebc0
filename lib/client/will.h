/* The will of a client: what its death watch needs to end its session. SPDX-License-Identifier: Apache-2.0
 *
 * Rule C10 of docs/protocol.md. One message on the socket to the death watch holds a whole will, and takes the place of
 * the one before. Pure: no I/O, no clock. What came by the socket is hostile until it is parsed. */
#ifndef DV_WILL_H
#define DV_WILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Timeouts are 32 bits wide between client and server. */
enum {
    DV_WILL_BYTES_MAX = 64 * 1024,
    DV_WILL_POOLS_MAX = 64,
    DV_WILL_TIMEOUT_MAX_MS = INT32_MAX,
    DV_SESSION_PASSWORD_BYTES = 16
};

/* The settings of a connection, as divvy_client_config has them; `hosts` without the chroot. */
typedef enum {
    DV_WILL_HOSTS,
    DV_WILL_AUTH_SCHEME,
    DV_WILL_AUTH,
    DV_WILL_TLS_CA_FILE,
    DV_WILL_TLS_CERTIFICATE_FILE,
    DV_WILL_TLS_KEY_FILE,
    DV_WILL_TLS_KEY_PASSWORD_FILE,
    DV_WILL_SASL_MECHANISM,
    DV_WILL_SASL_USER,
    DV_WILL_SASL_PASSWORD_FILE,
    DV_WILL_SASL_SERVICE,
    DV_WILL_SASL_HOST,
    DV_WILL_TEXTS
} dv_will_text;

typedef struct {
    const char *path;   /* at the servers, with the chroot */
    const char *member; /* its identifier */
} dv_will_pool;

typedef struct {
    int64_t session_id; /* 0: none is to be ended */
    int64_t timeout_ms;
    int64_t delay_ms; /* for which the watch waits, once nothing is left, before it ends the session */
    char password[DV_SESSION_PASSWORD_BYTES];
    int acl;                          /* of what is recorded: DIVVY_ACL_OPEN, _CREATOR or _READABLE */
    const char *texts[DV_WILL_TEXTS]; /* NULL: not set */
    size_t pool_count;
    dv_will_pool pools[DV_WILL_POOLS_MAX]; /* that the client is a member of */
} dv_will;

/* Writes a will as a message. Returns its bytes, or 0 where it needs more than `room`: then `out` is zeroed. */
size_t dv_will_print(const dv_will *will, char *out, size_t room);

/* Takes a message; texts of *out point into it. Returns 0 or DIVVY_EPROTO. */
int dv_will_parse(dv_will *out, const char *message, size_t bytes);

/* Returns whether a death watch may end the session now (C10): it was told of one, the member's process has ended, and
 * nothing that ran under the process is left. */
bool dv_will_is_due(bool told, bool process_ended, bool all_gone);

#endif
