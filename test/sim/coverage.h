/* The situations that histories have met. SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_COVERAGE_H
#define SIM_COVERAGE_H

#include "script.h"

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
    SIM_MET_GHOST,
    SIM_MET_WAITED_SECOND, /* in a queue, behind another */
    SIM_MET_TIDIED,        /* the last member finished, and its directories were looked for */
    SIM_MEETINGS
} sim_meeting;

/* With locks and semaphores. */
typedef enum {
    SIM_MET_EXCLUSIVE,
    SIM_MET_READ,
    SIM_MET_WRITE,
    SIM_MET_READERS, /* two at a time */
    SIM_MET_SLOT,
    SIM_MET_SLOTS,     /* several at once */
    SIM_MET_SCATTERED, /* that do not stand side by side */
    SIM_MET_HANDED_OVER,
    SIM_MET_TIMED_OUT,
    SIM_MET_BUSY,
    SIM_MET_CANCELED,
    SIM_MET_CLAIM_LOST,
    SIM_MET_CLAIM_FOREIGN, /* lost as somebody else deleted the node */
    SIM_MET_ALREADY,
    SIM_MET_NOT_HELD,
    SIM_MET_DESTROYED_WAITING,
    SIM_MET_DESTROYED_INSIDE,
    SIM_MET_LEFT_ADMITTING,   /* an acquire was given up while its transaction was under way */
    SIM_MET_RESOLVED,         /* a transaction whose reply was lost had been carried out */
    SIM_MET_RESOLVED_NOTHING, /* and had not */
    SIM_MET_FULL,             /* a head waited for room */
    SIM_MET_RAISED,           /* a limit became larger, */
    SIM_MET_LOWERED,          /* smaller, */
    SIM_MET_OVERFULL,         /* smaller than what was taken */
    SIM_MET_OTHER_LIMIT,      /* an acquire ended for the pool's limit */
    SIM_MET_NUMBERS_ENDED,    /* an acquire ended for the end of the sequence numbers */
    SIM_MET_DIRECTORY_GONE,   /* an empty directory was deleted */
    SIM_MET_KAZOO_LOCK,       /* kazoo held one, */
    SIM_MET_KAZOO_LEASE,      /* or a slot */
    SIM_MET_SHORTCUT,         /* a slot was had by the shortcut */
    SIM_MET_SHORTCUT_MISSED,  /* or not */
    SIM_CLAIM_MEETINGS
} sim_claim_meeting;

/* With elections. */
typedef enum {
    SIM_MET_ELECTED,
    SIM_MET_PREFERRED, /* of a higher preference than 0 */
    SIM_MET_DEPOSED,
    SIM_MET_LEADER,    /* told of one, */
    SIM_MET_NO_LEADER, /* or that there is none */
    SIM_MET_ASKED,
    SIM_MET_STEPPED_DOWN, /* a request ended well, */
    SIM_MET_DECLINED,     /* or in vain */
    SIM_ELECTION_MEETINGS
} sim_election_meeting;

/* With registries. */
typedef enum {
    SIM_MET_EPHEMERAL,
    SIM_MET_PERSISTENT,
    SIM_MET_HELD,
    SIM_MET_HELD_BY_ANOTHER,
    SIM_MET_HELD_BY_NOBODY,
    SIM_MET_TAKEN_OVER,
    SIM_MET_PURGED,
    SIM_MET_UNREGISTERED,
    SIM_MET_NO_SERVICE,
    SIM_MET_READ_SERVICES,
    SIM_MET_VIEWED,
    SIM_MET_ADDED,
    SIM_MET_CHANGED,
    SIM_MET_REMOVED,
    SIM_MET_CALL_TIMED_OUT,
    SIM_SERVICE_MEETINGS
} sim_service_meeting;

