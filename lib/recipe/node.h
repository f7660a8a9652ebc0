/* Node: the life of one ephemeral node of ours, from its create to its delete. SPDX-License-Identifier: Apache-2.0
 *
 * Its owner creates it, each time under a new name, and may add stages of its own while it is unmade or there. The node
 * sees to lost replies, heartbeats and its delete, and ends with the last reply. docs/protocol.md, R1, R2, Q6. */
#ifndef DV_NODE_H
#define DV_NODE_H

#include "client/client.h"

typedef enum __attribute__((packed)) {
    DV_NODE_UNMADE,    /* it is not there, and no create is under way */
    DV_NODE_CREATING,  /* a create is under way, or what it needs */
    DV_NODE_RESOLVING, /* the reply to the create was lost: is the node there? */
    DV_NODE_THERE,     /* it is ours, as far as we know */
    DV_NODE_LEAVING,   /* its owner has left: deleted if it stands */
    DV_NODE_ENDED,     /* nothing is left in ZooKeeper; replies may still come */
} dv_node_stage;

typedef struct dv_node dv_node;

/* The calls to its owner, from the loop. */
typedef struct {
    /* A lost create was carried out. Calls dv_node_made(). */
    void (*found)(dv_node *node, int64_t czxid, int64_t now);
    /* A lost create was not carried out, and never will be; or somebody has deleted what it made. Unmade again. */
    void (*not_found)(dv_node *node, int64_t now);
    /* A heartbeat did not find it there. NULL for one that is written. */
    void (*missing)(dv_node *node, int64_t now);
    /* Hears each event of the session, until it leaves or ends. */
    void (*hear)(dv_node *node, dv_session_event event, int64_t now);
    /* It begins to leave. May be NULL. */
    void (*leaving)(dv_node *node);
    /* It cannot go on, and leaves. Not told to an owner that has left. */
    void (*failed)(dv_node *node, int error, int64_t now);
    /* Nothing of it is left, nor its path: the last call, which frees it. */
    void (*gone)(dv_node *node, int64_t now);
} dv_node_kind;

/* A part of what its owner allocates. The owner sets the first six fields. A member has one for each of its items,
 * so it is small. */
struct dv_node {
    divvy_client *client;
    const dv_node_kind *kind;
    const char *directory; /* where it is made */
    bool sequential;       /* the server adds a number to the name */
    bool lasting;          /* made again on the next session */
    bool written;          /* its data change, so that heartbeats cannot check it; all attempts have one name */

    dv_node_stage stage;
    bool leave_requested;
    bool numbered;             /* its path is the one that the server made, with the number */
    bool stands;               /* it was made, and its delete was not answered yet */
    bool taken_away;           /* a request of the owner's own is to delete it, and has not ended */
    uint16_t under_way;        /* replies, barriers and events that will still come */
    uint16_t others;           /* parts of the owner that end before the node does */
    uint32_t cost, watch_cost; /* reserved in the budgets */
    unsigned known_falls;      /* C9: of the client, when the last create was requested, */
    int64_t known_czxid;       /* and its newest then */
    dv_watch watch;
    dv_listener listener;
    dv_own_node own;
    union {
        dv_barrier_wait barrier;
        dv_event left; /* posted when it leaves, and nothing else is to come */
    };
};

/* Returns its path, or the one that it is to have. */
static inline const char *dv_node_path(const dv_node *node) {
    return node->own.path;
}

/* ---- its life ---- */

/* Reserves room, and listens to the session. Returns as dv_reserve_node(); an error has freed the path. */
int dv_node_open(dv_node *node, size_t cost, size_t watch_cost);
/* Gives back what dv_node_open() took, for an owner that fails to begin. Frees the path; nothing may be under way. */
void dv_node_close(dv_node *node);
void dv_node_enter(dv_node *node, dv_node_stage to);
/* Counts a reply to come, or, with an error, has the client send again later. Returns whether it was sent. */
bool dv_node_sent(dv_node *node, int error);
/* Counts one reply less to come. Returns whether the owner looks at it; else the node may be gone. */
bool dv_node_replied(dv_node *node, int error, int64_t now);
/* Counts one part of the owner less; the node may be gone. */
void dv_node_other_ended(dv_node *node, int64_t now);

/* ---- making it ---- */

/* R2: gives the next attempt a name that only it can have made, with `suffix` behind that. Returns 0, or DIVVY_ENOMEM
 * and the old name stays. */
int dv_node_name(dv_node *node, const char *suffix);
/* Takes the path that the server made. Returns false when an allocation fails. */
bool dv_node_take_path(dv_node *node, const char *path);
/* Notes that it stands, and its czxid (0: not known). Returns false if its owner has left: it is deleted. */
bool dv_node_made(dv_node *node, int64_t czxid);
/* Notes that it certainly does not stand. Returns whether its owner still has it, unmade; else it may be gone. */
bool dv_node_unmade(dv_node *node, int64_t now);
/* R1: finds out whether a create whose reply was lost was carried out. found() or not_found() follows. */
void dv_node_resolve(dv_node *node);
/* The same without a barrier, where a server has answered already. */
void dv_node_look(dv_node *node);

/* ---- keeping it ---- */

/* Goes on after a create that failed: fails as well, finds out its fate, or has the owner make another (B12). */
void dv_node_not_made(dv_node *node, int error, int64_t now);
/* While nothing is under way: checks that it is still there. failed(DIVVY_ENOENT) follows if it is not. */
void dv_node_verify(dv_node *node);
void dv_node_unwatch(dv_node *node);

/* ---- leaving ---- */

/* Deletes it, at once or when it is known whether it stands. gone() follows. A second call does nothing. */
void dv_node_leave(dv_node *node);
/* The same where a request of the owner's own has deleted it. */
void dv_node_leave_deleted(dv_node *node);
/* The same, while it is there, where a request of the owner's is to delete it. dv_node_taken() follows in any case. */
void dv_node_take_away(dv_node *node);
/* That request has ended, and has deleted it or not. The node may be gone. */
void dv_node_taken(dv_node *node, bool deleted, int64_t now);
/* Tells the owner, and leaves. */
void dv_node_fail(dv_node *node, int error, int64_t now);
/* The same where somebody has deleted it. */
void dv_node_fail_deleted(dv_node *node, int64_t now);

#endif
