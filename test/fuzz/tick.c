/* Fuzzes a server's answer to the word "conf". SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/tick.h"
#include "fuzz.h"

enum { TICK_MAX_MS = 3600000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_input in = fuzz_begin(data, bytes);
    char *text = fuzz_text(&in, '\0');
    int64_t tick_ms = dv_tick_parse(text);
    FUZZ_CHECK(tick_ms >= 0 && tick_ms <= TICK_MAX_MS);
    /* What is told stands there, at the beginning of a line. */
    const char *key = strstr(text, "tickTime=");
    while (key && key != text && key[-1] != '\n') key = strstr(key + 1, "tickTime=");
    FUZZ_CHECK(key ? tick_ms == 0 || strtol(key + strlen("tickTime="), NULL, 10) == tick_ms : tick_ms == 0);
    free(text);
    return 0;
}
