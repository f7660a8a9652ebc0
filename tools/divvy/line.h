/* One line of output, as JSON or for people. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_LINE_H
#define DV_LINE_H

#include "ledger.h"

typedef struct {
    const char *const *names;
    size_t count;
} dv_names_view;

/* The fields of one line; the rest is in the ledger. */
typedef struct {
    const char *event; /* "state" or "items" */
    dv_names_view gained, revoked, lost;
    dv_names_view leaving, staying, prepare;
    const char *reason; /* why in DIVVY_FAILURE; NULL: none is shown */
} dv_line;

/* {"event":..,"state":..,"generation":N,"gained":[..],"revoked":[..],"lost":[..],"owned":[..],"tokens":{..}} and a
 * newline. The keys are always there, in this order; then "leaving", "staying", "prepare", "reason", "time_ms" and
 * "member" where they apply. Names that are not UTF-8 are percent-encoded. Returns memory to free(), NULL when there is
 * none. */
char *dv_line_json(const dv_ledger *ledger, const dv_line *line);

/* "ACQUIRED    owned 2: a, b" or "ALLOCATING  gained 1: b  owned 2: a, b" and a newline, with the member in front
 * where the ledger names one. Returns likewise. */
char *dv_line_readable(const dv_ledger *ledger, const dv_line *line);

/* {"event":"child","child":..,"item":..} and, where they apply, "token", "pid", "status", "reason", "restart_ms",
 * "time_ms" and "member". "child" is started, standby, ready, begun, exited, finished, ended or failed, see
 * dv_child_kind. Only a standby has no token. Returns likewise. */
char *dv_line_child_json(const dv_ledger *ledger, const dv_child_event *event);

/* "started     a  token 7  pid 9" or "exited      a  status 1  next start in 100 ms". Returns likewise. */
char *dv_line_child_readable(const dv_ledger *ledger, const dv_child_event *event);

/* Returns the word that "child" has; and whether the event has a "status". */
const char *dv_line_child_word(const dv_child_event *event);
bool dv_line_child_has_status(const dv_child_event *event);

#endif
