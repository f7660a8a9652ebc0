/* The tests of a program. SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

enum { TESTS_MAX = 256 };

static struct CMUnitTest tests[TESTS_MAX];
static size_t test_count;
static CMFixtureFunction each_set_up, each_tear_down, group_set_up, group_tear_down;

void dv_test_register(struct CMUnitTest test) {
    if (test_count == TESTS_MAX) abort();
    tests[test_count++] = test;
}

void dv_test_each(CMFixtureFunction set_up, CMFixtureFunction tear_down) {
    each_set_up = set_up;
    each_tear_down = tear_down;
}

void dv_test_group(CMFixtureFunction set_up, CMFixtureFunction tear_down) {
    group_set_up = set_up;
    group_tear_down = tear_down;
}

int dv_test_run(void) {
    mallopt(M_PERTURB, 0xa5); /* New memory is not zero by chance. */
    for (size_t i = 0; i < test_count; i++) {
        if (tests[i].setup_func || tests[i].teardown_func) continue;
        tests[i].setup_func = each_set_up;
        tests[i].teardown_func = each_tear_down;
    }
    return _cmocka_run_group_tests(program_invocation_short_name, tests, test_count, group_set_up, group_tear_down);
}
