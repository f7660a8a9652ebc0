/* Servers that are not ZooKeeper: docs/compatibility.md, and rule B8. A proxy refuses the requests that they lack.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shows the native client with servers that end connections or refuse requests that ZooKeeper knows. */
#include <cjson/cJSON.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "one_server.h"
#include "test_client_witness.h"
#include "zookeeper/open.h"

enum { LINE_BYTES = 4096, ITEMS = 12 };

/* ---- the proxy ---- */

typedef struct {
    pid_t pid;
    FILE *to, *from;
    char address[64];
} keeper;

static keeper start_keeper(const char *const *options) {
    int in[2], out[2];
    keeper k = {0};
    const char *arguments[16] = {DIVVY_SOURCE_DIR "/test/keeper/proxy.py", hosts()};
    for (size_t i = 0; options[i]; i++) arguments[i + 2] = options[i];
    assert_int_equal(pipe(in) | pipe(out), 0);
    k.pid = fork();
    assert_true(k.pid >= 0);
    if (k.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        close(out[0]);
        execv(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    k.to = fdopen(in[1], "w");
    k.from = fdopen(out[0], "r");
    assert_non_null(fgets(k.address, sizeof k.address, k.from));
    k.address[strcspn(k.address, "\n")] = '\0';
    return k;
}

static cJSON *report(keeper *k) {
    char line[LINE_BYTES];
    fputs("report\n", k->to);
    fflush(k->to);
    assert_non_null(fgets(line, sizeof line, k->from));
    print_message("%s", line);
    cJSON *result = cJSON_Parse(line);
    assert_non_null(result);
    return result;
}

static void stop_keeper(keeper *k) {
    fclose(k->to);
    assert_int_equal(waitpid(k->pid, NULL, 0), k->pid);
    fclose(k->from);
}

/* ---- what clients do ---- */

typedef struct {
    divvy_client *client;
    divvy_partitioner *partitioner;
    atomic_int lost, lines_of_tick;
} worker;

static void on_session(divvy_client *client, divvy_session_state state, void *user) {
    (void)client;
    worker *w = user;
    if (state == DIVVY_LOST) atomic_fetch_add(&w->lost, 1);
}

static void on_log(int level, const char *message, void *user) {
    worker *w = user;
    if (level == DIVVY_LOG_INFO && strstr(message, "does not say its tickTime")) atomic_fetch_add(&w->lines_of_tick, 1);
}

static void open_worker(worker *w, const char *address) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = address;
    config.ensemble_tick_ms = TICK_MS;
    config.on_session = on_session;
    config.on_log = on_log;
    config.user = w;
    config.tokens_checked = 1;
    w->client = open_connected(&config);
}

/* A session may end with the request that is refused, so that a first try fails. */
static bool is_done(const worker *w, int error) {
    if (error) print_message("%s\n", divvy_client_error(w->client));
    return error == 0;
}

static void hold_lock(worker *w, const char *path) {
    divvy_lock *lock;
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = path;
    config.container = 1;
    assert_int_equal(divvy_lock_create(&lock, w->client, &config), 0);
    int64_t last = 0;
    for (int times = 0; times < 3; times++) {
        assert_true(DV_WAIT(is_done(w, divvy_lock_acquire(lock, PATIENCE_MS)), PATIENCE_MS));
        assert_true(divvy_lock_token(lock) > last);
        last = divvy_lock_token(lock);
        assert_int_equal(divvy_lock_release(lock), 0);
    }
    divvy_lock_destroy(lock);
}

static void hold_slot(worker *w) {
    divvy_semaphore *semaphore;
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    config.path = "/keeper/semaphore";
    config.limit = 2;
    config.container = 1;
    assert_int_equal(divvy_semaphore_create(&semaphore, w->client, &config), 0);
    assert_true(DV_WAIT(is_done(w, divvy_semaphore_acquire(semaphore, PATIENCE_MS)), PATIENCE_MS));
    assert_true(divvy_semaphore_token(semaphore) > 0);
    assert_int_equal(divvy_semaphore_release(semaphore), 0);
    divvy_semaphore_destroy(semaphore);
}

static void take_part(worker *w) {
    divvy_party *party;
    divvy_strings *members;
    assert_int_equal(divvy_party_join(&party, w->client, "/keeper/party", "me", DIVVY_PARTY), 0);
    assert_true(DV_WAIT(is_done(w, divvy_party_members(party, &members, PATIENCE_MS)), PATIENCE_MS));
    assert_int_equal(divvy_strings_count(members), 1);
    divvy_strings_free(members);
    divvy_party_destroy(party);
}

static void announce(worker *w) {
    divvy_registry *registry;
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    cJSON *status = cJSON_Parse("{\"id\":\"s1\",\"role\":\"web\",\"load\":1,\"ttl\":60}"), *entry;
    assert_int_equal(divvy_registry_open(&registry, w->client, &config), 0);
    assert_true(DV_WAIT(is_done(w, divvy_registry_heartbeat(registry, status, NULL, PATIENCE_MS)), PATIENCE_MS));
    assert_int_equal(divvy_registry_healthy_service(registry, "web", &entry, PATIENCE_MS), 0);
    assert_non_null(entry);
    cJSON_Delete(entry);
    cJSON_Delete(status);
    assert_int_equal(divvy_registry_unregister(registry, "web", "s1", PATIENCE_MS), 0);
    divvy_registry_close(registry);
}

static void begin_pool(worker *w) {
    static const char *const items[ITEMS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/keeper/pool";
    config.items = items;
    config.item_count = ITEMS;
    config.on_session_loss = DIVVY_REJOIN;
    assert_int_equal(divvy_partitioner_create(&w->partitioner, w->client, &config), 0);
}

/* Returns how many items a member owns, and answers what it is asked to release. */
static size_t share(worker *w) {
    if (divvy_partitioner_state(w->partitioner) == DIVVY_RELEASE) divvy_partitioner_release_set(w->partitioner);
    divvy_partition *mine = divvy_partitioner_partition(w->partitioner);
    size_t count = 0;
    for (size_t i = 0; i < divvy_partition_count(mine); i++) {
        assert_true(divvy_partition_token(mine, i) > 0);
        count += !divvy_partition_revoked(mine, i);
    }
    divvy_partition_unref(mine);
    return count;
}

static void divide(worker *workers) {
    for (int i = 0; i < 2; i++) begin_pool(&workers[i]);
    assert_true(DV_WAIT(share(&workers[0]) == ITEMS / 2 && share(&workers[1]) == ITEMS / 2, PATIENCE_MS));
    divvy_partitioner_finish(workers[0].partitioner, PATIENCE_MS);
    divvy_partitioner_destroy(workers[0].partitioner);
    assert_true(DV_WAIT(share(&workers[1]) == ITEMS, PATIENCE_MS));
    divvy_partitioner_finish(workers[1].partitioner, PATIENCE_MS);
    divvy_partitioner_destroy(workers[1].partitioner);
}

/* ---- the servers ---- */

static double number_at(const cJSON *object, const char *name) {
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(object, name);
    return number ? number->valuedouble : 0;
}

static void use_all_recipes(worker *workers) {
    hold_lock(&workers[0], "/keeper/locks/first");
    hold_lock(&workers[1], "/keeper/locks/second");
    hold_slot(&workers[0]);
    take_part(&workers[0]);
    announce(&workers[0]);
}

/* divvy sends what docs/compatibility.md lists, and nothing else. */
static double check_requests(const cJSON *requests) {
    static const char *const known[] = {"-11",  "2",    "3",    "4",     "5",  "11", "12",  "14",
                                        "14.1", "14.2", "14.5", "14.13", "15", "19", "101", "100"};
    double sum = 0;
    const cJSON *opcode;
    cJSON_ArrayForEach(opcode, requests) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) is_known |= strcmp(known[i], opcode->string) == 0;
        if (!is_known) fail_msg("opcode %s is not in the table", opcode->string);
        bool of_a_recipe = !strchr(opcode->string, '.') && strcmp(opcode->string, "11") != 0;
        if (of_a_recipe) sum += opcode->valuedouble;
    }
    return sum;
}

