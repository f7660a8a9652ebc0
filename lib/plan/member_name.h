/* The facts that the name of a party's child tells: docs/protocol.md, P2. Pure. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_MEMBER_NAME_H
#define DV_MEMBER_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DV_LEVEL_KAZOO = 0, DV_LEVEL_RENDEZVOUS = 1, DV_LEVEL_PLAN = 2, DV_LEVEL_BALANCE = 3, DV_LEVEL_OWN = -1 };

/* One child of the party. */
typedef struct {
    char *node;             /* its name */
    const char *identifier; /* inside it */
    enum { DV_STRAY, DV_KAZOO, DV_DIVVY } kind;
    int level;           /* DV_DIVVY: what it can; -1: an own function */
    const char *ability; /* DV_DIVVY: the text of its tag `a`, up to the next ',' or '-' */
    size_t ability_bytes;
    bool has_set;
    uint32_t set;                        /* DV_DIVVY: crc of its items */
    bool looked;                         /* it was seen whether its node is ephemeral: one that is not is a stray */
    bool numeric;                        /* DV_DIVVY: round robin deals them out by number */
    int64_t max_moves, round_timeout_ms; /* DV_DIVVY: what it is configured with; -1: it does not say */
} dv_member;

/* Parses a child's name; the strings point into `node`, which it owns. */
dv_member dv_member_parse(char *node);
bool dv_member_is_kazoo(const char *node);

#endif
