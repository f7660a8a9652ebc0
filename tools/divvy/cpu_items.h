/* The processor time of the commands of items. SPDX-License-Identifier: Apache-2.0
 *
 * Each command has a guardian, which is the parent of all its processes: so what comes from the guardian is the
 * command's. A command that ends tells its whole time; what looks have not seen of that counts too. */
#ifndef DV_CPU_ITEMS_H
#define DV_CPU_ITEMS_H

#include <stddef.h>
#include <stdint.h>

#include "cpu_meter.h"
#include "supervise_child.h"

/* One item that has a command, or had one in this interval. */
typedef struct {
    char *item;
    pid_t guardian; /* 0: no command runs */
    dv_cpu_meter meter;
    uint64_t run_us;  /* what looks have seen of this command */
    uint64_t used_us; /* by all commands since the last reading */
    int64_t since_us; /* the time of that reading, or of the first command */
} dv_cpu_item;

/* Zeroed: there are none. */
typedef struct {
    dv_cpu_item **all; /* sorted by item, bytewise */
    size_t count, room;
    size_t cores; /* that are online; 0: not known yet */
} dv_cpu_items;

/* The clock of what follows. */
int64_t dv_cpu_items_now_us(void);

/* Takes notice of what has happened to a command. Returns 0, or -1 when there is no memory: then the item is not
 * measured before its next command. */
int dv_cpu_items_take(dv_cpu_items *items, const dv_child_event *event, int64_t now_us);

/* Looks at all of them. Returns 0, or -1 with errno set: then nothing was measured. */
int dv_cpu_items_look(dv_cpu_items *items);

/* Returns the cores that the item has used since the last reading, and begins the next; -1: it is too early for one,
 * by least_us. To be called after a look. */
double dv_cpu_items_read(dv_cpu_items *items, dv_cpu_item *item, int64_t now_us, int64_t least_us);

/* Forgets those for which `keep` returns false, and which run no command. */
void dv_cpu_items_forget(dv_cpu_items *items, bool (*keep)(const char *item, void *user), void *user);

void dv_cpu_items_close(dv_cpu_items *items);

#endif
