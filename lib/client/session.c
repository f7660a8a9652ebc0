/* The session's state, as it concerns recipes: belief, heartbeats, its end. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/container.h"
#include "client/client.h"
#include "znode/ensure.h"

/* ---- belief: docs/protocol.md, C1 and C5 ---- */

static void on_connected(divvy_client *client, const dv_session_news *news, int64_t now);

static void set_state(divvy_client *client, divvy_session_state state) {
    static const bool allowed[][DIVVY_CLOSED + 1] = {
        [DIVVY_CONNECTING] = {[DIVVY_CONNECTED] = true, [DIVVY_LOST] = true, [DIVVY_AUTH_FAILED] = true},
        [DIVVY_CONNECTED] = {[DIVVY_SUSPENDED] = true, [DIVVY_LOST] = true, [DIVVY_AUTH_FAILED] = true},
        [DIVVY_SUSPENDED] = {[DIVVY_CONNECTED] = true, [DIVVY_LOST] = true, [DIVVY_AUTH_FAILED] = true},
        [DIVVY_LOST] = {[DIVVY_CONNECTING] = true},
        [DIVVY_CLOSED] = {false},
    };
    if (client->state == state) return;
    assert(allowed[client->state][state]);
    (void)allowed;
    dv_client_log(client, DIVVY_LOG_DEBUG, "the session: %s -> %s", divvy_session_state_name(client->state),
                  divvy_session_state_name(state));
    client->state = state;
    client->session_events++;
    dv_client_changed(client);
    dv_client_tell_session(client);
}

/* C5: a passed deadline is final. The thread that sees it makes it so, and no late proof revives the session. */
bool dv_client_alive_at(const divvy_client *c, int64_t now) {
    divvy_client *client = (divvy_client *)(uintptr_t)c;
    int64_t until = atomic_load_explicit(&client->alive_until, memory_order_acquire);
    while (until > 0) {
        if (now < until) return true;
        if (atomic_compare_exchange_weak(&client->alive_until, &until, DV_PASSED)) return false;
    }
    return false;
}

static void believe(divvy_client *client, int64_t now) {
    int64_t until = dv_clock_alive_until(&client->clock), old = atomic_load(&client->alive_until);
    if (client->end_error || client->state == DIVVY_CONNECTING) return;
    if (until == 0 || until == old || old == DV_PASSED || (old > 0 && now >= old)) return;
    /* C5: the proof has come too late to be one, or the next could. No deadline runs, so that nothing ends by it. */
    if (old == 0 && until - now <= dv_clock_first_needs_ms(&client->clock)) return;
    if (!atomic_compare_exchange_strong(&client->alive_until, &old, until)) return;
    dv_client_step(client, "believes until=%lld", (long long)until);
    dv_timer_set(client, &client->deadline_timer, until);
    if (old == 0) dv_tell_listeners(client, DV_SESSION_PROVEN, now);
}

/* ---- heartbeats: docs/protocol.md, C4 ---- */

void dv_own_node_add(divvy_client *client, dv_own_node *node) {
    assert(!node->link);
    node->next = NULL;
    node->link = client->own_nodes_end;
    *client->own_nodes_end = node;
    client->own_nodes_end = &node->next;
}

void dv_own_node_remove(divvy_client *client, dv_own_node *node) {
    if (!node->link) return;
    assert(client->own_nodes);
    if (client->beat_node == node) client->beat_node = NULL;
    *node->link = node->next;
    if (node->next) node->next->link = node->link;
    else client->own_nodes_end = node->link;
    node->link = NULL;
}

static dv_own_node *next_own_node(divvy_client *client) {
    dv_own_node *node = client->own_nodes;
    if (!node) return NULL;
    dv_own_node_remove(client, node);
    dv_own_node_add(client, node);
    return node;
}

static void beat(divvy_client *client, bool own) {
    dv_own_node *node = client->beat_node = own ? next_own_node(client) : NULL;
    dv_op op = {.kind = DV_CHECK, .path = node ? node->path : "/", .version = node ? 0 : -1};
    assert(dv_client_connected(client));
    if (dv_znode_multi(client->znode, &op, 1, dv_session_beaten, client) == 0) client->beat_under_way = true;
}

void dv_session_beaten(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    (void)replies;
    (void)count;
    divvy_client *client = context;
    client->beat_under_way = false;
    if (!dv_client_connected(client) || (error != DIVVY_ENOENT && error != DIVVY_EVERSION)) return;
    dv_own_node *node = client->beat_node;
    beat(client, false);
    if (node) node->missing(node, now);
}

