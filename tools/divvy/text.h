/* Names as they are shown. SPDX-License-Identifier: Apache-2.0
 *
 * An item is any string of bytes, but JSON and terminals want UTF-8. Characters that can be shown are shown as they
 * are. Otherwise each offending byte becomes `%` and two upper-case hex digits, and so does a `%` that stands before
 * two hex digits, so that the name can be had back: docs/protocol.md, N4. */
#ifndef DV_TEXT_H
#define DV_TEXT_H

#include <stddef.h>

/* The length of the well-formed UTF-8 character at `text`, 0 if there is none, as at the end. */
size_t dv_text_character_bytes(const char *text);

/* Returns the length of the character at `text`, 0 where it cannot be shown in a line that people read. */
size_t dv_text_shown_bytes(const char *text);

/* For JSON: offending is what is not UTF-8. Returns memory to free(), NULL when there is none. */
char *dv_text_plain(const char *text);

/* For lines that people read: offending are also control characters, so that a name can neither break a line nor send
 * a terminal its escape sequences, and characters that are not seen, so that no name looks like another: those that
 * change the direction of a line, join or part others, or have no width. Returns memory to free(), NULL when there is
 * none. */
char *dv_text_readable(const char *text);

/* Returns `json`, which is printed without white space, as a line: with \u escapes for the same characters, and a
 * newline. To be freed; NULL when there is no memory. */
char *dv_text_json_line(const char *json);

#endif
