/* Guards: a part for the user's own transactions, which holds only while we do. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "divvy/zookeeper.h"
#include "partitioner/partitioner.h"
#include "recipe/election.h"
#include "recipe/lock.h"
#include "znode/path.h"

/* C7: a name is used once and its data are never set, so version 0 passes exactly while our node exists. */
static int fill(divvy_client *client, zoo_op_t *op, const char *node) {
    char *path = strdup(node);
    if (!path) return dv_fail_plainly(client, DIVVY_ENOMEM);
    zoo_check_op_init(op, NULL, 0);
    op->check_op.path = path; /* the caller's, until divvy_guard_end() */
    return 0;
}

/* Begins a guard of an object, which is `given` with all that goes with it. Returns as dv_client_enter(). */
static int begin(divvy_client *client, bool given, zoo_op_t *op, const char *what) {
    if (op) memset(op, 0, sizeof *op);
    if (!given || !op) return dv_fail(client, DIVVY_EINVAL, "guard: the %s or op is NULL", what);
    return dv_client_enter(client);
}

/* The node of an item that is held now, or NULL. One that is revoked is held until it is released. */
static const char *find_held(divvy_partitioner *p, const char *item) {
    divvy_client *client = p->object.client;
    const dv_item *held = dv_item_find(p, item);
    if (!held || !dv_client_alive_at(client, dv_client_now(client))) return NULL;
    return dv_item_shown(held) ? dv_contender_path(held->life.contender) : NULL;
}

int divvy_partitioner_guard(divvy_partitioner *p, const char *item, zoo_op_t *op) {
    divvy_client *client = p ? p->object.client : NULL;
    int error = begin(client, p && item, op, "partitioner, item");
    if (error) return error;
    const char *node = find_held(p, item);
    error = node ? fill(client, op, node) : dv_fail(client, DIVVY_ENOTHELD, "guard: \"%.200s\" is not held", item);
    dv_client_unlock(client);
    return error;
}

static int guard_lock(divvy_lock *lock, zoo_op_t *op, const char *what) {
    divvy_client *client = lock ? lock->acquisition.object.client : NULL;
    int error = begin(client, lock, op, what);
    if (error) return error;
    const char *node = dv_lock_path(lock);
    error =
        node ? fill(client, op, node) : dv_fail(client, DIVVY_ENOTHELD, "guard: %.200s is not held", lock->directory);
    dv_client_unlock(client);
    return error;
}

int divvy_lock_guard(divvy_lock *lock, zoo_op_t *op) {
    return guard_lock(lock, op, "lock");
}

int divvy_election_guard(divvy_election *election, zoo_op_t *op) {
    return guard_lock(election ? election->lock : NULL, op, "election");
}

void divvy_guard_end(zoo_op_t *op) {
    if (!op) return;
    if (op->type == ZOO_CHECK_OP) free((void *)(uintptr_t)op->check_op.path);
    memset(op, 0, sizeof *op);
}
