/* What the session's state means to recipes: the clock, the barrier, the budgets. SPDX-License-Identifier: Apache-2.0
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "znode/ensure.h"

/* ---- listeners ---- */

void dv_listen(divvy_client *client, dv_listener *listener) {
    assert(!listener->link);
    listener->next = NULL;
    listener->link = client->listeners_end;
    *client->listeners_end = listener;
    client->listeners_end = &listener->next;
}

void dv_unlisten(divvy_client *client, dv_listener *listener) {
    if (!listener->link) return;
    if (client->next_listener == listener) client->next_listener = listener->next;
    *listener->link = listener->next;
    if (listener->next) listener->next->link = listener->link;
    else client->listeners_end = listener->link;
    listener->link = NULL;
}

void dv_tell_listeners(divvy_client *client, dv_session_event event, int64_t now) {
    /* A listener may go, or others may come, while it is told. Telling is never nested. */
    assert(!client->next_listener);
    for (dv_listener *l = client->listeners; l; l = client->next_listener) {
        client->next_listener = l->next;
        l->hear(l->context, event, now);
    }
    client->next_listener = NULL;
}

/* ---- the session clock: docs/protocol.md, rules C1 to C4 ---- */

static void set_state(divvy_client *client, divvy_session_state state) {
    if (client->state == state) return;
    client->state = state;
    client->session_events++;
    dv_client_changed(client);
    dv_client_tell_session(client);
}

static void set_alive_until(divvy_client *client, int64_t at) {
    atomic_store_explicit(&client->alive_until, at, memory_order_release);
}

static void end_session(divvy_client *client, divvy_session_state state, int error, const char *reason, int64_t now) {
    dv_timer_cancel(&client->deadline_timer);
    set_alive_until(client, 0);
    client->end_error = error;
    snprintf(client->end_reason, sizeof client->end_reason, "%s", reason);
    set_state(client, state);
    dv_client_log(client, DIVVY_LOG_ERROR, "session 0x%llx has ended: %s",
                  (unsigned long long)atomic_load(&client->session_id), reason);
    dv_tell_listeners(client, DV_SESSION_LOST, now);
    dv_session_give_up_barriers(client, DIVVY_ELOST, now);
}

/* Ends a session that the servers may still think alive. */
static void give_up(divvy_client *client, divvy_session_state state, int error, const char *reason, int64_t now) {
    end_session(client, state, error, reason, now);
    client->znode->backend->abandon(client->znode, DIVVY_ELOST, now);
    client->given_up = true;
}

/* C3: no server has said so, but the session may be over by now; what was owned is not worked on any longer. */
static void on_deadline(dv_timer *timer, int64_t now) {
    divvy_client *client = (divvy_client *)(void *)((char *)timer - offsetof(divvy_client, deadline_timer));
    give_up(client, DIVVY_LOST, DIVVY_ELOST, "no server could be reached within the session's deadline", now);
}

static void start_barrier(divvy_client *client, int64_t now);

static void announce_connection(divvy_client *client, int64_t now) {
    set_alive_until(client, INT64_MAX);
    set_state(client, DIVVY_CONNECTED);
    dv_tell_listeners(client, DV_SESSION_CONNECTED, now);
    start_barrier(client, now);
}

static void on_chroot(void *context, int error, int64_t now) {
    divvy_client *client = context;
    if (client->end_error || dv_session_over(error) || dv_outcome_unknown(error)) return; /* or the next connection's */
    if (error == 0) {
        announce_connection(client, now);
        return;
    }
    char reason[sizeof client->end_reason];
    snprintf(reason, sizeof reason, "the chroot %.60s cannot be created: %s", client->chroot, divvy_strerror(error));
    give_up(client, DIVVY_AUTH_FAILED, error, reason, now);
}

static void on_connected(divvy_client *client, const dv_session_news *news, int64_t now) {
    bool first = atomic_load(&client->session_id) == 0;
    dv_timer_cancel(&client->deadline_timer);
    atomic_store(&client->session_id, news->session_id);
    atomic_store(&client->timeout_ms, news->timeout_ms);
    dv_client_log(client, DIVVY_LOG_INFO, "connected: session 0x%llx, timeout %lld ms",
                  (unsigned long long)news->session_id, (long long)news->timeout_ms);
    if (first && news->timeout_ms != client->config.session_timeout_ms) {
        dv_client_warn(client, DIVVY_WARN_SESSION,
                       "the servers gave a session timeout of %lld ms instead of the %lld ms asked for",
                       (long long)news->timeout_ms, (long long)client->config.session_timeout_ms);
    }
    /* H4: recipes hear of a connection only when the chroot that they stand on is there. */
    bool rooted = client->chroot[0] == '\0' || client->state != DIVVY_CONNECTING;
    if (rooted) announce_connection(client, now);
    else dv_ensure_path(client->znode, client->chroot, on_chroot, client);
}

static void on_suspended(divvy_client *client, int64_t now) {
    if (client->state != DIVVY_CONNECTED) return;
    /* C2: the link may have been dead for up to two thirds of the timeout before this was noticed. */
    int64_t at = now + atomic_load(&client->timeout_ms) / 3;
    set_alive_until(client, at);
    dv_timer_set(client, &client->deadline_timer, at);
    set_state(client, DIVVY_SUSPENDED);
    dv_client_log(client, DIVVY_LOG_WARN, "the connection is down; reconnecting");
    dv_tell_listeners(client, DV_SESSION_SUSPENDED, now);
}

