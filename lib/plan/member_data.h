/* A member's description of itself, as node data: docs/protocol.md, D31. Pure. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_MEMBER_DATA_H
#define DV_MEMBER_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/tags.h"

enum { DV_WEIGHT = 1000 }; /* of who says nothing of it */

/* Beyond these nothing is parsed: a parser that allocates freely is not to be fed by strangers. */
enum { DV_MEMBER_DATA_BYTES_MAX = 16 * 1024, DV_MEMBER_DATA_DEPTH_MAX = 8 };

typedef struct {
    bool is_static;
    uint32_t weight;
    char *zone; /* malloc'ed; "": none */
    int64_t rejoin_delay_ms;
    char tags[DV_TAGS_BYTES]; /* "": none */
    uint32_t cap;             /* it takes at most so many items; 0: no limit */
    int64_t first_czxid;      /* of the first node that this member made, or a bound below it; 0: this is the first */
} dv_member_facts;

/* malloc'ed; NULL when an allocation fails. A zone is UTF-8 of DV_PLAN_ZONE_BYTES_MAX at most. */
char *dv_member_data_print(const char *identifier, const dv_member_facts *facts);
/* Sets the first_czxid of a text that was printed with one. */
void dv_member_data_set_first(char *text, int64_t first_czxid);
/* Fills in defaults for what is not said (D31). False: an allocation failed; else the zone is the caller's. */
bool dv_member_data_parse(const char *data, size_t data_bytes, dv_member_facts *out);

#endif
