/* The situations that traces have met: a comparison of what never happens would be worth nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "conformance.h"

enum { MET_MAX = 256 };

static struct {
    char what[32];
    int error;
    unsigned long count;
} met[MET_MAX];
static size_t met_count;

void coverage_note(const char *what, int error) {
    for (size_t i = 0; i < met_count; i++) {
        if (met[i].error == error && strcmp(met[i].what, what) == 0) {
            met[i].count++;
            return;
        }
    }
    if (met_count == MET_MAX) return;
    snprintf(met[met_count].what, sizeof met[met_count].what, "%s", what);
    met[met_count].error = error;
    met[met_count++].count = 1;
}

static bool is_met(const char *what, int error) {
    for (size_t i = 0; i < met_count; i++)
        if (met[i].error == error && strcmp(met[i].what, what) == 0) return true;
    return false;
}

unsigned coverage_missing(void) {
    static const struct {
        const char *what;
        int error;
    } wanted[] = {
        {"create", 0},
        {"create", DIVVY_EEXIST},
        {"create", DIVVY_ENOENT},
        {"create", DIVVY_EINVAL},
        {"create", DIVVY_EACCES},
        {"delete", 0},
        {"delete", DIVVY_ENOENT},
        {"delete", DIVVY_EVERSION},
        {"delete", DIVVY_ENOTEMPTY},
        {"delete", DIVVY_EACCES},
        {"set", 0},
        {"set", DIVVY_ENOENT},
        {"set", DIVVY_EVERSION},
        {"set", DIVVY_EACCES},
        {"get", 0},
        {"get", DIVVY_ENOENT},
        {"get", DIVVY_EACCES},
        {"exists", 0},
        {"exists", DIVVY_ENOENT},
        {"children", 0},
        {"children", DIVVY_ENOENT},
        {"multi", 0},
        {"multi", DIVVY_ENOENT},
        {"multi", DIVVY_EEXIST},
        {"multi", DIVVY_EVERSION},
        {"multi", DIVVY_ENOTEMPTY},
        {"multi", DIVVY_EACCES},
        {"multi", DIVVY_EINVAL},
        {"watch created", 0},
        {"watch deleted", 0},
        {"watch changed", 0},
        {"watch children", 0},
        {"session closed", 0},
        {"session expired", 0},
        {"session came back", 0},
    };
    unsigned missing = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (is_met(wanted[i].what, wanted[i].error)) continue;
        missing++;
        printf("conformance: never met: %s, %s\n", wanted[i].what, divvy_strerror(wanted[i].error));
    }
    return missing;
}

void coverage_print(void) {
    for (size_t i = 0; i < met_count; i++)
        printf("  %8lu  %s: %s\n", met[i].count, met[i].what, divvy_strerror(met[i].error));
}
