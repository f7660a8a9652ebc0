/* The display of locks and semaphores. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_LOCKS_PRINT_H
#define DV_LOCKS_PRINT_H

#include "format.h"
#include "locks_read.h"

/* For people: a list of all, or who holds and who waits where there is a name. Text to free(), NULL when an allocation
 * fails. */
char *dv_locks_print(const dv_locks *locks);

/* The same as one JSON object on one line. */
char *dv_locks_json(const dv_locks *locks);

/* The same by a template: of the list of all, or of a name's holders and those that wait. */
extern const dv_format_kind dv_locks_formats[], dv_lock_formats[];
char *dv_locks_format(const dv_locks *locks, const dv_format *format);

#endif
