/* The time of one step of a plan, with loads: docs/protocol.md, D10 to D20, D50. SPDX-License-Identifier: Apache-2.0
 *
 * usage: bench_plan_step ITEMS MEMBERS
 *
 * A first plan by count; loads of Zipf(1.0) that come; each further round; a member that joins. Pure: no server. Prints
 * a line of JSON for each step, with its processor time and the level of the fullest member after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/step.h"
#include "plan/table.h"

enum { ROUNDS_MOST = 20, NAME_BYTES = 24 };

static double cpu_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

_Noreturn static void die(const char *what) {
    fprintf(stderr, "bench_plan_step: %s\n", what);
    exit(1);
}

static dv_plan_set *make_items(size_t count) {
    char *names = calloc(count, NAME_BYTES);
    const char **list = calloc(count, sizeof *list);
    if (!names || !list) die("out of memory");
    for (size_t i = 0; i < count; i++) {
        snprintf(names + i * NAME_BYTES, NAME_BYTES, "item-%07zu", i);
        list[i] = names + i * NAME_BYTES;
    }
    dv_plan_set *set = dv_plan_set_make(list, count);
    free((void *)list);
    free(names);
    return set;
}

static dv_plan_node *make_party(size_t count, uint32_t tag) {
    char *names = calloc(count, NAME_BYTES);
    dv_plan_node *nodes = calloc(count, sizeof *nodes);
    if (!names || !nodes) die("out of memory");
    for (size_t m = 0; m < count; m++) {
        char *name = names + m * NAME_BYTES;
        snprintf(name, NAME_BYTES, "n%06zu-m%zu", m, m);
        nodes[m] = (dv_plan_node){.node = name,
                                  .identifier = strchr(name, '-') + 1,
                                  .tag = tag,
                                  .known = true,
                                  .weight = 1000,
                                  .zone = "",
                                  .czxid = (int64_t)m + 1,
                                  .can_balance = true};
    }
    return nodes;
}

/* Takes one step, which becomes the plan. Returns whether there was one. */
static bool take_step(dv_plan **plan, dv_plan_party *party, const dv_plan_events *events, const char *what) {
    static unsigned written;
    dv_plan *next;
    party->pzxid += 10;
    double begun = cpu_ms();
    int result = dv_plan_step(&next, *plan, party, events);
    double took = cpu_ms() - begun;
    if (result < 0) die("no step");
    double *shares = result == DV_PLAN_NEXT ? dv_plan_shares(next) : NULL, fullest = 0;
    for (size_t m = 0; shares && m < next->member_count; m++) fullest = shares[m] > fullest ? shares[m] : fullest;
    printf("{\"step\":\"%s\",\"cpu_ms\":%.1f,\"moved\":%zu,\"fullest\":%.3f}\n", what, took,
           result == DV_PLAN_NEXT ? next->moved_count : 0, fullest);
    free(shares);
    if (result != DV_PLAN_NEXT) return false;
    snprintf(next->header.guid, sizeof next->header.guid, "g%u", ++written);
    next->mzxid = party->pzxid + 5;
    dv_plan_free(*plan);
    *plan = next;
    return true;
}

/* Takes a step that knows that the plan's round is over. */
static bool end_round(dv_plan **plan, dv_plan_party *party, const char *what) {
    char guid[DV_GUID_BYTES];
    memcpy(guid, (*plan)->header.guid, sizeof guid);
    return take_step(plan, party, &(dv_plan_events){.round_over = guid}, what);
}

int main(int argc, char **argv) {
    size_t items = argc == 3 ? strtoul(argv[1], NULL, 10) : 0, members = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (items < 1 || items > DV_PLAN_ITEMS_MAX || members < 1 || members >= DV_PLAN_SLOTS)
        die("usage: bench_plan_step ITEMS MEMBERS");
    dv_plan_set *set = make_items(items);
    if (!set) die("out of memory");
    dv_plan_party party = {.nodes = make_party(members + 1, set->crc), .count = members, .set = set, .pzxid = 1000000};
    dv_loads *loads = dv_loads_make("jobs", items);
    if (!loads) die("out of memory");
    for (size_t i = 0; i < items; i++) { /* ranks in a mixed order */
        size_t rank = (i * UINT64_C(2654435761)) % items + 1;
        loads->classes[i] = dv_class_of((double)items / (double)rank);
    }
    dv_plan *plan = NULL;
    take_step(&plan, &party, NULL, "create");
    take_step(&plan, &party, &(dv_plan_events){.loads = loads}, "loads");
    for (int round = 0; round < ROUNDS_MOST && end_round(&plan, &party, "round"); round++) continue;
    party.count = members + 1;
    end_round(&plan, &party, "join");
    dv_plan_free(plan);
    dv_loads_unref(loads);
    dv_plan_set_unref(set);
    free((void *)(uintptr_t)party.nodes[0].node);
    free((void *)(uintptr_t)party.nodes);
    return 0;
}
