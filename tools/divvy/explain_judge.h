/* The reason why an item waits. SPDX-License-Identifier: Apache-2.0
 *
 * Pure: of what was read it makes one word and two sentences. */
#ifndef DV_EXPLAIN_JUDGE_H
#define DV_EXPLAIN_JUDGE_H

#include "explain_read.h"

enum { DV_EXPLAIN_BYTES = 1600 };

typedef struct {
    const char *state;                                  /* one word, as docs/man/divvy.1 lists them */
    char now[DV_EXPLAIN_BYTES], next[DV_EXPLAIN_BYTES]; /* "" where there is nothing to say */
    const char *rule; /* a word for why the plan has it so: "pinned", "moved", "paused", "load", "tag", "cap"; NULL:
                                 its rules are not why */
    char why[DV_RULE_BYTES]; /* in a sentence */
} dv_explain_verdict;

dv_explain_verdict dv_explain_judge(const dv_explanation *e);

#endif
