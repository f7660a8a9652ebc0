// The rules of the handover of an item: T1 to T6 and Q9 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
// apply() makes one step, or says why the rules do not allow it. test/model/handover.cc searches all steps.
#ifndef DV_MODEL_RULES_HANDOVER_H
#define DV_MODEL_RULES_HANDOVER_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace handover {

enum { MEMBERS = 3, PLANS = 5 };

enum Stage : uint8_t { OUT, PREPARES, PREPARED, ENTERS, PARKED, LISTS, WAITS, OWNS, REVOKED, RELEASES, LEAVES };
enum Request : uint8_t { NOTHING, ENTER, WRITE, LEAVE }; // LEAVE: a write of the note and a delete of the place
enum Answer : uint8_t { UNDER_WAY, DONE, REFUSED, LOST };

// All fields are bytes, so that two equal worlds have equal bytes.
struct Note {
    uint8_t known, gone, mzxid;
    uint8_t leaving, ready, given, given_to; // given: its number and 1; given_to: r of T5
};

struct Member {
    uint8_t lives, plan, stage;
    uint8_t from;           // the owner of the plan before, and 1 (T2)
    uint8_t before;         // the number of the place that it waits for, and 1
    uint8_t parks, overdue; // it enters without a list; T4
    uint8_t place, number, czxid, deleted;
    uint8_t request, answer;
    Note note, says, read[MEMBERS]; // as it stands; as the request has it; as it was read from others
};

// How many plans, sessions that end, lost requests, deleted places, deleted directories, kazoo's, and timeouts.
struct Budget {
    uint8_t may_plan, may_end, may_lose, may_delete, may_tidy, may_come, may_time_out;
};

struct World : Budget {
    Member members[MEMBERS];
    uint8_t newest, owners[PLANS];
    uint8_t directory, next, zxid, kazoo, kazoo_number;
    uint8_t was_deleted; // somebody deleted a place
};

enum Kind : uint8_t {
    PLAN,
    FOLLOW,
    READ,
    PREPARE,
    GO_IN,
    GO_IN_LISTING,
    SERVE,
    LOSE,
    TAKE_ANSWER,
    TAKE_BY_NUMBER,
    LIST,
    GO_OUT,
    SAY,
    REVOKE,
    TIME_OUT,
    USER_RELEASES,
    MISS_PLACE,
    END,
    DELETE,
    TIDY,
    COME,
    GO,
    KINDS
};

struct Step {
    uint8_t kind, who, argument;
};

inline std::string variant; // the name of the broken rule; empty: none
inline const char *fault;   // of the step that was made last: a claim that it broke

inline bool is(const char *name) {
    return !variant.empty() && variant == name;
}

// ---- the queue ----

// Returns the highest number below this one that stands in the queue, and 1; or 0.
inline uint8_t before_of(const World &w, uint8_t number) {
    unsigned last = 0;
    for (const Member &m : w.members)
        if (m.place && m.number < number) last = std::max(last, m.number + 1u);
    if (w.kazoo && w.kazoo_number < number) last = std::max(last, w.kazoo_number + 1u);
    return static_cast<uint8_t>(last);
}

inline bool stands(const World &w, uint8_t number) {
    for (const Member &m : w.members)
        if (m.place && m.number == number) return true;
    return w.kazoo && w.kazoo_number == number;
}

inline uint8_t next_number(World &w) {
    if (!w.directory) w.next = 0;
    w.directory = 1;
    return w.next++;
}

// ---- what a member knows ----

inline uint8_t owner_of(const World &w, const Member &m) {
    return w.owners[m.plan];
}

inline bool is_owner(const World &w, uint8_t who) {
    return owner_of(w, w.members[who]) == who;
}

inline bool believes(const Member &m) {
    return m.stage == OWNS || m.stage == REVOKED;
}

inline bool watches(const World &w, uint8_t who, uint8_t other) {
    const Member &m = w.members[who];
    if (who == other || !m.lives) return false;
    if (believes(m)) return is("any_ready") || owner_of(w, m) == other;
    return (m.stage == PREPARES || m.stage == PREPARED || m.stage == ENTERS || m.stage == PARKED) &&
           m.from == other + 1;
}

