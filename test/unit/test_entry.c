/* Tests of lib/registry/entry.h and status.h: entries as others write them, and as we do.
 * SPDX-License-Identifier: Apache-2.0
 *
 * DIVVY_TEST_SEED=n replays the hostile ones. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "lib/draw.h"
#include "lib/seed.h"
#include "lib/test.h"
#include "registry/entry.h"
#include "registry/server_time.h"
#include "registry/status.h"

static const dv_stat some_stat = {.czxid = 7, .mzxid = 9, .version = 2, .mtime_ms = 1000000};
static const char *why; /* the last one was refused */

static dv_entry *parse_as(const char *role_node, const char *id_node, const char *text) {
    dv_entry *entry;
    int error = dv_entry_parse(&entry, role_node, id_node, text, strlen(text), &some_stat, &why);
    assert_true(error == 0 || error == DIVVY_EPROTO);
    assert_int_equal(error == 0, entry != NULL);
    assert_int_equal(error != 0, why != NULL);
    return entry;
}

static dv_entry *parse(const char *text) {
    return parse_as("web", "a", text);
}

static bool is_good(const char *text) {
    dv_entry *entry = parse(text);
    dv_entry_free(entry);
    return entry != NULL;
}

/* ---- what is read ---- */

/* An entry of divvy's has all that doublethink's registry knows of a service. */
TEST(test_ours) {
    dv_entry *e =
        parse("{\"name\":\"web\",\"id\":\"a\",\"role\":\"web\",\"load\":0.5,\"ttl\":60.5,\"x\":[1,{\"y\":2}]}");
    assert_non_null(e);
    assert_string_equal(e->role, "web");
    assert_string_equal(e->id, "a");
    assert_true(e->load == 0.5 && e->ttl_s == 60.5);
    assert_int_equal(e->flags, DV_ENTRY_HAS_TTL);
    assert_int_equal(e->stat.version, 2);
    assert_int_equal(e->stat.mtime_ms, 1000000);
    assert_non_null(cJSON_GetObjectItemCaseSensitive(e->json, "x"));
    dv_entry_free(e);
    dv_entry_free(NULL);
}

/* An entry as Curator writes it has no load and no ttl: load 0, and healthy at any time; "enabled" is accepted. */
TEST(test_curators) {
    static const char text[] =
        "{\"name\":\"web\",\"id\":\"a\",\"address\":\"10.0.0.1\",\"port\":80,\"sslPort\":null,\"payload\":"
        "{\"@class\":\"java.util.LinkedHashMap\",\"k\":1},\"registrationTimeUTC\":1700000000000,\"serviceType\":"
        "\"DYNAMIC\",\"uriSpec\":{\"parts\":[{\"value\":\"scheme\",\"variable\":true}]},\"enabled\":true}";
    dv_entry *e = parse(text);
    assert_non_null(e);
    assert_true(e->load == 0);
    assert_int_equal(e->flags, 0);
    assert_true(dv_entry_is_healthy(e, INT64_MAX / 4));
    assert_false(dv_entry_is_older(e, 0, INT64_MAX / 4));
    assert_false(dv_entry_has_expired(e, INT64_MAX / 4));
    dv_entry_free(e);
    e = parse("{\"name\":\"web\",\"id\":\"a\",\"enabled\":false}");
    assert_false(dv_entry_is_healthy(e, 0));
    dv_entry_free(e);
}

