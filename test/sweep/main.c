/* The sweeps' command line, and the loop over all that can fail. SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "command_world.h"
#include "lib/seed.h"
#include "sweep.h"

static const char *const way_names[SWEEP_WAYS] = {
    "clean",      "once",         "burst",   "unsent",   "not_applied",    "applied",         "applied_late",
    "reply_lost", "reply_unread", "refused", "answered", "answered_often", "answered_though",
};

enum { CONNECTION = SWEEP_WAYS, KNOWN_MAX = 16384 };

typedef struct {
    bool allocations, calls, requests, answers, callers, keep_going, trace;
    const char *group, *scenario;
    int code; /* 0: all */
    int way;  /* -1: all; CONNECTION: those that break it */
    size_t at, stride, offset;
    const char *self_check;
} options;

static options opt = {.way = -1, .stride = 1};
static pid_t own_process;

/* The sweep that runs, for messages and for signals. */
static struct {
    const sweep_scenario *scenario;
    sweep *sweep;
    size_t of;
} running;

static struct { size_t scenarios, allocations, requests, failures, runs; } counts;

/* The codes of answers that recipes must live with: those of the table that end neither session nor connection, nor say
 * why a request cannot be done; and some that nobody knows. */
static const int codes[] = {
#define SWEEP_CODE(name, code, verdict, error) DV_VERDICT_##verdict >= DV_VERDICT_AGAIN ? (code) : 0,
    DV_ANSWERS(SWEEP_CODE)
#undef SWEEP_CODE
        - 126,
    -128,
    -999,
    7,
};

/* ---- one run ---- */

static void say_where(void) {
    const sweep *s = running.sweep;
    sweep_command_restore();
    if (!s) return;
    fprintf(stderr, "sweep: %s.%s: %s", running.scenario->group, running.scenario->name, way_names[s->way]);
    if (s->way != SWEEP_CLEAN) fprintf(stderr, ", %zu of %zu", s->at, running.of);
    const char *kind = s->way >= SWEEP_ANSWERED ? "answers"
                       : s->way >= SWEEP_UNSENT ? "requests"
                       : opt.calls              ? "calls"
                                                : "allocations";
    fprintf(stderr, "; again: sweep --%s %s --scenario %s --way %s --at %zu", kind, running.scenario->group,
            running.scenario->name, way_names[s->way], s->at);
    if (s->code) fprintf(stderr, " --code %d", s->code);
    fprintf(stderr, " --trace\n");
}

_Noreturn void sweep_fail(sweep *s, const char *format, ...) {
    va_list arguments;
    (void)s;
    say_where();
    fprintf(stderr, "sweep: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    sweep_allocations_disarm();
    sweep_allocations_explain(false);
    _exit(1);
}

/* A crash, an assertion, or an end of patience: which run that was. */
static void on_signal(int number) {
    signal(number, SIG_DFL);
    if (getpid() != own_process) kill(own_process, number); /* A command's child: that would pass for its end. */
    say_where();
    fprintf(stderr, "sweep: signal %d%s\n", number, number == SIGALRM ? ": it does not come to an end" : "");
    if (number != SIGALRM) sweep_allocations_explain(false);
    raise(number);
}

static void on_transaction(const divvy_testing_transaction *transaction, void *user) {
    sweep *s = user;
    (void)transaction;
    if (s->check) s->check(s, s->user);
}

static void on_trace(int64_t at_ms, const char *line, void *user) {
    (void)user;
    fprintf(stderr, "%8lld %s\n", (long long)at_ms - 1000000, line);
}

static void open_ensemble(sweep *s) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    /* Only a late write needs more than one server to be late at. */
    config.servers = s->way >= SWEEP_UNSENT ? 3 : 1;
    config.tick_ms = 500;
    config.on_transaction = on_transaction;
    config.on_trace = opt.trace ? on_trace : NULL;
    config.user = s;
    if (divvy_testing_ensemble_create(&s->ensemble, &config) != 0) sweep_fail(s, "no ensemble");
}

/* Returns whether a self-check is to do wrong here, which shows whether a sweep would notice. */
static bool is_spoilt(const sweep *s, const char *how) {
    return opt.self_check && s->way != SWEEP_CLEAN && s->at == 3 && strcmp(opt.self_check, how) == 0;
}

static void spoil(const sweep *s) {
    static void *volatile leak;
    if (is_spoilt(s, "leak")) leak = sweep_malloc(1);
    (void)leak;
}

bool sweep_is_spoilt(const sweep *s, const char *how) {
    return is_spoilt(s, how);
}

