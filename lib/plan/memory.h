/* A process's memory of P/plan. SPDX-License-Identifier: Apache-2.0
 *
 * Readers and writers of the plan share it. It outlives the root and the session: a process that remembers a plan
 * follows it, and writes it again, when the root was deleted (D26). Inside the client's turn. */
#ifndef DV_PLAN_MEMORY_H
#define DV_PLAN_MEMORY_H

#include "plan/text.h"
#include "znode/znode.h"

/* The state of P/plan at the last read. */
typedef enum {
    DV_PLAN_UNREAD,  /* not read yet */
    DV_PLAN_MISSING, /* no root */
    DV_PLAN_GOOD,    /* `plan` */
    DV_PLAN_BROKEN,  /* it, or a part of it, is not what the rules say */
    DV_PLAN_NEWER    /* a later release wrote it */
} dv_plan_standing;

/* The history beside the plan (D44), as it was read or written last. */
typedef struct {
    dv_plan_text text;
    char epoch[DV_GUID_BYTES]; /* the child that it is from; "": never seen */
    int64_t mzxid, written_ms; /* of that child */
} dv_plan_past;

/* An item that had another owner by the plan before. */
typedef struct {
    uint32_t item, slot; /* slot: as in dv_plan.owners */
} dv_plan_former;

typedef struct {
    dv_plan *plan;   /* the newest that was read or written, by mzxid; NULL: none was ever seen */
    dv_plan *before; /* the one that was in memory until then; NULL: none */
    /* The plan before is asked by dv_plan_memory_owners_before() only: where few items have moved, before->owners is
     * NULL, and these stand for it, ascending. */
    bool is_lean;
    dv_plan_former *formers;
    size_t former_count;
    dv_plan_root root; /* that it is from: a delta's writer names its parts again */
    dv_plan_standing standing;
    int64_t mzxid;        /* of the root that was read last, good or not; 0: there was none */
    int32_t version;      /* of that root */
    bool lacks_nodes;     /* a node that this root names was deleted: who comes cannot read the plan (rule D23) */
    int64_t newest_mzxid; /* of all roots that were ever read or written: older ones are passed over */
    dv_plan_past past;
} dv_plan_memory;

/* Fills in the owners by the plan before, which is not NULL, as slots of its items. */
void dv_plan_memory_owners_before(const dv_plan_memory *memory, uint32_t *owners);
/* Takes over the plan, whose mzxid is set, and the root, which is cleared; the plan that was there becomes the one
 * before. An older plan than the one in memory is freed instead. */
void dv_plan_memory_take(dv_plan_memory *memory, dv_plan *plan, dv_plan_root *root, int32_t version);
/* A root was found there that cannot be followed (DV_PLAN_BROKEN, _NEWER), or none (DV_PLAN_MISSING, mzxid and version
 * 0, or those of a root of generation 0, which only holds the place: rule D28). The plan stays. */
void dv_plan_memory_stand(dv_plan_memory *memory, dv_plan_standing standing, int64_t mzxid, int32_t version);
/* Notes how many children the root has that is good. Returns whether it is new that some are missing. */
bool dv_plan_memory_count_nodes(dv_plan_memory *memory, int32_t children);
/* Returns whether the plan stands there, in all of its nodes as far as their number tells. */
bool dv_plan_memory_is_whole(const dv_plan_memory *memory);
/* Returns whether a root of that mzxid is older than what is known already (rule D21). */
bool dv_plan_memory_passed(const dv_plan_memory *memory, int64_t mzxid);
/* Remembers the history, which stands in that epoch child with that Stat. Takes over the text. */
void dv_plan_memory_recall(dv_plan_memory *memory, const char *epoch, dv_plan_text *text, const dv_stat *stat);
/* Returns whether what is remembered of the past stands beside the plan that stands there. */
bool dv_plan_memory_has_past(const dv_plan_memory *memory);
/* Remembers what was read, whatever it says. Returns 0, or DIVVY_ENOMEM and nothing changes. */
int dv_plan_memory_take_past(dv_plan_memory *memory, const char *epoch, const dv_reply *reply);
void dv_plan_memory_clear(dv_plan_memory *memory);

#endif
