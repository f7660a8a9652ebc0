/* A run: the loop of partitioner.h, with a thread for each item. SPDX-License-Identifier: Apache-2.0
 *
 * A step looks at everything, and does what is due. It is made when somebody has woken the runner, and when a worker is
 * to be called again. The end of a job is no change of the partitioner, so its thread wakes the runner as well. */
#include <assert.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/threads.h"
#include "client/error.h"
#include "workers/workers.h"

enum {
    STEADY_MS = 5000, /* a worker that ran for so long is called again after the first pause */
    LOOK_MS = 1000,   /* for how long at most a run relies on being woken */
    SCARCE_MS = 50    /* before another step, where memory was short */
};

/* ---- why it ends ---- */

/* Has all workers return. */
static void stop(divvy_workers *w) {
    w->phase = DV_WORKERS_STOPPING;
    dv_workers_wake(w); /* There is another step, whatever was done of this one. */
}

/* Does so for a reason. The first one counts. */
static void fail(divvy_workers *w, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void fail(divvy_workers *w, int error, const char *format, ...) {
    if (!w->error) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(w->why, sizeof w->why, format, arguments);
        va_end(arguments);
        w->error = error;
    }
    stop(w);
}

/* A static member comes back, and its items wait for it. */
static bool can_hand_over(const divvy_workers *w) {
    return w->config.hand_over && !w->pool.static_membership;
}

static void hand_over(divvy_workers *w) {
    w->phase = DV_WORKERS_HANDING_OVER;
    int error = divvy_partitioner_leave(w->partitioner, DIVVY_LEAVE_WORKING, 0);
    if (error && error != DIVVY_ETIMEDOUT) stop(w); /* It has failed, which is seen next. */
}

static void answer(divvy_workers *w) {
    bool connected = divvy_client_state(w->client) == DIVVY_CONNECTED;
    if (w->phase == DV_WORKERS_HANDING_OVER && !connected) stop(w);
    for (int asked = atomic_load(&w->asked); w->answered < asked; w->answered++) {
        if (w->phase == DV_WORKERS_WORKING && connected && can_hand_over(w)) hand_over(w);
        else stop(w);
    }
}

/* ---- what has ended ---- */

static int64_t longer(const divvy_workers *w, int64_t pause_ms) {
    const divvy_workers_config *c = &w->config;
    int64_t max_ms = c->backoff_max_ms > c->backoff_ms ? c->backoff_max_ms : c->backoff_ms;
    return pause_ms < max_ms / 2 ? pause_ms * 2 : max_ms;
}

/* Sets when the worker, or `prepare`, is called again. Returns after which pause; -1: not under this token. */
static int64_t plan_restart(const divvy_workers *w, dv_place *place, bool has_run, int64_t now) {
    int restart = w->config.restart;
    bool finished = restart == DIVVY_RESTART_NEVER || (restart == DIVVY_RESTART_ON_FAILURE && place->result == 0);
    if (finished && has_run) {
        place->start_ms = INT64_MAX;
        return -1;
    }
    if (has_run && now - place->begun_ms >= STEADY_MS) place->pause_ms = w->config.backoff_ms;
    int64_t pause_ms = place->pause_ms;
    place->start_ms = now + pause_ms;
    place->pause_ms = longer(w, pause_ms);
    return pause_ms;
}

/* Forgets the pauses of what was before. */
static void forget_pauses(const divvy_workers *w, dv_place *place) {
    place->start_ms = 0;
    place->pause_ms = w->config.backoff_ms;
}

static void tell_end(divvy_workers *w, const divvy_job_end *end) {
    if (w->config.on_end) w->config.on_end(w, end, w->config.user);
}

