// The rules of the plan's step, but for the deal: D10 to D17, D48. SPDX-License-Identifier: Apache-2.0
//
// They stand here once more and plainly, as docs/protocol.md has them. rule() says which members, options, items and
// wishes the next plan has, who owns what before it is dealt, and why there is something to write.
#ifndef DV_CASES_STEP_RULES_H
#define DV_CASES_STEP_RULES_H

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cases/step_code.h"

namespace step {

const uint8_t NOBODY = STEP_NOBODY, NO_LOAD = STEP_NO_LOAD;

// In the order of D3.
enum Reason { CREATE, SET, LOSS, LEAVE, JOIN, DRAIN, WEIGHT, OPERATOR, OPTIONS, ABSENCE, LOAD, ROUND };

inline bool takes_part(const step_member &m) {
    return m.is_there && !m.leaving && !m.absent;
}

inline bool has_item(uint8_t set, int i) {
    return set >> i & 1;
}

// What becomes of a plan before its items are dealt.
class Ruled {
  public:
    step_plan plan;
    unsigned reasons = 0;       // a bit for each
    bool held[STEP_ITEMS] = {}; // out of the deal's hands: pinned, moved or paused
    bool wish_is_late = false;  // D48
    unsigned asks = 0;          // nodes to be read first
    bool is_left_alone = false; // D10
    const step_plan &before;

    Ruled(const step_plan &from, const step_party &there, const step_events &what)
        : plan(from), before(from), party(there), events(what) {
        is_left_alone = from.is_there && from.pzxid > party.pzxid && (!from.mzxid || from.pzxid < from.mzxid);
        if (!from.is_there || from.is_empty) begin();
        if (is_left_alone || (asks = nodes_to_read())) return;
        change_members();
        if (is_first()) take_first_owners();
        set_weight();
        mark();
        take_wish();
        orphan();
        choose_algorithm();
        choose_options();
        choose_set();
        if (plan.is_balanced) place();
    }
    void note(Reason reason) {
        reasons |= 1u << reason;
    }
    bool has(Reason reason) const {
        return reasons >> reason & 1;
    }
    // D48: returns whether the plan has loads, a wish, a tag or a cap.
    static bool needs_balance(const step_plan &p) {
        const step_wishes &w = p.wishes;
        bool needs = p.loads.are_there || w.all_need || w.has_max_moves || w.imbalance_percent;
        for (int i = 0; i < STEP_ITEMS; i++) needs = needs || w.place[i] || w.paused[i] || w.need[i];
        for (const step_member &m : p.members) needs = needs || (m.is_there && (m.cap || m.tags));
        return needs;
    }

    // D12: returns the node that a member is, or -1.
    int winner(int member) const {
        int found = -1;
        for (int n = 0; n < STEP_NODES; n++) {
            const step_node &node = party.nodes[n];
            if (!counts(node) || node.member != member) continue;
            if (found < 0) {
                found = n;
                continue;
            }
            const step_node &best = party.nodes[found];
            int64_t a = start_of(node), b = start_of(best);
            if (a != b ? a > b : node.czxid >= best.czxid) found = n; // of equal ones the greater name
        }
        return found;
    }

  private:
    const step_party &party;
    const step_events &events;

    bool is_first() const {
        return !before.is_there || before.is_empty;
    }
    static bool counts(const step_node &n) {
        return n.is_there && !n.is_ghost;
    }

    // ---- D10 ----

