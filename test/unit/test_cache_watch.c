/* Tests of divvy_registry_watch() on the in-memory ensemble. SPDX-License-Identifier: Apache-2.0 */
#include <cjson/cJSON.h>

#include "divvy/registry.h"
#include "test_ensemble.h"

#define SERVICES "/divvy/services"

static divvy_testing_ensemble *e;
static divvy_client *reader, *server; /* who watches; whose services are watched */
static divvy_registry *registry, *announcer;

/* The changes that a user was told, in a line: "+a 1", "a 1>2", "-a 2", "~a 2" (preserved), by id and load. */
typedef struct {
    char log[8192];
    int calls;
    cJSON *last; /* `after` of the newest call, of one service */
    bool one;    /* only one service is in the test: before must be that */
    bool unwatch, close_registry, look;
    int looked; /* what a lookup inside the callback returned */
} witness;

static double load_of(const cJSON *entry) {
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(entry, "load"));
}

static const char *id_of(const cJSON *entry) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "id"));
}

static bool is_preserved(const cJSON *entry) {
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(entry, "preserved"));
}

static void on_change(divvy_registry *r, int change, const cJSON *before, const cJSON *after, void *user) {
    witness *w = user;
    w->calls++;
    size_t used = strlen(w->log);
    char *end = w->log + used;
    size_t room = sizeof w->log - used;
    assert_true((change == DIVVY_REGISTRY_ADDED) == !before);
    assert_true((change == DIVVY_REGISTRY_REMOVED) == !after);
    if (w->one) {
        assert_true(before ? w->last && cJSON_Compare(before, w->last, 1) : !w->last);
        cJSON_Delete(w->last);
        w->last = after ? cJSON_Duplicate(after, 1) : NULL;
    }
    switch (change) {
    case DIVVY_REGISTRY_ADDED: snprintf(end, room, "+%s %g ", id_of(after), load_of(after)); break;
    case DIVVY_REGISTRY_CHANGED:
        assert_false(is_preserved(after));
        snprintf(end, room, "%s %g>%g ", id_of(after), load_of(before), load_of(after));
        break;
    case DIVVY_REGISTRY_REMOVED: snprintf(end, room, "-%s %g ", id_of(before), load_of(before)); break;
    case DIVVY_REGISTRY_PRESERVED:
        assert_true(is_preserved(after));
        assert_false(is_preserved(before));
        snprintf(end, room, "~%s %g ", id_of(after), load_of(after));
        break;
    default: fail();
    }
    if (w->look) {
        cJSON *found = NULL;
        w->looked = divvy_registry_healthy_service(r, "web", &found, 0);
        cJSON_Delete(found);
    }
    if (w->unwatch) assert_int_equal(divvy_registry_unwatch(r, "web"), 0);
    if (w->close_registry) divvy_registry_close(r);
}

static void expect_told(witness *w, const char *text) {
    divvy_testing_run(e, 300);
    assert_string_equal(w->log, text);
    w->log[0] = '\0';
}

static void announce_for(const char *role, const char *id, double load, double ttl) {
    cJSON *status = cJSON_CreateObject();
    cJSON_AddStringToObject(status, "role", role);
    cJSON_AddStringToObject(status, "id", id);
    cJSON_AddNumberToObject(status, "load", load);
    cJSON_AddNumberToObject(status, "ttl", ttl);
    assert_int_equal(divvy_registry_heartbeat(announcer, status, NULL, 10000), 0);
    cJSON_Delete(status);
}

static void announce(const char *id, double load) {
    announce_for("web", id, load, 1000);
}

/* The ids of the healthy ones of a role, in their order, the preserved ones in brackets. */
static const char *healthy(const char *role) {
    static char text[512];
    cJSON *array = NULL;
    assert_int_equal(divvy_registry_healthy_services(registry, role, &array, 10000), 0);
    text[0] = '\0';
    const cJSON *entry;
    cJSON_ArrayForEach(entry, array) {
        bool kept = is_preserved(entry);
        snprintf(text + strlen(text), sizeof text - strlen(text), kept ? "[%s] " : "%s ", id_of(entry));
    }
    cJSON_Delete(array);
    return text;
}

static void watch(const char *role, witness *w) {
    assert_int_equal(divvy_registry_watch(registry, role, w ? on_change : NULL, w), 0);
    divvy_testing_run(e, 1000);
}

static void open_registries(const divvy_registry_config *config, int persistent) {
    divvy_registry_config of_announcer = DIVVY_REGISTRY_CONFIG_INIT;
    of_announcer.persistent = persistent;
    assert_int_equal(divvy_registry_open(&registry, reader, config), 0);
    assert_int_equal(divvy_registry_open(&announcer, server, &of_announcer), 0);
}

