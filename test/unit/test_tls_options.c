/* Tests of the command's options of TLS and SASL. SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "divvy/command.h"
#include "divvy/tls_options.h"
#include "lib/test.h"

static char folder[] = "/tmp/tls_options.XXXXXX", private_file[64], open_file[64];

static void write_file(char path[64], const char *name, mode_t mode) {
    snprintf(path, 64, "%s/%s", folder, name);
    int fd = open(path, O_CREAT | O_WRONLY, mode);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static int set_up(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    write_file(private_file, "private", 0600);
    write_file(open_file, "open", 0644);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    unlink(private_file);
    unlink(open_file);
    return rmdir(folder);
}

static int finish(dv_tls_options options) {
    return dv_tls_options_finish(&options, "status");
}

/* Without an option nothing is asked for, and the environment of commands is ours. */
TEST(test_none) {
    dv_tls_options none = {.ca_file = NULL};
    assert_false(dv_tls_options_given(&none));
    assert_int_equal(finish(none), 0);
    assert_ptr_equal(dv_tls_options_environment(), environ);
}

/* Each option alone counts as given, but for the password of a user who is not named. */
TEST(test_given) {
    assert_true(dv_tls_options_given(&(dv_tls_options){.ca_file = "f"}));
    assert_true(dv_tls_options_given(&(dv_tls_options){.certificate_file = "f"}));
    assert_true(dv_tls_options_given(&(dv_tls_options){.key_file = "f"}));
    assert_true(dv_tls_options_given(&(dv_tls_options){.key_password_file = "f"}));
    assert_true(dv_tls_options_given(&(dv_tls_options){.sasl_user = "u"}));
    assert_true(dv_tls_options_given(&(dv_tls_options){.sasl_mechanism = "DIGEST-MD5"}));
    assert_false(dv_tls_options_given(&(dv_tls_options){.sasl_password_file = "f"}));
}

/* TLS needs a CA, a certificate and a key; any of them alone, or two, are a mistake. */
TEST(test_incomplete) {
    for (int given = 1; given < 7; given++) {
        const dv_tls_options options = {.ca_file = given & 1 ? open_file : NULL,
                                        .certificate_file = given & 2 ? open_file : NULL,
                                        .key_file = given & 4 ? private_file : NULL};
        assert_int_equal(finish(options), DV_EXIT_USAGE);
    }
    assert_int_equal(finish((dv_tls_options){.key_password_file = private_file}), DV_EXIT_USAGE);
}

/* A secret that others may read is a mistake. One that is not there is for the library to tell. */
TEST(test_exposed) {
    assert_int_equal(finish((dv_tls_options){.sasl_user = "u", .sasl_password_file = open_file}), DV_EXIT_USAGE);
    assert_int_equal(finish((dv_tls_options){.sasl_user = "u", .sasl_password_file = private_file}), 0);
    assert_int_equal(finish((dv_tls_options){.sasl_user = "u", .sasl_password_file = "/nonexistent/file"}), 0);
    dv_tls_options options = {.ca_file = open_file, .certificate_file = open_file, .key_file = open_file};
    assert_int_equal(finish(options), DV_EXIT_USAGE);
    options.key_file = private_file;
    options.key_password_file = open_file;
    assert_int_equal(finish(options), DV_EXIT_USAGE);
    assert_ptr_equal(dv_tls_options_environment(), environ);
}

/* The environment says what options leave out, but where it is empty. */
TEST(test_environment) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    dv_tls_options options = {.sasl_user = "by-option"};
    setenv("DIVVY_SASL_USER", "by-environment", 1);
    setenv("DIVVY_SASL_PASSWORD_FILE", private_file, 1);
    setenv("DIVVY_SASL_MECHANISM", "", 1);
    assert_int_equal(dv_tls_options_finish(&options, "status"), 0);
    dv_tls_options_apply(&options, &config);
    assert_string_equal(config.sasl_user, "by-option");
    assert_string_equal(config.sasl_password_file, private_file);
    assert_null(config.sasl_mechanism);
    assert_null(config.tls_ca_file);
    unsetenv("DIVVY_SASL_USER");
    unsetenv("DIVVY_SASL_PASSWORD_FILE");
    unsetenv("DIVVY_SASL_MECHANISM");
}

static bool has(char *const *environment, const char *variable) {
    for (; *environment; environment++) {
        if (strcmp(*environment, variable) == 0) return true;
    }
    return false;
}

/* With TLS this process trusts the CA alone, and commands get the environment as it was. */
TEST(test_other_cas) {
    const dv_tls_options options = {.ca_file = open_file, .certificate_file = open_file, .key_file = private_file};
    unsetenv("SSL_CERT_FILE");
    setenv("SSL_CERT_DIR", "/etc/ssl/certs", 1);
    assert_int_equal(finish(options), 0);
    assert_string_equal(getenv("SSL_CERT_FILE"), open_file);
    assert_string_equal(getenv("SSL_CERT_DIR"), "/nonexistent");
    assert_true(has(dv_tls_options_environment(), "SSL_CERT_DIR=/etc/ssl/certs"));
    assert_false(has(dv_tls_options_environment(), "SSL_CERT_DIR=/nonexistent"));
    free(dv_tls_options_environment());
}

TEST_GROUP(set_up, tear_down);
