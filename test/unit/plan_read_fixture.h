/* A reader of plans on scripted nodes. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PLAN_READ_FIXTURE_H
#define DV_TEST_PLAN_READ_FIXTURE_H

#include "plan_nodes.h"

/* A plan of some items in chunks of 100 bytes, and one member. */
static inline dv_plan *write_in_chunks(size_t items) {
    writer.chunk_bytes = 100;
    dv_plan *empty = plan_of(items), *plan = next_plan(empty, 1);
    dv_plan_free(empty);
    write_base(plan);
    return plan;
}

static inline void write_next(void (*write)(dv_plan *), uint32_t n) {
    dv_plan *plan = next_plan(writer.plan, n);
    write(plan);
    dv_plan_free(plan);
}

#endif
