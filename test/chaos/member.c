/* The program chaos_member: see member.h. SPDX-License-Identifier: Apache-2.0 */
#include "member.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifdef DIVVY_MUTANTS
#include "sim/mutant.h"
#endif

enum { LINE_BYTES = 1024, U_STEP_MS = 50, U_MOST_MS = 500, STALL_MS = 200 };

static int log_fd = -1;
static atomic_uint_fast64_t random_state;

int64_t chaos_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void chaos_sleep_ms(int ms) {
    struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

void chaos_log(const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (bytes < 0) abort();
    if (bytes > LINE_BYTES - 2) bytes = LINE_BYTES - 2;
    line[bytes] = '\n';
    if (write(log_fd, line, (size_t)bytes + 1) != bytes + 1) abort();
}

int chaos_random(int below) {
    uint64_t x = atomic_fetch_add(&random_state, 0x9E3779B97F4A7C15ULL);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return (int)((x ^ (x >> 31)) % (uint64_t)below);
}

void chaos_log_call(const char *what, int64_t asked_ms, int64_t timeout_ms, int result) {
    int64_t told_ms = chaos_now_ms();
    if (told_ms - asked_ms > timeout_ms + 1000)
        chaos_log("L %lld %lld %s %lld %d", (long long)asked_ms, (long long)told_ms, what, (long long)timeout_ms,
                  result);
}

/* ---- beliefs ---- */

void chaos_believe(chaos_belief *belief, int64_t session, int64_t token, const char *slots) {
    belief->held = true;
    belief->token = token;
    belief->last_ms = 0; /* We may have been stopped since the answer: only the next one shows that it still holds. */
    chaos_log("B %lld %s %s %llx %lld %s", (long long)chaos_now_ms(), belief->kind, belief->object,
              (unsigned long long)session, (long long)token, slots);
}

void chaos_confirm(chaos_belief *belief, int64_t asked_ms) {
    if (belief->last_ms < asked_ms) belief->last_ms = asked_ms;
}

static void end_belief(chaos_belief *belief, int64_t last_ms, const char *why) {
    if (!belief->held) return;
    belief->held = false;
    chaos_log("E %lld %lld %s %s %lld %s", (long long)last_ms, (long long)chaos_now_ms(), belief->kind, belief->object,
              (long long)belief->token, why);
}

void chaos_lose(chaos_belief *belief) {
    end_belief(belief, belief->last_ms, "lost");
}

void chaos_give_up(chaos_belief *belief) {
    end_belief(belief, belief->last_ms, "released");
}

/* ---- clocks ---- */

/* Writes down when the wall clock, as libc tells it, has jumped. */
static void note_jumps(void) {
    enum { JUMP_MS = 1000 };
    static int64_t ahead_ms;
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t now_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000 - chaos_now_ms();
    if (ahead_ms && llabs(now_ms - ahead_ms) > JUMP_MS)
        chaos_log("N %lld jump %lld", (long long)chaos_now_ms(), (long long)(now_ms - ahead_ms));
    ahead_ms = now_ms;
}

/* Writes down until when the session lives, whenever that has become much later. */
static void note_clock(const chaos_member *m, int64_t *noted_session, int64_t *noted_until) {
    static int64_t written_ms;
    int64_t session = divvy_client_session_id(m->client), now_ms = chaos_now_ms();
    int64_t left_ms = divvy_client_time_left_ms(m->client), until_ms = now_ms + left_ms;
    if (left_ms <= 0 || divvy_client_session_id(m->client) != session) return;
    bool grown = until_ms > *noted_until + U_STEP_MS;
    if (session == *noted_session && !grown && now_ms < written_ms + U_MOST_MS) return;
    *noted_session = session;
    *noted_until = until_ms;
    written_ms = now_ms;
    chaos_log("U %lld %llx %lld", (long long)now_ms, (unsigned long long)session, (long long)until_ms);
}

/* ---- the program ---- */

/* chaos_member_mutants has known bugs of the library, and a name selects one. */
#ifdef DIVVY_MUTANTS
dv_mutant_kind dv_mutant;

static void choose_mutant(void) {
#define MUTANT_NAME(name, text) #name,
    static const char *const names[] = {"", DV_MUTANTS(MUTANT_NAME)};
#undef MUTANT_NAME
    const char *wanted = getenv("CHAOS_MUTANT");
    for (size_t i = 1; wanted && i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], wanted) == 0) dv_mutant = (dv_mutant_kind)i;
    }
    if (wanted && dv_mutant == DV_MUTANT_NONE) exit(4);
}
#else
static void choose_mutant(void) {}
#endif

