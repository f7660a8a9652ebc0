/* Tests of divvy_client_close(): what has come about is told, all of it, before it returns. SPDX-License-Identifier:
 * Apache-2.0 */
#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/client.h"
#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"
#include "lib/wait.h"

enum { WAIT_MS = 60000, TOLD_BYTES = 4096 };

static divvy_testing_ensemble *ensemble;
static divvy_client *client;
static divvy_lock *blocker;

/* What was told, in words, in its order. Callbacks of the client are serialised; the test reads it after the close. */
static char told[TOLD_BYTES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void tell(const char *format, const char *word) {
    pthread_mutex_lock(&mutex);
    size_t at = strlen(told);
    snprintf(told + at, sizeof told - at, format, word);
    pthread_mutex_unlock(&mutex);
}

static bool is_told(const char *words) {
    pthread_mutex_lock(&mutex);
    bool found = strstr(told, words) != NULL;
    pthread_mutex_unlock(&mutex);
    return found;
}

static void forget(void) {
    pthread_mutex_lock(&mutex);
    told[0] = '\0';
    pthread_mutex_unlock(&mutex);
}

/* ---- a callback that stands still until the client starts no more ---- */

static atomic_bool stands;

static bool is_stopping(void) {
    dv_client_lock(client);
    bool stopping = client->life >= DV_CLIENT_STOPPING;
    dv_client_unlock(client);
    return stopping;
}

static void stand_still(divvy_lock *lock, int result, void *user) {
    (void)lock, (void)user;
    assert_int_equal(result, 0);
    atomic_store(&stands, true);
    assert_true(DV_WAIT(is_stopping(), WAIT_MS));
}

/* Nothing is told from now on, until the close. */
static void stop_telling(void) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = "/blocker";
    atomic_store(&stands, false);
    forget();
    assert_int_equal(divvy_lock_create(&blocker, client, &config), 0);
    assert_int_equal(divvy_lock_acquire_async(blocker, -1, stand_still, NULL), 0);
    assert_true(DV_WAIT(atomic_load(&stands), WAIT_MS));
}

/* ---- the client ---- */

static void on_session(divvy_client *c, divvy_session_state state, void *user) {
    (void)c, (void)user;
    tell("%s ", divvy_session_state_name(state));
}

static void on_warning(divvy_client *c, int code, const char *message, void *user) {
    (void)c, (void)message, (void)user;
    tell("warned:%s ", divvy_warning_name(code));
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    config.real_clock = 1;
    config.tick_ms = 100;
    config.max_session_timeout_ms = 30000; /* A busy machine may stop us for seconds. */
    client_config.ensemble_tick_ms = 100;
    client_config.session_timeout_ms = 30000;
    client_config.on_session = on_session;
    client_config.on_warning = on_warning;
    blocker = NULL;
    forget();
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &client_config), 0);
    assert_int_equal(divvy_client_wait_connected(client, WAIT_MS), 0);
    assert_true(DV_WAIT(is_told("CONNECTED"), WAIT_MS)); /* and by no callback that comes later */
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

static void close_client(void) {
    divvy_client_close(client);
    if (blocker) divvy_lock_destroy(blocker);
}

/* ---- pools ---- */

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)p, (void)from, (void)user;
    tell("%s ", divvy_partition_state_name(to));
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p, (void)user;
    for (size_t i = 0; i < event->gained_count; i++) tell("+%s ", event->gained[i]);
    for (size_t i = 0; i < event->lost_count; i++) tell("-%s ", event->lost[i]);
    if (event->lost_count) tell("(%s) ", divvy_reason_name(event->reason));
}

static void on_destroyed(void *user) {
    (void)user;
    tell("%s ", "destroyed");
}

static divvy_partitioner *join(void) {
    static const char *const items[] = {"a", "b"};
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_partitioner *p;
    config.path = "/pool";
    config.items = items;
    config.item_count = 2;
    config.on_state = on_state;
    config.on_items = on_items;
    config.on_destroyed = on_destroyed;
    assert_int_equal(divvy_partitioner_create(&p, client, &config), 0);
    return p;
}

