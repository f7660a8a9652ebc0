/* Commands of `divvy`: they read a pool, locks and services, ask a pool for something, or run another command.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Whatever fails, a command ends with a code of its own: what it shows or does is whole, or it says why not. No process
 * of it is left. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "../../tools/divvy/command.h"
#include "command_world.h"
#include "scenarios.h"

enum {
    ITEMS = 5,
    MEMBERS = SWEEP_COMMAND_MEMBERS,
    WORDS_MAX = 32,
    WORDS_BYTES = 512,
    OUTPUT_BYTES = 65536,
    THREAD_WAIT_MS = 10000
};

#define POOL SWEEP_COMMAND_POOL

static const char *const items[ITEMS] = {"a", "b/c", "d", "e", "f"};

typedef sweep_command_found world;

/* ---- what a command finds ---- */

static void join(sweep *s, world *w, int m) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    char identifier[] = {'m', (char)('0' + m), '\0'};
    config.path = POOL;
    config.identifier = identifier;
    config.items = items;
    config.item_count = ITEMS;
    config.time_boundary_ms = 100;
    config.static_membership = 1;
    config.rejoin_delay_ms = 100 * SWEEP_WAIT_MS;
    config.zone = m ? "z1" : "z0";
    config.tags = m ? "ssd" : NULL;
    if (divvy_partitioner_create(&w->members[m], s->clients[m], &config) != 0) sweep_fail(s, "member %d", m);
}

/* Lets time go on until so many items have an owner. Members release what they are to give. */
static void settle(sweep *s, const world *w, size_t wanted) {
    int64_t end = divvy_testing_now_ms(s->ensemble) + SWEEP_WAIT_MS;
    for (size_t owned = 0; owned != wanted; sweep_pass(s, 100)) {
        owned = 0;
        for (int m = 0; m < MEMBERS; m++) {
            if (divvy_partitioner_state(w->members[m]) == DIVVY_RELEASE) divvy_partitioner_release_set(w->members[m]);
            for (size_t i = 0; i < ITEMS; i++) owned += divvy_partitioner_owns(w->members[m], items[i]) != 0;
        }
        if (divvy_testing_now_ms(s->ensemble) >= end) sweep_fail(s, "hangs: %zu items", owned);
    }
}

static void make_pool(sweep *s, world *w) {
    divvy_pool_request request = DIVVY_POOL_REQUEST_INIT;
    request.timeout_ms = SWEEP_WAIT_MS;
    request.by = "ann@host";
    request.why = "a trial";
    for (int m = 0; m < MEMBERS; m++) join(s, w, m);
    settle(s, w, ITEMS);
    SWEEP_CHECK(s, divvy_pool_pin(s->clients[0], POOL, "a", "m0", &request) == 0);
    SWEEP_CHECK(s, divvy_pool_need(s->clients[0], POOL, "f", "ssd", &request) == 0);
    SWEEP_CHECK(s, divvy_pool_set_option(s->clients[0], POOL, "max-moves", "2", &request) == 0);
    SWEEP_CHECK(s, divvy_pool_pause(s->clients[0], POOL, "d", &request) == 0);
    settle(s, w, ITEMS - 1);
    sweep_pass(s, 2000);
}

static void on_held(divvy_lock *lock, int result, void *user) {
    (void)lock, (void)result, (void)user;
}

static void make_locks(sweep *s, world *w) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = "/divvy/locks/nightly";
    for (int m = 0; m < MEMBERS; m++) {
        config.identifier = m ? "waiter" : "holder";
        SWEEP_CHECK(s, divvy_lock_create(&w->locks[m], s->clients[m], &config) == 0);
        SWEEP_CHECK(s, divvy_lock_acquire_async(w->locks[m], -1, on_held, NULL) == 0);
        sweep_pass(s, 100);
    }
    SWEEP_CHECK(s, divvy_lock_held(w->locks[0]));
}

static void make_services(sweep *s, world *w) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    cJSON *status = cJSON_CreateObject();
    config.nonce = "n";
    config.host = "h";
    cJSON_AddStringToObject(status, "role", "web");
    cJSON_AddNumberToObject(status, "load", 1);
    cJSON_AddNumberToObject(status, "ttl", 600);
    SWEEP_CHECK(s, divvy_registry_open(&w->registry, s->clients[0], &config) == 0);
    SWEEP_CHECK(s, divvy_registry_heartbeat(w->registry, status, NULL, SWEEP_WAIT_MS) == 0);
    cJSON_Delete(status);
}

void sweep_command_begin(sweep *s, world *w) {
    for (int m = 0; m < MEMBERS; m++) sweep_open(s, m);
    make_pool(s, w);
    make_locks(s, w);
    make_services(s, w);
    sweep_command_world(s);
}

