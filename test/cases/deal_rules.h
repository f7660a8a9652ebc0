// Which deals of a plan's items are good: A6 to A8, D18, D19. SPDX-License-Identifier: Apache-2.0
//
// A deal is judged, and not computed: which of several items moves is the code's own choice. balance_rules.h has the
// rules where tags, caps or sizes are in force (A9, A10, D50).
#ifndef DV_CASES_DEAL_RULES_H
#define DV_CASES_DEAL_RULES_H

#include "cases/step_rules.h"

namespace step {

// A deal as it begins: pins and pauses are done, and gone members own nothing.
struct Deal {
    const step_plan &plan;
    const bool *held;
    uint8_t moved; // of a round that is open (D19)

    bool has_items_of(int m, bool absent_too) const {
        const step_member &member = plan.members[m];
        return takes_part(member) || (absent_too && member.is_there && !member.leaving);
    }
    // Returns whether the deal has that item: not what is held, nor what an absent member has.
    bool has(int i, bool absent_too = false) const {
        if (!has_item(plan.set, i) || held[i]) return false;
        return plan.owners[i] == NOBODY || has_items_of(plan.owners[i], absent_too);
    }
    bool has_taker() const {
        return std::any_of(plan.members, plan.members + STEP_MEMBERS, takes_part);
    }
    bool has_absent() const {
        for (const step_member &m : plan.members)
            if (m.is_there && m.absent) return true;
        return false;
    }
    unsigned orphans() const {
        unsigned count = 0;
        for (int i = 0; i < STEP_ITEMS; i++) count += has(i) && plan.owners[i] == NOBODY;
        return count;
    }
};

// D19: the items that are still on their way.
inline uint8_t still_moved(const Ruled &r, const step_events &e) {
    const step_plan &p = r.plan;
    bool lasts = !e.round_over && (p.max_moves || p.is_balanced);
    unsigned moved = lasts ? p.moved : 0;
    for (int i = 0; i < STEP_ITEMS; i++)
        if (p.owners[i] == NOBODY && !p.is_balanced) moved &= ~(1u << i);
    return static_cast<uint8_t>(moved);
}

// A6, A7: how many items each member may have, by count.
class Shares {
  public:
    unsigned have[STEP_MEMBERS] = {}, items = 0, total = 0; // total: of weights; 0: all count as 1
    bool deals[STEP_MEMBERS] = {};

    Shares(const Deal &d, bool absent_too) : plan(d.plan) {
        for (int m = 0; m < STEP_MEMBERS; m++) {
            deals[m] = d.has_items_of(m, absent_too);
            if (deals[m]) total += plan.members[m].weight / 1000;
        }
        for (int m = 0; m < STEP_MEMBERS; m++)
            if (deals[m]) zone_weight[plan.members[m].zone] += weight(m);
        for (unsigned w : zone_weight) zones += w > 0;
        for (int i = 0; i < STEP_ITEMS; i++) {
            if (!d.has(i, absent_too)) continue;
            items++;
            if (plan.owners[i] != NOBODY) have[plan.owners[i]]++;
        }
        list();
    }
    // A6: returns whether each has its share.
    bool are_kept() const {
        return least_moves() == 0 && sum() == items;
    }
    // A7: returns how few items can leave members, so that each gets its share.
    unsigned least_moves() const {
        unsigned best = STEP_ITEMS + 1;
        for (const Quotas &q : all) {
            unsigned moves = 0;
            for (int m = 0; m < STEP_MEMBERS; m++) moves += have[m] > q.of[m] ? have[m] - q.of[m] : 0;
            best = std::min(best, moves);
        }
        return best;
    }
    // Returns the most that a member may have.
    unsigned most(int m) const {
        unsigned most = 0;
        for (const Quotas &q : all) most = std::max(most, q.of[m]);
        return most;
    }

  private:
    enum { ZONES = 3 };
    struct Quotas {
        unsigned of[STEP_MEMBERS];
    };
    const step_plan &plan;
    unsigned zone_weight[ZONES] = {}, zones = 0;
    std::vector<Quotas> all; // that A6 allows

