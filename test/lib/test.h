/* Tests that register themselves, in the order of their file, so that no list of them is kept. SPDX-License-Identifier:
 * Apache-2.0
 *
 * A program of tests needs no main(). One that has a main() for its own arguments ends it with dv_test_run(). */
#ifndef DV_TEST_TEST_H
#define DV_TEST_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Defines a test, whose body follows. */
#define TEST(name) TEST_IN(name, NULL, NULL)

/* Defines a test that runs between `set_up` and `tear_down`; either may be NULL. Its body finds in `*state` what
 * `set_up` has put there. */
#define TEST_IN(name, set_up, tear_down)                                             \
    static void name(void **state);                                                  \
    __attribute__((constructor)) static void name##_register(void) {                 \
        dv_test_register((struct CMUnitTest){#name, name, set_up, tear_down, NULL}); \
    }                                                                                \
    static void name(__attribute__((unused)) void **state)

/* Makes each test of the program that has no fixture of its own run between `set_up` and `tear_down`. */
#define TEST_EACH(set_up, tear_down)                                       \
    __attribute__((constructor)) static void dv_test_each_register(void) { \
        dv_test_each(set_up, tear_down);                                   \
    }                                                                      \
    struct CMUnitTest

/* Makes `set_up` run before the first test of the program, and `tear_down` behind the last; either may be NULL. */
#define TEST_GROUP(set_up, tear_down)                                       \
    __attribute__((constructor)) static void dv_test_group_register(void) { \
        dv_test_group(set_up, tear_down);                                   \
    }                                                                       \
    struct CMUnitTest

void dv_test_register(struct CMUnitTest test);
void dv_test_each(CMFixtureFunction set_up, CMFixtureFunction tear_down);
void dv_test_group(CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* Runs all tests of the program. Returns how many have failed. */
int dv_test_run(void);

#endif
