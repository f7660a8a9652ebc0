/* Shared by the tests of notes: texts that are read. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_NOTE_FIXTURE_H
#define DV_TEST_NOTE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "handover/note.h"
#include "lib/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SET "\"set\":{\"count\":1000,\"crc\":\"0badcafe\",\"hash\":\"0123456789abcdef\"}"
#define LISTS(leaving, ready, given) "{\"v\":1," SET ",\"leaving\":" leaving ",\"ready\":" ready ",\"given\":" given "}"

static const char whole[] = LISTS("[0,7,999]", "[1,8]", "[[\"1f00000a2\",[3,0,4,17]],[\"1f00000b0\",[3,5]]]");

/* Parses the given bytes. Sanitizers see a read beyond them. */
static inline int parse_bytes(dv_note *out, const char *text, size_t bytes, dv_plan_fault *fault) {
    char *exact = malloc(bytes + (bytes == 0));
    assert_non_null(exact);
    if (bytes > 0) memcpy(exact, text, bytes);
    int error = dv_note_parse(out, exact, bytes, fault);
    free(exact);
    return error;
}

static inline dv_note parse(const char *text) {
    dv_note note;
    dv_plan_fault fault = {.why = "is good"};
    if (parse_bytes(&note, text, strlen(text), &fault) != 0)
        fail_msg("%.200s: %s (byte %zu)", text, fault.why, fault.at);
    return note;
}

static inline void assert_empty(const dv_note *note) {
    static const dv_note empty = {0};
    assert_memory_equal(note, &empty, sizeof empty);
}

static inline void assert_refused_bytes(const char *text, size_t bytes, const char *why) {
    dv_note note = {.set_count = 7};
    dv_plan_fault fault = {0};
    if (parse_bytes(&note, text, bytes, &fault) != DIVVY_EPROTO) fail_msg("taken: %.*s", (int)bytes, text);
    if (why != NULL && (fault.why == NULL || strcmp(fault.why, why) != 0))
        fail_msg("%.200s: the fault is \"%s\"", text, fault.why);
    assert_non_null(fault.why);
    assert_true(fault.at <= bytes);
    assert_empty(&note);
    assert_int_equal(parse_bytes(&note, text, bytes, NULL), DIVVY_EPROTO);
}

static inline void assert_refused(const char *text, const char *why) {
    assert_refused_bytes(text, strlen(text), why);
}

#endif
