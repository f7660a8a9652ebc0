/* The places in the queues of the items. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "partitioner/handover.h"
#include "znode/path.h"

/* Returns whether that is a change. */
static bool set_wanted(divvy_partitioner *p, dv_item *item, bool wanted, int64_t now) {
    if (item->wanted == wanted) return false;
    item->wanted = wanted;
    if (wanted) dv_tally_wanted(item, now);
    else dv_tally_unwanted(item);
    p->wanted_count += wanted ? 1 : (size_t)-1;
    if (item->held) p->wanted_held += wanted ? 1 : (size_t)-1;
    assert(p->wanted_held <= p->wanted_count);
    return true;
}

static void set_held(divvy_partitioner *p, dv_item *item, bool held) {
    if (item->held == held) return;
    assert(item->place);
    item->held = held;
    if (item->wanted) p->wanted_held += held ? 1 : (size_t)-1;
    assert(p->wanted_held <= p->wanted_count);
}

/* T8: who hands over asks for nothing more. */
static bool may_want(const divvy_partitioner *p, const dv_item *item) {
    return !item->too_long && (p->life != DV_LIFE_HANDING_OVER || (item->shown && !p->withdrawn));
}

bool dv_items_set_target(divvy_partitioner *p, const uint8_t *mine, int64_t now) {
    bool changed = false;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        if (!dv_item_at(p, i)->dealt) changed |= set_wanted(p, dv_item_at(p, i), false, now);
    }
    for (size_t i = 0; i < p->dealt->count; i++) {
        dv_item *item = dv_items_of(p)->dealt[i];
        changed |= set_wanted(p, item, mine[i] != 0 && may_want(p, item), now);
    }
    assert(p->wanted_count <= p->dealt->count);
    p->unfit = 0; /* until a claim has tried */
    p->target_valid = true;
    return changed;
}

bool dv_items_refuse_encoded(divvy_partitioner *p) {
    bool any = false;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (item->plain || !item->wanted) continue;
        set_wanted(p, item, false, 0);
        any = true;
    }
    return any;
}

bool dv_items_lack_shown(const divvy_partitioner *p) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *item = dv_item_at(p, i);
        if (item->shown && !item->wanted && !item->kept) return true;
    }
    return false;
}

/* P4: all of the target that fits is locked, and no node of ours is on its way out or in. */
bool dv_items_complete(const divvy_partitioner *p) {
    bool all_held = p->wanted_held + p->unfit == p->wanted_count;
    return p->target_valid && p->ready && dv_follow_agrees(p) && p->departing == 0 && all_held &&
           dv_client_believed(p->object.client);
}

void dv_items_show(divvy_partitioner *p, size_t i, int64_t now) {
    dv_item *item = dv_item_at(p, i);
    assert(!item->shown && item->held);
    item->shown = true;
    item->prepared = item->prepare_seen = false;
    item->awaited_since = item->prepare_due = 0;
    item->token = dv_contender_token(item->place); /* C7: the czxid of the place fences */
    assert(item->token > 0 && !item->revoked);
    p->shown_count++;
    dv_tally_owned(item, now);
    dv_items_note_owned(p, i);
    dv_snapshot_changed(p);
    dv_report_gain(item);
}

void dv_items_hide(divvy_partitioner *p, size_t i, int64_t now) {
    dv_item *item = dv_item_at(p, i);
    assert(item->shown);
    assert(!item->revoked && p->shown_count > 0);
    item->shown = item->kept = item->leaving = false;
    p->shown_count--;
    dv_tally_disowned(item, now);
    if (item->wanted) dv_tally_wanted(item, now);
    dv_items_note_owned(p, i);
    dv_items_prune(item);
}

/* ---- places ---- */

/* Once for all the replies that wait in the queue, since a claim looks at every item. */
static void claim_later(divvy_partitioner *p) {
    if (p->claim_posted || p->state == DIVVY_FAILURE) return;
    p->claim_posted = true;
    dv_op_begin(p);
    dv_client_post(p->object.client, &p->claim);
}

