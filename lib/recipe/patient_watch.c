/* Patient watch: the children of a node, told once they have stood still. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/patient_watch.h"

#include <assert.h>
#include <stdlib.h>

#include "base/container.h"
#include "base/texts.h"
#include "znode/path.h"

enum { READ_INTERVAL_MIN_MS = 50, AUDIT_INTERVAL_MS = 60000, DEFERRED_AUDIT_MS = 10000, NEVER = -1 };

struct dv_patient_watch {
    dv_event stopping;
    divvy_client *client;
    dv_listener listener;
    const char *path;
    dv_patience patience;
    const dv_patient_watch_events *events;
    void *owner;

    dv_watch watch;
    dv_timer timer; /* the next read */
    bool reading, to_read_again, ended;
    unsigned under_way;

    bool told;          /* something has settled before */
    int64_t told_pzxid; /* of what settled last */
    char **told_names;  /* sorted */
    size_t told_count;
    int64_t seen_pzxid;     /* of the newest read */
    int64_t seen_at;        /* when it was read first; the time is that of the answer */
    int64_t seen_count;     /* how many there were */
    bool change_told;       /* changed() was called since the last settled() */
    int64_t unserved_since; /* the first change that is not told yet, or NEVER */
    int64_t requested_at;   /* when the read under way, or the last one, was sent */
    int64_t vouched_pzxid;  /* of what others have seen stand still; NEVER: nothing */
};

static void read_again(dv_patient_watch *w, int64_t now);
static void on_event(dv_watch *watch, dv_watch_kind kind, int64_t now);

/* Returns whether nothing but departures lies between what was told and `list`. */
static bool only_left(const dv_patient_watch *w, const dv_reply *list) {
    bool known = w->told && (w->told_count || !list->child_count);
    for (size_t i = 0; known && i < list->child_count; i++)
        known = bsearch(&list->children[i], w->told_names, w->told_count, sizeof *w->told_names, dv_name_compare);
    return known;
}

/* ---- settling: docs/protocol.md, W2 to W4 ---- */

static int64_t read_interval_ms(const dv_patient_watch *w) {
    int64_t boundary_ms = w->patience.join_boundary_ms < w->patience.leave_boundary_ms ? w->patience.join_boundary_ms
                                                                                       : w->patience.leave_boundary_ms;
    return boundary_ms / 4 > READ_INTERVAL_MIN_MS ? boundary_ms / 4 : READ_INTERVAL_MIN_MS;
}

static void note_change(dv_patient_watch *w, int64_t now) {
    assert(!w->ended);
    if (w->unserved_since == NEVER) w->unserved_since = now;
    if (!w->told || w->change_told) return;
    w->change_told = true;
    if (w->events->changed) w->events->changed(w->owner, now);
}

static bool defers(const dv_patient_watch *w) {
    return w->told && w->events->defers_ms && w->events->defers_ms(w->owner) >= 0;
}

/* W5, W21: a lost watch is found out by and by. Many that defer do not ask at the same time. */
static int64_t audit_interval_ms(dv_patient_watch *w) {
    if (!defers(w)) return AUDIT_INTERVAL_MS;
    uint32_t any = 0;
    w->client->znode->backend->random(w->client->znode, &any, sizeof any);
    return DEFERRED_AUDIT_MS - DEFERRED_AUDIT_MS / 5 + any % (2 * DEFERRED_AUDIT_MS / 5 + 1);
}

/* Takes over the names, which may be NULL: then the owner alone gets to know those of `list`. */
static void tell(dv_patient_watch *w, char **names, const char *const *list, size_t count, int64_t pzxid, int64_t now) {
    assert(!w->ended);
    if (w->told && w->events->replaced) w->events->replaced(w->owner, w->told_names, w->told_count, w->told_pzxid);
    else free(w->told_names);
    w->told_names = names;
    w->told = names;
    w->told_count = names ? count : 0;
    w->told_pzxid = pzxid;
    w->vouched_pzxid = NEVER;
    w->unserved_since = NEVER;
    w->change_told = false;
    dv_timer_set(w->client, &w->timer, now + audit_interval_ms(w));
    w->events->settled(w->owner, list, count, pzxid, now);
}

