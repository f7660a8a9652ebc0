/* Entry: one service as it stands in ZooKeeper. SPDX-License-Identifier: Apache-2.0
 *
 * One JSON object, hostile until it is parsed. Pure: no I/O, no clock, no warnings. docs/protocol.md, V2 to V5. */
#ifndef DV_ENTRY_H
#define DV_ENTRY_H

#include <cjson/cJSON.h>
#include <stdatomic.h>

#include "znode/znode.h"

enum {
    DV_ENTRY_BYTES_MAX = 128 * 1024,
    DV_ENTRY_DEPTH_MAX = 32,
    DV_ENTRY_VALUES_MAX = 10000,
    DV_ENTRY_NAME_BYTES_MAX = 4096, /* of a role or an id, before and after encoding */
};

enum {
    DV_ENTRY_HAS_TTL = 1,   /* without one it lives for as long as its node does */
    DV_ENTRY_DISABLED = 2,  /* Curator's "enabled": false */
    DV_ENTRY_PRESERVED = 4, /* W16: its node has gone; lookups still return it, after all others */
};

/* An entry, shared by reference. It is immutable once it is made, but one who has it alone may take `json` out and set
 * it NULL. */
typedef struct {
    atomic_uint refs;
    cJSON *json;           /* the whole */
    char *role_node;       /* the name of its role's node, */
    char *id_node;         /* and of its own; encoded (znode/path.h) */
    const char *role, *id; /* as `json` says; live as long as it does */
    double load;           /* 0 where nothing is said of it; never NaN */
    double ttl_s;          /* > 0; meant with DV_ENTRY_HAS_TTL */
    unsigned flags;
    dv_stat stat; /* of the node when it was read: mtime_ms, version, czxid, mzxid, ephemeral_owner */
} dv_entry;

/* Parses an entry. Returns 0 and *out, to be freed; DIVVY_EPROTO with *reason, a static text that completes "the entry
 * ..."; or DIVVY_ENOMEM. `data` NULL: no data. The names are those of nodes, as children reads give them. */
int dv_entry_parse(dv_entry **out, const char *role_node, const char *id_node, const void *data, size_t data_bytes,
                   const dv_stat *stat, const char **reason);
/* Thread: any. */
dv_entry *dv_entry_ref(dv_entry *entry);
/* Gives a reference up; the last one frees the entry. NULL is allowed. Thread: any. */
void dv_entry_free(dv_entry *entry);

typedef struct {
    dv_entry **list;
    size_t count, room;
} dv_entries;

/* Takes the reference. Returns false, and takes nothing, when an allocation fails. */
bool dv_entries_add(dv_entries *entries, dv_entry *entry);
/* Gives the references up, too. */
void dv_entries_free(dv_entries *entries);

/* V4: returns whether it is healthy, or preserved. `server_now_ms` is the latest that the servers' clock can show. */
bool dv_entry_is_healthy(const dv_entry *entry, int64_t server_now_ms);
/* Returns when it is as old as its ttl, by the servers' clock; INT64_MAX without one. */
int64_t dv_entry_expiry_ms(const dv_entry *entry);
/* Returns whether it is as old as its ttl, or older, so that it can be replaced; never without one. */
bool dv_entry_has_expired(const dv_entry *entry, int64_t server_now_ms);
/* V14: returns whether it is older than so many ttls; never without one. `server_now_ms`: the earliest (V4). */
bool dv_entry_is_older(const dv_entry *entry, double ttls, int64_t server_now_ms);

/* For qsort() of dv_entry pointers: those that are there first, then by load, then by czxid, then by names. */
int dv_entry_compare(const void *a, const void *b);

/* Returns whether the bytes are within the bounds of an entry, before any parser sees them; *reason as above. */
bool dv_entry_within_bounds(const char *data, size_t data_bytes, const char **reason);

#endif