    unsigned weight(int m) const {
        return total ? plan.members[m].weight / 1000 : 1;
    }
    unsigned sum() const {
        unsigned all_have = 0;
        for (unsigned count : have) all_have += count;
        return all_have;
    }
    void list() {
        if (!zones) return;
        for (unsigned larger = 0; larger < 1u << ZONES; larger++) { // the zones with one more
            unsigned of_zone[ZONES], count = 0;
            bool good = true;
            for (unsigned z = 0; z < ZONES; z++) {
                unsigned one = larger >> z & 1;
                good = good && (!one || zone_weight[z]);
                count += one;
                of_zone[z] = zone_weight[z] ? items / zones + one : 0;
            }
            if (good && count == items % zones) list(of_zone);
        }
    }
    void list(const unsigned *of_zone) {
        for (unsigned more = 0; more < 1u << STEP_MEMBERS; more++) { // the members with one more
            unsigned given[ZONES] = {};
            Quotas q = {};
            bool good = true;
            for (int m = 0; m < STEP_MEMBERS && good; m++) {
                unsigned one = more >> m & 1, z = plan.members[m].zone;
                if (!deals[m] && one) good = false;
                if (!deals[m] || !zone_weight[z]) continue;
                unsigned product = of_zone[z] * weight(m);
                good = good && (!one || product % zone_weight[z]);
                q.of[m] = product / zone_weight[z] + one;
                given[z] += q.of[m];
            }
            for (unsigned z = 0; z < ZONES; z++) good = good && given[z] == of_zone[z];
            if (good) all.push_back(q);
        }
    }
};

// Returns whether D18 lets all items rest.
inline bool rests(const Deal &d) {
    if (!d.has_taker()) return true;
    if (!d.has_absent() || d.orphans()) return false;
    const Shares all(d, true);
    return !all.total || all.are_kept();
}

// Returns what is wrong with a deal by count (A6 to A8), or NULL.
inline const char *judge_count(const Deal &d, const step_plan &next, bool is_resting) {
    const Shares before(d, false), after({next, d.held, 0}, false);
    unsigned least = is_resting || d.moved || !before.total ? 0 : before.least_moves();
    unsigned due = d.plan.max_moves ? std::min(least, d.plan.max_moves) : least, moves = 0;
    for (int i = 0; i < STEP_ITEMS; i++) {
        uint8_t was = d.plan.owners[i], is = next.owners[i];
        if (!d.has(i) || (was == is && was != NOBODY)) continue;
        if (is == NOBODY) return "an item has no owner";
        if (!takes_part(next.members[is])) return "an item goes to one who takes no part";
        if (before.total && !next.members[is].weight) return "an item goes to one who is drained";
        if (after.have[is] > before.most(is)) return "an item goes to one who has its share";
        if (was == NOBODY) continue;
        moves++;
        bool others_first = false;
        for (int m = 0; m < STEP_MEMBERS; m++)
            others_first = others_first || (takes_part(next.members[m]) && !next.members[m].weight && after.have[m]);
        if (d.plan.members[was].weight && others_first) return "an item moves, and those of drained members stay";
    }
    if (moves != due) return "not as few items move as could";
    bool whole = !is_resting && !d.moved && before.total && due == least;
    return whole && !after.are_kept() ? "a share is not kept" : nullptr;
}

// Returns what is wrong with what no deal may touch, or NULL.
inline const char *judge_rest(const Deal &d, const step_plan &next, bool is_resting) {
    for (int i = 0; i < STEP_ITEMS; i++) {
        if (d.plan.owners[i] == next.owners[i]) continue;
        if (is_resting) return "an item moves where nothing is dealt";
        if (!has_item(d.plan.set, i)) return "an item is dealt that the plan does not have";
        if (d.held[i]) return "an item moves that is pinned or paused";
        if (!d.has(i)) return "an item of one who is absent moves";
        if (d.moved && d.plan.owners[i] != NOBODY) return "an item moves while a round is open";
    }
    return nullptr;
}

// D19: returns the items that a round lists which the deal begins, if it is one.
inline uint8_t taken(const Deal &d, const step_plan &next) {
    unsigned moved = 0;
    for (int i = 0; i < STEP_ITEMS; i++)
        if (d.has(i) && d.plan.owners[i] != NOBODY && d.plan.owners[i] != next.owners[i]) moved |= 1u << i;
    return static_cast<uint8_t>(moved);
}

} // namespace step

#endif
