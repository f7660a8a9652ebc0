/* Tests of what a client's config may say, field by field, and of what the environment says for it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

static divvy_testing_ensemble *ensemble;

static int set_up(void **state) {
    (void)state;
    unsetenv("DIVVY_ENSEMBLE_TICK_MS");
    unsetenv("DIVVY_TOKENS_CHECKED");
    return divvy_testing_ensemble_create(&ensemble, NULL);
}

static int tear_down(void **state) {
    (void)state;
    unsetenv("DIVVY_ENSEMBLE_TICK_MS");
    unsetenv("DIVVY_TOKENS_CHECKED");
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

static divvy_client_config good(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.ensemble_tick_ms = 2000;
    return config;
}

/* No client is made, and the message names what is wrong. */
static void assert_refused(const divvy_client_config *config, int error, const char *part) {
    divvy_client *client = (void *)-1;
    int got = divvy_client_open(&client, config);
    const char *said = divvy_client_error(NULL);
    if (got != error || !strstr(said, part)) fail_msg("%s, \"%s\": no \"%s\"", divvy_errname(got), said, part);
    assert_null(client);
}

#define REFUSED(error, part, ...)        \
    do {                                 \
        divvy_client_config c = good();  \
        __VA_ARGS__;                     \
        assert_refused(&c, error, part); \
    } while (0)

/* The client connects, with what it is told. */
static void assert_taken(const divvy_client_config *config) {
    divvy_client *client = NULL;
    int error = divvy_testing_client_open(&client, ensemble, config);
    if (error) fail_msg("%s: %s", divvy_errname(error), divvy_client_error(NULL));
    assert_int_equal(divvy_client_wait_connected(client, 30000), 0);
    divvy_client_close(client);
}

#define TAKEN(...)                      \
    do {                                \
        divvy_client_config c = good(); \
        __VA_ARGS__;                    \
        assert_taken(&c);               \
    } while (0)

/* Times are within their bounds, to the millisecond, and a failover comes before the session's end. */
TEST_IN(test_times, set_up, tear_down) {
    REFUSED(DIVVY_EINVAL, "session_timeout_ms is 99;", c.session_timeout_ms = 99);
    REFUSED(DIVVY_EINVAL, "session_timeout_ms is 3600001;", c.session_timeout_ms = 3600001);
    REFUSED(DIVVY_EINVAL, "ensemble_tick_ms is out of range", c.ensemble_tick_ms = -1);
    REFUSED(DIVVY_EINVAL, "ensemble_tick_ms is out of range", c.ensemble_tick_ms = 3600001);
    REFUSED(DIVVY_EINVAL, "can hold nothing on ticks of 2000 ms", c.session_timeout_ms = 100);
    REFUSED(DIVVY_EINVAL, "failover_delay_ms is -1;", c.failover_delay_ms = -1);
    REFUSED(DIVVY_EINVAL, "failover_delay_ms is 10000;", c.failover_delay_ms = 10000);
    REFUSED(DIVVY_EINVAL, "less than the session timeout, 9000", c.session_timeout_ms = 9000,
            c.failover_delay_ms = 9000);
    TAKEN(c.failover_delay_ms = 0);
    TAKEN(c.failover_delay_ms = 9999);
    TAKEN(c.session_timeout_ms = 3600000);
}

