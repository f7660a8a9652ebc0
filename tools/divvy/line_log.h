/* A member's items, as lines of the log. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_LINE_LOG_H
#define DV_LINE_LOG_H

#include "line.h"

/* A line with event=state, or one for each item that changed: event=gained, item=.., and token=.. or reason=.. where
 * they apply. "" where nobody wants their level. Returns memory to free(), NULL when there is none; a word for which
 * there was none is "?". */
char *dv_line_log(const dv_ledger *ledger, const dv_line *line);

/* A line with event=started, item=.. and so on, see dv_line_child_json(). Returns likewise. */
char *dv_line_child_log(const dv_child_event *event);

#endif
