// A model of the semaphore's admission: rules E1 to E7 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
//   admission                   the rules, then each broken variant: the test model.admission
//   admission --rules           the rules alone, with counts of steps
//   admission --long            the rules alone, with more acquires and faults, in a minute
//   admission --list            the variants
//   admission --variant NAME    one of them, with the way to its fault
//
// The rules stand in rules/admission.h. Three contenders share a pool of two slots by its queue; each wants one slot.
// In the pool "kazoo" one of them is kazoo's, in the pool "resized" the limit changes between 1 and 3, and in the pool
// "hasty" an acquire is given up. Connections are lost, with their answers and with requests that are carried out
// later, and sessions end: two such faults. The search visits every order of all steps. It claims:
//
//  1. With each lease that is made, all are within the limit that is then in force (S9).
//  2. No two leases have one slot, and the slot is below the limit (S2, S9).
//  3. The contender stood at the head of the queue (S9): nobody is overtaken.
//  4. Whoever believes that it holds has its lease (S1).
//  5. No order of the steps ends while a contender waits, and then nothing is left (Q6).
//
// Left out: counts above one, children in doubt (E2), what the limit's policies write (E3), the shortcut (E14, a model
// of its own), and nodes that somebody else deletes. A read may come from a server that lags: that is an earlier read,
// whose answer was slow. A watch may tell later than the answers behind it do.
#include <string>
#include <vector>

#include "rules/admission.h"
#include "search.h"

