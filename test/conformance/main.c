/* conformance: the in-memory ensemble compared with real servers. SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "seed.h"
#include "wait.h"

enum { ROUNDS = 60, DIFFERENCES_MAX = 5, TRIES_MAX = 4, COVERED_FROM = 4000 };

typedef struct {
    size_t operations;
    uint64_t seed;
    int servers, stall_ms;
    bool verbose, coverage, self_test, fresh;
} options;

static const char usage[] =
    "usage: conformance [--operations N] [--seed S] [--servers 1|3] [--verbose] [--coverage] [--fresh]\n"
    "                   [--stall MS]\n"
    "       conformance --self-test\n"
    "\n"
    "Plays random traces of operations on real servers and on the in-memory ensemble, and compares what each session\n"
    "is told. The memory is like the release that the real servers say they are. --seed S --operations 1 plays the one "
    "trace S. --fresh gives the last third fresh seeds. --self-test\n"
    "compares the in-memory ensemble with itself, and with itself broken in each way in turn: then a difference must\n"
    "be found. It needs no server.\n"
    "\n"
    "A trace in which a real session ended, or lost its connection, without the script's order proves nothing: it is\n"
    "played again on servers of its own, up to three times. --stall stands still once in each trace, at its first try\n"
    "and for longer than sessions last there: then it must be played again.\n";

static void number_seats(world *w) {
    for (int i = 0; i <= SEATS; i++) {
        w->seats[i].world = w;
        w->seats[i].number = i;
    }
}

static int release; /* of the worlds that were begun last */

static void begin_worlds(world worlds[WORLDS], const options *o) {
    memset(worlds, 0, WORLDS * sizeof *worlds);
    if (o->self_test) world_begin_memory(&worlds[0], 1, o->seed, NULL);
    else world_begin_real(&worlds[0], o->servers);
    world_begin_memory(&worlds[1], o->self_test ? 3 : o->servers, o->seed + 1, &worlds[0]);
    worlds[1].index = 1;
    release = worlds[1].release;
    if (o->self_test) worlds[0].servers = worlds[1].servers = 1;
    for (int i = 0; i < WORLDS; i++) number_seats(&worlds[i]);
}

static void end_worlds(world worlds[WORLDS]) {
    for (int i = 0; i < WORLDS; i++) world_end(&worlds[i]);
    compare_free();
}

/* Plays a trace once. `stall_ms` is more than sessions last, or 0. */
static trace_end play_once(world worlds[WORLDS], const options *o, uint64_t seed, int stall_ms) {
    const trace_plan plan = {.rounds = ROUNDS, .verbose = o->verbose, .stall_ms = stall_ms};
    return trace_run(worlds, seed, &plan);
}

/* New worlds, since those of a trace that proves nothing have become different. */
static void begin_again(world worlds[WORLDS], const options *o, uint64_t seed, int attempt) {
    printf("conformance: trace %llu proves nothing, for of itself %s; played again (%d)\n", (unsigned long long)seed,
           worlds[0].surprise, attempt);
    fflush(stdout);
    end_worlds(worlds);
    begin_worlds(worlds, o);
}

/* Plays a trace, and again while it proves nothing. Returns whether the worlds are the same. */
static bool play_trace(world worlds[WORLDS], const options *o, uint64_t seed) {
    int lasting_ms = world_session_timeout_ms;
    size_t operations = trace_operations, sessions = trace_sessions;
    if (o->stall_ms) world_session_timeout_ms = o->stall_ms / 2;
    trace_end end = play_once(worlds, o, seed, o->stall_ms);
    world_session_timeout_ms = lasting_ms;
    if (o->stall_ms && end == TRACE_SAME) {
        printf("conformance: a stall of %d ms was not noticed\n", o->stall_ms);
        return false;
    }
    for (int attempt = 1; end == TRACE_VOID && attempt < TRIES_MAX; attempt++) {
        begin_again(worlds, o, seed, attempt);
        trace_operations = operations;
        trace_sessions = sessions;
        end = play_once(worlds, o, seed, 0);
    }
    return end == TRACE_SAME;
}

