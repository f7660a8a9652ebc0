/* Cache: shared by its parts. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_CACHE_INTERNAL_H
#define DV_CACHE_INTERNAL_H

#include "divvy/registry.h"
#include "registry/cache.h"

enum {
    DV_CACHE_IN_FLIGHT_MAX = 256,   /* W8: of one cache; the link has room for others */
    DV_CACHE_LIST_INTERVAL_MS = 50, /* W8: between two lists of a directory */
    DV_CACHE_AUDIT_MS = 60000,      /* W11: each directory, once a minute */
    DV_CACHE_RETRY_MS = 1000,       /* after a failed allocation */
    DV_CACHE_SLACK_PARTS = 8,       /* W13: an eighth of what a role takes is to be free for it to be watched again */
    DV_CACHE_MASS_LEAST = 2,        /* W15: one that goes alone is no mass */
};

/* A directory whose names are followed: R, or a role. */
typedef struct dv_dir {
    dv_cache_node node;  /* first; watched: its children, or its existence while it is missing. Else it is polled */
    dv_timer timer;      /* the next list */
    bool missing;        /* no such node when it was read last; its creation is to be watched */
    bool listed;         /* on this session */
    int refused;         /* the error that was told last */
    int64_t sent_at;     /* the last list */
    uint64_t generation; /* of its lists */
} dv_dir;

typedef struct {
    dv_cache_node *first, **end;
} dv_cache_queue;

struct dv_cache_role {
    dv_dir dir; /* first */
    dv_cache_role *next, **link;
    void *by_name; /* its slots: tsearch() */
    dv_slot *slots;
    void *tag;
    void *memo;          /* dv_cache_memo() */
    bool followed;       /* by itself */
    bool listed;         /* R has it, and all are followed */
    uint64_t generation; /* of R's list that had it */
    bool primed;
    bool ended; /* out of the cache's tables; goes with the last answer */
    unsigned under_way;
    size_t unread;

    dv_timer preserve_timer; /* W15: set while something that went is kept */
    bool mass;               /* it stays so beyond the settle time */
    size_t base;             /* how many there were */
    int64_t episode_began;
};

struct dv_cache {
    divvy_client *client;
    dv_cache_options options;
    const dv_cache_owner *events;
    void *owner;
    dv_listener listener;
    dv_timer retry_timer;
    dv_dir root;
    bool all_followed, all_primed, ended;
    void *by_name; /* the roles: tsearch() */
    dv_cache_role *roles;
    void *memo; /* of all: dv_cache_memo() */
    unsigned under_way;
    dv_cache_queue lists, gets; /* due, in order */
    size_t watch_bytes;         /* reserved */
    size_t unset_bytes;         /* of these: not set at the server, or not yet */
};

/* ---- cache.c ---- */

/* Fills in a node, as `name` in `parent`; NULL: it is R, whose path `name` is. Returns 0 or DIVVY_ENOMEM. */
int dv_cache_node_init(dv_cache_node *node, dv_cache *cache, dv_cache_role *role, const char *parent, const char *name);
/* Shows `cached` in the view, and takes over its reference; NULL: shows nothing. */
void dv_slot_show(dv_slot *slot, dv_cached *cached);
dv_slot *dv_slot_find_or_add(dv_cache_role *role, const char *id);
/* Notes that the node is gone. The slot may go too. */
void dv_slot_depart(dv_slot *slot, int64_t now);
void dv_slot_was_read(dv_slot *slot);
void dv_cache_take_roles(dv_cache *cache, const char *const *names, size_t count, int64_t now);
void dv_role_check_primed(dv_cache_role *role);
/* Lets go of a role that nobody follows, or that has gone. It is freed when nothing is left of it. */
void dv_role_let_go(dv_cache_role *role);
void dv_role_free_ended(dv_cache_role *role);
void dv_cache_free_ended(dv_cache *cache);
/* Takes `entry`. Returns NULL if that is NULL, or an allocation fails. */
dv_cached *dv_cached_new(dv_cache *cache, void *entry, const dv_stat *stat, bool preserved);

/* ---- cache_read.c ---- */

/* Has the node read as soon as there is room, after what is due already. */
void dv_cache_node_request(dv_cache_node *node);
void dv_cache_node_forget(dv_cache_node *node);
/* Sends what is due and has room. */
void dv_cache_pump(dv_cache *cache);

/* ---- cache_budget.c ---- */

/* Reserves room for the node's watch. Returns node->watched. */
bool dv_cache_node_reserve(dv_cache_node *node);
void dv_cache_node_release(dv_cache_node *node);
/* To be called when the watch may have been set, or is so no more. */
void dv_cache_node_note_watch(dv_cache_node *node);
/* Gives all watches of the role back, as it no longer fits. */
void dv_role_poll(dv_cache_role *role);
/* Before a list: reserves room for all watches of the role, if it fits again. All is read again with them. */
void dv_role_try_watching(dv_cache_role *role);

/* ---- cache_preserve.c ---- */

/* Returns whether what has gone stays in the view, as preserved. */
bool dv_preserve_departed(dv_slot *slot, int64_t now);
void dv_preserve_arrived(dv_cache_role *role);

#endif
