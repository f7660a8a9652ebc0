/* "Did you mean": of several words the one that is nearest to what was typed. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_NEAREST_H
#define DV_NEAREST_H

#include <stddef.h>

typedef struct {
    const char *typed;
    size_t bytes;     /* of it that count */
    const char *word; /* the nearest so far that is near enough; NULL: none */
    size_t mistakes;  /* that make that word of what was typed */
    char question[80];
} dv_nearest;

/* `bytes` of `typed` are compared. */
dv_nearest dv_nearest_to(const char *typed, size_t bytes);

/* One mistake is: a character too many, a missing one, a wrong one, or two in the wrong order. A word is near enough
 * with one mistake for every three characters typed. Of several that are as near the first one counts. */
void dv_nearest_try(dv_nearest *nearest, const char *word);

/* Returns "; did you mean WORD?" for the end of a message, with `before` before the word, or "" where none is near. */
const char *dv_nearest_question(dv_nearest *nearest, const char *before);

#endif