/* Notes the end of a job, or that its thread could not be had. */
static void take_end(divvy_workers *w, dv_place *place, bool has_run) {
    divvy_job_end end = {.item = place->item, .token = place->token, .result = place->result, .restart_ms = -1};
    end.told_to_stop = has_run && place->was_told;
    bool waits = !has_run && place->result == DIVVY_ELIMIT; /* A thread will be free. */
    bool ends_all = place->result && w->config.failure_ends && !waits;
    place->start_ms = 0;
    if (!end.told_to_stop && ends_all)
        fail(w, place->result, "the worker of %.200s has failed: %d", place->item, place->result);
    else if (!end.told_to_stop) end.restart_ms = plan_restart(w, place, has_run, dv_monotonic_ms());
    if (!divvy_partitioner_owns_token(w->partitioner, place->item, place->token)) end.restart_ms = -1;
    if (has_run && place->result && !end.told_to_stop) dv_workers_note_failure(w, place->item, place->result);
    tell_end(w, &end);
}

static void discard(divvy_workers *w, dv_place *place) {
    if (place->prepared && w->config.discard) w->config.discard(place->prepared, place->item, w->config.user);
    place->was_prepared = false;
    place->prepared = NULL;
}

/* Notes that `prepare` has failed, or that its thread could not be had. */
static void take_unprepared(divvy_workers *w, dv_place *place, bool has_run) {
    divvy_job_end end = {.item = place->item, .result = place->result, .restart_ms = -1};
    bool has_come = divvy_partitioner_owns(w->partitioner, place->item);
    bool goes_on = w->phase == DV_WORKERS_WORKING && place->awaited && !has_come;
    discard(w, place);
    if (goes_on) end.restart_ms = plan_restart(w, place, has_run, dv_monotonic_ms());
    if (w->phase != DV_WORKERS_STOPPING) tell_end(w, &end);
}

static void take_prepared(divvy_workers *w, dv_place *place) {
    place->was_prepared = true;
    if (w->phase == DV_WORKERS_WORKING && place->comes) {
        divvy_partitioner_prepared(w->partitioner, place->item); /* Where it fails all is over, which is seen next. */
    }
    if (!place->comes) discard(w, place);
}

static void take_lost(divvy_workers *w, dv_place *place) {
    place->comes = place->awaited = false;
    if (place->was_prepared) discard(w, place);
}

/* Takes all that threads and callbacks have noted. */
static void take_notes(divvy_workers *w) {
    for (size_t i = 0; i < w->place_count; i++) {
        dv_place *place = w->places[i];
        if (w->config.prepare && dv_place_was_lost(w, place)) take_lost(w, place);
        if (!(place->at_work || place->preparing) || !atomic_load(&place->ended)) continue;
        bool worked = place->at_work;
        pthread_join(place->thread, NULL);
        w->threads--;
        place->at_work = place->preparing = false;
        if (worked) take_end(w, place, true);
        else if (place->result) take_unprepared(w, place, true);
        else take_prepared(w, place);
    }
}

/* ---- a step ---- */

typedef struct {
    uint64_t state_id;
    divvy_partition_state state;
} view;

/* The number of the state comes first: what changes after it is seen in the next step, and not confirmed in this one.
 * Returns false when memory was short. */
static bool look(divvy_workers *w, view *v) {
    v->state_id = divvy_partitioner_state_id(w->partitioner);
    v->state = divvy_partitioner_state(w->partitioner);
    if (v->state == DIVVY_FAILURE) {
        char why[DV_WORKERS_WHY_BYTES];
        int error = divvy_partitioner_failure(w->partitioner, why, sizeof why);
        bool is_end = error == DIVVY_ECANCELED || error == DIVVY_ELOST; /* All is given back, or the servers do so. */
        if (w->phase == DV_WORKERS_HANDING_OVER && is_end) stop(w);
        else if (w->phase != DV_WORKERS_STOPPING) fail(w, error, "%s", why);
    }
    if (w->phase == DV_WORKERS_STOPPING) {
        dv_places_take_none(w);
        return true;
    }
    divvy_partition *mine = divvy_partitioner_partition(w->partitioner);
    if (!mine) return false;
    dv_places_take(w, mine);
    divvy_partition_unref(mine);
    return true;
}

