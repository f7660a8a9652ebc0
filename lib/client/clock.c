/* The session clock: until when the servers certainly keep the session. SPDX-License-Identifier: Apache-2.0 */
#include "client/clock.h"

#include <assert.h>

/* The delay that a ping, its answer or a message may have after it is due. */
#define LAG_MS INT64_C(100)

void dv_clock_reset(dv_clock *clock, int64_t tick_ms) {
    *clock = (dv_clock){.tick_ms = tick_ms, .connection = clock->connection};
}

/* Returns the tick that the clock reckons with. An unknown one has no bound: only the beats go by this guess. */
static int64_t tick_of(const dv_clock *clock) {
    return clock->tick_ms ? clock->tick_ms : clock->timeout_ms / 2;
}

int64_t dv_clock_ping_ms(const dv_clock *clock) {
    return tick_of(clock) / 2;
}

int64_t dv_clock_guard_ms(const dv_clock *clock) {
    return dv_clock_ping_ms(clock) + LAG_MS;
}

int64_t dv_clock_margin_ms(const dv_clock *clock) {
    return clock->timeout_ms / 100 + 20;
}

/* C3: of the timeout G and the 20 ms of the margin may take this much at the most, in hundredths. One goes into the
 * margin, 30 are three heartbeats: one waits for the next after each half of G, and the next proof comes one later.
 * Five are for round trips. */
enum { HOLDING_PARTS = 64 };

static bool holds(int64_t timeout_ms, int64_t tick_ms) {
    return timeout_ms * HOLDING_PARTS / 100 > tick_ms / 2 + LAG_MS + 20;
}

bool dv_clock_can_hold(const dv_clock *clock) {
    return clock->tick_ms && holds(clock->timeout_ms, tick_of(clock));
}

int64_t dv_clock_least_timeout_ms(int64_t tick_ms) {
    return ((tick_ms / 2 + LAG_MS + 20 + 1) * 100 + HOLDING_PARTS - 1) / HOLDING_PARTS;
}

/* C4: the interval lies between T/10 and half as much again, where a client at rest has the most left (C2). Those too
 * short for pairs meet the halves of G by their number alone. */
int64_t dv_clock_heartbeat_ms(const dv_clock *clock) {
    int64_t least_ms = clock->timeout_ms / 10 > 0 ? clock->timeout_ms / 10 : 1;
    int64_t span_ms = dv_clock_guard_ms(clock) + least_ms / 20; /* and a round trip */
    int64_t best_ms = 0, best_price_ms = INT64_MAX;
    for (int64_t n = 2 * span_ms / (3 * least_ms) + 1; n <= span_ms / least_ms + 1; n++) {
        int64_t interval_ms = (span_ms + n - 1) / n > least_ms ? (span_ms + n - 1) / n : least_ms;
        int64_t price_ms = (n + 1) * interval_ms;
        if (price_ms < best_price_ms) best_ms = interval_ms, best_price_ms = price_ms;
    }
    return best_ms > 2 * LAG_MS ? best_ms : least_ms;
}

/* C4: when the write is due that brings a first proof further, by the oldest answer of the present connection. */
static int64_t next_of_first_proof(const dv_clock *clock) {
    if (clock->proven_here || !clock->unproven_count) return INT64_MAX;
    if (clock->unproven[0].pinged_at) return clock->unproven[0].pinged_at + LAG_MS;
    return clock->unproven[0].answered_at + dv_clock_ping_ms(clock) + clock->spread_ms;
}

/* Heartbeats come in pairs: one by which a ping was due, and a lag later one that completes what that has begun. */
int64_t dv_clock_next_beat(const dv_clock *clock) {
    int64_t interval_ms = dv_clock_heartbeat_ms(clock), first = next_of_first_proof(clock);
    bool paired = interval_ms > 2 * LAG_MS;
    if (clock->pair_began_at && paired) return clock->pair_began_at + LAG_MS;
    int64_t next = clock->wrote_at + (paired ? interval_ms - LAG_MS : interval_ms);
    return first < next ? first : next;
}

int64_t dv_clock_alive_until(const dv_clock *clock) {
    if (!clock->proven_at || !dv_clock_can_hold(clock)) return 0;
    int64_t until = clock->proven_at + clock->timeout_ms - dv_clock_margin_ms(clock);
    return until > 0 ? until : 1;
}

