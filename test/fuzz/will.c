/* Fuzzes the message that a death watch is sent. SPDX-License-Identifier: Apache-2.0 */
#include "client/will.h"
#include "divvy/error.h"
#include "fuzz.h"

static bool same(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* What was parsed and is printed is parsed as the same. */
static void check_again(const dv_will *will, size_t bytes) {
    dv_will again;
    char *printed = malloc(bytes);
    FUZZ_CHECK(printed && dv_will_print(will, printed, bytes) == bytes);
    FUZZ_CHECK(dv_will_parse(&again, printed, bytes) == 0);
    FUZZ_CHECK(again.session_id == will->session_id && again.acl == will->acl);
    FUZZ_CHECK(again.timeout_ms == will->timeout_ms && again.delay_ms == will->delay_ms);
    FUZZ_CHECK(memcmp(again.password, will->password, sizeof again.password) == 0);
    for (int i = 0; i < DV_WILL_TEXTS; i++) FUZZ_CHECK(same(again.texts[i], will->texts[i]));
    FUZZ_CHECK(again.pool_count == will->pool_count);
    for (size_t i = 0; i < will->pool_count; i++)
        FUZZ_CHECK(same(again.pools[i].path, will->pools[i].path) &&
                   same(again.pools[i].member, will->pools[i].member));
    free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const dv_will none;
    char *message = fuzz_copy(data, bytes);
    dv_will will;
    int error = dv_will_parse(&will, message, bytes);
    FUZZ_CHECK(error == 0 || error == DIVVY_EPROTO);
    if (error) FUZZ_CHECK(memcmp(&will, &none, sizeof none) == 0);
    else {
        FUZZ_CHECK(will.timeout_ms >= 0 && will.delay_ms >= 0 && will.pool_count <= DV_WILL_POOLS_MAX);
        FUZZ_CHECK(will.session_id == 0 || will.texts[DV_WILL_HOSTS]);
        check_again(&will, bytes);
    }
    free(message);
    return 0;
}
