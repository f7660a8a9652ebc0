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

/* C0, DEL and C1: what terminals act upon. */
static bool is_control(const char *text) {
    const unsigned char *b = (const unsigned char *)text;
    return b[0] < 0x20 || b[0] == 0x7f || (b[0] == 0xc2 && b[1] >= 0x80 && b[1] <= 0x9f);
}

static bool is_escape(const char *text) {
    return text[0] == '%' && isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2]);
}

static bool is_fine(const char *text, bool controls_too) {
    for (size_t bytes; *text; text += bytes) {
        bytes = dv_text_character_bytes(text);
        if (bytes == 0 || (controls_too && is_control(text))) return false;
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

static char *encode(const char *text, bool controls_too) {
    if (is_fine(text, controls_too)) return strdup(text);
    char *encoded = malloc(3 * strlen(text) + 1), *to = encoded;
    if (!encoded) return NULL;
    for (size_t bytes; *text; text += bytes) {
        bytes = dv_text_character_bytes(text);
        bool escape = bytes == 0 || is_escape(text) || (controls_too && is_control(text));
        if (bytes == 0) bytes = 1; /* What follows a byte that is wrong is looked at afresh. */
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
