/* The look for other live nodes of our identifier: docs/protocol.md, D38. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "follow/follower.h"

static void on_read(void *context, int error, int64_t now) {
    dv_follower *f = context;
    assert(f->fence.under_way > 0);
    f->fence.under_way--;
    /* The answer may be about an earlier party; or a node has gone, and another party will settle. */
    bool decided = error == 0 && f->party.in_force && f->fence.is_unknown;
    if (decided) {
        f->fence.is_unknown = false;
        f->look(f, DV_LOOK_SETTLED | DV_LOOK_ROUND | DV_LOOK_WRITES, now);
    } else if (error && error != DIVVY_ECANCELED && error != DIVVY_ENOENT && f->fence.is_unknown) {
        dv_follow_try_later(f, now);
    }
    dv_follow_end(f, now);
}

void dv_follow_ask_fence(dv_follower *f, int64_t now) {
    assert(f->party.in_force && f->party.own != SIZE_MAX);
    f->fence.is_unknown = false;
    if (!f->config.is_static) return;
    int asked = dv_roster_ask_namesakes(f->roster, f->party.own, on_read, f);
    if (asked == 0) return;
    f->fence.is_unknown = true;
    if (asked < 0) {
        dv_follow_try_later(f, now);
        return;
    }
    f->fence.under_way++;
    dv_follow_begin(f);
}

bool dv_follow_ask_fence_again(dv_follower *f, int64_t now) {
    if (!f->party.in_force || !f->fence.is_unknown || f->fence.under_way) return false;
    dv_follow_ask_fence(f, now);
    return !f->fence.is_unknown;
}

bool dv_follow_is_replaced(const dv_follower *f) {
    return f && f->party.in_force && !f->fence.is_unknown && dv_follow_is_fenced_by_another(f);
}
