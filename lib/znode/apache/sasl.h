/* SASL to the servers: who we are. SPDX-License-Identifier: Apache-2.0
 *
 * The native client does it by Cyrus SASL, if it was built with that; its functions are looked up at run time. It tells
 * nobody that the servers have refused us: who opened the handle looks at its state. */
#ifndef DV_SASL_H
#define DV_SASL_H

#include <zookeeper/zookeeper.h>

#include "divvy/client.h"

typedef struct dv_sasl dv_sasl;

/* Returns 0, or DIVVY_EINVAL, DIVVY_EUNSUPPORTED, DIVVY_ENOMEM with a message, as of dv_tls_say(). */
int dv_sasl_new(dv_sasl **out, const divvy_client_config *config, char *message);
/* After every handle of it has been closed. Wipes the password. NULL is fine. */
void dv_sasl_free(dv_sasl *sasl);

/* zookeeper_init2() with it. `key` NULL: a new session. */
zhandle_t *dv_sasl_open(dv_sasl *sasl, const char *servers, watcher_fn watcher, int timeout_ms, const clientid_t *key,
                        void *context, log_callback_fn log);

#endif
