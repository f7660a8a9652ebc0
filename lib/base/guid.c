/* Names that are findable after a lost reply and never reused. SPDX-License-Identifier: Apache-2.0 */
#include "base/guid.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* 62^11 is more than 2^64 and 62^10 is less: every 64-bit number has at most 11 digits. */
enum { DIGITS_MAX = 11 };

_Static_assert(3 * DIGITS_MAX + 1 <= DV_GUID_BYTES, "three numbers and a NUL fit");

/* Writes `value` in base 62 with at least `digits_min` digits and without a NUL; returns the number of digits. */
static size_t base62_write(uint64_t value, size_t digits_min, char *out) {
    /* In ASCII order, so that the padded numbers sort bytewise as they sort by value. */
    static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    char reversed[DIGITS_MAX];
    size_t count = 0;
    assert(digits_min <= DIGITS_MAX);
    do {
        assert(count < DIGITS_MAX);
        reversed[count++] = alphabet[value % 62];
        value /= 62;
    } while (value > 0);
    while (count < digits_min) reversed[count++] = alphabet[0];
    for (size_t i = 0; i < count; i++) out[i] = reversed[count - 1 - i];
    return count;
}

void dv_guid_next(dv_guid_source *source, int64_t session_id, char out[DV_GUID_BYTES]) {
    assert(source != NULL && out != NULL);
    assert(source->counter < UINT64_MAX); /* One past it would be a name over again. */
    source->counter++;
    /* N5. The first two numbers have a fixed width, so that triples never run together. The counter has none, as every
     * byte counts against the limits of the session. kazoo takes 32 lowercase hex digits for a member's: ours has 32
     * only while the counter has ten (from 62^9 = 1.3e16 on), a number that no client lives to draw. */
    size_t bytes = base62_write((uint64_t)session_id, DIGITS_MAX, out);
    bytes += base62_write(source->client_random, DIGITS_MAX, out + bytes);
    bytes += base62_write(source->counter, 1, out + bytes);
    assert(bytes < DV_GUID_BYTES);
    out[bytes] = '\0';
}

enum { BOTH_DIGITS = 2 * DIGITS_MAX }; /* of the session and of the client */

bool dv_guid_is_of_same_session(const char *name, const char *own) {
    return strnlen(name, BOTH_DIGITS) == BOTH_DIGITS && strncmp(name, own, BOTH_DIGITS) == 0;
}

bool dv_guid_is_of_former_session(const char *name, const char *own) {
    if (strnlen(name, BOTH_DIGITS) < BOTH_DIGITS || strnlen(own, BOTH_DIGITS) < BOTH_DIGITS) return false;
    bool same_client = memcmp(name + DIGITS_MAX, own + DIGITS_MAX, DIGITS_MAX) == 0;
    return same_client && memcmp(name, own, DIGITS_MAX) != 0;
}
