/* The look for the items that a round moves: docs/protocol.md, D19, D42. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "follow/follower.h"
#include "recipe/queue.h"
#include "znode/path.h"

enum {
    LOOK_MS = 500,
    LOOK_MAX_MS = 8000,
    LOOKERS = 3,
    AT_ONCE = 200,
    CLIENT_PREFIX_BYTES = 22 /* N5: session and client */
};

typedef struct {
    dv_follower *f;
    unsigned look;
    size_t moved;
} lock_look;

typedef enum { GONE, UNSETTLED, UNREAD, LIVES } presence;

/* Finds the node of a moved item's new owner (D42), or, when UNREAD, a node that may be it. */
static presence find_owner(const dv_follower *f, size_t moved, size_t *at) {
    const dv_plan *plan = f->memory.plan;
    const dv_plan_member *m = dv_plan_member_at(plan, plan->owners[plan->moved[moved]]);
    size_t unread = SIZE_MAX, found = m ? dv_follow_find_node(f, plan, m, &unread) : SIZE_MAX;
    *at = unread != SIZE_MAX ? unread : found;
    if (unread != SIZE_MAX) return UNREAD;
    if (found != SIZE_MAX) return LIVES;
    /* A member that is not in a party before the plan's may only have come since. */
    return f->party.pzxid < plan->header.pzxid ? UNSETTLED : GONE;
}

/* P/locks/<item>; malloc'ed. */
static char *queue_path(const dv_follower *f, size_t moved) {
    const dv_plan *plan = f->memory.plan;
    const char *name = plan->set->names[plan->moved[moved]];
    size_t bytes = dv_name_encode(name, NULL, 0) + 1;
    char *node = malloc(bytes);
    if (!node) return NULL;
    dv_name_encode(name, node, bytes);
    char *path = dv_path_join(f->config.locks_path, node);
    free(node);
    return path;
}

static bool is_held_by(const char *const *children, size_t count, const char *node) {
    const char **queue = (const char **)(uintptr_t)malloc((count + 1) * sizeof *queue);
    if (!queue) return false;
    bool held = dv_queue_contenders(children, count, queue) > 0 && strncmp(queue[0], node, CLIENT_PREFIX_BYTES) == 0;
    free(queue);
    return held;
}

/* Returns whether what is looked at is what the plan in memory says. */
static bool is_current(const dv_follower *f) {
    return f->round.count > 0 && f->memory.plan && strcmp(f->round.guid, f->memory.plan->header.guid) == 0;
}

/* ---- the end of a round ---- */

static void round_over(dv_follower *f, int64_t now) {
    assert(f->round.guid[0]);
    memcpy(f->round.over, f->round.guid, sizeof f->round.over);
    f->round.waiting = 0;
    dv_follow_restart_rank(f);
    f->look(f, DV_LOOK_WRITES, now);
}

static void look_done(dv_follower *f, int64_t now) {
    int64_t timeout_ms = f->memory.plan->header.options.round_timeout_ms;
    if (f->round.waiting == 0 || now - f->round.since >= timeout_ms) {
        round_over(f, now);
        return;
    }
    f->round.look_ms = 2 * f->round.look_ms < LOOK_MAX_MS ? 2 * f->round.look_ms : LOOK_MAX_MS;
    int64_t at = now + f->round.look_ms * (int64_t)(1 + dv_follow_rank_of(f));
    if (at > f->round.since + timeout_ms) at = f->round.since + timeout_ms;
    dv_timer_set(f->config.client, &f->round.timer, at);
}

/* ---- looking ---- */

static void look_further(dv_follower *f, int64_t now);

static void arrive(dv_follower *f, size_t moved) {
    assert(!f->round.arrived[moved] && f->round.waiting > 0);
    f->round.arrived[moved] = true;
    f->round.waiting--;
}

/* Goes on with the look, or ends it, after an answer. */
static void answered(dv_follower *f, int64_t now) {
    if (!f->round.timer.link && is_current(f)) look_further(f, now);
    dv_follow_end(f, now);
}

