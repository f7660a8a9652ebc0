/* The items of a pool, and who is first in the queue of each. SPDX-License-Identifier: Apache-2.0
 *
 * kazoo writes names raw, so that an item of its "a/b" has the directory b inside of a. Whatever is found in an item's
 * directory and is no place in its queue may be such a one: it is an item if somebody stands in its queue. */
#include "status_items.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "base/guid.h"
#include "status_plan.h"
#include "znode/path.h"
#include "znode/sequence.h"

/* The bounds of the look at items. ROUNDS_MAX: an item whose head goes before it is read is looked at so often, as
 * then it is handed over all the time. NESTED_*: what is looked at inside of items. */
enum { ROUNDS_MAX = 5, NESTED_MAX = 100000, NESTED_NODE_BYTES_MAX = 4096, IDENTIFIER_SHOWN_BYTES = 4096 };

typedef struct {
    dv_status *status;
    const char *locks;
    size_t *open; /* items that are still to be looked at */
    size_t open_count;
    char **nested; /* directories that were found in this round */
    size_t nested_count, nested_room, nested_total;
} survey;

void dv_status_item_free(dv_status_item *item) {
    free(item->name);
    free(item->node);
    free(item->head);
    free(item->owner);
}

/* ---- which there are ---- */

/* Orders items by name; of equal names those with an owner come first, then those with a directory. */
static int compare_items(const void *a, const void *b) {
    const dv_status_item *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (!order) order = !x->head - !y->head;
    return order ? order : !x->node - !y->node;
}

static int add_item(dv_status *status, char *name, const char *node) {
    char *copy = node ? strdup(node) : NULL;
    if (!name || (node && !copy)) {
        free(name);
        free(copy);
        return DIVVY_ENOMEM;
    }
    status->items[status->item_count++] =
        (dv_status_item){.name = name, .node = copy, .expected = !node, .member = DV_NO_MEMBER};
    return 0;
}

static int keep_one_of_each(dv_status *status) {
    size_t kept = 0;
    int error = 0;
    if (status->item_count) qsort(status->items, status->item_count, sizeof *status->items, compare_items);
    for (size_t i = 0; i < status->item_count; i++) {
        dv_status_item *item = &status->items[i], *last = kept ? &status->items[kept - 1] : NULL;
        if (last && strcmp(last->name, item->name) == 0 && !item->head) {
            last->expected = last->expected || item->expected;
            dv_status_item_free(item);
            continue;
        }
        if (!item->node && !(item->node = dv_look_node_of(item->name))) error = DIVVY_ENOMEM;
        status->items[kept++] = *item;
    }
    status->item_count = kept;
    return error;
}

/* Returns the plan whose rules may leave items without an owner, so that they never had a directory. NULL: none. */
static const dv_plan *plan_with_rules(const dv_status *status) {
    const dv_plan *plan = status->only_expected ? NULL : dv_status_plan(status);
    return plan && plan->header.is_balanced ? plan : NULL;
}

static int list_items(dv_status *status, char *const *names, size_t count) {
    const dv_plan *plan = plan_with_rules(status);
    size_t expected = status->expected ? status->expected->count : 0, planned = plan ? plan->set->count : 0;
    status->items = calloc(count + expected + planned + 1, sizeof *status->items);
    int error = status->items ? 0 : DIVVY_ENOMEM;
    for (size_t i = 0; !error && i < count; i++) error = add_item(status, dv_look_name_of(names[i]), names[i]);
    for (size_t i = 0; !error && i < expected; i++) error = add_item(status, strdup(status->expected->names[i]), NULL);
    for (size_t i = 0; !error && i < planned; i++) {
        if (plan->owners[i] == DV_PLAN_NO_SLOT) error = add_item(status, strdup(plan->set->names[i]), NULL);
    }
    return error ? error : keep_one_of_each(status);
}

/* ---- queues ---- */

static dv_status_item *open_item(const survey *s, size_t i) {
    return &s->status->items[s->open[i]];
}

