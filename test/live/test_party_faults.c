/* Tests of parties: lost replies, lost sessions, foreign deletions. SPDX-License-Identifier: Apache-2.0
 *
 * Shows lost answers and sessions of the native client under a party. */
#include "party_fixture.h"

/* A member that crashes has gone with its session. */
TEST(test_crash) {
    member m, doomed;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    enter(&m, "/party/crash", "stays", DIVVY_PARTY);
    divvy_client_config config = witness_config(&doomed.witness, dv_test_proxy_address(proxy));
    config.session_timeout_ms = 3000;
    doomed.client = open_with(&config);
    assert_int_equal(divvy_party_join(&doomed.party, doomed.client, "/party/crash", "goes", DIVVY_PARTY), 0);
    assert_string_not_equal(listed(doomed.party), "");
    assert_true(DV_WAIT(strcmp(listed(m.party), "goes stays ") == 0, PATIENCE_MS));
    dv_test_proxy_cut(proxy); /* For the server this is what a crash looks like. */
    assert_true(DV_WAIT(strcmp(listed(m.party), "stays ") == 0, PATIENCE_MS));
    leave(&doomed);
    leave(&m);
    dv_test_proxy_stop(proxy);
}

/* Deleted by somebody else, a member joins again under another name, with a warning; also with the directory gone, and
 * also when it could not see the deletion. */
TEST(test_foreign_deletion) {
    for (int round = 0; round < 3; round++) {
        member m;
        char path[512];
        dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
        enter_on(&m, dv_test_proxy_address(proxy), "/party/foreign", "me", round % 2);
        assert_string_equal(listed(m.party), "me ");
        char *name = only_node("/party/foreign");
        snprintf(path, sizeof path, "/party/foreign/%s", name);
        if (round == 2) {
            dv_test_proxy_cut(proxy);
            assert_true(DV_WAIT(divvy_client_state(m.client) == DIVVY_SUSPENDED, PATIENCE_MS));
        }
        assert_int_equal(dv_test_zk_delete(truth, path), ZOK);
        if (round == 1) (void)dv_test_zk_delete(truth, "/party/foreign"); /* it may be too late for that */
        if (round == 2) dv_test_proxy_restore(proxy);
        assert_true(DV_WAIT(witness_warned(&m.witness) == DIVVY_WARN_NODE_GONE, PATIENCE_MS));
        assert_non_null(strstr(m.witness.warning_text, path));
        assert_true(DV_WAIT(nodes("/party/foreign") == 1, PATIENCE_MS));
        char *again = only_node("/party/foreign");
        assert_string_not_equal(again, name);
        assert_true(DV_WAIT(strcmp(listed(m.party), "me ") == 0, PATIENCE_MS));
        free(name);
        free(again);
        leave(&m);
        assert_int_equal(nodes("/party/foreign"), 0);
        dv_test_proxy_stop(proxy);
    }
}

/* A write to a member's own node is no deletion: nothing is warned of, and the watch lives on. */
TEST(test_foreign_write) {
    member m;
    char path[512];
    enter(&m, "/party/written", "me", DIVVY_PARTY);
    assert_string_equal(listed(m.party), "me ");
    char *name = only_node("/party/written");
    snprintf(path, sizeof path, "/party/written/%s", name);
    free(name);
    for (int i = 0; i < 3; i++) assert_int_equal(dv_test_zk_set(truth, path, "other"), ZOK);
    assert_true(DV_WAIT(strcmp(listed(m.party), "other ") == 0, PATIENCE_MS));
    assert_int_equal(witness_warned(&m.witness), 0);
    assert_int_equal(dv_test_zk_delete(truth, path), ZOK);
    assert_true(DV_WAIT(witness_warned(&m.witness) == DIVVY_WARN_NODE_GONE, PATIENCE_MS));
    assert_true(DV_WAIT(strcmp(listed(m.party), "me ") == 0, PATIENCE_MS));
    leave(&m);
}

