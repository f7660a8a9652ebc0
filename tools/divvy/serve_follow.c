/* Following a pool with few reads. SPDX-License-Identifier: Apache-2.0 */
#include "serve_follow.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "connection.h"
#include "deaths_read.h"
#include "table.h"
#include "znode/path.h"

/* A look asks about at most so many items. URGENT, SLOWLY: of those that are not where they should be, while party or
 * plan have changed within the last CALM looks, and later. */
enum { URGENT_MAX = 10000, SLOWLY_MAX = 1000, CALM_LOOKS = 30 };
/* An empty directory inside of another's is no item: that somebody comes into it is seen only by a read of all. */
enum { WHOLE_MS = 5000 };

/* The questions of one look, and their answers. */
typedef struct {
    dv_serve_follower *follower;
    char *root, *party, *locks, *plan, *deaths;
    int64_t party_pzxid, locks_pzxid, plan_mzxid, planned_ms, deaths_mzxid;
    size_t *asked; /* items */
    size_t asked_count;
    const char **dirty; /* their names, of the pool's or of `strange` */
    size_t dirty_count, dirty_room;
    char **strange; /* names of directories that are new */
    size_t strange_count;
    bool whole;
} look_at;

int dv_serve_follower_init(dv_serve_follower *follower, dv_serve_pool *pool, dv_look *look, pthread_mutex_t *lock) {
    *follower = (dv_serve_follower){.pool = pool, .lock = lock, .whole_wanted = true, .swept_max = DV_SERVE_SWEPT_MAX};
    return dv_pool_plan_init(&follower->plan, look, pool->path);
}

void dv_serve_follower_free(dv_serve_follower *follower) {
    dv_pool_plan_free(&follower->plan);
}

/* ---- what has changed at all ---- */

static char *root_path(void *context, size_t i) {
    const look_at *l = context;
    return strdup(i == 0 ? l->party : i == 1 ? l->locks : i == 2 ? l->plan : l->deaths);
}

static int take_root(void *context, size_t i, const dv_reply *reply) {
    look_at *l = context;
    if (reply->error) return 0; /* The reader of the pool tells of what is hidden. */
    if (i == 0) l->party_pzxid = reply->stat->pzxid;
    if (i == 1) l->locks_pzxid = reply->stat->pzxid;
    if (i == 2) l->plan_mzxid = reply->stat->mzxid;
    if (i == 2) l->planned_ms = reply->stat->mtime_ms;
    if (i == 3) l->deaths_mzxid = reply->stat->mzxid;
    return 0;
}

static int add_dirty(look_at *l, const char *name) {
    if (l->dirty_count == l->dirty_room) {
        size_t room = l->dirty_room ? 2 * l->dirty_room : 64;
        const char **grown = (const char **)(uintptr_t)realloc((void *)(uintptr_t)l->dirty, room * sizeof *grown);
        if (!grown) return DIVVY_ENOMEM;
        l->dirty = grown;
        l->dirty_room = room;
    }
    l->dirty[l->dirty_count++] = name;
    return 0;
}

/* ---- items ---- */

/* Returns whether it is not where it should be, or has nobody. */
static bool is_urgent(const dv_serve_item *item) {
    return (!item->held && !dv_serve_item_is_paused(item)) || (item->held && !item->owner) ||
           (item->next && item->next != item->owner);
}

/* Chooses those that are urgent, from where the last look ended, and a part of all. */
static int choose_items(look_at *l) {
    dv_serve_follower *f = l->follower;
    const dv_serve_pool *pool = f->pool;
    size_t count = pool->item_count, urgent = 0, most = f->calm < CALM_LOOKS ? URGENT_MAX : SLOWLY_MAX;
    l->asked = calloc(f->swept_max + most + 1, sizeof *l->asked);
    if (!l->asked) return DIVVY_ENOMEM;
    if (f->urged >= count) f->urged = 0;
    if (f->swept >= count) f->swept = 0;
    size_t at = f->urged;
    for (size_t i = 0; i < count && urgent < most; i++, at = at + 1 < count ? at + 1 : 0) {
        if (!is_urgent(&pool->items[at])) continue;
        l->asked[l->asked_count++] = at;
        urgent++;
    }
    f->urged = at;
    for (size_t i = 0; i < f->swept_max && i < count; i++) {
        if (!is_urgent(&pool->items[f->swept])) l->asked[l->asked_count++] = f->swept;
        f->swept = f->swept + 1 < count ? f->swept + 1 : 0;
    }
    f->reads += l->asked_count;
    return 0;
}

