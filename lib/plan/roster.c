/* The settled party, with its nodes' data: docs/protocol.md, D10, D31. SPDX-License-Identifier: Apache-2.0 */
#include "plan/roster.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "plan/member_name.h"
#include "recipe/fetch.h"
#include "recipe/record.h"
#include "znode/path.h"

/* One call to ask. */
typedef struct inquiry {
    struct inquiry *next, **link;
    dv_roster *roster;
    dv_fetch *fetch;
    dv_roster_fn done;
    void *context;
} inquiry;

struct dv_roster {
    divvy_client *client;
    const char *party_path;
    dv_roster_ghost_fn on_ghost;
    void *context;
    dv_plan_node *nodes; /* by name; their names are ours, and the zones of those that are known */
    dv_plan_party party;
    int64_t learned_pzxid; /* of the party that a plan has told about */
    inquiry *inquiries;
};

/* ---- nodes ---- */

static void free_text(const char *text) {
    free((void *)(uintptr_t)text);
}

static void free_node(dv_plan_node *node) {
    if (node->known) free_text(node->zone);
    free_text(node->tags);
    free_text(node->node);
}

static void free_nodes(dv_plan_node *nodes, size_t count) {
    for (size_t n = 0; n < count; n++) free_node(&nodes[n]);
    free(nodes);
}

static int by_name(const void *left, const void *right) {
    const dv_plan_node *a = left;
    const dv_plan_node *b = right;
    return strcmp(a->node, b->node);
}

size_t dv_roster_find(const dv_roster *roster, const char *node) {
    const dv_plan_node key = {.node = node};
    if (roster->party.count == 0) return SIZE_MAX;
    const dv_plan_node *found = bsearch(&key, roster->nodes, roster->party.count, sizeof key, by_name);
    return found != NULL ? (size_t)(found - roster->nodes) : SIZE_MAX;
}

/* Fills in a node from its name alone. */
static bool make_node(dv_plan_node *node, const char *name) {
    char *copy = strdup(name);
    if (copy == NULL) return false;
    dv_member member = dv_member_parse(copy);
    *node = (dv_plan_node){.node = copy, .identifier = member.identifier, .tag = member.set, .zone = ""};
    node->has_options = member.max_moves >= 0 && member.round_timeout_ms >= 0;
    node->can_balance = member.level >= DV_LEVEL_BALANCE;
    if (node->has_options) node->options = (dv_plan_options){(uint32_t)member.max_moves, member.round_timeout_ms};
    return true;
}

/* D31: else one odd name would make a plan that nobody takes. */
static bool can_stand_in_plan(const char *name) {
    return strlen(name) <= DV_PLAN_KEY_BYTES_MAX && dv_is_utf8(name);
}

/* ---- the party ---- */

dv_roster *dv_roster_new(divvy_client *client, const char *party_path, dv_roster_ghost_fn on_ghost, void *context) {
    dv_roster *roster = calloc(1, sizeof *roster);
    if (roster != NULL)
        *roster = (dv_roster){.client = client, .party_path = party_path, .on_ghost = on_ghost, .context = context};
    return roster;
}

void dv_roster_free(dv_roster *roster) {
    if (roster == NULL) return;
    for (inquiry *q = roster->inquiries, *next; q != NULL; q = next) {
        next = q->next;
        dv_fetch_abandon(q->fetch);
        free(q);
    }
    free_nodes(roster->nodes, roster->party.count);
    free(roster);
}

dv_plan_party *dv_roster_party(dv_roster *roster) {
    return &roster->party;
}

static int by_identifier(const void *left, const void *right) {
    const dv_plan_node *const *a = left, *const *b = right;
    int order = strcmp((*a)->identifier, (*b)->identifier);
    return order != 0 ? order : by_name(*a, *b);
}

/* Returns NULL when an allocation fails. */
static dv_plan_node **sort_by_identifier(dv_plan_node *nodes, size_t count) {
    dv_plan_node **sorted = (dv_plan_node **)calloc(count + 1, sizeof *sorted);
    if (sorted == NULL) return NULL;
    for (size_t n = 0; n < count; n++) sorted[n] = &nodes[n];
    qsort((void *)sorted, count, sizeof *sorted, by_identifier);
    return sorted;
}

static bool mark_repeats(dv_plan_node *nodes, size_t count) {
    dv_plan_node **sorted = sort_by_identifier(nodes, count);
    if (sorted == NULL) return false;
    for (size_t n = 1; n < count; n++)
        sorted[n]->is_repeat = strcmp(sorted[n - 1]->identifier, sorted[n]->identifier) == 0;
    free((void *)sorted);
    return true;
}

/* Makes the nodes of those names, in order, each once, whatever servers send. None is known yet. NULL: an allocation
 * failed. */
