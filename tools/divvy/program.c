/* Programs, as a shell finds and executes them. SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

/* 0 or an errno. */
static int look_at(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) return errno;
    if (S_ISDIR(status.st_mode)) return EISDIR;
    /* By the effective ids, as execve(2) will. */
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static bool is_missing(int error) {
    return error == ENOENT || error == ENOTDIR;
}

int dv_program_code(int error) {
    return is_missing(error) ? DV_EXIT_NOT_FOUND : DV_EXIT_NOT_EXECUTABLE;
}

/* Returns 0 or an errno. */
static int find_in(const char *folders, const char *name, char **out) {
    int first_error = ENOENT;
    for (const char *at = folders;;) {
        size_t bytes = strcspn(at, ":");
        char *path = NULL;
        /* An empty folder is the current one. */
        if (asprintf(&path, "%.*s%s%s", (int)bytes, at, bytes ? "/" : "./", name) < 0) return ENOMEM;
        int error = look_at(path);
        if (error == 0) {
            *out = path;
            return 0;
        }
        free(path);
        /* One that may not be executed is passed over, and told if there is no other. */
        if (is_missing(first_error) && !is_missing(error)) first_error = error;
        if (at[bytes] == '\0') return first_error;
        at += bytes + 1;
    }
}

int dv_program_find(const char *name, char **out) {
    const char *folders = getenv("PATH");
    int error = ENOENT;
    *out = NULL;
    if (strchr(name, '/')) {
        error = look_at(name);
        if (error == 0 && !(*out = strdup(name))) error = ENOMEM;
    } else if (*name) {
        error = find_in(folders ? folders : _PATH_DEFPATH, name, out);
    }
    if (!error) return 0;
    dv_command_say("%s: %s", name, error == ENOENT ? "command not found" : strerror(error));
    return dv_program_code(error);
}

/* Executes a file that the kernel does not take for a program: as a script of the shell. */
static void execute_script(const char *path, const char *const *arguments) {
    size_t count = 0;
    while (arguments[count]) count++;
    const char **words = (const char **)(uintptr_t)calloc(count + 3, sizeof *words);
    if (!words) return;
    words[0] = _PATH_BSHELL;
    words[1] = path;
    for (size_t i = 1; i < count; i++) words[i + 1] = arguments[i];
    execv(_PATH_BSHELL, (char *const *)(uintptr_t)words);
    int error = errno;
    free((void *)(uintptr_t)words);
    errno = error;
}

void dv_program_execute(const char *path, const char *const *arguments) {
    execv(path, (char *const *)(uintptr_t)arguments);
    if (errno == ENOEXEC) execute_script(path, arguments);
}
