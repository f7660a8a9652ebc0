/* A client, its server and a proxy between them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_CLIENT_SESSION_FIXTURE_H
#define DV_TEST_CLIENT_SESSION_FIXTURE_H

#include "server_fixture.h"

#include "lib/expire.h"

/* The test's own session may look into what only the creator may read. */
static inline void open_truth(void) {
    truth = dv_test_zk_open(hosts());
    assert_int_equal(zoo_add_auth(dv_test_zk_handle(truth), "digest", "u:sesame", 8, NULL, NULL), ZOK);
}

static inline divvy_party *join(divvy_client *client, const char *path) {
    divvy_party *party;
    divvy_strings *members;
    assert_int_equal(divvy_party_join(&party, client, path, "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    divvy_strings_free(members);
    return party;
}

/* "scheme:permissions " of each entry, and in the world's its id. */
static inline const char *access_of(const char *path) {
    static char text[256];
    struct ACL_vector list;
    struct Stat stat;
    text[0] = '\0';
    assert_int_equal(zoo_get_acl(dv_test_zk_handle(truth), path, &list, &stat), ZOK);
    for (int i = 0; i < list.count; i++) {
        const struct ACL *entry = &list.data[i];
        bool world = strcmp(entry->id.scheme, "world") == 0;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s%s:%d ", entry->id.scheme, world ? ":" : "",
                 world ? entry->id.id : "", entry->perms);
    }
    deallocate_ACL_vector(&list);
    return text;
}

/* Expects the entries at a node and all below it. Over TLS the creator has an identity beside "digest:31 ": that of
 * its certificate, to which the server gives an entry of its own, before it. */
static inline void check_access(const char *path, const char *expected) {
    bool twice = getenv("DIVVY_TEST_TLS") && strncmp(expected, "digest:", 7) == 0;
    char all[256];
    snprintf(all, sizeof all, "%s%s", twice ? "x509:31 " : "", expected);
    assert_string_equal(access_of(path), all);
    size_t count;
    char **names = dv_test_zk_children(truth, path, &count);
    for (size_t i = 0; i < count; i++) {
        char child[512];
        snprintf(child, sizeof child, "%s/%s", path, names[i]);
        check_access(child, expected);
    }
    dv_test_zk_free_names(names);
}

static inline int set_up_trusted(void **state) {
    (void)state;
    server = dv_test_server_start(1, TICK_MS);
    open_truth();
    return 0;
}

#endif
