/* TLS to the servers. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TLS_H
#define DV_TLS_H

#include <zookeeper/zookeeper.h>

#include "divvy/client.h"

/* Messages are texts of that many bytes. */
enum { DV_TLS_MESSAGE_BYTES = 768 };
__attribute__((format(printf, 2, 3))) void dv_tls_say(char *message, const char *format, ...);

/* The names of the files, and the password. Reference-counted: threads that look at servers may outlive a client. */
typedef struct dv_tls dv_tls;

/* Checks a config's files, and that no other is trusted. DIVVY_EINVAL, _EUNSUPPORTED or _ENOMEM with a message. */
int dv_tls_new(dv_tls **out, const divvy_client_config *config, char *message);
/* NULL is fine for both. The password is wiped with the last. */
dv_tls *dv_tls_ref(dv_tls *tls);
void dv_tls_unref(dv_tls *tls);

/* zookeeper_init2() over TLS. `key` NULL: a new session. */
zhandle_t *dv_tls_open(const dv_tls *tls, const char *servers, watcher_fn watcher, int timeout_ms,
                       const clientid_t *key, void *context, log_callback_fn log);

/* Makes an SSL_CTX of the files as they are now, for dv_openssl's SSL_CTX_free(). NULL with a message on failure. */
void *dv_tls_context(const dv_tls *tls, char *message);
const char *dv_tls_ca_file(const dv_tls *tls);

#endif
