/* Programs, as a shell finds and executes them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PROGRAM_H
#define DV_PROGRAM_H

/*
 * Finds the program that a shell would run as `name`: itself where it has a slash, else by $PATH.
 *
 * Returns 0 with *out set to its path, to be freed. Otherwise it tells why not, and returns dv_program_code().
 */
int dv_program_find(const char *name, char **out);

/* Returns the exit code that shells have for an errno of exec: 127 when there is no such program, 126 when it cannot be
 * executed. */
int dv_program_code(int error);

/* Executes it in place of this process; a text without #! as a script of /bin/sh. Returns only when that fails, with
 * errno set. */
void dv_program_execute(const char *path, const char *const *arguments);

#endif
