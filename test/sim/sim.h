/* The simulator, as its parts share it. SPDX-License-Identifier: Apache-2.0
 *
 * A history is a script, a list of (time, event) drawn from a seed, that is executed from the list on a simulated
 * ensemble, with members that are ordinary clients of the library. script.c draws it; world.c executes it; member.c is
 * a process with its client, user.c the program in it; truth.c mirrors what the servers committed; check_safety.c and
 * check_liveness.c hold both against the invariants of docs/testing.md; resource.c is what the items guard. */
#ifndef SIM_H
#define SIM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "divvy/party.h"
#include "divvy/testing.h"
#include "partitioner/partitioner.h"

#include "random.h"

enum { SIM_SLOTS_MAX = 16, SIM_ITEMS_MAX = 100, SIM_EVENTS_MAX = 400, SIM_UNDO_MAX = 64, SIM_ADMIN_SESSIONS_MAX = 64 };

/* ---- the script ---- */

typedef enum {
    SIM_JOIN,
    SIM_FINISH,
    SIM_DESTROY,
    SIM_CLOSE,
    SIM_CRASH,
    SIM_PAUSE_SHORT,
    SIM_PAUSE_LONG,
    SIM_LINK_DOWN,
    SIM_LINK_NO_REQUESTS,
    SIM_LINK_NO_REPLIES,
    SIM_LOSE_NOT_APPLIED,
    SIM_LOSE_APPLIED,
    SIM_LOSE_APPLIED_LATE,
    SIM_EXPIRE,
    SIM_PREFER,
    SIM_DRIFT,
    SIM_SERVER_KILL,
    SIM_SERVER_PAUSE,
    SIM_LEADER_KILL,
    SIM_LEADER_PAUSE,
    SIM_SERVERS_CUT,
    SIM_SERVERS_CUT_ONE_WAY,
    SIM_FOLLOWER_CUT, /* the server of a member loses its leader */
    SIM_HEAL,
    SIM_DELETE_PLACE,
    SIM_DELETE_MEMBER,
    SIM_STRAY,
    SIM_SLOW_USER,
    SIM_PARTY_LOOK,
    SIM_WAIT,
    SIM_KINDS
} sim_kind;

typedef struct {
    int64_t at_ms; /* from the beginning */
    sim_kind kind;
    uint32_t a, b, c, d; /* what it means is up to the kind; each event has its own, so that others can be taken out */
} sim_event;

typedef enum { SIM_MIXED, SIM_CHURN, SIM_SERVERS, SIM_LINKS, SIM_REPLIES, SIM_PROFILES } sim_profile;

typedef struct {
    uint64_t seed;
    sim_profile profile;
    unsigned servers;
    size_t slots, items;
    int64_t tick_ms, timeout_ms, sync_limit_ticks;
    int64_t client_delay_max_ms, server_delay_max_ms, election_max_ms;
    int64_t boundary_ms; /* around which members choose theirs */
    int64_t react_ms;    /* the longest that a user takes to release */
    bool kazoo;          /* kazoo members may join */
    bool small_budgets;
    size_t count;
    sim_event events[SIM_EVENTS_MAX];
} sim_script;

typedef enum { SIM_KAZOO_SOMETIMES, SIM_KAZOO_OFTEN } sim_kazoo_wish;

void sim_script_draw(sim_script *out, uint64_t seed, sim_kazoo_wish kazoo);
void sim_script_print(const sim_script *script);
const char *sim_kind_name(sim_kind kind);

/* ---- what was met: coverage.c ---- */

typedef enum {
    SIM_ALLOCATING_ACQUIRED,
    SIM_ALLOCATING_RELEASE_MEMBERS,
    SIM_ALLOCATING_RELEASE_SUSPEND,
    SIM_ALLOCATING_RELEASE_LOSS,
    SIM_ALLOCATING_ALLOCATING,
    SIM_ALLOCATING_FAILURE_LOSS,
    SIM_ALLOCATING_FAILURE_TIMEOUT,
    SIM_ALLOCATING_FAILURE_FINISH,
    SIM_ACQUIRED_RELEASE_MEMBERS,
    SIM_ACQUIRED_RELEASE_EAGER,
    SIM_ACQUIRED_RELEASE_SUSPEND,
    SIM_ACQUIRED_RELEASE_LOSS,
    SIM_ACQUIRED_RELEASE_FOREIGN,
    SIM_ACQUIRED_ALLOCATING_ADDED,
    SIM_ACQUIRED_ALLOCATING_FOREIGN,
    SIM_ACQUIRED_ACQUIRED,
    SIM_ACQUIRED_FAILURE_LOSS,
    SIM_ACQUIRED_FAILURE_FINISH,
    SIM_RELEASE_RELEASE_TARGET,
    SIM_RELEASE_RELEASE_MEMBERS,
    SIM_RELEASE_RELEASE_SUSPEND,
    SIM_RELEASE_RELEASE_LOSS,
    SIM_RELEASE_ALLOCATING,
    SIM_RELEASE_FAILURE_LOSS,
    SIM_RELEASE_FAILURE_FINISH,
    SIM_TRANSITIONS
} sim_transition;

