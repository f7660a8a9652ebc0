/* Tests of the command's tools/divvy/auth_file.h: who may have a file of credentials, and who may read it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/auth_file.h"
#include "divvy/command.h"
#include "lib/test.h"

enum { ROOT, SELF = 1000, OTHER = 1001 };

static char misused[512];

/* In the place of the command's, which ends with a hint at --help. */
int dv_command_misused(const char *command, const char *format, ...) {
    (void)command;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(misused, sizeof misused, format, arguments);
    va_end(arguments);
    return DV_EXIT_USAGE;
}

int dv_command_out_of_memory(void) {
    return DV_EXIT_FAILED;
}

static const char *exposed(uid_t owner, mode_t mode, uid_t self) {
    static char text[128];
    struct stat file = {.st_uid = owner, .st_mode = mode};
    return dv_auth_file_exposed(&file, self, text, sizeof text);
}

/* Ours, for us alone: taken, whatever we may do with it ourselves. Any bit for others: refused, with what to do. */
TEST(test_modes) {
    for (mode_t mode = 0; mode <= 0777; mode++) {
        const char *wrong = exposed(SELF, S_IFREG | mode, SELF);
        if ((mode & 077) == 0) {
            assert_null(wrong);
            continue;
        }
        char shown[16];
        snprintf(shown, sizeof shown, "%04o", (unsigned)mode);
        assert_non_null(wrong);
        assert_non_null(strstr(wrong, shown));
        assert_non_null(strstr(wrong, "chmod 600"));
    }
}

/* It may be root's, and then a group's to read, but not to change; never another user's, as root's own process sees it
 * too. */
TEST(test_owners) {
    assert_null(exposed(ROOT, S_IFREG | 0600, SELF));
    assert_null(exposed(ROOT, S_IFREG | 0640, SELF));
    assert_non_null(exposed(ROOT, S_IFREG | 0660, SELF));
    assert_non_null(exposed(ROOT, S_IFREG | 0644, SELF));
    assert_non_null(exposed(ROOT, S_IFREG | 0640, ROOT));
    assert_non_null(strstr(exposed(OTHER, S_IFREG | 0600, SELF), "belongs to user 1001"));
    assert_non_null(strstr(exposed(OTHER, S_IFREG | 0600, ROOT), "belongs to user 1001"));
    assert_null(exposed(ROOT, S_IFREG | 0600, ROOT));
}

/* A pipe, as of <(...) in a shell, is not judged. */
TEST(test_pipe) {
    assert_null(exposed(OTHER, S_IFIFO | 0666, SELF));
}

/* The file that is read is the one that was checked, and nothing is kept of a refused file. */
TEST(test_read) {
    char path[] = "/tmp/divvy-auth-XXXXXX", *auth = NULL;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fputs("user:secret\n", file);
    fclose(file);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(dv_auth_file_read("lock", path, &auth), DV_EXIT_USAGE);
    assert_null(auth);
    assert_non_null(strstr(misused, path));
    assert_non_null(strstr(misused, "mode 0644"));
    assert_null(strstr(misused, "secret"));
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(dv_auth_file_read("lock", path, &auth), 0);
    assert_string_equal(auth, "user:secret");
    dv_auth_file_forget(auth);
    remove(path);
}
