/* The follower of the plan, as its rooms share it. SPDX-License-Identifier: Apache-2.0
 *
 * plan.c hears of everything, and lives; plan_target.c says what the plan gives us, plan_tell.c warns of it;
 * plan_next.c when the next one is written; plan_wants.c what it shall contain besides; plan_rounds.c whether the items
 * of a round have arrived. */
#ifndef DV_FOLLOWER_H
#define DV_FOLLOWER_H

#include "partitioner/follow.h"
#include "partitioner/partitioner.h"
#include "plan/reader.h"
#include "plan/writer.h"

/* A static member whose node is gone. Its time runs for this very entry of the plan (rule D13). */
typedef struct {
    char *key;
    int64_t absent; /* as in the plan */
    int64_t due;
    bool expired, listed;
} dv_absence;

/* Something that a user wants of the next plan: a later wish takes the place of an earlier one. */
typedef struct {
    bool open;
    unsigned number;
} dv_want;

/* The wishes that one attempt is asked to write, besides what the party tells. They live until the attempt ends. */
typedef struct {
    dv_plan_events events;
    dv_plan_weight weight;
    dv_plan_expiry *expired; /* their keys are ours */
    char *key, *leaving;
    const char *leaving_nodes[1];
    char round_over[DV_GUID_BYTES];
    bool urgent;                                      /* a wish is among them, which waits for no rank */
    unsigned weight_number, set_number, leave_number; /* those that are in it; 0: none */
} dv_wants;

/* The locks of items that a round moves, as they are looked at. */
typedef struct {
    char guid[DV_GUID_BYTES]; /* of the plan */
    int64_t since;
    int64_t look_ms;             /* to the next look (D42) */
    size_t count, next, waiting; /* of its moved items; the next to look at; those whose locks we wait for */
    bool *arrived;
    size_t under_way;
    bool owner_asked; /* the nodes of a new owner's identifier are being read */
    unsigned look;    /* answers to earlier looks say nothing */
    dv_timer timer;
} dv_round;

struct dv_follower {
    divvy_partitioner *p;
    char *path; /* P/plan */
    bool stopped;
    dv_plan_memory memory;
    dv_plan_reader *reader;
    dv_roster *people;
    int64_t seen_mzxid, left_mzxid; /* of what was read last; the newest that was known when we left last */
    dv_plan_standing seen_standing;
    int read_error; /* P/plan cannot be read */

    /* The party that settled last. */
    bool in_force;   /* all of it follow plans, and we are in it */
    bool names_rule; /* not all of it do */
    int64_t pzxid;
    size_t own;         /* in people's */
    char *known_as;     /* our node in this session that the newest plan had as a member (D34), or NULL */
    bool fence_unknown; /* another live node may have our identifier, and a later process: it is not read yet */
    unsigned fence_asks;
    bool taker_unread, taker_asked; /* nodes of a next owner's identifier have to tell which of them counts (T1) */
    int64_t taker_pzxid;            /* of the party that is asked about */

    int64_t namesakes_mzxid;       /* of the plan by which members of one identifier were looked for */
    bool joined_told, weight_told; /* what a member that joins is told of the plan */
    bool agrees;                   /* what dv_follow_agrees() says */
    char **rule_nodes;             /* what a rule of names gave: a first plan begins with it */
    size_t rule_count;
    uint32_t *rule_owners;
    dv_plan_set *rule_set;
    uint32_t *first_owners; /* the same for the party that settled, in people's order */

    /* D36: nothing is to be written for this pair. */
    bool verdict;
    int64_t verdict_pzxid, verdict_mzxid;

    /* D37: when our rank may write, for this pair. */
    bool rank_known;
    int64_t rank_at, rank_pzxid, rank_mzxid;
    int64_t retry_at, backoff_ms; /* after a failure */
    int64_t newer_since;
    dv_timer write_timer, absence_timer;
    bool asking; /* nodes' data are being read for the next step */
    dv_plan_writer *attempt;
    bool attempt_done; /* it is collecting garbage */
    int64_t attempt_pzxid;
    dv_wants *asked; /* by it */
    bool unsettled;  /* an attempt has seen another party than the one that settled */

