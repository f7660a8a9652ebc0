/* The wishes of a pool's operator: docs/protocol.md, D48. SPDX-License-Identifier: Apache-2.0 */
#include "plan/wish.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "divvy/error.h"
#include "plan/growing.h"
#include "plan/json.h"
#include "znode/path.h"

const char *dv_wish_kind_text(dv_wish_kind kind) {
    static const char *const texts[DV_WISH_KINDS] = {"move", "need", "option", "pause", "pin"};
    assert(kind < DV_WISH_KINDS);
    return texts[kind];
}

/* ---- one wish ---- */

static void wish_clear(dv_wish *wish) {
    const char *const texts[] = {wish->name, wish->value, wish->by, wish->why};
    for (size_t i = 0; i < 4; i++) free((void *)(uintptr_t)texts[i]);
    *wish = (dv_wish){0};
}

static bool wish_copy(dv_wish *to, const dv_wish *from) {
    *to = (dv_wish){.kind = from->kind,
                    .name = strdup(from->name),
                    .value = strdup(from->value),
                    .by = strdup(from->by),
                    .why = strdup(from->why),
                    .at_ms = from->at_ms};
    if (to->name != NULL && to->value != NULL && to->by != NULL && to->why != NULL) return true;
    wish_clear(to);
    return false;
}

static int compare(dv_wish_kind kind, const char *name, const dv_wish *wish) {
    return kind != wish->kind ? (kind < wish->kind ? -1 : 1) : strcmp(name, wish->name);
}

static bool wish_equal(const dv_wish *a, const dv_wish *b) {
    return compare(a->kind, a->name, b) == 0 && a->at_ms == b->at_ms && strcmp(a->value, b->value) == 0 &&
           strcmp(a->by, b->by) == 0 && strcmp(a->why, b->why) == 0;
}

const char *dv_wish_check(const dv_wish *wish) {
    if (wish->name[0] == '\0') return "is empty";
    if (strlen(wish->name) > DV_WISH_NAME_BYTES_MAX || strlen(wish->value) > DV_WISH_VALUE_BYTES_MAX ||
        strlen(wish->by) > DV_WISH_BY_BYTES_MAX || strlen(wish->why) > DV_WISH_WHY_BYTES_MAX)
        return "comes with too long a text";
    if (!dv_is_utf8(wish->value) || !dv_is_utf8(wish->by) || !dv_is_utf8(wish->why))
        return "comes with a text that is no UTF-8";
    bool says_value = wish->kind == DV_WISH_PAUSE || wish->value[0] != '\0';
    return says_value && wish->at_ms >= 0 && wish->at_ms <= DV_PLAN_INTEGER_MAX ? NULL : "comes with nothing asked";
}

/* ---- all of them ---- */

static dv_wishes *make(size_t room) {
    dv_wishes *wishes = calloc(1, sizeof *wishes);
    if (wishes == NULL) return NULL;
    wishes->references = 1;
    wishes->list = calloc(room + 1, sizeof *wishes->list);
    if (wishes->list != NULL) return wishes;
    free(wishes);
    return NULL;
}

dv_wishes *dv_wishes_ref(dv_wishes *wishes) {
    if (wishes == NULL) return NULL;
    assert(wishes->references > 0);
    wishes->references++;
    return wishes;
}

void dv_wishes_unref(dv_wishes *wishes) {
    assert(wishes == NULL || wishes->references > 0);
    if (wishes == NULL || --wishes->references > 0) return;
    for (size_t i = 0; i < wishes->count; i++) wish_clear(&wishes->list[i]);
    free(wishes->list);
    free(wishes);
}

bool dv_wishes_equal(const dv_wishes *a, const dv_wishes *b) {
    if (a == b || a == NULL || b == NULL) return a == b;
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++) equal = wish_equal(&a->list[i], &b->list[i]);
    return equal;
}

