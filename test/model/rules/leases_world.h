// The world of a semaphore's pool, what is so in it, and its steps, for leases.h. SPDX-License-Identifier: Apache-2.0
#ifndef DV_MODEL_RULES_LEASES_WORLD_H
#define DV_MODEL_RULES_LEASES_WORLD_H

#include "queue.h"

// A replay sets these before it includes the file.
#ifndef LEASES_LEASES
#define LEASES_LEASES 4
#define LEASES_WRITES 6
#define LEASES_SETS 1
#endif

namespace leases {

using queue::Answer;
using queue::CLIENTS;
using queue::LATE;
using queue::NOBODY;
using queue::PLACES;
using queue::stood_at;

enum { LEASES = LEASES_LEASES, WRITES = LEASES_WRITES, SETS = LEASES_SETS, UNSET = 0, NO_POOL = 0xffff };

enum Kind : uint8_t {
    ASK_TRY, // a request is sent: for a lease by the shortcut
    ASK_ADMIT,
    ASK_GET,
    ASK_LIST,
    ASK_LOOK,
    ASK_SET,
    ASK_DELETE,
    COMMIT_MAKE, // the leader commits
    COMMIT_SET,
    COMMIT_FOREIGN_SET,
    COMMIT_END,
    COMMIT_CREATE,
    COMMIT_FOREIGN_CREATE,
    COMMIT_DELETE,
    COMMIT_FOREIGN_DELETE,
    COMMIT_EXPIRED_DELETE,
    TAKE_TRY, // an answer arrives
    TAKE_ADMIT,
    TAKE_GET,
    TAKE_LIST,
    TAKE_LOOK,
    TAKE_SET,
    TAKE_DELETE,
    HOLD, // a belief begins, or ends
    LEAVE,
    KINDS
};
inline const char *const names[KINDS] = {
    "a client asks for a lease by the shortcut",
    "a client asks for its admission",
    "a client asks for the limit",
    "a client asks for the leases",
    "a client looks for a lease",
    "a client writes the limit",
    "a client asks for its lease's delete",
    "the leader makes the pool",
    "the leader sets the pool",
    "SOMEBODY ELSE SETS THE POOL",
    "the leader deletes the pool",
    "the leader makes a lease",
    "kazoo makes a lease",
    "the leader deletes a lease",
    "SOMEBODY ELSE DELETES A LEASE",
    "the leader deletes a lease of an ended session",
    "the shortcut's answer arrives",
    "the admission's answer arrives",
    "the limit arrives",
    "the leases arrive",
    "a look's answer arrives",
    "the limit's answer arrives",
    "the delete's answer arrives",
    "a client holds",
    "a client no longer holds",
};

// A write of the limit that may not be answered yet.
struct Set {
    uint8_t who, state; // FREE, or what is known of it
    uint16_t write, limit;
};
enum { FREE, PENDING, APPLIED, TWICE = 4 }; // TWICE: more than once, so that one may be refused

// Leases and writes of the pool are known by their index. Versions are those of the queue's world: one for each
// transaction.
struct World {
    queue::World q;
    uint32_t numbers[LEASES];                  // its slots as bits; 0: kazoo's, which takes one without a number
    uint16_t created[LEASES], deleted[LEASES]; // the version from which on it is so; 0: not yet
    uint16_t place[LEASES];                    // 1 + the place that its admission deletes; 0: by the shortcut
    uint16_t by[LEASES];                       // 1 + the write at which it is to be admitted
    uint16_t writes, written[WRITES], number[WRITES], limit[WRITES]; // number: the znode's version
    uint16_t known[CLIENTS], list_write[CLIENTS]; // 1 + the write that its last get, and its last list, was of
    uint16_t used;                                // leases behind these are unused
    uint16_t consumes;                            // 1 + the place that the transaction under way has yet to delete
    Set sets[SETS];
    Bits<LEASES> list[CLIENTS];       // its last one
    Bits<PLACES> list_first[CLIENTS]; // its places that were first when that came
    uint8_t count[LEASES], stage[LEASES], owner[LEASES];
    uint8_t pending[LEASES];     // its create may still be committed; LATE: behind a barrier
    uint8_t going[LEASES];       // its delete was asked for
    uint8_t settled[LEASES];     // a barrier has passed since the create's answer was lost
    uint8_t foreign[LEASES];     // somebody else has deleted it
    uint8_t queue_empty[LEASES]; // the shortcut: behind it nobody stood in the queue,
    uint8_t fits[LEASES];        // and there was room
    uint8_t counts[LEASES];      // it was held
    uint8_t owes;                // the transaction under way has yet to make a lease
};

struct Step {
    Kind kind;
    unsigned who, lease, place, write; // TAKE_GET, TAKE_LIST: the write that it is of
    Answer answer;
    unsigned number, limit, count;
    uint32_t numbers;
    bool watches, same; // as the last commit: one transaction
    Bits<LEASES> list;
};

inline std::string variant; // the name of the broken rule; empty: none
inline bool is(const char *name) {
    return variant == name;
}

// ---- what is so ----

inline bool stands(const World &w, unsigned l) {
    return w.created[l] && !w.deleted[l];
}

// The last version at which a write is in force.
inline unsigned last_of(const World &w, unsigned write) {
    return write + 1 < w.writes ? w.written[write + 1] - 1u : w.q.version;
}

// Made by the shortcut, and not believed in yet.
inline bool is_tried(const World &w, unsigned l) {
    return w.owner[l] < NOBODY && !w.place[l] && !w.counts[l];
}

// A list for something else may show that somebody has deleted the place. At the head it is not looked for.
inline bool is_first(const World &w, unsigned p) {
    bool there = w.q.stage[p] == queue::THERE || (w.q.stage[p] == queue::GONE && w.q.foreign[p]);
    return there && w.q.listed[p] && !w.q.before[p];
}

// Returns why the slots are not free beside these leases, or NULL.
inline const char *room(const World &w, const Bits<LEASES> &list, unsigned l, unsigned limit) {
    unsigned taken = w.count[l];
    for (unsigned other = 0; other < w.used; other++) {
        if (other == l || !list.has(other)) continue;
        taken += w.count[other];
        if (w.numbers[other] & w.numbers[l]) return "E4: one of its slots is taken";
        if (!w.numbers[other] && w.count[l] > 1) return "E13: several slots beside kazoo's";
    }
    if (taken > limit) return "E4: there is no room for it";
    return w.numbers[l] >> limit ? "E4: a slot is not below the limit" : nullptr;
}

// Those that are held, or will be for certain.
inline Bits<LEASES> certain(const World &w) {
    Bits<LEASES> list = {};
    for (unsigned l = 0; l < w.used; l++)
        if (stands(w, l) && !is_tried(w, l)) list.add(l);
    return list;
}

// Returns what must never be so, or NULL. What somebody else has deleted is excused.
inline const char *wrong(const World &w) {
    for (unsigned l = 0; l < w.used; l++) {
        if (w.stage[l] != queue::HELD || w.foreign[l]) continue;
        if (!stands(w, l)) return "S1: a lease is held that does not stand";
        for (unsigned k = 0; k < l; k++)
            if (w.stage[k] == queue::HELD && !w.foreign[k] && w.numbers[k] & w.numbers[l])
                return "S2: two clients hold one slot";
    }
    return nullptr;
}

} // namespace leases

#endif
