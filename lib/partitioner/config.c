/* What a partitioner is told: checked, copied, sorted. SPDX-License-Identifier: Apache-2.0 */
#include "client/config.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "partitioner/partitioner.h"
#include "znode/crc32.h"
#include "znode/path.h"

enum { ITEMS_MAX = 1000000, IDENTIFIER_BYTES_MAX = 512, LOCK_PATH_BYTES_MAX = 64 * 1024, LOCK_NAME_BYTES = 64 };

static int check_unsupported(divvy_client *client, const divvy_partitioner_config *c) {
    if (c->assign == DIVVY_ASSIGN_STICKY)
        return dv_fail(client, DIVVY_EUNSUPPORTED, "partitioner: DIVVY_ASSIGN_STICKY is not in this release");
    if (c->weight != 1000 || c->zone || c->max_moves || c->rejoin_delay_ms || c->static_membership)
        return dv_fail(client, DIVVY_EUNSUPPORTED,
                       "partitioner: weight, zone, max_moves, rejoin_delay_ms and static_membership are not in this "
                       "release; leave them as the INIT macro sets them");
    return 0;
}

static int check_choices(divvy_client *client, const divvy_partitioner_config *c) {
    const char *what = NULL;
    if (c->mode != DIVVY_INCREMENTAL && c->mode != DIVVY_EAGER) what = "mode";
    if (c->assign < DIVVY_ASSIGN_AUTO || c->assign > DIVVY_ASSIGN_FUNC) what = "assign";
    if (c->on_suspend != DIVVY_HOLD && c->on_suspend != DIVVY_RELEASE_ON_SUSPEND) what = "on_suspend";
    if (c->on_session_loss != DIVVY_FAIL && c->on_session_loss != DIVVY_REJOIN) what = "on_session_loss";
    if (what) return dv_fail(client, DIVVY_EINVAL, "partitioner: %s has none of its values", what);
    if ((c->assign == DIVVY_ASSIGN_FUNC) != (c->func != NULL))
        return dv_fail(client, DIVVY_EINVAL, "partitioner: DIVVY_ASSIGN_FUNC and func go together");
    if (c->time_boundary_ms < 0) what = "time_boundary_ms";
    if (c->leave_boundary_ms < -1) what = "leave_boundary_ms";
    if (c->settle_max_ms < 0) what = "settle_max_ms";
    if (c->allocate_timeout_ms < 0) what = "allocate_timeout_ms";
    if (c->release_warn_ms < 0) what = "release_warn_ms";
    if (what) return dv_fail(client, DIVVY_EINVAL, "partitioner: %s is negative", what);
    const int64_t times_ms[] = {c->time_boundary_ms, c->leave_boundary_ms, c->settle_max_ms, c->allocate_timeout_ms,
                                c->release_warn_ms};
    for (size_t i = 0; i < sizeof times_ms / sizeof *times_ms; i++) {
        if (times_ms[i] > DV_TIME_MAX_MS)
            return dv_fail(client, DIVVY_EINVAL, "partitioner: a time of %lld ms is longer than ten years",
                           (long long)times_ms[i]);
    }
    return check_unsupported(client, c);
}

static void complete_times(divvy_partitioner_config *c) {
    if (c->leave_boundary_ms < 0) c->leave_boundary_ms = c->time_boundary_ms;
    int64_t larger_ms = c->time_boundary_ms > c->leave_boundary_ms ? c->time_boundary_ms : c->leave_boundary_ms;
    if (c->settle_max_ms == 0) c->settle_max_ms = 4 * larger_ms;
}

static int set_paths(divvy_partitioner *p, divvy_client *client, const char *path) {
    const char *reason;
    if (!path) return dv_fail(client, DIVVY_EINVAL, "partitioner: path is NULL");
    if (dv_path_check(path, &reason) != 0)
        return dv_fail(client, DIVVY_EINVAL, "partitioner: the path \"%.200s\" %s", path, reason);
    p->path = dv_client_path(client, path);
    if (!p->path) return dv_fail_plainly(client, DIVVY_ENOMEM);
    p->locks_path = dv_path_join(p->path, "locks");
    p->party_path = dv_path_join(p->path, "party");
    return p->locks_path && p->party_path ? 0 : dv_fail_plainly(client, DIVVY_ENOMEM);
}

