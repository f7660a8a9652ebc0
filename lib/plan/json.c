/* A strict reader of JSON for plans: nothing is believed, nothing built up. SPDX-License-Identifier: Apache-2.0 */
#include "plan/json.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "divvy/error.h"
#include "recipe/record.h"
#include "znode/path.h"

enum { DIGITS_MAX = 16 };

void dv_plan_json_begin(dv_plan_json *j, const char *text, size_t bytes) {
    assert(text != NULL || bytes == 0);
    *j = (dv_plan_json){.begin = text, .at = text, .end = bytes > 0 ? text + bytes : text};
}

static void stop(dv_plan_json *j, int error, const char *why) {
    if (j->error != 0) return;
    j->error = error;
    j->why = why;
}

bool dv_plan_json_fail(dv_plan_json *j, const char *why) {
    stop(j, DIVVY_EPROTO, why);
    return false;
}

void dv_plan_json_fail_memory(dv_plan_json *j) {
    stop(j, DIVVY_ENOMEM, "does not fit into memory");
}

static bool next_is(const dv_plan_json *j, char c) {
    return j->error == 0 && j->at < j->end && *j->at == c;
}

static bool take(dv_plan_json *j, char c, const char *why) {
    if (!next_is(j, c)) return dv_plan_json_fail(j, why);
    j->at++;
    return true;
}

bool dv_plan_json_end(dv_plan_json *j) {
    if (j->error == 0 && j->at != j->end) return dv_plan_json_fail(j, "goes on after its end");
    return j->error == 0;
}

int64_t dv_plan_json_integer(dv_plan_json *j, int64_t least, int64_t most) {
    bool negative = next_is(j, '-');
    if (negative) j->at++;
    const char *first = j->at;
    int64_t value = 0;
    while (j->error == 0 && j->at < j->end && dv_is_digit(*j->at) && j->at - first < DIGITS_MAX) {
        value = value * 10 + (*j->at++ - '0');
    }
    size_t digits = (size_t)(j->at - first);
    bool good = digits > 0 && (digits == 1 || *first != '0') && !(negative && value == 0);
    if (negative) value = -value;
    if (!good || value < least || value > most) {
        dv_plan_json_fail(j, "has something else where an integer in range should be");
        return 0;
    }
    return value;
}

/* ---- strings ---- */

/* The bytes between the quotes, escapes as they stand. */
static const char *string_pass(dv_plan_json *j, size_t *bytes) {
    if (!take(j, '"', "has something else where a string should be")) return NULL;
    const char *from = j->at;
    while (j->at < j->end && *j->at != '"') {
        if ((unsigned char)*j->at < 0x20) {
            dv_plan_json_fail(j, "has a control character in a string");
            return NULL;
        }
        if (*j->at == '\\') {
            j->at++; /* what follows is no end, and is looked at when the string is copied */
            if (j->at == j->end) break;
        }
        j->at++;
    }
    *bytes = (size_t)(j->at - from);
    return take(j, '"', "ends inside a string") ? from : NULL;
}

static bool has_escape(const char *text, size_t bytes) {
    return memchr(text, '\\', bytes) != NULL;
}

const char *dv_plan_json_plain(dv_plan_json *j, size_t bytes_max, size_t *bytes) {
    const char *text = string_pass(j, bytes);
    bool escaped = text != NULL && has_escape(text, *bytes);
    if (text != NULL && (escaped || *bytes > bytes_max)) {
        dv_plan_json_fail(j, escaped ? "has an escape where none may be" : "has too long a string");
        text = NULL;
    }
    if (text == NULL) *bytes = 0;
    return text;
}

/* The four digits of \uXXXX as UTF-8, at most three bytes. 0: none, NUL, or half of a pair, which nobody needs here. */
static size_t unicode_put(const char *digits, const char *end, char *out) {
    unsigned value = 0;
    if (end - digits < 4) return 0;
    for (int i = 0; i < 4; i++) {
        int digit = dv_hex_value(digits[i]);
        if (digit < 0) return 0;
        value = value << 4 | (unsigned)digit;
    }
    if (value == 0 || (value >= 0xd800 && value <= 0xdfff)) return 0;
    if (value < 0x80) {
        out[0] = (char)value;
        return 1;
    }
    if (value < 0x800) {
        out[0] = (char)(0xc0 | value >> 6);
        out[1] = (char)(0x80 | (value & 0x3f));
        return 2;
    }
    out[0] = (char)(0xe0 | value >> 12);
    out[1] = (char)(0x80 | (value >> 6 & 0x3f));
    out[2] = (char)(0x80 | (value & 0x3f));
    return 3;
}

