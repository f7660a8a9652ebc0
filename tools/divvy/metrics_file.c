/* The file of --metrics: the metrics of a client, for node_exporter's textfile collector. SPDX-License-Identifier:
 * Apache-2.0
 *
 * A reader sees the old file or the new one, and nothing in between: a new one is written beside it, and renamed. */
#include "metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/metrics.h"
#include "command.h"

enum { FIRST_INTERVAL_MS = 1000, INTERVAL_MS = 10000 };

/* The new file on its way. */
typedef struct {
    char *path; /* does not end in .prom, or the collector would read it */
    int fd;
} draft;

/* ---- drafts: each returns 0, or -1 with errno set ---- */

static int draft_open(draft *d, const char *path) {
    d->fd = -1;
    if (asprintf(&d->path, "%s.%d.tmp", path, (int)getpid()) < 0) d->path = NULL;
    if (!d->path) {
        errno = ENOMEM;
        return -1;
    }
    unlink(d->path); /* of a process that was killed, and had our number */
    d->fd = open(d->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return d->fd < 0 ? -1 : 0;
}

static int draft_close(draft *d) {
    int outcome = d->fd >= 0 ? close(d->fd) : 0;
    d->fd = -1;
    return outcome;
}

static void draft_drop(draft *d) {
    int error = errno;
    bool made = d->fd >= 0;
    draft_close(d);
    if (made) unlink(d->path);
    free(d->path);
    errno = error;
}

/* A part of the text. Returns 0 or an errno. */
static int draft_write(void *user, const char *text, size_t bytes) {
    const draft *d = user;
    while (bytes > 0) {
        ssize_t written = write(d->fd, text, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno;
        text += written;
        bytes -= (size_t)written;
    }
    return 0;
}

/* A device, or a link to somewhere, would be replaced as well. */
static int check_target(const char *path) {
    struct stat there;
    if (lstat(path, &there) != 0) return errno == ENOENT ? 0 : -1;
    if (S_ISREG(there.st_mode)) return 0;
    errno = S_ISDIR(there.st_mode) ? EISDIR : EINVAL;
    return -1;
}

/* Returns the name of the file, without its folder and ".prom", or NULL: malloc'ed. */
static char *name_of(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t bytes = strlen(name), end = sizeof ".prom" - 1;
    bool known = bytes > end && strcmp(name + bytes - end, ".prom") == 0;
    return strndup(name, known ? bytes - end : bytes);
}

/* ---- the file ---- */

static const char *explain(int error) {
    return error == EINVAL ? "it is there, and is no regular file" : strerror(error);
}

int dv_metrics_file_check(const char *path, const char *command) {
    draft d = {.fd = -1};
    int outcome = *path ? check_target(path) : -1;
    if (!*path) errno = ENOENT;
    if (outcome == 0) outcome = draft_open(&d, path);
    if (outcome != 0 && errno == ENOMEM) outcome = dv_command_out_of_memory();
    else if (outcome != 0)
        outcome = dv_command_misused(command, "--metrics: %s cannot be written: %s", path, explain(errno));
    draft_drop(&d);
    return outcome;
}

/* The collector refuses files that have a sample in common: so each has the name of its file on it. */
static int fill(draft *d, const char *path, divvy_client *client) {
    char *name = name_of(path);
    int error = ENOMEM;
    if (name)
        error =
            dv_client_write_metrics(client, DV_METRICS_PROMETHEUS, &(dv_metric_label){"process", name}, draft_write, d);
    free(name);
    if (error) errno = error > 0 ? error : ENOMEM;
    return error ? -1 : 0;
}

static int replace(const char *path, divvy_client *client) {
    draft d = {.fd = -1};
    int outcome = check_target(path);
    if (outcome == 0) outcome = draft_open(&d, path);
    if (outcome == 0) outcome = fill(&d, path, client);
    if (outcome == 0 && (draft_close(&d) != 0 || rename(d.path, path) != 0)) {
        int error = errno;
        unlink(d.path);
        errno = error;
        outcome = -1;
    }
    draft_drop(&d);
    return outcome;
}

static void write_file(dv_metrics_file *file, divvy_client *client) {
    bool failed = replace(file->path, client) != 0;
    if (failed && !file->failed)
        dv_command_say("warning: metrics: %s cannot be written: %s", file->path, explain(errno));
    if (!failed && file->failed) dv_command_tell(DIVVY_LOG_INFO, "metrics: %s is written again", file->path);
    file->failed = failed;
}

void dv_metrics_file_step(dv_metrics_file *file, divvy_client *client, int64_t now_ms) {
    if (!file->path || now_ms < file->due_ms) return;
    write_file(file, client);
    file->interval_ms = file->interval_ms ? 2 * file->interval_ms : FIRST_INTERVAL_MS;
    if (file->interval_ms > INTERVAL_MS) file->interval_ms = INTERVAL_MS;
    file->due_ms = now_ms + file->interval_ms;
}

int64_t dv_metrics_file_until_ms(const dv_metrics_file *file, int64_t now_ms) {
    if (!file->path) return -1;
    return file->due_ms > now_ms ? file->due_ms - now_ms : 0;
}

void dv_metrics_file_end(dv_metrics_file *file, divvy_client *client) {
    if (file->path && client) write_file(file, client);
    file->path = NULL;
}
