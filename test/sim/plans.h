/* The commits at P/plan and in the party, as the parts of the simulator see them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_PLANS_H
#define SIM_PLANS_H

#include "follow/follower.h"
#include "plan/loads.h"
#include "plan/wish.h"
#include "sim.h"
#include "testing/ensemble.h"

#define SIM_PLAN_PATH "/pool/plan"

enum { SIM_WEIGHT_REQUESTS = 128, SIM_REQUEST_BYTES = 56 };

/* A root that stood there. */
typedef struct {
    int64_t mzxid, at_ms;
    bool foreign;          /* an administrator wrote it */
    dv_plan *plan;         /* NULL: it cannot be read */
    dv_plan_header header; /* of the root alone; its guid is empty if even that cannot be read */
    bool newer;
    bool now_broken; /* some of its chunks are no longer there */
    int64_t asked_mzxid,
        asked_pzxid; /* of the plan that took the items that somebody asked for; 0: not known, or none */
    char *text;
    size_t bytes;
    bool by_operator;
    bool is_vague;           /* what members know of wishes and loads is not: chunks of an earlier one were deleted */
    uint64_t writer;         /* the life of the member that wrote it; 0: not known */
    const dv_wishes *wishes; /* of this plan or, if its root has none, of the last one that had them; NULL: none */
    const dv_loads *loads;   /* likewise, while the items are the same */
} sim_plan_version;

/* A child of the root. */
typedef struct {
    char name[DV_PLAN_CHUNK_NAME_BYTES + 8];
    char *data;
    size_t bytes;
    int64_t mzxid;
    char *before; /* the data until that; NULL: it was made then */
    size_t before_bytes;
} sim_plan_child;

/* A node that is or was in the party, and what its data say. */
typedef struct {
    char node[SIM_NODE_BYTES], identifier[48];
    int64_t session, czxid, gone_zxid; /* gone: 0 as long as it lives */
    bool is_member;                    /* no stray */
    int level;
    uint32_t tag;
    dv_member_facts facts;
    int64_t at_ms; /* when it was made */
    uint64_t life; /* of its member, which may have several nodes in turn; 0: not known */
    size_t max_moves;
    int64_t round_timeout_ms; /* that it is configured with */
    int64_t opened_zxid;      /* the last transaction when its client was opened */
} sim_party_node;

/* Since when an entry of the plan says that a member is absent. */
typedef struct {
    char key[SIM_NODE_BYTES];
    int64_t absent, since_ms;
} sim_absence;

/* A static member's configuration when a plan had it last. */
typedef struct {
    char key[SIM_NODE_BYTES];
    uint32_t weight;
} sim_configured;

/* All that bears on whether somebody has something to write. What nodes say changes with a transaction only. */
typedef struct {
    const dv_plan *plan;
    int64_t mzxid, zxid; /* of the plan, of the last transaction */
    const sim_party_node *party[SIM_SLOTS_MAX];
    uint64_t set_hash;
} sim_plan_rest;

struct sim_plans_truth {
    sim_plan_version *versions;
    size_t count, room;
    bool present;         /* the last version stands there */
    int32_t root_version; /* of the node */
    sim_plan_child *children;
    size_t child_count, child_room;
    sim_party_node *party;
    size_t party_count, party_room;
    sim_absence *absences;
    size_t absence_count, absence_room;
    uint32_t *set_requests; /* crcs of sets that somebody has asked for */
    size_t set_request_count, set_request_room;
    char weight_requests[SIM_WEIGHT_REQUESTS][SIM_REQUEST_BYTES]; /* who has asked for which weight */
    size_t weight_request_count;
    sim_configured configured[SIM_WEIGHT_REQUESTS];
    size_t configured_count;
    int64_t set_requested_ms;     /* when somebody last waited for one */
    unsigned remade;              /* how often an administrator has deleted the root and made it again */
    int64_t spoiled_at, newer_at; /* by an administrator */
    bool chunks_spoiled;          /* some may be missing, and plans that name them cannot be read */
    sim_plan_rest rest;           /* where nobody had something to write */
    struct sim_handovers *handovers;
    struct sim_operator *hand; /* operator.h */
    struct sim_past *past;     /* NULL: nothing of it yet */
};