void sweep_command_end(sweep *s, world *w) {
    divvy_registry_close(w->registry);
    for (int m = 0; m < MEMBERS; m++) {
        divvy_lock_destroy(w->locks[m]);
        divvy_partitioner_destroy(w->members[m]);
    }
    sweep_end(s);
    /* A thread of `divvy doctor` may outlast the command. */
    for (int i = 0; i < THREAD_WAIT_MS && sweep_allocations_outstanding() > 0; i++) usleep(1000);
}

/* ---- what a command prints ---- */

typedef struct {
    int fd, kept; /* a file of its own, and where the process printed before */
    char text[OUTPUT_BYTES];
    size_t bytes;
} output;

static output printed[2] = {{.fd = -1}, {.fd = -1}}; /* stdout, stderr */

static void divert(void) {
    fflush(NULL);
    for (int n = 0; n < 2; n++) {
        printed[n].fd = memfd_create("printed", MFD_CLOEXEC);
        printed[n].kept = fcntl(n + 1, F_DUPFD_CLOEXEC, 3);
        if (printed[n].fd < 0 || printed[n].kept < 0 || dup2(printed[n].fd, n + 1) < 0) abort();
    }
}

void sweep_command_restore(void) {
    fflush(stdout);
    for (int n = 0; n < 2; n++) {
        output *o = &printed[n];
        if (o->fd < 0) continue;
        ssize_t bytes = pread(o->fd, o->text, sizeof o->text - 1, 0);
        o->bytes = bytes > 0 ? (size_t)bytes : 0;
        o->text[o->bytes] = '\0';
        dup2(o->kept, n + 1);
        close(o->kept);
        close(o->fd);
        o->fd = -1;
    }
}

/* ---- the run ---- */

/* Splits at spaces; a command may change its words. */
static int split(char **words, char *text) {
    int count = 0;
    for (char *at = NULL, *word = strtok_r(text, " ", &at); word; word = strtok_r(NULL, " ", &at)) {
        if (count == WORDS_MAX - 1) abort();
        words[count++] = word;
    }
    words[count] = NULL;
    return count;
}

/* Waits until all processes of the command have ended: its guardians go by themselves. */
static void wait_for_processes(void) {
    while (waitpid(-1, NULL, 0) > 0) continue;
}

/* Has signals as they were before the command, which need not have read the one that came. */
static void end_signals(const sigset_t *before) {
    sigset_t pending;
    sigemptyset(&pending);
    sigaddset(&pending, SIGTERM);
    while (sigtimedwait(&pending, NULL, &(struct timespec){0}) > 0) continue;
    sigprocmask(SIG_SETMASK, before, NULL);
}

/* Returns whether a command may end so where something fails: by one of the codes of its help. */
static bool is_excused(int code) {
    return code == DV_EXIT_FAILED || code == DV_EXIT_UNREACHABLE || code == DV_EXIT_TIMED_OUT ||
           code == DV_EXIT_TROUBLE || code == DV_EXIT_NOT_EXECUTABLE;
}

/* Runs a command; `code` is its exit code when nothing fails, and SIGTERM comes after end_ms (0: never). */
static void command_for(sweep *s, const dv_command *about, const char *line, int code, int64_t end_ms) {
    static char text[WORDS_BYTES];
    char *words[WORDS_MAX];
    world w = {.registry = NULL};
    sigset_t signals;
    sweep_command_begin(s, &w);
    sigprocmask(SIG_SETMASK, NULL, &signals);
    signal(SIGPIPE, SIG_IGN); /* As main() has it. */
    if (end_ms) sweep_command_end_after(end_ms);
    if (strstr(line, "--members")) snprintf(text, sizeof text, "%s %s", about->name, line);
    else snprintf(text, sizeof text, "%s --connect 127.0.0.1:%d %s", about->name, sweep_command_server(), line);
    int count = split(words, text);
    divert();
    sweep_begin(s);
    int ended = about->run(count, words);
    s->armed = false;
    size_t refused = sweep_allocations_refused();
    sweep_allocations_disarm();
    wait_for_processes();
    sweep_command_restore();
    end_signals(&signals);
    const char *said = printed[1].text;
    bool fails = refused || s->failures;
    if (ended != code && !(fails && is_excused(ended)))
        sweep_fail(s, "divvy %s: exit code %d\n%s%s", line, ended, printed[0].text, said);
    bool tells = *said || (about == &dv_doctor_command && printed[0].bytes); /* Its page says it. */
    if (ended != code && !tells) sweep_fail(s, "divvy %s: exit code %d, and it does not say why", line, ended);
    if (!printed[0].bytes && (ended == 0 || !*said)) sweep_fail(s, "divvy %s prints nothing", line);
    if (strstr(said, "(null)") || strstr(printed[0].text, "(null)")) sweep_fail(s, "divvy %s prints (null)", line);
    sweep_command_end(s, &w);
}

static void command(sweep *s, const dv_command *about, const char *line, int code) {
    command_for(s, about, line, code, 0);
}

