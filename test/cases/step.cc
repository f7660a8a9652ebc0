// The step from plan to plan, held against its rules, in all small cases. SPDX-License-Identifier: Apache-2.0
//
//   unit_step_cases [--short]
//
// Prints how many cases there were. The exit status is 1 if the code and the rules differ. --short leaves out the most,
// those of all weights: for sanitizers.
//
// docs/protocol.md, D10 to D20, once more and plainly: which members the next plan has (D11 to D15), and which deals are
// good (D18, D19, A6 to A8). A deal is judged, and not computed: which of several items moves is the code's own choice.
//
// A case has a plan of up to three members with three items. A member is dynamic or static, there, gone, absent, back,
// leaving, or new, and has a weight of 0, 1 or 2. Two more may join. An absence may have taken too long, a weight be set,
// a node leave, a round be open or over. Members are alike but for that, so they stand in one order, and so do owners.
//
// Left out: zones, options and sets (D16, D17), wishes and loads (D48 to D50), several nodes of one identifier (D12).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "cases/step_code.h"

namespace {

// ---- the rules ----

bool takes_part(const step_member &m) {
    return m.is_there && !m.leaves && !m.absent;
}

// D12 to D15: what becomes of a member of the plan. Returns whether that is something to write.
bool follow(step_member &m, bool lives, uint32_t says, bool expired) {
    if (!m.is_there) return false;
    const step_member was = m;
    if (!lives && (m.leaves || !m.is_static || !m.rejoin_delay_ms || (m.absent && expired))) {
        m = {};
        m.is_static = was.is_static;
        return !was.leaves; // D14: that a marked one goes is nothing to write
    }
    if (!lives) {
        if (!m.absent) m.absent = STEP_PZXID;
        return !was.absent;
    }
    if (m.leaves && m.by_other_node) {
        m.leaves = m.by_other_node = false;
        m.weight = says;
    }
    m.absent = 0;
    if (m.is_static && m.configured != says) m.weight = says;
    if (m.is_static) m.configured = says;
    return was.leaves != m.leaves || was.absent || was.weight != m.weight;
}

// D11: new members get the lowest free slots, those that are not static first.
void join(step_plan &p, int i, uint32_t says) {
    step_member &m = p.members[i];
    bool used[STEP_MEMBERS + 1] = {};
    for (const step_member &other : p.members)
        if (other.is_there) used[other.slot] = true;
    bool is_static = m.is_static;
    int64_t delay = m.rejoin_delay_ms;
    m = {};
    m.is_there = true;
    m.is_static = is_static;
    m.rejoin_delay_ms = delay;
    m.weight = says;
    m.configured = is_static ? says : 0;
    while (used[m.slot]) m.slot++;
}

// D13, D14: a member that is gone or leaves owns nothing.
void orphan(step_plan &p) {
    for (uint8_t &owner : p.owners) {
        if (owner == STEP_NOBODY) continue;
        if (!p.members[owner].is_there || p.members[owner].leaves) owner = STEP_NOBODY;
    }
}

// The members of the next plan, and who owns what before it is dealt. Returns whether there is something to write.
bool members_of(step_plan &p, const step_party &party, const step_events &e) {
    bool changed = false;
    std::vector<int> fresh;
    for (int i = 0; i < STEP_MEMBERS; i++) {
        bool was_there = p.members[i].is_there;
        changed = follow(p.members[i], party.lives[i], party.says_weight[i], e.expired == i) || changed;
        if (party.lives[i] && !was_there) fresh.push_back(i);
    }
    orphan(p); // before a new member has the slot
    std::stable_sort(fresh.begin(), fresh.end(),
                     [&p](int a, int b) { return p.members[a].is_static < p.members[b].is_static; });
    for (int i : fresh) join(p, i, party.says_weight[i]);
    changed = changed || !fresh.empty();
    if (e.weighed >= 0 && p.members[e.weighed].is_there && p.members[e.weighed].weight != e.weight) {
        p.members[e.weighed].weight = e.weight;
        changed = true;
    }
    if (e.leaving >= 0 && party.lives[e.leaving] && !p.members[e.leaving].leaves) {
        p.members[e.leaving].leaves = true;
        changed = true;
    }
    orphan(p);
    return changed;
}

struct Shares {
    unsigned have[STEP_MEMBERS], items, total; // total: of weights
    bool deals[STEP_MEMBERS];

