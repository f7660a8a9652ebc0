// A model of a member's state and of its items: rules P4 to P8, P13 and P18 of docs/protocol.md.
// SPDX-License-Identifier: Apache-2.0
//
//   member                  the rules, then each broken variant: the test model.member
//   member --rules          the rules alone
//   member --list           the variants
//   member --variant NAME   one of them, with the way to its fault
//
// A member has three items. Targets settle in any order, each with any items. Places are granted in any order. A next
// owner has a note, is ready, or goes. Somebody deletes places, the session is suspended or lost, and the member fails,
// at any time. The member is incremental or eager, revokes on a suspension or not, and rejoins after a loss or fails.
//
// The search visits every order of steps. It claims:
//
//  1. No step leaves the table of states (P4) or the table of an item's moves (P18), and each row of both is used.
//  2. Only an item with the first place is shown, and only in RELEASE is one revoked.
//  3. What was shown stops being shown in two ways: its user has released it in a RELEASE of which it was told, or it is
//     lost with its place, its session or the member.
//  4. Only a RELEASE shows what is outside the target and not kept for a next owner.
//  5. ACQUIRED means that the whole target is shown, and that nothing is on its way out.
//  6. Each state has a way on without a fault: to ACQUIRED, or from FAILURE to an end without a place.
//
// Left out: handing over before the end (T8), plans that are awaited (D34), items that do not fit (P9), P11. A request
// whose fate is unknown is the entry's concern (R1): for the member its place stays asked for, or on its way out.
#include <algorithm>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rules/member.h"
#include "search.h"

