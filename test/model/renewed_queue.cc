// A model of renewed queues: rules Q9 to Q11, T5, T6 and R1 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
//   renewed_queue                   the rules, then each broken variant: the test model.renewed_queue
//   renewed_queue --rules           the rules alone
//   renewed_queue --long            the same, and A may enter twice: ten times as many worlds
//   renewed_queue --list            the variants
//   renewed_queue --variant NAME    one of them, with the way to its fault
//
// One queue, in one directory. Members A, B and C enter it in each of the four ways: as by Q1, with a list; as by Q9, in
// a directory that they have just made; parked behind an owner (Q10); and by a transaction that makes the directory
// again with the place (Q11), be that wise or not. A and B hand over to one another by their notes. An operator sets the
// directory's data, and some member deletes the directory, empty, because it holds it for no item's (P12).
//
// The search visits every order of steps. A request is carried out at some time, or with its connection never. Its
// answer may be lost; then the member looks for its place behind a barrier (R1). The search claims:
//
//  1. Who holds has the first place, and so nobody holds beside another (S1, S2).
//  2. No data of a directory are lost by a renewal.
//  3. Nobody finds the directory missing, unless by P12.
//  4. Nobody waits for nobody.
//
// Left out: places that somebody else deletes, the session clock (C1 to C5), reads that lag behind (a member sees its
// own place in a list, and nobody comes before that), and other directories of the same multi: one that is refused is
// refused for all. A member that has died stays away; others come in its stead.
#include <cstring>
#include <vector>

#include "search.h"

