// The states of the search of leases.cc, and its pools. SPDX-License-Identifier: Apache-2.0
#ifndef DV_MODEL_LEASES_STATE_H
#define DV_MODEL_LEASES_STATE_H

#include "rules/leases.h"
#include "search.h"

using namespace leases;

enum Road : uint8_t { BY_QUEUE, BY_SHORTCUT, AS_KAZOO, NOT_AT_ALL };
enum Kazoo : uint8_t { WAITS, STANDS, ADMITS, LEAVES_QUEUE, RELEASES };

struct Pool {
    const char *name;
    Road roads[CLIENTS];
    uint8_t limit, resized;      // to
    uint8_t faults, long_faults; // with --long
};
const Pool POOLS[] = {
    {"queue", {BY_QUEUE, BY_QUEUE, NOT_AT_ALL}, 1, 0, 1, 2},
    {"both", {BY_QUEUE, BY_SHORTCUT, NOT_AT_ALL}, 1, 0, 1, 2},
    {"shortcuts", {BY_SHORTCUT, BY_SHORTCUT, NOT_AT_ALL}, 1, 0, 1, 1},
    {"resized", {BY_QUEUE, BY_QUEUE, NOT_AT_ALL}, 2, 1, 0, 1},
    {"resized both", {BY_QUEUE, BY_SHORTCUT, NOT_AT_ALL}, 2, 1, 0, 1},
    {"kazoo", {BY_QUEUE, AS_KAZOO, NOT_AT_ALL}, 1, 0, 1, 2},
    {"kazoo both", {BY_QUEUE, BY_SHORTCUT, AS_KAZOO}, 1, 0, 0, 0},
    {"three", {BY_QUEUE, BY_QUEUE, BY_SHORTCUT}, 1, 0, 0, 0},
};

struct State {
    World w;
    uint8_t faults, may_resize, road[CLIENTS], done[CLIENTS]; // done: it has held
    uint8_t kazoo, kazoo_place, kazoo_lease, may_move;
    uint8_t moved[CLIENTS]; // the leader takes another connection for the client's
    uint8_t looks[CLIENTS]; // R3: how far it has looked on this connection
    uint8_t unused[1];
};
enum { NEED_NOT_LOOK, WANTS_BARRIER, WANTS_LISTS, LOOKS, HAS_LOOKED };

struct Way {
    uint8_t of_queue, kind, who;
};
enum { COUNTS = KINDS, BREAKS, ENDS }; // kinds behind those of the rules: kazoo counts; the connection; the session

using Base = model::Search<State, Way>;
using Next = Base::Next;

// ---- equal futures are to have equal bytes ----

struct Versions {
    uint16_t *all[4 * (PLACES + LEASES) + WRITES + CLIENTS + 1];
    size_t count = 0;
    void add(uint16_t &version) {
        all[count++] = &version;
    }
};

// R1 took it for never made, and it may yet come, or has come. Where it cannot come a client looks too, in vain.
inline bool is_doubted_lease(const World &w, unsigned l) {
    return w.stage[l] == queue::GONE && !w.going[l] && (w.pending[l] == LATE || stands(w, l));
}
inline bool doubts(const World &w, unsigned who) {
    bool any = false;
    for (unsigned p = 0; p < PLACES; p++) any = any || (w.q.owner[p] == who && queue::is_doubted(w.q, p));
    for (unsigned l = 0; l < LEASES; l++) any = any || (w.owner[l] == who && is_doubted_lease(w, l));
    return any;
}

inline bool rests(const State &s, unsigned who) {
    for (unsigned p = 0; p < PLACES; p++)
        if (s.w.q.owner[p] == who && s.w.q.stage[p] != queue::UNUSED && s.w.q.stage[p] != queue::GONE) return false;
    for (unsigned l = 0; l < LEASES; l++)
        if (s.w.owner[l] == who && s.w.stage[l] != queue::UNUSED && s.w.stage[l] != queue::GONE) return false;
    return !s.w.q.asked[who][0] && !s.looks[who] && !doubts(s.w, who);
}

inline bool is_found_late(const State &s, unsigned who, unsigned created) {
    return s.looks[who] == HAS_LOOKED && created && created <= s.w.q.seen[who];
}

inline bool finds_late(const State &s, unsigned who) {
    const World &w = s.w;
    bool any = false;
    for (unsigned p = 0; p < PLACES; p++)
        any = any || (w.q.owner[p] == who && queue::is_doubted(w.q, p) && is_found_late(s, who, w.q.created[p]));
    for (unsigned l = 0; l < LEASES; l++)
        any = any || (w.owner[l] == who && is_doubted_lease(w, l) && is_found_late(s, who, w.created[l]));
    return any;
}

// What can no longer come late, and a look that has found nothing.
inline void forget_late(State &s) {
    World &w = s.w;
    for (unsigned who = 0; who < CLIENTS; who++) {
        bool may_come = s.may_move || s.moved[who];
        for (unsigned p = 0; p < PLACES; p++)
            if (w.q.owner[p] == who && w.q.pending[p] == LATE && !may_come) w.q.pending[p] = 0;
        for (unsigned l = 0; l < LEASES; l++)
            if (w.owner[l] == who && w.pending[l] == LATE && !may_come) w.pending[l] = 0;
        if (s.looks[who] == HAS_LOOKED && !finds_late(s, who)) s.looks[who] = NEED_NOT_LOOK;
    }
}

inline void forget(State &s) {
    World &w = s.w;
    forget_late(s);
    Versions versions;
    static const Bits<PLACES> none = {};
    for (unsigned who = 0; who < CLIENTS; who++) {
        if (rests(s, who) && s.done[who]) {
            w.q.seen[who] = w.q.version;
            w.known[who] = 0;
            memset(&w.list_first[who], 0, sizeof w.list_first[who]);
        }
        if (!memcmp(&w.list_first[who], &none, sizeof none) && !is("early_list"))
            memset(&w.list[who], 0, sizeof w.list[who]), w.list_write[who] = 0;
        versions.add(w.q.seen[who]);
    }
    for (unsigned p = 0; p < PLACES; p++) {
        if (w.q.stage[p] != queue::THERE) w.q.listed[p] = 0, w.q.before[p] = 0, w.q.watched[p] = 0;
        if (!queue::stands(w.q, p)) w.q.going[p] = 0;
        versions.add(w.q.created[p]), versions.add(w.q.deleted[p]);
    }
    for (unsigned l = 0; l < LEASES; l++) {
        if (!stands(w, l)) w.going[l] = 0;
        if (w.stage[l] == queue::GONE) w.queue_empty[l] = w.fits[l] = w.settled[l] = 0;
        versions.add(w.created[l]), versions.add(w.deleted[l]);
    }
    for (unsigned i = 0; i < w.writes; i++) versions.add(w.written[i]);
    versions.add(w.q.version);
    model::rank(versions.all, versions.count);
}

#endif
