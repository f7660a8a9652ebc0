/* Clients with a session of their own on real servers. SPDX-License-Identifier: Apache-2.0 */
#include "zookeeper/open.h"

#include <stdlib.h>

#include "base/config.h"
#include "client/error.h"

static const char *of_environment(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool is_tls(const divvy_client_config *config) {
    return config->tls_ca_file || config->tls_certificate_file || config->tls_key_file || config->tls_key_password_file;
}

/* TLS is a matter of a config as a whole, or of the environment as a whole. */
static void complete_tls(divvy_client_config *config) {
    if (is_tls(config)) return;
    config->tls_ca_file = of_environment("DIVVY_TLS_CA_FILE");
    config->tls_certificate_file = of_environment("DIVVY_TLS_CERTIFICATE_FILE");
    config->tls_key_file = of_environment("DIVVY_TLS_KEY_FILE");
    config->tls_key_password_file = of_environment("DIVVY_TLS_KEY_PASSWORD_FILE");
}

static int protect_by_sasl(dv_protection *out, const divvy_client_config *config) {
    char message[DV_TLS_MESSAGE_BYTES];
    if (!config->sasl_mechanism && !config->sasl_user && !config->sasl_password_file) return 0;
    if (out->tls)
        return dv_fail(NULL, DIVVY_EUNSUPPORTED,
                       "open: TLS and SASL together cannot be had of this ZooKeeper C client; with TLS, the "
                       "certificate says who the client is");
    int error = dv_sasl_new(&out->sasl, config, message);
    return error ? dv_fail(NULL, error, "open: SASL: %s", message) : 0;
}

static int protect_by_tls(dv_protection *out, const divvy_client_config *config) {
    char message[DV_TLS_MESSAGE_BYTES];
    if (!is_tls(config)) return 0;
    int error = dv_tls_new(&out->tls, config, message);
    return error ? dv_fail(NULL, error, "open: TLS: %s", message) : 0;
}

static int open_client(divvy_client **out, const divvy_client_config *given, dv_open_kind kind,
                       const dv_session_key *key) {
    static const divvy_client_config defaults = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client_config config;
    dv_protection protection = {.key = key};
    if (out) *out = NULL;
    int error = dv_config_copy(&config, sizeof config, &defaults, given ? given : &defaults);
    if (error) return dv_client_open_on(out, given, kind, dv_apache_new, &protection); /* It says what is wrong. */
    config.size = sizeof config;
    complete_tls(&config);
    error = protect_by_tls(&protection, &config);
    if (!error) error = protect_by_sasl(&protection, &config);
    if (!error) error = dv_client_open_on(out, &config, kind, dv_apache_new, &protection);
    dv_tls_unref(protection.tls);
    dv_sasl_free(protection.sasl);
    return error;
}

int divvy_client_open(divvy_client **out, const divvy_client_config *config) {
    return open_client(out, config, (dv_open_kind){.watch_fd = -1}, NULL);
}

int dv_client_open_to_look(divvy_client **out, const divvy_client_config *config) {
    return open_client(out, config, (dv_open_kind){.looks = true, .watch_fd = -1}, NULL);
}

int dv_client_open_watched(divvy_client **out, const divvy_client_config *config, int watch_fd) {
    return open_client(out, config, (dv_open_kind){.watch_fd = watch_fd}, NULL);
}

int dv_client_open_to_end(divvy_client **out, const divvy_client_config *config, const dv_session_key *key) {
    return open_client(out, config, (dv_open_kind){.looks = true, .watch_fd = -1}, key);
}
