/* Three servers whose links to one another a test can stop. SPDX-License-Identifier: Apache-2.0
 *
 * What the servers say to one another, on their quorum and election ports alike, leads through a relay of ours. A
 * direction that is held is like a network that has stopped to carry packets: nobody is told, no connection ends, new
 * ones get nowhere, and what was sent meanwhile arrives when it is let go, late. Clients speak to the servers directly.
 *
 * Each call may come from any thread; when it returns it is in force: no further byte passes that should not, but
 * for what the kernel had been given before. Servers are meant by their numbers, 1 to 3. */
#ifndef DV_TEST_QUORUM_H
#define DV_TEST_QUORUM_H

#include "server.h"

#define DV_TEST_QUORUM_SERVERS 3

typedef struct dv_test_quorum dv_test_quorum;

/* Starts them and waits until each serves. A server that has lost its leader goes on serving for sync_ticks ticks. Ends
 * the test program on failure. */
dv_test_quorum *dv_test_quorum_start(int tick_ms, int sync_ticks);

/* Ends the servers and the relay. NULL is fine. */
void dv_test_quorum_stop(dv_test_quorum *quorum);

/* The servers, which live as long as the quorum. */
dv_test_server *dv_test_quorum_server(const dv_test_quorum *quorum);

/* Holds what `sender` says to `receiver`. The other direction goes on. */
void dv_test_quorum_hold(dv_test_quorum *quorum, int sender, int receiver);

/* Holds both directions between two servers, and between one and all others. */
void dv_test_quorum_part(dv_test_quorum *quorum, int one, int other);
void dv_test_quorum_isolate(dv_test_quorum *quorum, int number);

/* Lets everything go. */
void dv_test_quorum_heal(dv_test_quorum *quorum);

#endif
