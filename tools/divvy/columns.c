/* How much of a screen text takes, and how it is made to fit. SPDX-License-Identifier: Apache-2.0 */
#include "columns.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "text.h"

enum { NARROWEST = 60, WIDEST = 10000 };

static const char dots[] = "...";
enum { DOTS = sizeof dots - 1 };

size_t dv_columns_of_output(int wide) {
    if (wide) return DV_COLUMNS_ALL;
    struct winsize size;
    const char *told = getenv("COLUMNS");
    long columns = told ? strtol(told, NULL, 10) : 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) columns = size.ws_col;
    if (columns <= 0 || columns > WIDEST) columns = DV_COLUMNS;
    return columns < NARROWEST ? NARROWEST : (size_t)columns;
}

/* Returns whether terminals give the character two columns: the blocks of East Asian scripts and of pictures. */
static bool is_wide(const char *character, size_t bytes) {
    const unsigned char *b = (const unsigned char *)character;
    if (bytes == 4) return b[0] == 0xf0 && (b[1] >= 0xa0 || (b[1] == 0x9f && b[2] >= 0x8c && b[2] <= 0xab));
    if (bytes != 3) return false;
    unsigned code = (b[0] & 15u) << 12 | (b[1] & 63u) << 6 | (b[2] & 63u);
    return (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
           (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
           (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60);
}

size_t dv_character_width(const char *character, size_t bytes) {
    return is_wide(character, bytes) ? 2 : 1;
}

/* Returns how many columns the first `bytes` bytes of the text take. */
static size_t width_of(const char *text, size_t bytes) {
    size_t width = 0;
    for (size_t i = 0, next; i < bytes && (next = dv_text_character_bytes(text + i)) > 0; i += next)
        width += dv_character_width(text + i, next);
    return width;
}

size_t dv_text_width(const char *text) {
    return width_of(text, strlen(text));
}

/* Returns the bytes of the longest beginning of the first `bytes` bytes that fits. No character is cut in two. */
static size_t beginning(const char *text, size_t bytes, size_t columns) {
    size_t at = 0;
    for (size_t width = 0; at < bytes;) {
        size_t next = dv_text_character_bytes(text + at);
        if (next == 0) break;
        width += dv_character_width(text + at, next);
        if (width > columns) break;
        at += next;
    }
    return at;
}

/* Returns where the longest end of the first `bytes` bytes begins that fits. */
static size_t ending(const char *text, size_t bytes, size_t columns) {
    size_t at = 0, width = width_of(text, bytes);
    for (size_t next; width > columns; at += next) {
        next = dv_text_character_bytes(text + at);
        width -= dv_character_width(text + at, next);
    }
    return at;
}

/* Returns where a remark begins that `end` ends: " (...)" or " +7"; `end` where there is none. */
static const char *remark_before(const char *text, const char *end) {
    const char *at = end, *found = NULL;
    while (at > text && at[-1] >= '0' && at[-1] <= '9') at--;
    if (at < end && at - text > 2 && at[-1] == '+' && at[-2] == ' ') return at - 2;
    if (end == text || end[-1] != ')') return end;
    for (at = text; (at = strstr(at, " (")) != NULL && at < end; at++) found = at;
    return found && found > text ? found : end;
}

/* Returns what stands behind a name and is to be kept: as much of it as leaves room for a name. */
static const char *remarks(const char *text, size_t columns) {
    enum { NAME_COLUMNS = 7 };
    const char *kept = text + strlen(text);
    for (const char *next; (next = remark_before(text, kept)) < kept; kept = next)
        if (dv_text_width(next) + NAME_COLUMNS > columns) break;
    return kept;
}

char *dv_text_shorten(const char *text, size_t columns) {
    if (dv_text_width(text) <= columns) return strdup(text);
    const char *behind = remarks(text, columns);
    size_t bytes = (size_t)(behind - text), room = columns - dv_text_width(behind), marks = room < DOTS ? room : DOTS;
    room -= marks;
    size_t first = beginning(text, bytes, room / 3), last = ending(text, bytes, room - room / 3);
    char *out = NULL;
    if (asprintf(&out, "%.*s%.*s%.*s%s", (int)first, text, (int)marks, dots, (int)(bytes - last), text + last, behind) <
        0)
        return NULL;
    return out;
}

char *dv_text_clip(const char *text, size_t columns) {
    if (dv_text_width(text) <= columns) return strdup(text);
    size_t marks = columns < DOTS ? columns : DOTS;
    char *out = NULL;
    int first = (int)beginning(text, strlen(text), columns - marks);
    return asprintf(&out, "%.*s%.*s", first, text, (int)marks, dots) < 0 ? NULL : out;
}

void dv_text_wrap(const char *text, size_t used, size_t indent, size_t columns, FILE *to) {
    size_t room = columns == DV_COLUMNS_ALL ? SIZE_MAX : columns;
    bool begun = false; /* a word of the text stands on this line */
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t bytes = strcspn(text, " ");
        if (begun && used + 1 + width_of(text, bytes) > room) {
            fprintf(to, "\n%*s", (int)indent, "");
            used = indent;
        } else if (begun) {
            fputs(" ", to);
            used++;
        }
        for (size_t fits; used + width_of(text, bytes) > room; text += fits, bytes -= fits) {
            fits = beginning(text, bytes, room > used ? room - used : 0);
            if (fits == 0 && used == indent) break; /* not one character fits */
            fprintf(to, "%.*s\n%*s", (int)fits, text, (int)indent, "");
            used = indent;
        }
        fprintf(to, "%.*s", (int)bytes, text);
        used += width_of(text, bytes);
        text += bytes;
        begun = true;
    }
    fputs("\n", to);
}
