/* The session's fate, as it concerns a partitioner. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "base/container.h"
#include "partitioner/handover.h"

/* P7. `over`: the client still rids a host's session of its nodes; a new one of ours would keep it from ending that. */
void dv_session_rejoin(divvy_partitioner *p, int64_t now) {
    bool released = p->state == DIVVY_ALLOCATING, over = p->object.client->end_error != 0;
    if (p->life != DV_LIFE_REJOINING || !released || over || p->membership || p->watch || p->totals.leaving ||
        p->looks || p->ready_requested || !dv_follow_at_rest(p->follower) || !dv_handover_at_rest(p) ||
        !dv_own_loads_at_rest(p))
        return;
    assert(p->totals.shown == 0);
    dv_directories_forget(p);
    p->lost_session = false;
    dv_life_enter(p, DV_LIFE_TAKING_PART);
    dv_members_free(&p->party);
    dv_members_start(p, now);
}

void dv_partitioner_hear(dv_listener *listener, dv_session_event event, int64_t now) {
    divvy_partitioner *p = DV_CONTAINER(listener, divvy_partitioner, listener);
    divvy_client *client = p->object.client;
    switch (event) {
    case DV_SESSION_CONNECTED:
        /* To kazoo's policy a connection that is back is an event like its loss; the first one is not. */
        if (p->was_suspended) dv_state_suspend(p, now);
        p->was_suspended = false;
        dv_members_connected(p, now);
        dv_session_rejoin(p, now);
        dv_audit_now(p, now);
        break;
    case DV_SESSION_SUSPENDED:
        p->was_suspended = true;
        dv_state_suspend(p, now);
        break;
    case DV_SESSION_LOST:
        assert(client->end_error);
        p->was_suspended = false;
        p->lost_session = true;
        if (p->config.on_session_loss == DIVVY_REJOIN && p->life < DV_LIFE_HANDING_OVER && client->state == DIVVY_LOST)
            dv_state_lose(p, now);
        else
            dv_state_fail(p, client->end_error,
                          client->state == DIVVY_AUTH_FAILED ? DIVVY_REASON_DENIED : DIVVY_REASON_SESSION, now, "%s",
                          client->end_reason);
        dv_items_drop(p, true, now); /* The deadline has taken them from the user already. */
        break;
    case DV_SESSION_AGAIN:
        dv_members_again(p, now);
        dv_session_rejoin(p, now);
        dv_report_flush(p);
        break;
    case DV_SESSION_OVER:
    case DV_SESSION_LINK: break; /* The places see to themselves. */
    case DV_SESSION_PROVEN: dv_state_proven(p, now); break;
    case DV_SESSION_CLOSING:
        if (p->life < DV_LIFE_FINISHING) dv_life_enter(p, DV_LIFE_FINISHING);
        dv_state_fail(p, DIVVY_ECLOSED, DIVVY_REASON_FINISH, now, "the client is closing");
        dv_items_drop(p, true, now);
        break;
    case DV_SESSION_CLOSED:
        if (p->life != DV_LIFE_TIDIED) dv_life_enter(p, DV_LIFE_TIDIED);
        dv_state_fail(p, DIVVY_ECLOSED, DIVVY_REASON_FINISH, now, "the client is closed");
        assert(p->state == DIVVY_FAILURE && p->totals.shown == 0);
        dv_client_changed(client);
        break;
    case DV_SESSION_ROOM: dv_state_room(p, now); break;
    }
}
