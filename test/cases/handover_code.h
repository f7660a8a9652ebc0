/* What the library decides of one item, from what one member sees. SPDX-License-Identifier: Apache-2.0
 *
 * Calls lib/partitioner/give.c and take.c. handover_stubs.c stands for the partitioner's other files. */
#ifndef DV_CASES_HANDOVER_CODE_H
#define DV_CASES_HANDOVER_CODE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A note as it was read. Its text is printed and parsed, so the numbers are those of a real one. */
typedef struct {
    bool is_there, is_read; /* neither: it is to be read yet; read, and not there: it has gone */
    bool leaving, ready;
    int32_t given_at; /* the number of the place that was given, and 1; 0: nothing was given */
    int64_t given_to; /* r of T5 */
    int64_t mzxid;
} code_note;

typedef enum { CODE_NOTHING, CODE_TAKES, CODE_LISTS } code_judgement;

typedef struct {
    bool keeps, revokes, lists_it;
} code_giving;

void code_begin(void);
void code_end(void);

/* An item that we have, and that the plan gives to the member of that note; `wanted`: to us. Asks now, or when T4 has
 * passed. `blocked`: our note cannot be written. `was_there`: the note was there before. */
code_giving code_give(const code_note *next, bool wanted, bool overdue, bool blocked, bool was_there);
/* One that the user has released. Returns whether we keep it; else *seen is r, or 0 if nothing is given. */
bool code_release(const code_note *next, bool wanted, bool overdue, bool was_there, int64_t *seen);
/* One that the plan gives to us, after the member of that note (NULL: nobody). Returns whether we may enter its queue;
 * in *parks, whether without a list. */
bool code_enter(const code_note *owner, bool is_prepared, bool waited, bool *parks);
/* One for which our place is parked. */
code_judgement code_judge(const code_note *owner, int32_t number, int64_t czxid);
/* Returns whether our note says that we are ready for it, with a place that stands behind others. */
bool code_is_ready(bool wanted, bool has_place);

#ifdef __cplusplus
}
#endif

#endif
