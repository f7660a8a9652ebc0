/* Passwords in memory. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SECRET_H
#define DV_SECRET_H

#include <stddef.h>

/* Reads the only line of a file, without its end, into *out. Returns NULL, or a static text that says what is wrong. */
const char *dv_secret_read(const char *path, size_t bytes_max, char **out);

/* Wipes a text and frees it. NULL is fine. */
void dv_secret_free(char *text);

#endif