static void on_claim(dv_event *event, int64_t now) {
    divvy_partitioner *p = DV_CONTAINER(event, divvy_partitioner, claim);
    assert(p->claim_posted);
    p->claim_posted = false;
    dv_items_claim(p, now);
    dv_state_check_complete(p, now);
    dv_op_end(p, now);
}

void dv_items_init(divvy_partitioner *p) {
    p->claim.run = on_claim;
}

void dv_items_leave_place(divvy_partitioner *p, size_t i) {
    dv_item *item = dv_item_at(p, i);
    dv_contender *place = item->place;
    if (!place) return;
    dv_handover_leave(item, place); /* It asks how things stand now. */
    set_held(p, item, false);
    item->place = NULL;
    p->departing++;
    assert(!item->held && p->departing > 0);
    dv_items_prune(item);
}

void dv_items_leave_all(divvy_partitioner *p, bool shown_too) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        if (shown_too || !dv_item_at(p, i)->shown) dv_items_leave_place(p, i);
    }
}

void dv_items_drop_unwanted(divvy_partitioner *p) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        if (!dv_item_at(p, i)->wanted && !dv_item_at(p, i)->shown) dv_items_leave_place(p, i);
    }
}

static void on_held(void *owner, dv_contender *contender, int64_t now) {
    dv_item *item = owner;
    divvy_partitioner *p = item->partitioner;
    assert(item->place == contender);
    (void)contender;
    set_held(p, item, true);
    bool shows = p->config.mode == DIVVY_INCREMENTAL && p->life != DV_LIFE_LEAVING; /* P17: who leaves gains nothing */
    if (shows && dv_client_believed(p->object.client)) dv_items_show(p, item->index, now);
    dv_state_check_complete(p, now);
}

static void on_failed(void *owner, dv_contender *contender, int error, int64_t now) {
    dv_item *item = owner;
    divvy_partitioner *p = item->partitioner;
    assert(item->place == contender);
    (void)contender;
    if (item->held) {
        dv_client_warn(p->object.client, DIVVY_WARN_NODE_GONE,
                       "the lock of %s was deleted by somebody else; the item is lost, and its lock made again",
                       item->directory);
        set_held(p, item, false);
        dv_state_item_lost(p, item->index, now);
    }
    item->place = NULL;
    p->departing++; /* until gone() */
    dv_items_prune(item);
    if (error == DIVVY_ENOENT) {
        item->has_directory = false; /* Somebody removed it, or our node: make it again. */
        claim_later(p);
    } else {
        dv_state_fail(p, error, error == DIVVY_EACCES ? DIVVY_REASON_DENIED : DIVVY_REASON_FOREIGN, now,
                      "no place in the queue %s can be had: %s", item->directory, divvy_strerror(error));
    }
}

static void on_directory_given_up(void *context, const dv_reply *reply, int64_t now) {
    dv_item *item = context;
    divvy_partitioner *p = item->partitioner;
    (void)reply; /* Not empty, or gone: both are well. */
    dv_item_unref(item);
    dv_op_end(p, now);
}

/* P15: sets that change for years leave no directories behind. Other members' places keep it, and a member that enters
 * later makes it again. kazoo does not, so it stays while a kazoo member is there. */
static void give_up_directory(divvy_partitioner *p, dv_item *item) {
    if (item->dealt || p->kazoo_seen || p->state == DIVVY_FAILURE || !dv_client_connected(p->object.client)) return;
    if (dv_batch_delete(p->object.client->batch, item->directory, on_directory_given_up, item) != 0) return;
    item->has_directory = false;
    dv_item_ref(item);
    dv_op_begin(p);
}

static void on_gone(void *owner, dv_contender *contender, int64_t now) {
    dv_item *item = owner;
    divvy_partitioner *p = item->partitioner;
    if (item->place == contender) {
        set_held(p, item, false); /* With the session; state.c hears of that by itself. */
        item->place = NULL;
        dv_items_prune(item);
    } else {
        assert(p->departing > 0);
        if (--p->departing == 0) claim_later(p);
        give_up_directory(p, item);
    }
    if (!item->shown) dv_tally_free(item, now);
    dv_client_changed(p->object.client);
    dv_state_check_complete(p, now);
    if (p->life >= DV_LIFE_FINISHING) dv_items_tidy(p, now);
    dv_item_unref(item);
    dv_op_end(p, now);
}

