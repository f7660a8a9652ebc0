/* Locks and semaphores in the simulator: what members claim, and what the servers have of it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A claim is one lock or semaphore object of a member, with the user of it. claims.c is that user; truth_claims.c
 * mirrors what was committed on the paths of locks and pools, and holds each transaction against the invariants;
 * check_claims.c does so after each step, and at the end. */
#ifndef SIM_CLAIMS_H
#define SIM_CLAIMS_H

#include "sim.h"

#include "recipe/slots.h"

enum { SIM_CLAIM_NAME_BYTES = 160, SIM_SLOT_NUMBERS_MAX = 64, SIM_TRY_MS = 900 };

typedef enum { SIM_LOCK_PATH, SIM_POOL_PATH, SIM_QUEUE_PATH, SIM_NO_PATH } sim_claim_path;

typedef struct {
    char name[SIM_CLAIM_NAME_BYTES];
    int64_t session, czxid;
    int32_t sequence;
    bool contends, reads; /* in a queue; as a reader */
    bool numbered;        /* a lease of divvy's */
    bool tried;           /* made by the shortcut (E14), and not believed in yet */
    uint32_t limit;       /* the highest that was in force since, while it is so */
    dv_slots slots;       /* of a lease: kazoo's counts one */
} sim_claim_node;

typedef struct {
    sim_claim_node *nodes;
    size_t count, room;
    bool wrapped; /* its sequence numbers were brought near their end */
} sim_claim_list;

typedef struct {
    sim_claim_list queue;
    int64_t head_czxid, head_since;     /* the first in it, and since which transaction it is, */
    int64_t head_at_ms;                 /* at that time */
    int64_t exclusive_token, any_token; /* the largest that was believed in */
} sim_lock_truth;

typedef struct {
    sim_claim_list leases, queue;
    bool limited;
    uint32_t limit, limit_before;
    int64_t limit_zxid;                        /* when it was written last */
    int64_t slot_tokens[SIM_SLOT_NUMBERS_MAX]; /* the largest that was believed in, by slot */
} sim_pool_truth;

struct sim_claims_truth {
    sim_lock_truth locks[SIM_LOCKS_MAX];
    sim_pool_truth pools[SIM_POOLS_MAX];
};

/* ---- claims.c ---- */
bool sim_claim_exists(const sim_claim *c);
void sim_claim_say(const sim_claim *c, const char *what, int result);
/* S8: the library has told something that the headers do not know. */
void sim_claim_wrong(const sim_claim *c, const char *what, int result);
/* An acquire has ended, asynchronous or not. */
void sim_claim_ended(sim_claim *c, int result);
void sim_claim_done(sim_claim *c, int result);
void sim_claim_lost(sim_claim *c);
const char *sim_claim_describe(const sim_claim *c, char *buffer, size_t bytes);
/* Returns whether it is a lock that nobody shares. */
bool sim_claim_exclusive(const sim_claim *c);
int64_t sim_claim_library_token(const sim_claim *c);

/* ---- elections.c ---- */
void sim_election_draw(sim_claim *c, sim_random *r);
int sim_election_create(sim_claim *c);
void sim_election_destroy(sim_claim *c);
int sim_election_let_go(sim_claim *c);
/* J2: after a loss it does so by itself. */
void sim_election_stands_again(sim_claim *c);
/* Waiting calls: lists, or asks for a step down. */
int sim_election_look(sim_claim *c, const sim_event *e, divvy_strings **names, int64_t timeout_ms);
/* S20: an election is held from now on, by that node. */
void sim_election_check_held(const sim_claim *c, const sim_claim_node *own);
/* L1: it knows who leads. */
void sim_election_check_step(sim_claim *c);
/* Returns whether it knows in the end that nobody does. */
bool sim_election_well(const sim_claim *c);

/* ---- truth_claims.c ---- */
sim_claim_path sim_claim_path_of(const sim_world *w, const char *path, size_t *place, const char **node);
sim_claim_list *sim_claim_list_of(sim_world *w, sim_claim_path kind, size_t place);
const sim_claim_node *sim_claim_node_of(const sim_claim_list *list, int64_t token, int64_t session);
/* Returns whether the node stands before one that `c` has, of sequence `sequence`, and blocks it. */
bool sim_claim_blocks(const sim_claim *c, const sim_claim_node *node, int32_t sequence);
/* Returns whether the claim is believed in, by a token that nothing excuses; *token is that. */
bool sim_claim_believed(const sim_claim *c, int64_t *token);
bool sim_claim_excused(const sim_claim *c, int64_t token);
/* S9 of a lease by the shortcut: it is believed in from now on. */
void sim_claim_counts(const sim_claim *c, const sim_claim_node *lease);
const sim_claim_node *sim_claim_head(const sim_claim_list *list);

/* ---- check_claims.c ---- */
/* The claim is believed in from now on. */
void sim_check_claim(sim_claim *c, int64_t token);
/* S2 of what a kazoo member holds from now on: nobody of ours believes in it. */
void sim_claims_check_beside(const sim_claim *held);

#endif
