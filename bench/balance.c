/* What balancing by load costs and gains: rules on the same traces. SPDX-License-Identifier: Apache-2.0
 *
 * usage: bench_balance [--curves] [--seeds N]
 *
 * 10,000 items, 100 members, two hours, from equal counts. A JSON line for each trace, rule, threshold and seed; pure,
 * without a server. bench/README.md says what the columns mean. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "assign/balance.h"
#include "balance_rules.h"

enum { ITEMS = 10000, MEMBERS = 100, JOINING = 5, ALL_MEMBERS = MEMBERS + JOINING, MINUTES = 120, SETTLED = 30 };
enum { REVERSAL = 10 }; /* minutes in which an item that goes back counts as one */

enum kind { ZIPF_HALF, ZIPF_ONE, PARETO, KINDS };
enum trace { STILL, JOIN, CRASH, DRIFT, JUMP, SWING, NOISE, TRACES };
static const char *const kind_names[] = {"Zipf(0.5)", "Zipf(1.0)", "Pareto(1.2)"};
static const char *const trace_names[] = {"still", "join", "crash", "drift", "jump", "swing", "noise"};

static char names[ITEMS][16], identifiers[ALL_MEMBERS][16];
static const char *name_list[ITEMS], *identifier_list[ALL_MEMBERS];

/* One run of one rule. */
typedef struct {
    enum trace trace;
    double base[ITEMS], truth[ITEMS], seen[ITEMS], phase[ITEMS];
    uint32_t owners[ITEMS], before[ITEMS], lost_by[ITEMS], came_from[ITEMS];
    long moved_at[ITEMS];
    bool is_here[ALL_MEMBERS], is_new[ALL_MEMBERS];
    uint64_t chance;
    size_t moves, reversals, settling;
    double moved_load, worst, worst_sum, took_ms, slowest_ms;
    size_t looks;
} run;

/* ---- chance ---- */

static double fraction(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*state >> 12) + 0.5) / 4503599627370496.0;
}

static double normal(uint64_t *state) {
    double angle = 6.283185307179586 * fraction(state);
    return sqrt(-2 * log(fraction(state))) * cos(angle);
}

/* ---- traces ---- */

static void run_begin(run *r, enum kind kind, enum trace trace, uint64_t seed) {
    memset(r, 0, sizeof *r);
    r->trace = trace;
    r->chance = seed * 7919 + 1;
    for (int n = 0; n < 8; n++) fraction(&r->chance);
    for (size_t i = 0; i < ITEMS; i++) {
        double rank = (double)(i + 1);
        r->base[i] = kind == ZIPF_HALF  ? 1 / sqrt(rank)
                     : kind == ZIPF_ONE ? 1 / rank
                                        : pow(fraction(&r->chance), -1 / 1.2);
        r->phase[i] = fraction(&r->chance);
        r->owners[i] = (uint32_t)(i % MEMBERS);
        r->moved_at[i] = -MINUTES;
        r->lost_by[i] = NOBODY;
    }
    for (size_t i = ITEMS; i > 1; i--) {
        size_t other = (size_t)(fraction(&r->chance) * (double)i);
        uint32_t owner = r->owners[i - 1];
        r->owners[i - 1] = r->owners[other];
        r->owners[other] = owner;
    }
    for (size_t m = 0; m < MEMBERS; m++) r->is_here[m] = true;
    memcpy(r->seen, r->base, sizeof r->seen);
}

/* Joins and crashes come every fifteen minutes, from the thirtieth on. Returns whether anybody came or went. */
static bool change_members(run *r, long minute) {
    memset(r->is_new, 0, sizeof r->is_new);
    if ((r->trace != JOIN && r->trace != CRASH) || minute < SETTLED || minute % 15 != 0) return false;
    size_t number = (size_t)(minute - SETTLED) / 15;
    if (number >= JOINING) return false;
    if (r->trace == JOIN) {
        r->is_here[MEMBERS + number] = r->is_new[MEMBERS + number] = true;
    } else {
        uint32_t gone = (uint32_t)(number * 17);
        r->is_here[gone] = false;
        for (size_t i = 0; i < ITEMS; i++) {
            if (r->owners[i] == gone) r->owners[i] = NOBODY;
        }
    }
    return true;
}

/* Drift: each load by 3 % a minute, as it comes. Jump: every twenty minutes a hundred pairs of items change loads.
 * Swing: by 80 % in two hours, each item at its own time of the day. Noise: each reading by 30 %, and nothing else. */
static void change_loads(run *r, long minute) {
    for (size_t i = 0; i < ITEMS; i++) {
        if (r->trace == DRIFT && minute >= SETTLED) r->base[i] *= exp(0.03 * normal(&r->chance));
        r->truth[i] = r->base[i];
        if (r->trace == SWING) {
            r->truth[i] *= 1 + 0.8 * sin(6.283185307179586 * ((double)minute / 120 + r->phase[i]));
        }
    }
    if (r->trace == JUMP && minute >= SETTLED && minute % 20 == 0) {
        for (size_t n = 0; n < 100; n++) {
            size_t a = (size_t)(fraction(&r->chance) * ITEMS), b = (size_t)(fraction(&r->chance) * ITEMS);
            double load = r->base[a];
            r->truth[a] = r->base[a] = r->base[b];
            r->truth[b] = r->base[b] = load;
        }
    }
    for (size_t i = 0; i < ITEMS; i++) {
        double reading = r->truth[i] * (r->trace == NOISE ? exp(0.3 * normal(&r->chance)) : 1);
        r->seen[i] = minute == 0 ? reading : (r->seen[i] + reading) / 2;
    }
}

