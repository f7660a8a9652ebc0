/* The display of locks and semaphores. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_LOCKS_PRINT_H
#define DV_LOCKS_PRINT_H

#include "locks_read.h"

/* For people: a list of all, or who holds and who waits where there is a name. Text to free(), NULL when an allocation
 * fails. */
char *dv_locks_print(const dv_locks *locks);

/* The same as one JSON object on one line. */
char *dv_locks_json(const dv_locks *locks);

#endif
