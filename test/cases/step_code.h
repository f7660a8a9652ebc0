/* One step of a small plan, in numbers. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_CASES_STEP_CODE_H
#define DV_CASES_STEP_CODE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Members 0 to 2 are those of most plans. Node i is the only node of member i, but for nodes 5 and 6, which are further
 * ones of a static member. Members 0 and 3 have one identifier. There are items 0 to 4; a set is a bit for each. */
enum {
    STEP_IN_PLAN = 3,
    STEP_MEMBERS = 5,
    STEP_NODES = 7,
    STEP_ITEMS = 5,
    STEP_NOBODY = 255,
    STEP_PZXID = 100,
    STEP_GONE_NODE = 99, /* of a mark: it is that of a node which has gone */
    STEP_TAG_T = 1,
    STEP_TAG_U = 2, /* bits of the tags "t" and "u" */
    STEP_NO_LOAD = 255
};

typedef struct {
    bool is_static, is_there, says_configured;
    uint32_t slot, weight, configured, cap;
    int64_t absent, rejoin_delay_ms;
    uint8_t leaving;    /* a node, and 1; or STEP_GONE_NODE */
    uint8_t zone, tags; /* zones: "", "x", "y" */
} step_member;

/* The order is that of the library's wishes. */
typedef enum { STEP_MOVE = 1, STEP_NEED, STEP_OPTION, STEP_PAUSE, STEP_PIN } step_wish;

/* What an operator asks for, by item. */
typedef struct {
    bool are_there;                              /* a part of the plan, be it empty */
    uint8_t place[STEP_ITEMS], whom[STEP_ITEMS]; /* STEP_MOVE or STEP_PIN, and to which member; 0: neither */
    bool paused[STEP_ITEMS];
    uint8_t had[STEP_ITEMS];            /* of one that is paused: the member that it had, or STEP_NOBODY */
    uint8_t need[STEP_ITEMS], all_need; /* a tag's bit; of the items "i*" */
    bool has_max_moves;
    uint32_t max_moves;
    uint32_t imbalance_percent; /* 0: not asked for */
} step_wishes;

typedef struct {
    bool are_there;
    uint8_t unit; /* 0 or 1 */
    uint8_t classes[STEP_ITEMS];
    uint8_t giver[STEP_ITEMS];       /* the member that gave it last for load, or STEP_NOBODY */
    uint32_t permille[STEP_MEMBERS]; /* of each giver */
} step_loads;

typedef struct {
    bool is_there, is_empty; /* is_empty: of generation 0 */
    int64_t pzxid, mzxid;
    uint8_t set, tag; /* tag: the set that it is the tag of */
    int64_t asked;
    step_member members[STEP_MEMBERS]; /* is_there: in the plan */
    uint8_t owners[STEP_ITEMS];        /* a member, or STEP_NOBODY */
    uint8_t moved;                     /* a bit for each item */
    uint32_t max_moves;
    bool is_balanced;
    step_wishes wishes;
    step_loads loads;
    unsigned reason; /* as the library's; of a next plan */
    bool tells;      /* a next plan: the history is told something */
    bool is_at_rest; /* a next plan: the step has nothing to do in it */
} step_plan;

typedef struct {
    bool is_there, is_ghost, is_unread, weight_unknown, has_options, is_older; /* is_older: it cannot balance */
    uint8_t member, set;
    uint32_t weight, cap, max_moves;
    uint8_t zone, tags;
    int64_t rejoin_delay_ms, czxid, first_czxid;
} step_node;

typedef struct {
    int64_t pzxid;
    step_node nodes[STEP_NODES];
    uint8_t set; /* the writer's; 0: it has none */
    uint32_t max_moves;
    uint8_t owners[STEP_ITEMS]; /* nodes, or STEP_NOBODY */
} step_party;

typedef struct {
    int expired, weighed, leaving; /* a member, a member, a node; or -1 */
    uint32_t weight;               /* of the one that is weighed */
    bool round_over;               /* of this plan; the other: of another */
    bool other_round_over;
    uint8_t set;              /* that somebody requests, or 0 */
    uint8_t wish, item, whom; /* a wish that comes or goes; whom: a member, a tag's bit, or a number */
    bool undo;
    step_loads loads;
} step_events;

typedef enum { STEP_NEXT, STEP_NOTHING, STEP_ASK } step_result;

/* D12, D38: which member each node is by the plan, or STEP_NOBODY; a bit for each node that is fenced. */
typedef struct {
    uint8_t members[STEP_NODES];
    unsigned fenced;
} step_who;

step_who step_who_is(const step_plan *plan, const step_party *party);

void step_begin(void);
void step_end(void);
/* Returns the result, and fills in the next plan. *asks has a bit for each node that is to be read. */
step_result step_of(const step_plan *plan, const step_party *party, const step_events *events, step_plan *next,
                    unsigned *asks);

#ifdef __cplusplus
}
#endif

#endif
