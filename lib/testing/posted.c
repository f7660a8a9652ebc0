/* Events posted to our client: session news, fired watches, answers. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "testing/ensemble.h"
#include "znode/request.h"

static void post(dv_mem_client *client, dv_event *event) {
    client->znode.sink.post(client->znode.sink.queue, event);
}

typedef struct {
    dv_event event;
    dv_mem_client *client;
    dv_session_news news;
} news_event;

static void run_news(dv_event *event, int64_t now) {
    news_event *e = (news_event *)(void *)event;
    dv_mem_client *client = e->client;
    dv_session_news news = e->news;
    free(e);
    if (client->told == DIVVY_LOST || client->told == DIVVY_AUTH_FAILED) return; /* both are final */
    client->told = news.state;
    if (news.state == DIVVY_CONNECTED) client->stats.connects++;
    bool over = news.state == DIVVY_LOST || news.state == DIVVY_AUTH_FAILED;
    if (over) dv_watches_clear(&client->watches);
    client->znode.on_session(client->znode.context, &news, now);
    if (over) dv_mem_fail_all(client, news.state == DIVVY_LOST ? DIVVY_ELOST : DIVVY_EAUTH, now);
}

void dv_mem_post_news(dv_mem_client *client, const dv_session_news *news) {
    news_event *e = dv_mem_alloc(sizeof *e);
    *e = (news_event){.event.run = run_news, .client = client, .news = *news};
    post(client, &e->event);
}

void dv_mem_post_fired(dv_mem_client *client, const dv_mem_path *path, dv_watch_kind kind) {
    dv_fired_watch *fired = dv_mem_alloc(sizeof *fired + path->bytes + 1);
    dv_fired_watch_init(fired, &client->watches, path->text, kind);
    post(client, &fired->event);
}

void dv_mem_pending_free(dv_mem_pending *pending) {
    dv_mem *mem = pending->client->mem;
    if (pending->request) dv_mem_request_unref(mem, pending->request);
    if (pending->reply) dv_mem_reply_free(mem, pending->reply);
    free(pending);
}

static void unlink_pending(dv_mem_pending *pending) {
    assert(pending->link);
    *pending->link = pending->next;
    if (pending->next) pending->next->link = pending->link;
    else pending->client->table_end = pending->link;
    pending->link = NULL;
    pending->client->stats.in_flight--;
}

static void complete_multi(dv_mem_pending *pending, const dv_mem_reply *reply, int error, int64_t now) {
    size_t count = pending->request->count;
    const dv_mem_result *results = reply ? reply->results : NULL;
    assert(error != 0 || results);
    dv_reply *replies = dv_mem_alloc(count * sizeof *replies);
    for (size_t i = 0; i < count; i++) {
        if (error == 0) {
            replies[i].path = results[i].path ? results[i].path->text : NULL;
            replies[i].stat = results[i].has_stat ? &results[i].stat : NULL;
        } else if (dv_outcome_unknown(error) || dv_session_over(error)) replies[i].error = error;
        else replies[i].error = results ? results[i].error : DIVVY_EROLLEDBACK; /* refused as a whole, on this side */
    }
    pending->multi_done(pending->context, error, replies, count, now);
    free(replies);
}

static void complete_single(dv_mem_pending *pending, const dv_mem_reply *from, int error, int64_t now) {
    dv_reply reply = {.error = error};
    dv_kind kind = pending->request->ops[0].kind;
    const char **names = NULL;
    if (from && !error) {
        reply.path = from->path ? from->path->text : NULL;
        reply.stat = from->has_stat ? &from->stat : NULL;
        if (kind == DV_GET) reply.data = from->data ? from->data->data : "";
        if (from->data) reply.data_bytes = from->data->bytes;
        if (kind == DV_CHILDREN) {
            names = dv_mem_alloc((from->child_count + 1) * sizeof *names);
            for (size_t i = 0; i < from->child_count; i++) names[i] = dv_mem_path_name(from->children[i]);
            reply.children = names;
            reply.child_count = from->child_count;
        }
    }
    pending->done(pending->context, &reply, now);
    free(names);
}

/* `from` NULL: no server has said so. */
static void complete(dv_mem_pending *pending, const dv_mem_reply *from, int error, int64_t now) {
    unlink_pending(pending);
    if (pending->watched) {
        bool armed = error == 0 || (error == DIVVY_ENOENT && pending->request->ops[0].kind == DV_EXISTS);
        dv_watch_end(pending->watched, pending->watch, armed);
        pending->watched = NULL;
    }
    if (pending->multi_done) complete_multi(pending, from, error, now);
    else complete_single(pending, from, error, now);
}

static void count_answer(dv_mem_client *client, const dv_mem_pending *pending) {
    divvy_stats *stats = &client->stats;
    const dv_mem_reply *reply = pending->reply;
    stats->failed += !reply;
    if (!reply) return;
    dv_mem_lock(client->mem);
    uint64_t round_trip_us = (uint64_t)(client->mem->now - pending->sent_ms) * 1000;
    dv_mem_unlock(client->mem);
    stats->round_trips++;
    stats->round_trip_total_us += round_trip_us;
    if (round_trip_us > stats->round_trip_max_us) stats->round_trip_max_us = round_trip_us;
    dv_histogram_add_us(&client->znode.round_trips, (int64_t)round_trip_us);
    if (reply->data) stats->bytes_received += reply->data->bytes;
    for (size_t i = 0; i < reply->child_count; i++)
        stats->bytes_received += strlen(dv_mem_path_name(reply->children[i]));
    if (reply->path) stats->bytes_received += reply->path->bytes;
}

static void tell_answer(dv_mem_client *client, const dv_mem_pending *pending, int64_t now) {
    if (!pending->reply || !dv_request_answered(pending->error)) return;
    dv_answer answer = {
        .sent_at = pending->submitted_at,
        .connection = pending->connection,
        .wrote = pending->request->wrote,
        .error = pending->error,
    };
    client->znode.on_answer(client->znode.context, &answer, now);
}

static void run_pending(dv_event *event, int64_t now) {
    dv_mem_pending *pending = (dv_mem_pending *)(void *)event;
    dv_mem_client *client = pending->client;
    if (pending->link) {
        count_answer(client, pending);
        tell_answer(client, pending, now);
        complete(pending, pending->reply, pending->error, now);
    }
    dv_mem_lock(client->mem);
    dv_mem_pending_free(pending);
    dv_mem_unlock(client->mem);
}

void dv_mem_post_answer(dv_mem_client *client, dv_mem_pending *pending, int error, dv_mem_reply *reply) {
    pending->error = error;
    pending->reply = reply;
    pending->event.run = run_pending;
    post(client, &pending->event);
}

void dv_mem_fail_all(dv_mem_client *client, int error, int64_t now) {
    while (client->table) {
        client->stats.failed++;
        complete(client->table, NULL, error, now);
    }
}
