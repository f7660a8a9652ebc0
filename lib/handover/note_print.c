/* The note of a member, as it stands in ZooKeeper: docs/protocol.md, D2, D3, T0. SPDX-License-Identifier: Apache-2.0
 *
 * It is measured first, so that it can be cut to its room; then it is printed into a text of that length. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "handover/note.h"

/* ---- measuring ---- */

enum { HEADER_BYTES_MAX = 128 };

static const char before_ready[] = "],\"ready\":[";
static const char before_given[] = "],\"given\":[";
static const char end[] = "]}";

static size_t digits_of(uint64_t value, unsigned base) {
    size_t digits = 1;
    while (value /= base) digits++;
    return digits;
}

/* Returns how many of the items have room, from the front; what they take is taken from *room. */
static size_t measure_items(const uint32_t *items, size_t count, size_t *room) {
    for (size_t i = 0; i < count; i++) {
        size_t bytes = digits_of(items[i], 10) + (i > 0);
        if (bytes > *room) return i;
        *room -= bytes;
    }
    return count;
}

static bool is_of_group(const dv_note_given *given, const dv_note_given *of) {
    return given->seen == of->seen;
}

/* Returns how many have room, from the newest on; what they take is taken from *room. */
static size_t measure_given(const dv_note *note, size_t *room) {
    for (size_t i = 0; i < note->given_count; i++) {
        const dv_note_given *given = &note->given[note->given_count - 1 - i];
        size_t bytes = digits_of(given->item, 10) + 1 + digits_of((uint64_t)given->sequence, 10);
        bool joins = i > 0 && is_of_group(given, given + 1);
        if (!joins) bytes += sizeof "[\"\",[]]" - 1 + digits_of((uint64_t)given->seen, 16);
        bytes += i > 0; /* the comma before what follows */
        if (bytes > *room) return i;
        *room -= bytes;
    }
    return note->given_count;
}

/* ---- printing ---- */

/* A text of a length that was measured. */
typedef struct {
    char *at, *end; /* `end`: where its NUL will stand */
} measured;

__attribute__((format(printf, 2, 3))) static void put(measured *to, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(to->at, (size_t)(to->end - to->at) + 1, format, arguments);
    va_end(arguments);
    assert(bytes >= 0 && bytes <= to->end - to->at);
    to->at += bytes;
}

static void put_items(measured *to, const uint32_t *items, size_t count) {
    for (size_t i = 0; i < count; i++) put(to, "%s%" PRIu32, i > 0 ? "," : "", items[i]);
}

static void put_given(measured *to, const dv_note_given *given, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert(given[i].sequence >= 0 && given[i].seen > 0);
        if (i > 0 && is_of_group(&given[i - 1], &given[i])) put(to, ",");
        else put(to, "%s[\"%" PRIx64 "\",[", i > 0 ? "]]," : "", (uint64_t)given[i].seen);
        put(to, "%" PRIu32 ",%" PRId32, given[i].item, given[i].sequence);
    }
    if (count > 0) put(to, "]]");
}

char *dv_note_print(const dv_note *note, size_t *leaving, size_t *ready, size_t *given) {
    char header[HEADER_BYTES_MAX];
    int header_bytes = snprintf(header, sizeof header,
                                "{\"v\":%d,\"set\":{\"count\":%zu,\"crc\":\"%08" PRIx32 "\",\"hash\":\"%016" PRIx64
                                "\"},\"leaving\":[",
                                DV_NOTE_VERSION, note->set_count, note->set_crc, note->set_hash);
    assert(header_bytes > 0 && (size_t)header_bytes < sizeof header);
    size_t room = DV_NOTE_BYTES_MAX - (size_t)header_bytes - (sizeof before_ready - 1) - (sizeof before_given - 1) -
                  (sizeof end - 1);
    *leaving = *given = 0;
    *ready = measure_items(note->ready, note->ready_count, &room);
    if (*ready == note->ready_count) *leaving = measure_items(note->leaving, note->leaving_count, &room);
    if (*ready == note->ready_count && *leaving == note->leaving_count) *given = measure_given(note, &room);

    size_t bytes = DV_NOTE_BYTES_MAX - room;
    char *text = malloc(bytes + 1);
    if (text == NULL) return NULL;
    measured to = {.at = text, .end = text + bytes};
    put(&to, "%s", header);
    put_items(&to, note->leaving, *leaving);
    put(&to, "%s", before_ready);
    put_items(&to, note->ready, *ready);
    put(&to, "%s", before_given);
    if (*given > 0) put_given(&to, note->given + (note->given_count - *given), *given);
    put(&to, "%s", end);
    assert(to.at == to.end);
    return text;
}
