// What the records tell of members' notes. SPDX-License-Identifier: Apache-2.0
#ifndef DV_REPLAY_PAPERS_H
#define DV_REPLAY_PAPERS_H

#include <set>
#include <tuple>

#include "replay.h"

namespace replay {

// An item that a note gives (T5).
struct Given {
    size_t item;
    int64_t number; // q
    uint64_t seen;  // r
    bool operator==(const Given &o) const {
        return item == o.item && number == o.number && seen == o.seen;
    }
    bool operator<(const Given &o) const {
        return std::tie(item, number, seen) < std::tie(o.item, o.number, o.seen);
    }
};

// What a note says.
struct Text {
    uint64_t set = 0; // of the items that it counts
    std::set<size_t> leaving, ready;
    std::vector<Given> given;
    bool operator==(const Text &o) const {
        return set == o.set && leaving == o.leaving && ready == o.ready && given == o.given;
    }
};

// The note of a node: what was committed, by mzxid, and what its member has sent, each with the version that the write
// expects; -1: it makes the note.
struct Paper {
    int64_t next = -1; // the version that the next write is to find
    std::map<uint64_t, Text> committed;
    std::vector<std::pair<int64_t, Text>> sent;
};

inline uint64_t hex(std::string_view text) {
    return strtoull(std::string(text).c_str(), nullptr, 16);
}

inline std::set<size_t> set_of(std::string_view text) {
    std::set<size_t> out;
    while (!text.empty()) out.insert(static_cast<size_t>(number(take_word(&text, ','))));
    return out;
}

inline Text text_of(const Record &r) {
    Text t;
    t.set = hex(r.value("set"));
    t.leaving = set_of(r.value("leaving"));
    t.ready = set_of(r.value("ready"));
    for (std::string_view rest = r.value("given"); !rest.empty();) {
        std::string_view one = take_word(&rest, ',');
        size_t item = static_cast<size_t>(number(take_word(&one, ':')));
        int64_t q = number(take_word(&one, ':'));
        t.given.push_back({item, q, hex(one)});
    }
    return t;
}

} // namespace replay

#endif
