// Which deals are good where tags, caps, pins or sizes are in force: A9, A10, D50. SPDX-License-Identifier: Apache-2.0
//
// A deal by sizes is judged by what holds where it ends: nobody who has too much keeps an item that it might give, and
// so on. Levels are compared with some room, since sums of fractions are not exact.
#ifndef DV_CASES_BALANCE_RULES_H
#define DV_CASES_BALANCE_RULES_H

#include <cmath>

#include "cases/deal_rules.h"

namespace step {

inline double load_of(uint8_t load_class) {
    return load_class ? std::exp2((load_class - 100) / 4.0) : 0;
}

// Weights, sizes and levels of A10, of the members that take part.
class Levels {
  public:
    double weight[STEP_MEMBERS] = {}; // the mean is 1; 0: drained
    double size[STEP_ITEMS] = {};     // in fair shares, cut
    bool all_are_zero = true;
    int zones = 0;

    Levels(const Deal &d, const step_loads &loads) {
        weigh(d);
        measure(d, loads);
    }
    double load(const uint8_t *owners, int m) const {
        double sum = 0;
        for (int i = 0; i < STEP_ITEMS; i++) sum += owners[i] == m ? size[i] : 0;
        return sum;
    }
    double level(const uint8_t *owners, int m) const {
        return load(owners, m) / weight[m];
    }

  private:
    void weigh(const Deal &d) {
        const step_plan &p = d.plan;
        double of_zone[3] = {};
        int takers = 0;
        for (const step_member &m : p.members) all_are_zero = all_are_zero && !(takes_part(m) && m.weight);
        for (int m = 0; m < STEP_MEMBERS; m++) {
            if (!takes_part(p.members[m])) continue;
            weight[m] = all_are_zero ? 1 : p.members[m].weight;
            of_zone[p.members[m].zone] += weight[m];
            takers += weight[m] > 0;
        }
        for (double w : of_zone) zones += w > 0;
        for (int m = 0; m < STEP_MEMBERS; m++)
            if (weight[m] > 0) weight[m] *= static_cast<double>(takers) / zones / of_zone[p.members[m].zone];
    }
    void measure(const Deal &d, const step_loads &loads) {
        double sum = 0, known = 0, members = 0, strongest = 0;
        for (int i = 0; i < STEP_ITEMS; i++) {
            if (!has(d, i) || loads.classes[i] == NO_LOAD) continue;
            sum += load_of(loads.classes[i]);
            known++;
        }
        double mean = sum > 0 ? sum / known : 1;
        for (int i = 0; i < STEP_ITEMS; i++) {
            if (!has(d, i)) continue;
            bool counts = sum > 0 && loads.classes[i] != NO_LOAD;
            size[i] = counts ? std::max(load_of(loads.classes[i]), mean / 20) : mean;
        }
        for (double w : weight) members += w, strongest = std::max(strongest, w);
        double lambda = fair_share(members, strongest);
        for (double &s : size) s = std::min(s / lambda, strongest);
    }
    static bool has(const Deal &d, int i) {
        if (!has_item(d.plan.set, i) || (d.held[i] && d.plan.owners[i] == NOBODY)) return false; // paused
        return d.plan.owners[i] == NOBODY || takes_part(d.plan.members[d.plan.owners[i]]);
    }
    // The greatest that solves the equation of A10. Where none above 0 does, the least size.
    double fair_share(double members, double strongest) const {
        double sum = 0, least = INFINITY, count = 0;
        for (double s : size)
            if (s > 0) sum += s, least = std::min(least, s), count++;
        if (!count) return 1;
        if (count * strongest < members - 1e-9) return least / strongest;
        double low = least / strongest, high = sum / members;
        for (int n = 0; n < 60 && high > low; n++) {
            double middle = (low + high) / 2, cut = 0;
            for (double s : size) cut += std::min(s, middle * strongest);
            (cut >= middle * members - 1e-12 * sum ? low : high) = middle;
        }
        return low;
    }
};

// Judges one deal. D50: `limit` items may leave members, 0: any number. `begins`: a member joined, or a weight changed.
class Balance {
  public:
    Balance(const Deal &deal, const step_plan &after, const step_loads &loads, bool uses_loads, unsigned most_moves,
            bool has_begun)
        : d(deal), next(after), by_load(uses_loads), begins(has_begun), limit(most_moves), of(deal, loads) {
        for (int i = 0; i < STEP_ITEMS; i++) {
            uint8_t was = d.plan.owners[i], is = next.owners[i];
            if (!deals(i)) continue;
            if (is != NOBODY) have[is]++;
            if (was != NOBODY) had[was]++;
            moves += was != NOBODY && was != is;
            orphans += was == NOBODY && !d.held[i];
        }
        double imbalance = d.plan.wishes.imbalance_percent / 100.0;
        trigger = imbalance > 0 ? imbalance : 0.2;
    }
    const char *judge() const {
        const char *wrong = judge_places();
        if (!wrong) wrong = judge_limit();
        // Where more is evened out afterwards, orphans may go on.
        if (!wrong && orphans && !moves && (d.moved || (!by_load && of.zones == 1))) wrong = judge_orphans();
        if (wrong || d.moved || of.all_are_zero) return wrong;
        if (!limit || moves < limit) wrong = judge_end();
        return wrong || !by_load ? wrong : judge_moves();
    }

