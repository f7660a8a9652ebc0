/* The ensemble as a whole: making it, and letting its time go on. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "base/threads.h"
#include "client/client.h"
#include "testing/ensemble.h"

/* ---- the thread of the real clock ---- */

/* The condition's clock may stand still while the machine sleeps: never for longer than this. */
static void wait_for_next(dv_mem *mem) {
    enum { SLICE_MS = 500 };
    int64_t left_ms = mem->heap_count ? mem->heap[0].at - mem->now : SLICE_MS;
    if (left_ms > SLICE_MS) left_ms = SLICE_MS;
    dv_condition_wait(&mem->earlier, &mem->mutex, dv_monotonic_ms() + left_ms);
}

static void *run(void *context) {
    dv_mem *mem = context;
    dv_mem_lock(mem);
    while (!mem->stopping) {
        while (!mem->stopping && mem->heap_count && mem->heap[0].at <= mem->now) dv_mem_event_run_first(mem);
        if (!mem->stopping) wait_for_next(mem);
        mem->now = dv_mem_clock_ms();
    }
    dv_mem_unlock(mem);
    return NULL;
}

static int start_thread(dv_mem *mem) {
    if (dv_thread_start(&mem->thread, run, mem)) return 0;
    mem->real = false;
    return DIVVY_ESYSTEM;
}

static void stop_thread(dv_mem *mem) {
    dv_mem_lock(mem);
    mem->stopping = true;
    pthread_cond_signal(&mem->earlier);
    dv_mem_unlock(mem);
    pthread_join(mem->thread, NULL);
}

/* ---- making and ending ---- */

static bool sensible(const divvy_testing_config *c) {
    bool delays = c->client_delay_min_ms >= 0 && c->client_delay_max_ms >= c->client_delay_min_ms &&
                  c->server_delay_min_ms >= 0 && c->server_delay_max_ms >= c->server_delay_min_ms &&
                  c->election_min_ms > 0 && c->election_max_ms >= c->election_min_ms;
    bool times = c->tick_ms >= 2 && c->tick_ms <= 3600000 && c->sync_limit_ticks > 0 &&
                 c->min_session_timeout_ms >= 0 && c->max_session_timeout_ms >= 0;
    bool bounded = times && c->client_delay_max_ms <= DV_TIME_MAX_MS && c->server_delay_max_ms <= DV_TIME_MAX_MS &&
                   c->election_max_ms <= DV_TIME_MAX_MS && c->sync_limit_ticks <= DV_TIME_MAX_MS / c->tick_ms &&
                   c->min_session_timeout_ms <= DV_TIME_MAX_MS && c->max_session_timeout_ms <= DV_TIME_MAX_MS;
    bool known = c->release == 0 || c->release == DIVVY_TESTING_3_4 || c->release == DIVVY_TESTING_3_8 ||
                 c->release == DIVVY_TESTING_3_9 || c->release == DIVVY_TESTING_3_9_6;
    return delays && bounded && known && c->servers >= 1 && c->servers <= DV_MEM_SERVERS_MAX;
}

/* The servers come up with a leader: what an election does in time is done here at once. */
static void elect_first(dv_mem *mem) {
    for (int i = 0; i < mem->server_count; i++) dv_mem_server_init(mem, i);
    dv_mem_server *leader = &mem->servers[dv_mem_between(mem, 0, mem->server_count - 1)];
    dv_mem_lead(leader, 1);
    for (int i = 0; i < mem->server_count; i++)
        if (&mem->servers[i] != leader) dv_mem_follow(&mem->servers[i], leader);
    int64_t since = mem->now;
    bool all = false;
    while (!all) {
        all = leader->serving;
        for (int i = 0; i < mem->server_count; i++) all = all && mem->servers[i].serving;
        if (all || mem->heap_count == 0) break;
        if (mem->heap[0].at > mem->now) mem->now = mem->heap[0].at;
        dv_mem_event_run_first(mem);
    }
    /* Then that time is taken back, so that the clock begins where it is said to. */
    int64_t passed_ms = mem->now - since;
    mem->now = since;
    for (size_t i = 0; i < mem->heap_count; i++) mem->heap[i].at -= passed_ms;
    for (int i = 0; i < mem->server_count; i++) {
        dv_mem_server *server = &mem->servers[i];
        server->since = since;
        if (!server->link) continue;
        server->link->heard_at[0] = server->link->heard_at[1] = since;
        server->link->channel.last_at[0] = server->link->channel.last_at[1] = since;
    }
}

void divvy_testing_config_init(divvy_testing_config *config, size_t size) {
    static const divvy_testing_config defaults = DIVVY_TESTING_CONFIG_INIT;
    dv_config_init(config, size, &defaults, sizeof defaults);
}

int divvy_testing_ensemble_create(divvy_testing_ensemble **out, const divvy_testing_config *given) {
    static const divvy_testing_config defaults = DIVVY_TESTING_CONFIG_INIT;
    if (!out) return DIVVY_EINVAL;
    *out = NULL;
    divvy_testing_config complete;
    if (dv_config_copy(&complete, sizeof complete, &defaults, given ? given : &defaults) != 0) return DIVVY_EINVAL;
    const divvy_testing_config *config = &complete;
    if (!sensible(config)) return DIVVY_EINVAL;
    dv_mem *mem = dv_mem_alloc(sizeof *mem);
    mem->config = complete;
    mem->real = config->real_clock != 0;
    mem->server_count = (int)config->servers;
    if (!config->min_session_timeout_ms) mem->config.min_session_timeout_ms = 2 * config->tick_ms;
    if (!config->max_session_timeout_ms) mem->config.max_session_timeout_ms = 20 * config->tick_ms;
    mem->history_first = 1;
    mem->now = mem->real ? dv_mem_clock_ms() : DV_MEM_START_MS;
    dv_mem_prng_seed(&mem->prng, config->seed);
    pthread_mutex_init(&mem->mutex, NULL);
    dv_condition_init(&mem->earlier);
    elect_first(mem);
    int error = mem->real ? start_thread(mem) : 0;
    if (error) divvy_testing_ensemble_destroy(mem);
    else *out = mem;
    return error;
}

