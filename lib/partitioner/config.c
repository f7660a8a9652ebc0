/* A partitioner's configuration: checked, copied, sorted. SPDX-License-Identifier: Apache-2.0 */
#include "base/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assign/assign_internal.h"
#include "base/crc32.h"
#include "base/utf8.h"
#include "partitioner/partitioner.h"
#include "plan/loads.h"
#include "plan/member_data.h"
#include "recipe/record.h"
#include "znode/path.h"

enum { IDENTIFIER_BYTES_MAX = 512, MEMBERS_MAX = 10000, LOAD_INTERVAL_MIN_MS = 1000, LOAD_INTERVAL_MAX_MS = 3600000 };

/* Returns whether it can follow plans: docs/protocol.md, P3. */
static bool follows_plans(const divvy_partitioner_config *c) {
    return c->assign == DIVVY_ASSIGN_AUTO || c->assign == DIVVY_ASSIGN_STICKY;
}

static int check_zone(divvy_client *client, const char *zone) {
    if (!zone) return 0;
    if (strlen(zone) > DV_PLAN_ZONE_BYTES_MAX)
        return dv_fail(client, DIVVY_E2BIG, "partitioner: the zone has %zu bytes; 512 are the most", strlen(zone));
    if (!dv_is_utf8(zone)) return dv_fail(client, DIVVY_EINVAL, "partitioner: the zone is no valid UTF-8");
    return 0;
}

static int check_tags(divvy_client *client, const char *tags) {
    char text[DV_TAGS_BYTES];
    const char *why = dv_tags_make(text, tags);
    return why ? dv_fail(client, DIVVY_EINVAL, "partitioner: a tag of \"%.200s\" %s", tags, why) : 0;
}

static int check_loads(divvy_client *client, const divvy_partitioner_config *c) {
    if (c->load_unit && !dv_load_unit_is_good(c->load_unit))
        return dv_fail(client, DIVVY_EINVAL,
                       "partitioner: load_unit is \"%.40s\", and not 1 to 16 of A-Z, a-z, 0-9, \"_\", \"/\", \"%%\", "
                       "\".\", \"-\"",
                       c->load_unit);
    if (c->load_interval_ms < LOAD_INTERVAL_MIN_MS || c->load_interval_ms > LOAD_INTERVAL_MAX_MS)
        return dv_fail(client, DIVVY_EINVAL,
                       "partitioner: load_interval_ms is %lld, and not between a second and an hour",
                       (long long)c->load_interval_ms);
    if (!dv_load_is_good(c->load_floor))
        return dv_fail(client, DIVVY_EINVAL, "partitioner: load_floor is %g, and no finite number from 0 up",
                       c->load_floor);
    return 0;
}

/* Checks the options that only a plan can heed. */
static int check_plan_options(divvy_client *client, const divvy_partitioner_config *c) {
    bool asks = c->weight != DV_WEIGHT || c->zone || c->max_moves || c->static_membership || c->tags || c->item_cap ||
                c->min_members > 1;
    if (asks && !follows_plans(c))
        return dv_fail(
            client, DIVVY_EINVAL,
            "partitioner: weight, zone, max_moves, static_membership, tags, item_cap and min_members go with "
            "DIVVY_ASSIGN_AUTO or DIVVY_ASSIGN_STICKY only");
    if (c->max_moves > UINT32_MAX) return dv_fail(client, DIVVY_EINVAL, "partitioner: max_moves is above 4294967295");
    if (c->item_cap > UINT32_MAX) return dv_fail(client, DIVVY_EINVAL, "partitioner: item_cap is above 4294967295");
    if (c->min_members > MEMBERS_MAX)
        return dv_fail(client, DIVVY_EINVAL, "partitioner: min_members is %zu; 10,000 are the most", c->min_members);
    if (c->rejoin_delay_ms && !c->static_membership)
        return dv_fail(client, DIVVY_EINVAL, "partitioner: rejoin_delay_ms goes with static_membership only");
    if (c->static_membership && !c->identifier)
        return dv_fail(client, DIVVY_EINVAL,
                       "partitioner: static_membership needs an identifier that is the same after a restart");
    int error = check_zone(client, c->zone);
    if (!error) error = check_tags(client, c->tags);
    return error ? error : check_loads(client, c);
}

