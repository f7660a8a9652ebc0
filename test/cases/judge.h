// Judges a step of the code by the rules, counts the cases, and prints those that differ. SPDX-License-Identifier:
// Apache-2.0
#ifndef DV_CASES_JUDGE_H
#define DV_CASES_JUDGE_H

#include <cstdio>
#include <cstring>
#include <map>

#include "cases/balance_rules.h"

namespace step {

inline size_t cases, plans;
inline std::map<const char *, size_t> faults;

inline bool same(const step_member &a, const step_member &b) {
    if (a.is_there != b.is_there || !a.is_there) return a.is_there == b.is_there;
    return a.slot == b.slot && a.is_static == b.is_static && a.weight == b.weight && a.absent == b.absent &&
           a.leaving == b.leaving && a.configured == b.configured && a.says_configured == b.says_configured &&
           a.rejoin_delay_ms == b.rejoin_delay_ms && a.zone == b.zone && a.tags == b.tags && a.cap == b.cap;
}

inline bool same(const step_wishes &a, const step_wishes &b) {
    bool alike = a.are_there == b.are_there && a.all_need == b.all_need && a.has_max_moves == b.has_max_moves &&
                 a.max_moves == b.max_moves && a.imbalance_percent == b.imbalance_percent;
    for (int i = 0; i < STEP_ITEMS; i++) {
        alike = alike && a.place[i] == b.place[i] && a.whom[i] == b.whom[i] && a.paused[i] == b.paused[i];
        alike = alike && a.had[i] == b.had[i] && a.need[i] == b.need[i];
    }
    return alike;
}

// One step, and what is wrong with it.
class Judge {
  public:
    Judge(const step_plan &from, const step_party &there, const step_events &what)
        : plan(from), party(there), events(what), r(from, there, what) {
        result = step_of(&plan, &party, &events, &next, &asks);
    }
    // Returns what is wrong with who is who in the plan (D12, D38), or NULL.
    const char *judge_nodes() const {
        if (!plan.is_there || r.is_left_alone || r.asks) return nullptr;
        const step_who who = step_who_is(&plan, &party);
        for (int n = 0; n < STEP_NODES; n++) {
            const step_node &node = party.nodes[n];
            if (!node.is_there || node.is_ghost) continue;
            bool is_last = r.winner(node.member) == n;
            bool is_member = plan.members[node.member].is_there && is_last;
            if ((who.fenced >> n & 1) == is_last) return "a node is fenced that counts, or is not";
            if (who.members[n] != (is_member ? node.member : NOBODY)) return "a node is another member";
        }
        return nullptr;
    }
    // Returns what is wrong with the code's answer, or NULL.
    const char *judge() {
        if (r.is_left_alone) return result == STEP_NOTHING ? nullptr : "a plan is made where there may be none";
        if (asks != r.asks) return "other nodes are to be read";
        if ((result == STEP_ASK) != (r.asks != 0)) return "the step goes on without what it has to read, or waits";
        return r.asks ? nullptr : judge_plan();
    }
    bool has_plan() const {
        return result == STEP_NEXT;
    }
    void print(const char *what) const {
        printf("%s\n    result %d, reasons %x; reason %u\n", what, result, r.reasons, next.reason);
        printf(
            "    expired %d, weight of %d is %u, leaving %d, round over %d, set %x, wish %d of item %d (%d, undo %d)\n",
            events.expired, events.weighed, events.weight, events.leaving, events.round_over, events.set, events.wish,
            events.item, events.whom, events.undo);
        for (int n = 0; n < STEP_NODES; n++) print(n, party.nodes[n]);
        for (int i = 0; i < STEP_MEMBERS; i++)
            for (const step_plan *p : {&plan, &r.plan, &next}) print(i, p->members[i]);
        for (const step_plan *p : {&plan, &r.plan, &next}) print(*p);
        for (int i = 0; i < STEP_ITEMS; i++) printf("    load of item %d: %d\n", i, events.loads.classes[i]);
    }

  private:
    const step_plan &plan;
    const step_party &party;
    const step_events &events;
    Ruled r;
    step_plan next = {};
    step_result result;
    unsigned asks = 0;

