/* Judged: which children of a semaphore's pool were seen to be leases. SPDX-License-Identifier: Apache-2.0
 *
 * A list does not tell which are (docs/protocol.md, E2). A judgement of a child holds while the child stands there. */
#ifndef DV_JUDGED_H
#define DV_JUDGED_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char *name;
    bool is_lease, stays;
} dv_verdict;

/* Zeroed: nothing is known. */
typedef struct {
    dv_verdict *verdicts; /* by name */
    size_t count;
} dv_judged;

/* Remembers what was seen of a child, if there is memory. */
void dv_judged_note(dv_judged *judged, const char *name, bool is_lease);
bool dv_judged_knows(const dv_judged *judged, const char *name);
/* Fills `leases` with the names not seen to be none, and forgets those not in `names`. Returns how many there are. */
size_t dv_judged_sift(dv_judged *judged, const char *const *names, size_t count, const char **leases);
void dv_judged_clear(dv_judged *judged);

#endif
