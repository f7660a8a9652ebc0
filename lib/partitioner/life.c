/* The table of lives: the only place where a partitioner's life changes. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "partitioner/partitioner.h"

/* Returns whether the partitioner is as it has to be at the beginning of that life. */
static bool suits(const divvy_partitioner *p, dv_life life) {
    switch (life) {
    case DV_LIFE_TAKING_PART: return p->state == DIVVY_ALLOCATING && !p->lost_session && !p->membership && !p->watch;
    case DV_LIFE_REJOINING: return p->state == DIVVY_RELEASE && p->lost_session;
    case DV_LIFE_HANDING_OVER:
    case DV_LIFE_LEAVING: return p->state != DIVVY_FAILURE;
    case DV_LIFE_FAILED: return p->state == DIVVY_FAILURE;
    case DV_LIFE_FINISHING: return true; /* FAILURE follows at once */
    case DV_LIFE_TIDYING: return p->state == DIVVY_FAILURE && p->totals.leaving == 0 && !p->membership;
    case DV_LIFE_TIDIED: return p->life != DV_LIFE_TIDYING || p->tidy_under_way == 0;
    }
    return false;
}

void dv_life_enter(divvy_partitioner *p, dv_life to) {
    static const bool allowed[][DV_LIFE_TIDIED + 1] = {
        [DV_LIFE_REJOINING] = {[DV_LIFE_TAKING_PART] = true, [DV_LIFE_REJOINING] = true},
        [DV_LIFE_TAKING_PART] = {[DV_LIFE_REJOINING] = true, [DV_LIFE_HANDING_OVER] = true, [DV_LIFE_LEAVING] = true},
        [DV_LIFE_HANDING_OVER] = {[DV_LIFE_LEAVING] = true},
        [DV_LIFE_FINISHING] = {[DV_LIFE_TIDYING] = true},
        [DV_LIFE_TIDIED] = {false},
    };
    /* A user may end a partitioner in any life, a failure in any before, and a closed client does not tidy. */
    bool ends = to > p->life && (to == DV_LIFE_FAILED || to == DV_LIFE_FINISHING || to == DV_LIFE_TIDIED);
    assert(ends || allowed[p->life][to]);
    assert(suits(p, to));
    (void)allowed;
    (void)ends;
    (void)suits;
    p->life = to;
}

void dv_life_fail(divvy_partitioner *p, int error, int reason, int64_t now, const char *format, ...) {
    char text[sizeof p->failure_text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    p->events->failed(p, error, reason, text, now);
}