/* ---- what came of it ---- */

/* Returns lambda of the true loads; fills in the worst level of a member. */
static double look(const run *r, double *worst) {
    static dv_balance_member members[ALL_MEMBERS];
    static dv_balance_item items[ITEMS];
    static double levels[ALL_MEMBERS];
    static uint32_t at[ALL_MEMBERS];
    size_t here = 0;
    for (size_t m = 0; m < ALL_MEMBERS; m++) {
        if (!r->is_here[m]) continue;
        members[here] = (dv_balance_member){.identifier = identifiers[m], .zone = "", .weight = 1000};
        at[m] = (uint32_t)here++;
    }
    for (size_t i = 0; i < ITEMS; i++) {
        items[i] = (dv_balance_item){.size = r->truth[i], .owner = at[r->owners[i]], .tag = DV_NO_TAG};
    }
    double fair = dv_balance_loads(members, here, items, ITEMS, levels);
    *worst = 0;
    for (size_t m = 0; m < here; m++) {
        if (levels[m] > *worst) *worst = levels[m];
    }
    return fair;
}

static void count_moves(run *r, long minute) {
    double worst, fair = look(r, &worst);
    for (size_t i = 0; i < ITEMS; i++) {
        if (r->before[i] == NOBODY || r->before[i] == r->owners[i]) continue;
        r->moves++;
        r->moved_load += fmin(r->truth[i] / fair, 1);
        r->reversals += r->lost_by[i] == r->owners[i] && minute - r->moved_at[i] <= REVERSAL;
        r->lost_by[i] = r->before[i];
        r->moved_at[i] = minute;
    }
    if (minute < SETTLED) {
        r->settling = r->moves;
        return;
    }
    r->worst_sum += worst;
    r->looks++;
    if (worst > r->worst) r->worst = worst;
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* others may use the machine */
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void run_all(run *r, const rule *by, double threshold) {
    long memory = 0;
    uint64_t chance = r->chance ^ 12345;
    for (long minute = 0; minute < MINUTES; minute++) {
        bool has_changed = change_members(r, minute);
        change_loads(r, minute);
        memcpy(r->before, r->owners, sizeof r->before);
        world w = {.item_count = ITEMS,
                   .member_count = ALL_MEMBERS,
                   .names = name_list,
                   .members = identifier_list,
                   .is_here = r->is_here,
                   .is_new = r->is_new,
                   .has_changed = has_changed,
                   .loads = r->seen,
                   .owners = r->owners,
                   .moved_at = r->moved_at,
                   .minute = minute,
                   .threshold = threshold,
                   .memory = &memory,
                   .chance = &chance,
                   .came_from = r->came_from};
        double from = now_ms();
        by->run(&w);
        double took = now_ms() - from;
        r->took_ms += took;
        if (took > r->slowest_ms) r->slowest_ms = took;
        count_moves(r, minute);
    }
}

static void measure(const rule *by, enum kind kind, enum trace trace, double threshold, uint64_t seed) {
    static run r;
    run_begin(&r, kind, trace, seed);
    run_all(&r, by, threshold);
    printf("{\"loads\":\"%s\",\"trace\":\"%s\",\"rule\":\"%s\",\"threshold\":%g,\"usual\":%s,\"seed\":%llu,"
           "\"moves\":%zu,\"settling\":%zu,\"moved_load\":%.2f,\"reversals\":%zu,\"worst\":%.3f,\"worst_mean\":%.3f,"
           "\"step_ms\":%.3f,\"slowest_ms\":%.2f}\n",
           kind_names[kind], trace_names[trace], by->name, threshold, threshold == by->usual ? "true" : "false",
           (unsigned long long)seed, r.moves, r.settling, r.moved_load, r.reversals, r.worst,
           r.worst_sum / (double)r.looks, r.took_ms / MINUTES, r.slowest_ms);
    fflush(stdout);
}

int main(int argc, char **argv) {
    bool curves = false;
    unsigned long seeds = 1;
    for (int n = 1; n < argc; n++) {
        if (strcmp(argv[n], "--curves") == 0) curves = true;
        else if (strcmp(argv[n], "--seeds") == 0 && n + 1 < argc) seeds = strtoul(argv[++n], NULL, 10);
        else return fputs("usage: bench_balance [--curves] [--seeds N]\n", stderr), 2;
    }
    for (size_t i = 0; i < ITEMS; i++) {
        snprintf(names[i], sizeof names[i], "item-%05zu", i);
        name_list[i] = names[i];
    }
    for (size_t m = 0; m < ALL_MEMBERS; m++) {
        snprintf(identifiers[m], sizeof identifiers[m], "worker-%zu", m);
        identifier_list[m] = identifiers[m];
    }
    for (int kind = 0; kind < KINDS; kind++) {
        for (int trace = 0; trace < TRACES; trace++) {
            for (size_t n = 0; n < RULES; n++) {
                for (unsigned long seed = 1; seed <= seeds; seed++) {
                    measure(&rules[n], (enum kind)kind, (enum trace)trace, rules[n].usual, seed);
                }
                for (size_t t = 0; curves && t < 5 && rules[n].thresholds[0] > 0; t++) {
                    if (rules[n].thresholds[t] == rules[n].usual) continue;
                    measure(&rules[n], (enum kind)kind, (enum trace)trace, rules[n].thresholds[t], 1);
                }
            }
        }
    }
    return 0;
}
