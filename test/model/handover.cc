// A model of the handover of an item: rules T1 to T6 and Q9 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
//   handover                   the rules, then each broken variant: the test model.handover
//   handover --rules           the rules alone, with counts of steps
//   handover --list            the variants
//   handover --variant NAME    one of them, with the way to its fault
//
// A owns an item. Plans give it to others, or back. Each member learns of a plan late, or skips it, and reads the notes
// of the others late. A contender of kazoo may come between. A request may be lost, a session may end, somebody may
// delete a place, and the empty directory is deleted, after which numbers begin at 0 again. A user may be told to
// release by the timeout (T4). The search visits every order of steps. It claims:
//
//  1. The place of an owner stands, and is the first in the queue (S1, S2, S16), unless somebody deleted it.
//  2. Nobody revokes what its plan gives to it (S18).
//  3. Who knows the newest plan and note gives an item to a next owner whose place stands: no gap (S15, L7),
//     unless somebody deleted a place.
//  4. At rest the owner by the newest plan owns the item (L8). No timeout (T4) is needed for that.
//
// Left out: several items, how a note's writes follow each other (note_line.cc), notes that are missing though their
// member lives, members that join, a member's several nodes (T9), leaving (T8), and the wrap of numbers (N6). Of what
// was given a note keeps the last. The waits of T2 may end at any time. A loop without end is not looked for.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "seen.h"

