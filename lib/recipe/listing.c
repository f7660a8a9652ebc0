/* Listing: the children of a directory, and the data of each. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/listing.h"

#include <stdlib.h>
#include <string.h>

#include "recipe/fetch.h"

static int add_data(void *strings, const char *path, const dv_reply *reply, int64_t now) {
    (void)path, (void)now;
    if (reply->error) return reply->error == DIVVY_ENOENT ? 0 : reply->error;
    char *text = strndup(reply->data ? reply->data : "", reply->data_bytes);
    int error = text ? dv_strings_add(strings, text) : DIVVY_ENOMEM;
    free(text);
    return error;
}

static int add_names(divvy_strings *strings, const dv_listing_kind *kind, const char *const *names, size_t count) {
    int error = 0;
    for (size_t i = 0; i < count && !error; i++) error = dv_strings_add(strings, kind->shown(names[i]));
    return error;
}

int dv_listing_ask(divvy_client *client, const char *directory, const dv_listing_kind *kind, dv_deadline deadline,
                   divvy_strings **out) {
    dv_request *answer = dv_request_send(client, &(dv_op){.kind = DV_CHILDREN, .path = directory});
    int error = dv_request_wait(answer, deadline);
    if (error == DIVVY_ENOENT && kind->may_be_missing) error = 0;
    divvy_strings *strings = error ? NULL : dv_strings_new();
    const char **names = error ? NULL : calloc(answer->name_count + 1, sizeof *names);
    if (!error && (!strings || !names)) error = DIVVY_ENOMEM;
    size_t count = error ? 0 : kind->choose((const char *const *)answer->names, answer->name_count, names);
    if (kind->shown) error = error ? error : add_names(strings, kind, names, count);
    else if (!error) error = dv_fetch_wait(client, directory, names, count, add_data, strings, deadline);
    free(names);
    dv_request_drop(answer);
    if (error) divvy_strings_free(strings);
    else *out = strings;
    return error;
}
