/* Many keys, few items: docs/protocol.md, A11. SPDX-License-Identifier: Apache-2.0 */
#include "assign/assign_internal.h"

/* A11: Knuth's generator of 64 bits; its upper 31 bits are used. */
static uint64_t next(uint64_t state) {
    return state * UINT64_C(2862933555777941757) + 1;
}

/* A11: the count of buckets grows from 1. Each turn draws the next bucket that the key moves to when it comes. A key
 * moves to the n-th bucket with the chance 1 / n, so there are about ln(count) turns. */
uint32_t divvy_bucket(const void *key, size_t key_bytes, uint32_t count) {
    if (count == 0 || (key == NULL && key_bytes > 0)) return UINT32_MAX;
    uint64_t state = dv_assign_key_of_bytes('b', key, key_bytes, 0), bucket = 0, jump = 0;
    while (jump < count) {
        bucket = jump;
        state = next(state);
        jump = ((bucket + 1) << 31) / ((state >> 33) + 1);
    }
    return (uint32_t)bucket;
}
