/* Semaphore: 52 contenders in 4 processes. One of these is killed and two are cut off, again and again.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shows processes that contend on a real server while some are killed and some cut off. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "test_client_witness.h"

#include "lib/proxy.h"
#include "lib/server.h"
#include "lib/zk.h"

#define TICK_MS 100
#define POOL "/storm/pool"

enum {
    PROCESSES = 4, /* 0 is spared, 1 is killed and started again, the links of 2 and 3 are cut */
    THREADS = 13,
    CONTENDERS = PROCESSES * THREADS,
    LIMIT = 8,
    COUNT_MAX = 3,
    SESSION_MS = 1500,
    HOLD_MOST_US = 8000,
    HOLDS = 65536
};

/* One ownership: it was believed from `begin` to `end`, which is kept up to date, so that it tells when its process was
 * killed. All zero until `begin` is set, which is last. */
typedef struct {
    int contender, count, slots[COUNT_MAX];
    int64_t token;
    _Atomic int64_t begin_us, end_us;
} hold;

/* In memory that all processes share. */
typedef struct {
    atomic_int over;
    atomic_uint holds;
    atomic_int lost, spared_ended, turns[CONTENDERS], keeps[PROCESSES];
    hold hold[HOLDS];
} record;

static record *shared;

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static record *map(int fd) {
    void *memory = mmap(NULL, sizeof(record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) dv_test_die("mmap");
    return memory;
}

/* --- the contenders' processes ---------------------------------------------------------------------------------- */

typedef struct {
    divvy_client *client;
    int number;
    unsigned chance;
} contender;

static int count_of(int number) {
    return number % 13 == 12 ? 3 : number % 4 == 3 ? 2 : 1;
}

/* The first of each process that is killed or cut off holds its slot until that happens. */
static bool is_keeper(int number) {
    return number % THREADS == 0 && number > 0;
}

static void on_lost(divvy_semaphore *semaphore, void *user) {
    contender *c = user;
    (void)semaphore;
    if (is_keeper(c->number)) atomic_store(&shared->keeps[c->number / THREADS], 0);
    atomic_fetch_add(&shared->lost, 1);
}

static bool goes_on(const contender *c, int64_t at_us, int64_t wanted_us) {
    return is_keeper(c->number) ? !atomic_load(&shared->over) : at_us < wanted_us;
}

static void note(contender *c, divvy_semaphore *semaphore, int64_t token, int64_t begin_us) {
    unsigned place = atomic_fetch_add(&shared->holds, 1);
    if (place >= HOLDS) abort();
    hold *h = &shared->hold[place];
    h->contender = c->number;
    h->count = count_of(c->number);
    h->token = token;
    for (int i = 0; i < h->count; i++) h->slots[i] = divvy_semaphore_slot_at(semaphore, (uint32_t)i);
    if (divvy_semaphore_token(semaphore) != token) return; /* lost already: nothing was done */
    atomic_store(&h->end_us, begin_us);
    atomic_store(&h->begin_us, begin_us);
    atomic_fetch_add(&shared->turns[c->number], 1);
    if (is_keeper(c->number)) atomic_store(&shared->keeps[c->number / THREADS], 1);
    int64_t wanted_us = begin_us + rand_r(&c->chance) % HOLD_MOST_US;
    for (int64_t at_us = begin_us; goes_on(c, at_us, wanted_us);) {
        struct timespec pause = {0, 300000};
        nanosleep(&pause, NULL);
        at_us = now_us();
        if (divvy_semaphore_token(semaphore) != token) return;
        atomic_store(&h->end_us, at_us);
    }
}

static void *contend(void *context) {
    contender *c = context;
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore *semaphore;
    config.path = POOL;
    config.limit = LIMIT;
    config.count = (uint32_t)count_of(c->number);
    config.on_lost = on_lost;
    config.user = c;
    if (divvy_semaphore_create(&semaphore, c->client, &config) != 0) abort();
    while (!atomic_load(&shared->over)) {
        int error = divvy_semaphore_acquire(semaphore, rand_r(&c->chance) % 20 ? 5000 : 0);
        if (error && error != DIVVY_ETIMEDOUT && error != DIVVY_EBUSY) dv_test_die("%s", divvy_errname(error));
        if (error) continue;
        int64_t token = divvy_semaphore_token(semaphore), begin_us = now_us();
        if (token) note(c, semaphore, token, begin_us);
        divvy_semaphore_release(semaphore);
    }
    divvy_semaphore_destroy(semaphore);
    return NULL;
}

/* Of the process that is spared. On a machine that stands still its session may end as well. */
static void on_session(divvy_client *client, divvy_session_state state, void *user) {
    (void)client;
    (void)user;
    if (state == DIVVY_LOST) atomic_fetch_add(&shared->spared_ended, 1);
}

static int run_process(const char *hosts, int number, int fd) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    contender contenders[THREADS];
    pthread_t threads[THREADS];
    shared = map(fd);
    config.hosts = hosts;
    config.on_session = number == 0 ? on_session : NULL;
    config.session_timeout_ms = SESSION_MS;
    config.ensemble_tick_ms = TICK_MS;
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) return 1;
    for (int i = 0; i < THREADS; i++) {
        int id = number * THREADS + i;
        contenders[i] = (contender){client, id, (unsigned)(id + now_us())};
        if (pthread_create(&threads[i], NULL, contend, &contenders[i]) != 0) return 1;
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    divvy_client_close(client);
    return 0;
}