    static void print(int n, const step_node &node) {
        if (!node.is_there) return;
        printf("    node %d of %d: weight %u, set %x, czxid %d (%d), ghost %d, unread %d, older %d, max_moves %d\n", n,
               node.member, node.weight, node.set, static_cast<int>(node.czxid), static_cast<int>(node.first_czxid),
               node.is_ghost, node.is_unread, node.is_older, node.has_options ? static_cast<int>(node.max_moves) : -1);
    }
    static void print(int i, const step_member &m) {
        if (m.is_there)
            printf(
                "    member %d: slot %u, weight %u, static %d (%u), absent %d, leaving %d, zone %d, tags %d, cap %u\n",
                i, m.slot, m.weight, m.is_static, m.configured, static_cast<int>(m.absent), m.leaving, m.zone, m.tags,
                m.cap);
    }
    static void print(const step_plan &p) {
        printf("    plan: set %x of %x (%d), max_moves %u, balanced %d; loads %d in %d, needs %d\n", p.set, p.tag,
               static_cast<int>(p.asked), p.max_moves, p.is_balanced, p.loads.are_there, p.loads.unit,
               p.wishes.all_need);
        for (int i = 0; i < STEP_ITEMS; i++)
            if (has_item(p.set, i))
                printf("      item %d: of %d, moved %d, load %d from %d, place %d to %d, paused %d of %d, needs %d\n",
                       i, p.owners[i], p.moved >> i & 1, p.loads.classes[i], p.loads.giver[i], p.wishes.place[i],
                       p.wishes.whom[i], p.wishes.paused[i], p.wishes.had[i], p.wishes.need[i]);
    }

    // ---- D50: loads that come ----

    bool takes_loads(uint8_t moved) const {
        return events.loads.are_there && r.plan.is_balanced && !moved && (!plan.is_there || r.plan.set == plan.set);
    }
    step_loads merge(const step_loads &known) const {
        step_loads merged = events.loads;
        bool same_unit = known.are_there && known.unit == merged.unit;
        for (int i = 0; i < STEP_ITEMS; i++) {
            if (!has_item(r.plan.set, i)) merged.classes[i] = NO_LOAD;
            else if (same_unit && merged.classes[i] == NO_LOAD) merged.classes[i] = known.classes[i];
            merged.giver[i] = same_unit ? known.giver[i] : NOBODY;
        }
        return merged;
    }
    // Returns whether loads that move nothing are worth a plan; -1: it is too near to say.
    int are_worth(const Deal &d, const step_loads &known, const step_loads &merged) const {
        int more = 0, drift = 0;
        if (!known.are_there || known.unit != merged.unit || r.reasons) return 1;
        for (int i = 0; i < STEP_ITEMS; i++) more += known.classes[i] == NO_LOAD && merged.classes[i] != NO_LOAD;
        const Levels was(d, known), is(d, merged);
        for (int m = 0; m < STEP_MEMBERS; m++) {
            if (!takes_part(d.plan.members[m])) continue;
            double off = of_share(was, d, m) - of_share(is, d, m);
            if (std::fabs(std::fabs(off) - 0.1) < 1e-9) drift = drift ? drift : -1;
            else if (std::fabs(off) > 0.1) drift = 1;
        }
        return more * 20 >= __builtin_popcount(r.plan.set) && more ? 1 : drift;
    }
    static double of_share(const Levels &levels, const Deal &d, int m) {
        return levels.load(d.plan.owners, m) / (levels.weight[m] > 0 ? levels.weight[m] : 1);
    }
    const char *judge_loads(const Deal &d, const step_plan &after, const step_loads &known) {
        bool moved = memcmp(d.plan.owners, after.owners, sizeof after.owners) != 0;
        step_loads wanted = known;
        if (takes_loads(d.moved)) {
            const step_loads merged = merge(known);
            int worth = moved ? 1 : are_worth(d, known, merged);
            if (worth < 0) worth = has_plan() && memcmp(known.classes, after.loads.classes, STEP_ITEMS) != 0;
            if (worth) r.note(LOAD);
            if (worth) wanted = merged;
        }
        r.plan.loads = wanted;
        if (!has_plan()) return nullptr;
        const step_loads &is = after.loads;
        bool alike = is.are_there == wanted.are_there && is.unit == wanted.unit;
        if (!alike || memcmp(is.classes, wanted.classes, STEP_ITEMS) != 0) return "the plan has other loads";
        return judge_givers(d, after, wanted);
    }
    // D49: tells of those who gave items for load last: by this deal, or by one before.
    const char *judge_givers(const Deal &d, const step_plan &after, const step_loads &wanted) const {
        if (!memcmp(after.loads.giver, wanted.giver, STEP_ITEMS)) return nullptr;
        const Levels levels(d, wanted);
        for (int i = 0; i < STEP_ITEMS; i++) {
            uint8_t was = d.plan.owners[i], is = after.owners[i], giver = after.loads.giver[i];
            bool gave = was != NOBODY && is != NOBODY && was != is && takes_part(d.plan.members[was]);
            if (giver == NOBODY) {
                if (gave && d.plan.members[was].weight) return "the loads do not tell who gave an item";
                continue;
            }
            if (!gave || giver != was) return "the loads tell of one who did not give the item";
            double permille = of_share(levels, d, was) * 1000;
            if (std::fabs(permille - after.loads.permille[was] - 0.5) > 0.501) return "a giver had another level";
        }
        return nullptr;
    }

