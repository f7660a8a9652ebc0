/* Fuzzes the records of leases and contenders: ours, which are JSON, and kazoo's. SPDX-License-Identifier:
 * Apache-2.0 */
#include "recipe/record.h"
#include "base/utf8.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    if (bytes == 0) return 0;
    bool ours = data[0] & 1;
    char *text = fuzz_copy(data + 1, bytes - 1);
    dv_record record;
    dv_record_state state = dv_record_parse(text, bytes - 1, ours, &record);
    FUZZ_CHECK(state != DV_RECORD_OUT_OF_MEMORY);
    if (state == DV_RECORD_GOOD) {
        FUZZ_CHECK(record.identifier && record.host && record.time);
        FUZZ_CHECK(record.pid >= 0 && record.count >= 1);
        FUZZ_CHECK(strlen(record.identifier) < bytes);
        if (!ours) FUZZ_CHECK(dv_is_utf8(record.identifier));
        if (dv_is_utf8(record.identifier)) {
            /* One of ours with that identifier is read as what was written. */
            char *again = dv_record_print(record.identifier, record.count);
            dv_record read;
            if (!again) abort();
            dv_record_state printed = dv_record_parse(again, strlen(again), true, &read);
            FUZZ_CHECK(printed == DV_RECORD_GOOD || strlen(again) > DV_RECORD_BYTES_MAX);
            if (printed == DV_RECORD_GOOD) {
                FUZZ_CHECK(strcmp(read.identifier, record.identifier) == 0 && read.count == record.count);
                dv_record_free(&read);
            }
            free(again);
        }
        dv_record_free(&record);
    }
    free(text);
    return 0;
}
