/* Stands for the rest of the partitioner, where lib/partitioner/give.c and take.c are asked. SPDX-License-Identifier:
 * Apache-2.0
 *
 * A member with one item. What give.c and take.c call of other files only notes down that it was called. */
#ifndef DV_CASES_HANDOVER_STUBS_H
#define DV_CASES_HANDOVER_STUBS_H

#include <stdbool.h>
#include <stdint.h>

#include "partitioner/handover.h"

enum { STUB_NOW = 1000000 };

/* A place: its number and czxid. */
struct dv_contender {
    int32_t number;
    int64_t czxid;
    bool is_parked, is_behind;
};

/* What the other files say, and what they were called for. */
typedef struct {
    bool cannot_hand_over, may_not_write;
    int64_t own_zxid, own_ms; /* of the last write of our note */
    const dv_note_view *views;
    bool takes, looks, changed, differs, is_ready, reported, flushed;
} stub_calls;
extern stub_calls stubs;

/* Two items; only the second one is in the member's table. */
extern dv_plan_set *stub_set, *stub_other_set;

typedef struct {
    divvy_partitioner p;
    struct dv_handover h;
    dv_item_table table;
    dv_names *names;
    dv_item *item, *items[1];
    dv_note_view view; /* of the only other member; dv_notes_want() returns it */
} stub_member;

void stubs_begin(void);
void stubs_end(void);
void stub_member_begin(stub_member *m);
void stub_member_end(stub_member *m);

typedef struct {
    bool of_other_set, leaving, ready;
    int32_t given_at; /* the number of the place that was given, and 1; 0: nothing was given */
    int64_t given_to; /* r of T5 */
} stub_note;

/* Prints the note and parses that, as it comes and goes between members. */
void stub_read_note(dv_note_view *view, const stub_note *n);

#endif
