/* CRC-32 as zlib, gzip and Ethernet compute it. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_CRC32_H
#define DV_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from `crc`, which is 0 at the start. `bytes` may be NULL if count is 0. Thread: any. */
uint32_t dv_crc32(uint32_t crc, const void *bytes, size_t count);

#endif
