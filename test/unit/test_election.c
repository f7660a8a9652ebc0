/* Tests of divvy/election.h on an in-memory ensemble, in virtual time. SPDX-License-Identifier: Apache-2.0
 *
 * DIVVY_TEST_SEED=n replays one random schedule. */
#include "election_fixture.h"

/* The first candidate leads; the others wait, and everybody knows who leads, with its data and token. */
TEST(test_elect) {
    open_clients(3);
    member *a = join(0, &(config_of){.data = "a"}), *b = join(1, &(config_of){.data = "b"}), *o = watch(2);
    run(1000);
    assert_int_equal(a->elected, 1);
    assert_int_equal(b->elected, 0);
    assert_true(divvy_election_leads(a->election));
    assert_false(divvy_election_leads(b->election));
    assert_int_equal(a->token, divvy_election_token(a->election));
    assert_leader(a, "a", a->token);
    assert_leader(b, "a", a->token);
    assert_leader(o, "a", a->token);
    assert_int_equal(o->told, 1);
    close_all();
}

/* An observer is told that nobody leads: while there is no such path, while nobody stands, and after the last one. */
TEST(test_nobody) {
    open_clients(2);
    member *o = watch(0);
    run(1000);
    assert_int_equal(o->told, 1);
    assert_leader(o, NULL, 0);
    member *a = join(1, &(config_of){.data = "a"});
    run(1000);
    assert_leader(o, "a", a->token);
    assert_int_equal(divvy_election_resign(a->election), 0);
    run(1000);
    assert_leader(o, NULL, 0);
    assert_int_equal(divvy_election_stand(a->election), 0);
    run(1000);
    assert_leader(o, "a", a->token);
    close_all();
}

/* A leader that resigns is followed by the next in the queue, with a greater token, and hears nothing more. */
TEST(test_resign) {
    open_clients(2);
    member *a = join(0, &(config_of){.data = "a"}), *b = join(1, &(config_of){.data = "b"});
    run(1000);
    assert_int_equal(divvy_election_resign(a->election), 0);
    assert_false(divvy_election_leads(a->election));
    assert_int_equal(divvy_election_token(a->election), 0);
    run(1000);
    assert_int_equal(b->elected, 1);
    assert_true(b->token > a->token);
    assert_int_equal(a->lost, 0);
    assert_leader(a, "b", b->token);
    assert_int_equal(divvy_election_resign(a->election), 0); /* does nothing */
    assert_int_equal(divvy_election_stand(a->election), 0);
    assert_int_equal(divvy_election_stand(a->election), DIVVY_EALREADY);
    run(1000);
    assert_int_equal(a->elected, 1);
    close_all();
}

/* Who resigns and stands again in one turn is elected once for each time that it leads, and told nothing of before. */
TEST(test_resign_and_stand) {
    open_clients(1);
    member *a = make(0, &(config_of){.data = "a"});
    assert_int_equal(divvy_election_stand(a->election), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(divvy_election_resign(a->election), 0);
        assert_int_equal(divvy_election_stand(a->election), 0);
    }
    run(1000);
    assert_int_equal(a->elected, 1);
    assert_int_equal(a->lost + a->failed, 0);
    close_all();
}

/* A leader whose session is lost is told so before another is elected, and stands again at the end of the queue. */
TEST(test_session_lost) {
    open_clients(2);
    member *a = join(0, &(config_of){.data = "a"}), *b = join(1, &(config_of){.data = "b"});
    run(1000);
    divvy_testing_link_client(ensemble, a->client, DIVVY_TESTING_LINK_DOWN);
    run(2 * SESSION_MS);
    assert_int_equal(a->lost, 1);
    assert_int_equal(b->elected, 1);
    assert_true(a->lost_at < b->elected_at);
    divvy_testing_link_client(ensemble, a->client, DIVVY_TESTING_LINK_UP);
    run(1000);
    assert_leader(a, "b", b->token);
    assert_int_equal(divvy_election_resign(b->election), 0);
    run(1000);
    assert_int_equal(a->elected, 2);
    close_all();
}

/* A node that somebody else deletes ends the leadership within half a session timeout. */
TEST(test_node_deleted) {
    open_clients(2);
    member *a = join(0, &(config_of){.data = "a"}), *b = join(1, &(config_of){.data = "b"});
    run(1000);
    delete_node_of(a->token);
    run(SESSION_MS);
    assert_int_equal(a->lost, 1);
    assert_int_equal(b->elected, 1);
    assert_leader(a, "b", b->token);
    close_all();
}