// Returns the note as a read finds it.
inline Note note_of(const Member &m) {
    Note n = m.note;
    if (!m.lives) n = Note{};
    n.known = 1;
    n.gone = !m.lives;
    return n;
}

inline bool same(const Note &a, const Note &b) {
    return !memcmp(&a, &b, sizeof a);
}

inline bool is_ready(const Note &n) {
    return n.known && !n.gone && n.ready;
}

// Returns what the note has to say now.
inline Note wanted(const World &w, uint8_t who) {
    const Member &m = w.members[who];
    Note n = m.note;
    bool waits = m.stage == PARKED || m.stage == LISTS || m.stage == WAITS;
    n.leaving = believes(m) && !is_owner(w, who);
    n.ready = (waits && is_owner(w, who)) || (is("ready_stays") && n.ready);
    if (is("ready_early") && m.stage >= PREPARES && m.stage <= WAITS && is_owner(w, who)) n.ready = 1;
    return n;
}

// Begins to want an item, or to want it no longer.
inline void want(World &w, uint8_t who) {
    Member &m = w.members[who];
    if (m.stage == OUT && is_owner(w, who)) m.stage = PREPARES;
    if ((m.stage == PREPARES || m.stage == PREPARED) && !is_owner(w, who)) m.stage = OUT;
}

inline void send(Member &m, Request request, const Note &says) {
    m.request = request;
    m.answer = UNDER_WAY;
    m.says = says;
}

// ---- a member's steps: each returns why the rules do not allow it ----

inline const char *follow(World &w, uint8_t who, uint8_t plan) {
    Member &m = w.members[who];
    if (!m.lives || plan <= m.plan || plan > w.newest) return "no such plan";
    uint8_t was = owner_of(w, m);
    m.plan = plan;
    if (owner_of(w, m) == was) return nullptr;
    if (is_owner(w, who)) m.from = static_cast<uint8_t>(was + 1);
    m.overdue = 0;
    want(w, who);
    return nullptr;
}

inline const char *read(World &w, uint8_t who, uint8_t other) {
    if (!watches(w, who, other)) return "not watched";
    Note n = note_of(w.members[other]), &known = w.members[who].read[other];
    if (same(n, known)) return "nothing new";
    known = n;
    return nullptr;
}

inline const char *go_in(World &w, uint8_t who, bool lists) {
    Member &m = w.members[who];
    if (!m.lives || m.stage != PREPARED || m.request || !is_owner(w, who)) return "it need not enter";
    const Note none = {}, &from = m.from ? m.read[m.from - 1] : none;
    if (m.from && !from.known) return "it reads the owner's note first";
    bool leaves = from.known && !from.gone && from.leaving;
    if (leaves == lists) return "the note says how";
    m.parks = !lists;
    m.stage = ENTERS;
    send(m, ENTER, m.note);
    return nullptr;
}

inline const char *take_by_number(World &w, uint8_t who) {
    Member &m = w.members[who];
    if (m.stage != PARKED || !is_owner(w, who) || m.request == LEAVE) return "it is not parked";
    const Note &n = m.read[m.from - 1];
    bool fits = n.known && !n.gone && n.given && n.given == m.number;
    if (is("any_number")) fits = n.known && !n.gone && n.given && n.given <= m.number;
    bool was_there = m.czxid <= n.given_to || is("number_alone");
    bool is_first = m.number == 0 || (is("zero_or_one") && m.number == 1);
    if (!is_first && !(fits && was_there)) return "the number does not fit";
    m.stage = OWNS;
    return nullptr;
}

// The queue is listed after an entry, when the place before has gone, and where T6 has it.
inline const char *list(World &w, uint8_t who) {
    Member &m = w.members[who];
    if (!m.lives || !is_owner(w, who)) return "it does not want the item";
    bool may = m.stage == LISTS || (m.stage == WAITS && !stands(w, static_cast<uint8_t>(m.before - 1)));
    if (m.stage == PARKED) {
        const Note &n = m.read[m.from - 1];
        bool fits = n.given && n.given == m.number && m.czxid <= n.given_to;
        may = n.known && ((n.gone && !is("no_list")) || (!n.gone && !n.leaving && !fits && !is("still_parked")));
    }
    if (!may) return "nothing tells it to list";
    if (!m.place) return "its place has gone"; // see MISS_PLACE
    m.before = before_of(w, m.number);
    m.stage = m.before ? WAITS : OWNS;
    return nullptr;
}

