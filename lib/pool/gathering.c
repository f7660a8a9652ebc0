/* Gathering: a pool's party as it was listed last. SPDX-License-Identifier: Apache-2.0 */
#include "pool/gathering.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/texts.h"
#include "divvy/error.h"

enum { BOUNDARY_MS = 1000 };

void dv_gathering_clear(dv_gathering *g) {
    free(g->nodes);
    *g = (dv_gathering){.nodes = NULL};
}

int dv_gathering_take(dv_gathering *g, const dv_reply *reply, int64_t now) {
    assert(reply->error == 0 || reply->error == DIVVY_ENOENT);
    char **nodes = dv_texts_copy(reply->children, reply->child_count);
    if (nodes == NULL) return DIVVY_ENOMEM;
    free(g->nodes);
    g->nodes = nodes;
    g->node_count = reply->child_count;
    g->pzxid = reply->error ? 0 : reply->stat->pzxid;
    if (g->seen_pzxid != g->pzxid) {
        g->seen_pzxid = g->pzxid;
        g->seen_at = now;
    }
    return 0;
}

bool dv_gathering_settled(const dv_gathering *g, const dv_plan *plan, int64_t now) {
    return plan->header.pzxid == g->pzxid || now - g->seen_at >= BOUNDARY_MS;
}

const char *dv_identifier_of(const char *node) {
    const char *dash = strchr(node, '-');
    return dash ? dash + 1 : node;
}

typedef enum { STRAY, ODD, FOLLOWS } sort;

static sort sort_of(const char *node) {
    dv_member m = dv_member_parse((char *)(uintptr_t)node); /* It only points into the name. */
    if (m.kind == DV_STRAY) return STRAY;
    return m.kind == DV_DIVVY && m.level >= DV_LEVEL_PLAN ? FOLLOWS : ODD;
}

bool dv_gathering_is_odd(const char *node) {
    return sort_of(node) == ODD;
}

bool dv_gathering_knows_no_wishes(const char *node) {
    dv_member m = dv_member_parse((char *)(uintptr_t)node);
    return sort_of(node) == ODD || (m.kind == DV_DIVVY && m.level < DV_LEVEL_BALANCE);
}

bool dv_gathering_follows(const char *node) {
    return sort_of(node) == FOLLOWS;
}

bool dv_gathering_any(const dv_gathering *g, bool (*choose)(const char *node)) {
    for (size_t n = 0; n < g->node_count; n++) {
        if (choose(g->nodes[n])) return true;
    }
    return false;
}

const char **dv_gathering_pick(const dv_gathering *g, bool (*choose)(const char *node), size_t *count) {
    const char **picked = (const char **)calloc(g->node_count + 1, sizeof *picked);
    *count = 0;
    for (size_t n = 0; picked && n < g->node_count; n++) {
        if (choose(g->nodes[n])) picked[(*count)++] = g->nodes[n];
    }
    return picked;
}

void dv_gathering_tell_odd(const char *node, char *text, size_t bytes) {
    const char *identifier = dv_identifier_of(node);
    bool odd = sort_of(node) == ODD;
    const char *why = "is of an earlier release, which deals by numbers alone";
    if (odd) why = "is of an earlier release, or has a rule of its own";
    if (dv_member_is_kazoo(node)) why = "is kazoo's";
    snprintf(text, bytes,
             "%s: its member %s %s; end it, or wait until it has left: until then pauses and pins are not in force",
             odd ? "follows no plan" : "cannot do that yet", identifier, why);
}

bool dv_gathering_has(const dv_gathering *g, const char *identifier) {
    for (size_t n = 0; n < g->node_count; n++) {
        if (strcmp(dv_identifier_of(g->nodes[n]), identifier) == 0) return true;
    }
    return false;
}
