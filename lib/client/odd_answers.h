/* Odd answers: what servers throttle, refuse for now, or say in unknown codes. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ODD_ANSWERS_H
#define DV_ODD_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/timers.h"
#include "znode/znode.h"

enum { DV_ODD_CODES = 8, DV_QUOTA_TEXT_BYTES = 160 };

/* A part of the client. */
typedef struct {
    dv_timer timer; /* of what was put off */
    struct {
        int code; /* 0: none yet */
        int64_t warned_at;
    } codes[DV_ODD_CODES];
    size_t next_code; /* where the next one that is not in the list goes */

    bool reading;          /* the limits of a quota */
    char *refused;         /* the path that was refused last; NULL: none was */
    char *quota;           /* the path that is being looked at for a quota, or has it */
    bool quota_known;      /* `quota` has it */
    int64_t refused_at;    /* when the last refusal came */
    int64_t quota_told_at; /* when the user was told last */
    const char *verb;      /* of the request that is told of */
} dv_odd_answers;

#endif
