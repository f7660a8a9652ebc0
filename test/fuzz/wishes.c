/* Fuzzes what an operator asks of a pool, as it stands in the plan, and one request more.
 * SPDX-License-Identifier: Apache-2.0
 *
 * An input is the text of the wishes, a NUL, and an event: a byte for its kind, one for whether it undoes, then the
 * name and the value, each with a NUL. */
#include "divvy/error.h"
#include "fuzz.h"
#include "plan/wish.h"

/* What can be read can be written, and is the same. */
static void check_text(dv_wishes *wishes) {
    dv_plan_text text, again;
    dv_wishes *read;
    FUZZ_CHECK(dv_wishes_print(&text, wishes) == 0);
    FUZZ_CHECK(dv_wishes_parse(&read, text.bytes, text.count, NULL) == 0);
    FUZZ_CHECK(dv_wishes_equal(wishes, read));
    FUZZ_CHECK(dv_wishes_print(&again, read) == 0);
    FUZZ_CHECK(again.count == text.count && memcmp(again.bytes, text.bytes, text.count) == 0);
    dv_wishes_unref(read);
    free(text.bytes);
    free(again.bytes);
}

static size_t prefix_of(const char *name, const char *item) {
    size_t bytes = strlen(name);
    bool fits = bytes > 0 && name[bytes - 1] == '*' && strncmp(name, item, bytes - 1) == 0;
    return fits ? bytes : 0;
}

/* The exact name counts, else the longest prefix. */
static void check_tag(const dv_wishes *wishes, const char *item) {
    const char *tag = dv_wishes_tag(wishes, item), *exact = NULL, *longest = NULL;
    size_t most = 0;
    for (size_t i = 0; i < wishes->count; i++) {
        const dv_wish *wish = &wishes->list[i];
        if (wish->kind != DV_WISH_NEED) continue;
        if (strcmp(wish->name, item) == 0) exact = wish->value;
        if (prefix_of(wish->name, item) <= most) continue;
        most = prefix_of(wish->name, item);
        longest = wish->value;
    }
    FUZZ_CHECK(tag == (exact ? exact : longest));
    FUZZ_CHECK(!tag || dv_wishes_need_tags(wishes));
}

static void check_all(dv_wishes *wishes) {
    FUZZ_CHECK(wishes->count <= DV_WISHES_MAX);
    check_text(wishes);
    for (size_t i = 0; i < wishes->count; i++) {
        const dv_wish *wish = &wishes->list[i];
        FUZZ_CHECK(dv_wish_check(wish) == NULL);
        FUZZ_CHECK(dv_wishes_find(wishes, wish->kind, wish->name) == wish);
        check_tag(wishes, wish->name);
        double number = dv_wishes_number(wishes, wish->name, 7, 1000);
        FUZZ_CHECK(number >= 0 && number <= 1000);
    }
}

/* A wish that has come is there, one that was undone is not, and nothing else of another name has changed. */
static void check_event(dv_wishes *wishes, const dv_wish_event *event) {
    const dv_wish *wish = &event->wish;
    dv_wishes *next, *again;
    if (dv_wish_check(wish) != NULL) return;
    int error = dv_wishes_change(&next, wishes, event);
    FUZZ_CHECK(error == 0 || (error == DIVVY_ELIMIT && !event->undo && wishes->count == DV_WISHES_MAX));
    if (error != 0) return;
    check_all(next);
    check_tag(next, wish->value);
    const dv_wish *found = dv_wishes_find(next, wish->kind, wish->name);
    FUZZ_CHECK(event->undo ? !found : found && strcmp(found->value, wish->value) == 0);
    for (size_t i = 0; i < wishes->count; i++) {
        const dv_wish *other = &wishes->list[i];
        if (strcmp(other->name, wish->name) == 0) continue;
        found = dv_wishes_find(next, other->kind, other->name);
        FUZZ_CHECK(found && strcmp(found->value, other->value) == 0);
    }
    FUZZ_CHECK(dv_wishes_change(&again, next, event) == 0 && again == next);
    dv_wishes_unref(again);
    dv_wishes_unref(next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_input in = fuzz_begin(data, bytes);
    char *text = fuzz_text(&in, '\0');
    dv_wish_event event = {.wish = {.kind = (dv_wish_kind)(fuzz_byte(&in) % DV_WISH_KINDS)}};
    event.undo = fuzz_byte(&in) % 2;
    char *name = fuzz_text(&in, '\0'), *value = fuzz_text(&in, '\0');
    event.wish.name = name;
    event.wish.value = value;
    event.wish.by = event.wish.why = "";
    dv_wishes *wishes = NULL;
    dv_plan_fault fault = {0};
    int error = dv_wishes_parse(&wishes, text, strlen(text), &fault);
    FUZZ_CHECK(error == 0 ? wishes != NULL : error == DIVVY_EPROTO && fault.why && !wishes);
    if (error != 0) FUZZ_CHECK(dv_wishes_parse(&wishes, "[]", 2, NULL) == 0);
    check_all(wishes);
    check_event(wishes, &event);
    dv_wishes_unref(wishes);
    free(text);
    free(name);
    free(value);
    return 0;
}
