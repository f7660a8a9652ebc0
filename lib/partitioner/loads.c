/* The loads of our items: told by the user, smoothed, and reported to the pool. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D46. The report is one ephemeral node, P/loads/<our node in the party>, made with the first load.
 * In each interval it is compared with what is true, and written if that is worth it. */
#include <assert.h>
#include <stdlib.h>

#include "base/container.h"
#include "handover/own_note.h"
#include "partitioner/partitioner.h"
#include "plan/load_report.h"
#include "znode/path.h"

/* The differences that are worth a write: of the total, of an item, and of one that is not too small to matter. */
#define TOTAL_DIFFERENCE 0.05
enum { CLASS_DIFFERENCE = 2, SMALL_SHARE = 200 };

struct dv_own_loads {
    divvy_partitioner *p;
    char *directory;   /* P/loads */
    dv_own_note *node; /* of our node in the party; NULL: none */
    unsigned nodes;    /* ours that are not gone: this one, and earlier ones */
    bool is_denied;    /* it cannot be made, until we have another node in the party */
    bool is_stale;     /* what stands there is not known: a write has failed */
    dv_plan_set *set;  /* whose numbering the report has that was written last */
    double total;      /* that it tells */
    dv_event begin;    /* posted when there is something to make */
    dv_timer timer;
};

/* ---- what is true ---- */

/* Returns whether the user has told a load of the item since it is ours. */
static bool is_known(const dv_item *item) {
    return item->load && item->dealt && dv_item_owned(item) && item->load->meter.token == item->life.token;
}

static double total_of(const divvy_partitioner *p, int64_t now) {
    double total = 0;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (is_known(item)) total += dv_load_meter_read(&item->load->meter, now);
    }
    return total;
}

/* D46: for two half-lives after a gain the plan's class counts, and none of ours. */
static uint8_t class_of(dv_item *item, int64_t now) {
    if (!is_known(item) || !dv_load_meter_is_settled(&item->load->meter, now)) return DV_CLASS_NONE;
    return dv_class_of(dv_load_meter_read(&item->load->meter, now));
}

/* ---- what the report says ---- */

/* Prints what is true now, and remembers it as told. Returns NULL when an allocation fails. */
static char *compose(struct dv_own_loads *l, int64_t now) {
    const divvy_partitioner *p = l->p;
    dv_plan_set *set = p->dealt;
    dv_item_class *items = malloc((dv_item_count(p) + 1) * sizeof *items);
    if (!items) return NULL;
    double total = total_of(p, now);
    dv_load_report report = {.total = dv_class_of(total),
                             .set_count = set->count,
                             .set_crc = set->crc,
                             .set_hash = set->hash,
                             .items = items};
    memcpy(report.unit, p->load_unit, sizeof report.unit);
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        uint8_t class = class_of(item, now);
        if (item->load) item->load->told = class;
        if (class != DV_CLASS_NONE) items[report.count++] = (dv_item_class){.item = item->number, .class = class};
    }
    char *text = dv_load_report_print(&report);
    free(items);
    dv_plan_set_ref(set);
    dv_plan_set_unref(l->set);
    l->set = set;
    l->total = total;
    return text;
}

static bool differs(const dv_item *item, uint8_t class, double total) {
    uint8_t told = item->load->told;
    if (class == told) return false;
    if (class == DV_CLASS_NONE || told == DV_CLASS_NONE) return true;
    uint8_t larger = class > told ? class : told;
    return abs((int)class - (int)told) >= CLASS_DIFFERENCE && dv_class_size(larger) * SMALL_SHARE >= total;
}

/* D46: returns whether what is true is worth a write. */
static bool is_to_be_written(const struct dv_own_loads *l, int64_t now) {
    const divvy_partitioner *p = l->p;
    if (l->is_stale || !dv_plan_set_equal(l->set, p->dealt)) return true;
    double total = total_of(p, now), larger = total > l->total ? total : l->total;
    double difference = total > l->total ? total - l->total : l->total - total;
    if (larger > p->config.load_floor && difference >= TOTAL_DIFFERENCE * larger) return true;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (item->load && differs(item, class_of(item, now), larger)) return true;
    }
    return false;
}

/* ---- our node ---- */

static void drop(struct dv_own_loads *l, int64_t now) {
    dv_own_note *node = l->node;
    l->node = NULL;
    if (node) dv_own_note_leave(node, now);
}

static void on_settled(void *owner, dv_own_note *node, int64_t now) {
    (void)now;
    struct dv_own_loads *l = owner;
    if (node != l->node || dv_own_note_stands(node)) return;
    l->is_denied = true;
    dv_report_warn_once(l->p, DIVVY_WARN_LOAD_UNIT,
                        "%s: member %s cannot make its node there, so its loads do not count in the deal", l->directory,
                        l->p->identifier);
}