/* A request is told to the leader, once, with the asker's data; the call ends when the leader has gone. */
TEST(test_step_down) {
    open_clients(3);
    member *a = join(0, &(config_of){.data = "a"}), *b = join(1, &(config_of){.data = "b"}), *o = watch(2);
    run(1000);
    assert_int_equal(ask(o, 2000), DIVVY_ETIMEDOUT); /* It declines. */
    assert_int_equal(a->asked, 1);
    assert_string_equal(a->asked_by, "observer");
    a->agrees = true;
    assert_int_equal(ask(o, 2000), 0);
    assert_int_equal(a->asked, 2);
    run(1000);
    assert_int_equal(b->elected, 1);
    assert_int_equal(b->asked, 0); /* It was not asked for what the other one did. */
    assert_int_equal(a->lost, 0);
    assert_int_equal(count_nodes(",down="), 0);
    close_all();
}

/* J5: a name that ends with the leader's token, and has nothing before that, is no request. */
TEST(test_no_request) {
    open_clients(1);
    member *a = join(0, &(config_of){.data = "a"});
    char name[TEXT_BYTES];
    run(1000);
    snprintf(name, sizeof name, ",down=%016llx", (unsigned long long)a->token);
    put(name, "", 0, true);
    put("x", "", 0, true);
    run(1000);
    assert_int_equal(a->asked, 0);
    clear();
    close_all();
}

/* Nobody can be asked where nobody leads; a timeout bounds the call. */
TEST(test_nobody_to_ask) {
    open_clients(1);
    member *o = watch(0);
    assert_int_equal(ask(o, 2000), DIVVY_ENOENT);
    assert_int_equal(divvy_election_ask_step_down(o->election, -2), DIVVY_EINVAL);
    assert_int_equal(divvy_election_ask_step_down(NULL, 0), DIVVY_EINVAL);
    divvy_testing_link_client(ensemble, o->client, DIVVY_TESTING_LINK_DOWN);
    member *late = watch(0);
    assert_int_equal(ask(late, 500), DIVVY_ETIMEDOUT);
    divvy_testing_link_client(ensemble, o->client, DIVVY_TESTING_LINK_UP);
    close_all();
}

static void ask_in_callback(divvy_lock *lock, int result, void *user) {
    const member *m = user;
    assert_int_equal(result, 0);
    assert_int_equal(divvy_election_ask_step_down(m->election, 1000), DIVVY_EINPROGRESS);
    assert_int_equal(divvy_lock_release(lock), 0);
}

/* Of two calls of one election that ask at a time the second is refused at once. */
TEST(test_one_call_asks) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    open_clients(2);
    join(0, &(config_of){.data = "a"});
    member *o = watch(1);
    run(1000);
    config.path = "/lock";
    assert_int_equal(divvy_lock_create(&lock, o->client, &config), 0);
    assert_int_equal(divvy_lock_acquire_async(lock, -1, ask_in_callback, o), 0);
    assert_int_equal(ask(o, 2000), DIVVY_ETIMEDOUT);
    assert_int_equal(divvy_lock_token(lock), 0); /* It was called. */
    divvy_lock_destroy(lock);
    close_all();
}

/* A preferred candidate asks by itself, and leads next, though others stand before it; they lead after it. */
TEST(test_preference) {
    open_clients(4);
    member *a = join(0, &(config_of){.data = "a", .agrees = true, .stands_again = true});
    member *b = join(1, &(config_of){.data = "b"}), *c = join(2, &(config_of){.data = "c"});
    member *p = join(3, &(config_of){.data = "p", .preference = 7});
    run(2000);
    assert_int_equal(a->asked, 1);
    assert_string_equal(a->asked_by, "p");
    assert_int_equal(p->elected, 1);
    assert_int_equal(b->elected + c->elected, 0);
    assert_leader(b, "p", p->token);
    assert_int_equal(count_nodes(",down="), 0);
    assert_int_equal(divvy_election_resign(p->election), 0);
    run(2000);
    assert_int_equal(a->elected + b->elected + c->elected, 2); /* one of them leads now */
    close_all();
}

