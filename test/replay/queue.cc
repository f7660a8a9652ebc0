// A replay of the simulator's records against the rules of a lock's queue. SPDX-License-Identifier: Apache-2.0
//
//   sim --locks --histories 200 --seed 1 --steps FILE
//   replay_queue FILE              asks the rules of test/model/rules/queue.h for each record
//   replay_queue --spoil N FILE    drops, and alters, each record of the first N histories in turn
//
// Ends with status 1 where a record is refused, or where a rule was never taken. With --spoil it does so where spoilt
// histories are not refused; DROPPED and ALTERED say why some need not be. Watches that fire are not recorded, nor is
// what kazoo members and administrators ask for.
#define QUEUE_PLACES 400
#define QUEUE_CLIENTS 100
#define QUEUE_ASKED 24
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "../model/rules/queue.h"

using namespace queue;

namespace {

struct Record {
    size_t line;
    std::string who, object, kind;
    std::map<std::string, std::string> values;
    std::string value(const char *key) const {
        auto found = values.find(key);
        return found == values.end() ? "" : found->second;
    }
};
using History = std::vector<Record>;

uint64_t taken[KINDS][REFUSED + 1];

Record parse(const std::string &text, size_t line) {
    std::istringstream in(text);
    std::string at, pair;
    Record r{line, "", "", "", {}};
    in >> at >> r.who >> r.object >> r.kind;
    while (in >> pair) {
        size_t equals = pair.find('=');
        r.values[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
    return r;
}

// Returns where the number of a name begins, or npos where it is of no contender.
size_t number_at(const std::string &name) {
    size_t at = name.rfind("lock__");
    bool marked = at != std::string::npos && at >= 2;
    return marked && name.size() >= at + 16 ? at + 6 : std::string::npos;
}

// One lock's world, and its places and clients by name.
class Lock {
  public:
    Lock() {
        memset(&w, 0, sizeof w);
    }

    // Returns NULL, or why the record is refused.
    const char *play(const Record &r) {
        Step s = {};
        const char *why = step_of(r, &s);
        if (why) return why;
        why = do_step(s);
        return why ? why : wrong(w);
    }
    bool knows(const std::string &who) const {
        return clients.count(who) > 0;
    }

  private:
    World w;
    std::map<std::string, unsigned> places, clients; // places by the name without its number

    const char *do_step(const Step &s) {
        const char *why = apply(w, s);
        if (!why) taken[s.kind][s.answer]++;
        return why;
    }
    unsigned place_of(const std::string &name) {
        size_t digits = number_at(name);
        auto found = places.emplace(digits == std::string::npos ? name : name.substr(0, digits), places.size());
        return found.first->second;
    }
    const char *client_of(const std::string &who, unsigned *out) {
        auto found = clients.emplace(who, clients.size());
        *out = found.first->second;
        if (*out >= CLIENTS) return "there are too many clients";
        if (!found.second) return nullptr;
        Step s = {};
        s.kind = BEGIN_SESSION;
        s.who = *out;
        return do_step(s);
    }
    static uint32_t number_of(const std::string &name) {
        size_t digits = number_at(name);
        if (digits == std::string::npos) return 0;
        return static_cast<uint32_t>(strtol(name.c_str() + digits, nullptr, 10));
    }
    const char *list_of(const std::string &names, Set *out) {
        std::istringstream in(names);
        std::string name;
        while (std::getline(in, name, ',')) {
            size_t digits = number_at(name);
            auto found = places.find(digits == std::string::npos ? name : name.substr(0, digits));
            if (found == places.end()) return "the list has a place that nobody made";
            if (w.number[found->second] != number_of(name)) return "the list has a place with another number";
            out->add(found->second);
        }
        return nullptr;
    }
    const char *step_of(const Record &r, Step *s) {
        static const std::map<std::string, Kind> kinds = {{"ask-create", ASK_CREATE},
                                                          {"ask-list", ASK_LIST},
                                                          {"ask-watch", ASK_WATCH},
                                                          {"ask-delete", ASK_DELETE},
                                                          {"ask-barrier", ASK_BARRIER},
                                                          {"create", TAKE_CREATE},
                                                          {"list", TAKE_LIST},
                                                          {"watch", TAKE_WATCH},
                                                          {"delete", TAKE_DELETE},
                                                          {"barrier", TAKE_BARRIER},
                                                          {"holds", HOLD},
                                                          {"ends", LEAVE},
                                                          {"commit-create", COMMIT_CREATE},
                                                          {"commit-delete", COMMIT_DELETE},
                                                          {"commit-end", COMMIT_END},
                                                          {"session-end", END_SESSION}};
        static const std::map<std::string, Answer> answers = {
            {"", DONE}, {"done", DONE}, {"none", NO_NODE}, {"lost", LOST}, {"refused", REFUSED}};
        auto kind = kinds.find(r.kind);
        auto answer = answers.find(r.value("answer"));
        if (kind == kinds.end() || answer == answers.end()) return "there is no such record";
        s->kind = kind->second;
        s->answer = answer->second;
        bool commits = s->kind >= COMMIT_CREATE && s->kind <= COMMIT_END;
        if (const char *why = commits ? nullptr : client_of(r.who, &s->who)) return why;
        std::string name = r.value("name"), by = r.value("by"), made = r.value("made");
        if (!name.empty()) s->place = place_of(name);
        if (places.size() > PLACES) return "there are too many places";
        if (by == "end") s->kind = COMMIT_EXPIRED_DELETE;
        if (by == "other") s->kind = COMMIT_FOREIGN_DELETE;
        s->number = number_of(made.empty() ? name : made);
        if (!made.empty() && place_of(made) != s->place) return "Q1: the server has made another name";
        bool reads = name.find("__rlock__") != std::string::npos;
        s->mode = reads ? READER : r.value("mode") == "write" ? WRITER : PLAIN;
        if (!r.value("mode").empty() && reads != (r.value("mode") == "read")) return "K1: the marker is another one";
        return list_of(r.value("names"), &s->list);
    }
};

class Player {
  public:
    Player() {
        for (const char *name : {"l0", "l1", "l2", "l3"}) locks[name] = std::make_unique<Lock>();
    }
    // Returns NULL, or why the record is refused. One without a lock is of all locks.
    const char *play(const Record &r) {
        auto found = locks.find(r.object);
        if (found != locks.end()) return found->second->play(r);
        if (r.object != "*") return "there is no such lock";
        for (auto &lock : locks) {
            bool concerned = r.kind != "session-end" || lock.second->knows(r.who);
            const char *why = concerned ? lock.second->play(r) : nullptr;
            if (why) return why;
        }
        return nullptr;
    }

  private:
    std::map<std::string, std::unique_ptr<Lock>> locks;
};

std::vector<History> read(const char *path) {
    std::ifstream in(path);
    std::vector<History> all;
    std::string text;
    for (size_t line = 1; std::getline(in, text); line++) {
        Record r = parse(text, line);
        if (r.kind == "history") all.emplace_back();
        if (!all.empty()) all.back().push_back(r);
    }
    return all;
}

// Returns whether all records are allowed. `instead` takes the place of the record at `spoilt`; NULL: nothing does.
bool play(const History &history, bool told, size_t spoilt = 0, const Record *instead = nullptr) {
    Player player;
    for (size_t i = 1; i < history.size(); i++) {
        if (i == spoilt && !instead) continue;
        const Record &r = i == spoilt ? *instead : history[i];
        const char *why = player.play(r);
        if (!why) continue;
        if (told)
            printf("seed %s, line %zu: %s %s %s %s: %s\n", history[0].value("seed").c_str(), r.line, r.who.c_str(),
                   r.object.c_str(), r.kind.c_str(), r.value("name").c_str(), why);
        return false;
    }
    return true;
}

// ---- sensitivity ----

std::string another_number(std::string name) {
    size_t digits = number_at(name);
    if (digits != std::string::npos) name.back() = name.back() == '9' ? '0' : static_cast<char>(name.back() + 1);
    return name;
}

// Returns whether something in it can be altered: a list loses its first name, a number, an answer or a name changes.
bool alter(Record *r) {
    std::map<std::string, std::string> &v = r->values, before = v;
    size_t comma = r->value("names").find(',');
    if (v.count("names")) v["names"] = comma == std::string::npos ? "" : v["names"].substr(comma + 1);
    else if (v.count("made")) v["made"] = another_number(v["made"]);
    else if (v.count("answer") && r->kind != "delete") v["answer"] = v["answer"] == "done" ? "none" : "done";
    else if (v.count("mode")) v["mode"] = v["mode"] == "read" ? "plain" : "read";
    else if (r->kind == "commit-create") v["name"] = another_number(v["name"]);
    else if (v.count("name")) v["name"] = "x" + v["name"];
    return before != v;
}

// How many percent have to be refused of a kind that has another reason to be there, or that nobody may have seen.
struct Excuse {
    const char *kind;
    size_t percent;
    const char *why;
};
const Excuse DROPPED[] = {
    {"barrier", 30, "the answer of the next one takes its place"},
    {"commit-delete", 90, "nobody saw the place, or its absence"},
    {"commit-end", 0, "numbers may have gone on"},
    {"delete", 90, "the last of a client's: nothing comes behind it"},
    {"session-end", 0, "its places have gone before, and it does nothing more"},
};
const Excuse ALTERED[] = {
    {"barrier", 0, "a barrier that was refused is one; most are heartbeats"},
    {"commit-create", 90, "nobody saw the place"},
    {"list", 80, "the queue was so a moment before"},
};

struct Count {
    size_t all, refused;
};

// Prints how many were refused, by kind. Returns whether as many were as have to be.
template <size_t N>
bool print_counts(const char *what, const std::map<std::string, Count> &counts, const Excuse (&excuses)[N]) {
    bool good = true;
    for (const auto &c : counts) {
        Excuse excuse = {"", 100, ""};
        for (const Excuse &e : excuses)
            if (c.first == e.kind) excuse = e;
        bool missed = c.second.refused * 100 < c.second.all * excuse.percent;
        printf("%s %-14s %6zu of %6zu refused%s%s%s\n", what, c.first.c_str(), c.second.refused, c.second.all,
               *excuse.why ? ": " : "", excuse.why, missed ? ": TOO FEW" : "");
        good = good && !missed;
    }
    return good && !counts.empty();
}

bool spoil(const std::vector<History> &all, size_t count) {
    std::map<std::string, Count> dropped, altered;
    for (size_t h = 0; h < all.size() && h < count; h++) {
        for (size_t i = 1; i < all[h].size(); i++) {
            const Record &r = all[h][i];
            Record other = r;
            dropped[r.kind].all++;
            dropped[r.kind].refused += !play(all[h], false, i);
            if (!alter(&other)) continue;
            altered[r.kind].all++;
            altered[r.kind].refused += !play(all[h], false, i, &other);
        }
    }
    bool good = print_counts("dropped", dropped, DROPPED);
    return print_counts("altered", altered, ALTERED) && good;
}

// Prints how often each rule was taken. Returns whether each was that has a record.
bool print_taken() {
    bool good = true;
    static const char *const words[] = {"done", "no node", "lost"};
    for (unsigned k = 0; k < KINDS; k++) {
        bool answers = k >= TAKE_CREATE && k <= TAKE_BARRIER, recorded = k != WOKEN && k != LOSE_SESSION;
        for (unsigned a = 0; recorded && a <= (answers ? unsigned{LOST} : 0u); a++)
            printf("%9llu %s%s%s\n", static_cast<unsigned long long>(taken[k][a]), names[k], answers ? ": " : "",
                   answers ? words[a] : "");
        good = good && (taken[k][DONE] || !recorded);
    }
    return good;
}

} // namespace

int main(int count, char **arguments) {
    bool spoils = count == 4 && std::string(arguments[1]) == "--spoil";
    if (count != 2 && !spoils) {
        fprintf(stderr, "usage: replay_queue [--spoil N] FILE\n");
        return 2;
    }
    std::vector<History> all = read(arguments[count - 1]);
    if (spoils) return all.empty() || !spoil(all, strtoul(arguments[2], nullptr, 10));
    size_t refused = 0, records = 0;
    for (const History &history : all) {
        records += history.size() - 1;
        refused += !play(history, true);
    }
    bool good = print_taken();
    printf("%zu histories, %zu records, %zu histories refused\n", all.size(), records, refused);
    return all.empty() || refused > 0 || !good;
}
