/* Copies of lists for completions, each one block: pointers, then bytes. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "znode/apache/pending.h"

/* Prints an entry of a list, as snprintf() does. */
typedef size_t print_fn(const void *list, size_t i, char *out, size_t out_bytes);

static char **copy_list(const void *list, size_t count, print_fn *print) {
    size_t bytes = count * sizeof(char *) + 1;
    for (size_t i = 0; i < count; i++) bytes += print(list, i, NULL, 0) + 1;
    char **copy = malloc(bytes);
    if (!copy) return NULL;
    char *at = (char *)(copy + count), *end = (char *)copy + bytes;
    for (size_t i = 0; i < count; i++) {
        copy[i] = at;
        at += print(list, i, at, (size_t)(end - at)) + 1;
    }
    return copy;
}

static size_t print_name(const void *list, size_t i, char *out, size_t out_bytes) {
    const char *name = ((const struct String_vector *)list)->data[i];
    size_t bytes = strlen(name);
    if (out_bytes) memcpy(out, name, bytes + 1); /* Lists may be long: no snprintf(). */
    return bytes;
}

char **dv_copy_names(const struct String_vector *names) {
    return copy_list(names, (size_t)names->count, print_name);
}

/* A text that a server leaves out is NULL. */
static const char *or_empty(const char *text) {
    return text ? text : "";
}

static size_t print_entry(const void *list, size_t i, char *out, size_t out_bytes) {
    const struct ACL *entry = &((const struct ACL_vector *)list)->data[i];
    const int bits[] = {ZOO_PERM_CREATE, ZOO_PERM_DELETE, ZOO_PERM_READ, ZOO_PERM_WRITE, ZOO_PERM_ADMIN};
    char letters[sizeof "cdrwa"] = "", *end = letters;
    for (size_t k = 0; k < sizeof bits / sizeof bits[0]; k++) {
        if (entry->perms & bits[k]) *end++ = "cdrwa"[k];
    }
    return (size_t)snprintf(out, out_bytes, "%s %s:%s", letters, or_empty(entry->id.scheme), or_empty(entry->id.id));
}

char **dv_copy_acl(const struct ACL_vector *acl) {
    return copy_list(acl, (size_t)acl->count, print_entry);
}