static void on_looked(void *context, const dv_reply *reply, int64_t now) {
    lock_look *l = context;
    dv_follower *f = l->f;
    size_t at;
    assert(f->round.under_way > 0);
    f->round.under_way--;
    if (l->look == f->round.look && is_current(f) && !f->round.arrived[l->moved]) {
        presence owner = find_owner(f, l->moved, &at);
        bool held = owner == LIVES && reply->error == 0 &&
                    is_held_by(reply->children, reply->child_count, dv_roster_party(f->roster)->nodes[at].node);
        if (held || owner == GONE) arrive(f, l->moved);
    }
    free(l);
    answered(f, now);
}

/* Now that it is known who the owner is, its items are looked at. */
static void on_owner_read(void *context, int error, int64_t now) {
    dv_follower *f = context;
    assert(f->round.under_way > 0);
    f->round.under_way--;
    f->round.owner_requested = false;
    if (error == 0) f->round.next = 0;
    answered(f, now);
}

/* Owners that are not known yet are few, so they are read one after the other. */
static void read_owner(dv_follower *f, size_t node) {
    if (f->round.owner_requested) return;
    f->round.owner_requested = dv_roster_ask_namesakes(f->roster, node, on_owner_read, f) > 0;
    if (!f->round.owner_requested) return;
    f->round.under_way++;
    dv_follow_begin(f);
}

static bool look_at(dv_follower *f, size_t moved) {
    assert(moved < f->round.count && !f->round.arrived[moved]);
    lock_look *l = calloc(1, sizeof *l);
    char *path = queue_path(f, moved);
    if (l) *l = (lock_look){.f = f, .look = f->round.look, .moved = moved};
    bool sent = l && path && dv_znode_children(f->config.client->znode, path, NULL, on_looked, l) == 0;
    free(path);
    if (!sent) {
        free(l);
        return false;
    }
    f->round.under_way++;
    dv_follow_begin(f);
    return true;
}

/* Looks at more of the moved items, a few at once. Those that cannot be looked at now wait for the next look. */
static void look_further(dv_follower *f, int64_t now) {
    assert(f->round.count == 0 || f->round.arrived);
    dv_follow_round *r = &f->round;
    while (r->next < r->count && r->under_way < AT_ONCE) {
        size_t moved = r->next++, node = 0;
        if (r->arrived[moved]) continue;
        if (find_owner(f, moved, &node) == UNREAD) read_owner(f, node);
        else if (!look_at(f, moved)) r->next = r->count;
    }
    if (r->under_way == 0) look_done(f, now);
}

static void on_timer(dv_timer *timer, int64_t now) {
    dv_follower *f = DV_CONTAINER(timer, dv_follower, round.timer);
    f->round.next = 0;
    if (is_current(f) && dv_client_connected(f->config.client)) look_further(f, now);
}

/* ---- beginning and end ---- */

void dv_follow_stop_round(dv_follower *f) {
    dv_timer_cancel(&f->round.timer);
    free(f->round.arrived);
    f->round.arrived = NULL;
    f->round.count = f->round.next = f->round.waiting = 0;
    f->round.guid[0] = '\0';
    f->round.look++;
}

static bool is_to_be_watched(const dv_follower *f) {
    const dv_plan *plan = f->memory.plan;
    return f->party.in_force && !f->fence.is_unknown && f->memory.standing == DV_PLAN_GOOD && plan->moved_count > 0 &&
           strcmp(f->round.over, plan->header.guid) != 0 && !dv_follow_is_fenced(f) && dv_follow_rank_of(f) < LOOKERS;
}

void dv_follow_watch_round(dv_follower *f, int64_t now) {
    if (!is_to_be_watched(f)) {
        dv_follow_stop_round(f);
        return;
    }
    const dv_plan *plan = f->memory.plan;
    bool same = strcmp(f->round.guid, plan->header.guid) == 0;
    if (same && (f->round.timer.link || f->round.under_way)) return;
    int64_t since = same ? f->round.since : now;
    dv_follow_stop_round(f);
    assert(f->round.count == 0 && !f->round.timer.link);
    f->round.arrived = calloc(plan->moved_count, sizeof *f->round.arrived);
    if (!f->round.arrived) {
        dv_client_again(f->config.client);
        return;
    }
    memcpy(f->round.guid, plan->header.guid, sizeof f->round.guid);
    f->round.since = since;
    f->round.count = f->round.waiting = plan->moved_count;
    f->round.look_ms = LOOK_MS;
    f->round.timer.fire = on_timer;
    dv_timer_set(f->config.client, &f->round.timer, now + LOOK_MS * (int64_t)(1 + dv_follow_rank_of(f)));
}
