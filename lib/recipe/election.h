/* Election: what its parts share. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ELECTION_H
#define DV_ELECTION_H

#include "divvy/election.h"
#include "recipe/lock.h"
#include "recipe/request.h"

/* One leader, as it was read. Shared by reference. */
typedef struct {
    divvy_leader shown;
    unsigned refs;
    int preference; /* J4 */
} dv_leader;

/* The leader as the queue shows it, and what the user was told of that: election_leader.c. */
typedef struct {
    bool follows;   /* the queue is looked at */
    dv_watch watch; /* on the leader; on the directory while it is empty or missing */
    size_t watch_cost;
    bool watches_children;
    dv_timer audit_timer;
    char *first; /* the path of the one that is being read */
    bool reading;
    bool look_again; /* the watch fired while it was */

    bool known;        /* it was found out who leads: */
    dv_leader *leader; /* NULL: nobody */
    int error;         /* why it cannot be read, or 0 */

    dv_leader *told; /* the one that the user was told last; meant once told_any */
    dv_callback callback;
    bool queued, telling, told_any;
} dv_leader_view;

/* A request to a leader to step down, and the requests that a leader hears: step_down.c. */
typedef struct dv_step_down dv_step_down;
typedef struct dv_hearing dv_hearing;
typedef struct dv_requester dv_requester;

struct divvy_election {
    dv_object object; /* first */
    divvy_election_config config;
    char *directory, *data;
    divvy_lock *lock;
    dv_listener listener;
    bool ending;

    bool standing;     /* a candidate, until it resigns */
    bool in_queue;     /* an acquire of the lock is under way, or its end was not told yet */
    unsigned resigned; /* acquires before that one, whose end was not told yet: it is of no interest */
    bool told_elected; /* and neither on_lost nor a resignation since: it stands */
    int failure;       /* to be told */
    dv_callback failure_callback;
    bool telling_failure;

    dv_leader_view view;

    dv_step_down *preferred; /* J5: the request of a candidate to a leader of a lower preference */
    int64_t preferred_token, refused_token;
    dv_step_down *requested; /* the request of divvy_election_ask_step_down() */
    int request_error;
    bool in_request; /* that call waits */

    dv_hearing *hearing;     /* J6: while it leads, and the user hears requests */
    dv_requester *requester; /* to be told, or being told */
    dv_callback requested_callback;
    bool telling_requested;
};

static inline int dv_election_enter(divvy_election *e) {
    if (!e) return dv_fail(NULL, DIVVY_EINVAL, "the election is NULL");
    return dv_client_enter(e->object.client);
}

static inline int64_t dv_leader_token(const dv_leader *leader) {
    return leader ? leader->shown.token : 0;
}

/* ---- election_leader.c. With the client lock held ---- */
/* J3: begins to follow the leader, if it does not. Returns 0 or DIVVY_ELIMIT. */
int dv_election_follow(divvy_election *e);
void dv_election_stop_following(divvy_election *e);
void dv_election_hear_leader(divvy_election *e, dv_session_event event);
void dv_election_free_leader(divvy_election *e);
/* Waits until it is known who leads, if anybody does. */
int dv_election_find_leader(divvy_election *e, dv_leader **leader, dv_deadline deadline);
int dv_election_wait_until_changed(divvy_election *e, int64_t token, dv_deadline deadline);
/* Ends a waiting call. Returns its error. */
int dv_election_finish_call(divvy_election *e, const char *what, int error);

/* ---- step_down.c. With the client lock held ---- */
/* J5: requests that the leader steps down, or ceases to. */
void dv_election_decide_to_request(divvy_election *e);
void dv_election_stop_requests(divvy_election *e);
/* J6: hears requests while it leads, and only then. */
void dv_election_hear_requests(divvy_election *e);

#endif