    // The first plan takes its writer's items, tag and options, and nothing of a plan that is empty.
    void begin() {
        bool was_static[STEP_MEMBERS];
        for (int i = 0; i < STEP_MEMBERS; i++) was_static[i] = plan.members[i].is_static;
        plan = {};
        for (int i = 0; i < STEP_MEMBERS; i++) plan.members[i].is_static = was_static[i];
        for (int i = 0; i < STEP_ITEMS; i++) {
            plan.owners[i] = plan.loads.giver[i] = NOBODY;
            plan.loads.classes[i] = NO_LOAD;
        }
        plan.set = plan.tag = party.set;
        plan.max_moves = party.max_moves;
        if (party.set) note(CREATE);
        else is_left_alone = true; // an operator begins no plan (D51)
    }
    void take_first_owners() {
        for (int i = 0; i < STEP_ITEMS; i++) {
            uint8_t node = party.owners[i];
            if (!has_item(plan.set, i) || node == NOBODY || !counts(party.nodes[node])) continue;
            uint8_t member = party.nodes[node].member;
            if (winner(member) == node) plan.owners[i] = member;
        }
    }
    unsigned nodes_to_read() const {
        unsigned nodes = 0;
        for (int n = 0; n < STEP_NODES; n++) {
            const step_node &node = party.nodes[n];
            if (!counts(node)) continue;
            const step_member &m = plan.members[node.member];
            bool is_known_member = m.is_there && !m.is_static;
            if (node.is_unread && !is_known_member) nodes |= 1u << n;
            int namesakes = 0;
            for (const step_node &other : party.nodes)
                namesakes += counts(other) && !other.is_unread && other.member == node.member;
            if (m.is_static && !node.is_unread && namesakes > 1 && !node.czxid) nodes |= 1u << n;
        }
        return nodes | nodes_to_date();
    }

    // ---- D11 to D15 ----

    static int64_t start_of(const step_node &n) {
        return n.first_czxid > 0 && n.first_czxid < n.czxid ? n.first_czxid : n.czxid;
    }
    // D13, D14: its node has gone.
    void miss(int i) {
        step_member &m = plan.members[i];
        bool waits = m.is_static && m.rejoin_delay_ms && !m.leaving && !(m.absent && events.expired == i);
        if (!m.leaving && (!waits || !m.absent)) note(waits ? ABSENCE : LOSS);
        if (waits && !m.absent) m.absent = party.pzxid;
        if (waits) return;
        bool is_static = m.is_static;
        m = {};
        m.is_static = is_static;
    }
    // D12, D14, D15: what the node of a static member says.
    void follow(int i, int node) {
        step_member &m = plan.members[i];
        const step_node &says = party.nodes[node];
        if (m.leaving && m.leaving != node + 1) {
            m.leaving = 0;
            m.weight = says.weight;
            note(JOIN);
        }
        if (m.absent) note(ABSENCE);
        m.absent = 0;
        if (!m.is_static) return;
        if (!says.weight_unknown) {
            if (m.says_configured && m.configured != says.weight) {
                m.weight = says.weight;
                note(says.weight ? WEIGHT : DRAIN);
            }
            m.says_configured = true;
            m.configured = says.weight;
        }
        bool same = m.zone == says.zone && m.tags == says.tags && m.cap == says.cap;
        if (!same || m.rejoin_delay_ms != says.rejoin_delay_ms) note(OPTIONS);
        m.zone = says.zone;
        m.tags = says.tags;
        m.cap = says.cap;
        m.rejoin_delay_ms = says.rejoin_delay_ms;
    }
    // D11: new members get the lowest free slots.
    void join(int i, int node) {
        const step_node &says = party.nodes[node];
        bool used[STEP_MEMBERS + 1] = {};
        for (const step_member &other : plan.members)
            if (other.is_there) used[other.slot] = true;
        step_member m = {};
        m.is_there = true;
        m.is_static = plan.members[i].is_static;
        while (used[m.slot]) m.slot++;
        m.weight = says.weight;
        m.says_configured = m.is_static && !says.weight_unknown;
        m.configured = m.says_configured ? says.weight : 0;
        m.zone = says.zone;
        m.tags = says.tags;
        m.cap = says.cap;
        m.rejoin_delay_ms = m.is_static ? says.rejoin_delay_ms : 0;
        plan.members[i] = m;
        note(JOIN);
    }
    void change_members() {
        std::vector<int> fresh;
        for (int i = 0; i < STEP_MEMBERS; i++) {
            int node = winner(i);
            bool was_there = plan.members[i].is_there;
            if (was_there && node < 0) miss(i);
            if (was_there && node >= 0) follow(i, node);
            if (!was_there && node >= 0) fresh.push_back(i);
        }
        orphan(); // before a new member has the slot
        std::stable_sort(fresh.begin(), fresh.end(),
                         [this](int a, int b) { return plan.members[a].is_static < plan.members[b].is_static; });
        for (int i : fresh) join(i, winner(i));
    }
    // D13, D14: a member that is gone or leaves owns nothing.
    void orphan() {
        for (uint8_t &owner : plan.owners) {
            if (owner == NOBODY) continue;
            if (!plan.members[owner].is_there || plan.members[owner].leaving) owner = NOBODY;
        }
    }
    void set_weight() {
        if (events.weighed < 0) return;
        step_member &m = plan.members[events.weighed];
        if (!m.is_there || m.weight == events.weight) return;
        m.weight = events.weight;
        note(events.weight ? WEIGHT : DRAIN);
    }
    void mark() {
        if (events.leaving < 0 || !counts(party.nodes[events.leaving])) return;
        int i = party.nodes[events.leaving].member;
        if (winner(i) != events.leaving || plan.members[i].leaving == events.leaving + 1) return;
        plan.members[i].leaving = static_cast<uint8_t>(events.leaving + 1);
        note(LEAVE);
    }

