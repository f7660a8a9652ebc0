/* Our user's requests (weight, items, leave): docs/protocol.md, D14, D15, T8. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "follow/follower.h"

static void open_request(dv_plan_request *request) {
    request->is_open = true;
    request->number++;
}

static bool fulfil(dv_plan_request *request, unsigned number) {
    assert(number <= request->number);
    bool now = request->is_open && request->number == number;
    if (now) request->is_open = false;
    return now;
}

/* ---- the user ---- */

void dv_follow_request_weight(dv_follower *f, uint32_t weight, int64_t now) {
    f->requests.new_weight = weight;
    open_request(&f->requests.weight);
    f->look(f, DV_LOOK_WRITES, now);
}

void dv_follow_request_set(dv_follower *f, dv_plan_set *set, int64_t now) {
    assert(set);
    dv_follow_requests *r = &f->requests;
    dv_plan_set_ref(set);
    dv_plan_set_unref(r->new_set);
    r->new_set = set;
    open_request(&r->set);
    f->look(f, DV_LOOK_WRITES, now);
}

bool dv_follow_request_leave(dv_follower *f, bool hands_over, int64_t now) {
    if (!f) return false;
    f->requests.leaves = true;
    f->requests.hands_over = hands_over;
    if (!f->party.in_force || dv_follow_waits_for_members(f, now)) return false;
    if (f->requests.leave.is_open) return true;
    open_request(&f->requests.leave);
    f->look(f, DV_LOOK_WRITES, now);
    return true;
}

/* ---- plans ---- */

void dv_follow_fulfil(dv_follower *f, const dv_follow_changes *changes, int64_t now) {
    dv_follow_requests *r = &f->requests;
    assert(changes->set_number == 0 || changes->events.set);
    if (fulfil(&r->weight, changes->weight_number)) {
        free(r->weight_node);
        r->weight_node = f->party.in_force ? strdup(dv_follow_own_node(f)) : NULL;
    }
    fulfil(&r->set, changes->set_number);
    if (fulfil(&r->leave, changes->leave_number)) f->events->left(f->owner, 0, now);
}

void dv_follow_refuse_leave(dv_follower *f, int error, int64_t now) {
    assert(f->requests.leaves || !f->requests.leave.is_open);
    f->requests.leave.is_open = false;
    if (f->requests.leaves) f->events->left(f->owner, error, now);
}

/* A request stays, as others may be allowed to write. But a set too large for any plan would block all plans. */
void dv_follow_refuse(dv_follower *f, int error, int64_t now) {
    if (dv_outcome_unknown(error) || dv_session_over(error)) return;
    if (error == DIVVY_E2BIG) f->requests.set.is_open = false;
    dv_follow_refuse_leave(f, error, now);
}

/* T8: a plan that somebody made from an older one does not know that we leave. */
void dv_follow_leave_again(dv_follower *f) {
    dv_follow_requests *r = &f->requests;
    if (!r->hands_over || r->leave.is_open || !f->events->member_again(f->owner)) return;
    open_request(&r->leave);
}

void dv_follow_forget_leave(dv_follower *f) {
    f->requests.leave.is_open = false;
}

void dv_follow_note_node(dv_follower *f) {
    dv_follow_requests *r = &f->requests;
    if (!r->weight_node || f->config.is_static || strcmp(r->weight_node, dv_follow_own_node(f)) == 0) return;
    free(r->weight_node);
    r->weight_node = NULL;
    if (!r->weight.is_open) open_request(&r->weight);
}

void dv_follow_free_requests(dv_follower *f) {
    dv_plan_set_unref(f->requests.new_set);
    free(f->requests.weight_node);
}
