/* The partitioner, as its rooms share it. SPDX-License-Identifier: Apache-2.0
 *
 * state.c decides, life.c has the order of lives; items.c holds the places in the item queues, items_set.c the items
 * themselves, whose set can change; members.c is in the party and makes targets of it; target.c computes them;
 * session.c hears the session; snapshot.c and report.c tell the user; partitioner.c is the public face, and joins the
 * others. Everything runs with the client lock held, but for divvy_partitioner_owns(). */
#ifndef DV_PARTITIONER_H
#define DV_PARTITIONER_H

#include <stdatomic.h>

#include "client/client.h"
#include "divvy/partitioner.h"
#include "follow/follow.h"
#include "handover/notes.h"
#include "partitioner/item.h"
#include "partitioner/item_names.h"
#include "partitioner/readers.h"
#include "plan/loads.h"
#include "plan/member_name.h"
#include "plan/roll_watch.h"
#include "plan/text.h"
#include "recipe/contender.h"
#include "recipe/fetch.h"
#include "recipe/membership.h"

/* The items that concern us (items_set.c): ours, and those that are to be given up or told of yet. Other threads read
 * names, tokens and index, without the client lock. */
typedef struct dv_item_table {
    struct dv_item_table *older; /* of retired ones */
    dv_names *names;             /* with the token of each item that is shown and not revoked */
    dv_name_index *index;
    dv_item **items; /* in the order of names */
} dv_item_table;

/* The directories of items that are not in the table: directories.c. */
typedef struct {
    dv_plan_set *set; /* whose items the bits are of; NULL: nothing is known */
    uint8_t *bits;    /* of each item: its directory exists, as far as we know */
} dv_known_directories;

/* The news that the user was told last, those still to be told, and the call that is made now: report.c. */
typedef struct {
    dv_callback callback; /* in the queue at most once */
    bool queued;
    dv_item *due, **due_end; /* items that may differ from what was told */
    divvy_partition_state told_state;
    struct {
        divvy_partition_state state;
        uint64_t id;
    } states[4]; /* that follow */
    size_t state_count;

    bool ready, of_items;
    divvy_partition_state from;
    divvy_items_event event;
    dv_names *names;
    const char **texts; /* of all three lists, one behind the other */
    int64_t *tokens;
} dv_telling;

typedef struct {
    dv_member *members;
    size_t count;
} dv_members;

/* The metrics of a partitioner: metrics.c. */
typedef struct {
    dv_metrics_source source;
    uint64_t rebalances[DV_REASONS];
    dv_histogram durations, waits, unowned;
    bool is_under_way; /* a rebalance */
    int64_t began_at;
    uint64_t generation; /* of the plan that we go by; 0: none */
    int64_t plan_since;
} dv_partitioner_metrics;

/* A partitioner's life: down this list, and back only after a rejoin (life.c). FAILURE from DV_LIFE_FAILED on. */
typedef enum {
    DV_LIFE_TAKING_PART,
    DV_LIFE_REJOINING,    /* the session was lost; nothing is asked for before the user has released (P7) */
    DV_LIFE_HANDING_OVER, /* divvy_partitioner_leave() while work goes on (T8): nothing is gained from now on */
    DV_LIFE_LEAVING,      /* divvy_partitioner_leave(): the place in the plan is given up first */
    DV_LIFE_FAILED,       /* shown places stay until the user gives them up (P8) */
    DV_LIFE_FINISHING,    /* the user gave everything up: all nodes go */
    DV_LIFE_TIDYING,      /* they are gone; the last member deletes directories (P12) */
    DV_LIFE_TIDIED,
} dv_life;

/* Events that a file tells those above it, in a call: partitioner.c says what follows. */
typedef struct {
    /* A request or an event has ended, or the user has released: what waited for that may go on. */
    void (*ended)(divvy_partitioner *p, int64_t now);
    /* The member cannot go on: dv_life_fail(). */
    void (*failed)(divvy_partitioner *p, int error, int reason, const char *text, int64_t now);
    /* P/locks has gone, or may not be there. */
    void (*locks_gone)(divvy_partitioner *p, int64_t now);
    void (*may_claim)(divvy_partitioner *p, int64_t now);
    /* The place of an item is held, or gone: the share may be complete. */
    void (*place_changed)(divvy_partitioner *p, int64_t now);
    /* Somebody has deleted the place of a held item; it is ours no longer. */
    void (*item_lost)(dv_item *item, bool was_shown, int64_t now);
    void (*handover_changed)(divvy_partitioner *p, int64_t now);
    /* The member failed while it left: its place in the plan cannot be given up. */
    void (*left)(divvy_partitioner *p, int error, int64_t now);
} dv_partitioner_events;