static char *encoded(const char *name) {
    size_t bytes = dv_name_encode(name, NULL, 0) + 1;
    char *node = malloc(bytes);
    if (node) dv_name_encode(name, node, bytes);
    return node;
}

static int set_identifier(divvy_partitioner *p, divvy_client *client, const char *identifier) {
    p->identifier = identifier ? strdup(identifier) : dv_client_default_identifier();
    if (!p->identifier) return dv_fail_plainly(client, DIVVY_ENOMEM);
    if (!*p->identifier) return dv_fail(client, DIVVY_EINVAL, "partitioner: the identifier is empty");
    if (strlen(p->identifier) > IDENTIFIER_BYTES_MAX)
        return dv_fail(client, DIVVY_E2BIG, "partitioner: the identifier has %zu bytes; 512 are the most",
                       strlen(p->identifier));
    if (!dv_name_is_plain(p->identifier))
        return dv_fail(client, DIVVY_EINVAL,
                       "partitioner: the identifier \"%.100s\" cannot stand in a node's name (no slash, control "
                       "bytes, invalid UTF-8 or characters beyond the basic plane)",
                       p->identifier);
    p->identifier_node = strdup(p->identifier);
    return p->identifier_node ? 0 : dv_fail_plainly(client, DIVVY_ENOMEM);
}

static int copy_names(divvy_partitioner *p, divvy_client *client, const divvy_partitioner_config *c) {
    if (!c->items || c->item_count == 0) return dv_fail(client, DIVVY_EINVAL, "partitioner: there are no items");
    if (c->item_count > ITEMS_MAX)
        return dv_fail(client, DIVVY_E2BIG, "partitioner: %zu items; 1,000,000 are the most", c->item_count);
    dv_names *names = p->names = calloc(1, sizeof *names);
    if (!names) return dv_fail_plainly(client, DIVVY_ENOMEM);
    atomic_init(&names->refs, 1);
    names->names = calloc(c->item_count, sizeof *names->names);
    if (!names->names) return dv_fail_plainly(client, DIVVY_ENOMEM);
    for (size_t i = 0; i < c->item_count; i++) {
        if (!c->items[i] || !*c->items[i])
            return dv_fail(client, DIVVY_EINVAL, "partitioner: item %zu of %zu is %s", i + 1, c->item_count,
                           c->items[i] ? "empty" : "NULL");
        names->names[i] = strdup(c->items[i]);
        if (!names->names[i]) return dv_fail_plainly(client, DIVVY_ENOMEM);
        names->count++;
    }
    qsort(names->names, names->count, sizeof *names->names, dv_name_compare);
    for (size_t i = 1; i < names->count; i++) {
        if (strcmp(names->names[i - 1], names->names[i]) == 0)
            return dv_fail(client, DIVVY_EINVAL, "partitioner: the item \"%.100s\" is given twice", names->names[i]);
    }
    return 0;
}

static int make_items(divvy_partitioner *p, divvy_client *client) {
    size_t count = p->names->count;
    p->items = calloc(count, sizeof *p->items);
    p->owned = calloc(count, sizeof *p->owned);
    p->gains = calloc(count, sizeof *p->gains);
    if (!p->items || !p->owned || !p->gains) return dv_fail_plainly(client, DIVVY_ENOMEM);
    for (size_t i = 0; i < count; i++) {
        const char *name = p->names->names[i];
        char *node = encoded(name);
        dv_item *item = &p->items[i];
        item->partitioner = p;
        item->directory = node ? dv_path_join(p->locks_path, node) : NULL;
        item->plain = node && strcmp(node, name) == 0;
        free(node);
        if (!item->directory) return dv_fail_plainly(client, DIVVY_ENOMEM);
        size_t path_bytes = strlen(item->directory) + LOCK_NAME_BYTES;
        if (path_bytes > LOCK_PATH_BYTES_MAX)
            return dv_fail(client, DIVVY_E2BIG,
                           "partitioner: the lock of item \"%.40s...\" would have a path of %zu bytes; 65536 are the "
                           "most. Name the item by something shorter, such as a hash of it",
                           name, path_bytes);
        p->set = dv_crc32(p->set, name, strlen(name) + 1);
    }
    return 0;
}

