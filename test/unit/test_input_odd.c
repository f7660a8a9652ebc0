/* Odd input to the partitioner: sizes, items of odd bytes, many items. SPDX-License-Identifier: Apache-2.0 */
#include "input_fixture.h"

/* A config of another size, and one that is not there. */
TEST(test_sizes) {
    static const char *const items[] = {"a"};
    struct {
        divvy_partitioner_config config;
        char more[32];
    } later = {.config = config_for("/refused", items, 1)};
    const size_t refused[] = {0, 1, 1024 * 1024, SIZE_MAX};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        later.config.size = refused[i];
        REFUSED(&later.config, DIVVY_EINVAL, "INIT");
    }
    later.config.size = sizeof later;
    later.more[3] = 1;
    REFUSED(&later.config, DIVVY_EINVAL, "INIT");
    REFUSED(NULL, DIVVY_EINVAL, "");
    ASSERT_FAILS(divvy_partitioner_create(NULL, client, &later.config), DIVVY_EINVAL, client, "");
    later.more[3] = 0;
    later.config.path = "/sizes";
    divvy_partitioner *p = create(&later.config);
    acquire(p);
    finish(p, "/sizes");
    later.config.size = offsetof(divvy_partitioner_config, identifier); /* all else is completed */
    later.config.mode = 77;
    p = create(&later.config);
    divvy_partitioner_destroy(p);
}

/* An item of 300 KB could not be locked: refused, with a message of bounded length that begins with its name. */
TEST(test_huge_item) {
    enum { HUGE_BYTES = 300 * 1024 };
    char *huge = malloc(HUGE_BYTES + 1);
    assert_non_null(huge);
    memset(huge, 'h', HUGE_BYTES);
    huge[HUGE_BYTES] = '\0';
    const char *const items[] = {"small", huge};
    divvy_partitioner_config config = config_for("/refused", items, 2);
    REFUSED(&config, DIVVY_E2BIG, "hhhh");
    assert_true(strlen(divvy_client_error(client)) < 512);
    huge[30 * 1024] = '\0'; /* Large, but not too large. */
    config = config_for("/large", items, 2);
    divvy_partitioner *p = create(&config);
    acquire(p);
    assert_int_equal(divvy_partitioner_owns(p, huge), 1);
    finish(p, "/large");
    free(huge);
}

/* --- NULL ------------------------------------------------------------------------------------------------------- */

/* NULL to each function is an error with a message, or nothing at all. */
TEST(test_null) {
    static const char *const items[] = {"a"};
    divvy_partitioner_config config = config_for("/refused", items, 1);
    divvy_partitioner *p;
    char message[64] = "untouched";
    ASSERT_FAILS(divvy_partitioner_create(&p, NULL, &config), DIVVY_EINVAL, NULL, "");
    assert_null(p);
    ASSERT_FAILS(divvy_partitioner_wait_change(NULL, 0, 0), DIVVY_EINVAL, NULL, "");
    ASSERT_FAILS(divvy_partitioner_wait_for_acquire(NULL, 0), DIVVY_EINVAL, NULL, "");
    ASSERT_FAILS(divvy_partitioner_release_set(NULL), DIVVY_EINVAL, NULL, "");
    ASSERT_FAILS(divvy_partitioner_release_set_id(NULL, 1), DIVVY_EINVAL, NULL, "");
    ASSERT_FAILS(divvy_partitioner_finish(NULL, 0), DIVVY_EINVAL, NULL, "");
    ASSERT_FAILS(divvy_partitioner_failure(NULL, message, sizeof message), DIVVY_EINVAL, NULL, "");
    assert_string_equal(message, "");
    strcpy(message, "untouched");
    ASSERT_FAILS(divvy_partitioner_set_items(NULL, items, 1), DIVVY_EINVAL, NULL, "");
    ASSERT_FAILS(divvy_partitioner_set_weight(NULL, 1), DIVVY_EINVAL, NULL, "");
    ASSERT_FAILS(divvy_partitioner_leave(NULL, 0, 1), DIVVY_EINVAL, NULL, "");
    assert_int_equal(divvy_partitioner_state(NULL), DIVVY_FAILURE);
    assert_int_equal(divvy_partitioner_state_id(NULL), 0);
    assert_null(divvy_partitioner_partition(NULL));
    assert_int_equal(divvy_partitioner_owns(NULL, "a"), 0);
    assert_null(divvy_partitioner_identifier(NULL));
    divvy_partitioner_destroy(NULL);
    assert_int_equal(divvy_partition_count(NULL), 0);
    assert_null(divvy_partition_item(NULL, 0));
    assert_int_equal(divvy_partition_token(NULL, 0), 0);
    assert_int_equal(divvy_partition_revoked(NULL, 0), 0);
    assert_int_equal(divvy_partition_generation(NULL), 0);
    assert_int_equal(divvy_partition_short(NULL), 0);
    divvy_partition_unref(NULL);

    config.path = "/null";
    p = create(&config);
    assert_int_equal(divvy_partitioner_owns(p, NULL), 0);
    assert_int_equal(divvy_partitioner_failure(p, NULL, 0), 0);
    assert_int_equal(divvy_partitioner_failure(p, NULL, 10), 0);
    assert_int_equal(divvy_partitioner_failure(p, message, 0), 0);
    assert_string_equal(message, "untouched");
    assert_int_equal(divvy_partitioner_failure(p, message, sizeof message), 0);
    assert_string_equal(message, "");
    ASSERT_FAILS(divvy_partitioner_set_items(p, NULL, 1), DIVVY_EINVAL, client, "");
    ASSERT_FAILS(divvy_partitioner_wait_change(p, 0, -2), DIVVY_EINVAL, client, "timeout_ms");
    ASSERT_FAILS(divvy_partitioner_wait_for_acquire(p, -2), DIVVY_EINVAL, client, "timeout_ms");
    ASSERT_FAILS(divvy_partitioner_finish(p, -2), DIVVY_EINVAL, client, "timeout_ms");
    acquire(p); /* The refused calls have done nothing. */
    ASSERT_FAILS(divvy_partitioner_release_set(p), DIVVY_ESTATE, client, "ACQUIRED");
    divvy_partition *mine = divvy_partitioner_partition(p);
    assert_int_equal(divvy_partition_count(mine), 1);
    assert_null(divvy_partition_item(mine, 1));
    assert_int_equal(divvy_partition_token(mine, 1), 0);
    assert_int_equal(divvy_partition_revoked(mine, SIZE_MAX), 0);
    divvy_partition_unref(mine);
    finish(p, "/null");
}