struct divvy_partitioner {
    dv_object object; /* first */
    const dv_partitioner_events *events;
    divvy_partitioner_config config;
    char *path, *locks_path, *party_path;
    char *identifier; /* as it stands in a node's name, too */
    char *member_suffix;
    char *member_data, *later_data; /* of our first node, and of those that are made after it */
    unsigned joins;                 /* how many nodes of ours were made, or may have been */
    int64_t first_czxid;            /* that later ones say; below the first's where that is not known; 0: none yet */
    char load_unit[DV_LOAD_UNIT_BYTES_MAX + 1];
    char ability[12]; /* the value of our tag `a` */

    dv_plan_set *configured; /* what we were made with: its crc is our tag `s` */
    dv_plan_set *dealt;      /* what is dealt: mine[] of a target is in its order */
    _Atomic(dv_item_table *) table;
    dv_readers *readers;    /* threads that look into a table, without the client lock */
    dv_item_table *retired; /* tables that were replaced since the grace period began */
    dv_item_table *aging;   /* those before: freed when it ends */
    dv_timer collect_timer; /* asks whether it has ended */
    dv_event prune;         /* posted when enough items of the table are spare */
    size_t spare;           /* how often one became so since the table was made */
    bool has_encoded;       /* an item that is dealt has a name that kazoo cannot share */
    dv_known_directories directories;

    divvy_partition_state state;
    uint64_t state_id, told_id;
    int failure;
    char failure_text[256];
    dv_life life;
    int leave_error;      /* why divvy_partitioner_leave() could not give the place in the plan up */
    bool is_marked;       /* HANDING_OVER's: the plan does not count on us, or none ever will hear of it */
    bool withdrawn;       /* and nothing waits for a next owner: all is revoked */
    dv_timer leave_timer; /* HANDING_OVER's own time */
    bool was_suspended;   /* the link's, in any life: a suspension, and no connection since */
    bool lost_session;    /* the nodes', in any life: they were on it, and only the servers can delete them */
    bool suspended_again; /* the RELEASE's: a session event came in it, with DIVVY_RELEASE_ON_SUSPEND */

    bool target_valid;
    int target_reason;        /* why it is another than the one before: DIVVY_REASON_* */
    int64_t release_waits_ms; /* in RELEASE: when the next warning of it is due, from its beginning */
    dv_item_totals totals;
    size_t unfit;     /* of the wanted items: those that no place can be asked for */
    bool change_seen; /* since the target settled */
    bool is_short;

    dv_listener listener;
    dv_timer audit_timer;
    dv_timer state_timer; /* allocate_timeout_ms in ALLOCATING, release_warn_ms in RELEASE */
    dv_membership *membership;
    dv_roll_watch *watch;
    bool ready;            /* the paths are there and the known directories read */
    bool ready_requested;  /* the one request for that is under way: to make P/locks, or to read it */
    bool never_used;       /* P/locks never had a child when it was read last */
    bool renews_nothing;   /* Q11: somebody had set its access list by then, and perhaps those below it */
    size_t tidy_under_way; /* requests about directories, at the end and before */
    dv_members party;      /* what settled, by node; the one before while strays are looked at */
    dv_fetch *looks;       /* at those who may be strays; NULL: none is under way */
    bool party_stale;
    bool nobody_came;                            /* the one that settled before had all of its nodes */
    int64_t party_pzxid;                         /* of what settled */
    bool kazoo_seen;                             /* a kazoo member is in the party, settled or not */
    dv_follower *follower;                       /* of the plan; NULL: we do not follow plans */
    struct dv_handover *handover;                /* NULL: nothing is handed over */
    uint32_t said_crc[DIVVY_WARN_LOAD_UNIT + 1]; /* of the last text of each code of warning */
    struct dv_own_loads *loads;                  /* NULL: no load was told yet */
    dv_partitioner_metrics metrics;

    dv_event report, claim; /* posted while gains wait to be told, or places to be claimed, together */
    dv_telling telling;
    uint64_t generation;
    divvy_partition *snapshot; /* of this generation, made when asked for */
    dv_callback destroyed;     /* the call of on_destroyed: what is left of the partitioner lives until then */
};

/* Returns whether it is in FAILURE because its user wished its end: words do not call that a failure. */
static inline bool dv_partitioner_finished(const divvy_partitioner *p) {
    return p->state == DIVVY_FAILURE && p->failure == DIVVY_ECANCELED;
}