/* Nodes are named by the codec, by Curator's raw names, and by its DYNAMIC_SEQUENTIAL ones; other names are refused. */
TEST(test_names) {
    static const struct {
        const char *role_node, *id_node, *text;
        bool good;
    } cases[] = {
        {"a%2Fb", "c%2Fd", "{\"name\":\"a/b\",\"id\":\"c/d\"}", true},
        {"a%2Fb", "c%2Fd", "{\"name\":\"a%2Fb\",\"id\":\"c%2Fd\"}", true},
        {"web", "a0000000012", "{\"name\":\"web\",\"id\":\"a\",\"serviceType\":\"DYNAMIC_SEQUENTIAL\"}", true},
        {"web", "a0000000012", "{\"name\":\"web\",\"id\":\"a\",\"serviceType\":\"DYNAMIC\"}", false},
        {"web", "a00000000x2", "{\"name\":\"web\",\"id\":\"a\",\"serviceType\":\"DYNAMIC_SEQUENTIAL\"}", false},
        {"web", "b", "{\"name\":\"web\",\"id\":\"a\"}", false},
        {"db", "a", "{\"name\":\"web\",\"id\":\"a\"}", false},
        {"web", "a", "{\"role\":\"web\",\"id\":\"a\"}", true},
        {"web", "a", "{\"role\":\"web\",\"name\":\"db\",\"id\":\"a\"}", false},
        {"web", "a", "{\"id\":\"a\"}", false},
        {"web", "a", "{\"name\":\"web\"}", false},
        {"web", "a", "{\"name\":\"web\",\"id\":7}", false},
        {"web", "a", "{\"name\":7,\"id\":\"a\"}", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dv_entry *e = parse_as(cases[i].role_node, cases[i].id_node, cases[i].text);
        if ((e != NULL) != cases[i].good) fail_msg("case %zu: %s", i, why ? why : "taken");
        dv_entry_free(e);
    }
}

/* Fields of a wrong type, fields that come twice, and texts that are no object are refused, each with its reason. */
TEST(test_malformed) {
#define HEAD "{\"name\":\"web\",\"id\":\"a\""
    static const char *const bad[] = {
        "",
        "x",
        "null",
        "[]",
        "\"web\"",
        "7",
        "{",
        HEAD,
        HEAD "}}",
        HEAD "} x",
        HEAD ",\"load\":\"1\"}",
        HEAD ",\"load\":null}",
        HEAD ",\"load\":1e999}",
        HEAD ",\"ttl\":0}",
        HEAD ",\"ttl\":-1}",
        HEAD ",\"ttl\":\"9\"}",
        HEAD ",\"ttl\":1e999}",
        HEAD ",\"ttl\":true}",
        HEAD ",\"enabled\":1}",
        HEAD ",\"id\":\"a\"}",
        HEAD ",\"ttl\":1,\"ttl\":2}",
        HEAD ",\"load\":1,\"load\":2}",
        HEAD ",\"x\":\"\xff\"}",
        HEAD ",\"x\":\"\\u0000\"}",
        "{\"name\":\"web\",\"id\":\"a\\u0000b\"}",
        HEAD ",\"x\":\"\xed\xa0\x80\"}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (is_good(bad[i])) fail_msg("taken: %s", bad[i]);
        assert_true(strlen(why) > 5);
    }
    assert_true(is_good(HEAD "}  "));
    assert_true(is_good(HEAD ",\"x\":\"\\\\u0000\"}")); /* a backslash, and no escape */
    dv_entry *e;
    assert_int_equal(dv_entry_parse(&e, "web", "a", NULL, 0, &some_stat, &why), DIVVY_EPROTO);
    assert_int_equal(dv_entry_parse(&e, "web", "a", "{}\0{}", 5, &some_stat, &why), DIVVY_EPROTO);
}

/* V2: no field that we or Curator go by stands there twice, whatever its values are. Others may. */
TEST(test_twice) {
    char fields[] = "name id role load ttl enabled host pid nonce attempt address port sslPort payload serviceType "
                    "uriSpec registrationTimeUTC first_heartbeat";
    char *rest = fields;
    for (const char *field; (field = strsep(&rest, " "));) {
        char text[256];
        snprintf(text, sizeof text, HEAD ",\"%s\":null,\"%s\":null}", field, field);
        if (is_good(text)) fail_msg("taken: %s", text);
        assert_non_null(strstr(why, "twice"));
    }
    assert_true(is_good(HEAD ",\"x\":1,\"x\":2}"));
}

static char *repeat(const char *text, size_t count, const char *tail) {
    size_t bytes = strlen(text);
    char *out = malloc(bytes * count + strlen(tail) + 1);
    for (size_t i = 0; i < count; i++) memcpy(out + i * bytes, text, bytes);
    strcpy(out + bytes * count, tail);
    return out;
}

/* Depth, number of values and size are bounded, each exactly, before the parser sees a byte. */
TEST(test_bounds) {
    for (int over = 0; over < 2; over++) {
        size_t depth = DV_ENTRY_DEPTH_MAX - 1 + (size_t)over, values = DV_ENTRY_VALUES_MAX - 4 + (size_t)over;
        char *open = repeat("[", depth, ""), *close = repeat("]", depth, "}");
        char *text = malloc(3 * DV_ENTRY_BYTES_MAX);
        sprintf(text, HEAD ",\"x\":%s%s", open, close);
        assert_int_equal(is_good(text), !over);
        free(open);
        free(close);
        open = repeat("0,", values, "0]}");
        sprintf(text, HEAD ",\"x\":[%s", open);
        assert_int_equal(is_good(text), !over);
        free(open);
        size_t head = (size_t)sprintf(text, HEAD ",\"x\":\"");
        size_t fill = DV_ENTRY_BYTES_MAX - head - 2 + (size_t)over;
        memset(text + head, '[', fill); /* inside a string nothing is nested */
        strcpy(text + head + fill, "\"}");
        assert_int_equal(strlen(text), (size_t)DV_ENTRY_BYTES_MAX + (size_t)over);
        assert_int_equal(is_good(text), !over);
        free(text);
    }
    char *deep = repeat("{\"a\":", 100000, "");
    assert_false(is_good(deep));
    free(deep);
}

/* ---- health and order ---- */

/* "If a service's last heartbeat was more than 'ttl' seconds ago, it is considered down": healthy is strictly younger
 * than ttl, expired as old or older, purged strictly older than its multiple. */
TEST(test_health) {
    dv_entry *e = parse(HEAD ",\"load\":1,\"ttl\":1.5}"); /* written at 1,000,000 */
    assert_true(dv_entry_is_healthy(e, 1001499));
    assert_false(dv_entry_is_healthy(e, 1001500));
    assert_true(dv_entry_is_healthy(e, 999000)); /* of the future */
    assert_false(dv_entry_has_expired(e, 1001499));
    assert_true(dv_entry_has_expired(e, 1001500));
    assert_false(dv_entry_is_older(e, 2, 1003000));
    assert_true(dv_entry_is_older(e, 2, 1003001));
    assert_false(dv_entry_is_older(e, 0, 1000000));
    assert_true(dv_entry_is_older(e, 0, 1000001));
    dv_entry_free(e);
}

/* Entries are ordered by load, then by the order in which they came. */
TEST(test_order) {
    dv_entry *e[] = {parse(HEAD ",\"load\":2}"), parse(HEAD ",\"load\":-1e300}"), parse(HEAD "}"),
                     parse(HEAD ",\"load\":0}")};
    dv_entry *third = e[3], *first = e[1], *second = e[2], *last = e[0];
    third->stat.czxid = 8;
    qsort(e, 4, sizeof e[0], dv_entry_compare);
    assert_ptr_equal(e[0], first);
    assert_ptr_equal(e[1], second);
    assert_ptr_equal(e[2], third);
    assert_ptr_equal(e[3], last);
    for (size_t i = 0; i < 4; i++) dv_entry_free(e[i]);
}

/* ---- what is written ---- */

static const dv_status_defaults defaults = {
    .new_id = "new", .host = "here", .pid = 42, .nonce = "n0", .persistent = false};

static cJSON *compose(const char *text, const dv_status_defaults *d, char reason[DV_STATUS_REASON_BYTES]) {
    cJSON *status = text ? cJSON_Parse(text) : NULL, *entry;
    int error = dv_status_compose(&entry, status, d, reason);
    assert_int_equal(error, entry ? 0 : DIVVY_EINVAL);
    cJSON_Delete(status);
    return entry;
}

static void assert_text(const cJSON *entry, const char *expected) {
    char *text;
    const char *reason;
    assert_int_equal(dv_status_print(&text, entry, &reason), 0);
    assert_string_equal(text, expected);
    free(text);
}

/* The entry has Curator's fields first, in Curator's order, nulls written out, then doublethink's, then the others. */
TEST(test_composed) {
    char reason[DV_STATUS_REASON_BYTES];
    cJSON *e = compose("{\"extra\":{\"a\":[1]},\"load\":0.5,\"ttl\":60,\"role\":\"web\"}", &defaults, reason);
    assert_non_null(e);
    assert_true(dv_status_stamp(e, INT64_C(1767225600007), "try1"));
    assert_text(e,
                "{\"name\":\"web\",\"id\":\"new\",\"address\":\"here\",\"port\":null,\"sslPort\":null,\"payload\":null,"
                "\"registrationTimeUTC\":1767225600007,\"serviceType\":\"DYNAMIC\",\"uriSpec\":null,\"role\":\"web\","
                "\"load\":0.5,\"ttl\":60,\"host\":\"here\",\"pid\":42,\"first_heartbeat\":\"2026-01-01T00:00:00.007Z\","
                "\"last_heartbeat\":\"2026-01-01T00:00:00.007Z\",\"nonce\":\"n0\",\"attempt\":\"try1\","
                "\"extra\":{\"a\":[1]}}");
    /* Later stamps leave the first time as it is, and what came back can be sent again. */
    assert_true(dv_status_stamp(e, INT64_C(1767225601000), "try2"));
    cJSON *again;
    assert_int_equal(dv_status_compose(&again, e, &defaults, reason), 0);
    assert_true(dv_status_stamp(again, INT64_C(1767225601000), "try2"));
    assert_true(cJSON_Compare(e, again, 1));
    dv_entry *entry;
    char *text;
    assert_int_equal(dv_status_print(&text, again, &why), 0);
    assert_int_equal(dv_entry_parse(&entry, "web", "new", text, strlen(text), &some_stat, &why), 0);
    assert_true(dv_status_same_identity(entry->json, e));
    free(text);
    dv_entry_free(entry);
    cJSON_Delete(again);
    cJSON_Delete(e);
}

/* "`status_info` must have at least the fields 'role', 'load', and 'ttl'", and what is wrong is named. */
TEST(test_status_checked) {
    static const struct {
        const char *text, *named;
    } bad[] = {
        {NULL, "object"},
        {"[]", "object"},
        {"{\"load\":1,\"ttl\":1}", "\"role\""},
        {"{\"role\":\"r\",\"ttl\":1}", "\"load\""},
        {"{\"role\":\"r\",\"load\":1}", "\"ttl\""},
        {"{\"role\":\"\",\"load\":1,\"ttl\":1}", "\"role\""},
        {"{\"role\":1,\"load\":1,\"ttl\":1}", "\"role\""},
        {"{\"role\":\"r\",\"load\":\"1\",\"ttl\":1}", "\"load\""},
        {"{\"role\":\"r\",\"load\":1,\"ttl\":0}", "\"ttl\""},
        {"{\"role\":\"r\",\"load\":1,\"ttl\":-1}", "\"ttl\""},
        {"{\"role\":\"r\",\"load\":1,\"ttl\":\"1\"}", "\"ttl\""},
        {"{\"role\":\"r\",\"load\":1,\"ttl\":true}", "\"ttl\""},
#define GOOD "{\"role\":\"r\",\"load\":1,\"ttl\":1,"
        {GOOD "\"id\":7}", "\"id\""},
        {GOOD "\"id\":\"\"}", "\"id\""},
        {GOOD "\"name\":\"other\"}", "\"name\""},
        {GOOD "\"host\":null}", "\"host\""},
        {GOOD "\"pid\":\"x\"}", "\"pid\""},
        {GOOD "\"pid\":1.5}", "\"pid\""},
        {GOOD "\"port\":\"80\"}", "\"port\""},
        {GOOD "\"port\":3e9}", "\"port\""},
        {GOOD "\"sslPort\":[]}", "\"sslPort\""},
        {GOOD "\"payload\":{\"a\":1}}", "\"payload\""},
        {GOOD "\"payload\":7}", "\"payload\""},
        {GOOD "\"serviceType\":\"X\"}", "\"serviceType\""},
        {GOOD "\"uriSpec\":{}}", "\"uriSpec\""},
        {GOOD "\"uriSpec\":{\"parts\":[{\"value\":1,\"variable\":true}]}}", "\"uriSpec\""},
        {GOOD "\"enabled\":1}", "\"enabled\""},
        {GOOD "\"@class\":\"x\"}", "\"@class\""},
        {GOOD "\"first_heartbeat\":7}", "\"first_heartbeat\""},
        {GOOD "\"registrationTimeUTC\":\"x\"}", "\"registrationTimeUTC\""},
    };
    char reason[DV_STATUS_REASON_BYTES];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cJSON *e = compose(bad[i].text, &defaults, reason);
        if (e) fail_msg("taken: %s", bad[i].text);
        if (!strstr(reason, bad[i].named)) fail_msg("%s: %s", bad[i].text, reason);
    }
    cJSON *status = cJSON_Parse("{\"role\":\"r\",\"load\":1,\"ttl\":1}"), *e;
    cJSON_SetNumberValue(cJSON_GetObjectItem(status, "load"), DBL_MAX * 10);
    assert_int_equal(dv_status_compose(&e, status, &defaults, reason), DIVVY_EINVAL);
    cJSON_Delete(status);
}

