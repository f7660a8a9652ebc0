/* Handles of host programs, and those of our clients that sit on them. SPDX-License-Identifier: Apache-2.0
 *
 * Session events come twice, by the handle's watcher, before whose place ours stands, and by our node watches: so they
 * are heard even when the host sets another watcher later.
 *
 * The lock is held while a request is handed to the native client, and while an event is looked at. It is never held
 * while the host's watcher runs, and is always taken after the client lock. */
#include "znode/apache/shared.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "znode/apache/estate.h"
#include "znode/apache/pending.h"

struct dv_shared {
    dv_shared *next;
    zhandle_t *handle;         /* NULL: another handle has its address now, so it is gone */
    int64_t session_id;        /* 0: not known yet */
    watcher_fn before;         /* the host's, which ours calls */
    bool chained;              /* ours was put before it, and has not been taken back */
    bool ended;                /* expired, or refused: never touched again, since the host may close it */
    divvy_session_state heard; /* the last that was told; DIVVY_SUSPENDED at first */
    bool priming, primed;      /* the watch that is always armed */
    unsigned odd_answers;      /* to the read that sets it: each is asked for again, so often */
    bool root_hidden;          /* the host may not read the root, so that watch is on NO_NODE */
    unsigned refusals;         /* of that watch in a row, as credentials are missing */
    bool has_thread;
    pthread_t thread; /* the native client's completion thread */
    dv_apache *guests;
    dv_pending_list orphans; /* requests of clients that have left */
    dv_estate estate;        /* and nodes */
};

/* A node that nobody makes. Since 3.9 a server lets us watch a node that exists only if we may read it. */
#define NO_NODE "/divvy-watches-that-there-is-no-such-node"

enum { ODD_ANSWERS_MAX = 1000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answer_came;
static dv_shared *all;
char dv_shared_context[1];

/* In the child of a fork: nothing of the parent's handles runs here, and one of its threads may have held the mutex. */
static void forget_guests(void) {
    pthread_mutex_init(&mutex, NULL);
    for (dv_shared *s = all; s; s = s->next) s->guests = NULL;
}

static void set_up(void) {
    dv_condition_init(&answer_came);
    pthread_atfork(NULL, NULL, forget_guests);
}

void dv_shared_lock(void) {
    pthread_mutex_lock(&mutex);
}

void dv_shared_unlock(void) {
    pthread_mutex_unlock(&mutex);
}

static dv_shared *find(const zhandle_t *handle) {
    dv_shared *s = all;
    while (s && s->handle != handle) s = s->next;
    return s;
}

static bool in_use(const dv_shared *s) {
    return s->guests || !dv_estate_is_settled(&s->estate);
}

/* Frees the shared handle, unless a callback may still come, or may have to call the host's watcher. */
static void drop_if_unused(dv_shared *s) {
    if (in_use(s) || s->orphans.first || s->priming || (s->handle && !s->ended)) return;
    dv_shared **place = &all;
    while (*place != s) place = &(*place)->next;
    *place = s->next;
    free(s);
}

/* ---- what is heard of a handle, on its completion thread, with the lock held ---- */

static void prime(dv_shared *s);

static dv_session_news news_of(const dv_shared *s) {
    dv_session_news news = {.state = s->heard};
    if (s->heard == DIVVY_CONNECTED) {
        news.session_id = s->session_id;
        news.timeout_ms = zoo_recv_timeout(s->handle);
    }
    return news;
}

static void hear(dv_shared *s, int native_state) {
    divvy_session_state state = dv_apache_session_state(native_state);
    if (s->ended || state == s->heard) return;
    assert(s->handle);
    s->heard = state;
    if (state == DIVVY_CONNECTED) s->session_id = zoo_client_id(s->handle)->client_id;
    if (state == DIVVY_LOST || state == DIVVY_AUTH_FAILED) {
        s->ended = true;
        dv_estate_drop(&s->estate);
    }
    dv_session_news news = news_of(s);
    for (dv_apache *guest = s->guests; guest; guest = guest->next_guest) dv_apache_post_news(guest, s->handle, &news);
    if (state == DIVVY_CONNECTED && !s->primed) prime(s);
    dv_estate_settle(&s->estate);
    pthread_cond_broadcast(&answer_came); /* Without a connection a thread waits for answers in vain. */
}

/* In place of the host's watcher, which is called with what it would have been called with. */
static void on_session_event(zhandle_t *handle, int type, int state, const char *path, void *context) {
    watcher_fn before = NULL;
    dv_shared_lock();
    dv_shared *s = find(handle);
    if (s) {
        before = s->before;
        s->thread = pthread_self();
        s->has_thread = true;
        if (type == ZOO_SESSION_EVENT) hear(s, state);
    }
    dv_shared_unlock();
    if (before) before(handle, type, state, path, context);
}

static const char *primed_path(const dv_shared *s) {
    return s->root_hidden ? NO_NODE : "/";
}

void dv_shared_on_watch(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)context;
    dv_shared_lock();
    dv_shared *s = find(handle);
    if (s && type == ZOO_SESSION_EVENT) {
        hear(s, state);
    } else if (s && path) {
        for (dv_apache *guest = s->guests; guest; guest = guest->next_guest)
            dv_apache_on_watch(handle, type, state, path, guest);
        if (strcmp(path, primed_path(s)) == 0 && type != ZOO_CHILD_EVENT) {
            s->primed = false;
            prime(s);
        }
    }
    dv_shared_unlock();
}

