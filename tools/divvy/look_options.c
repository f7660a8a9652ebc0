/* The options that all looking subcommands share. SPDX-License-Identifier: Apache-2.0 */
#include "auth_file.h"
#include "connection.h"
#include "look.h"

int dv_look_options_finish(dv_look_options *options, const char *command) {
    int code = dv_tls_options_finish(&options->tls, command);
    options->connect = dv_session_connect(options->connect);
    if (code == 0 && options->auth_file) code = dv_auth_file_read(command, options->auth_file, &options->auth);
    return code;
}

void dv_look_options_free(dv_look_options *options) {
    dv_auth_file_forget(options->auth);
    options->auth = NULL;
}
