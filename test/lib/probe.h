/* Whether an ensemble commits, asked by a plain client. SPDX-License-Identifier: Apache-2.0
 *
 * Servers may all say that they serve while nothing is committed: a leader that has lost its followers without notice
 * goes on for some ticks, and logs what it proposes. Use from one thread. */
#ifndef DV_TEST_PROBE_H
#define DV_TEST_PROBE_H

#include <stdbool.h>

typedef struct dv_test_probe dv_test_probe;

/* `connect` is "127.0.0.1:PORT[,...]", and is copied. Connects to nothing yet. */
dv_test_probe *dv_test_probe_new(const char *connect);

/* Writes to the root node. Returns whether an answer came within a second, or two if it has to connect before. After a
 * failure the next call connects once more. */
bool dv_test_probe_commits(dv_test_probe *probe);

/* Closes the connection; the next call of dv_test_probe_commits() opens one. */
void dv_test_probe_rest(dv_test_probe *probe);

/* Closes, and frees. NULL is fine. */
void dv_test_probe_free(dv_test_probe *probe);

#endif
