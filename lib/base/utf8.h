/* UTF-8, read strictly. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_UTF8_H
#define DV_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the code point at `at`, in a text that ends in a NUL. Returns its bytes, or 0 if they are not well-formed. */
size_t dv_utf8_read(const unsigned char *at, uint32_t *code_point);

/* Returns whether all of the text is well-formed UTF-8, which kazoo insists on. */
bool dv_is_utf8(const char *text);

#endif
