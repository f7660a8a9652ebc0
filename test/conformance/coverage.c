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

unsigned coverage_missing(int release) {
    static const struct {
        const char *what;
        int error;
        int since; /* the release; 0: any */
    } wanted[] = {
        {"create", 0, 0},
        {"create", DIVVY_EEXIST, 0},
        {"create", DIVVY_ENOENT, 0},
        {"create", DIVVY_EINVAL, 0},
        {"create", DIVVY_EACCES, 0},
        {"delete", 0, 0},
        {"delete", DIVVY_ENOENT, 0},
        {"delete", DIVVY_EVERSION, 0},
        {"delete", DIVVY_ENOTEMPTY, 0},
        {"delete", DIVVY_EACCES, 0},
        {"set", 0, 0},
        {"set", DIVVY_ENOENT, 0},
        {"set", DIVVY_EVERSION, 0},
        {"set", DIVVY_EACCES, 0},
        {"get", 0, 0},
        {"get", DIVVY_ENOENT, 0},
        {"get", DIVVY_EACCES, 0},
        {"exists", 0, 0},
        {"exists", DIVVY_ENOENT, 0},
        {"exists", DIVVY_EACCES, DIVVY_TESTING_3_9},
        {"children", 0, 0},
        {"children", DIVVY_ENOENT, 0},
        {"multi", 0, 0},
        {"multi", DIVVY_ENOENT, 0},
        {"multi", DIVVY_EEXIST, 0},
        {"multi", DIVVY_EVERSION, 0},
        {"multi", DIVVY_ENOTEMPTY, 0},
        {"multi", DIVVY_EACCES, 0},
        {"multi", DIVVY_EINVAL, 0},
        {"watch created", 0, 0},
        {"watch deleted", 0, 0},
        {"watch changed", 0, 0},
        {"watch children", 0, 0},
        {"session closed", 0, 0},
        {"session expired", 0, 0},
        {"session came back", 0, 0},
    };
    unsigned missing = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (wanted[i].since > release || is_met(wanted[i].what, wanted[i].error)) continue;
        missing++;
        printf("conformance: never met: %s, %s\n", wanted[i].what, divvy_strerror(wanted[i].error));
    }
    return missing;
}

void coverage_print(void) {
    for (size_t i = 0; i < met_count; i++)
        printf("  %8lu  %s: %s\n", met[i].count, met[i].what, divvy_strerror(met[i].error));
}