    // ---- the deal ----

    bool is_plain() const {
        const step_plan &p = r.plan;
        bool plain = !p.is_balanced || (!p.loads.are_there && !p.wishes.all_need);
        for (int i = 0; i < STEP_ITEMS && p.is_balanced; i++) plain = plain && !p.wishes.need[i];
        for (const step_member &m : p.members) plain = plain && !(p.is_balanced && m.is_there && m.cap);
        return plain;
    }
    // Returns whether nothing that is dealt has a tag, a cap or a pin, so that A6 to A8 hold.
    bool is_free(const Deal &d) const {
        const step_plan &p = r.plan;
        unsigned items = 0;
        bool free = !p.loads.are_there;
        for (int i = 0; i < STEP_ITEMS; i++) {
            bool is_pinned = d.held[i] && p.owners[i] != NOBODY;
            if (!d.has(i) && !is_pinned) continue;
            items++;
            free = free && !is_pinned && !p.wishes.need[i] && !p.wishes.all_need;
        }
        for (const step_member &m : p.members) free = free && !(takes_part(m) && m.cap && m.cap < items);
        return free;
    }
    // D18, by what it says: nothing moves if nothing would, were the absent here. That they are is asked of the code.
    bool would_rest(bool rested, bool begins) const {
        const step_plan &p = r.plan;
        step_plan full = p, then = {};
        step_party all = party;
        step_events none = {};
        none.expired = none.weighed = none.leaving = -1;
        unsigned reads;
        for (int i = 0; i < STEP_ITEMS; i++)
            if (p.wishes.place[i] && p.members[p.wishes.whom[i]].absent) return rested; // its wish waits for it
        if (begins) return rested;
        full.moved = 0;
        full.max_moves = full.wishes.max_moves = 2 * STEP_ITEMS; // as many as it takes
        full.pzxid = party.pzxid;
        full.mzxid = full.asked = 0;
        full.tag = full.set;
        for (int i = 0; i < STEP_MEMBERS; i++) {
            step_member &m = full.members[i];
            if (!m.is_there || !m.absent) continue;
            m.absent = 0;
            step_node &n = all.nodes[i];
            n = {};
            n.is_there = true;
            n.member = static_cast<uint8_t>(i);
            n.set = full.set;
            n.weight = m.configured;
            n.cap = m.cap;
            n.zone = m.zone;
            n.tags = m.tags;
            n.rejoin_delay_ms = m.rejoin_delay_ms;
            n.czxid = 70;
        }
        for (step_node &n : all.nodes) n.has_options = false;
        step_result moves = step_of(&full, &all, &none, &then, &reads);
        return moves != STEP_NEXT || !memcmp(full.owners, then.owners, sizeof then.owners);
    }
    const char *judge_deal(const Deal &d, const step_plan &after) const {
        bool plain = is_plain(), by_load = r.plan.is_balanced && r.plan.loads.are_there;
        bool begins = r.has(JOIN) || r.has(DRAIN) || r.has(WEIGHT);
        bool rested = !memcmp(d.plan.owners, after.owners, sizeof after.owners);
        bool is_resting = plain ? rests(d) : !d.has_taker() || (d.has_absent() && would_rest(rested, begins));
        const char *fault = judge_rest(d, after, is_resting);
        unsigned limit = r.plan.max_moves;
        uint8_t listed = d.moved;
        if (by_load && !limit && !begins) limit = std::max(1, __builtin_popcount(r.plan.set) / 20);
        if (!is_resting && !d.moved && limit) listed = taken(d, after);
        // What a deal makes possible is taken at once: a second deal, which is a round.
        if (by_load && begins && !limit && !d.moved && has_plan() && after.moved) listed = taken(d, after);
        if (by_load && begins && !limit) limit = static_cast<unsigned>(__builtin_popcount(listed));
        if (has_plan() && after.moved && !after.max_moves && !after.is_balanced) fault = "a round that nothing limits";
        if (has_plan() && !fault && after.moved != listed) fault = "other items are listed as moved";
        if (fault || is_resting) return fault;
        if (plain || is_free(d)) return judge_count(d, after, is_resting);
        return Balance(d, after, r.plan.loads, by_load, limit, begins).judge();
    }

