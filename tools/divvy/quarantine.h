/* Quarantine: items whose commands fail again and again are paused. SPDX-License-Identifier: Apache-2.0
 *
 * A poisonous item would end the commands of one member after the other. So the member that counts too many failures
 * has the pool pause the item (divvy_pool_pause(), docs/protocol.md, D51), with the reason. That is a request on the
 * client's loop: the deadline of the commands must be moved on while it is under way. One that cannot be written is
 * told, and made again at the next failure.
 */
#ifndef DV_QUARANTINE_H
#define DV_QUARANTINE_H

#include "partition_options.h"
#include "supervise_child.h"
#include "workers/failures.h"

struct dv_pausing;

typedef struct {
    const dv_partition_options *options;
    divvy_client *client;
    divvy_partitioner *p; /* NULL: there is none yet */
    dv_failures failures;
    struct dv_pausing *pausing; /* the items that are on their way */
} dv_quarantine;

/* Opens it; `options` is set. Nothing is counted where they ask for no quarantine. */
void dv_quarantine_open(dv_quarantine *quarantine, divvy_client *client);

/* Gives up what is on its way. While the client is open. */
void dv_quarantine_close(dv_quarantine *quarantine);

/* Takes notice of what has happened to the command of an item. */
void dv_quarantine_child(dv_quarantine *quarantine, const dv_child_event *event);

/* Tells what has come of requests. To be called in each round. */
void dv_quarantine_step(dv_quarantine *quarantine);

/* When there is something to do by the clock: in so many ms; -1: never. */
int64_t dv_quarantine_next_ms(const dv_quarantine *quarantine);

#endif
