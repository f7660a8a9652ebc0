/* Cache: a live view of the entries of some roles, or of all. SPDX-License-Identifier: Apache-2.0
 *
 * R holds roles, a role holds entries. The owner parses these, and is told of changes. docs/protocol.md, W6 to W17. */
#ifndef DV_CACHE_H
#define DV_CACHE_H

#include "client/client.h"

typedef struct dv_cache dv_cache;
typedef struct dv_cache_role dv_cache_role;
typedef struct dv_slot dv_slot;

/* An entry of the view under one name. Immutable, and shared by reference, with the client lock held. */
typedef struct dv_cached {
    unsigned refs;
    void (*free_entry)(void *entry);
    dv_stat stat; /* of the node, as it was read */
    bool preserved;
    void *entry; /* made of the data by the owner's parse() */
} dv_cached;

/* Calls to the owner, with the client lock held; only gone() inside a call to the cache. Roles and ids name nodes. */
typedef struct {
    /* Makes an entry. NULL: it is none, until the node is written again; dv_cache_no_memory: read the node again. */
    void *(*parse)(void *owner, const char *role, const char *id, const dv_reply *reply);
    /* A copy that says of itself that it is preserved; NULL: no memory. */
    void *(*mark)(void *owner, const void *entry);
    void (*free_entry)(void *entry);
    /* Returns whether lookups would return the entry now: only such entries are preserved, and counted. */
    bool (*healthy)(void *owner, const void *entry);
    void (*changed)(void *owner, dv_slot *slot, const dv_cached *before); /* slot->current is another */
    void (*gone)(void *owner); /* the last call, after dv_cache_stop(), and perhaps inside it */
    void (*free_memo)(void *memo);
} dv_cache_owner;
extern char dv_cache_no_memory[1];

/* All of them positive, but preserve_share, where 0 means no self-preservation. */
typedef struct {
    size_t watch_bytes;
    int64_t poll_ms;
    double preserve_share;
    int64_t preserve_settle_ms, preserve_max_ms;
} dv_cache_options;

/* A view tells its user what changed; there may be one of a role and one of all. */
enum { DV_VIEW_ROLE, DV_VIEW_ALL, DV_VIEWS };

/* A node that is read, and read again when it has changed: R, a role, or an entry. */
typedef struct dv_cache_node {
    struct dv_cache_node *next, **link; /* of those that are due to be read; NULL link: not due */
    bool under_way, again;              /* a read is; again: the node has changed since that was sent */
    dv_watch watch;
    bool watched; /* its watch has its place in the budget */
    bool set;     /* and is set at the server */
    dv_cache *cache;
    dv_cache_role *role; /* NULL: it is R */
    const char *name;    /* in path */
    char *path;
} dv_cache_node;

/* A name in a role. It stays while it has a node, an entry in the view, a read, or a user to be told. */
struct dv_slot {
    dv_cache_node node; /* first */
    dv_slot *next, **link;
    bool present; /* there is a node */
    bool unread;  /* the role is not primed before this one was read */
    uint64_t listed;
    int64_t read_at, mzxid; /* of the newest read */
    dv_cached *current;     /* NULL: not in the view */

    /* The owner's, for each view: the entry that its user knows; `due`: a change is to be told. */
    dv_cached *told[DV_VIEWS];
    dv_slot *next_due[DV_VIEWS];
    bool due[DV_VIEWS];
};

/* `directory` is copied. NULL: no memory. */
dv_cache *dv_cache_start(divvy_client *client, const char *directory, const dv_cache_options *options,
                         const dv_cache_owner *events, void *owner);
/* Stops the cache, once: it tells nothing from now on. Its slots go, so no caller may still wait. gone() follows. */
void dv_cache_stop(dv_cache *cache);

/* Begins to follow a role, or all (NULL). `tag` is what dv_slot_tag() says of the role's slots. 0 or DIVVY_ENOMEM. */
int dv_cache_follow(dv_cache *cache, const char *name, void *tag);
/* Ends that. Entries that are then not followed leave the view without a call to the owner; none may be due. */
void dv_cache_unfollow(dv_cache *cache, const char *name);

/* Returns whether the view of a role, or of all (NULL), is complete, as of this session. */
bool dv_cache_is_primed(const dv_cache *cache, const char *name);
/* Visits all slots of a role, or of all (NULL), also those with no entry in the view. `visit` changes nothing. */
void dv_cache_each(const dv_cache *cache, const char *name, void (*visit)(void *context, dv_slot *slot), void *context);
/* Returns the place for what the owner made of the entries of a role, or of all (NULL): its memo, or NULL. The owner
 * changes it in changed(). It is freed by free_memo() when entries leave the view untold. NULL: there is no such role.
 */
void **dv_cache_memo(dv_cache *cache, const char *name);
void **dv_slot_memo(dv_slot *slot);     /* of its role */
void *dv_slot_tag(const dv_slot *slot); /* NULL: its role is not followed by itself */
/* Frees the slot, once its owner has told, unless it is still of use. */
void dv_slot_let_go(dv_slot *slot);

dv_cached *dv_cached_ref(dv_cached *cached); /* NULL is fine */
void dv_cached_unref(dv_cached *cached);     /* NULL is fine */

#endif
