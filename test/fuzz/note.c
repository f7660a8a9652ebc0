/* Fuzzes the note of a member, the data of a node below P/notes. SPDX-License-Identifier: Apache-2.0 */
#include "handover/note.h"
#include "divvy/error.h"
#include "fuzz.h"

/* All items of a list, and none beside them, are found. */
static void check_items(const dv_note *note, bool (*is_in)(const dv_note *, uint32_t), const uint32_t *items,
                        size_t count) {
    uint32_t next = 0;
    for (size_t i = 0; i < count; i++) {
        FUZZ_CHECK(items[i] >= next && items[i] < note->set_count);
        if (items[i] > next) FUZZ_CHECK(!is_in(note, items[i] - 1));
        FUZZ_CHECK(is_in(note, items[i]));
        next = items[i] + 1;
    }
    FUZZ_CHECK(!is_in(note, next));
}

/* T6 word for word. */
static bool gives(const dv_note *note, uint32_t item, int64_t sequence, int64_t czxid) {
    bool found = false;
    for (size_t i = 0; i < note->given_count; i++) {
        const dv_note_given *given = &note->given[i];
        found |= given->item == item && sequence == (int64_t)given->sequence + 1 && czxid <= given->seen;
    }
    return found && czxid >= 1;
}

/* The note answers from its index as from the list itself. */
static void check_gives(const dv_note *note) {
    for (size_t i = 0; i < note->given_count; i++) {
        const dv_note_given *given = &note->given[i];
        FUZZ_CHECK(given->item < note->set_count && given->sequence >= 0 && given->seen > 0);
        int32_t next = given->sequence < INT32_MAX ? given->sequence + 1 : INT32_MIN;
        FUZZ_CHECK(dv_note_gives(note, given->item, next, given->seen) == (next > 0));
        for (int32_t by = -1; by <= 1; by++) {
            int64_t czxid = given->seen < INT64_MAX ? given->seen + by : given->seen;
            int32_t sequence = next > 0 && next < INT32_MAX ? next - by : next;
            FUZZ_CHECK(dv_note_gives(note, given->item, sequence, czxid) == gives(note, given->item, sequence, czxid));
        }
    }
}

/* A note that was read can be written whole, is no longer than before, and says the same. */
static void check_printed(const dv_note *note, size_t bytes) {
    dv_note again;
    size_t leaving, ready, given;
    char *printed = dv_note_print(note, &leaving, &ready, &given);
    FUZZ_CHECK(printed && strlen(printed) <= bytes);
    FUZZ_CHECK(leaving == note->leaving_count && ready == note->ready_count && given == note->given_count);
    FUZZ_CHECK(dv_note_parse(&again, printed, strlen(printed), NULL) == 0);
    FUZZ_CHECK(again.given_count == given && again.leaving_count == leaving && again.ready_count == ready);
    if (given) FUZZ_CHECK(memcmp(again.by_item, note->by_item, given * sizeof *note->by_item) == 0);
    char *twice = dv_note_print(&again, &leaving, &ready, &given);
    FUZZ_CHECK(twice && strcmp(twice, printed) == 0);
    free(twice);
    free(printed);
    dv_note_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *text = fuzz_copy(data, bytes);
    dv_note note;
    dv_plan_fault fault = {0};
    int error = dv_note_parse(&note, text, bytes, &fault);
    FUZZ_CHECK(error == 0 || error == DIVVY_EPROTO);
    if (error == 0) {
        check_items(&note, dv_note_is_leaving, note.leaving, note.leaving_count);
        check_items(&note, dv_note_is_ready, note.ready, note.ready_count);
        check_gives(&note);
        check_printed(&note, bytes);
        dv_note_clear(&note);
    } else {
        FUZZ_CHECK(fault.why && fault.at <= bytes);
        FUZZ_CHECK(!note.leaving && !note.ready && !note.given && !note.by_item);
    }
    free(text);
    return 0;
}