int64_t dv_clock_first_needs_ms(const dv_clock *clock) {
    if (clock->proven_by_write) return 0;
    int64_t half_ms = (clock->timeout_ms - dv_clock_margin_ms(clock)) / 2;
    int64_t proof_ms = dv_clock_guard_ms(clock) + 2 * LAG_MS;
    return half_ms > proof_ms ? half_ms : proof_ms;
}

static void prove(dv_clock *clock, int64_t sent_at) {
    if (sent_at > clock->proven_at) clock->proven_at = sent_at;
}

/* C4: up to a quarter of an interval, or of what lies between G and T where that is less. Mixes as splitmix64 does. */
static int64_t spread_of(const dv_clock *clock, uint64_t chance) {
    int64_t slack_ms = clock->timeout_ms - dv_clock_margin_ms(clock) - dv_clock_guard_ms(clock);
    int64_t interval_ms = dv_clock_heartbeat_ms(clock), most_ms = (interval_ms < slack_ms ? interval_ms : slack_ms) / 4;
    chance += UINT64_C(0x9e3779b97f4a7c15) * (clock->connection + 1);
    chance = (chance ^ (chance >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    chance = (chance ^ (chance >> 27)) * UINT64_C(0x94d049bb133111eb);
    return most_ms > 0 ? (int64_t)((chance ^ (chance >> 31)) % (uint64_t)(most_ms + 1)) : 0;
}

void dv_clock_connected(dv_clock *clock, int64_t timeout_ms, int64_t created_at, uint64_t chance) {
    assert(timeout_ms > 0);
    if (!clock->timeout_ms || timeout_ms < clock->timeout_ms) clock->timeout_ms = timeout_ms;
    /* C3: a session is created by a transaction of the leader's, which begins to count then. */
    if (created_at) prove(clock, created_at);
    clock->proven_here = created_at != 0;
    clock->spread_ms = spread_of(clock, chance);
}

/* C3: a write was committed. Answers that it proves are the oldest of the list, as answers come in order. */
static void prove_by_write(dv_clock *clock, const dv_answer *write, int64_t now) {
    int64_t ping_ms = dv_clock_ping_ms(clock);
    size_t proven = 0;
    for (size_t i = 0; i < clock->unproven_count; i++) {
        bool later_connection = write->connection > clock->unproven[i].connection;
        int64_t pinged_at = clock->unproven[i].pinged_at;
        if (later_connection || (pinged_at && write->sent_at >= pinged_at + LAG_MS)) {
            prove(clock, clock->unproven[i].sent_at);
            clock->proven_by_write = true;
            clock->proven_here |= !later_connection;
            proven = i + 1;
        } else if (!pinged_at && write->sent_at >= clock->unproven[i].answered_at + ping_ms) {
            clock->unproven[i].pinged_at = now;
        } else if (!pinged_at) {
            break;
        }
    }
    assert(proven <= clock->unproven_count);
    clock->unproven_count -= proven;
    for (size_t i = 0; i < clock->unproven_count; i++) clock->unproven[i] = clock->unproven[proven + i];
}

/* Answers close together count as one, and a full list is thinned out: the clock can only say less for it. */
static void remember(dv_clock *clock, const dv_answer *answer, int64_t now) {
    size_t count = clock->unproven_count;
    if (count && clock->unproven[count - 1].connection == clock->connection &&
        now - clock->unproven[count - 1].answered_at < dv_clock_guard_ms(clock) / 32)
        return;
    if (count == DV_CLOCK_UNPROVEN_MAX) {
        count /= 2;
        for (size_t i = 0; i < count; i++) clock->unproven[i] = clock->unproven[2 * i + 1];
    }
    assert(count < DV_CLOCK_UNPROVEN_MAX);
    clock->unproven[count].sent_at = answer->sent_at;
    clock->unproven[count].answered_at = now;
    clock->unproven[count].pinged_at = 0;
    clock->unproven[count].connection = clock->connection;
    clock->unproven_count = count + 1;
}

void dv_clock_answered(dv_clock *clock, const dv_answer *answer, int64_t now) {
    if (!clock->timeout_ms) return; /* of a session that is over */
    if (answer->wrote && answer->error == 0) {
        prove_by_write(clock, answer, now);
        if (answer->sent_at > clock->wrote_at) clock->wrote_at = answer->sent_at;
        if (!clock->pair_began_at) clock->pair_began_at = now;
        else if (answer->sent_at >= clock->pair_began_at + LAG_MS) clock->pair_began_at = 0;
    }
    remember(clock, answer, now);
}