namespace {

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

struct World {
    Member members[MEMBERS];
    uint8_t newest, owners[PLANS];
    uint8_t directory, next, zxid, kazoo, kazoo_number;
    uint8_t was_deleted; // somebody deleted a place
    uint8_t may_plan, may_end, may_lose, may_delete, may_tidy, may_come, may_time_out;
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

struct About {
    const char *label;
    uint8_t members, arguments;
    bool fair; // happens sooner or later
};

const About ABOUT[KINDS] = {
    {"is the owner by a NEW PLAN", MEMBERS, 1, false},
    {"follows plan", MEMBERS, PLANS, true},
    {"reads the note of member", MEMBERS, MEMBERS, true},
    {"is prepared", MEMBERS, 1, true},
    {"enters the queue without a list", MEMBERS, 1, true},
    {"enters the queue", MEMBERS, 1, true},
    {"'s request is applied, or refused", MEMBERS, 1, true},
    {"'s REQUEST IS LOST", MEMBERS, 1, false},
    {"learns what became of its request", MEMBERS, 1, true},
    {"takes the item by its number", MEMBERS, 1, true},
    {"lists the queue", MEMBERS, 1, true},
    {"gives up its place", MEMBERS, 1, true},
    {"writes its note", MEMBERS, 1, true},
    {"revokes the item", MEMBERS, 1, true},
    {"revokes the item BY THE TIMEOUT", MEMBERS, 1, false},
    {"'s user releases the item", MEMBERS, 1, true},
    {"misses its place", MEMBERS, 1, true},
    {"'s SESSION ENDS", MEMBERS, 1, false},
    {"'s PLACE IS DELETED BY SOMEBODY", MEMBERS, 1, false},
    {"THE EMPTY DIRECTORY IS DELETED", 1, 1, false},
    {"KAZOO COMES", 1, 1, false},
    {"kazoo goes", 1, 1, true},
};

struct Variant {
    const char *name, *what, *shows; // shows: the fault that the search has to find
};

const Variant VARIANTS[] = {
    {"number_alone", "B takes the item by its number, also where its place is younger than its note (c > r)",
     "a member owns the item, and is not the first"},
    {"any_number", "B takes an item that was given at a number that is not the one before its own",
     "a member owns the item, and is not the first"},
    {"zero_or_one", "B takes a place of the number 1 for the first", "a member owns the item, and is not the first"},
    {"no_list", "B does not list when the note of A has gone", "the owner by the plan waits without end"},
    {"still_parked", "B does not list when the note of A says leaving no longer",
     "the owner by the plan waits without end"},
    {"ready_early", "B says that it is ready before its place stands",
     "an owner gives the item to one that has no place"},
    {"ready_stays", "B says that it is ready after its place has gone",
     "an owner gives the item to one that has no place"},
    {"no_second_look", "A does not look again when its user releases",
     "an owner gives the item to one that has no place"},
    {"any_ready", "A revokes for a note that says ready, whatever the plan says",
     "a member revokes what its plan gives to it"},
    {"given_first", "A says that an item is given while its place stands",
     "a member owns the item, and is not the first"},
};

std::string variant; // the name of the one that is searched; empty: the rules
const char *fault;   // of the step that was made last

bool is(const char *name) {
    return variant == name;
}

// ---- the queue ----

// Returns the highest number below this one that stands in the queue, and 1; or 0.
uint8_t before_of(const World &w, uint8_t number) {
    unsigned last = 0;
    for (const Member &m : w.members)
        if (m.place && m.number < number) last = std::max(last, m.number + 1u);
    if (w.kazoo && w.kazoo_number < number) last = std::max(last, w.kazoo_number + 1u);
    return static_cast<uint8_t>(last);
}

bool stands(const World &w, uint8_t number) {
    for (const Member &m : w.members)
        if (m.place && m.number == number) return true;
    return w.kazoo && w.kazoo_number == number;
}

uint8_t next_number(World &w) {
    if (!w.directory) w.next = 0;
    w.directory = 1;
    return w.next++;
}

// ---- what a member knows ----

uint8_t owner_of(const World &w, const Member &m) {
    return w.owners[m.plan];
}

bool is_owner(const World &w, uint8_t who) {
    return owner_of(w, w.members[who]) == who;
}

bool believes(const Member &m) {
    return m.stage == OWNS || m.stage == REVOKED;
}

bool watches(const World &w, uint8_t who, uint8_t other) {
    const Member &m = w.members[who];
    if (who == other || !m.lives) return false;
    if (believes(m)) return is("any_ready") || owner_of(w, m) == other;
    return (m.stage == PREPARES || m.stage == PREPARED || m.stage == ENTERS || m.stage == PARKED) &&
           m.from == other + 1;
}

// Returns the note as a read finds it.
Note note_of(const Member &m) {
    Note n = m.note;
    if (!m.lives) n = Note{};
    n.known = 1;
    n.gone = !m.lives;
    return n;
}

bool same(const Note &a, const Note &b) {
    return !memcmp(&a, &b, sizeof a);
}

bool is_ready(const Note &n) {
    return n.known && !n.gone && n.ready;
}

// Returns what the note has to say now.
Note wanted(const World &w, uint8_t who) {
    const Member &m = w.members[who];
    Note n = m.note;
    bool waits = m.stage == PARKED || m.stage == LISTS || m.stage == WAITS;
    n.leaving = believes(m) && !is_owner(w, who);
    n.ready = (waits && is_owner(w, who)) || (is("ready_stays") && n.ready);
    if (is("ready_early") && m.stage >= PREPARES && m.stage <= WAITS && is_owner(w, who)) n.ready = 1;
    return n;
}

// Begins to want an item, or to want it no longer.
void want(World &w, uint8_t who) {
    Member &m = w.members[who];
    if (m.stage == OUT && is_owner(w, who)) m.stage = PREPARES;
    if ((m.stage == PREPARES || m.stage == PREPARED) && !is_owner(w, who)) m.stage = OUT;
}

void send(Member &m, Request request, const Note &says) {
    m.request = request;
    m.answer = UNDER_WAY;
    m.says = says;
}

// ---- a member's steps: each returns why the rules do not allow it ----

const char *follow(World &w, uint8_t who, uint8_t plan) {
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

const char *read(World &w, uint8_t who, uint8_t other) {
    if (!watches(w, who, other)) return "not watched";
    Note n = note_of(w.members[other]), &known = w.members[who].read[other];
    if (same(n, known)) return "nothing new";
    known = n;
    return nullptr;
}

const char *go_in(World &w, uint8_t who, bool lists) {
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

const char *take_by_number(World &w, uint8_t who) {
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
const char *list(World &w, uint8_t who) {
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

const char *go_out(World &w, uint8_t who) {
    Member &m = w.members[who];
    bool waits = m.stage == PARKED || m.stage == LISTS || m.stage == WAITS;
    if (!m.lives || !waits || is_owner(w, who) || m.request) return "it has no place to give up";
    Note n = m.note;
    if (!is("ready_stays")) n.ready = 0;
    m.stage = LEAVES;
    send(m, LEAVE, n);
    return nullptr;
}

const char *say(World &w, uint8_t who) {
    Member &m = w.members[who];
    if (!m.lives || m.request || same(wanted(w, who), m.note)) return "nothing new to say";
    send(m, WRITE, wanted(w, who));
    return nullptr;
}

const char *revoke(World &w, uint8_t who) {
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

const char *release(World &w, uint8_t who) {
    Member &m = w.members[who];
    if (!m.lives || m.stage != REVOKED || m.request) return "nothing is revoked";
    uint8_t to = owner_of(w, m);
    const Note &n = m.read[to];
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

const char *take_answer(World &w, uint8_t who) {
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

const char *miss_place(World &w, uint8_t who) {
    Member &m = w.members[who];
    bool has = m.stage == PARKED || m.stage == LISTS || m.stage == WAITS || believes(m);
    if (!m.lives || !has || m.place || m.request) return "it has its place";
    if (m.stage != PARKED) m.from = 0;
    m.stage = OUT;
    want(w, who);
    return nullptr;
}

// ---- the servers ----

const char *serve(World &w, uint8_t who) {
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

const char *end(World &w, uint8_t who) {
    Member &m = w.members[who], gone = {};
    unsigned live = 0;
    for (const Member &other : w.members) live += other.lives;
    if (!m.lives || !w.may_end || live == 1) return "no session that may end";
    w.may_end--;
    gone.plan = w.newest;
    m = gone;
    return nullptr;
}

const char *plan(World &w, uint8_t who) {
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

const char *apply_other(World &w, const Step &s) {
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

const char *apply_fault(World &w, const Step &s) {
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
const char *apply(World &w, const Step &s) {
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
    case USER_RELEASES: return release(w, s.who);
    case MISS_PLACE: return miss_place(w, s.who);
    case END: return end(w, s.who);
    case TIDY:
    case COME:
    case GO: return apply_other(w, s);
    default: return apply_fault(w, s);
    }
}

// ---- the search ----

const char *wrong_in(const World &w) {
    for (const Member &m : w.members) {
        if (!believes(m) || m.deleted) continue;
        if (!m.place) return "a member owns the item without a place";
        if (before_of(w, m.number)) return "a member owns the item, and is not the first";
    }
    return nullptr;
}

const char *wrong_at_rest(const World &w) {
    const Member &m = w.members[w.owners[w.newest]];
    return m.stage == OWNS ? nullptr : "the owner by the plan waits without end";
}

// Only the order of zxids matters, and of plans those that somebody follows.
void settle(World &w) {
    std::vector<uint8_t *> all = {&w.zxid};
    uint8_t oldest = w.newest;
    for (uint8_t i = 0; i < MEMBERS; i++) {
        Member &m = w.members[i];
        if (!m.lives) m.plan = w.newest;
        oldest = std::min(oldest, m.plan);
        if (!m.place && m.stage <= PREPARED) m.number = m.czxid = m.deleted = 0;
        if (m.stage != WAITS) m.before = 0;
        if (m.stage != ENTERS) m.parks = 0;
        if (m.stage > PARKED || m.stage == OUT) m.from = m.stage == LEAVES ? m.from : 0;
        for (uint8_t other = 0; other < MEMBERS; other++) {
            if (!watches(w, i, other)) m.read[other] = Note{};
            all.push_back(&m.read[other].mzxid);
            all.push_back(&m.read[other].given_to);
        }
        for (Note *n : {&m.note, &m.says}) {
            all.push_back(&n->mzxid);
            all.push_back(&n->given_to);
        }
        all.push_back(&m.czxid);
    }
    for (Member &m : w.members) m.plan = static_cast<uint8_t>(m.plan - oldest);
    w.newest = static_cast<uint8_t>(w.newest - oldest);
    memmove(w.owners, w.owners + oldest, PLANS - oldest);
    memset(w.owners + PLANS - oldest, 0, oldest);
    uint64_t present = 1;
    for (uint8_t *z : all) present |= 1ull << *z;
    for (uint8_t *z : all) *z = static_cast<uint8_t>(__builtin_popcountll(present & ((1ull << *z) - 1)));
}

// How many plans, sessions that end, lost requests, deleted places, deleted directories, kazoo's, and timeouts.
struct Setup {
    const char *name;
    uint8_t may_plan, may_end, may_lose, may_delete, may_tidy, may_come, may_time_out;
    bool is_ready, two; // B is ready to take over from A; there is no C
};

const Setup SETUPS[] = {
    {"kazoo", 1, 0, 0, 0, 1, 1, 0, false, false},   {"lost", 1, 0, 1, 0, 0, 0, 1, false, false},
    {"session", 1, 1, 0, 0, 0, 0, 0, false, false}, {"deleted", 1, 0, 0, 1, 1, 0, 0, false, false},
    {"again", 2, 0, 0, 0, 1, 1, 0, true, true},     {"plans", 2, 0, 0, 0, 0, 0, 0, false, false},
};

// B has its place, without a list, and says that it is ready, as A has not read yet.
void make_ready(World &w) {
    Member &a = w.members[0], &b = w.members[1];
    a.plan = b.plan = w.members[2].plan = w.newest = 1;
    w.owners[1] = 1;
    w.next = 2;
    w.zxid = 4;
    a.note.mzxid = 2;
    a.note.leaving = 1;
    b.stage = PARKED;
    b.from = b.place = b.number = b.note.ready = 1;
    b.czxid = 3;
    b.note.mzxid = 4;
}

World first_world(const Setup &setup) {
    World w = {};
    for (Member &m : w.members) m.lives = 1;
    for (Member &m : w.members) m.note.mzxid = 1;
    w.members[0].stage = OWNS;
    w.members[0].place = w.directory = w.next = w.zxid = w.members[0].czxid = 1;
    if (setup.two) w.members[2] = Member{};
    if (setup.is_ready) make_ready(w);
    w.may_plan = setup.may_plan;
    w.may_end = setup.may_end;
    w.may_lose = setup.may_lose;
    w.may_delete = setup.may_delete;
    w.may_tidy = setup.may_tidy;
    w.may_come = setup.may_come;
    w.may_time_out = setup.may_time_out;
    return w;
}

struct Search : Seen<World, Step> {
    uint64_t taken[KINDS] = {};

    // Makes the step, if the rules allow it. Returns whether they do.
    bool try_step(uint32_t from, const Step &s) {
        World next = all[from].world;
        fault = nullptr;
        if (apply(next, s)) return false;
        taken[s.kind]++;
        settle(next);
        if (!fault) fault = wrong_in(next);
        add(next, from, s);
        return true;
    }
    // Returns what is wrong, and where; or NULL when all worlds were visited.
    const char *run(const Setup &setup, uint32_t *at) {
        World w = first_world(setup);
        settle(w);
        add(w, 0, Step{});
        for (uint32_t i = 0; i < all.size(); i++) {
            bool rests = true;
            *at = i;
            for (uint8_t kind = 0; kind < KINDS; kind++) {
                const About &about = ABOUT[kind];
                for (unsigned n = 0; n < about.members * about.arguments; n++) {
                    Step s = {kind, static_cast<uint8_t>(n % about.members), static_cast<uint8_t>(n / about.members)};
                    if (!try_step(i, s)) continue;
                    bool replaces =
                        kind == PLAN && !all[i].world.members[all[i].world.owners[all[i].world.newest]].lives;
                    rests = rests && !about.fair && !replaces;
                    if (fault) *at = static_cast<uint32_t>(all.size() - 1);
                    if (fault) return fault;
                }
            }
            if (rests && wrong_at_rest(all[i].world)) return wrong_at_rest(all[i].world);
        }
        return nullptr;
    }
    void tell_way(uint32_t at) const {
        std::vector<uint32_t> way = way_to(at);
        for (; !way.empty(); way.pop_back()) {
            const Step &s = all[way.back()].way;
            const About &about = ABOUT[s.kind];
            printf("    ");
            if (about.members > 1) printf("%c%s", 'A' + s.who, about.label[0] == '\'' ? "" : " ");
            printf("%s", about.label);
            if (s.kind == READ) printf(" %c", 'A' + s.argument);
            printf("\n");
        }
    }
};

// Searches each setup. Returns whether that ended as it has to.
bool search(const Variant *broken, bool told) {
    bool found = false;
    variant = broken ? broken->name : "";
    for (const Setup &setup : SETUPS) {
        Search s;
        uint32_t at = 0;
        const char *wrong = s.run(setup, &at);
        found = found || (wrong && (!broken || !strcmp(wrong, broken->shows)));
        if (!broken || wrong) {
            printf("%-17s %-9s %8zu states: %s\n", broken ? broken->name : "the rules", setup.name, s.all.size(),
                   wrong ? wrong : "exhausted, nothing wrong");
        }
        if (wrong && (told || !broken)) s.tell_way(at);
        for (unsigned i = 0; i < KINDS && !broken && told; i++)
            printf("    %9zu x %s\n", static_cast<size_t>(s.taken[i]), ABOUT[i].label);
        if (wrong) break;
    }
    if (broken && !found) printf("%-17s its fault was not found\n", broken->name);
    return broken ? found : !found;
}

} // namespace

int main(int count, char **arguments) {
    std::string option = count > 1 ? arguments[1] : "", name = count > 2 ? arguments[2] : "";
    bool good = true, known = option.empty() || option == "--rules" || option == "--list";
    if (option.empty() || option == "--rules") good = search(nullptr, !option.empty()) && good;
    for (const Variant &v : VARIANTS) {
        if (option == "--list") printf("%-17s %s\n", v.name, v.what);
        if (!option.empty() && (option != "--variant" || name != v.name)) continue;
        known = true;
        good = search(&v, !option.empty()) && good;
    }
    if (!known) fprintf(stderr, "usage: handover [--rules | --list | --variant NAME]\n");
    return known ? !good : 2;
}
