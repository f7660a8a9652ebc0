/* Fuzzes the roll of a party, the data of P/party. SPDX-License-Identifier: Apache-2.0 */
#include "plan/roll.h"
#include "divvy/error.h"
#include "fuzz.h"

/* Whatever the steps say, following them ends with so many sorted names, of this sum, or with an error. */
static void check_followed(const dv_roll *roll, const dv_roll_party *from) {
    char **names = NULL;
    int error = dv_roll_follow(roll, from, &names);
    FUZZ_CHECK(error == 0 || error == DIVVY_ENOENT || error == DIVVY_EPROTO);
    FUZZ_CHECK((error == 0) == (names != NULL));
    if (error) return;
    FUZZ_CHECK(dv_roll_sum((const char *const *)(uintptr_t)names, roll->count) == roll->sum);
    for (size_t i = 1; i < roll->count; i++) FUZZ_CHECK(strcmp(names[i - 1], names[i]) < 0);
    /* The party that it led to is led to by the roll of the step itself. */
    dv_plan_text text;
    dv_roll again;
    const dv_roll_party to = {(const char *const *)(uintptr_t)names, roll->count, roll->pzxid};
    bool is_step = from->pzxid < to.pzxid;
    FUZZ_CHECK(dv_roll_print(&text, NULL, is_step ? from : NULL, &to, roll->place) == 0);
    FUZZ_CHECK(dv_roll_parse(&again, text.bytes, text.count, NULL) == 0);
    FUZZ_CHECK(again.pzxid == roll->pzxid && again.count == roll->count && again.sum == roll->sum);
    free(text.bytes);
    dv_roll_clear(&again);
    free(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char *const some[] = {"a", "b", "d"};
    char *text = fuzz_copy(data, bytes);
    dv_roll roll;
    dv_plan_fault fault = {0};
    int error = dv_roll_parse(&roll, text, bytes, &fault);
    FUZZ_CHECK(error == 0 || error == DIVVY_EPROTO || error == DIVVY_EUNSUPPORTED);
    if (error == 0) {
        FUZZ_CHECK(roll.pzxid > 0);
        for (size_t i = 0; i <= roll.step_count; i++) {
            int64_t pzxid = i < roll.step_count ? roll.steps[i].from : roll.pzxid;
            const dv_roll_party none = {some, 0, pzxid}, three = {some, 3, pzxid};
            check_followed(&roll, &none);
            check_followed(&roll, &three);
        }
        dv_roll_clear(&roll);
    } else {
        FUZZ_CHECK(error == DIVVY_EUNSUPPORTED || (fault.why && fault.at <= bytes));
        FUZZ_CHECK(!roll.steps && !roll.names && !roll.block);
    }
    free(text);
    return 0;
}
