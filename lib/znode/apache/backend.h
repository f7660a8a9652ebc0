/* The making of the client's backend. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_BACKEND_H
#define DV_BACKEND_H

#include "znode/apache/sasl.h"
#include "znode/apache/tls.h"
#include "znode/znode.h"

/* A session that exists already. */
typedef struct {
    int64_t id;
    char password[16];
} dv_session_key;

/* How the session is protected, and which it is. The backend keeps a reference of its own to `tls`, and takes `sasl`.
 */
typedef struct {
    dv_tls *tls;               /* NULL: plain text */
    dv_sasl *sasl;             /* NULL: none; never together with `tls` */
    const dv_session_key *key; /* NULL: a new session; else this one, and no other when it has ended */
} dv_protection;

/* A dv_backend_new_fn: a session of our own on the native client. The context is a dv_protection. */
int dv_apache_new(dv_znode **out, const dv_backend_config *config, const char **reason, void *context);

#endif
