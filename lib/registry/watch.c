/* Watch: live views of a registry, and telling users of changes in them. SPDX-License-Identifier: Apache-2.0
 *
 * All stand on one cache (cache.h), whose slots keep what users were told. docs/protocol.md, W14. */
#include "registry/watch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "registry/cache.h"
#include "registry/services.h"

typedef struct dv_view {
    dv_object object; /* first */
    struct dv_view *next;
    divvy_registry *registry;
    char *role_node; /* NULL: all */
    void (*on_change)(divvy_registry *registry, int change, const cJSON *before, const cJSON *after, void *user);
    void *user;
    bool ended;
    dv_slot *due, **due_end; /* with a change to tell */

    dv_callback call; /* for one change, the oldest that is due when it starts */
    bool calling;     /* queued, or running */
    int change;       /* 0: nothing is left to be told */
    dv_cached *before, *after;
} dv_view;

struct dv_registry_views {
    divvy_registry *registry;
    dv_cache *cache;
    dv_view *views; /* one at least */
    dv_view *all;   /* one of them, or NULL */
    dv_timer time_timer;
    bool time_requested; /* since the timer fired last */
};

static int index_of(const dv_view *view) {
    return view->role_node ? DV_VIEW_ROLE : DV_VIEW_ALL;
}

/* ---- telling: docs/protocol.md, W14 ---- */

static const cJSON *json_of(const dv_cached *cached) {
    return cached ? ((const dv_entry *)cached->entry)->json : NULL;
}

/* W14: returns the change to tell a user who knows `told`, or 0. Another registration is first told as removed. */
static int find_change(const dv_cached *told, const dv_cached *current) {
    if (!told) return current ? DIVVY_REGISTRY_ADDED : 0;
    if (!current) return DIVVY_REGISTRY_REMOVED;
    if (told->preserved && !current->preserved) return DIVVY_REGISTRY_CHANGED;
    if (told->stat.czxid != current->stat.czxid) return DIVVY_REGISTRY_REMOVED;
    if (current->preserved && !told->preserved) return DIVVY_REGISTRY_PRESERVED;
    return told->stat.mzxid != current->stat.mzxid ? DIVVY_REGISTRY_CHANGED : 0;
}

static void pop_due(dv_view *view) {
    int i = index_of(view);
    dv_slot *slot = view->due;
    assert(slot && slot->due[i]);
    view->due = slot->next_due[i];
    if (!view->due) view->due_end = &view->due;
    slot->next_due[i] = NULL;
    slot->due[i] = false;
    dv_slot_let_go(slot);
}

static void start_call(dv_callback *callback) {
    dv_view *view = DV_CONTAINER(callback, dv_view, call);
    assert(view->calling && !view->before && !view->after);
    int i = index_of(view);
    for (view->change = 0; view->due && !view->change;) {
        dv_slot *slot = view->due;
        view->change = find_change(slot->told[i], slot->current);
        view->before = slot->told[i];
        bool removed = view->change == DIVVY_REGISTRY_REMOVED;
        slot->told[i] = removed ? NULL : dv_cached_ref(slot->current);
        view->after = dv_cached_ref(slot->told[i]);
        if (!view->change) {
            dv_cached_unref(view->before);
            dv_cached_unref(view->after);
            view->before = view->after = NULL;
        }
        if (!removed || !slot->current) pop_due(view); /* Else the entry that is there now is told next. */
    }
}

static void run_call(dv_callback *callback) {
    dv_view *view = DV_CONTAINER(callback, dv_view, call);
    if (view->change)
        view->on_change(view->registry, view->change, json_of(view->before), json_of(view->after), view->user);
}

static void queue_call(dv_view *view);

static void release_call(dv_callback *callback) {
    dv_view *view = DV_CONTAINER(callback, dv_view, call);
    assert(view->calling);
    dv_cached_unref(view->before);
    dv_cached_unref(view->after);
    view->before = view->after = NULL;
    view->calling = false;
    if (view->due) queue_call(view);
}

