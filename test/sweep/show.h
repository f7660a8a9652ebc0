/* Texts that are made though an allocation fails. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SWEEP_SHOW_H
#define DV_SWEEP_SHOW_H

#include "sweep.h"

enum { SHOW_TRIES = 60 };

static inline size_t show_lines(const char *text) {
    size_t count = 0;
    for (; (text = strchr(text, '\n')) != NULL; text++) count++;
    return count;
}

/* Returns whether a text is as it should be: JSON to the letter, a page but for names that became "?". */
static inline bool show_is_same(const char *whole, const char *text) {
    bool lacks_words = *text != '{' && strchr(text, '?') && !strchr(whole, '?');
    return lacks_words ? show_lines(whole) == show_lines(text) : strcmp(whole, text) == 0;
}

/* Compares with the text that is made when nothing fails; asks again while there is no memory. */
#define SHOW(s, call)                                                                    \
    do {                                                                                 \
        sweep_allocations_pause(true);                                                   \
        char *show_whole = (call), *show_text = NULL;                                    \
        sweep_allocations_pause(false);                                                  \
        for (int show_i = 0; show_i < SHOW_TRIES && !show_text; show_i++) {              \
            show_text = (call);                                                          \
            if (!show_text && !sweep_allocations_refused()) sweep_fail((s), #call);      \
        }                                                                                \
        if (!show_whole || !show_text) sweep_fail((s), "shows nothing: %s", #call);      \
        if (!show_is_same(show_whole, show_text))                                        \
            sweep_fail((s), "%s\nshows: %s\nand not: %s", #call, show_text, show_whole); \
        sweep_free(show_whole);                                                          \
        sweep_free(show_text);                                                           \
    } while (0)

#endif
