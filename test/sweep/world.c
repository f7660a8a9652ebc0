/* The ensemble and the clients of a scenario, and what must hold when it is over. SPDX-License-Identifier:
 * Apache-2.0 */
#include "sweep.h"

divvy_client *sweep_open(sweep *s, int n) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.session_timeout_ms = SWEEP_TIMEOUT_MS;
    config.ensemble_tick_ms = 500;
    if (divvy_testing_client_open(&s->clients[n], s->ensemble, &config) != 0) sweep_fail(s, "open");
    sweep_seam_put(s, s->clients[n]);
    if (divvy_client_wait_connected(s->clients[n], SWEEP_WAIT_MS) != 0) sweep_fail(s, "wait_connected");
    return s->clients[n];
}

static bool burst_is_over(void *user) {
    sweep *s = user;
    enum { BURST_MS = 300 };
    if (!s->ensemble) return false;
    int64_t now = divvy_testing_now_ms(s->ensemble);
    if (!s->burst_began) s->burst_began = now;
    return now >= s->burst_began + BURST_MS;
}

void sweep_begin(sweep *s) {
    bool allocations = s->way == SWEEP_ONCE || s->way == SWEEP_BURST;
    enum { BURST = 25 };
    sweep_allocations_arm(allocations ? s->at : 0, s->way == SWEEP_BURST ? BURST : 1);
    sweep_allocations_until(burst_is_over, s);
    s->requests = 0;
    s->armed = true;
}

void sweep_pass(sweep *s, int64_t ms) {
    if (divvy_testing_run(s->ensemble, ms) < 0) sweep_fail(s, "run");
}

void sweep_until(sweep *s, bool (*met)(sweep *s, void *user), void *user, int64_t bound_ms, const char *what) {
    int64_t end = divvy_testing_now_ms(s->ensemble) + bound_ms;
    while (!met(s, user)) {
        if (divvy_testing_now_ms(s->ensemble) >= end) sweep_fail(s, "hangs: %s", what);
        if (divvy_testing_step(s->ensemble, end) < 0) sweep_fail(s, "step");
    }
}

bool sweep_excuses(const sweep *s, int error) {
    bool refused = sweep_allocations_refused() > 0 || s->way == SWEEP_REPLY_UNREAD || s->way == SWEEP_REFUSED;
    return error == DIVVY_ENOMEM && refused && s->way != SWEEP_CLEAN;
}

size_t sweep_children(sweep *s, const char *path) {
    sweep_allocations_pause(true);
    divvy_strings *names = divvy_testing_children(s->ensemble, path);
    size_t count = divvy_strings_count(names);
    divvy_strings_free(names);
    sweep_allocations_pause(false);
    return count;
}

static bool is_idle(const divvy_client *c) {
    return c->state == DIVVY_CONNECTED && c->ephemeral_count == 0 && c->ephemerals.used_bytes == 0 &&
           c->watched.used_bytes == 0 && !c->listeners && !c->own_nodes && !c->barrier_waits && !c->barrier_under_way;
}

/* L3, L6: nothing is kept, of the client and in ZooKeeper. */
static bool all_idle(sweep *s, void *user) {
    const char **why = user;
    for (int i = 0; i < SWEEP_CLIENTS; i++) {
        if (s->clients[i] && !is_idle(s->clients[i])) {
            *why = s->clients[i]->state != DIVVY_CONNECTED ? "no connection"
                   : s->clients[i]->listeners              ? "an object is still at work"
                                                           : "room in a budget";
            return false;
        }
    }
    for (size_t i = 0; i < sizeof s->empty_paths / sizeof *s->empty_paths && s->empty_paths[i]; i++) {
        *why = s->empty_paths[i];
        if (sweep_children(s, s->empty_paths[i])) return false;
    }
    return true;
}

void sweep_end(sweep *s) {
    const char *why = "";
    s->armed = false;
    sweep_allocations_disarm();
    if (sweep_is_spoilt(s, "orphan")) {
        char path[128];
        snprintf(path, sizeof path, "%s/orphan", s->empty_paths[0]);
        divvy_testing_put(s->ensemble, path, "", 0, DIVVY_TESTING_PERSISTENT);
    }
    int64_t end = divvy_testing_now_ms(s->ensemble) + 2 * SWEEP_TIMEOUT_MS + 60000; /* R3 */
    while (!all_idle(s, &why)) {
        if (divvy_testing_now_ms(s->ensemble) >= end) sweep_fail(s, "not given back: %s", why);
        divvy_testing_step(s->ensemble, end);
    }
    s->check = NULL;
    for (int i = 0; i < SWEEP_CLIENTS; i++) {
        if (s->clients[i]) divvy_client_close(s->clients[i]);
        s->clients[i] = NULL;
    }
}