    Shares(const step_plan &p, bool absent_too) : have{}, items(0), total(0), deals{} {
        for (int i = 0; i < STEP_MEMBERS; i++) {
            const step_member &m = p.members[i];
            deals[i] = takes_part(m) || (absent_too && m.is_there && !m.leaves);
            if (deals[i]) total += m.weight / 1000;
        }
        for (uint8_t owner : p.owners) {
            if (owner != STEP_NOBODY && !deals[owner]) continue; // D18: it belongs to one who is absent
            items++;
            if (owner != STEP_NOBODY) have[owner]++;
        }
    }
    unsigned least(const step_plan &p, int i) const {
        return deals[i] ? items * (p.members[i].weight / 1000) / total : 0;
    }
    bool may_have_more(const step_plan &p, int i) const {
        return deals[i] && items * (p.members[i].weight / 1000) % total > 0;
    }
    // A6: returns whether each has its share.
    bool are_kept(const step_plan &p) const {
        unsigned sum = 0;
        for (int i = 0; i < STEP_MEMBERS; i++) {
            if (have[i] < least(p, i) || have[i] > least(p, i) + may_have_more(p, i)) return false;
            sum += have[i];
        }
        return sum == items;
    }
    // A7: returns how few items can leave members, so that each gets its share.
    unsigned least_moves(const step_plan &p) const {
        unsigned best = STEP_ITEMS + 1;
        for (unsigned more = 0; more < 1u << STEP_MEMBERS; more++) {
            unsigned sum = 0, moves = 0;
            bool good = true;
            for (int i = 0; i < STEP_MEMBERS; i++) {
                unsigned one = more >> i & 1, share = least(p, i) + one;
                good = good && (!one || may_have_more(p, i));
                sum += share;
                moves += have[i] > share ? have[i] - share : 0;
            }
            if (good && sum == items) best = std::min(best, moves);
        }
        return best;
    }
};

unsigned orphans_of(const step_plan &p) {
    return static_cast<unsigned>(std::count(p.owners, p.owners + STEP_ITEMS, STEP_NOBODY));
}

// D19: the items that are still on their way.
uint8_t still_moved(const step_plan &p, const step_events &e) {
    unsigned moved = p.max_moves && !e.round_over ? p.moved : 0;
    for (int i = 0; i < STEP_ITEMS; i++)
        if (p.owners[i] == STEP_NOBODY) moved &= ~(1u << i);
    return static_cast<uint8_t>(moved);
}

// How many items are to be taken from members by the deal.
unsigned moves_due(const step_plan &p, bool is_open, bool *rests) {
    bool any_absent = false, any = false;
    for (const step_member &m : p.members)
        any_absent = any_absent || (m.is_there && m.absent), any = any || takes_part(m);
    *rests = !any;
    if (!any) return 0;
    const Shares all(p, true), here(p, false);
    if (any_absent && !orphans_of(p) && (!all.total || all.are_kept(p))) *rests = true; // D18
    if (*rests || is_open || !here.total) return 0;
    unsigned least = here.least_moves(p);
    return p.max_moves ? std::min(least, p.max_moves) : least;
}

// Returns what is wrong with the owners of the next plan, which has the members that it should; or NULL.
const char *judge_deal(const step_plan &dealt, const step_plan &next, uint8_t moved) {
    bool rests;
    unsigned due = moves_due(dealt, moved != 0, &rests), moves = 0;
    unsigned listed = moved;
    const Shares before(dealt, false), after(next, false);
    for (int i = 0; i < STEP_ITEMS; i++) {
        uint8_t was = dealt.owners[i], is = next.owners[i];
        if (was == is && (was != STEP_NOBODY || rests)) continue;
        if (rests) return "an item moves where nothing is dealt";
        if (is == STEP_NOBODY) return "an item has no owner";
        if (!takes_part(next.members[is])) return "an item goes to one who takes no part";
        if (before.total && !next.members[is].weight) return "an item goes to one who is drained";
        if (was == STEP_NOBODY) continue;
        if (dealt.members[was].absent) return "an item of one who is absent moves";
        moves++;
        if (next.max_moves && !moved) listed |= 1u << i;
        bool others_first = false;
        for (int m = 0; m < STEP_MEMBERS; m++)
            others_first = others_first || (takes_part(next.members[m]) && !next.members[m].weight && after.have[m]);
        if (dealt.members[was].weight && others_first) return "an item moves, and those of drained members stay";
    }
    if (moves != due) return "not as few items move as could";
    if (next.moved != listed) return "other items are listed as moved";
    bool whole = !rests && !moved && before.total && (!next.max_moves || before.least_moves(dealt) <= next.max_moves);
    return whole && !after.are_kept(next) ? "a share is not kept" : nullptr;
}

bool same(const step_member &a, const step_member &b) {
    if (a.is_there != b.is_there || !a.is_there) return a.is_there == b.is_there;
    return a.slot == b.slot && a.is_static == b.is_static && a.weight == b.weight && a.absent == b.absent &&
           a.leaves == b.leaves && a.by_other_node == b.by_other_node && a.configured == b.configured &&
           a.rejoin_delay_ms == b.rejoin_delay_ms;
}

// Returns what is wrong with the code's answer, or NULL.
const char *judge(const step_plan &plan, const step_party &party, const step_events &e, bool is_next,
                  const step_plan &next) {
    step_plan dealt = plan;
    bool changed = members_of(dealt, party, e), rests;
    uint8_t moved = still_moved(dealt, e);
    unsigned due = moves_due(dealt, moved != 0, &rests);
    bool deals =
        due || (!rests && orphans_of(dealt)) || !std::equal(plan.owners, plan.owners + STEP_ITEMS, dealt.owners);
    if (is_next != (changed || deals))
        return is_next ? "there is nothing to write" : "there is something to write"; // D20
    if (!is_next) return nullptr;
    for (int i = 0; i < STEP_MEMBERS; i++)
        if (!same(dealt.members[i], next.members[i])) return "a member is not as it should be";
    return judge_deal(dealt, next, moved);
}

// ---- the cases ----

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

size_t cases, plans, wrong;

void put(step_plan &plan, step_party &party, unsigned i, Kind kind) {
    step_member &m = plan.members[i];
    Life life = kind.life;
    m = {};
    m.is_there = life != NONE;
    m.slot = i;
    m.is_static = life != ALIVE && life != GONE && life != LEAVING && life != LEFT;
    // One that was drained comes back drained (D15); one that had left comes back new (D14).
    uint32_t configured = life == BACK && kind.weight == 0 ? 1000 : kind.weight;
    m.weight = life == RETURNED ? 2000 : kind.weight;
    m.configured = m.is_static ? configured : 0;
    m.absent = life == ABSENT || life == BACK ? 50 : 0;
    m.rejoin_delay_ms = m.is_static && life != SHORT ? 30000 : 0;
    m.leaves = life == RETURNED || life == LEAVING || life == STATIC_LEAVING || life == LEFT;
    m.by_other_node = life == RETURNED;
    party.lives[i] =
        life != STATIC_GONE && life != ABSENT && life != GONE && life != NONE && life != LEFT && life != SHORT;
    party.says_weight[i] = life == RECONFIGURED ? 2000 : configured;
}

void ask(const step_plan &plan, const step_party &party, const step_events &e) {
    step_plan next = {};
    bool is_next = step_of(&plan, &party, &e, &next);
    const char *what = judge(plan, party, e, is_next, next);
    cases++;
    plans += is_next;
    if (!what || wrong++ >= 10) return;
    printf("%s\n    max_moves %u, moved %u, expired %d, weight of %d, leaving %d, round over %d\n", what,
           plan.max_moves, plan.moved, e.expired, e.weighed, e.leaving, e.round_over);
    for (int i = 0; i < STEP_MEMBERS; i++) {
        const step_member *both[] = {&plan.members[i], &next.members[i]};
        for (const step_member *m : both)
            printf("    %d: %s slot %u weight %u absent %d leaves %d%s", i, m->is_there ? "there" : "-", m->slot,
                   m->weight, static_cast<int>(m->absent), m->leaves, m == &next.members[i] ? "\n" : "  ->");
    }
    for (int i = 0; i < STEP_ITEMS; i++) printf("    item %d: %d -> %d\n", i, plan.owners[i], next.owners[i]);
}

// Calls act(plan, party) for all pools of these kinds of members, and all owners.
template <class Act> void for_all_pools(const std::vector<Kind> &kinds, Act act) {
    for (size_t a = 0; a < kinds.size(); a++)
        for (size_t b = a; b < kinds.size(); b++)
            for (size_t c = b; c < kinds.size(); c++) {
                step_plan plan = {};
                step_party party = {};
                put(plan, party, 0, kinds[a]), put(plan, party, 1, kinds[b]), put(plan, party, 2, kinds[c]);
                plan.members[4].is_static = true;
                plan.members[4].rejoin_delay_ms = 30000;
                for (unsigned n = 0; n < 64; n++) {
                    const unsigned owners[] = {n % 4, n / 4 % 4, n / 16}, nobody = STEP_NOBODY;
                    if (owners[0] > owners[1] || owners[1] > owners[2]) continue;
                    bool good = true;
                    for (int i = 0; i < STEP_ITEMS; i++) {
                        bool has = owners[i] < STEP_IN_PLAN;
                        plan.owners[i] = static_cast<uint8_t>(has ? owners[i] : nobody);
                        good =
                            good && (nobody || (plan.members[owners[i]].is_there && !plan.members[owners[i]].leaves));
                    }
                    if (good) act(plan, party);
                }
            }
}

const step_events NO_EVENTS = {-1, -1, -1, 0, false};

void join_two(step_party &party, bool join) {
    party.lives[3] = party.lives[4] = join;
    party.says_weight[3] = party.says_weight[4] = 1000;
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
            if (party.lives[i]) ask(plan, party, e);
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
    step_end();
    printf("%zu cases, %zu new plans\n", cases, plans);
    if (wrong) printf("%zu differ\n", wrong);
    return wrong || !plans;
}