namespace {

using model::is;
using model::Variant;

enum { MEMBERS = 3, NONE = 255 };
enum Stage : uint8_t { OUT, SENT, ANSWERED, LOST, LISTS, WAITS, PARKED, HOLDS, DEAD };
enum Way : uint8_t { PLAIN, FRESH, PARKS, RENEWS };
enum Answer : uint8_t { MADE, REFUSED, NO_DIRECTORY, NO_ANSWER };

struct Note {
    uint8_t leaving, ready, mzxid;   // ready counts from its own write on: mzxid
    uint8_t gives, given_q, given_r; // the last that it gave (T5)
};

struct Member {
    uint8_t stage, way, is_refused, answer;   // is_refused: the renewal was, so the place is made without it
    uint8_t pending, half_done;               // a request whose connection is lost may yet arrive; two_steps
    uint8_t number, czxid;                    // of its place, as it knows
    uint8_t place, place_number, place_czxid; // as it stands
    uint8_t fresh;                            // it has just made the directory
    uint8_t entries;                          // left
    Note note, view;                          // view: the other's, as read last
};

// The whole world. All fields are bytes, so that two equal worlds have equal bytes.
struct World {
    Member members[MEMBERS];
    uint8_t exists, next, version, zxid;
    uint8_t may_die, may_lose, may_delete, may_set, deleted;
    uint8_t data_lost, found_missing;
};

const std::vector<Variant> VARIANTS = {
    {"first_anyway", "takes its place for the first, though the renewal was refused", "holds, and is not the first",
     nullptr, 0},
    {"found_is_first", "takes a place that it found after a lost answer for the first", "holds, and is not the first",
     nullptr, 0},
    {"with_places", "deletes the directory with the places in it", "holds, and is not the first", nullptr, 0},
    {"any_age", "takes what was given to its number, whenever its place was made", "holds, and is not the first",
     nullptr, 0},
    {"any_version", "deletes a directory whose data were set", "data were lost", nullptr, 0},
    {"two_steps", "deletes the directory by one request, and makes it by the next", "the directory is missing", nullptr,
     0},
    {"no_list", "does not list where the renewal was refused", "waits for nobody", nullptr, 0},
};

size_t renewals, takes;

// ---- steps ----

struct Doing {
    const char *label;
    int who;
};

using Base = model::Search<World, Doing>;
using Step = Base::Next;

std::vector<Step> steps;

World &step(const World &from, int who, const char *label, bool fair) {
    steps.push_back({from, {label, who}, fair, nullptr, false});
    return steps.back().world;
}

bool is_empty(const World &w) {
    for (const Member &m : w.members)
        if (m.place) return false;
    return true;
}

const Member *before(const World &w, const Member &m) {
    for (const Member &other : w.members)
        if (other.place && other.place_number < m.place_number) return &other;
    return nullptr;
}

void make_directory(World &w) {
    w.exists = 1;
    w.next = w.version = 0;
}

void make_place(World &w, Member &m) {
    m.place = 1;
    m.place_number = w.next++;
    m.place_czxid = ++w.zxid;
    m.answer = MADE;
}

// What a create does when it arrives.
void carry_out(World &w, Member &m) {
    bool renews = m.way == RENEWS && !m.is_refused;
    m.answer = NO_DIRECTORY;
    if (!w.exists) {
        if (renews) m.answer = REFUSED;
        else if (!w.deleted) w.found_missing = 1;
        return;
    }
    if (renews) {
        bool stands = !is_empty(w) && !is("with_places");
        if (stands || (w.version != 0 && !is("any_version"))) {
            m.answer = REFUSED;
            return;
        }
        for (Member &other : w.members) other.place = 0;
        if (w.version != 0) w.data_lost = 1;
        make_directory(w);
        renewals++;
    }
    make_place(w, m);
}

void hold(Member &m) {
    m.stage = HOLDS;
    m.fresh = 0;
}

// Q9 to Q11: what follows from the number.
void take_place(Member &m, bool was_found) {
    m.number = m.place_number;
    m.czxid = m.place_czxid;
    bool first = m.way != PLAIN && m.number == 0;
    if (is("first_anyway") && m.way == RENEWS) first = true;
    if (is("found_is_first") && m.way == RENEWS && was_found) first = true;
    if (first) hold(m);
    else if (m.way == PARKS) m.stage = PARKED;
    else m.stage = is("no_list") && m.is_refused ? WAITS : LISTS;
}

// T6.
void judge(Member &m) {
    if (m.stage != PARKED) return;
    bool given = m.view.gives && m.number == m.view.given_q + 1 && (m.czxid <= m.view.given_r || is("any_age"));
    if (given) {
        hold(m);
        takes++;
    } else if (!m.view.leaving) {
        m.stage = LISTS;
    }
}

// ---- members ----

void enter(const World &w, int i) {
    const Member &m = w.members[i];
    if (m.stage != OUT || m.entries == 0) return;
    for (Way way : {PLAIN, FRESH, PARKS, RENEWS}) {
        static const char *const labels[] = {"enters", "enters the directory that it has made", "parks", "renews"};
        if ((way == FRESH) != (m.fresh != 0) || (way == PARKS && (i == 2 || !m.view.leaving))) continue;
        World &n = step(w, i, labels[way], false);
        n.members[i].stage = SENT;
        n.members[i].way = way;
        n.members[i].entries--;
        n.members[i].fresh = 0;
    }
}

void arrive(const World &w, int i) {
    const Member &m = w.members[i];
    if (is("two_steps") && m.stage == SENT && m.way == RENEWS && !m.is_refused && !m.half_done) {
        World &n = step(w, i, "deletes the directory", true);
        bool can = w.exists && is_empty(w) && w.version == 0;
        if (can) n.exists = 0;
        n.members[i].half_done = can;
        n.members[i].is_refused = !can;
        return;
    }
    if (m.stage == SENT || (m.stage == LOST && m.pending)) {
        World &n = step(w, i, "has its create carried out", true);
        Member &c = n.members[i];
        if (m.half_done) make_directory(n);
        c.half_done = 0;
        carry_out(n, c);
        if (m.stage == SENT) c.stage = ANSWERED;
        c.pending = 0;
    }
    if (m.stage == LOST && m.pending) step(w, i, "has its create never carried out", true).members[i].pending = 0;
    if (m.stage == LOST && !m.pending) {
        World &n = step(w, i, "looks for its place", true);
        Member &c = n.members[i];
        c.stage = OUT; // and makes another attempt, by another name
        c.is_refused = 0;
        if (m.place) take_place(c, true);
        else c.entries++;
        judge(c);
    }
    if (m.stage != ANSWERED) return;
    World &n = step(w, i, "has the answer", true);
    Member &c = n.members[i];
    if (m.answer == MADE) {
        take_place(c, false);
        judge(c);
    } else if (m.answer == REFUSED) {
        c.stage = SENT;
        c.is_refused = 1;
    } else {
        c.stage = OUT;
        c.is_refused = 0;
        c.entries++;
        c.fresh = !w.exists;
        if (!w.exists) make_directory(n);
    }
}

void wait(const World &w, int i) {
    const Member &m = w.members[i];
    if (m.stage == LISTS) {
        World &n = step(w, i, "lists", true);
        if (before(w, m)) n.members[i].stage = WAITS;
        else hold(n.members[i]);
    }
    bool is_listed = !(m.is_refused && is("no_list"));
    if (m.stage == WAITS && is_listed && !before(w, m))
        step(w, i, "sees the one before it gone", true).members[i].stage = LISTS;
}

void leave_place(Member &m) {
    m.place = m.is_refused = m.note.leaving = m.note.ready = 0;
    m.stage = OUT;
}

void notes(const World &w, int i) {
    const Member &m = w.members[i], &other = w.members[1 - i];
    if (memcmp(&m.view, &other.note, sizeof m.view) != 0 && m.stage != DEAD) {
        World &n = step(w, i, "reads the other's note", true);
        n.members[i].view = other.note;
        judge(n.members[i]);
    }
    if (m.stage == HOLDS && !m.note.leaving)
        step(w, i, "says that it gives the item away", false).members[i].note.leaving = 1;
    if ((m.stage == PARKED || m.stage == WAITS) && m.place && !m.note.ready) {
        World &n = step(w, i, "says that it is ready", false);
        n.members[i].note.ready = 1;
        n.members[i].note.mzxid = ++n.zxid;
    }
    if (m.stage == HOLDS && m.note.leaving && m.view.ready) {
        World &n = step(w, i, "gives the item", false);
        Member &c = n.members[i];
        c.note.gives = 1;
        c.note.given_q = m.place_number;
        c.note.given_r = m.view.mzxid;
        leave_place(c);
    }
}

void life(const World &w, int i) {
    const Member &m = w.members[i];
    bool stands = m.stage == LISTS || m.stage == WAITS || m.stage == PARKED || m.stage == HOLDS;
    if (stands && m.place) leave_place(step(w, i, "leaves", false).members[i]);
    if (w.may_lose && (m.stage == SENT || m.stage == ANSWERED)) {
        World &n = step(w, i, "loses its connection", false);
        n.may_lose = 0;
        n.members[i].stage = LOST;
        n.members[i].pending = m.stage == SENT;
    }
    if (w.may_die && m.stage != DEAD) {
        World &n = step(w, i, "DIES", false);
        n.may_die = 0;
        n.members[i] = {};
        n.members[i].stage = DEAD;
    }
}

void others(const World &w) {
    if (w.may_set && w.exists) {
        World &n = step(w, MEMBERS, "sets the directory's data", false);
        n.may_set = 0;
        n.version = 1;
    }
    if (w.may_delete && w.exists && is_empty(w)) {
        World &n = step(w, MEMBERS, "deletes the directory", false);
        n.may_delete = n.exists = 0;
        n.deleted = 1;
    }
}

// ---- claims ----

const char *wrong_in(const World &w) {
    for (const Member &m : w.members)
        if (m.stage == HOLDS && (!m.place || before(w, m))) return "holds, and is not the first";
    if (w.data_lost) return "data were lost";
    if (w.found_missing) return "the directory is missing";
    return nullptr;
}

// Only for a world in which nothing fair can happen.
const char *idle_in(const World &w) {
    for (const Member &m : w.members) {
        bool waits = m.stage == WAITS || m.stage == PARKED || m.stage == LISTS;
        if (waits && (!m.place || !before(w, m))) return "waits for nobody";
    }
    return nullptr;
}

// ---- the search ----

// Times matter by their order only.
void rank_times(World &w) {
    std::vector<uint8_t *> times;
    for (Member &m : w.members)
        for (uint8_t *t : {&m.czxid, &m.place_czxid, &m.note.mzxid, &m.note.given_r, &m.view.mzxid, &m.view.given_r})
            times.push_back(t);
    w.zxid = static_cast<uint8_t>(model::rank(times.data(), times.size()));
}

// Returns the world without what has no meaning in it, so that fewer worlds differ.
World canonical(World w) {
    for (Member &m : w.members) {
        if (!m.place) m.place_number = m.place_czxid = 0;
        if (m.stage != ANSWERED) m.answer = NO_ANSWER;
        if (m.stage == OUT || m.stage == DEAD) m.way = m.is_refused = 0;
        if (m.stage == HOLDS || m.stage == WAITS || m.stage == LISTS) m.way = 0;
        if (m.stage != PARKED) m.number = m.czxid = 0;
        if (!m.note.ready) m.note.mzxid = 0;
        if (!m.view.ready) m.view.mzxid = 0;
        bool may_park = m.entries > 0 || m.way == PARKS;
        if (!may_park) m.view.gives = m.view.given_q = m.view.given_r = m.view.leaving = 0;
    }
    for (int i = 0; i < 2; i++) {
        Member &m = w.members[i], &other = w.members[1 - i];
        if (other.entries == 0 && other.way != PARKS) m.note.gives = m.note.given_q = m.note.given_r = 0;
    }
    rank_times(w);
    return w;
}

class Search : public Base {
  public:
    explicit Search(bool long_search) : is_long(long_search) {}

