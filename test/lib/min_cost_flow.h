/* The cheapest way to send much through a network: an optimum to compare with. SPDX-License-Identifier: Apache-2.0
 *
 * Successive shortest paths by Bellman and Ford, the plainest of its kind: for small networks. */
#ifndef DV_TEST_MIN_COST_FLOW_H
#define DV_TEST_MIN_COST_FLOW_H

#include <stddef.h>
#include <stdint.h>

enum { DV_TEST_FLOW_NODES = 64, DV_TEST_FLOW_EDGES = 1024 };

typedef struct {
    size_t from, to;
    int64_t capacity; /* what is left of it */
    int64_t cost;     /* of each unit; may be negative */
} dv_test_flow_edge;

/* Set to {0} for an empty network. */
typedef struct {
    size_t node_count;
    size_t edge_count; /* an edge stands at 2n, its reverse at 2n + 1 */
    dv_test_flow_edge edges[DV_TEST_FLOW_EDGES];
} dv_test_flow;

/* A new node. */
size_t dv_test_flow_node(dv_test_flow *flow);

/* A new edge; no circle of edges may cost less than nothing. */
void dv_test_flow_connect(dv_test_flow *flow, size_t from, size_t to, int64_t capacity, int64_t cost);

/* Sends as much as can be from `source` to `sink`, as cheaply as can be. Returns how much; *cost is what it costs. Uses
 * the network up. */
int64_t dv_test_flow_send(dv_test_flow *flow, size_t source, size_t sink, int64_t *cost);

#endif