inline const char *go_out(World &w, uint8_t who) {
    Member &m = w.members[who];
    bool waits = m.stage == PARKED || m.stage == LISTS || m.stage == WAITS;
    if (!m.lives || !waits || is_owner(w, who) || m.request) return "it has no place to give up";
    Note n = m.note;
    if (!is("ready_stays")) n.ready = 0;
    m.stage = LEAVES;
    send(m, LEAVE, n);
    return nullptr;
}

inline const char *say(World &w, uint8_t who) {
    Member &m = w.members[who];
    if (!m.lives || m.request || same(wanted(w, who), m.note)) return "nothing new to say";
    send(m, WRITE, wanted(w, who));
    return nullptr;
}

inline const char *revoke(World &w, uint8_t who) {
    Member &m = w.members[who];
    if (!m.lives || m.stage != OWNS) return "it does not own the item";
    bool tells = false;
    for (uint8_t i = 0; i < MEMBERS; i++) tells = tells || (is("any_ready") && i != who && is_ready(m.read[i]));
    if (is_owner(w, who)) {
        if (!tells) return "its plan gives the item to it";
        fault = "a member revokes what its plan gives to it";
    }
    const Note &n = m.read[owner_of(w, m)];
    if (!tells && !is_ready(n) && !n.gone) return "the next owner is not ready";
    m.stage = REVOKED;
    return nullptr;
}

// T4: where the next owner's note has gone, the item may wait until a newer plan names another owner.
inline const char *release(World &w, uint8_t who, bool waits) {
    Member &m = w.members[who];
    if (!m.lives || m.stage != REVOKED || m.request) return "nothing is revoked";
    uint8_t to = owner_of(w, m);
    const Note &n = m.read[to];
    if (waits && (to == who || !n.gone || m.overdue)) return "there is nothing to wait for";
    if (waits) {
        m.stage = OWNS;
        return nullptr;
    }
    if (to == who || (n.known && !n.gone && !n.ready && !m.overdue && !is("no_second_look"))) {
        m.stage = OWNS;
        return nullptr;
    }
    if (!n.known && !m.overdue && !is("no_second_look")) return "it reads the next owner's note first";
    const Member &next = w.members[to];
    bool knows_all = m.plan == w.newest && next.lives && !w.was_deleted && !m.overdue && same(n, note_of(next));
    if (knows_all && !next.place) fault = "an owner gives the item to one that has no place";
    Note says = m.note;
    says.leaving = says.ready = 0;
    if (is_ready(n)) {
        says.given = static_cast<uint8_t>(m.number + 1);
        says.given_to = n.mzxid;
    }
    m.stage = RELEASES;
    send(m, is("given_first") && is_ready(n) ? WRITE : LEAVE, says);
    if (is("given_first") && is_ready(n)) m.stage = REVOKED;
    return nullptr;
}

inline const char *take_answer(World &w, uint8_t who) {
    Member &m = w.members[who];
    if (!m.request || m.answer == UNDER_WAY) return "no answer";
    uint8_t request = m.request, answer = m.answer;
    m.request = m.answer = 0;
    m.says = Note{};
    if (request == ENTER) {
        m.stage = answer == LOST ? PREPARED : m.parks ? PARKED : LISTS;
        want(w, who);
    } else if (request == LEAVE && answer != DONE && m.place) {
        Note n = m.note; // what is not given goes by itself (Q6)
        n.leaving = n.ready = 0;
        send(m, LEAVE, n);
    } else if (request == LEAVE) {
        m.stage = OUT;
        m.from = w.owners[m.plan] == who ? m.from : 0;
        want(w, who);
    }
    return nullptr;
}

inline const char *miss_place(World &w, uint8_t who) {
    Member &m = w.members[who];
    bool has = m.stage == PARKED || m.stage == LISTS || m.stage == WAITS || believes(m);
    if (!m.lives || !has || m.place || m.request) return "it has its place";
    if (m.stage != PARKED) m.from = 0;
    m.stage = OUT;
    want(w, who);
    return nullptr;
}

// ---- the servers ----

