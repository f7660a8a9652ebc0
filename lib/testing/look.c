/* Looking at the ensemble from outside. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "client/client.h"
#include "testing/ensemble.h"
#include "znode/path.h"

/* Looking changes nothing that counts. */
static dv_mem *open_up(const divvy_testing_ensemble *ensemble) {
    dv_mem *mem = (dv_mem *)(uintptr_t)ensemble;
    dv_mem_lock(mem);
    return mem;
}

static const dv_mem_node *true_node(const dv_mem *mem, const char *path) {
    const dv_mem_path *p = dv_mem_path_find(mem, path);
    return p ? p->places[mem->truth_server].node : NULL;
}

int divvy_testing_leader(const divvy_testing_ensemble *ensemble) {
    dv_mem *mem = open_up(ensemble);
    const dv_mem_server *leader = dv_mem_leader_now(mem);
    int id = leader ? leader->id : -1;
    dv_mem_unlock(mem);
    return id;
}

int divvy_testing_server_of(const divvy_testing_ensemble *ensemble, const divvy_client *client) {
    dv_mem *mem = open_up(ensemble);
    const dv_mem_client *c = (const dv_mem_client *)(const void *)client->znode;
    int id = c->native == DV_MEM_ESTABLISHED ? c->conn->server->id : -1;
    dv_mem_unlock(mem);
    return id;
}

int divvy_testing_exists(const divvy_testing_ensemble *ensemble, const char *path) {
    dv_mem *mem = open_up(ensemble);
    bool found = true_node(mem, path) != NULL;
    dv_mem_unlock(mem);
    return found;
}

divvy_strings *divvy_testing_children(const divvy_testing_ensemble *ensemble, const char *path) {
    dv_mem *mem = open_up(ensemble);
    const dv_mem_node *node = true_node(mem, path);
    divvy_strings *names = node ? dv_strings_new() : NULL;
    if (names) {
        const char **sorted = dv_mem_alloc(((size_t)node->child_count + 1) * sizeof *sorted);
        size_t count = 0;
        for (const dv_mem_node *child = node->children; child; child = child->sibling)
            sorted[count++] = dv_mem_path_name(child->path);
        qsort(sorted, count, sizeof *sorted, dv_name_compare);
        for (size_t i = 0; names && i < count; i++) {
            if (dv_strings_add(names, sorted[i]) == 0) continue;
            divvy_strings_free(names);
            names = NULL;
        }
        free(sorted);
    }
    dv_mem_unlock(mem);
    return names;
}

int64_t divvy_testing_owner(const divvy_testing_ensemble *ensemble, const char *path) {
    dv_mem *mem = open_up(ensemble);
    const dv_mem_node *node = true_node(mem, path);
    int64_t id = node && node->owner ? node->owner->id : 0;
    dv_mem_unlock(mem);
    return id;
}
