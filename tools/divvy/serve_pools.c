/* The pools that divvy serve follows. SPDX-License-Identifier: Apache-2.0 */
#include "serve_pools.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "serve_overview.h"
#include "serve_show.h"

/* A search with many questions is repeated less often: NODES_A_SECOND. */
enum { SEARCH_MS = 10000, NODES_A_SECOND = 1000 };
/* So many slow pools in a row are servers that stand still. */
enum { SLOW_MAX = 3 };

/* ---- one more ---- */

static int add_pool(dv_serve_pools *p, const char *path) {
    dv_serve *serve = p->serve;
    size_t i = serve->pool_count;
    dv_serve_pool *pool = &serve->pools[i];
    int error = dv_serve_pool_init(pool, path);
    if (!error) error = dv_serve_follower_init(&p->followers[i], pool, p->look, &serve->lock);
    if (error) {
        dv_serve_pool_free(pool);
        return error;
    }
    pthread_mutex_lock(&serve->lock);
    serve->pool_count++;
    pthread_mutex_unlock(&serve->lock);
    for (size_t k = 0; k <= i; k++) p->followers[k].swept_max = DV_SERVE_SWEPT_MAX / (i + 1);
    return 0;
}

int dv_serve_pools_init(dv_serve_pools *p, dv_serve *serve, dv_look *look) {
    const dv_serve_options *o = serve->options;
    *p = (dv_serve_pools){.serve = serve, .look = look, .found = {.below = &o->below, .root = o->root}};
    serve->pools = calloc(DV_SERVE_POOLS_MAX, sizeof *serve->pools);
    p->followers = calloc(DV_SERVE_POOLS_MAX, sizeof *p->followers);
    int error = serve->pools && p->followers ? 0 : DIVVY_ENOMEM;
    for (size_t i = 0; !error && i < o->paths.count; i++) error = add_pool(p, o->paths.texts[i]);
    return error;
}

void dv_serve_pools_free(dv_serve_pools *p) {
    if (!p->serve) return;
    for (size_t i = 0; i < p->serve->pool_count; i++) {
        dv_serve_follower_free(&p->followers[i]);
        dv_serve_pool_free(&p->serve->pools[i]);
    }
    free(p->followers);
    free(p->serve->pools);
    dv_serve_found_clear(&p->found);
}

/* ---- searching ---- */

/* Returns whether to tell of something that cannot be shown: once, until it is over. */
static bool is_news(bool *told, bool now) {
    bool news = now && !*told;
    *told = now;
    return news;
}

static void tell_found(dv_serve_pools *p, size_t more) {
    const dv_serve_found *f = &p->found;
    if (is_news(&p->told_more, more > 0))
        dv_command_tell(DIVVY_LOG_WARN, "serve: %zu more pools are there; %d are shown, and no more can be", more,
                        DV_SERVE_POOLS_MAX);
    if (is_news(&p->told_denied, f->denied))
        dv_command_tell(DIVVY_LOG_WARN, "serve: %.200s may not be listed, so pools below it are not found", f->denied);
    if (is_news(&p->told_wide, f->wide))
        dv_command_tell(DIVVY_LOG_WARN, "serve: %.200s has more than %d children: pools below it are not found",
                        f->wide, DV_FIND_CHILDREN_MAX);
    if (is_news(&p->told_cut, f->cut))
        dv_command_tell(DIVVY_LOG_WARN,
                        "serve: there are more than %d nodes where pools are looked for: some pools are not found",
                        DV_FIND_NODES_MAX);
}

static bool is_known(const dv_serve *serve, const char *path) {
    for (size_t i = 0; i < serve->pool_count; i++) {
        if (strcmp(serve->pools[i].path, path) == 0) return true;
    }
    return false;
}

