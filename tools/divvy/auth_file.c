/* Credentials from a file. SPDX-License-Identifier: Apache-2.0 */
#include "auth_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

enum { AUTH_BYTES_MAX = 4096 };

/* Reads the only line of the file into `text`, without its end. NULL, or what is wrong. */
static const char *read_line(FILE *file, char text[AUTH_BYTES_MAX + 2]) {
    size_t bytes = fread(text, 1, AUTH_BYTES_MAX + 1, file);
    const char *wrong = NULL;
    if (ferror(file)) wrong = strerror(errno);
    if (bytes > 0 && text[bytes - 1] == '\n') bytes--;
    if (bytes > 0 && text[bytes - 1] == '\r') bytes--;
    text[bytes] = '\0';
    if (!wrong && bytes > AUTH_BYTES_MAX) wrong = "it is longer than 4096 bytes";
    if (!wrong && (strlen(text) != bytes || strpbrk(text, "\r\n"))) wrong = "it has more than one line";
    if (!wrong && (!strchr(text, ':') || *text == ':')) wrong = "it is not of the form user:password";
    return wrong;
}

const char *dv_auth_file_exposed(const struct stat *file, uid_t self, char *text, size_t text_bytes) {
    unsigned mode = file->st_mode & 07777, private_mode = 0700;
    if (!S_ISREG(file->st_mode)) return NULL;
    if (file->st_uid != self && file->st_uid != 0) {
        snprintf(text, text_bytes, "it belongs to user %u, neither to user %u nor to root", (unsigned)file->st_uid,
                 (unsigned)self);
        return text;
    }
    if (file->st_uid != self) private_mode |= 0040;
    if ((mode & 0777 & ~private_mode) == 0) return NULL;
    snprintf(text, text_bytes, "others can read or change it (mode %04o); make it yours alone: chmod 600", mode);
    return text;
}

/* Checks the access of the open file, so that the file that is read is the one that was checked. */
static const char *check_access(FILE *file, char *text, size_t text_bytes) {
    struct stat status;
    if (fstat(fileno(file), &status) != 0) return strerror(errno);
    return dv_auth_file_exposed(&status, geteuid(), text, text_bytes);
}

int dv_auth_file_read(const char *command, const char *path, char **out) {
    char text[128], secret[AUTH_BYTES_MAX + 2];
    FILE *file = fopen(path, "re");
    const char *wrong = file ? check_access(file, text, sizeof text) : strerror(errno);
    /* Without a buffer of its own, so that the secret is in ours only. */
    if (file) setvbuf(file, NULL, _IONBF, 0);
    if (!wrong) wrong = read_line(file, secret);
    if (file) fclose(file);
    if (!wrong) *out = strdup(secret);
    explicit_bzero(secret, sizeof secret);
    if (wrong) return dv_command_misused(command, "--auth-file %s: %s", path, wrong);
    return *out ? 0 : dv_command_out_of_memory();
}

void dv_auth_file_forget(char *auth) {
    if (auth) explicit_bzero(auth, strlen(auth));
    free(auth);
}
