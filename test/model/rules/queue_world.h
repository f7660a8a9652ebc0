// The world of a lock's queue, and the steps in it, for queue.h. SPDX-License-Identifier: Apache-2.0
#ifndef DV_MODEL_RULES_QUEUE_WORLD_H
#define DV_MODEL_RULES_QUEUE_WORLD_H

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "bits.h"

// A replay sets these before it includes the file.
#ifndef QUEUE_PLACES
#define QUEUE_PLACES 5
#define QUEUE_CLIENTS 3
#define QUEUE_ASKED 2
#endif

namespace queue {

enum { PLACES = QUEUE_PLACES, CLIENTS = QUEUE_CLIENTS, ASKED = QUEUE_ASKED, NOBODY = CLIENTS };
constexpr uint32_t NUMBER_MAX = INT32_MAX, NUMBER_LIMIT = NUMBER_MAX - (1u << 20);
enum Mode : uint8_t { PLAIN, READER, WRITER };
enum Answer : uint8_t { DONE, NO_NODE, LOST, REFUSED };
enum Stage : uint8_t {
    UNUSED,
    MAKING,  // its create is under way
    UNSURE,  // the create's answer was lost
    THERE,   // its number is known
    HELD,    // its owner believes that it holds
    LEAVING, // its owner deletes it, or knows that somebody else has
    GONE,    // its owner knows that it is not there
};
enum { LATE = 2 };
enum Kind : uint8_t {
    BEGIN_SESSION,
    ASK_CREATE, // a request is sent
    ASK_LIST,
    ASK_WATCH,
    ASK_DELETE,
    ASK_BARRIER,
    COMMIT_CREATE, // the leader commits
    COMMIT_DELETE,
    COMMIT_FOREIGN_DELETE,
    COMMIT_EXPIRED_DELETE,
    COMMIT_END, // of the directory
    END_SESSION,
    LOSE_SESSION,
    TAKE_CREATE, // an answer arrives
    TAKE_LIST,
    TAKE_WATCH,
    TAKE_DELETE,
    TAKE_BARRIER,
    WOKEN, // a watch fires
    HOLD,  // a belief begins, or ends
    LEAVE,
    KINDS
};
inline const char *const names[KINDS] = {
    "a session begins",
    "a client asks for a place",
    "a client asks for a list",
    "a client asks for a watch",
    "a client asks for its delete",
    "a client asks for a barrier",
    "the leader commits a create",
    "the leader commits a delete",
    "SOMEBODY ELSE DELETES A PLACE",
    "the leader deletes a place of an ended session",
    "the leader deletes the directory",
    "A SESSION ENDS",
    "a client hears that its session has ended",
    "the create's answer arrives",
    "a list arrives",
    "the watch's answer arrives",
    "the delete's answer arrives",
    "the barrier's answer arrives",
    "a watch fires",
    "a client holds",
    "a client no longer holds",
};

using Set = Bits<PLACES>;

// Places are known by their index, clients by theirs.
struct World {
    uint32_t number[PLACES], last_number;      // N6: its order is that of unsigned numbers
    uint16_t created[PLACES], deleted[PLACES]; // the version of the queue from which on it is so; 0: not yet
    uint16_t before[PLACES];                   // whom the last list shows right before it: 1 + index; 0: nobody
    uint16_t watched[PLACES];                  // whose end it is woken by: 1 + index; 0: nobody's
    uint16_t version, seen[CLIENTS];           // how many commits there were, and how many of them a client has seen
    uint16_t used;                             // places behind these are unused
    uint16_t asked_place[CLIENTS][ASKED];
    uint8_t asked[CLIENTS][ASKED]; // requests under way, oldest first: 1 + Kind; 0: none
    uint8_t stage[PLACES], owner[PLACES], mode[PLACES];
    uint8_t pending[PLACES]; // its create may still be committed; LATE: behind a barrier
    uint8_t going[PLACES];   // its delete was asked for
    uint8_t settled[PLACES]; // a barrier has passed since the create's answer was lost: 1 + older lists under way
    uint8_t listed[PLACES];  // a list had it
    uint8_t foreign[PLACES]; // somebody else has deleted it
    uint8_t alive[CLIENTS], numbered;
};

struct Step {
    Kind kind;
    unsigned who, place;
    Answer answer;
    Mode mode;
    uint32_t number;
    Set list;
};

inline std::string variant; // the name of the broken rule; empty: none
inline bool is(const char *name) {
    return !variant.empty() && variant == name;
}

} // namespace queue

#endif
