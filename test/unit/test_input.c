/* Bad and odd input to the partitioner: each a defined error with a message, or done right. And nothing is left.
 * SPDX-License-Identifier: Apache-2.0 */
#include "input_fixture.h"
#include <math.h>

/* --- refused ---------------------------------------------------------------------------------------------------- */

/* A path must be absolute, well-formed and not the server's own. */
TEST(test_paths) {
    static const char *const items[] = {"a"};
    static const char *const paths[] = {NULL,
                                        "",
                                        "relative",
                                        "a/b",
                                        "/a/",
                                        "//",
                                        "/a//b",
                                        "/.",
                                        "/a/..",
                                        "/a/./b",
                                        "/\n",
                                        "/\x7f",
                                        "/a\xff",
                                        "/zookeeper",
                                        "/zookeeper/quota",
                                        "/\xf0\x9f\x98\x80",
                                        "/\xee\x80\x80"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        divvy_partitioner_config config = config_for(paths[i], items, 1);
        REFUSED(&config, DIVVY_EINVAL, "path");
    }
}

/* Items must be there, not NULL, not empty, and each once; the message says which is not. */
TEST(test_items) {
    static const char *const with_null[] = {"a", NULL}, *const with_empty[] = {"a", "b", "", "c"},
                             *const twice[] = {"b", "a", "c", "b"};
    divvy_partitioner_config config = config_for("/refused", NULL, 0);
    REFUSED(&config, DIVVY_EINVAL, "items");
    config.item_count = 3;
    REFUSED(&config, DIVVY_EINVAL, "items");
    config = config_for("/refused", with_null, 0);
    REFUSED(&config, DIVVY_EINVAL, "items");
    config = config_for("/refused", with_null, 2);
    REFUSED(&config, DIVVY_EINVAL, "NULL");
    config = config_for("/refused", with_empty, 4);
    REFUSED(&config, DIVVY_EINVAL, "item 3 of 4");
    config = config_for("/refused", twice, 4);
    REFUSED(&config, DIVVY_EINVAL, "\"b\"");
    config = config_for("/refused", twice, 1000001);
    REFUSED(&config, DIVVY_E2BIG, "1,000,000");
}

/* Times must not be negative, nor longer than any use has; -1 stands for the other boundary only. */
TEST(test_times) {
    static const char *const items[] = {"a"};
    static const struct {
        size_t offset;
        const char *name;
        int64_t least;
    } times[] = {{offsetof(divvy_partitioner_config, time_boundary_ms), "time_boundary_ms", 0},
                 {offsetof(divvy_partitioner_config, leave_boundary_ms), "leave_boundary_ms", -1},
                 {offsetof(divvy_partitioner_config, settle_max_ms), "settle_max_ms", 0},
                 {offsetof(divvy_partitioner_config, allocate_timeout_ms), "allocate_timeout_ms", 0},
                 {offsetof(divvy_partitioner_config, release_warn_ms), "release_warn_ms", 0}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const int64_t bad[] = {times[i].least - 1, -1000, INT64_MIN};
        for (size_t j = 0; j < sizeof bad / sizeof bad[0]; j++) {
            divvy_partitioner_config config = config_for("/refused", items, 1);
            memcpy((char *)&config + times[i].offset, &bad[j], sizeof bad[j]);
            REFUSED(&config, DIVVY_EINVAL, times[i].name);
        }
        const int64_t too_long = INT64_MAX;
        divvy_partitioner_config config = config_for("/refused", items, 1);
        memcpy((char *)&config + times[i].offset, &too_long, sizeof too_long);
        REFUSED(&config, DIVVY_EINVAL, "");
    }
}

static int assign_nothing(const char *identifier, const char *const *members, size_t member_count,
                          const char *const *items, size_t item_count, uint8_t *mine, void *user) {
    (void)identifier, (void)members, (void)member_count, (void)items, (void)item_count, (void)mine, (void)user;
    return 0;
}

/* Choices have their values and no others, and a function goes with DIVVY_ASSIGN_FUNC. */
TEST(test_choices) {
    static const char *const items[] = {"a"};
    static const struct {
        size_t offset;
        const char *name;
        int most;
    } choices[] = {{offsetof(divvy_partitioner_config, mode), "mode", DIVVY_EAGER},
                   {offsetof(divvy_partitioner_config, assign), "assign", DIVVY_ASSIGN_FUNC},
                   {offsetof(divvy_partitioner_config, on_suspend), "on_suspend", DIVVY_RELEASE_ON_SUSPEND},
                   {offsetof(divvy_partitioner_config, on_session_loss), "on_session_loss", DIVVY_REJOIN}};
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        const int bad[] = {-1, choices[i].most + 1, 1000};
        for (size_t j = 0; j < sizeof bad / sizeof bad[0]; j++) {
            divvy_partitioner_config config = config_for("/refused", items, 1);
            memcpy((char *)&config + choices[i].offset, &bad[j], sizeof bad[j]);
            REFUSED(&config, DIVVY_EINVAL, choices[i].name);
        }
    }
    divvy_partitioner_config config = config_for("/refused", items, 1);
    config.assign = DIVVY_ASSIGN_FUNC;
    REFUSED(&config, DIVVY_EINVAL, "func");
    config.assign = DIVVY_ASSIGN_AUTO;
    config.func = assign_nothing;
    REFUSED(&config, DIVVY_EINVAL, "func");
}