  private:
    const Deal &d;
    const step_plan &next;
    const bool by_load, begins;
    const unsigned limit;
    const Levels of;
    unsigned have[STEP_MEMBERS] = {}, had[STEP_MEMBERS] = {}, moves = 0, orphans = 0;
    double trigger;
    static constexpr double MARGIN = 0.05, DUST = 1.0 / 200, NOTHING = 1e-9;

    // ---- who may have what ----

    // Returns whether the item counts in the deal, be it pinned.
    bool deals(int i) const {
        if (d.has(i)) return true;
        return has_item(d.plan.set, i) && d.held[i] && d.plan.owners[i] != NOBODY;
    }
    unsigned needed(int i) const {
        return d.plan.wishes.need[i] ? d.plan.wishes.need[i] : d.plan.wishes.all_need;
    }
    bool has_tag(int m, int i) const {
        return !needed(i) || (d.plan.members[m].tags & needed(i));
    }
    bool is_below_cap(int m, unsigned count) const {
        return !d.plan.members[m].cap || count < d.plan.members[m].cap;
    }
    bool may_take(int m, int i) const {
        return of.weight[m] > 0 && has_tag(m, i);
    }
    bool is_open(int m, int i) const {
        return may_take(m, i) && is_below_cap(m, have[m]);
    }
    bool is_open_to_any(int i) const {
        for (int m = 0; m < STEP_MEMBERS; m++)
            if (is_open(m, i)) return true;
        return false;
    }
    bool was_above_cap(int m) const {
        return d.plan.members[m].cap && had[m] > d.plan.members[m].cap;
    }
    bool was_misplaced(int i) const {
        return d.plan.owners[i] != NOBODY && !has_tag(d.plan.owners[i], i);
    }

    // ---- A9: hard rules ----

