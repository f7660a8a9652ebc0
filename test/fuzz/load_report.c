/* Fuzzes a member's report of loads, the data of a node below P/loads. SPDX-License-Identifier: Apache-2.0 */
#include "plan/load_report.h"
#include "divvy/error.h"
#include "fuzz.h"

/* What was read is in range and in order, can be written, is no longer than before, and says the same. */
static void check(const dv_load_report *report, size_t bytes) {
    FUZZ_CHECK(dv_load_unit_is_good(report->unit) && report->total <= DV_CLASS_MAX);
    for (size_t i = 0; i < report->count; i++) {
        FUZZ_CHECK(report->items[i].item < report->set_count && report->items[i].class <= DV_CLASS_MAX);
        if (i > 0) FUZZ_CHECK(report->items[i - 1].item < report->items[i].item);
    }
    dv_load_report again;
    char *printed = dv_load_report_print(report);
    FUZZ_CHECK(printed && strlen(printed) <= DV_LOAD_REPORT_BYTES_MAX && strlen(printed) <= bytes);
    FUZZ_CHECK(dv_load_report_parse(&again, printed, strlen(printed), NULL) == 0);
    FUZZ_CHECK(again.count == report->count && again.total == report->total && strcmp(again.unit, report->unit) == 0);
    for (size_t i = 0; i < report->count; i++)
        FUZZ_CHECK(again.items[i].item == report->items[i].item && again.items[i].class == report->items[i].class);
    free(printed);
    dv_load_report_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *text = fuzz_copy(data, bytes);
    dv_load_report report;
    dv_plan_fault fault = {0};
    int error = dv_load_report_parse(&report, text, bytes, &fault);
    FUZZ_CHECK(error == 0 || error == DIVVY_EPROTO);
    if (error == 0) check(&report, bytes);
    else FUZZ_CHECK(fault.why && fault.at <= bytes && !report.items && report.count == 0);
    dv_load_report_clear(&report);
    free(text);
    return 0;
}
