/* The claim of `divvy lock`: a lock, or a slot of a semaphore, in one shape. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_CLAIM_H
#define DV_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include <divvy/divvy.h>

#include "lock_options.h"

typedef struct {
    divvy_lock *lock;           /* one of them is NULL, */
    divvy_semaphore *semaphore; /* or both before dv_claim_create() */
    const divvy_client *client;
    const char *path;
    bool shared;
    bool ended;                           /* the acquire that was begun has ended, */
    int result;                           /* so, */
    char reason[DV_SESSION_REASON_BYTES]; /* and, after an error, why */
    bool lost;                            /* it was held, and is no longer */
} dv_claim;

/* Returns 0 or a DIVVY_E*. *claim stays where it is until dv_claim_destroy(). */
int dv_claim_create(dv_claim *claim, divvy_client *client, const dv_lock_options *options);

/* Begins to acquire; how that ended stands in *claim once the client has been driven so far. 0 or a DIVVY_E*. */
int dv_claim_acquire(dv_claim *claim, int64_t timeout_ms);

/* By the session clock, now. */
bool dv_claim_is_held(const dv_claim *claim);

/* The fencing token; 0 when it is not held. */
int64_t dv_claim_token(const dv_claim *claim);

/* The number of the slot; 0 of a lock, whose holder is the only one; -1 when there are others, who share it. */
int dv_claim_slot(const dv_claim *claim);

/* Gives it back, or ends the acquire. Sends, and waits for nothing. */
void dv_claim_destroy(dv_claim *claim);

#endif
