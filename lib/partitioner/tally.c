/* The figures of a partitioner, for divvy_metrics_write(). SPDX-License-Identifier: Apache-2.0
 *
 * docs/operations.md says what each figure means. Nothing here decides anything. */
#include <assert.h>

#include "base/container.h"
#include "partitioner/partitioner.h"

/* ---- rebalances ---- */

void dv_tally_begin(divvy_partitioner *p, int reason, int64_t now) {
    dv_tally *t = &p->tally;
    assert(reason >= 0 && reason < DV_REASONS);
    t->rebalances[reason]++;
    if (!t->is_under_way) t->began_at = now;
    t->is_under_way = true;
}

/* In ACQUIRED all that is held of the target is shown; so what is shown besides waits for its next owner. */
void dv_tally_end(divvy_partitioner *p, int64_t now) {
    dv_tally *t = &p->tally;
    if (!t->is_under_way || p->state != DIVVY_ACQUIRED || p->totals.shown > p->totals.wanted_first) return;
    dv_histogram_add_ms(&t->durations, now - t->began_at);
    t->is_under_way = false;
}

void dv_tally_failed(divvy_partitioner *p) {
    p->tally.is_under_way = false;
}

void dv_tally_plan(divvy_partitioner *p, uint64_t generation, int64_t now) {
    dv_tally *t = &p->tally;
    if (t->generation != generation) t->plan_since = now;
    t->generation = generation;
}

/* ---- items ---- */

void dv_tally_wanted(dv_item *item, int64_t now) {
    if (dv_item_shown(item) || item->measured.waits) return;
    item->measured.waits = true;
    item->measured.waits_since = now;
}

void dv_tally_unwanted(dv_item *item) {
    item->measured.waits = false;
}

void dv_tally_owned(dv_item *item, int64_t now) {
    if (!item->measured.waits) return;
    item->measured.waits = false;
    dv_histogram_add_ms(&item->partitioner->tally.waits, now - item->measured.waits_since);
}

void dv_tally_disowned(dv_item *item, int64_t now) {
    if (item->measured.unowned) return;
    item->measured.unowned = true;
    item->measured.unowned_since = now;
}

void dv_tally_free(dv_item *item, int64_t now) {
    if (!item->measured.unowned) return;
    item->measured.unowned = false;
    dv_histogram_add_ms(&item->partitioner->tally.unowned, now - item->measured.unowned_since);
}

/* ---- all of it ---- */

static void count_items(const divvy_partitioner *p, dv_pool_figures *to, bool alive) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *item = dv_item_at(p, i);
        to->owned += dv_item_owned(item) && alive;
        to->leaving += dv_item_kept(item) && alive;
        to->revoked += item->life.stage == DV_STAGE_REVOKED;
        to->waiting += item->life.wanted && !dv_item_shown(item);
        to->preparing += item->life.wanted && item->life.stage == DV_STAGE_PREPARING;
    }
}

static void gather(dv_figure_source *source, dv_figures *figures, int64_t now) {
    const divvy_partitioner *p = DV_CONTAINER(source, divvy_partitioner, tally.source);
    const dv_tally *t = &p->tally;
    dv_pool_figures *to = dv_figures_pool(figures, p->path);
    if (!to) return;
    if (dv_partitioner_finished(p)) to->finished++;
    else to->states[p->state]++;
    if (p->dealt->count > to->items) to->items = p->dealt->count;
    count_items(p, to, dv_client_alive_at(p->object.client, now));
    to->unfit += p->unfit;
    for (size_t r = 0; r < DV_REASONS; r++) to->rebalances[r] += t->rebalances[r];
    dv_histogram_merge(&to->durations, &t->durations);
    dv_histogram_merge(&to->waits, &t->waits);
    dv_histogram_merge(&to->unowned, &t->unowned);
    if (t->generation == 0 || p->state == DIVVY_FAILURE) return;
    if (to->generation == 0 || t->generation < to->generation) to->generation = t->generation;
    if (now - t->plan_since > to->plan_age_ms) to->plan_age_ms = now - t->plan_since;
}

void dv_tally_init(divvy_partitioner *p) {
    dv_tally *t = &p->tally;
    t->source.gather = gather;
    t->durations.scale = t->waits.scale = t->unowned.scale = &dv_scale_duration;
    dv_figure_source_add(p->object.client, &t->source);
}

void dv_tally_stop(divvy_partitioner *p) {
    dv_figure_source_remove(p->object.client, &p->tally.source);
}
