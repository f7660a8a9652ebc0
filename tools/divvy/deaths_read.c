/* The members of a pool that died: docs/protocol.md, D45. SPDX-License-Identifier: Apache-2.0 */
#include "deaths_read.h"

#include <divvy/divvy.h>

#include "znode/path.h"

typedef struct {
    const char *root;
    dv_plan_deaths *out;
} reading;

static char *deaths_path(void *context, size_t i) {
    (void)i;
    return dv_path_join(((const reading *)context)->root, "deaths");
}

static int take_deaths(void *context, size_t i, const dv_reply *reply) {
    const reading *r = context;
    (void)i;
    if (reply->error) return 0;
    int error = dv_plan_deaths_parse(r->out, reply->data, reply->data_bytes, reply->stat->mtime_ms, NULL);
    return error == DIVVY_ENOMEM ? error : 0;
}

int dv_deaths_read(dv_look *look, const char *root, dv_plan_deaths *out) {
    reading r = {root, out};
    const dv_reads reads = {DV_GET, 1, deaths_path, take_deaths, &r};
    out->count = 0;
    return dv_look_read(look, &reads);
}
