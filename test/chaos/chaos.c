/* The program chaos: faults of all kinds on a real ensemble and its members, and what came of it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A run is cut into rounds, each with an ensemble of its own; in a round some faults, one or two at a time, and then a
 * quiet time, again and again. At the end of a round check.py holds what the members wrote down against the servers'
 * own transaction logs.
 *
 * Items are on the move all the time: a round begins with three members and a fourth that takes its share from them,
 * and before each fault a member changes its weight. */
#include "chaos.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/seed.h"

enum {
    ROUND_S = 600,        /* at most */
    FAULTS_A_QUIET = 6,   /* so many between two quiet times */
    QUIET_REST_MS = 3000, /* of a quiet time all is to be well for so long */
    SERVE_MS = 90000,
    END_MS = 4000, /* takes the end of a round */
    KINDS_MAX = 48,
    PROGRESS_MS = 10000,
    STALL_MS = 50,
    SHIFT_MS = 1500, /* from when a member wants other items to the fault that follows, at most */
};

volatile int chaos_interrupted;

/* Over all rounds. */
static struct {
    double minutes;
    uint64_t seed;
    const char *mutant, *only;
    bool keep;
    int64_t began_ms, said_ms;
    int64_t lasted_ms; /* of all rounds, without what the checks of them took */
    unsigned faults, counts[KINDS_MAX], rounds, violations, failures;
    unsigned long long ownerships;
    const chaos_kind *kinds[KINDS_MAX];
    size_t kind_count, deck[KINDS_MAX], deck_count;
} run;

/* ---- time, chance, the log ---- */

int64_t chaos_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int chaos_random(chaos *c, int below) {
    c->random = c->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return below > 0 ? (int)((c->random >> 33) % (uint64_t)below) : 0;
}

void chaos_note(chaos *c, const char *format, ...) {
    char line[CHAOS_PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (bytes < 0 || bytes > (int)sizeof line - 2) dv_test_die("a line of the log is too long");
    line[bytes] = '\n';
    if (write(c->log_fd, line, (size_t)bytes + 1) != bytes + 1) dv_test_die("log: %s", strerror(errno));
}

static void say_progress(const char *what) {
    int64_t now_ms = chaos_now_ms();
    if (now_ms < run.said_ms + PROGRESS_MS) return;
    run.said_ms = now_ms;
    printf("chaos: %" PRId64 " s of %.0f, round %u, %u faults; %s\n", (now_ms - run.began_ms) / 1000, run.minutes * 60,
           run.rounds, run.faults, what);
    fflush(stdout);
}

void chaos_wait(chaos *c, int64_t ms) {
    int64_t until_ms = chaos_now_ms() + ms;
    while (!chaos_interrupted && chaos_now_ms() < until_ms) {
        chaos_members_watch(c);
        dv_test_sleep_ms(20);
    }
}

static void on_signal(int number) {
    (void)number;
    chaos_interrupted = 1;
}

/* dv_test_die(): the servers' watchdog and the members' parent-death signal do the rest. */
static void on_abort(int number) {
    (void)number;
    chaos_unmount();
}

/* Writes down how the two clocks stand to each other, and for how long we do not get to run. */
static void *monitor(void *argument) {
    chaos *c = argument;
    int64_t said_ms = 0, before_ms = chaos_now_ms();
    while (!c->monitor_stops) {
        dv_test_sleep_ms(20);
        struct timespec wall;
        int64_t now_ms = chaos_now_ms();
        clock_gettime(CLOCK_REALTIME, &wall);
        if (now_ms - before_ms > STALL_MS) c->stall_ms += now_ms - before_ms;
        if (chaos_now_ms() <= now_ms + 1 && now_ms > said_ms + 500) {
            said_ms = now_ms;
            chaos_note(c, "O %" PRId64 " %" PRId64, now_ms, (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000);
        }
        before_ms = now_ms;
    }
    return NULL;
}

/* ---- faults ---- */

static bool is_wanted(const char *kind) {
    size_t bytes = strlen(kind);
    if (!run.only) return true;
    for (const char *at = run.only; (at = strstr(at, kind)); at += bytes) {
        if ((at == run.only || at[-1] == ',') && (at[bytes] == '\0' || at[bytes] == ',')) return true;
    }
    return false;
}

static void collect_kinds(const chaos *c) {
    const chaos_kind *const lists[] = {chaos_server_kinds, chaos_member_kinds, chaos_link_kinds,
                                       chaos_certificate_kinds};
    run.kind_count = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const chaos_kind *kind = lists[i]; kind->name; kind++) {
            if (run.kind_count == KINDS_MAX) dv_test_die("too many kinds");
            if (!is_wanted(kind->name)) continue;
            if (!kind->is_possible || kind->is_possible(c)) run.kinds[run.kind_count++] = kind;
            else if (run.rounds == 1) printf("chaos: %s is not possible here\n", kind->name);
        }
    }
    if (run.kind_count == 0) dv_test_die("none of these kinds of faults is possible: %s", run.only);
}