static char *item_path(void *context, size_t i) {
    const look_at *l = context;
    const dv_serve_item *item = &l->follower->pool->items[l->asked[i]];
    char *node = item->node ? strdup(item->node) : dv_look_node_of(item->name);
    char *path = node ? dv_path_join(l->locks, node) : NULL;
    free(node);
    return path;
}

static int take_item(void *context, size_t i, const dv_reply *reply) {
    look_at *l = context;
    const dv_serve_item *item = &l->follower->pool->items[l->asked[i]];
    if (reply->error && reply->error != DIVVY_ENOENT) return reply->error;
    if ((reply->error ? 0 : reply->stat->pzxid) == item->pzxid) return 0;
    /* The reader finds what kazoo has named in its own way only among all. */
    if (item->node) l->whole = true;
    return add_dirty(l, item->name);
}

/* ---- directories that came or went ---- */

static char *locks_path(void *context, size_t i) {
    (void)i;
    return strdup(((const look_at *)context)->locks);
}

static int take_directory(look_at *l, const char *node) {
    char *name = dv_look_name_of(node);
    dv_serve_item *item = name ? dv_serve_pool_find(l->follower->pool, name) : NULL;
    if (item) item->marked = true;
    if (!item && name) {
        l->strange[l->strange_count++] = name;
        return add_dirty(l, name);
    }
    free(name);
    return name ? 0 : DIVVY_ENOMEM;
}

/* Marks the items whose directory is there. The marks are nobody else's business: the pool's main thread has them. */
static int take_locks(void *context, size_t i, const dv_reply *reply) {
    look_at *l = context;
    (void)i;
    int error = 0;
    if (reply->error) return reply->error == DIVVY_ENOENT ? 0 : reply->error;
    l->strange = calloc(reply->child_count + 1, sizeof *l->strange);
    if (!l->strange) return DIVVY_ENOMEM;
    for (size_t k = 0; !error && k < reply->child_count; k++) error = take_directory(l, reply->children[k]);
    return error;
}

static int list_directories(dv_look *look, look_at *l) {
    const dv_serve_pool *pool = l->follower->pool;
    dv_reads locks = {DV_CHILDREN, 1, locks_path, take_locks, l};
    int error = dv_look_read(look, &locks);
    for (size_t i = 0; i < pool->item_count; i++) {
        dv_serve_item *item = &pool->items[i];
        if (!error && item->pzxid && !item->marked && !item->node) error = add_dirty(l, item->name);
        item->marked = false;
    }
    return error;
}

/* ---- reading ---- */

/* Makes the dirty names a list without doubles. */
static void sort_dirty(look_at *l) {
    size_t kept = 0;
    if (l->dirty_count) qsort((void *)(uintptr_t)l->dirty, l->dirty_count, sizeof *l->dirty, dv_name_compare);
    for (size_t i = 0; i < l->dirty_count; i++) {
        if (kept == 0 || strcmp(l->dirty[kept - 1], l->dirty[i]) != 0) l->dirty[kept++] = l->dirty[i];
    }
    l->dirty_count = kept;
}

/* Returns whether an item stands inside of another's directory: what the outer one is, is seen only among all. */
static bool has_nested(const dv_status *status) {
    for (size_t i = 0; i < status->item_count; i++) {
        if (status->items[i].nested) return true;
    }
    return false;
}

static int read_status(dv_look *look, look_at *l, dv_status *status) {
    const dv_item_list list = {l->dirty, l->dirty_count};
    if (!l->whole) status->expected = &list;
    status->only_expected = !l->whole;
    int error = dv_status_pool_read(look, status);
    status->expected = NULL;
    if (error || l->whole || (status->found && !has_nested(status))) return error;
    l->whole = true;
    status->only_expected = false;
    return dv_status_pool_read(look, status);
}

static int read_pool(dv_look *look, look_at *l) {
    dv_serve_follower *f = l->follower;
    dv_serve_pool *pool = f->pool;
    sort_dirty(l);
    l->whole = l->whole || l->dirty_count > pool->item_count / 2 + 100;
    dv_status status = {.path = pool->path, .plan = &f->plan};
    int error = read_status(look, l, &status);
    if (!error) {
        f->whole_wanted = true; /* Until it is done. */
        pthread_mutex_lock(f->lock);
        error = dv_serve_pool_apply(pool, &status, l->whole, l->planned_ms);
        pthread_mutex_unlock(f->lock);
    }
    if (status.empty_count) f->whole_due_ms = dv_session_now_ms() + WHOLE_MS;
    else if (l->whole) f->whole_due_ms = 0;
    dv_status_pool_clear(&status);
    if (error) return error;
    f->whole_wanted = false;
    f->changed = true;
    if (f->party_pzxid != l->party_pzxid || f->plan_mzxid != l->plan_mzxid) f->calm = 0;
    /* These are older than the read, so a change in between is asked about again. */
    f->party_pzxid = l->party_pzxid;
    f->locks_pzxid = l->locks_pzxid;
    f->plan_mzxid = l->plan_mzxid;
    return 0;
}

