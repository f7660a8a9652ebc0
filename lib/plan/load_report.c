/* A member's report of loads: docs/protocol.md, D2, D3, D46. SPDX-License-Identifier: Apache-2.0
 *
 * Items stand by class, the greatest first, each list with its first index and then the steps to the next: so 64 KiB
 * hold the items of a large member, and what has no room is what matters least. */
#include "plan/load_report.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "plan/json.h"

bool dv_load_report_is_of(const dv_load_report *report, const dv_plan_set *set) {
    return report->set_count == set->count && report->set_crc == set->crc && report->set_hash == set->hash;
}

void dv_load_report_clear(dv_load_report *report) {
    free(report->items);
    *report = (dv_load_report){0};
}

static int by_item(const void *left, const void *right) {
    const dv_item_class *a = left, *b = right;
    return (a->item > b->item) - (a->item < b->item);
}

/* The greatest class first. */
static int by_class(const void *left, const void *right) {
    const dv_item_class *a = left, *b = right;
    return a->class != b->class ? (int)b->class - (int)a->class : by_item(left, right);
}

/* ---- printing ---- */

static const char end[] = "]}", group_end[] = "]]";

/* A text that is being printed. */
typedef struct {
    char *text;
    size_t used;
} printed;

/* Appends, if all of it fits, and `spare` bytes after it. */
__attribute__((format(printf, 3, 4))) static bool put(printed *to, size_t spare, const char *format, ...) {
    va_list arguments;
    size_t room = DV_LOAD_REPORT_BYTES_MAX + 1 - to->used;
    va_start(arguments, format);
    int bytes = vsnprintf(to->text + to->used, room, format, arguments);
    va_end(arguments);
    assert(bytes >= 0);
    if ((size_t)bytes + spare >= room) {
        to->text[to->used] = '\0';
        return false;
    }
    to->used += (size_t)bytes;
    return true;
}

static void put_items(printed *to, const dv_item_class *items, size_t count) {
    const size_t spare = sizeof group_end - 1 + sizeof end - 1;
    bool is_open = false;
    for (size_t i = 0; i < count; i++) {
        bool joins = i > 0 && items[i].class == items[i - 1].class;
        bool fits = joins ? put(to, spare, ",%" PRIu32, items[i].item - items[i - 1].item)
                          : put(to, spare, "%s[%u,[%" PRIu32, is_open ? "]]," : "", items[i].class, items[i].item);
        if (!fits) break;
        is_open = true;
    }
    if (is_open) put(to, 0, "%s", group_end);
}

char *dv_load_report_print(const dv_load_report *report) {
    dv_item_class *sorted = calloc(report->count + 1, sizeof *sorted);
    printed to = {.text = malloc(DV_LOAD_REPORT_BYTES_MAX + 1)};
    if (sorted != NULL && to.text != NULL) {
        for (size_t i = 0; i < report->count; i++) sorted[i] = report->items[i];
        if (report->count > 0) qsort(sorted, report->count, sizeof *sorted, by_class);
        put(&to, 0,
            "{\"v\":%d,\"unit\":\"%s\",\"total\":%u,\"set\":{\"count\":%zu,\"crc\":\"%08" PRIx32
            "\",\"hash\":\"%016" PRIx64 "\"},\"classes\":[",
            DV_LOAD_REPORT_VERSION, report->unit, report->total, report->set_count, report->set_crc, report->set_hash);
        put_items(&to, sorted, report->count);
        put(&to, 0, "%s", end);
        char *fitted = realloc(to.text, to.used + 1);
        if (fitted != NULL) to.text = fitted;
    } else {
        free(to.text);
        to.text = NULL;
    }
    free(sorted);
    return to.text;
}

/* ---- reading ---- */

static uint8_t take_class(dv_plan_json *j) {
    return (uint8_t)dv_plan_json_integer(j, DV_CLASS_IDLE, DV_CLASS_MAX);
}