/* Returns the plan that stands there now, or NULL. */
const sim_plan_version *sim_plan_now(const sim_world *w);
const sim_plan_version *sim_plan_at(const sim_world *w, int64_t mzxid);
/* Members, owners, items, tag, options, loads and wishes. */
bool sim_plans_equal(const dv_plan *a, const dv_plan *b);
/* Returns whether the node was in the party as that zxid left it. */
bool sim_party_node_lived(const sim_party_node *p, int64_t zxid);
const sim_party_node *sim_party_node_named(const sim_world *w, const char *node);
/* Returns when its process came, by what the node says (D12). */
int64_t sim_party_node_start(const sim_party_node *p);
/* Finds the live static node of its identifier that takes its place (D12), as the party was at that zxid. Returns NULL
 * where there is none. */
const sim_party_node *sim_party_node_successor(const sim_world *w, const sim_party_node *p, int64_t zxid);
bool sim_party_node_fenced(const sim_world *w, const sim_party_node *p, int64_t zxid);
/* The least level of those that are in the party as of that zxid. */
int sim_party_level(const sim_world *w, int64_t zxid);

/* Returns whether nothing is left to be written after that plan, by the party as it is, and these events. */
bool sim_plan_nothing_to_write(const sim_world *w, const dv_plan *plan, const dv_plan_events *events, char *text,
                               size_t bytes);
/* Has an administrator set the root. */
void sim_plans_put_root(sim_world *w, const char *text, size_t bytes);
/* The same, if the root that stands there now still does when the request comes, as members write it. */
void sim_plans_replace_root(sim_world *w, const char *text, size_t bytes);

/* ---- check_plan_writes.c: what a member wrote ---- */
void sim_plan_check_written(sim_world *w, const sim_plan_version *before, const sim_plan_version *v);
void sim_plan_note_absences(sim_world *w, const sim_plan_version *v);
/* Returns whether it was written in another ensemble: D10. */
bool sim_plan_is_restored(const sim_plan_version *v);

/* ---- check_history.c: what a member wrote beside it (D44) ---- */
void sim_history_check(sim_world *w, const sim_plan_version *v);
void sim_history_note_written(sim_world *w, const divvy_testing_transaction *tx);
void sim_history_free(struct sim_past *past);

/* ---- check_plan_agreement.c ---- */
void sim_plan_note_life(sim_world *w, sim_party_node *p);
/* Finds out when the life of its member began: with the first of its nodes. */
void sim_plan_begin_of_life(const struct sim_plans_truth *t, const sim_party_node *p, int64_t *zxid, int64_t *ms);
void sim_plan_note_requests(sim_member *m);
void sim_plan_note_weight_request(sim_world *w, const char *name, uint32_t weight);
/* Returns the plan that it was computed from, as it says; NULL: that is not known. */
const sim_plan_version *sim_plan_made_from(const struct sim_plans_truth *t, const sim_plan_version *v);
void sim_plan_note_configured(sim_world *w, const sim_plan_version *v);
void sim_plan_note_asked(const sim_world *w, sim_plan_version *v);
void sim_plan_check_agreement(sim_world *w, const sim_plan_version *v);

/* ---- truth_plans.c ---- */
/* What the last transaction did with that path, or any (NULL): the public face tells no data. Returns NULL: it did no
 * such thing. */
const dv_mem_step *sim_plan_step_of(const sim_world *w, const char *path, dv_mem_step_kind kind);
void *sim_plans_grown(void *array, size_t count, size_t *room, size_t bytes);
sim_plan_child *sim_plan_child_of(struct sim_plans_truth *t, const char *name);

/* ---- truth_texts.c ---- */
/* Reads the plan of a root's text from the children as they are now. Returns as the parsers of text.h do. */
int sim_plan_read(struct sim_plans_truth *t, const char *text, size_t bytes, dv_plan **out, dv_plan_fault *fault);

#endif
