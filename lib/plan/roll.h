/* The roll of a party: which steps led to the party that settled last. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, W18 to W21. Pure: no I/O, no clock. It is the data of P/party. A member that knows the names of a
 * party that a step leads from comes by it to those of the last one, and needs no list. */
#ifndef DV_ROLL_H
#define DV_ROLL_H

#include "plan/text.h"

enum {
    DV_ROLL_VERSION = 1,
    DV_ROLL_BYTES_MAX = 200000,
    DV_ROLL_KEPT_BYTES = 1024, /* of all steps, but that the last may be longer */
    DV_ROLL_STEPS_MAX = 64,
    DV_ROLL_PARTY_MAX = 100000,
    DV_ROLL_PLACE_MAX = 100000,
};

/* A settled party; its names are sorted bytewise. */
typedef struct {
    const char *const *names;
    size_t count;
    int64_t pzxid;
} dv_roll_party;

/* The step from a party to the next. Its names stand in the roll's: those that came, then those that went. */
typedef struct {
    int64_t from; /* the party's pzxid */
    size_t came, went;
} dv_roll_step;

typedef struct {
    int64_t pzxid; /* of the party that it leads to */
    size_t place;  /* of its writer in the row */
    size_t count;  /* of the party's names */
    uint32_t sum;  /* their crc32, each followed by a NUL */
    dv_roll_step *steps;
    size_t step_count;
    const char **names; /* into `block` */
    size_t name_count;
    char *block;
    size_t block_bytes;
} dv_roll;

/* Reads a roll. Returns 0; DIVVY_EPROTO, with the fault filled; DIVVY_EUNSUPPORTED for one of a later release; or
 * DIVVY_ENOMEM. After an error there is nothing to clear. */
int dv_roll_parse(dv_roll *out, const char *text, size_t bytes, dv_plan_fault *fault);
void dv_roll_clear(dv_roll *roll);
uint32_t dv_roll_sum(const char *const *names, size_t count);

/* Goes from a party to the last one. Returns 0 with its sorted names, as one block for free(); DIVVY_ENOENT when no
 * step leads from there, DIVVY_EPROTO when the steps lead elsewhere, or DIVVY_ENOMEM. */
int dv_roll_follow(const dv_roll *roll, const dv_roll_party *from, char ***names);

/* Prints the roll that leads to `to`, its last step from `before`. What led there stands in `old`, which may be NULL;
 * where `before` is NULL, too, no step is known. A step that is longer than half of the party's names is left out, and
 * all before it. Returns 0 or DIVVY_ENOMEM. */
int dv_roll_print(dv_plan_text *out, const dv_roll *old, const dv_roll_party *before, const dv_roll_party *to,
                  size_t place);

#endif
