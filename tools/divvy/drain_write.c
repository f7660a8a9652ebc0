/* divvy drain: the weight is written into the plan. SPDX-License-Identifier: Apache-2.0
 *
 * As a member would, but for the turn: a party that stands still, the plan, the step with the new weight, and one
 * attempt to write (docs/protocol.md, D25). Whatever is new meanwhile makes it begin again. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "client/client.h"
#include "command.h"
#include "drain.h"
#include "partitioner/partitioner.h"
#include "znode/path.h"

enum { BOUNDARY_MS = 1000, LISTED_MAX = 10 };

__attribute__((format(printf, 2, 3))) static void give_up(dv_drain *d, const char *format, ...) {
    char message[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    dv_command_say("%s", message);
    d->code = DV_EXIT_FAILED;
}

/* ---- the party ---- */

void dv_drain_free_names(char **names, size_t count) {
    for (size_t i = 0; names && i < count; i++) free(names[i]);
    free(names);
}

static char *party_path(void *context, size_t i) {
    (void)i;
    return strdup(((dv_drain *)context)->party_path);
}

static int take_party(void *context, size_t i, const dv_reply *reply) {
    dv_drain *d = context;
    (void)i;
    dv_drain_free_names(d->nodes, d->node_count);
    d->node_count = 0;
    d->nodes = calloc(reply->child_count + 1, sizeof *d->nodes);
    if (!d->nodes) return DIVVY_ENOMEM;
    if (reply->error == DIVVY_EACCES) return reply->error;
    d->pzxid = reply->error ? 0 : reply->stat->pzxid;
    for (; d->node_count < reply->child_count; d->node_count++) {
        d->nodes[d->node_count] = strdup(reply->children[d->node_count]);
        if (!d->nodes[d->node_count]) return DIVVY_ENOMEM;
    }
    return 0;
}

int dv_drain_read_party(dv_drain *d) {
    const dv_reads reads = {DV_CHILDREN, 1, party_path, take_party, d};
    return dv_look_read(d->look, &reads);
}

typedef struct {
    dv_drain *drain;
    const char *node;
    bool ephemeral, read;
    dv_member_facts facts;
} node_read;

static char *node_path(void *context, size_t i) {
    const node_read *r = context;
    (void)i;
    return dv_path_join(r->drain->party_path, r->node);
}

static int take_node(void *context, size_t i, const dv_reply *reply) {
    node_read *r = context;
    (void)i;
    if (reply->error) return 0;
    r->ephemeral = reply->stat->ephemeral_owner != 0;
    r->read = dv_member_data_parse(reply->data, reply->data_bytes, &r->facts);
    return r->read ? 0 : DIVVY_ENOMEM;
}

static int read_node(node_read *r) {
    const dv_reads reads = {DV_GET, 1, node_path, take_node, r};
    int error = dv_look_read(r->drain->look, &reads);
    free(r->facts.zone);
    r->facts.zone = NULL;
    return error;
}

/* P2: what only looks like a member is none. */
static int is_ephemeral(dv_drain *d, const char *node, bool *is) {
    node_read r = {.drain = d, .node = node};
    int error = read_node(&r);
    *is = !error && r.ephemeral;
    return error;
}

/* Looks whether a member keeps the pool from following plans, and tells it. */
static int look_at_member(dv_drain *d, const char *node, size_t *members) {
    char *copy = strdup(node);
    if (!copy) return DIVVY_ENOMEM;
    int error = 0;
    bool is_member = true;
    dv_member m = dv_member_parse(copy);
    bool follows = m.kind == DV_DIVVY && m.level >= DV_LEVEL_PLAN;
    if (m.kind != DV_STRAY && !follows) error = is_ephemeral(d, node, &is_member);
    if (m.kind == DV_KAZOO && is_member)
        give_up(d, "the pool %s follows no plan: its member %s is kazoo's", d->options->path, m.identifier);
    else if (m.kind == DV_DIVVY && !follows && is_member)
        give_up(d, "the pool %s follows no plan: its member %s is of an earlier release, or has a rule of its own",
                d->options->path, m.identifier);
    *members += m.kind == DV_DIVVY && is_member;
    free(copy);
    return error;
}

static int look_at_party(dv_drain *d) {
    size_t members = 0;
    int error = dv_drain_read_party(d);
    for (size_t i = 0; !error && !d->code && i < d->node_count; i++) error = look_at_member(d, d->nodes[i], &members);
    if (error || d->code) return error;
    if (d->pzxid == 0) give_up(d, "there is no pool at %s", d->options->path);
    else if (members == 0) give_up(d, "nobody is in the pool %s: there is nobody who follows a plan", d->options->path);
    return 0;
}

