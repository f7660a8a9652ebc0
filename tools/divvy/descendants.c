/* The processes that come from this one. SPDX-License-Identifier: Apache-2.0 */
#include "descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* /proc/PID/stat: the fields behind the name, which is in parentheses and may itself have such. */
static bool parse(const char *text, dv_process *out) {
    const char *name_end = strrchr(text, ')');
    char state = 0;
    if (!name_end) return false;
    int read = sscanf(name_end + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                      &state, &out->parent, &out->group, &out->session, &out->started);
    out->dead = state == 'Z' || state == 'X';
    return read == 5;
}

/* False when there is no such process. */
static bool look_at(pid_t pid, dv_process *out) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    if (bytes <= 0) return false;
    text[bytes] = '\0';
    out->pid = pid;
    return parse(text, out);
}

static int add(dv_processes *list, const dv_process *process) {
    if ((list->count & (list->count - 1)) == 0) {
        dv_process *more = realloc(list->all, (list->count ? 2 * list->count : 1) * sizeof *more);
        if (!more) return -1;
        list->all = more;
    }
    list->all[list->count++] = *process;
    return 0;
}

static int read_all(dv_processes *list) {
    DIR *folder = opendir("/proc");
    if (!folder) return -1;
    int error = 0;
    for (struct dirent *entry; error == 0 && (entry = readdir(folder));) {
        dv_process process;
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        if (look_at((pid_t)atoi(entry->d_name), &process)) error = add(list, &process);
    }
    closedir(folder);
    return error;
}

/* Moves the children of `parent` that are at `from` or later to `from` on; returns where the rest begins. */
static size_t gather(dv_processes *list, pid_t parent, size_t from) {
    for (size_t i = from; i < list->count; i++) {
        if (list->all[i].parent != parent) continue;
        dv_process child = list->all[i];
        list->all[i] = list->all[from];
        list->all[from++] = child;
    }
    return from;
}

int dv_descendants_find(dv_processes *out) {
    *out = (dv_processes){NULL, 0};
    if (read_all(out) != 0) {
        free(out->all);
        *out = (dv_processes){NULL, 0};
        return -1;
    }
    size_t found = gather(out, getpid(), 0);
    for (size_t i = 0; i < found; i++) found = gather(out, out->all[i].pid, found);
    out->count = found;
    return 0;
}

void dv_process_signal(const dv_process *process, int number) {
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (fd < 0) return;
    /* The descriptor holds the process that has the number now. Is that still the one that was found? */
    dv_process now;
    if (look_at(process->pid, &now) && now.started == process->started)
        syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
    close(fd);
}
