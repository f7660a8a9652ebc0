/* A member's report of the loads of its items, as it stands below P/loads. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D46. Pure: no I/O, no clock. What comes from ZooKeeper is hostile until it is parsed. */
#ifndef DV_LOAD_REPORT_H
#define DV_LOAD_REPORT_H

#include "plan/loads.h"

enum { DV_LOAD_REPORT_VERSION = 1, DV_LOAD_REPORT_BYTES_MAX = 64 * 1024 };

typedef struct {
    uint32_t item; /* its index in the set */
    uint8_t class;
} dv_item_class;

typedef struct {
    char unit[DV_LOAD_UNIT_BYTES_MAX + 1];
    uint8_t total; /* class of all that the member works on, also of what it does not list */
    size_t set_count;
    uint32_t set_crc;
    uint64_t set_hash;
    dv_item_class *items; /* each once, ascending */
    size_t count;
} dv_load_report;

/* Returns whether its numbering is that of the set. */
bool dv_load_report_is_of(const dv_load_report *report, const dv_plan_set *set);
/* Prints it within DV_LOAD_REPORT_BYTES_MAX: where there is no room for all, the items of the least classes are left
 * out. Returns a malloc'ed text with a NUL, or NULL when an allocation fails. */
char *dv_load_report_print(const dv_load_report *report);
/* Takes a text, which need not end in a NUL. Returns 0; DIVVY_EPROTO, with *fault (may be NULL) filled, for a later
 * version too; DIVVY_ENOMEM. On an error *out is empty. Allocates in proportion to the text. */
int dv_load_report_parse(dv_load_report *out, const char *text, size_t bytes, dv_plan_fault *fault);
/* Frees the list, and empties it. */
void dv_load_report_clear(dv_load_report *report);

#endif