static void queue_call(dv_view *view) {
    if (view->calling || view->ended) return;
    assert(view->on_change && !view->before && !view->after);
    view->calling = true;
    view->call =
        (dv_callback){.object = &view->object, .starting = start_call, .call = run_call, .release = release_call};
    dv_callback_queue(view->object.client, &view->call);
}

static void mark_due(void *context, dv_slot *slot) {
    dv_view *view = context;
    assert(!view->ended);
    int i = index_of(view);
    if (!view->on_change || slot->due[i]) return;
    slot->due[i] = true;
    slot->next_due[i] = NULL;
    *view->due_end = slot;
    view->due_end = &slot->next_due[i];
    queue_call(view);
}

/* ---- the owner of the cache ---- */

static void *parse(void *owner, const char *role, const char *id, const dv_reply *reply) {
    dv_entry *entry = NULL;
    int error = dv_registry_parse(owner, &entry, role, id, reply->data, reply->data_bytes, reply->stat);
    return error == DIVVY_ENOMEM ? (void *)dv_cache_no_memory : entry;
}

static void free_entry(void *entry) {
    dv_entry_free(entry);
}

/* W16: a copy with "preserved": true. */
static void *mark(void *owner, const void *of) {
    (void)owner;
    const dv_entry *entry = of;
    dv_entry *copy = malloc(sizeof *copy);
    if (!copy) return NULL;
    *copy = *entry;
    atomic_init(&copy->refs, 1);
    copy->json = cJSON_Duplicate(entry->json, 1);
    copy->role_node = strdup(entry->role_node);
    copy->id_node = strdup(entry->id_node);
    copy->role = copy->id = NULL; /* They are not read here. */
    copy->flags |= DV_ENTRY_PRESERVED;
    cJSON_DeleteItemFromObjectCaseSensitive(copy->json, "preserved");
    if (copy->role_node && copy->id_node && cJSON_AddTrueToObject(copy->json, "preserved")) return copy;
    dv_entry_free(copy);
    return NULL;
}

static bool is_healthy(void *owner, const void *entry) {
    const divvy_registry *registry = owner;
    if (!dv_registry_knows_time(registry)) return true;
    return dv_entry_is_healthy(entry, dv_registry_server_now(registry).latest_ms);
}

/* An empty registry may have no place yet to learn the servers' clock from: the first entry shows that it has one. */
static void learn_time_once(dv_registry_views *views) {
    if (views->time_requested || dv_registry_knows_time(views->registry)) return;
    views->time_requested = true;
    dv_registry_learn_time(views->registry, NULL);
}

/* W17: a list that somebody may ask for again is changed with the view, if it still stands. */
static void change_list(const divvy_registry *registry, void **memo, const dv_cached *before, const dv_cached *after) {
    if (!*memo) return;
    int64_t now_ms = dv_registry_server_now(registry).latest_ms;
    divvy_services *list = *memo;
    bool stands = dv_registry_knows_time(registry) && dv_services_hold_at(list, now_ms);
    if (!stands || !dv_services_change(&list, before ? before->entry : NULL, after ? after->entry : NULL, now_ms)) {
        divvy_services_unref(list);
        list = NULL;
    }
    *memo = list;
}

static void on_changed(void *owner, dv_slot *slot, const dv_cached *before) {
    dv_registry_views *views = ((divvy_registry *)owner)->views;
    change_list(owner, dv_slot_memo(slot), before, slot->current);
    change_list(owner, dv_cache_memo(views->cache, NULL), before, slot->current);
    learn_time_once(views);
    if (dv_slot_tag(slot)) mark_due(dv_slot_tag(slot), slot);
    if (views->all) mark_due(views->all, slot);
}

static void free_memo(void *memo) {
    divvy_services_unref(memo);
}

static void on_gone(void *owner) {
    dv_object_unref(&((divvy_registry *)owner)->object);
}

/* ---- the views of a registry ---- */

static dv_view *find_view(const dv_registry_views *views, const char *role_node) {
    dv_view *view = views ? views->views : NULL;
    for (; view; view = view->next) {
        if (!role_node ? !view->role_node : view->role_node && strcmp(view->role_node, role_node) == 0) return view;
    }
    return NULL;
}

