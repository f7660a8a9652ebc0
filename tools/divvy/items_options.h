/* The options that say where items come from, besides --items-from and --item. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ITEMS_OPTIONS_H
#define DV_ITEMS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum { DV_ITEMS_INTERVAL_MS = 30000 };

/* Entries of a subcommand's option table; `field` is the place in the struct `type` of values. */
#define DV_ITEMS_OPTION_COMMAND(type, field)                                                                          \
    {                                                                                                                 \
        .name = "items-from-command", .argument = "COMMAND", .kind = DV_OPTION_TEXT, .offset = offsetof(type, field), \
        .help = "the items are what this shell command prints, as in a FILE; it is run again\n"                       \
                "and again, with 60s for each run"                                                                    \
    }
#define DV_ITEMS_OPTION_INTERVAL(type, field)                                                                          \
    {                                                                                                                  \
        .name = "items-interval", .argument = "DURATION", .kind = DV_OPTION_DURATION, .offset = offsetof(type, field), \
        .help = "how long after its last start that command is run again (default: 30s)", .min_ms = 100,               \
        .max_ms = 24 * 3600 * 1000                                                                                     \
    }
#define DV_ITEMS_OPTION_ZNODE(type, field)                                                                       \
    {                                                                                                            \
        .name = "items-from-znode", .argument = "PATH", .kind = DV_OPTION_TEXT, .offset = offsetof(type, field), \
        .help = "the items are the names of this znode's children"                                               \
    }

/* The items of a call. */
typedef struct {
    const char *file, *command, *znode;
    size_t item_count; /* of --item */
} dv_items_given;

/* Returns what is wrong with it, or NULL. `required`: there have to be some. */
const char *dv_items_given_wrong(const dv_items_given *given, bool required);

#endif
