/* Takes events out of a history for as long as it violates the same invariant. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "runner.h"

static bool stays(const sim_script *script, const bool *omit, const char *what, sim_violation *out) {
    return !sim_run_one(script, omit, out) && strcmp(out->what, what) == 0;
}

/* Runs the script without the events of one piece. Returns whether the violation stays so; then they are out for
 * good. */
static bool try_without(const sim_script *script, bool *omit, size_t from, size_t count, sim_violation *v) {
    bool trial[SIM_EVENTS_MAX];
    sim_violation found;
    size_t taken = 0;
    memcpy(trial, omit, sizeof trial);
    for (size_t i = from; i < from + count && i < script->count; i++) {
        taken += !trial[i];
        trial[i] = true;
    }
    if (taken == 0 || !stays(script, trial, v->what, &found)) return false;
    memcpy(omit, trial, sizeof trial);
    *v = found;
    return true;
}

static void print_left(const sim_script *script, const bool *omit, const sim_violation *v) {
    size_t left = 0;
    for (size_t i = 0; i < script->count; i++) left += !omit[i];
    printf("%zu of %zu events are left:\n", left, script->count);
    for (size_t i = 0; i < script->count; i++) {
        const sim_event *e = &script->events[i];
        if (!omit[i])
            printf("  %8lld ms  %-22s a=%u b=%u c=%u d=%u\n", (long long)e->at_ms, sim_kind_name(e->kind), e->a, e->b,
                   e->c, e->d);
    }
    printf("violation of %s at %lld ms: %s\n", v->what, (long long)v->at_ms, v->text);
    /* Once more in this process, to show it. */
    static sim_coverage coverage;
    sim_violation again;
    if (strcmp(v->what, "crash") != 0) sim_history(script, omit, true, &coverage, &again);
}

void sim_shrink(const sim_script *script) {
    bool omit[SIM_EVENTS_MAX] = {false};
    sim_violation v;
    if (sim_run_one(script, omit, &v)) {
        printf("seed %llu shows no violation\n", (unsigned long long)script->seed);
        return;
    }
    printf("violation of %s: %s\n", v.what, v.text);
    bool smaller = true;
    while (smaller) {
        smaller = false;
        for (size_t piece = (script->count + 1) / 2; piece > 0; piece /= 2) {
            for (size_t from = 0; from < script->count; from += piece)
                smaller |= try_without(script, omit, from, piece, &v);
        }
    }
    print_left(script, omit, &v);
}
