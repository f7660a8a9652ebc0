// A replay of the simulator's records of members against the rules of P4 to P8 and P18. SPDX-License-Identifier:
// Apache-2.0
//
//   sim --plans --histories 200 --seed 1 --steps FILE
//   replay_member FILE              asks the rules of test/model/rules/member.h for each record
//   replay_member --spoil N FILE    drops, and alters, each record of the first N histories in turn
//
// Each record also tells where its item stands, and of what state it is the next. That has to be where the moves before
// have brought it. Whether an item is wanted, a session is proven or a plan agrees is the record's word.
#include "../model/rules/member.h"

#include "replay.h"

using namespace member;
using replay::number;
using replay::Record;

namespace {

uint64_t moved[MOVES], entered[STATES][STATES], taken[KINDS];

const char *const STEP_NAMES[KINDS] = {"",
                                       "",
                                       "an item comes into the target, or leaves it",
                                       "the user is told of a RELEASE",
                                       "a session event (P7)",
                                       "the user releases (P6)",
                                       "",
                                       "a target settles (P4)",
                                       "a member rests"};

struct World : Own {
    std::vector<Item> items;
    int64_t id = 1;      // of its state
    bool is_asked;       // its user has called release, and what became of that is not told yet
    const char *refused; // why that is not to be taken, or NULL
};

// Place and stage of the library have the order of those of the rules, but for the one place.
static_assert(GOING == 5 && REVOKED == 5, "as in lib/partitioner/item.h");

class Player {
  public:
    // Returns NULL, or why the record is refused.
    const char *play(const Record &r) {
        if (r.object == "*") return nullptr;
        auto found = members.find(std::string(r.object));
        if (r.kind == "begins") return begin(&members[std::string(r.object)], r);
        if (found == members.end()) return "it has not begun";
        World &w = found->second;
        read_facts(&w, r);
        if (r.has("item")) return play_item(w, r);
        if (r.kind == "state") return state(w, r);
        if (r.kind == "told") return tell(w, r);
        if (r.kind == "suspend") return ask(w, SUSPEND);
        if (r.kind == "settled") return ask(w, SETTLED);
        if (r.kind == "rests") return rest(w, r);
        if (r.kind == "releases") return release(w, r);
        if (r.kind == "released" || r.kind == "refused") return end_release(w, r.kind == "released");
        return "there is no such record";
    }

  private:
    std::map<std::string, World> members; // by slot

    static const char *ask(World &w, Kind kind, uint8_t what = 0, Item *item = nullptr) {
        const char *why = apply(w, {kind, what, item});
        if (!why) taken[kind]++;
        return why;
    }
    static void read_facts(World *w, const Record &r) {
        std::string_view facts = r.value("facts");
        uint8_t *const fields[] = {&w->has_target, &w->proven, &w->change_seen,
                                   &w->disagrees,  &w->leaves, &w->rejoining};
        for (size_t i = 0; i < facts.size() && i < sizeof fields / sizeof *fields; i++) *fields[i] = facts[i] == '1';
        w->unfit = static_cast<uint8_t>(number(r.value("unfit")));
    }
    const char *begin(World *w, const Record &r) {
        *w = World();
        static_cast<Own &>(*w) = {};
        w->eager = r.value("eager") == "1";
        w->suspends = r.value("suspends") == "1";
        w->rejoins = r.value("rejoins") == "1";
        read_facts(w, r);
        return nullptr;
    }

    // ---- items ----

    const char *play_item(World &w, const Record &r) {
        size_t n = static_cast<size_t>(number(r.value("item")));
        if (n >= w.items.size()) w.items.resize(n + 1);
        Item &i = w.items[n];
        if (const char *why = stand(w, &i, r)) return why;
        if (r.kind == "want") return ask(w, WANT, 0, &i);
        if (r.kind == "left") {
            if (!i.leaving) return "no place of the item is on its way out";
            i.leaving--;
            return nullptr;
        }
        for (uint8_t m = 0; m < MOVES; m++) {
            if (name_of(m) != r.value("move")) continue;
            const char *why = ask(w, MOVE, m, &i);
            moved[m] += !why;
            return why;
        }
        return "there is no such move";
    }
    // Returns why the item can not stand where the record says, or NULL. An item that its user knows nothing of may
    // leave the member's table, and come back as a new one. The new one does not know of places that are on their way
    // out, and nobody was told to prepare for it. Those of the old one still leave.
    static const char *stand(World &w, Item *i, const Record &r) {
        int64_t place = number(r.value("place")), stage = number(r.value("stage"));
        bool is_wanted = r.value("wanted") == "1", is_hidden = stage == HIDDEN && !is_wanted;
        if (r.kind == "left" && i->leaving && place == GOING && is_hidden) return nullptr;
        bool is_new = r.kind == "want" && place == NO_PLACE && is_hidden && i->place == NO_PLACE;
        if (is_new && i->stage == PREPARING) ask(w, MOVE, CALL_OFF, i);
        if (i->place >= ASKED && i->place <= PARKED && place >= ASKED && place <= PARKED)
            i->place = static_cast<uint8_t>(place); // as answers come
        bool is_forgotten = place_of(*i) == GOING && place == NO_PLACE;
        if ((place_of(*i) != place && !is_forgotten) || i->stage != stage) return "P18: the item stands elsewhere";
        return i->wanted == is_wanted ? nullptr : "the target is another";
    }
    static std::string name_of(uint8_t m) {
        return m == CALL_OFF ? "call-off" : ROWS[m].name;
    }

    // ---- the state ----

