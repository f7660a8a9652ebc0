/* The directories of the items' queues: those that exist, are made, are deleted. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules P9, P12, P15. P/locks is made first, and read for what is there; then the member is
 * `ready`. */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "partitioner/partitioner.h"
#include "znode/ensure.h"
#include "znode/path.h"

static bool has_bit(const uint8_t *bits, size_t i) {
    return bits[i / CHAR_BIT] & 1u << i % CHAR_BIT;
}

static void set_bit(uint8_t *bits, size_t i, bool on) {
    uint8_t bit = (uint8_t)(1u << i % CHAR_BIT);
    bits[i / CHAR_BIT] = on ? bits[i / CHAR_BIT] | bit : bits[i / CHAR_BIT] & (uint8_t)~bit;
}

/* ---- what waits for a directory ---- */

static void on_claim(dv_event *event, int64_t now) {
    divvy_partitioner *p = DV_CONTAINER(event, divvy_partitioner, claim);
    event->run = NULL;
    p->events->may_claim(p, now);
    dv_op_end(p, now);
}

void dv_directories_claim_later(divvy_partitioner *p) {
    if (p->state != DIVVY_FAILURE) dv_op_post(p, &p->claim, on_claim);
}

void dv_directories_fail(void *partitioner, int error, const char *path, int64_t now) {
    dv_life_fail(partitioner, error, DIVVY_REASON_DENIED, now, "%s cannot be made: %s", path, divvy_strerror(error));
}

/* ---- what is known ---- */

/* Bits for the items that are dealt. What was known of them by another set holds. Returns NULL without memory. */
static uint8_t *known_bits(divvy_partitioner *p) {
    dv_known_directories *known = &p->directories;
    if (known->set == p->dealt) return known->bits;
    const dv_plan_set *old = known->set, *set = p->dealt;
    uint8_t *bits = calloc(set->count / CHAR_BIT + 1, 1);
    if (!bits) return NULL;
    for (size_t i = 0, at = 0; old && i < old->count && at < set->count; i++) {
        if (!has_bit(known->bits, i)) continue;
        at = dv_plan_set_find(set, old->names[i], at);
        if (at < set->count && strcmp(set->names[at], old->names[i]) == 0) set_bit(bits, at, true);
    }
    dv_directories_free(p);
    *known = (dv_known_directories){dv_plan_set_ref(p->dealt), bits};
    return bits;
}

void dv_directories_free(divvy_partitioner *p) {
    dv_plan_set_unref(p->directories.set);
    free(p->directories.bits);
    p->directories = (dv_known_directories){NULL, NULL};
}

bool dv_directory_exists(const dv_item *item) {
    divvy_partitioner *p = item->partitioner;
    const uint8_t *bits = item->dealt && !item->dir.exists && p->directories.set ? known_bits(p) : NULL;
    return item->dir.exists || (bits && has_bit(bits, item->number));
}

static void note_directory(dv_item *item, bool exists) {
    divvy_partitioner *p = item->partitioner;
    item->dir.exists = exists;
    uint8_t *bits = item->dealt && (exists || p->directories.set) ? known_bits(p) : NULL;
    if (bits) set_bit(bits, item->number, exists);
}

char *dv_directory_item(const char *node) {
    size_t name_bytes = dv_name_decode(node, NULL, 0) + 1, node_bytes = strlen(node) + 1;
    char *name = malloc(name_bytes), *again = malloc(node_bytes);
    bool can_be = name && again;
    if (can_be) dv_name_decode(node, name, name_bytes);
    can_be = can_be && dv_name_encode(name, again, node_bytes) + 1 == node_bytes && strcmp(again, node) == 0;
    free(again);
    if (can_be) return name;
    free(name);
    return NULL;
}

/* ---- one directory ---- */

static void on_directory(void *context, const dv_reply *reply, int64_t now) {
    dv_item *item = context;
    divvy_partitioner *p = item->partitioner;
    int error = reply->error;
    assert(item->dir.requested);
    item->dir.requested = false;
    if (error == 0 || error == DIVVY_EEXIST) {
        note_directory(item, true);
        item->dir.fresh = error == 0;
        dv_directories_claim_later(p);
    } else if (error == DIVVY_ENOENT) {
        p->ready = false; /* P/locks itself has gone. One request for it is enough, however many items say so. */
        p->events->locks_gone(p, now);
    } else if (dv_outcome_unknown(error)) {
        dv_client_again(p->object.client); /* unless a connection ends before, which claims as well */
    } else if (!dv_session_over(error)) {
        dv_life_fail(p, error, DIVVY_REASON_DENIED, now, "the queue %s cannot be made: %s", item->directory,
                     divvy_strerror(error));
    }
    dv_item_unref(item);
    dv_op_end(p, now);
}

void dv_directory_make(dv_item *item) {
    divvy_partitioner *p = item->partitioner;
    assert(!dv_directory_exists(item));
    if (item->dir.requested || !dv_client_connected(p->object.client)) return;
    if (dv_batch_create(p->object.client->znode, item->directory, "", 0, DV_PERSISTENT, on_directory, item) != 0) {
        dv_client_again(p->object.client);
        return;
    }
    item->dir.requested = true;
    dv_item_ref(item);
    dv_op_begin(p);
}

void dv_directory_used(dv_item *item) {
    item->dir.fresh = false;
}

void dv_directory_gone(dv_item *item) {
    note_directory(item, false);
}

static void on_directory_given_up(void *context, const dv_reply *reply, int64_t now) {
    dv_item *item = context;
    divvy_partitioner *p = item->partitioner;
    (void)reply; /* It may have children, or be gone. */
    dv_item_unref(item);
    dv_op_end(p, now);
}

