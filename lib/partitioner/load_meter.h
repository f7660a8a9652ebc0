/* The load of one item, as its owner tells it, smoothed. Pure: time is an argument. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D46. The last value holds until the next one. */
#ifndef DV_LOAD_METER_H
#define DV_LOAD_METER_H

#include <stdbool.h>
#include <stdint.h>

enum { DV_LOAD_HALF_LIFE_MS = 60000 };

typedef struct {
    double smoothed, value;
    int64_t at;    /* when `smoothed` was true */
    int64_t since; /* of the first value */
    int64_t token; /* of the ownership that the values are of */
} dv_load_meter;

/* One item's: loads.c writes it. */
typedef struct {
    dv_load_meter meter;
    uint8_t told; /* the class that our report tells of it; DV_CLASS_NONE: none */
} dv_item_load;

/* Returns whether a user may tell it: a finite number from 0 up. */
static inline bool dv_load_is_good(double load) {
    return load >= 0 && load - load == 0;
}
/* Takes a value. Another token than before begins with it. */
void dv_load_meter_take(dv_load_meter *m, double value, int64_t token, int64_t now);
/* Returns what it comes to now. */
double dv_load_meter_read(dv_load_meter *m, int64_t now);
/* Returns whether its values have come for so long that they count, and not what the plan says. */
bool dv_load_meter_is_settled(const dv_load_meter *m, int64_t now);
/* Returns 2^-(ms / half-life); ms >= 0. */
double dv_load_decay(int64_t ms);

#endif
