/* Listing: the children of a directory, and the data of each. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_LISTING_H
#define DV_LISTING_H

#include "recipe/request.h"

typedef struct {
    /* Picks the children that count, in order, into `names`, which has room for all. Returns how many they are. */
    size_t (*choose)(const char *const *children, size_t count, const char **names);
    /* Tells what a child stands for by its name; NULL: its data tell it, and a child that has gone is left out. */
    const char *(*shown)(const char *name);
    bool may_be_missing; /* a directory that is not there is an empty one */
} dv_listing_kind;

/* Lists once, with the client lock held. Returns 0 with *out for divvy_strings_free(), DIVVY_ENOMEM, the error of an
 * answer, or that of dv_client_wait(). */
int dv_listing_ask(divvy_client *client, const char *directory, const dv_listing_kind *kind, dv_deadline deadline,
                   divvy_strings **out);

#endif