/* An option that only a plan can heed is accepted only with an assignment by plan, and only in its range. */
TEST(test_plan_options) {
    static const char *const items[] = {"a"};
    static const int by_names[] = {DIVVY_ASSIGN_ROUND_ROBIN, DIVVY_ASSIGN_RENDEZVOUS, DIVVY_ASSIGN_FUNC};
    for (size_t i = 0; i < sizeof by_names / sizeof *by_names; i++) {
        for (int what = 0; what < 8; what++) {
            divvy_partitioner_config config = config_for("/refused", items, 1);
            config.assign = by_names[i];
            config.func = config.assign == DIVVY_ASSIGN_FUNC ? assign_nothing : NULL;
            config.identifier = "a";
            if (what == 0) config.weight = 2000;
            if (what == 1) config.weight = 0;
            if (what == 2) config.zone = "eu";
            if (what == 3) config.max_moves = 1;
            if (what == 4) config.static_membership = 1;
            if (what == 5) config.tags = "gpu";
            if (what == 6) config.item_cap = 1;
            if (what == 7) config.min_members = 2;
            REFUSED(&config, DIVVY_EINVAL, "DIVVY_ASSIGN_STICKY");
        }
    }
    char zone[514];
    memset(zone, 'z', sizeof zone - 1);
    zone[513] = '\0';
    divvy_partitioner_config config = config_for("/refused", items, 1);
    config.zone = zone;
    REFUSED(&config, DIVVY_E2BIG, "zone");
    config.zone = "\xff";
    REFUSED(&config, DIVVY_EINVAL, "zone");
    config = config_for("/refused", items, 1);
    config.static_membership = 1;
    REFUSED(&config, DIVVY_EINVAL, "identifier");
    config = config_for("/refused", items, 1);
    config.rejoin_delay_ms = 1;
    REFUSED(&config, DIVVY_EINVAL, "static_membership");
    config.rejoin_delay_ms = -1;
    REFUSED(&config, DIVVY_EINVAL, "rejoin_delay_ms");
    config = config_for("/refused", items, 1);
    config.round_timeout_ms = -1;
    REFUSED(&config, DIVVY_EINVAL, "round_timeout_ms");
    config = config_for("/refused", items, 1);
    config.max_moves = (size_t)UINT32_MAX + 1;
    REFUSED(&config, DIVVY_EINVAL, "max_moves");
}

