/* Tests of who is in a party, from outside, and of our own nodes. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

enum { WAIT_MS = 60000 };

static divvy_testing_ensemble *ensemble;
static divvy_client *client, *rooted; /* the second one in a chroot */

static int open_client(divvy_client **out, const char *hosts) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.hosts = hosts;
    return divvy_testing_client_open(out, ensemble, &config);
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    if (divvy_testing_ensemble_create(&ensemble, &config) != 0) return -1;
    return open_client(&client, NULL) || open_client(&rooted, "ensemble:2181/root") ? -1 : 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_client_close(client);
    divvy_client_close(rooted);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

static size_t list(divvy_client *c, const char *path, int kind, char *first) {
    divvy_strings *names = NULL;
    assert_int_equal(divvy_party_list(c, path, kind, &names, WAIT_MS), 0);
    size_t count = divvy_strings_count(names);
    if (count) strcpy(first, divvy_strings_get(names, 0));
    divvy_strings_free(names);
    return count;
}

static divvy_party *join(divvy_client *c, const char *path, const char *identifier, int kind) {
    divvy_party *party;
    divvy_strings *names = NULL;
    assert_int_equal(divvy_party_join(&party, c, path, identifier, kind), 0);
    assert_int_equal(divvy_party_joined(party), 0);
    assert_int_equal(divvy_party_members(party, &names, WAIT_MS), 0);
    assert_int_equal(divvy_party_joined(party), 1);
    divvy_strings_free(names);
    return party;
}

/* Somebody who is no member sees the members of either kind of party, and nobody where there is no party; and is none
 * of them. */
TEST(test_list) {
    static const int kinds[] = {DIVVY_PARTY, DIVVY_SHALLOW_PARTY};
    char first[64], path[16];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/p%d", i);
        assert_int_equal(list(rooted, path, kinds[i], first), 0);
        divvy_party *a = join(rooted, path, "a", kinds[i]);
        char outside[32];
        snprintf(outside, sizeof outside, "/root%s", path);
        assert_int_equal(list(client, outside, kinds[i], first), 1);
        assert_string_equal(first, "a");
        assert_int_equal(divvy_party_leave(a, WAIT_MS), 0);
        assert_int_equal(divvy_party_joined(a), 0);
        assert_int_equal(list(client, outside, kinds[i], first), 0);
        divvy_party_destroy(a);
    }
}

/* Wrong arguments are told, and nothing is listed. */
TEST(test_list_arguments) {
    divvy_strings *names;
    assert_int_equal(divvy_party_list(NULL, "/p", DIVVY_PARTY, &names, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_party_list(client, NULL, DIVVY_PARTY, &names, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_party_list(client, "p", DIVVY_PARTY, &names, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_party_list(client, "/", DIVVY_PARTY, &names, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_party_list(client, "/p", 7, &names, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_party_list(client, "/p", DIVVY_PARTY, NULL, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_party_list(client, "/p", DIVVY_PARTY, &names, -2), DIVVY_EINVAL);
    assert_null(names);
    divvy_testing_link_client(ensemble, client, DIVVY_TESTING_LINK_DOWN);
    assert_int_equal(divvy_party_list(client, "/p", DIVVY_PARTY, &names, 100), DIVVY_ETIMEDOUT);
    assert_non_null(strstr(divvy_client_error(client), "/p"));
}

/* The path of a party's node is that of a node that is there. Without the chroot, cut to the room that is given; none
 * when it has gone. */
TEST(test_party_node) {
    char path[128], full[160], cut[5] = "xxxx";
    divvy_party *a = join(rooted, "/p", "a", DIVVY_SHALLOW_PARTY);
    size_t bytes = divvy_party_node(a, path, sizeof path);
    assert_int_equal(bytes, strlen(path));
    assert_memory_equal(path, "/p/", 3);
    snprintf(full, sizeof full, "/root%s", path);
    assert_true(divvy_testing_exists(ensemble, full));
    assert_int_equal(divvy_party_node(a, cut, sizeof cut), bytes);
    assert_memory_equal(cut, path, 4);
    assert_int_equal(cut[4], '\0');
    assert_int_equal(divvy_party_node(a, NULL, 0), bytes);
    divvy_testing_expire(ensemble, rooted);
    while (divvy_party_joined(a)) assert_true(divvy_client_process(rooted, 1000) >= 0);
    assert_int_equal(divvy_party_node(a, path, sizeof path), 0);
    assert_string_equal(path, "");
    while (!divvy_party_joined(a)) assert_true(divvy_client_process(rooted, 1000) >= 0);
    assert_int_equal(divvy_party_node(a, path, sizeof path), bytes);
    divvy_party_destroy(a);
    assert_int_equal(divvy_party_node(NULL, NULL, 0) + (size_t)divvy_party_joined(NULL), 0);
}

/* A member of a pool is joined from the making of its node until it finishes. */
TEST(test_partitioner_node) {
    static const char *const items[] = {"a"};
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_partitioner *p;
    char path[128];
    config.path = "/pool";
    config.items = items;
    config.item_count = 1;
    assert_int_equal(divvy_partitioner_create(&p, client, &config), 0);
    assert_int_equal(divvy_partitioner_joined(p), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, WAIT_MS), 0);
    assert_int_equal(divvy_partitioner_joined(p), 1);
    size_t bytes = divvy_partitioner_node(p, path, sizeof path);
    assert_int_equal(bytes, strlen(path));
    assert_memory_equal(path, "/pool/party/", 12);
    assert_true(divvy_testing_exists(ensemble, path));
    assert_int_equal(divvy_partitioner_finish(p, WAIT_MS), 0);
    assert_int_equal(divvy_partitioner_joined(p), 0);
    divvy_partitioner_destroy(p);
    assert_int_equal(divvy_partitioner_node(NULL, path, sizeof path), 0);
    assert_string_equal(path, "");
}

static void on_done(divvy_lock *lock, int result, void *user) {
    (void)lock, (void)result, (void)user;
}

/* A lock has a node while it is held, and while it waits; no two have the same one. */
TEST(test_lock_node) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *first, *second;
    char one[128], two[128];
    config.path = "/l";
    assert_int_equal(divvy_lock_create(&first, rooted, &config), 0);
    assert_int_equal(divvy_lock_create(&second, rooted, &config), 0);
    assert_int_equal(divvy_lock_node(first, one, sizeof one), 0);
    assert_int_equal(divvy_lock_acquire(first, WAIT_MS), 0);
    size_t bytes = divvy_lock_node(first, one, sizeof one);
    assert_int_equal(bytes, strlen(one));
    assert_int_equal(divvy_lock_acquire_async(second, -1, on_done, NULL), 0);
    while (divvy_lock_node(second, two, sizeof two) == 0) assert_true(divvy_client_process(rooted, 1000) >= 0);
    assert_memory_equal(one, "/l/", 3);
    assert_memory_equal(two, "/l/", 3);
    assert_string_not_equal(one, two);
    assert_int_equal(divvy_lock_release(first), 0);
    assert_int_equal(divvy_lock_node(first, one, sizeof one), 0);
    assert_string_equal(one, "");
    divvy_lock_destroy(first);
    divvy_lock_destroy(second);
}

TEST_EACH(set_up, tear_down);
