/* The items of divvy partition: read again, and followed. SPDX-License-Identifier: Apache-2.0 */
#include "partition_items.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include <divvy/divvy.h>

#include "command.h"

int dv_partition_items_open(dv_partition_items *items) {
    const dv_partition_options *o = items->options;
    items->feed =
        (dv_items_feed){.command = o->items_command, .znode = o->items_znode, .interval_ms = o->items_interval_ms};
    return dv_items_feed_open(&items->feed, items->session->client) == 0 ? 0 : dv_command_out_of_memory();
}

void dv_partition_items_close(dv_partition_items *items) {
    dv_items_feed_close(&items->feed);
}

bool dv_partition_items_can_be_read_again(const dv_partition_options *options) {
    return options->items_command || options->items_znode ||
           (options->items_from && strcmp(options->items_from, "-") != 0);
}

/* Returns whether it could be asked for. */
static bool ask_for(dv_partition_items *items, const dv_item_list *list, const char *shown) {
    bool asked = divvy_partitioner_set_items(items->p, list->names, list->count) == 0;
    if (asked)
        dv_command_tell(DIVVY_LOG_INFO, "%s: asked for its %zu items to be divided by all members of %s", shown,
                        list->count, items->options->path);
    else if (!items->refused)
        dv_command_tell(DIVVY_LOG_WARN, "%s: the items stay as they are: %s", shown,
                        divvy_client_error(items->session->client));
    return asked;
}

/* Only a regular file is sure to be read without waiting. */
static void read_file(dv_partition_items *items, const char *file) {
    dv_item_list list;
    struct stat status;
    if (stat(file, &status) == 0 && !S_ISREG(status.st_mode)) {
        dv_command_tell(DIVVY_LOG_WARN, "%s: is no file that can be read twice; the items stay as they are", file);
        return;
    }
    if (dv_item_list_read(&list, file) != 0) {
        dv_command_tell(DIVVY_LOG_WARN, "%s: the items stay as they are", file);
        return;
    }
    ask_for(items, &list, file);
    dv_item_list_free(&list);
}

void dv_partition_items_read_again(dv_partition_items *items) {
    if (items->options->items_from) read_file(items, items->options->items_from);
    else dv_items_feed_hurry(&items->feed);
}

const dv_item_list *dv_partition_items_list(const dv_partition_items *items) {
    return items->options->list.count ? &items->options->list : &items->feed.list;
}

/* A member that does not follow plans may go; a refusal is told once until then. */
void dv_partition_items_step(dv_partition_items *items) {
    if (!dv_items_feed_step(&items->feed) || !items->p) return;
    items->refused = !ask_for(items, &items->feed.list, dv_items_feed_name(&items->feed));
    if (items->refused) dv_items_feed_tell_again(&items->feed);
}
