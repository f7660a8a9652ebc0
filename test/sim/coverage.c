/* What histories have met, so that a simulator that misses something says so. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "sim.h"

static const char *const transition_names[SIM_TRANSITIONS] = {
    [SIM_ALLOCATING_ACQUIRED] = "ALLOCATING -> ACQUIRED",
    [SIM_ALLOCATING_RELEASE_MEMBERS] = "ALLOCATING -> RELEASE, target",
    [SIM_ALLOCATING_RELEASE_SUSPEND] = "ALLOCATING -> RELEASE, session event",
    [SIM_ALLOCATING_RELEASE_LOSS] = "ALLOCATING -> RELEASE, loss",
    [SIM_ALLOCATING_ALLOCATING] = "ALLOCATING -> ALLOCATING, target",
    [SIM_ALLOCATING_FAILURE_LOSS] = "ALLOCATING -> FAILURE, loss",
    [SIM_ALLOCATING_FAILURE_TIMEOUT] = "ALLOCATING -> FAILURE, allocate_timeout",
    [SIM_ALLOCATING_FAILURE_FINISH] = "ALLOCATING -> FAILURE, finish",
    [SIM_ACQUIRED_RELEASE_MEMBERS] = "ACQUIRED -> RELEASE, target",
    [SIM_ACQUIRED_RELEASE_EAGER] = "ACQUIRED -> RELEASE, eager",
    [SIM_ACQUIRED_RELEASE_SUSPEND] = "ACQUIRED -> RELEASE, session event",
    [SIM_ACQUIRED_RELEASE_LOSS] = "ACQUIRED -> RELEASE, loss",
    [SIM_ACQUIRED_RELEASE_FOREIGN] = "ACQUIRED -> RELEASE, foreign deletion",
    [SIM_ACQUIRED_ALLOCATING_ADDED] = "ACQUIRED -> ALLOCATING, target",
    [SIM_ACQUIRED_ALLOCATING_FOREIGN] = "ACQUIRED -> ALLOCATING, foreign deletion",
    [SIM_ACQUIRED_ACQUIRED] = "ACQUIRED -> ACQUIRED, equal target",
    [SIM_ACQUIRED_FAILURE_LOSS] = "ACQUIRED -> FAILURE, loss",
    [SIM_ACQUIRED_FAILURE_FINISH] = "ACQUIRED -> FAILURE, finish",
    [SIM_RELEASE_RELEASE_TARGET] = "RELEASE -> RELEASE, target",
    [SIM_RELEASE_RELEASE_MEMBERS] = "RELEASE -> RELEASE, more to release",
    [SIM_RELEASE_RELEASE_SUSPEND] = "RELEASE -> RELEASE, session event",
    [SIM_RELEASE_RELEASE_LOSS] = "RELEASE -> RELEASE, loss",
    [SIM_RELEASE_ALLOCATING] = "RELEASE -> ALLOCATING",
    [SIM_RELEASE_FAILURE_LOSS] = "RELEASE -> FAILURE, loss",
    [SIM_RELEASE_FAILURE_FINISH] = "RELEASE -> FAILURE, finish",
};

static const char *const meeting_names[SIM_MEETINGS] = {
    [SIM_MET_KEPT] = "a revoked item that stayed",
    [SIM_MET_SHORT] = "a share that does not fit",
    [SIM_MET_STALE_REJECTED] = "a stale write that the resource refused",
    [SIM_MET_UNSEEN] = "a second release refused",
    [SIM_MET_BLIND_WRITE] = "a write past the deadline",
    [SIM_MET_REJOIN] = "a member on a second session",
    [SIM_MET_KAZOO] = "a kazoo member",
    [SIM_MET_KAZOO_ACQUIRED] = "a kazoo member that acquired",
    [SIM_MET_STRAY] = "a stray in the party",
    [SIM_MET_WAITED_SECOND] = "a place behind another",
};

void sim_coverage_add(sim_coverage *to, const sim_coverage *from) {
    to->histories += from->histories;
    to->steps += from->steps;
    to->script_events += from->script_events;
    to->simulated_ms += from->simulated_ms;
    for (int i = 0; i < SIM_KINDS; i++) to->kinds[i] += from->kinds[i];
    for (int i = 0; i < SIM_TRANSITIONS; i++) to->transitions[i] += from->transitions[i];
    for (int i = 0; i < SIM_MEETINGS; i++) to->meetings[i] += from->meetings[i];
}

static void print_line(const char *what, const char *name, uint64_t count) {
    printf("  %-10s %-44s %10llu\n", what, name, (unsigned long long)count);
}

void sim_coverage_print(const sim_coverage *c) {
    printf("coverage\n");
    for (int i = 0; i < SIM_KINDS; i++) print_line("event", sim_kind_name((sim_kind)i), c->kinds[i]);
    for (int i = 0; i < SIM_TRANSITIONS; i++) print_line("transition", transition_names[i], c->transitions[i]);
    for (int i = 0; i < SIM_MEETINGS; i++) print_line("met", meeting_names[i], c->meetings[i]);
}

static size_t miss(const char *what, const char *name, uint64_t count) {
    if (count) return 0;
    printf("not covered: %s %s\n", what, name);
    return 1;
}

size_t sim_coverage_missing(const sim_coverage *c) {
    size_t missing = 0;
    for (int i = 0; i < SIM_KINDS; i++) missing += miss("event", sim_kind_name((sim_kind)i), c->kinds[i]);
    for (int i = 0; i < SIM_TRANSITIONS; i++) missing += miss("transition", transition_names[i], c->transitions[i]);
    for (int i = 0; i < SIM_MEETINGS; i++) missing += miss("meeting", meeting_names[i], c->meetings[i]);
    return missing;
}
