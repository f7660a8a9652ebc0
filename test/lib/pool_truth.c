/* The truth about a pool, as ZooKeeper says it, and the acts of others there. See pool.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "pool_internal.h"

#include "znode/path.h"

#include <inttypes.h>
#include <string.h>

static char *join(const char *parent, const char *name) {
    char *path = dv_path_join(parent, name);
    if (!path) dv_test_die("no memory");
    return path;
}

/* P/party or P/locks, with what is above it. */
static char *make_path(dv_test_pool *pool, const char *name) {
    char *path = join(pool->path, name);
    dv_test_zk_create(pool->truth, pool->path, "", 0, NULL);
    dv_test_zk_create(pool->truth, path, "", 0, NULL);
    return path;
}

/* ---- queues ---- */

const char *dv_test_pool_queue(dv_test_pool *pool, const char *item) {
    static char path[70000];
    int used = snprintf(path, sizeof path, "%s/locks/", pool->path);
    dv_name_encode(item, path + used, sizeof path - (size_t)used);
    return path;
}

/* The number at the end, INT64_MAX for what is no contender. */
static int64_t sequence_of(const char *name) {
    const char *marker = strstr(name, "__lock__");
    return marker ? strtoll(marker + strlen("__lock__"), NULL, 10) : INT64_MAX;
}

size_t dv_test_pool_queue_length(dv_test_pool *pool, const char *item) {
    size_t count = 0;
    char **names = dv_test_zk_children(pool->truth, dv_test_pool_queue(pool, item), &count);
    dv_test_zk_free_names(names);
    return names ? count : 0;
}

int64_t dv_test_pool_owner(dv_test_pool *pool, const char *item, int64_t *czxid) {
    char *queue = strdup(dv_test_pool_queue(pool, item));
    char **names = queue ? dv_test_zk_children(pool->truth, queue, NULL) : NULL;
    const char *first = NULL;
    for (char **name = names; name && *name; name++) {
        if (!first || sequence_of(*name) < sequence_of(first)) first = *name;
    }
    struct Stat stat = {0};
    if (first) {
        char *path = join(queue, first);
        dv_test_zk_exists(pool->truth, path, &stat);
        free(path);
    }
    dv_test_zk_free_names(names);
    free(queue);
    *czxid = stat.czxid;
    return stat.ephemeralOwner;
}

static void check_owner(dv_test_pool *pool, const char *item, int64_t session, int64_t token, bool queued) {
    int64_t czxid;
    int64_t owner = dv_test_pool_owner(pool, item, &czxid);
    if (owner != session)
        fail_msg("%s is owned by session 0x%" PRIx64 ", and ZooKeeper says 0x%" PRIx64, item, session, owner);
    if (czxid != token) fail_msg("%s has token %" PRId64 ", and its node %" PRId64, item, token, czxid);
    if (!queued) assert_int_equal(dv_test_pool_queue_length(pool, item), 1);
}

void dv_test_pool_check_owners(dv_test_pool *pool, bool queued) {
    uint8_t *owned = dv_test_alloc(pool->item_count, 1);
    for (dv_test_member *m = pool->members; m; m = m->next) {
        if (!dv_test_member_lives(m)) continue;
        divvy_partition *share = divvy_partitioner_partition(m->partitioner);
        assert_non_null(share);
        for (size_t at = 0; at < divvy_partition_count(share); at++) {
            const char *item = divvy_partition_item(share, at);
            size_t i = 0;
            while (i < pool->item_count && strcmp(pool->items[i], item) != 0) i++;
            if (i < pool->item_count && owned[i]++) fail_msg("%s has two owners", item);
            check_owner(pool, item, divvy_client_session_id(m->client), divvy_partition_token(share, at), queued);
        }
        divvy_partition_unref(share);
    }
    for (size_t i = 0; i < pool->item_count; i++) {
        if (!owned[i]) fail_msg("%s has no owner", pool->items[i]);
    }
    free(owned);
}

/* ---- nodes ---- */

