/* Showing the same page again and again. SPDX-License-Identifier: Apache-2.0 */
#include "table_screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "columns.h"
#include "text.h"

/* Sequences that every terminal since the VT100 obeys. */
#define CLEAR_ALL "\x1b[2J"
#define GO_HOME "\x1b[H"
#define CLEAR_LINE "\x1b[K"
#define CLEAR_REST "\x1b[J"
#define BOLD "\x1b[1m"
#define PLAIN "\x1b[m"

static const char separator[] = "----------------------------------------\n";

void dv_screen_init(dv_screen *screen, dv_output *output) {
    const char *terminal = getenv("TERM");
    bool can = terminal && *terminal && strcmp(terminal, "dumb") != 0;
    *screen = (dv_screen){.output = output, .in_place = can && isatty(STDOUT_FILENO)};
}

/* The bytes of the line at `line` that fit into `columns`; no character is cut in two. */
static size_t fitting(const char *line, size_t bytes, size_t columns) {
    size_t fits = 0;
    for (size_t width = 0; fits < bytes;) {
        size_t next = dv_text_character_bytes(line + fits);
        if (next == 0) next = 1;
        width += dv_character_width(line + fits, next);
        if (width > columns) break;
        fits += next;
    }
    return fits;
}

static void print_line(FILE *to, const char *line, size_t bytes, size_t columns) {
    bool marked = bytes > 1 && strchr("+*-", line[0]) && line[1] == ' ';
    fprintf(to, "%s%.*s%s" CLEAR_LINE, marked ? BOLD : "", (int)fitting(line, bytes, columns), line,
            marked ? PLAIN : "");
}

static size_t line_count(const char *page) {
    size_t count = 0;
    for (; *page; page++) count += *page == '\n';
    return count;
}

static void print_in_place(const dv_screen *screen, const char *page, FILE *to) {
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2 && size.ws_col > 10;
    size_t rows = known ? size.ws_row : 24, columns = known ? size.ws_col : 80, lines = line_count(page);
    /* No newline behind the last row, lest the screen moves. */
    size_t shown = lines < rows ? lines : rows - 2;
    fputs(screen->begun ? GO_HOME : CLEAR_ALL GO_HOME, to);
    for (size_t i = 0; i < shown; i++) {
        size_t bytes = (size_t)(strchr(page, '\n') - page);
        print_line(to, page, bytes, columns);
        fputs("\n", to);
        page += bytes + 1;
    }
    if (shown < lines) fprintf(to, "  ... and %zu lines more" CLEAR_LINE "\n", lines - shown);
    fputs(CLEAR_REST, to);
}

int dv_screen_show(dv_screen *screen, const char *page) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) return -1;
    if (screen->in_place) print_in_place(screen, page, to);
    else fprintf(to, "%s%s", screen->begun ? separator : "", page);
    bool complete = !ferror(to);
    if (fclose(to) == 0 && complete) dv_output_write(screen->output, text, bytes);
    else complete = false;
    free(text);
    screen->begun = true;
    return complete ? 0 : -1;
}