/* A candidate for a unique role needs ttl only; role, name and id are the role, whatever it says. */
TEST(test_candidate) {
    dv_status_defaults unique = defaults;
    char reason[DV_STATUS_REASON_BYTES];
    unique.unique_role = "leader";
    assert_null(compose("{\"role\":\"x\",\"load\":1}", &unique, reason));
    assert_non_null(strstr(reason, "\"ttl\""));
    cJSON *e = compose("{\"ttl\":3,\"id\":7,\"name\":\"y\",\"role\":\"x\"}", &unique, reason);
    assert_string_equal(cJSON_GetObjectItem(e, "id")->valuestring, "leader");
    assert_string_equal(cJSON_GetObjectItem(e, "role")->valuestring, "leader");
    assert_string_equal(cJSON_GetObjectItem(e, "name")->valuestring, "leader");
    assert_null(cJSON_GetObjectItem(e, "load"));
    cJSON_Delete(e);
}

/* A persistent entry says so to Curator; an ephemeral one says DYNAMIC, whatever it was before. */
TEST(test_service_type) {
    dv_status_defaults persistent = defaults;
    persistent.persistent = true;
    char reason[DV_STATUS_REASON_BYTES];
    static const struct {
        const char *given, *ephemeral, *persistent;
    } cases[] = {{GOOD "\"x\":1}", "DYNAMIC", "PERMANENT"},
                 {GOOD "\"serviceType\":\"STATIC\"}", "DYNAMIC", "STATIC"},
                 {GOOD "\"serviceType\":\"DYNAMIC\"}", "DYNAMIC", "PERMANENT"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *a = compose(cases[i].given, &defaults, reason), *b = compose(cases[i].given, &persistent, reason);
        assert_string_equal(cJSON_GetObjectItem(a, "serviceType")->valuestring, cases[i].ephemeral);
        assert_string_equal(cJSON_GetObjectItem(b, "serviceType")->valuestring, cases[i].persistent);
        cJSON_Delete(a);
        cJSON_Delete(b);
    }
}

/* Identity is id, host, pid and nonce; no other field counts, and none of these may be missing. */
TEST(test_identity) {
    static const char base[] =
        "{\"id\":\"i\",\"host\":\"h\",\"pid\":1,\"nonce\":\"n\",\"load\":1,\"last_heartbeat\":\"x\"}";
    static const struct {
        const char *text;
        bool same;
    } cases[] = {{"{\"nonce\":\"n\",\"pid\":1,\"host\":\"h\",\"id\":\"i\",\"load\":2,\"ttl\":9}", true},
                 {"{\"nonce\":\"m\",\"pid\":1,\"host\":\"h\",\"id\":\"i\"}", false},
                 {"{\"nonce\":\"n\",\"pid\":2,\"host\":\"h\",\"id\":\"i\"}", false},
                 {"{\"nonce\":\"n\",\"pid\":1,\"host\":\"H\",\"id\":\"i\"}", false},
                 {"{\"nonce\":\"n\",\"pid\":1,\"host\":\"h\",\"id\":\"j\"}", false},
                 {"{\"pid\":1,\"host\":\"h\",\"id\":\"i\"}", false}};
    cJSON *a = cJSON_Parse(base);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *b = cJSON_Parse(cases[i].text);
        assert_int_equal(dv_status_same_identity(a, b), cases[i].same);
        cJSON_Delete(b);
    }
    cJSON_Delete(a);
    a = cJSON_Parse("{\"id\":\"i\",\"host\":\"h\",\"pid\":1}"); /* two of Curator's are not the same either */
    assert_false(dv_status_same_identity(a, a));
    cJSON_Delete(a);
}