/* One at a time: what is not answered would only be asked for again. */
static void on_beat_timer(dv_timer *timer, int64_t now) {
    divvy_client *client = DV_CONTAINER(timer, divvy_client, beat_timer);
    if (!dv_client_connected(client)) return;
    int64_t due = dv_clock_next_beat(&client->clock);
    if (now >= due) {
        if (!client->beat_under_way) beat(client, true);
        due = now + dv_clock_heartbeat_ms(&client->clock);
    }
    dv_timer_set(client, timer, due);
}

/* Each answer of a server, before the recipe that asked hears of it. */
void dv_session_answered(void *context, const dv_answer *answer, int64_t now) {
    divvy_client *client = context;
    if (client->end_error) return;
    dv_clock_answered(&client->clock, answer, now);
    if (!answer->wrote || answer->error != 0) return;
    if (client->beat_timer.link && dv_clock_next_beat(&client->clock) < client->beat_timer.at)
        dv_timer_set(client, &client->beat_timer, dv_clock_next_beat(&client->clock));
    believe(client, now);
}

/* ---- the end of a session ---- */

void dv_fate_enter(divvy_client *client, dv_fate to) {
    static const bool allowed[][DV_FATE_TO_CLOSE + 1] = {
        [DV_FATE_OPEN] = {[DV_FATE_LIVES_ON] = true, [DV_FATE_BURIED] = true},
        [DV_FATE_LIVES_ON] = {[DV_FATE_OPEN] = true, [DV_FATE_BURIED] = true},
        [DV_FATE_BURIED] = {[DV_FATE_OPEN] = true, [DV_FATE_TO_CLOSE] = true},
        [DV_FATE_TO_CLOSE] = {[DV_FATE_BURIED] = true},
    };
    assert(allowed[client->fate][to]);
    assert(to != DV_FATE_LIVES_ON || client->znode->attached);
    assert(to != DV_FATE_TO_CLOSE || client->znode->backend->reopen);
    (void)allowed;
    client->fate = to;
}

/* Its fate is known before its listeners are told. */
static void end_session(divvy_client *client, divvy_session_state state, int error, const char *reason, int64_t now) {
    assert(!client->end_error && error && client->fate != DV_FATE_OPEN);
    dv_timer_cancel(&client->deadline_timer);
    dv_timer_cancel(&client->beat_timer);
    client->end_error = error;
    client->metrics.losses++;
    atomic_store(&client->alive_until, DV_PASSED);
    snprintf(client->end_reason, sizeof client->end_reason, "%s", reason);
    set_state(client, state);
    dv_client_log(client, DIVVY_LOG_ERROR, "session 0x%llx has ended: %s",
                  (unsigned long long)atomic_load(&client->session_id), reason);
    dv_tell_listeners(client, DV_SESSION_LOST, now);
}

/* Ends its requests, as its nodes go by themselves. */
static void bury_session(divvy_client *client, int error, int64_t now) {
    if (client->fate == DV_FATE_LIVES_ON) dv_fate_enter(client, DV_FATE_BURIED);
    assert(client->fate == DV_FATE_BURIED);
    client->link_up = false;
    dv_tell_listeners(client, DV_SESSION_OVER, now);
    dv_session_give_up_barriers(client, error, now);
}

/* Has the loop close it, unless it is a host's. */
static void close_soon(divvy_client *client) {
    if (client->znode->backend->reopen && client->life == DV_CLIENT_OPEN) dv_fate_enter(client, DV_FATE_TO_CLOSE);
}

/* G4: as long as work goes on its nodes stay, but for no longer than if we had died. */
static void close_when_over(divvy_client *client, int64_t now) {
    assert(client->fate == DV_FATE_BURIED);
    if (client->kept) dv_timer_set(client, &client->reopen_timer, now + atomic_load(&client->timeout_ms));
    else close_soon(client);
}

void dv_client_keep_session(divvy_client *client, bool keep) {
    dv_client_lock(client);
    bool over = client->kept && !keep && client->fate == DV_FATE_BURIED;
    client->kept = keep;
    if (over) dv_timer_set(client, &client->reopen_timer, dv_client_now(client));
    dv_client_unlock(client);
}

