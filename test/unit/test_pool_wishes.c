/* Wishes for a pool: pins, moves, pauses, tags, options, and who is in the way. SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "pool_place.h"

enum { ITEM = 7 };

static const char item[] = "item-00007";

/* Returns the number of the member that owns an item, or NOBODY. */
static int owner_of(const place *p, size_t number) {
    owners o = look(&p->pool);
    int owner = o.owners[number];
    owners_free(&o);
    return owner;
}

static void assert_asked(place *p, int result, int changed) {
    if (result != 0) fprintf(stderr, "%s\n", divvy_client_error(p->client));
    assert_int_equal(result, 0);
    assert_int_equal(p->result.changed, changed);
}

static int pin(place *p, const char *whose) {
    return divvy_pool_pin(p->client, "/pool", item, whose, &p->request);
}

static int unpin(place *p) {
    return divvy_pool_unpin(p->client, "/pool", item, &p->request);
}

static int move(place *p, const char *whose) {
    return divvy_pool_move(p->client, "/pool", item, whose, &p->request);
}

/* Returns a member that does not own the item, as a name. */
static const char *other_than_owner(place *p, int *number) {
    *number = (owner_of(p, ITEM) + 1) % 3;
    return p->pool.members[*number].identifier;
}

/* A pinned item goes to its member and stays with it, whatever joins and is drained, until the pin is undone. The same
 * pin again writes nothing; another takes its place. */
TEST(test_pin) {
    place p;
    int to;
    place_open(&p, 3);
    const char *whose = other_than_owner(&p, &to);
    assert_asked(&p, pin(&p, whose), 1);
    assert_int_equal(p.result.moves, 1);
    assert_int_equal(p.result.absent, 0);
    settle(&p.pool);
    assert_int_equal(owner_of(&p, ITEM), to);
    assert_asked(&p, pin(&p, whose), 0);
    add(&p.pool, 3, NULL);
    settle(&p.pool);
    assert_int_equal(owner_of(&p, ITEM), to);
    assert_int_equal(divvy_pool_set_weight(p.client, "/pool", whose, 0, &p.request), 0);
    settle(&p.pool);
    assert_int_equal(load_of(&p, (size_t)to), 1);
    assert_int_equal(owner_of(&p, ITEM), to);
    assert_asked(&p, pin(&p, "member-3"), 1);
    settle(&p.pool);
    assert_int_equal(owner_of(&p, ITEM), 3);
    assert_asked(&p, unpin(&p), 1);
    assert_asked(&p, unpin(&p), 0);
    settle(&p.pool);
    assert_at_rest(&p.pool);
    place_close(&p);
}

/* A pin to a member that is not there is kept: the item is dealt as any other until that member comes. */
TEST(test_pin_to_absent) {
    place p;
    place_open(&p, 2);
    assert_asked(&p, pin(&p, "member-4"), 1);
    assert_int_equal(p.result.absent, 1);
    assert_int_equal(p.result.moves, 0);
    settle(&p.pool);
    add(&p.pool, 4, NULL);
    settle(&p.pool);
    assert_int_equal(owner_of(&p, ITEM), 4);
    crash(&p.pool, 4);
    settle(&p.pool);
    add(&p.pool, 4, NULL);
    settle(&p.pool);
    assert_int_equal(owner_of(&p, ITEM), 4);
    place_close(&p);
}

/* A move ends with its member, and takes the place of a pin, as a pin does of a move. An unpin undoes either. */
TEST(test_move) {
    place p;
    int to;
    place_open(&p, 3);
    const char *whose = other_than_owner(&p, &to);
    assert_asked(&p, pin(&p, "member-0"), 1);
    assert_asked(&p, move(&p, whose), 1);
    assert_asked(&p, move(&p, whose), 0);
    settle(&p.pool);
    assert_int_equal(owner_of(&p, ITEM), to);
    assert_asked(&p, unpin(&p), 1);
    assert_asked(&p, unpin(&p), 0);
    assert_asked(&p, move(&p, whose), 1);
    assert_int_equal(move(&p, "member-9"), DIVVY_ENOENT);
    assert_said(&p, "has no member member-9");
    settle(&p.pool);
    crash(&p.pool, (size_t)to);
    settle(&p.pool);
    assert_asked(&p, unpin(&p), 0);
    add(&p.pool, (size_t)to, NULL);
    settle(&p.pool);
    assert_at_rest(&p.pool);
    place_close(&p);
}

