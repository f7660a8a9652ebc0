// The rules of a semaphore's admission: E1 to E7 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
// A World is the servers, the sessions and the contenders. A Step is one request sent, one request served, or one
// answer or event taken. apply() says whether the rules allow a step, and moves the world. It knows no line of the
// library. test/model/admission.cc searches all steps.
#ifndef DV_MODEL_RULES_ADMISSION_H
#define DV_MODEL_RULES_ADMISSION_H

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace admission {

enum { ACTORS = 3, SLOTS = 3, REQUESTS = 4, NO_SLOT = 0x80, NOTHING = 0xff };

enum Stage : uint8_t {
    IDLE,
    ENTERING,  // its place is under way
    QUEUED,    // its place stands there, and it is not known as first, or its early list is under way
    READING,   // at the head
    FULL,      // at the head, without room: it waits for the watches
    ADMITTING, // its transaction is under way
    IN_DOUBT,  // the answer about its place or its lease was lost
    HOLDS,
    RELEASING,
    LEAVING,
};

enum RequestKind : uint8_t {
    NONE,
    CREATE,
    LIST_QUEUE,
    WATCH,
    GET,
    LIST,
    ADMIT,
    BARRIER,
    FIND,
    DELETE_LEASE,
    DELETE_PLACE
};

struct Request {
    uint8_t kind, served;
    uint8_t a, b; // arguments, then the answer: see serve()
};

struct Actor {
    uint8_t kazoo, stage, acquires;   // that are left
    uint8_t place, lease;             // at the servers: the order of the place, and slot + 1 or NO_SLOT; 0: none
    uint8_t stray_place, stray_lease; // of an attempt that the contender has forgotten
    uint8_t first, early, gave_up;
    uint8_t limit, version, slot; // that it knows, and has chosen
    uint8_t kept;                 // the early list, for a variant that uses it
    uint8_t doubts;               // CREATE or ADMIT: whose fate it asks for
    uint8_t ghost;                // CREATE or ADMIT: a request of a lost connection that may still be carried out
    uint8_t ghost_version, ghost_slot;
    uint8_t watches_place, place_went; // at the servers; and the event that is under way
    uint8_t watched, look_again;       // whether its last read set watches; whether one fired since
    uint8_t watch_data, watch_list, data_changed, list_changed;
    Request requests[REQUESTS];
};

struct World {
    Actor actors[ACTORS];
    uint8_t limit, version;
    uint8_t may_fail, may_resize, may_give_up;
};

enum Kind : uint8_t {
    BEGIN,    // an acquire: E1
    SERVE,    // the servers carry out the oldest request of its session
    TAKE,     // it takes the oldest answer; the argument is the slot that it chooses, or NOTHING
    WOKEN,    // it takes the event of the place before its own
    DATA,     // of the limit
    CHILDREN, // of the leases
    GIVE_UP,
    RELEASE,
    LOSE,   // its connection, and gets a new one
    GHOST,  // what it asked on the lost connection is carried out
    END,    // its session ends
    RESIZE, // somebody sets the limit to the argument
    KAZOO,  // kazoo's process does the next thing
    KINDS
};

struct Step {
    uint8_t kind, who, argument;
};

// A broken variant; RIGHT is none.
enum Variant : uint8_t {
    RIGHT,
    EARLY_LIST_COUNTS,
    LIMIT_ONCE,
    UNVERSIONED,
    NO_BARRIER,
    LOST_IS_DONE,
    LIST_UNWATCHED,
    WOKEN_UNWATCHED,
    GONE_UNSEEN,
    DELETE_ONCE,
    PLACE_STAYS,
};

class Rules {
  public:
    Variant variant = RIGHT;

    // Returns NULL when the rules allow the step, and the world has moved; else why they do not.
    const char *apply(World &w, const Step &s) const {
        Actor &a = w.actors[s.who];
        if (a.kazoo && s.kind != KAZOO && s.kind != RESIZE) return "it is kazoo's";
        switch (s.kind) {
        case BEGIN:
            if (a.stage != IDLE || !a.acquires) return "it has no acquire to begin";
            begin(a);
            return nullptr;
        case SERVE: return serve_next(w, a);
        case TAKE: return take(a, s.argument);
        case WOKEN:
        case DATA:
        case CHILDREN: return take_event(a, s.kind);
        case GIVE_UP: return give_up(w, a);
        case RELEASE:
            if (a.stage != HOLDS) return "it holds nothing";
            a.stage = RELEASING, send(a, DELETE_LEASE);
            return nullptr;
        case LOSE: return lose(w, a);
        case GHOST: return haunt(w, a);
        case END: return end(w, a);
        case RESIZE:
            if (!w.may_resize || s.argument == w.limit || !s.argument || s.argument > SLOTS) return "no such change";
            w.may_resize--;
            w.limit = s.argument;
            set_pool(w);
            return nullptr;
        case KAZOO: return kazoo(w, a);
        default: return "no such step";
        }
    }

  private:
    // ---- requests ----

    static void send(Actor &a, RequestKind kind, uint8_t argument = 0) {
        for (Request &r : a.requests) {
            if (r.kind) continue;
            r = {kind, 0, argument, 0};
            return;
        }
    }
    static bool asks(const Actor &a, RequestKind kind) {
        for (const Request &r : a.requests)
            if (r.kind == kind) return true;
        return false;
    }
    static void drop_requests(Actor &a) {
        memset(a.requests, 0, sizeof a.requests);
    }
    static void drop_watches(Actor &a) {
        a.watch_data = a.watch_list = a.data_changed = a.list_changed = a.look_again = a.watched = 0;
    }
    static Request next_answer(Actor &a) {
        Request r = a.requests[0];
        memmove(a.requests, a.requests + 1, sizeof a.requests - sizeof r);
        a.requests[REQUESTS - 1] = {};
        return r;
    }

    // ---- the servers ----

    static void fire_list(World &w) {
        for (Actor &a : w.actors) {
            if (a.watch_list) a.list_changed = 1;
            a.watch_list = 0;
        }
    }
    static void set_pool(World &w) {
        w.version++;
        for (Actor &a : w.actors) {
            if (a.watch_data) a.data_changed = 1;
            a.watch_data = 0;
        }
    }
    static uint8_t next_place(const World &w) {
        uint8_t last = 0;
        auto note = [&](uint8_t at) { last = at > last ? at : last; };
        for (const Actor &a : w.actors) {
            note(a.place), note(a.stray_place), note(a.watches_place);
            for (const Request &r : a.requests)
                if (r.kind == LIST_QUEUE || r.kind == WATCH) note(r.a);
        }
        return static_cast<uint8_t>(last + 1);
    }
    static bool stands(const World &w, uint8_t place) {
        for (const Actor &a : w.actors)
            if (place && (a.place == place || a.stray_place == place)) return true;
        return false;
    }
    static void delete_place(World &w, uint8_t &place) {
        uint8_t gone = place;
        place = 0;
        for (Actor &a : w.actors) {
            if (!gone || a.watches_place != gone) continue;
            a.watches_place = 0;
            a.place_went = 1;
        }
    }
    static void delete_lease(World &w, uint8_t &lease) {
        if (lease) fire_list(w);
        lease = 0;
    }
    // Returns the last place before this one, or 0.
    static uint8_t before(const World &w, uint8_t place) {
        uint8_t last = 0;
        for (const Actor &a : w.actors)
            for (uint8_t other : {a.place, a.stray_place})
                if (other && other < place && other > last) last = other;
        return last;
    }
    // Returns a bit for each slot that is taken, and in the upper half how many leases have none.
    static uint8_t leases(const World &w) {
        int list = 0;
        for (const Actor &a : w.actors)
            for (uint8_t lease : {a.lease, a.stray_lease}) {
                if (lease == NO_SLOT) list += 0x10;
                else if (lease) list |= 1 << (lease - 1);
            }
        return static_cast<uint8_t>(list);
    }
    // E6: all of it is done, or nothing.
    bool transact(World &w, Actor &a, uint8_t &lease, uint8_t version, uint8_t slot) const {
        if ((version != w.version && variant != UNVERSIONED) || !a.place) return false;
        set_pool(w);
        if (variant != PLACE_STAYS) delete_place(w, a.place);
        lease = static_cast<uint8_t>(slot + 1);
        fire_list(w);
        return true;
    }
    void serve(World &w, Actor &a, Request &r) const {
        r.served = 1;
        switch (r.kind) {
        case CREATE: a.place = next_place(w); break;
        case LIST_QUEUE: r.a = before(w, a.place); break;
        case WATCH: // r.a is the place
            r.b = stands(w, r.a);
            if (r.b) a.watches_place = r.a;
            break;
        case GET: // r.a: whether it sets a watch
            if (r.a) a.watch_data = 1;
            r.a = w.limit, r.b = w.version;
            break;
        case LIST:
            if (r.a && variant != LIST_UNWATCHED) a.watch_list = 1;
            r.a = leases(w), r.b = w.version;
            break;
        case ADMIT: r.a = transact(w, a, a.lease, a.version, a.slot); break;
        case BARRIER: a.ghost = 0; break;
        case FIND: r.a = a.doubts == CREATE ? a.place != 0 : a.lease != 0; break;
        case DELETE_LEASE: delete_lease(w, a.lease); break;
        case DELETE_PLACE: delete_place(w, a.place); break;
        }
    }
    const char *serve_next(World &w, Actor &a) const {
        for (Request &r : a.requests) {
            if (r.served) continue;
            if (!r.kind) break;
            serve(w, a, r);
            return nullptr;
        }
        return "it has asked for nothing";
    }

    // ---- the contender ----

    // E1: the place, and behind it all that is to be read.
    static void begin(Actor &a) {
        a.acquires--;
        a.first = a.gave_up = a.limit = a.version = a.kept = 0;
        a.early = 1;
        a.stage = ENTERING;
        send(a, CREATE), send(a, LIST_QUEUE), send(a, GET), send(a, LIST);
    }
    // E6: the limit first, so that both show one version. E7: woken by a lease it reads the leases.
    void read(Actor &a, bool only_list) const {
        a.stage = READING;
        a.look_again = 0;
        a.watched = !only_list;
        if (!only_list && (variant != LIMIT_ONCE || !a.limit)) send(a, GET, !only_list);
        send(a, LIST, !only_list);
    }
    // E4, or E7 without room: what fired since the read was sent says that there is more to see.
    const char *decide(Actor &a, uint8_t list, uint8_t slot) const {
        int taken = list >> 4;
        for (int i = 0; i < SLOTS; i++) taken += list >> i & 1;
        if (taken < a.limit) {
            if (slot >= a.limit || (list >> slot & 1)) return "the slot is not free, or not below the limit";
            drop_watches(a);
            a.stage = ADMITTING;
            a.slot = slot;
            send(a, ADMIT);
            return nullptr;
        }
        if (slot != NOTHING) return "there is no room for it";
        a.stage = FULL;
        if ((!a.watched && variant != WOKEN_UNWATCHED) || a.look_again) read(a, false);
        return nullptr;
    }
    // E6: the list counts at the version of the limit that is known.
    const char *take_list(Actor &a, const Request &r, uint8_t slot) const {
        bool early = a.stage == QUEUED;
        a.early = 0;
        if (early) a.watched = 0;
        if (early && !a.first) { // E2
            a.kept = r.a;
            return slot == NOTHING ? nullptr : "it is not first";
        }
        if (variant == LIMIT_ONCE) a.version = r.b;
        if (r.b == a.version) return decide(a, r.a, slot);
        read(a, false);
        return slot == NOTHING ? nullptr : "the list is of another version";
    }
    const char *take_limit(Actor &a, const Request &r, uint8_t slot) const {
        a.limit = r.a;
        a.version = r.b;
        return slot == NOTHING ? nullptr : "it has no list yet";
    }
    // Q3 and Q4.
    const char *take_queue(Actor &a, uint8_t before, uint8_t slot) const {
        if (before) send(a, WATCH, before);
        else {
            a.first = 1;
            if (variant == EARLY_LIST_COUNTS && !a.early && a.limit) return decide(a, a.kept, slot);
            if (!a.early) read(a, false);
        }
        return slot == NOTHING ? nullptr : "it has no list yet";
    }
    static void rest(Actor &a) {
        Actor fresh = {};
        fresh.kazoo = a.kazoo, fresh.acquires = a.acquires;
        fresh.place = a.place, fresh.lease = a.lease; // where a delete was lost
        fresh.stray_place = a.stray_place, fresh.stray_lease = a.stray_lease;
        fresh.ghost = a.ghost, fresh.ghost_version = a.ghost_version, fresh.ghost_slot = a.ghost_slot;
        a = fresh;
    }
    void learn_admission(Actor &a, bool done) const {
        if (done && a.gave_up) a.stage = RELEASING, send(a, DELETE_LEASE);
        else if (done) a.stage = HOLDS;
        else if (a.gave_up) a.stage = LEAVING, send(a, DELETE_PLACE);
        else read(a, false);
    }
    void learn_place(Actor &a, bool stands) const {
        if (stands) a.stage = QUEUED, send(a, LIST_QUEUE);
        else a.acquires++, begin(a);
    }
    void learn_fate(Actor &a, bool found) const {
        bool is_place = a.doubts == CREATE;
        a.doubts = 0;
        if (is_place) learn_place(a, found);
        else learn_admission(a, found);
    }
    const char *take(Actor &a, uint8_t slot) const {
        if (!a.requests[0].kind || !a.requests[0].served) return "no answer is there";
        Request r = next_answer(a);
        if (r.kind == LIST_QUEUE) return take_queue(a, r.a, slot);
        if (r.kind == LIST) return take_list(a, r, slot);
        if (r.kind == GET) return take_limit(a, r, slot);
        if (slot != NOTHING) return "this answer leads to no admission";
        if (r.kind == CREATE) a.stage = QUEUED;
        if (r.kind == WATCH && !r.b && variant != GONE_UNSEEN) send(a, LIST_QUEUE);
        if (r.kind == ADMIT) learn_admission(a, r.a);
        if (r.kind == FIND) learn_fate(a, r.a);
        if (r.kind == DELETE_LEASE || r.kind == DELETE_PLACE) rest(a);
        return nullptr;
    }
    const char *take_event(Actor &a, uint8_t kind) const {
        uint8_t &event = kind == WOKEN ? a.place_went : kind == DATA ? a.data_changed : a.list_changed;
        if (!event) return "its watch has not fired";
        event = 0;
        if (kind == WOKEN) {
            if (a.stage == QUEUED && !asks(a, LIST_QUEUE) && !asks(a, WATCH)) send(a, LIST_QUEUE);
            return nullptr;
        }
        a.look_again = 1;
        if (a.stage == FULL) read(a, kind == CHILDREN && a.watch_data);
        return nullptr;
    }
    // Q6: a request that is under way goes on, and what it makes is deleted on its answer.
    const char *give_up(World &w, Actor &a) const {
        if (!w.may_give_up || a.gave_up || a.stage < QUEUED || a.stage > ADMITTING) return "it can not give up";
        w.may_give_up--;
        a.gave_up = 1;
        if (a.stage == ADMITTING) return nullptr;
        drop_requests(a);
        drop_watches(a);
        a.watches_place = a.place_went = 0;
        a.stage = LEAVING;
        send(a, DELETE_PLACE);
        return nullptr;
    }

    // ---- faults ----

    void ask_for_fate(Actor &a, RequestKind of) const {
        a.stage = IN_DOUBT;
        a.doubts = of;
        if (variant == LOST_IS_DONE && of == ADMIT) learn_admission(a, true);
        else if (variant == NO_BARRIER) send(a, FIND);
        else send(a, BARRIER), send(a, FIND); // R1
    }
    // What was not carried out may still be, until a barrier: R1. On the new connection each stage goes on.
    const char *lose(World &w, Actor &a) const {
        if (!w.may_fail || a.stage == IDLE || a.stage == HOLDS || a.ghost) return "it has nothing to lose";
        w.may_fail--;
        for (const Request &r : a.requests)
            if (!r.served && (r.kind == CREATE || r.kind == ADMIT)) a.ghost = r.kind;
        if (a.ghost == ADMIT) a.ghost_version = a.version, a.ghost_slot = a.slot;
        drop_requests(a);
        a.early = 0;
        switch (a.stage) {
        case ENTERING: ask_for_fate(a, CREATE); break;
        case ADMITTING: ask_for_fate(a, ADMIT); break;
        case IN_DOUBT: ask_for_fate(a, a.doubts == CREATE ? CREATE : ADMIT); break;
        case QUEUED:
            if (a.first) read(a, false);
            else send(a, LIST_QUEUE);
            break;
        case READING:
        case FULL: read(a, false); break;
        case RELEASING:
            if (variant == DELETE_ONCE) rest(a);
            else send(a, DELETE_LEASE);
            break;
        case LEAVING: send(a, DELETE_PLACE); break;
        default: break;
        }
        return nullptr;
    }
    // A node of an attempt that is still asked for is its own; any other is a stray. A name is used once (R2).
    const char *haunt(World &w, Actor &a) const {
        if (!a.ghost) return "nothing of a lost connection is under way";
        bool is_own = a.stage == IN_DOUBT && a.doubts == a.ghost;
        if (a.ghost == CREATE) (is_own ? a.place : a.stray_place) = next_place(w);
        else transact(w, a, is_own ? a.lease : a.stray_lease, a.ghost_version, a.ghost_slot);
        a.ghost = 0;
        return nullptr;
    }
    // Its belief has ended before (C5). K6: an acquire that waits begins on the next session.
    const char *end(World &w, Actor &a) const {
        if (!w.may_fail || a.stage == IDLE) return "it has nothing to lose";
        w.may_fail--;
        bool waits = a.stage < HOLDS && !a.gave_up;
        a.acquires = static_cast<uint8_t>(a.acquires + waits);
        a.ghost = 0;
        rest(a);
        delete_lease(w, a.lease), delete_lease(w, a.stray_lease);
        delete_place(w, a.place), delete_place(w, a.stray_place);
        return nullptr;
    }

    // ---- kazoo's process: it knows its limit, and makes its lease before it leaves the queue ----

    const char *kazoo(World &w, Actor &a) const {
        if (!a.kazoo) return "it is ours";
        int taken = leases(w) >> 4;
        for (int i = 0; i < SLOTS; i++) taken += leases(w) >> i & 1;
        switch (a.stage) {
        case IDLE:
            if (!a.acquires) return "it has no acquire to begin";
            a.acquires--;
            a.place = next_place(w);
            a.stage = QUEUED;
            return nullptr;
        case QUEUED: // Its watches are left out: it looks when there is something to see.
            if (before(w, a.place) || taken >= w.limit) return "it waits";
            a.stage = ADMITTING;
            return nullptr;
        case ADMITTING:
            a.lease = NO_SLOT;
            fire_list(w);
            a.stage = LEAVING;
            return nullptr;
        case LEAVING:
            delete_place(w, a.place);
            a.stage = HOLDS;
            return nullptr;
        case HOLDS:
            delete_lease(w, a.lease);
            a.stage = IDLE;
            return nullptr;
        default: return "it does nothing";
        }
    }
};

} // namespace admission

#endif