/* Kept first times come from the earlier entry where there are none, or in any case by force; nonsense is not kept. */
TEST(test_first_kept) {
    char reason[DV_STATUS_REASON_BYTES];
    cJSON *earlier = cJSON_Parse("{\"first_heartbeat\":\"then\",\"registrationTimeUTC\":5}");
    cJSON *hostile = cJSON_Parse("{\"first_heartbeat\":[],\"registrationTimeUTC\":\"x\"}");
    cJSON *e = compose(GOOD "\"x\":1}", &defaults, reason);
    assert_true(dv_status_keep_first(e, hostile, true));
    assert_true(dv_status_keep_first(e, earlier, false));
    assert_string_equal(cJSON_GetObjectItem(e, "first_heartbeat")->valuestring, "then");
    assert_true(cJSON_GetObjectItem(e, "registrationTimeUTC")->valuedouble == 5);
    cJSON_Delete(e);
    e = compose(GOOD "\"first_heartbeat\":\"own\"}", &defaults, reason);
    assert_true(dv_status_keep_first(e, earlier, false));
    assert_string_equal(cJSON_GetObjectItem(e, "first_heartbeat")->valuestring, "own");
    assert_true(dv_status_keep_first(e, earlier, true));
    assert_string_equal(cJSON_GetObjectItem(e, "first_heartbeat")->valuestring, "then");
    cJSON_Delete(e);
    cJSON_Delete(earlier);
    cJSON_Delete(hostile);
}