static void on_wrote(void *owner, dv_own_note *node, int error, int64_t now) {
    struct dv_own_loads *l = owner;
    if (node != l->node) return;
    l->is_stale = error != 0;
    if (!dv_own_note_stands(node)) drop(l, now); /* Somebody has deleted it. */
}

static void on_gone(void *owner, dv_own_note *node, int64_t now) {
    struct dv_own_loads *l = owner;
    divvy_partitioner *p = l->p;
    assert(l->nodes > 0);
    l->nodes--;
    if (node == l->node) l->node = NULL;
    dv_client_changed(p->object.client);
    dv_op_end(p, now);
}

static void make(struct dv_own_loads *l, int64_t now) {
    static const dv_own_note_events events = {on_settled, on_wrote, on_gone, "its loads are not told"};
    divvy_partitioner *p = l->p;
    char *text = compose(l, now);
    l->is_stale = false;
    if (text && dv_own_note_make(&l->node, p->object.client, l->directory, dv_membership_name(p->membership), text,
                                 &events, l) == 0) {
        l->nodes++;
        dv_op_begin(p);
    } else {
        free(text);
    }
}

static void write_report(struct dv_own_loads *l, int64_t now) {
    char *text = compose(l, now);
    if (text && dv_own_note_write(l->node, text, NULL, 0) == 0) return;
    free(text);
    l->is_stale = true;
}

/* Makes it, or writes it, if there is something to tell. */
static void look(struct dv_own_loads *l, int64_t now) {
    const divvy_partitioner *p = l->p;
    if (p->state == DIVVY_FAILURE || !p->membership || !dv_membership_joined(p->membership)) return;
    if (!dv_client_connected(p->object.client)) return;
    if (!l->node && l->nodes == 0 && !l->is_denied) make(l, now);
    else if (l->node && dv_own_note_is_free(l->node) && is_to_be_written(l, now)) write_report(l, now);
}

static void on_timer(dv_timer *timer, int64_t now) {
    struct dv_own_loads *l = DV_CONTAINER(timer, struct dv_own_loads, timer);
    dv_timer_set(l->p->object.client, timer, now + l->p->config.load_interval_ms);
    look(l, now);
    dv_follow_report_loads(l->p->follower, now);
}

/* ---- from outside ---- */

static void on_begin(dv_event *event, int64_t now) {
    struct dv_own_loads *l = DV_CONTAINER(event, struct dv_own_loads, begin);
    divvy_partitioner *p = l->p;
    event->run = NULL;
    if (p->state != DIVVY_FAILURE) {
        look(l, now);
        if (!l->timer.link) dv_timer_set(p->object.client, &l->timer, now + p->config.load_interval_ms);
        dv_follow_report_loads(p->follower, now);
    }
    dv_op_end(p, now);
}

static struct dv_own_loads *begin(divvy_partitioner *p) {
    struct dv_own_loads *l = calloc(1, sizeof *l);
    if (l) l->directory = dv_path_join(p->path, "loads");
    if (!l || !l->directory) {
        free(l);
        return NULL;
    }
    l->p = p;
    l->timer.fire = on_timer;
    return l;
}

int dv_own_loads_set(dv_item *item, double load, int64_t now) {
    divvy_partitioner *p = item->partitioner;
    if (p->state == DIVVY_FAILURE || !dv_item_owned(item)) return 0;
    if (!p->loads) p->loads = begin(p);
    if (p->loads && !item->load) {
        item->load = calloc(1, sizeof *item->load);
        if (item->load) item->load->told = DV_CLASS_NONE;
    }
    if (!item->load) return DIVVY_ENOMEM;
    dv_load_meter_take(&item->load->meter, load, item->life.token, now);
    if (!p->loads->timer.link) dv_op_post(p, &p->loads->begin, on_begin);
    return 0;
}

void dv_own_loads_joined(divvy_partitioner *p, int64_t now) {
    struct dv_own_loads *l = p->loads;
    if (!l) return;
    drop(l, now);
    l->is_denied = false;
    if (!l->timer.link) dv_op_post(p, &l->begin, on_begin);
    else dv_timer_set(p->object.client, &l->timer, now + 1);
}

void dv_own_loads_stop(divvy_partitioner *p, int64_t now) {
    if (!p->loads) return;
    dv_timer_cancel(&p->loads->timer);
    drop(p->loads, now);
}

bool dv_own_loads_at_rest(const divvy_partitioner *p) {
    return !p->loads || p->loads->nodes == 0;
}

void dv_own_loads_free(divvy_partitioner *p) {
    struct dv_own_loads *l = p->loads;
    if (!l) return;
    assert(l->nodes == 0 && !l->begin.run);
    dv_timer_cancel(&l->timer);
    dv_plan_set_unref(l->set);
    free(l->directory);
    free(l);
    p->loads = NULL;
}
