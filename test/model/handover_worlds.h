// The worlds of the handover's model: how they begin, and which steps lead on. SPDX-License-Identifier: Apache-2.0
//
// test/model/handover.cc says what is claimed of them. test/cases/handover.cc asks the code in each of them.
#ifndef DV_MODEL_HANDOVER_WORLDS_H
#define DV_MODEL_HANDOVER_WORLDS_H

#include <algorithm>
#include <string>
#include <vector>

#include "rules/handover.h"
#include "search.h"

namespace handover {

inline const model::About ABOUT[KINDS] = {
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
    {"'s user releases the item", MEMBERS, 2, true},
    {"misses its place", MEMBERS, 1, true},
    {"'s SESSION ENDS", MEMBERS, 1, false},
    {"'s PLACE IS DELETED BY SOMEBODY", MEMBERS, 1, false},
    {"THE EMPTY DIRECTORY IS DELETED", 1, 1, false},
    {"KAZOO COMES", 1, 1, false},
    {"kazoo goes", 1, 1, true},
};

// ---- claims ----

inline const char *wrong_in(const World &w) {
    for (const Member &m : w.members) {
        if (!believes(m) || m.deleted) continue;
        if (!m.place) return "a member owns the item without a place";
        if (before_of(w, m.number)) return "a member owns the item, and is not the first";
    }
    return nullptr;
}

inline const char *wrong_at_rest(const World &w) {
    const Member &m = w.members[w.owners[w.newest]];
    return m.stage == OWNS ? nullptr : "the owner by the plan waits without end";
}

// ---- worlds ----

// Only the order of zxids matters, and of plans those that somebody follows.
inline void settle(World &w) {
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
    model::rank(all.data(), all.size());
}

struct Setup {
    const char *name;
    Budget budget;
    bool is_ready, two; // B is ready to take over from A; there is no C
};

inline const Setup SETUPS[] = {
    {"kazoo", {1, 0, 0, 0, 1, 1, 0}, false, false},   {"lost", {1, 0, 1, 0, 0, 0, 1}, false, false},
    {"session", {1, 1, 0, 0, 0, 0, 0}, false, false}, {"deleted", {1, 0, 0, 1, 1, 0, 0}, false, false},
    {"again", {2, 0, 0, 0, 1, 1, 0}, true, true},     {"plans", {2, 0, 0, 0, 0, 0, 0}, false, false},
};

// B has its place, without a list, and says that it is ready, as A has not read yet.
inline void make_ready(World &w) {
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

inline World first_world(const Setup &setup) {
    World w = {};
    static_cast<Budget &>(w) = setup.budget;
    for (Member &m : w.members) m.lives = 1;
    for (Member &m : w.members) m.note.mzxid = 1;
    w.members[0].stage = OWNS;
    w.members[0].place = w.directory = w.next = w.zxid = w.members[0].czxid = 1;
    if (setup.two) w.members[2] = Member{};
    if (setup.is_ready) make_ready(w);
    return w;
}

using Base = model::Search<World, Step>;

class Search : public Base {
  public:
    explicit Search(const Setup &s) : setup(s) {}

  protected:
    const Setup &setup;
    std::vector<Next> steps;
    uint64_t taken[KINDS] = {};

    void begin() override {
        World w = first_world(setup);
        settle(w);
        add(w, 0, Step{});
    }
    const std::vector<Next> &steps_of(const World &w) override {
        bool is_gone = !w.members[w.owners[w.newest]].lives;
        steps.clear();
        model::try_all<Step>(ABOUT, [&](const Step &s) {
            World next = w;
            fault = nullptr;
            if (apply(next, s)) return;
            taken[s.kind]++;
            settle(next);
            bool replaces = s.kind == PLAN && is_gone;
            steps.push_back({next, s, ABOUT[s.kind].fair || replaces, fault ? fault : wrong_in(next), false});
        });
        return steps;
    }
    const char *rest(const World &w) override {
        return wrong_at_rest(w);
    }
    std::string label(const World &, const Step &s) override {
        std::string text = model::tell(ABOUT[s.kind], s.who);
        if (s.kind == USER_RELEASES && s.argument) text += ", which waits for another plan";
        return s.kind == READ ? text + " " + static_cast<char>('A' + s.argument) : text;
    }
    std::vector<std::string> counts() override {
        return model::list_counts(ABOUT, taken);
    }
};

} // namespace handover

#endif
