/* Copies of lists that the native client hands to a completion. SPDX-License-Identifier: Apache-2.0
 *
 * Each is one block of memory: first the pointers, then the bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "znode/apache/pending.h"

char **dv_copy_names(const struct String_vector *names) {
    size_t count = (size_t)names->count, bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += strlen(names->data[i]) + 1;
    char **copy = malloc(count * sizeof *copy + bytes + 1);
    if (!copy) return NULL;
    char *at = (char *)(copy + count);
    for (size_t i = 0; i < count; i++) {
        copy[i] = at;
        at = stpcpy(at, names->data[i]) + 1;
    }
    return copy;
}

static size_t print_entry(const struct ACL *entry, char *out, size_t bytes) {
    const char *scheme = entry->id.scheme ? entry->id.scheme : "", *id = entry->id.id ? entry->id.id : "";
    int printed =
        snprintf(out, bytes, "%s%s%s%s%s %s:%s", entry->perms & ZOO_PERM_CREATE ? "c" : "",
                 entry->perms & ZOO_PERM_DELETE ? "d" : "", entry->perms & ZOO_PERM_READ ? "r" : "",
                 entry->perms & ZOO_PERM_WRITE ? "w" : "", entry->perms & ZOO_PERM_ADMIN ? "a" : "", scheme, id);
    return printed > 0 ? (size_t)printed : 0;
}

char **dv_copy_acl(const struct ACL_vector *acl) {
    size_t count = (size_t)acl->count, bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += print_entry(&acl->data[i], NULL, 0) + 1;
    char **copy = malloc(count * sizeof *copy + bytes + 1);
    if (!copy) return NULL;
    char *at = (char *)(copy + count), *end = at + bytes;
    for (size_t i = 0; i < count; i++) {
        copy[i] = at;
        at += print_entry(&acl->data[i], at, (size_t)(end - at)) + 1;
    }
    return copy;
}