/* A leader that declines leads on, and the preferred one waits. It leads next when the leader goes. */
TEST(test_preferred_waits) {
    open_clients(3);
    member *a = join(0, &(config_of){.data = "a"});
    member *b = join(1, &(config_of){.data = "b"}), *p = join(2, &(config_of){.data = "p", .preference = 1});
    run(10 * SESSION_MS);
    assert_int_equal(a->asked, 1);
    assert_true(divvy_election_leads(a->election));
    assert_int_equal(count_nodes(",down="), 1);
    expire(a);
    run(2 * SESSION_MS);
    assert_int_equal(p->elected, 1);
    assert_int_equal(b->elected, 0);
    assert_int_equal(count_nodes(",down="), 0);
    close_all();
}

/* A preferred candidate that resigns takes its request back at once (J5). */
TEST(test_preferred_resigns) {
    open_clients(2);
    member *a = join(0, &(config_of){.data = "a"}), *p = join(1, &(config_of){.data = "p", .preference = 1});
    run(1000);
    assert_int_equal(a->asked, 1);
    assert_int_equal(count_nodes(",down="), 1);
    assert_int_equal(divvy_election_resign(p->election), 0);
    run(100);
    assert_int_equal(count_nodes(",down="), 0);
    assert_true(divvy_election_leads(a->election));
    close_all();
}

/* A preferred candidate that has gone costs the others one way round the queue, and no more. */
TEST(test_preferred_goes) {
    open_clients(4);
    member *a = join(0, &(config_of){.data = "a"});
    member *b = join(1, &(config_of){.data = "b"}), *c = join(2, &(config_of){.data = "c"});
    member *p = join(3, &(config_of){.data = "p", .preference = 1000});
    run(500);
    divvy_testing_link_client(ensemble, p->client, DIVVY_TESTING_LINK_DOWN);
    run(100);
    assert_int_equal(divvy_election_resign(a->election), 0);
    run(3 * SESSION_MS);
    assert_int_equal(b->elected + c->elected, 1);
    assert_int_equal(p->elected, 0);
    divvy_testing_link_client(ensemble, p->client, DIVVY_TESTING_LINK_UP);
    close_all();
}

/* Whatever others write as candidates and as requests, nobody trusts it further than to its end. */
TEST(test_hostile) {
    open_clients(3);
    member *a = join(0, &(config_of){.data = "a"}), *o = watch(1);
    run(1000);
    char name[64];
    snprintf(name, sizeof name, "x,down=%016llx", (unsigned long long)a->token);
    put(name, "\0\xff<who>", 7, true);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "y%02d,down=%016llx", i, (unsigned long long)a->token);
        put(name, "", 0, true);
    }
    put(",down=", "", 0, true);
    put("z,down=00000000000000000000000000000001", "", 0, true);
    put("x,p=99999999999999999999__lock__0000000009", "", 0, true);
    put("x,p=0__lock__0000000010", "", 0, true);
    run(1000);
    assert_int_equal(a->asked, 16); /* J6: of 41 */
    assert_true(divvy_election_leads(a->election));
    assert_leader(o, "a", a->token);
    char *large = calloc(1, 200000);
    assert_non_null(large);
    memset(large, 'x', 199999);
    put("w__lock__0000000005", large, 199999, true);
    assert_int_equal(divvy_election_resign(a->election), 0);
    run(1000);
    assert_int_equal(o->last_bytes, 65536);
    assert_int_equal(o->told, 2);
    free(large);
    clear();
    close_all();
}

/* A candidate of one kind of names waits for those of the other. */
TEST(test_names) {
    open_clients(2);
    member *a = join(0, &(config_of){.data = "a", .names = DIVVY_ELECTION_LATCH});
    run(1000);
    member *b = join(1, &(config_of){.data = "b", .preference = 5});
    run(1000);
    assert_int_equal(count_nodes("-latch-0000000000"), 1);
    assert_int_equal(count_nodes(",p=5__lock__"), 1);
    assert_int_equal(a->elected, 1);
    assert_int_equal(b->elected, 0);
    assert_leader(b, "a", a->token);
    assert_int_equal(divvy_election_resign(a->election), 0);
    run(1000);
    assert_int_equal(b->elected, 1);
    close_all();
}