static void settle(dv_patient_watch *w, const dv_reply *list, int64_t now) {
    assert(w->seen_pzxid != NEVER);
    char **names = dv_texts_copy(list->children, list->child_count);
    if (names && list->child_count) qsort(names, list->child_count, sizeof *names, dv_name_compare);
    tell(w, names, list->children, list->child_count, w->seen_pzxid, now);
}

static int64_t at_latest(const dv_patient_watch *w) {
    return w->unserved_since + w->patience.settle_max_ms;
}

/* W3, where only their number is known: more of them than before cannot be departures alone. */
static int64_t least_boundary_ms(const dv_patient_watch *w) {
    const dv_patience *p = &w->patience;
    bool joined = !w->told || w->seen_count > (int64_t)w->told_count;
    return joined || p->join_boundary_ms < p->leave_boundary_ms ? p->join_boundary_ms : p->leave_boundary_ms;
}

/* Takes in what every read tells. Returns false if there is nothing to settle, or nobody to tell it to. */
static bool take_stat(dv_patient_watch *w, const dv_stat *stat, int64_t now) {
    assert(!w->ended && w->under_way > 0);
    w->seen_count = stat->children;
    if (w->seen_pzxid != stat->pzxid) {
        w->seen_pzxid = stat->pzxid;
        w->seen_at = now;
    }
    if (w->told && w->seen_pzxid == w->told_pzxid && !w->change_told) {
        w->unserved_since = NEVER; /* An audit that found nothing new. */
        dv_timer_set(w->client, &w->timer, now + audit_interval_ms(w));
        return false;
    }
    note_change(w, now);
    return !w->ended; /* Else its owner has stopped it just now. */
}

/* W20: when it has waited in vain for others to tell of the change. */
static int64_t vain_at(const dv_patient_watch *w) {
    const dv_patience *p = &w->patience;
    int64_t longer_ms = p->join_boundary_ms > p->leave_boundary_ms ? p->join_boundary_ms : p->leave_boundary_ms;
    int64_t still_at = w->seen_at + longer_ms;
    return (still_at < at_latest(w) ? still_at : at_latest(w)) + w->events->defers_ms(w->owner);
}

/* W20, W21: a change is known, and somebody else is to tell of it. */
static void defer(dv_patient_watch *w, int64_t now) {
    int64_t audit_at = now + audit_interval_ms(w), at = vain_at(w);
    dv_timer_set(w->client, &w->timer, at < audit_at ? at : audit_at);
}

/* Not earlier than it can tell something new. Where a watch will tell of changes nothing is read before. */
static void read_next(dv_patient_watch *w, int64_t still_at) {
    int64_t at = w->watch.link ? INT64_MAX : w->requested_at + read_interval_ms(w);
    if (at > still_at) at = still_at;
    dv_timer_set(w->client, &w->timer, at < at_latest(w) ? at : at_latest(w));
}

/* W2: settled when two reads, the second of their names, a boundary apart, show one pzxid. */
static void consider(dv_patient_watch *w, const dv_reply *list, int64_t now) {
    bool same = w->seen_pzxid == list->stat->pzxid;
    if (!take_stat(w, list->stat, now)) return;
    int64_t boundary_ms = only_left(w, list) ? w->patience.leave_boundary_ms : w->patience.join_boundary_ms;
    int64_t still_at = w->seen_at + boundary_ms;
    bool stood_still = boundary_ms == 0 || (same && w->requested_at >= still_at);
    stood_still |= w->seen_pzxid == w->vouched_pzxid; /* W20: others have waited. */
    w->vouched_pzxid = NEVER;
    if (stood_still || now >= at_latest(w)) settle(w, list, now);
    else if (defers(w)) defer(w, now);
    else read_next(w, still_at);
}

/* ---- reading ---- */