/* Tags, caps and what goes with loads are accepted in their range, and nowhere else. */
TEST(test_load_options) {
    static const char *const items[] = {"a"};
    static const char *const bad_tags[] = {
        "", ",", "a,", ",a", "a,,b", "a b", "a/b", "\xc3\xa9", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"};
    for (size_t i = 0; i < sizeof bad_tags / sizeof *bad_tags; i++) {
        divvy_partitioner_config config = config_for("/refused", items, 1);
        config.tags = bad_tags[i];
        REFUSED(&config, DIVVY_EINVAL, "tag");
    }
    static const char *const bad_units[] = {"", "Cores x", "12345678901234567", "\xff", "a,b"};
    for (size_t i = 0; i < sizeof bad_units / sizeof *bad_units; i++) {
        divvy_partitioner_config config = config_for("/refused", items, 1);
        config.load_unit = bad_units[i];
        REFUSED(&config, DIVVY_EINVAL, "load_unit");
    }
    static const double bad_floors[] = {-0.1, HUGE_VAL, NAN};
    for (size_t i = 0; i < sizeof bad_floors / sizeof *bad_floors; i++) {
        divvy_partitioner_config config = config_for("/refused", items, 1);
        config.load_floor = bad_floors[i];
        REFUSED(&config, DIVVY_EINVAL, "load_floor");
    }
    static const int64_t bad_intervals[] = {-1, 0, 999, 3600001};
    for (size_t i = 0; i < sizeof bad_intervals / sizeof *bad_intervals; i++) {
        divvy_partitioner_config config = config_for("/refused", items, 1);
        config.load_interval_ms = bad_intervals[i];
        REFUSED(&config, DIVVY_EINVAL, "load_interval_ms");
    }
    divvy_partitioner_config config = config_for("/refused", items, 1);
    config.item_cap = (size_t)UINT32_MAX + 1;
    REFUSED(&config, DIVVY_EINVAL, "item_cap");
    config = config_for("/refused", items, 1);
    config.min_members = 10001;
    REFUSED(&config, DIVVY_EINVAL, "min_members");
    config = config_for("/refused", items, 1);
    config.min_members_wait_ms = -1;
    REFUSED(&config, DIVVY_EINVAL, "min_members_wait_ms");
    config = config_for("/load-options", items, 1);
    config.tags = "ssd,gpu,ssd";
    config.load_unit = "req/s";
    config.load_interval_ms = 3600000;
    config.load_floor = 0.4;
    config.item_cap = UINT32_MAX;
    config.min_members = 1;
    divvy_partitioner *p = create(&config);
    acquire(p);
    finish(p, "/load-options");
}

/* A load is a finite number from 0 up, of an item that the pool has, and goes with a plan. */
TEST(test_set_load) {
    static const char *const items[] = {"a"};
    divvy_partitioner_config config = config_for("/loads-by-names", items, 1);
    config.assign = DIVVY_ASSIGN_RENDEZVOUS;
    divvy_partitioner *p = create(&config);
    ASSERT_FAILS(divvy_partitioner_set_load(p, "a", 1), DIVVY_EINVAL, client, "DIVVY_ASSIGN_AUTO");
    finish(p, "/loads-by-names");
    config = config_for("/loads-by-plan", items, 1);
    p = create(&config);
    assert_int_equal(divvy_partitioner_set_load(p, "a", 1), 0); /* passed over: it is not ours yet */
    acquire(p);
    static const double bad[] = {-1, -HUGE_VAL, HUGE_VAL, NAN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ASSERT_FAILS(divvy_partitioner_set_load(p, "a", bad[i]), DIVVY_EINVAL, client, "\"a\"");
    ASSERT_FAILS(divvy_partitioner_set_load(p, NULL, 1), DIVVY_EINVAL, client, "NULL");
    ASSERT_FAILS(divvy_partitioner_set_load(NULL, "a", 1), DIVVY_EINVAL, NULL, "the partitioner is NULL");
    ASSERT_FAILS(divvy_partitioner_set_load(p, "b", 1), DIVVY_ENOENT, client, "\"b\"");
    assert_int_equal(divvy_partitioner_set_load(p, "a", 0), 0);
    assert_int_equal(divvy_partitioner_set_load(p, "a", 1e300), 0);
    finish(p, "/loads-by-plan");
}

/* Weights and items are asked for of a plan: where the member goes by names, or has ended, that is said. */
TEST(test_asking_in_vain) {
    static const char *const items[] = {"a"};
    divvy_partitioner_config config = config_for("/by-names", items, 1);
    config.assign = DIVVY_ASSIGN_RENDEZVOUS;
    divvy_partitioner *p = create(&config);
    ASSERT_FAILS(divvy_partitioner_set_items(p, items, 1), DIVVY_ESTATE, client, "set_items");
    ASSERT_FAILS(divvy_partitioner_set_weight(p, 1000), DIVVY_EINVAL, client, "set_weight");
    acquire(p);
    ASSERT_FAILS(divvy_partitioner_leave(p, 0, -2), DIVVY_EINVAL, client, "leave");
    assert_int_equal(divvy_partitioner_leave(p, 0, PATIENCE_MS), 0);
    finish(p, "/by-names");
    config = config_for("/by-plan", items, 1);
    p = create(&config);
    assert_int_equal(divvy_partitioner_set_weight(p, 2000), 0);
    acquire(p);
    assert_int_equal(divvy_partitioner_leave(p, 0, PATIENCE_MS), 0);
    assert_int_equal(divvy_partitioner_failure(p, NULL, 0), DIVVY_ECANCELED);
    ASSERT_FAILS(divvy_partitioner_set_items(p, items, 1), DIVVY_ESTATE, client, "set_items");
    ASSERT_FAILS(divvy_partitioner_set_weight(p, 1000), DIVVY_ESTATE, client, "set_weight");
    finish(p, "/by-plan");
}

/* An identifier stands in a node's name: not empty, up to 512 bytes, and nothing that may not stand there. */
TEST(test_identifiers) {
    static const char *const items[] = {"a"};
    static const char *const bad[] = {"", "a/b", "\x01", "a\n", "\x7f", "\xff", "\xc3", "\xf0\x9f\x98\x80", "%2f"};
    static const char *const good[] = {"-",     "a-b", "with space",  "\xc3\xa9\xe2\x82\xac",
                                       "a,b=c", "50%", "\"quoted\"\\"};
    char text[514];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        divvy_partitioner_config config = config_for("/refused", items, 1);
        config.identifier = bad[i];
        REFUSED(&config, DIVVY_EINVAL, "identifier");
    }
    memset(text, 'i', sizeof text);
    text[513] = '\0';
    divvy_partitioner_config config = config_for("/refused", items, 1);
    config.identifier = text;
    REFUSED(&config, DIVVY_E2BIG, "513");
    text[512] = '\0';
    for (size_t i = 0; i <= sizeof good / sizeof good[0]; i++) {
        config = config_for("/identifiers", items, 1);
        config.identifier = i < sizeof good / sizeof good[0] ? good[i] : text;
        divvy_partitioner *p = create(&config);
        assert_string_equal(divvy_partitioner_identifier(p), config.identifier);
        acquire(p);
        finish(p, "/identifiers");
    }
}

TEST_GROUP(set_up, tear_down);
