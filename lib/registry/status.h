/* Status: a program's description of its service, and the entry that is made of it. SPDX-License-Identifier: Apache-2.0
 *
 * Pure. docs/protocol.md, V3; registry.h has the fields. */
#ifndef DV_STATUS_H
#define DV_STATUS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The facts that the status does not contain. Strings live during the call. */
typedef struct {
    const char *unique_role; /* not NULL: it is role, name and id, and load is not required */
    const char *new_id;      /* where the status has none */
    const char *host;
    int64_t pid;
    const char *nonce;
    bool persistent;
} dv_status_defaults;

enum { DV_STATUS_REASON_BYTES = 160 };

/* Makes the entry, still to be stamped. Returns 0, DIVVY_ENOMEM, or DIVVY_EINVAL with the faulty field in `reason`. */
int dv_status_compose(cJSON **out, const cJSON *status, const dv_status_defaults *defaults,
                      char reason[DV_STATUS_REASON_BYTES]);

/* Sets time and attempt, and, once, first_heartbeat and registrationTimeUTC. Returns false when an allocation fails. */
bool dv_status_stamp(cJSON *entry, int64_t unix_ms, const char *attempt);
/* Takes over those two of `earlier` where it has none, or with `force`. Returns false when an allocation fails. */
bool dv_status_keep_first(cJSON *entry, const cJSON *earlier, bool force);
/* Returns whether both say the same id, host, pid and nonce. */
bool dv_status_same_identity(const cJSON *a, const cJSON *b);

/* Returns the text of a field, or NULL where it is none. */
const char *dv_status_text(const cJSON *entry, const char *name);
/* Returns the number of a field, or 0 where it is none. */
double dv_status_number(const cJSON *entry, const char *name);

/* Prints the entry; the text is malloc'ed. Returns 0, DIVVY_E2BIG or DIVVY_EINVAL with *reason, or DIVVY_ENOMEM. */
int dv_status_print(char **out, const cJSON *entry, const char **reason);

#endif
