/* The owners by names, with which a first plan begins: docs/protocol.md, D10. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "follow/follower.h"

void dv_follow_forget_first(dv_follower *f) {
    free(f->first.owners);
    f->first.owners = NULL;
    if (f->roster) dv_roster_party(f->roster)->owners = NULL; /* else it could not be made */
}

void dv_follow_free_first(dv_follower *f) {
    dv_follow_first *first = &f->first;
    dv_follow_forget_first(f);
    for (size_t i = 0; i < first->node_count; i++) free(first->nodes[i]);
    free(first->nodes);
    free(first->by_rule);
    dv_plan_set_unref(first->set);
    *first = (dv_follow_first){0};
}

void dv_follow_remember(dv_follower *f, const char *const *nodes, size_t count, uint32_t *owners, dv_plan_set *set) {
    char **copies = f ? calloc(count + 1, sizeof *copies) : NULL;
    if (!copies) { /* Without it a first plan may move more than it must. */
        free(owners);
        return;
    }
    dv_follow_free_first(f);
    f->first.nodes = copies;
    f->first.by_rule = owners;
    f->first.set = dv_plan_set_ref(set);
    for (size_t i = 0; i < count && (copies[i] = strdup(nodes[i])); i++) f->first.node_count++;
}

bool dv_follow_prepare_first(dv_follower *f) {
    dv_follow_first *first = &f->first;
    if (dv_follow_plan(f) || first->owners || !first->by_rule || !dv_plan_set_equal(first->set, f->config.configured))
        return true;
    size_t count = first->set->count;
    uint32_t *places = malloc((first->node_count + 1) * sizeof *places), *owners = malloc(count * sizeof *owners);
    if (!places || !owners) {
        free(places);
        free(owners);
        return false;
    }
    for (size_t n = 0; n < first->node_count; n++) {
        size_t at = dv_roster_find(f->roster, first->nodes[n]);
        places[n] = at == SIZE_MAX ? UINT32_MAX : (uint32_t)at;
    }
    for (size_t i = 0; i < count; i++)
        owners[i] = first->by_rule[i] < first->node_count ? places[first->by_rule[i]] : UINT32_MAX;
    free(places);
    dv_roster_party(f->roster)->owners = first->owners = owners;
    return true;
}
