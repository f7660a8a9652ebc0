/* Guards: a part for the user's own transactions, which holds only while we do. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "divvy/zookeeper.h"
#include "partitioner/partitioner.h"
#include "znode/path.h"

/* The index of an item that is held now, or SIZE_MAX. One that is revoked is held until it is released. */
static size_t find_held(divvy_partitioner *p, const char *item) {
    divvy_client *client = p->object.client;
    const dv_names *names = p->names;
    char **found = bsearch(&item, names->names, names->count, sizeof *names->names, dv_name_compare);
    if (!found || !dv_client_alive_at(client, dv_client_now(client))) return SIZE_MAX;
    size_t i = (size_t)(found - names->names);
    return p->items[i].shown && p->items[i].place ? i : SIZE_MAX;
}

/* Our node has a name that nobody else ever has, and nobody sets its data: it is there with version 0, or not at all. */
static int guard(divvy_partitioner *p, const char *item, zoo_op_t *op) {
    divvy_client *client = p->object.client;
    size_t i = find_held(p, item);
    if (i == SIZE_MAX) return dv_fail(client, DIVVY_ENOTHELD, "guard: \"%.200s\" is not held", item);
    char *path = strdup(dv_contender_path(p->items[i].place));
    if (!path) return dv_fail_plainly(client, DIVVY_ENOMEM);
    zoo_check_op_init(op, path, 0);
    return 0;
}

int divvy_partitioner_guard(divvy_partitioner *p, const char *item, zoo_op_t *op) {
    if (op) memset(op, 0, sizeof *op);
    if (!p || !item || !op)
        return dv_fail(p ? p->object.client : NULL, DIVVY_EINVAL, "guard: the partitioner, item or op is NULL");
    divvy_client *client = p->object.client;
    int error = dv_turn_enter(client);
    if (error) return error;
    error = guard(p, item, op);
    dv_turn_end(client);
    return error;
}

void divvy_guard_end(zoo_op_t *op) {
    if (!op) return;
    if (op->type == ZOO_CHECK_OP) free((void *)(uintptr_t)op->check_op.path);
    memset(op, 0, sizeof *op);
}
