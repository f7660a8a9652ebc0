/* The log: what goes to standard error, with levels, and with fields where a machine reads it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * People get "divvy: MESSAGE". Where standard error is the journal, or DIVVY_LOG_FORMAT is logfmt, a line is a list of
 * fields, as in level=warn command=partition pool=/q msg="...". The journal gets the priority in front of that. */
#ifndef DV_LOG_H
#define DV_LOG_H

#include <stdbool.h>
#include <stdio.h>

/* Reads DIVVY_LOG, DIVVY_LOG_FORMAT and JOURNAL_STREAM. Returns 0, or -1 when it was told what is wrong. */
int dv_log_open(void);

/* Adds a field to all lines to come; both strings outlive the process. There is room for four. */
void dv_log_field(const char *key, const char *value);

/* Says which member the lines of this thread are about, for processes that have several: a field `member`, or in front
 * of the message. The string lives until the next call. NULL: none. */
void dv_log_about(const char *member);

/* Returns whether lines of this level are wanted: one of DIVVY_LOG_ERROR to DIVVY_LOG_DEBUG, which is 4. */
bool dv_log_takes(int level);

/* Has lines of all levels wanted from now on, as --verbose does. */
void dv_log_all(void);

/* Returns whether lines are lists of fields. */
bool dv_log_has_fields(void);

/* Begins a line in `to`: the priority, the time, the level, and the fields of all lines. */
void dv_log_begin(FILE *to, int level);

/* Adds a field to the line; the value is quoted where it has to be, and made readable before. */
void dv_log_put(FILE *to, const char *key, const char *value);

/* Writes a message in the form that is wanted, in one write, so that lines of several processes do not mix. `hint`
 * follows it as it is. `key` and `value` are one field more; NULL: there is none. */
void dv_log_write(int level, const char *message, const char *hint, const char *key, const char *value);

#endif