void dv_client_abandon(divvy_client *client, int error, int64_t now) {
    client->znode->backend->abandon(client->znode, error, now);
    dv_again_end(client->znode, error, now);
}

/* C5: the session may be over by now. One of our own is closed (loop.c); on a host's our nodes are deleted. */
static void give_up(divvy_client *client, divvy_session_state state, int error, const char *reason, int64_t now) {
    assert(!client->end_error);
    bool lives_on = client->znode->attached && state == DIVVY_LOST;
    dv_fate_enter(client, lives_on ? DV_FATE_LIVES_ON : DV_FATE_BURIED);
    end_session(client, state, error, reason, now);
    if (lives_on) {
        if (client->link_up) dv_tell_listeners(client, DV_SESSION_LINK, now);
        return;
    }
    bury_session(client, DIVVY_ELOST, now);
    close_when_over(client, now);
    dv_client_abandon(client, DIVVY_ELOST, now);
}

/* C3: with a tick that is told too small no deadline is safe. A larger one only costs time. */
void dv_session_tick_told(void *context, int64_t tick_ms, int64_t now) {
    divvy_client *client = context;
    int64_t told_ms = client->clock.tick_ms;
    if (client->end_error || told_ms == 0 || tick_ms <= told_ms) return;
    char reason[sizeof client->end_reason];
    snprintf(reason, sizeof reason,
             "ensemble_tick_ms (--ensemble-tick of the command, or $DIVVY_ENSEMBLE_TICK_MS) is %lld, and the server's "
             "tickTime %lld: set it to that",
             (long long)told_ms, (long long)tick_ms);
    give_up(client, DIVVY_AUTH_FAILED, DIVVY_EINVAL, reason, now);
}

static void on_deadline(dv_timer *timer, int64_t now) {
    divvy_client *client = DV_CONTAINER(timer, divvy_client, deadline_timer);
    give_up(client, DIVVY_LOST, DIVVY_ELOST, "no server has proven within the deadline that it lives", now);
}

void dv_session_closed(divvy_client *client) {
    assert(client->life == DV_CLIENT_CLOSED);
    atomic_store(&client->alive_until, DV_PASSED);
    dv_timer_cancel(&client->deadline_timer);
    dv_timer_cancel(&client->beat_timer);
    dv_timer_cancel(&client->reopen_timer);
    dv_timer_cancel(&client->again_timer);
    client->state = DIVVY_CLOSED;
}

void dv_session_reopened(divvy_client *client) {
    assert(client->state == DIVVY_LOST);
    dv_fate_enter(client, DV_FATE_OPEN);
    client->end_error = 0;
    client->end_reason[0] = '\0';
    atomic_store(&client->alive_until, 0);
    dv_clock_reset(&client->clock, client->config.ensemble_tick_ms);
    set_state(client, DIVVY_CONNECTING);
}

void dv_session_revive(divvy_client *client, int64_t now) {
    if (client->fate != DV_FATE_LIVES_ON || !client->link_up || client->life != DV_CLIENT_OPEN) return;
    if (client->ephemeral_count > client->lasting_count) return;
    dv_session_reopened(client);
    on_connected(client,
                 &(dv_session_news){.state = DIVVY_CONNECTED,
                                    .session_id = atomic_load(&client->session_id),
                                    .timeout_ms = atomic_load(&client->timeout_ms)},
                 now);
}

/* ---- news of the backend ---- */

/* C4: a connection begins with a heartbeat, which by C3 proves what was answered on the last one. */
static void announce_connection(divvy_client *client, int64_t now) {
    assert(client->fate == DV_FATE_OPEN);
    set_state(client, DIVVY_CONNECTED);
    believe(client, now);
    beat(client, true);
    dv_timer_set(client, &client->beat_timer, now + dv_clock_heartbeat_ms(&client->clock));
    dv_tell_listeners(client, DV_SESSION_CONNECTED, now);
    dv_barrier_start(client);
}

static void on_chroot(void *context, int error, int64_t now) {
    divvy_client *client = context;
    assert(client->rooting);
    client->rooting = false;
    if (client->end_error || dv_session_over(error) || !client->link_up) return; /* or the next connection's */
    if (dv_outcome_unknown(error)) {
        dv_client_again(client); /* A request may fail by an earlier connection, which was told of as ended before. */
        return;
    }
    if (error == 0) {
        announce_connection(client, now);
        return;
    }
    char reason[sizeof client->end_reason];
    snprintf(reason, sizeof reason, "the chroot %.60s cannot be created: %s", client->chroot, divvy_strerror(error));
    give_up(client, DIVVY_AUTH_FAILED, error, reason, now);
}

