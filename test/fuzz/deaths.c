/* Fuzzes what stands beside a plan of the members that died. SPDX-License-Identifier: Apache-2.0 */
#include "plan/deaths.h"
#include "base/utf8.h"
#include "divvy/error.h"
#include "fuzz.h"

enum { WRITTEN_MS = 17 };

static void check_deaths(const dv_plan_deaths *deaths) {
    FUZZ_CHECK(deaths->count <= DV_PLAN_DEATHS_MAX);
    for (size_t n = 0; n < deaths->count; n++) {
        const dv_plan_death *death = &deaths->deaths[n];
        FUZZ_CHECK(strlen(death->name) <= DV_PLAN_NAME_BYTES_MAX && dv_is_utf8(death->name));
        FUZZ_CHECK(death->at_ms >= 0 && death->seen_ms >= 0);
        FUZZ_CHECK(dv_plan_deaths_of(deaths, death->name) >= death);
    }
    if (deaths->count > 0) FUZZ_CHECK(deaths->deaths[deaths->count - 1].at_ms > 0);
}

/* What was read is printed within the bound, and read again: the newest as they were. */
static void check_printed(const dv_plan_deaths *deaths) {
    static dv_plan_deaths again;
    dv_plan_text printed;
    FUZZ_CHECK(dv_plan_print_deaths(&printed, deaths) == 0 && printed.count <= DV_PLAN_DEATHS_BYTES_MAX);
    FUZZ_CHECK(dv_plan_deaths_parse(&again, printed.bytes, printed.count, 0, NULL) == 0);
    FUZZ_CHECK(again.count <= deaths->count && (again.count > 0) == (deaths->count > 0));
    for (size_t n = 0; n < again.count; n++) {
        const dv_plan_death *a = &again.deaths[n], *b = &deaths->deaths[deaths->count - again.count + n];
        FUZZ_CHECK(strcmp(a->name, b->name) == 0 && a->session == b->session && a->at_ms == b->at_ms);
        FUZZ_CHECK(a->seen_ms == b->seen_ms);
    }
    free(printed.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static dv_plan_deaths deaths;
    char *text = fuzz_copy(data, bytes);
    dv_plan_fault fault = {0};
    int error = dv_plan_deaths_parse(&deaths, text, bytes, WRITTEN_MS, &fault);
    FUZZ_CHECK(error == 0 || error == DIVVY_EPROTO);
    if (error == 0) {
        check_deaths(&deaths);
        check_printed(&deaths);
    } else {
        FUZZ_CHECK(deaths.count == 0 && fault.why && fault.at <= bytes);
    }
    free(text);
    return 0;
}
