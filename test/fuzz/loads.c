/* Fuzzes the loads of a plan's items. SPDX-License-Identifier: Apache-2.0
 *
 * An input is a byte, how many items there are, and the text. */
#include "plan/loads.h"
#include "divvy/error.h"
#include "fuzz.h"

/* What can be read can be written, and is the same. */
static void check_loads(const dv_loads *loads, size_t count) {
    dv_plan_text text, again;
    dv_loads *read;
    FUZZ_CHECK(loads->count == count && dv_load_unit_is_good(loads->unit));
    for (size_t g = 0; g < loads->giver_count; g++) {
        const dv_load_giver *giver = &loads->givers[g];
        FUZZ_CHECK(giver->count > 0 && giver->permille <= DV_LOAD_PERMILLE_MAX);
        for (size_t i = 0; i < giver->count; i++)
            FUZZ_CHECK(giver->items[i] < count && (i == 0 || giver->items[i - 1] < giver->items[i]));
    }
    FUZZ_CHECK(dv_loads_print(&text, loads) == 0);
    FUZZ_CHECK(dv_loads_parse(&read, count, text.bytes, text.count, NULL) == 0);
    FUZZ_CHECK(dv_loads_equal(loads, read));
    FUZZ_CHECK(dv_loads_print(&again, read) == 0);
    FUZZ_CHECK(again.count == text.count && memcmp(again.bytes, text.bytes, text.count) == 0);
    dv_loads_unref(read);
    free(text.bytes);
    free(again.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_input in = fuzz_begin(data, bytes);
    size_t count = fuzz_byte(&in), text_bytes = (size_t)(in.end - in.at);
    char *text = fuzz_copy(in.at, text_bytes);
    dv_loads *loads = NULL;
    dv_plan_fault fault = {0};
    int error = dv_loads_parse(&loads, count, text, text_bytes, &fault);
    FUZZ_CHECK(error == 0 ? loads != NULL : error == DIVVY_EPROTO && fault.why && !loads);
    if (error == 0) check_loads(loads, count);
    dv_loads_unref(loads);
    free(text);
    return 0;
}
