/* A command that tells the loads of items. SPDX-License-Identifier: Apache-2.0 */
#include "load_command.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command.h"

/* Kinds of trouble besides those of lines. */
enum { NO_RUN = DV_LOAD_LINE_KINDS, MISSING };

static const char shown[] = "--load-command";

/* Tells a kind of trouble that was not told yet. */
__attribute__((format(printf, 3, 4))) static void tell(dv_load_command *c, int kind, const char *format, ...) {
    char text[512];
    if (c->told & 1U << kind) return;
    c->told |= 1U << kind;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    dv_command_say("warning: %s %s", shown, text);
}

/* ---- the beginning ---- */

/* A name with a newline could not be told from two. */
static bool has_newline(const char *name) {
    return strchr(name, '\n') != NULL;
}

static bool copy_names(dv_item_list *list, const char *const *items, size_t count) {
    *list = (dv_item_list){.names = (const char **)calloc(count + 1, sizeof *list->names)};
    for (size_t i = 0; list->names && i < count; i++) {
        if (has_newline(items[i])) continue;
        char *copy = strdup(items[i]);
        if (!copy) return false;
        list->names[list->count++] = copy;
    }
    return list->names != NULL;
}

/* Returns a file in memory, which a run that does not read it need not empty; -1: there is none. */
static int open_names(const dv_item_list *list) {
    int fd = memfd_create("items", MFD_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(dup(fd), "w") : NULL;
    for (size_t i = 0; file && i < list->count; i++) fprintf(file, "%s\n", list->names[i]);
    bool complete = file && !ferror(file);
    if (file && fclose(file) != 0) complete = false;
    if (complete && lseek(fd, 0, SEEK_SET) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

void dv_load_command_begin(dv_load_command *c, const char *const *items, size_t count) {
    assert(!c->run.process);
    dv_item_list_free(&c->asked);
    bool copied = copy_names(&c->asked, items, count);
    int names_fd = copied ? open_names(&c->asked) : -1;
    if (names_fd < 0) tell(c, NO_RUN, "cannot be run: out of memory; the loads stay as they are");
    else if (dv_shell_run_begin(&c->run, c->command, names_fd) != 0)
        tell(c, NO_RUN, "%s; the loads stay as they are", c->run.why);
    if (names_fd >= 0) close(names_fd);
}

/* ---- the end ---- */

static void tell_bad(dv_load_command *c, const dv_load_lines *lines, dv_load_line_kind kind) {
    static const char *const reasons[DV_LOAD_LINE_KINDS] = {
        [DV_LOAD_LINE_NO_NUMBER] =
            ", which is no number; print ITEM NUMBER on a line of its own, such as \"orders 12.5\"",
        [DV_LOAD_LINE_NEGATIVE] = ", which is negative; a load is 0 or more",
        [DV_LOAD_LINE_INFINITE] = ", which is not finite; print no line for an item whose load is not known",
        [DV_LOAD_LINE_LONG] = " and more; a number has at most 64 bytes",
    };
    char others[64] = "";
    if (lines->bad[kind].count == 0) return;
    if (lines->bad[kind].count > 1)
        snprintf(others, sizeof others, " (%zu more lines are like that)", lines->bad[kind].count - 1);
    tell(c, (int)kind, "printed for the item \"%.100s\" the load \"%s\"%s%s", c->asked.names[lines->bad[kind].item],
         lines->bad[kind].number, reasons[kind], others);
}

static void judge(dv_load_command *c, const dv_load_lines *lines) {
    unsigned before = c->told;
    c->told = 0;
    for (int kind = DV_LOAD_LINE_NO_NUMBER; kind < DV_LOAD_LINE_KINDS; kind++) {
        if (lines->bad[kind].count) c->told |= before & 1U << kind;
        tell_bad(c, lines, (dv_load_line_kind)kind);
    }
    if (!lines->missing) return;
    c->told |= before & 1U << MISSING;
    tell(
        c, MISSING,
        "printed no line for %zu of the %zu items, such as \"%.100s\"; print ITEM NUMBER on a line of its own, such as "
        "\"%.100s 12.5\"",
        lines->missing, c->asked.count, c->asked.names[lines->first_missing], c->asked.names[lines->first_missing]);
}

bool dv_load_command_look(dv_load_command *c, dv_load_lines *out) {
    if (!c->run.process) return false;
    dv_shell_run_outcome outcome = dv_shell_run_look(&c->run);
    if (outcome == DV_SHELL_RUN_RUNS) return false;
    bool read = outcome == DV_SHELL_RUN_DONE && dv_load_lines_read(out, &c->asked, c->run.output, c->run.bytes) == 0;
    if (outcome == DV_SHELL_RUN_FAILED) tell(c, NO_RUN, "%s; the loads stay as they are", c->run.why);
    if (read) judge(c, out);
    dv_shell_run_forget(&c->run);
    return read;
}

void dv_load_command_close(dv_load_command *c) {
    dv_shell_run_forget(&c->run);
    dv_item_list_free(&c->asked);
}
