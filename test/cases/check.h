/* What the cases' calls of the code take for certain. SPDX-License-Identifier: Apache-2.0 */
#ifndef DIVVY_CASES_CHECK_H
#define DIVVY_CASES_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                \
    do {                                                                \
        if (condition) break;                                           \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
        abort();                                                        \
    } while (0)

#endif
