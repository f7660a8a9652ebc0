/* The simulator, as its parts share it. SPDX-License-Identifier: Apache-2.0
 *
 * A history is a script, a list of (time, event) drawn from a seed, that is executed from the list on a simulated
 * ensemble, with members that are ordinary clients of the library. script.c draws it; world.c executes it; member.c is
 * a process with its client, user.c the program in it, claims.c its locks and semaphores, services.c its registry;
 * truth*.c mirror what the servers committed; check_*.c hold both against the invariants of docs/protocol.md;
 * resource.c is what the items guard. */
#ifndef SIM_H
#define SIM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "divvy/party.h"
#include "divvy/testing.h"
#include "partitioner/partitioner.h"

#include "claim.h"
#include "coverage.h"
#include "fault.h"
#include "random.h"
#include "script.h"
#include "truth.h"

enum { SIM_SLOTS_MAX = 16, SIM_UNDO_MAX = 64, SIM_STRAYS_MAX = 5, SIM_ADMIN_SESSIONS_MAX = 64 };

/* ---- a member ---- */

/* One item, as a member has it. */
typedef struct {
    bool shown; /* by the library: a mirror of its inside, brought up to date after each step */
    int64_t token, session;
    bool gained; /* callbacks say so */
    int64_t gained_token;
    bool works; /* the user does, or may, as long as it has not stopped */
    int64_t work_token, work_session;
    bool knows_revoked, knows_leaving, works_blind; /* its place was deleted before it took it by number (T6) */
    bool prepares;                                  /* was told to */
} sim_holding;

typedef enum {
    SIM_AT_ONCE,    /* releases inside the callback */
    SIM_LATER,      /* is told by callbacks, and takes its time */
    SIM_POLLS,      /* has no callbacks, and looks at snapshots */
    SIM_KAZOO_LOOP, /* has no callbacks, and looks at states: kazoo's loop */
} sim_style;

enum { SIM_NEVER, SIM_PREPARED_AT_ONCE, SIM_PREPARED_LATER, SIM_PREPARES_MS = 3000 };
typedef struct {
    sim_style style;
    int64_t poll_ms, react_ms;
    bool twice;        /* calls release_set() a second time without looking */
    bool by_id;        /* releases by number */
    bool stays;        /* keeps the session when the partitioner has ended */
    bool closes_first; /* closes the client before the partitioner is destroyed */
    bool destroys_inside;
    int prepares;  /* SIM_NEVER, ...: when it says that it is prepared */
    bool replaces; /* finishes when a later process of its identifier has all, as `divvy partition --replace` does */
    sim_random random;
} sim_user;

typedef struct sim_kazoo sim_kazoo;
typedef struct sim_kazoo_claim sim_kazoo_claim;
typedef struct sim_services sim_services;
typedef struct sim_watch sim_watch;

/* A kazoo member's belief, as check_kazoo.c has seen it. */
typedef struct {
    bool at_work;
    int64_t session;  /* by which */
    int64_t stale_at; /* since when the servers have ended that; 0: they have not */
    bool shared;      /* somebody else has believed in the same since */
} sim_kazoo_belief;

typedef enum { SIM_ABSENT, SIM_RUNS, SIM_ENDING, SIM_IDLE } sim_phase;

struct sim_member {
    sim_world *world;
    size_t slot;
    unsigned incarnation, partitioners;
    uint64_t life; /* of the partitioner, among those of all members; 0: there was none yet */
    char name[40];
    sim_phase phase;
    divvy_client *client;
    divvy_partitioner *partitioner;
    divvy_party *party;
    sim_kazoo *kazoo; /* instead of a partitioner */
    divvy_client_config client_config;
    divvy_partitioner_config config;
    sim_user user;

    bool paused;
    bool callback_runs; /* one that takes its time; others wait */
    int64_t resume_at;
    int64_t act_at;     /* when the user does something; INT64_MAX: only when told */
    int64_t release_at; /* when the user releases; 0: nothing is to be released */
    uint64_t release_id;
    int64_t end_at; /* SIM_IDLE: when the user closes */

