/* Passwords in memory. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_BYTES = 4096 };

/* Cuts the end of the line off. Returns what is wrong with what is left, or NULL. */
static const char *judge(char *text, size_t bytes, size_t bytes_max) {
    if (bytes > 0 && text[bytes - 1] == '\n') bytes--;
    if (bytes > 0 && text[bytes - 1] == '\r') bytes--;
    text[bytes] = '\0';
    if (bytes == 0) return "it is empty";
    if (bytes > bytes_max) return "its line is too long";
    return strlen(text) != bytes || strpbrk(text, "\r\n") ? "it has more than one line" : NULL;
}

const char *dv_secret_read(const char *path, size_t bytes_max, char **out) {
    char text[ROOM_BYTES];
    FILE *file = fopen(path, "re");
    *out = NULL;
    if (!file) return strerrordesc_np(errno);
    setvbuf(file, NULL, _IONBF, 0); /* So that the secret is in our memory only. */
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    const char *wrong = ferror(file) ? strerrordesc_np(errno) : NULL;
    fclose(file);
    if (!wrong) wrong = judge(text, bytes, bytes_max < sizeof text - 3 ? bytes_max : sizeof text - 3);
    if (!wrong && !(*out = strdup(text))) wrong = "out of memory";
    explicit_bzero(text, sizeof text);
    return wrong;
}

void dv_secret_free(char *text) {
    if (text) explicit_bzero(text, strlen(text));
    free(text);
}