/* Health is judged by the servers' clock, which is learned here, so that no lookup has to. */
static void on_time_timer(dv_timer *timer, int64_t now) {
    dv_registry_views *views = DV_CONTAINER(timer, dv_registry_views, time_timer);
    views->time_requested = false;
    dv_registry_learn_time(views->registry, NULL);
    dv_timer_set(views->registry->object.client, timer, now + DV_SERVER_TIME_FRESH_MS);
}

static dv_cache_options get_options(const divvy_registry *registry) {
    const divvy_registry_config *config = &registry->config;
    enum { POLL_MS = 5000, PRESERVE_SETTLE_MS = 5000, PRESERVE_MAX_MS = 300000 };
    size_t most = dv_standing_limit(registry->object.client);
    dv_cache_options options = {
        .watch_bytes = config->watch_bytes && config->watch_bytes < most ? config->watch_bytes : most,
        .poll_ms = config->poll_ms ? config->poll_ms : POLL_MS,
        .preserve_share = config->preserve_share,
        .preserve_settle_ms = config->preserve_settle_ms ? config->preserve_settle_ms : PRESERVE_SETTLE_MS,
        .preserve_max_ms = config->preserve_max_ms ? config->preserve_max_ms : PRESERVE_MAX_MS,
    };
    return options;
}

/* Makes the struct that all views of a registry share, unless it is there. Returns 0 or DIVVY_ENOMEM. */
static int start_views(divvy_registry *registry) {
    static const dv_cache_owner events = {parse, mark, free_entry, is_healthy, on_changed, on_gone, free_memo};
    divvy_client *client = registry->object.client;
    if (registry->views) return 0;
    dv_registry_views *views = calloc(1, sizeof *views);
    if (!views) return DIVVY_ENOMEM;
    dv_cache_options options = get_options(registry);
    *views = (dv_registry_views){.registry = registry, .time_timer.fire = on_time_timer};
    views->cache = dv_cache_start(client, registry->root, &options, &events, registry);
    if (!views->cache) {
        free(views);
        return DIVVY_ENOMEM;
    }
    registry->views = views;
    dv_object_ref(&registry->object); /* the cache's */
    on_time_timer(&views->time_timer, dv_client_now(client));
    return 0;
}

static void stop_views_if_idle(divvy_registry *registry) {
    dv_registry_views *views = registry->views;
    if (views->views) return;
    assert(!views->all);
    registry->views = NULL;
    dv_timer_cancel(&views->time_timer);
    dv_cache_stop(views->cache);
    free(views);
}

static void release_view(dv_object *object) {
    dv_view *view = (dv_view *)(void *)object;
    divvy_registry *registry = view->registry;
    free(view->role_node);
    free(view);
    dv_object_unref(&registry->object);
}

static void forget_told(void *context, dv_slot *slot) {
    int i = *(const int *)context;
    dv_cached_unref(slot->told[i]);
    slot->told[i] = NULL;
}

static void end_view(dv_view *view, bool waits) {
    assert(!view->ended);
    dv_registry_views *views = view->registry->views;
    dv_view **place = &views->views;
    while (*place != view) place = &(*place)->next;
    *place = view->next;
    if (views->all == view) views->all = NULL;
    view->ended = true;
    int i = index_of(view);
    dv_cache_each(views->cache, view->role_node, forget_told, &i);
    while (view->due) pop_due(view);
    dv_cache_unfollow(views->cache, view->role_node);
    stop_views_if_idle(view->registry);
    dv_object_destroy(&view->object, waits ? NULL : &(dv_farewell){NULL, NULL});
}

/* Begins a view like `like`, and takes that one's role_node. Returns 0 or DIVVY_ENOMEM, and takes nothing then. */
static int begin_view(divvy_registry *registry, const dv_view *like) {
    int error = start_views(registry);
    if (error) return error;
    dv_registry_views *views = registry->views;
    dv_view *view = malloc(sizeof *view);
    error = view ? dv_cache_follow(views->cache, like->role_node, view) : DIVVY_ENOMEM;
    if (error) {
        free(view);
        stop_views_if_idle(registry);
        return error;
    }
    assert(!find_view(views, like->role_node));
    *view = *like;
    dv_object_init(&view->object, registry->object.client, release_view);
    dv_object_ref(&registry->object); /* the view's */
    view->registry = registry;
    view->due_end = &view->due;
    view->next = views->views;
    views->views = view;
    if (!view->role_node) views->all = view;
    dv_cache_each(views->cache, view->role_node, mark_due, view); /* entries that another view has read already */
    return 0;
}

