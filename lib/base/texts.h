/* Lists of texts. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEXTS_H
#define DV_TEXTS_H

#include <stdlib.h>
#include <string.h>

/* Copies them in one block, for free(). Returns NULL when an allocation fails. */
static inline char **dv_texts_copy(const char *const *texts, size_t count) {
    size_t bytes = (count + 1) * sizeof(char *);
    for (size_t i = 0; i < count; i++) bytes += strlen(texts[i]) + 1;
    char **copy = malloc(bytes);
    char *at = copy ? (char *)(copy + count) : NULL;
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = at;
        at = stpcpy(at, texts[i]) + 1;
    }
    return copy;
}

#endif
