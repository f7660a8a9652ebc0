/* The writer of a party's roll: docs/protocol.md, W19. SPDX-License-Identifier: Apache-2.0 */
#include "plan/roll_pen.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"

enum { RETRY_MS = 1000, STRANGER_MS = 300 };

static void read_roll(dv_roll_pen *p, int64_t now);

static void on_timer(dv_timer *timer, int64_t now) {
    dv_roll_pen *p = DV_CONTAINER(timer, dv_roll_pen, timer);
    read_roll(p, now);
}

void dv_roll_pen_init(dv_roll_pen *p, divvy_client *client, const char *path, const dv_roll_pen_events *events,
                      void *owner) {
    *p = (dv_roll_pen){.client = client, .path = path, .events = events, .owner = owner, .timer.fire = on_timer};
}

void dv_roll_pen_keep(dv_roll_pen *p, char **names, size_t count, int64_t pzxid) {
    if (p->before) {
        assert(p->is_wanted);
        free(names);
        return;
    }
    p->before = names;
    p->before_count = count;
    p->before_pzxid = pzxid;
}

void dv_roll_pen_forget(dv_roll_pen *p) {
    if (p->is_wanted) return;
    free(p->before);
    p->before = NULL;
}

static void done(dv_roll_pen *p) {
    p->is_wanted = false;
    dv_timer_cancel(&p->timer);
    dv_roll_pen_forget(p);
}

/* Ends a request. Returns whether there is something to do with its answer. */
static bool take_answer(dv_roll_pen *p, int error, int64_t now) {
    assert(p->is_under_way);
    p->is_under_way = false;
    if (!p->is_wanted) return false;
    if (error == 0) return true;
    /* R1: whether the write was applied or not, the next read tells what stands there. A quota is no reason to insist:
     * another member's write may be refused as well, and members that wait in vain list. */
    bool again = error == DIVVY_EVERSION || (dv_outcome_unknown(error) && error != DIVVY_EQUOTA);
    if (error == DIVVY_EVERSION) read_roll(p, now);
    else if (again) dv_timer_set(p->client, &p->timer, now + RETRY_MS);
    if (!again && !dv_session_over(error) && error != DIVVY_ENOENT && !p->has_warned) {
        p->has_warned = true;
        dv_client_log(p->client, DIVVY_LOG_WARN, "%s: the roll cannot be written, so that others may list: %s", p->path,
                      divvy_strerror(error));
    }
    if (!again) done(p);
    return false;
}

/* ---- writing ---- */

static void on_written(void *context, const dv_reply *reply, int64_t now) {
    dv_roll_pen *p = context;
    size_t place;
    free(p->text);
    p->text = NULL;
    if (take_answer(p, reply->error, now)) {
        /* Another party may have settled since. */
        if (p->events->party(p->owner, &place).pzxid > p->written_pzxid) read_roll(p, now);
        else done(p);
    }
    p->events->ended(p->owner, now);
}

/* Prints what is to stand there. Returns 0 or DIVVY_ENOMEM. */
static int print(dv_roll_pen *p, const dv_roll *old, const dv_roll_party *to, size_t place, dv_plan_text *text) {
    dv_roll_party before = {(const char *const *)(uintptr_t)p->before, p->before_count, p->before_pzxid};
    char **names = NULL;
    int error = old && p->before ? dv_roll_follow(old, &before, &names) : DIVVY_ENOENT;
    bool leads = error == 0;
    if (leads) before = (dv_roll_party){(const char *const *)(uintptr_t)names, old->count, old->pzxid};
    bool knows = leads || (p->before && before.pzxid < to->pzxid);
    error = dv_roll_print(text, leads ? old : NULL, knows ? &before : NULL, to, place);
    free(names);
    return error;
}

static void write_roll(dv_roll_pen *p, const dv_roll *old, const dv_roll_party *to, size_t place, int32_t version,
                       int64_t now) {
    dv_plan_text text;
    int error = print(p, old, to, place, &text);
    if (error == 0) {
        const dv_op op = {
            .kind = DV_SET, .path = p->path, .data = text.bytes, .data_bytes = text.count, .version = version};
        p->text = text.bytes;
        p->written_pzxid = to->pzxid;
        error = dv_znode_submit(p->client->znode, &op, NULL, on_written, p);
        if (error) free(p->text), p->text = NULL;
    }
    p->is_under_way = error == 0;
    if (error) dv_timer_set(p->client, &p->timer, now + RETRY_MS);
}

/* ---- reading ---- */

/* Returns whether the party that our step begins with, or can be led from, is the roll's. */
static bool is_stranger(const dv_roll_pen *p, const dv_roll *roll) {
    for (size_t i = 0; i < roll->step_count; i++)
        if (roll->steps[i].from == p->before_pzxid) return false;
    return roll->pzxid != p->before_pzxid;
}

static void on_read(void *context, const dv_reply *reply, int64_t now) {
    dv_roll_pen *p = context;
    size_t place;
    dv_roll roll;
    if (!take_answer(p, reply->error, now)) {
        p->events->ended(p->owner, now);
        return;
    }
    const dv_roll_party to = p->events->party(p->owner, &place);
    int error = dv_roll_parse(&roll, reply->data, reply->data_bytes, NULL);
    bool is_good = error == 0 && roll.pzxid <= reply->stat->pzxid; /* Else it is of another ensemble. */
    bool is_new = is_good && roll.pzxid >= to.pzxid;
    if (error == DIVVY_ENOMEM) {
        dv_timer_set(p->client, &p->timer, now + RETRY_MS);
    } else if (error == DIVVY_EUNSUPPORTED || is_new) {
        done(p);
    } else if (is_good && !p->has_waited && is_stranger(p, &roll)) {
        p->has_waited = true;
        dv_timer_set(p->client, &p->timer, now + STRANGER_MS);
    } else {
        write_roll(p, is_good ? &roll : NULL, &to, place, reply->stat->version, now);
    }
    if (error == 0) dv_roll_clear(&roll);
    p->events->ended(p->owner, now);
}

static void read_roll(dv_roll_pen *p, int64_t now) {
    if (!p->is_wanted || p->is_under_way || !dv_client_connected(p->client)) return;
    dv_timer_cancel(&p->timer);
    int error = dv_znode_get(p->client->znode, p->path, NULL, on_read, p);
    p->is_under_way = error == 0;
    if (error) dv_timer_set(p->client, &p->timer, now + RETRY_MS);
}

void dv_roll_pen_write(dv_roll_pen *p, int64_t at, int64_t now) {
    if (p->is_under_way) { /* Its answer goes on with the party that settled last. */
        p->is_wanted = true;
        return;
    }
    p->is_wanted = true;
    p->has_waited = false;
    if (at > now) dv_timer_set(p->client, &p->timer, at);
    else read_roll(p, now);
}

void dv_roll_pen_go_on(dv_roll_pen *p, int64_t now) {
    if (p->is_wanted && !p->is_under_way && !p->timer.link) read_roll(p, now);
}

void dv_roll_pen_stop(dv_roll_pen *p) {
    done(p);
}
