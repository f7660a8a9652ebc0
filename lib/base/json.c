/* JSON: the text of a value, and whether a text is one, without memory. SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <string.h>

#include "base/ascii.h"

typedef struct {
    const char *at, *end;
} json_scan;

enum { DEPTH_MAX = 64, NUMBER_BYTES_MAX = 60 /* cJSON takes 63 */ };

static char peek(const json_scan *s) {
    if (s->at == s->end) return '\0';
    return *s->at;
}

static bool take(json_scan *s, char c) {
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static void skip_space(json_scan *s) {
    while (s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at) s->at++;
}

static bool take_digits(json_scan *s) {
    const char *begin = s->at;
    while (s->at < s->end && dv_is_digit(*s->at)) s->at++;
    return s->at > begin;
}

static bool take_number(json_scan *s) {
    const char *begin = s->at;
    take(s, '-');
    if (!take(s, '0') && !take_digits(s)) return false;
    if (take(s, '.') && !take_digits(s)) return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+')) take(s, '-');
        if (!take_digits(s)) return false;
    }
    return s->at - begin <= NUMBER_BYTES_MAX;
}

/* The four digits of a \u; -1: there are none. */
static int take_unit(json_scan *s) {
    int unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = dv_hex_value(peek(s));
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
        s->at++;
    }
    return unit;
}

/* Halves of a pair come two at a time. */
static bool take_escaped(json_scan *s) {
    char c = peek(s);
    if (c == '\0') return false;
    s->at++;
    if (c != 'u') return strchr("\"\\/bfnrt", c) != NULL;
    int unit = take_unit(s);
    if (unit < 0 || (unit >= 0xdc00 && unit <= 0xdfff)) return false;
    if (unit < 0xd800 || unit > 0xdbff) return true;
    if (!take(s, '\\') || !take(s, 'u')) return false;
    int second = take_unit(s);
    return second >= 0xdc00 && second <= 0xdfff;
}

static bool take_string(json_scan *s) {
    if (!take(s, '"')) return false;
    while (s->at < s->end && *s->at != '"') {
        if ((unsigned char)*s->at < ' ') return false;
        if (*s->at++ == '\\' && !take_escaped(s)) return false;
    }
    return take(s, '"');
}

static bool take_word(json_scan *s, const char *word) {
    size_t bytes = strlen(word);
    if ((size_t)(s->end - s->at) < bytes || memcmp(s->at, word, bytes) != 0) return false;
    s->at += bytes;
    return true;
}

static bool take_name(json_scan *s) {
    skip_space(s);
    if (!take_string(s)) return false;
    skip_space(s);
    return take(s, ':');
}

static bool take_scalar(json_scan *s) {
    if (peek(s) == '"') return take_string(s);
    return take_word(s, "true") || take_word(s, "false") || take_word(s, "null") || take_number(s);
}

/* After a value come the ends of those around it, then a comma, or the end of the text. */
bool dv_json_is_valid(const char *text, size_t bytes) {
    json_scan s = {.at = text, .end = text + bytes};
    char ends[DEPTH_MAX]; /* of the objects and arrays that are open */
    size_t depth = 0;
    for (;;) {
        skip_space(&s);
        bool object = peek(&s) == '{';
        if (object || peek(&s) == '[') {
            s.at++;
            if (depth == DEPTH_MAX) return false;
            ends[depth++] = object ? '}' : ']';
            skip_space(&s);
            if (peek(&s) != ends[depth - 1]) {
                if (object && !take_name(&s)) return false;
                continue;
            }
        } else if (!take_scalar(&s)) {
            return false;
        }
        for (skip_space(&s); depth > 0 && take(&s, ends[depth - 1]); skip_space(&s)) depth--;
        if (depth == 0) return s.at == s.end;
        if (!take(&s, ',') || (ends[depth - 1] == '}' && !take_name(&s))) return false;
    }
}

char *dv_json_print(const cJSON *json) {
    char *text = json ? cJSON_PrintUnformatted(json) : NULL, *copy = text ? strdup(text) : NULL;
    cJSON_free(text);
    return copy;
}
