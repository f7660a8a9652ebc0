/* Record: what a lease, or a contender for one, says of its owner. SPDX-License-Identifier: Apache-2.0
 *
 * JSON; kazoo writes an identifier and nothing else. docs/protocol.md, E11. */
#ifndef DV_RECORD_H
#define DV_RECORD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Beyond these nothing is parsed: a parser that allocates freely is not to be fed by strangers. */
enum { DV_RECORD_BYTES_MAX = 16 * 1024, DV_RECORD_DEPTH_MAX = 8 };

typedef struct {
    char *identifier, *host, *time; /* malloc'ed; host and time "" where nothing is said of them */
    int64_t pid;                    /* 0: nothing is said of it */
    uint32_t count;                 /* 1 where nothing is said of it */
} dv_record;

typedef enum { DV_RECORD_GOOD, DV_RECORD_BAD, DV_RECORD_OUT_OF_MEMORY } dv_record_state;

/* Adds who writes, and where and since when it runs: "id", "host", "pid", "since". Returns false without memory. */
bool dv_record_add_process(cJSON *json, const char *identifier);
/* malloc'ed; NULL when an allocation fails. */
char *dv_record_print(const char *identifier, uint32_t count);
/* `ours`: the node's name says that divvy made it, so that it must be JSON. Only a good one is to be freed. */
dv_record_state dv_record_parse(const char *data, size_t data_bytes, bool ours, dv_record *out);
void dv_record_free(dv_record *record);

#endif
