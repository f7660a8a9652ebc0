/* The wishes of a pool's operator, as they stand in the plan. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D48. Pure: no I/O, no clock. What comes from ZooKeeper is hostile until it is parsed. */
#ifndef DV_PLAN_WISH_H
#define DV_PLAN_WISH_H

#include "plan/text.h"

/* The kinds, in the order of their texts. `name` is an item, but for need (an item, or a prefix and `*`) and option. */
typedef enum {
    DV_WISH_MOVE,   /* the item goes to the member with the key `value` (D12); ends with that member */
    DV_WISH_NEED,   /* the items need a member with the tag `value` */
    DV_WISH_OPTION, /* the pool's option `name` has the number `value` */
    DV_WISH_PAUSE,  /* nobody works on the item; `value` is the key of the member that had it, "" for nobody */
    DV_WISH_PIN,    /* the item goes to the member with the identifier `value` */
    DV_WISH_KINDS
} dv_wish_kind;

enum {
    DV_WISHES_MAX = 4096,
    DV_WISH_NAME_BYTES_MAX = 65536,
    DV_WISH_VALUE_BYTES_MAX = 1200,
    DV_WISH_BY_BYTES_MAX = 128,
    DV_WISH_WHY_BYTES_MAX = 512
};

typedef struct {
    dv_wish_kind kind;
    const char *name, *value;
    const char *by, *why; /* who asked, and for which reason; "": not said */
    int64_t at_ms;        /* when, by the asker's clock */
} dv_wish;

/* Immutable and shared, as a plan's set is. */
struct dv_wishes {
    size_t references;
    dv_wish *list; /* by kind, then by name; their texts are ours */
    size_t count;
};

/* An event of the step: a wish comes, or the one of its kind and name goes. */
typedef struct {
    dv_wish wish;
    bool undo;
} dv_wish_event;

const char *dv_wish_kind_text(dv_wish_kind kind);
dv_wishes *dv_wishes_ref(dv_wishes *wishes);
/* `wishes` may be NULL, here and below: there are none. */
void dv_wishes_unref(dv_wishes *wishes);
bool dv_wishes_equal(const dv_wishes *a, const dv_wishes *b);
/* Returns the wish of that kind and name, or NULL. */
const dv_wish *dv_wishes_find(const dv_wishes *wishes, dv_wish_kind kind, const char *name);
/* Returns in *out what there is once a wish has come or gone, for the caller to release: with a move the pin of the
 * item goes, and the other way round. It is `wishes` itself where the same wish stands there already, or the one to go
 * does not. Returns 0; DIVVY_ENOMEM; DIVVY_ELIMIT: DV_WISHES_MAX stand there. */
int dv_wishes_change(dv_wishes **out, dv_wishes *wishes, const dv_wish_event *event);
/* Returns the tag that an item needs: by its own name, else by the longest prefix. NULL: none. */
const char *dv_wishes_tag(const dv_wishes *wishes, const char *item);

/* Returns whether an item may need a tag. */
bool dv_wishes_need_tags(const dv_wishes *wishes);
/* Returns the number that an option has, at most `most`, or `otherwise` where nobody asked for one. */
double dv_wishes_number(const dv_wishes *wishes, const char *option, double otherwise, double most);

/* Returns NULL, or why no plan can hold the wish: a text that completes "the name ...". */
const char *dv_wish_check(const dv_wish *wish);

/* Returns 0 or DIVVY_ENOMEM. */
int dv_wishes_print(dv_plan_text *out, const dv_wishes *wishes);
/* Returns 0; DIVVY_EPROTO, with *fault filled (may be NULL); DIVVY_ENOMEM. */
int dv_wishes_parse(dv_wishes **out, const char *text, size_t bytes, dv_plan_fault *fault);

#endif