/* Takes the client lock, for calls that need a client that is not closed. Returns 0, or an error without the lock. */
static inline int dv_partitioner_enter(divvy_partitioner *p) {
    if (!p) return dv_fail(NULL, DIVVY_EINVAL, "the partitioner is NULL");
    int error = dv_client_enter(p->object.client);
    if (error || p->object.client->life != DV_CLIENT_CLOSED) return error;
    dv_client_unlock(p->object.client);
    return dv_fail_plainly(p->object.client, DIVVY_ECLOSED);
}

/* Begins something that ends in the loop by dv_op_end(), a request or an event: keeps the partitioner until then. */
static inline void dv_op_begin(divvy_partitioner *p) {
    dv_object_ref(&p->object);
}
/* Ends it. May free the partitioner. */
static inline void dv_op_end(divvy_partitioner *p, int64_t now) {
    p->events->ended(p, now);
    dv_object_unref(&p->object);
}
/* Posts an event, unless it is posted, behind those that wait. `run` clears event->run, and ends with dv_op_end(). */
static inline void dv_op_post(divvy_partitioner *p, dv_event *event, void (*run)(dv_event *event, int64_t now)) {
    if (event->run) return;
    event->run = run;
    dv_op_begin(p);
    dv_client_post(p->object.client, event);
}

/* ---- config.c ---- */
int dv_partitioner_configure(divvy_partitioner *p, divvy_client *client, const divvy_partitioner_config *config);
void dv_partitioner_free_config(divvy_partitioner *p);
/* Checks that the items can be in the configured order. The message of a DIVVY_EINVAL begins with `call`. */
int dv_partitioner_check_order(const divvy_partitioner *p, divvy_client *client, const char *call,
                               const dv_plan_set *set);

