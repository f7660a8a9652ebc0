/* Death watches: processes that outlive a member's, and end its session. SPDX-License-Identifier: Apache-2.0
 *
 * Rules C10 and G10 of docs/protocol.md, in histories with `death_watch`. A member's client tells its watch of each
 * session by a real socket, as on a real machine, and the watch reads it by the library's code. When the member
 * crashes, what its user worked on goes on for a while, as a command under a guardian does, but not beyond the
 * session's deadline (G3). The watch comes late, or was killed together with the member; then nobody else acts, and
 * the session runs out. It takes the session up by a client of its own, so that all faults of servers meet it.
 *
 * S24 is checked where a session ends, S2 where somebody begins to believe in an item, L10 when a watch acts. Excused
 * from all three: a session that an administrator ended (sim_truth_kill()). From S2: locks and slots, and kazoo
 * members; S24 says the same of them earlier. */
#include "watches.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/death_watch.h"
#include "mutant.h"
#include "testing/ensemble.h"
#include "zookeeper/watcher.h"

enum { LOOK_MS = 50, WATCHES_MAX = 3 * SIM_SLOTS_MAX, AGAIN_MS = 10, AGAIN_MAX_MS = 1000, TIMEOUTS = 2 };

struct sim_watch {
    bool used, killed;
    char name[40];                      /* of the member */
    sim_member *m;                      /* NULL: its process has ended */
    int client_socket, socket, process; /* the first is -1 when it is closed */
    dv_watcher watcher;
    divvy_client_config config;
    int64_t delay_ms, goes_on_ms; /* that it comes late, and that work goes on */
    bool dies;                    /* when the member does */
    int64_t looked_at;            /* while the process lives */
    /* When the process has ended: */
    int64_t ended_at, works_until, session;
    int64_t tokens[SIM_ITEMS_MAX]; /* of the items that were worked on; 0: it was not */
    int64_t act_at, pause_ms;      /* INT64_MAX: there is nothing to be done */
    bool waited;
    divvy_client *client; /* by which it ends the session */
    int64_t target;       /* which */
};

static void met(const sim_world *w, sim_watch_meeting meeting) {
    w->coverage->watch_meetings[meeting]++;
}

/* ---- its life ---- */

static void set_free(sim_watch *x) {
    if (x->client) divvy_client_close(x->client);
    if (x->client_socket >= 0) close(x->client_socket);
    close(x->socket);
    close(x->process);
    munmap(x->watcher.message, DV_WILL_BYTES_MAX);
    if (x->m) x->m->watch = NULL;
    x->used = false;
}

static sim_watch *find_room(sim_world *w) {
    if (!w->watches) w->watches = calloc(WATCHES_MAX, sizeof *w->watches);
    if (!w->watches) abort();
    for (size_t i = 0; i < WATCHES_MAX; i++) {
        if (!w->watches[i].used) return &w->watches[i];
    }
    return NULL;
}

void sim_watch_begin(sim_member *m, sim_random random) {
    sim_random *r = &random;
    sim_watch *x = m->world->script->death_watch ? find_room(m->world) : NULL;
    int64_t timeout_ms = m->client_config.session_timeout_ms;
    int ends[2];
    if (!x) return;
    *x = (sim_watch){.used = true, .m = m, .config = m->client_config, .act_at = INT64_MAX, .pause_ms = AGAIN_MS};
    memcpy(x->name, m->name, sizeof x->name);
    x->delay_ms = SIM_ONE_OF(r, 0, 1, 20, 200, timeout_ms / 2, 2 * timeout_ms);
    x->goes_on_ms = SIM_ONE_OF(r, 0, 1, 100, 500, timeout_ms / 2, timeout_ms);
    x->dies = sim_chance(r, 15);
    x->config.user = NULL;
    x->config.hosts = "ensemble";
    x->config.ephemeral_path_bytes = x->config.watch_path_bytes = 0;
    x->process = eventfd(0, EFD_CLOEXEC);
    if (x->process < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 ||
        dv_watcher_init(&x->watcher, ends[1], x->process) != 0)
        abort();
    x->client_socket = ends[0];
    x->socket = ends[1];
    m->watch = x;
    if (dv_death_watch_use(&m->client->death_watch, &x->config, ends[0]) != 0) abort();
}

/* ---- the end of a process ---- */

