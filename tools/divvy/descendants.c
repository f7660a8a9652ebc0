/* The processes that come from this one. SPDX-License-Identifier: Apache-2.0
 *
 * /proc shows one process after the other, not all at one moment: one that starts another and exits may be gone before
 * we read it, when we are past the other's number. A look that finds nobody is no proof that nobody lives.
 *
 * dv_descendants_are_gone() relies on this: as long as one of our session lives, one of them is a child of this
 * process, a subreaper. A look that begins then shows that child alive, or dead if it died: nobody reaps our children
 * while we look. So a look that shows none alive, and no more dead than the look before it, proves that none lived
 * when it began. None can come later, since a child has its parent's session, and nobody enters a session.
 *
 * The exception is the child of a daemon, which may reap it between two looks. To hide another process from us, such a
 * child would have to start one and die just then, and be started itself during the first look. */
#include "descendants.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LOOKS_MAX = 10, RETRIES_MAX = 100 };

/* ---- one process ---- */

/* /proc/PID/stat: the fields behind the name, which is in parentheses and may itself have such. */
static bool parse(const char *text, dv_process *out, int *threads) {
    const char *name_end = strrchr(text, ')');
    char state = 0;
    if (!name_end) return false;
    int read = sscanf(name_end + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu",
                      &state, &out->parent, &out->group, &out->session, threads, &out->started);
    /* Its first thread may have ended, or makes room for another one that calls execve(2), while the others run. */
    out->dead = (state == 'Z' || state == 'X') && *threads <= 1;
    return read == 6;
}

/* Returns whether the error says that there is no such process, or none that we may see. */
static bool is_hidden(int error) {
    return error == ENOENT || error == ESRCH || error == EACCES || error == EPERM;
}

ssize_t dv_process_read_stat(pid_t pid, char *text, size_t room) {
    char path[64];
    assert(room > 1);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, text, room - 1);
    int error = errno;
    if (fd >= 0) close(fd);
    if (bytes < 0 && is_hidden(error)) return 0;
    assert(bytes < (ssize_t)room);
    text[bytes < 0 ? 0 : bytes] = '\0';
    errno = error;
    return bytes;
}

/* Returns 1; 0 when there is no such process, or none that we may see; -1 with errno set. */
static int look_at(pid_t pid, dv_process *out) {
    char text[1024];
    for (int i = 0; i < RETRIES_MAX; i++) {
        int threads = 0;
        ssize_t bytes = dv_process_read_stat(pid, text, sizeof text);
        if (bytes <= 0) return (int)bytes;
        out->pid = pid;
        if (!parse(text, out, &threads)) break;
        /* A process without threads was reaped while we read, or has a new first thread. */
        if (threads > 0) return 1;
    }
    errno = EPROTO;
    return -1;
}

/* ---- all of them ---- */

static int add(dv_processes *list, const dv_process *process) {
    if ((list->count & (list->count - 1)) == 0) {
        dv_process *more = realloc(list->all, (list->count ? 2 * list->count : 1) * sizeof *more);
        if (!more) return -1;
        list->all = more;
    }
    list->all[list->count++] = *process;
    return 0;
}

/* The numbers in the /proc of another namespace are not ours. */
static bool has_our_numbers(void) {
    char text[16] = "";
    if (readlink("/proc/self", text, sizeof text - 1) < 0) return false;
    if (atoi(text) == getpid()) return true;
    errno = ENOENT;
    return false;
}

static int read_folder(DIR *folder, dv_processes *list) {
    for (;;) {
        dv_process process;
        errno = 0;
        struct dirent *entry = readdir(folder);
        if (!entry) return errno ? -1 : 0;
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        int found = look_at((pid_t)atoi(entry->d_name), &process);
        if (found < 0 || (found > 0 && add(list, &process) != 0)) return -1;
    }
}

static int read_all(dv_processes *list) {
    DIR *folder = has_our_numbers() ? opendir("/proc") : NULL;
    if (!folder) return -1;
    int outcome = read_folder(folder, list), error = errno;
    closedir(folder);
    errno = error;
    return outcome;
}

static bool is_spared(const dv_descent *which, pid_t pid) {
    assert(which->spared || which->spared_count == 0);
    for (size_t i = 0; i < which->spared_count; i++) {
        if (which->spared[i] == pid) return true;
    }
    return false;
}

/* Moves the children of `parent` that are at `from` or later to `from` on; returns where the rest begins. */
static size_t gather(dv_processes *list, const dv_descent *which, pid_t parent, size_t from) {
    assert(parent > 0 && from <= list->count);
    for (size_t i = from; i < list->count; i++) {
        if (list->all[i].parent != parent || is_spared(which, list->all[i].pid)) continue;
        dv_process child = list->all[i];
        list->all[i] = list->all[from];
        list->all[from++] = child;
    }
    assert(from <= list->count);
    return from;
}

