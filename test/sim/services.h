/* The registry in the simulator: what members announce, claim and watch, and what the servers have of it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * services.c is the user of a member's registry; truth_services.c mirrors what was committed below the registry's path,
 * and holds each transaction against the invariants; check_services.c judges what calls returned, and the end. */
#ifndef SIM_SERVICES_H
#define SIM_SERVICES_H

#include "sim.h"

#include <cjson/cJSON.h>

#include "divvy/registry.h"

#define SIM_REGISTRY_PATH "/reg"

enum {
    SIM_ROLES = 2,
    SIM_UNIQUES = 2,
    SIM_OWN_MAX = 2,
    SIM_ENTRIES_MAX = 64,
    SIM_PROCESSES_MAX = 256,
    SIM_PROCESS_SESSIONS_MAX = 32,
    SIM_POLL_MS = 500,
};

/* ---- the truth ---- */

/* An entry, as one write made it. */
typedef struct {
    char attempt[32], nonce[24], first[32];
    int64_t from_zxid, to_zxid; /* to: of the write that ended it; INT64_MAX: it stands */
    int64_t to_ms;              /* when that was */
    int64_t czxid, mtime_ms, owner;
    int32_t version; /* of the node: 0 with each create */
    double ttl_ms;
} sim_version;

typedef struct {
    char role[8], id[16];
    bool unique, present;
    sim_version *versions;
    size_t count, room;
} sim_entry;

/* A member's registry, from its opening on; it may have to do long after it was closed. */
typedef struct {
    const divvy_client *client;
    char nonce[24];
    int64_t sessions[SIM_PROCESS_SESSIONS_MAX];
    size_t session_count;
    bool closed;
    uint64_t left; /* entries that it was asked to remove, by number */
    bool purges;
    double purge_ttls;  /* the least that it was asked for */
    int64_t purge_zxid; /* when it was last asked */
} sim_process;

struct sim_services_truth {
    sim_entry entries[SIM_ENTRIES_MAX];
    size_t entry_count;
    sim_process *processes;
    size_t process_count;
    int64_t zxid;
    int64_t wall_low_ms, wall_high_ms; /* how wrong wall clocks of servers have been */
    bool drifts;                       /* clocks of clients */
};

/* ---- a member's ---- */

typedef struct {
    size_t role;
    char id[16];
    bool wanted;
    double ttl_s;
    unsigned under_way;
    int64_t next_ms;
} sim_own;

typedef struct {
    bool candidate;
    unsigned under_way;
    double ttl_s;
    int64_t next_ms;
} sim_unique;

/* The last news of an entry that a view's user was told. */
typedef struct {
    char role[8], id[16], attempt[32];
} sim_told;

enum { SIM_VIEW_NONE = -1, SIM_VIEW_ALL = SIM_ROLES };

struct sim_services {
    sim_member *m;
    divvy_registry *registry;
    size_t process;
    bool automatic, persistent;
    sim_own own[SIM_OWN_MAX];
    size_t own_count;
    sim_unique uniques[SIM_UNIQUES];
    divvy_services *list; /* that a view gave out last */
    int view;             /* a role, or one of the above */
    bool watched;         /* there is a view, or was */
    sim_told told[SIM_ENTRIES_MAX];
    size_t told_count;
    int64_t seen_zxid[SIM_ENTRIES_MAX]; /* the newest version of each entry that the view has shown */
    int64_t next_look_ms;
    unsigned number; /* of statuses */
    sim_random random;
    int64_t session; /* that was noted last */
};

/* A call, from its beginning on. */
typedef struct {
    int64_t zxid;      /* of the truth when it began */
    int64_t seen_zxid; /* that the session had seen by then: no later read shows an older state */
    int64_t began_ms, timeout_ms;
    bool viewed; /* answered from a view */
} sim_call;

/* ---- truth_services.c ---- */
extern const char *const sim_role_names[SIM_ROLES], *const sim_unique_names[SIM_UNIQUES];
sim_entry *sim_entry_of(sim_world *w, const char *role, const char *id, bool make);
sim_version *sim_entry_current(const sim_entry *e); /* NULL: it is not there */
const sim_version *sim_entry_version(const sim_entry *e, const char *attempt);
size_t sim_process_open(sim_world *w, const divvy_client *client, const char *nonce);
sim_process *sim_process_of(const struct sim_services_truth *truth, int64_t session);
const char *sim_text_of(const cJSON *json, const char *name);

/* ---- check_services.c ---- */
sim_call sim_call_begin(const sim_services *s, int64_t timeout_ms);
/* An entry that was returned as healthy. */
void sim_check_healthy(sim_services *s, const sim_call *call, const cJSON *entry);
/* All healthy ones, of a role or of all. */
void sim_check_all_healthy(sim_services *s, const sim_call *call, const char *role, const cJSON *array);
/* A list that a view gave out just now. */
void sim_check_list(sim_services *s, const char *role, const divvy_services *list);
/* An entry of our own that was returned as stored. */
void sim_check_stored(sim_services *s, const sim_call *call, const cJSON *entry);
void sim_check_claimed(sim_services *s, const sim_call *call, const cJSON *entry);
void sim_check_removed(sim_services *s, const sim_call *call, const char *role, const char *id, int result);
/* Checks the end of a call: in time, and as the header says. */
void sim_check_result(sim_services *s, const sim_call *call, const char *what, int result);
/* Checks the library's estimate of the servers' time. */
void sim_check_time(sim_services *s);

#endif
