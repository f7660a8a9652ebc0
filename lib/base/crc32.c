/* CRC-32 as zlib, gzip and Ethernet compute it. SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32.h"

#include <assert.h>

/* The remainders of the half bytes by the reflected polynomial 0xedb88320; fast enough, as our inputs are short. */
static const uint32_t half_byte[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

uint32_t dv_crc32(uint32_t crc, const void *bytes, size_t count) {
    assert(bytes != NULL || count == 0);
    const unsigned char *at = bytes;
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ half_byte[crc & 0x0f];
        crc = crc >> 4 ^ half_byte[crc & 0x0f];
    }
    return ~crc;
}