/* From a deck that has each kind once, so that none is left out for long. */
static const chaos_kind *draw(chaos *c) {
    if (run.deck_count == 0) {
        for (size_t i = 0; i < run.kind_count; i++) run.deck[i] = i;
        run.deck_count = run.kind_count;
    }
    size_t at = (size_t)chaos_random(c, (int)run.deck_count), kind = run.deck[at];
    run.deck[at] = run.deck[--run.deck_count];
    return run.kinds[kind];
}

static void begin(chaos *c, chaos_fault *fault, const chaos_kind *kind) {
    *fault = (chaos_fault){.kind = kind};
    kind->begin(c, fault);
    chaos_note(c, "F %" PRId64 " begin %s %d", chaos_now_ms(), kind->name, fault->target);
    run.faults++;
    for (size_t i = 0; i < run.kind_count; i++) run.counts[i] += run.kinds[i] == kind;
    say_progress(kind->name);
}

static void end(chaos *c, chaos_fault *fault) {
    fault->kind->end(c, fault);
    chaos_note(c, "F %" PRId64 " end %s %d", chaos_now_ms(), fault->kind->name, fault->target);
}

static int64_t duration_ms(chaos *c, const chaos_kind *kind) {
    return kind->least_ms + chaos_random(c, kind->most_ms - kind->least_ms);
}

/* One fault, or two that overlap, while items are handed over. */
static void do_faults(chaos *c) {
    chaos_member_shift(c);
    chaos_wait(c, chaos_random(c, SHIFT_MS));
    chaos_fault one, other;
    const chaos_kind *kind = draw(c), *second = kind->alone || chaos_random(c, 2) ? NULL : draw(c);
    begin(c, &one, kind);
    int64_t whole_ms = duration_ms(c, kind), before_ms = chaos_random(c, (int)whole_ms);
    if (!second || second->alone || second->class == kind->class) {
        chaos_wait(c, whole_ms);
        end(c, &one);
        return;
    }
    chaos_wait(c, before_ms);
    begin(c, &other, second);
    int64_t second_ms = duration_ms(c, second), left_ms = whole_ms - before_ms;
    bool in_turn = left_ms < second_ms;
    chaos_wait(c, in_turn ? left_ms : second_ms);
    end(c, in_turn ? &one : &other);
    chaos_wait(c, in_turn ? second_ms - left_ms : left_ms - second_ms);
    end(c, in_turn ? &other : &one);
}

/* ---- quiet times ---- */

/* L1 of the design: the timeout, a tick, the largest settle_max, twice the longest release, the longest handover, and 2
 * s. A member whose partitioner has failed first finds out, and starts again. */
static int64_t bound_ms(void) {
    enum { SETTLE_MAX_MS = 4 * 200, RELEASE_MS = 150, HANDOVER_MS = 1000 };
    return CHAOS_SESSION_MS + CHAOS_TICK_MS + SETTLE_MAX_MS + 2 * RELEASE_MS + HANDOVER_MS + 2000;
}

static bool serves(chaos *c) {
    return chaos_interrupted || (dv_test_server_leader(c->server) != 0 && dv_test_probe_commits(c->probe));
}

/* Counts as a stall of the machine that the servers did not commit: nothing is done to them. Returns for how long they
 * have not done so now. */
static int64_t watch_servers(chaos *c, int64_t *answered_ms) {
    enum { SLOW_MS = 1000 };
    bool serve = serves(c);
    int64_t now_ms = chaos_now_ms(), silent_ms = now_ms - *answered_ms;
    if (silent_ms < SLOW_MS) silent_ms = 0;
    if (!serve) return silent_ms;
    c->stall_ms += silent_ms;
    *answered_ms = now_ms;
    return 0;
}

