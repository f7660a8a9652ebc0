/* What all subcommands that look are told. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "auth_file.h"
#include "look.h"

int dv_look_options_finish(dv_look_options *options, const char *command) {
    if (!options->connect || !*options->connect) options->connect = getenv("DIVVY_CONNECT");
    if (!options->connect || !*options->connect) options->connect = "127.0.0.1:2181";
    return options->auth_file ? dv_auth_file_read(command, options->auth_file, &options->auth) : 0;
}

void dv_look_options_free(dv_look_options *options) {
    dv_auth_file_forget(options->auth);
    options->auth = NULL;
}
