/* The places of a run: one for each item that it has to know of. SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots are sorted as the table is, so both are gone through side by side. */
#include <stdlib.h>
#include <string.h>

#include "workers/workers.h"

static dv_place *make_place(divvy_workers *w, const char *item) {
    size_t bytes = strlen(item) + 1;
    dv_place *place = calloc(1, sizeof *place + bytes);
    if (!place) return NULL;
    memcpy(place->item, item, bytes);
    place->pause_ms = w->config.backoff_ms;
    dv_place_init(place, w);
    return place;
}

static void free_place(dv_place *place) {
    dv_place_destroy(place);
    free(place);
}

/* Returns how many items of a snapshot have no place. */
static size_t count_missing(const divvy_workers *w, const divvy_partition *snapshot) {
    size_t missing = 0, at = 0;
    for (size_t i = 0; i < divvy_partition_count(snapshot); i++) {
        const char *item = divvy_partition_item(snapshot, i);
        while (at < w->place_count && strcmp(w->places[at]->item, item) < 0) at++;
        missing += at == w->place_count || strcmp(w->places[at]->item, item) != 0;
    }
    return missing;
}

bool dv_places_make(divvy_workers *w, const divvy_partition *snapshot) {
    size_t missing = count_missing(w, snapshot), at = 0, count = 0;
    if (missing == 0) return false;
    dv_place **places = calloc(w->place_count + missing, sizeof *places);
    if (!places) {
        w->scarce = true;
        return false;
    }
    for (size_t i = 0; i < divvy_partition_count(snapshot); i++) {
        const char *item = divvy_partition_item(snapshot, i);
        while (at < w->place_count && strcmp(w->places[at]->item, item) < 0) places[count++] = w->places[at++];
        if (at < w->place_count && strcmp(w->places[at]->item, item) == 0) continue;
        dv_place *place = make_place(w, item);
        if (place) places[count++] = place;
        else w->scarce = true;
    }
    while (at < w->place_count) places[count++] = w->places[at++];
    pthread_mutex_lock(&w->mutex);
    dv_place **old = w->places;
    w->places = places;
    w->place_count = count;
    pthread_mutex_unlock(&w->mutex);
    free(old);
    return true;
}

/* Returns the place of an item, at `*at` or behind it; NULL if it has none. */
static dv_place *find_from(const divvy_workers *w, const char *item, size_t *at) {
    while (*at < w->place_count && strcmp(w->places[*at]->item, item) < 0) (*at)++;
    return *at < w->place_count && strcmp(w->places[*at]->item, item) == 0 ? w->places[*at] : NULL;
}

void dv_places_take(divvy_workers *w, const divvy_partition *mine) {
    size_t at = 0;
    dv_places_take_none(w);
    dv_places_make(w, mine);
    for (size_t i = 0; i < divvy_partition_count(mine); i++) {
        dv_place *place = find_from(w, divvy_partition_item(mine, i), &at);
        if (!place) continue;
        place->is_mine = true;
        place->is_revoked = divvy_partition_revoked(mine, i);
        place->mine_token = divvy_partition_token(mine, i);
    }
}

void dv_places_take_to_prepare(divvy_workers *w, const divvy_partition *coming) {
    size_t at = 0;
    for (size_t i = 0; i < w->place_count; i++) w->places[i]->is_to_prepare = false;
    for (size_t i = 0; i < divvy_partition_count(coming); i++) {
        dv_place *place = find_from(w, divvy_partition_item(coming, i), &at);
        if (place) place->is_to_prepare = true;
    }
}

void dv_places_take_none(divvy_workers *w) {
    for (size_t i = 0; i < w->place_count; i++) {
        w->places[i]->is_mine = w->places[i]->is_revoked = false;
        w->places[i]->mine_token = 0;
    }
}

static int compare(const void *item, const void *place) {
    return strcmp(item, (*(dv_place *const *)place)->item);
}

void dv_places_note_lost(divvy_workers *w, const char *const *items, size_t count) {
    pthread_mutex_lock(&w->mutex);
    for (size_t i = 0; i < count && w->place_count > 0; i++) {
        dv_place **found = bsearch(items[i], w->places, w->place_count, sizeof *w->places, compare);
        if (found) (*found)->was_lost = true;
    }
    pthread_mutex_unlock(&w->mutex);
}

bool dv_place_was_lost(divvy_workers *w, dv_place *place) {
    pthread_mutex_lock(&w->mutex);
    bool was_lost = place->was_lost;
    place->was_lost = false;
    pthread_mutex_unlock(&w->mutex);
    return was_lost;
}

void dv_places_forget(divvy_workers *w) {
    size_t kept = 0;
    pthread_mutex_lock(&w->mutex);
    for (size_t i = 0; i < w->place_count; i++) {
        dv_place *place = w->places[i];
        bool is_ours = place->is_mine || place->at_work;
        if (is_ours || place->preparing || place->was_prepared || place->awaited) w->places[kept++] = place;
        else free_place(place);
    }
    w->place_count = kept;
    pthread_mutex_unlock(&w->mutex);
}

void dv_places_free(divvy_workers *w) {
    for (size_t i = 0; i < w->place_count; i++) free_place(w->places[i]);
    free(w->places);
}
