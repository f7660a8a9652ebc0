/* A pool as it stands: its members, its items, and who owns what. SPDX-License-Identifier: Apache-2.0
 *
 * Who is first in an item's queue owns it (docs/protocol.md, Q3). divvy writes the identifier of a member into its
 * place in the queue, kazoo nothing; but the places of a member and its node in the party are of one session. */
#include "status_pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "base/padded.h"
#include "partitioner/partitioner.h"
#include "recipe/record.h"
#include "status_items.h"
#include "status_plan.h"
#include "status_room.h"
#include "znode/path.h"

typedef struct {
    dv_status *status;
    char *root, *party, *locks; /* at the servers */
    bool has_party, has_locks;
    char **party_names, **lock_names;
    size_t party_count, lock_count;
} survey;

/* ---- what is there ---- */

static char *root_path(void *context, size_t i) {
    const survey *s = context;
    return strdup(i == 0 ? s->root : i == 1 ? s->party : s->locks);
}

static char *locks_path(void *context, size_t i) {
    return root_path(context, i + 2);
}

static char **copy_names(const dv_reply *reply, size_t *count) {
    char **names = calloc(reply->child_count + 1, sizeof *names);
    for (*count = 0; names && *count < reply->child_count; ++*count) {
        names[*count] = strdup(reply->children[*count]);
        if (!names[*count]) break;
    }
    return names;
}

static void free_names(char **names, size_t count) {
    for (size_t i = 0; i < count; i++) free(names[i]);
    free(names);
}

static int take_root(void *context, size_t i, const dv_reply *reply) {
    survey *s = context;
    bool there = reply->error == 0;
    if (reply->error == DIVVY_EACCES && i > 0) return reply->error;
    if (i == 0 || !there) return 0;
    if (i == 1) s->party_names = copy_names(reply, &s->party_count);
    else s->lock_names = copy_names(reply, &s->lock_count);
    if (i == 1) s->has_party = true;
    else s->has_locks = true;
    bool all = i == 1 ? s->party_names && s->party_count == reply->child_count
                      : s->lock_names && s->lock_count == reply->child_count;
    return all ? 0 : DIVVY_ENOMEM;
}

static int take_locks(void *context, size_t i, const dv_reply *reply) {
    return take_root(context, i + 2, reply);
}

/* ---- members ---- */

static void free_member(dv_status_member *m) {
    free(m->node);
    free(m->host);
    free(m->since);
    free(m->zone);
    free(m->tags);
}

/* All that look like one; who they are is told by a read. */
static int list_members(survey *s) {
    dv_status *status = s->status;
    status->members = calloc(s->party_count + 1, sizeof *status->members);
    if (!status->members) return DIVVY_ENOMEM;
    for (size_t i = 0; i < s->party_count; i++) {
        dv_member parsed = dv_member_parse(s->party_names[i]);
        if (parsed.kind == DV_STRAY) {
            status->stray_count++;
            if (!status->stray) status->stray = s->party_names[i];
            if (status->stray == s->party_names[i]) s->party_names[i] = NULL;
            continue;
        }
        status->members[status->member_count++] =
            (dv_status_member){.node = s->party_names[i],
                               .identifier = parsed.identifier,
                               .kazoo = parsed.kind == DV_KAZOO,
                               .follows = parsed.kind == DV_DIVVY && parsed.level >= DV_LEVEL_PLAN,
                               .can_balance = parsed.kind == DV_DIVVY && parsed.level >= DV_LEVEL_BALANCE};
        s->party_names[i] = NULL;
    }
    return 0;
}

static char *member_path(void *context, size_t i) {
    const survey *s = context;
    return dv_path_join(s->party, s->status->members[i].node);
}

static int take_member(void *context, size_t i, const dv_reply *reply) {
    dv_status_member *m = &((survey *)context)->status->members[i];
    if (reply->error == DIVVY_ENOENT) return 0; /* It has just left; without a host it is dropped. */
    if (reply->error) return reply->error;
    char made[DV_UTC_BYTES];
    dv_record record = {0};
    char *data = dv_padded_copy(reply->data, reply->data_bytes);
    if (!data) return DIVVY_ENOMEM;
    dv_member_facts facts = {.zone = NULL};
    bool good = dv_member_data_parse(reply->data, reply->data_bytes, &facts);
    m->is_static = good && facts.is_static;
    m->weight = good ? facts.weight : DV_WEIGHT;
    m->zone = facts.zone;
    m->tags = strdup(facts.tags);
    m->cap = facts.cap;
    m->rejoin_delay_ms = good ? facts.rejoin_delay_ms : 0;
    m->first_czxid = good ? facts.first_czxid : 0;
    bool told = !m->kazoo && dv_record_parse(data, reply->data_bytes, true, &record) == DV_RECORD_GOOD;
    free(data);
    m->session = reply->stat->ephemeral_owner;
    m->made_ms = reply->stat->ctime_ms;
    m->czxid = reply->stat->czxid;
    m->host = strdup(told ? record.host : "");
    m->pid = told ? record.pid : 0;
    m->since = strdup(told && *record.time ? record.time : dv_look_utc(m->made_ms, made));
    if (told) dv_record_free(&record);
    return good && m->tags && m->host && m->since ? 0 : DIVVY_ENOMEM;
}