/* The create's answer is lost: found again, or made again, there is exactly one node in the end. */
TEST(test_lost_create) {
    dv_test_zk_create(truth, "/party", "", 0, NULL);
    dv_test_zk_create(truth, "/party/lost", "", 0, NULL);
    for (int round = 0; round < 4; round++) {
        member m;
        witness *w = &m.witness;
        dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
        divvy_client_config config = witness_config(w, dv_test_proxy_address(proxy));
        m.client = open_connected(&config);
        /* Even rounds: the create is carried out and its answer lost. Odd ones: it may not even have been sent, for the
         * answer to the read before it was lost. */
        if (round % 2) dv_test_proxy_freeze(proxy);
        else dv_test_proxy_drop_replies(proxy, false);
        assert_int_equal(divvy_party_join(&m.party, m.client, "/party/lost", "me", DIVVY_PARTY), 0);
        if (round % 2 == 0) {
            /* The read that sees to the path is answered or lost, as it comes; then all answers are. */
            dv_test_proxy_drop_replies(proxy, true);
            DV_WAIT(nodes("/party/lost") == 1, 300);
        }
        dv_test_proxy_cut(proxy);
        assert_true(DV_WAIT(divvy_client_state(m.client) == DIVVY_SUSPENDED, PATIENCE_MS));
        dv_test_proxy_restore(proxy);
        assert_string_equal(listed(m.party), "me ");
        assert_int_equal(nodes("/party/lost"), 1);
        dv_test_proxy_cut(proxy);
        dv_test_proxy_restore(proxy);
        assert_string_equal(listed(m.party), "me ");
        assert_int_equal(nodes("/party/lost"), 1);
        leave(&m);
        assert_int_equal(nodes("/party/lost"), 0);
        dv_test_proxy_stop(proxy);
    }
}

/* The delete's answer is lost: leaving goes on with the next connection, and ends. */
TEST(test_lost_leave) {
    for (int applied = 0; applied <= 1; applied++) {
        member m;
        dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
        enter_on(&m, dv_test_proxy_address(proxy), "/party/lost-leave", "me", DIVVY_PARTY);
        assert_string_equal(listed(m.party), "me ");
        if (applied) dv_test_proxy_drop_replies(proxy, true);
        else dv_test_proxy_freeze(proxy);
        ASSERT_FAILS(divvy_party_leave(m.party, GONE_MS), DIVVY_ETIMEDOUT, m.client, "/party/lost-leave");
        if (applied) assert_true(DV_WAIT(nodes("/party/lost-leave") == 0, PATIENCE_MS));
        dv_test_proxy_cut(proxy);
        dv_test_proxy_restore(proxy);
        assert_int_equal(divvy_party_leave(m.party, PATIENCE_MS), 0);
        assert_int_equal(nodes("/party/lost-leave"), 0);
        leave(&m);
        dv_test_proxy_stop(proxy);
    }
}

/* A list whose answer is lost is asked for again within the call's time. */
TEST(test_lost_list) {
    member m;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    enter_on(&m, dv_test_proxy_address(proxy), "/party/lost-list", "me", DIVVY_PARTY);
    assert_string_equal(listed(m.party), "me ");
    divvy_strings *members;
    dv_test_proxy_drop_replies(proxy, true);
    ASSERT_FAILS(divvy_party_members(m.party, &members, GONE_MS), DIVVY_ETIMEDOUT, m.client, "");
    dv_test_proxy_drop_replies(proxy, false); /* closes the connection */
    assert_string_equal(listed(m.party), "me ");
    leave(&m);
    dv_test_proxy_stop(proxy);
}

/* --- lifetimes -------------------------------------------------------------------------------------------------- */