static int check_choices(divvy_client *client, const divvy_partitioner_config *c) {
    const char *what = NULL;
    if (c->mode != DIVVY_INCREMENTAL && c->mode != DIVVY_EAGER) what = "mode";
    if (c->assign < DIVVY_ASSIGN_AUTO || c->assign > DIVVY_ASSIGN_FUNC) what = "assign";
    if (c->on_suspend != DIVVY_HOLD && c->on_suspend != DIVVY_RELEASE_ON_SUSPEND) what = "on_suspend";
    if (c->on_session_loss != DIVVY_FAIL && c->on_session_loss != DIVVY_REJOIN) what = "on_session_loss";
    if (c->items_order != DIVVY_ORDER_BYTES && c->items_order != DIVVY_ORDER_NUMERIC) what = "items_order";
    if (what) return dv_fail(client, DIVVY_EINVAL, "partitioner: %s has none of its values", what);
    if ((c->assign == DIVVY_ASSIGN_FUNC) != (c->func != NULL))
        return dv_fail(client, DIVVY_EINVAL, "partitioner: DIVVY_ASSIGN_FUNC and func go together");
    if (c->time_boundary_ms < 0) what = "time_boundary_ms";
    if (c->leave_boundary_ms < -1) what = "leave_boundary_ms";
    if (c->settle_max_ms < 0) what = "settle_max_ms";
    if (c->allocate_timeout_ms < 0) what = "allocate_timeout_ms";
    if (c->release_warn_ms < 0) what = "release_warn_ms";
    if (c->rejoin_delay_ms < 0) what = "rejoin_delay_ms";
    if (c->round_timeout_ms < 0) what = "round_timeout_ms";
    if (c->handover_timeout_ms < 0) what = "handover_timeout_ms";
    if (c->prepare_timeout_ms < 0) what = "prepare_timeout_ms";
    if (c->min_members_wait_ms < 0) what = "min_members_wait_ms";
    if (what) return dv_fail(client, DIVVY_EINVAL, "partitioner: %s is negative", what);
    const int64_t times_ms[] = {c->time_boundary_ms,    c->leave_boundary_ms,   c->settle_max_ms,
                                c->allocate_timeout_ms, c->release_warn_ms,     c->rejoin_delay_ms,
                                c->round_timeout_ms,    c->handover_timeout_ms, c->prepare_timeout_ms,
                                c->min_members_wait_ms};
    for (size_t i = 0; i < sizeof times_ms / sizeof *times_ms; i++) {
        if (times_ms[i] > DV_TIME_MAX_MS)
            return dv_fail(client, DIVVY_EINVAL, "partitioner: a time of %lld ms is longer than ten years",
                           (long long)times_ms[i]);
    }
    return check_plan_options(client, c);
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

static int set_identifier(divvy_partitioner *p, divvy_client *client, const char *identifier) {
    p->identifier = identifier ? strdup(identifier) : dv_client_default_identifier();
    if (!p->identifier) return dv_fail_plainly(client, DIVVY_ENOMEM);
    int error = dv_client_check_text(client, "partitioner", "identifier", p->identifier, IDENTIFIER_BYTES_MAX);
    if (error) return error;
    if (!dv_name_is_plain(p->identifier))
        return dv_fail(client, DIVVY_EINVAL,
                       "partitioner: the identifier \"%.100s\" cannot stand in a node's name (no slash, control "
                       "bytes, invalid UTF-8 or characters beyond the basic plane)",
                       p->identifier);
    return 0;
}

int dv_partitioner_check_order(const divvy_partitioner *p, divvy_client *client, const char *call,
                               const dv_plan_set *set) {
    for (size_t i = 0; p->config.items_order == DIVVY_ORDER_NUMERIC && i < set->count; i++) {
        if (!dv_assign_is_number(set->names[i]))
            return dv_fail(client, DIVVY_EINVAL,
                           "%s: items_order is numeric, and the item \"%.100s\" is no decimal number as Python "
                           "writes it",
                           call, set->names[i]);
    }
    return 0;
}

static int set_items(divvy_partitioner *p, divvy_client *client, const divvy_partitioner_config *c) {
    int error = dv_items_make_set(&p->configured, client, "partitioner", p->locks_path, c->items, c->item_count);
    if (!error) error = dv_partitioner_check_order(p, client, "partitioner", p->configured);
    if (error) return error;
    error = dv_items_use(p, p->configured);
    return error ? dv_fail_plainly(client, error) : 0;
}

/* Sets the ability of this member, which its tag `a` tells: docs/protocol.md, P3. */
static void set_ability(divvy_partitioner *p, const divvy_partitioner_config *c) {
    if (c->assign == DIVVY_ASSIGN_FUNC) {
        const char *name = c->func_name ? c->func_name : "";
        snprintf(p->ability, sizeof p->ability, "f%08x", dv_crc32(0, name, strlen(name)));
    } else {
        int level = c->assign == DIVVY_ASSIGN_ROUND_ROBIN ? DV_LEVEL_KAZOO : DV_LEVEL_RENDEZVOUS;
        if (follows_plans(c)) level = DV_LEVEL_BALANCE;
        snprintf(p->ability, sizeof p->ability, "%d", level);
    }
}

/* Tells what we go by in the node's name: P2. */
static bool name_member(divvy_partitioner *p) {
    const divvy_partitioner_config *c = &p->config;
    const char *order = c->items_order == DIVVY_ORDER_NUMERIC ? ",o=n" : "";
    char options[64] = "";
    if (follows_plans(c)) snprintf(options, sizeof options, ",m=%zu,r=%" PRId64, c->max_moves, c->round_timeout_ms);
    if (asprintf(&p->member_suffix, ",a=%s,s=%08x%s%s-%s", p->ability, p->configured->crc, order, options,
                 p->identifier) < 0)
        p->member_suffix = NULL;
    return p->member_suffix != NULL;
}

static int describe_member(divvy_partitioner *p, divvy_client *client) {
    const divvy_partitioner_config *c = &p->config;
    dv_member_facts facts = {.is_static = c->static_membership,
                             .weight = c->weight,
                             .zone = (char *)(uintptr_t)(c->zone ? c->zone : ""),
                             .rejoin_delay_ms = c->rejoin_delay_ms,
                             .cap = (uint32_t)c->item_cap};
    dv_tags_make(facts.tags, c->tags);
    p->member_data = dv_member_data_print(p->identifier, &facts);
    facts.first_czxid = 1; /* until that of the first is known: older than all that anybody may ask for */
    p->later_data = dv_member_data_print(p->identifier, &facts);
    bool complete = name_member(p) && p->member_data && p->later_data;
    return complete ? 0 : dv_fail_plainly(client, DIVVY_ENOMEM);
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
    if ((error = set_items(p, client, c)) != 0) return error;
    error = describe_member(p, client);
    snprintf(p->load_unit, sizeof p->load_unit, "%s", c->load_unit ? c->load_unit : "load");
    c->path = c->identifier = c->func_name = c->zone = c->load_unit = c->tags =
        NULL; /* The caller's strings are not ours to keep. */
    c->items = NULL;
    return error;
}

void dv_partitioner_free_config(divvy_partitioner *p) {
    dv_items_free(p);
    dv_directories_free(p);
    free(p->path);
    free(p->locks_path);
    free(p->party_path);
    free(p->identifier);
    free(p->member_suffix);
    free(p->member_data);
    free(p->later_data);
}
