// A replay of the simulator's records of pools against the rules of handovers. SPDX-License-Identifier: Apache-2.0
//
//   sim --plans --histories 200 --seed 1 --steps FILE
//   replay_handover FILE              asks the rules of test/model/rules/handover.h for each record
//   replay_handover --spoil N FILE    drops, and alters, each record of the first N histories in turn
//
// A pool has more members, plans and numbers than the model's world. So each decision of a member is put into a world of
// two: itself, and the one that it takes an item from or gives it to. What the member knows, by the records, is there.
// The rules only compare numbers, so that small ones in the same order stand for them.
#include "../model/rules/handover.h"
#include "papers.h"

using namespace handover;
using replay::Given;
using replay::hex;
using replay::number;
using replay::Paper;
using replay::Record;
using replay::Text;

namespace {

enum { SELF, OTHER };

uint64_t taken[KINDS], taken_zero;

struct Place {
    std::string who;
    int64_t number;
    uint64_t czxid;
    bool parks; // it has entered without a list, or need not have read a note
    bool listed_first;
    std::map<std::string, uint64_t> gifts; // by node: the set of a note that gave it to its member, who has read that
};

// A place that left when its next owner was ready.
struct Release {
    uint64_t seen; // r of T5
    bool must;     // it has to be given; else it may be
};

// What a member follows and has of one item.
struct Own {
    bool wanted, first, revoked;
    int64_t away;                      // when it was wanted last
    std::map<std::string, bool> asked; // places, by name without a number: whether they park
    int64_t number;
    uint64_t czxid, set;
    std::string to, from;
    uint64_t to_since;                   // record
    std::map<int64_t, Release> released; // by number
};

// The member follows a plan that gives the item to itself, or to the other.
World world_of(bool mine, Stage stage) {
    World w;
    memset(&w, 0, sizeof w);
    w.owners[0] = mine ? SELF : OTHER;
    w.members[SELF].lives = w.members[OTHER].lives = w.members[SELF].place = w.members[OTHER].place = 1;
    w.members[SELF].stage = stage;
    w.members[OTHER].stage = mine ? OWNS : WAITS;
    w.members[SELF].number = 2;
    w.members[OTHER].number = mine ? 1 : 3;
    w.next = 4;
    return w;
}

class Player {
  public:
    // Returns NULL, or why the record is refused.
    const char *play(const Record &r) {
        records++;
        if (r.object == "*") return nullptr;
        if (!owed.empty() && r.kind != "leaves") return "a note gave an item whose place stays";
        if (r.kind == "note") return note(r);
        if (r.kind == "note-ends") return note_ends(r);
        if (r.kind == "says") return says(r);
        if (r.kind == "read") return read(r);
        size_t item = static_cast<size_t>(number(r.object.substr(1)));
        if (r.kind == "follow") return follow(r, item);
        if (r.kind == "asks") return asks(r, item);
        if (r.kind == "enters") return enters(r, item);
        if (r.kind == "leaves") return leaves(r, item);
        if (r.kind == "list") return list(r, item);
        if (r.kind == "owns") return owns(r, item);
        if (r.kind == "revoked") return revoked(r, item);
        if (r.kind == "keeps") return keeps(r, item);
        if (r.kind == "releases") return releases(r, item);
        if (r.kind == "ends") return ends(r, item);
        return "there is no such record";
    }

  private:
    struct Reader {
        std::map<std::string, uint64_t> last;    // by node: the mzxid of its note; 0: it has gone
        std::map<std::string, uint64_t> read_at; // by node: the record
        std::map<size_t, Own> items;
    };
    std::map<std::string, Reader> members;                 // by session
    std::map<std::string, Paper> papers;                   // by node
    std::map<size_t, std::map<std::string, Place>> queues; // by item, by name
    std::map<size_t, std::vector<Place>> past;             // those that did not leave by their members
    std::set<Given> said, given;
    std::set<std::pair<size_t, int64_t>> owed; // given, and their places not gone yet
    uint64_t records = 0;

    const char *ask(World *w, Kind kind, uint8_t argument = 0) {
        const char *why = apply(*w, {kind, SELF, argument});
        if (!why) taken[kind]++;
        return why;
    }