/* Nobody works on a paused item, not even after members came and went. It goes back to the member that had it. */
TEST(test_pause) {
    place p;
    place_open(&p, 3);
    int had = owner_of(&p, ITEM);
    assert_asked(&p, divvy_pool_pause(p.client, "/pool", item, &p.request), 1);
    assert_int_equal(p.result.moves, 1);
    settle_owned(&p.pool, ITEMS - 1);
    assert_int_equal(owner_of(&p, ITEM), NOBODY);
    assert_asked(&p, divvy_pool_pause(p.client, "/pool", item, &p.request), 0);
    add(&p.pool, 3, NULL);
    settle_owned(&p.pool, ITEMS - 1);
    assert_int_equal(owner_of(&p, ITEM), NOBODY);
    assert_asked(&p, divvy_pool_resume(p.client, "/pool", item, &p.request), 1);
    settle(&p.pool);
    assert_int_equal(owner_of(&p, ITEM), had);
    assert_asked(&p, divvy_pool_resume(p.client, "/pool", item, &p.request), 0);
    place_close(&p);
}

/* Items that need a tag wait for a member that has it. The exact name counts before the prefix. */
TEST(test_need) {
    place p;
    divvy_partitioner_config config;
    place_open(&p, 2);
    assert_asked(&p, divvy_pool_need(p.client, "/pool", "item-0000*", "gpu", &p.request), 1);
    assert_int_equal(p.result.moves, 10);
    settle_owned(&p.pool, ITEMS - 10);
    assert_asked(&p, divvy_pool_need(p.client, "/pool", item, "ssd", &p.request), 1);
    member_config(&p.pool, &config);
    config.tags = "gpu";
    add(&p.pool, 2, &config);
    settle_owned(&p.pool, ITEMS - 1);
    assert_int_equal(owner_of(&p, 3), 2);
    assert_asked(&p, divvy_pool_need(p.client, "/pool", item, NULL, &p.request), 1);
    settle(&p.pool);
    assert_int_equal(owner_of(&p, ITEM), 2);
    assert_asked(&p, divvy_pool_need(p.client, "/pool", "item-0000*", NULL, &p.request), 1);
    assert_asked(&p, divvy_pool_need(p.client, "/pool", "item-0000*", NULL, &p.request), 0);
    settle(&p.pool);
    place_close(&p);
}

/* An option takes the place of what members were started with, until it is set back. */
TEST(test_option) {
    place p;
    place_open(&p, 2);
    assert_asked(&p, divvy_pool_set_option(p.client, "/pool", "max-moves", "5", &p.request), 1);
    assert_asked(&p, divvy_pool_set_option(p.client, "/pool", "max-moves", "5", &p.request), 0);
    p.pool.plan_writes = 0;
    add(&p.pool, 2, NULL);
    settle(&p.pool);
    assert_int_equal(load_of(&p, 2), 20);
    assert_true(p.pool.plan_writes >= 4);
    assert_asked(&p, divvy_pool_set_option(p.client, "/pool", "max-moves", NULL, &p.request), 1);
    assert_asked(&p, divvy_pool_set_option(p.client, "/pool", "max-moves", NULL, &p.request), 0);
    p.pool.plan_writes = 0;
    add(&p.pool, 3, NULL);
    settle(&p.pool);
    assert_int_equal(p.pool.plan_writes, 1);
    place_close(&p);
}