/* Credentials come whole, of the one scheme there is, and an access list that needs them is not taken without. */
TEST_IN(test_credentials, set_up, tear_down) {
    static char longest[4098];
    memset(longest, 'x', 4097);
    longest[1] = ':';
    REFUSED(DIVVY_EINVAL, "auth_scheme and auth go together", c.auth_scheme = "digest");
    REFUSED(DIVVY_EINVAL, "auth_scheme and auth go together", c.auth = "a:b");
    REFUSED(DIVVY_EUNSUPPORTED, "\"sha\" is not supported", c.auth_scheme = "sha", c.auth = "a:b");
    REFUSED(DIVVY_EINVAL, "user:password", c.auth_scheme = "digest", c.auth = "ab");
    REFUSED(DIVVY_EINVAL, "user:password", c.auth_scheme = "digest", c.auth = longest);
    REFUSED(DIVVY_EINVAL, "acl is -1", c.acl = -1);
    REFUSED(DIVVY_EINVAL, "acl is 4", c.acl = DIVVY_ACL_READABLE + 1);
    REFUSED(DIVVY_EINVAL, "for those who authenticate", c.acl = DIVVY_ACL_CREATOR);
    REFUSED(DIVVY_EINVAL, "for those who authenticate", c.acl = DIVVY_ACL_READABLE);
    TAKEN(c.sasl_user = "anna", c.acl = DIVVY_ACL_CREATOR);
    TAKEN(c.sasl_mechanism = "GSSAPI", c.acl = DIVVY_ACL_CREATOR);
    TAKEN(c.tls_certificate_file = "/anna.pem", c.acl = DIVVY_ACL_CREATOR);
    longest[4096] = '\0';
    TAKEN(c.auth_scheme = "digest", c.auth = longest);
    for (int acl = DIVVY_ACL_AUTO; acl <= DIVVY_ACL_READABLE; acl++)
        TAKEN(c.auth_scheme = "digest", c.auth = "a:b", c.acl = acl);
}

/* Switches are 0 or 1, and the struct is of the INIT macro. */
TEST_IN(test_switches, set_up, tear_down) {
    REFUSED(DIVVY_EINVAL, "death_watch is -1", c.death_watch = -1);
    REFUSED(DIVVY_EINVAL, "death_watch is 2", c.death_watch = 2);
    REFUSED(DIVVY_EINVAL, "tokens_checked is -1", c.tokens_checked = -1);
    REFUSED(DIVVY_EINVAL, "tokens_checked is 2", c.tokens_checked = 2);
    REFUSED(DIVVY_EINVAL, "DIVVY_CLIENT_CONFIG_INIT", c.size = 0);
    assert_int_equal(divvy_client_open(NULL, NULL), DIVVY_EINVAL);
}

/* A tick that the config lacks is that of the environment, if that is a number of milliseconds and nothing else. */
TEST_IN(test_tick_of_environment, set_up, tear_down) {
    static const char *const bad[] = {"2s", "0", "-5", "2 ", "99999999999999999999", "x"};
    REFUSED(DIVVY_EINVAL, "the tick of the servers is not known", c.ensemble_tick_ms = 0);
    setenv("DIVVY_ENSEMBLE_TICK_MS", "", 1);
    REFUSED(DIVVY_EINVAL, "the tick of the servers is not known", c.ensemble_tick_ms = 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("DIVVY_ENSEMBLE_TICK_MS", bad[i], 1);
        REFUSED(DIVVY_EINVAL, "DIVVY_ENSEMBLE_TICK_MS", c.ensemble_tick_ms = 0);
        TAKEN(c.ensemble_tick_ms = 2000);
    }
    setenv("DIVVY_ENSEMBLE_TICK_MS", "3600001", 1);
    REFUSED(DIVVY_EINVAL, "ensemble_tick_ms is out of range", c.ensemble_tick_ms = 0);
    setenv("DIVVY_ENSEMBLE_TICK_MS", "20000", 1);
    REFUSED(DIVVY_EINVAL, "on ticks of 20000 ms", c.ensemble_tick_ms = 0);
}

/* Whether tokens are checked is said by the config, else by the environment, as 0 or 1. */
TEST_IN(test_tokens_of_environment, set_up, tear_down) {
    static const char *const good_ones[] = {"", "0", "1"}, *const bad[] = {"2", "yes", "01"};
    for (size_t i = 0; i < sizeof good_ones / sizeof good_ones[0]; i++) {
        setenv("DIVVY_TOKENS_CHECKED", good_ones[i], 1);
        TAKEN((void)c);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("DIVVY_TOKENS_CHECKED", bad[i], 1);
        REFUSED(DIVVY_EINVAL, "DIVVY_TOKENS_CHECKED", (void)c);
        TAKEN(c.tokens_checked = 1);
    }
}