    const char *judge_places() const {
        for (int i = 0; i < STEP_ITEMS; i++) {
            uint8_t was = d.plan.owners[i], is = next.owners[i];
            if (!deals(i) || d.held[i]) continue;
            if (is == NOBODY && is_open_to_any(i)) return "an item has no owner, and somebody has room";
            if (is == NOBODY || is == was) continue;
            if (!takes_part(next.members[is])) return "an item goes to one who takes no part";
            if (!may_take(is, i)) return "an item goes to one who lacks its tag, or is drained";
            if (!is_below_cap(is, have[is] - 1)) return "an item goes to one above its cap";
        }
        return nullptr;
    }
    const char *judge_limit() const {
        bool none = d.moved || of.all_are_zero;
        if (none && moves) return "an item is taken while none may be";
        if (limit && moves > limit) return "more items move than may";
        if (none) return nullptr;
        int worst_that_stays = 3;
        for (int i = 0; i < STEP_ITEMS; i++) worst_that_stays = std::min(worst_that_stays, urgency_of_stay(i));
        if (worst_that_stays < 3 && (!limit || moves < limit)) return "an item stays where it must not";
        for (int i = 0; i < STEP_ITEMS; i++) {
            bool moved = deals(i) && d.plan.owners[i] != NOBODY && next.owners[i] != d.plan.owners[i];
            if (moved && urgency(i) > worst_that_stays) return "an item moves before one that is more urgent";
        }
        return nullptr;
    }
    // A9: 0: it lacked its tag; 1: of one above its cap; 2: of a drained one; 3: none of these.
    int urgency(int i) const {
        int was = d.plan.owners[i];
        return was_misplaced(i) ? 0 : was_above_cap(was) ? 1 : of.weight[was] <= 0 ? 2 : 3;
    }
    // Returns the same of an item that was not moved.
    int urgency_of_stay(int i) const {
        uint8_t is = next.owners[i];
        if (!deals(i) || d.held[i] || is == NOBODY || is != d.plan.owners[i]) return 3;
        if (!has_tag(is, i)) return 0;
        if (!is_below_cap(is, have[is] - 1)) return 1;
        return of.weight[is] <= 0 && is_open_to_any(i) ? 2 : 3;
    }
    // Orphans alone: the scarcest tag first, then the largest, each to the member with the least load for its weight.
    const char *judge_orphans() const {
        return place_next(d.plan) ? nullptr : "an orphan goes to another than the least loaded";
    }
    unsigned takers_of(int i) const {
        unsigned count = 0;
        for (int m = 0; m < STEP_MEMBERS; m++) count += may_take(m, i);
        return needed(i) ? count : STEP_MEMBERS + 1;
    }
    bool is_before(int a, int b) const {
        if (takers_of(a) != takers_of(b)) return takers_of(a) < takers_of(b);
        return by_load && of.size[a] > of.size[b] + NOTHING;
    }
    // Places one orphan after the other, in each order of those that are alike. Returns whether one leads to the deal.
    bool place_next(const step_plan &now) const {
        bool any = false;
        for (int i = 0; i < STEP_ITEMS; i++) {
            if (!waits(now, i)) continue;
            bool is_first = true;
            for (int other = 0; other < STEP_ITEMS; other++)
                is_first = is_first && !(waits(now, other) && is_before(other, i));
            any = true;
            if (!is_first || !is_least(now, i)) continue;
            step_plan then = now;
            then.owners[i] = next.owners[i];
            if (place_next(then)) return true;
        }
        return !any;
    }
    bool waits(const step_plan &now, int i) const {
        return deals(i) && !d.held[i] && now.owners[i] == NOBODY && next.owners[i] != NOBODY;
    }
    bool is_least(const step_plan &now, int i) const {
        double at = INFINITY, least = INFINITY;
        for (int m = 0; m < STEP_MEMBERS; m++) {
            unsigned count = 0;
            double load = 0;
            for (int other = 0; other < STEP_ITEMS; other++)
                if (deals(other) && now.owners[other] == m) count++, load += by_load ? of.size[other] : 1;
            if (!may_take(m, i) || !is_below_cap(m, count)) continue;
            double level = (load + (by_load ? of.size[i] : 1)) / of.weight[m];
            least = std::min(least, level);
            if (next.owners[i] == m) at = level;
        }
        return at <= least + NOTHING;
    }

    // ---- where a deal may end ----

    const char *judge_end() const {
        bool reaches[STEP_MEMBERS];
        for (int i = 0; i < STEP_ITEMS && !limit; i++) {
            if (!deals(i) || d.held[i] || next.owners[i] != NOBODY) continue;
            std::fill(reaches, reaches + STEP_MEMBERS, false);
            spread(i, reaches);
            for (int m = 0; m < STEP_MEMBERS; m++)
                if (reaches[m] && is_below_cap(m, have[m])) return "others could make way for an item";
        }
        return by_load ? judge_levels() : judge_counts();
    }
    // Marks the members that the item can go to, if others make way.
    void spread(int i, bool *reaches) const {
        for (int m = 0; m < STEP_MEMBERS; m++) {
            if (reaches[m] || !may_take(m, i)) continue;
            reaches[m] = true;
            go_on(m, reaches);
        }
    }
    void go_on(int m, bool *reaches) const {
        for (int i = 0; i < STEP_ITEMS; i++)
            if (deals(i) && !d.held[i] && next.owners[i] == m) spread(i, reaches);
    }
    // By count: no path of moves would bring two members, or first two zones, nearer to their shares.
    const char *judge_counts() const {
        unsigned of_zone[3] = {}, items = 0;
        double takers = 0;
        for (int m = 0; m < STEP_MEMBERS; m++) {
            if (of.weight[m] <= 0) continue;
            of_zone[d.plan.members[m].zone] += have[m];
            items += have[m];
            takers += of.weight[m];
        }
        for (int a = 0; a < STEP_MEMBERS; a++) {
            bool reaches[STEP_MEMBERS] = {};
            if (of.weight[a] <= 0) continue;
            if (limit) reach_at_once(a, reaches);
            else go_on(a, reaches);
            for (int b = 0; b < STEP_MEMBERS; b++) {
                if (a == b || !reaches[b] || !is_below_cap(b, have[b])) continue;
                int za = d.plan.members[a].zone, zb = d.plan.members[b].zone;
                if (za != zb && of_zone[za] >= of_zone[zb] + 2) return "a zone has more than its share";
                if (za != zb && of_zone[za] <= of_zone[zb]) continue;
                if (helps(a, b, items / takers)) return "a member has more than its share";
            }
        }
        return nullptr;
    }
    // Marks the members that an item of this one can go to by one move.
    void reach_at_once(int a, bool *reaches) const {
        for (int i = 0; i < STEP_ITEMS; i++)
            for (int m = 0; m < STEP_MEMBERS; m++)
                if (deals(i) && !d.held[i] && next.owners[i] == a && may_take(m, i)) reaches[m] = true;
    }
    bool helps(int a, int b, double share) const {
        double a_share = share * of.weight[a], b_share = share * of.weight[b];
        double a_least = std::floor(a_share + NOTHING), a_most = std::ceil(a_share - NOTHING);
        double b_least = std::floor(b_share + NOTHING), b_most = std::ceil(b_share - NOTHING);
        if (have[a] > a_most && have[b] < b_most) return true;
        if (have[a] > a_least && have[b] < b_least) return true;
        return std::fabs(a_share - b_share) < NOTHING && have[a] >= have[b] + 2;
    }