/* Tells each job to stop whose item is not ours under its token, or is revoked. Returns whether one has yet to end. */
static bool stop_jobs(divvy_workers *w) {
    bool any = false;
    for (size_t i = 0; i < w->place_count; i++) {
        dv_place *place = w->places[i];
        if (!place->at_work) continue;
        bool ours = place->is_mine && place->mine_token == place->job.token && !place->is_revoked;
        if (!ours && !atomic_load(&place->job.told_to_stop)) dv_place_tell_stop(place);
        any |= atomic_load(&place->job.told_to_stop);
    }
    return any;
}

/* Returns whether a worker has to be called for the item, if not now then at start_ms. */
static bool lacks_worker(const dv_place *place) {
    return place->is_mine && !place->is_revoked && !place->at_work && !place->preparing;
}

static void start_job(divvy_workers *w, dv_place *place, int64_t now) {
    place->begun_ms = now;
    place->job.prepared = place->prepared;
    int error = dv_place_start_job(place);
    if (error) {
        place->result = error;
        take_end(w, place, false);
        return;
    }
    place->was_prepared = false; /* The worker has it now. */
    place->prepared = NULL;
}

static void start_jobs(divvy_workers *w) {
    int64_t now = dv_monotonic_ms();
    for (size_t i = 0; i < w->place_count && w->phase != DV_WORKERS_STOPPING; i++) {
        dv_place *place = w->places[i];
        if (!lacks_worker(place)) continue;
        if (place->token != place->mine_token) { /* Nothing that was decided under the old one counts. */
            place->token = place->mine_token;
            forget_pauses(w, place);
        }
        if (now >= place->start_ms) start_job(w, place, now);
    }
}

/* Returns whether `prepare` has to be called for the item, if not now then at start_ms. */
static bool lacks_prepare(const divvy_workers *w, const dv_place *place) {
    bool works = place->at_work || place->preparing;
    return w->phase == DV_WORKERS_WORKING && place->is_to_prepare && !works && !place->was_prepared;
}

static void start_preparing(divvy_workers *w, dv_place *place, int64_t now) {
    place->begun_ms = now;
    place->comes = true;
    int error = dv_place_start_preparing(place);
    if (!error) return; /* The thread has `result` now. */
    place->result = error;
    take_unprepared(w, place, false);
}

/* Returns the items that are to be prepared, NULL without memory. A loss that is told while an item has no place is
 * noted nowhere: so the look that counts comes after the places. An item that comes later is told, and wakes us. */
static divvy_partition *look_at_coming(divvy_workers *w) {
    divvy_partition *coming = divvy_partitioner_to_prepare(w->partitioner);
    if (!dv_places_make(w, coming)) return coming;
    divvy_partition_unref(coming);
    return divvy_partitioner_to_prepare(w->partitioner);
}

static void prepare(divvy_workers *w) {
    if (!w->config.prepare || w->phase != DV_WORKERS_WORKING) return;
    int64_t now = dv_monotonic_ms();
    divvy_partition *coming = look_at_coming(w);
    if (coming) dv_places_take_to_prepare(w, coming);
    else w->scarce = true;
    divvy_partition_unref(coming);
    for (size_t i = 0; i < w->place_count; i++) {
        dv_place *place = w->places[i];
        if (!place->is_to_prepare) place->awaited = false;
        if (!lacks_prepare(w, place)) continue;
        if (!place->awaited) forget_pauses(w, place);
        place->awaited = true;
        if (now >= place->start_ms) start_preparing(w, place, now);
    }
}

/* Returns whether all is over: all workers have returned, and none is called any longer. */
static bool step(divvy_workers *w) {
    view v;
    w->scarce = false;
    take_notes(w);
    dv_workers_take_pauses(w);
    answer(w);
    if (!look(w, &v)) {
        w->scarce = true;
        return false;
    }
    if (!stop_jobs(w) && v.state == DIVVY_RELEASE) divvy_partitioner_release_set_id(w->partitioner, v.state_id);
    start_jobs(w);
    prepare(w);
    dv_places_forget(w);
    return w->phase == DV_WORKERS_STOPPING && w->threads == 0;
}

