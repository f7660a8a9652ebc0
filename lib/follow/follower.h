/* The follower of the plan, as the files of its room share it. SPDX-License-Identifier: Apache-2.0
 *
 * Each struct is written by the one file that its comment names; the others read it. A file calls only those whose
 * functions stand above its own here. What it hears of ZooKeeper it passes up by dv_follower.look. */
#ifndef DV_FOLLOWER_H
#define DV_FOLLOWER_H

#include "base/container.h"
#include "divvy/partitioner.h"
#include "follow/follow.h"
#include "plan/reader.h"
#include "plan/writer.h"

/* Our place in the party that settled last: party.c. */
typedef struct {
    bool in_force;     /* P3: all of it follow plans, and we are in it */
    bool names_decide; /* not all of it do */
    int64_t pzxid;
    size_t own; /* our node, in the roster */
} dv_follow_place;

/* The owners that a rule of names gave last, and what they are in the settled party: first.c. */
typedef struct {
    char **nodes;
    size_t node_count;
    uint32_t *by_rule; /* indices into `nodes` */
    dv_plan_set *set;
    uint32_t *owners; /* indices into the roster; NULL: not looked up for this party */
} dv_follow_first;

/* The row of those who write, and when our turn in it comes: rank.c. */
typedef struct {
    bool is_known; /* D37: when our rank may write, for this pair */
    int64_t at, pzxid, mzxid;
    int64_t retry_at, backoff_ms; /* after a failure */
    int64_t alone_since;          /* too few members were here for a first plan; 0: enough are, or a plan is in use */
    dv_timer timer;
} dv_follow_rank;

/* A static member whose node is gone. Its time runs for this very entry of the plan (D13). */
typedef struct {
    char *key;
    int64_t absent; /* as in the plan */
    int64_t due;
    bool is_expired;
} dv_absence;

/* absences.c */
typedef struct {
    dv_absence *list;
    size_t count;
    dv_timer timer;
} dv_follow_absences;

/* One kind of request: a later one takes the place of an earlier one. */
typedef struct {
    bool is_open;
    unsigned number;
} dv_plan_request;

/* The requests of the user: requests.c. */
typedef struct {
    dv_plan_request weight, set, leave;
    uint32_t new_weight;
    char *weight_node; /* the node of ours for which the requested weight came into force; NULL: none was requested */
    dv_plan_set *new_set; /* that our user requested last; NULL: he did not */
    bool leaves;          /* it was requested */
    bool hands_over;      /* T8: the user works on until then */
} dv_follow_requests;

/* The changes that one attempt is to write, besides what the party tells: changes.c. They live until it ends. */
typedef struct {
    dv_plan_events events;
    dv_plan_expiry *expired; /* their keys are ours */
    char *node;              /* our own */
    char round_over[DV_GUID_BYTES];
    bool is_urgent;                                   /* a request is among them, which waits for no rank */
    unsigned weight_number, set_number, leave_number; /* of the requests among them; 0: none */
} dv_follow_changes;

/* D38: another live node may have our identifier, and a later process: fence.c. */
typedef struct {
    bool is_unknown; /* the nodes are not read yet */
    unsigned under_way;
} dv_follow_fence;

/* T1: nodes of a next owner's identifier have to tell which of them counts: owners.c. */
typedef struct {
    bool are_unread, under_way;
    int64_t pzxid; /* of the party that is asked about */
} dv_next_owners;

/* The warnings that the user has had: warnings.c. */
typedef struct {
    bool joined, weight; /* since we take part */
    int64_t mzxid;       /* of the last plan that other_plan() told */
} dv_follow_told;

/* Our share: target.c. */
typedef struct {
    char *known_as; /* our node in this session that the newest plan had as a member (D34), or NULL */
    bool agrees;    /* the share is what it is to become, as far as the plan has a say in that */
} dv_follow_share;

/* The locks of the items that a round moves, as they are looked at: round.c. */
typedef struct {
    char guid[DV_GUID_BYTES]; /* of the plan */
    char over[DV_GUID_BYTES]; /* of the plan whose round is over */
    int64_t since;
    int64_t look_ms;             /* to the next look (D42) */
    size_t count, next, waiting; /* of its moved items; the next to look at; those whose locks we wait for */
    bool *arrived;
    size_t under_way;
    bool owner_requested; /* the nodes of a new owner's identifier are being read */
    unsigned look;        /* answers to earlier looks say nothing */
    dv_timer timer;
} dv_follow_round;

/* The loads that members report: loads.c. */
typedef struct {
    char *directory; /* P/loads */
    bool reports;    /* our user tells loads */
    dv_loads *event; /* that the next step is to have, of the items of `set`; NULL: none */
    dv_plan_set *set;
    bool event_asks; /* it says nothing but that loads are reported */
    dv_loads *last;  /* that was read last, when the plan was that of last_mzxid */
    int64_t last_mzxid;
    int64_t seen_mzxid;                    /* of the newest plan that was looked at for `rest_until` */
    int64_t rest_until;                    /* nothing is moved for load before */
    char unit[DV_LOAD_UNIT_BYTES_MAX + 1]; /* that all members report in by now; "": that of the plan */
    bool unit_told;                        /* our loads are in another unit than the plan's, and the user knows */
    struct dv_load_reading *reading;       /* that is under way; NULL: none */
    dv_timer timer;
} dv_follow_loads;