/* Candidates are listed in the order of the queue. */
TEST(test_candidates) {
    open_clients(2);
    join(0, &(config_of){.data = "a", .names = DIVVY_ELECTION_LATCH});
    run(1000);
    member *b = join(1, &(config_of){.data = "b"});
    run(1000);
    divvy_strings *names = NULL;
    assert_int_equal(divvy_election_candidates(b->election, &names, 1000), 0);
    assert_int_equal(divvy_strings_count(names), 2);
    assert_string_equal(divvy_strings_get(names, 0), "a");
    assert_string_equal(divvy_strings_get(names, 1), "b");
    divvy_strings_free(names);
    divvy_leader *leader = NULL;
    assert_int_equal(divvy_election_leader(b->election, &leader, 1000), 0);
    assert_string_equal(leader->data, "a");
    divvy_leader_free(leader);
    close_all();
}

/* A leader may be asked, resign, stand, and destroy itself inside of each callback. */
TEST(test_inside_callbacks) {
    open_clients(3);
    member *a = join(0, &(config_of){.data = "a", .destroys_when_elected = true}), *b, *o = watch(2);
    run(1000);
    assert_null(a->election);
    b = join(1, &(config_of){.data = "b", .destroys_when_asked = true});
    run(1000);
    assert_int_equal(b->elected, 1);
    assert_int_equal(ask(o, 2000), 0);
    assert_null(b->election);
    member *c = join(0, &(config_of){.data = "c", .destroys_when_lost = true});
    run(1000);
    expire(c);
    run(2 * SESSION_MS);
    assert_null(c->election);
    close_all();
}

/* A candidate that cannot go on is told why, once, and may stand again. */
TEST(test_failed) {
    open_clients(1);
    member *a = join(0, &(config_of){.data = "a"});
    assert_int_equal(divvy_election_resign(a->election), 0);
    run(500);
    assert_int_equal(divvy_testing_set_sequence(ensemble, PATH, INT32_MAX - 1), 0); /* N6 */
    assert_int_equal(divvy_election_stand(a->election), 0);
    run(500);
    assert_int_equal(a->failed, 1);
    assert_int_equal(a->failure, DIVVY_EEXHAUSTED);
    assert_int_equal(divvy_testing_set_sequence(ensemble, PATH, 7), 0);
    assert_int_equal(divvy_election_stand(a->election), 0);
    run(500);
    assert_int_equal(a->failed, 1);
    assert_int_equal(a->elected, 2);
    close_all();
}