/* Returns whether it has stood still for long enough, or the plan was made for it already. */
static bool has_settled(dv_drain *d) {
    int64_t now_ms = dv_session_now_ms();
    if (d->seen_pzxid != d->pzxid) {
        d->seen_pzxid = d->pzxid;
        d->seen_at_ms = now_ms;
    }
    return d->plan.memory.plan->header.pzxid == d->pzxid || now_ms - d->seen_at_ms >= BOUNDARY_MS;
}

static int settle_members(dv_drain *d) {
    divvy_client *client = dv_look_client(d->look);
    const char **nodes = calloc(d->node_count + 1, sizeof *nodes);
    int error = nodes ? dv_client_enter(client) : DIVVY_ENOMEM;
    if (error) {
        free((void *)nodes);
        return error;
    }
    size_t count = 0;
    for (size_t i = 0; i < d->node_count; i++) {
        char *copy = strdup(d->nodes[i]);
        if (copy && dv_member_parse(copy).kind == DV_DIVVY) nodes[count++] = d->nodes[i];
        if (!copy) error = DIVVY_ENOMEM;
        free(copy);
    }
    if (!d->members) d->members = dv_roster_new(client, d->party_path, NULL, NULL);
    if (!error) error = d->members ? dv_roster_settle(d->members, nodes, count, d->pzxid) : DIVVY_ENOMEM;
    dv_client_unlock(client);
    free((void *)nodes);
    return error;
}

/* ---- whom it is about ---- */

/* Returns the part of a node's name that follows its first '-' (P2: the identifier). */
static const char *identifier_of(bool is_static, const char *key) {
    const char *dash = is_static ? NULL : strchr(key, '-');
    return dash ? dash + 1 : key;
}

const dv_plan_member *dv_drain_member(const dv_drain *d) {
    return d->plan.memory.plan ? dv_plan_find(d->plan.memory.plan, d->is_static, d->key) : NULL;
}

size_t dv_drain_load(const dv_drain *d) {
    const dv_plan *plan = d->plan.memory.plan;
    const dv_plan_member *m = dv_drain_member(d);
    size_t load = 0;
    for (size_t i = 0; m && i < plan->set->count; i++) load += plan->owners[i] == m->slot;
    return load;
}

/* `text`, with one name more where there is room. */
static void list(char *text, size_t bytes, size_t *listed, const char *name) {
    size_t at = strlen(text);
    if (*listed < LISTED_MAX) snprintf(text + at, bytes - at, "%s%s", *listed ? ", " : "", name);
    else if (*listed == LISTED_MAX) snprintf(text + at, bytes - at, ", ...");
    ++*listed;
}

static bool is_in_party(const dv_drain *d, const char *identifier) {
    for (size_t i = 0; i < d->node_count; i++) {
        if (strcmp(identifier_of(false, d->nodes[i]), identifier) == 0) return true;
    }
    return false;
}

/* Sorted, as many as fit a line: the identifiers of all, or the keys of those who have this one. */
static void list_members(const dv_drain *d, const char *identifier, char *text, size_t bytes) {
    const dv_plan *plan = d->plan.memory.plan;
    const char **names = calloc(plan->member_count + 1, sizeof *names);
    size_t count = 0, listed = 0;
    for (size_t n = 0; names && n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        const char *own = identifier_of(m->is_static, m->key);
        if (!identifier) names[count++] = own;
        else if (strcmp(own, identifier) == 0) names[count++] = m->key;
    }
    if (count > 0) qsort((void *)names, count, sizeof *names, dv_name_compare);
    for (size_t n = 0; n < count; n++) list(text, bytes, &listed, names[n]);
    free((void *)names);
}

static void tell_none(dv_drain *d) {
    char names[1024] = "";
    list_members(d, NULL, names, sizeof names);
    give_up(d, "the pool %s has no member %s; there are: %s", d->options->path, d->options->member, names);
}

static void tell_several(dv_drain *d) {
    char names[1024] = "";
    list_members(d, d->options->member, names, sizeof names);
    give_up(d, "several members of the pool %s are %s; say which by its node: %s", d->options->path, d->options->member,
            names);
}