static int set_up(void **state) {
    (void)state;
    e = open_ensemble(NULL);
    reader = open_client(e, 10000, a_follower(e));
    server = open_client(e, 10000, divvy_testing_leader(e));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_registry_close(registry);
    divvy_registry_close(announcer);
    registry = announcer = NULL;
    bool clean = reader->watched.used_bytes == 0;
    divvy_client_close(reader);
    divvy_client_close(server);
    divvy_testing_ensemble_destroy(e);
    return clean ? 0 : -1;
}

/* A user is told in order what comes, changes and goes, each time with the entry before and after. */
TEST(test_tells) {
    witness w = {.one = true};
    open_registries(NULL, 0);
    announce("a", 3);
    watch("web", &w);
    expect_told(&w, "+a 3 ");
    announce("a", 1);
    expect_told(&w, "a 3>1 ");
    assert_int_equal(divvy_registry_unregister(announcer, "web", "a", 10000), 0);
    expect_told(&w, "-a 1 ");
    announce("a", 2);
    expect_told(&w, "+a 2 ");
    assert_int_equal(w.calls, 4);
    cJSON_Delete(w.last);
}

/* A lookup in a role that is watched sends nothing, and is right; one in another role does send. */
TEST(test_lookups_send_nothing) {
    open_registries(NULL, 0);
    announce("a", 3);
    announce("b", 1);
    announce("c", 2);
    announce_for("mail", "m", 1, 1000);
    watch("web", NULL);
    divvy_stats before, after;
    divvy_client_stats(reader, &before, sizeof before);
    for (int i = 0; i < 1000; i++) {
        cJSON *found = NULL;
        assert_int_equal(divvy_registry_healthy_service(registry, "web", &found, 0), 0);
        assert_string_equal(id_of(found), "b");
        cJSON_Delete(found);
        assert_string_equal(healthy("web"), "b c a ");
    }
    divvy_client_stats(reader, &after, sizeof after);
    assert_int_equal(after.requests, before.requests);
    assert_string_equal(healthy("mail"), "m ");
    divvy_client_stats(reader, &after, sizeof after);
    assert_true(after.requests > before.requests);
}

/* All roles are one view: no lookup sends anything, not even in a role that does not exist; roles that come later are
 * in it, too. */
TEST(test_all) {
    witness w = {0};
    open_registries(NULL, 0);
    watch(NULL, &w);
    announce("a", 3);
    expect_told(&w, "+a 3 ");
    announce_for("mail", "m", 1, 1000);
    expect_told(&w, "+m 1 ");
    divvy_stats before, after;
    divvy_client_stats(reader, &before, sizeof before);
    assert_string_equal(healthy(NULL), "m a ");
    assert_string_equal(healthy("mail"), "m ");
    assert_string_equal(healthy("nobody"), "");
    divvy_client_stats(reader, &after, sizeof after);
    assert_int_equal(after.requests, before.requests);
}

/* A role may be watched by itself besides all: each is told everything of its own, and ends by itself. */
TEST(test_two_views) {
    witness all = {0}, web = {0};
    open_registries(NULL, 0);
    announce("a", 3);
    watch(NULL, &all);
    watch("web", &web);
    expect_told(&all, "+a 3 ");
    expect_told(&web, "+a 3 ");
    announce_for("mail", "m", 1, 1000);
    expect_told(&all, "+m 1 ");
    announce("a", 4);
    expect_told(&all, "a 3>4 ");
    expect_told(&web, "a 3>4 ");
    assert_int_equal(divvy_registry_unwatch(registry, NULL), 0);
    announce_for("mail", "m", 2, 1000);
    announce("a", 5);
    expect_told(&all, "");
    expect_told(&web, "a 4>5 ");
    watch(NULL, &all);
    assert_int_equal(divvy_registry_unwatch(registry, "web"), 0);
    announce("a", 6);
    expect_told(&web, "");
    assert_int_equal(divvy_registry_unwatch(registry, NULL), 0);
    assert_int_equal(reader->watched.used_bytes, 0);
}