static void make_chroot(divvy_client *client) {
    assert(!client->rooting && client->state == DIVVY_CONNECTING);
    client->rooting = dv_ensure_path(client->znode, client->chroot, DV_PERSISTENT, on_chroot, client) == 0;
    if (!client->rooting) dv_client_again(client);
}

static void warn_of_times(divvy_client *client, const dv_session_news *news) {
    if (news->timeout_ms != client->config.session_timeout_ms && !client->znode->attached)
        dv_client_warn(client, DIVVY_WARN_SESSION,
                       "the servers gave a session timeout of %lld ms instead of the %lld ms asked for",
                       (long long)news->timeout_ms, (long long)client->config.session_timeout_ms);
    int64_t tick_ms = client->clock.tick_ms;
    if (!tick_ms) return;
    if (!dv_clock_can_hold(&client->clock))
        dv_client_warn(client, DIVVY_WARN_SESSION,
                       "the servers gave a session timeout of %lld ms, which can hold nothing on ticks of %lld ms: "
                       "nothing will be owned; the least that can is %lld ms",
                       (long long)news->timeout_ms, (long long)tick_ms, (long long)dv_clock_least_timeout_ms(tick_ms));
    else if (news->timeout_ms < 5 * tick_ms)
        dv_client_warn(client, DIVVY_WARN_SESSION,
                       "a session timeout of %lld ms is less than 5 ticks of %lld ms: what is owned may have to be "
                       "given up at a short hitch already; ask for more",
                       (long long)news->timeout_ms, (long long)tick_ms);
}

/* B9: when the connection ends without our noticing, others may own what we still believe in. */
static bool is_unsafe(const divvy_client *client, const dv_session_news *news) {
    return news->ends_with_connection && !client->config.tokens_checked;
}

/* C10: before anything can be owned on the session. */
static void tell_death_watch(divvy_client *client, const dv_session_news *news) {
    char password[DV_SESSION_PASSWORD_BYTES] = {0};
    if (!client->death_watch) return;
    if (client->znode->backend->password) client->znode->backend->password(client->znode, password);
    dv_death_watch_tell(client->death_watch, news->session_id, news->timeout_ms, password);
    explicit_bzero(password, sizeof password);
}

static void on_connected(divvy_client *client, const dv_session_news *news, int64_t now) {
    assert(!client->end_error && client->link_up);
    if (is_unsafe(client, news)) {
        give_up(client, DIVVY_AUTH_FAILED, DIVVY_EUNSUPPORTED,
                "the server is no ZooKeeper: it ends a session with its connection, as ClickHouse Keeper does, so one "
                "thing can have two owners. If all resources check tokens, set tokens_checked "
                "(DIVVY_TOKENS_CHECKED=1)",
                now);
        return;
    }
    bool first = client->state == DIVVY_CONNECTING && !client->clock.timeout_ms;
    if (first) tell_death_watch(client, news);
    atomic_store(&client->session_id, news->session_id);
    atomic_store(&client->timeout_ms, news->timeout_ms);
    dv_clock_connected(&client->clock, news->timeout_ms, news->created_at, client->guids.client_random);
    dv_client_log(client, DIVVY_LOG_INFO, "connected: session 0x%llx, timeout %lld ms",
                  (unsigned long long)news->session_id, (long long)news->timeout_ms);
    if (first) warn_of_times(client, news);
    /* H4: recipes hear of a connection only when the chroot that they stand on is there. */
    bool rooted = client->chroot[0] == '\0' || client->state != DIVVY_CONNECTING;
    if (rooted) announce_connection(client, now);
    else if (!client->rooting) make_chroot(client); /* else it is being made, by requests that went by this one */
}

/* The deadline stands as it did: only proof moves it. */
static void on_suspended(divvy_client *client, int64_t now) {
    assert(!client->link_up);
    if (client->state != DIVVY_CONNECTED) return;
    set_state(client, DIVVY_SUSPENDED);
    dv_client_log(client, DIVVY_LOG_WARN, "the connection is down; reconnecting");
    dv_tell_listeners(client, DV_SESSION_SUSPENDED, now);
}