/* By its identifier, or by its key as a whole. If it is not found, that is told, or waited for. */
static int find_member(dv_drain *d) {
    const dv_plan *plan = d->plan.memory.plan;
    const dv_plan_member *found = NULL;
    size_t count = 0;
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        bool exact = strcmp(m->key, d->options->member) == 0;
        if (!exact && strcmp(identifier_of(m->is_static, m->key), d->options->member) != 0) continue;
        found = m;
        count++;
        if (!exact || m->is_static) continue;
        count = 1; /* Nobody else has this very node. */
        break;
    }
    if (count > 1) {
        tell_several(d);
    } else if (count == 0 && is_in_party(d, d->options->member)) {
        snprintf(d->waits_for, sizeof d->waits_for, "the plan of %s does not have the member %s yet", d->options->path,
                 d->options->member);
    } else if (count == 0) {
        tell_none(d);
    } else if (!d->key) {
        d->is_static = found->is_static;
        d->key = strdup(found->key);
        d->weight_before = found->weight;
        if (!d->key) return DIVVY_ENOMEM;
        d->items_before = dv_drain_load(d);
        return d->options->wait ? dv_drain_note_items(d) : 0;
    }
    return 0;
}

/* Reads the weight that the member was started with, from its node. A drain may have changed the weight in the plan. */
static int own_weight(dv_drain *d, uint32_t *weight) {
    *weight = DV_WEIGHT;
    for (size_t i = 0; i < d->node_count; i++) {
        bool own =
            d->is_static ? strcmp(identifier_of(false, d->nodes[i]), d->key) == 0 : strcmp(d->nodes[i], d->key) == 0;
        if (!own) continue;
        node_read r = {.drain = d, .node = d->nodes[i]};
        int error = read_node(&r);
        if (error) return error;
        if (r.read && r.facts.weight > 0) *weight = r.facts.weight;
    }
    return 0;
}

static int choose_weight(dv_drain *d) {
    d->weight = d->options->weight > 0 ? (uint32_t)d->options->weight : 0;
    if (d->restores) d->weight = d->weight_before;
    return d->options->undo ? own_weight(d, &d->weight) : 0;
}

bool dv_drain_is_last(const dv_drain *d) {
    const dv_plan *plan = d->plan.memory.plan;
    const dv_plan_member *own = dv_drain_member(d);
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        if (m != own && m->weight > 0 && m->absent == 0 && m->leaving[0] == '\0') return false;
    }
    return true;
}

/* Returns whether another member can take the items; if not, the drain is refused, and nothing is written. */
static bool can_drain(dv_drain *d) {
    if (d->weight > 0 || dv_drain_load(d) == 0 || !dv_drain_is_last(d)) return true;
    give_up(d, "%s keeps its %zu items: no other member is left that weighs more than 0; nothing was changed",
            d->options->member, dv_drain_load(d));
    return false;
}

/* ---- writing ---- */

/* Returns whether there is a plan to be changed. */
static bool has_plan(dv_drain *d) {
    const dv_plan_memory *m = &d->plan.memory;
    const char *path = d->options->path;
    d->waits_for[0] = '\0';
    if (m->standing == DV_PLAN_NEWER)
        give_up(d, "a later release of divvy wrote the plan of %s; use the divvy of that release", path);
    else if (m->standing == DV_PLAN_BROKEN)
        snprintf(d->waits_for, sizeof d->waits_for, "the plan of %s is broken", path);
    else if (m->standing != DV_PLAN_GOOD || m->plan->header.generation == 0)
        snprintf(d->waits_for, sizeof d->waits_for, "the members of %s have no plan yet", path);
    return !d->code && !*d->waits_for;
}

static bool has_weight(const dv_drain *d) {
    const dv_plan_member *m = dv_drain_member(d);
    return m && m->weight == d->weight;
}

static int try_to_write(dv_drain *d) {
    d->events = (dv_plan_events){.weight = {d->key, d->weight}};
    int error = settle_members(d);
    if (!error) error = dv_pool_plan_write(&d->plan, d->party_path, d->members, &d->events);
    if (error == DIVVY_EACCES) {
        give_up(d, "the plan %s may not be written: %s", d->plan.path, divvy_strerror(error));
        error = 0;
    }
    return error;
}

int dv_drain_write(dv_look *look, void *context) {
    dv_drain *d = context;
    (void)look;
    for (int error = 0;;) {
        error = look_at_party(d);
        if (!error && !d->code) error = dv_pool_plan_read(&d->plan);
        if (error || d->code) return error;
        bool ready = has_plan(d);
        if (ready) error = find_member(d);
        if (error || d->code) return error;
        if (ready && !*d->waits_for) {
            error = choose_weight(d);
            if (!error && (has_weight(d) || !can_drain(d))) return 0;
            if (!error && has_settled(d)) error = try_to_write(d);
            if (error || d->code || has_weight(d)) return error;
        }
        dv_look_pause(d->look, DV_DRAIN_PAUSE_MS, NULL);
    }
}
