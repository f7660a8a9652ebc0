/* The forker: the process that guardians are forked from. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descendants.h"
#include "guardian_internal.h"

enum { SWEEP_MS = 10 };

/* ---- a command as bytes: the config, then its strings, each list with an empty count in front ---- */

static size_t count_texts(const char *const *texts) {
    size_t count = 0;
    while (texts && texts[count]) count++;
    return count;
}

static void pack_texts(FILE *file, const char *const *texts) {
    size_t count = count_texts(texts);
    fwrite(&count, sizeof count, 1, file);
    for (size_t i = 0; i < count; i++) fwrite(texts[i], strlen(texts[i]) + 1, 1, file);
}

int dv_guardian_pack(const dv_guardian_config *config) {
    int fd = memfd_create("divvy-command", MFD_CLOEXEC);
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
    const char *const program[] = {config->program, NULL};
    if (file) {
        fwrite(config, sizeof *config, 1, file);
        pack_texts(file, program);
        pack_texts(file, config->arguments);
        pack_texts(file, config->environment);
        bool written = !ferror(file);
        if (fclose(file) == 0 && written) return fd;
    } else if (copy >= 0) {
        close(copy);
    }
    int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
    return -1;
}

/* The list at *at, which moves behind it, to `end` at most. */
static const char **unpack_texts(char **at, const char *end) {
    size_t count;
    assert((size_t)(end - *at) >= sizeof count);
    memcpy(&count, *at, sizeof count);
    *at += sizeof count;
    const char **texts = (const char **)(uintptr_t)calloc(count + 1, sizeof *texts);
    for (size_t i = 0; texts && i < count; i++) {
        assert(*at < end);
        texts[i] = *at;
        *at += strlen(*at) + 1;
    }
    assert(*at <= end);
    (void)end;
    return texts;
}

int dv_guardian_unpack(int fd, dv_guardian_spec *out) {
    struct stat status;
    *out = (dv_guardian_spec){.packed = NULL};
    if (fstat(fd, &status) != 0) return -1;
    void *packed = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (packed == MAP_FAILED) return -1;
    out->packed = packed;
    out->packed_bytes = (size_t)status.st_size;
    assert(out->packed_bytes > sizeof out->config);
    memcpy(&out->config, out->packed, sizeof out->config);
    char *at = out->packed + sizeof out->config, *end = out->packed + out->packed_bytes;
    const char **program = unpack_texts(&at, end);
    out->config.program = program ? program[0] : NULL;
    out->config.arguments = program ? unpack_texts(&at, end) : NULL;
    out->config.environment = out->config.arguments ? unpack_texts(&at, end) : NULL;
    free((void *)(uintptr_t)program);
    if (out->config.environment) return 0;
    dv_guardian_spec_free(out);
    return -1;
}

void dv_guardian_spec_free(dv_guardian_spec *spec) {
    free((void *)(uintptr_t)spec->config.arguments);
    free((void *)(uintptr_t)spec->config.environment);
    if (spec->packed) munmap(spec->packed, spec->packed_bytes);
}

/* ---- the forker ---- */

typedef struct {
    int control, signal_fd;
    dv_guardian_home home;
    dv_watcher watcher;
    pid_t *guardians;
    int *sockets; /* theirs, which we hold too, for tell_swept() */
    size_t guardian_count;
    int *unswept; /* those of guardians that were killed, and what they guarded may be there still */
    size_t unswept_count;
} forker;

/* The next command: its guardian's socket, or -1 when there will be none. */
static int receive(const forker *f, dv_guardian_spec *spec) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(DV_GUARDIAN_FDS_MAX * sizeof(int))];
    } descriptors;
    char nothing;
    struct iovec payload = {&nothing, 1};
    struct msghdr message = {.msg_iov = &payload,
                             .msg_iovlen = 1,
                             .msg_control = descriptors.bytes,
                             .msg_controllen = sizeof descriptors.bytes};
    ssize_t bytes = recvmsg(f->control, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = bytes == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!header || header->cmsg_len < CMSG_LEN(DV_GUARDIAN_FDS * sizeof(int))) return -1;
    if (message.msg_flags & MSG_CTRUNC) return -1;
    int fds[DV_GUARDIAN_FDS_MAX] = {0};
    assert(header->cmsg_type == SCM_RIGHTS && header->cmsg_len <= CMSG_LEN(sizeof fds));
    memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
    int error = dv_guardian_unpack(fds[0], spec);
    close(fds[0]);
    spec->config.start_fd = fds[2]; /* The same under our number. */
    if (error == 0) return fds[1];
    close(fds[1]); /* The parent sees that it is closed. */
    if (fds[2]) close(fds[2]);
    return -1;
}

static void become_guardian(const forker *f, int socket, const dv_guardian_spec *spec) {
    assert(f->control >= 0 && socket >= 0 && socket != f->control);
    dv_guardian_home home = f->home;
    if (home.watcher && !spec->config.only) { /* The forker watches, and its end shows at its socket. */
        if (home.watcher->socket_fd >= 0) close(home.watcher->socket_fd);
        close(home.watcher->process_fd);
        home.watcher = NULL;
    }
    close(f->control);
    close(f->signal_fd);
    for (size_t i = 0; i < f->guardian_count; i++) close(f->sockets[i]);
    for (size_t i = 0; i < f->unswept_count; i++) close(f->unswept[i]);
    dv_guardian_run(socket, &home, &spec->config);
}