static const dv_contender_events place_events = {on_held, on_failed, on_gone};

/* ---- claiming ---- */

static void on_directory(void *context, const dv_reply *reply, int64_t now) {
    dv_item *item = context;
    divvy_partitioner *p = item->partitioner;
    int error = reply->error;
    assert(item->making_directory);
    item->making_directory = false;
    if (error == 0 || error == DIVVY_EEXIST) {
        item->has_directory = true;
        item->made_directory = error == 0;
        claim_later(p);
    } else if (error == DIVVY_ENOENT) {
        p->ready = false; /* P/locks itself has gone. One request for it is enough, however many items say so. */
        dv_members_connected(p, now);
    } else if (dv_outcome_unknown(error)) {
        dv_client_again(p->object.client); /* unless a connection ends before, which claims as well */
    } else if (!dv_session_over(error)) {
        dv_state_fail(p, error, DIVVY_REASON_DENIED, now, "the queue %s cannot be made: %s", item->directory,
                      divvy_strerror(error));
    }
    dv_item_unref(item);
    dv_op_end(p, now);
}

static void make_directory(divvy_partitioner *p, dv_item *item) {
    assert(!item->has_directory);
    if (item->making_directory || !dv_client_connected(p->object.client)) return;
    if (dv_batch_create(p->object.client->batch, item->directory, "", 0, DV_PERSISTENT, on_directory, item) != 0) {
        dv_client_again(p->object.client);
        return;
    }
    item->making_directory = true;
    dv_item_ref(item);
    dv_op_begin(p);
}

static int enter_place(divvy_partitioner *p, dv_item *item) {
    assert(item->wanted && !item->place && item->has_directory);
    bool awaited = dv_take_is_awaited(item);
    const dv_queue_kind *kind = item->made_directory || awaited ? &dv_fresh_queue : &dv_exclusive_queue;
    int error = dv_contender_enter(&item->place, p->object.client, item->directory, kind, p->identifier_node,
                                   &place_events, item);
    if (error) return error;
    if (awaited) dv_contender_tell_placed(item->place, dv_take_placed);
    if (p->handover) dv_contender_tell_waits(item->place, dv_take_waits);
    item->made_directory = false;
    dv_item_ref(item);
    dv_op_begin(p);
    return 0;
}

static void tell_short(divvy_partitioner *p) {
    assert(p->unfit <= p->wanted_count);
    bool is_short = p->unfit > 0;
    if (is_short != p->is_short) dv_snapshot_changed(p);
    p->is_short = is_short;
    if (!is_short) return;
    dv_report_warn_once(p, DIVVY_WARN_SHORT,
                        "%s: %zu of the %zu items of this member's share do not fit the session's budget of %zu bytes "
                        "for ephemeral paths and stay unowned; shorten names, or add members",
                        p->path, p->unfit, p->wanted_count, p->object.client->ephemerals.limit_bytes);
}

/* P9: in the order of the names, as far as they fit. Places that the watch budget holds back follow later. */
void dv_items_claim(divvy_partitioner *p, int64_t now) {
    if (p->state == DIVVY_FAILURE || !p->target_valid || !p->ready) return;
    if (p->wanted_held == p->wanted_count) {
        p->unfit = 0;
        tell_short(p);
        return;
    }
    size_t unfit = 0;
    int error = 0;
    for (size_t i = 0; i < dv_item_count(p) && error != DIVVY_EBUSY; i++) {
        dv_item *item = dv_item_at(p, i);
        if (!item->wanted || item->place || !dv_take_may_enter(item, now)) continue;
        if (error == DIVVY_ELIMIT) unfit++;
        else if (!item->has_directory) make_directory(p, item);
        else if ((error = enter_place(p, item)) == DIVVY_ELIMIT) unfit++;
        if (error == DIVVY_ENOMEM) {
            dv_state_fail(p, error, DIVVY_REASON_TIMEOUT, now, "out of memory");
            return;
        }
    }
    /* Places that are leaving may make room yet: only then is it known what does not fit. */
    p->unfit = p->departing ? 0 : unfit;
    assert(p->wanted_held + p->unfit <= p->wanted_count);
    if (!p->departing) tell_short(p);
}

