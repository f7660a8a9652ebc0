/* A request to the native client, and the lists of them. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/pending.h"

#include <assert.h>
#include <stdlib.h>

void dv_pending_append(dv_pending_list *list, dv_pending *p) {
    assert(!p->list);
    p->list = list;
    p->next = NULL;
    p->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = p;
    list->last = p;
    list->count++;
}

static void take_out(dv_pending_list *list, dv_pending *p) {
    assert(p->list == list && list->count > 0);
    *(p->previous ? &p->previous->next : &list->first) = p->next;
    *(p->next ? &p->next->previous : &list->last) = p->previous;
    list->count--;
    p->list = NULL;
}

void dv_pending_remove(dv_pending *p) {
    take_out(p->list, p);
}

dv_pending *dv_pending_take_first(dv_pending_list *list) {
    dv_pending *p = list->first;
    assert(!p || !p->previous);
    if (p) take_out(list, p);
    return p;
}

void dv_pending_free(dv_pending *p) {
    free(p->ops);
    free(p->native_ops);
    free(p->native_results);
    free(p->native_stats);
    free(p->path_buffers);
    free(p->copied);
    free(p);
}

/* ---- on a host's handle ---- */

bool dv_apache_awaits_answers(const dv_apache *apache) {
    for (const dv_pending *p = apache->sent.first; p; p = p->next) {
        if (!p->event.run) return true;
    }
    return false;
}

void dv_apache_orphan_all(dv_apache *apache, dv_pending_list *orphans) {
    for (dv_pending *p = apache->sent.first, *next; p; p = next) {
        next = p->next;
        if (p->event.run) continue; /* Its event is in the queue, or has been run. */
        assert(p->completed);
        dv_pending_remove(p);
        p->apache = NULL;
        dv_pending_append(orphans, p);
    }
}

void dv_apache_free_orphans(dv_pending_list *orphans) {
    for (dv_pending *p; (p = dv_pending_take_first(orphans));) dv_pending_free(p);
}
