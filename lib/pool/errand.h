/* Errand: what an operator asks of a pool, brought into its plan. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D51. It writes as a member would, but does not wait for its turn: a party that stands still, the
 * plan, the step with one event, and one attempt to write (D25). Whatever is new meanwhile makes it begin again. On the
 * client's loop, with the client lock held. */
#ifndef DV_ERRAND_H
#define DV_ERRAND_H

#include "client/client.h"
#include "plan/memory.h"
#include "plan/reader.h"
#include "plan/roster.h"
#include "plan/writer.h"
#include "pool/gathering.h"

typedef struct dv_errand dv_errand;

/* One request. */
typedef enum {
    DV_ASK_WEIGHT,
    DV_ASK_FORGET,
    DV_ASK_MOVE,
    DV_ASK_NEED,
    DV_ASK_OPTION,
    DV_ASK_PAUSE,
    DV_ASK_PIN, /* its undo is that of a move, too */
    DV_ASK_KINDS
} dv_ask_kind;

enum { DV_ASK_CONFIGURED_WEIGHT = -1 };

typedef struct {
    dv_ask_kind kind;
    bool undo;            /* not of a weight, and not of DV_ASK_FORGET */
    bool facts;           /* the data of all nodes are read, also where the plan says it already */
    bool dry_run;         /* nothing is written: the result tells what would be */
    const char *name;     /* a member, by its identifier or its key; an item; of DV_ASK_NEED also a prefix; an option */
    const char *value;    /* DV_ASK_MOVE, _PIN: a member; _NEED: a tag; _OPTION: a number. NULL: none */
    int64_t weight;       /* of DV_ASK_WEIGHT; DV_ASK_CONFIGURED_WEIGHT: the one that the member was started with */
    const char *by, *why; /* who asks, and for which reason; NULL: not said */
    int64_t at_ms;        /* when, since 1970 */
} dv_ask;

enum { DV_ERRAND_TEXT_BYTES = 2048 };

/* The outcome, as far as it is known. */
typedef struct {
    int error;
    char text[DV_ERRAND_TEXT_BYTES]; /* with an error: why it is refused; "": the error says all */
    char waits_for[512];             /* what stands in the way, and may go by itself; "": nothing */
    bool tried;                      /* an attempt was made to write it; else it was so */
    const dv_plan *before, *after;   /* of the error 0; before is after where nothing was to be done */

    bool absent; /* a pin to a member that is not there */

    /* whom it is about: what its entry in the plan begins with, and what it had when it was found first */
    bool is_static;
    char *key; /* NULL: nobody, or the member was not found yet */
    uint32_t weight, weight_before;
    size_t items_before;
} dv_errand_result;

/* Each kind of asking; all functions run with a plan at hand. */
typedef struct {
    bool of_wishes; /* only members that know wishes do it (D48) */
    /* Finds whom or what it is about. Refuses, or waits, where it cannot. Returns 0 or DIVVY_ENOMEM. */
    int (*find)(dv_errand *e);
    /* Returns whether what is asked depends on the members' nodes, which are read then. */
    bool (*needs_facts)(const dv_errand *e);
    /* Returns whether the plan says so already; with facts, if it needs them. */
    bool (*is_so)(dv_errand *e);
    /* Fills in the events of the step. Refuses where it must not be done. */
    void (*tell)(dv_errand *e);
} dv_ask_rule;

/* Heard from the loop, never inside a call to the errand: once, and not after a drop. */
typedef void (*dv_errand_done_fn)(void *owner, int64_t now);

struct dv_errand {
    divvy_client *client;
    dv_listener listener;
    dv_timer timer; /* the next look */
    dv_ask ask;
    const dv_ask_rule *rule;
    char *texts[4];               /* of the ask */
    char *path;                   /* the pool's, for messages */
    char *party_path, *plan_path; /* at the servers */
    dv_errand_done_fn done;
    void *owner;

    dv_gathering party;
    dv_plan_memory memory;
    dv_plan_reader *reader;
    dv_roster *roster;
    dv_fetch *fetch; /* of odd nodes */
    dv_plan_writer *writer;
    dv_plan_outcome outcome; /* of the last attempt */
    int write_error;
    dv_plan_events events;
    dv_plan_expiry expiry;
    dv_wish_event wish;
    char told[4 * DV_PLAN_TOLD_BYTES]; /* the step cuts it to whole characters */
    dv_plan *next;                     /* of a dry run */

    unsigned under_way; /* a request, the fetch, the reader, the writer */
    bool busy;          /* a look is under way, whose end decides how to go on */
    bool reads_plan;    /* and waits for the reader */
    bool has_facts;     /* all nodes of this party were read */
    bool ended, dropped;
    dv_errand_result result;
};

/* Begins. `path` is the pool's as the user says it, `root` where that is at the servers; both, and the ask's texts, are
 * copied. Returns NULL when an allocation fails. */
dv_errand *dv_errand_start(divvy_client *client, const char *path, const char *root, const dv_ask *ask,
                           dv_errand_done_fn done, void *owner);
/* Gives it up, if it is not done, and lets it go; a write that is under way may still be applied. */
void dv_errand_drop(dv_errand *errand);

/* ---- for rules: refusals.c, told.c ---- */
/* Ends it with this error, once the rule returns. */
void dv_errand_refuse(dv_errand *errand, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Has it look again in a moment. */
void dv_errand_wait_for(dv_errand *errand, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Has the history tell in one sentence what is asked (D44), and has the step add nothing else to it. */
void dv_errand_tell(dv_errand *errand);
const dv_ask_rule *dv_ask_rule_of(dv_ask_kind kind);

#endif
