/* The processor time of a process and of all that come from it. SPDX-License-Identifier: Apache-2.0
 *
 * All that a meter has counted stands in the processes of its last look: their own time, and their children's. When one
 * of them has gone, its time has moved to the children's time of one that is still there. Where nobody waits for it,
 * its time has vanished. So what the children's times have grown by is new only as far as it exceeds the time of those
 * that have gone.
 *
 * A parent may have been read just before it waited, and shows the time at the next look only. And a look may miss a
 * process that lives, when its parent ends just then. So a meter keeps what one look has missed until the next one.
 * Kept for longer, time that has vanished would hide as much that is new. */
#include "cpu_meter.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No process has used so much: 1,400 years. Sums of such stay far from overflow. */
#define TICKS_MAX (UINT64_C(1) << 42)

/* ---- the text ---- */

/* Reads one field, and moves *at behind it. A time of children may be printed with a sign. */
static bool take_number(const char **at, uint64_t *out) {
    const char *digit = *at + strspn(*at, " ");
    bool some = false;
    for (*out = 0; *digit >= '0' && *digit <= '9'; digit++, some = true) {
        *out = *out * 10 + (uint64_t)(*digit - '0');
        if (*out > TICKS_MAX) return false;
    }
    *at = digit;
    return some && (*digit == ' ' || *digit == '\n' || *digit == '\0');
}

/* Moves *at behind `count` fields, whatever they are. */
static bool skip(const char **at, int count) {
    for (; count > 0; count--) {
        *at += strspn(*at, " ");
        size_t bytes = strcspn(*at, " \n");
        if (bytes == 0) return false;
        *at += bytes;
    }
    return true;
}

bool dv_cpu_parse(const char *text, dv_cpu_process *out) {
    uint64_t pid, user, kernel, children_user, children_kernel;
    const char *at = text;
    *out = (dv_cpu_process){0};
    if (!take_number(&at, &pid) || pid == 0 || pid > INT32_MAX || strncmp(at, " (", 2) != 0) return false;
    /* The name is in parentheses, and may itself have such, spaces and newlines. What follows it has none. */
    at = strrchr(at, ')');
    if (!at) return false;
    at++;
    if (!skip(&at, 11)) return false; /* up to cmajflt */
    if (!take_number(&at, &user) || !take_number(&at, &kernel)) return false;
    if (!take_number(&at, &children_user) || !take_number(&at, &children_kernel)) return false;
    if (!skip(&at, 4) || !take_number(&at, &out->started)) return false;
    out->pid = (pid_t)pid;
    out->own = user + kernel;
    out->children = children_user + children_kernel;
    return true;
}

/* ---- the meter ---- */

static int compare(const void *a, const void *b) {
    const dv_cpu_process *one = a, *other = b;
    if (one->pid != other->pid) return one->pid < other->pid ? -1 : 1;
    return (one->started > other->started) - (one->started < other->started);
}

static uint64_t growth(uint64_t before, uint64_t now) {
    return now > before ? now - before : 0;
}

static uint64_t total(const dv_cpu_process *process) {
    return process->own + process->children;
}

static uint64_t lesser(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The findings of one look. */
typedef struct {
    dv_cpu_process *all; /* those of now, and those that it misses */
    size_t count;
    uint64_t fresh;  /* used by the living since the last look */
    uint64_t waited; /* what the children's times of those known before have grown by */
    uint64_t gone;   /* the time, by the last look, of those that this one misses */
    uint64_t back;   /* likewise of those that only the last one missed */
} findings;

static void take_known(findings *f, const dv_cpu_process *before, const dv_cpu_process *now) {
    f->fresh += growth(before->own, now->own);
    f->waited += growth(before->children, now->children);
    if (before->missed) f->back += total(before);
}

/* One that is missed for the second time is forgotten. */
static void take_missed(findings *f, const dv_cpu_process *before) {
    if (before->missed) return;
    f->gone += total(before);
    f->all[f->count] = *before;
    f->all[f->count++].missed = true;
}

/* f->all begins with those of now, sorted. */
static void compare_looks(findings *f, const dv_cpu_meter *meter) {
    size_t k = 0, now_count = f->count;
    for (size_t i = 0; i < now_count; i++) {
        const dv_cpu_process *now = &f->all[i];
        while (k < meter->count && compare(&meter->known[k], now) < 0) take_missed(f, &meter->known[k++]);
        if (k < meter->count && compare(&meter->known[k], now) == 0) take_known(f, &meter->known[k++], now);
        else f->fresh += total(now);
    }
    while (k < meter->count) take_missed(f, &meter->known[k++]);
}

int dv_cpu_meter_look(dv_cpu_meter *meter, const dv_cpu_process *processes, size_t count, uint64_t *ticks) {
    *ticks = 0;
    findings f = {.all = malloc((meter->count + count + 1) * sizeof *f.all), .count = count};
    if (!f.all) return -1;
    for (size_t i = 0; i < count; i++) {
        f.all[i] = processes[i];
        f.all[i].missed = false;
    }
    qsort(f.all, count, sizeof *f.all, compare);
    compare_looks(&f, meter);
    assert(f.count <= meter->count + count);
    qsort(f.all, f.count, sizeof *f.all, compare);
    uint64_t owed = meter->owed - lesser(meter->owed, f.back) + f.gone;
    uint64_t paid = lesser(owed, f.waited);
    *ticks = f.fresh + (f.waited - paid);
    free(meter->known);
    *meter = (dv_cpu_meter){.known = f.all, .count = f.count, .owed = lesser(owed - paid, f.gone)};
    return 0;
}

void dv_cpu_meter_reset(dv_cpu_meter *meter) {
    free(meter->known);
    *meter = (dv_cpu_meter){0};
}

double dv_cpu_cores(uint64_t used_us, int64_t elapsed_us, unsigned cores_max) {
    if (elapsed_us <= 0) return 0;
    double cores = (double)used_us / (double)elapsed_us;
    return cores < (double)cores_max ? cores : (double)cores_max;
}