#define COMMAND(name, about, line, code)               \
    void sweep_command_##name(sweep *s) {              \
        command(s, &dv_##about##_command, line, code); \
    }

COMMAND(status, status, "--path " POOL " --item z", 0)
COMMAND(status_json, status, "--path " POOL " --json", 0)
COMMAND(status_format, status, "--path " POOL " --format {item}={owner}", 0)
COMMAND(explain, explain, "--path " POOL " a", 0)
COMMAND(explain_paused, explain, "--path " POOL " --json d", 0)
COMMAND(history, history, "--path " POOL, 0)
COMMAND(history_json, history, "--path " POOL " --json", 0)
COMMAND(doctor, doctor, "--path " POOL " --server-timeout 30s", 1)
COMMAND(doctor_json, doctor, "--path " POOL " --json --server-timeout 30s", 1)
COMMAND(locks, locks, "", 0)
COMMAND(locks_one, locks, "nightly", 0)
COMMAND(locks_json, locks, "--json", 0)
COMMAND(services, services, "", 0)
COMMAND(services_healthy, services, "--healthy", 0)
COMMAND(services_none, services, "ghost", 0)
COMMAND(services_json, services, "web --json", 0)
COMMAND(plan, plan, "--path " POOL " --join 1 --leave m0", 0)
COMMAND(plan_json, plan, "--path " POOL " --json --drain m1", 0)
COMMAND(drain, drain, "--path " POOL " --reason trial m1", 0)
COMMAND(drain_undo, drain, "--path " POOL " --undo --json m1", 0)
COMMAND(drain_dry_run, drain, "--path " POOL " --dry-run --json m1", 0)
COMMAND(pin, pin, "--path " POOL " e m1", 0)
COMMAND(unpin, unpin, "--path " POOL " a", 0)
COMMAND(move, move, "--path " POOL " --json e m0", 0)
COMMAND(pause, pause, "--path " POOL " a e", 0)
COMMAND(resume, resume, "--path " POOL " d", 0)
COMMAND(need, need, "--path " POOL " b/c ssd", 0)
COMMAND(need_list, need, "--path " POOL, 0)
COMMAND(set, set, "--path " POOL " max-moves=3 round-timeout=30s", 0)
COMMAND(set_list, set, "--path " POOL " --json", 0)
COMMAND(explain_format, explain, "--path " POOL " --format {item}={owner} f", 0)
COMMAND(history_format, history, "--path " POOL " --format {at}={moved}", 0)
COMMAND(locks_format, locks, "--format {name}={held}", 0)
COMMAND(need_undo, need, "--path " POOL " --undo f", 0)
COMMAND(plan_members, plan, "--members 3 --item a --item b --item c --join 1 --json", 0)
COMMAND(plan_page, plan, "--members 2 --item a --item b --drain member-1", 0)
COMMAND(services_format, services, "--format {id}={health}", 0)
COMMAND(set_default, set, "--path " POOL " --json max-moves=default", 0)
COMMAND(unpin_wait, unpin, "--path " POOL " --wait --wait-timeout 30s a", 0)

/* ---- commands that run another ---- */

/* The words are split at spaces, and shells split at tabs. */
#define RUN(group, name, about, line, end_ms)                   \
    void sweep_##group##_##name(sweep *s) {                     \
        command_for(s, &dv_##about##_command, line, 0, end_ms); \
    }

enum { LATE_MS = 3600000, SOON_MS = 5000 };

RUN(run, lock, lock, "weekly echo ran", LATE_MS)
RUN(run, lock_slot, lock, "--slots 2 --verbose few sh -c echo\tran", LATE_MS)
RUN(run, elect, elect, "--once leader echo ran", LATE_MS)
RUN(run, elect_watch, elect, "--watch leader", SOON_MS)
RUN(run, announce, announce, "--role web --load 3 --address 127.0.0.1 --port 80 --id web-1 -- echo ran", LATE_MS)
RUN(run, announce_load, announce, "--role web --load-command echo\t3 -- echo ran", LATE_MS)

/* Members of a pool, with commands or without. */
#define METRICS "sweep.prom"
#define MEMBER "--path /pool/run --time-boundary 0 "

RUN(member, works, partition, MEMBER "--item a --item b --events - -- echo ran", SOON_MS)
void sweep_member_is_measured(sweep *s) {
    command_for(s, &dv_partition_command,
                MEMBER "--item a --item b --balance cpu --load-interval 1s --quarantine 1/1h --metrics " METRICS
                       " --events - -- sh -c kill\t-KILL\t$$",
                0, SOON_MS);
    unlink(METRICS);
}

RUN(member, is_told, partition,
    MEMBER "--items-from-command echo\ta --items-interval 1s --load-command echo\ta\t2 --load-unit jobs --json",
    SOON_MS)
RUN(member, is_many, partition,
    MEMBER "--sessions 2 --identifier me --item a --item b --standby --restart never --events - -- true", SOON_MS)
