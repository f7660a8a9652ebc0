/* Figures: what a client and the objects on it have done, and have now. SPDX-License-Identifier: Apache-2.0 */
#include "client/figures.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"

void dv_client_figures_init(dv_client_figures *figures) {
    for (size_t i = 0; i < DV_RECIPES; i++)
        figures->recipes[i].waits.scale = figures->recipes[i].holds.scale = &dv_scale_duration;
}

void dv_figure_source_add(divvy_client *client, dv_figure_source *source) {
    assert(!source->link && source->gather);
    source->next = client->figure_sources;
    source->link = &client->figure_sources;
    if (source->next) source->next->link = &source->next;
    client->figure_sources = source;
}

void dv_figure_source_remove(divvy_client *client, dv_figure_source *source) {
    (void)client;
    if (!source->link) return;
    *source->link = source->next;
    if (source->next) source->next->link = source->link;
    source->link = NULL;
}

dv_pool_figures *dv_figures_pool(dv_figures *figures, const char *path) {
    for (size_t i = 0; i < figures->pool_count; i++) {
        if (strcmp(figures->pools[i].path, path) == 0) return &figures->pools[i];
    }
    assert(figures->pool_count < figures->pool_room);
    dv_pool_figures *pool = &figures->pools[figures->pool_count];
    *pool = (dv_pool_figures){.path = strdup(path)};
    if (!pool->path) {
        figures->error = DIVVY_ENOMEM;
        return NULL;
    }
    pool->durations.scale = pool->waits.scale = pool->unowned.scale = &dv_scale_duration;
    figures->pool_count++;
    return pool;
}

static void gather_session(dv_figures *figures, divvy_client *client, int64_t now) {
    figures->state = client->state;
    figures->time_left_ms = dv_client_time_left_ms(client, now);
    figures->timeout_ms = atomic_load(&client->timeout_ms);
    dv_client_fill_stats(client, &figures->stats);
    figures->round_trips = client->znode->round_trips;
    figures->put_off = client->znode->again.put_off;
    figures->ephemeral_bytes = client->ephemerals.used_bytes;
    figures->ephemeral_limit_bytes = client->ephemerals.limit_bytes;
    figures->watched_bytes = client->watched.used_bytes;
    figures->watched_limit_bytes = client->watched.limit_bytes;
    figures->counted = client->figures;
}

int dv_figures_gather(dv_figures *figures, divvy_client *client) {
    int64_t now = dv_client_now(client);
    *figures = (dv_figures){.error = 0};
    gather_session(figures, client, now);
    for (const dv_figure_source *s = client->figure_sources; s; s = s->next) figures->pool_room++;
    figures->pools = calloc(figures->pool_room + 1, sizeof *figures->pools);
    if (!figures->pools) return figures->error = DIVVY_ENOMEM;
    for (dv_figure_source *s = client->figure_sources; s && !figures->error; s = s->next) s->gather(s, figures, now);
    return figures->error;
}

void dv_figures_clear(dv_figures *figures) {
    for (size_t i = 0; i < figures->pool_count; i++) free(figures->pools[i].path);
    free(figures->pools);
    *figures = (dv_figures){.error = 0};
}