    // ---- D48: what an operator asks for ----

    bool may_be_moved_to(int i) const {
        return plan.members[i].is_there && !plan.members[i].leaving;
    }
    void take_wish() {
        step_wishes &w = plan.wishes;
        bool changed = events.wish && change_wish();
        w.are_there = w.are_there || changed;
        for (int i = 0; i < STEP_ITEMS; i++) {
            if (w.place[i] != STEP_MOVE || may_be_moved_to(w.whom[i])) continue;
            w.place[i] = w.whom[i] = 0;
            plan.tells = true;
            changed = true;
        }
        if (changed) note(OPERATOR);
    }
    template <class Value> static bool set_to(Value &value, Value to) {
        bool differs = value != to;
        value = to;
        return differs;
    }
    bool change_place(uint8_t i) {
        step_wishes &w = plan.wishes;
        if (events.undo && w.place[i] != events.wish) return false;
        if (!events.undo && events.wish == STEP_MOVE && !may_be_moved_to(events.whom)) {
            wish_is_late = true;
            return false;
        }
        uint8_t to = events.wish == STEP_PIN && events.whom == 3 ? 0 : events.whom; // they have one identifier
        bool kind = set_to(w.place[i], events.undo ? uint8_t{0} : events.wish);
        bool whom = set_to(w.whom[i], events.undo ? uint8_t{0} : to);
        return kind || whom;
    }
    bool change_pause(uint8_t i) {
        step_wishes &w = plan.wishes;
        if (w.paused[i] == !events.undo) return false;
        bool is_dealt = has_item(plan.set, i);
        if (!events.undo) {
            w.had[i] = is_dealt ? plan.owners[i] : NOBODY;
        } else if (w.had[i] != NOBODY && is_dealt && plan.owners[i] == NOBODY) {
            const step_member &had = plan.members[w.had[i]];
            if (takes_part(had) && had.weight) plan.owners[i] = w.had[i];
        }
        if (events.undo) w.had[i] = 0;
        w.paused[i] = !events.undo;
        return true;
    }
    bool change_wish() {
        step_wishes &w = plan.wishes;
        uint8_t tag = events.undo ? 0 : events.whom;
        if (events.wish == STEP_PAUSE) return change_pause(events.item);
        if (events.wish == STEP_NEED) return set_to(events.item == NOBODY ? w.all_need : w.need[events.item], tag);
        if (events.wish != STEP_OPTION) return change_place(events.item);
        bool is_other = set_to(w.max_moves, events.undo ? 0u : events.whom);
        return set_to(w.has_max_moves, !events.undo) || is_other;
    }
    void choose_algorithm() {
        bool can = true, loads_come = events.loads.are_there;
        for (const step_node &n : party.nodes) can = can && (!counts(n) || !n.is_older);
        bool balanced = can && (loads_come || needs_balance(plan));
        if (set_to(plan.is_balanced, balanced) && !loads_come) note(OPTIONS);
    }
    // Pins, moves and pauses, before the deal.
    void place() {
        const step_wishes &w = plan.wishes;
        for (int i = 0; i < STEP_ITEMS; i++) {
            if (!has_item(plan.set, i)) continue;
            if (w.paused[i]) plan.owners[i] = NOBODY;
            int to = w.paused[i] || !w.place[i] ? -1 : w.place[i] == STEP_MOVE ? w.whom[i] : pinned_to(w.whom[i], i);
            if (to >= 0 && !takes_part(plan.members[to])) to = -1;
            if (to >= 0) plan.owners[i] = static_cast<uint8_t>(to);
            held[i] = w.paused[i] || to >= 0;
        }
    }
    // Returns the member with the identifier of that one, or -1. Members 0 and 3 have one.
    int pinned_to(int whom, int i) const {
        int found = -1;
        for (int m = 0; m < STEP_MEMBERS; m++) {
            const step_member &member = plan.members[m];
            bool has_identifier = m == whom || (m % 3 == 0 && whom % 3 == 0);
            if (!takes_part(member) || !has_identifier) continue;
            bool is_owner = plan.owners[i] == m, other_is = found >= 0 && plan.owners[i] == found;
            if (found < 0 || is_owner || (!other_is && member.slot < plan.members[found].slot)) found = m;
        }
        return found;
    }