    // The note of that node, as the member has read it. `place` is its own.
    Note note_for(const Reader &m, const std::string &node, size_t item, const Place *place, uint8_t *czxid) {
        Note n = {};
        auto last = m.last.find(node);
        if (last == m.last.end()) return n;
        n.known = 1;
        n.gone = !last->second;
        n.mzxid = 5;
        if (n.gone) return n;
        const Text &t = papers[node].committed[last->second];
        auto own = m.items.find(item);
        if (own == m.items.end() || t.set != own->second.set) return n; // T0: it is passed over
        n.leaving = static_cast<uint8_t>(t.leaving.count(item));
        n.ready = static_cast<uint8_t>(t.ready.count(item));
        for (const Given &g : t.given) {
            if (!place || g.item != item || g.number + 1 != place->number) continue;
            n.given = 2;
            n.given_to = 2;
            *czxid = place->czxid <= g.seen ? 2 : 3;
            if (*czxid == 2) break;
        }
        return n;
    }
    Place *place_of(const Record &r, size_t item, uint64_t czxid) {
        for (auto &p : queues[item])
            if (p.second.czxid == czxid && p.second.who == r.who) return &p.second;
        for (Place &p : past[item])
            if (p.czxid == czxid && p.who == r.who) return &p;
        return nullptr;
    }

    const char *follow(const Record &r, size_t item) {
        Own &own = members[std::string(r.who)].items[item];
        bool was_wanted = own.wanted;
        own.wanted = r.value("wanted") == "1";
        if (own.wanted || was_wanted) own.away = number(r.ms);
        own.set = hex(r.value("set"));
        if (own.to != r.value("to")) own.to_since = records;
        own.to = r.value("to");
        own.from = r.value("from");
        return nullptr;
    }
    const char *read(const Record &r) {
        Reader &m = members[std::string(r.who)];
        std::string node(r.value("node"));
        if (r.value("answer") == "lost") return nullptr;
        uint64_t mzxid = hex(r.value("mzxid"));
        if (r.has("mzxid") && !papers[node].committed.count(mzxid)) return "nobody wrote such a note";
        m.last[node] = mzxid;
        m.read_at[node] = records;
        if (mzxid) note_gifts(r, node, papers[node].committed[mzxid]);
        return nullptr;
    }
    // What was given stays so when the note has gone. A member whose session is not proven owns it only later.
    void note_gifts(const Record &r, const std::string &node, const Text &t) {
        for (const Given &g : t.given)
            for (auto &p : queues[g.item])
                if (p.second.who == r.who && p.second.number == g.number + 1 && p.second.czxid <= g.seen)
                    p.second.gifts[node] = t.set;
    }

    // ---- places ----

    const char *enters(const Record &r, size_t item) {
        std::string name(r.value("name"));
        if (replay::number_at(name) == std::string::npos) return nullptr;
        if (queues[item].count(name)) return "that place stands";
        Place &place = queues[item][name];
        place = {std::string(r.who), replay::number_of(name), hex(r.value("zxid")), false, false, {}};
        auto m = members.find(std::string(r.who));
        if (m == members.end()) return nullptr; // kazoo's, or an administrator's
        Own &own = m->second.items[item];
        own.released.erase(place.number); // another place had it
        auto asked = own.asked.find(name.substr(0, replay::number_at(name)));
        if (asked == own.asked.end()) return "nobody asked for the place";
        place.parks = asked->second;
        return nullptr;
    }
    const char *asks(const Record &r, size_t item) {
        Reader &m = members[std::string(r.who)];
        Own &own = m.items[item];
        auto asked = own.asked.emplace(r.value("name"), true);
        if (!asked.second) return nullptr;         // an answer was lost, or was a refusal: it enters as before
        if (r.value("can") != "1") return nullptr; // B6, P11, T8
        if (!own.wanted) return "its plan gives the item to another";
        uint8_t czxid = 2;
        World w = world_of(true, PREPARED);
        w.members[SELF].from = own.from.empty() ? 0 : OTHER + 1;
        w.members[SELF].read[OTHER] = note_for(m, own.from, item, nullptr, &czxid);
        const Note &n = w.members[SELF].read[OTHER];
        bool parks = asked.first->second = n.known && !n.gone && n.leaving;
        return ask(&w, parks ? GO_IN : GO_IN_LISTING);
    }
    const char *leaves(const Record &r, size_t item) {
        std::string name(r.value("name"));
        if (replay::number_at(name) == std::string::npos) return nullptr;
        auto place = queues[item].find(name);
        if (place == queues[item].end()) return "there is no such place";
        auto m = members.find(std::string(r.who));
        bool owned =
            m != members.end() && m->second.items[item].first && m->second.items[item].czxid == place->second.czxid;
        if (owned && r.value("by") == "owner") return "the place of an item that its member owns";
        owed.erase({item, place->second.number});
        if (r.value("by") != "owner") past[item].push_back(place->second); // its member may not know
        queues[item].erase(place);
        return nullptr;
    }
    const char *list(const Record &r, size_t item) {
        if (r.value("answer") != "done") return nullptr;
        int64_t least = INT64_MAX;
        for (std::string_view names = r.value("names"); !names.empty();) {
            std::string_view name = replay::take_word(&names, ',');
            if (replay::number_at(name) != std::string::npos && replay::number_of(name) < least)
                least = replay::number_of(name);
        }
        for (auto &p : queues[item])
            if (p.second.who == r.who && p.second.number == least) p.second.listed_first = true;
        for (Place &p : past[item])
            if (p.who == r.who && p.number == least) p.listed_first = true;
        return nullptr;
    }