static bool works(const sim_member *m, int64_t session) {
    if (!sim_member_alive(m) || sim_truth_killed(&m->world->truth, session)) return false;
    for (size_t i = 0; i < m->world->script->items; i++) {
        if (m->items[i].works && m->items[i].work_session == session) return true;
    }
    for (size_t i = 0; i < m->claim_count; i++) {
        if (m->claims[i].works && m->claims[i].work_session == session) return true;
    }
    return false;
}

/* What its user worked on goes on. Its clock may be the faster one. */
static void leave_work(sim_watch *x, const sim_member *m) {
    sim_world *w = m->world;
    if (!works(m, x->session)) return;
    int64_t left_ms = (atomic_load(&m->client->alive_until) - dv_client_now(m->client)) * 99 / 100;
    x->works_until = w->now_ms + (x->goes_on_ms < left_ms ? x->goes_on_ms : left_ms);
    for (size_t i = 0; i < w->script->items; i++) {
        const sim_holding *h = &m->items[i];
        x->tokens[i] = h->works && h->work_session == x->session ? h->work_token : 0;
    }
    sim_trace(w, "what %s worked on goes on for %lld ms", x->name, (long long)(x->works_until - w->now_ms));
}

static void end_process(sim_watch *x) {
    static const uint64_t one = 1;
    if (write(x->process, &one, sizeof one) != (ssize_t)sizeof one) abort();
    x->ended_at = x->m->world->now_ms;
    x->m->watch = NULL;
    x->m = NULL;
    close(x->client_socket);
    x->client_socket = -1;
}

void sim_watch_crash(sim_member *m) {
    sim_watch *x = m->watch;
    if (!x) return;
    x->session = divvy_client_session_id(m->client);
    leave_work(x, m);
    dv_death_watch_free(m->client->death_watch); /* without a word: its code runs no longer */
    m->client->death_watch = NULL;
    x->killed = x->dies;
    if (x->killed) met(m->world, SIM_MET_WATCH_KILLED);
    end_process(x);
}

void sim_watch_closed(sim_member *m, int64_t session) {
    sim_watch *x = m->watch;
    if (!x) return;
    x->session = session;
    end_process(x);
}

/* ---- what it does ---- */

static int64_t told_session(const sim_watch *x) {
    dv_will will;
    return dv_will_parse(&will, x->watcher.message, x->watcher.bytes) == 0 ? will.session_id : 0;
}

static bool is_due(sim_world *w, sim_watch *x) {
    bool was_told = dv_watcher_has_will(&x->watcher), ended = dv_watcher_has_ended(&x->watcher);
    dv_watcher_listen(&x->watcher);
    bool told = dv_watcher_has_will(&x->watcher);
    if (was_told && !told) met(w, SIM_MET_WATCH_FORGETS);
    ended |= DV_MUTANT(watch_at_pause) && x->m && x->m->paused;
    bool all_gone = x->m ? !works(x->m, divvy_client_session_id(x->m->client)) : w->now_ms >= x->works_until;
    if (x->killed) { /* G10: nobody else knows what is left. */
        if (!DV_MUTANT(watch_without_forker)) return false;
        all_gone = true;
    }
    x->waited |= told && ended && !all_gone;
    return dv_will_is_due(told, ended, all_gone);
}

static dv_mem_client *at_servers(const sim_watch *x) {
    return (dv_mem_client *)(void *)x->client->znode;
}

static void attempt(sim_world *w, sim_watch *x) {
    x->target = told_session(x);
    sim_trace(w, "the watch of %s takes session 0x%llx up", x->name, (unsigned long long)x->target);
    if (!x->m && x->target != x->session) /* L10 */
        sim_violate(w, "L10", "the watch of %s takes up session 0x%llx, and its process had 0x%llx last", x->name,
                    (unsigned long long)x->target, (unsigned long long)x->session);
    if (divvy_testing_client_open(&x->client, w->ensemble, &x->config) != 0) {
        sim_violate(w, "open", "no client: %s", divvy_client_error(NULL));
        return;
    }
    at_servers(x)->session_id = x->target; /* before it connects */
    x->act_at = INT64_MAX;
}

static void close_client(sim_world *w, sim_watch *x) {
    divvy_client *client = x->client;
    x->client = NULL;
    divvy_client_close(client);
    sim_check_anew(w);
}

