/* The processor time of the commands of items. SPDX-License-Identifier: Apache-2.0 */
#include "cpu_items.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "descendants.h"

enum { STAT_BYTES = 1024 };

int64_t dv_cpu_items_now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- the table ---- */

/* Where the item stands, or would. */
static size_t place_of(const dv_cpu_items *items, const char *item) {
    size_t from = 0, to = items->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(items->all[middle]->item, item) < 0) from = middle + 1;
        else to = middle;
    }
    return from;
}

static void free_item(dv_cpu_item *one) {
    if (one) dv_cpu_meter_reset(&one->meter);
    if (one) free(one->item);
    free(one);
}

static dv_cpu_item *add(dv_cpu_items *items, size_t place, const char *item) {
    assert(place <= items->count);
    if (items->count == items->room) {
        size_t room = 2 * items->room + 16;
        dv_cpu_item **grown = (dv_cpu_item **)realloc((void *)items->all, room * sizeof *grown);
        if (!grown) return NULL;
        items->all = grown;
        items->room = room;
    }
    dv_cpu_item *one = calloc(1, sizeof *one);
    if (one) one->item = strdup(item);
    if (!one || !one->item) {
        free_item(one);
        return NULL;
    }
    memmove((void *)&items->all[place + 1], (void *)&items->all[place], (items->count - place) * sizeof *items->all);
    items->count++;
    items->all[place] = one;
    return one;
}

/* ---- commands ---- */

static int begin(dv_cpu_items *items, const dv_child_event *event, int64_t now_us) {
    size_t place = place_of(items, event->item);
    bool known = place < items->count && strcmp(items->all[place]->item, event->item) == 0;
    dv_cpu_item *one = known ? items->all[place] : add(items, place, event->item);
    if (!one) return -1;
    if (!known) one->since_us = now_us;
    dv_cpu_meter_reset(&one->meter);
    one->guardian = event->guardian;
    one->run_us = 0;
    return 0;
}

static dv_cpu_item *find(const dv_cpu_items *items, const char *item) {
    size_t place = place_of(items, item);
    return place < items->count && strcmp(items->all[place]->item, item) == 0 ? items->all[place] : NULL;
}

/* Begins the first reading: time that it has used to get ready is no load. */
static void begin_reading(dv_cpu_items *items, const dv_child_event *event, int64_t now_us) {
    dv_cpu_item *one = find(items, event->item);
    if (!one) return;
    one->used_us = 0;
    one->since_us = now_us;
}

static void end(dv_cpu_items *items, const dv_child_event *event) {
    dv_cpu_item *one = find(items, event->item);
    if (!one || one->guardian == 0) return;
    if (event->cpu_us > one->run_us) one->used_us += event->cpu_us - one->run_us;
    one->guardian = 0;
    dv_cpu_meter_reset(&one->meter);
}

int dv_cpu_items_take(dv_cpu_items *items, const dv_child_event *event, int64_t now_us) {
    switch (event->kind) {
    case DV_CHILD_STARTED:
    case DV_CHILD_STANDBY: return begin(items, event, now_us);
    case DV_CHILD_EXITED:
    case DV_CHILD_FINISHED:
    case DV_CHILD_ENDED:
    case DV_CHILD_FAILED: end(items, event); return 0;
    case DV_CHILD_BEGUN: begin_reading(items, event, now_us); return 0;
    case DV_CHILD_READY: return 0;
    }
    return 0;
}

/* ---- a look ---- */

/* A process that comes from an item's guardian. */
typedef struct {
    dv_cpu_item *of; /* NULL: it comes from none */
    dv_cpu_process process;
} found;

typedef struct {
    pid_t pid;
    size_t index;
} number;

static int compare_numbers(const void *a, const void *b) {
    const number *one = a, *other = b;
    return (one->pid > other->pid) - (one->pid < other->pid);
}

static int compare_guardians(const void *a, const void *b) {
    const dv_cpu_item *one = *(dv_cpu_item *const *)a, *other = *(dv_cpu_item *const *)b;
    return (one->guardian > other->guardian) - (one->guardian < other->guardian);
}

/* Fills in `of` for each of the processes, whose parents come before them. */
static void find_items(found *out, const dv_processes *processes, const number *numbers, dv_cpu_item **guardians,
                       size_t guardian_count) {
    for (size_t i = 0; i < processes->count; i++) {
        const dv_process *p = &processes->all[i];
        dv_cpu_item like = {.guardian = p->pid}, *key = &like;
        dv_cpu_item **of =
            (dv_cpu_item **)bsearch(&key, (void *)guardians, guardian_count, sizeof(dv_cpu_item *), compare_guardians);
        const number parent = {.pid = p->parent};
        const number *found_parent = bsearch(&parent, numbers, processes->count, sizeof *numbers, compare_numbers);
        if (of) out[i].of = *of;
        else if (found_parent && found_parent->index < i) out[i].of = out[found_parent->index].of;
    }
}

