/* Timers: a heap of those that are set, earliest first. SPDX-License-Identifier: Apache-2.0 */
#include "client/timers.h"

#include <assert.h>

static bool before(dv_timers *heap, const dv_timer *a, const dv_timer *b) {
    heap->comparisons++;
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

/* Makes one tree of two: the later root becomes the first child of the earlier, whose own place the caller sets. */
static dv_timer *merge(dv_timers *heap, dv_timer *a, dv_timer *b) {
    dv_timer *root = before(heap, b, a) ? b : a, *child = root == a ? b : a;
    assert(child != root);
    child->next = root->child;
    if (child->next) child->next->link = &child->next;
    child->link = &root->child;
    root->child = child;
    return root;
}

/* Makes one tree of siblings, NULL of none: pairs from the left, which bounds the costs, then these from the right. */
static dv_timer *merge_siblings(dv_timers *heap, dv_timer *first) {
    dv_timer *pairs = NULL, *all = NULL;
    while (first) {
        dv_timer *a = first, *b = a->next;
        first = b ? b->next : NULL;
        dv_timer *pair = b ? merge(heap, a, b) : a;
        pair->next = pairs;
        pairs = pair;
    }
    while (pairs) {
        dv_timer *pair = pairs;
        pairs = pair->next;
        all = all ? merge(heap, all, pair) : pair;
    }
    return all;
}

void dv_timers_set(dv_timers *heap, dv_timer *timer, int64_t at) {
    dv_timer_cancel(timer);
    timer->heap = heap;
    timer->at = at;
    timer->order = ++heap->order;
    dv_timer *root = heap->first ? merge(heap, heap->first, timer) : timer;
    root->next = NULL;
    root->link = &heap->first;
    heap->first = root;
}

/* Cancels a timer. The timers below it take its place: they are later than all that is above it. */
void dv_timer_cancel(dv_timer *timer) {
    if (!timer->link) return;
    dv_timer *rest = merge_siblings(timer->heap, timer->child), *next = timer->next, *heir = rest ? rest : next;
    *timer->link = heir;
    if (heir) heir->link = timer->link;
    if (rest) rest->next = next;
    if (rest && next) next->link = &rest->next;
    timer->child = timer->next = NULL;
    timer->link = NULL;
}

int64_t dv_timers_next_at(const dv_timers *heap) {
    return heap->first ? heap->first->at : INT64_MAX;
}
