/* Credentials from a file. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_AUTH_FILE_H
#define DV_AUTH_FILE_H

#include <stddef.h>
#include <sys/stat.h>

/* Says what is wrong with the owner and the mode of a file of credentials, for a process of the user `self`, in
 * `text`. The file belongs to that user or to root, and nobody else may read or change it; but one of root's may be
 * read by a group, which is how a service that is not root is given its secrets. Anything but a plain file, such as
 * a pipe, is not judged. Returns `text`, or NULL when nothing is wrong. */
const char *dv_auth_file_exposed(const struct stat *file, uid_t self, char *text, size_t text_bytes);

/* Reads the one line user:password of the file into *out, to be released by dv_auth_file_forget(). Returns 0, or
 * the exit code when it was told on stderr, under the name of `command`, what is wrong: also when others can read the
 * file. The file's content is never told. */
int dv_auth_file_read(const char *command, const char *path, char **out);

/* Overwrites and frees it; NULL is allowed. */
void dv_auth_file_forget(char *auth);

#endif
