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

/* The node of an item that is held now, or NULL. One that is revoked is held until it is released. */
static const char *find_held(divvy_partitioner *p, const char *item) {
    divvy_client *client = p->object.client;
    const dv_item *held = dv_item_find(p, item);
    if (!held || !dv_client_alive_at(client, dv_client_now(client))) return NULL;
    return dv_item_shown(held) ? dv_contender_path(held->life.contender) : NULL;
}

int divvy_partitioner_guard(divvy_partitioner *p, const char *item, zoo_op_t *op) {
    if (op) memset(op, 0, sizeof *op);
    if (!p || !item || !op)
        return dv_fail(p ? p->object.client : NULL, DIVVY_EINVAL, "guard: the partitioner, item or op is NULL");
    divvy_client *client = p->object.client;
    int error = dv_client_enter(client);
    if (error) return error;
    const char *node = find_held(p, item);
    error = node ? fill(client, op, node) : dv_fail(client, DIVVY_ENOTHELD, "guard: \"%.200s\" is not held", item);
    dv_client_unlock(client);
    return error;
}

static int guard_lock(divvy_lock *lock, zoo_op_t *op) {
    divvy_client *client = lock->acquisition.object.client;
    int error = dv_client_enter(client);
    if (error) return error;
    const char *node = dv_lock_path(lock);
    error =
        node ? fill(client, op, node) : dv_fail(client, DIVVY_ENOTHELD, "guard: %.200s is not held", lock->directory);
    dv_client_unlock(client);
    return error;
}

int divvy_lock_guard(divvy_lock *lock, zoo_op_t *op) {
    if (op) memset(op, 0, sizeof *op);
    if (!lock || !op)
        return dv_fail(lock ? lock->acquisition.object.client : NULL, DIVVY_EINVAL, "guard: the lock or op is NULL");
    return guard_lock(lock, op);
}

int divvy_election_guard(divvy_election *election, zoo_op_t *op) {
    if (op) memset(op, 0, sizeof *op);
    if (!election || !op)
        return dv_fail(election ? election->object.client : NULL, DIVVY_EINVAL, "guard: the election or op is NULL");
    return guard_lock(election->lock, op);
}

void divvy_guard_end(zoo_op_t *op) {
    if (!op) return;
    if (op->type == ZOO_CHECK_OP) free((void *)(uintptr_t)op->check_op.path);
    memset(op, 0, sizeof *op);
}
