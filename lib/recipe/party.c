/* Party: the processes that are there. SPDX-License-Identifier: Apache-2.0 */
#include "divvy/party.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "recipe/listing.h"
#include "recipe/membership.h"
#include "znode/path.h"

enum { IDENTIFIER_BYTES_MAX = 64 * 1024, SHALLOW_IDENTIFIER_BYTES_MAX = 512 };
static const char DEEP_SUFFIX[] = "__party__";

struct divvy_party {
    dv_object object; /* first */
    dv_membership *membership;
    bool left, lost; /* lost: the node went with its session, and not by a delete */
    int failure;
    char *directory, *suffix, *data;
    int kind;
};

static int enter(divvy_party *party) {
    return dv_client_enter(party ? party->object.client : NULL);
}

static bool enter_quietly(const divvy_party *party) {
    return dv_client_enter_quietly(party ? party->object.client : NULL);
}

/* ---- life ---- */

static void free_party(divvy_party *party) {
    free(party->directory);
    free(party->suffix);
    free(party->data);
    free(party);
}

static void release(dv_object *object) {
    divvy_party *party = (divvy_party *)(void *)object;
    assert(!party->membership);
    free_party(party);
}

static void on_joined(void *owner, int64_t now) {
    (void)now;
    dv_client_changed(((divvy_party *)owner)->object.client);
}

static void on_failed(void *owner, int error, const char *path, int64_t now) {
    (void)now;
    divvy_party *party = owner;
    party->failure = error;
    dv_client_log(party->object.client, DIVVY_LOG_ERROR, "%s cannot be made: %s", path, divvy_strerror(error));
    dv_client_changed(party->object.client);
}

static void on_gone(void *owner, int64_t now) {
    (void)now;
    divvy_party *party = owner;
    party->membership = NULL;
    party->lost = party->object.client->end_error != 0;
    dv_client_changed(party->object.client);
    dv_object_unref(&party->object);
}

static int check_place(divvy_client *client, const char *path, int kind) {
    if (dv_client_end_error(client)) return dv_fail_plainly(client, dv_client_end_error(client));
    int error = dv_client_check_directory(client, "party", path);
    if (error) return error;
    if (kind != DIVVY_PARTY && kind != DIVVY_SHALLOW_PARTY)
        return dv_fail(client, DIVVY_EINVAL, "party: kind is %d, which is none of its values", kind);
    return 0;
}

static int check(divvy_client *client, const char *path, const char *identifier, int kind) {
    int error = check_place(client, path, kind);
    if (error || !identifier) return error;
    size_t most = kind == DIVVY_PARTY ? IDENTIFIER_BYTES_MAX : SHALLOW_IDENTIFIER_BYTES_MAX;
    error = dv_client_check_text(client, "party", "identifier", identifier, most);
    if (error) return error;
    if (kind == DIVVY_SHALLOW_PARTY && !dv_name_is_plain(identifier))
        return dv_fail(client, DIVVY_EINVAL, "party: the identifier \"%.100s\" cannot stand in a node's name",
                       identifier);
    return 0;
}

static int set_strings(divvy_party *party, divvy_client *client, const char *path, const char *identifier) {
    party->directory = dv_client_path(client, path);
    party->data = identifier ? strdup(identifier) : dv_client_default_identifier();
    if (!party->directory || !party->data) return DIVVY_ENOMEM;
    bool deep = party->kind == DIVVY_PARTY;
    int bytes = asprintf(&party->suffix, "%s%s", deep ? DEEP_SUFFIX : "-", deep ? "" : party->data);
    if (bytes < 0) party->suffix = NULL;
    return bytes < 0 ? DIVVY_ENOMEM : 0;
}

static int make(divvy_party **out, divvy_client *client, const char *path, const char *identifier, int kind) {
    static const dv_membership_events events = {
        .joined = on_joined, .failed = on_failed, .gone = on_gone, .lasting = true};
    divvy_party *party = calloc(1, sizeof *party);
    if (!party) return DIVVY_ENOMEM;
    party->kind = kind;
    int error = set_strings(party, client, path, identifier);
    if (!error)
        error = dv_membership_join(&party->membership, client, party->directory, party->suffix, party->data, &events,
                                   party);
    if (error) {
        free_party(party);
        return error;
    }
    dv_object_init(&party->object, client, release);
    dv_object_ref(&party->object); /* the membership's */
    *out = party;
    return 0;
}

int divvy_party_join(divvy_party **out, divvy_client *client, const char *path, const char *identifier, int kind) {
    if (out) *out = NULL;
    if (!out) return dv_fail(client, DIVVY_EINVAL, "party: out is NULL");
    int error = dv_client_enter(client);
    if (error) return error;
    error = check(client, path, identifier, kind);
    if (!error) {
        error = make(out, client, path, identifier, kind);
        if (error) dv_fail(client, error, "party: %s cannot be joined: %s", path, dv_client_why(client, error));
    }
    dv_client_unlock(client);
    return error;
}

static void leave(divvy_party *party) {
    if (party->membership && !party->left) dv_membership_leave(party->membership);
    party->left = true;
}

static void end(dv_object *object, bool waits) {
    (void)waits;
    leave((divvy_party *)(void *)object);
}

void divvy_party_destroy(divvy_party *party) {
    if (party) dv_object_end(&party->object, end, NULL);
}

void divvy_party_destroy_async(divvy_party *party, void (*gone)(void *user), void *user) {
    if (party) dv_object_end(&party->object, end, &(dv_farewell){gone, user});
}

