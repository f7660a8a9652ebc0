/* "Did you mean": of several words the one that is nearest to what was typed. SPDX-License-Identifier: Apache-2.0 */
#include "nearest.h"

#include <stdio.h>
#include <string.h>

enum { BYTES_MAX = 40, CHARACTERS_FOR_A_MISTAKE = 3 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Rows of the table of distances: [2] is of the prefix of `a` that ends here, [1] and [0] of those before. */
static size_t distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    size_t rows[3][BYTES_MAX + 1] = {{0}};
    for (size_t j = 0; j <= b_bytes; j++) rows[2][j] = j;
    for (size_t i = 1; i <= a_bytes; i++) {
        memcpy(rows[0], rows[1], sizeof rows[0]);
        memcpy(rows[1], rows[2], sizeof rows[1]);
        rows[2][0] = i;
        for (size_t j = 1; j <= b_bytes; j++) {
            size_t other = rows[1][j - 1] + (a[i - 1] != b[j - 1]);
            rows[2][j] = least(other, least(rows[1][j], rows[2][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[2][j] = least(rows[2][j], rows[0][j - 2] + 1);
        }
    }
    return rows[2][b_bytes];
}

dv_nearest dv_nearest_to(const char *typed, size_t bytes) {
    return (dv_nearest){.typed = typed, .bytes = bytes, .mistakes = bytes / CHARACTERS_FOR_A_MISTAKE + 1};
}

void dv_nearest_try(dv_nearest *nearest, const char *word) {
    size_t bytes = strlen(word);
    if (bytes > BYTES_MAX || nearest->bytes > BYTES_MAX) return;
    size_t mistakes = distance(nearest->typed, nearest->bytes, word, bytes);
    if (mistakes >= nearest->mistakes) return;
    nearest->mistakes = mistakes;
    nearest->word = word;
}

const char *dv_nearest_question(dv_nearest *nearest, const char *before) {
    nearest->question[0] = '\0';
    if (nearest->word)
        snprintf(nearest->question, sizeof nearest->question, "; did you mean %s%s?", before, nearest->word);
    return nearest->question;
}