/* ---- directories ---- */

void dv_items_note_directories(divvy_partitioner *p, const dv_reply *list) {
    const char **names = (const char **)(uintptr_t)malloc((list->child_count + 1) * sizeof *names);
    if (!names) return; /* Making one that is there already does no harm. */
    for (size_t i = 0; i < list->child_count; i++) names[i] = list->children[i];
    qsort(names, list->child_count, sizeof *names, dv_name_compare);
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const char *node = dv_path_last(dv_item_at(p, i)->directory);
        dv_item_at(p, i)->has_directory =
            bsearch(&node, names, list->child_count, sizeof *names, dv_name_compare) != NULL;
    }
    free(names);
}

static void directories_known(divvy_partitioner *p, int64_t now) {
    p->ready = true;
    dv_items_claim(p, now);
    dv_state_check_complete(p, now);
}

static void directories_unknown(divvy_partitioner *p, int error, int64_t now) {
    if (dv_outcome_unknown(error)) dv_client_again(p->object.client);
    else if (error == DIVVY_ENOENT) dv_members_connected(p, now); /* P/locks has gone since it was made. */
    else if (!dv_session_over(error))
        dv_state_fail(p, error, DIVVY_REASON_DENIED, now, "%s cannot be read: %s", p->locks_path,
                      divvy_strerror(error));
}

static void on_directories(void *context, const dv_reply *reply, int64_t now) {
    divvy_partitioner *p = context;
    assert(p->ready_asked && !p->ready);
    p->ready_asked = false;
    if (reply->error == 0) {
        dv_items_note_directories(p, reply);
        directories_known(p, now);
    } else {
        directories_unknown(p, reply->error, now);
    }
    dv_op_end(p, now);
}

/* The names of 100,000 are more than a megabyte. Where there are none, or as many as items, their number says enough:
 * one that is missing all the same is made when a place cannot be entered in it. */
static void on_directory_count(void *context, const dv_reply *reply, int64_t now) {
    divvy_partitioner *p = context;
    assert(p->ready_asked && !p->ready);
    size_t items = dv_item_count(p), there = reply->error ? 0 : (size_t)reply->stat->children;
    bool telling = there == 0 || there >= items;
    if (reply->error == 0 && !telling &&
        dv_znode_children(p->object.client->znode, p->locks_path, NULL, on_directories, p) == 0)
        return; /* and still asked */
    p->ready_asked = false;
    p->never_used = reply->error == 0 && there == 0 && reply->stat->pzxid == reply->stat->czxid;
    if (reply->error == 0 && telling) {
        for (size_t i = 0; i < items; i++) dv_item_at(p, i)->has_directory = there > 0;
        directories_known(p, now);
    } else {
        directories_unknown(p, reply->error ? reply->error : DIVVY_ENOMEM, now);
    }
    dv_op_end(p, now);
}

/* P9: members make directories for one another's items; one read tells of all of them, and spares failing creates. */
void dv_items_refresh_directories(divvy_partitioner *p) {
    bool unknown = false;
    for (size_t i = 0; i < dv_item_count(p) && !unknown; i++) {
        unknown = dv_item_at(p, i)->wanted && !dv_item_at(p, i)->has_directory;
    }
    if (!unknown || !p->ready) return;
    assert(!p->ready_asked);
    p->ready = false;
    if (dv_client_connected(p->object.client)) dv_items_read_directories(p);
}

void dv_items_read_directories(divvy_partitioner *p) {
    assert(!p->ready_asked && !p->ready);
    if (dv_znode_exists(p->object.client->znode, p->locks_path, NULL, on_directory_count, p) != 0) {
        dv_client_again(p->object.client);
        return;
    }
    p->ready_asked = true;
    dv_op_begin(p);
}

/* ---- the end ---- */

bool dv_items_all_gone(const divvy_partitioner *p) {
    return p->departing == 0 && !p->membership && dv_handover_at_rest(p) && p->life == DV_LIFE_TIDIED;
}