/* Takes those that are new. */
static int take_found(dv_serve_pools *p) {
    dv_serve *serve = p->serve;
    size_t before = serve->pool_count, more = 0, more_before = serve->more_pools;
    int error = 0;
    for (size_t i = 0; !error && i < p->found.pool_count; i++) {
        const char *path = p->found.pools[i];
        if (is_known(serve, path)) continue;
        if (serve->pool_count == DV_SERVE_POOLS_MAX) more++;
        else error = add_pool(p, path);
    }
    tell_found(p, more);
    pthread_mutex_lock(&serve->lock);
    serve->more_pools = more;
    if (serve->pool_count != before || more != more_before)
        dv_serve_stream_send(serve->stream, dv_serve_show_pools(serve));
    pthread_mutex_unlock(&serve->lock);
    return error;
}

static int search(dv_serve_pools *p) {
    int64_t now_ms = dv_session_now_ms();
    if (p->found.below->count == 0 || now_ms < p->due_ms) return 0;
    int error = dv_look_at(p->look, dv_serve_find, &p->found);
    int64_t pause_ms = (int64_t)p->found.reads * 1000 / NODES_A_SECOND;
    p->due_ms = dv_session_now_ms() + (pause_ms > SEARCH_MS ? pause_ms : SEARCH_MS);
    if (error) return error;
    p->read_any = true;
    return take_found(p);
}

/* ---- looking ---- */

/* Tells why a pool cannot be read while others can, once. */
static void note_trouble(dv_serve_pool *pool, pthread_mutex_t *lock, const char *trouble) {
    if (trouble && !pool->trouble) dv_command_tell(DIVVY_LOG_WARN, "serve: %.200s: %s", pool->path, trouble);
    if (!trouble && pool->trouble) dv_command_tell(DIVVY_LOG_INFO, "serve: %.200s can be read again", pool->path);
    pthread_mutex_lock(lock);
    pool->trouble = trouble;
    pthread_mutex_unlock(lock);
}

static int look_at_pool(dv_serve_pools *p, size_t i) {
    dv_serve_follower *f = &p->followers[i];
    dv_serve *serve = p->serve;
    dv_serve_pool *pool = &serve->pools[i];
    dv_serve_counts before = pool->counts;
    bool first = pool->read_at_ms == 0;
    uint64_t told = pool->history.last_number;
    int error = dv_look_at(p->look, dv_serve_follow, f);
    pthread_mutex_lock(&serve->lock);
    serve->reads += f->reads;
    f->reads = 0;
    if (!error && f->changed) {
        dv_serve_stream_send(serve->stream, dv_serve_show_changes(serve, i, first ? NULL : &before, told));
        pool->told_state = dv_serve_pool_state(pool, serve->trouble);
        dv_serve_pool_settle(pool);
    }
    pthread_mutex_unlock(&serve->lock);
    if (!error) p->read_any = true;
    return error;
}

/* Returns whether an error is of the way to the servers, and not of one pool. */
static bool is_of_all(int error) {
    return error == DIVVY_ECANCELED || error == DIVVY_EAUTH || dv_look_may_recover(error);
}

/* Returns whether the servers answer, and the pool takes longer than a look may. */
static bool is_slow(const dv_serve_pools *p, int error) {
    return error == DIVVY_ETIMEDOUT && divvy_client_state(dv_look_client(p->look)) == DIVVY_CONNECTED;
}

int dv_serve_pools_look(dv_serve_pools *p) {
    dv_serve *serve = p->serve;
    size_t failed = 0, slow = 0, start = p->start;
    int searched = search(p), first = 0;
    for (size_t k = 0; k < serve->pool_count; k++) {
        size_t i = (start + k) % serve->pool_count;
        int outcome = look_at_pool(p, i);
        slow = is_slow(p, outcome) ? slow + 1 : 0;
        if (slow) p->start = i + 1; /* where others come to nothing for it, they come first the next time */
        if (slow ? slow == SLOW_MAX : is_of_all(outcome)) return outcome;
        if (outcome && failed++ == 0) first = outcome;
        bool alone = serve->pool_count > 1 || p->found.below->count > 0;
        note_trouble(&serve->pools[i], &serve->lock, outcome && alone ? divvy_strerror(outcome) : NULL);
    }
    return failed > 0 && failed == serve->pool_count ? first : searched;
}