/* P12: a place keeps it, and a member that enters later makes it again. kazoo does not, so it stays beside kazoo. */
void dv_directory_give_up(dv_item *item) {
    divvy_partitioner *p = item->partitioner;
    if (item->dealt || p->kazoo_seen || p->state == DIVVY_FAILURE || !dv_client_connected(p->object.client)) return;
    if (dv_batch_delete(p->object.client->znode, item->directory, on_directory_given_up, item) != 0) return;
    item->dir.exists = false;
    dv_item_ref(item);
    dv_op_begin(p);
}

/* ---- all of them ---- */

/* All that is known becomes `exist`. */
static void note_all(divvy_partitioner *p, bool exist) {
    uint8_t *bits = exist || p->directories.set ? known_bits(p) : NULL;
    if (bits) memset(bits, exist ? UINT8_MAX : 0, p->dealt->count / CHAR_BIT + 1);
    for (size_t i = 0; i < dv_item_count(p); i++) note_directory(dv_item_at(p, i), exist);
}

/* Where memory is short less is known. Making a directory that is there already does no harm. */
static void note_child(divvy_partitioner *p, const char *node) {
    char *name = dv_directory_item(node);
    dv_item *item = name ? dv_item_find(p, name) : NULL;
    uint8_t *bits = name && !item ? known_bits(p) : NULL;
    size_t at = bits ? dv_plan_set_find(p->dealt, name, 0) : 0;
    if (item) note_directory(item, true);
    else if (bits && at < p->dealt->count && strcmp(p->dealt->names[at], name) == 0) set_bit(bits, at, true);
    free(name);
}

static void note_list(divvy_partitioner *p, const dv_reply *list) {
    note_all(p, false);
    for (size_t i = 0; i < list->child_count; i++) note_child(p, list->children[i]);
}

/* The directories are known; or, for `error`, they are not. */
static void end_reading(divvy_partitioner *p, int error, int64_t now) {
    assert(p->ready_requested && !p->ready);
    p->ready_requested = false;
    p->ready = error == 0;
    if (p->ready) p->events->may_claim(p, now);
    else if (dv_outcome_unknown(error)) dv_client_again(p->object.client);
    else if (error == DIVVY_ENOENT) p->events->locks_gone(p, now); /* P/locks has gone since it was made. */
    else if (!dv_session_over(error))
        dv_life_fail(p, error, DIVVY_REASON_DENIED, now, "%s cannot be read: %s", p->locks_path, divvy_strerror(error));
    dv_op_end(p, now);
}

static void on_directories(void *context, const dv_reply *reply, int64_t now) {
    if (reply->error == 0) note_list(context, reply);
    end_reading(context, reply->error, now);
}

/* Spares the names, which may be a megabyte, where their number is enough: a failing enter makes what is missing. */
static void on_directory_count(void *context, const dv_reply *reply, int64_t now) {
    divvy_partitioner *p = context;
    size_t items = p->dealt->count, there = reply->error ? 0 : (size_t)reply->stat->children;
    bool telling = reply->error == 0 && (there == 0 || there >= items);
    if (reply->error == 0) p->renews_nothing = reply->stat->acl_version != 0;
    if (reply->error == 0 && !telling &&
        dv_znode_children(p->object.client->znode, p->locks_path, NULL, on_directories, p) == 0)
        return; /* and still asked */
    p->never_used = reply->error == 0 && there == 0 && reply->stat->pzxid == reply->stat->czxid;
    if (telling) note_all(p, there > 0);
    int error = reply->error ? reply->error : DIVVY_ENOMEM;
    end_reading(p, telling ? 0 : error, now);
}

static void read_directories(divvy_partitioner *p) {
    assert(!p->ready_requested && !p->ready);
    if (dv_znode_exists(p->object.client->znode, p->locks_path, NULL, on_directory_count, p) != 0) {
        dv_client_again(p->object.client);
        return;
    }
    p->ready_requested = true;
    dv_op_begin(p);
}

/* P9: members make directories for one another's items; one read tells of all of them, and spares failing creates. */
void dv_directories_refresh(divvy_partitioner *p) {
    bool unknown = false;
    for (size_t i = 0; i < dv_item_count(p) && !unknown; i++) {
        unknown = dv_item_at(p, i)->life.wanted && !dv_directory_exists(dv_item_at(p, i));
    }
    if (!unknown || !p->ready) return;
    assert(!p->ready_requested);
    p->ready = false;
    if (dv_client_connected(p->object.client)) read_directories(p);
}

/* ---- P/locks ---- */

static void on_locks_path(void *context, int error, int64_t now) {
    divvy_partitioner *p = context;
    assert(p->ready_requested && !p->ready);
    p->ready_requested = false;
    bool over = dv_session_over(error);
    if (p->state != DIVVY_FAILURE && !over) {
        if (error == 0) read_directories(p);
        else if (dv_outcome_unknown(error)) p->events->locks_gone(p, now);
        else dv_directories_fail(p, error, p->locks_path, now);
    }
    dv_op_end(p, now);
}

void dv_directories_connected(divvy_partitioner *p) {
    if (p->ready || p->ready_requested) return;
    p->ready_requested = dv_ensure_path(p->object.client->znode, p->locks_path, DV_PERSISTENT, on_locks_path, p) == 0;
    if (p->ready_requested) dv_op_begin(p);
    else dv_client_again(p->object.client);
}

void dv_directories_forget(divvy_partitioner *p) {
    assert(!p->ready_requested);
    p->ready = false;
}