/* Parties and clients end in any order, at any stage, and nothing of them is left. */
TEST(test_any_order) {
    for (int order = 0; order < 12; order++) {
        member m;
        divvy_party *another;
        enter(&m, "/party/order", "a", DIVVY_PARTY);
        if (order % 2) assert_string_equal(listed(m.party), "a ");
        assert_int_equal(divvy_party_join(&another, m.client, "/party/order", "b", DIVVY_SHALLOW_PARTY), 0);
        switch (order / 2) {
        case 0:
            divvy_party_destroy(m.party);
            divvy_party_destroy(another);
            divvy_client_close(m.client);
            break;
        case 1:
            divvy_party_destroy(another);
            divvy_client_close(m.client);
            divvy_party_destroy(m.party);
            break;
        case 2:
            divvy_client_close(m.client);
            divvy_party_destroy(m.party);
            divvy_party_destroy(another);
            break;
        case 3:
            (void)divvy_party_leave(m.party, 0);
            divvy_client_close(m.client);
            divvy_party_destroy(another);
            divvy_party_destroy(m.party);
            break;
        case 4:
            (void)divvy_party_leave(m.party, 0);
            divvy_party_destroy(m.party);
            divvy_client_close(m.client);
            divvy_party_destroy(another);
            break;
        default:
            assert_int_equal(divvy_party_leave(m.party, PATIENCE_MS), 0);
            divvy_client_close(m.client);
            divvy_party_destroy(m.party);
            divvy_party_destroy(another);
        }
        witness_end(&m.witness);
        assert_int_equal(nodes("/party/order"), 0);
    }
}

static void *list_once(void *argument) {
    call *c = argument;
    divvy_strings *members = NULL;
    atomic_store(&c->begun, 1);
    int result = divvy_party_members(c->party, &members, -1);
    size_t count = divvy_strings_count(members);
    divvy_strings_free(members);
    atomic_store(&c->result, result ? result : (int)count);
    return NULL;
}

/* --- the loss of a session -------------------------------------------------------------------------------------- */

/* A member on a link that a test can cut, with a party of each kind, on a session that is soon lost then. */
static divvy_party *enter_both(member *m, dv_test_proxy *proxy, const char *path) {
    char shallow_path[64];
    divvy_party *shallow;
    divvy_client_config config = witness_config(&m->witness, dv_test_proxy_address(proxy));
    config.session_timeout_ms = 4000;
    config.ensemble_tick_ms = TICK_MS;
    m->client = open_connected(&config);
    snprintf(shallow_path, sizeof shallow_path, "%s-shallow", path);
    assert_int_equal(divvy_party_join(&m->party, m->client, path, "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_party_join(&shallow, m->client, shallow_path, "me", DIVVY_SHALLOW_PARTY), 0);
    assert_string_equal(listed(m->party), "me ");
    assert_string_equal(listed(shallow), "me ");
    return shallow;
}

/* A call that waits without end is not ended by the loss of the session, nor does it fail: it is answered on the next
 * one. */
TEST(test_loss_does_not_end_waiting_calls) {
    member m;
    pthread_t thread;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_party *shallow = enter_both(&m, proxy, "/party/waiting");
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(divvy_client_state(m.client) == DIVVY_SUSPENDED, PATIENCE_MS));
    call c = {.party = m.party, .result = -99};
    assert_int_equal(pthread_create(&thread, NULL, list_once, &c), 0);
    assert_true(DV_WAIT(atomic_load(&c.begun), PATIENCE_MS));
    assert_true(DV_WAIT(witness_told(&m.witness, "CSLN"), PATIENCE_MS));
    assert_true(DV_WAIT(nodes("/party/waiting") == 0, PATIENCE_MS));
    assert_int_equal(atomic_load(&c.result), -99);
    dv_test_proxy_restore(proxy);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&c.result), 1);
    divvy_party_destroy(shallow);
    leave(&m);
    dv_test_proxy_stop(proxy);
}

/* Lost with its session, a member of either kind joins again by itself on the next one, under another name and without
 * a warning, as nobody else has deleted it; others see it go and come back. */
