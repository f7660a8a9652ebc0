/* Gathering: a pool's party as it was listed last. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_GATHERING_H
#define DV_GATHERING_H

#include "plan/member_name.h"
#include "plan/text.h"
#include "recipe/fetch.h"

enum { DV_GATHERING_TEXT_BYTES = 1600 };

typedef struct {
    char **nodes;
    size_t node_count;
    int64_t pzxid;               /* 0: there is no such node */
    int64_t seen_pzxid, seen_at; /* of the party that was seen last, and since when */
} dv_gathering;

/* Takes a list of P/party, or that there is none. Returns 0 or DIVVY_ENOMEM. */
int dv_gathering_take(dv_gathering *g, const dv_reply *reply, int64_t now);
void dv_gathering_clear(dv_gathering *g);
/* Returns whether it has stood still for long enough, or `plan` was made for it. */
bool dv_gathering_settled(const dv_gathering *g, const dv_plan *plan, int64_t now);

/* Returns whether a name is a member's that follows no plan, if its node is ephemeral (P2). */
bool dv_gathering_is_odd(const char *node);
/* Returns whether a name is a member's that follows plans. */
bool dv_gathering_follows(const char *node);
bool dv_gathering_any(const dv_gathering *g, bool (*choose)(const char *node));
/* Lists the nodes that `choose` picks: pointers into the gathering, in a block that the caller frees. NULL: an
 * allocation failed. */
const char **dv_gathering_pick(const dv_gathering *g, bool (*choose)(const char *node), size_t *count);
/* Returns whether a name is such a one, or a member's that follows plans, but knows no wishes (D48). */
bool dv_gathering_knows_no_wishes(const char *node);
/* Completes "the pool ...": what a member of one of the two keeps it from. */
void dv_gathering_tell_odd(const char *node, char *text, size_t bytes);
/* Returns whether somebody of that identifier is there. */
bool dv_gathering_has(const dv_gathering *g, const char *identifier);

/* Returns the part of a node's name that follows its first '-' (P2: the identifier). */
const char *dv_identifier_of(const char *node);

#endif
