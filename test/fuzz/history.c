/* Fuzzes the history beside a plan, the data of its epoch child. SPDX-License-Identifier: Apache-2.0 */
#include "plan/history.h"
#include "base/utf8.h"
#include "divvy/error.h"
#include "fuzz.h"

static void check_named(const dv_plan_named *who) {
    FUZZ_CHECK(who->named <= who->count && who->named <= DV_PLAN_NAMED_MAX && who->count <= DV_PLAN_SLOTS);
    for (size_t n = 0; n < who->named; n++) {
        FUZZ_CHECK(strlen(who->names[n]) <= DV_PLAN_NAME_BYTES_MAX && dv_is_utf8(who->names[n]));
    }
}

static void check_changes(const dv_plan_history *history) {
    FUZZ_CHECK(history->count <= DV_PLAN_CHANGES_MAX);
    for (size_t i = 0; i < history->count; i++) {
        const dv_plan_change *c = &history->changes[i];
        FUZZ_CHECK(c->generation > 0 && c->at_ms >= 0 && c->took_ms >= -1 && c->moved <= DV_PLAN_ITEMS_MAX);
        FUZZ_CHECK(strlen(c->reason) > 0 && strlen(c->reason) <= DV_PLAN_REASON_BYTES_MAX);
        check_named(&c->joined);
        check_named(&c->left);
    }
}

/* What was read is printed within the bound, and read again: as many changes, and the newest as it was. */
static void check_printed(const dv_plan_history *history) {
    static dv_plan_history again;
    dv_plan_text printed, twice;
    FUZZ_CHECK(dv_plan_print_history(&printed, history) == 0 && printed.count <= DV_PLAN_HISTORY_BYTES_MAX);
    FUZZ_CHECK(dv_plan_history_parse(&again, printed.bytes, printed.count, NULL) == 0);
    FUZZ_CHECK(again.count == history->count);
    for (size_t i = 0; i < again.count; i++) FUZZ_CHECK(again.changes[i].generation == history->changes[i].generation);
    FUZZ_CHECK(dv_plan_print_history(&twice, &again) == 0 && twice.count == printed.count);
    FUZZ_CHECK(memcmp(twice.bytes, printed.bytes, twice.count) == 0);
    free(twice.bytes);
    free(printed.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static dv_plan_history history;
    char *text = fuzz_copy(data, bytes);
    dv_plan_fault fault = {0};
    int error = dv_plan_history_parse(&history, text, bytes, &fault);
    FUZZ_CHECK(error == 0 || error == DIVVY_EPROTO);
    if (error == 0) {
        check_changes(&history);
        check_printed(&history);
    } else {
        FUZZ_CHECK(history.count == 0 && fault.why && fault.at <= bytes);
    }
    free(text);
    return 0;
}
