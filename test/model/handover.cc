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
#include "handover_worlds.h"

namespace {

using namespace handover;

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
