/* Names that are findable after a lost reply and never reused. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_GUID_H
#define DV_GUID_H

#include <stdbool.h>
#include <stdint.h>

/* The source of the names of one client object. Not thread-safe: the client's loop draws names in its own turn. */
typedef struct {
    uint64_t client_random; /* drawn once for each client object: two clients may share one session */
    uint64_t counter;       /* how many names were drawn; begins at 0 and is never set back */
} dv_guid_source;

/* Room for the longest name (three numbers of 11 digits) and its NUL. */
enum { DV_GUID_BYTES = 40 };

/* Writes the next name of `source` (N5) for the session `session_id`: 23 to 33 letters and digits, and a NUL. */
void dv_guid_next(dv_guid_source *source, int64_t session_id, char out[DV_GUID_BYTES]);

/* Returns whether one client drew both names, or what they begin with, for one session. */
bool dv_guid_is_of_same_session(const char *name, const char *own);

/* Returns whether `name` begins with a name that the client which drew `own` drew for another session of its own. */
bool dv_guid_is_of_former_session(const char *name, const char *own);

#endif