/* Takes the escapes out. How many bytes there are then; SIZE_MAX: one of them is none. */
static size_t unescape(const char *from, const char *end, char *out) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char *to = out;
    while (from < end) {
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        from++; /* string_pass() saw to it that something follows */
        const char *letter = memchr(letters, *from, sizeof letters - 1);
        size_t put = letter != NULL ? 1 : *from == 'u' ? unicode_put(from + 1, end, to) : 0;
        if (put == 0) return SIZE_MAX;
        if (letter != NULL) *to = meanings[letter - letters];
        to += put;
        from += letter != NULL ? 1 : 5;
    }
    return (size_t)(to - out);
}

size_t dv_plan_json_copy(dv_plan_json *j, char *out) {
    size_t bytes;
    const char *text = string_pass(j, &bytes);
    out[0] = '\0';
    if (text == NULL) return 0;
    if (has_escape(text, bytes)) bytes = unescape(text, text + bytes, out);
    else memcpy(out, text, bytes);
    if (bytes == SIZE_MAX) {
        dv_plan_json_fail(j, "has a false escape in a string");
        bytes = 0;
    }
    out[bytes] = '\0';
    return bytes;
}

char *dv_plan_json_string(dv_plan_json *j, size_t least, size_t most) {
    dv_plan_json ahead = *j;
    size_t bytes;
    if (string_pass(&ahead, &bytes) == NULL || bytes > most * 6) {
        dv_plan_json_fail(j, ahead.why != NULL ? ahead.why : "has too long a string");
        return NULL;
    }
    char *text = malloc(bytes + 1);
    if (text == NULL) {
        dv_plan_json_fail_memory(j);
        return NULL;
    }
    bytes = dv_plan_json_copy(j, text);
    if (bytes < least || bytes > most) dv_plan_json_fail(j, "has a string of a length that is out of range");
    if (memchr(text, '\0', bytes) != NULL || !dv_is_utf8(text)) dv_plan_json_fail(j, "has a string that is no UTF-8");
    if (j->error == 0) return text;
    free(text);
    return NULL;
}

/* ---- values of any kind ---- */

/* true, false, null and any number: letters, digits, signs and dots, which need no closer look to be passed over. */
static bool pass_word(dv_plan_json *j) {
    const char *from = j->at;
    while (j->at < j->end && (dv_is_alphanumeric(*j->at) || strchr("+-.", *j->at) != NULL) && *j->at != '\0') j->at++;
    return j->at > from || dv_plan_json_fail(j, "has something else where a value should be");
}

/* After a value: closes what ends here, and stands before the next value, or outside. `open`: a bit for each bracket
 * that is open, 1 for an object, the innermost the lowest. */
static void pass_closings(dv_plan_json *j, uint32_t *open, int *depth) {
    while (j->error == 0 && *depth > 0) {
        bool object = *open & 1;
        if (next_is(j, ',')) {
            j->at++;
            return;
        }
        take(j, object ? '}' : ']', "has no comma and no end after a value");
        *open >>= 1;
        (*depth)--;
    }
}

/* Before a value in an object. Returns the key as it stands, or NULL: a fault. */
static const char *pass_key(dv_plan_json *j, size_t *bytes) {
    const char *key = string_pass(j, bytes);
    return take(j, ':', "has a key without a value") ? key : NULL;
}

const char *dv_plan_json_value(dv_plan_json *j) {
    const char *from = j->at;
    uint32_t open = 0;
    int depth = 0;
    size_t bytes;
    do {
        if (depth > 0 && (open & 1)) pass_key(j, &bytes);
        bool object = next_is(j, '{');
        if (object || next_is(j, '[')) {
            j->at++;
            if (++depth > DV_PLAN_JSON_DEPTH_MAX) dv_plan_json_fail(j, "is nested too deeply");
            open = open << 1 | object;
            if (!next_is(j, object ? '}' : ']')) continue;
        } else if (next_is(j, '"')) {
            string_pass(j, &bytes);
        } else {
            pass_word(j);
        }
        pass_closings(j, &open, &depth);
    } while (j->error == 0 && depth > 0);
    return j->error == 0 ? from : NULL;
}

bool dv_plan_json_element(dv_plan_json *j, bool *begun) {
    if (*begun && next_is(j, ',')) {
        j->at++;
        return true;
    }
    if (!*begun) {
        *begun = true;
        if (!take(j, '[', "has something else where a list should be")) return false;
        if (!next_is(j, ']')) return true;
    }
    take(j, ']', "has no comma and no end after an element");
    return false;
}

