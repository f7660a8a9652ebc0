/* The HTTP side of divvy serve. SPDX-License-Identifier: Apache-2.0
 *
 * One thread of libmicrohttpd's answers all connections. It reads what the main thread has gathered, and changes
 * nothing. Another thread ends connections whose time is over. */
#ifndef DV_SERVE_HTTP_H
#define DV_SERVE_HTTP_H

#include "serve.h"

typedef struct dv_serve_http dv_serve_http;

/* Listens, answers from now on, and says on stderr where. 0, or the exit code when it was told what is wrong. `serve`
 * outlives *out. */
int dv_serve_http_start(dv_serve_http **out, dv_serve *serve);
/* Ends all connections. NULL is allowed. */
void dv_serve_http_stop(dv_serve_http *http);

#endif
