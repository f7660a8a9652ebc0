/* Listing: the children of a directory, and the data of each. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/listing.h"

#include <stdlib.h>
#include <string.h>

int dv_listing_add_data(void *strings, const char *path, const dv_reply *reply, int64_t now) {
    (void)path, (void)now;
    if (reply->error) return reply->error == DIVVY_ENOENT ? 0 : reply->error;
    char *text = strndup(reply->data ? reply->data : "", reply->data_bytes);
    int error = text ? dv_strings_add(strings, text) : DIVVY_ENOMEM;
    free(text);
    return error;
}

static size_t choose_all(const char *const *children, size_t count, const char **names) {
    if (count) memcpy(names, children, count * sizeof *names);
    return count;
}

int dv_listing_read(divvy_client *client, const char *directory, const dv_listing_kind *kind, void *owner,
                    dv_deadline deadline) {
    dv_request *list = dv_request_send(client, &(dv_op){.kind = DV_CHILDREN, .path = directory});
    int error = dv_request_wait(list, deadline);
    const char **names = error ? NULL : calloc(list->name_count + 1, sizeof *names);
    if (!error && !names) error = DIVVY_ENOMEM;
    if (!error) {
        size_t (*choose)(const char *const *, size_t, const char **) = kind->choose ? kind->choose : choose_all;
        size_t count = choose((const char *const *)list->names, list->name_count, names);
        if (kind->take) error = dv_fetch_wait(client, directory, names, count, kind->take, owner, deadline);
        for (size_t i = 0; kind->take_name && i < count && !error; i++) error = kind->take_name(owner, names[i]);
    }
    free(names);
    dv_request_drop(list);
    return error;
}

int dv_listing_read_texts(divvy_client *client, const char *directory, const dv_listing_kind *kind, divvy_strings **out,
                          dv_deadline deadline) {
    divvy_strings *strings = dv_strings_new();
    int error = strings ? dv_listing_read(client, directory, kind, strings, deadline) : DIVVY_ENOMEM;
    if (error == DIVVY_ENOENT) error = 0;
    if (error) divvy_strings_free(strings);
    else *out = strings;
    return error;
}

typedef struct {
    divvy_client *client;
    const char *directory;
    const dv_listing_kind *kind;
    divvy_strings **out;
} listing;

static int read_texts(void *context, dv_deadline deadline) {
    const listing *l = context;
    return dv_listing_read_texts(l->client, l->directory, l->kind, l->out, deadline);
}

int dv_listing_wait(divvy_client *client, const char *directory, const dv_listing_kind *kind, divvy_strings **out,
                    int64_t timeout_ms) {
    listing l = {client, directory, kind, out};
    return dv_request_until_answered(client, dv_deadline_in(client, timeout_ms), read_texts, &l);
}