static void follow(sim_world *w, sim_watch *x) {
    /* Before the client goes on with a new session, as clients do. */
    bool expired = at_servers(x)->native == DV_MEM_OVER || at_servers(x)->session_id != x->target;
    if (!expired && divvy_client_state(x->client) == DIVVY_CONNECTED) {
        sim_trace(w, "the watch of %s closes its session", x->name);
        close_client(w, x);
        x->act_at = w->now_ms + x->pause_ms;
        x->pause_ms = x->pause_ms < AGAIN_MAX_MS / 2 ? 2 * x->pause_ms : AGAIN_MAX_MS;
        if (x->waited) met(w, SIM_MET_WATCH_WAITED);
        x->waited = false;
    } else if (expired) {
        sim_trace(w, "the watch of %s hears that the session has ended", x->name);
        if (x->pause_ms == AGAIN_MS) met(w, SIM_MET_WATCH_LATE);
        if (x->pause_ms > 2 * AGAIN_MS) met(w, SIM_MET_WATCH_AGAIN);
        close_client(w, x);
        set_free(x);
    }
}

static int64_t gives_up_at(const sim_watch *x) {
    return x->m ? INT64_MAX : x->ended_at + TIMEOUTS * x->config.session_timeout_ms;
}

static void step(sim_world *w, sim_watch *x) {
    bool over = !x->m && w->now_ms >= gives_up_at(x);
    if (over) {
        sim_trace(w, "the watch of %s gives up", x->name);
        set_free(x);
        sim_check_anew(w);
        return;
    }
    if (x->client) {
        follow(w, x);
        return;
    }
    if (x->m && w->now_ms < x->looked_at + LOOK_MS && w->now_ms < x->act_at) return;
    x->looked_at = w->now_ms;
    if (!is_due(w, x)) {
        bool needed = x->m || w->now_ms < x->works_until || (!x->killed && dv_watcher_has_will(&x->watcher));
        x->act_at = INT64_MAX;
        if (!needed) set_free(x);
        return;
    }
    if (x->act_at == INT64_MAX) x->act_at = w->now_ms + x->delay_ms;
    if (w->now_ms >= x->act_at) attempt(w, x);
}

void sim_watches_step(sim_world *w) {
    for (size_t i = 0; w->watches && i < WATCHES_MAX && !w->violation.set; i++) {
        if (w->watches[i].used) step(w, &w->watches[i]);
    }
}

int64_t sim_watches_next(const sim_world *w) {
    int64_t next = INT64_MAX;
    for (size_t i = 0; w->watches && i < WATCHES_MAX; i++) {
        const sim_watch *x = &w->watches[i];
        if (!x->used) continue;
        if (x->act_at < next) next = x->act_at;
        if (gives_up_at(x) < next) next = gives_up_at(x);
        if (!x->m && x->works_until > w->now_ms && x->works_until < next) next = x->works_until;
    }
    return next;
}

void sim_watches_free(sim_world *w) {
    for (size_t i = 0; w->watches && i < WATCHES_MAX; i++) {
        if (w->watches[i].used) set_free(&w->watches[i]);
    }
    free(w->watches);
    w->watches = NULL;
}

/* ---- what must hold ---- */

/* Returns for how long what its process left at work goes on: by the ensemble's clock, since time goes on in calls. */
static int64_t work_left_ms(const sim_world *w, const sim_watch *x) {
    if (!x->used || x->m || sim_truth_killed(&w->truth, x->session)) return 0;
    int64_t left_ms = x->works_until - divvy_testing_now_ms(w->ensemble);
    return left_ms > 0 ? left_ms : 0;
}

void sim_watches_check_end(sim_world *w, const divvy_testing_transaction *t) {
    for (size_t i = 0; w->watches && i < WATCHES_MAX; i++) {
        const sim_watch *x = &w->watches[i];
        if (!x->used || x->m || x->session != t->session_id) continue;
        if (!t->expired) met(w, SIM_MET_WATCH_ENDED);
        int64_t left_ms = work_left_ms(w, x);
        if (left_ms)
            sim_violate(w, t->expired ? "S1" : "S24", "session 0x%llx of %s ended, and its work goes on for %lld ms",
                        (unsigned long long)x->session, x->name, (long long)left_ms);
    }
}

void sim_watches_check_alone(const sim_member *m, size_t item) {
    sim_world *w = m->world;
    for (size_t i = 0; w->watches && i < WATCHES_MAX; i++) {
        const sim_watch *x = &w->watches[i];
        if (!work_left_ms(w, x) || !x->tokens[item] || sim_truth_excused(&w->truth, item, x->tokens[item])) continue;
        sim_violate(w, "S2", "%s believes that it owns %s, which %s left at work", m->name, w->items[item], x->name);
    }
}