/* A failure's message is cut to the room there is. */
TEST(test_failure_message) {
    static const char *const items[] = {"a"};
    divvy_partitioner_config config = config_for("/failure", items, 1);
    divvy_partitioner *p = create(&config);
    acquire(p);
    assert_int_equal(divvy_partitioner_finish(p, PATIENCE_MS), 0);
    char whole[128], one[1] = {'x'}, three[3];
    assert_int_equal(divvy_partitioner_failure(p, whole, sizeof whole), DIVVY_ECANCELED);
    assert_true(strlen(whole) > 2);
    assert_int_equal(divvy_partitioner_failure(p, one, sizeof one), DIVVY_ECANCELED);
    assert_int_equal(one[0], '\0');
    assert_int_equal(divvy_partitioner_failure(p, three, sizeof three), DIVVY_ECANCELED);
    assert_int_equal(strlen(three), 2);
    assert_memory_equal(three, whole, 2);
    ASSERT_FAILS(divvy_partitioner_wait_for_acquire(p, 0), DIVVY_ESTATE, client, whole);
    ASSERT_FAILS(divvy_partitioner_release_set(p), DIVVY_ESTATE, client, "FAILURE");
    assert_int_equal(divvy_partitioner_finish(p, PATIENCE_MS), 0); /* again: all is gone */
    divvy_partitioner_destroy(p);
}

/* --- odd, and done right ---------------------------------------------------------------------------------------- */

/* Items of any bytes are owned: each has a directory of its own, whose name decodes back to the item, and nothing is
 * left of it afterwards. */
TEST(test_odd_items) {
    static const char *const items[] = {"plain",
                                        "with/slash",
                                        "/",
                                        "//",
                                        ".",
                                        "..",
                                        "...",
                                        "./.",
                                        "%",
                                        "%%",
                                        "%2",
                                        "%2F",
                                        "%2f",
                                        "%25",
                                        "50%",
                                        "50%25",
                                        "%/",
                                        "%00",
                                        "\x01\x02\x1f",
                                        "tab\tnewline\n",
                                        "\x7f",
                                        "\xc2\x80",
                                        "\xc3\xa9",
                                        "\xc3",
                                        "\xff\xfe",
                                        "\xe2\x82",
                                        "\xed\xa0\x80",
                                        "\xf0\x9f\x98\x80",
                                        "caf\xc3\xa9 \xf0\x9f\x8d\xb0/%41",
                                        "\xee\x80\x80",
                                        "\xef\xbf\xbf",
                                        " ",
                                        "a b",
                                        "-",
                                        "__lock__0000000001",
                                        "zookeeper",
                                        "\"quoted\" \\",
                                        "locks",
                                        "party"};
    enum { COUNT = sizeof items / sizeof items[0] };
    divvy_partitioner_config config = config_for("/odd", items, COUNT);
    divvy_partitioner *p = create(&config);
    acquire(p);
    divvy_strings *directories = divvy_testing_children(ensemble, "/odd/locks");
    assert_int_equal(divvy_strings_count(directories), COUNT);
    bool seen[COUNT] = {false};
    for (size_t i = 0; i < COUNT; i++) {
        char name[256], path[512];
        assert_true(dv_name_decode(divvy_strings_get(directories, i), name, sizeof name) < sizeof name);
        size_t j = 0;
        while (j < COUNT && strcmp(items[j], name) != 0) j++;
        assert_true(j < COUNT);
        assert_false(seen[j]);
        seen[j] = true;
        snprintf(path, sizeof path, "/odd/locks/%s", divvy_strings_get(directories, i));
        assert_int_equal(children_of(path), 1);
    }
    divvy_strings_free(directories);
    divvy_partition *mine = divvy_partitioner_partition(p);
    assert_int_equal(divvy_partition_count(mine), COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(divvy_partitioner_owns(p, items[i]), 1);
        assert_true(divvy_partition_token(mine, i) > 0);
        if (i) assert_true(strcmp(divvy_partition_item(mine, i - 1), divvy_partition_item(mine, i)) < 0);
    }
    divvy_partition_unref(mine);
    assert_int_equal(divvy_partitioner_owns(p, "unknown"), 0);
    assert_int_equal(divvy_partitioner_owns(p, ""), 0);
    finish(p, "/odd");
}