static bool end_if_idle(dv_patient_watch *w, int64_t now) {
    if (!w->ended || w->under_way) return false;
    dv_unlisten(w->client, &w->listener);
    dv_timer_cancel(&w->timer);
    dv_znode_unwatch(w->client->znode, &w->watch);
    w->events->gone(w->owner, now);
    free(w->told_names);
    free(w);
    return true;
}

/* The answer of a read has come: whether it is to be looked at. */
static bool take_answer(dv_patient_watch *w, int error, int64_t now) {
    assert(w->reading && w->under_way > 0);
    w->under_way--;
    w->reading = false;
    if (!w->ended && dv_outcome_unknown(error)) {
        if (error == DIVVY_ENOMEM) dv_timer_set(w->client, &w->timer, now + read_interval_ms(w)); /* It may last. */
        else read_again(w, now);
        return false;
    }
    if (!w->ended && error && !dv_session_over(error)) {
        w->ended = true;
        w->events->failed(w->owner, error, now);
    }
    return !end_if_idle(w, now) && !w->ended && error == 0;
}

static void done_with_answer(dv_patient_watch *w, int64_t now) {
    assert(w->under_way > 0);
    w->under_way--;
    if (end_if_idle(w, now)) return;
    if (w->to_read_again) dv_timer_set(w->client, &w->timer, w->requested_at + read_interval_ms(w));
}

static void on_list(void *context, const dv_reply *reply, int64_t now) {
    dv_patient_watch *w = context;
    if (!take_answer(w, reply->error, now)) return;
    w->under_way++; /* Its owner may stop the watch inside a call. */
    if (w->events->seen) w->events->seen(w->owner, reply->children, reply->child_count, now);
    if (!w->ended && w->events->asked) w->events->asked(w->owner, reply->stat, now);
    if (!w->ended) consider(w, reply, now);
    done_with_answer(w, now);
}

static void stop_deferring(dv_patient_watch *w, int64_t now) {
    w->events->waited(w->owner, now);
    if (!w->ended) read_again(w, now);
}

static void on_stat(void *context, const dv_reply *reply, int64_t now) {
    dv_patient_watch *w = context;
    if (!take_answer(w, reply->error, now)) return;
    w->under_way++;
    bool is_about_to_learn = w->events->asked && w->events->asked(w->owner, reply->stat, now);
    if (!w->ended && take_stat(w, reply->stat, now)) {
        if (!defers(w)) read_next(w, w->seen_at + least_boundary_ms(w));
        else if (now < vain_at(w) || is_about_to_learn) defer(w, now);
        else stop_deferring(w, now);
    }
    done_with_answer(w, now);
}

/* W1: the names of 1,000 children are 60 KB, their pzxid a few bytes. So names are read only where needed. */
static bool needs_list(const dv_patient_watch *w, int64_t now) {
    if (defers(w)) return false;
    if (w->events->needs_names && w->events->needs_names(w->owner)) return true;
    if (w->vouched_pzxid != NEVER) return true;
    int64_t least_ms = least_boundary_ms(w);
    if (least_ms == 0) return true;
    if (w->told && w->unserved_since == NEVER) return !w->watch.link; /* an audit */
    bool seen = w->seen_pzxid != (w->told ? w->told_pzxid : NEVER);
    return (seen && now >= w->seen_at + least_ms) || (w->unserved_since != NEVER && now >= at_latest(w));
}

static void read_again(dv_patient_watch *w, int64_t now) {
    if (w->ended || w->reading || !dv_client_connected(w->client)) return;
    w->to_read_again = false;
    w->requested_at = now;
    w->watch.fired = on_event; /* Where one was taken back it was cleared. */
    int error = needs_list(w, now) ? dv_znode_children(w->client->znode, w->path, &w->watch, on_list, w)
                                   : dv_znode_exists(w->client->znode, w->path, NULL, on_stat, w);
    if (error) {
        dv_timer_set(w->client, &w->timer, now + read_interval_ms(w));
        return;
    }
    w->reading = true;
    w->under_way++;
}

static void on_timer(dv_timer *timer, int64_t now) {
    dv_patient_watch *w = DV_CONTAINER(timer, dv_patient_watch, timer);
    read_again(w, now);
}