TEST(test_joins_again_after_a_loss) {
    member m, other;
    divvy_stats stats;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    enter(&other, "/party/again", "other", DIVVY_PARTY);
    assert_string_equal(listed(other.party), "other ");
    divvy_party *shallow = enter_both(&m, proxy, "/party/again-me");
    divvy_party *third;
    assert_int_equal(divvy_party_join(&third, m.client, "/party/again", "third", DIVVY_PARTY), 0);
    assert_string_equal(listed(third), "other third ");
    char *deep_name = only_node("/party/again-me"), *shallow_name = only_node("/party/again-me-shallow");
    int64_t session = divvy_client_session_id(m.client);
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(witness_told(&m.witness, "CSLN"), PATIENCE_MS));
    assert_true(DV_WAIT(strcmp(listed(other.party), "other ") == 0, PATIENCE_MS));
    dv_test_proxy_restore(proxy);
    assert_string_equal(listed(m.party), "me ");
    assert_string_equal(listed(shallow), "me ");
    assert_string_equal(listed(third), "other third ");
    assert_string_equal(listed(other.party), "other third ");
    assert_int_not_equal(divvy_client_session_id(m.client), session);
    char *deep_again = only_node("/party/again-me"), *shallow_again = only_node("/party/again-me-shallow");
    assert_string_not_equal(deep_name, deep_again);
    assert_string_not_equal(shallow_name, shallow_again);
    assert_int_equal(divvy_client_stats(m.client, &stats, sizeof stats), 0);
    assert_int_equal(stats.ephemerals, 3);
    assert_int_equal(witness_warned(&m.witness), 0);
    /* And it is kept there as it was: somebody else's deletion is made up for. */
    char path[512];
    snprintf(path, sizeof path, "/party/again-me/%s", deep_again);
    assert_int_equal(dv_test_zk_delete(truth, path), ZOK);
    assert_true(DV_WAIT(witness_warned(&m.witness) == DIVVY_WARN_NODE_GONE, PATIENCE_MS));
    assert_true(DV_WAIT(nodes("/party/again-me") == 1, PATIENCE_MS));
    free(deep_name);
    free(deep_again);
    free(shallow_name);
    free(shallow_again);
    divvy_party_destroy(third);
    divvy_party_destroy(shallow);
    leave(&m);
    assert_string_equal(listed(other.party), "other ");
    leave(&other);
    dv_test_proxy_stop(proxy);
}

/* A member that leaves or is destroyed between two sessions is not made again. One whose leaving was under way when the
 * session was lost is told that its node went with that. */
TEST(test_left_between_sessions) {
    member m;
    divvy_stats stats;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_party *shallow = enter_both(&m, proxy, "/party/between");
    divvy_party *leaving;
    assert_int_equal(divvy_party_join(&leaving, m.client, "/party/between-leaving", "me", DIVVY_PARTY), 0);
    assert_string_equal(listed(leaving), "me ");
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(divvy_client_state(m.client) == DIVVY_SUSPENDED, PATIENCE_MS));
    ASSERT_FAILS(divvy_party_leave(leaving, 0), DIVVY_ETIMEDOUT, m.client, "/party/between-leaving");
    assert_true(DV_WAIT(witness_told(&m.witness, "CSLN"), PATIENCE_MS));
    ASSERT_FAILS(divvy_party_leave(leaving, PATIENCE_MS), DIVVY_ELOST, m.client, "/party/between-leaving");
    assert_int_equal(divvy_party_leave(m.party, PATIENCE_MS), 0);
    divvy_party_destroy(shallow);
    assert_true(DV_WAIT(divvy_client_stats(m.client, &stats, sizeof stats) == 0 && stats.ephemerals == 0, PATIENCE_MS));
    assert_int_equal(stats.ephemeral_path_bytes, 0);
    dv_test_proxy_restore(proxy);
    assert_int_equal(divvy_client_wait_connected(m.client, PATIENCE_MS), 0);
    divvy_party *marker; /* Joined last, it is there last. */
    assert_int_equal(divvy_party_join(&marker, m.client, "/party/between-marker", "me", DIVVY_PARTY), 0);
    assert_string_equal(listed(marker), "me ");
    assert_true(DV_WAIT(
        nodes("/party/between") + nodes("/party/between-shallow") + nodes("/party/between-leaving") == 0, PATIENCE_MS));
    divvy_party_destroy(marker);
    divvy_party_destroy(leaving);
    leave(&m);
    dv_test_proxy_stop(proxy);
}

