/* A server's counters: the server sees all clients alike, so they compare unlike libraries fairly.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SERVER_COUNTERS_H
#define BENCH_SERVER_COUNTERS_H

#include <stdint.h>

typedef struct {
    int64_t packets;      /* received from all clients, pings and these questions included */
    int64_t transactions; /* writes that were put in order, failed ones and sessions included; a multi is one */
} server_counters;

/* Asks the first server of `hosts` ("host:port,...") by the four letter word srvr. 0, or -1 when it gives no answer. */
int server_counters_read(server_counters *out, const char *hosts);

#endif
