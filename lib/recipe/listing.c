/* Listing: the children of a directory, and the data of each. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/listing.h"

#include <stdlib.h>
#include <string.h>

#include "znode/path.h"

enum { READS_MAX = 64 }; /* under way at a time */

typedef struct listing listing;

typedef struct {
    listing *listing;
    char *path;
    char *text; /* what the child stands for; NULL: it has gone */
} listed_child;

/* It outlives the call that asked for it if that runs out of time. */
struct listing {
    dv_object *object;
    const char *directory;
    const dv_listing_kind *kind;
    unsigned refs;
    bool done, abandoned;
    int error;
    listed_child *children;
    size_t count, asked, answered;
};

static void unref(listing *l) {
    if (--l->refs) return;
    for (size_t i = 0; i < l->count; i++) {
        free(l->children[i].path);
        free(l->children[i].text);
    }
    free(l->children);
    dv_object_unref(l->object);
    free(l);
}

static void read_more(listing *l);

static void on_data(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    listed_child *child = context;
    listing *l = child->listing;
    l->answered++;
    if (reply->error == 0) {
        child->text = strndup(reply->data ? reply->data : "", reply->data_bytes);
        if (!child->text) l->error = DIVVY_ENOMEM;
    } else if (reply->error != DIVVY_ENOENT) {
        l->error = reply->error;
    }
    read_more(l);
    unref(l);
}

static void read_more(listing *l) {
    while (!l->error && !l->abandoned && l->asked < l->count && l->asked - l->answered < READS_MAX) {
        listed_child *child = &l->children[l->asked];
        l->error = dv_znode_get(l->object->client->znode, child->path, NULL, on_data, child);
        if (l->error) break;
        l->asked++;
        l->refs++;
    }
    if (l->done || l->asked != l->answered) return;
    l->done = true;
    dv_client_changed(l->object->client);
}

static bool take_child(listing *l, const char *name) {
    listed_child *child = &l->children[l->count++];
    child->listing = l;
    if (l->kind->shown) child->text = strdup(l->kind->shown(name));
    else child->path = dv_path_join(l->directory, name);
    return child->text || child->path;
}

static int take_children(listing *l, const dv_reply *reply) {
    const char **names = calloc(reply->child_count + 1, sizeof *names);
    l->children = calloc(reply->child_count + 1, sizeof *l->children);
    int error = names && l->children ? 0 : DIVVY_ENOMEM;
    size_t count = error ? 0 : l->kind->choose(reply->children, reply->child_count, names);
    for (size_t i = 0; i < count && !error; i++) {
        if (!take_child(l, names[i])) error = DIVVY_ENOMEM;
    }
    free(names);
    if (l->kind->shown) l->asked = l->answered = l->count; /* Nothing is left to be read. */
    return error;
}

static void on_children(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    listing *l = context;
    if (reply->error == 0) l->error = take_children(l, reply);
    else if (reply->error != DIVVY_ENOENT || !l->kind->may_be_missing) l->error = reply->error;
    read_more(l);
    unref(l);
}

static bool is_done(void *context) {
    return ((const listing *)context)->done;
}

static int hand_over(const listing *l, divvy_strings **out) {
    divvy_strings *strings = dv_strings_new();
    int error = strings ? 0 : DIVVY_ENOMEM;
    for (size_t i = 0; i < l->count && !error; i++) {
        if (l->children[i].text) error = dv_strings_add(strings, l->children[i].text);
    }
    if (error) divvy_strings_free(strings);
    else *out = strings;
    return error;
}

int dv_listing_ask(dv_object *object, const char *directory, const dv_listing_kind *kind, int64_t timeout_ms,
                   divvy_strings **out) {
    divvy_client *client = object->client;
    listing *l = calloc(1, sizeof *l);
    if (!l) return DIVVY_ENOMEM;
    *l = (listing){.object = object, .directory = directory, .kind = kind, .refs = 1};
    dv_object_ref(object);
    int error = dv_znode_children(client->znode, directory, NULL, on_children, l);
    if (!error) {
        l->refs++;
        error = dv_client_wait(client, timeout_ms, is_done, l);
    }
    if (!error) error = l->error;
    if (!error) error = hand_over(l, out);
    l->abandoned = true;
    unref(l);
    return error;
}
