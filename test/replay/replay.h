// What all replays share: the simulator's records, and what becomes of spoilt ones. SPDX-License-Identifier: Apache-2.0
//
// A replay gives replay::run() a Player, which takes the records of one history in turn:
//
//   const char *play(const Record &r)     NULL, or why the record is refused
//
// It can be copied, for what follows a record that is spoilt.
#ifndef DV_REPLAY_H
#define DV_REPLAY_H

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace replay {

struct Value {
    std::string_view key, text;
};

// One record, whose texts are its history's. Only one is altered at a time.
struct Record {
    enum { VALUES = 8 };
    size_t line = 0;
    std::string_view ms, who, object, kind;
    Value values[VALUES] = {};
    size_t count = 0;

    bool has(std::string_view key) const {
        return find(key) < count;
    }
    std::string_view value(std::string_view key) const {
        return has(key) ? values[find(key)].text : std::string_view();
    }
    // Alters the record. Returns whether it differs now.
    bool set(std::string_view key, std::string text) {
        static std::string kept;
        if (!has(key) || value(key) == text) return false;
        kept = std::move(text);
        values[find(key)].text = kept;
        return true;
    }

  private:
    size_t find(std::string_view key) const {
        size_t i = 0;
        while (i < count && values[i].key != key) i++;
        return i;
    }
};

// The first record begins it.
struct History {
    std::string text;
    std::vector<Record> records;
    bool is_cut_off; // it has no end, since the simulator has stopped within it
};

// Returns the next word, or an empty one.
inline std::string_view take_word(std::string_view *rest, char end) {
    size_t length = rest->find(end);
    std::string_view word = rest->substr(0, length);
    rest->remove_prefix(length == std::string_view::npos ? rest->size() : length + 1);
    return word;
}

inline Record parse(std::string_view rest, size_t line) {
    Record r;
    r.line = line;
    r.ms = take_word(&rest, ' ');
    r.who = take_word(&rest, ' ');
    r.object = take_word(&rest, ' ');
    r.kind = take_word(&rest, ' ');
    while (!rest.empty() && r.count < Record::VALUES) {
        std::string_view text = take_word(&rest, ' '), key = take_word(&text, '=');
        r.values[r.count++] = {key, text};
    }
    return r;
}

// Reads the histories of a file, or of a pipe, one by one: records of objects whose names begin with one of these
// letters.
class Reader {
  public:
    Reader(const char *path, std::string_view objects) : letters(objects) {
        in.rdbuf()->pubsetbuf(buffer, sizeof buffer);
        in.open(path);
        while (std::getline(in, ahead) && !begins(ahead)) line++;
    }
    bool read(History *out) {
        if (!in) return false;
        out->text = ahead + '\n';
        size_t first = line++, last = 0; // where the last line begins
        for (; std::getline(in, ahead) && !begins(ahead); line++) {
            last = out->text.size();
            (out->text += ahead) += '\n';
        }
        std::string_view text = whole_lines(out->text, last, &out->is_cut_off);
        out->records.clear();
        for (; !text.empty(); first++) {
            Record r = parse(take_word(&text, '\n'), first);
            if (!r.object.empty() && letters.find(r.object[0]) != std::string_view::npos) out->records.push_back(r);
        }
        return true;
    }

  private:
    // Returns what is before the end, or before a line that may be a part of one.
    static std::string_view whole_lines(std::string_view text, size_t last, bool *is_cut_off) {
        std::string_view kind = parse(text.substr(last, text.size() - last - 1), 0).kind;
        *is_cut_off = kind != "over";
        if (!last) return text; // the first one is whole
        if (kind == "cut-off") last = text.rfind('\n', last - 2) + 1;
        return text.substr(0, last);
    }
    char buffer[64 * 1024]; // as much as a pipe holds
    std::ifstream in;
    std::string_view letters;
    std::string ahead;
    size_t line = 1;
    static bool begins(const std::string &text) {
        return text.compare(0, 14, "0 0 * history ") == 0;
    }
};

// Returns where the number of a name begins, or npos where it is of no contender.
inline size_t number_at(std::string_view name) {
    size_t at = name.rfind("lock__");
    bool marked = at != std::string_view::npos && at >= 2;
    return marked && name.size() >= at + 16 ? at + 6 : std::string_view::npos;
}

inline uint32_t number_of(std::string_view name) {
    size_t digits = number_at(name);
    if (digits == std::string_view::npos) return 0;
    return static_cast<uint32_t>(strtol(std::string(name.substr(digits)).c_str(), nullptr, 10));
}

inline int64_t number(std::string_view text) {
    return strtoll(std::string(text).c_str(), nullptr, 10);
}

inline std::string another_number(std::string_view text) {
    std::string name(text);
    if (number_at(name) != std::string::npos)
        name.back() = static_cast<char>(name.back() == '9' ? '0' : name.back() + 1);
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
    bool (*matters)(const History &, size_t); // returns whether somebody has to miss the record; NULL: all are counted
};

inline void tell(const History &history, const Record &r, const char *why) {
    printf("seed %s, line %zu: %s %s %s %s: %s\n", std::string(history.records[0].value("seed")).c_str(), r.line,
           std::string(r.who).c_str(), std::string(r.object).c_str(), std::string(r.kind).c_str(),
           std::string(r.value("name")).c_str(), why);
}

// Returns whether all records are allowed.
template <class Player> bool play(const History &history) {
    Player player;
    for (size_t i = 1; i < history.records.size(); i++) {
        if (history.records[i].kind == "violated") break; // an invariant has failed, and the simulator goes no further
        const char *why = player.play(history.records[i]);
        if (why) tell(history, history.records[i], why);
        if (why) return false;
    }
    return true;
}

// Returns whether all are allowed from the spoilt one on. `instead` takes its place; NULL: nothing does.
template <class Player> bool play_spoilt(Player player, const History &history, size_t spoilt, const Record *instead) {
    if (instead && player.play(*instead)) return false;
    for (size_t i = spoilt + 1; i < history.records.size(); i++)
        if (player.play(history.records[i])) return false;
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

template <class Player> bool spoil(const Kind &kind, Reader *in, size_t count) {
    Counts dropped, altered;
    History history;
    while (count-- && in->read(&history)) {
        Player before; // has played those before the spoilt one
        for (size_t i = 1; i < history.records.size(); i++) {
            Record other = history.records[i];
            std::string name(other.kind);
            bool counts = !kind.matters || kind.matters(history, i);
            if (counts) {
                dropped[name].all++;
                dropped[name].refused += !play_spoilt(before, history, i, nullptr);
            }
            if (counts && kind.alter(&other)) {
                altered[name].all++;
                altered[name].refused += !play_spoilt(before, history, i, &other);
            }
            before.play(history.records[i]);
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
    Reader in(arguments[count - 1], kind.letters);
    if (spoils) return !spoil<Player>(kind, &in, strtoul(arguments[2], nullptr, 10));
    size_t histories = 0, refused = 0, records = 0, cut_off = 0;
    for (History history; in.read(&history); histories++) {
        records += history.records.size() - 1;
        refused += !play<Player>(history);
        cut_off += history.is_cut_off;
    }
    bool good = kind.print_taken();
    printf("%zu histories, %zu records, %zu histories refused, %zu cut off\n", histories, records, refused, cut_off);
    return !histories || refused > 0 || !good;
}

} // namespace replay

#endif