/* Each bad input has a message of its own. */
TEST(test_bad_input) {
    static const struct {
        const char *name, *value, *said;
    } options[] = {
        {"max_moves", "5", "is unknown; there are: imbalance-max, max-moves, round-timeout"},
        {"max-moves", "-1", "is a number of items"},
        {"max-moves", "1.5", "is a number of items"},
        {"max-moves", "4294967296", "is a number of items"},
        {"max-moves", "", "is a number of items"},
        {"round-timeout", "30s", "is a number of milliseconds"},
        {"imbalance-max", "0.", "is a share above the mean"},
        {"imbalance-max", "101", "is a share above the mean"},
        {"imbalance-max", "nan", "is a share above the mean"},
    };
    place p;
    char long_text[600];
    place_open(&p, 1);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        int error = divvy_pool_set_option(p.client, "/pool", options[i].name, options[i].value, &p.request);
        assert_int_equal(error, DIVVY_EINVAL);
        assert_said(&p, options[i].said);
    }
    assert_int_equal(divvy_pool_need(p.client, "/pool", item, "a b", &p.request), DIVVY_EINVAL);
    assert_said(&p, "\"a b\" is no tag");
    assert_int_equal(divvy_pool_pin(p.client, "/pool", "x", "member-0", &p.request), DIVVY_ENOENT);
    assert_said(&p, "the pool /pool has no item x");
    assert_ptr_equal(strstr(divvy_client_error(p.client), "the pool"), divvy_client_error(p.client)); /* said once */
    assert_int_equal(divvy_pool_pause(p.client, "/pool", "x", &p.request), DIVVY_ENOENT);
    assert_int_equal(divvy_pool_resume(p.client, "/pool", "x", &p.request), DIVVY_ENOENT);
    assert_int_equal(divvy_pool_need(p.client, "/pool", "x", "gpu", &p.request), DIVVY_ENOENT);
    assert_int_equal(divvy_pool_pause(p.client, "/pool", "\xff", &p.request), DIVVY_EINVAL);
    assert_said(&p, "the item is not UTF-8");
    assert_int_equal(divvy_pool_pin(p.client, "/pool", item, NULL, &p.request), DIVVY_EINVAL);
    assert_said(&p, "the member is NULL");
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    p.request.why = long_text;
    assert_int_equal(divvy_pool_pause(p.client, "/pool", item, &p.request), DIVVY_EINVAL);
    assert_said(&p, "`why` is not UTF-8, or has more than 512 bytes");
    p.request.why = NULL;
    p.request.by = "\xff";
    assert_int_equal(divvy_pool_pause(p.client, "/pool", item, &p.request), DIVVY_EINVAL);
    assert_said(&p, "`by` is not UTF-8");
    place_close(&p);
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    *(int *)context = reply->error;
}

static void put_member(divvy_client *client, const char *path) {
    int result = 1;
    assert_int_equal(dv_client_enter(client), 0);
    assert_int_equal(dv_znode_create(client->znode, path, "", 0, DV_EPHEMERAL, on_reply, &result), 0);
    dv_client_unlock(client);
    while (result == 1) divvy_client_process(client, 10);
    assert_int_equal(result, 0);
}

/* While a member is there that knows no wishes, none is taken, and the message names it. What stands waits, and is in
 * force again when the member has gone. Weights are set also beside members that follow plans without wishes. */
TEST(test_older_members) {
    static const char *const members[] = {"/pool/party/0123456789abcdef0123456789abcdef-old",
                                          "/pool/party/0AAAAAAAAAAAAAAAAAAAAA,a=2,s=00000000-old"};
    static const char *const said[] = {"the pool /pool follows no plan: its member old is kazoo's",
                                       "the pool /pool cannot do that yet: its member old is of an earlier release"};
    for (int n = 0; n < 2; n++) {
        place p;
        divvy_client *client;
        divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
        config.manual = 1;
        place_open(&p, 2);
        assert_asked(&p, divvy_pool_pause(p.client, "/pool", item, &p.request), 1);
        settle_owned(&p.pool, ITEMS - 1);
        assert_int_equal(divvy_testing_client_open(&client, p.pool.ensemble, &config), 0);
        assert_int_equal(divvy_client_wait_connected(client, 1000), 0);
        put_member(client, members[n]);
        assert_int_equal(pin(&p, "member-0"), DIVVY_ESTATE);
        assert_said(&p, said[n]);
        assert_int_equal(divvy_pool_resume(p.client, "/pool", item, &p.request), DIVVY_ESTATE);
        assert_int_equal(divvy_pool_set_weight(p.client, "/pool", "member-0", 500, &p.request),
                         n == 0 ? DIVVY_ESTATE : 0);
        divvy_client_close(client);
        settle_owned(&p.pool, ITEMS - 1);
        assert_int_equal(owner_of(&p, ITEM), NOBODY);
        assert_asked(&p, divvy_pool_resume(p.client, "/pool", item, &p.request), 1);
        settle(&p.pool);
        place_close(&p);
    }
}
