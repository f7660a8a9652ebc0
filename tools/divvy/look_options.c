/* The options that all looking subcommands share. SPDX-License-Identifier: Apache-2.0 */
#include "auth_file.h"
#include "connection.h"
#include "look.h"

int dv_look_options_finish(dv_look_options *options, const char *command) {
    if (dv_tls_options_finish(&options->tls, command) != 0) return -1;
    options->connect = dv_session_connect(options->connect);
    return options->auth_file ? dv_auth_file_read(command, options->auth_file, &options->auth) : 0;
}

void dv_look_options_free(dv_look_options *options) {
    dv_auth_file_forget(options->auth);
    options->auth = NULL;
}