static size_t ephemerals_below(dv_test_pool *pool, const char *path, int depth) {
    size_t count = 0;
    char **names = dv_test_zk_children(pool->truth, path, NULL);
    for (char **name = names; name && *name; name++) {
        char *child = join(path, *name);
        struct Stat stat;
        if (depth > 0) count += ephemerals_below(pool, child, depth - 1);
        else if (dv_test_zk_exists(pool->truth, child, &stat))
            count += stat.ephemeralOwner && stat.ephemeralOwner != dv_test_zk_session(pool->truth);
        free(child);
    }
    dv_test_zk_free_names(names);
    return count;
}

size_t dv_test_pool_nodes(dv_test_pool *pool) {
    char *party = join(pool->path, "party"), *locks = join(pool->path, "locks");
    size_t count = ephemerals_below(pool, party, 0) + ephemerals_below(pool, locks, 1);
    free(party);
    free(locks);
    return count;
}

size_t dv_test_pool_directories(dv_test_pool *pool) {
    char *locks = join(pool->path, "locks");
    size_t count = 0;
    char **names = dv_test_zk_children(pool->truth, locks, &count);
    dv_test_zk_free_names(names);
    free(locks);
    return names ? count : 0;
}

char *dv_test_member_party_node(dv_test_member *m) {
    dv_test_pool *pool = m->pool;
    char *party = join(pool->path, "party"), *own = NULL;
    char **names = dv_test_zk_children(pool->truth, party, NULL);
    for (char **name = names; name && *name; name++) {
        char *path = join(party, *name);
        struct Stat stat;
        bool ours =
            dv_test_zk_exists(pool->truth, path, &stat) && stat.ephemeralOwner == divvy_client_session_id(m->client);
        if (ours && own) fail_msg("two party nodes of one member: %s and %s", own, *name);
        if (ours && !(own = strdup(*name))) dv_test_die("no memory");
        free(path);
    }
    dv_test_zk_free_names(names);
    free(party);
    return own;
}

/* ---- others ---- */

void dv_test_pool_join(dv_test_pool *pool, const char *name, bool ephemeral) {
    char *party = make_path(pool, "party"), *path = join(party, name);
    assert_int_equal(dv_test_zk_create(pool->truth, path, "", ephemeral ? ZOO_EPHEMERAL : 0, NULL), ZOK);
    free(path);
    free(party);
}

void dv_test_pool_leave(dv_test_pool *pool, const char *name) {
    char *party = join(pool->path, "party"), *path = join(party, name);
    assert_int_equal(dv_test_zk_delete(pool->truth, path), ZOK);
    free(path);
    free(party);
}

char *dv_test_pool_block(dv_test_pool *pool, const char *item) {
    char *locks = make_path(pool, "locks"), *path = NULL;
    free(locks);
    const char *queue = dv_test_pool_queue(pool, item);
    dv_test_zk_create(pool->truth, queue, "", 0, NULL);
    char *requested = join(queue, "0123456789abcdef0123456789abcdef__lock__");
    assert_int_equal(dv_test_zk_create(pool->truth, requested, "foreign", ZOO_EPHEMERAL | ZOO_SEQUENCE, &path), ZOK);
    free(requested);
    return path;
}

void dv_test_pool_unblock(dv_test_pool *pool, char *path) {
    assert_int_equal(dv_test_zk_delete(pool->truth, path), ZOK);
    free(path);
}

/* ---- targets ---- */

static const char target_prefix[] = "target-";

int dv_test_pool_func(const char *identifier, const char *const *members, size_t member_count, const char *const *items,
                      size_t item_count, uint8_t *mine, void *user) {
    (void)identifier, (void)items, (void)user;
    const char *bits = NULL;
    for (size_t i = 0; i < member_count; i++) {
        if (strncmp(members[i], target_prefix, strlen(target_prefix)) == 0) bits = strrchr(members[i], '-') + 1;
    }
    for (size_t i = 0; i < item_count; i++) mine[i] = !bits || (i < strlen(bits) && bits[i] == '1');
    return 0;
}

void dv_test_pool_set_target(dv_test_pool *pool, const char *bits) {
    static unsigned made;
    char name[200];
    made++;
    snprintf(name, sizeof name, "target%u,a=f00000000-%s%06u-%s", made, target_prefix, made, bits);
    dv_test_pool_join(pool, name, true);
}