/* ---- for the rest of the registry ---- */

bool dv_registry_view_ready(const divvy_registry *registry, const char *role_node) {
    return registry->views && dv_cache_is_primed(registry->views->cache, role_node);
}

typedef struct {
    dv_entries entries; /* lent */
    bool out_of_memory;
} collection;

static void collect(void *context, dv_slot *slot) {
    collection *c = context;
    if (slot->current) c->out_of_memory |= !dv_entries_add(&c->entries, slot->current->entry);
}

static divvy_services *make_services(dv_registry_views *views, const char *role_node, int64_t server_now_ms) {
    collection c = {.out_of_memory = false};
    dv_cache_each(views->cache, role_node, collect, &c);
    divvy_services *made = c.out_of_memory ? NULL : dv_services_new(&c.entries, server_now_ms);
    free(c.entries.list);
    return made;
}

/* W17: one list is given to all who ask, until an entry changes or the time has come for another to be healthy. */
int dv_registry_view_services(divvy_registry *registry, const char *role_node, divvy_services **out) {
    assert(dv_registry_knows_time(registry) && dv_registry_view_ready(registry, role_node));
    int64_t now_ms = dv_registry_server_now(registry).latest_ms;
    void **memo = dv_cache_memo(registry->views->cache, role_node);
    bool stands = memo && *memo && dv_services_hold_at(*memo, now_ms);
    divvy_services *services = stands ? *memo : make_services(registry->views, role_node, now_ms);
    if (!services) return DIVVY_ENOMEM;
    *out = services;
    if (!memo) return 0; /* No such role: the list is empty. */
    if (!stands) {
        divvy_services_unref(*memo);
        *memo = services;
    }
    dv_services_ref(services);
    return 0;
}

void dv_registry_view_each(const divvy_registry *registry, const char *role_node,
                           void (*visit)(void *context, dv_slot *slot), void *context) {
    if (registry->views) dv_cache_each(registry->views->cache, role_node, visit, context);
}

void dv_registry_end_watches(divvy_registry *registry, bool waits) {
    while (registry->views) end_view(registry->views->views, waits);
}

/* ---- public ---- */

int divvy_registry_watch(divvy_registry *registry, const char *role,
                         void (*on_change)(divvy_registry *registry, int change, const cJSON *before,
                                           const cJSON *after, void *user),
                         void *user) {
    int error = dv_registry_enter(registry);
    if (error) return error;
    divvy_client *client = registry->object.client;
    char *role_node = NULL;
    error = dv_fail_plainly(client, registry->ending ? DIVVY_ECLOSED : dv_client_end_error(client));
    if (!error && role) error = dv_registry_node_name(registry, "role", role, &role_node);
    if (!error && find_view(registry->views, role_node))
        error = dv_fail(client, DIVVY_EALREADY, "registry watch: %s %.200s watched already", role ? role : "all roles",
                        role ? "is" : "are");
    dv_view like = {.role_node = role_node, .on_change = on_change, .user = user};
    if (!error) error = dv_fail_plainly(client, begin_view(registry, &like));
    if (error) free(role_node);
    dv_client_unlock(client);
    return error;
}

int divvy_registry_unwatch(divvy_registry *registry, const char *role) {
    int error = dv_registry_enter(registry);
    if (error) return error;
    divvy_client *client = registry->object.client;
    char *role_node = NULL;
    if (role) error = dv_registry_node_name(registry, "role", role, &role_node);
    dv_view *view = error ? NULL : find_view(registry->views, role_node);
    if (!error && !view)
        error = dv_fail(client, DIVVY_ENOENT, "registry unwatch: %.200s not watched", role ? role : "all roles are");
    dv_object_hold(&registry->object);
    if (view) end_view(view, true);
    free(role_node);
    dv_object_let_go(&registry->object);
    return error;
}
