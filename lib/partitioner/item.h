/* One item of a pool, and the moves of its life. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, P18, has the table. Each group of fields is written by the file that it names, and read by all. */
#ifndef DV_ITEM_H
#define DV_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "partitioner/load_meter.h"
#include "recipe/contender.h"

struct divvy_partitioner;
struct dv_note_view;

/* Where the item's place in its queue stands. */
typedef enum {
    DV_PLACE_NONE,
    DV_PLACE_ASKED,   /* a request for it is under way */
    DV_PLACE_WAITING, /* behind somebody, or not listed yet */
    DV_PLACE_PARKED,  /* behind an owner whose note will say that it gives the item: Q10 */
    DV_PLACE_FIRST,   /* it is the lock */
    DV_PLACE_LEAVING, /* there is none but what is on its way out */
    DV_PLACES,
} dv_item_place;

/* The item's stage towards the user. From DV_STAGE_SHOWN on he has it. */
typedef enum __attribute__((packed)) {
    DV_STAGE_HIDDEN,
    DV_STAGE_PREPARING, /* T2: he may prepare for it */
    DV_STAGE_SHOWN,
    DV_STAGE_KEPT,    /* T1: another member is to have it; its note is not read yet */
    DV_STAGE_LEAVING, /* T1: that member has a note, so the user is told */
    DV_STAGE_REVOKED, /* he has to release it */
    DV_STAGES,
} dv_item_stage;

/* An event in the life of an item. */
typedef enum {
    DV_MOVE_ASK,      /* a place is asked for */
    DV_MOVE_WIN,      /* the place is the first */
    DV_MOVE_LEAVE,    /* the place leaves its queue */
    DV_MOVE_PREPARE,  /* the user may prepare */
    DV_MOVE_CALL_OFF, /* he need not any longer */
    DV_MOVE_SHOW,     /* the user owns it */
    DV_MOVE_KEEP,     /* it is another's by now, and stays until that one is ready */
    DV_MOVE_ANNOUNCE, /* the next owner has a note */
    DV_MOVE_RETRACT,  /* the next owner's note is to be read again */
    DV_MOVE_STAY,     /* it is ours again */
    DV_MOVE_REVOKE,   /* the user has to release it */
    DV_MOVE_RETURN,   /* released, and still ours */
    DV_MOVE_WAIT,     /* released, and the next owner is no longer ready */
    DV_MOVE_RELEASE,  /* released, and another's: the place leaves */
    DV_MOVE_LOSE,     /* somebody deleted the place */
    DV_MOVE_HIDE,     /* the session or the member has ended */
    DV_MOVES,
} dv_item_move_kind;

/* item.c: where it stands. */
typedef struct {
    dv_contender *contender; /* in its queue; NULL: none, or only ones that are leaving */
    int64_t token;           /* of what is shown, or was last */
    unsigned leaving;        /* contenders that are on their way out */
    dv_item_stage stage;
    bool is_first;
    bool wanted; /* in the target */
} dv_item_life;

/* handover.c: what our note says of it, or will once the write under way is done. */
typedef struct {
    uint8_t marks;   /* DV_NOTE_LEAVING, DV_NOTE_READY */
    bool was_listed; /* a note before says so, and may stand yet */
} dv_item_noted;

/* directories.c: the directory of its queue. */
typedef struct {
    bool exists;    /* as far as we know; dv_directory_exists() knows more */
    bool requested; /* by what is under way */
    bool fresh;     /* made by our last request, so its queue was empty then: Q9 */
} dv_item_directory;

/* take.c: from whom we are to have it. */
typedef struct {
    struct dv_note_view *owner;  /* the note of who has it now as far as we know, `former` or a namesake: T2, T9 */
    int64_t since;               /* a plan has given it to us, and it was not shown since then; 0: no */
    int64_t prepare_due;         /* until then the user may prepare for it; 0: he need not */
    struct dv_note_view *former; /* the note of whom the plan before gave it to; NULL: nobody that we know */
    bool prepared;               /* he said so */
    bool seen;                   /* he has seen it in a list of items to prepare */
} dv_item_take;

