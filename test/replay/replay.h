// What all replays share: the simulator's records, and what becomes of spoilt ones. SPDX-License-Identifier: Apache-2.0
//
// A replay gives replay::run() a Player, which takes the records of one history in turn:
//
//   const char *play(const Record &r)     NULL, or why the record is refused
#ifndef DV_REPLAY_H
#define DV_REPLAY_H

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace replay {

struct Record {
    size_t line;
    std::string who, object, kind;
    std::map<std::string, std::string> values;
    std::string value(const char *key) const {
        auto found = values.find(key);
        return found == values.end() ? "" : found->second;
    }
};
using History = std::vector<Record>; // the first one begins it

inline Record parse(const std::string &text, size_t line) {
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

// Reads the records of objects whose names begin with one of these letters.
inline std::vector<History> read(const char *path, const std::string &letters) {
    std::ifstream in(path);
    std::vector<History> all;
    std::string text;
    for (size_t line = 1; std::getline(in, text); line++) {
        Record r = parse(text, line);
        if (letters.find(r.object[0]) == std::string::npos) continue;
        if (r.kind == "history") all.emplace_back();
        if (!all.empty()) all.back().push_back(r);
    }
    return all;
}

// Returns where the number of a name begins, or npos where it is of no contender.
inline size_t number_at(const std::string &name) {
    size_t at = name.rfind("lock__");
    bool marked = at != std::string::npos && at >= 2;
    return marked && name.size() >= at + 16 ? at + 6 : std::string::npos;
}

inline std::string another_number(std::string name) {
    size_t digits = number_at(name);
    if (digits != std::string::npos) name.back() = name.back() == '9' ? '0' : static_cast<char>(name.back() + 1);
    return name;
}

// How many percent have to be refused of a kind that has another reason to be there, or that nobody may have seen.
struct Excuse {
    const char *kind;
    size_t percent;
    const char *why;
};

struct Kind {
    const char *name, *letters; // of the objects that it looks at
    bool (*alter)(Record *r);   // returns whether something in it can be altered
    bool (*print_taken)();      // prints how often each rule was taken; returns whether each was that has a record
    std::vector<Excuse> dropped, altered;
};

// Returns whether all records are allowed. `instead` takes the place of the record at `spoilt`; NULL: nothing does.
template <class Player>
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

struct Count {
    size_t all, refused;
};
using Counts = std::map<std::string, Count>;

// Prints how many were refused, by kind. Returns whether as many were as have to be.
inline bool print_counts(const char *what, const Counts &counts, const std::vector<Excuse> &excuses) {
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

template <class Player> bool spoil(const Kind &kind, const std::vector<History> &all, size_t count) {
    Counts dropped, altered;
    for (size_t h = 0; h < all.size() && h < count; h++) {
        for (size_t i = 1; i < all[h].size(); i++) {
            const Record &r = all[h][i];
            Record other = r;
            dropped[r.kind].all++;
            dropped[r.kind].refused += !play<Player>(all[h], false, i);
            if (!kind.alter(&other)) continue;
            altered[r.kind].all++;
            altered[r.kind].refused += !play<Player>(all[h], false, i, &other);
        }
    }
    bool good = print_counts("dropped", dropped, kind.dropped);
    return print_counts("altered", altered, kind.altered) && good;
}

template <class Player> int run(const Kind &kind, int count, char **arguments) {
    bool spoils = count == 4 && std::string(arguments[1]) == "--spoil";
    if (count != 2 && !spoils) {
        fprintf(stderr, "usage: %s [--spoil N] FILE\n", kind.name);
        return 2;
    }
    std::vector<History> all = read(arguments[count - 1], kind.letters);
    if (spoils) return all.empty() || !spoil<Player>(kind, all, strtoul(arguments[2], nullptr, 10));
    size_t refused = 0, records = 0;
    for (const History &history : all) {
        records += history.size() - 1;
        refused += !play<Player>(history, true);
    }
    bool good = kind.print_taken();
    printf("%zu histories, %zu records, %zu histories refused\n", all.size(), records, refused);
    return all.empty() || refused > 0 || !good;
}

} // namespace replay

#endif
