/* Servers that throttle, refuse by a quota, and answer by codes that nobody knows. SPDX-License-Identifier: Apache-2.0
 *
 * In histories with `odd_answers` some of these follow the events of the script. They are drawn apart from it, so that
 * the script of a seed is the same without them. */
#include "sim.h"

enum { STREAM = 15, EACH_PERCENT = 60, THROTTLED = -127, PUT_OFF_MS = 6000, AFTER_QUOTA_MS = 15000 };

void sim_answers_begin(sim_world *w) {
    w->answer_random = sim_random_of(w->script->seed, STREAM);
}

static void set_quota(sim_world *w, sim_random *r) {
    static const char *const paths[] = {"/pool", "/locks", "/sem", "/pool/locks"};
    const char *path = w->quota_path = paths[sim_below(r, sizeof paths / sizeof *paths)];
    int64_t nodes = sim_chance(r, 40) ? -1 : sim_between(r, 0, 40);
    if (nodes >= 0) w->quota_until = INT64_MAX / 4;
    else w->quota_until = w->now_ms + AFTER_QUOTA_MS;
    sim_trace(w, "a quota of %lld nodes on %s", (long long)nodes, path);
    divvy_testing_quota(w->ensemble, path, nodes);
}

static void answer_oddly(sim_world *w, sim_random *r) {
    sim_member *m = &w->members[sim_below(r, (uint32_t)w->script->slots)];
    bool executed = sim_chance(r, 50);
    int code = (int)SIM_ONE_OF(r, THROTTLED, THROTTLED, THROTTLED, -119, -1, -2, -5, -12, -126, -999, 7);
    unsigned skip = sim_below(r, 6), count = 1 + sim_below(r, 6);
    if (m->phase == SIM_ABSENT || m->kazoo || m->kazoo_claim) return;
    if (divvy_testing_answer(w->ensemble, m->client, code, executed, skip, count) != 0)
        divvy_testing_answer(w->ensemble, m->client, code, 0, skip, count);
}

void sim_answers_draw(sim_world *w) {
    sim_random *r = &w->answer_random;
    if (!w->script->odd_answers || !sim_chance(r, EACH_PERCENT)) return;
    if (sim_chance(r, 10)) set_quota(w, r);
    else answer_oddly(w, r);
}

int64_t sim_answers_delay_ms(const sim_world *w) {
    if (!w->script->odd_answers) return 0;
    return w->now_ms < w->quota_until ? INT64_MAX / 4 : PUT_OFF_MS;
}

void sim_answers_heal(sim_world *w) {
    if (!w->script->odd_answers) return;
    if (w->quota_path) divvy_testing_quota(w->ensemble, w->quota_path, -1);
    if (w->quota_until > w->now_ms + AFTER_QUOTA_MS) w->quota_until = w->now_ms + AFTER_QUOTA_MS;
    for (size_t i = 0; i < w->script->slots; i++) {
        if (w->members[i].phase != SIM_ABSENT)
            divvy_testing_answer(w->ensemble, w->members[i].client, THROTTLED, 0, 0, 0);
    }
}
