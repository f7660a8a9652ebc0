/* divvy serve of a build that found no libmicrohttpd. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "divvy/command.h"
#include "divvy/serve.h"
#include "lib/test.h"

/* It fails, and says which package has to be installed. */
TEST(test_says_what_to_install) {
    char said[1024] = "";
    int ends[2], kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    int code = dv_serve_run(&(dv_serve_options){.listen = "9741"});
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(ends[1]);
    close(kept);
    assert_true(read(ends[0], said, sizeof said - 1) > 0);
    close(ends[0]);
    assert_int_equal(code, DV_EXIT_FAILED);
    assert_non_null(strstr(said, "divvy: serve: "));
    assert_non_null(strstr(said, "install libmicrohttpd-dev"));
}