    sim_holding items[SIM_ITEMS_MAX];
    /* The state at the last look. */
    uint64_t seen_generation, seen_state_id;
    divvy_partition_state seen_state;
    bool seen_change, seen_alive;
    bool not_seen;                        /* time has gone on inside a call, and steps in it were not looked at */
    int64_t seen_session, passed_session; /* whose deadline has passed */
    int64_t killed_at;                    /* when an administrator ended its session last */
    divvy_partition_state told_state;
    int last_reason;
    bool ended;                     /* finish(), destroy() or close() was called: the user has stopped all work */
    bool destroyed;                 /* the partitioner was, so that nothing may be told after it */
    bool failing;                   /* the user has seen FAILURE */
    bool leaving, hands_over;       /* leave() was called, and not finish(); while work went on */
    int64_t plan_mzxid, plan_found; /* of the plan in its memory, and of what it found last */
    int plan_standing;
    bool plan_wishes, plan_loads; /* that plan has some, */
    uint64_t plan_set;            /* and the set with this hash */
    uint64_t plan_checked_state;  /* when its share was held against the plan last */
    int64_t plan_checked_mzxid, plan_checked_pzxid;
    size_t plan_checked_count;
    bool plan_checked_fence;
    int plan_rule; /* 1: a plan decides, 2: a rule of names, 0: nothing yet */
    bool plan_was_fenced;
    int64_t plan_settled; /* pzxid of the party that it takes for settled */
    int64_t roll_pzxid;   /* of the one that was checked last */
    int64_t settle_max_ms, unserved_since;

    /* A trap: the connection breaks as soon as such a request is under way. */
    bool trap_set;
    divvy_testing_fate trap_fate;
    int64_t trap_late_ms, trap_until;
    unsigned trap_what;
    bool trap_leaves; /* and the user finishes just before */
    uint64_t trap_count;
    /* Another: its server loses the leader as soon as it has answered a write. */
    bool cut_set;
    uint64_t cut_count;
    sim_event cut;

    bool has_partitioner; /* or had, and may have one again */
    sim_claim claims[SIM_CLAIMS_MAX];
    size_t claim_count;
    sim_random claim_random;
    sim_kazoo_claim *kazoo_claim; /* instead of all others */
    sim_kazoo_belief kazoo_belief;
    sim_services *services;     /* its registry: services.c */
    bool is_older, tells_loads; /* by name it knows no loads and wishes; its user tells the loads of its items, */
    int64_t loads_at;           /* the next time then */
    sim_watch *watch;           /* its death watch: watches.c; NULL: none */
    int64_t last_paused;
    int64_t opened_zxid; /* the last transaction when its client was opened */
};

typedef struct {
    int64_t token; /* the largest that was shown */
    size_t turn;   /* of its owners the last that was here, from 1 */
} sim_resource;

typedef struct {
    bool set;
    char what[8];
    char text[480];
    int64_t at_ms;
} sim_violation;

typedef enum {
    SIM_LATER_CUT,
    SIM_UNDO_LINK,
    SIM_UNDO_PAUSE,
    SIM_UNDO_SERVER,
    SIM_UNDO_SERVER_PAUSE,
    SIM_UNDO_CUT,
    SIM_UNDO_CALLBACK
} sim_undo_kind;

typedef struct {
    int64_t at_ms;
    sim_undo_kind kind;
    unsigned a, b;
    unsigned incarnation;
} sim_undo;

