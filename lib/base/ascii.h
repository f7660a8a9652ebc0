/* Kinds of characters. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ASCII_H
#define DV_ASCII_H

#include <stdbool.h>

/* ASCII, whatever the host program's locale says: all members must read names alike. */
static inline bool dv_is_digit(char c) {
    return c >= '0' && c <= '9';
}
static inline bool dv_is_alphanumeric(char c) {
    return dv_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

#endif