static dv_plan_node *make_nodes(const char *const *names, size_t count, size_t *made) {
    dv_plan_node *nodes = calloc(count + 1, sizeof *nodes);
    *made = 0;
    for (size_t n = 0; nodes != NULL && n < count; n++) {
        if (!can_stand_in_plan(names[n])) continue;
        if (make_node(&nodes[*made], names[n])) {
            ++*made;
        } else {
            while (*made > 0) free_text(nodes[--*made].node);
            free(nodes);
            return NULL;
        }
    }
    if (nodes == NULL || *made == 0) return nodes;
    qsort(nodes, *made, sizeof *nodes, by_name);
    size_t kept = 1;
    for (size_t n = 1; n < *made; n++) {
        if (by_name(&nodes[kept - 1], &nodes[n]) != 0) nodes[kept++] = nodes[n];
        else free_text(nodes[n].node);
    }
    *made = kept;
    return nodes;
}

int dv_roster_settle(dv_roster *roster, const char *const *names, size_t count, int64_t pzxid) {
    size_t made;
    dv_plan_node *nodes = make_nodes(names, count, &made);
    if (nodes == NULL) return DIVVY_ENOMEM;
    if (!mark_repeats(nodes, made)) {
        free_nodes(nodes, made);
        return DIVVY_ENOMEM;
    }
    for (size_t n = 0; n < made; n++) { /* A node that was there before is what it was. */
        size_t old = dv_roster_find(roster, nodes[n].node);
        if (old == SIZE_MAX) continue;
        dv_plan_node fresh = nodes[n];
        nodes[n] = roster->nodes[old];
        nodes[n].is_repeat = fresh.is_repeat;
        roster->nodes[old] = fresh;
    }
    free_nodes(roster->nodes, roster->party.count);
    roster->nodes = nodes;
    roster->party.nodes = nodes;
    roster->party.count = made;
    roster->party.pzxid = pzxid;
    roster->party.owners = NULL; /* They were indices into what is gone. */
    for (inquiry *q = roster->inquiries; q != NULL; q = q->next) dv_fetch_stop(q->fetch, DIVVY_ECANCELED);
    return 0;
}

/* ---- what a plan tells ---- */

static int by_key(const void *left, const void *right) {
    const dv_plan_member *const *a = left, *const *b = right;
    return strcmp((*a)->key, (*b)->key);
}

static void learn_from_member(dv_plan_node *node, const dv_plan_member *member) {
    assert(!node->known && node->czxid == 0);
    char *zone = strdup(member->zone), *tags = strdup(member->tags);
    if (zone == NULL || tags == NULL) {
        free(zone);
        free(tags);
        return;
    }
    node->known = true;
    node->is_static = true;
    node->weight_unknown = !member->says_configured;
    node->weight = member->says_configured ? member->configured : member->weight;
    node->zone = zone;
    node->tags = tags;
    node->cap = member->cap;
    node->rejoin_delay_ms = member->rejoin_delay_ms;
}

/* Both are sorted. A node whose identifier another one has too is left alone: it may be fenced, or not be static. */
static void match(dv_plan_node **nodes, size_t node_count, const dv_plan_member **members, size_t member_count) {
    size_t m = 0;
    for (size_t n = 0; n < node_count; n++) {
        bool doubled = nodes[n]->is_repeat || (n + 1 < node_count && nodes[n + 1]->is_repeat);
        int order = -1;
        while (m < member_count && (order = strcmp(members[m]->key, nodes[n]->identifier)) < 0) m++;
        if (m < member_count && order == 0 && !doubled && !nodes[n]->known) learn_from_member(nodes[n], members[m]);
    }
}

void dv_roster_learn(dv_roster *roster, const dv_plan *plan) {
    if (roster->learned_pzxid == roster->party.pzxid) return;
    size_t statics = 0;
    dv_plan_node **nodes = sort_by_identifier(roster->nodes, roster->party.count);
    const dv_plan_member **members = (const dv_plan_member **)calloc(plan->member_count + 1, sizeof *members);
    if (nodes != NULL && members != NULL) {
        for (size_t m = 0; m < plan->member_count; m++) {
            const dv_plan_member *member = &plan->members[m];
            if (member->is_static && member->absent == 0) members[statics++] = member;
        }
        qsort((void *)members, statics, sizeof *members, by_key);
        match(nodes, roster->party.count, members, statics);
        roster->learned_pzxid = roster->party.pzxid;
    }
    free((void *)nodes);
    free((void *)members);
}

/* ---- reading ---- */