/* ---- life.c ---- */
void dv_life_enter(divvy_partitioner *p, dv_life to);
/* Fails the member as dv_state_fail() does, for files below state.c. */
void dv_life_fail(divvy_partitioner *p, int error, int reason, int64_t now, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* ---- leave.c ---- */
/* The user has stopped all work: every place goes. */
void dv_partitioner_give_up(divvy_partitioner *p, int64_t now);
/* Our place in the plan is given up, or, for `error`, it could not be: the rest follows. */
void dv_partitioner_left(divvy_partitioner *p, int error, int64_t now);
/* T8: ends, if all has been handed over. */
void dv_leave_go_on(divvy_partitioner *p, int64_t now);
/* T8: a plan that was made from an older one has us as a member. Returns whether our place is to be given up again. */
bool dv_leave_again(void *partitioner);

/* ---- items_set.c ---- */
/* For those who hold the client lock, and what they change; others go by dv_items_believed_token(). */
static inline dv_item_table *dv_items_of(const divvy_partitioner *p) {
    return atomic_load_explicit(&((divvy_partitioner *)(uintptr_t)p)->table, memory_order_relaxed);
}
/* The items of the table; others are not seen, but for the requests about them that are under way. */
static inline size_t dv_item_count(const divvy_partitioner *p) {
    return dv_items_of(p)->names->count;
}
static inline dv_item *dv_item_at(const divvy_partitioner *p, size_t i) {
    return dv_items_of(p)->items[i];
}
static inline const char *dv_item_name(const divvy_partitioner *p, size_t i) {
    return dv_items_of(p)->names->names[i];
}
/* These return NULL where the item is not in the table, as one that does not concern us. */
dv_item *dv_item_find(const divvy_partitioner *p, const char *name);
dv_item *dv_item_dealt(const divvy_partitioner *p, size_t number);
/* Returns whether it is an item that is dealt, or one that has yet to be given up. */
bool dv_items_have(const divvy_partitioner *p, const char *name);
dv_item *dv_item_ref(dv_item *item);
void dv_item_unref(dv_item *item);
/* Makes a set of what a user gave. Returns 0; or DIVVY_EINVAL, _E2BIG, _ENOMEM: the message begins with `call`. */
int dv_items_make_set(dv_plan_set **out, divvy_client *client, const char *call, const char *locks_path,
                      const char *const *items, size_t count);
/* P15: deals another set, and takes a reference to it; dv_state_target_settled() with a target of that set follows in
 * the same turn. Returns 0, or DIVVY_ENOMEM: nothing has changed. */
int dv_items_use(divvy_partitioner *p, dv_plan_set *set);
/* Takes the items that are ours by a target, mine[i] for item i of p->dealt, into the table, before the target is
 * settled. Returns 0, or DIVVY_ENOMEM: nothing has changed. */
int dv_items_need(divvy_partitioner *p, const uint8_t *mine);
/* Something of an item was given up, perhaps the last of it: then it leaves the table soon. */
void dv_items_prune(dv_item *item);
void dv_items_free(divvy_partitioner *p);
/* P10: returns the token of an item that we believe in, or 0. From any thread, without the client lock. */
int64_t dv_items_believed_token(const divvy_partitioner *c, const char *name);
/* Sets what the former returns for the item, by its stage now. */
void dv_items_note_owned(const dv_item *item);

/* ---- state.c: the table of docs/protocol.md, P4; the only place where a state changes ---- */
void dv_state_init(divvy_partitioner *p, int64_t now);
/* Takes a target, mine[i] for item i of p->dealt; NULL: what is in it, and still may be. on_items tells `reason`. */
void dv_state_target_settled(divvy_partitioner *p, const uint8_t *mine, int reason, int64_t now);
void dv_state_change_seen(void *partitioner, int64_t now);
/* The party has settled, and the target stays as it is; or, if not `settled`, only the plan was looked at. */
void dv_state_target_stays(divvy_partitioner *p, bool settled, int64_t now);
/* A kazoo member is in the settled party, or none is. */
void dv_state_set_kazoo_seen(divvy_partitioner *p, bool seen);
/* A kazoo member is in the party that has not settled yet. */
void dv_state_kazoo_seen(divvy_partitioner *p, int64_t now);
void dv_state_item_lost(dv_item *item, bool was_shown, int64_t now);
void dv_state_check_complete(divvy_partitioner *p, int64_t now);
void dv_state_handover(divvy_partitioner *p, int64_t now);
void dv_state_reconsider(divvy_partitioner *p, int64_t now);
int dv_state_release(divvy_partitioner *p, uint64_t state_id, int64_t now);
void dv_state_suspend(divvy_partitioner *p, int64_t now);
void dv_state_lose(divvy_partitioner *p, int64_t now);
void dv_state_room(divvy_partitioner *p, int64_t now);
void dv_state_proven(divvy_partitioner *p, int64_t now);
void dv_state_fail(divvy_partitioner *p, int error, int reason, int64_t now, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* ---- items.c ---- */
/* Returns whether it is another target. */
bool dv_items_set_target(divvy_partitioner *p, const uint8_t *mine, int64_t now);
/* Takes the items whose names kazoo cannot share out of the target. Returns whether there were any. */
bool dv_items_refuse_encoded(divvy_partitioner *p, int64_t now);
void dv_items_claim(divvy_partitioner *p, int64_t now);
/* Leaves the place of an item that is not shown, if it has one, or of one that the user has released. */
void dv_items_leave_place(dv_item *item, int64_t now);
/* Leaves the places of items that are not shown: of those outside the target, or of all. */
void dv_items_drop(divvy_partitioner *p, bool wanted_too, int64_t now);
bool dv_items_complete(const divvy_partitioner *p);
bool dv_items_lack_shown(const divvy_partitioner *p);
void dv_items_show(dv_item *item, int64_t now);

/* ---- directories.c ---- */
/* There is a connection: makes P/locks, and reads which directories exist; then the member is `ready`. */
void dv_directories_connected(divvy_partitioner *p);
/* Reads them again when the target has items whose directory we do not know; places are entered after that. */
void dv_directories_refresh(divvy_partitioner *p);
void dv_directories_forget(divvy_partitioner *p);
void dv_directories_free(divvy_partitioner *p);
bool dv_directory_exists(const dv_item *item);
/* Returns the name of the item whose directory has that name, malloc'ed; NULL: it is no item's (N4), or memory is
 * short. */
char *dv_directory_item(const char *node);
/* Makes an item's directory; notes that it is gone, or in use; deletes it, if the item is no longer dealt (P15). */
void dv_directory_make(dv_item *item);
void dv_directory_gone(dv_item *item);
void dv_directory_used(dv_item *item);
void dv_directory_give_up(dv_item *item);
/* Claims in an event of its own: once for all the replies that wait in the queue, since a claim looks at every item. */
void dv_directories_claim_later(divvy_partitioner *p);
void dv_directories_fail(void *partitioner, int error, const char *path, int64_t now);

/* ---- tidy.c ---- */
/* The last member to leave removes empty directories. */
void dv_items_tidy(divvy_partitioner *p);
/* Removes empty directories that are no item's of the pool, if that is ours to do (P12). */
void dv_items_sweep(divvy_partitioner *p);

/* ---- members.c ---- */
void dv_members_start(divvy_partitioner *p, int64_t now);
void dv_members_connected(divvy_partitioner *p, int64_t now);
/* An allocation failed a moment ago: tries again. */
void dv_members_again(divvy_partitioner *p, int64_t now);
void dv_members_free(dv_members *members);
bool dv_members_names_decide(const divvy_partitioner *p);
/* Names may matter from now on, or no longer (P11): W18 goes by that. */
void dv_members_items_changed(divvy_partitioner *p, int64_t now);
/* P2: looks at nodes that were not looked at. Returns true if there are none; else the answers use the party again. */
bool dv_members_look_at_all(void *partitioner);
void dv_members_note_ghost(void *partitioner, const char *node);

/* ---- plan_host.c ---- */
/* Makes the follower of the plan, if we follow plans. Returns 0 or DIVVY_ENOMEM. */
int dv_plan_host_init(divvy_partitioner *p, divvy_client *client);
void dv_plan_host_settled(divvy_partitioner *p, int64_t now);

/* ---- target.c ---- */
void dv_target_warn(divvy_partitioner *p, const dv_members *party, const char *own_node);
void dv_target_warn_of_strays(divvy_partitioner *p, const dv_members *party);
/* Warns of two of one identifier that both get a share. */
void dv_target_warn_of_namesakes(divvy_partitioner *p, const dv_members *party, const char *own_node);
bool dv_target_has_kazoo(const dv_members *party);
/* By a rule of names: 0 with mine[] filled, DIVVY_ENOENT when we are not among them, or an error to fail with. */
int dv_target_compute(divvy_partitioner *p, const dv_members *party, const char *own_node, uint8_t *mine);

/* ---- loads.c ---- */
/* D46: the user has told the load of an item. Returns 0 or DIVVY_ENOMEM. */
int dv_own_loads_set(dv_item *item, double load, int64_t now);
/* Our node in the party is new: the report takes its name. */
void dv_own_loads_joined(divvy_partitioner *p, int64_t now);
/* Nothing is reported from now on, until we join again. */
void dv_own_loads_stop(divvy_partitioner *p, int64_t now);
/* Returns whether all reports of ours are gone. */
bool dv_own_loads_at_rest(const divvy_partitioner *p);
void dv_own_loads_free(divvy_partitioner *p);

/* ---- metrics.c ---- */
void dv_partitioner_metrics_init(divvy_partitioner *p);
void dv_partitioner_metrics_stop(divvy_partitioner *p);
/* This member's share changes, or is lost. A rebalance begins, if none is under way. */
void dv_metrics_rebalance_begin(divvy_partitioner *p, int reason, int64_t now);
/* Ends the rebalance, if the member has its share and nothing else. In FAILURE it has no end, and is forgotten. */
void dv_metrics_rebalance_end(divvy_partitioner *p, int64_t now);
void dv_metrics_plan(divvy_partitioner *p, uint64_t generation, int64_t now);
/* The item is in the target or is not, is shown or is not. */
void dv_metrics_item(dv_item *item, int64_t now);
/* The item is owned no longer; its lock is gone, or it is owned again. */
void dv_metrics_item_disowned(dv_item *item, int64_t now);
void dv_metrics_item_freed(dv_item *item, int64_t now);

/* ---- audit.c ---- */
void dv_audit_now(divvy_partitioner *p, int64_t now);

/* ---- session.c ---- */
/* After a loss: takes part again, once the user has released and nothing of the old session is left. */
void dv_session_rejoin(divvy_partitioner *p, int64_t now);
void dv_partitioner_hear(dv_listener *listener, dv_session_event event, int64_t now);

/* ---- report.c ---- */
/* The item is shown, revoked or lost now, as its fields say: told with the next flush, or change of state. */
void dv_report_item(dv_item *item, int reason);
/* The same of one that is shown now, told soon. */
void dv_report_gain(dv_item *item);
void dv_report_forget(dv_item *item);
void dv_report_flush(divvy_partitioner *p);
void dv_report_told(divvy_partitioner *p, uint64_t state_id);
/* Tells of the items that have changed first. */
void dv_report_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to);
void dv_report_warn_once(divvy_partitioner *p, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void dv_report_init(divvy_partitioner *p);

/* ---- snapshot.c ---- */
void dv_snapshot_changed(divvy_partitioner *p);
divvy_partition *dv_snapshot_take(divvy_partitioner *p);
divvy_partition *dv_snapshot_take_prepare(divvy_partitioner *p);

#endif
