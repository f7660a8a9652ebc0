/* Fuzzes a member's description of itself, the data of its node (D31). SPDX-License-Identifier: Apache-2.0 */
#include "plan/member_data.h"
#include "base/utf8.h"
#include "client/client.h"
#include "fuzz.h"
#include "plan/text.h"

/* What is said of it is within bounds, can be written, and is read as the same. */
static void check_facts(const dv_member_facts *facts) {
    dv_member_facts again;
    FUZZ_CHECK(strlen(facts->zone) <= DV_PLAN_ZONE_BYTES_MAX && dv_is_utf8(facts->zone));
    FUZZ_CHECK(strlen(facts->tags) < DV_TAGS_BYTES && facts->first_czxid >= 0);
    FUZZ_CHECK(facts->rejoin_delay_ms >= 0 && facts->rejoin_delay_ms <= DV_TIME_MAX_MS);
    char *text = dv_member_data_print("m", facts);
    FUZZ_CHECK(text != NULL);
    FUZZ_CHECK(dv_member_data_parse(text, strlen(text), &again));
    FUZZ_CHECK(again.is_static == facts->is_static && again.weight == facts->weight && again.cap == facts->cap);
    FUZZ_CHECK(again.rejoin_delay_ms == facts->rejoin_delay_ms && again.first_czxid == facts->first_czxid);
    FUZZ_CHECK(strcmp(again.zone, facts->zone) == 0 && strcmp(again.tags, facts->tags) == 0);
    free(again.zone);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *text = fuzz_copy(data, bytes);
    dv_member_facts facts;
    FUZZ_CHECK(dv_member_data_parse(text, bytes, &facts));
    check_facts(&facts);
    free(facts.zone);
    free(text);
    return 0;
}
