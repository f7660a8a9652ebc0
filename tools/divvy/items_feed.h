/* A feed of items: a list that changes, from a command that runs again and again, or from a znode's children.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ITEMS_FEED_H
#define DV_ITEMS_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "client/client.h"
#include "items_command.h"
#include "recipe/patient_watch.h"

typedef struct {
    const char *command, *znode; /* one of them; both NULL: nothing is followed */
    int64_t interval_ms;         /* from one start of the command to the next */
    divvy_client *client;
    dv_item_list list; /* the last good one */
    bool fresh;        /* it is another than before, or is to be told again */
    bool again;        /* so it will be when the command has told it next */
    bool failed;       /* so the last look at it ended; why was told */
    int64_t due_ms;    /* when to begin the next look, by dv_session_now_ms() */
    int64_t again_ms;  /* when to tell the list once more; 0: no more */
    dv_shell_run run;
    char *path; /* the znode at the servers */
    dv_patient_watch *watch;
    dv_item_list read; /* from the znode, not looked at yet */
    int error;         /* of the watch, that was told; 0: none */
} dv_items_feed;

/* Opens a feed whose fields above `client` are set, and all others zero. `client` outlives the feed's last step, but
 * not the feed: the feed is closed after it. Returns 0, or -1 when an allocation failed. */
int dv_items_feed_open(dv_items_feed *feed, divvy_client *client);
void dv_items_feed_close(dv_items_feed *feed);

/* Does what is due. Returns whether the list is a new one, once for each. */
bool dv_items_feed_step(dv_items_feed *feed);

/* Looks again at once, and tells the list even if it is the same. */
void dv_items_feed_hurry(dv_items_feed *feed);

/* Tells the list once more after a while, unless there is another before: it could not be used. */
void dv_items_feed_tell_again(dv_items_feed *feed);

/* For poll(2); -1: nothing. */
int dv_items_feed_fd(const dv_items_feed *feed);
int64_t dv_items_feed_next_ms(const dv_items_feed *feed);

/* Returns what messages call it. */
const char *dv_items_feed_name(const dv_items_feed *feed);

/* Returns the items that children of a znode stand for: names are encoded as those of items are (docs/protocol.md,
 * N4). Returns 0, or -1 when it was told what is wrong. */
int dv_items_of_children(dv_item_list *list, const char *const *children, size_t count, const char *shown);

#endif