static int name_find(const dv_plan_json_fields *fields, const char *text, size_t bytes) {
    for (size_t i = 0; i < fields->count; i++) {
        if (strlen(fields->names[i]) == bytes && memcmp(fields->names[i], text, bytes) == 0) return (int)i;
    }
    return -1;
}

/* Returns whether another key follows, which then is next. */
static bool field_follows(dv_plan_json *j, dv_plan_json_fields *fields) {
    if (!fields->begun) {
        fields->begun = true;
        take(j, '{', "has something else where an object should be");
        if (!next_is(j, '}')) return j->error == 0;
    } else if (next_is(j, ',')) {
        j->at++;
        return true;
    }
    take(j, '}', "has no comma and no end after a value");
    uint32_t all = (uint32_t)((UINT64_C(1) << fields->count) - 1);
    if ((fields->seen | fields->optional) != all) dv_plan_json_fail(j, "lacks a key");
    return false;
}

int dv_plan_json_field(dv_plan_json *j, dv_plan_json_fields *fields) {
    assert(fields->count <= 32);
    while (field_follows(j, fields)) {
        size_t bytes;
        const char *key = pass_key(j, &bytes);
        if (key == NULL) return -1;
        int found = name_find(fields, key, bytes);
        if (found < 0) {
            dv_plan_json_value(j);
            continue;
        }
        if (fields->seen & UINT32_C(1) << found) {
            dv_plan_json_fail(j, "has a key twice");
            return -1;
        }
        fields->seen |= UINT32_C(1) << found;
        return found;
    }
    return -1;
}

/* ---- what the texts of plans and notes share ---- */

int dv_plan_fault_tell(const dv_plan_json *j, dv_plan_fault *fault) {
    if (j->error != 0 && fault != NULL) *fault = (dv_plan_fault){.why = j->why, .at = (size_t)(j->at - j->begin)};
    return j->error;
}

uint64_t dv_plan_take_hex(dv_plan_json *j, size_t digits) {
    size_t bytes;
    const char *text = dv_plan_json_plain(j, 16, &bytes);
    if (text == NULL) return 0;
    uint64_t value = 0;
    bool good = bytes > 0 && (digits > 0 ? bytes == digits : bytes == 1 || text[0] != '0');
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (dv_is_digit(c)) value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f') value = value << 4 | (uint64_t)(c - 'a' + 10);
        else good = false;
    }
    if (!good) dv_plan_json_fail(j, "has something else where a hexadecimal number should be");
    return value;
}

int64_t dv_plan_take_zxid(dv_plan_json *j) {
    uint64_t value = dv_plan_take_hex(j, 0);
    if (value > INT64_MAX) dv_plan_json_fail(j, "has a zxid that is out of range");
    return value > INT64_MAX ? 0 : (int64_t)value;
}

void dv_plan_take_set(dv_plan_json *j, size_t *count, uint32_t *crc, uint64_t *hash) {
    static const char *const names[] = {"count", "crc", "hash"};
    dv_plan_json_fields fields = {.names = names, .count = 3};
    for (int field; (field = dv_plan_json_field(j, &fields)) >= 0;) {
        if (field == 0) *count = (size_t)dv_plan_json_integer(j, 0, DV_PLAN_ITEMS_MAX);
        else if (field == 1) *crc = (uint32_t)dv_plan_take_hex(j, 8);
        else *hash = dv_plan_take_hex(j, 16);
    }
}

bool dv_plan_is_newer(dv_plan_json *j, int64_t version) {
    static const char begin[] = "{\"v\":";
    dv_plan_json ahead = *j;
    if ((size_t)(j->end - j->at) < sizeof begin || memcmp(j->at, begin, sizeof begin - 1) != 0) {
        return dv_plan_json_fail(j, "does not begin with its version");
    }
    ahead.at += sizeof begin - 1;
    return dv_plan_json_integer(&ahead, 0, DV_PLAN_INTEGER_MAX) > version;
}

void *dv_plan_with_room(dv_plan_json *j, void *array, size_t count, size_t element_bytes) {
    if (count > 0 && (count & (count - 1)) != 0) return array;
    void *larger = realloc(array, (count > 0 ? 2 * count : 1) * element_bytes);
    if (larger == NULL) dv_plan_json_fail_memory(j);
    return larger;
}
