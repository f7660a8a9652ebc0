/* Runs many histories in child processes, and one at a time. SPDX-License-Identifier: Apache-2.0 */
#include "runner.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "steps.h"

enum { HISTORY_LIMIT_S = 100, PROGRESS_S = 10 };

/* The state that one worker shares with its parent. */
typedef struct {
    pid_t pid;
    bool at_work;
    uint64_t seed; /* of the history it is in */
    sim_coverage coverage;
} worker;

typedef struct {
    atomic_ullong next; /* the number of the next history */
    atomic_bool stop;
    atomic_ullong violations;
    sim_found found[SIM_FOUND_MAX];
    atomic_bool found_ready[SIM_FOUND_MAX];
    worker workers[SIM_JOBS_MAX];
} shared;

double sim_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *share(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    return memory;
}

static void note(shared *s, uint64_t seed, const sim_violation *violation) {
    unsigned long long index = atomic_fetch_add(&s->violations, 1);
    if (index >= SIM_FOUND_MAX) return;
    s->found[index] = (sim_found){seed, *violation};
    atomic_store(&s->found_ready[index], true);
}

/* ---- children ---- */

_Noreturn static void work(shared *s, worker *me, const sim_run_config *config) {
    sim_script *script = malloc(sizeof *script);
    unsigned long long number;
    const unsigned long long all = config->count + config->fresh_count;
    while (script && !atomic_load(&s->stop) && (number = atomic_fetch_add(&s->next, 1)) < all) {
        sim_violation violation;
        bool fresh = number >= config->count;
        me->seed = fresh ? config->fresh_seed + (number - config->count) : config->seed + number;
        alarm(HISTORY_LIMIT_S);
        sim_script_draw(script, me->seed, config->kazoo, config->theme);
        script->old_servers = config->old_servers;
        script->odd_answers = config->odd_answers;
        script->death_watch = config->death_watch;
        script->rolls = config->rolls;
        if (sim_history(script, NULL, false, &me->coverage, &violation)) continue;
        note(s, me->seed, &violation);
        if (config->stop_at_first) atomic_store(&s->stop, true);
    }
    free(script);
    fflush(NULL);
    exit(0); /* and not _exit(): a leak is to be told of */
}

static void hire(shared *s, size_t index, const sim_run_config *config) {
    worker *w = &s->workers[index];
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) work(s, w, config);
    if (pid < 0) {
        perror("fork");
        exit(2);
    }
    w->pid = pid;
    w->at_work = true;
}

static sim_violation fallen(int status) {
    sim_violation v = {.set = true, .what = "crash"};
    int signal_number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (signal_number == SIGALRM) snprintf(v.text, sizeof v.text, "the history did not end in %d s", HISTORY_LIMIT_S);
    else if (signal_number) snprintf(v.text, sizeof v.text, "the process ended: %s", strsignal(signal_number));
    else snprintf(v.text, sizeof v.text, "the process ended with status %d", WEXITSTATUS(status));
    return v;
}

/* Returns whether any worker is left. */
static bool look_after(shared *s, const sim_run_config *config) {
    bool any = false;
    for (size_t i = 0; i < config->jobs; i++) {
        worker *w = &s->workers[i];
        int status;
        if (w->at_work && waitpid(w->pid, &status, WNOHANG) == w->pid) {
            w->at_work = false;
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                sim_violation v = fallen(status);
                note(s, w->seed, &v);
                sim_steps_cut_off();
                if (config->stop_at_first) atomic_store(&s->stop, true);
                hire(s, i, config);
            }
        }
        any |= w->at_work;
    }
    return any;
}

static void print_found(shared *s, size_t *printed, const sim_run_config *config) {
    for (; !config->quiet && *printed < SIM_FOUND_MAX && atomic_load(&s->found_ready[*printed]); ++*printed) {
        const sim_found *f = &s->found[*printed];
        printf("violation of %s at %lld ms of the history of seed %llu: %s\n  replay: sim --seed %llu%s%s%s%s%s%s "
               "--trace\n",
               f->violation.what, (long long)f->violation.at_ms, (unsigned long long)f->seed, f->violation.text,
               (unsigned long long)f->seed, config->kazoo == SIM_KAZOO_OFTEN ? " --kazoo" : "",
               config->old_servers ? " --old-servers" : "", config->odd_answers ? " --odd-answers" : "",
               config->death_watch ? " --death-watch" : "", config->rolls ? " --rolls" : "",
               sim_theme_option(config->theme));
        fflush(stdout);
    }
}

static void tell_progress(const shared *s, const sim_run_config *config, double seconds) {
    unsigned long long done = atomic_load(&s->next), all = config->count + config->fresh_count;
    if (done > all) done = all;
    fprintf(stderr, "%.0f s: %llu of %llu histories, %llu violations\n", seconds, done, all,
            (unsigned long long)atomic_load(&s->violations));
}

void sim_run(const sim_run_config *config, sim_run_result *out) {
    shared *s = share(sizeof *s);
    double began = sim_seconds(), told = began;
    size_t printed = 0;
    for (size_t i = 0; i < config->jobs; i++) hire(s, i, config);
    while (look_after(s, config)) {
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        double now = sim_seconds();
        print_found(s, &printed, config);
        if (config->limit_ms && (now - began) * 1000 >= (double)config->limit_ms) atomic_store(&s->stop, true);
        if (now - told < PROGRESS_S || config->quiet) continue;
        tell_progress(s, config, now - began);
        told = now;
    }
    print_found(s, &printed, config);
    *out = (sim_run_result){.violations = atomic_load(&s->violations), .seconds = sim_seconds() - began};
    for (size_t i = 0; i < config->jobs; i++) sim_coverage_add(&out->coverage, &s->workers[i].coverage);
    while (out->found_count < SIM_FOUND_MAX && atomic_load(&s->found_ready[out->found_count])) {
        out->found[out->found_count] = s->found[out->found_count];
        out->found_count++;
    }
    munmap(s, sizeof *s);
}

bool sim_run_one(const sim_script *script, const bool *omit, sim_violation *out) {
    sim_violation *violation = share(sizeof *violation);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        static sim_coverage coverage;
        alarm(HISTORY_LIMIT_S);
        sim_history(script, omit, false, &coverage, violation);
        _exit(0);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("fork");
        exit(2);
    }
    *out = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? *violation : fallen(status);
    munmap(violation, sizeof *violation);
    return !out->set;
}