/* Reads the times of one. A process that has gone, or whose number has a new one, is left out. */
static void read_times(found *one, const dv_process *process) {
    char text[STAT_BYTES];
    bool is_there = one->of && dv_process_read_stat(process->pid, text, sizeof text) > 0 &&
                    dv_cpu_parse(text, &one->process) && one->process.pid == process->pid &&
                    one->process.started == process->started;
    if (!is_there) one->of = NULL;
    /* The guardian is ours, and not the command's; its children's time is the command's. */
    else if (one->of->guardian == process->pid) one->process.own = 0;
}

static int compare_items(const void *a, const void *b) {
    const found *one = a, *other = b;
    return ((uintptr_t)one->of > (uintptr_t)other->of) - ((uintptr_t)one->of < (uintptr_t)other->of);
}

/* Hands each item's processes to its meter. */
static int measure(found *all, size_t count) {
    int outcome = 0;
    const uint64_t per_s = (uint64_t)sysconf(_SC_CLK_TCK);
    dv_cpu_process *processes = malloc((count + 1) * sizeof *processes);
    if (!processes) return -1;
    qsort(all, count, sizeof *all, compare_items);
    for (size_t i = 0; i < count;) {
        dv_cpu_item *of = all[i].of;
        size_t some = 0;
        uint64_t ticks = 0;
        for (; i < count && all[i].of == of; i++) processes[some++] = all[i].process;
        if (!of) continue;
        if (dv_cpu_meter_look(&of->meter, processes, some, &ticks) != 0) outcome = -1;
        uint64_t us = ticks / per_s * 1000000 + ticks % per_s * 1000000 / per_s;
        of->run_us += us;
        of->used_us += us;
    }
    free(processes);
    return outcome;
}

static dv_cpu_item **sort_guardians(const dv_cpu_items *items, size_t *count) {
    dv_cpu_item **sorted = (dv_cpu_item **)calloc(items->count + 1, sizeof *sorted);
    *count = 0;
    for (size_t i = 0; sorted && i < items->count; i++) {
        if (items->all[i]->guardian) sorted[(*count)++] = items->all[i];
    }
    if (sorted) qsort((void *)sorted, *count, sizeof(dv_cpu_item *), compare_guardians);
    return sorted;
}

static number *sort_numbers(const dv_processes *processes) {
    number *numbers = calloc(processes->count + 1, sizeof *numbers);
    for (size_t i = 0; numbers && i < processes->count; i++) numbers[i] = (number){processes->all[i].pid, i};
    if (numbers) qsort(numbers, processes->count, sizeof *numbers, compare_numbers);
    return numbers;
}

static int look_at(const dv_cpu_items *items, const dv_processes *processes) {
    size_t guardian_count;
    dv_cpu_item **guardians = sort_guardians(items, &guardian_count);
    number *numbers = sort_numbers(processes);
    found *all = calloc(processes->count + 1, sizeof *all);
    int outcome = guardians && numbers && all ? 0 : -1;
    if (outcome == 0) {
        find_items(all, processes, numbers, guardians, guardian_count);
        /* Parents first, see dv_cpu_meter_look(). */
        for (size_t i = 0; i < processes->count; i++) read_times(&all[i], &processes->all[i]);
        outcome = measure(all, processes->count);
    }
    free((void *)guardians);
    free(numbers);
    free(all);
    if (outcome != 0) errno = ENOMEM;
    return outcome;
}

int dv_cpu_items_look(dv_cpu_items *items) {
    static const dv_descent everything = {.dead_too = true};
    dv_processes processes;
    if (dv_descendants_find(&processes, &everything) != 0) return -1;
    int outcome = look_at(items, &processes), error = errno;
    free(processes.all);
    errno = error;
    return outcome;
}

/* ---- what it says ---- */

double dv_cpu_items_read(dv_cpu_items *items, dv_cpu_item *item, int64_t now_us, int64_t least_us) {
    if (items->cores == 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        items->cores = online > 0 ? (size_t)online : 1;
    }
    int64_t elapsed_us = now_us - item->since_us;
    if (elapsed_us < least_us) return -1;
    double cores = dv_cpu_cores(item->used_us, elapsed_us, (unsigned)items->cores);
    item->used_us = 0;
    item->since_us = now_us;
    return cores;
}

void dv_cpu_items_forget(dv_cpu_items *items, bool (*keep)(const char *item, void *user), void *user) {
    size_t kept = 0;
    for (size_t i = 0; i < items->count; i++) {
        dv_cpu_item *one = items->all[i];
        if (one->guardian || keep(one->item, user)) items->all[kept++] = one;
        else free_item(one);
    }
    items->count = kept;
}

void dv_cpu_items_close(dv_cpu_items *items) {
    for (size_t i = 0; i < items->count; i++) free_item(items->all[i]);
    free((void *)items->all);
    *items = (dv_cpu_items){0};
}