/* Takes a node's data. They never change, so an answer is good for it however late it comes. */
static int learn(void *context, const char *path, const dv_reply *reply, int64_t now) {
    (void)now;
    dv_roster *roster = ((const inquiry *)context)->roster;
    if (reply->error != 0) return reply->error;
    const char *name = dv_path_last(path);
    size_t n = dv_roster_find(roster, name);
    if (n == SIZE_MAX || roster->nodes[n].czxid != 0) return 0;
    dv_plan_node *node = &roster->nodes[n];
    assert(!node->is_ghost && node->first_czxid == 0);
    dv_member_facts facts;
    if (!dv_member_data_parse(reply->data, reply->data_bytes, &facts)) return DIVVY_ENOMEM;
    char *tags = strdup(facts.tags);
    if (tags == NULL) {
        free(facts.zone);
        return DIVVY_ENOMEM;
    }
    if (node->known) free_text(node->zone);
    free_text(node->tags);
    node->known = true;
    node->is_static = facts.is_static && node->identifier[0] != '\0'; /* D31: that would be an empty key */
    node->weight = facts.weight;
    node->weight_unknown = false;
    node->zone = facts.zone;
    node->tags = tags;
    node->cap = facts.cap;
    node->rejoin_delay_ms = facts.rejoin_delay_ms;
    node->first_czxid = facts.first_czxid;
    node->czxid = reply->stat->czxid > 0 ? reply->stat->czxid : 1; /* 0 would be read again, and again. */
    node->is_ghost = reply->stat->ephemeral_owner == 0;
    if (node->is_ghost && roster->on_ghost != NULL) roster->on_ghost(roster->context, name);
    return 0;
}

static void finish(void *context, int error, int64_t now) {
    inquiry *q = context;
    assert(*q->link == q && (q->next == NULL || q->next->link == &q->next));
    *q->link = q->next;
    if (q->next != NULL) q->next->link = q->link;
    q->done(q->context, error, now);
    free(q);
}

static void enlist(inquiry *q) {
    q->next = q->roster->inquiries;
    q->link = &q->roster->inquiries;
    if (q->next != NULL) q->next->link = &q->next;
    q->roster->inquiries = q;
}

/* Reads the nodes that `asks` marks. Returns how many these are, or DIVVY_ENOMEM. */
static int inquire(dv_roster *roster, const bool *asks, dv_roster_fn done, void *context) {
    static const dv_fetch_kind kind = {DV_GET, 200, learn, finish};
    size_t count = 0;
    inquiry *q = malloc(sizeof *q);
    const char **names = malloc((roster->party.count + 1) * sizeof *names);
    int error = q != NULL && names != NULL ? 0 : DIVVY_ENOMEM;
    for (size_t n = 0; error == 0 && n < roster->party.count; n++) {
        if (asks[n]) names[count++] = roster->nodes[n].node;
    }
    if (error == 0 && count > 0) {
        *q = (inquiry){.roster = roster, .done = done, .context = context};
        error = dv_fetch_start(&q->fetch, roster->client, &kind, roster->party_path, names, count, q);
    }
    free((void *)names);
    if (error == 0 && count > 0) enlist(q);
    else free(q);
    return error != 0 ? error : (int)count;
}

/* D36: a plan does not tell a node's age, which counts once another may be of the same member. So both are asked
 * together, and one round of reads is enough. Returns 0 or DIVVY_ENOMEM. */
static int ask_ages(const dv_roster *roster, bool *asks) {
    size_t count = roster->party.count;
    dv_plan_node **nodes = sort_by_identifier(roster->nodes, count);
    if (nodes == NULL) return DIVVY_ENOMEM;
    for (size_t from = 0, to; from < count; from = to) {
        bool any = asks[nodes[from] - roster->nodes];
        for (to = from + 1; to < count && nodes[to]->is_repeat; to++) any |= asks[nodes[to] - roster->nodes];
        for (size_t n = from; any && n < to; n++) {
            if (nodes[n]->known && nodes[n]->czxid == 0) asks[nodes[n] - roster->nodes] = true;
        }
    }
    free((void *)nodes);
    return 0;
}

int dv_roster_ask(dv_roster *roster, const dv_plan *previous, dv_roster_question which, dv_roster_fn done,
                  void *context) {
    bool *asks = calloc(roster->party.count + 1, sizeof *asks);
    if (asks == NULL) return DIVVY_ENOMEM;
    int asked = dv_plan_ask(previous, &roster->party, asks);
    if (asked > 0 && which == DV_ROSTER_NEEDED) asked = ask_ages(roster, asks);
    /* D10: what a plan says of a node is not that it is ephemeral. */
    for (size_t n = 0; which == DV_ROSTER_ALL && n < roster->party.count; n++) asks[n] |= roster->nodes[n].czxid == 0;
    if (asked >= 0) asked = inquire(roster, asks, done, context);
    free(asks);
    return asked;
}

int dv_roster_ask_namesakes(dv_roster *roster, size_t node, dv_roster_fn done, void *context) {
    bool *asks = calloc(roster->party.count + 1, sizeof *asks);
    if (asks == NULL) return DIVVY_ENOMEM;
    size_t namesakes = 0;
    for (size_t n = 0; n < roster->party.count; n++) {
        asks[n] = strcmp(roster->nodes[n].identifier, roster->nodes[node].identifier) == 0;
        namesakes += asks[n];
    }
    for (size_t n = 0; n < roster->party.count; n++) {
        if (roster->nodes[n].known && (namesakes == 1 || roster->nodes[n].czxid != 0)) asks[n] = false;
    }
    int asked = inquire(roster, asks, done, context);
    free(asks);
    return asked;
}
