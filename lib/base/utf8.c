/* UTF-8, read strictly. SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <assert.h>

size_t dv_utf8_read(const unsigned char *at, uint32_t *code_point) {
    static const uint32_t least[] = {[2] = 0x80, [3] = 0x800, [4] = 0x10000};
    unsigned char lead = at[0];
    assert(lead != 0);
    *code_point = lead;
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    size_t bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t value = lead & 0x7fu >> bytes;
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0u) != 0x80u) return 0; /* Neither is a NUL, so nothing is read past it. */
        value = value << 6 | (at[i] & 0x3fu);
    }
    /* Overlong forms, surrogates and values past U+10FFFF are refused, as by the server's decoder. */
    if (value < least[bytes] || (value >= 0xd800 && value <= 0xdfff) || value > 0x10ffff) return 0;
    *code_point = value;
    return bytes;
}

bool dv_is_utf8(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        uint32_t code_point;
        size_t bytes = dv_utf8_read(at, &code_point);
        if (bytes == 0) return false;
        at += bytes;
    }
    return true;
}