static char *queue_path(void *context, size_t i) {
    const survey *s = context;
    return dv_path_join(s->locks, open_item(s, i)->node);
}

static int note_nested(survey *s, const dv_status_item *item, const char *child) {
    if (s->nested_total == NESTED_MAX || strlen(item->node) + strlen(child) > NESTED_NODE_BYTES_MAX) return 0;
    if (s->nested_count == s->nested_room) {
        size_t room = s->nested_room ? 2 * s->nested_room : 16;
        char **grown = realloc(s->nested, room * sizeof *grown);
        if (!grown) return DIVVY_ENOMEM;
        s->nested = grown;
        s->nested_room = room;
    }
    s->nested[s->nested_count] = dv_path_join(item->node, child);
    if (!s->nested[s->nested_count]) return DIVVY_ENOMEM;
    s->nested_count++;
    s->nested_total++;
    return 0;
}

/* Keeps the first of the queue. A directory that is not there has nobody in it. */
static int take_queue(void *context, size_t i, const dv_reply *reply) {
    survey *s = context;
    dv_status_item *item = open_item(s, i);
    const char *head = NULL;
    int32_t head_sequence = 0, sequence;
    size_t contenders = 0;
    int error = reply->error == DIVVY_ENOENT ? 0 : reply->error;
    if (error == DIVVY_EACCES && s->status->skip_denied) {
        item->denied = item->there = true;
        s->status->denied_count++;
        return 0;
    }
    for (size_t k = 0; !error && reply->error == 0 && k < reply->child_count; k++) {
        if (!dv_sequence_parse(reply->children[k], "__lock__", &sequence)) {
            if (!item->looked) error = note_nested(s, item, reply->children[k]);
            continue;
        }
        contenders++;
        if (head && dv_sequence_compare(sequence, head_sequence) >= 0) continue;
        head = reply->children[k];
        head_sequence = sequence;
    }
    item->looked = true;
    item->there = reply->error == 0;
    item->pzxid = item->there ? reply->stat->pzxid : 0;
    free(item->head);
    item->head = head ? strdup(head) : NULL;
    item->waiting = contenders ? contenders - 1 : 0;
    return head && !item->head ? DIVVY_ENOMEM : error;
}

static char *head_path(void *context, size_t i) {
    const survey *s = context;
    const dv_status_item *item = open_item(s, i);
    return dv_look_deep_path(s->locks, item->node, item->head);
}

static int take_head(void *context, size_t i, const dv_reply *reply) {
    dv_status_item *item = open_item(context, i);
    if (reply->error == DIVVY_ENOENT) { /* It went in between: somebody else is first now, so we look again. */
        free(item->head);
        item->head = NULL;
        return 0;
    }
    if (reply->error) return reply->error;
    item->token = reply->stat->czxid;
    item->made_ms = reply->stat->ctime_ms;
    item->session = reply->stat->ephemeral_owner;
    size_t bytes = reply->data_bytes < IDENTIFIER_SHOWN_BYTES ? reply->data_bytes : IDENTIFIER_SHOWN_BYTES;
    item->owner = strndup(bytes ? reply->data : "", bytes);
    return item->owner ? 0 : DIVVY_ENOMEM;
}

/* Those for which `keep` says so stay open. */
static void keep_open(survey *s, bool (*keep)(const dv_status_item *item)) {
    size_t kept = 0;
    for (size_t i = 0; i < s->open_count; i++) {
        if (keep(open_item(s, i))) s->open[kept++] = s->open[i];
    }
    s->open_count = kept;
}

static bool has_head(const dv_status_item *item) {
    return item->head;
}

static bool has_lost_head(const dv_status_item *item) {
    return !item->head;
}

/* N5: the names of a client's nodes on one session begin alike. Of several members of one client any could be it. */
static const dv_status_member *find_namer(const dv_status *status, const char *head) {
    const dv_status_member *found = NULL;
    for (size_t i = 0; i < status->member_count; i++) {
        const dv_status_member *m = &status->members[i];
        if (m->kazoo || !m->session || !dv_guid_is_of_same_session(head, m->node)) continue;
        if (found) return NULL;
        found = m;
    }
    return found;
}

