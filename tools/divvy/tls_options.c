/* The options of TLS and SASL to the servers. SPDX-License-Identifier: Apache-2.0 */
#include "tls_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth_file.h"
#include "command.h"

static char **given; /* NULL: the environment is as it was */

static const char *or_environment(const char *value, const char *name) {
    if (!value) value = getenv(name);
    return value && *value ? value : NULL;
}

static void complete(dv_tls_options *options) {
    options->ca_file = or_environment(options->ca_file, "DIVVY_TLS_CA_FILE");
    options->certificate_file = or_environment(options->certificate_file, "DIVVY_TLS_CERTIFICATE_FILE");
    options->key_file = or_environment(options->key_file, "DIVVY_TLS_KEY_FILE");
    options->key_password_file = or_environment(options->key_password_file, "DIVVY_TLS_KEY_PASSWORD_FILE");
    options->sasl_user = or_environment(options->sasl_user, "DIVVY_SASL_USER");
    options->sasl_password_file = or_environment(options->sasl_password_file, "DIVVY_SASL_PASSWORD_FILE");
    options->sasl_mechanism = or_environment(options->sasl_mechanism, "DIVVY_SASL_MECHANISM");
}

static bool is_tls(const dv_tls_options *options) {
    return options->ca_file || options->certificate_file || options->key_file || options->key_password_file;
}

bool dv_tls_options_given(const dv_tls_options *options) {
    dv_tls_options all = *options;
    complete(&all);
    return is_tls(&all) || all.sasl_user || all.sasl_mechanism;
}

/* The library says what is wrong with a file that is not there. */
static int check_access(const char *option, const char *path, const char *command) {
    struct stat status;
    char text[128];
    if (!path || stat(path, &status) != 0) return 0;
    const char *wrong = dv_auth_file_exposed(&status, geteuid(), text, sizeof text);
    return wrong ? dv_command_misused(command, "--%s %s: %s", option, path, wrong) : 0;
}

/* The native client trusts OpenSSL's default store besides our CA: so that becomes our CA, too. */
static int keep_other_cas_out(const char *ca_file) {
    size_t count = 0;
    while (environ[count]) count++;
    char **copy = calloc(count + 1, sizeof *copy);
    if (copy) memcpy(copy, environ, count * sizeof *copy);
    if (!copy || setenv("SSL_CERT_FILE", ca_file, 1) != 0 || setenv("SSL_CERT_DIR", "/nonexistent", 1) != 0) {
        free(copy);
        return dv_command_out_of_memory();
    }
    given = copy;
    return 0;
}

int dv_tls_options_finish(dv_tls_options *options, const char *command) {
    complete(options);
    int code = check_access("sasl-password-file", options->sasl_password_file, command);
    if (code != 0 || !is_tls(options)) return code;
    if (!options->ca_file || !options->certificate_file || !options->key_file)
        return dv_command_misused(command,
                                  "TLS needs --tls-ca, --tls-cert and --tls-key (or DIVVY_TLS_CA_FILE, "
                                  "DIVVY_TLS_CERTIFICATE_FILE and DIVVY_TLS_KEY_FILE); --%s is missing",
                                  !options->ca_file            ? "tls-ca"
                                  : !options->certificate_file ? "tls-cert"
                                                               : "tls-key");
    code = check_access("tls-key", options->key_file, command);
    if (code == 0) code = check_access("tls-key-password-file", options->key_password_file, command);
    return code ? code : keep_other_cas_out(options->ca_file);
}

void dv_tls_options_apply(const dv_tls_options *options, divvy_client_config *config) {
    config->tls_ca_file = options->ca_file;
    config->tls_certificate_file = options->certificate_file;
    config->tls_key_file = options->key_file;
    config->tls_key_password_file = options->key_password_file;
    config->sasl_mechanism = options->sasl_mechanism;
    config->sasl_user = options->sasl_user;
    config->sasl_password_file = options->sasl_password_file;
}

char **dv_tls_options_environment(void) {
    return given ? given : environ;
}