void dv_session_news_arrived(void *context, const dv_session_news *news, int64_t now) {
    divvy_client *client = context;
    if (client->end_error) return; /* C3: final, whatever a late answer says. */
    switch (news->state) {
    case DIVVY_CONNECTED: on_connected(client, news, now); break;
    case DIVVY_LOST: end_session(client, DIVVY_LOST, DIVVY_ELOST, "the servers have expired it", now); break;
    case DIVVY_AUTH_FAILED:
        end_session(client, DIVVY_AUTH_FAILED, DIVVY_EAUTH, "the servers refused the credentials", now);
        break;
    default: on_suspended(client, now);
    }
}

void dv_session_answered(void *context, const dv_answer *answer, int64_t now) {
    (void)context;
    (void)answer;
    (void)now;
}

void dv_session_init(divvy_client *client) {
    client->deadline_timer.fire = on_deadline;
    client->listeners_end = &client->listeners;
    client->state = DIVVY_CONNECTING;
}

int dv_client_end_error(const divvy_client *client) {
    return client->closing || client->closed ? DIVVY_ECLOSED : client->end_error;
}

/* ---- the barrier: docs/protocol.md, rule R1 ---- */

static void append_waits(dv_barrier_wait **list, dv_barrier_wait *waits) {
    while (*list) list = &(*list)->next;
    *list = waits;
}

static void on_barrier(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    (void)replies;
    (void)count;
    divvy_client *client = context;
    dv_barrier_wait *waits = client->barrier_under_way;
    client->barrier_under_way = NULL;
    if (dv_outcome_unknown(error)) {
        append_waits(&client->barrier_waits, waits); /* Again on the next connection, or at once if this one is up. */
    } else {
        /* Any answer of a server will do: a refused write was put through the quorum like an accepted one. */
        int outcome = dv_session_over(error) ? error : 0;
        while (waits) {
            dv_barrier_wait *wait = waits;
            waits = wait->next;
            wait->done(wait->context, outcome, now);
        }
    }
    start_barrier(client, now);
}

static void start_barrier(divvy_client *client, int64_t now) {
    (void)now;
    if (!client->barrier_waits || client->barrier_under_way || !dv_client_connected(client)) return;
    dv_op op = {.kind = DV_CHECK, .path = "/", .version = -1};
    if (dv_znode_multi(client->znode, &op, 1, on_barrier, client) != 0) return; /* The next connection tries again. */
    client->barrier_under_way = client->barrier_waits;
    client->barrier_waits = NULL;
}

void dv_client_barrier(divvy_client *client, dv_barrier_wait *wait) {
    wait->next = NULL;
    append_waits(&client->barrier_waits, wait);
    start_barrier(client, 0);
}

void dv_session_give_up_barriers(divvy_client *client, int error, int64_t now) {
    dv_barrier_wait *waits = client->barrier_waits;
    client->barrier_waits = NULL;
    while (waits) {
        dv_barrier_wait *wait = waits;
        waits = wait->next;
        wait->done(wait->context, error, now);
    }
}

/* ---- names and budgets ---- */

void dv_client_guid(divvy_client *client, char out[DV_GUID_BYTES]) {
    dv_guid_next(&client->guids, atomic_load(&client->session_id), out);
}

size_t dv_path_cost(const char *path) {
    return strlen(path) + 4;
}

static bool has_room(divvy_client *client, const dv_budget *budget, size_t bytes) {
    bool room = bytes <= budget->limit_bytes - budget->used_bytes;
    if (!room) client->room_wanted = true;
    return room;
}

static void give_back(divvy_client *client, dv_budget *budget, size_t bytes) {
    assert(budget->used_bytes >= bytes);
    budget->used_bytes -= bytes;
    client->room_given = client->room_wanted;
}

int dv_reserve_node(divvy_client *client, size_t ephemeral_bytes, size_t watch_bytes) {
    if (!has_room(client, &client->ephemerals, ephemeral_bytes) || watch_bytes > client->watched.limit_bytes)
        return DIVVY_ELIMIT;
    if (!has_room(client, &client->watched, watch_bytes)) return DIVVY_EBUSY;
    client->ephemeral_count++;
    client->ephemerals.used_bytes += ephemeral_bytes;
    client->watched.used_bytes += watch_bytes;
    return 0;
}

void dv_release_ephemeral(divvy_client *client, size_t bytes) {
    assert(client->ephemeral_count > 0);
    client->ephemeral_count--;
    give_back(client, &client->ephemerals, bytes);
    dv_client_changed(client); /* A closing client waits for the last one. */
}

void dv_release_watch(divvy_client *client, size_t bytes) {
    give_back(client, &client->watched, bytes);
}

char *dv_client_path(const divvy_client *client, const char *path) {
    char *full = NULL;
    bool root = strcmp(path, "/") == 0;
    if (asprintf(&full, "%s%s", client->chroot, root && client->chroot[0] ? "" : path) < 0) return NULL;
    return full;
}

char *dv_client_default_identifier(void) {
    static atomic_uint made;
    char host[256] = "host";
    gethostname(host, sizeof host - 1);
    char *identifier = NULL;
    if (asprintf(&identifier, "%s-%d-%u", host, (int)getpid(), atomic_fetch_add(&made, 1) + 1) < 0) return NULL;
    return identifier;
}
