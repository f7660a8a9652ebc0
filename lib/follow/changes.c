/* The changes of a plan that no party tells: docs/protocol.md, D13 to D15, D42. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "follow/follower.h"

static bool add_expired(dv_follow_changes *changes, const dv_follow_absences *absences) {
    changes->expired = calloc(absences->count + 1, sizeof *changes->expired);
    if (!changes->expired) return false;
    changes->events.expired = changes->expired;
    for (size_t i = 0; i < absences->count; i++) {
        const dv_absence *a = &absences->list[i];
        if (!a->is_expired) continue;
        char *key = strdup(a->key);
        if (!key) return false;
        changes->expired[changes->events.expired_count++] = (dv_plan_expiry){.key = key, .absent = a->absent};
    }
    return true;
}

static bool add_requests(dv_follow_changes *changes, const dv_follower *f) {
    const dv_follow_requests *r = &f->requests;
    bool weight = r->weight.is_open && !dv_follow_is_fenced(f); /* else it would be another's */
    changes->node = strdup(dv_follow_own_node(f));
    if (!changes->node) return false;
    if (weight) { /* D12: a static member's key is its identifier, another's the name of its node. */
        const char *key = f->config.is_static ? f->config.identifier : changes->node;
        changes->events.weight = (dv_plan_weight){.key = key, .weight = r->new_weight};
        changes->weight_number = r->weight.number;
    }
    if (r->set.is_open) {
        changes->events.set = dv_plan_set_ref(r->new_set);
        changes->set_number = r->set.number;
    }
    if (r->leave.is_open) {
        assert(r->leaves);
        changes->events.leaving = changes->node;
        changes->leave_number = r->leave.number;
    }
    changes->is_urgent = weight || r->set.is_open || r->leave.is_open;
    return true;
}

static void add_round(dv_follow_changes *changes, const dv_follower *f) {
    const char *over = f->round.over;
    assert(!changes->events.round_over);
    if (!f->memory.plan || !over[0] || strcmp(over, f->memory.plan->header.guid) != 0) return;
    memcpy(changes->round_over, over, sizeof changes->round_over);
    changes->events.round_over = changes->round_over;
}

/* D47: what was read of members' reports, unless the plan divides other items by now. */
static void add_loads(dv_follow_changes *changes, const dv_follower *f) {
    const dv_follow_loads *l = &f->loads;
    const dv_plan *plan = dv_follow_plan(f);
    bool fits = l->event && plan && dv_plan_set_equal(plan->set, l->set);
    if (!fits) return;
    changes->events.loads = dv_loads_ref(l->event);
    changes->events.loads_of = dv_plan_set_ref(l->set);
}

dv_follow_changes *dv_follow_collect(const dv_follower *f) {
    dv_follow_changes *changes = calloc(1, sizeof *changes);
    if (!changes) return NULL;
    if (add_expired(changes, &f->absences) && add_requests(changes, f)) {
        add_round(changes, f);
        add_loads(changes, f);
        return changes;
    }
    dv_follow_free_changes(changes);
    return NULL;
}

bool dv_follow_has_changes(const dv_follow_changes *changes) {
    return changes->is_urgent || changes->events.expired_count > 0 || changes->events.round_over != NULL ||
           changes->events.loads != NULL;
}

void dv_follow_free_changes(dv_follow_changes *changes) {
    if (!changes) return;
    for (size_t i = 0; i < changes->events.expired_count; i++) free((char *)(uintptr_t)changes->expired[i].key);
    free(changes->expired);
    free(changes->node);
    dv_plan_set_unref(changes->events.set);
    dv_loads_unref(changes->events.loads);
    dv_plan_set_unref(changes->events.loads_of);
    free(changes);
}