inline const char *serve(World &w, uint8_t who) {
    Member &m = w.members[who];
    if (!m.request || m.answer != UNDER_WAY) return "no request";
    m.answer = DONE;
    w.zxid++;
    if (m.request == ENTER) {
        m.place = 1;
        m.deleted = 0;
        m.number = next_number(w);
        m.czxid = w.zxid;
        return nullptr;
    }
    if (m.request == LEAVE && !m.place) {
        m.answer = REFUSED;
        return nullptr;
    }
    m.note = m.says;
    m.note.mzxid = w.zxid;
    if (m.request == LEAVE) m.place = 0;
    return nullptr;
}

inline const char *end(World &w, uint8_t who) {
    Member &m = w.members[who], gone = {};
    unsigned live = 0;
    for (const Member &other : w.members) live += other.lives;
    if (!m.lives || !w.may_end || live == 1) return "no session that may end";
    w.may_end--;
    gone.plan = w.newest;
    m = gone;
    return nullptr;
}

inline const char *plan(World &w, uint8_t who) {
    bool is_needed = !w.members[w.owners[w.newest]].lives;
    if (!w.members[who].lives || w.owners[w.newest] == who) return "the plan has that";
    if (!w.may_plan && !is_needed) return "no more plans";
    if (!is_needed) w.may_plan--;
    if (w.newest + 1 == PLANS) {
        fault = "the model has too few plans";
        return nullptr;
    }
    w.owners[++w.newest] = who;
    return nullptr;
}

inline const char *apply_other(World &w, const Step &s) {
    bool empty = !w.kazoo;
    for (const Member &m : w.members) empty = empty && !m.place;
    if (s.kind == TIDY) {
        if (!empty || !w.directory || !w.may_tidy) return "no empty directory";
        w.may_tidy--;
        w.directory = w.next = 0;
    } else if (s.kind == COME) {
        if (w.kazoo || !w.may_come) return "it may not come";
        w.may_come--;
        w.kazoo = 1;
        w.kazoo_number = next_number(w);
    } else {
        if (!w.kazoo) return "it is not there";
        w.kazoo = w.kazoo_number = 0;
    }
    return nullptr;
}

inline const char *apply_fault(World &w, const Step &s) {
    Member &m = w.members[s.who];
    if (s.kind == LOSE) {
        if (!m.request || m.answer != UNDER_WAY || !w.may_lose) return "nothing to lose";
        w.may_lose--;
        m.answer = LOST;
    } else if (s.kind == DELETE) {
        if (!m.place || !w.may_delete) return "no place";
        w.may_delete--;
        m.place = 0;
        m.deleted = w.was_deleted = 1;
    } else {
        if (!m.lives || m.stage != OWNS || is_owner(w, s.who) || !w.may_time_out) return "no timeout";
        w.may_time_out--;
        m.overdue = 1;
        m.stage = REVOKED;
    }
    return nullptr;
}

// Makes the step and returns NULL; or returns why the rules do not allow it. A claim that it breaks is in fault.
inline const char *apply(World &w, const Step &s) {
    Member &m = w.members[s.who];
    switch (s.kind) {
    case PLAN: return plan(w, s.who);
    case FOLLOW: return follow(w, s.who, s.argument);
    case READ: return read(w, s.who, s.argument);
    case PREPARE:
        if (m.stage != PREPARES) return "nothing to prepare";
        m.stage = PREPARED;
        return nullptr;
    case GO_IN:
    case GO_IN_LISTING: return go_in(w, s.who, s.kind == GO_IN_LISTING);
    case SERVE: return serve(w, s.who);
    case TAKE_ANSWER: return take_answer(w, s.who);
    case TAKE_BY_NUMBER: return take_by_number(w, s.who);
    case LIST: return list(w, s.who);
    case GO_OUT: return go_out(w, s.who);
    case SAY: return say(w, s.who);
    case REVOKE: return revoke(w, s.who);
    case USER_RELEASES: return release(w, s.who, s.argument);
    case MISS_PLACE: return miss_place(w, s.who);
    case END: return end(w, s.who);
    case TIDY:
    case COME:
    case GO: return apply_other(w, s);
    default: return apply_fault(w, s);
    }
}

} // namespace handover

#endif
