/* Fuzzes the root of a sticky plan, P/plan's data. SPDX-License-Identifier: Apache-2.0 */
#include "divvy/error.h"
#include "fuzz.h"
#include "plan/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *text = fuzz_copy(data, bytes);
    dv_plan_root root, again;
    dv_plan_fault fault = {0};
    int error = dv_plan_root_parse(&root, text, bytes, &fault);
    FUZZ_CHECK(error == 0 || error == DIVVY_EPROTO || error == DIVVY_EUNSUPPORTED);
    if (error == DIVVY_EPROTO) FUZZ_CHECK(fault.why && fault.at <= bytes);
    if (error == 0) {
        dv_plan_text printed;
        error = dv_plan_print_root(&printed, &root);
        FUZZ_CHECK(error == 0 || error == DIVVY_E2BIG);
        if (error == 0) {
            /* A root that was read can be written, and says the same. */
            dv_plan_text twice;
            FUZZ_CHECK(dv_plan_root_parse(&again, printed.bytes, printed.count, NULL) == 0);
            FUZZ_CHECK(dv_plan_print_root(&twice, &again) == 0);
            FUZZ_CHECK(twice.count == printed.count && memcmp(twice.bytes, printed.bytes, printed.count) == 0);
            free(twice.bytes);
            free(printed.bytes);
            dv_plan_root_clear(&again);
        }
        for (size_t i = 0; i < root.items.chunk_count; i++) {
            uint64_t generation;
            FUZZ_CHECK(dv_plan_chunk_parse(root.items.chunks[i].name, &generation));
        }
        dv_plan_root_clear(&root);
    }
    free(text);
    return 0;
}