/* The items that the user was warned of: heavy.c. */
typedef struct {
    uint8_t told[512]; /* bits, by the crc of the name */
} dv_follow_heavy;

/* D36: nothing is to be written for this pair: writes.c. */
typedef struct {
    bool stands;
    int64_t pzxid, mzxid;
} dv_follow_verdict;

/* The attempt to write the next plan: writes.c. */
typedef struct {
    bool asking; /* nodes' data are being read for the next step */
    dv_plan_writer *writer;
    bool is_done; /* it is collecting garbage */
    int64_t pzxid;
    dv_follow_changes *changes; /* that it is to write */
    bool is_unsettled;          /* it has seen another party than the one that settled */
} dv_follow_attempt;

/* P/plan as we read it: follow.c. */
typedef struct {
    dv_plan_reader *reader;
    int error;          /* P/plan cannot be read */
    int64_t seen_mzxid; /* of what was read last */
    dv_plan_standing seen_standing;
    int64_t left_mzxid;  /* the newest that was known when we stopped last */
    int64_t newer_since; /* since when a later release's plan stands there; 0: none does */
} dv_follow_reading;

enum {
    DV_LOOK_FENCE = 1,   /* reads the nodes of our identifier, if that failed last */
    DV_LOOK_TARGET = 2,  /* computes what is ours */
    DV_LOOK_SETTLED = 4, /* the same, and the party has just settled */
    DV_LOOK_ROUND = 8,   /* looks for moved items */
    DV_LOOK_WRITES = 16  /* writes the next plan, if there is one to be written and it is our turn */
};

struct dv_follower {
    dv_follow_config config;
    const dv_follow_events *events;
    const dv_follow_questions *questions;
    void *owner;
    char *path; /* P/plan */
    dv_roster *roster;
    /* Something is known that was not: does what the DV_LOOK_* say, in their order. */
    void (*look)(dv_follower *f, unsigned what, int64_t now);

    bool is_stopped; /* follow.c */
    dv_follow_reading reading;
    dv_plan_memory memory; /* the reader's and the writer's of lib/plan */
    dv_follow_place party;
    dv_follow_first first;
    dv_follow_rank rank;
    dv_follow_absences absences;
    dv_follow_requests requests;
    dv_follow_fence fence;
    dv_next_owners next_owners;
    dv_follow_told told;
    dv_follow_share share;
    dv_follow_round round;
    dv_follow_loads loads;
    dv_follow_heavy heavy;
    dv_follow_verdict verdict;
    dv_follow_attempt attempt;
};

/* Begins something that keeps the follower until dv_follow_end(). */
static inline void dv_follow_begin(dv_follower *f) {
    f->events->begun(f->owner);
}

/* May free the follower. */
static inline void dv_follow_end(dv_follower *f, int64_t now) {
    f->events->ended(f->owner, now);
}

/* ---- party.c ---- */
/* Takes a party whose members all follow plans. Returns 0 or DIVVY_ENOMEM. */
int dv_follow_take_party(dv_follower *f, const dv_follow_party *settled);
void dv_follow_lose_force(dv_follower *f, bool names_decide);
/* Returns the plan in memory, if it is one. */
const dv_plan *dv_follow_plan(const dv_follower *f);
const char *dv_follow_own_node(const dv_follower *f);
/* Finds a member's live node (D12). *unread: one of its identifier that was not read, and may be it. SIZE_MAX: none. */
size_t dv_follow_find_node(const dv_follower *f, const dv_plan *plan, const dv_plan_member *m, size_t *unread);
/* D38: returns whether another live node has taken the place of ours. */
bool dv_follow_is_fenced(const dv_follower *f);
/* Returns whether that is no node of a former session of ours. */
bool dv_follow_is_fenced_by_another(const dv_follower *f);
/* Returns whether the plan was made for a later party, which settles here in a moment. */
bool dv_follow_is_ahead(const dv_follower *f, const dv_plan *plan);
/* D36: takes over what a plan that was made for the settled party says of its nodes. Returns whether it is one. */
bool dv_follow_learn(dv_follower *f);

/* ---- first.c ---- */
/* Fills in what a first plan begins with, if there is none. Returns false when an allocation fails. */
bool dv_follow_prepare_first(dv_follower *f);
void dv_follow_forget_first(dv_follower *f);
void dv_follow_free_first(dv_follower *f);

