/* The claim of `divvy lock`: a lock, or a slot of a semaphore, in one shape. SPDX-License-Identifier: Apache-2.0 */
#include "claim.h"

#include <stdio.h>
#include <string.h>

/* ---- what the library tells ---- */

static void lock_done(divvy_lock *lock, int result, void *user) {
    (void)lock;
    dv_claim *claim = user;
    claim->ended = true;
    claim->result = result;
    snprintf(claim->reason, sizeof claim->reason, "%s", result ? divvy_client_error(claim->client) : "");
}

static void semaphore_done(divvy_semaphore *semaphore, int result, void *user) {
    (void)semaphore;
    dv_claim *claim = user;
    claim->ended = true;
    claim->result = result;
    /* If the pool has another limit, the client's message tells both numbers. */
    snprintf(claim->reason, sizeof claim->reason, "%s", result ? divvy_client_error(claim->client) : "");
}

static void lock_lost(divvy_lock *lock, void *user) {
    (void)lock;
    ((dv_claim *)user)->lost = true;
}

static void semaphore_lost(divvy_semaphore *semaphore, void *user) {
    (void)semaphore;
    ((dv_claim *)user)->lost = true;
}

/* ---- the claim ---- */

/* Below the command's own root no kazoo process keeps a path for long. */
static bool is_below_own_root(const dv_lock_options *options) {
    return strcmp(options->root, DV_OWN_ROOT) == 0;
}

static int create_semaphore(dv_claim *claim, divvy_client *client, const dv_lock_options *options) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    config.path = options->path;
    config.limit = (uint32_t)options->slots;
    config.limit_policy = options->limit_policy;
    config.container = is_below_own_root(options);
    config.on_lost = semaphore_lost;
    config.user = claim;
    return divvy_semaphore_create(&claim->semaphore, client, &config);
}

/* Rule G1. Those who want it alone are writers, so that readers may stand in the same queue. */
static int create_lock(dv_claim *claim, divvy_client *client, const dv_lock_options *options) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = options->path;
    config.mode = options->shared ? DIVVY_READ : DIVVY_WRITE;
    config.container = is_below_own_root(options);
    config.on_lost = lock_lost;
    config.user = claim;
    return divvy_lock_create(&claim->lock, client, &config);
}

int dv_claim_create(dv_claim *claim, divvy_client *client, const dv_lock_options *options) {
    *claim = (dv_claim){.client = client, .path = options->path, .shared = options->shared};
    return options->slots ? create_semaphore(claim, client, options) : create_lock(claim, client, options);
}

int dv_claim_acquire(dv_claim *claim, int64_t timeout_ms) {
    if (claim->lock) return divvy_lock_acquire_async(claim->lock, timeout_ms, lock_done, claim);
    return divvy_semaphore_acquire_async(claim->semaphore, timeout_ms, semaphore_done, claim);
}

bool dv_claim_is_held(const dv_claim *claim) {
    return divvy_lock_held(claim->lock) || divvy_semaphore_held(claim->semaphore);
}

int64_t dv_claim_token(const dv_claim *claim) {
    return claim->lock ? divvy_lock_token(claim->lock) : divvy_semaphore_token(claim->semaphore);
}

int dv_claim_slot(const dv_claim *claim) {
    if (claim->semaphore) return divvy_semaphore_slot(claim->semaphore);
    return claim->shared ? -1 : 0;
}

void dv_claim_destroy(dv_claim *claim) {
    divvy_lock_destroy(claim->lock);
    divvy_semaphore_destroy(claim->semaphore);
    claim->lock = NULL;
    claim->semaphore = NULL;
}
