/* Loads, and the operator's hand: what was asked, reported and committed. SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_OPERATOR_H
#define SIM_OPERATOR_H

#include "plan/load_report.h"
#include "plan/wish.h"
#include "plans.h"
#include "pool/errand.h"

enum { SIM_ASKS_MAX = 96, SIM_OPERATOR_SESSIONS = 64, SIM_UNITS = 2 };

/* One request of the operator. Its number stands in the plan as `by`. */
typedef struct {
    dv_errand *errand; /* NULL: it has ended, or was given up */
    dv_ask ask;        /* its texts are those below */
    char name[SIM_NODE_BYTES], value[SIM_NODE_BYTES], by[16];
    int64_t give_up_ms;
    bool is_done; /* the errand says so; its errand is still to be looked at */
    bool ended;   /* well: the plan has said so, so that it is never done again */
} sim_ask;

/* A report that stands below P/loads. */
typedef struct {
    char node[SIM_NODE_BYTES];
    int64_t session;
    char *text;
    size_t bytes;
} sim_load_node;

struct sim_operator {
    divvy_client *client; /* NULL: nothing was asked yet */
    int64_t sessions[SIM_OPERATOR_SESSIONS];
    size_t session_count;
    sim_ask asks[SIM_ASKS_MAX];
    size_t ask_count;
    bool trap_set; /* the connection breaks at the next write */
    divvy_testing_fate trap_fate;
    sim_load_node *reports;
    size_t report_count, report_room;
    bool told[SIM_UNITS][SIM_ITEMS_MAX][DV_CLASS_MAX + 1]; /* classes that some report said of an item */
    sim_random random;
};

/* ---- operator.c: the operator ---- */
void sim_operator_new(sim_world *w);
void sim_operator_free(sim_world *w);
void sim_operator_close(sim_world *w);
void sim_operator_ask(sim_world *w, const sim_event *e);
/* After each step: judges what has ended, and gives up what takes too long. */
void sim_operator_step(sim_world *w);
/* Returns whether it has asked for something that has not ended. */
bool sim_operator_waits(const sim_world *w);
bool sim_is_operator(const sim_world *w, int64_t session);
/* Returns whether somebody may have had the absent member forgotten (D13). */
bool sim_operator_forgets(const sim_world *w, const char *key);
/* An older release rewrites the root: it does not know loads and wishes, and leaves them out. */
void sim_older_root(sim_world *w);

/* ---- loads.c: members that tell loads, and what they report ---- */
void sim_loads_configure(sim_member *m, sim_random random);
/* Has a member that was just made be of an older release, if it was drawn so. */
void sim_loads_begin(sim_member *m);
/* Has the user tell the loads of its items, if it is time. */
void sim_loads_tell(sim_member *m);
void sim_loads_transaction(sim_world *w, const divvy_testing_transaction *tx);
/* Returns how many reports of the session stand there. */
size_t sim_loads_count(const sim_world *w, int64_t session);
/* L3: returns whether each report is of a member that is there. */
bool sim_loads_well(const sim_world *w, char *text, size_t bytes);
/* Once loads stand still: returns whether the pool has come to rest, too. */
bool sim_loads_at_rest(sim_world *w);

/* ---- check_wishes.c ---- */
/* Holds a plan against the one that it was made from (NULL: not known). */
void sim_wishes_check(sim_world *w, const sim_plan_version *from, const sim_plan_version *v);
/* Notes which wishes and loads members know, once they have read it. */
void sim_wishes_note(sim_plan_version *v, const sim_plan_version *before, bool is_spoiled);
/* Returns whether an operator has a say in where the item is, now or by the plan before. */
bool sim_is_placed(const dv_plan *before, const dv_plan *after, const char *name);
/* Returns whether nobody is to have the item (D48). */
bool sim_is_paused(const dv_plan *plan, const char *name);
/* Returns whether members that follow the root of `v` may have that plan in memory. */
bool sim_plan_is_followed(const sim_plan_version *v, const dv_plan *plan);

#endif