/* Every function says what is wrong with its arguments. */
TEST(test_arguments) {
    open_clients(1);
    divvy_client *client = clients[0];
    divvy_election *e = NULL;
    divvy_election_config c = DIVVY_ELECTION_CONFIG_INIT;
    assert_int_equal(divvy_election_create(NULL, client, &c), DIVVY_EINVAL);
    assert_int_equal(divvy_election_create(&e, client, NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_election_create(&e, NULL, &c), DIVVY_EINVAL);
    assert_int_equal(divvy_election_create(&e, client, &c), DIVVY_EINVAL);
    c.path = "no/path";
    assert_int_equal(divvy_election_create(&e, client, &c), DIVVY_EINVAL);
    c.path = "/";
    assert_int_equal(divvy_election_create(&e, client, &c), DIVVY_EINVAL);
    assert_non_null(strstr(divvy_client_error(client), "election: the path is \"/\""));
    c.path = PATH;
    c.data = "";
    assert_int_equal(divvy_election_create(&e, client, &c), DIVVY_EINVAL);
    c.data = NULL;
    c.names = 2;
    assert_int_equal(divvy_election_create(&e, client, &c), DIVVY_EINVAL);
    c.names = 0;
    c.preference = 1001;
    assert_int_equal(divvy_election_create(&e, client, &c), DIVVY_EINVAL);
    c.preference = -1;
    assert_int_equal(divvy_election_create(&e, client, &c), DIVVY_EINVAL);
    c.preference = 0;
    c.size = 0;
    assert_int_equal(divvy_election_create(&e, client, &c), DIVVY_EINVAL);
    char *large = calloc(1, 70000);
    assert_non_null(large);
    memset(large, 'x', 65537);
    c = (divvy_election_config)DIVVY_ELECTION_CONFIG_INIT;
    c.path = PATH;
    c.data = large;
    assert_int_equal(divvy_election_create(&e, client, &c), DIVVY_E2BIG);
    free(large);
    assert_null(e);
    assert_int_equal(divvy_election_stand(NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_election_resign(NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_election_leads(NULL), 0);
    assert_int_equal(divvy_election_token(NULL), 0);
    assert_int_equal(divvy_election_leader(NULL, NULL, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_election_candidates(NULL, NULL, 0), DIVVY_EINVAL);
    divvy_election_destroy(NULL);
    divvy_leader_free(NULL);
    close_all();
}

/* A preference is what divvy writes, and nothing else. */
TEST(test_preference_of_names) {
    static const struct {
        const char *name;
        int preference;
    } cases[] = {{"g,p=1__lock__0000000000", 1},
                 {"g,p=1000-latch-0000000000", 1000},
                 {"g,p=1001__lock__0000000000", 0},
                 {"g,p=01__lock__0000000000", 0},
                 {"g,p=__lock__0000000000", 0},
                 {"g,p=-1__lock__0000000000", 0},
                 {"g,p=5", 0},
                 {"g__lock__0000000000", 0},
                 {"g,p=7x__lock__0000000000", 0},
                 {",p=5__lock_-0000000001", 0},
                 {",p=9__lock__-0000000001", 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(dv_queue_preference(cases[i].name), cases[i].preference);
}

/* ---- random schedules ---- */

static void fault(void) {
    divvy_client *client = clients[draw(client_count)];
    uint64_t what = draw(4);
    if (what == 0) divvy_testing_disconnect(ensemble, client, (divvy_testing_fate)draw(3), 300);
    else if (what == 1) divvy_testing_link_client(ensemble, client, (divvy_testing_link)draw(4));
    else if (what == 2) divvy_testing_pause_client(ensemble, client, draw(2) == 0);
    else divvy_testing_link_client(ensemble, client, DIVVY_TESTING_LINK_UP);
}

static void act(void) {
    member *m = &members[draw(member_count)];
    uint64_t what = draw(10);
    if (what < 3) divvy_election_stand(m->election);
    else if (what < 6) divvy_election_resign(m->election);
    else if (what == 6) m->agrees = !m->agrees;
    else if (what == 7) ask(m, 100 + (int64_t)draw(1000));
    else fault();
}

static void check_all_know(const member *leader) {
    for (size_t i = 0; i < member_count; i++)
        CLAIM(members[i].told && members[i].leader_token == leader->token, "%zu thinks that %lld leads, and %lld does",
              i, (long long)members[i].leader_token, (long long)leader->token);
}

/* After the faults one of the most preferred leads, everybody knows it, and no request is left. */
static void check_rest(void) {
    const member *leader = NULL;
    divvy_testing_heal(ensemble);
    for (size_t i = 0; i < client_count; i++) divvy_testing_pause_client(ensemble, clients[i], 0);
    for (size_t i = 0; i < member_count; i++) {
        members[i].agrees = members[i].stands_again = true;
        divvy_election_stand(members[i].election);
    }
    run(4 * SESSION_MS);
    for (size_t i = 0; i < member_count; i++) { /* One that has declined is not asked a second time. */
        if (divvy_election_leads(members[i].election)) on_step_down(members[i].election, "", 0, &members[i]);
    }
    run(4 * SESSION_MS);
    for (size_t i = 0; i < member_count; i++) {
        if (divvy_election_leads(members[i].election)) leader = &members[i];
    }
    CLAIM(leader, "nobody leads");
    CLAIM(leader - members == 3 || leader - members == 4, "%d leads, who is not preferred", (int)(leader - members));
    check_all_know(leader);
    CLAIM(count_nodes("__lock__") == member_count, "%zu places for %zu", count_nodes("__lock__"), member_count);
    CLAIM(count_nodes(",down=") == 0, "a request is left");
}

/* J1 to J6 under random faults, whatever the users do: at most one leads, tokens grow, and in the end one leads. */
TEST(test_random_schedules) {
    enum { RUNS = 40, FIXED = 20, STEPS = 120 };
    const char *given = getenv("DIVVY_TEST_SEED");
    for (uint64_t i = 0; i < (given ? 1 : RUNS); i++) {
        seed = given ? strtoull(given, NULL, 10) : dv_test_seed_of_run(i, FIXED, "build/test/unit_election");
        random_state = seed * 0x9e3779b97f4a7c15u;
        open_clients(CLIENTS);
        for (size_t k = 0; k < CLIENTS; k++) make(k, &(config_of){.data = "c", .preference = k < 3 ? (int)k : 5});
        for (int k = 0; k < STEPS; k++) {
            act();
            run((int64_t)draw(300));
        }
        check_rest();
        close_all();
    }
    seed = 1;
}