static pid_t start_process(const char *hosts, int process, int fd) {
    char number[16], memory[16];
    snprintf(number, sizeof number, "%d", process);
    snprintf(memory, sizeof memory, "%d", fd);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/proc/self/exe", "live_semaphore_storm", "contend", hosts, number, memory, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

/* --- what they have left behind --------------------------------------------------------------------------------- */

static int by_begin(const void *a, const void *b) {
    const hold *one = a, *other = b;
    return (one->begin_us > other->begin_us) - (one->begin_us < other->begin_us);
}

/* Those that were believed for an instant at least, by their begin. */
static size_t sort_holds(void) {
    size_t noted = atomic_load(&shared->holds), kept = 0;
    assert_true(noted < HOLDS);
    for (size_t i = 0; i < noted; i++) {
        if (shared->hold[i].begin_us) memmove(&shared->hold[kept++], &shared->hold[i], sizeof(hold));
    }
    qsort(shared->hold, kept, sizeof(hold), by_begin);
    return kept;
}

/* No slot is held by two at once, and its tokens grow. So the limit is kept too, as there are no other slots. */
static void check_slots(size_t holds) {
    const hold *last[LIMIT] = {NULL};
    for (size_t i = 0; i < holds; i++) {
        const hold *h = &shared->hold[i];
        for (int k = 0; k < h->count; k++) {
            assert_in_range(h->slots[k], 0, LIMIT - 1);
            const hold *before = last[h->slots[k]];
            if (before && (h->begin_us <= before->end_us || h->token <= before->token))
                fail_msg("slot %d: contender %d held it by %lld from %lld us, %d by %lld until %lld us", h->slots[k],
                         h->contender, (long long)h->token, (long long)h->begin_us, before->contender,
                         (long long)before->token, (long long)before->end_us);
            last[h->slots[k]] = h;
        }
    }
}

/* The same without the slots' numbers: at no begin are there more in hand than the limit. The most there ever were. */
static int check_limit(size_t holds) {
    int most = 0;
    for (size_t i = 0; i < holds; i++) {
        int taken = 0;
        for (size_t k = 0; k <= i; k++) {
            if (shared->hold[k].end_us >= shared->hold[i].begin_us) taken += shared->hold[k].count;
        }
        most = taken > most ? taken : most;
        assert_true(taken <= LIMIT);
    }
    return most;
}

/* In the process that was spared nobody gets far more turns than another, whatever it wants, if its session lasted. */
static void check_turns(size_t holds) {
    int turns[CONTENDERS] = {0}, most = 0, least = HOLDS;
    for (size_t i = 0; i < holds; i++) turns[shared->hold[i].contender]++;
    for (int i = 0; i < THREADS; i++) {
        most = turns[i] > most ? turns[i] : most;
        least = turns[i] < least ? turns[i] : least;
    }
    print_message("%zu ownerships, %d of them lost; of contenders that were spared %d to %d\n", holds,
                  atomic_load(&shared->lost), least, most);
    assert_true(atomic_load(&shared->spared_ended) || most <= 2 * least + 10);
}

/* --- the storm -------------------------------------------------------------------------------------------------- */

static bool keep(int one, int other) {
    return atomic_load(&shared->keeps[one]) && atomic_load(&shared->keeps[other]);
}

/* Each time one process dies that holds slots, and another that does is cut off until its session is over. */
static void rage(dv_test_proxy *const *proxies, pid_t *pids, int fd) {
    int status;
    for (int i = 0; i < 2; i++) {
        int cut = 2 + i;
        dv_test_sleep_ms(500); /* the pace of the storm; nothing is claimed of it */
        assert_true(DV_WAIT(keep(1, cut), PATIENCE_MS));
        int lost = atomic_load(&shared->lost);
        kill(pids[1], SIGKILL);
        assert_int_equal(waitpid(pids[1], &status, 0), pids[1]);
        assert_true(WIFSIGNALED(status));
        atomic_store(&shared->keeps[1], 0);
        dv_test_proxy_freeze(proxies[cut]);
        pids[1] = start_process(dv_test_proxy_address(proxies[1]), 1, fd);
        assert_true(DV_WAIT(atomic_load(&shared->lost) > lost, PATIENCE_MS));
        dv_test_sleep_ms(SESSION_MS / 2); /* so that the servers come to it, too; if not, nothing is claimed of it */
        dv_test_proxy_thaw(proxies[cut]);
    }
}

/* Returns whether each has had one turn more than `before`; those that keep their slots, one at all. */
static bool all_had_a_turn(const int *before) {
    for (int i = 0; i < CONTENDERS; i++) {
        if (atomic_load(&shared->turns[i]) <= (is_keeper(i) ? 0 : before[i])) return false;
    }
    return true;
}

/* After the storm everyone goes on. */
static void calm_down(void) {
    int before[CONTENDERS];
    for (int i = 0; i < CONTENDERS; i++) before[i] = atomic_load(&shared->turns[i]);
    assert_true(DV_WAIT(all_had_a_turn(before), PATIENCE_MS));
    atomic_store(&shared->over, 1);
}

/* Never above the limit, no slot twice, tokens that grow; all get their turns; nothing is left behind. */
TEST(test_storm) {
    dv_test_server *server = dv_test_server_start(1, TICK_MS);
    dv_test_proxy *proxies[PROCESSES];
    pid_t pids[PROCESSES];
    int fd = memfd_create("holds", 0), status; /* not closed by exec */
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof(record)), 0);
    shared = map(fd);
    for (int i = 0; i < PROCESSES; i++) {
        proxies[i] = dv_test_proxy_start(dv_test_server_connect(server));
        pids[i] = start_process(dv_test_proxy_address(proxies[i]), i, fd);
    }
    rage(proxies, pids, fd);
    calm_down();
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        dv_test_proxy_stop(proxies[i]);
    }
    size_t holds = sort_holds();
    check_slots(holds);
    assert_true(check_limit(holds) > LIMIT / 2);
    check_turns(holds);
    dv_test_zk *truth = dv_test_zk_open(dv_test_server_connect(server));
    assert_true(DV_WAIT(dv_test_zk_count(truth, POOL) + dv_test_zk_count(truth, POOL "-__lock__") == 0, PATIENCE_MS));
    dv_test_zk_close(truth);
    dv_test_server_stop(server);
    munmap(shared, sizeof *shared);
    close(fd);
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "contend") == 0)
        return run_process(argv[2], (int)strtol(argv[3], NULL, 10), (int)strtol(argv[4], NULL, 10));
    return dv_test_run();
}