/* The close takes the items, and ends in FAILURE. Both are told before it returns, and before on_destroyed. */
TEST_IN(test_partitioner, set_up, tear_down) {
    divvy_partitioner *p = join();
    assert_true(DV_WAIT(is_told("ACQUIRED"), WAIT_MS));
    stop_telling();
    close_client();
    assert_string_equal(told, "-a -b (FINISH) FAILURE ");
    divvy_partitioner_destroy(p);
    assert_string_equal(told, "-a -b (FINISH) FAILURE destroyed ");
}

/* What ended a partitioner before the close is told with its own reason, and not as the close's. */
TEST_IN(test_partitioner_that_had_failed, set_up, tear_down) {
    divvy_partitioner *p = join();
    assert_true(DV_WAIT(is_told("ACQUIRED"), WAIT_MS));
    stop_telling();
    assert_int_equal(divvy_testing_expire(ensemble, client), 0);
    assert_true(DV_WAIT(divvy_partitioner_state(p) == DIVVY_FAILURE, WAIT_MS));
    close_client();
    assert_true(is_told("-a -b (SESSION) FAILURE "));
    divvy_partitioner_destroy(p);
}

/* A close that comes before the first answer of a server tells the end as well. In manual mode it is told inside. */
TEST_IN(test_partitioner_in_manual_mode, set_up, tear_down) {
    divvy_client *threaded = client;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.ensemble_tick_ms = 100;
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &config), 0);
    divvy_partitioner *p = join();
    forget();
    divvy_client_close(client);
    assert_string_equal(told, "FAILURE ");
    divvy_partitioner_destroy(p);
    assert_string_equal(told, "FAILURE destroyed ");
    divvy_client_close(threaded);
}

/* An object that was destroyed tells nothing more, but that it has gone. */
TEST_IN(test_destroyed_partitioner, set_up, tear_down) {
    divvy_partitioner *p = join();
    assert_true(DV_WAIT(is_told("ACQUIRED"), WAIT_MS));
    stop_telling();
    divvy_partitioner_destroy(p);
    close_client();
    assert_string_equal(told, "destroyed ");
}

/* ---- locks, semaphores, elections ---- */

static void on_lock_lost(divvy_lock *lock, void *user) {
    (void)lock, (void)user;
    tell("lost:%s ", "lock");
}

static void on_slots_lost(divvy_semaphore *semaphore, void *user) {
    (void)semaphore, (void)user;
    tell("lost:%s ", "slots");
}

static void on_elected(divvy_election *election, int64_t token, void *user) {
    (void)election, (void)token, (void)user;
    tell("%s ", "elected");
}

static void on_leadership_lost(divvy_election *election, void *user) {
    (void)election, (void)user;
    tell("lost:%s ", "leadership");
}

static void on_leader(divvy_election *election, const divvy_leader *leader, void *user) {
    (void)election, (void)user;
    tell("leader:%s ", leader ? leader->data : "nobody");
}

static divvy_lock *hold_lock(void) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = "/lock";
    config.on_lost = on_lock_lost;
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    assert_int_equal(divvy_lock_acquire(lock, WAIT_MS), 0);
    return lock;
}

static divvy_semaphore *hold_slots(void) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore *semaphore;
    config.path = "/slots";
    config.limit = 2;
    config.on_lost = on_slots_lost;
    assert_int_equal(divvy_semaphore_create(&semaphore, client, &config), 0);
    assert_int_equal(divvy_semaphore_acquire(semaphore, WAIT_MS), 0);
    return semaphore;
}

static divvy_election *stand(const char *data) {
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    divvy_election *election;
    config.path = "/role";
    config.data = data;
    config.on_elected = on_elected;
    config.on_lost = on_leadership_lost;
    config.on_leader = on_leader;
    assert_int_equal(divvy_election_create(&election, client, &config), 0);
    assert_int_equal(divvy_election_stand(election), 0);
    return election;
}