typedef enum {
    SIM_MET_KEPT,           /* an item that was revoked stayed */
    SIM_MET_SHORT,          /* a share did not fit */
    SIM_MET_STALE_REJECTED, /* the resource turned a stale write away */
    SIM_MET_UNSEEN,         /* a second release_set() was refused */
    SIM_MET_BLIND_WRITE,    /* past the deadline */
    SIM_MET_REJOIN,         /* a member went on with a new session */
    SIM_MET_KAZOO,          /* a kazoo member took part */
    SIM_MET_KAZOO_ACQUIRED,
    SIM_MET_STRAY,
    SIM_MET_WAITED_SECOND, /* in a queue, behind another */
    SIM_MEETINGS
} sim_meeting;

typedef struct {
    uint64_t histories, steps, script_events;
    int64_t simulated_ms;
    uint64_t kinds[SIM_KINDS];
    uint64_t transitions[SIM_TRANSITIONS];
    uint64_t meetings[SIM_MEETINGS];
} sim_coverage;

void sim_coverage_add(sim_coverage *to, const sim_coverage *from);
void sim_coverage_print(const sim_coverage *coverage);
/* Prints what is missing; how much that is. */
size_t sim_coverage_missing(const sim_coverage *coverage);

/* ---- what the servers committed: truth.c ---- */

enum { SIM_NODE_BYTES = 72 };

typedef struct {
    char name[SIM_NODE_BYTES];
    int64_t session, czxid;
    int32_t sequence;
    bool contends;
} sim_node;

/* Who came to own an item, in this order. */
typedef struct {
    int64_t token, session;
} sim_owner;

typedef struct {
    sim_node *nodes; /* of the item's directory */
    size_t count, room;
    sim_owner *owners;
    size_t owner_count, owner_room;
    int64_t first;       /* czxid of the lowest contender; 0: none */
    int64_t shown_token; /* the last that a member believed in */
} sim_queue;

typedef struct {
    int64_t id, began_ms;
    size_t path_bytes, pool_nodes; /* of its ephemerals; how many of them are below the pool */
} sim_session;

/* A place that was deleted by somebody else. */
typedef struct {
    size_t item;
    int64_t token;
} sim_excuse;

typedef struct {
    sim_queue queues[SIM_ITEMS_MAX];
    sim_node *party;
    size_t party_count, party_room;
    sim_session *sessions; /* that are open */
    size_t session_count, session_room;
    sim_excuse *excuses;
    size_t excuse_count, excuse_room;
    int64_t *killed; /* sessions that an administrator ended */
    size_t killed_count, killed_room;
} sim_truth;

/* ---- a member ---- */

/* One item, as a member has it. */
typedef struct {
    bool shown; /* by the library: a mirror of its inside, brought up to date after each step */
    int64_t token, session;
    bool gained; /* callbacks say so */
    int64_t gained_token;
    bool works; /* the user does, or may: he has not stopped */
    int64_t work_token, work_session;
    bool knows_revoked;
} sim_holding;

typedef enum {
    SIM_AT_ONCE,    /* releases inside the callback */
    SIM_LATER,      /* is told by callbacks, and takes his time */
    SIM_POLLS,      /* has no callbacks, and looks at snapshots */
    SIM_KAZOO_LOOP, /* has no callbacks, and looks at states: kazoo's loop */
} sim_style;

typedef struct {
    sim_style style;
    int64_t poll_ms, react_ms;
    bool twice;        /* calls release_set() a second time without looking */
    bool by_id;        /* releases by number */
    bool stays;        /* keeps the session when the partitioner has ended */
    bool closes_first; /* closes the client before the partitioner is destroyed */
    bool destroys_inside;
    sim_random random;
} sim_user;

typedef struct sim_world sim_world;
typedef struct sim_kazoo sim_kazoo;

typedef enum { SIM_ABSENT, SIM_RUNS, SIM_ENDING, SIM_IDLE } sim_phase;

