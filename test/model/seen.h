// The worlds that a search has seen, each once, with the way to it. SPDX-License-Identifier: Apache-2.0
#ifndef DV_MODEL_SEEN_H
#define DV_MODEL_SEEN_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

// A list that moves nothing when it grows.
template <class Element> class Chunks {
    enum { MANY = 1 << 12 };
    std::vector<std::unique_ptr<Element[]>> chunks;
    size_t count = 0;

  public:
    Element &operator[](size_t i) {
        return chunks[i / MANY][i % MANY];
    }
    const Element &operator[](size_t i) const {
        return chunks[i / MANY][i % MANY];
    }
    size_t size() const {
        return count;
    }
    void push_back(const Element &e) {
        if (count % MANY == 0) chunks.push_back(std::make_unique<Element[]>(MANY));
        (*this)[count++] = e;
    }
};

// A World is compared bytewise. A Way tells of the step from the parent.
template <class World, class Way> struct Seen {
    struct Visit {
        World world;
        uint32_t parent;
        Way way;
    };
    Chunks<Visit> all; // in the order in which they were seen

    // Adds a world unless it was seen before. Returns its number.
    uint32_t add(const World &w, uint32_t parent, Way way) {
        if (all.size() * 2 >= table.size()) grow();
        const uint32_t h = hash(w);
        size_t i = h & (table.size() - 1);
        for (; table[i].number; i = (i + 1) & (table.size() - 1)) {
            if (table[i].hash == h && !memcmp(&all[table[i].number - 1].world, &w, sizeof w))
                return table[i].number - 1;
        }
        all.push_back({w, parent, way});
        table[i] = {h, static_cast<uint32_t>(all.size())};
        return table[i].number - 1;
    }
    // Returns the visits from the one after the first to this one, the last one first.
    std::vector<uint32_t> way_to(uint32_t at) const {
        std::vector<uint32_t> way;
        for (; at; at = all[at].parent) way.push_back(at);
        return way;
    }

  private:
    struct Entry {
        uint32_t hash, number; // number: from 1 on; 0: free
    };
    std::vector<Entry> table = std::vector<Entry>(1u << 12);

    static uint32_t hash(const World &w) {
        uint64_t words[(sizeof w + 7) / 8] = {}, h = 0;
        memcpy(words, &w, sizeof w);
        for (uint64_t word : words) {
            h = (h ^ word) * 0x9e3779b97f4a7c15ull;
            h ^= h >> 32;
        }
        return static_cast<uint32_t>(h);
    }
    void grow() {
        std::vector<Entry> old(table.size() * 2);
        old.swap(table);
        for (const Entry &e : old) {
            size_t i = e.hash & (table.size() - 1);
            while (e.number && table[i].number) i = (i + 1) & (table.size() - 1);
            if (e.number) table[i] = e;
        }
    }
};

#endif
