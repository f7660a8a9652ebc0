/* The rules of a pool: loads, tags, caps, and operators' wishes. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D48 to D50, A9, A10. Pure. */
#ifndef DV_POOL_RULES_H
#define DV_POOL_RULES_H

#include "plan/loads.h"
#include "plan/text.h"
#include "plan/wish.h"

enum { DV_RULE_BYTES = 1024 };

/* Everything points into the plan. Where it has nothing of the kind, all but `plan` is zero. */
typedef struct {
    const dv_plan *plan;
    bool any;                     /* it has loads, wishes, tags or caps */
    uint32_t *counts;             /* items of each member, by place */
    double *shares;               /* the load of each member as a part of its fair share; NULL: no load is known */
    size_t pinned, moved, paused; /* items of the plan */
    size_t needs;                 /* rules by which items need tags */
    const dv_wish *lost;          /* the first pin, or move, to a member that is not there; NULL: none */
    size_t lost_count;
    const char *tag;            /* the first one that items need and no member has; NULL: none */
    size_t tag_item, tag_count; /* the first of them, and how many need it */
    bool is_limited;            /* all members that take items have caps */
    uint64_t room;              /* the sum of these */
    size_t heavy;               /* items of more than a fair share */
    size_t heaviest;            /* one of them */
    double heaviest_part;       /* its part of all load */
    double all_load;            /* of the items whose loads are known */
} dv_pool_rules;

/* Returns 0 or DIVVY_ENOMEM. `plan` outlives *out. */
int dv_pool_rules_make(dv_pool_rules *out, const dv_plan *plan);
void dv_pool_rules_clear(dv_pool_rules *rules);

/* Returns the number of an item in the plan, or SIZE_MAX. */
size_t dv_pool_rules_find(const dv_pool_rules *rules, const char *item);
/* Returns whether the plan knows an item's load; in the plan's unit, and as a part of all load. */
bool dv_pool_rules_load(const dv_pool_rules *rules, size_t item, double *load, double *part);
/* Returns the wish that holds an item: its pause, pin or move. NULL: none does. */
const dv_wish *dv_pool_rules_hold(const dv_pool_rules *rules, const char *item);

/* Returns the wish by which an item needs a tag: of its own name, else of the longest prefix. NULL: it needs none. */
const dv_wish *dv_pool_rules_need(const dv_pool_rules *rules, const char *item);
/* Writes the command that undoes a need: "divvy need --path /q --undo 'a*'". */
void dv_pool_rules_tell_undo(const dv_wish *need, const char *path, char out[DV_RULE_BYTES]);

/* Writes "paused by anna since 2026-01-31T12:00:00Z: reason", "pinned to m2 by ...", or "moved to m2 by ...". */
void dv_pool_rules_tell(const dv_pool_rules *rules, const dv_wish *wish, char out[DV_RULE_BYTES]);
/* Returns the identifier of the member that a pin or a move is to. */
const char *dv_pool_rules_whom(const dv_pool_rules *rules, const dv_wish *wish);

/* Returns whether the member that a pin, or a move, is to is there. */
bool dv_pool_rules_can_hold(const dv_pool_rules *rules, const dv_wish *wish);
/* Returns whether the plan still gives the item to a static member that is away, to which it is pinned or moved. */
bool dv_pool_rules_is_kept(const dv_pool_rules *rules, const dv_wish *wish);
/* Writes which rules a pin, or a move, overrides: "that overrides the tag ssd, which m2 does not have". Returns whether
 * it does. */
bool dv_pool_rules_override(const dv_pool_rules *rules, const dv_wish *wish, char out[DV_RULE_BYTES]);
/* Returns whether the item stays where it is only until a round may take it: its owner lacks the tag, it is paused, or
 * it is pinned to another that is there. */
bool dv_pool_rules_waits_for_round(const dv_pool_rules *rules, size_t item);

/* Writes why the plan gives an item to nobody: "no member has the tag ssd". Returns a word for it: "paused", "tag",
 * "cap"; NULL: the rules are not why, or not in force. */
const char *dv_pool_rules_why_nobody(const dv_pool_rules *rules, size_t item, char out[DV_RULE_BYTES]);
/* Writes what an operator asked for an item; else why the plan gives it to nobody. Returns a word likewise: "pinned",
 * "moved", too. */
const char *dv_pool_rules_why(const dv_pool_rules *rules, size_t item, char out[DV_RULE_BYTES]);
/* Writes why the owner of an item that no operator holds has it: "moved for load: m2 was at 1.31 of its share". Returns
 * a word likewise: "load", "tag". */
const char *dv_pool_rules_why_there(const dv_pool_rules *rules, size_t item, char out[DV_RULE_BYTES]);

#endif