static void free_tables(dv_mem *mem) {
    for (size_t i = 0; i < mem->history_count; i++) dv_mem_txn_unref(mem, mem->history[i]);
    for (size_t i = 0; i < mem->container_count; i++) dv_mem_path_unref(mem, mem->containers[i]);
    assert(mem->path_count == 0);
    for (size_t i = 0; i < mem->session_count; i++) free(mem->sessions[i]);
    for (uint32_t i = 0; i < mem->identity_count; i++) free(mem->identities[i]);
    for (dv_mem_event *event = mem->free_events, *next; event; event = next) {
        next = event->next;
        free(event);
    }
    free(mem->history);
    free(mem->containers);
    free(mem->quota_path);
    free(mem->paths);
    free(mem->sessions);
    free(mem->identities);
    free(mem->heap);
}

void divvy_testing_ensemble_destroy(divvy_testing_ensemble *mem) {
    if (!mem) return;
    assert(!mem->clients);
    if (mem->real) stop_thread(mem);
    for (int i = 0; i < mem->server_count; i++) dv_mem_server_free(&mem->servers[i]);
    while (mem->heap_count > 0) dv_mem_event_free(mem, mem->heap[--mem->heap_count].event);
    for (int i = 0; i < mem->server_count; i++) dv_mem_tree_free(mem, i);
    free_tables(mem);
    pthread_cond_destroy(&mem->earlier);
    pthread_mutex_destroy(&mem->mutex);
    free(mem);
}

/* ---- turns ---- */

static bool has_work_now(const divvy_client *c) {
    return c->events || (c->callbacks && !c->in_callback);
}

bool dv_mem_has_work(dv_mem_client *client) {
    const divvy_client *c = client->client;
    return has_work_now(c) || (c->timers.first && c->timers.first->at <= dv_mem_client_now(client));
}

static bool may_run(const dv_mem_client *client, const dv_mem_client *but) {
    bool driven = client->busy || client->client->processing; /* by a call that waits, further up */
    return client != but && !driven && !client->paused && !client->crashed;
}

/* Returns when a client's first timer is due. Computes it only for another timer, or after a change of the clock. */
static int64_t timer_due(dv_mem_client *client) {
    const dv_timer *timer = client->client->timers.first;
    if (!timer) return INT64_MAX;
    if (timer->at != client->turn_timer || !client->turn_at) {
        client->turn_timer = timer->at;
        client->turn_at = dv_mem_client_when(client, timer->at);
    }
    return client->turn_at;
}

/* Returns the client that runs next, and when. Of several at one time it is the next in the round. */
static dv_mem_client *next_turn(dv_mem *mem, const dv_mem_client *but, int64_t *at) {
    dv_mem_client *first = mem->turn_after ? mem->turn_after->next : NULL, *best = NULL;
    if (!first) first = mem->clients;
    *at = INT64_MAX;
    dv_mem_client *client = first;
    for (unsigned i = 0; i < mem->client_count; i++) {
        if (may_run(client, but)) {
            int64_t due = has_work_now(client->client) ? mem->now : timer_due(client);
            if (due < client->no_turn_before) due = client->no_turn_before;
            if (due <= mem->now) {
                *at = mem->now;
                return client;
            }
            if (due < *at) {
                *at = due;
                best = client;
            }
        }
        client = client->next ? client->next : mem->clients;
    }
    return best;
}

/* Leaves a client that could do nothing alone for a moment, lest time stand still. It may be gone after its turn. */
static void give_turn(dv_mem *mem, dv_mem_client *client) {
    mem->turn_after = client;
    client->busy = true;
    client->refs++;
    if (divvy_client_process(client->client, 0) <= 0) client->no_turn_before = mem->now + 1;
    client->busy = false;
    dv_mem_client_unref(client);
}

int dv_mem_go_on(dv_mem *mem, int64_t until_ms, const dv_mem_client *but) {
    for (;;) {
        int64_t turn_at;
        dv_mem_client *client = next_turn(mem, but, &turn_at);
        int64_t event_at = mem->heap_count ? mem->heap[0].at : INT64_MAX;
        int64_t at = turn_at < event_at ? turn_at : event_at;
        if (at > until_ms) {
            if (mem->now < until_ms) mem->now = until_ms;
            return 0;
        }
        if (mem->now < at) mem->now = at;
        if (client && turn_at <= event_at) {
            give_turn(mem, client);
            return 1;
        }
        if (dv_mem_event_run_first(mem)) return 1;
    }
}

int divvy_testing_step(divvy_testing_ensemble *ensemble, int64_t until_ms) {
    if (!ensemble) return DIVVY_EINVAL;
    if (ensemble->real) return DIVVY_ESTATE;
    int64_t most_ms = ensemble->now + DV_TIME_MAX_MS;
    return dv_mem_go_on(ensemble, until_ms < most_ms ? until_ms : most_ms, NULL);
}

int64_t divvy_testing_run(divvy_testing_ensemble *ensemble, int64_t ms) {
    if (!ensemble || ms < 0 || ms > DV_TIME_MAX_MS) return DIVVY_EINVAL;
    if (ensemble->real) return DIVVY_ESTATE;
    int64_t until = ensemble->now + ms, count = 0;
    while (dv_mem_go_on(ensemble, until, NULL) > 0) count++;
    return count;
}
