/* Listing: the children of a directory, and the data of each. SPDX-License-Identifier: Apache-2.0
 *
 * In waiting calls, with the client lock held. */
#ifndef DV_LISTING_H
#define DV_LISTING_H

#include "recipe/fetch.h"

typedef struct {
    /* Picks the children that count, in order, into `names`, and returns how many. NULL: all count. */
    size_t (*choose)(const char *const *children, size_t count, const char **names);
    /* Takes one that was chosen, by its data or, where these are not read, by its name. An error ends the listing. */
    dv_fetch_take_fn take;
    int (*take_name)(void *owner, const char *name);
} dv_listing_kind;

/* Lists once. Returns 0, DIVVY_ENOENT (no directory), DIVVY_ENOMEM, or the error of an answer, of taking or waiting. */
int dv_listing_read(divvy_client *client, const char *directory, const dv_listing_kind *kind, void *owner,
                    dv_deadline deadline);
/* The same, to *out for divvy_strings_free(). A directory that is missing is empty. */
int dv_listing_read_texts(divvy_client *client, const char *directory, const dv_listing_kind *kind, divvy_strings **out,
                          dv_deadline deadline);
/* The same as dv_request_until_answered(). */
int dv_listing_wait(divvy_client *client, const char *directory, const dv_listing_kind *kind, divvy_strings **out,
                    int64_t timeout_ms);
/* For `take`: adds the data to a list of texts. A child that has gone is left out. */
int dv_listing_add_data(void *strings, const char *path, const dv_reply *reply, int64_t now);

#endif