    // ---- A10 ----

    double level(int m) const {
        return of.level(next.owners, m);
    }
    double level_before(int m) const {
        return of.level(d.plan.owners, m);
    }
    // Returns whether the move of A10 is allowed where the deal ends.
    bool gains(int i, int a, int b) const {
        if (d.held[i] || of.size[i] < DUST + NOTHING || !is_open(b, i)) return false;
        bool goes_back = d.plan.loads.giver[i] == b && d.plan.owners[i] == a;
        if (goes_back) return false; // that is judged in judge_moves()
        return (of.load(next.owners, b) + of.size[i]) / of.weight[b] < level(a) - MARGIN - NOTHING;
    }
    const char *judge_levels() const {
        double takes_below = begins ? 1 - trigger / 2 : 1 - trigger;
        for (int a = 0; a < STEP_MEMBERS; a++) {
            if (of.weight[a] <= 0) continue;
            for (int i = 0; i < STEP_ITEMS; i++) {
                if (!deals(i) || next.owners[i] != a) continue;
                if (level(a) > 1 + trigger + NOTHING && emptiest_gains(i, a))
                    return "one who has too much keeps an item";
                for (int b = 0; b < STEP_MEMBERS; b++) {
                    bool takes = b != a && of.weight[b] > 0 && level(b) < takes_below - NOTHING;
                    if (takes && gains(i, a, b)) return "one who has too little does not take an item";
                }
            }
        }
        return nullptr;
    }
    bool emptiest_gains(int i, int a) const {
        double least = INFINITY;
        bool all = false;
        for (int b = 0; b < STEP_MEMBERS; b++)
            if (b != a && is_open(b, i)) least = std::min(least, level(b));
        for (int b = 0; b < STEP_MEMBERS; b++) {
            if (b == a || !is_open(b, i) || level(b) > least + NOTHING) continue;
            if (!gains(i, a, b)) return false;
            all = true;
        }
        return all;
    }
    // What moves for load alone: only where somebody has too much or too little, and never for the worse.
    const char *judge_moves() const {
        bool is_hard = orphans > 0;
        double worst = 0, worst_before = 0;
        bool is_due = false;
        for (int i = 0; i < STEP_ITEMS; i++)
            is_hard = is_hard || (deals(i) && !d.held[i] && d.plan.owners[i] != NOBODY && urgency(i) < 3);
        if (is_hard) return nullptr;
        for (int m = 0; m < STEP_MEMBERS; m++) {
            if (of.weight[m] <= 0) continue;
            worst = std::max(worst, level(m));
            worst_before = std::max(worst_before, level_before(m));
            is_due = is_due || level_before(m) > 1 + trigger - NOTHING;
            is_due = is_due || level_before(m) < 1 - (begins ? trigger / 2 : trigger) + NOTHING;
        }
        if (moves && !is_due) return "an item moves for load where all have enough";
        if (worst > worst_before + NOTHING) return "a member has more than any had before";
        return judge_each_move();
    }
    const char *judge_each_move() const {
        for (int i = 0; i < STEP_ITEMS; i++) {
            uint8_t a = d.plan.owners[i], b = next.owners[i];
            if (!deals(i) || a == b || a == NOBODY || b == NOBODY) continue;
            if (of.size[i] < DUST - NOTHING) return "an item moves that is too small";
            bool goes_back = d.plan.loads.giver[i] == b && !begins; // else several deals may have followed one another
            double back = (of.load(d.plan.owners, b) + of.size[i]) / of.weight[b];
            if (goes_back && back > level_before(a) - MARGIN + NOTHING) return "an item goes back too early";
            double again = (of.load(next.owners, a) + of.size[i]) / of.weight[a];
            if (is_open(a, i) && again < level(b) + MARGIN - NOTHING) return "a move is not taken back";
        }
        return nullptr;
    }
};

} // namespace step

#endif