namespace {

using namespace admission;

enum Pool { PLAIN, WITH_KAZOO, RESIZED, HASTY };

const std::vector<model::Variant> VARIANTS = {
    {"early_list_counts", "uses a list that came before it was first", "two leases of one slot", "kazoo",
     EARLY_LIST_COUNTS},
    {"limit_once", "reads the limit once in an acquire", "not below the limit", "resized", LIMIT_ONCE},
    {"unversioned", "is admitted at any version of the limit", "not below the limit", "resized", UNVERSIONED},
    {"no_barrier", "takes what it does not find for never done", "waits for ever", "plain", NO_BARRIER},
    {"lost_is_done", "takes a lost answer for an admission", "without a lease", "plain", LOST_IS_DONE},
    {"list_unwatched", "waits for room with a watch on the limit alone", "waits for ever", "plain", LIST_UNWATCHED},
    {"woken_unwatched", "sets no watch again when it is woken and finds no room", "waits for ever", "resized",
     WOKEN_UNWATCHED},
    {"gone_unseen", "waits for the place before its own, which has gone already", "waits for ever", "plain",
     GONE_UNSEEN},
    {"delete_once", "does not repeat a release whose answer was lost", "something is left", "plain", DELETE_ONCE},
    {"place_stays", "leaves its place where it was when it is admitted", "something is left", "plain", PLACE_STAYS},
};

const char *const KIND_NAMES[KINDS] = {
    "begins an acquire",
    "is served",
    "takes an answer",
    "is told that the place before it went",
    "is told of the limit",
    "is told of the leases",
    "gives up",
    "releases",
    "LOSES ITS CONNECTION",
    "is served on the LOST connection",
    "'S SESSION ENDS",
    "sees the limit set to",
    "(kazoo) goes on",
};
const char *const REQUEST_NAMES[] = {"",        "create of its place", "list of the queue",  "watch",
                                     "limit",   "list of the leases",  "admission",          "barrier",
                                     "look-up", "delete of the lease", "delete of the place"};

bool is_fair(const Step &s) {
    return s.kind != GIVE_UP && s.kind != LOSE && s.kind != GHOST && s.kind != END && s.kind != RESIZE;
}

std::string label(const World &before, const Step &s) {
    const Request *requests = before.actors[s.who].requests;
    std::string text = std::string(1, static_cast<char>('A' + s.who)) + " " + KIND_NAMES[s.kind];
    size_t at = 0;
    while (s.kind == SERVE && at < REQUESTS - 1 && requests[at].served) at++;
    if (s.kind == SERVE || s.kind == TAKE) text += std::string(": ") + REQUEST_NAMES[requests[at].kind];
    if (s.kind == TAKE && s.argument != NOTHING) text += ", chooses slot " + std::to_string(s.argument);
    if (s.kind == RESIZE) text += " " + std::to_string(s.argument);
    return text;
}

// ---- the claims ----

int count_leases(const World &w) {
    int count = 0;
    for (const Actor &a : w.actors) count += (a.lease != 0) + (a.stray_lease != 0);
    return count;
}

bool is_slot_shared(const World &w) {
    int seen = 0;
    for (const Actor &a : w.actors)
        for (uint8_t lease : {a.lease, a.stray_lease}) {
            if (!lease || lease == NO_SLOT) continue;
            if (seen >> lease & 1) return true;
            seen |= 1 << lease;
        }
    return false;
}

const char *judge_admission(const World &before, const World &after, size_t who) {
    const Actor &was = before.actors[who], &is = after.actors[who];
    uint8_t lease = is.lease != was.lease ? is.lease : is.stray_lease;
    if (count_leases(after) > before.limit) return "more leases than the limit allows";
    if (is_slot_shared(after)) return "two leases of one slot";
    if (lease != NO_SLOT && lease > before.limit) return "the slot is not below the limit";
    for (const Actor &other : before.actors)
        for (uint8_t place : {other.place, other.stray_place})
            if (place && place < was.place) return "somebody in the queue is overtaken";
    return was.place ? nullptr : "it did not stand in the queue";
}

const char *judge(const World &before, const World &after) {
    for (size_t i = 0; i < ACTORS; i++) {
        const Actor &was = before.actors[i], &is = after.actors[i];
        bool made = (is.lease && !was.lease) || (is.stray_lease && !was.stray_lease);
        const char *wrong = made ? judge_admission(before, after, i) : nullptr;
        if (wrong) return wrong;
        if (is.stage == HOLDS && !is.lease) return "somebody holds without a lease";
    }
    return nullptr;
}

// Only for a world in which nothing fair can happen.
const char *judge_rest(const World &w) {
    for (const Actor &a : w.actors) {
        if (a.stage != IDLE || a.acquires) return "an acquire waits for ever";
        if (a.place || a.lease || a.stray_place || a.stray_lease) return "something is left";
    }
    return nullptr;
}

// ---- the search ----

struct Numbers {
    uint8_t *all[ACTORS * (3 + REQUESTS) + 1];
    size_t count;

    void add(uint8_t *number) {
        all[count++] = number;
    }
    // Gives each the place of its value among the values, from 1; 0 stays.
    void renumber() {
        uint32_t seen = 1;
        for (size_t i = 0; i < count; i++) seen |= 1u << *all[i];
        for (size_t i = 0; i < count; i++)
            *all[i] = static_cast<uint8_t>(__builtin_popcount(seen & ((1u << *all[i]) - 1)));
    }
};

// Returns the world with small numbers for versions and places, and without what has no meaning in it.
World canonical(World w, bool keeps) {
    Numbers versions = {}, places = {};
    versions.add(&w.version);
    for (Actor &a : w.actors) {
        if (a.stage >= HOLDS) a.limit = a.version = a.first = a.kept = 0;
        if (a.stage >= HOLDS || a.first) a.watches_place = a.place_went = 0;
        if (a.stage != ADMITTING) a.slot = 0;
        if (a.stage != QUEUED || !keeps) a.kept = 0;
        if (!a.ghost) a.ghost_version = a.ghost_slot = 0;
        versions.add(&a.version), versions.add(&a.ghost_version);
        for (uint8_t *place : {&a.place, &a.stray_place, &a.watches_place}) places.add(place);
        for (Request &r : a.requests) {
            if (r.served && (r.kind == GET || r.kind == LIST)) versions.add(&r.b);
            if ((r.kind == LIST_QUEUE && r.served) || r.kind == WATCH) places.add(&r.a);
        }
    }
    versions.renumber();
    places.renumber();
    return w;
}

World beginning(Pool pool, bool is_long) {
    World w = {};
    w.limit = 2;
    w.version = 1;
    w.may_fail = is_long ? 2 : 1;
    if (pool == RESIZED) w.may_resize = is_long ? 2 : 1;
    w.may_give_up = pool == HASTY;
    for (Actor &a : w.actors) a.acquires = 1;
    if (is_long && pool == PLAIN) w.actors[0].acquires = 2;
    if (pool == WITH_KAZOO) w.actors[2].kazoo = 1;
    if (pool == PLAIN || pool == HASTY) w.limit = 1;
    return w;
}

using Base = model::Search<World, Step>;

class Search : public Base {
  public:
    Search(Pool p, bool long_search) : pool(p), is_long(long_search) {
        if (model::broken) rules.variant = static_cast<Variant>(model::broken->tag);
        keeps = rules.variant == EARLY_LIST_COUNTS;
    }

