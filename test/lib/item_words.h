/* Words for an item's place and stage, as docs/protocol.md, P18, has them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_ITEM_WORDS_H
#define DV_TEST_ITEM_WORDS_H

#include "partitioner/item.h"

static inline const char *item_place_word(dv_item_place place) {
    static const char *const words[DV_PLACES] = {"none", "asked", "waiting", "parked", "first", "leaving"};
    return words[place];
}

static inline const char *item_stage_word(dv_item_stage stage) {
    static const char *const words[DV_STAGES] = {"hidden", "preparing", "shown", "kept", "leaving", "revoked"};
    return words[stage];
}

#endif
