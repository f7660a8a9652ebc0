/* What the servers committed of items, the party and sessions: a mirror. SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_TRUTH_H
#define SIM_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "divvy/testing.h"

#include "script.h"

enum { SIM_ITEMS_MAX = 100, SIM_NODE_BYTES = 72 };

typedef struct sim_world sim_world;

typedef struct {
    char name[SIM_NODE_BYTES];
    int64_t session, czxid;
    int32_t sequence;
    bool contends;
} sim_node;

/* An owner of an item; they stand in the order in which they came. */
typedef struct {
    int64_t token, session, at_ms; /* since when */
} sim_owner;

typedef struct {
    sim_node *nodes; /* of the item's directory */
    size_t count, room;
    bool directory;       /* is there */
    int64_t deleted_zxid; /* when it was deleted last */
    sim_owner *owners;
    size_t owner_count, owner_room;
    int64_t first;       /* czxid of the lowest contender; 0: none */
    int64_t shown_token; /* the last that a member believed in */
} sim_queue;

typedef struct {
    int64_t id, began_ms, begun_zxid;
    size_t path_bytes, pool_nodes; /* of its ephemerals; how many of them are below the pool */
} sim_session;

/* A place that was deleted by somebody else. */
typedef struct {
    size_t item;
    int64_t token;
} sim_excuse;

typedef struct {
    sim_queue queues[SIM_ITEMS_MAX];
    sim_node *party;
    size_t party_count, party_room;
    sim_session *sessions; /* that are open */
    size_t session_count, session_room;
    sim_excuse *excuses;
    size_t excuse_count, excuse_room;
    int64_t *killed; /* sessions that an administrator ended */
    size_t killed_count, killed_room;
} sim_truth;

void sim_truth_apply(sim_world *w, const divvy_testing_transaction *t);
void sim_truth_free(sim_truth *truth);
/* The item whose directory a path is in, with the node's name; or SIZE_MAX. */
size_t sim_item_of_path(const sim_world *w, const char *path, const char **node);
const sim_node *sim_truth_node(const sim_truth *truth, size_t item, int64_t token, int64_t session);
sim_session *sim_truth_session(sim_truth *truth, int64_t id);
void sim_truth_excuse(sim_truth *truth, size_t item, int64_t token);
bool sim_truth_excused(const sim_truth *truth, size_t item, int64_t token);
void sim_truth_kill(sim_truth *truth, int64_t session);
bool sim_truth_killed(const sim_truth *truth, int64_t session);
/* Returns whose turn it was, from 1, of those that came to own the item; 0: never. */
size_t sim_truth_turn(const sim_truth *truth, size_t item, int64_t token, int64_t session);

#endif
