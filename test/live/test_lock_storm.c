/* Lock: 52 contenders in 4 processes, two of them cut off again and again. SPDX-License-Identifier: Apache-2.0
 *
 * Shows processes that contend for one lock on a real server while links break. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "test_client_witness.h"

#include "lib/proxy.h"
#include "lib/server.h"
#include "lib/zk.h"

#define TICK_MS 100
#define PATH "/storm"

enum { PROCESSES = 4, THREADS = 13, CONTENDERS = PROCESSES * THREADS, SESSION_MS = 1500, CUTS = 4, HOLDS = 65536 };

/* One ownership: it was believed at `begin`, at `end`, and whenever it was asked for in between. */
typedef struct {
    int contender;
    int64_t begin_us, end_us, token;
} hold;

/* What all processes share besides the log. */
typedef struct {
    atomic_int over, turns[CONTENDERS];
    atomic_int ended[PROCESSES];  /* sessions */
    atomic_int proven[PROCESSES]; /* the number of one, from 1, that something was held on */
} record;

static record *shared;

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* --- the contenders' processes ---------------------------------------------------------------------------------- */

typedef struct {
    divvy_client *client;
    int contender, log;
    unsigned chance;
} contender;

/* Works for a while, as long as it is held. A line in one write, which the kernel appends as a whole. */
static void work(contender *c, divvy_lock *lock) {
    hold h = {.contender = c->contender, .token = divvy_lock_token(lock)};
    h.begin_us = h.end_us = now_us();
    if (!h.token || divvy_lock_token(lock) != h.token) return; /* lost already: nothing was done */
    int64_t wanted_us = h.begin_us + rand_r(&c->chance) % 3000;
    while (h.end_us < wanted_us) {
        int64_t at_us = now_us();
        if (divvy_lock_token(lock) != h.token) break;
        h.end_us = at_us;
    }
    if (write(c->log, &h, sizeof h) != sizeof h) abort();
    atomic_fetch_add(&shared->turns[c->contender], 1);
}

static void *contend(void *context) {
    contender *c = context;
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = PATH;
    if (divvy_lock_create(&lock, c->client, &config) != 0) abort();
    while (!atomic_load(&shared->over)) {
        int process = c->contender / THREADS, session = atomic_load(&shared->ended[process]) + 1; /* or a later one */
        int error = divvy_lock_acquire(lock, rand_r(&c->chance) % 20 ? 5000 : 0);
        if (error && error != DIVVY_ETIMEDOUT && error != DIVVY_EBUSY)
            dv_test_die("contender %d: %s", c->contender, divvy_client_error(c->client));
        if (error) continue;
        atomic_store(&shared->proven[process], session);
        work(c, lock);
        divvy_lock_release(lock);
    }
    divvy_lock_destroy(lock);
    return NULL;
}

static void on_session(divvy_client *client, divvy_session_state state, void *user) {
    int process = *(int *)user;
    (void)client;
    if (state == DIVVY_LOST) atomic_fetch_add(&shared->ended[process], 1);
}

static record *map(int fd) {
    void *memory = mmap(NULL, sizeof(record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) dv_test_die("mmap");
    return memory;
}

static int run_process(const char *hosts, int number, int log, int memory) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    contender contenders[THREADS];
    pthread_t threads[THREADS];
    shared = map(memory);
    config.hosts = hosts;
    config.on_session = on_session;
    config.user = &number;
    config.session_timeout_ms = SESSION_MS;
    config.ensemble_tick_ms = TICK_MS;
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) return 1;
    for (int i = 0; i < THREADS; i++) {
        int id = number * THREADS + i;
        contenders[i] = (contender){client, id, log, (unsigned)id + 1};
        if (pthread_create(&threads[i], NULL, contend, &contenders[i]) != 0) return 1;
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    divvy_client_close(client);
    return 0;
}