    // ---- D16, D17 ----

    void choose_options() {
        bool agree = true, any = false;
        uint32_t moves = 0;
        for (const step_node &n : party.nodes) {
            if (!counts(n)) continue;
            agree = agree && n.has_options && (!any || n.max_moves == moves);
            moves = n.max_moves;
            any = true;
        }
        uint32_t chosen = agree && any ? moves : plan.max_moves;
        if (plan.is_balanced && plan.wishes.has_max_moves) chosen = plan.wishes.max_moves;
        if (set_to(plan.max_moves, chosen)) note(OPTIONS);
    }
    bool all_carry(uint8_t set) const {
        bool all = true, any = false;
        for (const step_node &n : party.nodes)
            if (counts(n)) any = true, all = all && n.set == set;
        return all && any;
    }
    // Returns since when the plan has items that somebody requested, or 0.
    int64_t asked_at() const {
        if (is_first() || before.set == before.tag) return 0;
        int64_t at = before.asked ? before.asked : before.pzxid;
        bool is_foreign = before.mzxid && before.pzxid >= before.mzxid; // D10
        return is_foreign || at >= party.pzxid ? party.pzxid : at;
    }
    // Returns whether all carry the adopted tag while the plan has other items.
    bool may_return() const {
        return !is_first() && before.set != before.tag && party.set == before.tag && all_carry(before.tag);
    }
    bool came_since(const step_node &n) const {
        return start_of(n) > asked_at();
    }
    unsigned nodes_to_date() const {
        unsigned nodes = 0;
        if (!may_return()) return 0;
        for (int n = 0; n < STEP_NODES; n++) {
            const step_node &node = party.nodes[n];
            if (!node.is_there) continue;
            bool is_read = !node.is_unread && node.czxid;
            if (is_read && !node.is_ghost && !came_since(node)) return 0;
            if (!is_read) nodes |= 1u << n;
        }
        return nodes;
    }
    bool returns() const {
        bool all = may_return();
        for (const step_node &n : party.nodes) all = all && (!counts(n) || came_since(n));
        return all;
    }
    void choose_set() {
        uint8_t chosen = events.set;
        int64_t at = asked_at();
        if (party.set && party.set != plan.tag && all_carry(party.set)) {
            plan.tag = party.set;
            note(SET);
            if (!chosen) chosen = party.set;
        } else if (returns()) {
            note(SET);
            if (!chosen) chosen = party.set;
        }
        if (chosen && chosen != plan.set) replace_set(chosen);
        plan.asked = plan.set == plan.tag ? 0 : events.set || !at ? party.pzxid : at;
    }
    void replace_set(uint8_t set) {
        for (int i = 0; i < STEP_ITEMS; i++) {
            bool is_kept = has_item(plan.set, i) && has_item(set, i);
            if (!is_kept) plan.owners[i] = NOBODY;
            if (!is_kept) plan.loads.classes[i] = NO_LOAD;
            plan.loads.giver[i] = NOBODY;
        }
        plan.moved &= set;
        plan.set = set;
        note(SET);
    }
};

} // namespace step

#endif
