/**
 * @file party.h
 * Party: the processes that are there. SPDX-License-Identifier: Apache-2.0
 *
 * Each member keeps one ephemeral node, so that the dead leave by themselves. Both kinds share a path with kazoo's
 * recipes of the same name.
 */
#ifndef DIVVY_PARTY_H
#define DIVVY_PARTY_H

#include "divvy/client.h"

DIVVY_EXTERN_C_BEGIN

/** Membership of one process in a party. Opaque. Lifetime: rules 2 and 6 of client.h. */
typedef struct divvy_party divvy_party;

enum {
    DIVVY_PARTY,        /**< the identifier is the node's data: any bytes; listing costs a read for each member */
    DIVVY_SHALLOW_PARTY /**< the identifier is part of the node's name: listing is one read */
};

/**
 * Joins the party at `path`, whose missing parents are created.
 *
 * Returns at once; the node is made when a server is there, and again should somebody else delete it.
 * Ownership: strings are copied. On success release *out with divvy_party_destroy(), which leaves the party too.
 * Thread: any.
 * Source: kazoo.recipe.party.Party and ShallowParty; docs/protocol.md, rules M1 to M3.
 *
 * @param out        [out] the membership
 * @param client     need not be connected yet
 * @param path       absolute
 * @param identifier the name this member goes by; NULL: host-pid-number
 * @param kind       DIVVY_PARTY or DIVVY_SHALLOW_PARTY
 * @return 0, or
 *   DIVVY_EINVAL  a NULL pointer, a path that ZooKeeper refuses or "/" without a chroot, an empty identifier, an
 *                 unknown kind; for DIVVY_SHALLOW_PARTY an identifier that cannot stand in a node's name
 *   DIVVY_E2BIG   the identifier is longer than 64 KiB, or 512 bytes for DIVVY_SHALLOW_PARTY
 *   DIVVY_ELIMIT  the session's budget of ephemeral nodes is used up
 *   DIVVY_ENOMEM  an allocation failed
 *   DIVVY_EFORK   called in the child of a fork
 *   DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH  the client has ended
 */
DIVVY_API int divvy_party_join(divvy_party **out, divvy_client *client, const char *path, const char *identifier,
                               int kind);

/**
 * Returns the members of the party now. This call waits first, in its time, until our own node is made and among them.
 *
 * Ownership: release *out with divvy_strings_free(). Order: by node name. Equal identifiers are all listed.
 * Thread: any; drives the loop itself in manual mode.
 * @return 0, or
 *   DIVVY_ETIMEDOUT  no answer in time
 *   DIVVY_EACCES     the access list denies creating or reading
 *   DIVVY_ENOENT     the chroot of an attached client's handle does not exist
 *   DIVVY_ESTATE     the party was left
 *   DIVVY_ELOST, DIVVY_EAUTH, DIVVY_ECLOSED  the client has ended
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     an argument is NULL, or timeout_ms below -1; or the path lies below an ephemeral node
 *   DIVVY_ENOMEM     an allocation failed
 */
DIVVY_API int divvy_party_members(divvy_party *party, divvy_strings **out, int64_t timeout_ms);

/**
 * Returns the members of a party without joining it, whether it is a party of divvy's or of kazoo's.
 *
 * Ownership: release *out with divvy_strings_free(). It is empty when nobody is there, and when there is no such path.
 *   Order: by node name. Equal identifiers are all listed.
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * Source: kazoo.recipe.party; docs/protocol.md, rule M3.
 *
 * @param path       absolute
 * @param kind       DIVVY_PARTY or DIVVY_SHALLOW_PARTY
 * @param timeout_ms -1: for ever
 * @return 0, or
 *   DIVVY_ETIMEDOUT  no answer in time
 *   DIVVY_EACCES     the access list denies reading
 *   DIVVY_ELOST, DIVVY_EAUTH, DIVVY_ECLOSED  the client has ended
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     a NULL pointer, a path that ZooKeeper refuses or "/" without a chroot, an unknown kind, or
 *                    timeout_ms below -1
 *   DIVVY_ENOMEM     an allocation failed
 */
DIVVY_API int divvy_party_list(divvy_client *client, const char *path, int kind, divvy_strings **out,
                               int64_t timeout_ms);

/**
 * Returns whether our own node is in the party now, as far as this process knows: not before it is made, nor from the
 * loss of the session until it is made again. Thread: any, callbacks included; sends nothing.
 * @return 1 or 0; 0 for NULL, and in the child of a fork
 */
DIVVY_API int divvy_party_joined(const divvy_party *party);

/**
 * Tells the path of our node in the party, as the client knows paths: without the chroot.
 *
 * Thread: any, callbacks included; sends nothing.
 * @param path       [out] may be NULL; at most path_bytes with the NUL; "" where there is none
 * @param path_bytes of `path`
 * @return the bytes of the path without the NUL, also when it did not fit; 0 when there is no node now, for NULL, and
 *   in the child of a fork
 */
DIVVY_API size_t divvy_party_node(const divvy_party *party, char *path, size_t path_bytes);

/**
 * Leaves: deletes our node, and waits for that up to timeout_ms. It is deleted later by itself if the time passes.
 * Thread: any; drives the loop itself in manual mode.
 * @return 0 when the node is gone (also when it was gone before), or
 *   DIVVY_ETIMEDOUT  the deletion was not confirmed in time
 *   DIVVY_ELOST      the session is lost, and the servers delete the node
 *   DIVVY_ECLOSED, DIVVY_EAUTH  the client has ended
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     party is NULL, or timeout_ms below -1
 */
DIVVY_API int divvy_party_leave(divvy_party *party, int64_t timeout_ms);

/** Leaves in the background and releases the object; NULL is allowed. Thread: any. */
DIVVY_API void divvy_party_destroy(divvy_party *party);

/**
 * Does the same as divvy_party_destroy() without waiting for a callback, whatever runs, in whatever thread: for
 * finalizers, and for threads that hold a lock which a callback needs. `gone` is called once, as the last callback of
 * the party, after those that ran or were due: then the callbacks' `user` may be freed. It is called when the client
 * closes, too. On a client that was closed before it is called inside this call, unless a callback runs.
 * Thread: as divvy_party_destroy().
 * @param gone may be NULL; not called where the party is NULL, and in the child of a fork
 * @param user handed to gone
 */
DIVVY_API void divvy_party_destroy_async(divvy_party *party, void (*gone)(void *user), void *user);

DIVVY_EXTERN_C_END

#endif