/* A wrong call returns its error, and a message says what is wrong. */
TEST(test_errors) {
    open_registries(NULL, 0);
    assert_int_equal(divvy_registry_watch(NULL, "web", on_change, NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_watch(registry, "", on_change, NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_unwatch(NULL, "web"), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_unwatch(registry, "web"), DIVVY_ENOENT);
    assert_non_null(strstr(divvy_client_error(reader), "web"));
    assert_int_equal(divvy_registry_unwatch(registry, NULL), DIVVY_ENOENT);
    watch("web", NULL);
    assert_int_equal(divvy_registry_watch(registry, "web", on_change, NULL), DIVVY_EALREADY);
    assert_non_null(strstr(divvy_client_error(reader), "web"));
    watch(NULL, NULL);
    assert_int_equal(divvy_registry_watch(registry, NULL, on_change, NULL), DIVVY_EALREADY);
    assert_int_equal(divvy_registry_unwatch(registry, "mail"), DIVVY_ENOENT);
    char *role = calloc(1, 5001);
    memset(role, 'r', 5000);
    assert_int_equal(divvy_registry_watch(registry, role, on_change, NULL), DIVVY_E2BIG);
    free(role);
}

/* A role with a name that no node may have is the same in the view as in a read. */
TEST(test_encoded_role) {
    witness w = {0};
    open_registries(NULL, 0);
    announce_for("a/b", "x", 1, 1000);
    watch("a/b", &w);
    expect_told(&w, "+x 1 ");
    divvy_stats before, after;
    divvy_client_stats(reader, &before, sizeof before);
    assert_string_equal(healthy("a/b"), "x ");
    divvy_client_stats(reader, &after, sizeof after);
    assert_int_equal(after.requests, before.requests);
}

/* A node that holds no entry is skipped and counted, and the others are told; an entry that becomes none is removed. */
TEST(test_malformed) {
    witness w = {0};
    open_registries(NULL, 0);
    announce("a", 1);
    watch("web", &w);
    divvy_testing_put(e, SERVICES "/web/bad", "{", 1, DIVVY_TESTING_PERSISTENT);
    expect_told(&w, "+a 1 ");
    assert_int_equal(divvy_registry_malformed(registry), 1);
    divvy_testing_put(e, SERVICES "/web/a", "[]", 2, DIVVY_TESTING_PERSISTENT);
    expect_told(&w, "-a 1 ");
    assert_int_equal(divvy_registry_malformed(registry), 2);
    assert_string_equal(healthy("web"), "");
}

/* Another node of the same name is another service: removed and added, though nobody has seen the gap. */
TEST(test_replaced) {
    witness w = {0};
    open_registries(NULL, 0);
    announce("a", 1);
    watch("web", &w);
    expect_told(&w, "+a 1 ");
    static const char other[] = "{\"name\":\"web\",\"id\":\"a\",\"load\":7}";
    dv_op ops[] = {op_of(DV_DELETE, SERVICES "/web/a"), op_create(SERVICES "/web/a", other, 0)};
    outcome o;
    ask_multi(server, &o, ops, 2);
    assert_int_equal(await(&o), 0);
    expect_told(&w, "-a 1 +a 7 ");
}

/* A service whose ttl has passed is not removed, and is healthy no longer, without a request. */
TEST(test_ttl_passes) {
    witness w = {0};
    open_registries(NULL, 1);
    announce_for("web", "a", 1, 20);
    announce_for("web", "b", 2, 1000);
    watch("web", &w);
    assert_string_equal(healthy("web"), "a b ");
    divvy_testing_run(e, 25000);
    divvy_stats before, after;
    divvy_client_stats(reader, &before, sizeof before);
    assert_string_equal(healthy("web"), "b ");
    divvy_client_stats(reader, &after, sizeof after);
    assert_int_equal(after.requests, before.requests);
    divvy_testing_run(e, 1000);
    assert_int_equal(w.calls, 2);
    assert_null(strchr(w.log, '-'));
}

/* After the loss of the session lookups read, until the view has been read again; what happened meanwhile is told. */
TEST(test_new_session) {
    witness w = {0};
    open_registries(NULL, 0);
    announce("a", 1);
    announce("b", 2);
    watch("web", &w);
    w.log[0] = '\0';
    divvy_testing_expire(e, reader);
    announce("a", 3);
    assert_int_equal(divvy_registry_unregister(announcer, "web", "b", 10000), 0);
    divvy_testing_run(e, 10000);
    assert_int_equal(divvy_client_state(reader), DIVVY_CONNECTED);
    assert_non_null(strstr(w.log, "a 1>3 "));
    assert_non_null(strstr(w.log, "-b 2 "));
    assert_int_equal(w.calls, 4);
    divvy_stats before, after;
    divvy_client_stats(reader, &before, sizeof before);
    assert_string_equal(healthy("web"), "a ");
    divvy_client_stats(reader, &after, sizeof after);
    assert_int_equal(after.requests, before.requests);
}

/* With self-preservation what vanished with too many others is given out after all that is there, and marked, until
 * the time is over. */
TEST(test_preserved) {
    witness w = {0};
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.preserve_share = 0.5;
    config.preserve_settle_ms = 1000;
    config.preserve_max_ms = 20000;
    open_registries(&config, 0);
    announce("a", 1);
    announce("b", 2);
    static const char lasting[] = "{\"name\":\"web\",\"id\":\"z\",\"load\":9}";
    divvy_testing_put(e, SERVICES "/web/z", lasting, sizeof lasting - 1, DIVVY_TESTING_PERSISTENT);
    watch("web", &w);
    assert_string_equal(healthy("web"), "a b z ");
    w.log[0] = '\0';
    divvy_testing_pause_client(e, server, 1);
    divvy_testing_expire(e, server);
    divvy_testing_run(e, 2000);
    assert_non_null(strstr(w.log, "~a 1 "));
    assert_non_null(strstr(w.log, "~b 2 "));
    w.log[0] = '\0';
    assert_string_equal(healthy("web"), "z [a] [b] ");
    cJSON *best = NULL;
    assert_int_equal(divvy_registry_healthy_service(registry, "web", &best, 0), 0);
    assert_string_equal(id_of(best), "z");
    cJSON_Delete(best);
    divvy_testing_run(e, 20000);
    assert_non_null(strstr(w.log, "-a 1 "));
    assert_non_null(strstr(w.log, "-b 2 "));
    assert_string_equal(healthy("web"), "z ");
    divvy_testing_pause_client(e, server, 0);
    divvy_testing_run(e, 10000);
}

/* What only a view of the role keeps leaves the list of all with that view. */
TEST(test_kept_by_one_view) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.preserve_share = 0.5;
    open_registries(&config, 0);
    announce("a", 1);
    announce("b", 2);
    watch("web", NULL);
    watch(NULL, NULL);
    divvy_testing_pause_client(e, server, 1);
    divvy_testing_expire(e, server);
    divvy_testing_run(e, 2000);
    outcome o;
    ask_multi(reader, &o, (dv_op[]){op_of(DV_DELETE, SERVICES "/web")}, 1);
    assert_int_equal(await(&o), 0);
    divvy_testing_run(e, 1000);
    assert_string_equal(healthy(NULL), "[a] [b] ");
    assert_int_equal(divvy_registry_unwatch(registry, "web"), 0);
    divvy_stats before, after;
    divvy_client_stats(reader, &before, sizeof before);
    assert_string_equal(healthy(NULL), "");
    divvy_client_stats(reader, &after, sizeof after);
    assert_int_equal(after.requests, before.requests);
    divvy_testing_pause_client(e, server, 0);
    divvy_testing_run(e, 10000);
}

/* Inside the callback a lookup in the view works, and a view may be ended: nothing is told after that. */
TEST(test_unwatch_inside) {
    witness w = {0};
    open_registries(NULL, 0);
    watch("web", &w);
    announce("a", 1);
    expect_told(&w, "+a 1 ");
    w.look = w.unwatch = true;
    w.looked = 99;
    announce("a", 2);
    divvy_testing_run(e, 1000);
    assert_int_equal(w.looked, 0);
    announce("b", 3);
    divvy_testing_run(e, 1000);
    announce("a", 4);
    divvy_testing_run(e, 1000);
    assert_int_equal(w.calls, 2);
    assert_int_equal(reader->watched.used_bytes, 0);
}

/* The registry may be closed inside, with many changes still to be told. */
TEST(test_close_inside) {
    witness w = {.close_registry = true};
    open_registries(NULL, 0);
    for (int i = 0; i < 20; i++) announce((char[]){(char)('a' + i), '\0'}, i);
    watch("web", &w);
    divvy_testing_run(e, 1000);
    assert_int_equal(w.calls, 1);
    registry = NULL;
}

/* The registry may be closed, or the client, with reads and calls under way. */
TEST(test_close_under_way) {
    witness w = {0};
    open_registries(NULL, 0);
    for (int i = 0; i < 20; i++) announce((char[]){(char)('a' + i), '\0'}, i);
    assert_int_equal(divvy_registry_watch(registry, NULL, on_change, &w), 0);
    for (int steps = 0; steps < 10; steps++) divvy_testing_step(e, divvy_testing_now_ms(e) + 1000);
    divvy_registry_close(registry);
    int calls = w.calls;
    divvy_testing_run(e, 1000);
    assert_int_equal(w.calls, calls);
    assert_int_equal(divvy_registry_open(&registry, reader, NULL), 0);
    assert_int_equal(divvy_registry_watch(registry, NULL, on_change, &w), 0);
    divvy_client *other = open_client(e, 10000, 0);
    divvy_registry *of_other;
    assert_int_equal(divvy_registry_open(&of_other, other, NULL), 0);
    assert_int_equal(divvy_registry_watch(of_other, "web", on_change, &w), 0);
    for (int steps = 0; steps < 10; steps++) divvy_testing_step(e, divvy_testing_now_ms(e) + 1000);
    divvy_client_close(other);
    assert_int_equal(divvy_registry_watch(of_other, "mail", on_change, &w), DIVVY_ECLOSED);
    divvy_registry_close(of_other);
}

TEST_EACH(set_up, tear_down);