static int compare_members(const void *a, const void *b) {
    const dv_status_member *x = a, *y = b;
    int order = strcmp(x->identifier, y->identifier);
    return order ? order : strcmp(x->node, y->node);
}

/* Drops who left meanwhile, and what only looks like a member: P2, those are ephemeral. */
static void sift_members(dv_status *status) {
    size_t kept = 0;
    for (size_t i = 0; i < status->member_count; i++) {
        dv_status_member *m = &status->members[i];
        bool left = !m->host;
        if (!left && m->session == 0) status->stray_count++;
        if (!left && m->session == 0 && !status->stray) {
            status->stray = m->node;
            m->node = NULL;
        }
        if (left || m->session == 0) free_member(m);
        else status->members[kept++] = *m;
    }
    status->member_count = kept;
    if (kept) qsort(status->members, kept, sizeof *status->members, compare_members);
}

/* ---- who owns what ---- */

static size_t find_owner(const dv_status *status, int64_t session, const char *identifier) {
    size_t found = DV_NO_MEMBER;
    for (size_t i = 0; i < status->member_count; i++) {
        const dv_status_member *m = &status->members[i];
        if (m->session != session) continue;
        if (strcmp(m->identifier, identifier) == 0) return i;
        if (found == DV_NO_MEMBER) found = i;
    }
    return found;
}

int dv_status_name_owner(const dv_status *status, int64_t session, char **name, size_t *member) {
    *member = find_owner(status, session, *name);
    if (*member == DV_NO_MEMBER && **name) return 0; /* Only the node's data are known. */
    char *known = NULL;
    if (*member != DV_NO_MEMBER) known = strdup(status->members[*member].identifier);
    else if (session == 0) known = strdup("a node without a name");
    else if (asprintf(&known, "session 0x%" PRIx64, (uint64_t)session) < 0) known = NULL;
    free(*name);
    *name = known;
    return known ? 0 : DIVVY_ENOMEM;
}

static int match(dv_status *status) {
    for (size_t i = 0; i < status->item_count; i++) {
        dv_status_item *item = &status->items[i];
        if (!item->head) continue;
        if (dv_status_name_owner(status, item->session, &item->owner, &item->member) != 0) return DIVVY_ENOMEM;
        if (item->member != DV_NO_MEMBER) status->members[item->member].item_count++;
    }
    for (size_t i = 0; i < status->member_count; i++) {
        size_t load = status->members[i].item_count;
        if (i == 0 || load < status->least_load) status->least_load = load;
        if (load > status->most_load) status->most_load = load;
    }
    return 0;
}

/* ---- the whole ---- */

/* Reads the plan. A plan that may not be read is not shown: the owners can be seen elsewhere. */
static int read_plan(dv_pool_plan *plan) {
    int error = dv_pool_plan_read(plan);
    return error == DIVVY_EACCES ? 0 : error;
}

static int survey_pool(dv_look *look, survey *s) {
    dv_reads roots = {DV_CHILDREN, 2, root_path, take_root, s};
    int error = dv_look_read(look, &roots);
    /* The names of 100,000 items are megabytes: where they are not looked at, they are not read. */
    dv_reads locks = {s->status->only_expected ? DV_EXISTS : DV_CHILDREN, 1, locks_path, take_locks, s};
    if (!error) error = dv_look_read(look, &locks);
    s->status->found = s->has_party || s->has_locks;
    if (error || !s->status->found) return error;
    error = list_members(s);
    if (error) return error;
    dv_reads members = {DV_GET, s->status->member_count, member_path, take_member, s};
    error = dv_look_read(look, &members);
    if (!error && s->status->plan) error = read_plan(s->status->plan);
    if (!error)
        error = dv_status_items_read(look, s->status, s->locks, s->lock_names,
                                     s->status->only_expected ? 0 : s->lock_count);
    if (error) return error;
    sift_members(s->status);
    s->status->read_at_ms = dv_look_wall_ms();
    error = match(s->status);
    return error ? error : dv_status_plan_match(s->status);
}

int dv_status_pool_read(dv_look *look, void *context) {
    dv_status *status = context;
    dv_status_pool_clear(status);
    survey s = {.status = status, .root = dv_look_path(look, status->path)};
    if (s.root) s.party = dv_path_join(s.root, "party");
    if (s.root) s.locks = dv_path_join(s.root, "locks");
    int error = s.party && s.locks ? survey_pool(look, &s) : DIVVY_ENOMEM;
    if (!error) dv_status_room_count(status, strlen(s.root));
    free_names(s.party_names, s.party_count);
    free_names(s.lock_names, s.lock_count);
    free(s.root);
    free(s.party);
    free(s.locks);
    return error;
}

void dv_status_pool_clear(dv_status *status) {
    for (size_t i = 0; i < status->member_count; i++) free_member(&status->members[i]);
    for (size_t i = 0; i < status->item_count; i++) dv_status_item_free(&status->items[i]);
    free(status->members);
    free(status->items);
    free(status->stray);
    dv_status_plan_clear(status);
    *status = (dv_status){.path = status->path,
                          .expected = status->expected,
                          .only_expected = status->only_expected,
                          .skip_denied = status->skip_denied,
                          .owners_by_name = status->owners_by_name,
                          .plan = status->plan};
}