    // ---- the plan ----

    const char *judge_plan() {
        uint8_t moved = still_moved(r, events);
        const step_loads known = r.plan.loads;
        const Deal d = {r.plan, r.held, moved};
        step_plan after = has_plan() ? next : r.plan;
        if (!has_plan()) memcpy(after.owners, plan.owners, sizeof after.owners);
        const char *fault = judge_loads(d, after, known);
        if (!has_plan()) r.plan.loads = takes_loads(moved) ? merge(known) : known; // by these it was dealt
        else if (takes_loads(moved)) r.plan.loads = merge(known);
        if (!fault) fault = judge_deal(d, after);
        bool changed = r.reasons || memcmp(plan.owners, after.owners, sizeof after.owners);
        if (has_plan() != changed) return changed ? "there is something to write" : "there is nothing to write"; // D20
        if (fault || !has_plan()) return fault;
        for (int i = 0; i < STEP_MEMBERS; i++)
            if (!same(r.plan.members[i], next.members[i])) return "a member is not as it should be";
        r.plan.loads = next.loads;
        return judge_head();
    }
    const char *judge_head() const {
        unsigned reason = 0;
        while (reason < ROUND && !(r.reasons >> reason & 1)) reason++;
        if (next.set != r.plan.set || next.tag != r.plan.tag || next.asked != r.plan.asked) return "other items";
        if (next.max_moves != r.plan.max_moves) return "other options";
        if (!same(next.wishes, r.plan.wishes)) return "other wishes";
        if (next.is_balanced != (r.plan.is_balanced && Ruled::needs_balance(r.plan))) return "another algorithm";
        if (events.wish && !r.wish_is_late && !next.tells) return "the history is not told what was asked for";
        if (next.reason != reason) return "another reason";
        return next.is_at_rest ? nullptr : "the step has something to do in its own result";
    }
};

inline void ask(const step_plan &plan, const step_party &party, const step_events &events, bool asks_nodes = false) {
    Judge j(plan, party, events);
    const char *what = j.judge();
    if (!what && asks_nodes) what = j.judge_nodes();
    cases++;
    plans += j.has_plan();
    if (what && !faults[what]++) j.print(what);
}

// Makes a plan of so many items without owners and loads, and the party that goes with it.
inline void give_nothing(step_plan &plan, step_party &party, int items) {
    plan.is_there = true;
    plan.pzxid = 60;
    plan.mzxid = 61;
    party.pzxid = STEP_PZXID;
    plan.set = plan.tag = party.set = (1 << items) - 1;
    for (int i = 0; i < STEP_ITEMS; i++) {
        plan.owners[i] = plan.loads.giver[i] = party.owners[i] = NOBODY;
        plan.loads.classes[i] = NO_LOAD;
    }
}

inline int finish() {
    step_end();
    printf("%zu cases, %zu new plans\n", cases, plans);
    for (const auto &fault : faults) printf("%zu differ: %s\n", fault.second, fault.first);
    return !faults.empty() || !plans;
}

const step_events NO_EVENTS = {-1, -1, -1, 0, false, false, 0, 0, 0, 0, false, {}};

} // namespace step

#endif
