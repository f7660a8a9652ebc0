// The step from plan to plan, held against its rules, in all small cases. SPDX-License-Identifier: Apache-2.0
//
//   unit_step_cases [--short]
//
// Prints how many cases there were. The exit status is 1 if the code and the rules differ. --short leaves out the most,
// those of all weights: for sanitizers.
//
// step_rules.h says which members the next plan has (D11 to D15), deal_rules.h which deals are good (D18, D19, A6 to
// A8). unit.deal_cases has zones, wishes and loads, unit.party_cases options, sets, and several nodes of one identifier.
//
// A case has a plan of up to three members with three items. A member is dynamic or static, there, gone, absent, back,
// leaving, or new, and has a weight of 0, 1 or 2. Two more may join. An absence may have taken too long, a weight be set,
// a node leave, a round be open or over. Members are alike but for that, so they stand in one order, and so do owners.
#include "cases/judge.h"

namespace {

using namespace step;

enum { ITEMS = 3 };

enum Life { // of a member of the plan; those up to BACK also with other weights
    ALIVE,
    STATIC_ALIVE,
    STATIC_GONE,
    ABSENT,
    BACK,
    GONE,
    NONE,
    RECONFIGURED,
    RETURNED, // it had left, and another node of it is there
    LEAVING,
    STATIC_LEAVING,
    LEFT,
    SHORT, // static, gone, and not waited for
    LIVES
};

struct Kind {
    Life life;
    uint32_t weight;
};

void come(step_party &party, unsigned i, uint32_t weight, int64_t rejoin_delay_ms) {
    step_node &n = party.nodes[i];
    n = {};
    n.is_there = true;
    n.member = static_cast<uint8_t>(i);
    n.set = party.set;
    n.weight = weight;
    n.rejoin_delay_ms = rejoin_delay_ms;
    n.czxid = 70 + i;
}

void put(step_plan &plan, step_party &party, unsigned i, Kind kind) {
    step_member &m = plan.members[i];
    Life life = kind.life;
    m = {};
    m.is_there = life != NONE;
    m.slot = i;
    m.is_static = life != ALIVE && life != GONE && life != LEAVING && life != LEFT;
    // One that was drained comes back drained (D15); one that had left comes back new (D14).
    uint32_t configured = life == BACK && kind.weight == 0 ? 1000 : kind.weight;
    bool lives = life != STATIC_GONE && life != ABSENT && life != GONE && life != NONE && life != LEFT && life != SHORT;
    m.weight = life == RETURNED ? 2000 : kind.weight;
    m.says_configured = m.is_static;
    m.configured = m.is_static ? configured : 0;
    m.absent = life == ABSENT || life == BACK ? 50 : 0;
    m.rejoin_delay_ms = m.is_static && life != SHORT ? 30000 : 0;
    if (life == RETURNED) m.leaving = STEP_GONE_NODE;
    if (life == LEAVING || life == STATIC_LEAVING || life == LEFT) m.leaving = static_cast<uint8_t>(i + 1);
    if (lives) come(party, i, life == RECONFIGURED ? 2000 : configured, m.rejoin_delay_ms);
}

// Calls act(plan, party) for all pools of these kinds of members, and all owners.
template <class Act> void for_all_pools(const std::vector<Kind> &kinds, Act act) {
    for (size_t a = 0; a < kinds.size(); a++)
        for (size_t b = a; b < kinds.size(); b++)
            for (size_t c = b; c < kinds.size(); c++) {
                step_plan plan = {};
                step_party party = {};
                give_nothing(plan, party, ITEMS);
                put(plan, party, 0, kinds[a]), put(plan, party, 1, kinds[b]), put(plan, party, 2, kinds[c]);
                plan.members[4].is_static = true;
                for (unsigned n = 0; n < 64; n++) {
                    const unsigned owners[] = {n % 4, n / 4 % 4, n / 16};
                    if (owners[0] > owners[1] || owners[1] > owners[2]) continue;
                    bool good = true;
                    for (int i = 0; i < ITEMS; i++) {
                        bool has = owners[i] < STEP_IN_PLAN;
                        const step_member &m = plan.members[owners[i]];
                        plan.owners[i] = has ? static_cast<uint8_t>(owners[i]) : NOBODY;
                        good = good && (!has || (m.is_there && !m.leaving));
                    }
                    if (good) act(plan, party);
                }
            }
}

void join_two(step_party &party, bool join) {
    party.nodes[3] = party.nodes[4] = {};
    if (join) come(party, 3, 1000, 0), come(party, 4, 1000, 30000);
}

void ask_weights() {
    std::vector<Kind> kinds;
    for (int life = 0; life < LIVES; life++)
        for (uint32_t weight : {1000u, 0u, 2000u})
            if (life <= BACK || weight == 1000) kinds.push_back({static_cast<Life>(life), weight});
    for_all_pools(kinds, [](step_plan plan, step_party party) {
        for (bool join : {false, true}) {
            join_two(party, join);
            for (plan.max_moves = 0; plan.max_moves < 2; plan.max_moves++) ask(plan, party, NO_EVENTS);
        }
    });
}

void ask_events() {
    std::vector<Kind> kinds;
    for (int life = 0; life < LIVES; life++) kinds.push_back({static_cast<Life>(life), 1000});
    for_all_pools(kinds, [](const step_plan &plan, step_party party) {
        join_two(party, true);
        for (int i = 0; i < STEP_MEMBERS; i++) {
            step_events e = NO_EVENTS;
            e.leaving = i;
            if (party.nodes[i].is_there) ask(plan, party, e);
            e.leaving = -1;
            e.weighed = i;
            for (uint32_t weight : {0u, 2000u}) e.weight = weight, ask(plan, party, e);
            e = NO_EVENTS;
            e.expired = i;
            if (plan.members[i].absent) ask(plan, party, e);
        }
    });
}

void ask_rounds() {
    const std::vector<Kind> kinds = {{ALIVE, 1000}, {ALIVE, 0},   {ABSENT, 1000},
                                     {BACK, 1000},  {GONE, 1000}, {NONE, 1000}};
    for_all_pools(kinds, [](step_plan plan, step_party party) {
        for (unsigned n = 0; n < 8 * 2 * 3 * 2; n++) {
            step_events e = NO_EVENTS;
            plan.moved = n % 8;
            e.round_over = n / 8 % 2;
            plan.max_moves = n / 16 % 3;
            join_two(party, n / 48);
            if (plan.max_moves || !plan.moved) ask(plan, party, e);
        }
    });
}

} // namespace

int main(int count, char **arguments) {
    bool is_short = count > 1 && !strcmp(arguments[1], "--short");
    step_begin();
    if (!is_short) ask_weights();
    ask_events();
    ask_rounds();
    return finish();
}
