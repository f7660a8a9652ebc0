/* Patient watch: the children of a node, told once they have stood still. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/patient_watch.h"

#include <assert.h>
#include <stdlib.h>

#include "base/container.h"
#include "base/texts.h"
#include "znode/path.h"

enum { READ_INTERVAL_MIN_MS = 50, AUDIT_INTERVAL_MS = 60000, NEVER = -1 };

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

static void settle(dv_patient_watch *w, const dv_reply *list, int64_t now) {
    assert(!w->ended && w->seen_pzxid != NEVER);
    free(w->told_names);
    w->told_names = dv_texts_copy(list->children, list->child_count);
    w->told = w->told_names;
    w->told_count = w->told ? list->child_count : 0;
    if (w->told_count) qsort(w->told_names, w->told_count, sizeof *w->told_names, dv_name_compare);
    w->told_pzxid = w->seen_pzxid;
    w->unserved_since = NEVER;
    w->change_told = false;
    dv_timer_set(w->client, &w->timer, now + AUDIT_INTERVAL_MS); /* W5: a lost watch is found out by and by. */
    w->events->settled(w->owner, list->children, list->child_count, w->told_pzxid, now);
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
        dv_timer_set(w->client, &w->timer, now + AUDIT_INTERVAL_MS);
        return false;
    }
    note_change(w, now);
    return !w->ended; /* Else its owner has stopped it just now. */
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
    if (stood_still || now >= at_latest(w)) settle(w, list, now);
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
        read_again(w, now);
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
    if (!w->ended) consider(w, reply, now);
    done_with_answer(w, now);
}

static void on_stat(void *context, const dv_reply *reply, int64_t now) {
    dv_patient_watch *w = context;
    if (!take_answer(w, reply->error, now)) return;
    w->under_way++;
    if (take_stat(w, reply->stat, now)) read_next(w, w->seen_at + least_boundary_ms(w));
    done_with_answer(w, now);
}

/* W1: the names of 1,000 children are 60 KB, their pzxid a few bytes. So names are read only where needed. */
static bool needs_list(const dv_patient_watch *w, int64_t now) {
    if (w->events->needs_names && w->events->needs_names(w->owner)) return true;
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

static void hear(void *context, dv_session_event event, int64_t now) {
    dv_patient_watch *w = context;
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
                            .listener = {.hear = hear, .context = w},
                            .seen_pzxid = NEVER,
                            .unserved_since = NEVER};
    dv_listen(client, &w->listener);
    read_again(w, dv_client_now(client));
    return w;
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