static void add_item(dv_plan_json *j, dv_load_report *report, int64_t item, uint8_t class) {
    if (item >= DV_PLAN_ITEMS_MAX) dv_plan_json_fail(j, "has items that are none");
    void *larger = j->error == 0 ? dv_plan_with_room(j, report->items, report->count, sizeof *report->items) : NULL;
    if (larger == NULL) return;
    report->items = larger;
    report->items[report->count++] = (dv_item_class){.item = (uint32_t)item, .class = class};
}

/* Takes a list of the items of one class: the first index, then the steps from each to the next. */
static void take_steps(dv_plan_json *j, dv_load_report *report, uint8_t class) {
    size_t before = report->count;
    int64_t item = 0;
    for (bool begun = false; dv_plan_json_element(j, &begun);) {
        item += dv_plan_json_integer(j, report->count > before, DV_PLAN_ITEMS_MAX - 1);
        add_item(j, report, item, class);
    }
    if (report->count == before) dv_plan_json_fail(j, "has a class without items");
}

static void take_classes(dv_plan_json *j, dv_load_report *report) {
    for (bool begun = false; dv_plan_json_element(j, &begun);) {
        bool inner = false;
        dv_plan_json_element(j, &inner);
        uint8_t class = take_class(j);
        if (!dv_plan_json_element(j, &inner)) dv_plan_json_fail(j, "has a class without its items");
        take_steps(j, report, class);
        if (dv_plan_json_element(j, &inner)) dv_plan_json_fail(j, "tells too much of a class");
    }
}

static void take_unit(dv_plan_json *j, char unit[DV_LOAD_UNIT_BYTES_MAX + 1]) {
    size_t bytes;
    const char *text = dv_plan_json_plain(j, DV_LOAD_UNIT_BYTES_MAX, &bytes);
    if (text == NULL) return;
    memcpy(unit, text, bytes);
    unit[bytes] = '\0';
    if (strlen(unit) != bytes || !dv_load_unit_is_good(unit)) dv_plan_json_fail(j, "has a unit that is none");
}

/* The set may come last in the text. */
static void check_items(dv_plan_json *j, dv_load_report *report) {
    if (report->count == 0) return;
    qsort(report->items, report->count, sizeof *report->items, by_item);
    for (size_t i = 1; i < report->count; i++) {
        if (report->items[i - 1].item == report->items[i].item) dv_plan_json_fail(j, "has an item twice");
    }
    if (report->items[report->count - 1].item >= report->set_count) dv_plan_json_fail(j, "has items that are none");
}

static void take_field(dv_plan_json *j, dv_load_report *report, int field) {
    switch (field) {
    case 0: dv_plan_json_integer(j, DV_LOAD_REPORT_VERSION, DV_LOAD_REPORT_VERSION); break;
    case 1: take_unit(j, report->unit); break;
    case 2: report->total = take_class(j); break;
    case 3: dv_plan_take_set(j, &report->set_count, &report->set_crc, &report->set_hash); break;
    default: take_classes(j, report); break;
    }
}

int dv_load_report_parse(dv_load_report *out, const char *text, size_t bytes, dv_plan_fault *fault) {
    static const char *const names[] = {"v", "unit", "total", "set", "classes"};
    dv_plan_json_fields fields = {.names = names, .count = sizeof names / sizeof names[0]};
    dv_plan_json j;
    dv_plan_json_begin(&j, text, bytes);
    *out = (dv_load_report){0};
    if (bytes > DV_LOAD_REPORT_BYTES_MAX) dv_plan_json_fail(&j, "is too long");
    else if (dv_plan_is_newer(&j, DV_LOAD_REPORT_VERSION)) dv_plan_json_fail(&j, "is of a later release");
    for (int field; (field = dv_plan_json_field(&j, &fields)) >= 0;) take_field(&j, out, field);
    if (dv_plan_json_end(&j)) check_items(&j, out);
    if (j.error != 0) dv_load_report_clear(out);
    return dv_plan_fault_tell(&j, fault);
}
