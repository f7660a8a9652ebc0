/* The number that the server appends to the name of a sequential node. SPDX-License-Identifier: Apache-2.0 */
#include "znode/sequence.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The server writes "%010d": ten characters with the sign, and eleven for -1000000000 and below. */
enum { NUMBER_BYTES = 10, NUMBER_BYTES_MAX = 11 };

/* Reads all of the text as a number that "%010d" prints just so. */
static bool number_parse(const char *text, int32_t *number) {
    char printed[NUMBER_BYTES_MAX + 1];
    long long value = strtoll(text, NULL, 10); /* At most eleven digits: it cannot overflow. */
    if (value < INT32_MIN || value > INT32_MAX) return false;
    snprintf(printed, sizeof printed, "%010d", (int)value);
    if (strcmp(printed, text) != 0) return false;
    *number = (int32_t)value;
    return true;
}

bool dv_sequence_parse(const char *name, const char *marker, int32_t *sequence) {
    assert(name != NULL && marker != NULL && sequence != NULL);
    assert(marker[0] != '\0');
    size_t name_bytes = strlen(name);
    size_t marker_bytes = strlen(marker);
    /* Rule N6. The longer form goes first: a sign belongs to the number even after a marker that ends in one. */
    for (size_t number_bytes = NUMBER_BYTES_MAX; number_bytes >= NUMBER_BYTES; number_bytes--) {
        if (name_bytes < marker_bytes + number_bytes) continue;
        const char *number = name + name_bytes - number_bytes;
        if (memcmp(number - marker_bytes, marker, marker_bytes) != 0) continue;
        if (number_parse(number, sequence)) return true;
    }
    return false;
}

int dv_sequence_compare(int32_t a, int32_t b) {
    /* Taken as unsigned, the numbers are how many steps the counter made from 0: the order of creation. */
    uint32_t steps_a = (uint32_t)a, steps_b = (uint32_t)b;
    return (steps_a > steps_b) - (steps_a < steps_b);
}
