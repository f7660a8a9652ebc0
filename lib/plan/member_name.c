/* The names of a party's children: docs/protocol.md, P2. SPDX-License-Identifier: Apache-2.0 */
#include "plan/member_name.h"

#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "znode/path.h"

enum { KAZOO_GUID_BYTES = 32, LEVEL_MAX = 1000 };

bool dv_member_is_kazoo(const char *node) {
    size_t digits = strspn(node, "0123456789abcdef");
    return digits == KAZOO_GUID_BYTES && node[digits] == '-';
}

static bool alphanumeric(const char *from, const char *to) {
    for (const char *c = from; c < to; c++) {
        if (!dv_is_alphanumeric(*c)) return false;
    }
    return to > from;
}

/* A number is what a member can, however large: it is more than we know of. Anything else is a function of its own. */
static int parse_level(const char *value, const char *end) {
    int level = 0;
    for (const char *c = value; c < end; c++) {
        if (!dv_is_digit(*c)) return DV_LEVEL_OWN;
        if (level < LEVEL_MAX) level = level * 10 + (*c - '0');
    }
    return level;
}

/* A decimal number, or -1. */
static int64_t parse_number(const char *value, const char *end, int64_t most) {
    int64_t number = 0;
    if (value == end || (*value == '0' && end - value > 1)) return -1;
    for (const char *c = value; c < end; c++) {
        if (!dv_is_digit(*c)) return -1;
        number = number * 10 + (*c - '0');
        if (number > most) return -1;
    }
    return number;
}

/* One tag, ",key=value" at `comma` up to `end`. Unknown keys are for later releases and are passed over. */
static bool parse_tag(dv_member *member, const char *comma, const char *end) {
    const char *equals = memchr(comma, '=', (size_t)(end - comma));
    if (!equals || !alphanumeric(comma + 1, equals) || !alphanumeric(equals + 1, end)) return false;
    size_t value_bytes = (size_t)(end - equals - 1);
    if (equals != comma + 2) return true;
    if (comma[1] == 'a') {
        member->ability = equals + 1;
        member->ability_bytes = value_bytes;
        member->level = parse_level(equals + 1, end);
    } else if (comma[1] == 's' && value_bytes == 8) {
        char digits[9] = "";
        char *stop;
        memcpy(digits, equals + 1, 8);
        member->set = (uint32_t)strtoul(digits, &stop, 16);
        member->has_set = *stop == '\0';
    } else if (comma[1] == 'o') {
        member->numeric = value_bytes == 1 && equals[1] == 'n';
    } else if (comma[1] == 'm') {
        member->max_moves = parse_number(equals + 1, end, UINT32_MAX);
    } else if (comma[1] == 'r') {
        member->round_timeout_ms = parse_number(equals + 1, end, DV_TIME_MAX_MS);
    }
    return true;
}

dv_member dv_member_parse(char *node) {
    dv_member member = {.node = node, .identifier = node, .kind = DV_STRAY, .max_moves = -1, .round_timeout_ms = -1};
    const char *dash = strchr(node, '-');
    if (!dash) return member;
    member.identifier = dash + 1;
    const char *comma = memchr(node, ',', (size_t)(dash - node));
    if (!comma) {
        if (dv_member_is_kazoo(node)) member.kind = DV_KAZOO;
        return member;
    }
    if (!alphanumeric(node, comma)) return member;
    while (comma < dash) {
        const char *next = memchr(comma + 1, ',', (size_t)(dash - comma - 1));
        const char *end = next ? next : dash;
        if (!parse_tag(&member, comma, end)) return member;
        comma = end;
    }
    if (member.ability) member.kind = DV_DIVVY;
    return member;
}
