/* Names, paths and times as nodes have them. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "look.h"
#include "znode/path.h"

char *dv_look_node_of(const char *name) {
    size_t bytes = dv_name_encode(name, NULL, 0);
    char *node = malloc(bytes + 1);
    if (node) dv_name_encode(name, node, bytes + 1);
    return node;
}

char *dv_look_name_of(const char *node) {
    size_t bytes = dv_name_decode(node, NULL, 0);
    char *name = malloc(bytes + 1);
    if (name) dv_name_decode(node, name, bytes + 1);
    char *back = name ? dv_look_node_of(name) : NULL;
    bool known = back, ours = known && strcmp(back, node) == 0;
    free(back);
    if (ours) return name;
    free(name);
    return known ? strdup(node) : NULL;
}

char *dv_look_deep_path(const char *parent, const char *folder, const char *node) {
    char *above = dv_path_join(parent, folder);
    char *path = above ? dv_path_join(above, node) : NULL;
    free(above);
    return path;
}

const char *dv_look_utc(int64_t ms, char out[DV_UTC_BYTES]) {
    time_t seconds = (time_t)(ms / 1000);
    struct tm utc;
    out[0] = '\0';
    if (ms > 0 && gmtime_r(&seconds, &utc)) strftime(out, DV_UTC_BYTES, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return out;
}