/* ---- between two steps ---- */

static int64_t earlier(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Returns after how many milliseconds a step is due, if nobody wakes the runner before. */
static int64_t due_ms(const divvy_workers *w) {
    int64_t now = dv_monotonic_ms(), due = now + (w->scarce ? SCARCE_MS : LOOK_MS);
    for (size_t i = 0; i < w->place_count; i++)
        if (lacks_worker(w->places[i]) || lacks_prepare(w, w->places[i])) due = earlier(due, w->places[i]->start_ms);
    return due > now ? due - now : 0;
}

static void wait_for_more(divvy_workers *w) {
    struct pollfd fds[2] = {{.fd = w->wake_fd, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    int64_t ms = due_ms(w);
    uint64_t count;
    if (w->drives) {
        int64_t deadline_ms = divvy_client_next_deadline(w->client);
        if (deadline_ms >= 0) ms = earlier(ms, deadline_ms);
        fds[1].fd = divvy_client_fd(w->client);
    }
    poll(fds, 2, (int)ms);
    ssize_t got = read(w->wake_fd, &count, sizeof count);
    (void)got; /* Nobody may have woken us. */
    if (w->drives && divvy_client_process(w->client, 0) == DIVVY_ECLOSED) w->drives = false;
}

/* ---- the run ---- */

/* Fails inside a callback, and where a call that waits is not to begin. One that only looks would not. */
static int check_can_wait(const divvy_workers *w) {
    int error = divvy_partitioner_wait_change(w->partitioner, divvy_partitioner_state_id(w->partitioner), 1);
    return error == DIVVY_ETIMEDOUT || error == DIVVY_ECLOSED ? 0 : error;
}

static int begin(divvy_workers *w) {
    pthread_mutex_lock(&w->mutex);
    bool first = !w->has_run;
    if (first) {
        w->has_run = w->running = true;
        w->runner = pthread_self();
    }
    pthread_mutex_unlock(&w->mutex);
    return first ? 0 : dv_fail(w->client, DIVVY_ESTATE, "workers: they run already, or have run");
}

/* After this the workers may be gone. */
static void end(divvy_workers *w, bool has_run) {
    pthread_mutex_lock(&w->mutex);
    w->running = false;
    w->has_run = has_run;
    bool destroy = w->destroy_after;
    pthread_cond_broadcast(&w->ended);
    pthread_mutex_unlock(&w->mutex);
    if (destroy) divvy_workers_destroy_async(w, w->gone, w->gone_user);
}

/* Leaves the pool. Where the session is lost or the client closed, nothing is left to be given back. */
static int leave(divvy_workers *w) {
    for (size_t i = 0; i < w->place_count; i++) discard(w, w->places[i]);
    int error = divvy_partitioner_finish(w->partitioner, w->config.finish_timeout_ms);
    if (w->error) return dv_fail(w->client, w->error, "%s", w->why);
    return error == DIVVY_ETIMEDOUT || error == DIVVY_EINTERRUPTED ? error : 0;
}

int divvy_workers_run(divvy_workers *w) {
    if (!w) return dv_fail(NULL, DIVVY_EINVAL, "workers: run of NULL");
    if (w->pid != getpid()) return dv_fail_plainly(w->client, DIVVY_EFORK);
    int error = begin(w);
    if (error) return error;
    error = check_can_wait(w);
    if (error) {
        end(w, false);
        return error;
    }
    dv_workers_take_signals(w);
    w->phase = DV_WORKERS_WORKING;
    w->drives = divvy_client_fd(w->client) >= 0;
    while (!step(w)) wait_for_more(w);
    dv_workers_end_quarantine(w);
    error = leave(w);
    dv_workers_give_signals_back(w);
    end(w, true);
    return error;
}
