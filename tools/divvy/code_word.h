/* Words of a command that some program runs as code. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_CODE_WORD_H
#define DV_CODE_WORD_H

#include <stddef.h>

/* A word that a program of the command runs as code, and that has the placeholder inside. */
typedef struct {
    size_t at;           /* its index; 0: there is none */
    const char *program; /* the one that runs it: a word of the command */
    const char *instead; /* what its code can say to have the item; NULL: it has no way */
} dv_code_word;

/*
 * Finds the first word among `arguments` that would be run as code with `placeholder` inside. An item's name that
 * stands there could be any code.
 *
 * Shells are found wherever they stand, since many programs run others ("docker exec box sh -c ..."). Other
 * interpreters count only as the command itself, or behind a program such as env(1) or timeout(1).
 *
 * @param arguments  the command and its words, with a NULL at the end; they outlive the result
 */
dv_code_word dv_code_word_find(const char *const *arguments, const char *placeholder);

#endif
