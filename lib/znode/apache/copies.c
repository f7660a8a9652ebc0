/* Copies of lists that the native client hands to a completion. SPDX-License-Identifier: Apache-2.0
 *
 * Each is one block of memory: first the pointers, then the bytes. */
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

enum { PERMISSIONS_BYTES = sizeof "cdrwa" };

/* A text that a server leaves out is NULL. */
static const char *or_empty(const char *text) {
    return text ? text : "";
}

static size_t entry_bytes(const struct ACL *entry) {
    return PERMISSIONS_BYTES + strlen(or_empty(entry->id.scheme)) + strlen(":") + strlen(or_empty(entry->id.id)) + 1;
}

/* Prints the entry, and returns where the next one may stand. */
static char *print_entry(const struct ACL *entry, char *out) {
    static const char letters[] = "cdrwa";
    const int bits[] = {ZOO_PERM_CREATE, ZOO_PERM_DELETE, ZOO_PERM_READ, ZOO_PERM_WRITE, ZOO_PERM_ADMIN};
    for (size_t k = 0; k < sizeof bits / sizeof bits[0]; k++) {
        if (entry->perms & bits[k]) *out++ = letters[k];
    }
    *out++ = ' ';
    out = stpcpy(out, or_empty(entry->id.scheme));
    *out++ = ':';
    return stpcpy(out, or_empty(entry->id.id)) + 1;
}

char **dv_copy_acl(const struct ACL_vector *acl) {
    size_t count = (size_t)acl->count, bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += entry_bytes(&acl->data[i]);
    char **copy = malloc(count * sizeof *copy + bytes + 1);
    if (!copy) return NULL;
    char *at = (char *)(copy + count);
    for (size_t i = 0; i < count; i++) {
        copy[i] = at;
        at = print_entry(&acl->data[i], at);
    }
    return copy;
}