static chaos_preparing preparing_of(const char *word) {
    static const char *const words[] = {"unprepared", "fast", "slow", "never"};
    size_t i = 0;
    while (i + 1 < sizeof words / sizeof *words && strcmp(words[i], word) != 0) i++;
    return (chaos_preparing)i;
}

static volatile sig_atomic_t asked_to_end;

static chaos_member self;

static void on_signal(int number) {
    if (number == SIGUSR1) self.shifts++;
    else asked_to_end = 1;
}

static void on_log(int level, const char *message, void *user) {
    (void)user;
    if (level <= DIVVY_LOG_WARN) fprintf(stderr, "%lld %s\n", (long long)chaos_now_ms(), message);
}

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client;
    (void)user;
    fprintf(stderr, "%lld warning %d: %s\n", (long long)chaos_now_ms(), code, message);
}

static void open_client(chaos_member *m, const char *hosts, long timeout_ms, long tick_ms) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = hosts;
    config.session_timeout_ms = timeout_ms;
    config.ensemble_tick_ms = tick_ms;
    config.on_log = on_log;
    config.on_warning = on_warning;
    int error = divvy_client_open(&m->client, &config);
    if (error) {
        fprintf(stderr, "no client: %s\n", divvy_strerror(error));
        exit(3);
    }
}

/* Runs everything until a signal asks for the end, or the parent has gone. */
static void run(chaos_member *m, pid_t parent) {
    static void *(*const threads[])(void *) = {chaos_items_run,     chaos_lock_run,     chaos_rw_run,
                                               chaos_semaphore_run, chaos_services_run, chaos_lookup_run,
                                               chaos_party_run,     chaos_election_run};
    enum { THREADS = sizeof threads / sizeof *threads };
    pthread_t ids[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&ids[i], NULL, threads[i], m)) abort();
    }
    int64_t session = 0, until_ms = 0, before_ms = chaos_now_ms();
    while (!asked_to_end && getppid() == parent) {
        int64_t now_ms = chaos_now_ms();
        if (now_ms > before_ms + STALL_MS) chaos_log("J %lld %lld", (long long)before_ms, (long long)now_ms);
        before_ms = now_ms;
        note_clock(m, &session, &until_ms);
        note_jumps();
        chaos_sleep_ms(CHAOS_POLL_MS);
    }
    m->stopping = true;
    for (size_t i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
}

int main(int argc, char **argv) {
    if (argc != 10) {
        fputs("usage: chaos_member HOSTS NAME LOG SESSION_MS TICK_MS SEED incremental|eager fail|rejoin "
              "unprepared|fast|slow|never\n",
              stderr);
        return 2;
    }
    pid_t parent = getppid();
    choose_mutant();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    self.name = argv[2];
    self.eager = strcmp(argv[7], "eager") == 0;
    self.rejoins = strcmp(argv[8], "rejoin") == 0;
    self.preparing = preparing_of(argv[9]);
    random_state = strtoull(argv[6], NULL, 10);
    log_fd = open(argv[3], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (log_fd < 0) {
        fprintf(stderr, "%s: %s\n", argv[3], strerror(errno));
        return 3;
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    chaos_log("H %lld %d", (long long)chaos_now_ms(), (int)getpid());
    open_client(&self, argv[1], strtol(argv[4], NULL, 10), strtol(argv[5], NULL, 10));
    run(&self, parent);
    divvy_client_close(self.client);
    chaos_log("Q %lld", (long long)chaos_now_ms());
    return 0;
}