/* Until everything has been well for a while, or should have been. The slower the machine, the longer. */
static void quiet(chaos *c) {
    if (!DV_WAIT(serves(c), SERVE_MS)) {
        chaos_note(c, "Y %" PRId64 " servers do not all serve again", chaos_now_ms());
        return;
    }
    int64_t stall_before = c->stall_ms, began_ms = chaos_now_ms(), answered_ms = began_ms, slow_ms = 0;
    chaos_note(c, "A %" PRId64 " %" PRId64, began_ms, bound_ms());
    while (!chaos_interrupted && chaos_now_ms() < began_ms + bound_ms() + QUIET_REST_MS + 2 * slow_ms) {
        say_progress("quiet");
        chaos_wait(c, 200);
        slow_ms = watch_servers(c, &answered_ms) + c->stall_ms - stall_before;
        if (slow_ms > 30000) slow_ms = 30000;
    }
    dv_test_probe_rest(c->probe); /* Faults are not to be its own. */
    if (!chaos_interrupted) chaos_note(c, "Z %" PRId64 " %" PRId64, chaos_now_ms(), slow_ms);
}

/* ---- a round ---- */

static void use_own_mounts(chaos *c) {
    c->has_mounts = unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void open_logs(chaos *c) {
    char path[CHAOS_PATH_BYTES];
    const char *base = getenv("TMPDIR");
    snprintf(c->dir, sizeof c->dir, "%.200s/chaos.XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(c->dir)) dv_test_die("%s: %s", c->dir, strerror(errno));
    snprintf(path, sizeof path, "%s/driver.log", c->dir);
    c->log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (c->log_fd < 0) dv_test_die("%s: %s", path, strerror(errno));
    c->sync_ticks = chaos_random(c, 4) ? CHAOS_SYNC_TICKS_LONG : CHAOS_SYNC_TICKS;
    chaos_note(c, "T %d %d %d", CHAOS_SESSION_MS, CHAOS_TICK_MS, c->sync_ticks);
    chaos_wall_clock_set(c, 0);
}

static void start(chaos *c) {
    open_logs(c);
    chaos_certificates_give(c);
    c->quorum = dv_test_quorum_start(CHAOS_TICK_MS, c->sync_ticks);
    c->server = dv_test_quorum_server(c->quorum);
    c->probe = dv_test_probe_new(dv_test_server_connect(c->server));
    if (pthread_create(&c->monitor, NULL, monitor, c)) dv_test_die("no thread");
    for (int i = 0; i < CHAOS_MEMBERS; i++) {
        for (int server = 0; server < CHAOS_SERVERS; server++)
            c->members[i].proxies[server] = dv_test_proxy_start(dv_test_server_address(c->server, server + 1));
        if (i > 0) chaos_member_start(c, i);
    }
}

static bool have_shares(chaos *c) {
    chaos_members_watch(c);
    for (int i = 1; i < CHAOS_MEMBERS; i++) {
        if (!chaos_member_has_share(c, i)) return chaos_interrupted;
    }
    return true;
}

/* The first member comes when the others have divided the items, so that some are handed over in each round. */
static void start_first(chaos *c) {
    if (!DV_WAIT(have_shares(c), SERVE_MS)) chaos_note(c, "Y %" PRId64 " members get no shares", chaos_now_ms());
    chaos_member_start(c, 0);
}

/* Ends everything but the servers' logs, which are copied beside ours. */
static void stop(chaos *c) {
    for (int i = 0; i < CHAOS_MEMBERS; i++) chaos_member_end(c, i);
    dv_test_probe_free(c->probe);
    c->monitor_stops = true;
    pthread_join(c->monitor, NULL);
    for (int number = 1; number <= CHAOS_SERVERS; number++) {
        char command[3 * CHAOS_PATH_BYTES];
        dv_test_server_kill(c->server, number);
        snprintf(command, sizeof command, "cp -r --sparse=always '%s/%d' '%s/server%d'", dv_test_server_dir(c->server),
                 number, c->dir, number);
        if (system(command) != 0) dv_test_die("failed: %s", command);
    }
    for (int i = 0; i < CHAOS_MEMBERS; i++) {
        for (int server = 0; server < CHAOS_SERVERS; server++) dv_test_proxy_stop(c->members[i].proxies[server]);
    }
    dv_test_quorum_stop(c->quorum);
    close(c->log_fd);
}

/* Runs the checker, shows what it says, and adds up what its last line tells. */
static void check(chaos *c) {
    char command[CHAOS_PATH_BYTES], line[CHAOS_PATH_BYTES];
    unsigned long long ownerships = 0;
    unsigned violations = 0;
    bool told = false;
    snprintf(command, sizeof command, "exec /usr/bin/python3 '%s' '%s'", DIVVY_SOURCE_DIR "/test/chaos/check.py",
             c->dir);
    FILE *out = popen(command, "re");
    if (!out) dv_test_die("no checker: %s", strerror(errno));
    while (fgets(line, sizeof line, out)) {
        told = sscanf(line, "checked: ownerships %llu, violations %u", &ownerships, &violations) == 2;
        printf("    %s", line);
    }
    pclose(out);
    run.ownerships += ownerships;
    run.violations += violations;
    run.failures += !told;
    if (violations > 0 || !told || run.keep) {
        printf("chaos: round %u is kept in %s\n", run.rounds, c->dir);
    } else {
        snprintf(command, sizeof command, "rm -rf -- '%s'", c->dir);
        if (system(command) != 0) printf("chaos: cannot remove %s\n", c->dir);
    }
    fflush(stdout);
}

/* The last quiet time, and the end of all, are within the time, too. */
static void do_round(chaos *c, int64_t until_ms) {
    until_ms -= bound_ms() + QUIET_REST_MS + END_MS;
    start(c);
    start_first(c);
    collect_kinds(c);
    quiet(c);
    while (!chaos_interrupted && chaos_now_ms() < until_ms) {
        for (int i = 0; i < FAULTS_A_QUIET && !chaos_interrupted && chaos_now_ms() < until_ms; i++) {
            do_faults(c);
        }
        quiet(c);
    }
    if (chaos_interrupted) chaos_note(c, "I %" PRId64, chaos_now_ms());
    stop(c);
}

/* ---- the program ---- */

static void usage(void) {
    fputs("usage: chaos [--minutes M] [--seed S] [--keep] [--only KIND,...] [--mutant NAME]\n"
          "  --minutes  how long, 3 unless said otherwise; quiet times included, the checks of each round not\n"
          "  --seed     of the choice of faults; what comes of them is up to the machine\n"
          "  --keep     keep the logs of each round, which are kept anyway when something is wrong\n"
          "  --only     these kinds of faults, and no others\n"
          "  --mutant   of members with this bug of test/sim/mutant.h (build target chaos_member_mutants)\n",
          stderr);
    exit(2);
}

static void parse(int argc, char **argv) {
    run.minutes = 3;
    run.seed = dv_test_fresh_seed();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--keep") == 0) {
            run.keep = true;
            continue;
        }
        if (i + 1 == argc) usage();
        if (strcmp(argv[i], "--minutes") == 0) run.minutes = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--only") == 0) run.only = argv[++i];
        else if (strcmp(argv[i], "--mutant") == 0) run.mutant = argv[++i];
        else if (strcmp(argv[i], "--seed") == 0) run.seed = strtoull(argv[++i], NULL, 10);
        else usage();
    }
    if (!(run.minutes > 0)) usage();
}

