/* The session clock: until when the servers certainly keep the session. SPDX-License-Identifier: Apache-2.0
 *
 * Pure arithmetic on what was sent and answered when; session.c feeds it and acts on it. docs/protocol.md, C1 to C4. */
#ifndef DV_CLOCK_H
#define DV_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "znode/znode.h"

enum { DV_CLOCK_UNPROVEN_MAX = 64 };

typedef struct {
    int64_t tick_ms;       /* of the servers; 0: unknown, so that nothing is believed */
    int64_t timeout_ms;    /* the least that the session was given; 0: there is none yet */
    uint64_t connection;   /* how many the backend has told of, whatever became of them */
    bool proven_here;      /* by the present connection alone, so that the rest is well under way */
    bool proven_by_write;  /* not only by the session's creation */
    int64_t spread_ms;     /* by how much the first proof of this connection comes later, by chance */
    int64_t proven_at;     /* when the newest proven request was sent; 0: none is proven */
    int64_t wrote_at;      /* when the newest answered write was sent; 0: none was */
    int64_t pair_began_at; /* when a write was answered that no later one has followed by a lag; 0: there is none */
    struct {
        int64_t sent_at, answered_at;
        int64_t pinged_at;             /* a write was answered by which a ping was due; 0: none was */
        uint64_t connection;           /* that its answer came by */
    } unproven[DV_CLOCK_UNPROVEN_MAX]; /* oldest first */
    size_t unproven_count;
} dv_clock;

/* A clock that has proven nothing. It goes on counting connections. */
void dv_clock_reset(dv_clock *clock, int64_t tick_ms);
/* created_at: as in dv_session_news. chance: any number that other clients do not have; connections differ by it. */
void dv_clock_connected(dv_clock *clock, int64_t timeout_ms, int64_t created_at, uint64_t chance);
void dv_clock_answered(dv_clock *clock, const dv_answer *answer, int64_t now);

/* C1: nothing is believed at or after this time. 0: nothing is proven, or can be. */
int64_t dv_clock_alive_until(const dv_clock *clock);
/* C5: belief begins only with more than this left: after a creation that took long, writes prove the session first. */
int64_t dv_clock_first_needs_ms(const dv_clock *clock);
/* C3: tells whether a session of the clock's timeout can hold anything on servers of its tick. */
bool dv_clock_can_hold(const dv_clock *clock);
/* C3: returns the least timeout that can, on servers of this tick. */
int64_t dv_clock_least_timeout_ms(int64_t tick_ms);
/* C3: half a tick, within which a leader pings each of its followers. */
int64_t dv_clock_ping_ms(const dv_clock *clock);
/* C3: G, what lies at least between an answer and the write that completes its proof. */
int64_t dv_clock_guard_ms(const dv_clock *clock);
/* C2: what is kept back for clocks that run at different speeds, and for rounding. */
int64_t dv_clock_margin_ms(const dv_clock *clock);
/* C4: H, how often an idle session beats. */
int64_t dv_clock_heartbeat_ms(const dv_clock *clock);
int64_t dv_clock_next_beat(const dv_clock *clock);

#endif