/* The caller's arrays and strings are free to go once create has returned. */
TEST(test_strings_are_copied) {
    char path[] = "/copied", one[] = "one", two[] = "two", identifier[] = "me", name[] = "func";
    const char *items[] = {two, one};
    divvy_partitioner_config config = config_for(path, items, 2);
    config.identifier = identifier;
    config.func_name = name;
    divvy_partitioner *p = create(&config);
    memset(path, 'x', sizeof path - 1);
    memset(one, 'x', sizeof one - 1);
    memset(two, 'x', sizeof two - 1);
    memset(identifier, 'x', sizeof identifier - 1);
    memset(name, 'x', sizeof name - 1);
    memset(items, 0, sizeof items);
    memset(&config, 0xff, sizeof config);
    acquire(p);
    assert_int_equal(divvy_partitioner_owns(p, "one") + divvy_partitioner_owns(p, "two"), 2);
    assert_string_equal(divvy_partitioner_identifier(p), "me");
    finish(p, "/copied");
}

static void on_warning(divvy_client *warned, int code, const char *message, void *user) {
    (void)warned, (void)message;
    if (code == DIVVY_WARN_SHORT) ++*(int *)user;
}

/* A hundred thousand items are more than a session may lock: it takes what fits, in order of the names, says that it
 * is short, comes to its end all the same, and leaves nothing behind. */
TEST(test_many_items) {
    enum { COUNT = 100000, BUDGET = 150000 };
    int warned = 0;
    char **items = calloc(COUNT, sizeof *items);
    assert_non_null(items);
    for (int i = 0; i < COUNT; i++) assert_true(asprintf(&items[i], "item-%06d", i) > 0);
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.ephemeral_path_bytes = BUDGET;
    client_config.on_warning = on_warning;
    client_config.user = &warned;
    divvy_client *own = open_client(&client_config);
    divvy_partitioner_config config = config_for("/many", (const char *const *)items, COUNT);
    divvy_partitioner *p;
    assert_int_equal(divvy_partitioner_create(&p, own, &config), 0);
    int error = divvy_partitioner_wait_for_acquire(p, PATIENCE_MS);
    if (error) fail_msg("%s", divvy_client_error(own));
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(own, &stats, sizeof stats), 0);
    assert_true(stats.ephemeral_path_bytes <= BUDGET);
    divvy_partition *mine = divvy_partitioner_partition(p);
    assert_int_equal(divvy_partition_short(mine), 1);
    size_t owned = divvy_partition_count(mine);
    assert_in_range(owned, BUDGET / 120, BUDGET / 50); /* by the length of a lock's path */
    for (size_t i = 0; i < owned; i++) assert_string_equal(divvy_partition_item(mine, i), items[i]);
    divvy_partition_unref(mine);
    assert_int_equal(divvy_partitioner_owns(p, items[0]), 1);
    assert_int_equal(divvy_partitioner_owns(p, items[COUNT - 1]), 0);
    assert_int_equal(warned, 1);
    error = divvy_partitioner_finish(p, PATIENCE_MS);
    if (error) fail_msg("%s", divvy_client_error(own));
    divvy_partitioner_destroy(p);
    divvy_client_close(own);
    assert_int_equal(children_of("/many/locks"), 0);
    for (int i = 0; i < COUNT; i++) free(items[i]);
    free(items);
}

/* The refused calls have made nothing. */
TEST(test_nothing_left) {
    assert_int_equal(divvy_testing_exists(ensemble, "/refused"), 0);
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(client, &stats, sizeof stats), 0);
    assert_int_equal(stats.ephemerals, 0);
    assert_int_equal(stats.ephemeral_path_bytes, 0);
}

TEST_GROUP(set_up, tear_down);
