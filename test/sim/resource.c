/* The resource that an item guards: it refuses tokens that are smaller than the largest that it was shown.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

/* A write is stale when somebody who came to own the item later has been here already. Whose turn came when is the
 * servers' truth and not the resource's: it sees tokens only. */
void sim_resource_write(sim_member *m, size_t item) {
    sim_world *w = m->world;
    sim_holding *h = &m->items[item];
    sim_resource *r = &w->resources[item];
    size_t turn = sim_truth_turn(&w->truth, item, h->work_token, h->work_session);
    bool believes = sim_member_alive(m) && m->seen_session == h->work_session;
    if (!believes) w->coverage->meetings[SIM_MET_BLIND_WRITE]++;
    /* Nobody who came before it comes after it: T6. */
    if (turn == 0 && h->works_blind) turn = r->turn;
    else if (turn == 0) {
        sim_violate(w, "S4", "%s works on %s with token %lld, whose place was never the first", m->name, w->items[item],
                    (long long)h->work_token);
        return;
    }
    bool accepted = h->work_token >= r->token;
    if (!accepted) {
        w->coverage->meetings[SIM_MET_STALE_REJECTED]++;
        if (believes && turn > r->turn)
            sim_violate(w, "S3", "%s owns %s, and its token %lld is refused, since %lld was seen", m->name,
                        w->items[item], (long long)h->work_token, (long long)r->token);
        return;
    }
    if (turn < r->turn)
        sim_violate(w, "S3", "a stale write of %s to %s was accepted: token %lld, turn %zu after turn %zu", m->name,
                    w->items[item], (long long)h->work_token, turn, r->turn);
    r->token = h->work_token;
    r->turn = turn;
}
