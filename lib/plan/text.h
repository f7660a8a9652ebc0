/* The sticky plan: in memory, and byte for byte as it stands in ZooKeeper. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D1 to D9. Pure: no I/O, no clock. Not thread-safe: sets are counted without a lock, so plans
 * that share one belong to one client's lock.
 *
 * A plan is the root, which is P/plan's data, and three kinds of text that the root holds or names: the items, a base
 * (members and owners), deltas (what changed since). To read one: dv_plan_root_parse(); its set, unless it is at hand;
 * then dv_plan_from_base(), or a copy of an earlier plan, and dv_plan_apply() for each delta since; dv_plan_complete().
 * To write one: the texts; dv_plan_part_inline() or _cut(); dv_plan_root_describe(); dv_plan_print_root().
 *
 * What comes from ZooKeeper is hostile until it has been parsed. Parsers return 0; DIVVY_EPROTO, with `fault` (may
 * be NULL) filled; DIVVY_ENOMEM; and dv_plan_root_parse() also DIVVY_EUNSUPPORTED, for a plan that a later release
 * wrote. Their allocations are in proportion to the text that they were given. */
#ifndef DV_PLAN_TEXT_H
#define DV_PLAN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/guid.h"

#define DV_PLAN_NO_SLOT UINT32_MAX
#define DV_PLAN_INTEGER_MAX INT64_C(9007199254740991) /* what every reader of JSON can hold */

enum {
    DV_PLAN_VERSION = 1,
    DV_PLAN_BY_COUNT = 1, /* algorithms: A6 to A8, the sticky deal */
    DV_PLAN_BALANCED = 2, /* also loads, wishes, tags and caps (D48) */
    DV_PLAN_ROOT_BYTES_MAX = 200000,
    DV_PLAN_INLINE_ROOT_BYTES = 8 * 1024, /* up to here parts are inline */
    DV_PLAN_CHUNK_BYTES = 200000,
    DV_PLAN_CHUNKS_MAX = 400, /* of one part */
    DV_PLAN_PART_BYTES_MAX = 64 * 1024 * 1024,
    DV_PLAN_DELTAS_MAX = 64,
    DV_PLAN_ITEMS_MAX = 1000000,
    DV_PLAN_SLOTS = 10000,
    DV_PLAN_KEY_BYTES_MAX = 1200,
    DV_PLAN_ZONE_BYTES_MAX = 512,
    DV_PLAN_MOVED_MAX = 10000,
    DV_PLAN_CHUNK_NAME_BYTES = 72,
    DV_PLAN_DIGITS = 36,   /* of an owner's number */
    DV_PLAN_WIDTH_MAX = 3, /* digits of one */
};

/* How a writer cuts texts. Tests lower the bounds, for chunks of small plans. */
typedef struct {
    size_t inline_root_bytes; /* a root of at most so many bytes has its parts inline */
    size_t chunk_bytes;       /* a chunk has at most so many */
} dv_plan_sizes;

/* ---- in memory ---- */

/* Items, each once, sorted bytewise; immutable and shared. */
typedef struct {
    size_t references;
    size_t count;
    const char **names; /* into `block`, where they stand one after the other, each with its NUL */
    char *block;
    size_t block_bytes;
    uint32_t crc;  /* of the block: the tag `s` of who is configured with it (P2) */
    uint64_t hash; /* FNV-1a of the block */
} dv_plan_set;

typedef struct {
    uint32_t slot; /* by which `owners` call it */
    bool is_static;
    char *key; /* its node's name; a static one's identifier (rule D12) */
    uint32_t weight;
    char *zone; /* "": none */
    int64_t rejoin_delay_ms;
    int64_t absent;       /* the party's pzxid when it was found to be; 0: present */
    char *leaving;        /* the node of it that leaves; "": none does */
    bool says_configured; /* the next is said, as a writer of this release does of static members */
    uint32_t configured;  /* the weight that its node came with last (D15); the sum leaves out it, and what follows */
    char *tags;           /* that it has, sorted, with commas between; "": none */
    uint32_t cap;         /* the most items that it takes; 0: no limit */
} dv_plan_member;

