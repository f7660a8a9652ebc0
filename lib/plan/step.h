/* The sticky plan's step: from one plan to the next. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D10 to D20. Pure: no I/O, no clock. The writer computes the next plan by it, from what it has
 * just read (D25); every other member, from the same, would compute the same. A second step from what the first
 * returned, with the same party and no events, finds nothing to write. */
#ifndef DV_PLAN_STEP_H
#define DV_PLAN_STEP_H

#include "plan/text.h"

/* A child of the settled party; all of them are members that follow plans. Its data never change, so they are read
 * once, and kept as long as the node lives. */
typedef struct {
    const char *node, *identifier;
    uint32_t tag;        /* `s` of P2 */
    bool known;          /* the next four were read; needed where dv_plan_ask() says so */
    bool is_static;      /* what its data say from here on */
    uint32_t weight;     /* that it is configured with */
    bool weight_unknown; /* it was not read, and the plan that told of the node does not say */
    const char *zone;    /* "": none */
    int64_t rejoin_delay_ms;
    int64_t czxid;       /* 0: not read; needed of static nodes that share an identifier, and by D17 */
    int64_t first_czxid; /* read with czxid: of the first node of this member, if this is a later one; else 0 */
    bool has_options;    /* its name says what it is configured with; older releases do not */
    dv_plan_options options;
    bool is_ghost; /* it was read, and is persistent: nobody's (P2) */
} dv_plan_node;

typedef struct {
    int64_t pzxid;
    const dv_plan_node *nodes;
    size_t count;
    /* The writer's own beginning: the items that it is configured with; the options of a first plan; the owners of
     * these items so far, as indices into `nodes`, UINT32_MAX for nobody. NULL: nobody owns anything. An
     * administrator's command is no member: it has no set (NULL) and begins no plan. */
    dv_plan_set *set;
    dv_plan_options options;
    const uint32_t *owners;
} dv_plan_party;

typedef struct {
    const char *key;
    int64_t absent; /* of the entry that the timer ran for */
} dv_plan_expiry;

typedef struct {
    const char *key;
    uint32_t weight; /* 0: to be drained */
} dv_plan_weight;

/* Events that the party does not tell. Zero: none. */
typedef struct {
    const dv_plan_expiry *expired; /* absences that took too long */
    size_t expired_count;
    dv_plan_weight weight;  /* key NULL: none */
    const char *leaving;    /* a node; NULL: none */
    dv_plan_set *set;       /* instead of the one that is dealt; NULL: no other */
    const char *round_over; /* guid of the plan whose moved items all have their new owners, or took too long */
} dv_plan_events;

/* Tells which nodes have to be read before a step: asks[i] for nodes[i]. Returns how many these are, or
 * DIVVY_ENOMEM. */
int dv_plan_ask(const dv_plan *previous, const dv_plan_party *party, bool *asks);

enum { DV_PLAN_NEXT = 0, DV_PLAN_NOTHING = 1, DV_PLAN_ASK = 2 };

/* DV_PLAN_NEXT with *next, which the caller frees; its guid is for the writer to fill, a first one's epoch too.
 * Otherwise *next is NULL: DV_PLAN_NOTHING, nothing is to be written for this party; DV_PLAN_ASK, something has to be
 * read first; or
 *   DIVVY_ENOMEM
 *   DIVVY_ELIMIT  more members than DV_PLAN_SLOTS
 * `previous` may be NULL: there is no plan. */
int dv_plan_step(dv_plan **next, const dv_plan *previous, const dv_plan_party *party, const dv_plan_events *events);

/* Fills in what the header of a plan says of the one that it was made from (NULL: none), and for which party and why it
 * was made. */
void dv_plan_follows(dv_plan *next, const dv_plan *previous, const dv_plan_party *party, dv_plan_reason reason);

/* The member that a live node is, by a plan; NULL: none, because the plan does not have it, or another process of the
 * same identifier came later (D12: it is fenced). */
const dv_plan_member *dv_plan_member_of(const dv_plan *plan, const dv_plan_party *party, size_t node);
/* D12: returns the zxid that tells when the node's process came. 0: that was not read. */
int64_t dv_plan_start(const dv_plan_node *node);
/* D12: returns whether `a`, of the same static identifier, counts and `b` does not, as its process came later. */
bool dv_plan_came_later(const dv_plan_node *a, const dv_plan_node *b);
/* Finds the live node that has taken its place (D12): of its static identifier, and of the last process. Returns its
 * index, or SIZE_MAX: there is none. */
size_t dv_plan_successor(const dv_plan_party *party, size_t node);
/* Returns whether there is one. */
bool dv_plan_fenced(const dv_plan_party *party, size_t node);

#endif
