/* A pool as divvy serve remembers it. SPDX-License-Identifier: Apache-2.0 */
#include "serve_pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "pool/whom.h"
#include "serve_holdups.h"
#include "serve_rules.h"
#include "serve_snapshot.h"
#include "status_plan.h"
#include "status_rules.h"

/* A reading, on its way into the pool. */
typedef struct {
    dv_serve_pool *pool;
    const dv_status *status;
    dv_serve_member **of_live, **of_entry; /* the members of status->members, of status->entries */
    bool first;                            /* nothing was known: nothing has happened */
    int64_t now_ms;
} update;

int dv_serve_pool_init(dv_serve_pool *pool, const char *path) {
    *pool = (dv_serve_pool){.path = strdup(path), .counts = {.reason = ""}, .told_state = ""};
    return pool->path ? dv_serve_history_init(&pool->history) : DIVVY_ENOMEM;
}

static void free_member(dv_serve_member *m) {
    free(m->node);
    free(m->identifier);
    free(m->host);
    free(m->since);
    free(m->zone);
    free(m->tags);
    free(m);
}

static void free_item(dv_serve_item *item) {
    free(item->name);
    free(item->node);
    free(item->stranger);
    free(item->head);
    free(item->why);
}

void dv_serve_pool_free(dv_serve_pool *pool) {
    for (size_t i = 0; i < pool->member_count; i++) free_member(pool->members[i]);
    for (size_t i = 0; i < pool->item_count; i++) free_item(&pool->items[i]);
    free(pool->members);
    free(pool->items);
    free(pool->stray);
    free(pool->path);
    dv_serve_history_free(&pool->history);
}

void dv_serve_pool_settle(dv_serve_pool *pool) {
    for (size_t i = 0; i < pool->member_count; i++) pool->members[i]->changed = false;
    for (size_t i = 0; i < pool->item_count; i++) pool->items[i].changed = false;
    pool->gone = false;
}

/* ---- items ---- */

static int compare_items(const void *a, const void *b) {
    return strcmp(((const dv_serve_item *)a)->name, ((const dv_serve_item *)b)->name);
}

static dv_serve_item *find_among(const dv_serve_pool *pool, size_t count, const char *name) {
    dv_serve_item like = {.name = (char *)(uintptr_t)name};
    return count ? bsearch(&like, pool->items, count, sizeof like, compare_items) : NULL;
}

dv_serve_item *dv_serve_pool_find(const dv_serve_pool *pool, const char *name) {
    return find_among(pool, pool->item_count, name);
}

