/* The options of TLS to the servers. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TLS_OPTIONS_H
#define DV_TLS_OPTIONS_H

#include <stdbool.h>

#include <divvy/divvy.h>

#include "options.h"

/* Files; all NULL: plain text. */
typedef struct {
    const char *ca_file, *certificate_file, *key_file, *key_password_file;
} dv_tls_options;

#define DV_TLS_OPTION_FILE(type, field, option, text) \
    { .name = option, .argument = "FILE", .kind = DV_OPTION_TEXT, .offset = offsetof(type, field), .help = text }

/* Their lines in a subcommand's table; `member` is the place of a dv_tls_options in the struct of values. */
#define DV_TLS_OPTIONS(type, member)                                                                    \
    DV_TLS_OPTION_FILE(type, member.ca_file, "tls-ca",                                                  \
                       "the CA of the servers' certificates; with this, the next and --tls-key the\n"   \
                       "servers are reached over TLS (default: $DIVVY_TLS_CA_FILE)"),                   \
        DV_TLS_OPTION_FILE(type, member.certificate_file, "tls-cert",                                   \
                           "our certificate, with its chain (default: $DIVVY_TLS_CERTIFICATE_FILE)"),   \
        DV_TLS_OPTION_FILE(type, member.key_file, "tls-key", "its key (default: $DIVVY_TLS_KEY_FILE)"), \
        DV_TLS_OPTION_FILE(type, member.key_password_file, "tls-key-password-file",                     \
                           "the key's password, on one line (default: $DIVVY_TLS_KEY_PASSWORD_FILE)")

/* Returns whether a file is named, by an option or in the environment. */
bool dv_tls_options_given(const dv_tls_options *options);

/* Takes what was not given from the environment, and sees to it that OpenSSL trusts no CA besides. To be called once,
 * before any thread. Returns 0, or -1 when the mistake was told as one in the usage of `command`. */
int dv_tls_options_finish(dv_tls_options *options, const char *command);

void dv_tls_options_apply(const dv_tls_options *options, divvy_client_config *config);

/* Returns the environment that we were started with: what programs of the user's are to be given. */
char **dv_tls_options_environment(void);

#endif
