/* Tags in one text: docs/protocol.md, D31. SPDX-License-Identifier: Apache-2.0 */
#include "plan/tags.h"

#include <string.h>

#include "base/ascii.h"

bool dv_is_tag(const char *tag, size_t bytes) {
    if (bytes == 0 || bytes > DV_TAG_BYTES_MAX) return false;
    for (size_t i = 0; i < bytes; i++) {
        if (!dv_is_alphanumeric(tag[i]) && tag[i] != '_' && tag[i] != '.' && tag[i] != '-') return false;
    }
    return true;
}

bool dv_tags_has(const char *tags, const char *tag) {
    size_t bytes = strlen(tag);
    for (const char *at = tags; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
        if (strncmp(at, tag, bytes) == 0 && (at[bytes] == ',' || at[bytes] == '\0')) return true;
    }
    return false;
}

/* Compares by bytes, the shorter first where one begins with the other. */
static int compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order != 0 ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

const char *dv_tags_add(char tags[DV_TAGS_BYTES], const char *tag, size_t bytes) {
    if (!dv_is_tag(tag, bytes)) return "is none: it has 1 to 64 of A-Z, a-z, 0-9, \"_\", \".\", \"-\"";
    char *place = NULL; /* before the first that comes after it */
    size_t count = 0;
    for (char *at = tags; *at != '\0'; count++) {
        size_t at_bytes = strcspn(at, ",");
        int order = compare(tag, bytes, at, at_bytes);
        if (order == 0) return NULL;
        if (order < 0 && place == NULL) place = at;
        at += at_bytes + (at[at_bytes] == ',');
    }
    if (count == DV_TAGS_MAX) return "is one more than the 16 that a member may have";
    size_t used = strlen(tags);
    if (place != NULL) {
        memmove(place + bytes + 1, place, strlen(place) + 1);
        memcpy(place, tag, bytes);
        place[bytes] = ',';
    } else {
        if (used > 0) tags[used++] = ',';
        memcpy(tags + used, tag, bytes);
        tags[used + bytes] = '\0';
    }
    return NULL;
}

const char *dv_tags_make(char tags[DV_TAGS_BYTES], const char *text) {
    tags[0] = '\0';
    if (text == NULL) return NULL;
    for (const char *at = text;; at++) {
        size_t bytes = strcspn(at, ",");
        const char *why = dv_tags_add(tags, at, bytes);
        if (why != NULL) return why;
        at += bytes;
        if (*at == '\0') return NULL;
    }
}
