/* The events to come, by time: one heap, and a pool of events. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "testing/ensemble.h"

dv_mem_event *dv_mem_event_new(dv_mem *mem, bool (*run)(dv_mem *mem, dv_mem_event *event)) {
    dv_mem_event *event = mem->free_events;
    if (event) {
        mem->free_events = event->next;
        memset(event, 0, sizeof *event);
    } else {
        event = dv_mem_alloc(sizeof *event);
    }
    event->run = run;
    return event;
}

void dv_mem_event_free(dv_mem *mem, dv_mem_event *event) {
    if (event->request) dv_mem_request_unref(mem, event->request);
    if (event->reply) dv_mem_reply_free(mem, event->reply);
    if (event->txn) dv_mem_txn_unref(mem, event->txn);
    if (event->kind == DV_MEM_SYNC) {
        for (size_t i = 0; i < event->count; i++) dv_mem_txn_unref(mem, event->list[i]);
    }
    free(event->list);
    /* The channel is part of one of these. */
    if (event->conn) dv_mem_conn_unref(event->conn);
    else if (event->client) dv_mem_client_unref(event->client); /* its timers hold it */
    if (event->link) dv_mem_link_unref(event->link);
    event->next = mem->free_events;
    mem->free_events = event;
}

static bool before(const dv_mem_heap_entry *a, const dv_mem_heap_entry *b) {
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void push(dv_mem *mem, dv_mem_event *event, int64_t at) {
    mem->heap = dv_mem_grow(mem->heap, mem->heap_count, &mem->heap_room, sizeof *mem->heap);
    dv_mem_heap_entry entry = {at, event->order, event}, *heap = mem->heap;
    size_t i = mem->heap_count++;
    for (size_t up; i > 0 && before(&entry, &heap[up = (i - 1) / 2]); i = up) heap[i] = heap[up];
    heap[i] = entry;
    if (mem->real && i == 0) pthread_cond_signal(&mem->earlier);
}

void dv_mem_event_push(dv_mem *mem, dv_mem_event *event, int64_t at) {
    event->order = ++mem->order;
    push(mem, event, at < mem->now ? mem->now : at);
}

static dv_mem_event *pop(dv_mem *mem) {
    dv_mem_heap_entry *heap = mem->heap, last = heap[--mem->heap_count];
    dv_mem_event *first = heap[0].event;
    size_t i = 0, count = mem->heap_count;
    for (size_t down; (down = 2 * i + 1) < count; i = down) {
        if (down + 1 < count && before(&heap[down + 1], &heap[down])) down++;
        if (!before(&heap[down], &last)) break;
        heap[i] = heap[down];
    }
    heap[i] = last;
    return first;
}

static void defer(dv_mem_event *event, dv_mem_deferred *deferred) {
    event->next = NULL;
    *deferred->end = event;
    deferred->end = &event->next;
}

/* Returns whether it is a timer of a role, or of a connection, that is over. */
static bool is_stale(const dv_mem_event *event) {
    if (event->channel) return false;
    if (event->server) return event->term != event->server->term;
    return event->client && (event->term != event->client->generation || event->client->crashed);
}

bool dv_mem_event_run_first(dv_mem *mem) {
    assert(mem->heap[0].at <= mem->now);
    dv_mem_event *event = pop(mem);
    if (event->channel && !event->arrived) {
        event->arrived = true;
        event->channel->under_way[event->direction]--;
        if (event->channel->broken[event->direction]) {
            dv_mem_event_free(mem, event);
            return false;
        }
    }
    if (event->server && event->server->paused) {
        defer(event, &event->server->deferred);
        return false;
    }
    if (event->client && event->client->paused) {
        defer(event, &event->client->deferred);
        return false;
    }
    bool happened = !is_stale(event) && event->run(mem, event);
    dv_mem_event_free(mem, event);
    return happened;
}

void dv_mem_events_resume(dv_mem *mem, dv_mem_deferred *deferred) {
    for (dv_mem_event *event = deferred->first, *next; event; event = next) {
        next = event->next;
        /* In its old order it comes before what came over the same channel behind it. */
        bool is_timer = !event->channel, watches_silence = event->client || event->link;
        if (is_timer && (watches_silence || dv_mem_between(mem, 0, 1))) event->order = ++mem->order;
        push(mem, event, mem->now);
    }
    *deferred = (dv_mem_deferred){.end = &deferred->first};
}

dv_mem_event *dv_mem_server_timer(dv_mem *mem, dv_mem_server *server, int64_t at,
                                  bool (*run)(dv_mem *mem, dv_mem_event *event)) {
    dv_mem_event *event = dv_mem_event_new(mem, run);
    event->server = server;
    event->term = server->term;
    dv_mem_event_push(mem, event, at);
    return event;
}
