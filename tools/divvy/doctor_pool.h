/* The facts about a session and a pool that `divvy doctor` reads. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_DOCTOR_POOL_H
#define DV_DOCTOR_POOL_H

#include "doctor_servers.h"
#include "handover/note.h"
#include "status_pool.h"

enum { DV_DOCTOR_READS = 5, DV_DOCTOR_ROOTS = 5 };

/* The access list of a node. */
typedef struct {
    char *path; /* as the user would say it, without the chroot */
    int error;  /* of reading it: 0, DIVVY_ENOENT, DIVVY_EACCES */
    char **entries;
    size_t entry_count;
    bool is_directory; /* of an item */
    size_t item;       /* that one */
} dv_doctor_acl;

/* A member's note; empty where it has none. */
typedef struct {
    bool there; /* it counts the items as the plan does */
    int64_t written_ms;
    dv_note note;
} dv_doctor_note;

/* The facts about a member that its node in the party tells, beyond dv_status_member. */
typedef struct {
    bool has_set;
    uint32_t set;
    int64_t max_moves, round_timeout_ms;
} dv_doctor_settings;

typedef struct dv_doctor {
    /* The question. */
    const char *path; /* NULL: no pool */
    const char *user; /* of the credentials; NULL: none */
    bool hides_names; /* we are somebody by TLS or SASL, and cannot tell who */
    int64_t session_timeout_ms, tick_ms, server_timeout_ms;
    /* Fills in the status where somebody follows the pool: then `is_followed` becomes true, and neither the items nor
     * their list is read. Else, or NULL: it is read. 0, or an error of the look. */
    int (*follow)(dv_look *look, struct dv_doctor *doctor);
    void *follower; /* of `follow` */
    bool is_followed;
    /* The servers' answers. */
    dv_servers servers;
    bool is_served; /* by at least one of them */
    int look_error; /* of the session: 0, or why nothing could be read */
    char look_reason[512];
    bool looked;
    int64_t session, granted_ms, opened_ms, connected_ms; /* the last two by the wall clock */
    int64_t read_us[DV_DOCTOR_READS];
    size_t read_count;
    /* The pool. */
    dv_status status;
    int pool_error; /* why the pool could not be read */
    char failed_path[256];
    dv_doctor_acl *acls;
    size_t acl_count;
    dv_doctor_settings *settings;    /* of each member of the status */
    dv_doctor_note *notes;           /* likewise */
    int64_t planned_ms;              /* when P/plan was written; 0: it is not there */
    size_t left_notes;               /* of nobody in the party */
    size_t party_bytes, locks_bytes; /* of the names below them */
} dv_doctor;

/* For dv_look_at(): fills in what is read by a session. `status` has its path and its plan. */
int dv_doctor_read(dv_look *look, void *context);
void dv_doctor_clear(dv_doctor *doctor);

#endif