/* A status that is too large, too deep or no UTF-8 is refused before it is sent. */
TEST(test_too_large) {
    char reason[DV_STATUS_REASON_BYTES], *text, *big = repeat("x", DV_ENTRY_BYTES_MAX, "");
    cJSON *e = compose(GOOD "\"x\":1}", &defaults, reason);
    cJSON_AddStringToObject(e, "big", big);
    assert_int_equal(dv_status_print(&text, e, &why), DIVVY_E2BIG);
    cJSON_DeleteItemFromObject(e, "big");
    cJSON_AddStringToObject(e, "bad", "\xff");
    assert_int_equal(dv_status_print(&text, e, &why), DIVVY_EINVAL);
    cJSON_Delete(e);
    free(big);
    cJSON *deep = cJSON_Parse(GOOD "\"x\":1}"), *at = deep;
    for (int i = 0; i < DV_ENTRY_DEPTH_MAX; i++) {
        cJSON *inner = cJSON_CreateObject();
        cJSON_AddItemToObject(at, "d", inner);
        at = inner;
    }
    assert_int_equal(dv_status_compose(&e, deep, &defaults, reason), DIVVY_EINVAL);
    cJSON_Delete(deep);
}

/* ---- hostile ones ---- */

/* 100,000 texts, of random bytes, and of a good entry with bytes changed, cut, doubled: none crashes, and what is taken
 * is within its bounds. */
