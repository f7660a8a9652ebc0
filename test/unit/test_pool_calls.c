/* The operator's calls, on pools of members that follow plans. SPDX-License-Identifier: Apache-2.0 */
#include "pool/errand.h"
#include "pool_place.h"

static int set_weight(place *p, const char *whose, int64_t weight) {
    return divvy_pool_set_weight(p->client, "/pool", whose, weight, &p->request);
}

/* A weight is in the plan when the call returns, by one write; the result tells what it changed. The same again writes
 * nothing, and the configured weight brings everything back. */
TEST(test_weight) {
    place p;
    place_open(&p, 3);
    assert_int_equal(set_weight(&p, "member-1", 0), 0);
    assert_int_equal(p.result.changed, 1);
    assert_int_equal(p.result.moves, 20);
    assert_int_equal(p.result.items, 0);
    assert_int_equal(p.result.items_before, 20);
    assert_int_equal(p.result.weight, 0);
    assert_int_equal(p.result.weight_before, 1000);
    assert_int_equal(p.pool.plan_writes, 1);
    uint64_t generation = p.result.generation;
    settle(&p.pool);
    assert_int_equal(load_of(&p, 1), 0);
    assert_int_equal(set_weight(&p, "member-1", 0), 0);
    assert_int_equal(p.result.changed, 0);
    assert_int_equal(p.result.moves, 0);
    assert_int_equal(p.result.generation, generation);
    assert_int_equal(p.pool.plan_writes, 1);
    assert_int_equal(set_weight(&p, "member-1", DIVVY_POOL_CONFIGURED_WEIGHT), 0);
    assert_int_equal(p.result.weight, 1000);
    assert_int_equal(p.result.generation, generation + 1);
    settle(&p.pool);
    assert_int_equal(load_of(&p, 1), 20);
    assert_at_rest(&p.pool);
    place_close(&p);
}

/* A dry run writes nothing, and tells what the call itself then does. */
TEST(test_dry_run) {
    place p;
    place_open(&p, 3);
    p.request.dry_run = 1;
    assert_int_equal(set_weight(&p, "member-0", 4000), 0);
    divvy_pool_result told = p.result;
    assert_int_equal(told.changed, 1);
    assert_int_equal(told.items, 40);
    assert_int_equal(p.pool.plan_writes, 0);
    p.request.dry_run = 0;
    assert_int_equal(set_weight(&p, "member-0", 4000), 0);
    assert_memory_equal(&told, &p.result, sizeof told);
    assert_int_equal(p.pool.plan_writes, 1);
    place_close(&p);
}

/* The last member that weighs anything keeps its items, and the call says why. */
TEST(test_last) {
    place p;
    place_open(&p, 2);
    assert_int_equal(set_weight(&p, "member-0", 0), 0);
    settle(&p.pool);
    assert_int_equal(set_weight(&p, "member-1", 0), DIVVY_ESTATE);
    assert_said(&p, "member-1 keeps its 60 items");
    assert_int_equal(p.pool.plan_writes, 1);
    place_close(&p);
}

/* A static member that is away is forgotten at once; one that is there, or that nobody knows, is not. */
TEST(test_forget) {
    place p;
    divvy_partitioner_config config;
    place_open(&p, 2);
    member_config(&p.pool, &config);
    config.static_membership = 1;
    config.rejoin_delay_ms = DELAY_MS;
    add(&p.pool, 2, &config);
    settle(&p.pool);
    assert_int_equal(divvy_pool_forget(p.client, "/pool", "member-2", &p.request), DIVVY_ESTATE);
    assert_said(&p, "member-2 is there");
    crash(&p.pool, 2);
    settle_owned(&p.pool, 40);
    assert_int_equal(divvy_pool_forget(p.client, "/pool", "member-2", &p.request), 0);
    assert_int_equal(p.result.changed, 1);
    assert_int_equal(p.result.moves, 20);
    assert_int_equal(p.result.items, 0);
    assert_int_equal(p.result.items_before, 20);
    assert_in_range(settle(&p.pool), 0, 1000);
    assert_int_equal(divvy_pool_forget(p.client, "/pool", "member-2", &p.request), DIVVY_ENOENT);
    assert_said(&p, "there are: member-0, member-1");
    place_close(&p);
}

