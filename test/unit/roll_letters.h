/* Parties whose members are letters, for the tests of rolls. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_ROLL_LETTERS_H
#define DV_TEST_ROLL_LETTERS_H

#include <string.h>

#include "plan/roll.h"

typedef struct {
    const char *names[26];
    char texts[26][2];
    dv_roll_party party;
} letters;

static inline const dv_roll_party *party_of(letters *l, const char *text, int64_t pzxid) {
    size_t count = strlen(text);
    for (size_t i = 0; i < count; i++) {
        l->texts[i][0] = text[i];
        l->texts[i][1] = '\0';
        l->names[i] = l->texts[i];
    }
    l->party = (dv_roll_party){l->names, count, pzxid};
    return &l->party;
}

#endif
