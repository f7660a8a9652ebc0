/* Shared by the fuzz targets: checks, and bytes taken apart. SPDX-License-Identifier: Apache-2.0
 *
 * A target is one LLVMFuzzerTestOneInput(), which libFuzzer calls with inputs that it makes up; without clang
 * replay.c calls it with those of the corpus. An input that breaks a check ends the program. */
#ifndef DV_FUZZ_H
#define DV_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Checks whatever NDEBUG says. */
#define FUZZ_CHECK(condition)                                                                   \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                            \
        }                                                                                       \
    } while (0)

/* An input, from the front. Past its end there are zeroes. */
typedef struct {
    const uint8_t *at, *end;
} fuzz_input;

static inline fuzz_input fuzz_begin(const uint8_t *data, size_t bytes) {
    return (fuzz_input){data, data + bytes};
}

static inline uint8_t fuzz_byte(fuzz_input *in) {
    return in->at < in->end ? *in->at++ : 0;
}

static inline uint32_t fuzz_number(fuzz_input *in, unsigned bytes) {
    uint32_t number = 0;
    while (bytes-- > 0) number = number << 8 | fuzz_byte(in);
    return number;
}

/* The bytes up to `until`, or to the end, as a string of its own. */
static inline char *fuzz_text(fuzz_input *in, char until) {
    const uint8_t *end = in->at;
    while (end < in->end && *end != (uint8_t)until && *end) end++;
    size_t bytes = (size_t)(end - in->at);
    char *text = malloc(bytes + 1);
    if (!text) abort();
    memcpy(text, in->at, bytes);
    text[bytes] = '\0';
    in->at = end < in->end ? end + 1 : end;
    return text;
}

/* A copy that ends where it ends, so that a byte too far is seen by AddressSanitizer. */
static inline char *fuzz_copy(const void *data, size_t bytes) {
    char *copy = malloc(bytes ? bytes : 1);
    if (!copy) abort();
    if (bytes) memcpy(copy, data, bytes);
    return copy;
}

/* Lines, each a string of its own. */
typedef struct {
    char **texts;
    size_t count;
} fuzz_lines;

static inline fuzz_lines fuzz_take_lines(fuzz_input *in, size_t most) {
    fuzz_lines lines = {calloc(most + 1, sizeof(char *)), 0};
    if (!lines.texts) abort();
    while (in->at < in->end && lines.count < most) lines.texts[lines.count++] = fuzz_text(in, '\n');
    return lines;
}

static inline void fuzz_free_lines(fuzz_lines *lines) {
    for (size_t i = 0; i < lines->count; i++) free(lines->texts[i]);
    free(lines->texts);
}

#endif