/* W1: under churn they are read at most once each interval, not once for each change. */
static void on_event(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    (void)kind;
    dv_patient_watch *w = DV_CONTAINER(watch, dv_patient_watch, watch);
    if (w->ended) return;
    w->under_way++;
    note_change(w, now);
    w->under_way--;
    if (end_if_idle(w, now)) return;
    int64_t at = w->requested_at + read_interval_ms(w);
    if (w->reading) w->to_read_again = true;
    else if (at > now) dv_timer_set(w->client, &w->timer, at);
    else read_again(w, now);
}

static void hear(dv_listener *listener, dv_session_event event, int64_t now) {
    dv_patient_watch *w = DV_CONTAINER(listener, dv_patient_watch, listener);
    if (event == DV_SESSION_LOST || event == DV_SESSION_CLOSED) {
        w->ended = true;
        end_if_idle(w, now);
    } else if (event == DV_SESSION_CONNECTED) {
        read_again(w, now); /* A watch may have been missed. */
    }
}

dv_patient_watch *dv_patient_watch_start(divvy_client *client, const char *path, const dv_patience *patience,
                                         const dv_patient_watch_events *events, void *owner) {
    dv_patient_watch *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    *w = (dv_patient_watch){.client = client,
                            .path = path,
                            .patience = *patience,
                            .events = events,
                            .owner = owner,
                            .timer.fire = on_timer,
                            .listener = {.hear = hear},
                            .seen_pzxid = NEVER,
                            .vouched_pzxid = NEVER,
                            .unserved_since = NEVER};
    dv_listen(client, &w->listener);
    read_again(w, dv_client_now(client));
    return w;
}

/* ---- what others tell ---- */

bool dv_patient_watch_told(const dv_patient_watch *w, const char *const **names, size_t *count, int64_t *pzxid) {
    if (!w->told) return false;
    *names = (const char *const *)(uintptr_t)w->told_names;
    *count = w->told_count;
    *pzxid = w->told_pzxid;
    return true;
}

/* A watch for changes that others tell of would cost an event, and an answer, for nothing. */
void dv_patient_watch_turn(dv_patient_watch *w, int64_t now) {
    if (w->ended) return;
    if (!defers(w)) {
        read_again(w, now);
        return;
    }
    dv_znode_unwatch(w->client->znode, &w->watch);
    if (w->unserved_since != NEVER) defer(w, now);
    else dv_timer_set(w->client, &w->timer, now + audit_interval_ms(w));
}

void dv_patient_watch_note(dv_patient_watch *w, const dv_stat *stat, int64_t now) {
    if (w->ended) return;
    w->under_way++;
    if (take_stat(w, stat, now) && defers(w)) defer(w, now);
    w->under_way--;
    end_if_idle(w, now);
}

void dv_patient_watch_learn(dv_patient_watch *w, char **names, size_t count, int64_t pzxid, int64_t now) {
    assert(!w->ended && w->told && pzxid > w->told_pzxid);
    tell(w, names, (const char *const *)(uintptr_t)names, count, pzxid, now);
    if (!w->ended && w->seen_pzxid != pzxid) note_change(w, now); /* The next change is under way. */
    if (!w->ended && w->unserved_since != NEVER && defers(w)) defer(w, now);
    else if (!w->ended && !defers(w) && !w->watch.link) read_again(w, now);
}

void dv_patient_watch_vouch(dv_patient_watch *w, int64_t pzxid, int64_t at) {
    if (w->ended) return;
    w->vouched_pzxid = pzxid;
    dv_timer_set(w->client, &w->timer, at);
}

static void on_stopping(dv_event *event, int64_t now) {
    dv_patient_watch *w = (dv_patient_watch *)(void *)event;
    assert(w->ended && w->under_way > 0);
    w->under_way--;
    end_if_idle(w, now);
}

void dv_patient_watch_stop(dv_patient_watch *w) {
    if (w->ended) return;
    w->ended = true;
    w->under_way++;
    w->stopping.run = on_stopping;
    dv_client_post(w->client, &w->stopping);
}
