/* divvy serve: pools over HTTP, for people and for Prometheus. SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include "command.h"
#include "log.h"

static int run(int argc, char **argv) {
    dv_serve_options options;
    int code = dv_serve_options_parse(&options, argc, argv);
    if (code == 0) {
        if (options.paths.count == 1 && options.below.count == 0) dv_log_field("pool", options.paths.texts[0]);
        code = dv_serve_run(&options);
    }
    dv_serve_options_free(&options);
    return code;
}

const dv_command dv_serve_command = {
    .name = dv_serve_name,
    .summary = "show pools on a web page, and to Prometheus",
    .run = run,
    .print_help = dv_serve_options_help,
    .needs_no_output = true,
};