/* Traces until so many operations were compared, or too much differs. How many traces differed. */
static unsigned play(const options *o, unsigned differences_max) {
    world worlds[WORLDS];
    unsigned differences = 0;
    begin_worlds(worlds, o);
    if (!o->self_test) printf("conformance: the real servers are ZooKeeper %s\n", worlds[0].version);
    trace_operations = trace_sessions = 0;
    uint64_t seed = o->seed;
    bool fresh = false;
    for (; trace_operations < o->operations && differences < differences_max; seed++) {
        if (o->fresh && !fresh && trace_operations >= o->operations / 3 * 2) {
            fresh = true;
            seed = dv_test_fresh_seed();
            printf("conformance: fresh seeds from %llu\n", (unsigned long long)seed);
        }
        if (play_trace(worlds, o, seed)) continue;
        differences++;
        if (breakage_now == BREAK_NOTHING)
            printf("again: conformance --servers %d --seed %llu --operations 1\n", o->servers,
                   (unsigned long long)seed);
        fflush(stdout);
    }
    end_worlds(worlds);
    return differences;
}

static int compare_worlds(const options *o) {
    unsigned differences = play(o, DIFFERENCES_MAX);
    if (o->coverage) coverage_print();
    unsigned missing = o->operations >= COVERED_FROM && !differences ? coverage_missing(release) : 0;
    printf("conformance: operations %zu, sessions %zu, servers %d, differences %u\n", trace_operations, trace_sessions,
           o->servers, differences);
    return differences || missing ? 1 : 0;
}

/* Nothing differs where nothing is broken, and whatever is broken is found. */
static int self_test(options *o) {
    unsigned faults = 0;
    for (int b = BREAK_NOTHING; b < BREAKAGES; b++) {
        breakage_now = (breakage)b;
        breakage_reset();
        unsigned differences = play(o, 1);
        bool good = b == BREAK_NOTHING ? differences == 0 : differences > 0;
        if (!good) faults++;
        printf("%s: %s: %u made, %s after %zu operations\n", good ? "good" : "BAD", breakage_name(breakage_now),
               breakage_count(), differences ? "a difference" : "no difference", trace_operations);
    }
    breakage_now = BREAK_NOTHING;
    printf("conformance: kinds of differences %d, not noticed %u\n", BREAKAGES - 1, faults);
    return faults ? 1 : 0;
}

static uint64_t parse(const char *text) {
    char *end;
    uint64_t value = strtoull(text, &end, 0);
    if (*end || !*text) {
        fprintf(stderr, "conformance: \"%s\" is no number\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    static const struct option known[] = {{"operations", 1, NULL, 'o'}, {"seed", 1, NULL, 's'},
                                          {"servers", 1, NULL, 'n'},    {"verbose", 0, NULL, 'v'},
                                          {"coverage", 0, NULL, 'c'},   {"self-test", 0, NULL, 't'},
                                          {"fresh", 0, NULL, 'f'},      {"stall", 1, NULL, 'w'},
                                          {"help", 0, NULL, 'h'},       {0}};
    const char *environment = getenv("DIVVY_TEST_SEED");
    options o = {.operations = 5000, .seed = 1, .servers = 1};
    if (environment) o.seed = parse(environment);
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (option) {
        case 'o': o.operations = parse(optarg); break;
        case 's': o.seed = parse(optarg); break;
        case 'n': o.servers = (int)parse(optarg); break;
        case 'v': o.verbose = true; break;
        case 'c': o.coverage = true; break;
        case 't': o.self_test = true; break;
        case 'f': o.fresh = true; break;
        case 'w': o.stall_ms = (int)parse(optarg); break;
        case 'h': fputs(usage, stdout); return 0;
        default: fputs(usage, stderr); return 2;
        }
    }
    if (optind < argc || (o.servers != 1 && o.servers != 3)) {
        fputs(usage, stderr);
        return 2;
    }
    if (o.self_test) return self_test(&o);
    printf("conformance: seed %llu\n", (unsigned long long)o.seed);
    return compare_worlds(&o);
}
