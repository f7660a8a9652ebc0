// Cases as dials: small numbers that say what is special in a case. SPDX-License-Identifier: Apache-2.0
//
// A dial that stands at 0 makes nothing special. Dials are turned in three ways: each pair of dials to all of its
// values, on some pools; some few dials all together; and all of them by chance, from a seed.
#ifndef DV_CASES_DIALS_H
#define DV_CASES_DIALS_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

namespace step {

using Dials = std::vector<uint8_t>;

// Where a dial stands, and how many values it has.
struct Dial {
    const char *name;
    uint8_t values;
};

class Turner {
  public:
    using Act = std::function<void(const Dials &)>;

    Turner(const std::vector<Dial> &all, Act then) : dials(all), act(then) {}

    size_t find(const char *name) const {
        for (size_t i = 0; i < dials.size(); i++)
            if (!strcmp(dials[i].name, name)) return i;
        fprintf(stderr, "no dial %s\n", name);
        abort();
    }
    // Turns each pair of dials, while the others stand as in `from`.
    void turn_pairs(const Dials &from) const {
        for (size_t a = 0; a < dials.size(); a++)
            for (size_t b = a + 1; b < dials.size(); b++) turn(from, {a, b}, 1);
    }
    // Turns these dials together; acts on each n-th of these cases.
    void turn(const Dials &from, const std::vector<size_t> &which, size_t each) const {
        size_t all = 1;
        Dials at = from;
        for (size_t dial : which) all *= dials[dial].values;
        for (size_t n = 0; n < all; n += each) {
            size_t rest = n;
            for (size_t dial : which) {
                at[dial] = static_cast<uint8_t>(rest % dials[dial].values);
                rest /= dials[dial].values;
            }
            act(at);
        }
    }
    // Turns each dial by chance; half of them, or one in four, or in eight, away from `from`.
    void turn_by_chance(const Dials &from, uint64_t seed, size_t count) const {
        uint64_t state = seed;
        for (size_t n = 0; n < count; n++) {
            Dials at = from;
            uint64_t rarity = 2u << next(&state) % 3;
            for (size_t i = 0; i < dials.size(); i++)
                if (next(&state) % rarity == 0) at[i] = static_cast<uint8_t>(next(&state) % dials[i].values);
            act(at);
        }
    }

  private:
    const std::vector<Dial> &dials;
    const Act act;

    // SplitMix64.
    static uint64_t next(uint64_t *state) {
        uint64_t x = *state += 0x9e3779b97f4a7c15;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
        x = (x ^ x >> 27) * 0x94d049bb133111eb;
        return x ^ x >> 31;
    }
};

// [--short] [--seed N] [--count N]
struct TurnOptions {
    bool is_short = false;
    unsigned long seed = 1, count = 100000;

    unsigned long by_chance() const {
        return is_short ? 1000 : count;
    }
    bool parse(int words, char **arguments) {
        for (int i = 1; i < words; i++) {
            if (!std::strcmp(arguments[i], "--short")) is_short = true;
            else if (!std::strcmp(arguments[i], "--seed") && i + 1 < words)
                seed = std::strtoul(arguments[++i], nullptr, 10);
            else if (!std::strcmp(arguments[i], "--count") && i + 1 < words)
                count = std::strtoul(arguments[++i], nullptr, 10);
            else return false;
        }
        return true;
    }
};

} // namespace step

#endif