/* The reason why a plan was written; the texts are those of the root, in this order. */
typedef enum {
    DV_PLAN_CREATE,
    DV_PLAN_SET,
    DV_PLAN_LOSS,
    DV_PLAN_LEAVE,
    DV_PLAN_JOIN,
    DV_PLAN_DRAIN,
    DV_PLAN_WEIGHT,
    DV_PLAN_OPERATOR,
    DV_PLAN_OPTIONS,
    DV_PLAN_ABSENCE,
    DV_PLAN_LOAD,
    DV_PLAN_ROUND,
    DV_PLAN_REASONS
} dv_plan_reason;

typedef struct {
    uint32_t max_moves; /* 0: no limit */
    int64_t round_timeout_ms;
} dv_plan_options;

typedef struct {
    uint64_t generation;
    char guid[DV_GUID_BYTES];  /* of the write; each attempt has its own */
    char after[DV_GUID_BYTES]; /* that of the plan which it was made from; "": none */
    char epoch[DV_GUID_BYTES]; /* P/plan/<epoch> stands as long as this P/plan does */
    int64_t pzxid;             /* the party's that it was made for */
    dv_plan_reason reason;
    bool is_balanced; /* D48: loads, wishes, tags and caps are in force */
    dv_plan_options options;
    uint32_t tag;  /* adopted_tag */
    int64_t asked; /* the pzxid of the party for which other items than the tag's were requested; 0: not said (D17) */
} dv_plan_header;

typedef struct dv_loads dv_loads;   /* plan/loads.h */
typedef struct dv_wishes dv_wishes; /* plan/wish.h */

enum { DV_PLAN_TOLD_BYTES = 256 };

typedef struct {
    dv_plan_header header;
    int64_t mzxid; /* of the node that it was read from, which is not in the text; 0: not written yet */
    dv_plan_set *set;
    dv_plan_member *members; /* by slot */
    size_t member_count, member_room;
    uint32_t *owners; /* a slot, or DV_PLAN_NO_SLOT, for each item */
    uint32_t *moved;  /* items that wait for their new owners, ascending */
    size_t moved_count;
    dv_loads *loads;               /* NULL: nobody ever reported one */
    dv_wishes *wishes;             /* NULL: nobody ever asked for anything */
    char told[DV_PLAN_TOLD_BYTES]; /* of a plan that the step made: what it did for whom, for the history only */
} dv_plan;

/* Makes a set of sorted, distinct names, which are copied. Returns NULL when an allocation fails. */
dv_plan_set *dv_plan_set_make(const char *const *names, size_t count);
dv_plan_set *dv_plan_set_ref(dv_plan_set *set);
void dv_plan_set_unref(dv_plan_set *set);
bool dv_plan_set_equal(const dv_plan_set *a, const dv_plan_set *b);
/* Returns the first item from `from` on that is not less than the name, or the count. Fast where it is near `from`. */
size_t dv_plan_set_find(const dv_plan_set *set, const char *name, size_t from);
bool dv_plan_set_has(const dv_plan_set *set, const char *name);

/* One without members; its items have no owners. Takes over a reference to the set, also when it fails. */
dv_plan *dv_plan_make(dv_plan_set *set);
dv_plan *dv_plan_copy(const dv_plan *plan);
void dv_plan_free(dv_plan *plan);
/* Copies the strings; appends. Returns false when an allocation fails. */
bool dv_plan_add_member(dv_plan *plan, const dv_plan_member *member);
/* Frees the strings. */
void dv_plan_member_clear(dv_plan_member *member);
bool dv_plan_member_equal(const dv_plan_member *a, const dv_plan_member *b);
dv_plan_member *dv_plan_member_at(const dv_plan *plan, uint32_t slot);
void dv_plan_sort_members(dv_plan *plan);
/* The least width in which all slots fit in base 36, and one more number, which stands for "none" (D5). */
size_t dv_plan_owner_width(const dv_plan *plan);
dv_plan_member *dv_plan_find(const dv_plan *plan, bool is_static, const char *key);
const char *dv_plan_reason_text(dv_plan_reason reason);

/* ---- the root, and what it names ---- */

typedef struct {
    char name[DV_PLAN_CHUNK_NAME_BYTES];
    uint32_t bytes, crc;
} dv_plan_chunk;