static pid_t start_process(const char *hosts, int process, int log, int memory) {
    char words[3][16];
    snprintf(words[0], sizeof words[0], "%d", process);
    snprintf(words[1], sizeof words[1], "%d", log);
    snprintf(words[2], sizeof words[2], "%d", memory);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/proc/self/exe", "live_lock_storm", "contend", hosts, words[0], words[1], words[2], (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

/* --- the storm -------------------------------------------------------------------------------------------------- */

static int by_begin(const void *a, const void *b) {
    const hold *one = a, *other = b;
    return (one->begin_us > other->begin_us) - (one->begin_us < other->begin_us);
}

static hold *read_log(int log, size_t *count) {
    hold *holds = calloc(HOLDS, sizeof *holds);
    assert_non_null(holds);
    ssize_t bytes = pread(log, holds, HOLDS * sizeof *holds, 0);
    assert_true(bytes > 0 && bytes % (ssize_t)sizeof *holds == 0);
    *count = (size_t)bytes / sizeof *holds;
    qsort(holds, *count, sizeof *holds, by_begin);
    return holds;
}

/* Never two at once, each by a greater token than all before; and where no session ended, nobody gets far more turns
 * than another. On a machine that stands still, sessions end whose link was not cut. */
static void check_holds(const hold *holds, size_t count) {
    int turns[CONTENDERS] = {0}, most = 0, least = HOLDS;
    for (size_t i = 0; i < count; i++) {
        turns[holds[i].contender]++;
        if (i == 0) continue;
        if (holds[i].begin_us <= holds[i - 1].end_us || holds[i].token <= holds[i - 1].token)
            fail_msg("contender %d held it by %lld from %lld us, %d by %lld until %lld us", holds[i].contender,
                     (long long)holds[i].token, (long long)holds[i].begin_us, holds[i - 1].contender,
                     (long long)holds[i - 1].token, (long long)holds[i - 1].end_us);
    }
    for (int i = 0; i < CONTENDERS; i++) {
        if (i >= CONTENDERS / 2 || atomic_load(&shared->ended[i / THREADS])) continue;
        most = turns[i] > most ? turns[i] : most;
        least = turns[i] < least ? turns[i] : least;
    }
    if (most == 0) least = 0; /* all sessions ended */
    print_message("%zu ownerships; of those whose session did not end %d to %d\n", count, least, most);
    assert_true(most <= 2 * least + 10);
}

/* Waits until a process has lost one more session. */
static void wait_for_loss(int process, pid_t pid, int ended) {
    int status = 0;
    if (DV_WAIT(atomic_load(&shared->ended[process]) > ended, PATIENCE_MS)) return;
    bool gone = waitpid(pid, &status, WNOHANG) == pid;
    fail_msg("process %d has not lost its session: %s, status %#x, ended %d", process, gone ? "it is gone" : "it runs",
             (unsigned)status, ended);
}

/* Cuts two of the four processes off again and again, each time until its session is over. Only one that was proven
 * has a deadline (C5). */
static void rage(dv_test_proxy *const *proxies, const pid_t *pids) {
    for (int i = 0; i < CUTS; i++) {
        int cut = PROCESSES / 2 + i % 2, ended = atomic_load(&shared->ended[cut]);
        dv_test_sleep_ms(800); /* the pace of the storm; nothing is claimed of it */
        assert_true(DV_WAIT(atomic_load(&shared->proven[cut]) > ended, PATIENCE_MS));
        dv_test_proxy_freeze(proxies[cut]);
        wait_for_loss(cut, pids[cut], ended);
        dv_test_sleep_ms(SESSION_MS / 2); /* so that the servers come to it, too; if not, nothing is claimed of it */
        dv_test_proxy_thaw(proxies[cut]);
    }
}

static bool all_had_a_turn(const int *before) {
    for (int i = 0; i < CONTENDERS; i++) {
        if (atomic_load(&shared->turns[i]) <= before[i]) return false;
    }
    return true;
}

/* After the storm everyone goes on: nobody is left out. */
static void calm_down(void) {
    int before[CONTENDERS];
    for (int i = 0; i < CONTENDERS; i++) before[i] = atomic_load(&shared->turns[i]);
    assert_true(DV_WAIT(all_had_a_turn(before), PATIENCE_MS));
    atomic_store(&shared->over, 1);
}

/* Never two inside, and tokens that grow; all get their turns, and of those whose session did not end nobody gets twice
 * as many as another. */
TEST(test_storm) {
    dv_test_server *server = dv_test_server_start(1, TICK_MS);
    dv_test_proxy *proxies[PROCESSES];
    pid_t pids[PROCESSES];
    char name[] = "/tmp/divvy-lock-storm-XXXXXX";
    int log = mkstemp(name), memory = memfd_create("record", 0), status; /* not closed by exec */
    assert_true(log >= 0 && memory >= 0);
    unlink(name);
    assert_int_equal(fcntl(log, F_SETFL, O_APPEND), 0);
    assert_int_equal(ftruncate(memory, sizeof(record)), 0);
    shared = map(memory);
    for (int i = 0; i < PROCESSES; i++) {
        proxies[i] = dv_test_proxy_start(dv_test_server_connect(server));
        pids[i] = start_process(dv_test_proxy_address(proxies[i]), i, log, memory);
    }
    rage(proxies, pids);
    calm_down();
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        dv_test_proxy_stop(proxies[i]);
    }
    size_t count;
    hold *holds = read_log(log, &count);
    check_holds(holds, count);
    free(holds);
    munmap(shared, sizeof *shared);
    close(memory);
    close(log);
    dv_test_zk *truth = dv_test_zk_open(dv_test_server_connect(server));
    assert_true(DV_WAIT(dv_test_zk_count(truth, PATH) == 0, PATIENCE_MS));
    dv_test_zk_close(truth);
    dv_test_server_stop(server);
}

int main(int argc, char **argv) {
    if (argc == 6 && strcmp(argv[1], "contend") == 0)
        return run_process(argv[2], (int)strtol(argv[3], NULL, 10), (int)strtol(argv[4], NULL, 10),
                           (int)strtol(argv[5], NULL, 10));
    return dv_test_run();
}
