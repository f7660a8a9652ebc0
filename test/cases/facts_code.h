/* What the library decides of one item, from facts that stand in no world of a model. SPDX-License-Identifier:
 * Apache-2.0
 *
 * Calls lib/partitioner/give.c and take.c. handover_stubs.c stands for the partitioner's other files. */
#ifndef DV_CASES_FACTS_CODE_H
#define DV_CASES_FACTS_CODE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A note of another member, as far as it is known. SAYS: that the item is leaving, or ready. OTHER_SET: it says so of
 * another set. GONE: it was there before. */
typedef enum { NOBODY, UNREAD, SILENT, SAYS, OTHER_SET, GONE, NEVER, NOTES } fact_note;
/* The stages of an item, as the library's. */
typedef enum { HIDDEN, PREPARING, SHOWN, KEPT, LEAVING, REVOKED, STAGES } fact_stage;

enum { FACT_MZXID = 50, FACT_NOTHING_DUE = -1 };

/* ---- what is given ---- */

typedef struct {
    uint8_t stage, next;
    int64_t age_ms, timeout_ms; /* since the plan that gives it away; handover_timeout_ms */
    bool wanted, not_dealt, no_target, cannot, encoded, kazoo, withdrawn, awaited, listed;
    bool departs, writes, no_room; /* places wait for a write; one is under way; no other may be begun */
} give_facts;

typedef struct {
    uint8_t stage;
    bool keeps, lists, differs, told;
    int64_t seen, due_ms; /* from the plan on; FACT_NOTHING_DUE */
} give_answer;

give_answer facts_give(const give_facts *f);

/* A plan gives it to somebody: 0: a node that is not known; 1: nobody; 2: another member. */
typedef struct {
    uint8_t stage, owner;
    bool is_older, had_since, had_next;
} plan_facts;

typedef struct {
    bool has_next, is_awaited;
    uint8_t since; /* 0: none; 1: now; 2: as before */
} plan_answer;

plan_answer facts_plan(const plan_facts *f);

/* D44: when the last item was given. */
typedef struct {
    bool no_note, writes, departs, listed, wanted, is_first, has_given, own_failed;
    uint8_t stage, own_written; /* 1: before the plan; 2: after it */
    uint8_t others[2];          /* 0: none; then by: has given, before or after the plan, is leaving, gone */
} end_facts;

int64_t facts_ended_ms(const end_facts *f);

/* ---- what is taken ---- */

typedef struct {
    uint8_t stage, former, namesakes[2]; /* notes */
    int64_t age_ms, prepare_ms;          /* since the plan; prepare_timeout_ms */
    bool is_old;                         /* the notes are older than the plan */
    bool wanted, no_plan, not_dealt, cannot, no_handover, does_not_take_part, prepared, overdue;
    bool renews_nothing, place_leaves, kazoo, nobody_came, is_eager;
    bool has_place, is_behind, is_first, listed, was_told;
} take_facts;

typedef struct {
    uint8_t stage, owner; /* the note of the one that it waits for */
    bool may_enter, awaited, from_nobody, lists;
    bool is_ready, is_entering, told, flushed, forgets_prepared, has_due; /* by an update */
    int64_t due_ms;                                                       /* from the plan on */
} take_answer;

take_answer facts_take(const take_facts *f);

/* What the user knows of an item to prepare, and then says. */
typedef struct {
    bool wanted, is_first, has_place;                           /* as the plan comes */
    bool was_told, looks, is_preparing, says_all, says, proven; /* looks: at the list of items to prepare */
    bool arrives;
} told_facts;

typedef struct {
    bool learned, prepared, told_again;
} told_answer;

told_answer facts_told(const told_facts *f);

/* ---- what a note says ---- */

enum { FACT_ITEMS = 6, FACT_GIVEN = 3 };

typedef struct {
    uint8_t leaving, ready; /* a bit for each item */
    uint8_t given_count, given_item[FACT_GIVEN], given_at[FACT_GIVEN], given_to[FACT_GIVEN];
} note_facts;

/* Prints the note and parses that. Returns bits: of the items that leave, from bit 0 on; of those that are ready, from
 * bit 8 on; in *gives, bit 3 * s + c: whether item 1 is given to the place with that number and czxid. */
unsigned facts_note_says(const note_facts *f, unsigned *gives);

void facts_begin(void);
void facts_end(void);

#ifdef __cplusplus
}
#endif

#endif