/* Where a text is: here, or in chunks. */
typedef struct {
    char *text; /* NULL: in chunks */
    size_t bytes;
    dv_plan_chunk *chunks;
    size_t chunk_count;
} dv_plan_part;

typedef struct {
    char guid[DV_GUID_BYTES]; /* of the plan that it leads to */
    dv_plan_part part;
} dv_plan_delta;

typedef struct {
    dv_plan_header header;
    size_t set_count;
    uint32_t set_crc;
    uint64_t set_hash;
    dv_plan_part items, base;
    char base_guid[DV_GUID_BYTES]; /* of the plan that the base is */
    dv_plan_delta *deltas;         /* from the base on, the oldest first */
    size_t delta_count;
    uint32_t *moved;
    size_t moved_count;
    uint32_t sum;
    dv_plan_part loads, wishes; /* neither text nor chunks: the root does not have it */
} dv_plan_root;

void dv_plan_root_clear(dv_plan_root *root);
void dv_plan_part_clear(dv_plan_part *part);
/* Returns 0 or DIVVY_ENOMEM. */
int dv_plan_part_copy(dv_plan_part *to, const dv_plan_part *from);
/* Returns whether the root has it. */
static inline bool dv_plan_part_is_there(const dv_plan_part *part) {
    return part->text != NULL || part->chunk_count > 0;
}
/* Returns whether both are the same text, in the root or in the same chunks. */
bool dv_plan_part_equal(const dv_plan_part *a, const dv_plan_part *b);

/* ---- printing ---- */

typedef struct {
    char *bytes; /* malloc'ed */
    size_t count;
} dv_plan_text;

/* Each returns 0 or DIVVY_ENOMEM, the root also DIVVY_E2BIG. */
int dv_plan_print_items(dv_plan_text *out, const dv_plan_set *set);
int dv_plan_print_base(dv_plan_text *out, const dv_plan *plan);
/* Prints the delta that leads from one plan to another of the same set. */
int dv_plan_print_delta(dv_plan_text *out, const dv_plan *from, const dv_plan *to);
int dv_plan_print_root(dv_plan_text *out, const dv_plan_root *root);
/* The crc of the base text: by it a reader knows that deltas led to where they should. */
int dv_plan_sum(uint32_t *sum, const dv_plan *plan);

/* A part that is the text itself, which it takes over. */
void dv_plan_part_inline(dv_plan_part *part, dv_plan_text *text);
/* A part that is chunks of `chunk_bytes`, the last one shorter, numbered from *number, which goes up with them. */
int dv_plan_part_cut(dv_plan_part *part, const dv_plan_text *text, size_t chunk_bytes, uint64_t generation,
                     const char *guid, uint32_t *number);
/* All but parts and deltas, which are the writer's affair. */
int dv_plan_root_describe(dv_plan_root *root, const dv_plan *plan);

/* ---- parsing ---- */

typedef struct {
    const char *why; /* completes "the text ..." */
    size_t at;       /* the byte where that was seen */
} dv_plan_fault;

int dv_plan_root_parse(dv_plan_root *out, const char *text, size_t bytes, dv_plan_fault *fault);
/* Returns whether it is the set that the root describes, whose text need not be read then. */
bool dv_plan_root_has_set(const dv_plan_root *root, const dv_plan_set *set);
int dv_plan_items_parse(dv_plan_set **out, const dv_plan_root *root, const char *text, size_t bytes,
                        dv_plan_fault *fault);
/* The plan that the root's base is. `set` is the root's; the plan takes a reference of its own. */
int dv_plan_from_base(dv_plan **out, dv_plan_set *set, const char *text, size_t bytes, dv_plan_fault *fault);
/* On an error the plan is good for nothing but dv_plan_free(). */
int dv_plan_apply(dv_plan *plan, const char *text, size_t bytes, dv_plan_fault *fault);
/* Makes the plan what the root says, whose moved items it takes over. As for errors, like dv_plan_apply(). */
int dv_plan_complete(dv_plan *plan, dv_plan_root *root, dv_plan_fault *fault);

/* Returns whether a child of P/plan is a chunk, and tells its generation. All others are an epoch, or foreign. */
bool dv_plan_chunk_parse(const char *name, uint64_t *generation);
bool dv_plan_chunk_matches(const dv_plan_chunk *chunk, const char *bytes, size_t count);

#endif