static bool leads(void) {
    return is_told("elected") && is_told("leader:me");
}

static bool has_another_session(int64_t old) {
    return divvy_client_state(client) == DIVVY_CONNECTED && divvy_client_session_id(client) != old;
}

/* Losses before the close are told, each once, and so is what the session went through. */
TEST_IN(test_losses, set_up, tear_down) {
    divvy_lock *lock = hold_lock();
    divvy_semaphore *semaphore = hold_slots();
    divvy_election *election = stand("me");
    assert_true(DV_WAIT(leads(), WAIT_MS));
    int64_t session = divvy_client_session_id(client);
    stop_telling();
    assert_int_equal(divvy_testing_expire(ensemble, client), 0);
    assert_true(DV_WAIT(has_another_session(session), WAIT_MS));
    close_client();
    assert_true(is_told("LOST lost:lock lost:slots lost:leadership CONNECTING CONNECTED "));
    divvy_lock_destroy(lock);
    divvy_semaphore_destroy(semaphore);
    divvy_election_destroy(election);
}

/* What is held at the close is given back by it, which is no loss, as the headers say. */
TEST_IN(test_held, set_up, tear_down) {
    divvy_lock *lock = hold_lock();
    divvy_semaphore *semaphore = hold_slots();
    divvy_election *election = stand("me");
    assert_true(DV_WAIT(leads(), WAIT_MS));
    stop_telling();
    close_client();
    assert_string_equal(told, "");
    divvy_lock_destroy(lock);
    divvy_semaphore_destroy(semaphore);
    divvy_election_destroy(election);
}

static bool told_while_closing;

static void on_acquired(divvy_lock *lock, int result, void *user) {
    (void)lock, (void)user;
    tell("%s ", result == DIVVY_ECANCELED ? "canceled" : "acquired");
}

/* Has the close stand still once everybody knows of it. */
static void hear_close(dv_listener *listener, dv_session_event event, int64_t now) {
    (void)now;
    if (event != DV_SESSION_CLOSING) return;
    dv_client_unlock(client);
    told_while_closing = DV_WAIT(is_told("canceled"), WAIT_MS);
    dv_client_lock(client);
    dv_unlisten(client, listener);
}

/* What the close ends is told by the client's own thread while the close waits for the servers. */
TEST_IN(test_acquire, set_up, tear_down) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    dv_listener listener = {.hear = hear_close};
    divvy_lock *held = hold_lock(), *wanted;
    config.path = "/lock";
    assert_int_equal(divvy_lock_create(&wanted, client, &config), 0);
    assert_int_equal(divvy_lock_acquire_async(wanted, -1, on_acquired, NULL), 0);
    dv_client_lock(client);
    dv_listen(client, &listener);
    dv_client_unlock(client);
    close_client();
    divvy_lock_destroy(held);
    divvy_lock_destroy(wanted);
    assert_true(told_while_closing);
}

/* ---- what other processes do: leaders and services ---- */

static divvy_client *open_another(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *other;
    config.ensemble_tick_ms = 100;
    assert_int_equal(divvy_testing_client_open(&other, ensemble, &config), 0);
    return other;
}

static bool knows_leader(divvy_election *observer) {
    divvy_leader *leader = NULL;
    assert_int_equal(divvy_election_leader(observer, &leader, WAIT_MS), 0);
    bool known = leader != NULL;
    divvy_leader_free(leader);
    return known;
}

/* A leader that was found before the close is told. */
TEST_IN(test_leader, set_up, tear_down) {
    divvy_client *other = open_another();
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    divvy_election *observer, *candidate;
    config.path = "/role";
    config.data = "another";
    config.on_leader = on_leader;
    assert_int_equal(divvy_election_create(&observer, client, &config), 0);
    assert_true(DV_WAIT(is_told("leader:nobody "), WAIT_MS));
    stop_telling();
    config.on_leader = NULL;
    assert_int_equal(divvy_election_create(&candidate, other, &config), 0);
    assert_int_equal(divvy_election_stand(candidate), 0);
    assert_true(DV_WAIT(knows_leader(observer), WAIT_MS));
    close_client();
    assert_string_equal(told, "leader:another ");
    divvy_election_destroy(observer);
    divvy_election_destroy(candidate);
    divvy_client_close(other);
}

