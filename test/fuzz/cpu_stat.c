/* Fuzzes what the kernel says of a process, whose name anybody chooses. SPDX-License-Identifier: Apache-2.0 */
#include "divvy/cpu_meter.h"
#include "fuzz.h"

#include <inttypes.h>

/* A process under this name has the same numbers. */
static void check_named(const dv_cpu_process *process, const char *name) {
    char text[512];
    dv_cpu_process again;
    snprintf(text, sizeof text,
             "%d (%.64s) S 1 1 1 0 -1 0 0 0 0 0 %" PRIu64 " 0 %" PRIu64 " 0 20 0 1 0 %" PRIu64 " 0\n",
             (int)process->pid, name, process->own, process->children, process->started);
    FUZZ_CHECK(dv_cpu_parse(text, &again));
    FUZZ_CHECK(again.pid == process->pid && again.own == process->own && again.children == process->children);
    FUZZ_CHECK(again.started == process->started && !again.missed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_input in = fuzz_begin(data, bytes);
    char *text = fuzz_text(&in, '\0');
    dv_cpu_process process;
    if (dv_cpu_parse(text, &process)) FUZZ_CHECK(process.pid > 0 && !process.missed);
    check_named(&(dv_cpu_process){.pid = 7, .started = 5, .own = 3, .children = 2}, text);
    free(text);
    return 0;
}
