/* A bad line to a server: a TCP proxy that is slow in the ways that networks are. SPDX-License-Identifier: Apache-2.0
 *
 * Unlike proxy.h, whose faults are switched by a test, a line behaves so all the time, towards each connection by
 * itself. Bytes arrive in order, and what is under way does not hold up what comes after it. */
#ifndef DV_TEST_LINE_H
#define DV_TEST_LINE_H

#include <stdint.h>

typedef struct dv_test_line dv_test_line;

/* Both ways alike; 0 for what there is not. */
typedef struct {
    int delay_ms;       /* one way */
    int jitter_ms;      /* as much more, by chance, for each piece */
    int stall_every_ms; /* on average: nothing arrives for a time, as when a packet is lost; then all of it does */
    int stall_least_ms; /* for how long */
    int stall_most_ms;  /* by chance between the two */
    int bytes_per_s;    /* what is more waits; beyond 256 KiB the sender does */
    int idle_cut_ms;    /* a connection that had no byte either way for so long is closed */
} dv_test_line_config;

/* Listens on `ip` ("127.0.0.1", "::1"), at a port (0: any), and leads to `upstream`, "127.0.0.1:PORT". Ends the program
 * on failure. */
dv_test_line *dv_test_line_start(const char *upstream, const char *ip, int port, const dv_test_line_config *config,
                                 uint64_t seed);

/* Closes all connections, joins the thread, frees the line. NULL is fine. */
void dv_test_line_stop(dv_test_line *line);

/* Closes the connections that there are. New ones are well. */
void dv_test_line_cut(dv_test_line *line);

int dv_test_line_port(const dv_test_line *line);

/* How many connections were accepted, and how many of them closed for being idle. */
void dv_test_line_count(dv_test_line *line, unsigned *accepted, unsigned *idle);

#endif