/* Keeps the living, and the dead where they are asked for. Returns how many are dead. */
static size_t keep_living(dv_processes *list, const dv_descent *which) {
    size_t living = 0, dead = 0;
    pid_t ours = getsid(0); /* 0 where its first process is in a namespace above ours, as in /proc. */
    for (size_t i = 0; i < list->count; i++) {
        if (which->ours_only && list->all[i].session != ours) continue;
        if (list->all[i].dead) dead++;
        if (!list->all[i].dead || which->dead_too) list->all[living++] = list->all[i];
    }
    assert(living <= list->count && dead <= list->count);
    list->count = living;
    return dead;
}

/* Returns 0, or -1 with errno set. */
static int look(dv_processes *living, size_t *dead, const dv_descent *which) {
    *living = (dv_processes){NULL, 0};
    if (read_all(living) != 0) {
        int error = errno;
        free(living->all);
        *living = (dv_processes){NULL, 0};
        errno = error;
        return -1;
    }
    size_t found = gather(living, which, getpid(), 0);
    for (size_t i = 0; i < found; i++) found = gather(living, which, living->all[i].pid, found);
    assert(found <= living->count);
    living->count = found;
    *dead = keep_living(living, which);
    return 0;
}

/* ---- from parent to child ----
 *
 * A look at all processes takes long where there are thousands, and hundreds of guardians look at the same moment. */

/* Returns the next number in the text; 0 at its end. */
static pid_t next_number(char **text) {
    return (pid_t)strtol(*text, text, 10);
}

/* Adds the children that one thread has started. Returns 0, or -1 with errno set. */
static int add_children_of_thread(dv_processes *list, const dv_descent *which, pid_t pid, const char *thread) {
    char path[64], *text = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", (int)pid, thread);
    FILE *file = fopen(path, "re");
    if (!file) return is_hidden(errno) ? 0 : -1;
    char *at = getline(&text, &room, file) > 0 ? text : NULL;
    int outcome = 0;
    for (pid_t child; outcome == 0 && at && (child = next_number(&at)) > 0;) {
        dv_process process;
        int found = is_spared(which, child) ? 0 : look_at(child, &process);
        if (found < 0 || (found > 0 && add(list, &process) != 0)) outcome = -1;
    }
    int error = errno;
    free(text);
    fclose(file);
    errno = error;
    return outcome;
}

/* Returns 0, or -1 with errno set. */
static int add_children(dv_processes *list, const dv_descent *which, pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (!folder) return is_hidden(errno) ? 0 : -1;
    int outcome = 0;
    for (const struct dirent *entry; outcome == 0 && (entry = readdir(folder)) != NULL;) {
        if (isdigit((unsigned char)entry->d_name[0])) outcome = add_children_of_thread(list, which, pid, entry->d_name);
    }
    int error = errno;
    closedir(folder);
    errno = error;
    return outcome;
}

/* Returns 0, or -1: then only a look at all processes tells. */
static int find_by_parents(dv_processes *out, const dv_descent *which) {
    bool listed = has_our_numbers() && access("/proc/thread-self/children", R_OK) == 0; /* not by each kernel */
    *out = (dv_processes){NULL, 0};
    int outcome = listed ? add_children(out, which, getpid()) : -1;
    for (size_t i = 0; outcome == 0 && i < out->count; i++) outcome = add_children(out, which, out->all[i].pid);
    if (outcome == 0) {
        keep_living(out, which);
        return 0;
    }
    free(out->all);
    *out = (dv_processes){NULL, 0};
    return -1;
}

/* ---- what others ask for ---- */

int dv_descendants_find(dv_processes *out, const dv_descent *which) {
    size_t dead;
    return find_by_parents(out, which) == 0 ? 0 : look(out, &dead, which);
}

void dv_descendants_signal(const dv_descent *which, int number) {
    dv_processes list;
    assert(number > 0 && number < NSIG);
    if (dv_descendants_find(&list, which) != 0) return;
    for (size_t i = 0; i < list.count; i++) dv_process_signal(&list.all[i], number);
    free(list.all);
}

bool dv_descendants_are_gone(const dv_descent *which) {
    size_t dead_before = SIZE_MAX;
    for (int i = 0; i < LOOKS_MAX; i++) {
        dv_processes living;
        size_t dead;
        if (look(&living, &dead, which) != 0) return false;
        free(living.all);
        if (living.count > 0) return false;
        if (dead == dead_before) return true;
        dead_before = dead;
    }
    return false;
}

void dv_process_signal(const dv_process *process, int number) {
    assert(process->pid > 1 && process->pid != getpid());
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (fd < 0 && errno == ESRCH) return;
    /* The descriptor holds the process that has the number now. Is that still the one that was found? */
    dv_process now;
    bool found = look_at(process->pid, &now) > 0 && now.started == process->started;
    /* Linux before 5.3 and some sandboxes refuse these calls. */
    bool refused = fd < 0 || (found && syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) != 0 && errno != ESRCH);
    if (found && refused) kill(process->pid, number);
    if (fd >= 0) close(fd);
}
