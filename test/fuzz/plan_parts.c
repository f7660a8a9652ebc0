/* Fuzzes what the root of a sticky plan names: items, a base, deltas. SPDX-License-Identifier: Apache-2.0
 *
 * An input is three texts, a NUL between them: items, a base of those, a delta to that. Where one is not to be read a
 * good one stands in for it, so that the next is looked at all the same. */
#include <cjson/cJSON.h>

#include "base/padded.h"
#include "divvy/error.h"
#include "fuzz.h"
#include "plan/text.h"

static bool is_fault(int error, const dv_plan_fault *fault) {
    return error == DIVVY_EPROTO && fault->why;
}

/* The set as another reader of JSON sees it; NULL: not even that one sees a list of names. */
static dv_plan_set *guess_items(const char *text, size_t bytes) {
    char *padded = dv_padded_copy(text, bytes);
    cJSON *json = padded ? cJSON_ParseWithLength(padded, bytes) : NULL, *item;
    size_t count = 0;
    const char **names = calloc((size_t)(cJSON_IsArray(json) ? cJSON_GetArraySize(json) : 0) + 1, sizeof *names);
    dv_plan_set *set = NULL;
    if (!padded || !names) abort();
    bool all = cJSON_IsArray(json) && json->child;
    cJSON_ArrayForEach(item, json) {
        all = all && cJSON_IsString(item) && (!count || strcmp(names[count - 1], item->valuestring) < 0);
        if (all) names[count++] = item->valuestring;
    }
    if (all) set = dv_plan_set_make(names, count);
    free(names);
    free(padded);
    cJSON_Delete(json);
    return set;
}

/* The items of the text; where there are none, others. */
static dv_plan_set *read_items(const char *text, size_t bytes) {
    static const char *const names[] = {"a", "b", "c", "d"};
    dv_plan_set *guess = guess_items(text, bytes), *set = NULL;
    dv_plan_root root = {.set_count = 1};
    dv_plan_fault fault = {0};
    if (guess) root = (dv_plan_root){.set_count = guess->count, .set_crc = guess->crc, .set_hash = guess->hash};
    int error = dv_plan_items_parse(&set, &root, text, bytes, &fault);
    FUZZ_CHECK(error == 0 ? guess != NULL : is_fault(error, &fault));
    if (error == 0) FUZZ_CHECK(dv_plan_set_equal(set, guess));
    if (error != 0) set = dv_plan_set_make(names, sizeof names / sizeof *names);
    dv_plan_set_unref(guess);
    if (!set) abort();
    return set;
}

/* A plan that can be written can be read, and is the same. */
static void check_base(const dv_plan *plan) {
    dv_plan_text text, again;
    dv_plan *read;
    FUZZ_CHECK(dv_plan_print_base(&text, plan) == 0);
    FUZZ_CHECK(dv_plan_from_base(&read, plan->set, text.bytes, text.count, NULL) == 0);
    FUZZ_CHECK(dv_plan_print_base(&again, read) == 0);
    FUZZ_CHECK(again.count == text.count && memcmp(again.bytes, text.bytes, text.count) == 0);
    dv_plan_free(read);
    free(text.bytes);
    free(again.bytes);
}

/* Makes a plan of two members that share the items. Each third item has no owner. */
static dv_plan *make_plan(dv_plan_set *set) {
    static char none[] = "", zone[] = "z", keys[2][4] = {"n1", "n3"};
    dv_plan *plan = dv_plan_make(dv_plan_set_ref(set));
    if (!plan) abort();
    for (uint32_t i = 0; i < 2; i++) {
        dv_plan_member member = {
            .slot = 3 * i, .is_static = i, .key = keys[i], .weight = 100, .zone = i ? zone : none, .leaving = none};
        if (!dv_plan_add_member(plan, &member)) abort();
    }
    for (size_t i = 0; i < set->count; i++) plan->owners[i] = i % 3 == 2 ? DV_PLAN_NO_SLOT : (uint32_t)(i % 3) * 3;
    return plan;
}

/* The plan of the text; where there is none, another one. */
static dv_plan *read_base(dv_plan_set *set, const char *text, size_t bytes) {
    dv_plan *plan = NULL;
    dv_plan_fault fault = {0};
    int error = dv_plan_from_base(&plan, set, text, bytes, &fault);
    FUZZ_CHECK(error == 0 || is_fault(error, &fault));
    if (error != 0) plan = make_plan(set);
    check_base(plan);
    return plan;
}

/* A delta leads to a plan; what is printed of the way between the two leads there as well. */
static void check_delta(const dv_plan *plan, const char *text, size_t bytes) {
    dv_plan *to = dv_plan_copy(plan), *by = dv_plan_copy(plan);
    dv_plan_fault fault = {0};
    if (!to || !by) abort();
    int error = dv_plan_apply(to, text, bytes, &fault);
    FUZZ_CHECK(error == 0 || is_fault(error, &fault));
    if (error == 0) {
        dv_plan_text delta;
        uint32_t sum, by_sum;
        check_base(to);
        FUZZ_CHECK(dv_plan_print_delta(&delta, plan, to) == 0);
        FUZZ_CHECK(dv_plan_apply(by, delta.bytes, delta.count, &fault) == 0);
        FUZZ_CHECK(dv_plan_sum(&sum, to) == 0 && dv_plan_sum(&by_sum, by) == 0 && sum == by_sum);
        free(delta.bytes);
    }
    dv_plan_free(to);
    dv_plan_free(by);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_input in = fuzz_begin(data, bytes);
    char *items = fuzz_text(&in, '\0'), *base = fuzz_text(&in, '\0');
    size_t delta_bytes = (size_t)(in.end - in.at);
    char *delta = fuzz_copy(in.at, delta_bytes);
    dv_plan_set *set = read_items(items, strlen(items));
    dv_plan *plan = read_base(set, base, strlen(base));
    check_delta(plan, delta, delta_bytes);
    dv_plan_free(plan);
    dv_plan_set_unref(set);
    free(items);
    free(base);
    free(delta);
    return 0;
}
