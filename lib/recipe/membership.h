/* Membership: one ephemeral node of ours, kept until its owner leaves. SPDX-License-Identifier: Apache-2.0
 *
 * Party and partitioner stand on it. docs/protocol.md, rules M1 to M3. */
#ifndef DV_MEMBERSHIP_H
#define DV_MEMBERSHIP_H

#include "client/client.h"

typedef struct dv_membership dv_membership;

/* Heard from the loop, never inside a call to the membership. */
typedef struct {
    void (*joined)(void *owner, int64_t now); /* our node is there; again after it was made again. May be NULL */
    void (*failed)(void *owner, int error, const char *path, int64_t now); /* it cannot be made; gone() follows */
    void (*gone)(void *owner, int64_t now);                                /* nothing of it is left: the last call */
    bool lasting; /* made again on the next session; joined() tells so */
    /* The directory was there, before an attempt to make our node, and had this pzxid. May be NULL. */
    void (*looked)(void *owner, int64_t pzxid);
    /* Our node has this czxid, by the answer to its create or to a read. May be NULL. */
    void (*seen)(void *owner, int64_t czxid);
    /* It is made under this name when the owner calls dv_membership_go_on() for it, now or later. May be NULL. */
    void (*named)(void *owner, const char *name, int64_t now);
    /* A lost create has left no node: somebody may have deleted it. Another attempt follows. May be NULL. */
    void (*missed)(void *owner);
} dv_membership_events;

/* Joins as `directory`/<prefix of ours><suffix>. Strings live until gone(). Returns 0, DIVVY_ELIMIT or DIVVY_ENOMEM. */
int dv_membership_join(dv_membership **out, divvy_client *client, const char *directory, const char *suffix,
                       const char *data, const dv_membership_events *events, void *owner);
/* Sets the data of nodes that are made from now on, after somebody deleted ours. `data` lives until gone(). */
void dv_membership_describe(dv_membership *membership, const char *data);
/* Makes our node, or another attempt at it. Not meant before named(). */
void dv_membership_go_on(dv_membership *membership, int64_t now);
/* gone() follows. A second call does nothing. */
void dv_membership_leave(dv_membership *membership);
/* The name of our node as it is now, or is being made. */
const char *dv_membership_name(const dv_membership *membership);
/* The same as a path, or NULL while our node is not there. */
const char *dv_membership_path(const dv_membership *membership);
bool dv_membership_joined(const dv_membership *membership);

#endif
