/* CRC-32 as zlib, gzip and Ethernet compute it. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_CRC32_H
#define DV_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* The CRC-32 of bytes[0..count) (polynomial 0x04c11db7, reflected), going on from `crc`, which is 0 at the start or
 * what the call for the preceding bytes returned. `bytes` may be NULL if count is 0. Thread: any; there is no state. */
uint32_t dv_crc32(uint32_t crc, const void *bytes, size_t count);

#endif
