/* Credentials from a file. SPDX-License-Identifier: Apache-2.0 */
#include "auth_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum { AUTH_BYTES_MAX = 4096 };

/* Reads the only line of the file into *out, without its end. NULL, or what is wrong. */
static const char *read_line(FILE *file, char **out) {
    char text[AUTH_BYTES_MAX + 2];
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    const char *wrong = NULL;
    if (ferror(file)) wrong = strerror(errno);
    if (bytes > 0 && text[bytes - 1] == '\n') bytes--;
    if (bytes > 0 && text[bytes - 1] == '\r') bytes--;
    text[bytes] = '\0';
    if (!wrong && bytes > AUTH_BYTES_MAX) wrong = "it is longer than 4096 bytes";
    if (!wrong && (strlen(text) != bytes || strpbrk(text, "\r\n"))) wrong = "it has more than one line";
    if (!wrong && (!strchr(text, ':') || *text == ':')) wrong = "it is not of the form user:password";
    if (!wrong && !(*out = strdup(text))) wrong = "out of memory";
    explicit_bzero(text, sizeof text);
    return wrong;
}

int dv_auth_file_read(const char *command, const char *path, char **out) {
    FILE *file = fopen(path, "re");
    const char *wrong = file ? NULL : strerror(errno);
    /* Without a buffer of its own, so that the secret is in ours only. */
    if (file) setvbuf(file, NULL, _IONBF, 0);
    if (file) wrong = read_line(file, out);
    if (file) fclose(file);
    if (!wrong) return 0;
    dv_command_misused(command, "--auth-file %s: %s", path, wrong);
    return -1;
}

void dv_auth_file_forget(char *auth) {
    if (auth) explicit_bzero(auth, strlen(auth));
    free(auth);
}
