// The library's decisions of handovers, in every world of their model. SPDX-License-Identifier: Apache-2.0
//
//   unit_handover_cases [--short]
//
// Prints how many cases there were of each kind. The exit status is 1 if the code and the rules differ. --short leaves
// out the worlds of two changes of the plan, which are most of them: for sanitizers, which slow a search.
//
// The search of test/model/handover.cc visits all worlds. What one member sees in one of them is a case: the note that
// it read, its place, its plan. The same case comes in many worlds, and is asked once. The library's code is asked what
// it does (lib/partitioner/give.c, take.c, lib/handover/note.c), and the rules which steps they allow. They have to say:
//
//  1. The code revokes an item only where the rules allow it (T1, T3), and does so if the next owner is ready. One whose
//     note has gone later it gives time until T4.
//  2. What the user has released stays, or goes with the same r, or with none, as the rules allow it (T3 to T5).
//  3. It enters a queue when and how the rules allow it (T2), and at once where no wait is asked for.
//  4. It takes an item by its number, or lists, exactly where the rules allow it (T6).
//  5. Its note says leaving and ready where theirs does (T1, T2).
//
// Left out: what the model leaves out; places of the number 0, of which the contender decides (Q9).
#include <cstdio>
#include <cstring>

#include "cases/handover_code.h"
#include "model/handover_worlds.h"