  private:
    const bool is_long; // A may enter twice

    void begin() override {
        World w = {};
        w.exists = w.may_die = w.may_lose = w.may_delete = w.may_set = 1;
        w.next = w.zxid = 1; // somebody was there
        for (Member &m : w.members) m.entries = 1;
        if (is_long) w.members[0].entries = 2;
        Note &before = w.members[0].note; // A was there once, at 0, and gave the item away
        before.gives = before.given_r = 1;
        w.members[1].view = before;
        renewals = takes = 0;
        add(::canonical(w), 0, {"begin", MEMBERS});
    }
    const std::vector<Step> &steps_of(const World &w) override {
        steps.clear();
        for (int m = 0; m < MEMBERS; m++) {
            enter(w, m), arrive(w, m), wait(w, m), life(w, m);
            if (m < 2) notes(w, m);
        }
        others(w);
        for (Step &s : steps) s.fault = wrong_in(s.world);
        return steps;
    }
    const char *rest(const World &w) override {
        return idle_in(w);
    }
    World canonical(const World &w) override {
        return ::canonical(w);
    }
    const char *finish(uint32_t *) override {
        return renewals && takes ? nullptr : "nothing was renewed, or taken by its number";
    }
    std::string label(const World &, const Doing &doing) override {
        static const char *const names[] = {"A", "B", "C", "somebody else"};
        return std::string(names[doing.who]) + " " + doing.label;
    }
};

model::Outcome search(unsigned, bool is_long) {
    return Search(is_long).run();
}

} // namespace

int main(int count, char **arguments) {
    return model::run({"renewed_queue", "the member", VARIANTS, {{"", false}}, true, search}, count, arguments);
}
