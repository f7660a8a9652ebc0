/* Registries on an ensemble. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_REGISTRY_ENSEMBLE_FIXTURE_H
#define DV_TEST_REGISTRY_ENSEMBLE_FIXTURE_H

#include "registry_fixture.h"

#define ROOT "/divvy/services"

static world w;

static inline int setup(void **state) {
    (void)state;
    open_world(&w, NULL, 1);
    return 0;
}

static inline int teardown(void **state) {
    (void)state;
    close_world(&w);
    return 0;
}

static inline size_t nodes(const char *path) {
    divvy_strings *names = divvy_testing_children(w.ensemble, path);
    size_t count = divvy_strings_count(names);
    divvy_strings_free(names);
    return count;
}

#endif
