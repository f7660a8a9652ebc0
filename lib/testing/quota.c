/* Quotas: how many nodes there may be below a path. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/ensemble.h"

static bool is_below(const dv_mem_path *path, const char *top) {
    size_t bytes = strlen(top);
    return path->bytes > bytes && strncmp(path->text, top, bytes) == 0 && path->text[bytes] == '/';
}

/* Returns the node that follows in the tree, children first; NULL: it was the last one below `top`. */
static const dv_mem_node *next_below(const dv_mem_node *top, const dv_mem_node *node) {
    if (node->children) return node->children;
    while (node != top && !node->sibling) node = node->parent;
    return node == top ? NULL : node->sibling;
}

static int64_t count_nodes(const dv_mem_node *top) {
    int64_t count = 0;
    for (const dv_mem_node *node = next_below(top, top); node; node = next_below(top, node)) count++;
    return count;
}

bool dv_mem_quota_refuses(dv_mem_server *leader, const dv_mem_path *path) {
    const dv_mem *mem = leader->mem;
    if (!mem->quota_path || !is_below(path, mem->quota_path)) return false;
    const dv_mem_path *top = dv_mem_path_find(mem, mem->quota_path);
    const dv_mem_node *node = top ? top->places[leader->id].node : NULL;
    int64_t count = node ? count_nodes(node) : 0;
    return count + dv_mem_changes_count(leader, mem->quota_path) >= mem->quota_nodes;
}

static int put_limits(dv_mem *mem, const char *path, int64_t nodes) {
    char *at = dv_mem_alloc(strlen(path) + 64);
    char limits[96];
    size_t root_bytes = (size_t)sprintf(at, "/zookeeper/quota");
    snprintf(limits, sizeof limits, "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=%lld", (long long)nodes);
    dv_mem_put(mem, at, "", 0, false);
    for (const char *c = path + 1;; c++) {
        if (*c && *c != '/') continue;
        memcpy(at + root_bytes, path, (size_t)(c - path));
        at[root_bytes + (size_t)(c - path)] = '\0';
        dv_mem_put(mem, at, "", 0, false);
        if (!*c) break;
    }
    strcat(at, "/zookeeper_limits");
    int error = dv_mem_put(mem, at, limits, strlen(limits), false);
    free(at);
    return error;
}

int divvy_testing_quota(divvy_testing_ensemble *mem, const char *path, int64_t nodes) {
    if (!mem || !path || path[0] != '/' || path[1] == '\0' || nodes < -1) return DIVVY_EINVAL;
    char *copy = nodes < 0 ? NULL : dv_mem_alloc(strlen(path) + 1);
    if (copy) strcpy(copy, path);
    dv_mem_lock(mem);
    free(mem->quota_path);
    mem->quota_path = copy;
    mem->quota_nodes = nodes;
    int error = put_limits(mem, path, nodes);
    dv_mem_unlock(mem);
    return error;
}

static bool can_answer(dv_answer_verdict verdict, int executed) {
    if (executed) return verdict == DV_VERDICT_MAYBE;
    return verdict == DV_VERDICT_NOT_DONE || verdict >= DV_VERDICT_AGAIN;
}

int divvy_testing_answer(divvy_testing_ensemble *mem, divvy_client *c, int code, int executed, unsigned skip,
                         unsigned count) {
    if (!mem || !c || !can_answer(dv_answer_of(code).verdict, executed)) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    dv_mem_client *client = dv_mem_client_of(c);
    client->odd = (dv_mem_odd){.code = code, .executed = executed != 0, .skip = skip, .count = count};
    DV_MEM_TRACE(mem, "client %u: %u requests after %u are answered by %d%s", client->number, count, skip, code,
                 executed ? ", though carried out" : "");
    dv_mem_unlock(mem);
    return 0;
}

void dv_mem_take_odd(dv_mem_client *client, dv_mem_request *request) {
    dv_mem_odd *odd = &client->odd;
    if (!odd->count) return;
    if (odd->skip) {
        odd->skip--;
        return;
    }
    odd->count--;
    request->odd_error = dv_answer_error(odd->code);
    request->odd_executed = odd->executed && request->wrote;
}
