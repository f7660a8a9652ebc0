/* Names as they are shown. SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool is_continuation(unsigned char byte) {
    return (byte & 0xc0) == 0x80;
}

size_t dv_text_character_bytes(const char *text) {
    const unsigned char *b = (const unsigned char *)text;
    if (b[0] == 0) return 0;
    if (b[0] < 0x80) return 1;
    /* Overlong forms, surrogates and values past U+10FFFF show in the second byte: table 3-7 of the Unicode standard.
     * A NUL is no continuation, so that nothing behind the end is read. */
    if (b[0] >= 0xc2 && b[0] <= 0xdf) return is_continuation(b[1]) ? 2 : 0;
    if (b[0] >= 0xe0 && b[0] <= 0xef) {
        unsigned char low = b[0] == 0xe0 ? 0xa0 : 0x80, high = b[0] == 0xed ? 0x9f : 0xbf;
        return b[1] >= low && b[1] <= high && is_continuation(b[2]) ? 3 : 0;
    }
    if (b[0] >= 0xf0 && b[0] <= 0xf4) {
        unsigned char low = b[0] == 0xf0 ? 0x90 : 0x80, high = b[0] == 0xf4 ? 0x8f : 0xbf;
        return b[1] >= low && b[1] <= high && is_continuation(b[2]) && is_continuation(b[3]) ? 4 : 0;
    }
    return 0;
}

/* Returns the code point of the well-formed character of so many bytes. */
static uint32_t code_point(const char *text, size_t bytes) {
    static const unsigned char firsts[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const unsigned char *b = (const unsigned char *)text;
    uint32_t code = b[0] & firsts[bytes];
    for (size_t i = 1; i < bytes; i++) code = code << 6 | (b[i] & 0x3fu);
    return code;
}

/* Characters that terminals act upon or do not show, so that two names look alike or one reads as another: C0, DEL
 * and C1; the controls of direction, line and paragraph; and all that Unicode has as Default_Ignorable_Code_Point. */
static const struct {
    uint32_t first, last;
} unseen[] = {{0x1, 0x1f},      {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},    {0x61c, 0x61c},
              {0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},  {0x2028, 0x202e},
              {0x2060, 0x206f}, {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},  {0xffa0, 0xffa0},
              {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

static bool is_unseen(const char *text, size_t bytes) {
    uint32_t code = code_point(text, bytes);
    size_t i = 0;
    while (i < sizeof unseen / sizeof *unseen && unseen[i].last < code) i++;
    return i < sizeof unseen / sizeof *unseen && unseen[i].first <= code;
}

size_t dv_text_shown_bytes(const char *text) {
    size_t bytes = dv_text_character_bytes(text);
    return bytes > 0 && !is_unseen(text, bytes) ? bytes : 0;
}

static bool is_escape(const char *text) {
    return text[0] == '%' && isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2]);
}

static bool is_fine(const char *text, bool unseen_too) {
    for (size_t bytes; *text; text += bytes) {
        bytes = dv_text_character_bytes(text);
        if (bytes == 0 || (unseen_too && is_unseen(text, bytes))) return false;
    }
    return true;
}

static char *put_escaped(char *to, const char *from, size_t count) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)from[i];
        *to++ = '%';
        *to++ = digits[byte >> 4];
        *to++ = digits[byte & 15];
    }
    return to;
}

static char *encode(const char *text, bool unseen_too) {
    if (is_fine(text, unseen_too)) return strdup(text);
    char *encoded = malloc(3 * strlen(text) + 1), *to = encoded;
    if (!encoded) return NULL;
    for (size_t bytes; *text; text += bytes) {
        bytes = dv_text_character_bytes(text);
        bool escape = bytes == 0 || is_escape(text) || (unseen_too && is_unseen(text, bytes));
        if (bytes == 0) bytes = 1; /* The byte after a wrong one begins a new character. */
        if (escape) {
            to = put_escaped(to, text, bytes);
        } else {
            memcpy(to, text, bytes);
            to += bytes;
        }
    }
    *to = '\0';
    return encoded;
}

char *dv_text_plain(const char *text) {
    return encode(text, false);
}

char *dv_text_readable(const char *text) {
    return encode(text, true);
}

/* ---- JSON ---- */

static char *put_unit(char *to, uint32_t unit) {
    static const char digits[] = "0123456789abcdef";
    *to++ = '\\';
    *to++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4) *to++ = digits[unit >> shift & 15];
    return to;
}

/* Writes a character past U+FFFF as two units. */
static char *put_units(char *to, uint32_t code) {
    if (code <= 0xffff) return put_unit(to, code);
    to = put_unit(to, 0xd800 + ((code - 0x10000) >> 10));
    return put_unit(to, 0xdc00 + ((code - 0x10000) & 0x3ff));
}

char *dv_text_json_line(const char *json) {
    char *line = malloc(6 * strlen(json) + 2), *to = line; /* A byte becomes six at the most. */
    if (!line) return NULL;
    for (size_t bytes; *json; json += bytes) {
        bytes = dv_text_character_bytes(json);
        if (bytes > 0 && is_unseen(json, bytes)) {
            to = put_units(to, code_point(json, bytes));
            continue;
        }
        if (bytes == 0) bytes = 1;
        memcpy(to, json, bytes);
        to += bytes;
    }
    memcpy(to, "\n", 2);
    return line;
}
