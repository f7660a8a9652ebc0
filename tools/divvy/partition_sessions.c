/* The options of each member, where --sessions divides those of the process. SPDX-License-Identifier: Apache-2.0 */
#include "partition_sessions.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"

const char *dv_partition_sessions_wrong(const dv_partition_options *o) {
    if (o->sessions == 1) return NULL;
    if (o->assign != DIVVY_ASSIGN_AUTO)
        return "--sessions divides the weight of this member, which needs a pool that follows a plan; leave --assign "
               "out, here and at all other members";
    if (o->weight > 0 && o->weight < o->sessions)
        return "--weight is smaller than --sessions, and cannot be divided; give all members a larger one";
    if (o->cap > 0 && o->cap < o->sessions)
        return "--cap is smaller than --sessions, and cannot be divided; so few items fit one session";
    return NULL;
}

/* Returns an even part: the first ones are larger by one where it does not divide. */
static int64_t part(int64_t whole, int64_t count, size_t index) {
    return whole / count + ((int64_t)index < whole % count);
}

/* Returns "FOLDER/NAME-2.prom" for "FOLDER/NAME.prom": malloc'ed, or NULL. */
static char *number_file(const char *path, size_t number) {
    static const char end[] = ".prom";
    size_t bytes = strlen(path), kept = bytes;
    if (bytes > sizeof end && strcmp(path + bytes - (sizeof end - 1), end) == 0) kept = bytes - (sizeof end - 1);
    char *numbered = NULL;
    if (asprintf(&numbered, "%.*s-%zu%s", (int)kept, path, number, path + kept) < 0) return NULL;
    return numbered;
}

static char *number_name(const char *identifier, size_t number) {
    char *numbered = NULL;
    if (!identifier) return dv_client_default_identifier(); /* has a number of its own */
    if (asprintf(&numbered, "%s-%zu", identifier, number) < 0) return NULL;
    return numbered;
}

int dv_partition_sessions_divide(const dv_partition_options *o, size_t index, dv_partition_options *own) {
    assert((int64_t)index < o->sessions);
    *own = *o;
    if (o->sessions == 1) return 0;
    own->weight = part(o->weight, o->sessions, index);
    own->cap = part(o->cap, o->sessions, index);
    own->load_floor = o->load_floor_text ? o->load_floor : o->load_floor / (double)o->sessions;
    own->identifier = number_name(o->identifier, index + 1);
    if (o->session.metrics) own->session.metrics = number_file(o->session.metrics, index + 1);
    return own->identifier && (!o->session.metrics || own->session.metrics) ? 0 : -1;
}

void dv_partition_sessions_free(dv_partition_options *own) {
    if (own->sessions == 1) return;
    free((void *)(uintptr_t)own->identifier);
    free((void *)(uintptr_t)own->session.metrics);
}
