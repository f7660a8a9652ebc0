// The worlds that a search has seen, each once, with the way to it. SPDX-License-Identifier: Apache-2.0
#ifndef DV_MODEL_SEEN_H
#define DV_MODEL_SEEN_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

// A World is compared bytewise. A Way tells of the step from the parent.
template <class World, class Way> struct Seen {
    struct Visit {
        World world;
        uint32_t parent;
        Way way;
    };
    std::vector<Visit> all; // in the order in which they were seen

    // Adds a world unless it was seen before. Returns its number.
    uint32_t add(const World &w, uint32_t parent, Way way) {
        if (all.size() * 2 >= table.size()) {
            table.assign(table.size() * 4, 0);
            for (uint32_t i = 0; i < all.size(); i++) place(all[i].world) = i + 1;
        }
        uint32_t &at = place(w);
        if (at) return at - 1;
        all.push_back({w, parent, way});
        at = static_cast<uint32_t>(all.size());
        return at - 1;
    }
    // Returns the visits from the one after the first to this one, the last one first.
    std::vector<uint32_t> way_to(uint32_t at) const {
        std::vector<uint32_t> way;
        for (; at; at = all[at].parent) way.push_back(at);
        return way;
    }

  private:
    std::vector<uint32_t> table = std::vector<uint32_t>(1u << 12);

    static uint64_t hash(const World &w) {
        uint64_t words[(sizeof w + 7) / 8] = {}, h = 0;
        memcpy(words, &w, sizeof w);
        for (uint64_t word : words) {
            h = (h ^ word) * 0x9e3779b97f4a7c15ull;
            h ^= h >> 32;
        }
        return h;
    }
    // Returns the place of the world, or the free one that it gets.
    uint32_t &place(const World &w) {
        for (size_t i = hash(w) & (table.size() - 1);; i = (i + 1) & (table.size() - 1))
            if (!table[i] || !memcmp(&all[table[i] - 1].world, &w, sizeof w)) return table[i];
    }
};

#endif
