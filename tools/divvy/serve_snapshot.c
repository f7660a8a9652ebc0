/* A pool as the main thread last read it. SPDX-License-Identifier: Apache-2.0 */
#include "serve_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "plan/member_name.h"

static const size_t NO_TEXT = SIZE_MAX;

/* Texts are offsets into those of the snapshot. */
struct dv_kept_member {
    size_t node, host, since;
    int64_t pid, session, made_ms, czxid, first_czxid;
    bool kazoo, follows, is_static;
};

struct dv_kept_item {
    size_t name, node, head, owner;
    size_t member, waiting;
    int64_t token, made_ms, session, pzxid;
    uint16_t head_bytes;
    bool held;
};

/* ---- what the main thread keeps ---- */

void dv_serve_snapshot_keep_member(dv_serve_member *member, const dv_status_member *read) {
    member->session = read->session;
    member->made_ms = read->made_ms;
    member->czxid = read->czxid;
    member->first_czxid = read->first_czxid;
    member->follows = read->follows;
}

int dv_serve_snapshot_keep_item(dv_serve_item *item, const dv_status_item *read) {
    size_t bytes = read->head ? strlen(read->head) : 0;
    char *head = read->head && read->session == 0 ? strdup(read->head) : NULL;
    if (read->head && read->session == 0 && !head) return DIVVY_ENOMEM;
    free(item->head);
    item->head = head;
    item->head_bytes = bytes < UINT16_MAX ? (uint16_t)bytes : UINT16_MAX;
    item->session = read->head ? read->session : 0;
    return 0;
}

/* ---- copying ---- */

/* Appends a text; *at becomes its place. NULL has none. */
static bool add_text(dv_serve_snapshot *s, const char *text, size_t *at) {
    *at = NO_TEXT;
    if (!text) return true;
    size_t bytes = strlen(text) + 1;
    if (s->text_room - s->text_bytes < bytes) {
        size_t room = 2 * s->text_room + bytes + 4096;
        char *grown = realloc(s->texts, room);
        if (!grown) return false;
        s->texts = grown;
        s->text_room = room;
    }
    memcpy(s->texts + s->text_bytes, text, bytes);
    *at = s->text_bytes;
    s->text_bytes += bytes;
    return true;
}

static bool take_member(dv_serve_snapshot *s, const dv_serve_member *m) {
    struct dv_kept_member *kept = &s->members[s->member_count++];
    *kept = (struct dv_kept_member){.pid = m->pid,
                                    .session = m->session,
                                    .made_ms = m->made_ms,
                                    .czxid = m->czxid,
                                    .first_czxid = m->first_czxid,
                                    .kazoo = m->kazoo,
                                    .follows = m->follows,
                                    .is_static = m->is_static};
    return add_text(s, m->node, &kept->node) && add_text(s, m->host ? m->host : "", &kept->host) &&
           add_text(s, m->since ? m->since : "", &kept->since);
}

static bool take_item(dv_serve_snapshot *s, const dv_serve_item *item) {
    struct dv_kept_item *kept = &s->items[s->item_count++];
    bool of_member = item->held && item->owner;
    *kept = (struct dv_kept_item){.member = of_member ? item->owner->number : DV_NO_MEMBER,
                                  .waiting = item->waiting,
                                  .token = item->token,
                                  .made_ms = item->since_ms,
                                  .session = item->session,
                                  .pzxid = item->pzxid,
                                  .head_bytes = item->head_bytes,
                                  .held = item->held};
    return add_text(s, item->name, &kept->name) && add_text(s, item->node, &kept->node) &&
           add_text(s, item->head, &kept->head) &&
           add_text(s, item->held && !of_member ? item->stranger : NULL, &kept->owner);
}

int dv_serve_snapshot_take(dv_serve_snapshot *s, const dv_serve_pool *pool) {
    *s = (dv_serve_snapshot){.stray_count = pool->counts.strays, .found = pool->counts.found};
    s->members = malloc((pool->member_count + 1) * sizeof *s->members);
    s->items = malloc((pool->item_count + 1) * sizeof *s->items);
    s->text_room = 32 * pool->item_count + 128 * pool->member_count; /* as names often are */
    s->texts = malloc(s->text_room + 1);
    s->stray = pool->stray && *pool->stray ? strdup(pool->stray) : NULL;
    bool good = s->members && s->items && s->texts;
    for (size_t i = 0; good && i < pool->member_count; i++) {
        if (pool->members[i]->live) good = take_member(s, pool->members[i]);
    }
    for (size_t i = 0; good && i < pool->item_count; i++) {
        if (pool->items[i].pzxid) good = take_item(s, &pool->items[i]);
    }
    return good ? 0 : DIVVY_ENOMEM;
}