/* With plans. */
typedef enum {
    SIM_MET_WRITTEN,
    SIM_MET_TOLD,          /* D44: its history goes on, */
    SIM_MET_TOLD_AGAIN,    /* or began again, as nobody could read it, */
    SIM_MET_HOLE,          /* or lacks a plan, */
    SIM_MET_TOOK,          /* and says how long the one before took */
    SIM_MET_LEAST,         /* no item more was moved than had to be */
    SIM_MET_CHUNKS,        /* its base in chunks */
    SIM_MET_DELTA,         /* by what changed */
    SIM_MET_NEW_BASE,      /* which is the plan before (D28) */
    SIM_MET_GARBAGE,       /* a chunk was collected */
    SIM_MET_SWEPT,         /* what the set no longer has was left, and went at rest (P12) */
    SIM_MET_RENEWED,       /* an item's directory was made again by the transaction that deleted it (Q11) */
    SIM_MET_ABSENT,        /* a static member was gone, and waited for */
    SIM_MET_LEAVING,       /* a member was marked as one that leaves */
    SIM_MET_SET,           /* other items */
    SIM_MET_BACK,          /* to the items that all were started with, from those that were asked for */
    SIM_MET_WEIGHT,        /* of a static member that came back configured with it */
    SIM_MET_OPTIONS,       /* other options */
    SIM_MET_ROUND,         /* items moved, a few at a time */
    SIM_MET_ROUND_TIMEOUT, /* and the next, though the last had not all arrived */
    SIM_MET_FENCED,
    SIM_MET_CAME_BACK, /* after its successor, with a younger node */
    SIM_MET_REPLACED,  /* its user has seen so, and ended */
    SIM_MET_NO_ROOT,   /* it was deleted */
    SIM_MET_BROKEN,
    SIM_MET_NEWER,
    SIM_MET_REPAIRED,         /* written over what nobody could follow */
    SIM_MET_RESTORED,         /* written over what another ensemble had written */
    SIM_MET_TO_NAMES,         /* a change-over, to a rule of names */
    SIM_MET_TO_PLAN,          /* and to a plan */
    SIM_MET_ITEM_LEAVING,     /* T1: a note says so */
    SIM_MET_PREPARED,         /* T2: its next owner entered, as the user had prepared, */
    SIM_MET_PREPARE_TIMEOUT,  /* or had not in time */
    SIM_MET_GIVEN,            /* T5: a note says so, */
    SIM_MET_IN_A_LINE,        /* with another write of it under way */
    SIM_MET_BY_NUMBER,        /* T6: it was taken so, */
    SIM_MET_BY_LIST,          /* T6: or after a look, as the note did not give it */
    SIM_MET_OVERDUE,          /* T4: its next owner was not ready in time */
    SIM_MET_GONE_BACK,        /* a plan gave it back before it was revoked */
    SIM_MET_ANSWER_LOST,      /* T5: of a write of a note that was carried out */
    SIM_MET_NOTE_DELETED,     /* by somebody else */
    SIM_MET_POLLED_LEAVING,   /* T1: a user that polls saw an item that is leaving, */
    SIM_MET_POLLED_PREPARE,   /* T2: or one to prepare for */
    SIM_MET_ASK_DONE,         /* D51: an operator was told that the plan says so, */
    SIM_MET_ASK_REFUSED,      /* or why not, */
    SIM_MET_ASK_LOST,         /* or lost the connection in a write */
    SIM_MET_PINNED,           /* D48: an item is where a pin wants it, */
    SIM_MET_MOVED,            /* or a move, */
    SIM_MET_PAUSED,           /* or with nobody, */
    SIM_MET_RESUMED,          /* and back with who had it */
    SIM_MET_NO_TAKER,         /* A9: no member may take an item */
    SIM_MET_SUSPENDED,        /* D48: an older member came, and wishes and loads wait, */
    SIM_MET_IN_FORCE_AGAIN,   /* until it has gone */
    SIM_MET_KEPT_PARTS,       /* who knew them writes them again, though the root lacked them */
    SIM_MET_REPORTED,         /* D46 */
    SIM_MET_LOADS,            /* D50: a plan took them over, */
    SIM_MET_LOAD_MOVED,       /* and moved items for them, */
    SIM_MET_LOAD_MOVED_AGAIN, /* the same writer a second time */
    SIM_MET_LOADS_AT_REST,    /* D47: loads stood still, and plans too */
    SIM_PLAN_MEETINGS
} sim_plan_meeting;

/* With death watches. */
typedef enum {
    SIM_MET_WATCH_ENDED,   /* it ended a session */
    SIM_MET_WATCH_WAITED,  /* when what the process had left at work had ended */
    SIM_MET_WATCH_LATE,    /* the session had run out before it came */
    SIM_MET_WATCH_AGAIN,   /* it took more than one attempt */
    SIM_MET_WATCH_KILLED,  /* with its process */
    SIM_MET_WATCH_FORGETS, /* its client closed the session */
    SIM_WATCH_MEETINGS
} sim_watch_meeting;

/* kazoo believed on in what its session had, when the servers had ended that. */
typedef enum {
    SIM_GAP_STOPPED,   /* its process was stopped */
    SIM_GAP_SUSPENDED, /* it knew that it was not connected: its user had not reacted, or a lock's user need not */
    SIM_GAP_CONNECTED, /* it had not noticed that its link, or its server, was cut off */
    SIM_GAP_SHARED,    /* and somebody else believed in it meanwhile */
    SIM_KAZOO_GAPS
} sim_kazoo_gap;

/* With rolls. */
typedef enum {
    SIM_MET_ROLL_WRITTEN,
    SIM_MET_ROLL_SPOILT,
    SIM_MET_ROLL_FOLLOWED, /* a member settled that listens, */
    SIM_MET_ROLL_AWAITED,  /* or that stands in */
    SIM_ROLL_MEETINGS
} sim_roll_meeting;

typedef struct {
    uint64_t histories, steps, script_events;
    int64_t simulated_ms;
    uint64_t kinds[SIM_KINDS];
    uint64_t transitions[SIM_TRANSITIONS];
    uint64_t meetings[SIM_MEETINGS];
    uint64_t claim_meetings[SIM_CLAIM_MEETINGS];
    uint64_t election_meetings[SIM_ELECTION_MEETINGS];
    uint64_t service_meetings[SIM_SERVICE_MEETINGS];
    uint64_t plan_meetings[SIM_PLAN_MEETINGS];
    uint64_t watched, watch_meetings[SIM_WATCH_MEETINGS]; /* histories with death watches, and what these met */
    uint64_t rolled, roll_meetings[SIM_ROLL_MEETINGS];    /* histories with rolls, and what these met */
    uint64_t stands[DV_PLACES][DV_STAGES];                /* where items stood, at each step */
    uint64_t kazoo_gaps[SIM_KAZOO_GAPS];
    int64_t kazoo_gap_max_ms;
} sim_coverage;

void sim_coverage_add(sim_coverage *to, const sim_coverage *from);
void sim_coverage_print(const sim_coverage *coverage, sim_theme theme);
/* Prints what is missing; how much that is. */
size_t sim_coverage_missing(const sim_coverage *coverage, sim_theme theme);

#endif
