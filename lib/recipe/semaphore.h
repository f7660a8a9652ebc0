/* Semaphore: what its parts share. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SEMAPHORE_H
#define DV_SEMAPHORE_H

#include "divvy/semaphore.h"
#include "recipe/acquisition.h"
#include "recipe/lease.h"

struct divvy_semaphore {
    dv_acquisition acquisition; /* first */
    dv_pool pool;
    void (*on_lost)(divvy_semaphore *semaphore, void *user);
    void *user;
    _Atomic(int) slot; /* the first of those that are held, meant while the acquisition has a token */
};

#endif