/* H9: the guests may never be answered themselves, as the server closes after the first request. */
static void hear_refusal(dv_shared *s) {
    s->refusals++;
    for (dv_apache *guest = s->guests; guest && s->refusals > 1; guest = guest->next_guest) {
        dv_session_news news = {.state = DIVVY_AUTH_FAILED, .reason = dv_apache_demand(guest)};
        dv_apache_post_news(guest, s->handle, &news);
    }
}

/* Counts a connection that was there before we came, once, wherever in it we came: an answer tells of it. */
static void on_primed(int rc, const struct Stat *stat, const void *data) {
    (void)stat;
    dv_shared *s = (dv_shared *)(uintptr_t)data;
    dv_shared_lock();
    s->priming = false;
    s->thread = pthread_self();
    s->has_thread = true;
    bool refused = dv_answer_of(rc).error == DIVVY_EAUTH;
    if (refused) hear_refusal(s);
    else s->refusals = 0;
    if (rc == ZOK || rc == ZNONODE) {
        s->primed = true;
        if (!s->ended && zoo_state(s->handle) == ZOO_CONNECTED_STATE) hear(s, ZOO_CONNECTED_STATE);
    } else if (rc == ZNOAUTH && !s->root_hidden) {
        s->root_hidden = true; /* Anyone may watch a node that does not exist. */
        prime(s);
    } else if (dv_answer_of(rc).verdict >= DV_VERDICT_AGAIN && ++s->odd_answers < ODD_ANSWERS_MAX) {
        prime(s); /* A server that throttles has taken its time. */
    } else if (rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT) {
        prime(s); /* The native client holds it back until it is connected, or has tried in vain. */
    }
    drop_if_unused(s);
    dv_shared_unlock();
}

/* It allocates nothing itself: test/lsan.supp names it. */
static int native_prime(dv_shared *s) {
    return zoo_awexists(s->handle, primed_path(s), dv_shared_on_watch, dv_shared_context, on_primed, s);
}

/* Sets a watch that hardly ever fires, but hears session events whatever the host does to its watcher. */
static void prime(dv_shared *s) {
    if (s->priming || s->ended || !in_use(s)) return;
    assert(s->handle);
    s->priming = native_prime(s) == ZOK;
}

/* ---- coming and going ---- */

/* Buries a handle whose address another handle has got: nobody will call back for the old one. */
static void bury(dv_shared *s) {
    assert(s->handle);
    s->handle = NULL;
    s->ended = true;
    s->priming = false;
    dv_apache_free_orphans(&s->orphans);
    dv_estate_bury(&s->estate);
    drop_if_unused(s);
}

static dv_shared *find_or_make(zhandle_t *handle) {
    int64_t session_id = zoo_client_id(handle)->client_id;
    dv_shared *s = find(handle);
    bool stale = s && (s->ended || (s->session_id && s->session_id != session_id));
    if (s && !stale) return s;
    dv_shared *fresh = calloc(1, sizeof *fresh);
    if (!fresh) return NULL;
    if (s) bury(s);
    fresh->handle = handle;
    fresh->session_id = session_id;
    dv_estate_init(&fresh->estate, handle, fresh);
    fresh->next = all;
    all = fresh;
    return fresh;
}