/* Closes the items whose owner the name of the place tells. */
static int name_owners(survey *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->open_count; i++) {
        dv_status_item *item = open_item(s, i);
        const dv_status_member *m = find_namer(s->status, item->head);
        if (m) {
            item->session = m->session;
            item->owner = strdup(m->identifier);
            if (!item->owner) return DIVVY_ENOMEM;
        } else {
            s->open[kept++] = s->open[i];
        }
    }
    s->open_count = kept;
    return 0;
}

/* Opens the items that were found inside others; the next round looks at them. */
static int open_nested(survey *s) {
    dv_status *status = s->status;
    size_t count = status->item_count + s->nested_count + 1;
    dv_status_item *items = realloc(status->items, count * sizeof *items);
    if (items) status->items = items;
    size_t *open = realloc(s->open, count * sizeof *open);
    if (open) s->open = open;
    int error = items && open ? 0 : DIVVY_ENOMEM;
    for (size_t i = 0; i < s->nested_count; i++) {
        if (!error) error = add_item(status, strdup(s->nested[i]), s->nested[i]);
        if (!error) status->items[status->item_count - 1].nested = true;
        if (!error) s->open[s->open_count++] = status->item_count - 1;
        free(s->nested[i]);
    }
    s->nested_count = 0;
    return error;
}

static int read_queues(dv_look *look, survey *s) {
    int error = 0;
    s->open = calloc(s->status->item_count + 1, sizeof *s->open);
    if (!s->open) return DIVVY_ENOMEM;
    for (; s->open_count < s->status->item_count; s->open_count++) s->open[s->open_count] = s->open_count;
    for (int round = 0; round < ROUNDS_MAX && s->open_count > 0 && !error; round++) {
        dv_reads queues = {DV_CHILDREN, s->open_count, queue_path, take_queue, s};
        error = dv_look_read(look, &queues);
        if (error) break;
        keep_open(s, has_head);
        if (s->status->owners_by_name) error = name_owners(s);
        dv_reads heads = {DV_GET, s->open_count, head_path, take_head, s};
        if (!error) error = dv_look_read(look, &heads);
        if (error) break;
        keep_open(s, has_lost_head);
        error = open_nested(s);
    }
    return error;
}

/* ---- kazoo's names with slashes ---- */

static int compare_nodes(const void *a, const void *b) {
    return strcmp(((const dv_status_item *)a)->node, ((const dv_status_item *)b)->node);
}

/* Drops directories that stand for nothing: nested ones that nobody owns, and those that are only there for others'
 * sake. */
static void sift(dv_status *status) {
    size_t kept = 0;
    qsort(status->items, status->item_count, sizeof *status->items, compare_nodes);
    for (size_t i = 0; i < status->item_count; i++) {
        dv_status_item *item = &status->items[i];
        size_t bytes = strlen(item->node);
        bool parent = false;
        for (size_t k = i + 1; !parent && k < status->item_count; k++) {
            const char *next = status->items[k].node;
            /* Nodes with the same beginning stand behind it. */
            if (strncmp(next, item->node, bytes) != 0) break;
            parent = next[bytes] == '/' && status->items[k].head;
        }
        bool stands = item->head || item->expected || !(item->nested || parent);
        if (!stands) status->empty_count += item->nested;
        if (stands) status->items[kept++] = *item;
        else dv_status_item_free(item);
    }
    status->item_count = kept;
}

int dv_status_items_read(dv_look *look, dv_status *status, const char *locks, char *const *names, size_t count) {
    survey s = {.status = status, .locks = locks};
    int error = list_items(status, names, count);
    if (!error) error = read_queues(look, &s);
    for (size_t i = 0; i < s.nested_count; i++) free(s.nested[i]);
    free(s.nested);
    free(s.open);
    if (error || s.nested_total == 0) return error;
    sift(status);
    return keep_one_of_each(status);
}
