/* A client's life: made, counted, on its way to the close, freed. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/threads.h"
#include "client/client.h"

/* Forks seen by this process image: a client that was opened at another count belongs to a parent. */
static atomic_uint forks;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void on_fork(void) {
    atomic_fetch_add(&forks, 1);
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, on_fork);
}

unsigned dv_fork_count(void) {
    pthread_once(&forks_once, watch_forks);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

bool dv_client_forked(const divvy_client *client) {
    return client->fork_count != atomic_load_explicit(&forks, memory_order_relaxed);
}

int dv_client_new(divvy_client **out, const divvy_client_config *config) {
    divvy_client *client = calloc(1, sizeof *client);
    if (!client) return dv_fail_plainly(NULL, DIVVY_ENOMEM);
    client->config = *config;
    client->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (client->wake_fd < 0) {
        free(client);
        return dv_fail(NULL, DIVVY_ESYSTEM, "open: no descriptor could be had");
    }
    atomic_init(&client->refs, 1);
    client->fork_count = dv_fork_count();
    client->sleeping_until = INT64_MAX;
    client->ephemerals.limit_bytes = config->ephemeral_path_bytes;
    client->watched.limit_bytes = config->watch_path_bytes;
    client->listen_from = DV_LISTEN_FROM;
    client->lookouts = DV_LOOKOUTS;
    dv_mutex_init(&client->lock);
    dv_mutex_init(&client->queue_mutex);
    dv_condition_init(&client->changed);
    dv_condition_init(&client->callback_ready);
    *out = client;
    return 0;
}

static void free_client(divvy_client *client) {
    assert(!client->listeners && !client->callbacks);
    assert(!client->znode || (!client->znode->writes.first && !client->znode->reads.first));
    if (client->znode) client->znode->backend->free(client->znode);
    free(client->steps);
    dv_death_watch_free(client->death_watch);
    dv_odd_answers_free(client);
    free(client->chroot);
    close(client->wake_fd);
    pthread_cond_destroy(&client->changed);
    pthread_cond_destroy(&client->callback_ready);
    pthread_mutex_destroy(&client->queue_mutex);
    pthread_mutex_destroy(&client->lock);
    free(client);
}

void dv_client_ref(divvy_client *client) {
    atomic_fetch_add(&client->refs, 1);
}

void dv_client_unref(divvy_client *client) {
    if (atomic_fetch_sub(&client->refs, 1) == 1) free_client(client);
}

void dv_client_life_enter(divvy_client *client, dv_client_life to) {
    assert(to == client->life + 1);
    client->life = to;
}

bool dv_client_claim_close(divvy_client *client) {
    if (client->life != DV_CLIENT_OPEN) return false;
    dv_client_life_enter(client, DV_CLIENT_CLOSING);
    client->closer = pthread_self();
    return true;
}
