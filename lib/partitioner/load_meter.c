/* The load of one item, smoothed: docs/protocol.md, D46. SPDX-License-Identifier: Apache-2.0 */
#include "partitioner/load_meter.h"

#include <assert.h>

#define LN_2 0.69314718055994531

enum { SETTLED_MS = 2 * DV_LOAD_HALF_LIFE_MS, FORGOTTEN_HALF_LIVES = 64, FRACTION_BITS = 16 };

double dv_load_decay(int64_t ms) {
    /* 2^-(1/2), 2^-(1/4), ... 2^-(1/65536) */
    static const double roots[FRACTION_BITS] = {
        0.70710678118654752, 0.84089641525371454, 0.91700404320467123, 0.95760328069857364,
        0.97857206208770013, 0.98922801319397548, 0.99459942348363317, 0.99729605608547012,
        0.99864711289097017, 0.99932332750265075, 0.99966160649624368, 0.99983078893192906,
        0.99991539088661349, 0.99995769454843113, 0.99997884705049192, 0.99998942346931446};
    assert(ms >= 0);
    int64_t halves = ms / DV_LOAD_HALF_LIFE_MS;
    if (halves >= FORGOTTEN_HALF_LIVES) return 0;
    double factor = 1;
    for (int64_t i = 0; i < halves; i++) factor /= 2;
    double fraction = (double)(ms % DV_LOAD_HALF_LIFE_MS) / DV_LOAD_HALF_LIFE_MS, bit = 0.5;
    for (int i = 0; i < FRACTION_BITS; i++, bit /= 2) {
        if (fraction < bit) continue;
        factor *= roots[i];
        fraction -= bit;
    }
    factor *= 1 - fraction * LN_2; /* what is left is less than 2^-16 */
    return factor;
}

double dv_load_meter_read(dv_load_meter *m, int64_t now) {
    if (now <= m->at) return m->smoothed;
    m->smoothed = m->value + (m->smoothed - m->value) * dv_load_decay(now - m->at);
    m->at = now;
    return m->smoothed;
}

void dv_load_meter_take(dv_load_meter *m, double value, int64_t token, int64_t now) {
    if (m->token == token) dv_load_meter_read(m, now);
    else *m = (dv_load_meter){.smoothed = value, .at = now, .since = now, .token = token};
    m->value = value;
}

bool dv_load_meter_is_settled(const dv_load_meter *m, int64_t now) {
    return now - m->since >= SETTLED_MS;
}
