/* Kinds of characters. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ASCII_H
#define DV_ASCII_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ASCII, whatever the host program's locale says: all members must read names alike. */
static inline bool dv_is_digit(char c) {
    return c >= '0' && c <= '9';
}
static inline bool dv_is_alphanumeric(char c) {
    return dv_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
/* Reads digits, without a sign or a leading zero, up to INT32_MAX. Returns their end; NULL when there are none. */
static inline const char *dv_read_number(const char *text, uint32_t *number) {
    uint64_t value = 0;
    const char *at = text;
    for (; dv_is_digit(*at) && value <= INT32_MAX; at++) value = value * 10 + (uint64_t)(*at - '0');
    if (at == text || (*text == '0' && at != text + 1) || value > INT32_MAX) return NULL;
    *number = (uint32_t)value;
    return at;
}
/* Returns the value of a hex digit of either case, or -1. */
static inline int dv_hex_value(char c) {
    if (dv_is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
/* Returns the byte that two hex digits stand for, or -1. The second one is looked at only if the first is a digit. */
static inline int dv_hex_byte(const char *digits) {
    int high = dv_hex_value(digits[0]), low = high < 0 ? -1 : dv_hex_value(digits[1]);
    return low < 0 ? -1 : high << 4 | low;
}

#endif