/* News of a host's session that was given up: our nodes on it go as soon as there is a link, or with it. */
static void on_news_after_loss(divvy_client *client, const dv_session_news *news, int64_t now) {
    if (client->fate != DV_FATE_LIVES_ON) return; /* C5: final, whatever a late answer says. */
    if (news->state == DIVVY_CONNECTED) dv_tell_listeners(client, DV_SESSION_LINK, now);
    else if (news->state != DIVVY_SUSPENDED) bury_session(client, DIVVY_ELOST, now);
    if (client->link_up) dv_barrier_start(client);
}

static void take_news(divvy_client *client, const dv_session_news *news, int error, int64_t now) {
    client->link_up = news->state == DIVVY_CONNECTED;
    if (client->link_up) client->clock.connection++;
    if (client->end_error) {
        on_news_after_loss(client, news, now);
        return;
    }
    if (news->state == DIVVY_CONNECTED) {
        on_connected(client, news, now);
    } else if (news->state == DIVVY_SUSPENDED) {
        on_suspended(client, now);
    } else {
        const char *refused = news->reason ? news->reason : "the servers refused the credentials";
        dv_fate_enter(client, DV_FATE_BURIED);
        if (error == DIVVY_ELOST) dv_death_watch_forget(client->death_watch); /* It is over by the servers' word. */
        end_session(client, news->state, error, error == DIVVY_ELOST ? "the servers have expired it" : refused, now);
        bury_session(client, error, now);
        close_soon(client);
    }
}

/* Takes news of the session. Requests that wait to be sent again end as those under way do. */
void dv_session_news_arrived(void *context, const dv_session_news *news, int64_t now) {
    static const int errors[] = {[DIVVY_CONNECTED] = 0,
                                 [DIVVY_SUSPENDED] = DIVVY_ECONNECTION,
                                 [DIVVY_LOST] = DIVVY_ELOST,
                                 [DIVVY_AUTH_FAILED] = DIVVY_EAUTH};
    divvy_client *client = context;
    int error = errors[news->state];
    take_news(client, news, error, now);
    if (error) dv_again_end(client->znode, error, now);
}

static void on_reopen_timer(dv_timer *timer, int64_t now) {
    (void)now;
    divvy_client *client = DV_CONTAINER(timer, divvy_client, reopen_timer);
    assert(client->fate == DV_FATE_BURIED);
    if (client->life == DV_CLIENT_OPEN) dv_fate_enter(client, DV_FATE_TO_CLOSE);
}

void dv_session_reopen_later(divvy_client *client, int64_t now) {
    assert(client->fate == DV_FATE_BURIED);
    enum { AGAIN_MS = 1000 };
    dv_timer_set(client, &client->reopen_timer, now + AGAIN_MS);
}

/* ---- an allocation has failed ---- */

/* Without this timer, work on a connection would wait for the next connection, which may be days away. */
static void on_again_timer(dv_timer *timer, int64_t now) {
    divvy_client *client = DV_CONTAINER(timer, divvy_client, again_timer);
    if (!client->link_up) return;
    if (client->state == DIVVY_CONNECTING && !client->rooting) make_chroot(client);
    dv_tell_listeners(client, DV_SESSION_AGAIN, now);
    dv_barrier_start(client);
}

/* ---- begin, and look ---- */

void dv_session_init(divvy_client *client) {
    client->deadline_timer.fire = on_deadline;
    client->beat_timer.fire = on_beat_timer;
    client->reopen_timer.fire = on_reopen_timer;
    client->again_timer.fire = on_again_timer;
    client->own_nodes_end = &client->own_nodes;
    dv_clock_reset(&client->clock, client->config.ensemble_tick_ms);
    client->listeners_end = &client->listeners;
    client->state = DIVVY_CONNECTING;
}

int64_t dv_client_time_left_ms(divvy_client *client, int64_t now) {
    int64_t left_ms = dv_client_alive_at(client, now) ? atomic_load(&client->alive_until) - now : 0;
    return left_ms > 0 ? left_ms : 0;
}

const char *dv_client_why(const divvy_client *client, int error) {
    bool ended = error != DIVVY_ELOST && client->end_error == error && client->end_reason[0];
    return ended ? client->end_reason : divvy_strerror(error);
}

int dv_client_end_error(const divvy_client *client) {
    if (client->life != DV_CLIENT_OPEN) return DIVVY_ECLOSED;
    return client->state == DIVVY_LOST && client->znode->backend->reopen ? 0 : client->end_error;
}