/* Appends an item; the caller sorts. */
static dv_serve_item *add_item(update *u, const char *name) {
    dv_serve_pool *pool = u->pool;
    if (pool->item_count == pool->item_room) {
        size_t room = pool->item_room ? pool->item_room + pool->item_room / 2 : 64;
        dv_serve_item *grown = realloc(pool->items, room * sizeof *grown);
        if (!grown) return NULL;
        pool->items = grown;
        pool->item_room = room;
    }
    dv_serve_item *item = &pool->items[pool->item_count];
    *item = (dv_serve_item){.name = strdup(name), .came_ms = u->first ? 0 : u->now_ms, .changed = true};
    if (!item->name) return NULL;
    pool->item_count++;
    return item;
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Returns whether one node of a member took the place of the other. `before` NULL: its node had gone. */
static bool is_restart(const dv_serve_member *before, const dv_serve_member *now) {
    if (!now || !now->is_static || before == now) return false;
    return !before || before->pid != now->pid || !same_text(before->host, now->host) ||
           !same_text(before->since, now->since);
}

/* Notes a change of hands, at `ms`. */
static void tell_change(update *u, const dv_serve_item *item, const char *from, const dv_serve_member *before,
                        int64_t ms) {
    const char *to = dv_serve_item_owner(item);
    if (u->first) return;
    u->pool->moves++;
    bool restarted = from && same_text(from, to) && is_restart(before, item->owner);
    dv_serve_history_add(&u->pool->history, ms, restarted ? DV_SERVE_RESTARTED : DV_SERVE_ITEM, item->name, from, to);
}

/* Takes over who owns the item. */
static int take_owner(update *u, dv_serve_item *item, const dv_status_item *read) {
    const dv_serve_member *former = item->owner;
    const char *before = dv_serve_item_owner(item);
    char *from = before ? strdup(before) : NULL;
    char *stranger = NULL;
    if (read->head && read->member == DV_NO_MEMBER &&
        asprintf(&stranger, "%s%s", read->owner, read->session ? "" : " (persistent)") < 0)
        stranger = NULL;
    bool good = !from == !before && (stranger || !read->head || read->member != DV_NO_MEMBER);
    if (!good) {
        free(from);
        free(stranger);
        return DIVVY_ENOMEM;
    }
    int64_t token = item->token;
    free(item->stranger);
    item->stranger = stranger;
    item->held = read->head;
    item->owner = read->head && read->member != DV_NO_MEMBER ? u->of_live[read->member] : NULL;
    item->token = read->head ? read->token : 0;
    const char *owner = dv_serve_item_owner(item);
    if (!same_text(from, owner) || (from && item->token != token)) {
        item->changed = true;
        item->asked_ms = 0;
        item->seen = !u->first;
        item->since_ms = u->first ? read->made_ms : u->now_ms;
        tell_change(u, item, from, former, u->now_ms);
    }
    free(from);
    return 0;
}

/* An item that the plan gained has had no owner for as long as is known. */
static int take_item(update *u, dv_serve_item *item, const dv_status_item *read) {
    item->marked = read->there;
    item->changed = item->changed || item->waiting != read->waiting;
    item->waiting = read->waiting;
    item->pzxid = read->pzxid;
    char *usual = dv_look_node_of(read->name);
    if (!usual) return DIVVY_ENOMEM;
    free(item->node);
    item->node = strcmp(usual, read->node) == 0 ? NULL : strdup(read->node);
    bool good = item->node || strcmp(usual, read->node) == 0;
    free(usual);
    int error = good ? dv_serve_snapshot_keep_item(item, read) : DIVVY_ENOMEM;
    return error ? error : take_owner(u, item, read);
}

static int take_items(update *u) {
    const dv_status *status = u->status;
    size_t known = u->pool->item_count;
    int error = 0;
    for (size_t i = 0; !error && i < status->item_count; i++) {
        const dv_status_item *read = &status->items[i];
        dv_serve_item *item = find_among(u->pool, known, read->name);
        if (!item && !read->there) continue;
        if (!item) item = add_item(u, read->name);
        error = item ? take_item(u, item, read) : DIVVY_ENOMEM;
    }
    if (u->pool->item_count > known) qsort(u->pool->items, u->pool->item_count, sizeof *u->pool->items, compare_items);
    return error;
}

/* Gives each item what the plan has for it; items without a directory are there too. */
static int take_plan(update *u) {
    dv_serve_pool *pool = u->pool;
    const dv_plan *plan = dv_status_plan(u->status);
    size_t known = pool->item_count;
    bool good = true, ruled = dv_status_rules_hold(u->status);
    for (size_t i = 0; i < known; i++) pool->items[i].in_plan = false;
    for (size_t i = 0; plan && good && i < plan->set->count; i++) {
        dv_serve_item *item = find_among(pool, known, plan->set->names[i]);
        if (!item) item = add_item(u, plan->set->names[i]);
        good = item;
        if (!good) break;
        item->in_plan = true;
        const dv_plan_member *to = dv_plan_member_at(plan, plan->owners[i]);
        dv_serve_member *next = u->status->in_force && to ? u->of_entry[to - plan->members] : NULL;
        item->changed = item->changed || item->next != next || item->ruled != ruled;
        item->next = next;
        item->ruled = ruled;
        good = dv_serve_rules_item(item, &u->status->rules, i) == 0;
    }
    for (size_t i = 0; i < known; i++) {
        dv_serve_item *item = &pool->items[i];
        if (item->in_plan || (!item->next && !item->rule)) continue;
        item->next = NULL;
        dv_serve_rules_forget(item);
        item->changed = true;
    }
    if (pool->item_count > known) qsort(pool->items, pool->item_count, sizeof *pool->items, compare_items);
    return good ? 0 : DIVVY_ENOMEM;
}

static void lose_directory(update *u, dv_serve_item *item) {
    const char *owner = dv_serve_item_owner(item);
    int64_t now_ms = u->now_ms;
    item->pzxid = 0;
    item->waiting = 0;
    item->held = false;
    item->owner = NULL;
    if (!owner) return;
    tell_change(u, item, owner, NULL, now_ms);
    item->since_ms = now_ms;
    item->seen = true;
    item->changed = true;
}

/* Drops items that have neither a directory nor a place in the plan. */
static void sift_items(update *u, bool whole) {
    dv_serve_pool *pool = u->pool;
    size_t kept = 0;
    for (size_t i = 0; i < pool->item_count; i++) {
        dv_serve_item *item = &pool->items[i];
        if (whole && !item->marked) lose_directory(u, item);
        item->marked = false;
        if (item->pzxid || item->in_plan) {
            pool->items[kept++] = *item;
            continue;
        }
        dv_serve_history_gone(&pool->history, item->name, item->came_ms, u->now_ms);
        item->name = NULL; /* It is the history's. */
        free_item(item);
        pool->gone = true;
    }
    pool->item_count = kept;
}

/* ---- members ---- */

static dv_serve_member *find_member(const dv_serve_pool *pool, size_t count, const char *node, bool live) {
    for (size_t i = 0; i < count; i++) {
        if (pool->members[i]->live == live && strcmp(pool->members[i]->node, node) == 0) return pool->members[i];
    }
    return NULL;
}

static dv_serve_member *add_member(dv_serve_pool *pool, const char *node, const char *identifier, bool live) {
    dv_serve_member **grown = realloc(pool->members, (pool->member_count + 1) * sizeof *grown);
    if (grown) pool->members = grown;
    dv_serve_member *m = grown ? calloc(1, sizeof *m) : NULL;
    if (!m) return NULL;
    *m = (dv_serve_member){.node = strdup(node), .identifier = strdup(identifier), .live = live, .state = ""};
    if (!m->node || !m->identifier) {
        free_member(m);
        return NULL;
    }
    m->changed = true;
    pool->members[pool->member_count++] = m;
    return m;
}

static int set_text(char **place, const char *text) {
    if (same_text(*place, text)) return 0;
    char *copy = strdup(text ? text : "");
    if (!copy) return DIVVY_ENOMEM;
    free(*place);
    *place = copy;
    return 0;
}

static int take_facts(dv_serve_member *m, const dv_status *status, const dv_status_member *read,
                      const dv_status_entry *e) {
    const char *state = dv_status_plan_state(e ? e->entry : NULL, read);
    size_t planned = e ? e->item_count : 0;
    uint32_t weight = e ? e->entry->weight : 0;
    m->changed = m->changed || m->planned != planned || m->weight != weight || strcmp(m->state, state) != 0;
    m->marked = true;
    m->in_plan = e;
    m->planned = planned;
    m->weight = weight;
    m->state = state;
    m->kazoo = read && read->kazoo;
    m->is_static = read && read->is_static;
    m->pid = read ? read->pid : 0;
    if (read) dv_serve_snapshot_keep_member(m, read);
    int error = dv_serve_rules_member(m, &status->rules, e ? e->entry : NULL);
    if (!error) error = set_text(&m->zone, e ? e->entry->zone : "");
    if (!error) error = set_text(&m->host, read ? read->host : "");
    return error ? error : set_text(&m->since, read ? read->since : "");
}

/* Finds it among the first `known`, which come in no order that helps when many are new. */
static int take_member(update *u, size_t known, dv_serve_member **out, const char *node, const char *identifier,
                       bool live) {
    *out = find_member(u->pool, known, node, live);
    if (!*out) *out = add_member(u->pool, node, identifier, live);
    return *out ? 0 : DIVVY_ENOMEM;
}

/* Finds another node of a live static member. Those that have gone are among the first `count` yet. */
static const dv_serve_member *find_namesake(const dv_serve_pool *pool, size_t count, const dv_serve_member *m) {
    for (size_t i = 0; m->is_static && i < count; i++) {
        const dv_serve_member *other = pool->members[i];
        if (other != m && other->live && other->is_static && strcmp(other->identifier, m->identifier) == 0)
            return other;
    }
    return NULL;
}

/* Tells of the member's node, which is new. */
static void tell_joined(update *u, size_t known, const dv_serve_member *m) {
    const dv_serve_member *before = find_namesake(u->pool, known, m);
    if (u->first || (before && !is_restart(before, m))) return;
    dv_serve_history_add(&u->pool->history, u->now_ms, before ? DV_SERVE_RESTARTED : DV_SERVE_JOINED, m->identifier,
                         NULL, NULL);
}

static int take_members(update *u) {
    const dv_status *status = u->status;
    size_t known = u->pool->member_count;
    int error = 0;
    for (size_t i = 0; !error && i < status->member_count; i++) {
        const dv_status_member *read = &status->members[i];
        error = take_member(u, known, &u->of_live[i], read->node, read->identifier, true);
        bool is_new = !error && !find_member(u->pool, known, read->node, true);
        if (!error) error = take_facts(u->of_live[i], status, read, read->entry);
        if (!error && is_new) tell_joined(u, known, u->of_live[i]);
    }
    for (size_t i = 0; !error && i < status->entry_count; i++) {
        const dv_status_entry *e = &status->entries[i];
        if (e->member != DV_NO_MEMBER) u->of_entry[i] = u->of_live[e->member];
        if (e->member != DV_NO_MEMBER || !dv_status_plan_shows(status, e)) continue;
        error = take_member(u, known, &u->of_entry[i], e->entry->key, dv_whom_identifier(e->entry), false);
        if (!error) error = take_facts(u->of_entry[i], status, NULL, e);
    }
    return error;
}

/* Items of members that have gone are a stranger's until they are read again. */
static int forget_members(dv_serve_pool *pool) {
    int error = 0;
    for (size_t i = 0; i < pool->item_count; i++) {
        dv_serve_item *item = &pool->items[i];
        if (item->next && !item->next->marked) item->next = NULL;
        if (!item->owner || item->owner->marked) continue;
        free(item->stranger);
        item->stranger = strdup(item->owner->identifier);
        if (!item->stranger) error = DIVVY_ENOMEM;
        item->held = item->stranger;
        item->owner = NULL;
        item->changed = true;
    }
    return error;
}

static int compare_members(const void *a, const void *b) {
    const dv_serve_member *x = *(dv_serve_member *const *)a, *y = *(dv_serve_member *const *)b;
    int order = strcmp(x->identifier, y->identifier);
    return order ? order : strcmp(x->node, y->node);
}

/* Returns whether another node of the member at `i` is there: among the first `kept`, or marked behind it. */
static bool has_successor(const dv_serve_pool *pool, size_t kept, size_t i, const dv_serve_member *m) {
    if (find_namesake(pool, kept, m)) return true;
    for (size_t k = i + 1; m->is_static && k < pool->member_count; k++) {
        const dv_serve_member *other = pool->members[k];
        if (other->marked && other->live && other->is_static && strcmp(other->identifier, m->identifier) == 0)
            return true;
    }
    return false;
}

static int sift_members(update *u) {
    dv_serve_pool *pool = u->pool;
    size_t kept = 0;
    int error = forget_members(pool);
    for (size_t i = 0; i < pool->member_count; i++) {
        dv_serve_member *m = pool->members[i];
        if (m->marked) {
            m->marked = false;
            pool->members[kept++] = m;
            continue;
        }
        if (m->live && !u->first && !has_successor(pool, kept, i, m))
            dv_serve_history_add(&pool->history, u->now_ms, DV_SERVE_LEFT, m->identifier, NULL, NULL);
        free_member(m);
        pool->gone = true;
    }
    pool->member_count = kept;
    if (kept) qsort(pool->members, kept, sizeof *pool->members, compare_members);
    return error;
}

/* ---- the whole ---- */

static void count_member(dv_serve_counts *c, const dv_serve_member *m) {
    if (!m->live) {
        c->away++;
        c->absent += strcmp(m->state, "absent") == 0;
        return;
    }
    if (c->live++ == 0 || m->items < c->least) c->least = m->items;
    if (m->items > c->most) c->most = m->items;
}

static void count(update *u, int64_t planned_ms) {
    dv_serve_pool *pool = u->pool;
    const dv_plan *plan = dv_status_plan(u->status);
    const dv_plan_memory *memory = u->status->plan ? &u->status->plan->memory : NULL;
    dv_serve_counts c = {
        .strays = u->status->stray_count, .items = pool->item_count, .found = u->status->found, .most_share = -1};
    for (size_t i = 0; i < pool->item_count; i++) {
        dv_serve_item *item = &pool->items[i];
        dv_serve_item_note_pause(item, u->now_ms);
        c.owned += item->held;
        c.paused += dv_serve_item_is_paused(item);
        c.unowned += !item->held && !dv_serve_item_is_paused(item);
        c.moving += dv_serve_item_is_moving(item);
        c.strangers += item->held && !item->owner;
        c.waiting += item->waiting;
        if (item->owner) item->owner->counted++;
    }
    for (size_t i = 0; i < pool->member_count; i++) {
        dv_serve_member *m = pool->members[i];
        m->changed = m->changed || m->items != m->counted;
        m->items = m->counted;
        m->counted = 0;
        m->number = c.live;
        count_member(&c, m);
        if (m->share > c.most_share) c.most_share = m->share;
    }
    c.generation = plan ? plan->header.generation : 0;
    c.reason = plan ? dv_plan_reason_text(plan->header.reason) : "";
    c.in_force = u->status->in_force;
    c.pinned = u->status->rules.pinned;
    c.planned_ms = planned_ms;
    if (memory && memory->standing == DV_PLAN_BROKEN) c.unusable = "broken";
    if (memory && memory->standing == DV_PLAN_NEWER) c.unusable = "of a later release";
    pool->counts = c;
}

static int apply(update *u, bool whole) {
    int error = take_members(u);
    if (!error) error = take_items(u);
    if (!error) error = take_plan(u);
    int sifted = sift_members(u);
    if (!error && !sifted) sift_items(u, whole);
    return error ? error : sifted;
}

static void tell_plan(update *u, uint64_t before) {
    const dv_serve_counts *c = &u->pool->counts;
    char text[32];
    if (u->first || c->generation == before || c->generation == 0) return;
    snprintf(text, sizeof text, "%" PRIu64, c->generation);
    dv_serve_history_add(&u->pool->history, u->now_ms, DV_SERVE_PLAN, text, NULL, c->reason);
}

int dv_serve_pool_apply(dv_serve_pool *pool, const dv_status *status, bool whole, int64_t planned_ms) {
    update u = {.pool = pool, .status = status, .first = pool->read_at_ms == 0};
    u.now_ms = status->read_at_ms ? status->read_at_ms : dv_look_wall_ms();
    u.of_live = calloc(status->member_count + 1, sizeof *u.of_live);
    u.of_entry = calloc(status->entry_count + 1, sizeof *u.of_entry);
    int error = u.of_live && u.of_entry ? apply(&u, whole) : DIVVY_ENOMEM;
    free(u.of_live);
    free(u.of_entry);
    uint64_t generation = pool->counts.generation;
    count(&u, planned_ms);
    if (!error) error = set_text(&pool->stray, status->stray);
    if (error) return error;
    dv_serve_holdups_note(pool, u.now_ms);
    tell_plan(&u, generation);
    pool->read_at_ms = u.now_ms;
    if (u.first) pool->first_read_ms = u.now_ms;
    dv_serve_samples_add(&pool->samples, &(dv_serve_sample){.ms = pool->read_at_ms,
                                                            .items = (uint32_t)pool->counts.items,
                                                            .unowned = (uint32_t)pool->counts.unowned,
                                                            .moving = (uint32_t)pool->counts.moving,
                                                            .members = (uint32_t)pool->counts.live});
    return 0;
}
