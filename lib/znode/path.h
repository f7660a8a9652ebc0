/* Rules for ZooKeeper paths and the codec of names in them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PATH_H
#define DV_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ascii.h"

/* Checks that ZooKeeper takes `path`, and that divvy wants to use it. Such a path is absolute and valid UTF-8. It
 * has no empty, "." or ".." component, no trailing slash (but "/" itself is a path) and no character that the
 * server refuses. It is not /zookeeper or below it. Returns 0, or DIVVY_EINVAL with *reason (may be NULL) set to a
 * static text that completes "the path ...". */
int dv_path_check(const char *path, const char **reason);
/* Returns whether the limits of a path's quota stand there, which may be read though they are the servers' own. */
bool dv_path_is_limits(const char *path);

/* Checks the chroot of a connect string: "" or "/" for none, or a path without a comma, a semicolon or a space. What is
 * meant as a chroot behind each host has one of these, and is not taken for one with a strange name (H4). Returns 0, or
 * DIVVY_EINVAL with *reason set to a static text that completes "the connect string ...". */
int dv_chroot_check(const char *chroot, const char **reason);

/* parent + "/" + name, malloc'ed; "/" as parent gives "/name". Returns NULL when an allocation fails. */
char *dv_path_join(const char *parent, const char *name);

/* The last component of a path: a pointer into it. */
const char *dv_path_last(const char *path);

/* The item codec of docs/protocol.md, rules N2 and N4: writes the node name for `name` into `out`, as snprintf does:
 * at most out_bytes bytes with the NUL, and returns the length that the whole would have. */
size_t dv_name_encode(const char *name, char *out, size_t out_bytes);

/* The inverse, likewise as snprintf: the name that `node` stands for. Escapes that dv_name_encode() would not have
 * written (a '%' not followed by two hex digits) stand for themselves, as kazoo's raw names do. */
size_t dv_name_decode(const char *node, char *out, size_t out_bytes);

/* Returns whether dv_name_encode() leaves `name` as it is: only then may it be shared with kazoo, which writes names
 * raw. */
bool dv_name_is_plain(const char *name);

/* For qsort() and bsearch() over arrays of strings: bytewise, which for UTF-8 is the order of code points. */
int dv_name_compare(const void *a, const void *b);

#endif
