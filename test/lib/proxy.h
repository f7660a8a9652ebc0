/* A TCP proxy on loopback that breaks connections as a test demands. SPDX-License-Identifier: Apache-2.0
 *
 * A client is given the proxy's address for the server's. Each call may come from any thread, and when it returns
 * the fault is in force: no further byte passes that should not. Bytes that the kernel has taken before, towards
 * either side, still arrive there; hence a test that wants a request to be carried out waits until it sees so in the
 * server before it cuts, for a connection closed early may lose it. */
#ifndef DV_TEST_PROXY_H
#define DV_TEST_PROXY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dv_test_proxy dv_test_proxy;

/* Counts since the start. `open` is the number of connections now. Bytes of a request or a reply count when they
 * have been handed to the other side. */
struct dv_test_proxy_counts {
    unsigned accepted;
    unsigned refused;
    unsigned open;
    uint64_t request_bytes;
    uint64_t reply_bytes;
    uint64_t dropped_bytes;
    unsigned strikes;
};

/* Where a strike ends a connection. */
enum dv_test_strike {
    DV_TEST_BEFORE_REQUEST, /* the request has not reached the server */
    DV_TEST_BEFORE_REPLY    /* the request has passed, and the next reply on that connection has not */
};

/* Listens on a port of its own and passes all on to `upstream`, "127.0.0.1:PORT". That nobody listens there is no
 * error: the client's connection is closed then, as a server's host would. Ends the test program on failure. */
dv_test_proxy *dv_test_proxy_start(const char *upstream);

/* Closes all connections, joins the thread, frees the proxy. NULL is fine. */
void dv_test_proxy_stop(dv_test_proxy *proxy);

/* "127.0.0.1:PORT", which lives as long as the proxy. */
const char *dv_test_proxy_address(const dv_test_proxy *proxy);

/* Closes all connections; new ones are accepted and closed at once. Bytes under way in the proxy are lost. */
void dv_test_proxy_cut(dv_test_proxy *proxy);

/* Ends all faults. Connections that were cut do not come back; frozen ones go on as after a thaw. */
void dv_test_proxy_restore(dv_test_proxy *proxy);

/* Nothing passes either way, not even the end of a connection. Connections stay open and new ones are accepted. */
void dv_test_proxy_freeze(dv_test_proxy *proxy);

/* Goes on after a freeze: what was sent meanwhile arrives now, late, even from a side that has given up since. */
void dv_test_proxy_thaw(dv_test_proxy *proxy);

/* While on, requests pass and replies do not. When it is turned off, the connections that have lost a byte are closed:
 * a stream with a hole would not fail as a network does. */
void dv_test_proxy_drop_replies(dv_test_proxy *proxy, bool on);

/* While on, replies pass and requests do not; as dv_test_proxy_drop_replies() otherwise. */
void dv_test_proxy_drop_requests(dv_test_proxy *proxy, bool on);

/* Passes bytes that come from now on so much later, both ways; 0: at once. While bytes wait, no more of their
 * direction are taken in, so that the connection gets slow, too. */
void dv_test_proxy_delay(dv_test_proxy *proxy, int delay_ms);

/* The next `count` requests each end their connection, there. A ping is a request, too. */
void dv_test_proxy_strike(dv_test_proxy *proxy, enum dv_test_strike strike, unsigned count);

/* Closes the server's side of all connections, and does not tell the clients: what they say goes nowhere. New
 * connections are well. */
void dv_test_proxy_half_open(dv_test_proxy *proxy);

/* The counters now. */
struct dv_test_proxy_counts dv_test_proxy_count(dv_test_proxy *proxy);

#endif