/* Returns the guardian's place, or guardian_count when the process is none. */
static size_t place_of(const forker *f, pid_t pid) {
    size_t i = 0;
    while (i < f->guardian_count && f->guardians[i] != pid) i++;
    return i;
}

/* Makes room for one more guardian: in `unswept` for all that there are, as they may be killed at once. */
static bool reserve(forker *f) {
    size_t count = f->guardian_count + 1;
    pid_t *guardians = realloc(f->guardians, count * sizeof *guardians);
    if (guardians) f->guardians = guardians;
    int *sockets = realloc(f->sockets, count * sizeof *sockets);
    if (sockets) f->sockets = sockets;
    int *unswept = realloc(f->unswept, (count + f->unswept_count) * sizeof *unswept);
    if (unswept) f->unswept = unswept;
    return guardians && sockets && unswept;
}

static void start(forker *f) {
    dv_guardian_spec spec;
    int socket = receive(f, &spec);
    if (socket < 0) {
        close(f->control);
        f->control = -1;
        return;
    }
    assert(!spec.config.only || f->guardian_count == 0);
    if (spec.config.only) become_guardian(f, socket, &spec);
    pid_t guardian = reserve(f) ? fork() : -1;
    if (guardian == 0) become_guardian(f, socket, &spec);
    dv_guardian_event failed = {.kind = DV_GUARDIAN_REFUSED, .value = errno};
    if (guardian < 0) send(socket, &failed, sizeof failed, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (spec.config.start_fd) close(spec.config.start_fd);
    dv_guardian_spec_free(&spec);
    if (guardian < 0) close(socket);
    if (guardian < 0) return;
    assert(guardian > 1);
    assert(place_of(f, guardian) == f->guardian_count); /* One that was reaped is forgotten. */
    f->guardians[f->guardian_count] = guardian;
    f->sockets[f->guardian_count++] = socket;
}

static void forget(forker *f, pid_t pid, bool killed) {
    size_t place = place_of(f, pid);
    if (place == f->guardian_count) return;
    assert(f->guardian_count > 0);
    if (killed) f->unswept[f->unswept_count++] = f->sockets[place];
    else close(f->sockets[place]);
    f->guardians[place] = f->guardians[--f->guardian_count];
    f->sockets[place] = f->sockets[f->guardian_count];
    assert(place_of(f, pid) == f->guardian_count);
}

/* Returns whether there are children still. */
static bool reap(forker *f) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) forget(f, pid, WIFSIGNALED(status));
    return pid == 0;
}

/* Tells our parent that guardians were killed, and that nothing is left of what they guarded: rule G4. Where we are
 * killed before, it sees that their sockets have closed without a word. */
static void tell_swept(forker *f) {
    const dv_guardian_event died = {.kind = DV_GUARDIAN_DIED};
    while (f->unswept_count > 0) {
        int socket = f->unswept[--f->unswept_count];
        send(socket, &died, sizeof died, MSG_DONTWAIT | MSG_NOSIGNAL);
        close(socket);
    }
}

/* Kills those that a killed guardian has left to us: rule G4. */
static void sweep(forker *f) {
    assert(f->unswept_count > 0);
    dv_descent strays = {.spared = f->guardians, .spared_count = f->guardian_count};
    dv_descendants_signal(&strays, SIGKILL);
    if (dv_descendants_are_gone(&strays)) tell_swept(f);
}

void dv_guardian_keep_watch(dv_watcher *watcher) {
    if (!watcher) return;
    dv_watcher_listen(watcher);
    if (!dv_watcher_has_will(watcher)) return;
    dv_watcher_detach(watcher); /* A reader of our parent's output waits for its end, and not for ours. */
    if (dv_watcher_wait(watcher)) dv_watcher_execute(watcher);
}

static void open_watcher(forker *f, const dv_forker_config *config) {
    f->watcher.socket_fd = -1;
    if (config->watch >= 0 && dv_watcher_init(&f->watcher, config->watch, config->process) == 0)
        f->home.watcher = &f->watcher;
}

void dv_forker_run(const dv_forker_config *config) {
    forker f = {.control = config->control, .home = {.page = config->page, .home_group = config->home_group}};
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    /* Out of reach of signals to our group, from the terminal or kill(1); a subreaper. */
    setpgid(0, 0);
    prctl(PR_SET_NAME, "divvy-guardian");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    f.signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (f.signal_fd < 0) _exit(1);
    open_watcher(&f, config);
    while (f.control >= 0 || f.guardian_count > 0 || f.unswept_count > 0) {
        struct pollfd fds[] = {{.fd = f.control, .events = POLLIN},
                               {.fd = f.signal_fd, .events = POLLIN},
                               {.fd = f.watcher.socket_fd, .events = POLLIN}};
        poll(fds, 3, f.unswept_count > 0 ? SWEEP_MS : -1);
        struct signalfd_siginfo info;
        while (read(f.signal_fd, &info, sizeof info) == (ssize_t)sizeof info) continue;
        reap(&f);
        if (f.unswept_count > 0) sweep(&f);
        if (fds[2].revents) dv_watcher_listen(&f.watcher);
        if (fds[0].revents) start(&f);
    }
    dv_guardian_keep_watch(f.home.watcher);
    _exit(0);
}
