/* Acquisition: a lock, or slots of a semaphore, requested, held and lost. SPDX-License-Identifier: Apache-2.0
 *
 * Both do this alike. Each acquire takes a ticket, its place in the queue; a release gives it up. Tickets that are
 * given up see to their own end. docs/protocol.md, rules Q6, K1 to K6. */
#ifndef DV_ACQUISITION_H
#define DV_ACQUISITION_H

#include "client/client.h"

typedef struct dv_acquisition dv_acquisition;
typedef struct dv_ticket dv_ticket;
typedef struct dv_acquire dv_acquire;

struct dv_ticket {
    dv_ticket *next;
    dv_acquisition *acquisition;
    void *place; /* the contender of a lock, the lease of a semaphore */
    bool waits;  /* it has stood behind others */
    bool first;  /* it is its turn: the lock, or the slots, are ours while the session lives */
};

/* One acquire() of the user's. */
struct dv_acquire {
    dv_callback callback; /* first; only of asynchronous ones, which are malloc'ed */
    dv_acquisition *acquisition;
    void (*done)(void); /* of the type that the kind knows; NULL: the caller waits */
    void *user;
    bool is_try, ended;
    int result;
    char reason[200]; /* of an error, where there is more to say than its name */
};

/* A lock's, or a semaphore's, own part. All but the two calls to the user run with the client lock held. */
typedef struct {
    const char *name; /* messages begin with it */
    /* Enters the queue and sets ticket->place. `ensure`: the paths may be missing.
     * Returns 0, DIVVY_EBUSY if there is no room for a watch just now, or an error that ends the acquire. */
    int (*enter)(dv_ticket *ticket, bool ensure);
    void (*leave)(dv_ticket *ticket);
    /* Returns whether the ticket waits for `other`, which may be leaving. */
    bool (*waits_for)(const dv_ticket *ticket, const dv_ticket *other);
    /* Begins to hold, and returns the token. */
    int64_t (*hold)(const dv_ticket *ticket);
    void (*verify)(const dv_ticket *ticket); /* while held, with a connection: checks that its node is still there */
    void (*tell_done)(dv_acquire *acquire);
    void (*tell_lost)(dv_acquisition *acquisition);
    void (*free)(dv_acquisition *acquisition);
} dv_acquisition_kind;

struct dv_acquisition {
    dv_object object; /* first */
    const dv_acquisition_kind *kind;
    dv_recipe recipe;                 /* under which the client counts it */
    const char *path;                 /* for messages */
    int64_t requested_at, held_since; /* of the acquire under way, or the last; of the ownership, or the last */
    void (*on_lost)(void);            /* of the type that the kind knows; may be NULL */
    void *user;                       /* of on_lost */
    dv_listener listener;
    dv_ticket *tickets;     /* all that have something left, the newest first */
    dv_ticket *ticket;      /* the one that the acquire under way, or what is held, stands on */
    dv_acquire *acquire;    /* under way */
    dv_acquire *granted;    /* the last one that ended with 0, while its caller has not been told */
    uint64_t attempt;       /* the number of the acquire under way, or of the next one */
    bool attempt_canceled;  /* that one, before it has begun */
    bool left_behind;       /* tickets ended with their session: the servers have yet to delete their nodes */
    unsigned missing_count; /* how often paths were missing in this acquire */
    bool waits_for_path;    /* a path is being made: no ticket is taken before */
    bool ending;            /* destroyed */
    bool telling_lost;      /* lost_callback is queued or running */
    bool mute;              /* it tells nothing; of the thread that runs it */
    dv_timer deadline_timer, audit_timer;
    dv_callback lost_callback;
    _Atomic(int64_t) token; /* 0: nothing is held */
};

/* Paths may vanish so often under one acquire. */
enum { DV_ACQUISITION_MISSING_MAX = 100 };

/* Begins, with all fields 0 but those of the owner around it. `path` lives as long. */
void dv_acquisition_init(dv_acquisition *a, divvy_client *client, const dv_acquisition_kind *kind, dv_recipe recipe,
                         const char *path, void (*on_lost)(void), void *user);

/* ---- the events of a ticket's place; `context` is the ticket ---- */
void dv_ticket_first(void *context, int64_t now);
/* K4: a try ends here, unless it stands behind a place of this very object that is about to go. */
void dv_ticket_waits(void *context, int64_t now);
/* J4: it is its turn, and it gives that up, for a place at the end of the queue. */
void dv_ticket_yield(void *context, int64_t now);
/* Loses what was held. Returns whether an acquire stood on the ticket, which the caller ends or carries on. */
bool dv_ticket_failed(dv_ticket *ticket);
void dv_ticket_gone(dv_ticket *ticket);

/* ---- with the client lock held ---- */
/* Takes a ticket for the acquire under way, if it has none and can have one. */
void dv_acquisition_proceed(dv_acquisition *a);
void dv_acquisition_finish(dv_acquisition *a, int result);
/* Begins an acquire whose end `done` is told. Returns as divvy_lock_acquire_async(). */
int dv_acquisition_begin(dv_acquisition *a, int64_t timeout_ms, void (*done)(void), void *user);
/* Cancels the acquire under way, and releases what is held, without a loss to tell. */
void dv_acquisition_give_up(dv_acquisition *a);
/* Keeps an error's message for the caller, and returns the error. */
int dv_acquisition_fail(const dv_acquisition *a, int error, const char *reason);
bool dv_acquisition_is_held(const dv_acquisition *a);

/* ---- public calls, which begin with the client lock held, and end it ---- */
int dv_acquisition_acquire(dv_acquisition *a, int64_t timeout_ms);
int dv_acquisition_acquire_async(dv_acquisition *a, int64_t timeout_ms, void (*done)(void), void *user);
int dv_acquisition_release(dv_acquisition *a);
int dv_acquisition_wait_gone(dv_acquisition *a, int64_t timeout_ms);
/* `attempt` 0: whichever is under way. */
int dv_acquisition_cancel(dv_acquisition *a, uint64_t attempt);

/* ---- without the client lock ---- */
/* `farewell` as for dv_object_destroy(). */
void dv_acquisition_destroy(dv_acquisition *a, const dv_farewell *farewell);
/* Returns the token of what is held and believed, or 0. From any thread. */
int64_t dv_acquisition_token(const dv_acquisition *a);
/* Returns the number of the acquire under way, or of the next one; 0 in the child of a fork. */
uint64_t dv_acquisition_attempt(const dv_acquisition *a);

#endif