  private:
    const Pool pool;
    const bool is_long;
    bool keeps; // early lists
    Rules rules;
    size_t taken[KINDS] = {};
    std::vector<Step> tries;
    std::vector<Next> steps;

    void list_tries_of(uint8_t who) {
        for (uint8_t kind = 0; kind < KINDS; kind++) {
            if (kind == RESIZE && who) continue;
            bool has_argument = kind == TAKE || kind == RESIZE;
            for (uint8_t argument = 0; has_argument && argument <= SLOTS; argument++)
                tries.push_back({kind, who, argument});
            tries.push_back({kind, who, NOTHING});
        }
    }
    // To take an answer touches nobody else, and an answer comes before the events behind it. So it is taken before
    // anything else happens, or lost.
    void list_tries(const World &w) {
        for (uint8_t who = 0; who < ACTORS; who++) {
            if (!w.actors[who].requests[0].served) continue;
            for (uint8_t argument : {uint8_t(0), uint8_t(1), uint8_t(2), uint8_t(NOTHING)})
                tries.push_back({TAKE, who, argument});
            for (Kind kind : {GIVE_UP, LOSE, END}) tries.push_back({kind, who, NOTHING});
            return;
        }
        for (uint8_t who = 0; who < ACTORS; who++) list_tries_of(who);
    }
    void begin() override {
        add(::canonical(beginning(pool, is_long), keeps), 0, {});
    }
    const std::vector<Next> &steps_of(const World &w) override {
        tries.clear();
        steps.clear();
        list_tries(w);
        for (const Step &s : tries) {
            Next n = {w, s, is_fair(s), nullptr, false};
            if (rules.apply(n.world, s)) continue;
            taken[s.kind]++;
            n.fault = judge(w, n.world);
            steps.push_back(n);
        }
        return steps;
    }
    const char *rest(const World &w) override {
        return judge_rest(w);
    }
    World canonical(const World &w) override {
        return ::canonical(w, keeps);
    }
    std::string label(const World &before, const Step &s) override {
        return ::label(before, s);
    }
    std::vector<std::string> counts() override {
        std::vector<std::string> lines;
        for (size_t kind = 0; kind < KINDS; kind++)
            if (taken[kind]) lines.push_back(std::to_string(taken[kind]) + " x " + KIND_NAMES[kind]);
        return lines;
    }
};

model::Outcome search(unsigned part, bool is_long) {
    return Search(static_cast<Pool>(part), is_long).run();
}

} // namespace

int main(int count, char **arguments) {
    return model::run({"admission",
                       "a contender",
                       VARIANTS,
                       {{"plain", false}, {"kazoo", false}, {"resized", false}, {"hasty", false}},
                       true,
                       search},
                      count, arguments);
}