    const char *state(World &w, const Record &r) {
        int64_t to = number(r.value("to")), id = number(r.value("id"));
        uint8_t from = w.state;
        if (to >= STATES || id != w.id + 1) return "P4: the state is not the next one";
        if (const char *why = ask(w, ENTER, static_cast<uint8_t>(to))) return why;
        entered[from][to]++;
        w.id = id;
        return nullptr;
    }
    const char *tell(World &w, const Record &r) {
        if (number(r.value("id")) > w.id) return "P17: the user is told of what is to come";
        return number(r.value("id")) == w.id ? ask(w, TELL) : nullptr;
    }
    // Totals that the member itself counts have to be those of its items.
    static const char *rest(World &w, const Record &r) {
        int64_t wanted = 0, shown = 0, leaving = 0;
        for (const Item &i : w.items) wanted += i.wanted, shown += is_shown(i), leaving += i.leaving;
        if (w.is_asked) return "P6: nobody was told what became of a release";
        if (w.state != number(r.value("state"))) return "P4: its state is another";
        if (wanted != number(r.value("wanted"))) return "its target is another";
        if (shown != number(r.value("shown"))) return "P18: it shows other items";
        if (leaving != number(r.value("leaving"))) return "P18: other places are on their way out";
        return ask(w, REST);
    }
    static const char *release(World &w, const Record &r) {
        if (w.is_asked) return "P6: nobody was told what became of a release";
        w.is_asked = true;
        w.refused = number(r.value("id")) != w.id ? "P6: it was of another RELEASE" : ask(w, RELEASES);
        return nullptr;
    }
    static const char *end_release(World &w, bool is_taken) {
        if (!w.is_asked) return "P6: nobody has released";
        w.is_asked = false;
        if (is_taken) return w.refused ? w.refused : ask(w, RELEASED);
        return w.refused ? nullptr : "P6: the user's release is refused";
    }
};

// ---- sensitivity ----

using Kinds = std::initializer_list<std::string_view>;

// Returns the next record of its member, or with `step` -1 the last one, that is of these kinds; 0: there is none.
size_t find(const replay::History &history, size_t at, Kinds kinds, int step = 1) {
    const std::vector<Record> &all = history.records;
    for (size_t i = at + static_cast<size_t>(step); i > 0 && i < all.size(); i += static_cast<size_t>(step))
        for (std::string_view kind : kinds)
            if (all[i].object == all[at].object && all[i].kind == kind) return i;
    return 0;
}

std::string_view kind_at(const replay::History &history, size_t at) {
    return at ? history.records[at].kind : "";
}

// Returns whether another record of the same item follows, which says where it stands.
bool is_followed(const replay::History &history, size_t at) {
    const std::string_view item = history.records[at].value("item");
    for (size_t i = at; (i = find(history, i, {"begins", "move", "want", "left"}));) {
        if (kind_at(history, i) == "begins") return false;
        if (history.records[i].value("item") == item) return true;
    }
    return false;
}

// A member that rests tells its state, and how many items it wants, shows and is leaving. So what came before is missed
// there. Nobody misses that a RELEASE was told which its user did not answer, or an event that revokes nothing.
bool matters(const replay::History &history, size_t at) {
    const Record &r = history.records[at];
    if (r.kind == "rests" || r.kind == "settled" || r.kind == "session-end") return false; // they change nothing
    if (r.kind == "told") {
        size_t asked = find(history, at, {"state", "releases"});
        return kind_at(history, asked) == "releases" &&
               kind_at(history, find(history, asked, {"released", "refused"})) == "released";
    }
    if (r.kind == "suspend") {
        size_t first = find(history, at, {"begins"}, -1);
        return first && history.records[first].value("suspends") == "1" &&
               kind_at(history, find(history, at, {"state", "rests"})) == "state";
    }
    if (r.kind == "begins" && find(history, at, {"begins"}, -1)) return false; // the one before may have done nothing
    std::string_view move = r.value("move");
    if (move == "call-off") return false; // its item may be a new one by then: stand()
    bool is_counted =
        move.empty() || move == "leave" || move == "show" || move == "release" || move == "lose" || move == "hide";
    return is_followed(history, at) ||
           (is_counted && kind_at(history, find(history, at, {"begins", "rests"})) == "rests");
}

// Returns whether something in it can be altered: where its item stands, or a number.
bool alter(Record *r) {
    if (r->has("item")) return r->set("stage", r->value("stage") == "0" ? "2" : "0");
    return r->has("id") && r->set("id", std::to_string(number(r->value("id")) + 1));
}

const std::vector<replay::Excuse> DROPPED = {
    {"state", 99, "the same state again, and the member ends before its number matters"},
};
const std::vector<replay::Excuse> ALTERED = {
    {"releases", 0, "what is refused is refused by another number, too"},
};

// Prints how often each rule was taken. Returns whether each was.
bool print_taken() {
    bool good = true;
    for (unsigned m = 0; m < MOVES; m++) {
        printf("%9llu %s\n", static_cast<unsigned long long>(moved[m]), ROWS[m].name);
        good = good && moved[m];
    }
    for (unsigned n = 0; n < STATES * STATES; n++) {
        unsigned from = n / STATES, to = n % STATES;
        if (!(NEXT_STATES[from] >> to & 1)) continue;
        printf("%9llu %s to %s\n", static_cast<unsigned long long>(entered[from][to]), STATE_NAMES[from],
               STATE_NAMES[to]);
        good = good && entered[from][to];
    }
    for (unsigned k = 0; k < KINDS; k++) {
        if (!*STEP_NAMES[k]) continue;
        printf("%9llu %s\n", static_cast<unsigned long long>(taken[k]), STEP_NAMES[k]);
        good = good && taken[k];
    }
    return good;
}

} // namespace

int main(int count, char **arguments) {
    replay::Kind kind = {"replay_member", "*m", alter, print_taken, DROPPED, ALTERED, matters};
    return replay::run<Player>(kind, count, arguments);
}