/* ---- deaths ---- */

/* Returns the first one that is newer than the last look's. */
static size_t first_new_death(const dv_serve_follower *f, const dv_plan_deaths *deaths) {
    size_t n = deaths->count;
    for (; n > 0 && deaths->deaths[n - 1].at_ms >= f->last_death.at_ms; n--) {
        const dv_plan_death *death = &deaths->deaths[n - 1];
        if (death->session == f->last_death.session && strcmp(death->name, f->last_death.name) == 0) break;
    }
    return n;
}

static void tell_death(dv_serve_follower *f, const dv_plan_death *death) {
    char seen[DV_AGE_BYTES];
    pthread_mutex_lock(f->lock);
    dv_serve_history_add(&f->pool->history, dv_look_wall_ms(), DV_SERVE_DIED, death->name, NULL,
                         dv_duration_text(death->seen_ms, seen));
    pthread_mutex_unlock(f->lock);
    f->changed = true;
}

/* Deaths that stand there at the first look are no events: they were before. */
static int read_deaths(dv_look *look, const look_at *l) {
    dv_serve_follower *f = l->follower;
    dv_plan_deaths deaths = {.count = 0};
    int error = l->deaths_mzxid == f->deaths_mzxid ? 0 : dv_deaths_read(look, l->root, &deaths);
    if (error) return error;
    for (size_t n = first_new_death(f, &deaths); f->deaths_read && n < deaths.count; n++)
        tell_death(f, &deaths.deaths[n]);
    if (deaths.count > 0) f->last_death = deaths.deaths[deaths.count - 1];
    f->deaths_mzxid = l->deaths_mzxid;
    f->deaths_read = true;
    return 0;
}

/* ---- the whole ---- */

/* Where no plan is in force a change of the members may be one of each item. */
static int look_at_pool(dv_look *look, look_at *l) {
    dv_serve_follower *f = l->follower;
    dv_reads roots = {DV_EXISTS, 4, root_path, take_root, l};
    int error = dv_look_read(look, &roots);
    if (error) return error;
    bool members_changed = f->party_pzxid != l->party_pzxid, plan_changed = f->plan_mzxid != l->plan_mzxid;
    bool locks_changed = f->locks_pzxid != l->locks_pzxid;
    bool due = f->whole_due_ms && dv_session_now_ms() >= f->whole_due_ms;
    l->whole = f->whole_wanted || due || (members_changed && !f->pool->counts.in_force);
    if (!l->whole) error = choose_items(l);
    dv_reads items = {DV_EXISTS, l->asked_count, item_path, take_item, l};
    if (!error && l->asked_count) error = dv_look_read(look, &items);
    if (!error && !l->whole && locks_changed) error = list_directories(look, l);
    if (error) return error;
    error = read_deaths(look, l);
    if (error) return error;
    return l->whole || members_changed || plan_changed || locks_changed || l->dirty_count ? read_pool(look, l) : 0;
}

int dv_serve_follow(dv_look *look, void *context) {
    dv_serve_follower *f = context;
    look_at l = {.follower = f, .root = dv_look_path(look, f->pool->path)};
    f->changed = false;
    if (l.root) l.party = dv_path_join(l.root, "party");
    if (l.root) l.locks = dv_path_join(l.root, "locks");
    if (l.root) l.plan = dv_path_join(l.root, "plan");
    if (l.root) l.deaths = dv_path_join(l.root, "deaths");
    if (f->calm < CALM_LOOKS) f->calm++;
    int error = l.party && l.locks && l.plan && l.deaths ? look_at_pool(look, &l) : DIVVY_ENOMEM;
    for (size_t i = 0; i < l.strange_count; i++) free(l.strange[i]);
    free(l.strange);
    free((void *)(uintptr_t)l.dirty);
    free(l.asked);
    free(l.root);
    free(l.party);
    free(l.locks);
    free(l.plan);
    free(l.deaths);
    return error;
}