void dv_serve_snapshot_free(dv_serve_snapshot *s) {
    free(s->members);
    free(s->items);
    free(s->texts);
    free(s->stray);
    *s = (dv_serve_snapshot){.members = NULL};
}

/* ---- a status of it ---- */

static char *copy_of(const dv_serve_snapshot *s, size_t text) {
    return strdup(s->texts + text);
}

static bool give_member(const dv_serve_snapshot *s, const struct dv_kept_member *kept, dv_status_member *out) {
    *out = (dv_status_member){.node = copy_of(s, kept->node),
                              .kazoo = kept->kazoo,
                              .host = copy_of(s, kept->host),
                              .pid = kept->pid,
                              .since = copy_of(s, kept->since),
                              .session = kept->session,
                              .made_ms = kept->made_ms,
                              .czxid = kept->czxid,
                              .first_czxid = kept->first_czxid,
                              .follows = kept->follows,
                              .is_static = kept->is_static};
    if (out->node) {
        dv_member parsed = dv_member_parse(out->node);
        out->identifier = parsed.identifier;
        out->can_balance = parsed.kind == DV_DIVVY && parsed.level >= DV_LEVEL_BALANCE;
    }
    return out->node && out->host && out->since;
}

/* Makes a name of so many bytes: limits are judged by the length. */
static char *make_head(size_t bytes) {
    char *head = malloc(bytes + 1);
    if (!head) return NULL;
    memset(head, '_', bytes);
    head[bytes] = '\0';
    return head;
}

/* Names the owner as dv_status_name_owner() does. The pool's word for a persistent stranger has more. */
static char *name_owner(const dv_serve_snapshot *s, const struct dv_kept_item *kept, const dv_status *status) {
    static const char persistent[] = " (persistent)";
    if (kept->member != DV_NO_MEMBER) return strdup(status->members[kept->member].identifier);
    const char *stranger = kept->owner == NO_TEXT ? "" : s->texts + kept->owner;
    size_t bytes = strlen(stranger), more = sizeof persistent - 1;
    bool ends_so = kept->session == 0 && bytes >= more && strcmp(stranger + bytes - more, persistent) == 0;
    return strndup(stranger, ends_so ? bytes - more : bytes);
}

static bool give_item(const dv_serve_snapshot *s, const struct dv_kept_item *kept, const dv_status *status,
                      dv_status_item *out) {
    *out = (dv_status_item){.name = copy_of(s, kept->name),
                            .there = true,
                            .waiting = kept->waiting,
                            .member = kept->member,
                            .token = kept->token,
                            .made_ms = kept->made_ms,
                            .session = kept->session,
                            .pzxid = kept->pzxid};
    if (kept->node != NO_TEXT) out->node = copy_of(s, kept->node);
    else if (out->name) out->node = dv_look_node_of(out->name);
    if (kept->held) out->head = kept->head == NO_TEXT ? make_head(kept->head_bytes) : copy_of(s, kept->head);
    if (kept->held) out->owner = name_owner(s, kept, status);
    return out->name && out->node && (!kept->held || (out->head && out->owner));
}

static void count(dv_status *status) {
    for (size_t i = 0; i < status->item_count; i++) {
        const dv_status_item *item = &status->items[i];
        if (item->head && item->member != DV_NO_MEMBER) status->members[item->member].item_count++;
    }
    for (size_t i = 0; i < status->member_count; i++) {
        size_t load = status->members[i].item_count;
        if (i == 0 || load < status->least_load) status->least_load = load;
        if (load > status->most_load) status->most_load = load;
    }
}

int dv_serve_snapshot_status(const dv_serve_snapshot *s, dv_status *status) {
    dv_status_pool_clear(status);
    status->found = s->found;
    status->stray_count = s->stray_count;
    status->stray = s->stray ? strdup(s->stray) : NULL;
    status->members = calloc(s->member_count + 1, sizeof *status->members);
    status->items = calloc(s->item_count + 1, sizeof *status->items);
    bool good = status->members && status->items && (!s->stray || status->stray);
    while (good && status->member_count < s->member_count) {
        size_t i = status->member_count++;
        good = give_member(s, &s->members[i], &status->members[i]);
    }
    while (good && status->item_count < s->item_count) {
        size_t i = status->item_count++;
        good = give_item(s, &s->items[i], status, &status->items[i]);
    }
    if (!good) return DIVVY_ENOMEM;
    count(status);
    status->read_at_ms = dv_look_wall_ms();
    return 0;
}
