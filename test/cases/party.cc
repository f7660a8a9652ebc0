// Who is who in a plan, its options and its items, held against the rules. SPDX-License-Identifier: Apache-2.0
//
//   unit_party_cases [--short] [--seed SEED] [--count COUNT]
//
// Prints how many cases there were. The exit status is 1 if the code and the rules differ. The options are those of
// unit_deal_cases.
//
// step_rules.h has the rules: D10 to D17, D48. The deal is judged, too.
//
// A case has a plan, or none, or one that is later than the party. Member 0 is static, and has up to three nodes, each
// with its age, weight, zone, tags, cap and delay. Member 1 is static or not, member 2 is not. Nodes are unread, ghosts,
// or too old. They carry options and tags of sets. Somebody may request other items.
#include "cases/judge.h"

#include "cases/dials.h"

namespace {

using namespace step;

enum { SET_A = 7, SET_B = 14, SET_C = 28 };

enum {
    PLAN,
    LIFE0,
    LIFE1,
    LIFE2,
    OWNERS,
    FIRST_OWNERS,
    PLAN_SET,
    PLAN_TAG,
    ASKED,
    PLAN_MOVES,
    MOVED,
    WISHES,
    HAS_LOADS,
    NODE, // how each node is; then the others for each
    CZXID = NODE + STEP_NODES,
    FIRST = CZXID + STEP_NODES,
    SAYS = FIRST + STEP_NODES,
    SET = SAYS + STEP_NODES,
    OPTIONS_OF = SET + STEP_NODES,
    WRITER_SET = OPTIONS_OF + STEP_NODES,
    EVENT,
    REQUEST,
    DIALS
};

enum NodeLife { THERE, MISSING, GHOST, UNREAD, OLD, WEIGHT_UNKNOWN, NODE_LIVES };

std::vector<Dial> make_dials() {
    std::vector<Dial> all = {{"plan", 6},    {"life0", 6},  {"life1", 4},    {"life2", 3}, {"owners", 4},
                             {"owners0", 4}, {"set", 3},    {"tag", 3},      {"asked", 4}, {"max_moves", 3},
                             {"moved", 2},   {"wishes", 5}, {"has_loads", 2}};
    for (uint8_t values :
         {static_cast<uint8_t>(NODE_LIVES), uint8_t{4}, uint8_t{4}, uint8_t{6}, uint8_t{3}, uint8_t{4}})
        for (int n = 0; n < STEP_NODES; n++) all.push_back({"node", values});
    for (Dial d : {Dial{"writer", 3}, Dial{"event", 8}, Dial{"request", 4}}) all.push_back(d);
    return all;
}

const std::vector<Dial> dials = make_dials();

// What a node says beside its age: weight, zone, tags, cap, delay.
void say(step_node &n, uint8_t what) {
    n.weight = what == 1 ? 2000 : what == 2 ? 0 : 1000;
    n.zone = what == 3;
    n.tags = what == 4 ? STEP_TAG_T : 0;
    n.cap = what == 5 ? 2 : 0;
    n.rejoin_delay_ms = what == 3 ? 0 : 30000;
}

void put_node(step_party &party, const Dials &at, uint8_t i) {
    static const uint8_t sets[] = {SET_A, SET_B, SET_C};
    step_node &n = party.nodes[i];
    uint8_t how = at[NODE + i];
    bool is_extra = i > 2; // 0 is missing for these
    n.is_there = is_extra ? how != THERE : how != MISSING;
    n.member = i < STEP_MEMBERS ? i : 0;
    n.is_ghost = how == GHOST;
    n.is_unread = how == UNREAD;
    n.is_older = how == OLD;
    n.weight_unknown = how == WEIGHT_UNKNOWN;
    n.czxid = at[CZXID + i] == 3 ? 0 : at[CZXID + i] == 2 ? 55 : at[CZXID + i] == 1 ? 85 : 70 + i;
    n.first_czxid = at[FIRST + i] == 3 ? 200 : at[FIRST + i] == 2 ? 80 : at[FIRST + i] == 1 ? 40 : 0;
    n.set = sets[at[SET + i]];
    n.has_options = at[OPTIONS_OF + i] > 0;
    n.max_moves = at[OPTIONS_OF + i] > 1 ? at[OPTIONS_OF + i] - 1u : 0;
    say(n, at[SAYS + i]);
}

// 0: as its node says; 1: not in the plan; 2: absent; 3: leaving; 4: had left; 5: another weight, and older.
void put_member(step_plan &plan, int i, uint8_t life) {
    step_member &m = plan.members[i];
    m.is_static = i == 0 || i == 4 || (i == 1 && life >= 2);
    m.is_there = i < STEP_IN_PLAN && life != 1;
    m.slot = static_cast<uint32_t>(i);
    m.weight = life == 5 ? 3000 : 1000;
    m.rejoin_delay_ms = m.is_static ? 30000 : 0;
    m.says_configured = m.is_static && life != 5;
    m.configured = m.says_configured ? 1000 : 0;
    m.absent = m.is_static && life == 2 ? 50 : 0;
    if (i == 0 && life == 3) m.leaving = 1;
    if (i == 0 && life == 4) m.leaving = STEP_GONE_NODE;
    if (i == 2 && life == 2) m.leaving = 3;
}

void put_items(step_plan &plan, step_party &party, const Dials &at) {
    static const uint8_t sets[] = {SET_A, SET_B, SET_C};
    static const uint8_t owners[][STEP_ITEMS] = {{0, 1, 2, 0, 1}, {0, 0, 0, 0, 0}, {1, 1, 2, 2, 2}, {9, 9, 9, 9, 9}};
    plan.set = sets[at[PLAN_SET]];
    plan.tag = sets[at[PLAN_TAG]];
    plan.asked = at[ASKED] ? 20 + 30 * at[ASKED] : 0;
    party.set = at[WRITER_SET] == 2 ? 0 : sets[at[WRITER_SET]];
    for (int i = 0; i < STEP_ITEMS; i++) {
        uint8_t owner = owners[at[OWNERS]][i], first = owners[at[FIRST_OWNERS]][i];
        bool has_owner = has_item(plan.set, i) && owner < 3;
        has_owner = has_owner && plan.members[owner].is_there && !plan.members[owner].leaving;
        plan.owners[i] = has_owner ? owner : NOBODY;
        bool has_first = first < 3 && party.nodes[first].is_there;
        party.owners[i] = has_first ? first : NOBODY;
        plan.loads.giver[i] = NOBODY;
        plan.loads.classes[i] = at[HAS_LOADS] && has_item(plan.set, i) ? static_cast<uint8_t>(100 + 2 * i) : NO_LOAD;
    }
    if (at[MOVED]) plan.moved = plan.set & 6;
    if (at[WISHES] == 1) plan.wishes.place[1] = STEP_PIN;
    if (at[WISHES] == 2) plan.wishes.place[2] = STEP_MOVE, plan.wishes.whom[2] = 1;
    if (at[WISHES] == 3) plan.wishes.paused[1] = true, plan.wishes.had[1] = 2;
    if (at[WISHES] == 4) plan.wishes.has_max_moves = true, plan.wishes.max_moves = 2;
    plan.loads.are_there = at[HAS_LOADS];
    plan.wishes.are_there = at[WISHES] > 0;
}

// 0: before this party; 1: none; 2: of generation 0; 3: for a later party; 4: likewise, in another ensemble; 5: of this
// party, and in another ensemble.
void put_plan(step_plan &plan, uint8_t how) {
    plan.is_there = how != 1;
    plan.is_empty = how == 2;
    plan.pzxid = how == 3 || how == 4 ? STEP_PZXID + 20 : how == 5 ? STEP_PZXID : 60;
    plan.mzxid = how == 3 ? STEP_PZXID + 30 : 61;
}

// D28: a plan of generation 0 has no members and no items.
void empty(step_plan &plan) {
    plan.wishes = {};
    plan.loads.are_there = false;
    plan.moved = 0;
    for (step_member &m : plan.members) m.is_there = false;
    for (uint8_t &owner : plan.owners) owner = NOBODY;
}

void put_event(step_events &e, const Dials &at) {
    static const uint8_t sets[] = {0, SET_A, SET_B, SET_C};
    e.set = sets[at[REQUEST]];
    switch (at[EVENT]) {
    case 1: e.leaving = 0; break;
    case 2: e.leaving = 5; break;
    case 3: e.leaving = 1; break;
    case 4: e.weighed = 0, e.weight = 2000; break;
    case 5: e.expired = 0; break;
    case 6: e.wish = STEP_MOVE, e.item = 1, e.whom = 0; break;
    case 7: e.wish = STEP_PAUSE, e.item = 3; break;
    default: break;
    }
}

void act(const Dials &at) {
    step_plan plan = {};
    step_party party = {};
    step_events e = NO_EVENTS;
    put_plan(plan, at[PLAN]);
    party.pzxid = STEP_PZXID;
    party.max_moves = 1;
    for (uint8_t i = 0; i < STEP_NODES; i++) put_node(party, at, i);
    for (int i = 0; i < STEP_MEMBERS; i++) put_member(plan, i, i < STEP_IN_PLAN ? at[LIFE0 + i] : 0);
    put_items(plan, party, at);
    plan.max_moves = at[PLAN_MOVES];
    if (plan.is_empty) empty(plan);
    plan.is_balanced = Ruled::needs_balance(plan);
    for (const step_node &n : party.nodes) plan.is_balanced = plan.is_balanced && !(n.is_there && n.is_older);
    if (!(plan.is_balanced && plan.loads.are_there) && !plan.max_moves) plan.moved = 0; // D19, D50
    put_event(e, at);
    if (!plan.is_there && e.wish) return; // an operator begins no plan
    ask(plan, party, e, true);
}

} // namespace

int main(int count, char **arguments) {
    TurnOptions options;
    if (!options.parse(count, arguments)) return 2;
    const Turner turner(dials, act);
    Dials plain(DIALS, 0), two = plain, asked = plain;
    two[NODE + 5] = MISSING; // it is there, since it is an extra one
    two[CZXID + 5] = 1;
    asked[PLAN_SET] = 1;
    asked[ASKED] = 1;
    step_begin();
    turner.turn_pairs(two);
    if (!options.is_short) turner.turn_pairs(asked);
    if (!options.is_short) turner.turn_pairs(plain);
    printf("%zu cases without chance; %lu from the seed %lu\n", cases, options.by_chance(), options.seed);
    turner.turn_by_chance(two, options.seed, options.by_chance());
    return finish();
}
