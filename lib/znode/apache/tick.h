/* Asking a server for its tickTime. SPDX-License-Identifier: Apache-2.0
 *
 * A tick that is told too small makes the session clock unsafe (C3): servers that allow the word "conf" tell theirs. */
#ifndef DV_TICK_H
#define DV_TICK_H

#include <stdint.h>

#include "znode/apache/job.h"
#include "znode/apache/probe.h"

/* tick_ms is 0 where the server did not say it. */
typedef void (*dv_tick_fn)(void *context, int64_t tick_ms, int64_t now);
/* Asks the server, over TLS unless `tls` is NULL. Returns NULL when there is no memory or no thread. */
dv_job *dv_tick_ask(const dv_server_address *where, dv_tls *tls, dv_sink sink, dv_tick_fn done, void *context);

/* Returns the tickTime of an answer to "conf", or 0 where it has none from 1 to 3600000. */
int64_t dv_tick_parse(const char *text);

#endif