/* Runs it, and says how much of what is swept there was. */
static size_t run_once(const sweep_scenario *scenario, sweep_way way, int code, size_t at, size_t of) {
    enum { PATIENCE_S = 60 };
    sweep s = {.way = way, .code = code, .at = at};
    counts.runs++;
    running.scenario = scenario;
    running.sweep = &s;
    running.of = of;
    own_process = getpid();
    alarm(PATIENCE_S);
    if (!scenario->no_ensemble) open_ensemble(&s);
    scenario->run(&s);
    spoil(&s);
    if (s.ensemble) divvy_testing_ensemble_destroy(s.ensemble);
    sweep_allocations_disarm();
    if (sweep_allocations_outstanding()) {
        sweep_allocations_explain(true);
        sweep_fail(&s, "%zu blocks of memory were not given back", sweep_allocations_outstanding());
    }
    alarm(0);
    running.sweep = NULL;
    counts.failures += way < SWEEP_UNSENT ? sweep_allocations_refused() : s.failures;
    return way < SWEEP_UNSENT ? sweep_allocations_seen() : s.requests;
}

/* In a process of its own, so that what fails does not end the rest. */
static bool run_apart(const sweep_scenario *scenario, sweep_way way, int code, size_t at, size_t of) {
    counts.runs++;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        run_once(scenario, way, code, at, of);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- all runs ---- */

static size_t bad_runs;

/* Returns whether no allocation before the at-th was asked for by its callers. Notes them. */
static bool has_new_callers(sweep_way way, size_t at) {
    static uint64_t known[SWEEP_UNSENT][KNOWN_MAX];
    static size_t known_count[SWEEP_UNSENT];
    uint64_t callers = sweep_allocation_callers(at);
    for (size_t i = 0; i < known_count[way]; i++)
        if (known[way][i] == callers) return false;
    if (known_count[way] == KNOWN_MAX) abort();
    known[way][known_count[way]++] = callers;
    return true;
}

static bool is_chosen(sweep_way way, size_t at, size_t stride) {
    if (opt.at) return at == opt.at;
    bool new_callers = opt.callers && has_new_callers(way, at);
    return new_callers || (at - 1) % stride == opt.offset % stride;
}

static void sweep_way_of(const sweep_scenario *scenario, sweep_way way, int code, size_t count) {
    size_t stride = count && count < opt.stride ? count : opt.stride;
    for (size_t at = 1; at <= count; at++) {
        if (!is_chosen(way, at, stride)) continue;
        if (opt.keep_going) bad_runs += !run_apart(scenario, way, code, at, count);
        else run_once(scenario, way, code, at, count);
    }
}

/* Each code begins elsewhere, so that a sample is one of codes and requests alike. */
static void sweep_codes_of(const sweep_scenario *scenario, sweep_way way, size_t count) {
    size_t offset = opt.offset;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        bool open = dv_answer_of(codes[i]).verdict == DV_VERDICT_MAYBE;
        if (!codes[i] || (opt.code && codes[i] != opt.code) || (way == SWEEP_ANSWERED_THOUGH && !open)) continue;
        opt.offset = offset + 7 * i;
        sweep_way_of(scenario, way, codes[i], count);
    }
    opt.offset = offset;
}

static void sweep_scenario_of(const sweep_scenario *scenario) {
    sweep_way begin = opt.allocations ? SWEEP_ONCE : opt.requests ? SWEEP_UNSENT : SWEEP_ANSWERED;
    sweep_way end = opt.allocations ? SWEEP_UNSENT : opt.requests ? SWEEP_ANSWERED : SWEEP_WAYS;
    size_t count = 0;
    counts.scenarios++;
    for (sweep_way way = begin; way < end; way++) {
        /* A first run beyond all that can fail counts; by the number of servers they differ between kinds of sweeps. */
        sweep_allocations_keep_callers(opt.callers && way == begin);
        if (way == begin) count = run_once(scenario, way, 0, SIZE_MAX / 2, 0);
        sweep_allocations_keep_callers(false);
        if (opt.way >= 0 && (int)way != opt.way && !(opt.way == CONNECTION && way <= SWEEP_REPLY_LOST)) continue;
        if (opt.answers) sweep_codes_of(scenario, way, count);
        else sweep_way_of(scenario, way, 0, count);
    }
    if (opt.allocations) counts.allocations += count;
    else counts.requests += count;
}

static int sweep_all(void) {
    for (const sweep_scenario *scenario = sweep_scenarios; scenario->name; scenario++) {
        if (opt.group && strcmp(scenario->group, opt.group) != 0) continue;
        if (opt.scenario && strcmp(scenario->name, opt.scenario) != 0) continue;
        if (scenario->no_ensemble && !opt.allocations) continue;
        sweep_scenario_of(scenario);
    }
    printf("sweep: scenarios %zu, runs %zu, %s %zu, requests %zu, failures %zu; places of the library that "
           "allocate: %zu\n",
           counts.scenarios, counts.runs, opt.calls ? "calls" : "allocations", counts.allocations, counts.requests,
           counts.failures, sweep_allocation_sites());
    if (bad_runs) printf("sweep: %zu runs FAILED\n", bad_runs);
    bool enough = counts.scenarios && (opt.keep_going || opt.at || counts.failures);
    return bad_runs || !enough ? 1 : 0;
}

