/* The processes of the members: started, ended, stopped, limited. SPDX-License-Identifier: Apache-2.0 */
#include "chaos.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "divvy/divvy.h"
#include "lib/expire.h"

enum { END_MS = 20000, LIMITED_FDS = 5, LOG_TAIL_BYTES = 8192 };

/* ---- processes ---- */

/* Puts the name of the file that says how wrong the one member's wall clock is. */
static void name_clock(const chaos *c, char *file) {
    snprintf(file, CHAOS_PATH_BYTES, "%s/wall_clock", c->dir);
}

static void make_clock_wrong(const chaos *c) {
    char file[CHAOS_PATH_BYTES];
    name_clock(c, file);
    setenv("LD_PRELOAD", CHAOS_WALL_CLOCK, 1);
    setenv("DIVVY_TEST_WALL_CLOCK", file, 1);
}

void chaos_wall_clock_set(const chaos *c, int64_t offset_s) {
    char file[CHAOS_PATH_BYTES];
    name_clock(c, file);
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || pwrite(fd, &offset_s, sizeof offset_s, 0) != sizeof offset_s || close(fd))
        dv_test_die("%s: %s", file, strerror(errno));
}

/* In the child. Which recipes' variants a member has depends on its number. */
__attribute__((noreturn)) static void exec_member(const chaos *c, int member, const char *hosts, const char *seed) {
    static const char *const modes[CHAOS_MEMBERS] = {"incremental", "incremental", "incremental", "eager"};
    static const char *const losses[CHAOS_MEMBERS] = {"rejoin", "fail", "rejoin", "fail"};
    static const char *const preparing[CHAOS_MEMBERS] = {"fast", "slow", "never", "unprepared"};
    char log[CHAOS_PATH_BYTES], errors[CHAOS_PATH_BYTES + 8], name[16], session[16], tick[16];
    snprintf(log, sizeof log, "%s/%s", c->dir, c->members[member].log);
    snprintf(errors, sizeof errors, "%s.stderr", log);
    snprintf(name, sizeof name, "m%d", member);
    snprintf(session, sizeof session, "%d", CHAOS_SESSION_MS);
    snprintf(tick, sizeof tick, "%d", CHAOS_TICK_MS);
    int out = open(errors, O_WRONLY | O_CREAT | O_APPEND, 0600), null = open("/dev/null", O_RDWR);
    if (out < 0 || null < 0) _exit(126);
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    closefrom(STDERR_FILENO + 1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setenv("MALLOC_ARENA_MAX", "1", 1); /* So that a limit of the address space is felt. */
    if (member == CHAOS_JUMPING_MEMBER && c->has_wall_clock) make_clock_wrong(c);
    if (c->mutant) setenv("CHAOS_MUTANT", c->mutant, 1);
    execl(c->mutant ? CHAOS_MEMBER_PROGRAM "_mutants" : CHAOS_MEMBER_PROGRAM, "chaos_member", hosts, name, log, session,
          tick, seed, modes[member], losses[member], preparing[member], (char *)NULL);
    _exit(127);
}

void chaos_member_start(chaos *c, int member) {
    chaos_process *process = &c->members[member];
    char hosts[256] = "", seed[32];
    size_t used = 0;
    for (int i = 0; i < CHAOS_SERVERS; i++)
        used += (size_t)snprintf(hosts + used, sizeof hosts - used, "%s%s", i ? "," : "",
                                 dv_test_proxy_address(process->proxies[i]));
    snprintf(seed, sizeof seed, "%d", 1 + chaos_random(c, 1000000000));
    snprintf(process->log, sizeof process->log, "m%d.%u.log", member, ++process->generation);
    chaos_note(c, "M %" PRId64 " m%d %s", chaos_now_ms(), member, process->log);
    process->pid = fork();
    if (process->pid < 0) dv_test_die("fork: %s", strerror(errno));
    if (process->pid == 0) exec_member(c, member, hosts, seed);
}

bool chaos_member_has_share(const chaos *c, int member) {
    char path[CHAOS_PATH_BYTES], line[CHAOS_PATH_BYTES];
    bool has = false;
    snprintf(path, sizeof path, "%s/%s", c->dir, c->members[member].log);
    FILE *log = fopen(path, "re");
    while (log && !has && fgets(line, sizeof line, log)) {
        int to;
        has = sscanf(line, "T %*d %*d %d", &to) == 1 && to == DIVVY_ACQUIRED;
    }
    if (log) fclose(log);
    return has;
}

void chaos_member_shift(chaos *c) {
    const chaos_process *process = &c->members[chaos_random(c, CHAOS_MEMBERS)];
    if (process->pid) kill(process->pid, SIGUSR1);
}

void chaos_member_kill(chaos *c, int member) {
    chaos_process *process = &c->members[member];
    if (!process->pid) return;
    kill(process->pid, SIGKILL);
    chaos_note(c, "K %" PRId64 " %s", chaos_now_ms(), process->log);
    waitpid(process->pid, NULL, 0);
    process->pid = 0;
}

/* Notes an end that nobody asked for. */
static void note_end(chaos *c, int member, int status) {
    const chaos_process *process = &c->members[member];
    chaos_note(c, "Y %" PRId64 " %s %s %d", chaos_now_ms(), process->log,
               WIFSIGNALED(status) ? "ended by signal" : "exited with",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void chaos_member_end(chaos *c, int member) {
    chaos_process *process = &c->members[member];
    int status = 0;
    pid_t pid = process->pid;
    if (!pid) return;
    kill(pid, SIGTERM);
    if (DV_WAIT(waitpid(pid, &status, WNOHANG) != 0, END_MS)) {
        if (status != 0) note_end(c, member, status);
        process->pid = 0;
        return;
    }
    chaos_note(c, "Y %" PRId64 " %s does not end", chaos_now_ms(), process->log);
    chaos_member_kill(c, member);
}

void chaos_members_watch(chaos *c) {
    for (int i = 0; i < CHAOS_MEMBERS; i++) {
        int status;
        if (!c->members[i].pid || waitpid(c->members[i].pid, &status, WNOHANG) == 0) continue;
        note_end(c, i, status);
        chaos_member_start(c, i);
    }
}

/* ---- faults ---- */

static void choose(chaos *c, chaos_fault *fault) {
    fault->target = chaos_random(c, CHAOS_MEMBERS);
}

static void begin_kill(chaos *c, chaos_fault *fault) {
    choose(c, fault);
    chaos_member_kill(c, fault->target);
}

static void begin_leave(chaos *c, chaos_fault *fault) {
    choose(c, fault);
    chaos_member_end(c, fault->target);
}

static void end_by_start(chaos *c, chaos_fault *fault) {
    chaos_member_start(c, fault->target);
}

static void begin_stop(chaos *c, chaos_fault *fault) {
    choose(c, fault);
    const chaos_process *process = &c->members[fault->target];
    kill(process->pid, SIGSTOP);
    chaos_note(c, "S %" PRId64 " %s", chaos_now_ms(), process->log);
}

static void end_stop(chaos *c, chaos_fault *fault) {
    const chaos_process *process = &c->members[fault->target];
    chaos_note(c, "G %" PRId64 " %s", chaos_now_ms(), process->log);
    kill(process->pid, SIGCONT);
}

static void set_limit(const chaos *c, int member, __rlimit_resource_t what, rlim_t soft) {
    struct rlimit limit;
    pid_t pid = c->members[member].pid;
    if (prlimit(pid, what, NULL, &limit)) return; /* It may have ended. */
    limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
    prlimit(pid, what, &limit, NULL);
}

/* The connection breaks, for under a limit it is what has to be made again; in half of all cases for so long that the
 * session is lost, so that a new one, with new threads, has to be opened. */
static void break_links(chaos *c, int member) {
    for (int i = 0; i < CHAOS_SERVERS; i++) dv_test_proxy_cut(c->members[member].proxies[i]);
    chaos_wait(c, chaos_random(c, 2) ? 50 : 4 * CHAOS_SESSION_MS / 3);
    for (int i = 0; i < CHAOS_SERVERS; i++) dv_test_proxy_restore(c->members[member].proxies[i]);
}

static void begin_fd_limit(chaos *c, chaos_fault *fault) {
    choose(c, fault);
    set_limit(c, fault->target, RLIMIT_NOFILE, LIMITED_FDS);
    break_links(c, fault->target);
}

static void end_fd_limit(chaos *c, chaos_fault *fault) {
    set_limit(c, fault->target, RLIMIT_NOFILE, RLIM_INFINITY);
}

static rlim_t address_space(pid_t pid) {
    char path[64];
    unsigned long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%lu", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void begin_memory_limit(chaos *c, chaos_fault *fault) {
    choose(c, fault);
    rlim_t bytes = address_space(c->members[fault->target].pid);
    if (bytes) set_limit(c, fault->target, RLIMIT_AS, bytes);
    break_links(c, fault->target);
}

static void end_memory_limit(chaos *c, chaos_fault *fault) {
    set_limit(c, fault->target, RLIMIT_AS, RLIM_INFINITY);
}

static bool has_wall_clock(const chaos *c) {
    return c->has_wall_clock;
}

static void begin_clock_jump(chaos *c, chaos_fault *fault) {
    static const int offsets_s[] = {3600, -3600, 2, -2, 86400, -40};
    fault->target = CHAOS_JUMPING_MEMBER;
    chaos_wall_clock_set(c, offsets_s[chaos_random(c, (int)(sizeof offsets_s / sizeof *offsets_s))]);
}

static void end_clock_jump(chaos *c, chaos_fault *fault) {
    (void)fault;
    chaos_wall_clock_set(c, 0);
}

/* Returns the session that the member wrote of last; 0 when there is none yet. */
static int64_t session_of(const chaos *c, int member) {
    char path[CHAOS_PATH_BYTES], tail[LOG_TAIL_BYTES + 1];
    snprintf(path, sizeof path, "%s/%s", c->dir, c->members[member].log);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    off_t end = lseek(fd, 0, SEEK_END), from = end > LOG_TAIL_BYTES ? end - LOG_TAIL_BYTES : 0;
    ssize_t got = pread(fd, tail, LOG_TAIL_BYTES, from);
    close(fd);
    tail[got > 0 ? got : 0] = '\0';
    unsigned long long session = 0;
    for (const char *at = tail; (at = strstr(at, "\nU ")); at++) sscanf(at, "\nU %*d %llx", &session);
    return (int64_t)session;
}

static void begin_expire(chaos *c, chaos_fault *fault) {
    choose(c, fault);
    int64_t session = session_of(c, fault->target);
    if (!session) return;
    for (int i = 0; i < CHAOS_SERVERS; i++) dv_test_proxy_cut(c->members[fault->target].proxies[i]);
    chaos_note(c, "X %" PRId64 " %llx", chaos_now_ms(), (unsigned long long)session);
    dv_test_expire(dv_test_server_connect(c->server), session, NULL);
}

static void end_expire(chaos *c, chaos_fault *fault) {
    for (int i = 0; i < CHAOS_SERVERS; i++) dv_test_proxy_restore(c->members[fault->target].proxies[i]);
}

const chaos_kind chaos_member_kinds[] = {
    {"member_killed", CHAOS_OF_MEMBERS, 100, 2 * CHAOS_SESSION_MS, begin_kill, end_by_start, false, NULL},
    {"member_left", CHAOS_OF_MEMBERS, 100, 2000, begin_leave, end_by_start, false, NULL},
    {"member_stopped_short", CHAOS_OF_MEMBERS, 200, 6 * CHAOS_SESSION_MS / 10, begin_stop, end_stop, false, NULL},
    {"member_stopped_long", CHAOS_OF_MEMBERS, 4 * CHAOS_SESSION_MS / 3, 2 * CHAOS_SESSION_MS, begin_stop, end_stop,
     false, NULL},
    {"member_fd_limit", CHAOS_OF_MEMBERS, 500, 2 * CHAOS_SESSION_MS, begin_fd_limit, end_fd_limit, false, NULL},
    {"member_memory_limit", CHAOS_OF_MEMBERS, 500, CHAOS_SESSION_MS, begin_memory_limit, end_memory_limit, false, NULL},
    {"member_clock_jump", CHAOS_OF_MEMBERS, 1500, 5000, begin_clock_jump, end_clock_jump, false, has_wall_clock},
    {"session_expired", CHAOS_OF_MEMBERS, 10, 1000, begin_expire, end_expire, true, NULL},
    {0},
};
