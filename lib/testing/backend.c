/* The seam on the in-memory ensemble. The native library's part is in client.c. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "testing/ensemble.h"
#include "znode/path.h"
#include "znode/request.h"

static dv_mem_client *of(const dv_znode *znode) {
    return (dv_mem_client *)(uintptr_t)znode;
}

/* ---- submitting ---- */

static dv_mem_request *new_request(dv_mem_client *client, const dv_op *ops, size_t count, bool is_multi) {
    dv_mem_request *request = dv_mem_request_new(DV_MEM_OPERATIONS, client->conn, count);
    request->is_multi = is_multi;
    request->wrote = is_multi || ops->kind == DV_CREATE || ops->kind == DV_DELETE || ops->kind == DV_SET;
    request->access = client->access;
    for (size_t i = 0; i < count; i++) {
        request->ops[i] = (dv_mem_op){.kind = ops[i].kind,
                                      .mode = ops[i].mode,
                                      .container = ops[i].mode == DV_CONTAINER,
                                      .version = ops[i].version,
                                      .path = dv_mem_path_get(client->mem, ops[i].path, strlen(ops[i].path)),
                                      .data = dv_mem_blob_new(ops[i].data, ops[i].data_bytes)};
        request->bytes += request->ops[i].path->bytes + ops[i].data_bytes;
    }
    return request;
}

static void take_odd(dv_mem_client *client, dv_mem_request *request) {
    dv_mem_odd *odd = &client->odd;
    if (!odd->count) return;
    if (odd->skip) {
        odd->skip--;
        return;
    }
    odd->count--;
    request->odd_error = dv_answer_error(odd->code);
    request->odd_executed = odd->executed && request->wrote;
}

static void link_pending(dv_mem_client *client, dv_mem_pending *pending) {
    pending->link = client->table_end;
    *client->table_end = pending;
    client->table_end = &pending->next;
    client->stats.in_flight++;
}

static int take(dv_mem_client *client, const dv_op *ops, size_t count, const dv_mem_pending *asked) {
    dv_mem *mem = client->mem;
    dv_mem_pending *pending = malloc(sizeof *pending);
    if (!pending) return DIVVY_ENOMEM;
    *pending = *asked;
    pending->client = client;
    if (pending->watch) {
        pending->watched = dv_watch_begin(&client->watches, ops->path, ops->kind == DV_CHILDREN, pending->watch);
        if (!pending->watched) {
            free(pending);
            return DIVVY_ENOMEM;
        }
    }
    dv_mem_lock(mem);
    pending->submitted_at = dv_mem_client_now(client);
    pending->sent_ms = mem->now;
    pending->connection = client->stats.connects;
    link_pending(client, pending);
    dv_mem_request *request = pending->request = new_request(client, ops, count, pending->multi_done != NULL);
    request->watch = pending->watch != NULL;
    bool cut = client->told == DIVVY_CONNECTED && client->native != DV_MEM_ESTABLISHED;
    int error = dv_request_check(ops, count, request->is_multi, cut ? DIVVY_SUSPENDED : client->told);
    if (error) {
        dv_mem_post_answer(client, pending, error, NULL);
    } else {
        dv_request_count(&client->stats, ops, count, request->is_multi);
        request->number = ++client->number_sent;
        take_odd(client, request);
        *client->sent_end = pending;
        client->sent_end = &pending->sent_next;
        dv_mem_client_send(client, dv_mem_request_ref(request));
    }
    dv_mem_unlock(mem);
    return 0;
}

static int submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    return take(of(znode), op, 1, &(dv_mem_pending){.watch = watch, .done = done, .context = context});
}

static int multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context) {
    assert(count > 0);
    return take(of(znode), ops, count, &(dv_mem_pending){.multi_done = done, .context = context});
}

/* ---- the rest of the seam ---- */

static int64_t now_ms(const dv_znode *znode) {
    dv_mem_client *client = of(znode);
    return client->mem->real ? dv_mem_client_real_now(client) : dv_mem_client_now(client);
}

static int fill_random(dv_znode *znode, void *bytes, size_t count) {
    dv_mem *mem = of(znode)->mem;
    dv_mem_lock(mem);
    for (size_t i = 0; i < count; i++) ((unsigned char *)bytes)[i] = (unsigned char)dv_mem_prng_next(&mem->prng);
    dv_mem_unlock(mem);
    return 0;
}

static void get_stats(const dv_znode *znode, divvy_stats *out) {
    *out = of(znode)->stats;
    out->writes = out->creates + out->deletes + out->sets + out->checks;
    out->reads = out->gets + out->exists + out->children;
}

static const char *get_servers(const dv_znode *znode, int *error) {
    (void)znode;
    *error = 0;
    return "the in-memory ensemble";
}

static int start(dv_znode *znode) {
    dv_mem_client *client = of(znode);
    dv_mem_lock(client->mem);
    dv_mem_client_start(client);
    dv_mem_unlock(client->mem);
    return 0;
}

static const char *get_chroot(const dv_znode *znode) {
    return of(znode)->chroot;
}

