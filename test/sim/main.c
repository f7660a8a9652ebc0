/* sim: histories of pools on a simulated ensemble, with every fault, held against the invariants.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/seed.h"
#include "runner.h"
#include "sim_commit.h"
#include "steps.h"

enum { COVERED_FROM = 2000, STEPS_BUFFER_BYTES = 64 * 1024 };

static const char usage[] =
    "usage: sim [--histories N] [--seed S] [--fresh F] [--jobs J] [--kazoo] [--old-servers] [--odd-answers]\n"
    "           [--death-watch] [--locks | --elections | --registry | --plans]\n"
    "       sim --seed S [--kazoo] [--old-servers] [--odd-answers] [--death-watch]\n"
    "           [--locks | --elections | --registry | --plans] --trace | --shrink\n"
    "\n"
    "Runs N histories (default 1000) of the seeds S, S+1, ... (default: of the time), each in a simulated ensemble, "
    "and\n"
    "checks the invariants of docs/protocol.md at each step. Ends with coverage, and one line of counts.\n"
    "\n"
    "  --histories N  how many\n"
    "  --seed S       the first seed\n"
    "  --fresh F      F histories more, from DIVVY_FRESH_SEED on, which test/run draws from the commit\n"
    "  --jobs J       processes at work at a time; default 1\n"
    "  --old-servers  servers that lack create2 and containers, as ZooKeeper 3.4\n"
    "  --odd-answers  servers throttle, refuse by quotas, and answer by codes that nobody knows\n"
    "  --death-watch  each member has a death watch, and its work goes on when it has crashed\n"
    "  --kazoo        kazoo members take part in most histories, not in every tenth\n"
    "  --locks        members take locks and semaphores, and few have partitioners\n"
    "  --elections    members stand for election beside locks, and no semaphores\n"
    "  --registry     members announce services, claim roles and keep views, instead\n"
    "  --plans        partitioners with weights, zones, rounds, static members, other items, and plans that are "
    "spoilt\n"
    "  --steps FILE   with --jobs 1: records of what was asked, answered, committed and believed of locks,\n"
    "                 semaphores, and items and their notes\n"
    "  --trace        one history, told line by line\n"
    "  --shrink       one history that violates something, with all events taken out that it does not need\n"
    "\n"
    "Status: 0 without a violation and with everything covered (asked for from 2000 histories on), else 1; 2 usage.\n";

typedef struct {
    sim_run_config run;
    bool trace, shrink, seeded;
    const char *steps;
} options;

static uint64_t number(const char *text) {
    char *end;
    uint64_t value = strtoull(text ? text : "", &end, 10);
    if (text && *text && !*end) return value;
    fputs(usage, stderr);
    exit(2);
}

static options parse(int argc, char **argv) {
    options o = {.run = {.count = 1000, .jobs = 1, .kazoo = SIM_KAZOO_SOMETIMES}};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool takes_value = true;
        if (strcmp(word, "--histories") == 0) {
            o.run.count = number(value);
        } else if (strcmp(word, "--seed") == 0) {
            o.run.seed = number(value);
            o.seeded = true;
        } else if (strcmp(word, "--fresh") == 0) {
            o.run.fresh_count = number(value);
            o.run.fresh_seed = dv_test_fresh_seed();
        } else if (strcmp(word, "--steps") == 0) {
            o.steps = value;
        } else if (strcmp(word, "--jobs") == 0) {
            o.run.jobs = (unsigned)number(value);
        } else {
            takes_value = false;
            if (strcmp(word, "--trace") == 0) o.trace = true;
            else if (strcmp(word, "--shrink") == 0) o.shrink = true;
            else if (strcmp(word, "--kazoo") == 0) o.run.kazoo = SIM_KAZOO_OFTEN;
            else if (strcmp(word, "--old-servers") == 0) o.run.old_servers = true;
            else if (strcmp(word, "--odd-answers") == 0) o.run.odd_answers = true;
            else if (strcmp(word, "--death-watch") == 0) o.run.death_watch = true;
            else if (strcmp(word, "--rolls") == 0) o.run.rolls = true;
            else if (strcmp(word, "--locks") == 0) o.run.theme = SIM_OF_LOCKS;
            else if (strcmp(word, "--elections") == 0) o.run.theme = SIM_OF_ELECTIONS;
            else if (strcmp(word, "--registry") == 0) o.run.theme = SIM_OF_SERVICES;
            else if (strcmp(word, "--plans") == 0) o.run.theme = SIM_OF_PLANS;
            else number(NULL);
        }
        if (takes_value) i++;
    }
    if (o.steps && o.run.jobs > 1) number(NULL);
    if (o.run.jobs < 1 || o.run.jobs > SIM_JOBS_MAX || ((o.trace || o.shrink) && !o.seeded)) number(NULL);
    if (!o.seeded) o.run.seed = (uint64_t)time(NULL);
    return o;
}

static int run_one(const options *o) {
    static sim_script script;
    static sim_coverage coverage;
    sim_violation violation;
    sim_script_draw(&script, o->run.seed, o->run.kazoo, o->run.theme);
    script.old_servers = o->run.old_servers;
    script.odd_answers = o->run.odd_answers;
    script.death_watch = o->run.death_watch;
    script.rolls = o->run.rolls;
    sim_script_print(&script);
    if (o->shrink) {
        sim_shrink(&script);
        return 0;
    }
    bool well = sim_history(&script, NULL, true, &coverage, &violation);
    printf("histories 1, events %llu, simulated %lld ms, violations %d\n", (unsigned long long)coverage.steps,
           (long long)coverage.simulated_ms, !well);
    return well ? 0 : 1;
}

static int run_many(const options *o) {
    static sim_run_result result;
    sim_run(&o->run, &result);
    const sim_coverage *c = &result.coverage;
    sim_coverage_print(c, o->run.theme);
    size_t missing = o->run.count + o->run.fresh_count >= COVERED_FROM ? sim_coverage_missing(c, o->run.theme) : 0;
    double seconds = result.seconds > 0 ? result.seconds : 1e-3;
    printf("script events %llu, simulated %.0f h in %.1f s, simulated : real time %.0f : 1\n",
           (unsigned long long)c->script_events, (double)c->simulated_ms / 3.6e6, seconds,
           (double)c->simulated_ms / 1000 / seconds);
    printf("histories %llu, events %llu, events/s %.0f, violations %llu\n", (unsigned long long)c->histories,
           (unsigned long long)c->steps, (double)c->steps / seconds, (unsigned long long)result.violations);
    return result.violations || missing ? 1 : 0;
}

int main(int argc, char **argv) {
    options o = parse(argc, argv);
    printf("sim: commit %s, seed %llu\n", SIM_COMMIT, (unsigned long long)o.run.seed);
    if (o.run.fresh_count)
        printf("sim: %llu fresh ones from seed %llu; again: sim%s%s%s%s%s%s --histories %llu --seed %llu\n",
               (unsigned long long)o.run.fresh_count, (unsigned long long)o.run.fresh_seed,
               o.run.kazoo == SIM_KAZOO_OFTEN ? " --kazoo" : "", o.run.old_servers ? " --old-servers" : "",
               o.run.odd_answers ? " --odd-answers" : "", o.run.death_watch ? " --death-watch" : "",
               o.run.rolls ? " --rolls" : "", sim_theme_option(o.run.theme), (unsigned long long)o.run.fresh_count,
               (unsigned long long)o.run.fresh_seed);
    fflush(stdout);
    FILE *file = o.steps ? fopen(o.steps, "w") : NULL;
    if (o.steps && !file) {
        perror(o.steps);
        return 2;
    }
    if (file) setvbuf(file, NULL, _IOFBF, STEPS_BUFFER_BYTES); /* a pipe takes as much at a time */
    sim_steps_to(file);
    return o.trace || o.shrink ? run_one(&o) : run_many(&o);
}
