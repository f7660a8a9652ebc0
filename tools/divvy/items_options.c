/* The options that say where items come from. SPDX-License-Identifier: Apache-2.0 */
#include "items_options.h"

#include "znode/path.h"

const char *dv_items_given_wrong(const dv_items_given *given, bool required) {
    const char *reason;
    int ways = (given->file != NULL) + (given->command != NULL) + (given->znode != NULL) + (given->item_count > 0);
    if (required && ways == 0)
        return "the items are missing; give --items-from FILE, --items-from-command, --items-from-znode, or --item "
               "for each";
    if (ways > 1 && given->file && given->item_count > 0) return "give --items-from or --item, not both";
    if (ways > 1)
        return "give one of --items-from, --items-from-command, --items-from-znode and --item, and not several";
    if (given->command && !*given->command) return "--items-from-command cannot be empty";
    if (given->znode && dv_path_check(given->znode, &reason) != 0)
        return "--items-from-znode must be an absolute znode path such as /topics";
    return NULL;
}