namespace {

using namespace member;
using model::is;
using model::Variant;

enum { ITEMS = 3, LEAVING_MOST = 2 };

struct World : Own {
    Item items[ITEMS];
};

const std::vector<Variant> VARIANTS = {
    {"shows_early", "shows an item whose place is not the first yet", "an item that the table", nullptr, 0},
    {"drops_shown", "leaves the place of a shown item when it is outside the target", "an item that the table", nullptr,
     0},
    {"takes_any_answer", "takes an answer to a RELEASE that the user was not told of", "nobody was told of", nullptr,
     0},
    {"keeps_revoked", "goes on after a RELEASE and leaves what was revoked as it is", "revoked outside RELEASE",
     nullptr, 0},
    {"forgets_new_lack", "goes on after a RELEASE though the target lacks other items by now", "nobody revokes it",
     nullptr, 0},
    {"acquires_early", "is ACQUIRED while places are on their way out", "ACQUIRED without", nullptr, 0},
    {"misses_deletion", "stays ACQUIRED when somebody deletes a place", "ACQUIRED without", nullptr, 0},
    {"never_asks_again", "asks for no place in the stead of one that was deleted", "no way on", nullptr, 0},
    {"fails_again", "fails a second time", "change of state", nullptr, 0},
    {"keeps_on_ready", "keeps what is outside the target after its next owner has gone", "kept for nobody", nullptr, 0},
};

const char *fault; // of the step that was made last
std::bitset<MOVES> moved;
std::bitset<STATES * STATES> entered;

// ---- the rules ----

void ask(World &w, Kind kind, uint8_t what = 0, Item *item = nullptr) {
    const char *why = apply(w, {kind, what, item});
    if (why && !fault) fault = why;
}

void move(World &w, Item &i, Move m) {
    moved.set(m);
    ask(w, MOVE, m, &i);
}

void enter(World &w, State to) {
    entered.set(w.state * STATES + to);
    ask(w, ENTER, to);
}

// ---- what follows from what ----

bool is_ready(const World &w) {
    World shown = w;
    for (Item &i : shown.items)
        if (is("acquires_early")) i.leaving = 0;
    return is_complete(shown);
}

void revoke(World &w, bool everything) {
    enter(w, RELEASE);
    for (Item &i : w.items) {
        if (!is_shown(i) || (!everything && !lacks(i))) continue;
        if (i.stage != REVOKED) move(w, i, REVOKE);
    }
}

void leave_place(World &w, Item &i) {
    if (i.place != NO_PLACE) move(w, i, is_shown(i) ? GIVE : LEAVE);
}

void claim(World &w) {
    if (w.state == FAILURE || !w.has_target || w.rejoining) return;
    for (Item &i : w.items)
        if (i.wanted && i.place == NO_PLACE && i.leaving < LEAVING_MOST) move(w, i, ASK);
}

void show_held(World &w) {
    for (Item &i : w.items)
        if (i.wanted && i.place == FIRST && !is_shown(i)) move(w, i, SHOW);
}

void check_complete(World &w) {
    if (w.state != ALLOCATING || !is_ready(w) || (w.eager && w.change_seen)) return;
    if (w.eager) show_held(w);
    enter(w, ACQUIRED);
}

void reconsider(World &w) {
    if (w.state == ACQUIRED && !is_ready(w)) enter(w, ALLOCATING);
    check_complete(w);
}

// T1: an item stays for its next owner until that one is ready or has gone.
void update_kept(World &w) {
    for (Item &i : w.items) {
        if (!is_shown(i) || i.stage == REVOKED) continue;
        if (i.wanted) i.next = NOBODY;
        Stage to = i.next == UNREAD ? KEPT : i.next == HAS_NOTE ? LEAVING : SHOWN;
        if (is("keeps_on_ready") && is_kept(i) && !i.wanted) continue;
        if (to == i.stage) continue;
        if (to == SHOWN) move(w, i, STAY);
        else if (i.stage == SHOWN) move(w, i, KEEP);
        if (to == KEPT && i.stage == LEAVING) move(w, i, RETRACT);
        if (to == LEAVING && i.stage == KEPT) move(w, i, ANNOUNCE);
    }
}

// ---- what happens ----

void settle(World &w, unsigned wanted, bool hands_over) {
    w.change_seen = 0;
    w.has_target = 1;
    for (unsigned n = 0; n < ITEMS; n++) {
        Item &i = w.items[n];
        bool leaves = i.wanted && !(wanted >> n & 1);
        i.wanted = wanted >> n & 1;
        if (i.wanted || (leaves && !hands_over)) i.next = NOBODY;
        else if (leaves && is_shown(i)) i.next = UNREAD;
    }
    update_kept(w);
    bool revokes = w.state != RELEASE && lacks_shown(w);
    for (Item &i : w.items)
        if (!i.wanted && (!is_shown(i) || (is("drops_shown") && !is_kept(i)))) leave_place(w, i);
    if (revokes) revoke(w, w.eager);
    claim(w);
    reconsider(w);
    ask(w, SETTLED);
}

void see_change(World &w) {
    w.change_seen = 1;
    if (w.state != ACQUIRED) return;
    w.has_target = 0;
    revoke(w, true);
}

void hear_of_next(World &w, Item &i, Next next) {
    i.next = next;
    if (!w.has_target) return;
    update_kept(w);
    if (w.state != RELEASE && lacks_shown(w)) revoke(w, false);
}

void win(World &w, Item &i) {
    move(w, i, WIN);
    if (!w.eager && w.proven && i.wanted) move(w, i, SHOW);
    reconsider(w);
}

void lose_place(World &w, Item &i) {
    bool was_first = i.place == FIRST;
    move(w, i, is_shown(i) ? LOSE : LEAVE);
    if (!was_first || w.state != ACQUIRED || is("misses_deletion")) return;
    if (w.eager) revoke(w, true);
    else enter(w, ALLOCATING);
}

void hear_of_end(World &w, Item &i) {
    i.leaving--;
    if (!is("never_asks_again")) claim(w);
    reconsider(w);
}

void release(World &w) {
    ask(w, RELEASES);
    for (Item &i : w.items) {
        if (i.stage != REVOKED || is("keeps_revoked")) continue;
        if (i.wanted && w.has_target && !w.eager) move(w, i, RETURN);
        else if (!i.wanted && w.has_target && (i.next == UNREAD || i.next == HAS_NOTE)) move(w, i, WAIT);
        else leave_place(w, i);
    }
    update_kept(w);
    if (w.again) revoke(w, true);
    else if (w.has_target && lacks_shown(w) && !is("forgets_new_lack")) revoke(w, false);
    else enter(w, ALLOCATING);
    claim(w);
    check_complete(w);
    ask(w, RELEASED);
}

void suspend(World &w) {
    bool in_release = w.state == RELEASE;
    ask(w, SUSPEND);
    if (!in_release) revoke(w, true);
}

void hide_all(World &w) {
    for (Item &i : w.items)
        if (is_shown(i)) move(w, i, HIDE);
    w.has_target = w.again = w.change_seen = 0;
    for (Item &i : w.items) i.wanted = 0;
}

void lose_session(World &w) {
    w.rejoining = 1;
    w.proven = 0;
    enter(w, RELEASE);
    hide_all(w);
    for (Item &i : w.items) leave_place(w, i);
}

void fail(World &w) {
    enter(w, FAILURE);
    for (Item &i : w.items)
        if (!is_shown(i)) leave_place(w, i);
    hide_all(w);
}

void prove(World &w) {
    w.proven = 1;
    if (!w.eager) show_held(w);
    check_complete(w);
}

// ---- the search ----

enum Chance : uint8_t { FAIR, FREE, LOSS, USER }; // fair steps happen sooner or later; a user's answer is one, too

struct Way {
    const char *label;
    Chance kind;
};

using Base = model::Search<World, Way>;
using Choice = Base::Next;

// Puts the items in an order, as they differ by nothing but how they stand.
World sorted(World w) {
    std::sort(w.items, w.items + ITEMS, [](const Item &a, const Item &b) { return memcmp(&a, &b, sizeof a) < 0; });
    return w;
}

// Returns whether nothing has to follow.
bool is_end(const World &w) {
    for (const Item &i : w.items)
        if (w.state == FAILURE && (i.place != NO_PLACE || i.leaving)) return false;
    return w.state == ACQUIRED || w.state == FAILURE;
}

// Returns what is wrong with a world, or NULL.
const char *judge(World &w) {
    const char *why = apply(w, {REST, 0, nullptr});
    for (const Item &i : w.items)
        if (!why && is_kept(i) && w.state != RELEASE && (i.next == NOBODY || i.next == READY))
            why = "an item is kept for nobody";
    return why;
}

template <typename Do>
void step(std::vector<Choice> &steps, const World &from, const char *label, Chance kind, Do act) {
    Choice s{from, {label, kind}, kind == FAIR || kind == USER, nullptr, false};
    fault = nullptr;
    act(s.world);
    s.fault = fault ? fault : judge(s.world);
    for (unsigned n = 0; n < ITEMS && !s.fault; n++) {
        const Item &before = from.items[n], &after = s.world.items[n];
        bool released = kind == USER && before.stage == REVOKED && from.state == RELEASE && from.told;
        bool all_lost = s.world.state == FAILURE || s.world.rejoining;
        bool lost = kind == LOSS && (all_lost || after.place != FIRST);
        if (is_shown(before) && !is_shown(after) && !released && !lost)
            s.fault = "what was shown is hidden, and was neither released nor lost";
        if (kind == USER && !from.told && before.stage == REVOKED) s.fault = "a RELEASE ends that nobody was told of";
    }
    steps.push_back(s);
}

void add_item_steps(std::vector<Choice> &steps, const World &w, unsigned n) {
    const Item &i = w.items[n];
    bool queued = i.place == ASKED || i.place == WAITING || i.place == PARKED,
         works = w.state != FAILURE && !w.rejoining;
    auto place = [&](const char *label, Place to) {
        step(steps, w, label, FAIR, [=](World &next) { next.items[n].place = to; });
    };
    auto hear = [&](const char *label, Chance kind, Next to) {
        step(steps, w, label, kind, [=](World &next) { hear_of_next(next, next.items[n], to); });
    };
    if (i.place == ASKED) place("a place waits", WAITING);
    if (i.place == WAITING) place("a place is parked", PARKED);
    if (i.place == PARKED) place("a place is parked no longer", WAITING);
    if (queued && works) step(steps, w, "a place is the first", FAIR, [n](World &next) { win(next, next.items[n]); });
    if (queued && works && is("shows_early"))
        step(steps, w, "an item is shown", FAIR, [n](World &next) { move(next, next.items[n], SHOW); });
    if (i.place != NO_PLACE && works && i.leaving < LEAVING_MOST)
        step(steps, w, "SOMEBODY DELETES A PLACE", LOSS, [n](World &next) { lose_place(next, next.items[n]); });
    if (i.leaving) step(steps, w, "a place has left", FAIR, [n](World &next) { hear_of_end(next, next.items[n]); });
    if (i.stage == HIDDEN && i.wanted && works && !w.eager)
        step(steps, w, "the user is to prepare", FREE, [n](World &next) { move(next, next.items[n], PREPARE); });
    if (i.stage == PREPARING)
        step(steps, w, "that is called off", FREE, [n](World &next) { move(next, next.items[n], CALL_OFF); });
    if (i.next == UNREAD) hear("the next owner has a note", FAIR, HAS_NOTE);
    if (i.next == HAS_NOTE) hear("the next owner is ready", FAIR, READY);
    if (i.next == HAS_NOTE) hear("the next owner's note is to be read again", FREE, UNREAD);
    if (i.next == READY) hear("the next owner is ready no longer", FREE, HAS_NOTE);
    if (i.next != NOBODY) hear("the next owner has gone", FREE, NOBODY);
}

std::vector<Choice> list(const World &w) {
    std::vector<Choice> steps;
    bool holds = false, works = w.state != FAILURE;
    for (unsigned n = 0; n < ITEMS; n++) {
        add_item_steps(steps, w, n);
        holds = holds || w.items[n].place != NO_PLACE || w.items[n].leaving;
    }
    for (unsigned wanted = 0; wanted < 1u << ITEMS && works && !w.rejoining; wanted++) {
        Chance kind = w.has_target && !w.change_seen ? FREE : FAIR;
        step(steps, w, "a target settles", kind, [=](World &n) { settle(n, wanted, false); });
        if (w.eager) continue;
        step(steps, w, "a target settles, with next owners", kind, [=](World &n) { settle(n, wanted, true); });
    }
    if (works && w.eager && !w.rejoining) step(steps, w, "a change is seen", FREE, see_change);
    if (works && w.change_seen && w.has_target)
        step(steps, w, "the party stays as it was", FAIR, [](World &n) {
            n.change_seen = 0;
            reconsider(n);
        });
    if (works && !w.proven && !w.rejoining) step(steps, w, "the session is proven", FAIR, prove);
    if (w.state == RELEASE && !w.told)
        step(steps, w, "the user is told of RELEASE", FAIR, [](World &n) { n.told = 1; });
    if (w.state == RELEASE && (w.told || is("takes_any_answer"))) step(steps, w, "the user releases", USER, release);
    if (works && w.suspends) step(steps, w, "THE SESSION IS SUSPENDED", FREE, suspend);
    if (works && w.rejoins) step(steps, w, "THE SESSION IS LOST", LOSS, lose_session);
    if (w.rejoining && !holds && w.state == ALLOCATING)
        step(steps, w, "the member takes part again", FAIR, [](World &n) { n.rejoining = 0; });
    if (works || is("fails_again")) step(steps, w, "THE MEMBER FAILS", LOSS, fail);
    if (!works && holds) {
        step(steps, w, "the user has finished", FAIR, [](World &n) {
            for (Item &i : n.items)
                if (i.leaving < LEAVING_MOST) leave_place(n, i);
        });
    }
    return steps;
}

// Returns a row of a table that was never used, or NULL.
const char *unused_row() {
    static std::string what;
    what.clear();
    for (unsigned m = 0; m < MOVES; m++) {
        if (moved[m]) continue;
        what = std::string("never made: ") + ROWS[m].name;
    }
    for (unsigned n = 0; n < STATES * STATES; n++) {
        unsigned from = n / STATES, to = n % STATES;
        if (entered[n] || !(NEXT_STATES[from] >> to & 1)) continue;
        what = std::string("never happens: ") + STATE_NAMES[from] + " to " + STATE_NAMES[to];
    }
    return what.empty() ? nullptr : what.c_str();
}

class Search : public Base {
    struct Edge {
        uint32_t from, to;
    };
    std::vector<Choice> steps;
    std::vector<Edge> ways_on;

