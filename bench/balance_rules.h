/* Rules that deal items by load, ours and those of peers. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_BENCH_BALANCE_RULES_H
#define DV_BENCH_BALANCE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOBODY UINT32_MAX

/* A pool, as a rule sees it once a minute. */
typedef struct {
    size_t item_count, member_count;
    const char *const *names;   /* of items */
    const char *const *members; /* identifiers */
    const bool *is_here;        /* by member */
    const bool *is_new;         /* by member: it has joined since the last minute */
    bool has_changed;           /* members have joined or left since the last minute */
    const double *loads;        /* of each item, smoothed with a half-life of a minute */
    uint32_t *owners;           /* NOBODY where the owner has left; the rule changes them */
    const long *moved_at;       /* the minute in which each item moved last; far below 0: never */
    long minute;
    double threshold;    /* of the rule: what it tolerates above an even share */
    long *memory;        /* room for one number that a rule remembers, 0 at first */
    uint64_t *chance;    /* for rules that choose at random */
    uint32_t *came_from; /* by item: 1 + from whom our last step by load took it, 0: nobody */
} world;

typedef struct {
    const char *name;
    void (*run)(world *w);
    double usual;         /* the threshold that the rule has by itself */
    double thresholds[5]; /* for the curve */
} rule;

enum { RULES = 7 };
extern const rule rules[RULES];

#endif
