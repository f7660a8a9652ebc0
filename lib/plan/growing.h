/* A text that grows while it is printed. SPDX-License-Identifier: Apache-2.0
 *
 * After a failed allocation later text is lost, and dv_grown() says so: a printer asks once, at its end. */
#ifndef DV_PLAN_GROWING_H
#define DV_PLAN_GROWING_H

#include "plan/text.h"

typedef struct {
    char *bytes;
    size_t count, room;
    bool failed; /* an allocation has failed */
} dv_growing;

/* Returns room for so many bytes more, which the caller fills and counts, or NULL. */
char *dv_grow_room(dv_growing *g, size_t more);
void dv_grow(dv_growing *g, const char *bytes, size_t count);
void dv_grow_text(dv_growing *g, const char *text);
/* Adds up to 255 bytes. */
void dv_grow_format(dv_growing *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a string of JSON (D2): as it is, but for the quote, the backslash and control characters. */
void dv_grow_string(dv_growing *g, const char *text);
/* Adds an item by the name of its node (D4, N2), which is UTF-8 whatever the item is. */
void dv_grow_item(dv_growing *g, const char *name);
/* Hands the text over. Returns 0, or DIVVY_ENOMEM: then there is none. */
int dv_grown(dv_plan_text *out, dv_growing *g);

#endif
