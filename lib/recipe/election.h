/* Election: what its parts share. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ELECTION_H
#define DV_ELECTION_H

#include "divvy/election.h"
#include "recipe/leader_view.h"
#include "recipe/lock.h"
#include "recipe/step_down.h"

/* One acquire of the lock, which its end still knows when the candidate has resigned, and stands again. */
typedef struct {
    divvy_election *election;
} dv_candidacy;

struct divvy_election {
    dv_object object; /* first */
    divvy_election_config config;
    char *directory, *data;
    divvy_lock *lock;
    dv_listener listener;
    bool ending;

    bool standing;           /* wants to lead, until it resigns */
    dv_candidacy *candidacy; /* the one under way; NULL: it leads, or does not stand */
    bool told_elected;       /* and neither on_lost nor a resignation since */
    int failure;             /* to be told */
    dv_callback failure_callback;
    bool telling_failure;

    dv_leader_view *view;   /* NULL: nobody asks who leads */
    dv_leader *told_leader; /* what the user was told last; meant once told_any */
    dv_callback leader_callback;
    bool leader_queued, telling_leader, told_any;

    dv_requests *requests; /* while it leads, and the user hears them */
    dv_asker *asker;       /* to be told, or being told */
    dv_callback asked_callback;
    bool telling_asked;
    dv_ask *preferred; /* J5: asks the one that leads for this candidate */
    int64_t preferred_token, refused_token;
    dv_ask *asked; /* divvy_election_ask_step_down() does */
    int ask_error;
    bool asking;
};

/* ---- election.c ---- */
static inline int dv_election_enter(divvy_election *e) {
    if (!e) return dv_fail(NULL, DIVVY_EINVAL, "the election is NULL");
    return dv_client_enter(e->object.client);
}

/* ---- election_leader.c: who leads, and who asks whom. With the client lock held ---- */
/* Begins to follow the leader, if it does not. Returns 0, DIVVY_ELIMIT or DIVVY_ENOMEM. */
int dv_election_follow(divvy_election *e);
/* J5: asks the leader to step down, or ceases to. */
void dv_election_decide_to_ask(divvy_election *e);
/* J6: hears requests while it leads, and only then. */
void dv_election_hear_requests(divvy_election *e);
void dv_election_stop_following(divvy_election *e);

#endif
