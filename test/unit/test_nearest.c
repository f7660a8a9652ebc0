/* "Did you mean": which word is nearest. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "divvy/nearest.h"
#include "lib/test.h"

static const char *const words[] = {"connect", "lock", "locks", "partition", "path", "status"};

static const char *meant(const char *typed) {
    dv_nearest nearest = dv_nearest_to(typed, strlen(typed));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) dv_nearest_try(&nearest, words[i]);
    return nearest.word;
}

/* One mistake of each kind, and as many as the length allows. */
TEST(test_mistakes) {
    static const char *const rows[][2] = {
        {"conect", "connect"},     {"connnect", "connect"}, {"cobnect", "connect"}, {"conenct", "connect"},
        {"lokc", "lock"},          {"loks", "locks"},       {"lockss", "locks"},    {"partiton", "partition"},
        {"prtitoin", "partition"}, {"sattus", "status"},    {"connect", "connect"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) assert_string_equal(meant(rows[i][0]), rows[i][1]);
}

TEST(test_none_is_near) {
    static const char *const typed[] = {
        "", "x", "pa", "pool", "kcol", "part", "a-word-that-is-much-longer-than-any-option-is-and-so-is-none"};
    for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++) assert_null(meant(typed[i]));
    assert_null(dv_nearest_to("anything", 8).word);
}

/* Only so much of what was typed counts, as in --conect=zk1:2181. */
TEST(test_part_of_what_was_typed) {
    dv_nearest nearest = dv_nearest_to("conect=zk1:2181", 6);
    dv_nearest_try(&nearest, "connect");
    assert_string_equal(nearest.word, "connect");
    assert_int_equal(nearest.mistakes, 1);
    assert_string_equal(dv_nearest_question(&nearest, "--"), "; did you mean --connect?");
    nearest = dv_nearest_to("none", 4);
    assert_string_equal(dv_nearest_question(&nearest, "--"), "");
}

TEST_GROUP(NULL, NULL);