static bool has_left(void *context) {
    return ((const divvy_party *)context)->membership == NULL;
}

int divvy_party_leave(divvy_party *party, int64_t timeout_ms) {
    int error = enter(party);
    if (error) return error;
    dv_object_hold(&party->object);
    divvy_client *client = party->object.client;
    error = timeout_ms < -1 ? DIVVY_EINVAL : 0;
    if (!error) leave(party);
    if (!error) error = dv_client_wait(client, timeout_ms, has_left, party);
    if (!error) error = dv_client_end_error(client);
    if (!error && party->lost) error = DIVVY_ELOST;
    if (error) dv_fail(client, error, "party leave: %s: %s", party->directory, dv_client_why(client, error));
    dv_object_let_go(&party->object);
    return error;
}

/* ---- listing ---- */

/* M3: a Party counts the nodes with its marker. */
static size_t choose_deep(const char *const *children, size_t count, const char **names) {
    size_t chosen = 0;
    for (size_t i = 0; i < count; i++) {
        if (strstr(children[i], DEEP_SUFFIX)) names[chosen++] = children[i];
    }
    qsort(names, chosen, sizeof *names, dv_name_compare);
    return chosen;
}

static size_t choose_shallow(const char *const *children, size_t count, const char **names) {
    if (count) memcpy(names, children, count * sizeof *names);
    qsort(names, count, sizeof *names, dv_name_compare);
    return count;
}

/* M3: the identifier follows the first '-'. */
static int add_identifier(void *strings, const char *name) {
    const char *dash = strchr(name, '-');
    return dv_strings_add(strings, dash ? dash + 1 : name);
}

static const dv_listing_kind *listing_of(int kind) {
    static const dv_listing_kind deep = {.choose = choose_deep, .take = dv_listing_add_data};
    static const dv_listing_kind shallow = {.choose = choose_shallow, .take_name = add_identifier};
    return kind == DIVVY_PARTY ? &deep : &shallow;
}

static bool is_over(const divvy_party *party) {
    return party->failure || party->left || !party->membership || dv_client_end_error(party->object.client);
}

static bool is_joined(void *context) {
    const divvy_party *party = context;
    return is_over(party) || (dv_membership_joined(party->membership) && dv_client_connected(party->object.client));
}

static int list_members(divvy_party *party, divvy_strings **out, int64_t timeout_ms) {
    divvy_client *client = party->object.client;
    dv_deadline deadline = dv_deadline_in(client, timeout_ms);
    int error;
    do { /* A connection that went away in between is waited for again, within the same time. */
        error = dv_client_wait(client, dv_deadline_left_ms(client, deadline), is_joined, party);
        if (!error && is_over(party)) {
            int end = dv_client_end_error(client);
            error = party->failure ? party->failure : end ? end : DIVVY_ESTATE;
        }
        if (!error) error = dv_listing_read_texts(client, party->directory, listing_of(party->kind), out, deadline);
        error = dv_request_outlived(client, error);
    } while (error == DIVVY_ECONNECTION && dv_deadline_left_ms(client, deadline) != 0);
    return error == DIVVY_ECONNECTION ? DIVVY_ETIMEDOUT : error;
}

int divvy_party_members(divvy_party *party, divvy_strings **out, int64_t timeout_ms) {
    if (out) *out = NULL;
    int error = enter(party);
    if (error) return error;
    dv_object_hold(&party->object);
    divvy_client *client = party->object.client;
    error = !out || timeout_ms < -1 ? DIVVY_EINVAL : list_members(party, out, timeout_ms);
    if (error) dv_fail(client, error, "party members: %s: %s", party->directory, dv_client_why(client, error));
    dv_object_let_go(&party->object);
    return error;
}

/* ---- listing from outside ---- */

static int list(divvy_client *client, const char *path, int kind, divvy_strings **out, int64_t timeout_ms) {
    char *directory = dv_client_path(client, path);
    if (!directory) return DIVVY_ENOMEM;
    int error = dv_listing_wait(client, directory, listing_of(kind), out, timeout_ms);
    free(directory);
    return error;
}

int divvy_party_list(divvy_client *client, const char *path, int kind, divvy_strings **out, int64_t timeout_ms) {
    if (out) *out = NULL;
    int error = dv_client_enter(client);
    if (error) return error;
    dv_client_ref(client);
    if (!out || timeout_ms < -1)
        error = dv_fail(client, DIVVY_EINVAL, "party list: out is NULL, or timeout_ms below -1");
    else error = check_place(client, path, kind);
    if (!error) {
        error = dv_client_in_callback(client) ? DIVVY_EDEADLK : list(client, path, kind, out, timeout_ms);
        if (error) dv_fail(client, error, "party list: %.200s: %s", path, dv_client_why(client, error));
    }
    dv_client_unlock(client);
    dv_client_unref(client);
    return error;
}

/* ---- our own node ---- */

static const char *own_path(const divvy_party *party) {
    return party->membership ? dv_membership_path(party->membership) : NULL;
}

int divvy_party_joined(const divvy_party *party) {
    return divvy_party_node(party, NULL, 0) > 0;
}

size_t divvy_party_node(const divvy_party *party, char *path, size_t path_bytes) {
    if (path && path_bytes) *path = '\0';
    if (!enter_quietly(party)) return 0;
    size_t bytes = dv_client_show_path(party->object.client, own_path(party), path, path_bytes);
    dv_client_unlock(party->object.client);
    return bytes;
}
