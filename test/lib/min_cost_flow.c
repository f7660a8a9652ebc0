/* The cheapest way to send much through a network. SPDX-License-Identifier: Apache-2.0 */
#include "min_cost_flow.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define UNREACHED INT64_MAX

static void fail(const char *what) {
    fprintf(stderr, "min_cost_flow: %s\n", what);
    abort();
}

size_t dv_test_flow_node(dv_test_flow *flow) {
    if (flow->node_count == DV_TEST_FLOW_NODES) fail("too many nodes");
    return flow->node_count++;
}

void dv_test_flow_connect(dv_test_flow *flow, size_t from, size_t to, int64_t capacity, int64_t cost) {
    if (flow->edge_count + 2 > DV_TEST_FLOW_EDGES) fail("too many edges");
    flow->edges[flow->edge_count++] = (dv_test_flow_edge){from, to, capacity, cost};
    flow->edges[flow->edge_count++] = (dv_test_flow_edge){to, from, 0, -cost};
}

/* Fills came_by[] with the edge by which the cheapest way reaches each node. Returns whether the sink is reached. */
static bool find_cheapest_way(const dv_test_flow *flow, size_t source, size_t sink, size_t *came_by) {
    int64_t distance[DV_TEST_FLOW_NODES];
    for (size_t n = 0; n < flow->node_count; n++) distance[n] = UNREACHED;
    distance[source] = 0;
    bool changed = true;
    for (size_t round = 0; changed; round++) {
        if (round > flow->node_count) fail("a circle that costs less than nothing");
        changed = false;
        for (size_t e = 0; e < flow->edge_count; e++) {
            const dv_test_flow_edge *edge = &flow->edges[e];
            if (edge->capacity == 0 || distance[edge->from] == UNREACHED) continue;
            if (distance[edge->from] + edge->cost >= distance[edge->to]) continue;
            distance[edge->to] = distance[edge->from] + edge->cost;
            came_by[edge->to] = e;
            changed = true;
        }
    }
    return distance[sink] != UNREACHED;
}

int64_t dv_test_flow_send(dv_test_flow *flow, size_t source, size_t sink, int64_t *cost) {
    size_t came_by[DV_TEST_FLOW_NODES];
    int64_t sent = 0;
    *cost = 0;
    while (find_cheapest_way(flow, source, sink, came_by)) {
        int64_t amount = INT64_MAX;
        for (size_t n = sink; n != source; n = flow->edges[came_by[n]].from) {
            if (flow->edges[came_by[n]].capacity < amount) amount = flow->edges[came_by[n]].capacity;
        }
        for (size_t n = sink; n != source; n = flow->edges[came_by[n]].from) {
            flow->edges[came_by[n]].capacity -= amount;
            flow->edges[came_by[n] ^ 1].capacity += amount;
            *cost += amount * flow->edges[came_by[n]].cost;
        }
        sent += amount;
    }
    return sent;
}