struct sim_world {
    const sim_script *script;
    sim_coverage *coverage;
    bool trace;
    divvy_testing_ensemble *ensemble;
    int64_t began_ms, now_ms;
    uint64_t steps;
    sim_member members[SIM_SLOTS_MAX];
    sim_truth truth;
    struct sim_claims_truth *claims_truth;
    struct sim_services_truth *services_truth;
    struct sim_plans_truth *plans_truth;
    struct sim_rolls_truth *rolls_truth; /* NULL: there was no party yet */
    const char *deployed[SIM_ITEMS_MAX]; /* what members are made with */
    size_t deployed_count;
    size_t deployed_moves, least_moves; /* max_moves; the least that anybody had, but for 0 */
    int64_t deployed_round_timeout_ms;
    uint64_t lives; /* how many partitioners there were */
    int64_t zxid;   /* of the last transaction */
    sim_resource resources[SIM_ITEMS_MAX];
    sim_watch *watches; /* NULL: there were none */
    sim_undo undos[SIM_UNDO_MAX];
    size_t undo_count;
    divvy_client *admin;                            /* somebody else */
    int64_t admin_sessions[SIM_ADMIN_SESSIONS_MAX]; /* of requests that may be done late */
    size_t admin_session_count;
    unsigned strays;
    bool last_blow;
    bool plan_trap, newer_trap; /* as soon as somebody is about to write a plan it is deleted; a later one comes */
    bool healed, over;
    int64_t loads_since;                   /* since when they stand still; 0: they do not */
    int64_t quiet_since, foreign_at;       /* the last change of members; the last foreign deletion */
    int64_t given_up_at;                   /* a member parted with a session last, by its clock or its servers' */
    int64_t settle_max_ms, timeout_max_ms; /* the longest of all members, ever */
    sim_random answer_random;
    const char *quota_path; /* that had one last */
    int64_t quota_until;    /* it may delay anything */
    sim_violation violation;
    char item_names[SIM_ITEMS_MAX][32];
    const char *items[SIM_ITEMS_MAX];
};

/* Executes a script. Returns whether there was no violation; *out tells which. `omit` (may be NULL): events to
 * leave out. */
bool sim_history(const sim_script *script, const bool *omit, bool trace, sim_coverage *coverage, sim_violation *out);