/* give.c: who is to have it from us. */
typedef struct {
    struct dv_note_view *next; /* the note of the next owner; NULL: nobody that we know */
    int64_t since;             /* plans give it to others since then; 0: they do not */
    bool next_awaited;         /* T1: the party that we know is older than the plan, and may lack the next owner */
} dv_item_give;

/* report.c: what the user was told of it. */
typedef struct {
    int64_t token;                    /* by on_items: 0: that it is lost, or nothing yet */
    int reason;                       /* why it was shown, revoked or lost last: DIVVY_REASON_* */
    bool revoked, leaving, prepare;   /* he was told so last */
    struct dv_item *next_due, **link; /* among those that he is to be told of; NULL link: not */
} dv_item_told;

/* metrics.c: what is measured of it. */
typedef struct {
    int64_t waits_since;   /* in the share, and not owned; 0: it is not so */
    int64_t unowned_since; /* owned no longer, and its lock not gone yet; 0: it is not so */
} dv_item_measured;

typedef struct dv_item {
    /* Loops over all items ask for these, which stand together in one line of the cache. */
    dv_item_life life;
    dv_item_noted noted;
    dv_item_directory dir;
    /* items_set.c, as what stands last. */
    bool dealt;      /* in the set that is dealt; else it is in the table only until it has been given up */
    bool plain;      /* the encoded name is the name: kazoo can share it */
    bool too_long;   /* for a lock: it is never asked for */
    uint32_t index;  /* in the table, while it is there */
    uint32_t number; /* in the set that is dealt; of one that is not dealt: that of the next that is */
    dv_item_take take;
    dv_item_give give;
    dv_item_told told;
    dv_item_measured measured;
    dv_item_load *load; /* loads.c: NULL: its user never told a load of it */

    struct divvy_partitioner *partitioner;
    unsigned refs;    /* the table's, one for each place that is not gone, one for each request about it */
    char directory[]; /* P/locks/<encoded name>: where its queue is */
} dv_item;

/* Numbers of items: item.c writes them with each move. */
typedef struct {
    size_t wanted, wanted_first;
    size_t shown;
    size_t leaving; /* places on their way out */
} dv_item_totals;

/* One row of the table: what a move begins with, and ends with. */
enum { DV_ITEM_SAME = -1 };
typedef struct {
    unsigned places; /* a bit for each: 1 << DV_PLACE_... */
    int place;       /* DV_ITEM_SAME: it stays */
    unsigned stages;
    int stage;
} dv_item_row;
extern const dv_item_row dv_item_rows[DV_MOVES];

/* Returns whether an item may be both: who has an item has the first place in its queue. */
bool dv_item_can_be(dv_item_place place, dv_item_stage stage);
dv_item_place dv_item_place_of(const dv_item *item);

/* Returns whether the user has it, revoked or not. */
static inline bool dv_item_shown(const dv_item *item) {
    return item->life.stage >= DV_STAGE_SHOWN;
}
/* Returns whether the user has it and need not release it. */
static inline bool dv_item_owned(const dv_item *item) {
    return item->life.stage >= DV_STAGE_SHOWN && item->life.stage != DV_STAGE_REVOKED;
}
/* T1: returns whether it stays for another member until that one is ready. */
static inline bool dv_item_kept(const dv_item *item) {
    return item->life.stage == DV_STAGE_KEPT || item->life.stage == DV_STAGE_LEAVING;
}

/* Makes a move that the table allows, and what follows from it for totals, owns() and metrics. */
void dv_item_move(dv_item *item, dv_item_move_kind kind, int64_t now);
void dv_item_ask(dv_item *item, dv_contender *contender, int64_t now);
void dv_item_left(dv_item *item);
/* Takes it into the target, or out of it. Returns whether that is a change. */
bool dv_item_want(dv_item *item, bool wanted, int64_t now);

#endif
