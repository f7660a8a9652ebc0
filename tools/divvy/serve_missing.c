/* divvy serve of a build that found no libmicrohttpd. SPDX-License-Identifier: Apache-2.0 */
#include "command.h"
#include "serve.h"

int dv_serve_run(const dv_serve_options *options) {
    (void)options;
    return dv_command_failed(
        "serve: this divvy was built without libmicrohttpd; install libmicrohttpd-dev (so Debian calls it), "
        "and build divvy again");
}
