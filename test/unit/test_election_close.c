/* Tests of divvy/election.h: what a client that closes still tells and asks. SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>

#include "client/client.h"
#include "election_fixture.h"

/* Clients may be closed before their elections are destroyed, whatever these do. */
TEST(test_closed_first) {
    open_clients(3);
    member *a = join(0, &(config_of){.data = "a"});
    join(1, &(config_of){.data = "p", .preference = 3});
    member *o = watch(2);
    run(1000);
    for (size_t i = 0; i < 3; i++) divvy_client_close(take_client(i));
    assert_false(divvy_election_leads(a->election));
    assert_int_equal(divvy_election_stand(a->election), DIVVY_ECLOSED);
    divvy_leader *leader;
    assert_int_equal(divvy_election_ask_step_down(o->election, 100), DIVVY_ECLOSED);
    assert_int_equal(divvy_election_leader(o->election, &leader, 100), DIVVY_ECLOSED);
    close_all();
}

/* A closed client that an election still holds has no timer, for which an ensemble in memory would return to it. */
TEST(test_no_timer_of_a_closed_one) {
    open_clients(1);
    member *o = watch(0);
    run(1000);
    assert_non_null(o->client->timers.first);
    divvy_client_close(take_client(0));
    assert_null(o->client->timers.first);
    close_all();
}

/* A leader whose client closes is told of no request after that, however far the request had come. */
TEST(test_asked_at_close) {
    int told_before = 0, untold = 0;
    for (int64_t ms = 0; ms < 12; ms++) {
        open_clients(2);
        member *a = join(0, &(config_of){.data = "a"});
        char path[80];
        run(1000);
        snprintf(path, sizeof path, PATH "/x,down=%016llx", (unsigned long long)a->token);
        assert_int_equal(divvy_testing_put(ensemble, path, "", 0, DIVVY_TESTING_PERSISTENT), 0);
        run(ms);
        int asked = a->asked;
        divvy_client_close(take_client(0));
        assert_int_equal(a->asked, asked);
        told_before += asked, untold += !asked;
        clear();
        close_all();
    }
    assert_true(told_before > 0 && untold > 0);
}

/* A preferred candidate whose client closes asks no leader that it finds just then, which would hold the close up. */
TEST(test_leader_found_at_close) {
    for (int64_t ms = 0; ms < 12; ms++) {
        open_clients(3);
        member *a = join(0, &(config_of){.data = "a"});
        join(1, &(config_of){.data = "b"});
        join(2, &(config_of){.data = "p", .preference = 1});
        run(1000);
        assert_int_equal(divvy_election_resign(a->election), 0);
        run(ms);
        int64_t until = divvy_testing_now_ms(ensemble) + 1000;
        divvy_client_close(take_client(2));
        CLAIM(divvy_testing_now_ms(ensemble) < until, "the close took long, %lld ms behind", (long long)ms);
        close_all();
    }
}

static member *to_end; /* as soon as a callback of its client's begins */

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex) {
    bool begins = to_end && mutex == &to_end->client->lock && to_end->client->in_callback;
    int error = __real_pthread_mutex_unlock(mutex);
    if (begins) {
        divvy_election *election = to_end->election;
        to_end->election = NULL;
        to_end = NULL;
        divvy_election_destroy_async(election, NULL, NULL);
    }
    return error;
}

/* A finalizer that ends an election while a callback begins does not take the memory from under that. */
TEST(test_ended_as_a_loss_begins) {
    mallopt(M_PERTURB, 0x5a); /* What is freed is no pointer after that. */
    open_clients(1);
    member *a = join(0, &(config_of){.data = "a"});
    run(1000);
    assert_int_equal(a->elected, 1);
    killed = true;
    to_end = a;
    assert_int_equal(divvy_testing_expire(ensemble, a->client), 0);
    run(2 * SESSION_MS);
    assert_null(to_end);
    mallopt(M_PERTURB, 0);
    close_all();
}
