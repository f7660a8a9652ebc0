// The deal of a plan's items, held against its rules, with all that it goes by. SPDX-License-Identifier: Apache-2.0
//
//   unit_deal_cases [--short] [--seed SEED] [--count COUNT]
//
// Prints how many cases there were. The exit status is 1 if the code and the rules differ. --short leaves out the most:
// for sanitizers. The seed is that of the cases by chance, and COUNT is how many there are.
//
// step_rules.h has D10 to D17 and D48, deal_rules.h D18, D19 and A6 to A8, balance_rules.h A9, A10 and D50.
//
// A case has a plan of up to three members with four items. Members have weights, zones, tags and caps. Items are
// pinned, moved or paused, need tags, and have loads. A round is open or over, an operator asks for something, loads
// come, a member leaves, joins or is too old for all that. See `dials`.
#include "cases/judge.h"

#include "cases/dials.h"

namespace {

using namespace step;

enum { ITEMS = 4 };

enum Life { ALIVE, GONE, ABSENT, NONE, LEAVING, STATIC, BACK, LIVES };
enum Event {
    NONE_COMES,
    LEAVES,  // member 0
    DRAINS,  // member 0
    WEIGHS,  // member 1
    EXPIRES, // member 2
    PINS,    // item 0 to member 1
    PINS_OTHER,
    UNPINS,
    MOVES,
    MOVES_TO_NEW, // item 0 to member 3
    UNMOVES,
    PAUSES,
    UNPAUSES,
    NEEDS,
    NEEDS_ALL,
    UNNEEDS,
    LIMITS,
    UNLIMITS,
    LOADS,
    OTHER_UNIT,
    EVENTS
};

// The dials of a member, and of an item, stand in threes, and in fours.
enum {
    LIFE,
    WEIGHT = LIFE + 3,
    ZONE = WEIGHT + 3,
    TAGS = ZONE + 3,
    CAP = TAGS + 3,
    OWNER = CAP + 3,
    PLACE = OWNER + ITEMS,
    PAUSED = PLACE + ITEMS,
    NEED = PAUSED + ITEMS,
    CLASS = NEED + ITEMS,
    REPORT = CLASS + ITEMS,
    GIVER = REPORT + ITEMS,
    HAS_LOADS = GIVER + ITEMS,
    MAX_MOVES,
    WISH_MOVES,
    IMBALANCE,
    MOVED,
    OVER,
    JOINS,
    OLDER,
    ALL_NEED,
    EVENT,
    DIALS
};

const std::vector<Dial> dials = {
    {"life0", LIVES}, {"life1", LIVES}, {"life2", LIVES}, {"weight0", 3},    {"weight1", 3},    {"weight2", 3},
    {"zone0", 3},     {"zone1", 3},     {"zone2", 3},     {"tags0", 4},      {"tags1", 4},      {"tags2", 4},
    {"cap0", 4},      {"cap1", 4},      {"cap2", 4},      {"owner0", 4},     {"owner1", 4},     {"owner2", 4},
    {"owner3", 4},    {"place0", 7},    {"place1", 7},    {"place2", 7},     {"place3", 7},     {"paused0", 5},
    {"paused1", 5},   {"paused2", 5},   {"paused3", 5},   {"need0", 3},      {"need1", 3},      {"need2", 3},
    {"need3", 3},     {"class0", 6},    {"class1", 6},    {"class2", 6},     {"class3", 6},     {"report0", 6},
    {"report1", 6},   {"report2", 6},   {"report3", 6},   {"giver0", 4},     {"giver1", 4},     {"giver2", 4},
    {"giver3", 4},    {"has_loads", 2}, {"max_moves", 3}, {"wish_moves", 4}, {"imbalance", 3},  {"moved", 4},
    {"over", 3},      {"joins", 3},     {"older", 3},     {"all_need", 3},   {"event", EVENTS},
};

const uint32_t WEIGHTS[] = {1000, 2000, 0};
const uint8_t CLASSES[] = {NO_LOAD, 100, 104, 109, 112, 0};

void put_member(step_plan &plan, const Dials &at, int i) {
    step_member &m = plan.members[i];
    uint8_t life = at[LIFE + i];
    m.is_static = life == ABSENT || life == STATIC || life == BACK;
    m.is_there = life != NONE;
    m.slot = static_cast<uint32_t>(i);
    m.weight = m.configured = WEIGHTS[at[WEIGHT + i]];
    if (!m.is_static) m.configured = 0;
    m.says_configured = m.is_static;
    m.zone = at[ZONE + i];
    m.tags = at[TAGS + i];
    m.cap = at[CAP + i];
    m.rejoin_delay_ms = m.is_static ? 30000 : 0;
    if (life == ABSENT || life == BACK) m.absent = 50;
    if (life == LEAVING) m.leaving = static_cast<uint8_t>(i + 1);
}

void come(step_plan &plan, step_party &party, int i) {
    const step_member &m = plan.members[i];
    step_node &n = party.nodes[i];
    n.is_there = true;
    n.member = static_cast<uint8_t>(i);
    n.set = party.set;
    n.weight = m.is_static ? m.configured : m.weight;
    n.zone = m.zone;
    n.tags = m.tags;
    n.cap = m.cap;
    n.rejoin_delay_ms = m.rejoin_delay_ms;
    n.czxid = 70 + i;
}

void put_item(step_plan &plan, const Dials &at, int i) {
    step_wishes &w = plan.wishes;
    uint8_t owner = at[OWNER + i], place = at[PLACE + i], paused = at[PAUSED + i];
    const step_member &m = plan.members[owner % 3];
    bool has_owner = owner < 3 && m.is_there && !m.leaving;
    plan.owners[i] = has_owner ? owner : NOBODY;
    if (place) w.place[i] = place > 3 ? STEP_MOVE : STEP_PIN;
    if (place) w.whom[i] = static_cast<uint8_t>((place - 1) % 3);
    w.paused[i] = paused > 0;
    if (paused) w.had[i] = paused < 4 ? static_cast<uint8_t>(paused - 1) : NOBODY;
    w.need[i] = at[NEED + i];
    if (!at[HAS_LOADS]) return;
    plan.loads.classes[i] = CLASSES[at[CLASS + i]];
    plan.loads.giver[i] = at[GIVER + i] ? static_cast<uint8_t>(at[GIVER + i] - 1) : NOBODY;
}

void wish(step_events &e, uint8_t kind, uint8_t item, uint8_t whom, bool undo) {
    e.wish = kind;
    e.item = item;
    e.whom = whom;
    e.undo = undo;
}

void put_event(step_events &e, const Dials &at) {
    switch (at[EVENT]) {
    case LEAVES: e.leaving = 0; break;
    case DRAINS: e.weighed = 0; break;
    case WEIGHS: e.weighed = 1, e.weight = 2000; break;
    case EXPIRES: e.expired = 2; break;
    case PINS: wish(e, STEP_PIN, 0, 1, false); break;
    case PINS_OTHER: wish(e, STEP_PIN, 1, 0, false); break;
    case UNPINS: wish(e, STEP_PIN, 0, 1, true); break;
    case MOVES: wish(e, STEP_MOVE, 0, 2, false); break;
    case MOVES_TO_NEW: wish(e, STEP_MOVE, 0, 3, false); break;
    case UNMOVES: wish(e, STEP_MOVE, 0, 2, true); break;
    case PAUSES: wish(e, STEP_PAUSE, 0, 0, false); break;
    case UNPAUSES: wish(e, STEP_PAUSE, 0, 0, true); break;
    case NEEDS: wish(e, STEP_NEED, 0, STEP_TAG_T, false); break;
    case NEEDS_ALL: wish(e, STEP_NEED, NOBODY, STEP_TAG_U, false); break;
    case UNNEEDS: wish(e, STEP_NEED, 0, 0, true); break;
    case LIMITS: wish(e, STEP_OPTION, 0, 1, false); break;
    case UNLIMITS: wish(e, STEP_OPTION, 0, 0, true); break;
    case LOADS:
    case OTHER_UNIT:
        e.loads.are_there = true;
        e.loads.unit = at[EVENT] == OTHER_UNIT;
        for (int i = 0; i < STEP_ITEMS; i++) e.loads.classes[i] = i < ITEMS ? CLASSES[at[REPORT + i]] : NO_LOAD;
        break;
    default: break;
    }
}

void act(const Dials &at) {
    step_plan plan = {};
    step_party party = {};
    step_events e = NO_EVENTS;
    give_nothing(plan, party, ITEMS);
    for (int i = 0; i < STEP_IN_PLAN; i++) {
        uint8_t life = at[LIFE + i];
        put_member(plan, at, i);
        if (life != GONE && life != ABSENT && life != NONE) come(plan, party, i);
        plan.loads.permille[i] = 1500;
    }
    plan.loads.are_there = at[HAS_LOADS];
    for (int i = 0; i < ITEMS; i++) put_item(plan, at, i);
    step_member &fresh = plan.members[3];
    if (at[JOINS]) {
        fresh.weight = 1000;
        fresh.tags = at[JOINS] == 2 ? STEP_TAG_T : 0;
        fresh.zone = at[JOINS] == 2;
        come(plan, party, 3);
        fresh = {};
    }
    plan.wishes.all_need = at[ALL_NEED];
    plan.wishes.has_max_moves = at[WISH_MOVES];
    plan.wishes.max_moves = at[WISH_MOVES] ? at[WISH_MOVES] - 1u : 0;
    plan.wishes.imbalance_percent = at[IMBALANCE] ? at[IMBALANCE] * 30u - 20 : 0;
    plan.wishes.are_there = Ruled::needs_balance(plan);
    plan.max_moves = at[MAX_MOVES];
    plan.moved = static_cast<uint8_t>(((2u << at[MOVED]) - 2) & 13);
    e.round_over = at[OVER] == 1;
    e.other_round_over = at[OVER] == 2;
    party.nodes[1].is_older = party.nodes[1].is_there && at[OLDER] == 1;
    plan.is_balanced = Ruled::needs_balance(plan) && at[OLDER] != 1 && at[OLDER] != 2; // 2: an older one has gone
    if (plan.is_balanced && plan.wishes.has_max_moves) plan.max_moves = plan.wishes.max_moves;
    if (!(plan.is_balanced && plan.loads.are_there) && !plan.max_moves) plan.moved = 0; // D19, D50
    put_event(e, at);
    ask(plan, party, e);
}

// Pools on which each pair of dials is turned. The first has nothing that moves.
Dials pool(std::vector<uint8_t> owners, std::vector<std::pair<int, uint8_t>> others) {
    Dials at(DIALS, 0);
    for (int i = 0; i < ITEMS; i++) at[static_cast<size_t>(OWNER + i)] = owners[static_cast<size_t>(i)];
    for (const auto &other : others) at[static_cast<size_t>(other.first)] = other.second;
    return at;
}

std::vector<size_t> among(std::initializer_list<int> first_of, size_t many) {
    std::vector<size_t> all;
    for (int first : first_of)
        for (size_t i = 0; i < many; i++) all.push_back(static_cast<size_t>(first) + i);
    return all;
}

std::vector<size_t> operator+(std::vector<size_t> a, const std::vector<size_t> &b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

void turn_all(const Turner &turner, bool is_short) {
    const Dials even = pool({0, 1, 2, 0}, {}), none = pool({3, 3, 3, 3}, {}), one = pool({0, 0, 0, 1}, {});
    const Dials loaded =
        pool({0, 0, 1, 2}, {{HAS_LOADS, 1}, {CLASS, 1}, {CLASS + 1, 2}, {CLASS + 2, 1}, {CLASS + 3, 1}});
    const Dials tagged = pool({0, 1, 2, 1}, {{TAGS, 1}, {TAGS + 1, 1}, {NEED, 1}, {NEED + 1, 1}, {CAP, 2}});
    turner.turn_pairs(loaded);
    turner.turn_pairs(tagged);
    if (is_short) return;
    turner.turn_pairs(even);
    turner.turn_pairs(one);
    turner.turn_pairs(none);
    turner.turn(even, among({ZONE, WEIGHT}, 3) + among({OWNER}, ITEMS) + among({MAX_MOVES}, 1), 7);
    turner.turn(loaded, among({CLASS, OWNER}, ITEMS), 7);
    turner.turn(loaded, among({OWNER, CLASS}, ITEMS) + among({WEIGHT}, 3) + among({MAX_MOVES}, 1), 1009);
    turner.turn(tagged, among({TAGS, CAP}, 3) + among({OWNER}, ITEMS), 23);
    turner.turn(tagged, among({NEED, OWNER}, ITEMS) + among({CAP}, 3), 29);
    turner.turn(even, among({PLACE, OWNER}, ITEMS), 31);
}

} // namespace

int main(int count, char **arguments) {
    TurnOptions options;
    if (!options.parse(count, arguments)) return 2;
    const Turner turner(dials, act);
    step_begin();
    turn_all(turner, options.is_short);
    printf("%zu cases without chance; %lu from the seed %lu\n", cases, options.by_chance(), options.seed);
    turner.turn_by_chance(pool({0, 1, 2, 0}, {}), options.seed, options.by_chance());
    return finish();
}