typedef struct {
    sim_world *world;
    size_t slot;
    unsigned incarnation, partitioners;
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
    int64_t resume_at;
    int64_t act_at;     /* when the user does something; INT64_MAX: not by himself */
    int64_t release_at; /* when he releases; 0: nothing is to be released */
    uint64_t release_id;
    int64_t end_at; /* SIM_IDLE: when he closes */

    sim_holding items[SIM_ITEMS_MAX];
    /* What was seen last. */
    uint64_t seen_generation, seen_state_id;
    divvy_partition_state seen_state;
    bool seen_change, seen_alive;
    bool not_seen;                        /* time has gone on inside a call, and steps in it were not looked at */
    int64_t seen_session, passed_session; /* whose deadline has passed */
    int64_t killed_at;                    /* when an administrator ended its session last */
    divvy_partition_state told_state;
    int last_reason;
    bool ended;     /* finish(), destroy() or close() was called: the user has stopped all work */
    bool destroyed; /* the partitioner was, so that nothing may be told any more */
    bool failing;   /* he has seen FAILURE */
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
} sim_member;

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
    SIM_UNDO_CUT
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
    sim_resource resources[SIM_ITEMS_MAX];
    sim_undo undos[SIM_UNDO_MAX];
    size_t undo_count;
    divvy_client *admin;                            /* somebody else */
    int64_t admin_sessions[SIM_ADMIN_SESSIONS_MAX]; /* by which he asked for something; it may be done late */
    size_t admin_session_count;
    unsigned strays;
    bool healed, over;
    int64_t quiet_since, foreign_at;       /* the last change of members; the last foreign deletion */
    int64_t settle_max_ms, timeout_max_ms; /* the longest of all members, ever */
    sim_violation violation;
    char item_names[SIM_ITEMS_MAX][32];
    const char *items[SIM_ITEMS_MAX];
};

/* Executes a script. Whether there was no violation; *out tells which. `omit` (may be NULL): events to leave out. */
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
/* Breaks the connections whose traps have snapped. */
void sim_traps(sim_world *w);

/* ---- admin.c: somebody else's client ---- */
bool sim_is_admin(const sim_world *w, int64_t session);
bool sim_admin_open(sim_world *w);
void sim_admin_close(sim_world *w);
void sim_admin_delete_place(sim_world *w, uint32_t choice);
void sim_admin_delete_member(sim_world *w, uint32_t choice);
void sim_admin_stray(sim_world *w, uint32_t choice);

/* ---- member.c ---- */
void sim_member_start(sim_world *w, size_t slot, const sim_event *event);
void sim_member_finish(sim_member *m, int64_t timeout_ms);
void sim_member_destroy(sim_member *m);
void sim_member_close(sim_member *m);
void sim_member_crash(sim_member *m);
/* What it does of itself, now that act_at has come. */
void sim_member_act(sim_member *m);

/* ---- user.c ---- */
void sim_user_callbacks(sim_member *m, divvy_partitioner_config *config);
/* What he does of himself, now that act_at has come. */
void sim_user_act(sim_member *m);
void sim_user_stop_all(sim_member *m);
void sim_user_plan(sim_member *m);

/* ---- check_safety.c ---- */
void sim_check_transaction(sim_world *w, const divvy_testing_transaction *t);
void sim_check_step(sim_world *w);
/* Time has gone on inside a waiting call. */
void sim_check_anew(sim_world *w);
/* The user has begun to work on an item. */
void sim_check_work(sim_member *m, size_t item);
bool sim_member_alive(const sim_member *m);
void sim_check_told(sim_member *m, divvy_partition_state from, divvy_partition_state to);
/* finish() said that all is gone. */
void sim_check_gone(sim_member *m);

/* ---- check_liveness.c ---- */
/* After the faults: waits as long as L1 grants, and looks at what became of it. */
void sim_check_end(sim_world *w);

/* ---- truth.c ---- */
void sim_truth_apply(sim_world *w, const divvy_testing_transaction *t);
void sim_truth_free(sim_truth *truth);
/* The item whose directory a path is in, with the node's name; or SIZE_MAX. */
size_t sim_item_of_path(const sim_world *w, const char *path, const char **node);
const sim_node *sim_truth_node(const sim_truth *truth, size_t item, int64_t token, int64_t session);
sim_session *sim_truth_session(sim_truth *truth, int64_t id);
void sim_truth_excuse(sim_truth *truth, size_t item, int64_t token);
bool sim_truth_excused(const sim_truth *truth, size_t item, int64_t token);
void sim_truth_kill(sim_truth *truth, int64_t session);
bool sim_truth_killed(const sim_truth *truth, int64_t session);
/* Whose turn it was, from 1, of those that came to own the item; 0: never. */
size_t sim_truth_turn(const sim_truth *truth, size_t item, int64_t token, int64_t session);

/* ---- resource.c ---- */
/* The user of `m` writes, with the token that he believes in. */
void sim_resource_write(sim_member *m, size_t item);

/* ---- kazoo.c ---- */
sim_kazoo *sim_kazoo_start(sim_member *m, const sim_event *event);
void sim_kazoo_act(sim_kazoo *kazoo);
bool sim_kazoo_settled(const sim_kazoo *kazoo);
void sim_kazoo_free(sim_kazoo *kazoo);
const char *sim_kazoo_describe(const sim_kazoo *kazoo, char *buffer, size_t bytes);

#endif
