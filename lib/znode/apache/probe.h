/* Looks at a server over a connection of our own. SPDX-License-Identifier: Apache-2.0
 *
 * The native client checks at each connection that a certificate comes from a CA. It checks no name, tells no cause,
 * and waits without end for a handshake. So before a server comes into its list we make one of our own, with a
 * deadline, that checks the name and tells causes apart. silence.h is for servers that fall silent later. */
#ifndef DV_PROBE_H
#define DV_PROBE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "znode/apache/tls.h"

/* Where a server listens. bytes 0: not known. */
typedef struct {
    struct sockaddr_storage address;
    socklen_t bytes;
} dv_server_address;

dv_server_address dv_server_address_of(const struct sockaddr *address, socklen_t bytes);

typedef enum {
    DV_TLS_PASSED,
    DV_TLS_UNREACHABLE, /* nothing listens there, now, or it hangs up */
    DV_TLS_REFUSED,     /* it must not be used: the message says why */
} dv_tls_verdict;

/* Shakes hands with the server, which its user calls `name`, and asks for a sign of life, within DV_TLS_CHECK_MS. */
enum { DV_TLS_CHECK_MS = 5000 };
dv_tls_verdict dv_tls_check(const dv_tls *tls, const dv_server_address *where, const char *name, char *message);

/* Sends a four letter word, over TLS to a server in the list unless `tls` is NULL, and reads the answer, until
 * dv_monotonic_ms() has come to until_ms. Returns the answer's bytes, 0 when there is none. */
size_t dv_word_ask(const dv_tls *tls, const dv_server_address *where, const char *word, char *answer,
                   size_t answer_bytes, int64_t until_ms);

#endif