namespace {

using namespace handover;

// What a member sees, and what the rules allow it then.
struct Case {
    uint8_t stage, is_owner, has_from, overdue, number, czxid, place;
    Note from, next; // the notes of the owner before, and of the owner by the plan
    uint8_t may_revoke, may_release, keeps, given_to, may_wait, may_park, may_list, may_take, leaving, ready;
};

const char *const STAGES[] = {"out",   "prepares", "prepared", "enters",   "parked", "lists",
                              "waits", "owns",     "revoked",  "releases", "leaves"};
size_t cases[LEAVES + 1], wrong;

bool may(const World &w, Kind kind, uint8_t who, uint8_t argument = 0) {
    World next = w;
    return !apply(next, {kind, who, argument});
}

Case case_of(const World &w, uint8_t who) {
    const Member &m = w.members[who];
    Case c = {};
    uint8_t owner = owner_of(w, m);
    c.stage = m.stage;
    c.is_owner = is_owner(w, who);
    if (m.stage == PREPARES || m.stage == PREPARED || m.stage == PARKED) {
        c.has_from = m.from > 0;
        if (m.from) c.from = m.read[m.from - 1];
        c.may_park = may(w, GO_IN, who);
        c.may_list = m.stage == PARKED ? may(w, LIST, who) : may(w, GO_IN_LISTING, who);
        c.may_take = may(w, TAKE_BY_NUMBER, who);
    }
    if (m.stage == PARKED) c.place = m.place, c.number = m.number, c.czxid = m.czxid;
    if (believes(m)) {
        World next = w;
        if (!c.is_owner) c.next = m.read[owner];
        c.overdue = m.overdue;
        c.may_revoke = may(w, REVOKE, who);
        c.may_release = !apply(next, {USER_RELEASES, who, 0});
        c.keeps = c.may_release && next.members[who].stage == OWNS;
        bool gives = c.may_release && !c.keeps && next.members[who].says.given == m.number + 1 && is_ready(c.next);
        c.given_to = gives ? next.members[who].says.given_to : 0;
        c.may_wait = may(w, USER_RELEASES, who, 1);
    }
    c.leaving = wanted(w, who).leaving;
    c.ready = wanted(w, who).ready;
    return c;
}

void expect(const Case &c, bool holds, const char *what) {
    if (holds) return;
    if (wrong++ < 10) {
        printf("%s: %s\n", STAGES[c.stage], what);
        printf("    owner %d, overdue %d, place %d at %d (c %d)\n", c.is_owner, c.overdue, c.place, c.number, c.czxid);
        for (const Note &n : {c.from, c.next})
            printf("    note: known %d, gone %d, leaving %d, ready %d, given %d to %d\n", n.known, n.gone, n.leaving,
                   n.ready, n.given - 1, n.given_to);
    }
}

code_note read(const Note &n) {
    return {n.known && !n.gone, n.known != 0, n.leaving != 0, n.ready != 0, n.given, n.given_to, n.mzxid};
}

// ---- what is asked of each stage ----

void ask_owner(const Case &c) {
    const code_note next = read(c.next);
    for (bool was_there : {false, true}) {
        const code_giving g = code_give(&next, c.is_owner, false, false, was_there);
        expect(c, !g.revokes || c.may_revoke, "the code revokes, and the rules do not");
        expect(c, g.revokes || !is_ready(c.next), "the next owner is ready, and the code does not revoke");
        expect(c, !c.next.gone || c.is_owner || g.revokes != was_there,
               "who has no note, or lost it, is taken otherwise");
        expect(c, g.lists_it == (c.leaving && !c.next.gone), "the code's note says otherwise of leaving");
        expect(c, !g.keeps || !c.is_owner, "the code keeps for another what the plan gives to it");
        const code_giving blocked = code_give(&next, c.is_owner, false, true, was_there);
        expect(c, !blocked.revokes || c.may_revoke, "the code revokes while its note waits, and the rules do not");
        expect(c, !blocked.revokes || c.next.gone, "the code revokes, and cannot write its note");
        const code_giving late = code_give(&next, c.is_owner, true, false, was_there);
        expect(c, late.revokes != (c.is_owner != 0), "the code does not revoke what is overdue, and nothing else");
    }
}

void ask_released(const Case &c) {
    const code_note next = read(c.next);
    for (bool was_there : {false, true}) {
        int64_t seen;
        bool keeps = code_release(&next, c.is_owner, c.overdue, was_there, &seen);
        if (!c.may_release) expect(c, keeps, "the code releases before it has read the note");
        else if (keeps) expect(c, c.keeps || c.may_wait, "the code keeps what the rules release");
        else expect(c, !c.keeps, "the code releases what the rules keep");
        if (c.may_release && !keeps) expect(c, seen == c.given_to, "the code gives at another r");
    }
}

void ask_prepared(const Case &c) {
    const code_note owner = read(c.from);
    const code_note *known = c.has_from ? &owner : nullptr;
    bool is_there = c.has_from && owner.is_there, parks, too;
    if (c.stage == PREPARES) {
        bool enters = code_enter(known, false, false, &parks);
        expect(c, !is_there || !enters, "the code enters before its user is prepared");
        return;
    }
    bool enters = code_enter(known, true, true, &parks), at_once = code_enter(known, true, false, &too);
    expect(c, enters == (c.may_park || c.may_list), "the code enters, or the rules, and not both");
    expect(c, !enters || parks == (c.may_park != 0), "the code enters in another way");
    expect(c, !at_once || enters, "the code enters at once, and not later");
    expect(c, at_once == (enters && (parks || !is_there)), "the code waits where it need not, or does not wait");
}

void ask_parked(const Case &c) {
    if (!c.from.known || !c.place || !c.number) return; // never unread; the place is missed; Q9
    const code_note owner = read(c.from);
    const code_judgement does = code_judge(&owner, c.number, c.czxid);
    expect(c, (does == CODE_TAKES) == (c.may_take != 0), "the code takes the item, or the rules, and not both");
    if (does != CODE_TAKES) expect(c, (does == CODE_LISTS) == (c.may_list != 0), "the code lists, or the rules");
}

void ask(const Case &c) {
    cases[c.stage]++;
    bool waits = c.stage == PARKED || c.stage == WAITS;
    if (c.stage != LISTS) expect(c, code_is_ready(c.is_owner, waits) == (c.ready != 0), "one of both is ready");
    if (c.stage == OWNS) ask_owner(c);
    if (c.stage == REVOKED) ask_released(c);
    if (c.stage == PREPARES || c.stage == PREPARED) ask_prepared(c);
    if (c.stage == PARKED && c.is_owner) ask_parked(c);
}

// Visits the worlds, and collects the cases.
class Asking : public Search {
  public:
    Asking(const Setup &s, Seen<Case, char> &found) : Search(s), known(found) {}

  private:
    Seen<Case, char> &known;

    const std::vector<Next> &steps_of(const World &w) override {
        for (uint8_t who = 0; who < MEMBERS; who++) {
            const Member &m = w.members[who];
            bool writes = m.request && (m.stage == REVOKED || m.stage == PREPARED || m.stage == PARKED);
            if (m.lives && !writes) known.add(case_of(w, who), 0, 0);
        }
        return Search::steps_of(w);
    }
};

} // namespace

int main(int count, char **arguments) {
    Seen<Case, char> known;
    bool is_short = count > 1 && !strcmp(arguments[1], "--short");
    size_t worlds = 0;
    code_begin();
    for (const Setup &setup : SETUPS)
        if (!is_short || setup.budget.may_plan == 1) worlds += Asking(setup, known).run().states;
    for (size_t i = 0; i < known.all.size(); i++) ask(known.all[i].world);
    printf("%zu worlds, %zu cases\n", worlds, known.all.size());
    for (size_t stage = 0; stage <= LEAVES; stage++) printf("    %6zu  %s\n", cases[stage], STAGES[stage]);
    if (wrong) printf("%zu answers differ\n", wrong);
    code_end();
    return wrong || !cases[OWNS] || !cases[REVOKED] || !cases[PREPARED] || !cases[PARKED];
}
