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
#include <string>
#include <vector>

#include "rules/handover.h"
#include "search.h"

namespace {

using namespace handover;

const model::About ABOUT[KINDS] = {
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

const std::vector<model::Variant> VARIANTS = {
    {"number_alone", "B takes the item by its number, also where its place is younger than its note (c > r)",
     "a member owns the item, and is not the first", nullptr, 0},
    {"any_number", "B takes an item that was given at a number that is not the one before its own",
     "a member owns the item, and is not the first", nullptr, 0},
    {"zero_or_one", "B takes a place of the number 1 for the first", "a member owns the item, and is not the first",
     nullptr, 0},
    {"no_list", "B does not list when the note of A has gone", "the owner by the plan waits without end", nullptr, 0},
    {"still_parked", "B does not list when the note of A says leaving no longer",
     "the owner by the plan waits without end", nullptr, 0},
    {"ready_early", "B says that it is ready before its place stands",
     "an owner gives the item to one that has no place", nullptr, 0},
    {"ready_stays", "B says that it is ready after its place has gone",
     "an owner gives the item to one that has no place", nullptr, 0},
    {"no_second_look", "A does not look again when its user releases",
     "an owner gives the item to one that has no place", nullptr, 0},
    {"any_ready", "A revokes for a note that says ready, whatever the plan says",
     "a member revokes what its plan gives to it", nullptr, 0},
    {"given_first", "A says that an item is given while its place stands",
     "a member owns the item, and is not the first", nullptr, 0},
};

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

using Base = model::Search<World, Step>;

class Search : public Base {
  public:
    explicit Search(const Setup &s) : setup(s) {}

  private:
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
        return s.kind == READ ? text + " " + static_cast<char>('A' + s.argument) : text;
    }
    std::vector<std::string> counts() override {
        return model::list_counts(ABOUT, taken);
    }
};

model::Outcome search(unsigned part, bool) {
    variant = model::broken ? model::broken->name : "";
    return Search(SETUPS[part]).run();
}

} // namespace

int main(int count, char **arguments) {
    std::vector<model::Part> parts;
    for (const Setup &setup : SETUPS) parts.push_back({setup.name, false});
    return model::run({"handover", "", VARIANTS, parts, false, search}, count, arguments);
}