    void begin() override {
        for (unsigned chosen = 0; chosen < 8; chosen++) {
            World w = {};
            w.eager = chosen & 1, w.suspends = chosen >> 1 & 1, w.rejoins = chosen >> 2 & 1;
            add(w, 0, {"begin", FREE});
        }
    }
    const std::vector<Choice> &steps_of(const World &w) override {
        return steps = list(w);
    }
    World canonical(const World &w) override {
        return sorted(w);
    }
    void made(uint32_t from, uint32_t to, const Choice &s) override {
        if (s.fair) ways_on.push_back({from, to});
    }
    // Finds a world that has no way on, and a row that was never used.
    const char *finish(uint32_t *at) override {
        std::vector<bool> has_way(all.size());
        for (uint32_t i = 0; i < all.size(); i++) has_way[i] = is_end(all[i].world);
        for (bool more = true; more;) {
            more = false;
            for (size_t n = ways_on.size(); n-- > 0;) {
                if (has_way[ways_on[n].from] || !has_way[ways_on[n].to]) continue;
                has_way[ways_on[n].from] = more = true;
            }
        }
        for (*at = 0; *at < all.size(); ++*at)
            if (!has_way[*at]) return "there is no way on from here";
        return *at = 0, model::broken ? nullptr : unused_row();
    }
    std::string label(const World &, const Way &way) override {
        return way.label;
    }
};

model::Outcome search(unsigned, bool) {
    return Search().run();
}

} // namespace

int main(int count, char **arguments) {
    return model::run({"member", "the member", VARIANTS, {{"", false}}, false, search}, count, arguments);
}