/* Returns where a wish of that kind and name stands, or would. */
static size_t place_of(const dv_wishes *wishes, dv_wish_kind kind, const char *name) {
    size_t low = 0, high = wishes != NULL ? wishes->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(kind, name, &wishes->list[middle]) > 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

const dv_wish *dv_wishes_find(const dv_wishes *wishes, dv_wish_kind kind, const char *name) {
    size_t at = place_of(wishes, kind, name);
    bool found = wishes != NULL && at < wishes->count && compare(kind, name, &wishes->list[at]) == 0;
    return found ? &wishes->list[at] : NULL;
}

/* Returns the wish that goes where another comes: of its kind and name, or of the opposite kind. */
static bool gives_way(const dv_wish *old, const dv_wish *wish, bool undo) {
    if (strcmp(old->name, wish->name) != 0) return false;
    bool places = wish->kind == DV_WISH_PIN || wish->kind == DV_WISH_MOVE;
    bool placed = old->kind == DV_WISH_PIN || old->kind == DV_WISH_MOVE;
    return old->kind == wish->kind || (!undo && places && placed);
}

int dv_wishes_change(dv_wishes **out, dv_wishes *wishes, const dv_wish_event *event) {
    const dv_wish *wish = &event->wish, *old = dv_wishes_find(wishes, wish->kind, wish->name);
    size_t count = wishes != NULL ? wishes->count : 0;
    bool stands = old != NULL && strcmp(old->value, wish->value) == 0;
    if (event->undo ? old == NULL : stands) {
        *out = dv_wishes_ref(wishes);
        return 0;
    }
    *out = NULL;
    if (!event->undo && old == NULL && count >= DV_WISHES_MAX) return DIVVY_ELIMIT;
    dv_wishes *next = make(count + 1);
    bool complete = next != NULL, added = event->undo;
    for (size_t i = 0; complete && i <= count; i++) {
        bool here = !added && (i == count || compare(wish->kind, wish->name, &wishes->list[i]) <= 0);
        if (here) complete = wish_copy(&next->list[next->count], wish);
        if (here && complete) next->count++;
        added = added || here;
        if (!complete || i == count || gives_way(&wishes->list[i], wish, event->undo)) continue;
        complete = wish_copy(&next->list[next->count], &wishes->list[i]);
        if (complete) next->count++;
    }
    if (complete) *out = next;
    else dv_wishes_unref(next);
    return complete ? 0 : DIVVY_ENOMEM;
}

/* A prefix is shorter than its text by the star, and a longer prefix wins. */
const char *dv_wishes_tag(const dv_wishes *wishes, const char *item) {
    const dv_wish *found = dv_wishes_find(wishes, DV_WISH_NEED, item);
    size_t longest = 0;
    if (found != NULL || wishes == NULL) return found != NULL ? found->value : NULL;
    for (size_t i = place_of(wishes, DV_WISH_NEED, ""); i < wishes->count; i++) {
        const dv_wish *wish = &wishes->list[i];
        if (wish->kind != DV_WISH_NEED) break;
        size_t bytes = strlen(wish->name);
        if (wish->name[bytes - 1] != '*' || strncmp(wish->name, item, bytes - 1) != 0 || bytes <= longest) continue;
        longest = bytes;
        found = wish;
    }
    return found != NULL ? found->value : NULL;
}

bool dv_wishes_need_tags(const dv_wishes *wishes) {
    size_t at = place_of(wishes, DV_WISH_NEED, "");
    return wishes != NULL && at < wishes->count && wishes->list[at].kind == DV_WISH_NEED;
}

/* Reads digits, and perhaps a point and digits. Returns whether that is all of the text. No locale has a say. */
static bool read_number(const char *text, double *number) {
    const char *at = text;
    *number = 0;
    for (; dv_is_digit(*at); at++) *number = *number * 10 + (*at - '0');
    bool good = at > text;
    if (*at == '.') {
        double unit = 1;
        const char *point = at++;
        for (; dv_is_digit(*at); at++) *number += (*at - '0') * (unit /= 10);
        good = good && at > point + 1;
    }
    return good && *at == '\0' && strlen(text) <= 20;
}

double dv_wishes_number(const dv_wishes *wishes, const char *option, double otherwise, double most) {
    const dv_wish *wish = dv_wishes_find(wishes, DV_WISH_OPTION, option);
    double number;
    if (wish == NULL || !read_number(wish->value, &number)) return otherwise;
    return number < most ? number : most;
}

/* ---- the text ---- */

int dv_wishes_print(dv_plan_text *out, const dv_wishes *wishes) {
    dv_growing g = {0};
    dv_grow_text(&g, "[");
    for (size_t i = 0; i < wishes->count; i++) {
        const dv_wish *wish = &wishes->list[i];
        dv_grow_format(&g, "%s{\"kind\":\"%s\",\"name\":", i > 0 ? "," : "", dv_wish_kind_text(wish->kind));
        dv_grow_item(&g, wish->name);
        dv_grow_text(&g, ",\"value\":");
        dv_grow_string(&g, wish->value);
        dv_grow_text(&g, ",\"by\":");
        dv_grow_string(&g, wish->by);
        dv_grow_format(&g, ",\"at_ms\":%" PRId64 ",\"why\":", wish->at_ms);
        dv_grow_string(&g, wish->why);
        dv_grow_text(&g, "}");
    }
    dv_grow_text(&g, "]");
    return dv_grown(out, &g);
}

static dv_wish_kind take_kind(dv_plan_json *j) {
    size_t bytes;
    const char *text = dv_plan_json_plain(j, 16, &bytes);
    for (int kind = 0; text != NULL && kind < DV_WISH_KINDS; kind++) {
        const char *known = dv_wish_kind_text((dv_wish_kind)kind);
        if (strlen(known) == bytes && memcmp(known, text, bytes) == 0) return (dv_wish_kind)kind;
    }
    dv_plan_json_fail(j, "has a wish of an unknown kind");
    return DV_WISH_PIN;
}

/* D4: a name is accepted only as dv_name_encode() writes it. */
static char *take_name(dv_plan_json *j) {
    char *node = dv_plan_json_string(j, 1, 3 * (size_t)DV_WISH_NAME_BYTES_MAX);
    if (node == NULL || dv_name_is_plain(node)) return node;
    size_t bytes = strlen(node) + 1;
    char *name = malloc(bytes), *again = malloc(bytes);
    if (name == NULL || again == NULL) {
        dv_plan_json_fail_memory(j);
    } else {
        dv_name_decode(node, name, bytes);
        if (dv_name_encode(name, again, bytes) != bytes - 1 || strcmp(again, node) != 0)
            dv_plan_json_fail(j, "has a name that is not encoded as it should be");
    }
    free(again);
    free(node);
    return name;
}

/* Returns whether it is one. */
static bool take_wish(dv_plan_json *j, dv_wish *wish) {
    static const char *const names[] = {"kind", "name", "value", "by", "at_ms", "why"};
    dv_plan_json_fields fields = {.names = names, .count = sizeof names / sizeof names[0]};
    *wish = (dv_wish){0};
    for (int field; (field = dv_plan_json_field(j, &fields)) >= 0;) {
        switch (field) {
        case 0: wish->kind = take_kind(j); break;
        case 1: wish->name = take_name(j); break;
        case 2: wish->value = dv_plan_json_string(j, 0, DV_WISH_VALUE_BYTES_MAX); break;
        case 3: wish->by = dv_plan_json_string(j, 0, DV_WISH_BY_BYTES_MAX); break;
        case 4: wish->at_ms = dv_plan_json_integer(j, 0, DV_PLAN_INTEGER_MAX); break;
        default: wish->why = dv_plan_json_string(j, 0, DV_WISH_WHY_BYTES_MAX); break;
        }
    }
    bool whole = wish->name != NULL && wish->value != NULL && wish->by != NULL && wish->why != NULL;
    bool good = j->error == 0 && whole && dv_wish_check(wish) == NULL;
    if (!good) dv_plan_json_fail(j, "has a wish for nothing");
    return good;
}

int dv_wishes_parse(dv_wishes **out, const char *text, size_t bytes, dv_plan_fault *fault) {
    dv_plan_json j;
    dv_plan_json_begin(&j, text, bytes);
    *out = NULL;
    dv_wishes *wishes = make(0);
    if (wishes == NULL) dv_plan_json_fail_memory(&j);
    for (bool begun = false; wishes != NULL && dv_plan_json_element(&j, &begun);) {
        if (wishes->count == DV_WISHES_MAX) dv_plan_json_fail(&j, "has too many wishes");
        void *list = j.error == 0 ? dv_plan_with_room(&j, wishes->list, wishes->count, sizeof *wishes->list) : NULL;
        if (list == NULL) break;
        wishes->list = list;
        dv_wish *wish = &wishes->list[wishes->count++];
        if (!take_wish(&j, wish)) break;
        if (wishes->count > 1 && compare(wish->kind, wish->name, wish - 1) <= 0)
            dv_plan_json_fail(&j, "has wishes that are not in order");
    }
    if (dv_plan_json_end(&j)) *out = wishes;
    else dv_wishes_unref(wishes);
    return dv_plan_fault_tell(&j, fault);
}