static void report(void) {
    size_t kinds = 0;
    for (size_t i = 0; i < run.kind_count; i++) {
        kinds += run.counts[i] > 0;
        printf("    %4u %s\n", run.counts[i], run.kinds[i]->name);
    }
    double minutes = (double)run.lasted_ms / 60000;
    if (run.failures > 0) printf("chaos: %u rounds were not checked\n", run.failures);
    printf("chaos: minutes %.1f, faults %u of %zu kinds, ownerships %llu, violations %u\n", minutes, run.faults, kinds,
           run.ownerships, run.violations);
}

int main(int argc, char **argv) {
    static chaos c;
    parse(argc, argv);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGUSR1, SIG_IGN); /* Members inherit that, until they have a handler. */
    signal(SIGABRT, on_abort);
    /* The servers' logs are preallocated by the 64 MiB otherwise. The JVM says that it has found this. */
    setenv("JAVA_TOOL_OPTIONS", "-Dzookeeper.preAllocSize=1024", 1);
    printf("chaos: seed %" PRIu64 "\n", run.seed);
    use_own_mounts(&c);
    run.began_ms = run.said_ms = chaos_now_ms();
    int64_t whole_ms = (int64_t)(run.minutes * 60000), left_ms = whole_ms;
    uint64_t random = run.seed;
    for (; !chaos_interrupted && (run.rounds == 0 || left_ms > 40000); left_ms = whole_ms - run.lasted_ms) {
        bool has_mounts = c.has_mounts;
        memset(&c, 0, sizeof c);
        c.has_mounts = has_mounts;
        c.has_wall_clock = access(CHAOS_WALL_CLOCK, R_OK) == 0;
        c.mutant = run.mutant;
        c.random = random += 0x9E3779B97F4A7C15ULL;
        run.rounds++;
        int64_t began_ms = chaos_now_ms();
        do_round(&c, began_ms + (left_ms < ROUND_S * 1000 ? left_ms : ROUND_S * 1000));
        run.lasted_ms += chaos_now_ms() - began_ms;
        check(&c);
    }
    report();
    return run.violations > 0 || run.failures > 0;
}
