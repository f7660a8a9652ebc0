/* The loads of the items of divvy partition. SPDX-License-Identifier: Apache-2.0 */
#include "partition_load.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "connection.h"

void dv_partition_load_open(dv_partition_load *load, divvy_client *client) {
    load->client = client;
    load->command = (dv_load_command){.command = load->options->load_command, .run.output_fd = -1};
}

void dv_partition_load_close(dv_partition_load *load) {
    if (load->command.command) dv_load_command_close(&load->command);
    dv_cpu_items_close(&load->cpu);
}

/* The library passes over an item that is ours no longer. A member that has failed tells why elsewhere. */
static void tell_load(dv_partition_load *load, const char *item, double value) {
    int error = divvy_partitioner_set_load(load->p, item, value);
    if (error == 0 || error == DIVVY_ENOENT || error == DIVVY_ECLOSED || load->refused) return;
    load->refused = true;
    dv_command_say("warning: the pool is told no load of %s: %s", item, divvy_client_error(load->client));
}

/* ---- measured ---- */

void dv_partition_load_child(dv_partition_load *load, const dv_child_event *event) {
    if (load->options->balance != DV_BALANCE_CPU) return;
    if (dv_cpu_items_take(&load->cpu, event, dv_cpu_items_now_us()) == 0 || load->cannot_count) return;
    load->cannot_count = true;
    dv_command_say("warning: --balance cpu: out of memory; the command of %s is not measured", event->item);
}

static bool is_owned(const char *item, void *user) {
    return dv_ledger_find(((const dv_partition_load *)user)->ledger, item) != NULL;
}

/* A command that has begun just now is read by the next look: the kernel counts in ticks of 10 ms. */
static void read_cpu(dv_partition_load *load) {
    int64_t now_us = dv_cpu_items_now_us(), least_us = load->options->load_interval_ms * 1000 / 2;
    for (size_t i = 0; i < load->cpu.count; i++) {
        dv_cpu_item *one = load->cpu.all[i];
        double cores = is_owned(one->item, load) ? dv_cpu_items_read(&load->cpu, one, now_us, least_us) : -1;
        if (cores >= 0) tell_load(load, one->item, cores);
    }
}

static void measure(dv_partition_load *load) {
    if (dv_cpu_items_look(&load->cpu) == 0) {
        load->cannot_look = false;
        read_cpu(load);
    } else if (!load->cannot_look) {
        load->cannot_look = true;
        dv_command_say("warning: --balance cpu cannot look at the processes in /proc: %s; the loads stay as they are",
                       strerror(errno));
    }
    dv_cpu_items_forget(&load->cpu, is_owned, load);
}

/* ---- asked for ---- */

static void ask(dv_partition_load *load) {
    const dv_ledger *ledger = load->ledger;
    const char **names = (const char **)calloc(ledger->owned_count + 1, sizeof *names);
    for (size_t i = 0; names && i < ledger->owned_count; i++) names[i] = ledger->owned[i].name;
    if (names) dv_load_command_begin(&load->command, names, ledger->owned_count);
    free((void *)names);
}

static void hear(dv_partition_load *load) {
    dv_load_lines lines;
    if (!dv_load_command_look(&load->command, &lines)) return;
    for (size_t i = 0; i < load->command.asked.count; i++) {
        if (lines.loads[i] >= 0) tell_load(load, load->command.asked.names[i], lines.loads[i]);
    }
    dv_load_lines_free(&lines);
}

/* ---- both ---- */

/* Where nothing is owned there is nothing to be asked, and no command to be measured but those that stand by. */
static bool has_work(const dv_partition_load *load) {
    const dv_partition_options *o = load->options;
    if (!load->p) return false;
    if (o->balance == DV_BALANCE_CPU) return load->cpu.count > 0;
    return o->load_command && load->ledger->owned_count > 0 && !load->command.run.process;
}

void dv_partition_load_step(dv_partition_load *load) {
    if (load->command.command && load->p) hear(load);
    int64_t now_ms = dv_session_now_ms();
    if (!has_work(load) || now_ms < load->due_ms) return;
    load->due_ms = now_ms + load->options->load_interval_ms;
    if (load->options->load_command) ask(load);
    else measure(load);
}

int dv_partition_load_fd(const dv_partition_load *load) {
    return dv_shell_run_fd(&load->command.run);
}

int64_t dv_partition_load_next_ms(const dv_partition_load *load) {
    int64_t run_ms = dv_shell_run_until_ms(&load->command.run);
    if (!has_work(load)) return run_ms;
    int64_t left_ms = load->due_ms - dv_session_now_ms();
    return dv_session_sooner(run_ms, left_ms > 0 ? left_ms : 0);
}
