/* The loads of a plan's items: docs/protocol.md, D49. SPDX-License-Identifier: Apache-2.0 */
#include "plan/loads.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "divvy/error.h"
#include "plan/growing.h"
#include "plan/json.h"

/* ---- classes ---- */

double dv_class_size(uint8_t load_class) {
    static const double quarters[] = {1.0, 1.189207115002721, 1.4142135623730951, 1.681792830507429};
    if (load_class == DV_CLASS_NONE) return -1;
    if (load_class == DV_CLASS_IDLE) return 0;
    int octaves = load_class / 4 - DV_CLASS_ONE / 4;
    double size = quarters[load_class % 4];
    for (; octaves > 0; octaves--) size *= 2;
    for (; octaves < 0; octaves++) size /= 2;
    return size;
}

/* The class whose size is nearest by ratio: a border lies an eighth of an octave above a size. */
uint8_t dv_class_of(double load) {
    static const double eighth = 1.0905077326652577;
    if (!(load >= 0)) return DV_CLASS_NONE;
    uint8_t low = 1, high = DV_CLASS_MAX;
    if (load < dv_class_size(low) / eighth) return DV_CLASS_IDLE;
    while (low < high) {
        uint8_t middle = (uint8_t)(low + (high - low) / 2);
        if (load < dv_class_size(middle) * eighth) high = middle;
        else low = (uint8_t)(middle + 1);
    }
    return low;
}

/* ---- the object ---- */

dv_loads *dv_loads_make(const char *unit, size_t count) {
    assert(dv_load_unit_is_good(unit));
    dv_loads *loads = calloc(1, sizeof *loads);
    if (loads == NULL) return NULL;
    loads->references = 1;
    loads->classes = malloc(count + 1);
    if (loads->classes == NULL) {
        free(loads);
        return NULL;
    }
    strcpy(loads->unit, unit);
    loads->count = count;
    memset(loads->classes, DV_CLASS_NONE, count + 1);
    return loads;
}

dv_loads *dv_loads_ref(dv_loads *loads) {
    if (loads == NULL) return NULL;
    assert(loads->references > 0);
    loads->references++;
    return loads;
}

void dv_loads_unref(dv_loads *loads) {
    assert(loads == NULL || loads->references > 0);
    if (loads == NULL || --loads->references > 0) return;
    for (size_t g = 0; g < loads->giver_count; g++) {
        free(loads->givers[g].from);
        free(loads->givers[g].items);
    }
    free(loads->givers);
    free(loads->classes);
    free(loads);
}

static bool givers_equal(const dv_load_giver *a, const dv_load_giver *b) {
    return a->permille == b->permille && a->count == b->count && strcmp(a->from, b->from) == 0 &&
           memcmp(a->items, b->items, a->count * sizeof *a->items) == 0;
}

bool dv_loads_same_givers(const dv_loads *a, const dv_loads *b) {
    size_t count = a != NULL ? a->giver_count : 0;
    bool same = count == (b != NULL ? b->giver_count : 0);
    for (size_t g = 0; same && g < count; g++) same = givers_equal(&a->givers[g], &b->givers[g]);
    return same;
}

bool dv_loads_equal(const dv_loads *a, const dv_loads *b) {
    if (a == b || a == NULL || b == NULL) return a == b;
    return a->count == b->count && strcmp(a->unit, b->unit) == 0 && memcmp(a->classes, b->classes, a->count) == 0 &&
           dv_loads_same_givers(a, b);
}

bool dv_loads_add_giver(dv_loads *loads, const char *from, uint32_t permille, const uint32_t *items, size_t count) {
    assert(loads->references == 1 && count > 0);
    dv_load_giver *givers = realloc(loads->givers, (loads->giver_count + 1) * sizeof *givers);
    if (givers == NULL) return false;
    loads->givers = givers;
    dv_load_giver giver = {.from = strdup(from),
                           .permille = permille < DV_LOAD_PERMILLE_MAX ? permille : DV_LOAD_PERMILLE_MAX,
                           .items = malloc(count * sizeof *items),
                           .count = count};
    if (giver.from == NULL || giver.items == NULL) {
        free(giver.from);
        free(giver.items);
        return false;
    }
    memcpy(giver.items, items, count * sizeof *items);
    givers[loads->giver_count++] = giver;
    return true;
}

bool dv_load_unit_is_good(const char *unit) {
    size_t bytes = strlen(unit);
    for (size_t i = 0; i < bytes; i++) {
        if (!dv_is_alphanumeric(unit[i]) && strchr("_/%.-", unit[i]) == NULL) return false;
    }
    return bytes > 0 && bytes <= DV_LOAD_UNIT_BYTES_MAX;
}

/* ---- the text ---- */