/* Time goes on, for all but this client, until it has something to do. */
static void sleep_virtually(dv_znode *znode, int64_t timeout_ms) {
    dv_mem_client *client = of(znode);
    dv_mem *mem = client->mem;
    bool was_busy = client->busy;
    client->busy = true;
    int64_t until = timeout_ms < 0 ? INT64_MAX / 4 : dv_mem_client_when(client, dv_mem_client_now(client) + timeout_ms);
    while (mem->now < until && !dv_mem_has_work(client)) {
        const dv_timer *timer = client->client->timers.first;
        int64_t timer_at = timer ? dv_mem_client_when(client, timer->at) : until;
        dv_mem_go_on(mem, timer_at < until ? timer_at : until, client);
    }
    client->busy = was_busy;
}

static int reopen(dv_znode *znode) {
    dv_mem_client *client = of(znode);
    assert(!client->table);
    client->told = DIVVY_CONNECTING;
    return start(znode);
}

static void abandon(dv_znode *znode, int error, int64_t now) {
    dv_mem_client *client = of(znode);
    client->told = DIVVY_LOST;
    dv_watches_clear(&client->watches);
    dv_mem_fail_all(client, error, now);
}

static void close_session(dv_znode *znode) {
    dv_mem_client *client = of(znode);
    dv_mem_lock(client->mem);
    dv_mem_client_close(client, true);
    dv_mem_unlock(client->mem);
}

static void free_client(dv_znode *znode) {
    dv_mem_client *client = of(znode);
    dv_mem *mem = client->mem;
    assert(!client->table);
    dv_watches_clear(&client->watches);
    dv_mem_lock(mem);
    dv_mem_client_close(client, false);
    client->client = NULL;
    client->paused = false;
    dv_mem_events_resume(mem, &client->deferred);
    if (mem->turn_after == client) mem->turn_after = NULL;
    *client->link = client->next;
    if (client->next) client->next->link = client->link;
    mem->client_count--;
    free(client->chroot);
    dv_mem_client_unref(client);
    dv_mem_unlock(mem);
}

/* ---- opening a client ---- */

static const dv_znode_backend seam = {.submit = submit,
                                      .multi = multi,
                                      .unwatch = dv_watch_drop,
                                      .now_ms = now_ms,
                                      .random = fill_random,
                                      .stats = get_stats,
                                      .servers = get_servers,
                                      .start = start,
                                      .chroot = get_chroot,
                                      .sleep = sleep_virtually, /* but not with the real clock */
                                      .reopen = reopen,
                                      .abandon = abandon,
                                      .close = close_session,
                                      .free = free_client};

static void mix_order(dv_mem_client *client) {
    dv_mem *mem = client->mem;
    for (int i = 0; i < mem->server_count; i++) {
        int at = (int)dv_mem_between(mem, 0, i);
        client->order[i] = client->order[at];
        client->order[at] = i;
    }
}

static void add_client(dv_mem_client *client) {
    dv_mem *mem = client->mem;
    dv_mem_client **end = &mem->clients;
    while (*end) end = &(*end)->next;
    client->link = end;
    *end = client;
    mem->client_count++;
}

static int make(dv_znode **out, const dv_backend_config *config, const char **reason, void *context) {
    enum { OFFSET_MAX_MS = 1000000000 };
    dv_mem *mem = context;
    const char *chroot = strchr(config->hosts, '/');
    *out = NULL;
    if (chroot && strcmp(chroot, "/") == 0) chroot = NULL;
    if (chroot && dv_chroot_check(chroot, reason) != 0) return DIVVY_EINVAL;
    dv_mem_client *client = dv_mem_alloc(sizeof *client);
    client->backend = seam;
    if (mem->real) client->backend.sleep = NULL;
    client->znode = (dv_znode){.backend = &client->backend,
                               .sink = config->sink,
                               .on_session = config->on_session,
                               .on_answer = config->on_answer,
                               .on_log = config->on_log,
                               .context = config->context};
    client->mem = mem;
    client->client = config->sink.queue; /* the queue is the client itself */
    client->refs = 1;
    client->watches.stats = &client->stats;
    client->preferred = -1;
    client->deferred.end = &client->deferred.first;
    client->sent_end = &client->sent;
    client->table_end = &client->table;
    client->told = DIVVY_CONNECTING;
    client->chroot = strdup(chroot ? chroot : "");
    client->requested_ms = client->timeout_ms = config->session_timeout_ms;
    client->authenticates = config->auth != NULL;
    dv_mem_lock(mem);
    client->access = (dv_mem_access){config->acl, config->auth ? dv_mem_identity(mem, config->auth) : 0};
    client->number = ++mem->last_client;
    dv_mem_client_set_clock(client, dv_mem_between(mem, 1, OFFSET_MAX_MS), 0);
    mix_order(client);
    add_client(client);
    dv_mem_unlock(mem);
    *out = &client->znode;
    return 0;
}

int divvy_testing_client_open(divvy_client **out, divvy_testing_ensemble *ensemble, const divvy_client_config *config) {
    static const divvy_client_config defaults = DIVVY_CLIENT_CONFIG_INIT;
    if (!out || !ensemble) return DIVVY_EINVAL;
    *out = NULL;
    divvy_client_config copy;
    if (dv_config_copy(&copy, sizeof copy, &defaults, config ? config : &defaults) != 0)
        return divvy_private_client_open(out, config, make, ensemble); /* It says what is wrong. */
    copy.size = sizeof copy;
    if (!ensemble->real && !copy.manual) return DIVVY_EINVAL;
    if (!copy.hosts) copy.hosts = "ensemble";
    if (!copy.ensemble_tick_ms) copy.ensemble_tick_ms = ensemble->config.tick_ms;
    return divvy_private_client_open(out, &copy, make, ensemble);
}
