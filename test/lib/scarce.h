/* Memory that runs out when a test says so. SPDX-License-Identifier: Apache-2.0
 *
 * For a test program that is linked with divvy_test_scarce() (test/CMakeLists.txt): each malloc, calloc, realloc and
 * strdup of the library and of the test asks here. Include it in one file of the program. */
#ifndef DV_TEST_SCARCE_H
#define DV_TEST_SCARCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The number of allocations that still succeed before one fails; below 0: all do. */
static long scarce_after = -1;

static inline bool scarce_now(void) {
    return scarce_after >= 0 && scarce_after-- == 0;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t bytes) {
    return scarce_now() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return scarce_now() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *block, size_t bytes) {
    return scarce_now() ? NULL : __real_realloc(block, bytes);
}

char *__wrap_strdup(const char *text) {
    return scarce_now() ? NULL : __real_strdup(text);
}

#endif
