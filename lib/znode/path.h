/* Rules for ZooKeeper paths and the codec of names in them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PATH_H
#define DV_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ascii.h"

/* Checks that ZooKeeper takes `path`: absolute UTF-8 without an empty, "." or ".." component, a trailing slash (but "/"
 * is a path), or a character that the server refuses; and that it is not /zookeeper or below it. Returns 0, or
 * DIVVY_EINVAL with *reason (may be NULL) set to a static text that completes "the path ...". */
int dv_path_check(const char *path, const char **reason);
/* Returns whether the limits of a path's quota stand there, which may be read though they are the servers' own. */
bool dv_path_is_limits(const char *path);

/* Checks the chroot of a connect string by H4: "" or "/" for none, or a path. Returns 0, or DIVVY_EINVAL with *reason
 * set to a static text that completes "the connect string ...". */
int dv_chroot_check(const char *chroot, const char **reason);

/* parent + "/" + name, malloc'ed; "/" as parent gives "/name". Returns NULL when an allocation fails. */
char *dv_path_join(const char *parent, const char *name);

/* Returns a pointer to the last component of a path. */
const char *dv_path_last(const char *path);

/* Writes the node name of `name` (N2) as snprintf() does: at most out_bytes with the NUL. Returns the full length. */
size_t dv_name_encode(const char *name, char *out, size_t out_bytes);

/* Writes the name that `node` stands for (N4), likewise. */
size_t dv_name_decode(const char *node, char *out, size_t out_bytes);

/* Returns whether the name is plain, so that kazoo can share it (N4). */
bool dv_name_is_plain(const char *name);

/* For qsort() and bsearch() over arrays of strings: bytewise, which for UTF-8 is the order of code points. */
int dv_name_compare(const void *a, const void *b);

#endif
