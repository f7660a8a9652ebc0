/* Fuzzes the lines of loads that a command prints. SPDX-License-Identifier: Apache-2.0 */
#include "divvy/load_lines.h"
#include "fuzz.h"

#include <math.h>

static const char *names[] = {"", "a", "a ", "a b", "b", "item-1", "\xc3\xa9"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    enum { NAMES = sizeof names / sizeof *names };
    const dv_item_list asked = {names + 1, NAMES - 1};
    char *text = fuzz_copy(data, bytes);
    dv_load_lines lines;
    FUZZ_CHECK(dv_load_lines_read(&lines, &asked, text, bytes) == 0);
    size_t without = 0, bad = 0;
    for (size_t i = 0; i < asked.count; i++) {
        FUZZ_CHECK(isfinite(lines.loads[i]) && (lines.loads[i] >= 0 || lines.loads[i] == -1));
        without += lines.loads[i] < 0;
    }
    for (size_t kind = 0; kind < DV_LOAD_LINE_KINDS; kind++) {
        if (lines.bad[kind].count == 0) continue;
        bad += lines.bad[kind].count;
        FUZZ_CHECK(kind != DV_LOAD_LINE_GOOD && lines.bad[kind].item < asked.count);
        FUZZ_CHECK(strlen(lines.bad[kind].number) <= DV_LOAD_NUMBER_BYTES && lines.bad[kind].bytes <= bytes);
    }
    /* An item without a load has no line, or a bad one. */
    FUZZ_CHECK(lines.missing <= without && without <= lines.missing + bad);
    FUZZ_CHECK(lines.missing == 0 || lines.loads[lines.first_missing] < 0);
    dv_load_lines_free(&lines);
    free(text);
    return 0;
}