/* ---- the command line ---- */

static const char usage[] =
    "usage: sweep --allocations|--calls|--requests|--answers [GROUP] [OPTION...]\n"
    "  --scenario NAME    only this one\n"
    "  --way NAME         once, burst; unsent, not_applied, applied, applied_late, reply_lost, reply_unread, refused;\n"
    "                     answered, answered_often, answered_though;\n"
    "                     connection: the five that break the connection\n"
    "  --code N           only answers by this code\n"
    "  --at N             only the N-th\n"
    "  --stride N --offset K   every N-th, from the K-th on\n"
    "  --fresh                 with K of DIVVY_FRESH_SEED, which test/run draws from the commit\n"
    "  --callers               and the first allocation, or call, by each chain of four callers\n"
    "  --keep-going       each run in a process of its own, and on after one that fails\n"
    "  --trace            what happens on the ensemble\n"
    "  --self-check leak|hang|orphan|belief   does that in the third run of each way, which must be noticed\n"
    "  --list\n";

static int way_of(const char *name) {
    for (int way = 0; way < SWEEP_WAYS; way++)
        if (strcmp(name, way_names[way]) == 0) return way;
    if (strcmp(name, "connection") == 0) return CONNECTION;
    fprintf(stderr, "sweep: no way %s\n%s", name, usage);
    exit(2);
}

static void parse(int argc, char **argv) {
    enum {
        ALLOCATIONS = 1,
        CALLS,
        REQUESTS,
        ANSWERS,
        CODE,
        SCENARIO,
        WAY,
        AT,
        STRIDE,
        OFFSET,
        FRESH,
        CALLERS,
        KEEP_GOING,
        TRACE,
        SELF_CHECK,
        LIST
    };
    static const struct option names[] = {
        {"allocations", no_argument, NULL, ALLOCATIONS},
        {"calls", no_argument, NULL, CALLS},
        {"requests", no_argument, NULL, REQUESTS},
        {"answers", no_argument, NULL, ANSWERS},
        {"code", required_argument, NULL, CODE},
        {"scenario", required_argument, NULL, SCENARIO},
        {"way", required_argument, NULL, WAY},
        {"at", required_argument, NULL, AT},
        {"stride", required_argument, NULL, STRIDE},
        {"offset", required_argument, NULL, OFFSET},
        {"fresh", no_argument, NULL, FRESH},
        {"callers", no_argument, NULL, CALLERS},
        {"keep-going", no_argument, NULL, KEEP_GOING},
        {"trace", no_argument, NULL, TRACE},
        {"self-check", required_argument, NULL, SELF_CHECK},
        {"list", no_argument, NULL, LIST},
        {0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case ALLOCATIONS: opt.allocations = true; break;
        case CALLS: opt.allocations = opt.calls = true; break;
        case REQUESTS: opt.requests = true; break;
        case ANSWERS: opt.answers = true; break;
        case CODE: opt.code = (int)strtol(optarg, NULL, 10); break;
        case SCENARIO: opt.scenario = optarg; break;
        case WAY: opt.way = way_of(optarg); break;
        case AT: opt.at = strtoul(optarg, NULL, 10); break;
        case STRIDE: opt.stride = strtoul(optarg, NULL, 10); break;
        case OFFSET: opt.offset = strtoul(optarg, NULL, 10); break;
        case FRESH: opt.offset = (size_t)dv_test_fresh_seed(); break;
        case CALLERS: opt.callers = true; break;
        case KEEP_GOING: opt.keep_going = true; break;
        case TRACE: opt.trace = true; break;
        case SELF_CHECK: opt.self_check = optarg; break;
        case LIST:
            for (const sweep_scenario *s = sweep_scenarios; s->name; s++) printf("%s %s\n", s->group, s->name);
            exit(0);
        default: fputs(usage, stderr); exit(2);
        }
    }
    bool one_kind = opt.allocations + opt.requests + opt.answers == 1;
    if (!one_kind || (opt.callers && !opt.allocations) || opt.stride == 0) {
        fputs(usage, stderr);
        exit(2);
    }
    if (opt.at || opt.keep_going) sweep_allocations_note_all();
    if (opt.calls) sweep_allocations_count_calls();
    if (optind < argc) opt.group = argv[optind];
}

/* cJSON's blocks begin beyond their true beginning, as those of a host program's own allocator may: free() of one
 * aborts. */
enum { JSON_OFFSET = 16 };

static void *json_malloc(size_t bytes) {
    char *block = sweep_malloc(JSON_OFFSET + bytes);
    return block ? (char *)memset(block, 'o', JSON_OFFSET) + JSON_OFFSET : NULL;
}

static void json_free(void *memory) {
    if (memory) sweep_free((char *)memory - JSON_OFFSET);
}

int main(int argc, char **argv) {
    parse(argc, argv);
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = json_malloc, .free_fn = json_free});
    static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], on_signal);
    return sweep_all();
}