    // ---- what a member owns ----

    const char *owns(const Record &r, size_t item) {
        Reader &m = members[std::string(r.who)];
        Own &own = m.items[item];
        if (own.first) return "it owns the item";
        own.czxid = hex(r.value("czxid"));
        const Place *place = place_of(r, item, own.czxid);
        if (!place) return "it has no such place";
        own.number = place->number;
        if (number(r.value("number")) != own.number) return "its place has another number";
        if (stands(r, item, own.number) && is_behind(item, own.number)) return "another place stands before its own";
        own.first = true;
        own.revoked = false;
        World w = world_of(true, place->listed_first || !place->parks ? LISTS : PARKED);
        w.members[OTHER].place = !place->listed_first;
        if (place->listed_first) return ask(&w, LIST);
        w.members[SELF].from = OTHER + 1;
        if (!own.number) { // Q9
            w.members[SELF].stage = PARKED;
            w.members[SELF].number = 0;
            taken_zero++;
            return apply(w, {TAKE_BY_NUMBER, SELF, 0});
        }
        w.members[SELF].czxid = 2;
        Note &n = w.members[SELF].read[OTHER] = note_for(m, own.from, item, place, &w.members[SELF].czxid);
        auto gift = place->gifts.find(own.from);
        if (gift != place->gifts.end() && gift->second == own.set) {
            n = {};
            n.known = 1;
            n.given = n.given_to = w.members[SELF].czxid = 2;
        }
        return ask(&w, TAKE_BY_NUMBER);
    }
    // Returns whether its patience has ended since it follows plans that give the item away. The record of that comes
    // with the next request or answer, which may be some milliseconds late: as for S18, nine tenths count.
    static bool is_overdue(const Record &r, const Own &own) {
        return (number(r.ms) - own.away) * 10 >= number(r.value("patience")) * 9;
    }
    const char *revoked(const Record &r, size_t item) {
        Reader &m = members[std::string(r.who)];
        Own &own = m.items[item];
        if (!own.first) return "it does not own the item";
        if (own.revoked) return "it is revoked";
        own.revoked = true;
        if (r.value("can") != "1" || own.to.empty()) return nullptr; // T1: at once
        uint8_t czxid = 2;
        World w = world_of(own.wanted, OWNS);
        w.members[SELF].read[OTHER] = note_for(m, own.to, item, nullptr, &czxid);
        const char *why = ask(&w, REVOKE);
        if (!why || !is_overdue(r, own)) return why;
        w.may_time_out = 1;
        return ask(&w, TIME_OUT);
    }
    World world_of_release(const Record &r, const Reader &m, const Own &own, size_t item) {
        uint8_t czxid = 2;
        World w = world_of(own.wanted, REVOKED);
        w.members[SELF].overdue = is_overdue(r, own);
        w.members[SELF].read[OTHER] = note_for(m, own.to, item, nullptr, &czxid);
        return w;
    }
    // The user has released it, and it stays: T5 has looked again.
    const char *keeps(const Record &r, size_t item) {
        Reader &m = members[std::string(r.who)];
        Own &own = m.items[item];
        if (!own.revoked) return "it keeps what was not revoked";
        own.revoked = false;
        if (r.value("can") != "1" || own.to.empty()) return nullptr;
        World w = world_of_release(r, m, own, item);
        const Note &n = w.members[SELF].read[OTHER];
        // It is not due yet, or waits for the note: a note is forgotten while none of its items goes there.
        if (w.members[SELF].overdue || !n.known || m.read_at[own.to] < own.to_since) return nullptr;
        const char *why = ask(&w, USER_RELEASES, own.wanted ? 0 : n.gone);
        return why || w.members[SELF].stage != OWNS ? "it keeps what is to go" : nullptr;
    }
    // The user has released it, and its place leaves.
    const char *releases(const Record &r, size_t item) {
        Reader &m = members[std::string(r.who)];
        Own &own = m.items[item];
        const char *none = ends(r, item);
        if (none) return none;
        if (!own.revoked) return "it releases what was not revoked";
        own.revoked = false;
        if (own.to.empty()) return nullptr;
        World w = world_of_release(r, m, own, item);
        bool can = r.value("can") == "1";
        if (is_ready(w.members[SELF].read[OTHER])) own.released[own.number] = {m.last[own.to], can};
        if (!can || !stands(r, item, own.number)) return nullptr;
        const char *why = ask(&w, USER_RELEASES);
        return why || w.members[SELF].stage != RELEASES ? "it releases what it is to keep" : nullptr;
    }
    const char *ends(const Record &r, size_t item) {
        Own &own = members[std::string(r.who)].items[item];
        if (!own.first) return "it does not own the item";
        own.first = false;
        return nullptr;
    }