/* ---- world.c ---- */
void sim_violate(sim_world *w, const char *what, const char *format, ...) __attribute__((format(printf, 3, 4)));
void sim_trace(sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace_members(sim_world *w);
/* One thing happens, up to `until_ms`; and is checked. */
void sim_step(sim_world *w, int64_t until_ms);

/* Lets somebody join if nobody is there. */
void sim_need_a_member(sim_world *w);

/* ---- faults.c: the events of the script ---- */
void sim_apply(sim_world *w, const sim_event *event);
int64_t sim_next_undo(const sim_world *w);
void sim_undo_due(sim_world *w);
void sim_heal(sim_world *w);

/* ---- answers.c ---- */
void sim_answers_begin(sim_world *w);
/* After an event of the script. */
void sim_answers_draw(sim_world *w);
void sim_answers_heal(sim_world *w);
/* Returns for how long odd answers may hold up what a member does. */
int64_t sim_answers_delay_ms(const sim_world *w);
/* Breaks the connections whose traps have snapped. */
void sim_traps(sim_world *w);

/* ---- admin.c: somebody else's client ---- */
bool sim_is_admin(const sim_world *w, int64_t session);
void sim_admin_note_session(sim_world *w);
bool sim_admin_open(sim_world *w);
void sim_admin_close(sim_world *w);
void sim_admin_delete_place(sim_world *w, uint32_t choice);
void sim_admin_delete_member(sim_world *w, uint32_t choice);
void sim_admin_stray(sim_world *w, uint32_t choice);
void sim_admin_delete_claim(sim_world *w, uint32_t choice);
void sim_admin_delete_directory(sim_world *w, uint32_t choice);
void sim_admin_delete_service(sim_world *w, uint32_t choice);
void sim_admin_delete_plan(sim_world *w, bool again);
void sim_admin_spoil_plan(sim_world *w, const sim_event *e);
void sim_admin_restore_plan(sim_world *w, const sim_event *e);
void sim_admin_newer_plan(sim_world *w);

/* ---- member.c ---- */
void sim_member_start(sim_world *w, size_t slot, const sim_event *event);
/* Returns the result of divvy_partitioner_finish(). */
int sim_member_finish(sim_member *m, int64_t timeout_ms);
void sim_member_leave(sim_member *m, int64_t timeout_ms);
void sim_member_hand_over(sim_member *m); /* T8: leaves while its user works on */
void sim_member_destroy(sim_member *m);
void sim_member_close(sim_member *m);
void sim_member_crash(sim_member *m);
/* Does what the member does of itself, once act_at has come. */
void sim_member_act(sim_member *m);
/* The item as its partitioner has it; NULL: it has none of that name. */
dv_item *sim_item_of(const sim_member *m, size_t item);

/* ---- user.c ---- */
void sim_user_callbacks(sim_member *m, divvy_partitioner_config *config);
/* Makes a callback of the user take its time, in a thread of its own, or end. */
void sim_user_hold_callbacks(sim_member *m, bool hold);
/* Does what the user does without being told, once act_at has come. */
void sim_user_act(sim_member *m);
void sim_user_stop_all(sim_member *m);
void sim_user_plan(sim_member *m);

/* ---- check_safety.c ---- */
void sim_check_transaction(sim_world *w, const divvy_testing_transaction *t);
void sim_check_step(sim_world *w);
/* Time has gone on inside a waiting call. */
void sim_check_anew(sim_world *w);
/* Checks an item that the user is told to have gained. */
void sim_check_gained(sim_member *m, size_t item, int64_t token);
/* The user has begun to work on an item. */
void sim_check_work(sim_member *m, size_t item);
bool sim_member_alive(const sim_member *m);
void sim_check_told(sim_member *m, divvy_partition_state from, divvy_partition_state to);
/* The user has released: an item that it owns again in the very next step was not kept. */
void sim_check_released(sim_member *m);
/* finish() said that all is gone. */
void sim_check_gone(sim_member *m);

/* Returns whether the member believes in the item, by a token that nothing excuses. */
bool sim_believes(sim_world *w, const sim_member *m, size_t item);

/* ---- check_kazoo.c ---- */
/* S2: a member believes in an item, or a claim, from now on; kazoo members must not. */
void sim_kazoo_check_item(const sim_member *m, size_t item);
void sim_kazoo_check_claim(const sim_claim *c);
void sim_kazoo_transaction(sim_world *w, const divvy_testing_transaction *t);
void sim_kazoo_check_step(sim_member *m);

/* ---- check_liveness.c ---- */
/* After the faults: waits as long as L1 grants, and looks at what became of it. */
void sim_check_end(sim_world *w);

/* ---- check_directories.c ---- */
void sim_directories_transaction(sim_world *w, const divvy_testing_transaction *t);
/* When the pool has recovered from the faults: what of persistent nodes stays at rest, and when all have finished. */
void sim_check_remains(sim_world *w);

/* ---- claims.c ---- */
void sim_claims_draw(sim_member *m, sim_random *r);
/* Does what the users of claims do without being told, once sim_claims_next() has come. */
void sim_claims_act(sim_member *m);
int64_t sim_claims_next(const sim_member *m);
/* All is given up: acquires are canceled, what is held is released. */
void sim_claims_give_up(sim_member *m);
void sim_claims_destroy(sim_member *m);
/* Users stop all work, as their process ends. */
void sim_claims_stop(sim_member *m);
void sim_claims_closed(sim_member *m);
void sim_claims_heal(sim_world *w);
/* Waiting calls: an acquire, another limit, a look at who holds and waits. */
void sim_claims_acquire(sim_member *m, const sim_event *e);
void sim_claims_resize(sim_member *m, const sim_event *e);
void sim_claims_look(sim_member *m, const sim_event *e);

/* ---- truth_claims.c, check_claims.c ---- */
void sim_claims_truth_new(sim_world *w);
void sim_claims_truth_free(sim_world *w);
void sim_claims_transaction(sim_world *w, const divvy_testing_transaction *t);
void sim_claims_check_step(sim_world *w, sim_member *m, bool afresh);
/* After the faults: whether all has been released and nothing is left. */
bool sim_claims_well(sim_world *w, sim_fault *f);
int64_t sim_claims_bound_ms(const sim_world *w);
void sim_sequence_end(sim_world *w, const sim_event *e);

/* ---- kazoo_claims.c ---- */
void sim_kazoo_claim_start(sim_member *m, sim_random *r);
void sim_kazoo_claim_act(sim_member *m);
bool sim_kazoo_claim_well(const sim_kazoo_claim *k);
void sim_kazoo_claim_free(sim_kazoo_claim *k);
/* Returns the claim that its user works on, and in *node its node; NULL: none. */
const sim_claim *sim_kazoo_claim_held(sim_kazoo_claim *k, const char **node);
const char *sim_kazoo_claim_describe(const sim_kazoo_claim *k, char *buffer, size_t bytes);

/* ---- services.c ---- */
void sim_services_start(sim_member *m, sim_random *r);
void sim_services_act(sim_member *m);
int64_t sim_services_next(const sim_member *m);
void sim_services_check_step(sim_member *m);
/* Waiting calls. */
void sim_services_call(sim_member *m, const sim_event *e);
void sim_services_destroy(sim_member *m);
void sim_services_stop(sim_member *m);
void sim_services_free(sim_member *m);

/* ---- truth_services.c, check_services.c ---- */
void sim_services_truth_new(sim_world *w);
void sim_services_truth_free(sim_world *w);
/* Returns whether it is an affair of the registry's. */
bool sim_services_transaction(sim_world *w, const divvy_testing_transaction *t);
bool sim_services_well(sim_world *w, sim_fault *f);
int64_t sim_services_bound_ms(const sim_world *w);
void sim_services_wall_clock(sim_world *w, unsigned server, int64_t offset_ms);
void sim_services_drift(sim_world *w);

/* ---- plans.c ---- */
void sim_plans_configure(sim_member *m, sim_random *r);
/* Gives some members an identifier that others have too. */
void sim_plans_name(sim_member *m, sim_random random);
void sim_plans_set_items(sim_member *m, const sim_event *e);
void sim_plans_set_weight(sim_member *m, const sim_event *e);
void sim_plans_deploy(sim_world *w, const sim_event *e);
void sim_plans_trap(sim_world *w);
/* Spoils the plan of a pool at rest, once: nothing else wakes anybody. Returns whether it did. */
bool sim_plans_last_blow(sim_world *w);

/* ---- truth_plans.c, check_plans.c ---- */
enum { SIM_NOBODY = 1000, SIM_NOT_DEALT, SIM_OWNERLESS };
void sim_plans_truth_new(sim_world *w);
void sim_plans_truth_free(sim_world *w);
/* Returns whether it is an affair of the plan's. */
bool sim_plans_transaction(sim_world *w, const divvy_testing_transaction *t);
void sim_plans_check_step(sim_member *m);
/* Returns whether a party has just settled for it, or the newest one has. */
bool sim_plans_settled(sim_member *m);
/* Returns whether all who take part follow plans. */
bool sim_plan_in_force(const sim_world *w);
/* Returns whether another live one of its identifier came later. */
bool sim_is_fenced(const sim_member *m);
/* After the faults: whether nothing is left to be written, and all follow what stands there. */
bool sim_plan_well(const sim_world *w, sim_fault *f);
/* The slot of the member whose item it is by the plan; SIM_NOBODY, SIM_NOT_DEALT; SIM_OWNERLESS: rules leave it without
 * an owner. */
size_t sim_plan_owner(const sim_world *w, size_t item);
int64_t sim_plans_bound_ms(const sim_world *w);
/* Returns until when a plan of a later release is respected. 0: there was none. */
int64_t sim_plans_newer_until(const sim_world *w);

/* ---- resource.c ---- */
/* Writes as the user of `m`, with the token that it believes in. */
void sim_resource_write(sim_member *m, size_t item);

/* ---- kazoo.c ---- */
sim_kazoo *sim_kazoo_start(sim_member *m, const sim_event *event);
void sim_kazoo_act(sim_kazoo *kazoo);
bool sim_kazoo_settled(const sim_kazoo *kazoo);
/* Returns whether its user works on what it has acquired. */
bool sim_kazoo_at_work(sim_kazoo *kazoo);
/* Returns the node by which its user works on an item; NULL: the user does not. */
const char *sim_kazoo_node(const sim_kazoo *kazoo, size_t item);
void sim_kazoo_free(sim_kazoo *kazoo);
const char *sim_kazoo_describe(const sim_kazoo *kazoo, char *buffer, size_t bytes);

#endif
