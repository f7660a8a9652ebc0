/* Tests of divvy/error.h and of the messages. SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/error.h"
#include "divvy/divvy.h"
#include "lib/test.h"

typedef struct {
    const char *name, *text;
    int number, retryable, fatal;
} entry;

static const entry entries[] = {
#define ENTRY(name, number, text, retryable, fatal) {#name, text, number, retryable, fatal},
    DIVVY_ERRORS(ENTRY)};

enum { ENTRIES = sizeof entries / sizeof entries[0] };

/* Two clients. Only their addresses matter. */
static char one, other;
static const divvy_client *const a_client = (const divvy_client *)(const void *)&one;
static const divvy_client *const another_client = (const divvy_client *)(const void *)&other;

/* Each error is negative and has a number, a name and a text of its own, without a full stop. */
TEST(test_each_is_distinct) {
    assert_true(ENTRIES >= 30);
    for (size_t i = 0; i < ENTRIES; i++) {
        const entry *e = &entries[i];
        assert_true(e->number < 0);
        assert_string_equal(divvy_errname(e->number), e->name);
        assert_string_equal(divvy_strerror(e->number), e->text);
        assert_int_equal(strncmp(e->name, "DIVVY_E", 7), 0);
        assert_true(strlen(e->text) > 3 && e->text[strlen(e->text) - 1] != '.');
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(e->number, entries[j].number);
            assert_string_not_equal(e->name, entries[j].name);
            assert_string_not_equal(e->text, entries[j].text);
        }
    }
}

/* Numbers are part of the ABI: these stay. */
TEST(test_numbers_stay) {
    assert_int_equal(DIVVY_EINVAL, -1);
    assert_int_equal(DIVVY_ETIMEDOUT, -3);
    assert_int_equal(DIVVY_ECLOSED, -7);
    assert_int_equal(DIVVY_ELOST, -8);
    assert_int_equal(DIVVY_EACCES, -11);
    assert_int_equal(DIVVY_ERESOLVE, -23);
    assert_int_equal(DIVVY_EROLLEDBACK, -26);
    assert_int_equal(DIVVY_EINTERRUPTED, -27);
    assert_int_equal(DIVVY_EEXHAUSTED, -30);
    assert_int_equal(DIVVY_EQUOTA, -31);
}

/* An error may be retried, or ends its object, as the list says; no error is both. */
TEST(test_retryable_and_fatal) {
    for (size_t i = 0; i < ENTRIES; i++) {
        assert_int_equal(divvy_error_retryable(entries[i].number), entries[i].retryable);
        assert_int_equal(divvy_error_fatal(entries[i].number), entries[i].fatal);
        assert_false(entries[i].retryable && entries[i].fatal);
    }
    assert_true(divvy_error_retryable(DIVVY_ETIMEDOUT));
    assert_true(divvy_error_retryable(DIVVY_ECONNECTION));
    assert_true(divvy_error_fatal(DIVVY_ELOST));
    assert_true(divvy_error_fatal(DIVVY_ECLOSED));
    assert_false(divvy_error_fatal(DIVVY_EINVAL));
}

/* Success and foreign numbers have texts too, and are neither retryable nor fatal. */
TEST(test_other_numbers) {
    static const int good[] = {0, 1, 17, INT32_MAX}, foreign[] = {-32, -1000, INT32_MIN};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_string_equal(divvy_strerror(good[i]), "success");
        assert_string_equal(divvy_errname(good[i]), "DIVVY_OK");
        assert_int_equal(divvy_error_retryable(good[i]) + divvy_error_fatal(good[i]), 0);
    }
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        assert_string_equal(divvy_strerror(foreign[i]), "unknown error");
        assert_string_equal(divvy_errname(foreign[i]), "DIVVY_EUNKNOWN");
        assert_int_equal(divvy_error_retryable(foreign[i]) + divvy_error_fatal(foreign[i]), 0);
    }
}

/* A message is of the last error of its client in this thread; for another client it is empty. */
TEST(test_message_is_of_the_client) {
    assert_int_equal(dv_fail(a_client, DIVVY_EINVAL, "bad %s %d", "thing", 7), DIVVY_EINVAL);
    assert_string_equal(divvy_client_error(a_client), "bad thing 7");
    assert_string_equal(divvy_client_error(another_client), "");
    assert_string_equal(divvy_client_error(NULL), "");
    assert_int_equal(dv_fail(NULL, DIVVY_ENOMEM, "none"), DIVVY_ENOMEM);
    assert_string_equal(divvy_client_error(NULL), "none");
    assert_string_equal(divvy_client_error(a_client), "");
}

/* An error without more to say has the error's own text as its message; success leaves the message alone. */
TEST(test_plain_message) {
    for (size_t i = 0; i < ENTRIES; i++) {
        assert_int_equal(dv_fail_plainly(a_client, entries[i].number), entries[i].number);
        assert_string_equal(divvy_client_error(a_client), entries[i].text);
    }
    dv_fail(a_client, DIVVY_EINVAL, "kept");
    assert_int_equal(dv_fail_plainly(a_client, 0), 0);
    assert_string_equal(divvy_client_error(a_client), "kept");
}

/* A message has 511 bytes at most. */
TEST(test_message_is_bounded) {
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    dv_fail(a_client, DIVVY_EINVAL, "%s", text);
    assert_int_equal(strlen(divvy_client_error(a_client)), 511);
}

static void *other_thread(void *unused) {
    (void)unused;
    bool empty = *divvy_client_error(a_client) == '\0';
    dv_fail(a_client, DIVVY_ENOENT, "of the other thread");
    return empty ? NULL : &one;
}

/* Each thread has a message of its own. */
TEST(test_message_is_of_the_thread) {
    pthread_t thread;
    void *result;
    dv_fail(a_client, DIVVY_EINVAL, "of this thread");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    assert_string_equal(divvy_client_error(a_client), "of this thread");
}

/* The version is that of the header. */
TEST(test_version) {
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", DIVVY_VERSION_MAJOR, DIVVY_VERSION_MINOR, DIVVY_VERSION_PATCH);
    assert_string_equal(DIVVY_VERSION, text);
    assert_string_equal(divvy_version(), text);
}
