/* Tests of znode/apache/tls.h and secret.h that need no server: test/tls has the others. SPDX-License-Identifier:
 * Apache-2.0 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <divvy/divvy.h>

#include "lib/test.h"
#include "znode/apache/secret.h"
#include "znode/apache/tls.h"

static char folder[] = "/tmp/divvy-tls.XXXXXX";

/* A file of the test's own, in memory until its end. */
static const char *file_of(const char *text, size_t bytes) {
    static char path[64];
    snprintf(path, sizeof path, "%s/file", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
    return path;
}

/* A password is the only line of its file. */
TEST(test_secret) {
    static const struct {
        const char *text;
        size_t bytes;
        const char *secret; /* NULL: refused */
    } files[] = {{"sesame", 6, "sesame"}, {"sesame\n", 7, "sesame"}, {"sesame\r\n", 8, "sesame"},
                 {"", 0, NULL},           {"\n", 1, NULL},           {"a\nb", 3, NULL},
                 {"a\0b", 3, NULL},       {"0123456789", 10, NULL},  {" a b ", 5, " a b "}};
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *secret;
        const char *wrong = dv_secret_read(file_of(files[i].text, files[i].bytes), 9, &secret);
        assert_int_equal(wrong == NULL, files[i].secret != NULL);
        if (files[i].secret) assert_string_equal(secret, files[i].secret);
        else assert_null(secret);
        dv_secret_free(secret);
    }
    char *none;
    assert_non_null(dv_secret_read(folder, 9, &none));
    unlink(file_of("", 0));
    rmdir(folder);
    assert_non_null(dv_secret_read(folder, 9, &none));
    dv_secret_free(NULL);
}

/* The three files go together: without one there is no TLS, and no session without TLS either. */
TEST(test_incomplete) {
    for (unsigned given = 1; given < 15; given++) {
        divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
        divvy_client *client = (divvy_client *)(uintptr_t)1;
        config.ensemble_tick_ms = 100;
        if (given & 1) config.tls_ca_file = "/nonexistent/ca";
        if (given & 2) config.tls_certificate_file = "/nonexistent/certificate";
        if (given & 4) config.tls_key_file = "/nonexistent/key";
        if (given & 8) config.tls_key_password_file = "/nonexistent/password";
        if (given == 7) continue;
        assert_int_equal(divvy_client_open(&client, &config), DIVVY_EINVAL);
        assert_null(client);
        assert_non_null(strstr(divvy_client_error(NULL), "tls_key_file"));
    }
}

/* A native client that cannot do TLS: the message says what to install. With one that can, the files are looked at. */
TEST(test_unsupported) {
    bool can = dlsym(RTLD_DEFAULT, "zookeeper_init_ssl") != NULL;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client;
    config.ensemble_tick_ms = 100;
    config.tls_ca_file = "/nonexistent/ca";
    config.tls_certificate_file = "/nonexistent/certificate";
    config.tls_key_file = "/nonexistent/key";
    assert_int_equal(divvy_client_open(&client, &config), can ? DIVVY_EINVAL : DIVVY_EUNSUPPORTED);
    assert_null(client);
    assert_non_null(strstr(divvy_client_error(NULL), can ? "/nonexistent/ca" : "install one"));
    assert_non_null(strstr(divvy_client_error(NULL), can ? "tls_ca_file" : "OpenSSL"));
}

/* The environment says the same as the config, where that says nothing. */
TEST(test_environment) {
    divvy_client *client;
    setenv("DIVVY_ENSEMBLE_TICK_MS", "100", 1);
    setenv("DIVVY_TLS_CA_FILE", "/nonexistent/ca", 1);
    assert_int_equal(divvy_client_open(&client, NULL), DIVVY_EINVAL);
    assert_non_null(strstr(divvy_client_error(NULL), "tls_ca_file"));
    unsetenv("DIVVY_TLS_CA_FILE");
}
