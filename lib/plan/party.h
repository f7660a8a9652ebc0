/* The live nodes of a settled party: who they are in a plan, what they carry. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D10, D12, D16, D17. Pure: no I/O, no clock. */
#ifndef DV_PLAN_PARTY_H
#define DV_PLAN_PARTY_H

#include "plan/text.h"

/* A child of the settled party, a member that follows plans. Its data never change, so they are read once (D31). */
typedef struct {
    const char *node, *identifier;
    bool is_repeat;      /* another node before it, by name, has its identifier */
    uint32_t tag;        /* `s` of P2 */
    bool known;          /* the next four were read; needed where dv_plan_ask() says so */
    bool is_static;      /* what its data say from here on */
    uint32_t weight;     /* that it is configured with */
    bool weight_unknown; /* it was not read, and the plan that told of the node does not say */
    const char *zone;    /* "": none */
    int64_t rejoin_delay_ms;
    const char *tags;    /* as a plan's member has them; NULL: none */
    uint32_t cap;        /* the most items; 0: no limit */
    int64_t czxid;       /* 0: not read; needed of static nodes that share an identifier, and by D17 */
    int64_t first_czxid; /* read with czxid: of the first node of this member, if this is a later one; else 0 */
    bool has_options;    /* its name says what it is configured with; older releases do not */
    dv_plan_options options;
    bool can_balance; /* by its name: it knows of loads, wishes, tags and caps (D48) */
    bool is_ghost;    /* it was read, and is persistent: nobody's (P2) */
} dv_plan_node;

typedef struct {
    int64_t pzxid;
    const dv_plan_node *nodes;
    size_t count;
    /* The writer's items; a first plan's options; these items' owners so far, as indices into `nodes`, UINT32_MAX for
     * nobody (NULL: nobody owns anything). An administrator's command has no set (NULL), and begins no plan. */
    dv_plan_set *set;
    dv_plan_options options;
    const uint32_t *owners;
} dv_plan_party;

/* The results of a step, and of a part of it. */
enum { DV_PLAN_NEXT = 0, DV_PLAN_NOTHING = 1, DV_PLAN_ASK = 2 };

/* ---- D12: who is who ---- */

/* Returns the member that a live node is by a plan. NULL: the plan does not have it, or it is fenced (D12, D38). */
const dv_plan_member *dv_plan_member_of(const dv_plan *plan, const dv_plan_party *party, size_t node);
/* D12: returns the zxid that tells when the node's process came. 0: that was not read. */
int64_t dv_plan_start(const dv_plan_node *node);
/* D12: returns whether `a`, of the same static identifier, counts and `b` does not, as its process came later. */
bool dv_plan_came_later(const dv_plan_node *a, const dv_plan_node *b);
/* D12: returns the live node of its static identifier that has taken its place, or SIZE_MAX. */
size_t dv_plan_successor(const dv_plan_party *party, size_t node);
bool dv_plan_fenced(const dv_plan_party *party, size_t node);

/* A live node and the key that it stands for. */
typedef struct {
    bool is_static;
    const char *key;
    const dv_plan_node *node;
    bool taken; /* by a member that the plan has already */
} dv_plan_claim;

typedef struct {
    dv_plan_claim *claims; /* by key, each key once */
    size_t count;
    bool asks; /* nodes have to be read first; then the claims are good for nothing */
} dv_plan_claims;

/* Marks nodes to be read in `asks`, which may be NULL. Returns 0 or DIVVY_ENOMEM. The caller frees out->claims. */
int dv_plan_claims_make(dv_plan_claims *out, const dv_plan *previous, const dv_plan_party *party, bool *asks);
dv_plan_claim *dv_plan_claims_find(const dv_plan_claims *claims, const dv_plan_member *member);

/* ---- D16, D17: the configuration that all carry ---- */

/* Returns whether all live nodes carry this tag of a set. */
bool dv_plan_all_carry(const dv_plan_party *party, uint32_t tag);
/* D48: returns whether all live nodes know of loads and wishes. */
bool dv_plan_all_balance(const dv_plan_party *party);
/* Takes over the options that all live nodes carry, then those that an operator asked for (D48). Where nodes differ, or
 * one does not say, *options stay. */
void dv_plan_agree_options(const dv_plan *plan, const dv_plan_party *party, dv_plan_options *options);
bool dv_plan_options_equal(const dv_plan_options *a, const dv_plan_options *b);

/* D17: returns the pzxid since which the plan deals items that somebody requested, or 0. */
int64_t dv_plan_asked_at(const dv_plan *plan, const dv_plan_party *party);
/* D17: returns DV_PLAN_NEXT, _NOTHING, or _ASK: read the nodes first that are marked in `asks`, if not NULL. */
int dv_plan_returns_to_tag(const dv_plan *plan, const dv_plan_party *party, bool *asks);
/* D51: returns whether a member has to write for this party first, as the writer has no items to return to. The nodes
 * were read. */
bool dv_plan_members_return(const dv_plan *plan, const dv_plan_party *party);

/* Returns whether names alone say that there is something to take up. */
bool dv_plan_agree_differs(const dv_plan *plan, const dv_plan_party *party);

/* ---- D10: what has to be read ---- */

/* D10: tells which nodes[i] to read before a step, in asks[i]. Returns how many these are, or DIVVY_ENOMEM. */
int dv_plan_ask(const dv_plan *previous, const dv_plan_party *party, bool *asks);

#endif
