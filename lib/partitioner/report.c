/* What the user is told: items and states, in the order in which they came about. SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitioner/partitioner.h"
#include "znode/crc32.h"

typedef struct {
    dv_callback callback;
    divvy_partitioner *p;
    uint64_t state_id; /* of the state that whoever is told of this is told of */
    divvy_partition_state from, to;
} state_call;

typedef struct {
    dv_callback callback;
    divvy_partitioner *p;
    uint64_t state_id;
    dv_names *names;
    divvy_items_event event;
    const char **texts; /* of all three lists, one behind the other */
    int64_t *tokens;
} items_call;

struct dv_destroyed_call {
    dv_callback callback;
    void (*function)(void *user);
    void *user;
};

static void told(divvy_partitioner *p, uint64_t state_id) {
    if (state_id > p->told_id) p->told_id = state_id;
}

/* ---- states ---- */

static void state_starting(dv_callback *callback) {
    state_call *c = (state_call *)(void *)callback;
    told(c->p, c->state_id);
}

static void call_state(dv_callback *callback) {
    state_call *c = (state_call *)(void *)callback;
    c->p->config.on_state(c->p, c->from, c->to, c->p->config.user);
}

static void release_state(dv_callback *callback) {
    free(callback);
}

void dv_report_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to) {
    dv_client_log(p->object.client, DIVVY_LOG_INFO, "%s: member %s: %s -> %s", p->path, p->identifier,
                  divvy_partition_state_name(from), divvy_partition_state_name(to));
    if (!p->config.on_state) return;
    state_call *c = calloc(1, sizeof *c);
    if (!c) return; /* The states can be polled; memory for a call is all that is missing. */
    c->callback =
        (dv_callback){.object = &p->object, .starting = state_starting, .call = call_state, .release = release_state};
    c->p = p;
    c->state_id = p->state_id;
    c->from = from;
    c->to = to;
    dv_callback_queue(p->object.client, &c->callback);
}

/* ---- items ---- */

static void items_starting(dv_callback *callback) {
    items_call *c = (items_call *)(void *)callback;
    told(c->p, c->state_id);
}

static void call_items(dv_callback *callback) {
    items_call *c = (items_call *)(void *)callback;
    c->p->config.on_items(c->p, &c->event, c->p->config.user);
}

static void release_items(dv_callback *callback) {
    items_call *c = (items_call *)(void *)callback;
    dv_names_unref(c->names);
    free(c->texts);
    free(c->tokens);
    free(c);
}

static const char **add_texts(items_call *c, const char **at, const size_t *indices, size_t count) {
    for (size_t i = 0; i < count; i++) *at++ = c->names->names[indices[i]];
    return at;
}

static void queue_items(divvy_partitioner *p, const size_t *lost, size_t lost_count, const size_t *gained,
                        size_t gained_count, const size_t *revoked, size_t revoked_count, int reason) {
    size_t total = lost_count + gained_count + revoked_count;
    if (total > 0)
        dv_client_log(p->object.client, DIVVY_LOG_DEBUG, "%s: member %s: %zu lost, %zu gained, %zu revoked: %s",
                      p->path, p->identifier, lost_count, gained_count, revoked_count, divvy_reason_name(reason));
    if (!p->config.on_items || total == 0) return;
    items_call *c = calloc(1, sizeof *c);
    if (!c) return;
    c->names = dv_table(p)->names;
    atomic_fetch_add(&c->names->refs, 1);
    c->texts = (const char **)(uintptr_t)calloc(total, sizeof *c->texts);
    c->tokens = calloc(gained_count + 1, sizeof *c->tokens);
    if (!c->texts || !c->tokens) {
        release_items(&c->callback);
        return;
    }
    const char **at = c->texts;
    c->event = (divvy_items_event){.gained_count = gained_count,
                                   .revoked_count = revoked_count,
                                   .lost_count = lost_count,
                                   .reason = reason,
                                   .generation = p->generation};
    c->event.lost = at;
    c->event.gained = at = add_texts(c, at, lost, lost_count);
    c->event.revoked = at = add_texts(c, at, gained, gained_count);
    add_texts(c, at, revoked, revoked_count);
    for (size_t i = 0; i < gained_count; i++) c->tokens[i] = dv_contender_token(dv_item_at(p, gained[i])->place);
    c->event.gained_tokens = c->tokens;
    c->callback =
        (dv_callback){.object = &p->object, .starting = items_starting, .call = call_items, .release = release_items};
    c->p = p;
    c->state_id = p->state_id;
    dv_callback_queue(p->object.client, &c->callback);
}

void dv_report_items(divvy_partitioner *p, const size_t *lost, size_t lost_count, const size_t *gained,
                     size_t gained_count, const size_t *revoked, size_t revoked_count, int reason) {
    dv_report_flush(p);
    queue_items(p, lost, lost_count, gained, gained_count, revoked, revoked_count, reason);
}

/* ---- gains, told together when many come at once ---- */

void dv_report_flush(divvy_partitioner *p) {
    size_t count = p->gain_count;
    p->gain_count = 0;
    queue_items(p, NULL, 0, dv_table(p)->gains, count, NULL, 0, p->target_reason);
}

static void on_report(dv_event *event, int64_t now) {
    (void)now;
    divvy_partitioner *p = (divvy_partitioner *)(void *)((char *)event - offsetof(divvy_partitioner, report));
    p->report_posted = false;
    dv_report_flush(p);
    dv_object_unref(&p->object);
}

/* Behind the events that wait in the queue now, so that those among them that gain something are told with this one. */
void dv_report_gain(divvy_partitioner *p, size_t i) {
    dv_table(p)->gains[p->gain_count++] = i;
    if (p->report_posted) return;
    p->report_posted = true;
    dv_object_ref(&p->object);
    dv_client_post(p->object.client, &p->report);
}

void dv_report_init(divvy_partitioner *p) {
    p->report.run = on_report;
}

/* ---- warnings ---- */

void dv_report_warn_once(divvy_partitioner *p, int code, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    uint32_t crc = dv_crc32(0, text, strlen(text));
    if (p->said.code_crc[code] == crc) return;
    p->said.code_crc[code] = crc;
    dv_client_warn(p->object.client, code, "%s", text);
}

/* ---- the last call ---- */

static void call_destroyed(dv_callback *callback) {
    struct dv_destroyed_call *c = (struct dv_destroyed_call *)(void *)callback;
    c->function(c->user);
}

int dv_report_prepare_destroyed(divvy_partitioner *p) {
    if (!p->config.on_destroyed) return 0;
    struct dv_destroyed_call *c = p->destroyed_call = calloc(1, sizeof *c);
    if (!c) return DIVVY_ENOMEM;
    c->callback = (dv_callback){.always = true, .call = call_destroyed, .release = release_state};
    c->function = p->config.on_destroyed;
    c->user = p->config.user;
    return 0;
}

void dv_report_destroyed(divvy_partitioner *p) {
    if (p->destroyed_call) dv_callback_queue(p->object.client, &p->destroyed_call->callback);
    p->destroyed_call = NULL;
}
