/* Tags, which a member has and an item may need: sorted, each once, in one text. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D31. Pure. A text of tags has commas between them, "" is none. */
#ifndef DV_TAGS_H
#define DV_TAGS_H

#include <stdbool.h>
#include <stddef.h>

enum { DV_TAGS_MAX = 16, DV_TAG_BYTES_MAX = 64, DV_TAGS_BYTES = DV_TAGS_MAX * (DV_TAG_BYTES_MAX + 1) };

/* Returns whether it can be a tag: 1 to 64 of A-Z, a-z, 0-9, "_", ".", "-". */
bool dv_is_tag(const char *tag, size_t bytes);
/* Returns whether the text has a tag. */
bool dv_tags_has(const char *tags, const char *tag);
/* Puts a tag into the text, in its place, unless it is there. Returns NULL; or why not, which completes "a tag ...". */
const char *dv_tags_add(char tags[DV_TAGS_BYTES], const char *tag, size_t bytes);
/* Makes a text of one that a user wrote, in any order and with doubles. NULL is none. Returns as dv_tags_add(). */
const char *dv_tags_make(char tags[DV_TAGS_BYTES], const char *text);

#endif
