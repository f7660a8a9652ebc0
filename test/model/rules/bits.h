// A set of small numbers. Its bytes are all that it has, so a world may hold it. SPDX-License-Identifier: Apache-2.0
#ifndef DV_MODEL_RULES_BITS_H
#define DV_MODEL_RULES_BITS_H

#include <cstdint>

// Of the numbers below N.
template <unsigned N> struct Bits {
    uint8_t bytes[(N + 7) / 8];
    bool has(unsigned i) const {
        return bytes[i / 8] >> i % 8 & 1;
    }
    void add(unsigned i) {
        bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | 1u << i % 8);
    }
};

#endif