    dv_absence *absences;
    size_t absence_count;
    dv_want want_weight, want_set, want_leave;
    uint32_t weight;
    char *weight_node; /* the node of ours for which the wanted weight came into force; NULL: none was wanted */
    dv_plan_set *set;
    size_t asked_count; /* of the items that our user asked for last; 0: he did not */
    uint64_t asked_hash;
    char round_over[DV_GUID_BYTES];
    dv_round round;
};

/* ---- plan.c ---- */
/* Retries the read of nodes with our identifier, if the last one failed. */
void dv_follow_ask_again(dv_follower *f, int64_t now);

/* ---- plan_target.c ---- */
/* D34: computes the target from the settled party, the memory and the fencing. Gives it to the state if it has changed.
 * `settled`: the party has just done so. */
void dv_follow_apply(dv_follower *f, bool settled, int64_t now);
bool dv_follow_is_fenced(const dv_follower *f);
/* D38: returns whether what fences us is no node of a former session of ours. */
bool dv_follow_is_replaced_by_another(const dv_follower *f);
/* D10: fills in what a first plan begins with, if there is none. Returns false when an allocation fails. */
bool dv_follow_prepare_first(dv_follower *f);
void dv_follow_forget_first(dv_follower *f);
void dv_follow_free_rule(dv_follower *f);

/* ---- plan_tell.c ---- */
/* Warns of what the plan decides otherwise than this member was configured. `own` is its entry, or NULL. */
void dv_follow_tell(dv_follower *f, const dv_plan *plan, const dv_plan_member *own);
void dv_follow_tell_fenced(const dv_follower *f);

/* ---- plan_next.c ---- */
/* Looks whether there is something to write, and writes it when our rank may. Called on whatever may matter. */
void dv_follow_evaluate(dv_follower *f, int64_t now);
/* D36: takes over what a plan that was made for the settled party says of its nodes. Returns whether it is one. */
bool dv_follow_learn(dv_follower *f);
/* Our place in the row of those who write (D37). */
size_t dv_follow_rank(const dv_follower *f);
/* Returns whether it is the first in the row of the plan's members: ghosts, looked at or not, are none. */
bool dv_follow_is_first(const dv_follower *f);
void dv_follow_try_later(dv_follower *f, int64_t now);
void dv_follow_write_timer(dv_timer *timer, int64_t now);

/* ---- plan_wants.c ---- */
/* Collects the wishes for the next plan as they are now. Returns NULL when an allocation fails. */
dv_wants *dv_wants_new(const dv_follower *f);
bool dv_wants_anything(const dv_wants *asked);
void dv_wants_free(dv_wants *asked);
/* A plan is in force that has it all; or an attempt to write one has failed. */
void dv_follow_fulfilled(dv_follower *f, const dv_wants *asked, int64_t now);
void dv_follow_refused(dv_follower *f, int error, int64_t now);
void dv_follow_refuse_leave(dv_follower *f, int error, int64_t now);
/* The memory has another plan. */
void dv_follow_note_absences(dv_follower *f, int64_t now);
void dv_follow_absence_timer(dv_timer *timer, int64_t now);
/* We are in the party under this node: what was wanted for another one is wanted again. */
void dv_follow_leave_again(dv_follower *f);
void dv_follow_note_node(dv_follower *f);
void dv_follow_free_wants(dv_follower *f);

/* ---- plan_rounds.c ---- */
void dv_follow_watch_round(dv_follower *f, int64_t now);
void dv_follow_stop_round(dv_follower *f);
void dv_follow_round_timer(dv_timer *timer, int64_t now);

#endif
