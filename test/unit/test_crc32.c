/* Tests of base/crc32.h. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/crc32.h"
#include "lib/test.h"

/* The values are those of Python's zlib.crc32(). */
TEST(test_vectors_of_zlib) {
    static const struct {
        const char *bytes;
        size_t count;
        uint32_t crc;
    } vectors[] = {
        {"", 0, 0x00000000},
        {"\0", 1, 0xd202ef8d},
        {"a", 1, 0xe8b7be43},
        {"123456789", 9, 0xcbf43926},
        {"\xff\xff\xff\xff", 4, 0xffffffff},
        {"a\0b\0", 4, 0xf515465f},
        {"\xc3\xa9\0", 3, 0x136df6ab},
        {"The quick brown fox jumps over the lazy dog", 43, 0x414fa339},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        assert_int_equal(dv_crc32(0, vectors[i].bytes, vectors[i].count), vectors[i].crc);
    }
    assert_int_equal(dv_crc32(0, NULL, 0), 0);
    assert_int_equal(dv_crc32(0xcbf43926, NULL, 0), 0xcbf43926);
}

/* All byte values, so every entry of the table is read: once together, and again cut in two at every place. */
TEST(test_all_bytes_in_two_parts) {
    unsigned char bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)i;
    assert_int_equal(dv_crc32(0, bytes, sizeof bytes), 0x29058c73);
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        uint32_t crc = dv_crc32(0, bytes, cut);
        assert_int_equal(dv_crc32(crc, bytes + cut, sizeof bytes - cut), 0x29058c73);
    }
}