static void on_change(divvy_registry *registry, int change, const cJSON *before, const cJSON *after, void *user) {
    (void)registry, (void)before, (void)after, (void)user;
    if (change == DIVVY_REGISTRY_ADDED) tell("%s ", "added");
}

static double on_load(divvy_registry *registry, const char *role, const char *id, double load, void *user) {
    (void)registry, (void)role, (void)id, (void)user;
    tell("%s ", "asked for its load");
    return load;
}

static cJSON *make_status(const char *id) {
    cJSON *status = cJSON_CreateObject();
    cJSON_AddStringToObject(status, "role", "web");
    cJSON_AddStringToObject(status, "id", id);
    cJSON_AddNumberToObject(status, "load", 1);
    cJSON_AddNumberToObject(status, "ttl", 10);
    return status;
}

static void beat(divvy_registry *registry, const char *id) {
    cJSON *status = make_status(id);
    assert_int_equal(divvy_registry_heartbeat(registry, status, NULL, WAIT_MS), 0);
    cJSON_Delete(status);
}

static int count_healthy(divvy_registry *registry) {
    cJSON *services;
    assert_int_equal(divvy_registry_healthy_services(registry, "web", &services, WAIT_MS), 0);
    int count = cJSON_GetArraySize(services);
    cJSON_Delete(services);
    return count;
}

/* Each service that the view has seen before the close is told of. */
TEST_IN(test_services, set_up, tear_down) {
    divvy_client *other = open_another();
    divvy_registry *view, *announcer;
    assert_int_equal(divvy_registry_open(&view, client, NULL), 0);
    assert_int_equal(divvy_registry_open(&announcer, other, NULL), 0);
    beat(announcer, "1");
    assert_int_equal(divvy_registry_watch(view, "web", on_change, NULL), 0);
    assert_true(DV_WAIT(is_told("added "), WAIT_MS));
    stop_telling();
    beat(announcer, "2");
    beat(announcer, "3");
    assert_true(DV_WAIT(count_healthy(view) == 3, WAIT_MS));
    close_client();
    assert_string_equal(told, "added added ");
    divvy_registry_close(view);
    divvy_registry_close(announcer);
    divvy_client_close(other);
}

static bool asks_for_load(void) {
    bool asks = false;
    dv_client_lock(client);
    for (dv_callback *call = client->callbacks; call; call = call->next) asks |= call->asks;
    dv_client_unlock(client);
    return asks;
}

static void on_beaten(divvy_registry *registry, int result, const cJSON *stored, void *user) {
    (void)registry, (void)result, (void)stored, (void)user;
    tell("done:%s ", divvy_session_state_name(divvy_client_state(client)));
}

/* The end of each heartbeat is told, and nobody is asked for a load that would not be stored. */
TEST_IN(test_announced, set_up, tear_down) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    divvy_registry *registry;
    config.heartbeat = 1;
    config.on_load = on_load;
    assert_int_equal(divvy_registry_open(&registry, client, &config), 0);
    cJSON *status = make_status("1");
    cJSON_SetNumberValue(cJSON_GetObjectItem(status, "ttl"), 1);
    assert_int_equal(divvy_registry_heartbeat(registry, status, NULL, WAIT_MS), 0);
    stop_telling();
    assert_true(DV_WAIT(asks_for_load(), WAIT_MS));
    assert_int_equal(divvy_registry_heartbeat_async(registry, status, -1, on_beaten, NULL), 0);
    close_client();
    assert_string_equal(told, "done:CLOSED ");
    cJSON_Delete(status);
    divvy_registry_close(registry);
}
