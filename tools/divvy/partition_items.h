/* The items of divvy partition: read again, and followed. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PARTITION_ITEMS_H
#define DV_PARTITION_ITEMS_H

#include "connection.h"
#include "items_feed.h"
#include "partition_options.h"

typedef struct {
    const dv_partition_options *options;
    const dv_session *session;
    divvy_partitioner *p; /* NULL: there is none yet */
    dv_items_feed feed;
    bool refused; /* the list that the feed told last; why was told */
} dv_partition_items;

/* Opens the feed; what is above it is set, and the session is open. Returns 0, or the exit code with the reason
 * told. */
int dv_partition_items_open(dv_partition_items *items);

/* After the session was closed. */
void dv_partition_items_close(dv_partition_items *items);

/* Returns the items to join with, or an empty list while the feed has none. */
const dv_item_list *dv_partition_items_list(const dv_partition_items *items);

/* Returns whether SIGHUP has the items read again, rather than end the member. */
bool dv_partition_items_can_be_read_again(const dv_partition_options *options);

/* Reads the items again. If they or the moment are wrong, a message says so, and all stays as it was. */
void dv_partition_items_read_again(dv_partition_items *items);

/* To be called in each round: has the pool divide what the feed has become. */
void dv_partition_items_step(dv_partition_items *items);

#endif