/* What a member of divvy can, and so its tag `a`: docs/protocol.md, P3. */
static void set_ability(divvy_partitioner *p, const divvy_partitioner_config *c) {
    if (c->assign == DIVVY_ASSIGN_FUNC) {
        const char *name = c->func_name ? c->func_name : "";
        snprintf(p->ability, sizeof p->ability, "f%08x", dv_crc32(0, name, strlen(name)));
    } else {
        snprintf(p->ability, sizeof p->ability, "%d", c->assign == DIVVY_ASSIGN_ROUND_ROBIN ? 0 : 1);
    }
}

static char *member_json(const divvy_partitioner *p) {
    char host[256] = "", since[32];
    gethostname(host, sizeof host - 1);
    time_t now = time(NULL);
    struct tm utc;
    strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    cJSON *json = cJSON_CreateObject();
    bool complete = json && cJSON_AddStringToObject(json, "id", p->identifier_node) &&
                    cJSON_AddStringToObject(json, "host", host) && cJSON_AddNumberToObject(json, "pid", getpid()) &&
                    cJSON_AddStringToObject(json, "since", since);
    char *text = complete ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    return text;
}

static int describe_member(divvy_partitioner *p, divvy_client *client) {
    if (asprintf(&p->member_suffix, ",a=%s,s=%08x-%s", p->ability, p->set, p->identifier_node) < 0)
        p->member_suffix = NULL;
    p->member_data = member_json(p);
    return p->member_suffix && p->member_data ? 0 : dv_fail_plainly(client, DIVVY_ENOMEM);
}

int dv_partitioner_configure(divvy_partitioner *p, divvy_client *client, const divvy_partitioner_config *config) {
    static const divvy_partitioner_config defaults = DIVVY_PARTITIONER_CONFIG_INIT;
    int error = dv_config_copy(&p->config, sizeof p->config, &defaults, config);
    if (error)
        return dv_fail(client, error,
                       "partitioner: the config was not made with DIVVY_PARTITIONER_CONFIG_INIT or _KAZOO");
    divvy_partitioner_config *c = &p->config;
    if ((error = check_choices(client, c)) != 0) return error;
    complete_times(c);
    set_ability(p, c);
    if ((error = set_paths(p, client, c->path)) != 0) return error;
    if ((error = set_identifier(p, client, c->identifier)) != 0) return error;
    if ((error = copy_names(p, client, c)) != 0) return error;
    if ((error = make_items(p, client)) != 0) return error;
    c->path = c->identifier = c->func_name = NULL; /* The caller's strings are not ours to keep. */
    c->items = NULL;
    return describe_member(p, client);
}

void dv_names_unref(dv_names *names) {
    if (!names || atomic_fetch_sub(&names->refs, 1) != 1) return;
    for (size_t i = 0; i < names->count; i++) free(names->names[i]);
    free(names->names);
    free(names);
}

void dv_partitioner_free_config(divvy_partitioner *p) {
    for (size_t i = 0; p->items && i < p->names->count; i++) free(p->items[i].directory);
    free(p->items);
    free(p->owned);
    free(p->gains);
    dv_names_unref(p->names);
    free(p->path);
    free(p->locks_path);
    free(p->party_path);
    free(p->identifier);
    free(p->identifier_node);
    free(p->member_suffix);
    cJSON_free(p->member_data);
}