    // ---- a write of a note ----

    bool stands(const Record &r, size_t item, int64_t at) {
        for (const auto &p : queues[item])
            if (p.second.who == r.who && p.second.number == at) return true;
        return false;
    }
    bool is_behind(size_t item, int64_t at) {
        for (const auto &p : queues[item])
            if (p.second.number < at) return true;
        return false;
    }
    // Its member may not know that somebody has deleted the place.
    bool has_place(const Record &r, size_t item) {
        for (const auto &p : queues[item])
            if (p.second.who == r.who) return true;
        for (const Place &p : past[item])
            if (p.who == r.who) return true;
        return false;
    }

    // What was said before may stay until its place leaves by a write.
    const char *leaving(const Record &r, size_t item, bool was_said) {
        const Own &own = members[std::string(r.who)].items[item];
        if (was_said && !own.first) return nullptr;
        World w = world_of(own.wanted, own.first ? OWNS : OUT);
        const char *why = ask(&w, SAY);
        return why || !w.members[SELF].says.leaving ? "it says leaving of what it keeps, or does not own" : nullptr;
    }
    const char *ready(const Record &r, size_t item, bool was_said) {
        const Own &own = members[std::string(r.who)].items[item];
        if (was_said && !own.first) return nullptr;
        bool wanted = own.wanted || !own.set; // the call that makes the partitioner has not returned
        World w = world_of(wanted, own.first ? OWNS : has_place(r, item) ? WAITS : ENTERS);
        const char *why = ask(&w, SAY);
        return why || !w.members[SELF].says.ready ? "it says ready of what it owns, or where it has no place" : nullptr;
    }
    const char *gives(const Record &r, const Given &g) {
        const Own &own = members[std::string(r.who)].items[g.item];
        auto release = own.released.find(g.number);
        if (release == own.released.end()) return "it gives what it has not released to a member that is ready";
        if (release->second.seen != g.seen) return "it gives by another note than the one that it had read";
        return nullptr;
    }
    const char *takes_away(const Record &r, const Text &t, size_t item, int64_t at) {
        const Own &own = members[std::string(r.who)].items[item];
        if (own.first && own.number == at) return "it takes away a place whose item it owns";
        auto release = own.released.find(at);
        if (release == own.released.end() || !release->second.must || t.set != own.set) return nullptr;
        const Given g = {item, at, release->second.seen};
        for (const Given &other : t.given)
            if (other == g) return nullptr;
        return "it does not give to a member that is ready";
    }
    const char *says(const Record &r) {
        Paper &paper = papers[std::string(r.value("node"))];
        int64_t version = number(r.value("version"));
        const Text t = replay::text_of(r), none = {}, &last = paper.sent.empty() ? none : paper.sent.back().second;
        for (const auto &sent : paper.sent)
            if (sent.first == version && sent.second == t) return nullptr; // T0: sent again, unchanged
        if (version > (paper.sent.empty() ? -1 : paper.sent.back().first + 1)) return "no write leaves that version";
        const char *why = nullptr;
        std::set<size_t> goes;
        for (std::string_view rest = r.value("gone"); !why && !rest.empty();) {
            std::string_view name = replay::take_word(&rest, ',');
            size_t item = static_cast<size_t>(number(replay::take_word(&name, ':')));
            goes.insert(item);
            why = takes_away(r, t, item, replay::number_of(name));
        }
        for (size_t i : t.leaving)
            if (!why) why = leaving(r, i, last.leaving.count(i) && !goes.count(i));
        for (size_t i : t.ready)
            if (!why) why = ready(r, i, last.ready.count(i) && !goes.count(i));
        for (const Given &g : t.given)
            if (!why && said.insert(g).second) why = gives(r, g); // a process's next note has them too (T0)
        paper.sent.push_back({version, t});
        return why;
    }
    const char *note_ends(const Record &r) {
        papers[std::string(r.value("node"))].next = -1;
        return nullptr;
    }
    const char *note(const Record &r) {
        Paper &paper = papers[std::string(r.value("node"))];
        const Text t = replay::text_of(r);
        bool was_sent = false;
        for (const auto &sent : paper.sent)
            was_sent = was_sent || (sent.first == paper.next && (sent.second == t || !t.set || !sent.second.set));
        if (!was_sent) return "nobody sent that";
        paper.next++;
        paper.committed[hex(r.value("zxid"))] = t;
        for (const Given &g : t.given) {
            if (!given.insert(g).second) continue;
            if (!stands(r, g.item, g.number)) return "it gives a place that it does not have";
            if (is_behind(g.item, g.number)) return "another place stands before what it gives";
            owed.insert({g.item, g.number});
        }
        return nullptr;
    }
};

// ---- sensitivity ----

// Returns whether something in it can be altered: a name, a number, a version, what a plan says, or what a note says.
bool alter(Record *r) {
    std::string_view names = r->value("names");
    std::string given(r->value("given"));
    size_t comma = names.find(',');
    if (r->kind == "asks") return r->set("name", std::string(r->value("name")) + "1");
    if (r->kind == "enters" || r->kind == "leaves") return r->set("name", replay::another_number(r->value("name")));
    if (r->kind == "owns") return r->set("number", std::to_string(number(r->value("number")) + 1));
    if (r->kind == "read") return r->has("mzxid") && r->set("mzxid", std::string(r->value("mzxid")) + "1");
    if (r->kind == "follow") return r->set("wanted", r->value("wanted") == "1" ? "0" : "1");
    if (r->kind == "list")
        return r->set("names", std::string(comma == std::string_view::npos ? "" : names.substr(comma + 1)));
    if (r->kind == "note" || r->kind == "says") return r->set("given", given.empty() ? "0:7:1" : given + "1");
    return false;
}

const char *const LAST = "nothing came of it later, or a later one says the same";
const std::vector<replay::Excuse> DROPPED = {
    {"asks", 65, "it was lost, or asked for again"},
    {"ends", 65, "the session ended, and nothing came later"},
    {"enters", 99, LAST},
    {"follow", 20, "most say where an item goes that the member has nothing to do with"},
    {"keeps", 30, LAST},
    {"leaves", 65, LAST},
    {"list", 40, "a place of the number 0 needs none (Q9), or it is not the first, or not for the first time"},
    {"note", 50, "the last one of its node, and nobody read it"},
    {"note-ends", 0, "only a note that is made again needs it"},
    {"owns", 99, LAST},
    {"read", 25, "it says nothing new of an item that the member gives or takes"},
    {"releases", 98, LAST},
    {"revoked", 90, LAST},
    {"says", 85, "it was sent again, or not carried out"},
    {"session-end", 0, "its places and its note have records of their own"},
};
const std::vector<replay::Excuse> ALTERED = {
    {"asks", 65, "as dropped"},
    {"enters", 99, LAST},
    {"follow", 25, "as dropped"},
    {"list", 45, "as dropped"},
};

const struct {
    Kind kind;
    const char *name;
} RULES[] = {
    {GO_IN, "enter without a list (T2)"},   {GO_IN_LISTING, "enter, and list (T2)"},
    {TAKE_BY_NUMBER, "own by number (T6)"}, {LIST, "own by a list (Q4)"},
    {SAY, "say leaving or ready (T1, T2)"}, {REVOKE, "revoke (T3)"},
    {TIME_OUT, "revoke, overdue (T4)"},     {USER_RELEASES, "release, or keep (T5)"},
};

// Prints how often each rule was taken. Returns whether each was.
bool print_taken() {
    bool good = true;
    for (const auto &rule : RULES) {
        printf("%9llu %s\n", static_cast<unsigned long long>(taken[rule.kind]), rule.name);
        good = good && taken[rule.kind];
    }
    printf("%9llu own by the number 0 (Q9)\n", static_cast<unsigned long long>(taken_zero));
    return good;
}

} // namespace

int main(int count, char **arguments) {
    replay::Kind kind = {"replay_handover", "*in", alter, print_taken, DROPPED, ALTERED, nullptr};
    return replay::run<Player>(kind, count, arguments);
}
