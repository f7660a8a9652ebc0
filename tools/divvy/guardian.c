/* Guardians, as those see them who have commands run by them. SPDX-License-Identifier: Apache-2.0 */
#include "guardian.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/death_watch.h"
#include "descendants.h"
#include "guardian_internal.h"

/* A guardian that was killed leaves to us, a subreaper too, what the kernel has not killed with it. */
enum { DIED_SWEEPS = 100, DIED_SWEEP_US = 10000 };

struct dv_guardians {
    dv_guardians *next; /* of this process, see `homes` */
    dv_guardian_page *page;
    int control;
    int watch; /* -1: the forker is no death watch */
    pid_t forker;
    dv_guardian *first; /* of those that are not freed */
    size_t count;
};

struct dv_guardian {
    dv_guardians *home;
    dv_guardian *next;
    int socket;
    pid_t process; /* 0 before its command has started */
    pid_t command; /* 0 before it has started */
    bool only;
    bool ended; /* the last event was read */
};

/* Those of this process: one for each session that has commands. Everything here is called on one thread. */
static dv_guardians *homes;

int64_t dv_guardians_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the forker ---- */

/* Gives the forker what a death watch needs: our pidfd, and a socket. Without them it watches nothing. */
static void open_watch(dv_guardians *guardians, dv_forker_config *config) {
    int ends[2];
    config->process = dv_death_watch_self();
    if (config->process < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
    guardians->watch = ends[0];
    config->watch = ends[1];
}

/* In a forker: lets go of our ends of the sockets to other forkers. These end when all who hold them have closed them,
 * which is how a forker sees that we have died. */
static void close_others(const dv_guardians *guardians) {
    for (const dv_guardians *other = homes; other; other = other->next) {
        if (other == guardians) continue;
        close(other->control);
        if (other->watch >= 0) close(other->watch);
    }
}

static int fork_forker(dv_guardians *guardians) {
    int ends[2];
    sigset_t all, before;
    assert(guardians->forker < 0 && guardians->control < 0);
    dv_forker_config config = {.watch = -1, .process = -1, .home_group = getpgrp(), .page = guardians->page};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    open_watch(guardians, &config);
    /* It begins with all signals blocked: none that is meant for us may end it. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    guardians->forker = fork();
    if (guardians->forker == 0) {
        close(ends[0]);
        if (guardians->watch >= 0) close(guardians->watch);
        close_others(guardians);
        config.control = ends[1];
        dv_forker_run(&config);
    }
    int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (config.watch >= 0) close(config.watch);
    if (config.process >= 0) close(config.process);
    guardians->control = ends[0];
    errno = error;
    return guardians->forker < 0 ? -1 : 0;
}

int dv_guardians_open(dv_guardians **out) {
    *out = NULL;
    dv_guardians *guardians = malloc(sizeof *guardians);
    if (!guardians) return -1;
    *guardians = (dv_guardians){.control = -1, .watch = -1, .forker = -1};
    void *page = mmap(NULL, sizeof *guardians->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    guardians->page = page == MAP_FAILED ? NULL : page;
    int outcome = guardians->page ? fork_forker(guardians) : -1;
    if (outcome == 0) prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (outcome == 0) {
        guardians->next = homes;
        homes = *out = guardians;
    } else {
        dv_guardians_close(guardians);
    }
    return outcome;
}

int dv_guardians_watch_fd(const dv_guardians *guardians) {
    return guardians->watch;
}

bool dv_guardians_have(pid_t process) {
    for (const dv_guardians *one = homes; one; one = one->next) {
        if (one->forker == process) return true;
    }
    return false;
}

void dv_guardians_set_deadline(dv_guardians *guardians, int64_t deadline_ms) {
    assert(deadline_ms >= 0);
    atomic_store(&guardians->page->deadline_ms, deadline_ms);
}

void dv_guardians_close(dv_guardians *guardians) {
    if (!guardians) return;
    int error = errno;
    dv_guardians **place = &homes;
    while (*place && *place != guardians) place = &(*place)->next;
    if (*place) *place = guardians->next;
    if (guardians->control >= 0) close(guardians->control);
    if (guardians->watch >= 0) close(guardians->watch);
    /* It ends when it may; nobody waits for that. */
    if (guardians->forker > 0) waitpid(guardians->forker, NULL, WNOHANG);
    if (guardians->page) munmap(guardians->page, sizeof *guardians->page);
    free(guardians);
    errno = error;
}

/* ---- a command ---- */

static int send_start(int control, int spec, int socket, int start_fd) {
    assert(control >= 0 && spec >= 0 && socket >= 0 && start_fd >= 0);
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(DV_GUARDIAN_FDS_MAX * sizeof(int))];
    } descriptors;
    memset(&descriptors, 0, sizeof descriptors);
    size_t fds_bytes = (start_fd ? DV_GUARDIAN_FDS_MAX : DV_GUARDIAN_FDS) * sizeof(int);
    char nothing = 0;
    struct iovec payload = {&nothing, 1};
    struct msghdr message = {.msg_iov = &payload,
                             .msg_iovlen = 1,
                             .msg_control = descriptors.bytes,
                             .msg_controllen = CMSG_SPACE(fds_bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds_bytes);
    memcpy(CMSG_DATA(header), (int[DV_GUARDIAN_FDS_MAX]){spec, socket, start_fd}, fds_bytes);
    return sendmsg(control, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

int dv_guardian_start(dv_guardian **out, dv_guardians *guardians, const dv_guardian_config *config) {
    assert((config->program && config->arguments) || config->function);
    assert(config->environment);
    assert(config->grace_ms >= 0 && config->kill_ms >= 0);
    *out = NULL;
    dv_guardian *guardian = malloc(sizeof *guardian);
    int ends[2] = {-1, -1};
    int spec = guardian ? dv_guardian_pack(config) : -1;
    int outcome = spec < 0 ? -1 : socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    if (outcome == 0) outcome = send_start(guardians->control, spec, ends[1], config->start_fd);
    int error = errno;
    if (spec >= 0) close(spec);
    if (ends[1] >= 0) close(ends[1]);
    if (outcome == 0) {
        *guardian = (dv_guardian){.home = guardians, .next = guardians->first, .socket = ends[0], .only = config->only};
        guardians->first = guardian;
        guardians->count++;
        *out = guardian;
        return 0;
    }
    if (ends[0] >= 0) close(ends[0]);
    free(guardian);
    errno = error;
    return -1;
}

int dv_guardian_fd(const dv_guardian *guardian) {
    return guardian->ended ? -1 : guardian->socket;
}

/* Returns the guardians that live, and forkers other than that of `swept`: malloc'ed, or NULL. */
static pid_t *list_spared(const dv_guardians *swept, size_t *count) {
    size_t room = 1;
    for (const dv_guardians *one = homes; one; one = one->next) room += one->count + 1;
    pid_t *spared = calloc(room, sizeof *spared);
    *count = 0;
    for (const dv_guardians *one = homes; one && spared; one = one->next) {
        if (one != swept) spared[(*count)++] = one->forker;
        for (const dv_guardian *g = one->first; g; g = g->next) {
            if (!g->ended && g->process > 1) spared[(*count)++] = g->process;
        }
    }
    assert(!spared || *count < room);
    return spared;
}

/* Kills all that comes from us but for guardians that live, with what they guard, and but for other forkers. One that
 * has not told of its start is not known: it dies, too, which is safe. So does the forker: while it has not ended, its
 * children are not ours. */
static void sweep(const dv_guardians *guardians) {
    dv_descent strays = {0};
    pid_t *spared = list_spared(guardians, &strays.spared_count);
    strays.spared = spared;
    for (int i = 0; i < DIED_SWEEPS && !dv_descendants_are_gone(&strays); i++) {
        dv_descendants_signal(&strays, SIGKILL);
        usleep(DIED_SWEEP_US);
    }
    free(spared);
}

/* Rule G4. Kills what is left after the guardian was killed, and the forker, if there is one besides, has not said that
 * it has done so: then that was killed, too. */
static void kill_what_is_left(const dv_guardian *guardian) {
    assert(guardian->ended);
    assert(guardian->command == 0 || guardian->command > 1); /* -1 would be all processes. */
    if (guardian->command > 0) kill(-guardian->command, SIGKILL);
    sweep(guardian->home);
}

static bool is_last(dv_guardian_kind kind) {
    return kind == DV_GUARDIAN_GONE || kind == DV_GUARDIAN_REFUSED || kind == DV_GUARDIAN_DIED;
}

/* Takes notice of what its guardian tells. Events between the first and the last are lost when its socket is full. */
static void take(dv_guardian *guardian, const dv_guardian_event *event) {
    bool begins = event->kind == DV_GUARDIAN_STARTED;
    assert(!guardian->ended);
    assert(!begins || (guardian->command == 0 && event->value > 1));
    assert(event->kind != DV_GUARDIAN_REFUSED || guardian->command == 0);
    assert((event->kind != DV_GUARDIAN_EXITED && event->kind != DV_GUARDIAN_GONE) || guardian->command > 1);
    if (begins) guardian->command = event->value;
    if (begins) guardian->process = event->guardian;
    guardian->ended = is_last(event->kind);
}

int dv_guardian_read(dv_guardian *guardian, dv_guardian_event *out) {
    if (guardian->ended) return 0;
    ssize_t bytes = recv(guardian->socket, out, sizeof *out, MSG_DONTWAIT);
    /* It has ended while an order was under way, which is told once, before what it had to say. */
    if (bytes < 0 && errno == ECONNRESET) bytes = recv(guardian->socket, out, sizeof *out, MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    bool told = bytes == (ssize_t)sizeof *out;
    if (!told) *out = (dv_guardian_event){.kind = DV_GUARDIAN_DIED};
    take(guardian, out);
    if (!told) kill_what_is_left(guardian);
    return 1;
}

static void order(dv_guardian *guardian, dv_order_kind kind, int64_t value) {
    assert(!guardian->ended);
    assert(value >= 0);
    dv_order what = {.kind = kind, .value = value};
    /* A guardian that takes no more orders is stopped, or has ended. */
    send(guardian->socket, &what, sizeof what, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void dv_guardian_signal(dv_guardian *guardian, int number) {
    assert(number > 0 && number < NSIG);
    order(guardian, DV_ORDER_SIGNAL, number);
}

void dv_guardian_end(dv_guardian *guardian, int64_t grace_ms) {
    order(guardian, DV_ORDER_END, grace_ms);
}

void dv_guardian_continue(dv_guardian *guardian) {
    order(guardian, DV_ORDER_CONTINUE, 0);
}

void dv_guardian_free(dv_guardian *guardian) {
    if (!guardian) return;
    assert(guardian->socket >= 0);
    dv_guardian **place = &guardian->home->first;
    while (*place != guardian) place = &(*place)->next;
    *place = guardian->next;
    guardian->home->count--;
    close(guardian->socket);
    free(guardian);
}
