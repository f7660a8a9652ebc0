/* The loads of a plan's items, by which they are dealt. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D49. Pure: no I/O, no clock, no libm. A load is rounded to a class of a quarter octave, so that
 * what is written changes only where a load really does. What comes from ZooKeeper is hostile until it is parsed. */
#ifndef DV_PLAN_LOADS_H
#define DV_PLAN_LOADS_H

#include "plan/text.h"

enum {
    DV_CLASS_IDLE = 0,  /* no load, or less than class 1 */
    DV_CLASS_ONE = 100, /* a load of 1 */
    DV_CLASS_MAX = 254,
    DV_CLASS_NONE = 255, /* nobody has reported it: it counts as the mean */
    DV_LOAD_UNIT_BYTES_MAX = 16,
    DV_LOAD_PERMILLE_MAX = 1000000
};

/* Returns the class of a load. One that is negative or no number is DV_CLASS_NONE; a larger one than the last class
 * tells is that. */
uint8_t dv_class_of(double load);
/* Returns the load that a class stands for: 2^((class - 100) / 4); below 0 for DV_CLASS_NONE. */
double dv_class_size(uint8_t load_class);

/* A member that gave items away for load, in the last step that moved any for it. */
typedef struct {
    char *from;        /* its identifier */
    uint32_t permille; /* its load then, of a fair share's thousand */
    uint32_t *items;   /* indices, ascending */
    size_t count;
} dv_load_giver;

/* Immutable and shared, as a plan's set is. */
struct dv_loads {
    size_t references;
    char unit[DV_LOAD_UNIT_BYTES_MAX + 1];
    uint8_t *classes; /* by item of the plan's set */
    size_t count;
    dv_load_giver *givers;
    size_t giver_count;
};

/* Makes loads of a known unit, all of DV_CLASS_NONE, for the caller to fill before it shares them. NULL: an allocation
 * failed. */
dv_loads *dv_loads_make(const char *unit, size_t count);
dv_loads *dv_loads_ref(dv_loads *loads);
/* `loads` may be NULL. */
void dv_loads_unref(dv_loads *loads);
/* Both may be NULL. */
bool dv_loads_equal(const dv_loads *a, const dv_loads *b);
/* Returns whether both tell of the same givers. Both may be NULL. */
bool dv_loads_same_givers(const dv_loads *a, const dv_loads *b);
/* Adds a giver before the loads are shared; copies what it is given. Returns false when an allocation fails. */
bool dv_loads_add_giver(dv_loads *loads, const char *from, uint32_t permille, const uint32_t *items, size_t count);
/* Returns whether it is 1 to 16 letters, digits, or `_ / % . -`. */
bool dv_load_unit_is_good(const char *unit);

/* Returns 0 or DIVVY_ENOMEM. */
int dv_loads_print(dv_plan_text *out, const dv_loads *loads);
/* Takes a text for a set of `count` items. Returns 0; DIVVY_EPROTO, with *fault filled (may be NULL); DIVVY_ENOMEM. */
int dv_loads_parse(dv_loads **out, size_t count, const char *text, size_t bytes, dv_plan_fault *fault);

#endif
