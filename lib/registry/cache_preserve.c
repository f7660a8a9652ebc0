/* Cache: self-preservation, when much of a role vanishes at once. SPDX-License-Identifier: Apache-2.0
 *
 * Services that vanish together rather lost their link than their life. Source: Eureka. docs/protocol.md, W15, W16. */
#include <assert.h>

#include "base/container.h"
#include "registry/cache_internal.h"

static bool counts(const dv_slot *slot) {
    const dv_cache *cache = slot->node.cache;
    const dv_cached *c = slot->current;
    return c && !c->preserved && cache->events->healthy(cache->owner, c->entry);
}

static size_t count_living(const dv_cache_role *role) {
    size_t count = 0;
    for (const dv_slot *slot = role->slots; slot; slot = slot->next) count += counts(slot);
    return count;
}

static size_t count_kept(const dv_cache_role *role) {
    size_t count = 0;
    for (const dv_slot *slot = role->slots; slot; slot = slot->next) count += slot->current && slot->current->preserved;
    return count;
}

/* More than the share of those that were there is missing, newcomers counted as replacements. */
static bool lacks_many(const dv_cache_role *role) {
    double least = (double)role->base * (1 - role->dir.node.cache->options.preserve_share);
    return (double)count_living(role) < least;
}

/* Ends the episode: entries that are still kept leave the view. */
static void end_episode(dv_cache_role *role) {
    role->mass = false;
    dv_timer_cancel(&role->preserve_timer);
    role->under_way++; /* keeps the role during the loop */
    for (dv_slot *slot = role->slots, *next; slot; slot = next) {
        next = slot->next;
        if (!slot->current || !slot->current->preserved) continue;
        dv_slot_show(slot, NULL);
        dv_slot_let_go(slot);
    }
    role->under_way--;
    dv_role_let_go(role);
}

static void on_timer(dv_timer *timer, int64_t now) {
    dv_cache_role *role = DV_CONTAINER(timer, dv_cache_role, preserve_timer);
    const dv_cache_options *options = &role->dir.node.cache->options;
    int64_t end = role->episode_began + options->preserve_max_ms;
    size_t kept = count_kept(role);
    role->mass = !role->mass && kept >= DV_CACHE_MASS_LEAST && now < end && lacks_many(role);
    if (!role->mass) {
        end_episode(role);
        return;
    }
    dv_timer_set(role->dir.node.cache->client, timer, end);
    dv_client_warn(role->dir.node.cache->client, DIVVY_WARN_PRESERVED,
                   "%zu of the %zu entries of %.200s have vanished within %lld ms: they are kept, marked as preserved, "
                   "until they or others come back, for %lld s at most",
                   kept, role->base, role->dir.node.path, (long long)options->preserve_settle_ms,
                   (long long)(options->preserve_max_ms / 1000));
}

bool dv_preserve_departed(dv_slot *slot, int64_t now) {
    assert(!slot->present && slot->current);
    dv_cache_role *role = slot->node.role;
    dv_cache *cache = slot->node.cache;
    if (cache->options.preserve_share <= 0 || role->ended || !counts(slot)) return false;
    void *marked = cache->events->mark(cache->owner, slot->current->entry);
    dv_cached *kept = dv_cached_new(cache, marked, &slot->current->stat, true);
    if (!kept) return false;
    if (!role->preserve_timer.link) {
        role->base = count_living(role);
        role->episode_began = now;
        role->preserve_timer.fire = on_timer;
        dv_timer_set(cache->client, &role->preserve_timer, now + cache->options.preserve_settle_ms);
    }
    dv_slot_show(slot, kept);
    return true;
}

void dv_preserve_arrived(dv_cache_role *role) {
    if (role->mass && !lacks_many(role)) end_episode(role);
}