TEST(test_hostile) {
    static const char good[] =
        HEAD ",\"role\":\"web\",\"load\":0.25,\"ttl\":60,\"enabled\":true,\"x\":[{},[\"\\u00e9\\n\"],1e5]}";
    random_state = dv_test_seed("unit_entry");
    size_t taken = 0;
    for (int i = 0; i < 100000; i++) {
        char data[2 * sizeof good];
        size_t bytes = sizeof good - 1;
        memcpy(data, good, bytes);
        if (draw(8) == 0) {
            bytes = draw(sizeof data);
            for (size_t k = 0; k < bytes; k++) data[k] = (char)draw(256);
        }
        for (uint64_t change = draw(4); change && bytes; change--) {
            size_t at = draw(bytes);
            if (draw(3) == 0) bytes = at;
            else if (draw(2) == 0) data[at] = (char)draw(256);
            else data[at] = good[draw(sizeof good - 1)];
        }
        char *exact = malloc(bytes ? bytes : 1); /* so that a sanitizer sees a byte too far */
        memcpy(exact, data, bytes);
        dv_entry *e;
        int error = dv_entry_parse(&e, "web", "a", exact, bytes, &some_stat, &why);
        assert_true(error == 0 || error == DIVVY_EPROTO);
        free(exact);
        if (!e) continue;
        taken++;
        assert_true(e->load == e->load && (!(e->flags & DV_ENTRY_HAS_TTL) || e->ttl_s > 0));
        dv_entry_free(e);
    }
    assert_true(taken > 1000);
}