/* ---- rank.c ---- */
size_t dv_follow_rank_of(const dv_follower *f);
/* Returns whether we write for others. */
bool dv_follow_has_rank(const dv_follower *f);
/* Returns whether it is the first in the row of the plan's members: ghosts, looked at or not, are none. */
bool dv_follow_is_first(const dv_follower *f);
/* Returns from when on we may write, for this pair of party and plan. */
int64_t dv_follow_turn(dv_follower *f, bool is_urgent, int64_t now);
/* Looks again whether there is something to write, at that time. */
void dv_follow_write_at(dv_follower *f, int64_t at);
void dv_follow_write_no_more(dv_follower *f);
void dv_follow_try_later(dv_follower *f, int64_t now);
void dv_follow_forget_failures(dv_follower *f);
void dv_follow_restart_rank(dv_follower *f);
/* Returns whether the pool has no plan in use yet, and waits for more members. */
bool dv_follow_waits_for_members(const dv_follower *f, int64_t now);

/* ---- absences.c ---- */
/* The memory may have another plan. */
void dv_follow_note_absences(dv_follower *f, int64_t now);
void dv_follow_stop_absences(dv_follower *f);
void dv_follow_free_absences(dv_follower *f);

/* ---- requests.c ---- */
/* A plan is in force that has these changes. */
void dv_follow_fulfil(dv_follower *f, const dv_follow_changes *changes, int64_t now);
/* An attempt to write has failed. */
void dv_follow_refuse(dv_follower *f, int error, int64_t now);
void dv_follow_refuse_leave(dv_follower *f, int error, int64_t now);
void dv_follow_leave_again(dv_follower *f);
void dv_follow_forget_leave(dv_follower *f);
/* D15: we are in the party under this node. The weight of a member that is not static goes with its node. */
void dv_follow_note_node(dv_follower *f);
void dv_follow_free_requests(dv_follower *f);

/* ---- changes.c ---- */
/* Collects the changes that the next plan has to have now. Returns NULL when an allocation fails. */
dv_follow_changes *dv_follow_collect(const dv_follower *f);
bool dv_follow_has_changes(const dv_follow_changes *changes);
void dv_follow_free_changes(dv_follow_changes *changes);

/* ---- fence.c ---- */
/* Asks whether another live node has a static member's identifier. The settled party counts once that is known. */
void dv_follow_ask_fence(dv_follower *f, int64_t now);
/* Asks again, if the last time failed. Returns whether it is known now. */
bool dv_follow_ask_fence_again(dv_follower *f, int64_t now);

/* ---- owners.c ---- */
/* Fills in `out`, and reads which node of a next owner counts, where that is open. `own`: our entry in the plan, or
 * NULL. Returns what the caller frees when it has used `out`; NULL: an allocation has failed. */
const char **dv_follow_list_owners(dv_follower *f, const dv_plan_member *own, dv_follow_owners *out);
void dv_follow_forget_owners(dv_follower *f);

/* ---- warnings.c ---- */
void dv_follow_warn(const dv_follower *f, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void dv_follow_fail(dv_follower *f, int error, int reason, int64_t now, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Warns of what the plan decides otherwise than this member was configured. `own` is its entry, or NULL. */
void dv_follow_tell(dv_follower *f, const dv_plan *plan, const dv_plan_member *own);
void dv_follow_tell_fenced(const dv_follower *f);
/* We take part again: a member that joins is told of what concerns it. */
void dv_follow_tell_again(dv_follower *f);

/* ---- heavy.c ---- */
/* Warns once of each item that is more work than a fair share, by the plan and what is reported. */
void dv_follow_tell_heavy(dv_follower *f, const dv_loads *reported);

/* ---- loads.c ---- */
bool dv_follow_init_loads(dv_follower *f);
/* A step has taken these changes, or has found that nothing is to be written. */
void dv_follow_used_loads(dv_follower *f, const dv_follow_changes *changes);
/* The party or the plan may be another: reads what is reported, if that is ours to do. */
void dv_follow_watch_loads(dv_follower *f, int64_t now);
void dv_follow_stop_loads(dv_follower *f);
void dv_follow_free_loads(dv_follower *f);

/* ---- target.c ---- */
/* D34: tells the target by party, memory and fencing. `is_settled`: the party has just settled. */
void dv_follow_apply(dv_follower *f, bool is_settled, int64_t now);
void dv_follow_forget_agreement(dv_follower *f);
void dv_follow_forget_node(dv_follower *f);

/* ---- round.c ---- */
/* Looks for moved items, if the plan has any and that is ours to do. */
void dv_follow_watch_round(dv_follower *f, int64_t now);
void dv_follow_stop_round(dv_follower *f);

/* ---- writes.c ---- */
/* Looks whether there is something to write, and writes it when our rank may. Called on whatever may matter. */
void dv_follow_evaluate(dv_follower *f, int64_t now);
void dv_follow_forget_verdict(dv_follower *f);
/* Another party has settled, so an attempt may find it. */
void dv_follow_allow_attempts(dv_follower *f);
void dv_follow_stop_attempt(dv_follower *f);

#endif
