/* A partitioner's metrics (docs/operations.md); nothing here decides anything. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "base/container.h"
#include "partitioner/partitioner.h"

/* ---- rebalances ---- */

void dv_metrics_rebalance_begin(divvy_partitioner *p, int reason, int64_t now) {
    dv_partitioner_metrics *m = &p->metrics;
    assert(reason >= 0 && reason < DV_REASONS);
    m->rebalances[reason]++;
    if (!m->is_under_way) m->began_at = now;
    m->is_under_way = true;
}

/* In ACQUIRED all that is held of the target is shown; so what is shown besides waits for its next owner. */
void dv_metrics_rebalance_end(divvy_partitioner *p, int64_t now) {
    dv_partitioner_metrics *m = &p->metrics;
    bool complete = p->state == DIVVY_ACQUIRED && p->totals.shown <= p->totals.wanted_first;
    if (m->is_under_way && complete) dv_histogram_add_ms(&m->durations, now - m->began_at);
    if (complete || p->state == DIVVY_FAILURE) m->is_under_way = false;
}

void dv_metrics_plan(divvy_partitioner *p, uint64_t generation, int64_t now) {
    dv_partitioner_metrics *m = &p->metrics;
    if (m->generation != generation) m->plan_since = now;
    m->generation = generation;
}

/* ---- items ---- */

void dv_metrics_item(dv_item *item, int64_t now) {
    dv_item_measured *m = &item->measured;
    int64_t since = m->waits_since;
    bool shown = dv_item_shown(item), waits = item->life.wanted && !shown;
    if (since && shown) dv_histogram_add_ms(&item->partitioner->metrics.waits, now - since);
    if (!waits) m->waits_since = 0;
    else if (!since) m->waits_since = now;
}

void dv_metrics_item_disowned(dv_item *item, int64_t now) {
    if (!item->measured.unowned_since) item->measured.unowned_since = now;
}

void dv_metrics_item_freed(dv_item *item, int64_t now) {
    int64_t since = item->measured.unowned_since;
    if (since) dv_histogram_add_ms(&item->partitioner->metrics.unowned, now - since);
    item->measured.unowned_since = 0;
}

/* ---- all of it ---- */

static void count_items(const divvy_partitioner *p, dv_pool_metrics *to, bool alive) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *item = dv_item_at(p, i);
        to->owned += dv_item_owned(item) && alive;
        to->leaving += dv_item_kept(item) && alive;
        to->revoked += item->life.stage == DV_STAGE_REVOKED;
        to->waiting += item->life.wanted && !dv_item_shown(item);
        to->preparing += item->life.wanted && item->life.stage == DV_STAGE_PREPARING;
    }
}

static void gather(dv_metrics_source *source, dv_metrics *metrics, int64_t now) {
    const divvy_partitioner *p = DV_CONTAINER(source, divvy_partitioner, metrics.source);
    const dv_partitioner_metrics *m = &p->metrics;
    dv_pool_metrics *to = dv_metrics_pool(metrics, p->path);
    if (!to) return;
    if (dv_partitioner_finished(p)) to->finished++;
    else to->states[p->state]++;
    if (p->dealt->count > to->items) to->items = p->dealt->count;
    count_items(p, to, dv_client_alive_at(p->object.client, now));
    to->unfit += p->unfit;
    for (size_t r = 0; r < DV_REASONS; r++) to->rebalances[r] += m->rebalances[r];
    dv_histogram_merge(&to->durations, &m->durations);
    dv_histogram_merge(&to->waits, &m->waits);
    dv_histogram_merge(&to->unowned, &m->unowned);
    if (m->generation == 0 || p->state == DIVVY_FAILURE) return;
    if (to->generation == 0 || m->generation < to->generation) to->generation = m->generation;
    if (now - m->plan_since > to->plan_age_ms) to->plan_age_ms = now - m->plan_since;
}

void dv_partitioner_metrics_init(divvy_partitioner *p) {
    dv_partitioner_metrics *m = &p->metrics;
    m->source.gather = gather;
    dv_metrics_source_add(p->object.client, &m->source);
}

void dv_partitioner_metrics_stop(divvy_partitioner *p) {
    dv_metrics_source_remove(&p->metrics.source);
}