static int enter(dv_apache *apache, zhandle_t *handle) {
    assert(!apache->shared && !apache->next_guest);
    int state = zoo_state(handle);
    if (state == ZOO_EXPIRED_SESSION_STATE) return DIVVY_ELOST;
    if (state == ZOO_AUTH_FAILED_STATE) return DIVVY_EAUTH;
    dv_shared *s = find_or_make(handle);
    if (!s) return DIVVY_ENOMEM;
    bool first = !s->guests;
    apache->handle = handle;
    apache->shared = s;
    apache->next_guest = s->guests;
    s->guests = apache;
    if (first) {
        s->heard = DIVVY_SUSPENDED;
        /* A watcher that the host has set after ours stays, since it may call ours; the watch on the root does. */
        if (!s->chained) s->before = zoo_set_watcher(handle, on_session_event);
        s->chained = true;
        prime(s);
    } else if (s->heard == DIVVY_CONNECTED) {
        dv_session_news news = news_of(s);
        dv_apache_post_news(apache, handle, &news);
    }
    return 0;
}

int dv_shared_enter(dv_apache *apache, zhandle_t *handle) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
    dv_shared_lock();
    int error = enter(apache, handle);
    dv_shared_unlock();
    return error;
}

/* Gives the host its watcher back, unless it has set another since: that one may call ours. */
static void unchain(dv_shared *s) {
    assert(s->chained && s->handle);
    watcher_fn current = zoo_set_watcher(s->handle, on_session_event);
    s->chained = current != on_session_event;
    zoo_set_watcher(s->handle, s->chained ? current : s->before);
}

static void await_answers(dv_shared *s, const dv_apache *apache, int wait_ms) {
    int64_t until_ms = dv_monotonic_ms() + wait_ms;
    bool late = s->has_thread && pthread_equal(s->thread, pthread_self()); /* It is us that answers would come by. */
    while (!late && !s->ended && dv_apache_awaits_answers(apache) && zoo_state(s->handle) == ZOO_CONNECTED_STATE)
        late = !dv_condition_wait(&answer_came, &mutex, until_ms);
}

void dv_shared_leave(dv_apache *apache, bool alive, int wait_ms) {
    dv_shared *s = apache->shared;
    if (!s) return;
    dv_shared_lock();
    if (alive && wait_ms) await_answers(s, apache, wait_ms);
    assert(s->handle || s->ended);
    dv_apache_orphan_all(apache, &s->orphans);
    if (!s->ended) dv_estate_inherit(&s->estate, apache);
    dv_estate_forget(apache);
    dv_apache **place = &s->guests;
    while (*place && *place != apache) place = &(*place)->next_guest;
    if (*place) *place = apache->next_guest;
    apache->handle = NULL;
    apache->shared = NULL;
    apache->next_guest = NULL;
    if (alive) dv_estate_settle(&s->estate); /* else when the handle next calls back, if it does */
    /* While there is something to settle the handle's events are still of use. */
    if (alive && !in_use(s) && !s->ended && s->chained) unchain(s);
    drop_if_unused(s);
    dv_shared_unlock();
}

bool dv_shared_is_on(const dv_apache *apache, zhandle_t *handle) {
    dv_shared_lock();
    const dv_shared *s = apache->shared;
    bool on = s && s->handle == handle && !s->ended && s->session_id == zoo_client_id(handle)->client_id;
    dv_shared_unlock();
    return on;
}

/* ---- requests ---- */

bool dv_shared_begin(dv_shared *shared) {
    dv_shared_lock();
    if (!shared->ended) return true;
    dv_shared_unlock();
    return false;
}

bool dv_shared_is_connected(const dv_shared *shared) {
    return !shared->ended && shared->heard == DIVVY_CONNECTED;
}

void dv_shared_answered(dv_shared *shared) {
    shared->thread = pthread_self();
    shared->has_thread = true;
    pthread_cond_broadcast(&answer_came);
    dv_estate_settle(&shared->estate);
    drop_if_unused(shared);
}
