/* UTF-8, read strictly. SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <assert.h>

static bool is_continuation(unsigned char byte) {
    return (byte & 0xc0u) == 0x80u;
}

/* The bounds on the second byte catch overlong forms, surrogates and values past U+10FFFF (Unicode, table 3-7), as the
 * server's decoder does. A NUL is no continuation byte, so nothing is read past it. */
size_t dv_utf8_read(const unsigned char *at, uint32_t *code_point) {
    unsigned char lead = at[0];
    assert(lead != 0);
    if (lead < 0x80) {
        *code_point = lead;
        return 1;
    }
    if (lead < 0xc2 || lead > 0xf4) return 0;
    if (!is_continuation(at[1])) return 0;
    if (lead < 0xe0) {
        *code_point = (lead & 0x1fu) << 6 | (at[1] & 0x3fu);
        return 2;
    }
    if ((lead == 0xe0 && at[1] < 0xa0) || (lead == 0xed && at[1] > 0x9f)) return 0;
    if ((lead == 0xf0 && at[1] < 0x90) || (lead == 0xf4 && at[1] > 0x8f)) return 0;
    if (!is_continuation(at[2])) return 0;
    if (lead < 0xf0) {
        *code_point = (lead & 0x0fu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
        return 3;
    }
    if (!is_continuation(at[3])) return 0;
    *code_point = (lead & 0x07u) << 18 | (at[1] & 0x3fu) << 12 | (at[2] & 0x3fu) << 6 | (at[3] & 0x3fu);
    return 4;
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