/* Each session asks for what is refused as often as is allowed, and both clients together do. */
static void check_refused(const cJSON *refused, int in_session_max, int max) {
    static const char *const opcodes[] = {"15", "19"};
    for (size_t i = 0; i < 2; i++) {
        double sum = 0;
        const cJSON *session;
        cJSON_ArrayForEach(session, refused) {
            double count = number_at(session, opcodes[i]);
            assert_true(count <= in_session_max);
            sum += count;
        }
        assert_true(sum <= max);
    }
}

/* All recipes work, whatever the way in which such a server refuses what it lacks. Each client asks it for each such
 * request once, or twice where all that it sees is the end of a connection. It is not asked at all, and no session is
 * lost, where the session's number tells what it is. */
TEST(test_recipes) {
    static const struct {
        const char *name;
        const char *options[8];
        int in_session_max, max;
        bool divides; /* the partitioner too, which takes seconds */
    } cases[] = {
        {"nothing refused", {"--refuse", "", NULL}, 0, 0, true},
        {"Keeper", {"--how", "close", "--counted", "--forgetful", "--silent-conf", NULL}, 0, 0, true},
        {"closes, and forgets the session", {"--how", "close", "--forgetful", NULL}, 1, 4, false},
        {"answers, and closes", {"--how", "answer-close", NULL}, 1, 2, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keeper k = start_keeper(cases[i].options);
        worker workers[2] = {{0}};
        for (int j = 0; j < 2; j++) open_worker(&workers[j], k.address);
        use_all_recipes(workers);
        if (cases[i].divides) divide(workers);
        cJSON *r = report(&k);
        double sum = check_requests(cJSON_GetObjectItemCaseSensitive(r, "requests"));
        print_message("%s: %.0f requests\n", cases[i].name, sum);
        check_refused(cJSON_GetObjectItemCaseSensitive(r, "refused"), cases[i].in_session_max, cases[i].max);
        if (cases[i].max == 0) assert_int_equal(workers[0].lost + workers[1].lost, 0);
        assert_true(DV_WAIT(workers[0].lines_of_tick == (i == 1), PATIENCE_MS));
        cJSON_Delete(r);
        for (int j = 0; j < 2; j++) divvy_client_close(workers[j].client);
        stop_keeper(&k);
        assert_int_equal(dv_test_zk_delete_all(truth, "/keeper"), ZOK);
        if (dv_test_zk_exists(truth, "/divvy", NULL)) assert_int_equal(dv_test_zk_delete_all(truth, "/divvy"), ZOK);
    }
}

/* B9: a server that ends a session with its connection is refused, but by those who own nothing there, or are told that
 * all resources check tokens. */
TEST(test_refused) {
    static const char *const options[] = {"--how", "close", "--counted", "--forgetful", NULL};
    keeper k = start_keeper(options);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = k.address;
    config.ensemble_tick_ms = TICK_MS;
    divvy_client *client;
    assert_int_equal(divvy_client_open(&client, &config), 0);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), DIVVY_EUNSUPPORTED);
    assert_non_null(strstr(divvy_client_error(client), "set tokens_checked (DIVVY_TOKENS_CHECKED=1)"));
    assert_int_equal(divvy_client_state(client), DIVVY_AUTH_FAILED);
    divvy_client_close(client);
    setenv("DIVVY_TOKENS_CHECKED", "yes", 1);
    assert_int_equal(divvy_client_open(&client, &config), DIVVY_EINVAL);
    setenv("DIVVY_TOKENS_CHECKED", "1", 1);
    divvy_client_close(open_connected(&config));
    unsetenv("DIVVY_TOKENS_CHECKED");
    assert_int_equal(dv_client_open_to_look(&client, &config), 0);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    divvy_client_close(client);
    stop_keeper(&k);
}

TEST_GROUP(start_server, stop_server);
