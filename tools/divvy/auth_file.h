/* Credentials from a file. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_AUTH_FILE_H
#define DV_AUTH_FILE_H

/* Reads the one line user:password of the file into *out, to be released by dv_auth_file_forget(). 0, or -1 when the
 * mistake was told on stderr, as one in the usage of `command`. What is in the file is never told. */
int dv_auth_file_read(const char *command, const char *path, char **out);

/* Overwrites and frees it; NULL is allowed. */
void dv_auth_file_forget(char *auth);

#endif
