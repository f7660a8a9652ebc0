/* Semaphore: what its parts share. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SEMAPHORE_H
#define DV_SEMAPHORE_H

#include "divvy/semaphore.h"
#include "recipe/lease.h"

struct divvy_semaphore {
    dv_acquisition acquisition; /* first */
    dv_pool pool;
    _Atomic(int) slot; /* the first of those that are held, meant while the acquisition has a token */
};

static inline int dv_semaphore_enter(divvy_semaphore *s) {
    return dv_client_enter(s ? s->acquisition.object.client : NULL);
}

#endif