int dv_loads_print(dv_plan_text *out, const dv_loads *loads) {
    static const char digits[] = "0123456789abcdef";
    dv_growing g = {0};
    dv_grow_format(&g, "{\"unit\":\"%s\",\"classes\":\"", loads->unit);
    char *to = dv_grow_room(&g, 2 * loads->count);
    for (size_t i = 0; to != NULL && i < loads->count; i++) {
        *to++ = digits[loads->classes[i] >> 4];
        *to++ = digits[loads->classes[i] & 0xf];
    }
    if (to != NULL) g.count += 2 * loads->count;
    dv_grow_text(&g, "\",\"moved\":[");
    for (size_t n = 0; n < loads->giver_count; n++) {
        const dv_load_giver *giver = &loads->givers[n];
        dv_grow_text(&g, n > 0 ? ",[" : "[");
        dv_grow_string(&g, giver->from);
        dv_grow_format(&g, ",%" PRIu32, giver->permille);
        for (size_t i = 0; i < giver->count; i++) dv_grow_format(&g, ",%" PRIu32, giver->items[i]);
        dv_grow_text(&g, "]");
    }
    dv_grow_text(&g, "]}");
    return dv_grown(out, &g);
}

static void take_unit(dv_plan_json *j, char *unit) {
    size_t bytes;
    const char *text = dv_plan_json_plain(j, DV_LOAD_UNIT_BYTES_MAX, &bytes);
    if (text == NULL) return;
    memcpy(unit, text, bytes);
    unit[bytes] = '\0';
    if (!dv_load_unit_is_good(unit)) dv_plan_json_fail(j, "has something else where a unit should be");
}

static void take_classes(dv_plan_json *j, dv_loads *loads) {
    size_t bytes;
    const char *text = dv_plan_json_plain(j, SIZE_MAX, &bytes);
    if (text == NULL) return;
    if (bytes != 2 * loads->count) {
        dv_plan_json_fail(j, "has another number of loads than of items");
        return;
    }
    for (size_t i = 0; i < loads->count; i++) {
        int load = dv_hex_byte(text + 2 * i);
        if (load < 0) dv_plan_json_fail(j, "has a load that is no number");
        else loads->classes[i] = (uint8_t)load;
    }
}

/* A list of the giver, its load, and its items. */
static void take_giver(dv_plan_json *j, dv_loads *loads) {
    bool begun = false;
    dv_load_giver giver = {0};
    int64_t last = -1;
    if (!dv_plan_json_element(j, &begun)) dv_plan_json_fail(j, "does not tell who gave items");
    giver.from = dv_plan_json_string(j, 1, DV_PLAN_KEY_BYTES_MAX);
    if (!dv_plan_json_element(j, &begun)) dv_plan_json_fail(j, "does not tell a giver's load");
    giver.permille = (uint32_t)dv_plan_json_integer(j, 0, DV_LOAD_PERMILLE_MAX);
    while (dv_plan_json_element(j, &begun)) {
        int64_t item = dv_plan_json_integer(j, 0, (int64_t)loads->count - 1);
        if (item <= last) dv_plan_json_fail(j, "has given items that are not in order");
        void *items = j->error == 0 ? dv_plan_with_room(j, giver.items, giver.count, sizeof *giver.items) : NULL;
        if (items == NULL) break;
        giver.items = items;
        giver.items[giver.count++] = (uint32_t)item;
        last = item;
    }
    if (giver.count == 0) dv_plan_json_fail(j, "has a giver of no items");
    if (j->error == 0 && !dv_loads_add_giver(loads, giver.from, giver.permille, giver.items, giver.count))
        dv_plan_json_fail_memory(j);
    free(giver.from);
    free(giver.items);
}

static void take_givers(dv_plan_json *j, dv_loads *loads) {
    for (bool begun = false; dv_plan_json_element(j, &begun);) {
        if (loads->giver_count == DV_PLAN_SLOTS) dv_plan_json_fail(j, "has too many givers");
        take_giver(j, loads);
    }
}

int dv_loads_parse(dv_loads **out, size_t count, const char *text, size_t bytes, dv_plan_fault *fault) {
    static const char *const names[] = {"unit", "classes", "moved"};
    dv_plan_json_fields fields = {.names = names, .count = sizeof names / sizeof names[0]};
    dv_plan_json j;
    dv_plan_json_begin(&j, text, bytes);
    *out = NULL;
    dv_loads *loads = count <= bytes / 2 ? dv_loads_make("load", count) : NULL;
    if (count > bytes / 2) dv_plan_json_fail(&j, "is too short for its number of items");
    else if (loads == NULL) dv_plan_json_fail_memory(&j);
    for (int field; loads != NULL && (field = dv_plan_json_field(&j, &fields)) >= 0;) {
        if (field == 0) take_unit(&j, loads->unit);
        else if (field == 1) take_classes(&j, loads);
        else take_givers(&j, loads);
    }
    assert(loads == NULL || loads->references == 1);
    if (dv_plan_json_end(&j)) *out = loads;
    else dv_loads_unref(loads);
    return dv_plan_fault_tell(&j, fault);
}
