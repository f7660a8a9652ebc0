/* The work that test_death_watch_attack.py attacks. SPDX-License-Identifier: Apache-2.0
 *
 * usage: death_watch_worker work FOLDER ITEM                                    a command of divvy
 *        death_watch_worker lock|elect HOSTS PATH SESSION_TIMEOUT_MS FOLDER     a program on the library
 *        death_watch_worker pool HOSTS PATH SESSION_TIMEOUT_MS FOLDER ITEM...
 *
 * Who works on an item has FOLDER/ITEM.lock locked by flock(2), so the kernel finds a second one. It appends lines to
 * FOLDER/log: the monotonic clock in seconds, the item, $DIVVY_CONTENDER, the process, and what happens. That is
 * `begin`, before it `double` where somebody else has the file locked, `open` when a program on the library has its
 * client. A command hands its lock to its children. $DIVVY_SHAPE has a letter for each thing that it does: `c` has a
 * child in its group, `g` a grandchild in a session of its own, `i` has all of them ignore SIGTERM, `t` takes time to
 * end. It works until it is ended. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <divvy/divvy.h>

enum { ITEMS_MAX = 16, LINE_BYTES = 256, PATH_BYTES = 4096, END_US = 150000, WAIT_MS = 60000, BOUNDARY_MS = 100 };

static const char *folder, *contender;
static int log_fd = -1;

_Noreturn static void die(const char *what, const char *why) {
    fprintf(stderr, "death_watch_worker: %s: %s\n", what, why);
    _exit(1);
}

static int open_file(const char *name, const char *suffix, int flags) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    int fd = open(path, flags | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) die(path, strerror(errno));
    return fd;
}

static void tell(const char *item, const char *what) {
    struct timespec now;
    char line[LINE_BYTES];
    clock_gettime(CLOCK_MONOTONIC, &now);
    int bytes = snprintf(line, sizeof line, "%.6f %s %s %d %s\n", (double)now.tv_sec + (double)now.tv_nsec * 1e-9, item,
                         contender, (int)getpid(), what);
    if (write(log_fd, line, (size_t)bytes) != bytes) die("log", strerror(errno));
}

/* Returns the descriptor that has the item's file locked. */
static int begin_work(const char *item) {
    int fd = open_file(item, ".lock", O_RDWR);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        tell(item, "double");
        flock(fd, LOCK_EX);
    }
    return fd;
}

/* ---- a command ---- */

static void end_slowly(int number) {
    (void)number;
    usleep(END_US);
    _exit(0);
}

_Noreturn static void work_on(void) {
    for (;;) pause();
}

static void have_child(void) {
    if (fork() == 0) work_on();
}

static void have_daemon(void) {
    pid_t between = fork();
    if (between == 0) {
        setsid();
        if (fork() == 0) work_on();
        _exit(0);
    }
    waitpid(between, NULL, 0);
}

_Noreturn static void be_command(const char *item) {
    const char *shape = getenv("DIVVY_SHAPE");
    if (!shape) shape = "";
    begin_work(item);
    if (strchr(shape, 'i')) signal(SIGTERM, SIG_IGN);
    else if (strchr(shape, 't')) signal(SIGTERM, end_slowly);
    if (strchr(shape, 'c')) have_child();
    if (strchr(shape, 'g')) have_daemon();
    tell(item, "begin");
    work_on();
}

/* ---- a program on the library ---- */

typedef struct {
    const char *name;
    int fd; /* its locked file; -1: it is not ours */
} work;

static work works[ITEMS_MAX];
static size_t work_count;

static void begin(work *w) {
    if (w->fd >= 0) return;
    w->fd = begin_work(w->name);
    tell(w->name, "begin");
}

static void end(work *w) {
    if (w->fd >= 0) close(w->fd);
    w->fd = -1;
}

static void on_lock_lost(divvy_lock *lock, void *user) {
    (void)lock;
    end(user);
}

static void on_acquired(divvy_lock *lock, int result, void *user) {
    (void)lock;
    if (result != 0) die("lock", divvy_strerror(result));
    begin(user);
}

static void on_elected(divvy_election *election, int64_t token, void *user) {
    (void)election, (void)token;
    begin(user);
}

static void on_deposed(divvy_election *election, void *user) {
    (void)election;
    end(user);
}

static void for_each(const char *const *items, size_t count, void (*act)(work *w)) {
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < work_count; j++) {
            if (strcmp(works[j].name, items[i]) == 0) act(&works[j]);
        }
    }
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p, (void)user;
    for_each(event->lost, event->lost_count, end);
    for_each(event->gained, event->gained_count, begin);
    for_each(event->revoked, event->revoked_count, end);
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from, (void)user;
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p);
}

static int stand_for_lock(divvy_client *client, const char *path) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = path;
    config.mode = DIVVY_WRITE; /* as divvy lock */
    config.on_lost = on_lock_lost;
    config.user = &works[0];
    int error = divvy_lock_create(&lock, client, &config);
    return error ? error : divvy_lock_acquire_async(lock, -1, on_acquired, &works[0]);
}

static int stand_for_election(divvy_client *client, const char *path) {
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    divvy_election *election;
    config.path = path;
    config.on_elected = on_elected;
    config.on_lost = on_deposed;
    config.user = &works[0];
    int error = divvy_election_create(&election, client, &config);
    return error ? error : divvy_election_stand(election);
}

static int join_pool(divvy_client *client, const char *path) {
    const char *items[ITEMS_MAX];
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_partitioner *partitioner;
    for (size_t i = 0; i < work_count; i++) items[i] = works[i].name;
    config.path = path;
    config.identifier = contender;
    config.items = items;
    config.item_count = work_count;
    config.time_boundary_ms = BOUNDARY_MS;
    config.on_session_loss = DIVVY_REJOIN;
    config.on_items = on_items;
    config.on_state = on_state;
    return divvy_partitioner_create(&partitioner, client, &config);
}

int main(int argc, char **argv) {
    contender = getenv("DIVVY_CONTENDER");
    if (!contender) die("DIVVY_CONTENDER", "is not set");
    bool command = argc == 4 && strcmp(argv[1], "work") == 0, pool = argc > 6 && strcmp(argv[1], "pool") == 0;
    if (!command && !pool && argc != 6) die("usage", "see the head of its source");
    folder = argv[command ? 2 : 5];
    log_fd = open_file("log", "", O_WRONLY | O_APPEND);
    if (command) be_command(argv[3]);
    work_count = pool ? (size_t)(argc - 6) : 1;
    if (work_count > ITEMS_MAX) die("items", "too many");
    for (size_t i = 0; i < work_count; i++) works[i] = (work){.name = pool ? argv[6 + i] : "item", .fd = -1};

    divvy_client *client;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = argv[2];
    config.session_timeout_ms = strtol(argv[4], NULL, 10);
    config.death_watch = 1;
    if (divvy_client_open(&client, &config) != 0) die("client", divvy_client_error(NULL));
    tell("-", "open");
    if (divvy_client_wait_connected(client, WAIT_MS) != 0) die("connect", divvy_client_error(client));
    int (*join)(divvy_client *, const char *) = pool ? join_pool : stand_for_lock;
    if (strcmp(argv[1], "elect") == 0) join = stand_for_election;
    if (join(client, argv[3]) != 0) die(argv[1], divvy_client_error(client));
    work_on();
}
