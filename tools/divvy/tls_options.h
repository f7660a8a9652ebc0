/* The options of TLS and SASL to the servers. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TLS_OPTIONS_H
#define DV_TLS_OPTIONS_H

#include <stdbool.h>

#include <divvy/divvy.h>

#include "options.h"

/* Files; all NULL: plain text. With a user, or a mechanism: SASL. */
typedef struct {
    const char *ca_file, *certificate_file, *key_file, *key_password_file;
    const char *sasl_mechanism, *sasl_user, *sasl_password_file;
} dv_tls_options;

#define DV_TLS_OPTION_TEXT(type, field, option, value, text) \
    { .name = option, .argument = value, .kind = DV_OPTION_TEXT, .offset = offsetof(type, field), .help = text }
#define DV_TLS_OPTION_FILE(type, field, option, text) DV_TLS_OPTION_TEXT(type, field, option, "FILE", text)

/* Their lines in a subcommand's table; `member` is the place of a dv_tls_options in the struct of values. */
#define DV_TLS_OPTIONS(type, member)                                                                    \
    DV_TLS_OPTION_FILE(type, member.ca_file, "tls-ca",                                                  \
                       "the CA of the servers' certificates; with this, the next and --tls-key the\n"   \
                       "servers are reached over TLS (default: $DIVVY_TLS_CA_FILE)"),                   \
        DV_TLS_OPTION_FILE(type, member.certificate_file, "tls-cert",                                   \
                           "our certificate, with its chain (default: $DIVVY_TLS_CERTIFICATE_FILE)"),   \
        DV_TLS_OPTION_FILE(type, member.key_file, "tls-key", "its key (default: $DIVVY_TLS_KEY_FILE)"), \
        DV_TLS_OPTION_FILE(type, member.key_password_file, "tls-key-password-file",                     \
                           "the key's password, on one line (default: $DIVVY_TLS_KEY_PASSWORD_FILE)"),  \
        DV_TLS_OPTION_TEXT(type, member.sasl_user, "sasl-user", "USER",                                 \
                           "log in as USER by SASL, DIGEST-MD5; not with TLS\n"                         \
                           "(default: $DIVVY_SASL_USER)"),                                              \
        DV_TLS_OPTION_FILE(type, member.sasl_password_file, "sasl-password-file",                       \
                           "the user's password, on one line\n"                                         \
                           "(default: $DIVVY_SASL_PASSWORD_FILE)"),                                     \
        DV_TLS_OPTION_TEXT(type, member.sasl_mechanism, "sasl-mechanism", "NAME",                       \
                           "DIGEST-MD5, or GSSAPI for Kerberos (default: $DIVVY_SASL_MECHANISM)")

/* Returns whether TLS or SASL is asked for, by an option or in the environment. */
bool dv_tls_options_given(const dv_tls_options *options);

/* Takes what was not given from the environment, and sees to it that OpenSSL trusts no CA besides. To be called once,
 * before any thread. Returns 0, or the exit code when it was told what is wrong. */
int dv_tls_options_finish(dv_tls_options *options, const char *command);

void dv_tls_options_apply(const dv_tls_options *options, divvy_client_config *config);

/* Returns the environment that we were started with: what programs of the user's are to be given. */
char **dv_tls_options_environment(void);

#endif