/* --- a storm ---------------------------------------------------------------------------------------------------- */

enum { STORM_THREADS = 4, STORM_MS = 4000 };

typedef struct {
    divvy_client *client;
    atomic_bool *over;
    unsigned seed;
    int joined, listed, wrong;
    pthread_t thread;
} guest;

/* Comes and goes, and lists in between, with calls of any length. */
static void *visit(void *argument) {
    guest *g = argument;
    while (!atomic_load(g->over)) {
        divvy_party *party;
        if (divvy_party_join(&party, g->client, "/party/storm", NULL, rand_r(&g->seed) % 2) != 0) {
            g->wrong++;
            continue;
        }
        g->joined++;
        for (unsigned i = rand_r(&g->seed) % 4; i > 0; i--) {
            divvy_strings *members;
            int error = divvy_party_members(party, &members, rand_r(&g->seed) % 300);
            if (!expected(error) || (error == 0) != (members != NULL)) g->wrong++;
            if (error == 0 && divvy_strings_count(members) > 0) g->listed++;
            divvy_strings_free(members);
        }
        unsigned way = rand_r(&g->seed) % 3;
        if (way && !expected(divvy_party_leave(party, way == 1 ? 0 : 200))) g->wrong++;
        divvy_party_destroy(party);
    }
    return NULL;
}

/* Several threads join, list, leave and destroy on one client while the link breaks, falls silent and loses answers,
 * and somebody else deletes nodes: in the end there is not one node left. DIVVY_TEST_SEED replays the choices. */
TEST(test_storm) {
    witness w;
    guest guests[STORM_THREADS];
    atomic_bool over = false;
    unsigned seed = (unsigned)dv_test_seed("live_party");
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = 20000;
    divvy_client *client = open_connected(&config);
    for (int i = 0; i < STORM_THREADS; i++) {
        guests[i] = (guest){.client = client, .over = &over, .seed = seed + (unsigned)i};
        assert_int_equal(pthread_create(&guests[i].thread, NULL, visit, &guests[i]), 0);
    }
    for (int64_t until_ms = dv_test_now_ms() + STORM_MS; dv_test_now_ms() < until_ms;) {
        unsigned what = rand_r(&seed) % 4;
        if (what == 0) dv_test_proxy_cut(proxy);
        if (what == 1) dv_test_proxy_drop_replies(proxy, true);
        if (what == 2) dv_test_proxy_freeze(proxy);
        if (what == 3) {
            size_t count;
            char **names = dv_test_zk_children(truth, "/party/storm", &count), path[512];
            if (count) snprintf(path, sizeof path, "/party/storm/%s", names[rand_r(&seed) % count]);
            if (count) (void)dv_test_zk_delete(truth, path);
            dv_test_zk_free_names(names);
        }
        dv_test_sleep_ms((int)(rand_r(&seed) % 60));
        if (what == 1) dv_test_proxy_drop_replies(proxy, false);
        dv_test_proxy_restore(proxy);
        dv_test_sleep_ms((int)(rand_r(&seed) % 300));
    }
    atomic_store(&over, true);
    int joined = 0, heard = 0;
    for (int i = 0; i < STORM_THREADS; i++) {
        pthread_join(guests[i].thread, NULL);
        assert_int_equal(guests[i].wrong, 0);
        joined += guests[i].joined;
        heard += guests[i].listed;
    }
    assert_true(joined > STORM_THREADS && heard > 0);
    divvy_stats stats;
    assert_true(DV_WAIT(divvy_client_stats(client, &stats, sizeof stats) == 0 && stats.ephemerals == 0, PATIENCE_MS));
    assert_int_equal(stats.ephemeral_path_bytes, 0);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_int_equal(nodes("/party/storm"), 0);
    divvy_client_close(client);
    witness_end(&w);
    dv_test_proxy_stop(proxy);
}

TEST_GROUP(set_up, stop_server);
