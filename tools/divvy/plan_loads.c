/* divvy plan: loads of items from a file. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "load_lines.h"
#include "plan_call.h"

/* Reads a file to its end. *text is malloc'ed. Returns 0, or an errno. */
static int read_from(FILE *from, char **text, size_t *bytes) {
    char part[BUFSIZ];
    FILE *to = open_memstream(text, bytes);
    if (!to) return ENOMEM;
    int error = 0;
    for (size_t count; !error && (count = fread(part, 1, sizeof part, from)) > 0;)
        if (fwrite(part, 1, count, to) != count) error = ENOMEM;
    if (!error && ferror(from)) error = errno ? errno : EIO;
    if (fclose(to) != 0 && !error) error = ENOMEM;
    return error;
}

static int read_whole(const char *path, char **text, size_t *bytes) {
    if (strcmp(path, "-") == 0) return read_from(stdin, text, bytes);
    FILE *from = fopen(path, "re");
    if (!from) return errno;
    int error = read_from(from, text, bytes);
    fclose(from);
    return error;
}

/* Returns 0, or the exit code when it was told what is wrong with the lines. */
static int check(const dv_load_lines *lines, const dv_item_list *items, const char *path) {
    static const char *const wrong[DV_LOAD_LINE_KINDS] = {NULL, "is no number", "is below 0", "is not finite",
                                                          "has too many digits"};
    for (int kind = DV_LOAD_LINE_NO_NUMBER; kind < DV_LOAD_LINE_KINDS; kind++) {
        if (lines->bad[kind].count == 0) continue;
        dv_command_say("--loads %.300s: the load of %.200s %s: \"%s\"", path, items->names[lines->bad[kind].item],
                       wrong[kind], lines->bad[kind].number);
        return DV_EXIT_USAGE;
    }
    if (lines->missing < items->count) return 0;
    dv_command_say("--loads %.300s: no line has a load of any of the items, such as \"%.200s 1.5\"", path,
                   items->names[0]);
    return DV_EXIT_USAGE;
}

int dv_plan_loads_read(double **loads, const char *path, const dv_item_list *items) {
    char *text = NULL;
    size_t bytes = 0;
    dv_load_lines lines = {.loads = NULL};
    int error = read_whole(path, &text, &bytes), code = DV_EXIT_USAGE;
    if (!error && dv_load_lines_read(&lines, items, text, bytes) != 0) error = ENOMEM;
    free(text);
    if (error == ENOMEM) code = dv_command_out_of_memory();
    else if (error) dv_command_say("--loads %.300s: %s", path, strerror(error));
    else code = check(&lines, items, path);
    if (code == 0) {
        *loads = lines.loads;
        lines.loads = NULL;
        if (lines.missing)
            dv_command_say(
                "warning: --loads %.300s: %zu of %zu items have no line, and count as the mean; the first is "
                "%.200s",
                path, lines.missing, items->count, items->names[lines.first_missing]);
    }
    dv_load_lines_free(&lines);
    return code;
}