/* Each bad argument has a message of its own, and nothing is sent. */
TEST(test_bad_input) {
    place p;
    place_open(&p, 1);
    assert_int_equal(divvy_pool_set_weight(NULL, "/pool", "a", 0, NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_pool_set_weight(p.client, NULL, "a", 0, NULL), DIVVY_EINVAL);
    assert_said(&p, "path is NULL");
    assert_int_equal(divvy_pool_set_weight(p.client, "pool", "a", 0, NULL), DIVVY_EINVAL);
    assert_said(&p, "the path \"pool\"");
    assert_int_equal(divvy_pool_set_weight(p.client, "/pool", NULL, 0, NULL), DIVVY_EINVAL);
    assert_said(&p, "the member is NULL");
    assert_int_equal(set_weight(&p, "", 0), DIVVY_EINVAL);
    assert_said(&p, "the member is empty");
    assert_int_equal(set_weight(&p, "a", -2), DIVVY_EINVAL);
    assert_said(&p, "the weight -2 is out of range");
    assert_int_equal(set_weight(&p, "a", (int64_t)UINT32_MAX + 1), DIVVY_EINVAL);
    p.request.timeout_ms = -2;
    assert_int_equal(set_weight(&p, "a", 0), DIVVY_EINVAL);
    assert_said(&p, "timeout_ms");
    p.request.timeout_ms = 0;
    assert_int_equal(set_weight(&p, "member-0", 0), DIVVY_ETIMEDOUT);
    p.request = (divvy_pool_request){.size = 0};
    assert_int_equal(set_weight(&p, "a", 0), DIVVY_EINVAL);
    assert_said(&p, "DIVVY_POOL_REQUEST_INIT");
    p.request = (divvy_pool_request)DIVVY_POOL_REQUEST_INIT;
    p.result.size = 1;
    p.request.result = &p.result;
    assert_int_equal(set_weight(&p, "a", 0), DIVVY_EINVAL);
    assert_said(&p, "DIVVY_POOL_RESULT_INIT");
    p.result = (divvy_pool_result)DIVVY_POOL_RESULT_INIT;
    assert_int_equal(set_weight(&p, "member-7", 0), DIVVY_ENOENT);
    assert_said(&p, "the pool /pool has no member member-7; there are: member-0");
    place_close(&p);
}

/* The member that keeps a pool from following a plan is named; so is a pool that is not there, or empty. */
TEST(test_no_plan) {
    place p;
    place_open(&p, 0);
    assert_int_equal(set_weight(&p, "a", 0), DIVVY_ENOENT);
    assert_said(&p, "there is no pool at /pool");
    assert_int_equal(divvy_testing_put(p.pool.ensemble, "/pool", "", 0, 0), 0);
    assert_int_equal(divvy_testing_put(p.pool.ensemble, "/pool/party", "", 0, 0), 0);
    divvy_testing_run(p.pool.ensemble, 100);
    assert_int_equal(set_weight(&p, "a", 0), DIVVY_ESTATE);
    assert_said(&p, "nobody is in the pool");
    static const char ghost[] = "/pool/party/0123456789abcdef0123456789abcdef-k";
    assert_int_equal(divvy_testing_put(p.pool.ensemble, ghost, "", 0, 0), 0);
    divvy_testing_run(p.pool.ensemble, 100);
    assert_int_equal(set_weight(&p, "a", 0), DIVVY_ESTATE);
    assert_said(&p, "nobody is in the pool"); /* P2: a persistent node is nobody's. */
    assert_int_equal(divvy_testing_remove(p.pool.ensemble, ghost), 0);
    divvy_partitioner_config config;
    member_config(&p.pool, &config);
    config.assign = DIVVY_ASSIGN_RENDEZVOUS;
    add(&p.pool, 0, &config);
    settle(&p.pool);
    assert_int_equal(set_weight(&p, "member-0", 0), DIVVY_ESTATE);
    assert_said(&p, "follows no plan: its member member-0 is of an earlier release");
    place_close(&p);
}

/* A broken plan is waited for, and told; one of a later release is refused. */
TEST(test_plan_that_cannot_be_followed) {
    place p;
    place_open(&p, 1);
    finish(&p.pool, 0);
    member *only = add(&p.pool, 0, NULL);
    assert_int_equal(divvy_testing_run(p.pool.ensemble, 50) >= 0, 1);
    assert_int_equal(divvy_testing_pause_client(p.pool.ensemble, only->client, 1), 0);
    static const char newer[] = "{\"v\":2}";
    assert_int_equal(divvy_testing_put(p.pool.ensemble, "/pool/plan", newer, sizeof newer - 1, 0), 0);
    divvy_testing_run(p.pool.ensemble, 100);
    assert_int_equal(set_weight(&p, "member-0", 0), DIVVY_EUNSUPPORTED);
    assert_said(&p, "a later release of divvy wrote the plan");
    assert_int_equal(divvy_testing_put(p.pool.ensemble, "/pool/plan", "{", 1, 0), 0);
    divvy_testing_run(p.pool.ensemble, 100);
    p.request.timeout_ms = 2000;
    assert_int_equal(set_weight(&p, "member-0", 0), DIVVY_ETIMEDOUT);
    assert_said(&p, "the plan of /pool is broken");
    place_close(&p);
}

/* A member that has just come is waited for, until the plan has it. */
TEST(test_just_come) {
    place p;
    place_open(&p, 2);
    add(&p.pool, 2, NULL);
    for (size_t count = 0; count < 3;) {
        divvy_testing_run(p.pool.ensemble, 1);
        divvy_strings *nodes = divvy_testing_children(p.pool.ensemble, "/pool/party");
        count = divvy_strings_count(nodes);
        divvy_strings_free(nodes);
    }
    assert_int_equal(set_weight(&p, "member-2", 0), 0);
    assert_int_equal(p.result.items, 0);
    settle(&p.pool);
    assert_int_equal(load_of(&p, 2), 0);
    place_close(&p);
}

/* D51: where all were started again since somebody asked for other items, a member writes first, however long it lets
 * the party settle. Else all would take our plan as one that was made for this party, and keep those items. */
TEST(test_members_return_first) {
    place p;
    divvy_partitioner_config config;
    place_open(&p, 0);
    member_config(&p.pool, &config);
    config.item_count = ITEMS - 10;
    config.time_boundary_ms = 3000;
    member *only = add(&p.pool, 0, &config);
    settle_owned(&p.pool, ITEMS - 10);
    assert_int_equal(divvy_partitioner_set_items(only->partitioner, (const char *const *)p.pool.items, ITEMS), 0);
    settle(&p.pool);
    crash(&p.pool, 0);
    add(&p.pool, 0, &config);
    divvy_testing_run(p.pool.ensemble, 100);
    assert_int_equal(divvy_client_wait_connected(p.client, 1000), 0);
    p.request.timeout_ms = 2000;
    assert_int_equal(divvy_pool_set_option(p.client, "/pool", "max-moves", "3", &p.request), DIVVY_ETIMEDOUT);
    assert_said(&p, "the members of /pool have not gone back yet");
    p.request.timeout_ms = -1;
    assert_int_equal(divvy_pool_set_option(p.client, "/pool", "max-moves", "3", &p.request), 0);
    settle_owned(&p.pool, ITEMS - 10);
    divvy_testing_run(p.pool.ensemble, 60000); /* P12: the directories of the items that went are deleted */
    assert_at_rest(&p.pool);
    place_close(&p);
}

/* Two members of one identifier: the message lists their nodes, and a node is enough to tell which. */
TEST(test_twins) {
    place p;
    divvy_partitioner_config config;
    place_open(&p, 1);
    member_config(&p.pool, &config);
    config.identifier = "member-0";
    add(&p.pool, 1, &config);
    settle(&p.pool);
    assert_int_equal(set_weight(&p, "member-0", 0), DIVVY_EINVAL);
    assert_said(&p, "several members of the pool /pool are member-0; say which by its node: ");
    char node[256];
    const char *listed = strstr(divvy_client_error(p.client), "by its node: ") + strlen("by its node: ");
    snprintf(node, sizeof node, "%.*s", (int)(strstr(listed, ", ") - listed), listed);
    assert_int_equal(set_weight(&p, node, 0), 0);
    assert_int_equal(p.result.items_before, 30);
    place_close(&p);
}

/* A member that goes, and a session of ours that is lost, are no obstacle. */
TEST(test_changes) {
    for (int fault = 0; fault < 2; fault++) {
        place p;
        place_open(&p, 3);
        assert_int_equal(divvy_client_wait_connected(p.client, 1000), 0);
        if (fault == 0) crash(&p.pool, 2);
        else assert_int_equal(divvy_testing_expire(p.pool.ensemble, p.client), 0);
        assert_int_equal(set_weight(&p, "member-1", 0), 0);
        assert_int_equal(p.result.items, 0);
        settle(&p.pool);
        assert_int_equal(load_of(&p, 1), 0);
        assert_at_rest(&p.pool);
        place_close(&p);
    }
}

/* Members that write at the same time win or lose against us, and in the end the plan says what each has asked. */
TEST(test_races) {
    for (int64_t ahead_ms = 0; ahead_ms < 24; ahead_ms += 2) {
        place p;
        place_open(&p, 3);
        assert_int_equal(divvy_partitioner_set_weight(p.pool.members[0].partitioner, 3000), 0);
        assert_int_equal(divvy_partitioner_set_weight(p.pool.members[2].partitioner, 2000), 0);
        divvy_testing_run(p.pool.ensemble, ahead_ms);
        assert_int_equal(set_weight(&p, "member-1", 0), 0);
        settle(&p.pool);
        assert_int_equal(load_of(&p, 0), 36);
        assert_int_equal(load_of(&p, 1), 0);
        assert_int_equal(load_of(&p, 2), 24);
        assert_at_rest(&p.pool);
        place_close(&p);
    }
}

static void ask_inside(divvy_client *client, divvy_session_state state, void *user) {
    if (state == DIVVY_CONNECTED) *(int *)user = divvy_pool_set_weight(client, "/pool", "member-0", 0, NULL);
}

/* Inside a callback a waiting call would wait for itself. */
TEST(test_inside_callback) {
    place p;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client;
    int error_inside = 0;
    place_open(&p, 1);
    config.manual = 1;
    config.on_session = ask_inside;
    config.user = &error_inside;
    assert_int_equal(divvy_testing_client_open(&client, p.pool.ensemble, &config), 0);
    assert_int_equal(divvy_client_wait_connected(client, 1000), 0);
    divvy_testing_run(p.pool.ensemble, 100);
    assert_int_equal(error_inside, DIVVY_EDEADLK);
    divvy_client_close(client);
    place_close(&p);
}

static void on_done(void *owner, int64_t now) {
    (void)now;
    *(bool *)owner = true;
}

/* A member that dies while we ask for its weight, and comes again under its name, is the one that is meant. */
TEST(test_comes_again) {
    for (int64_t after_ms = 0; after_ms < 16; after_ms++) {
        place p;
        bool done = false;
        const dv_ask ask = {.kind = DV_ASK_WEIGHT, .name = "member-1", .weight = 0};
        place_open(&p, 3);
        assert_int_equal(divvy_client_wait_connected(p.client, 1000), 0);
        assert_int_equal(dv_client_enter(p.client), 0);
        dv_errand *e = dv_errand_start(p.client, "/pool", "/pool", &ask, on_done, &done);
        dv_client_unlock(p.client);
        divvy_testing_run(p.pool.ensemble, after_ms);
        crash(&p.pool, 1);
        add(&p.pool, 1, NULL);
        for (int n = 0; n < 1000 && !done; n++) divvy_testing_run(p.pool.ensemble, 10);
        assert_true(done);
        assert_int_equal(e->result.error, 0);
        assert_int_equal(dv_client_enter(p.client), 0);
        dv_errand_drop(e);
        dv_client_unlock(p.client);
        place_close(&p);
    }
}
