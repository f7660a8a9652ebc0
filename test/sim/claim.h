/* A claim: a lock, a semaphore or an election of a member. SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CLAIM_H
#define SIM_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "divvy/election.h"
#include "divvy/lock.h"
#include "divvy/semaphore.h"

typedef struct sim_member sim_member;

/* A lock, a semaphore or an election of a member, and what its user does with it: claims.c. */
typedef struct {
    sim_member *m;
    bool is_pool;
    size_t place; /* which lock, or which pool */
    int mode, policy;
    uint32_t count, limit;
    bool destroys_inside;
    divvy_lock *lock; /* one of them; NULL: not made */
    divvy_semaphore *semaphore;
    bool is_election;         /* elections.c; `lock` is then the one inside, for looking */
    divvy_election *election; /* its modes are those of a writer */
    int preference;
    bool told_leader;      /* of some leader */
    int64_t leader_token;  /* that the user was told of last */
    int64_t unknown_since; /* another leads than it knows */
    int64_t act_at;

    bool acquiring, waits;  /* asynchronously, or inside a waiting call */
    bool is_try, given_up;  /* canceled or destroyed meanwhile */
    bool calls, lost_early; /* inside a waiting call of another kind; on_lost came inside the call that acquired */
    int64_t began_ms;
    int64_t ends_by; /* when the acquire ends at the latest; INT64_MAX: some time */
    bool owns;       /* an acquire ended well, and neither release nor on_lost has come since */
    bool works;      /* the user does, or may */
    int64_t work_token, work_session;
    int64_t seen_token; /* that the library showed last */
    int seen_stage;     /* of a semaphore's lease, or of its node */
    int64_t room_since; /* it waits for room, and there is */
    int64_t gone_since; /* the node of what is shown is not there */
    bool last_done;     /* after the faults: once more, without limit */
} sim_claim;

#endif
