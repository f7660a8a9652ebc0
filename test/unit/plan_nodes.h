/* P/plan on a scripted backend: nodes with data, from which reads are answered, and who writes plans into them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PLAN_NODES_H
#define DV_TEST_PLAN_NODES_H

#include "lib/fake_znode.h"
#include "plan/reader.h"
#include "plan_fixture.h"

#define ROOT "/p/plan"

enum { NODES_MAX = 2000 };

typedef struct {
    char path[128];
    char *data;
    size_t bytes;
    dv_stat stat;
} plan_node;

static struct {
    dv_fake *fake;
    divvy_client *client;
    plan_node nodes[NODES_MAX];
    size_t count;
    int64_t zxid;
    size_t gets, exists; /* served */
    size_t most_under_way;
} nodes;

/* ---- nodes ---- */

static inline plan_node *node_at(const char *path) {
    for (size_t i = 0; i < nodes.count; i++) {
        if (strcmp(nodes.nodes[i].path, path) == 0) return &nodes.nodes[i];
    }
    return NULL;
}

static inline void put_silently(const char *path, const char *data, size_t bytes) {
    plan_node *node = node_at(path);
    nodes.zxid++;
    if (node) {
        node->stat.version++;
        free(node->data);
    } else {
        assert_true(nodes.count < NODES_MAX);
        node = &nodes.nodes[nodes.count++];
        *node = (plan_node){.stat.czxid = nodes.zxid};
        snprintf(node->path, sizeof node->path, "%s", path);
    }
    node->stat.mzxid = nodes.zxid;
    node->bytes = bytes;
    node->data = malloc(bytes + 1);
    assert_non_null(node->data);
    memcpy(node->data, data, bytes);
}

static inline void put(const char *path, const char *data, size_t bytes) {
    dv_watch_kind kind = node_at(path) ? DV_WATCH_CHANGED : DV_WATCH_CREATED;
    put_silently(path, data, bytes);
    dv_fake_fire(nodes.fake, path, kind, true);
}

static inline void put_away(const char *path) {
    plan_node *node = node_at(path);
    assert_non_null(node);
    free(node->data);
    *node = nodes.nodes[--nodes.count];
    nodes.zxid++;
    dv_fake_fire(nodes.fake, path, DV_WATCH_DELETED, true);
}

/* ---- answers ---- */

static inline size_t under_way(void) {
    size_t count = 0;
    for (const dv_fake_request *q = dv_fake_oldest(nodes.fake); q; q = q->next) count++;
    return count;
}

/* The epoch child always stands there, beside the chunks. */
static inline int32_t count_children(const char *path) {
    int32_t count = strcmp(path, ROOT) == 0 ? 1 : 0;
    for (size_t i = 0; i < nodes.count; i++) {
        const char *rest =
            strncmp(nodes.nodes[i].path, path, strlen(path)) == 0 ? nodes.nodes[i].path + strlen(path) : "";
        count += *rest == '/';
    }
    return count;
}

/* The oldest read is answered; false when there is none. */
static inline bool serve(void) {
    const dv_fake_request *q = dv_fake_oldest(nodes.fake);
    if (!q) return false;
    if (under_way() > nodes.most_under_way) nodes.most_under_way = under_way();
    assert_true(q->ops->kind == DV_GET || q->ops->kind == DV_EXISTS);
    bool is_get = q->ops->kind == DV_GET;
    if (is_get) nodes.gets++;
    else nodes.exists++;
    const plan_node *node = node_at(q->ops->path);
    dv_reply reply = {.error = node ? 0 : DIVVY_ENOENT};
    char *copy = NULL; /* of its very size, so that a reader that goes too far is found by the sanitizers */
    dv_stat stat;
    if (node) {
        stat = node->stat;
        stat.children = count_children(node->path);
        copy = malloc(node->bytes);
        if (node->bytes) memcpy(copy, node->data, node->bytes);
        reply = (dv_reply){.stat = &stat, .data = is_get ? copy : NULL, .data_bytes = is_get ? node->bytes : 0};
    }
    dv_fake_answer(nodes.fake, &reply);
    free(copy);
    return true;
}

/* Answers all reads. Returns how many they were. */
static inline size_t serve_all(void) {
    size_t count = 0;
    for (; serve(); count++) assert_true(count < 100000);
    return count;
}

/* ---- who writes plans: what it remembers of the newest one ---- */

static struct {
    dv_plan_root root;
    dv_plan *plan;
    size_t chunk_bytes; /* what it writes is cut into chunks of so many; 0: it is not */
    unsigned written;
} writer;

static inline void place(dv_plan_part *part, dv_plan_text *text, const dv_plan *plan, uint32_t *number) {
    if (!writer.chunk_bytes) {
        dv_plan_part_inline(part, text);
        return;
    }
    assert_int_equal(
        dv_plan_part_cut(part, text, writer.chunk_bytes, plan->header.generation, plan->header.guid, number), 0);
    size_t at = 0;
    for (size_t c = 0; c < part->chunk_count; c++) {
        char path[128];
        snprintf(path, sizeof path, ROOT "/%s", part->chunks[c].name);
        put(path, text->bytes + at, part->chunks[c].bytes);
        at += part->chunks[c].bytes;
    }
    free(text->bytes);
}

static inline void put_root(void) {
    dv_plan_text text;
    assert_int_equal(dv_plan_print_root(&text, &writer.root), 0);
    put(ROOT, text.bytes, text.count);
    free(text.bytes);
}

/* A new generation, with a guid of its own. */
static inline void sign(dv_plan *plan) {
    writer.written++;
    plan->header.generation = writer.written;
    if (writer.plan) strcpy(plan->header.after, writer.plan->header.guid);
    else plan->header.after[0] = '\0';
    snprintf(plan->header.guid, sizeof plan->header.guid, "00000000001aaaaaaaaaaa%u", writer.written);
}

static inline void remember(const dv_plan *plan) {
    dv_plan *copy = dv_plan_copy(plan);
    dv_plan_free(writer.plan);
    writer.plan = copy;
}

/* Takes the plan as its own: all of it, with a base. */
static inline void write_base(dv_plan *plan) {
    sign(plan);
    uint32_t number = 0;
    dv_plan_text items, base;
    dv_plan_root_clear(&writer.root);
    assert_int_equal(dv_plan_root_describe(&writer.root, plan), 0);
    assert_int_equal(dv_plan_print_items(&items, plan->set), 0);
    assert_int_equal(dv_plan_print_base(&base, plan), 0);
    place(&writer.root.items, &items, plan, &number);
    place(&writer.root.base, &base, plan, &number);
    strcpy(writer.root.base_guid, plan->header.guid);
    put_root();
    remember(plan);
}

/* Writes the changes since the plan before. */
static inline void write_delta(dv_plan *plan) {
    sign(plan);
    uint32_t number = 0;
    dv_plan_text delta;
    dv_plan_root next;
    assert_int_equal(dv_plan_print_delta(&delta, writer.plan, plan), 0);
    assert_int_equal(dv_plan_root_describe(&next, plan), 0);
    next.items = writer.root.items;
    next.base = writer.root.base;
    strcpy(next.base_guid, writer.root.base_guid);
    next.delta_count = writer.root.delta_count;
    next.deltas = calloc(next.delta_count + 1, sizeof *next.deltas);
    if (next.delta_count > 0) memcpy(next.deltas, writer.root.deltas, next.delta_count * sizeof *next.deltas);
    dv_plan_delta *last = &next.deltas[next.delta_count++];
    strcpy(last->guid, plan->header.guid);
    place(&last->part, &delta, plan, &number);
    free(writer.root.deltas);
    free(writer.root.moved);
    writer.root = next;
    put_root();
    remember(plan);
}

/* The plan after that one: one more member, who has every `n`th item. */
static inline dv_plan *next_plan(const dv_plan *before, uint32_t n) {
    dv_plan *plan = dv_plan_copy(before);
    assert_non_null(plan);
    char key[32];
    uint32_t slot = plan->member_count > 0 ? plan->members[plan->member_count - 1].slot + 1 : 0;
    snprintf(key, sizeof key, "n%u,a=2,s=0-w", slot);
    add_member(plan, (dv_plan_member){.slot = slot, .key = key, .weight = 1000});
    for (size_t i = 0; i < plan->set->count; i += n) plan->owners[i] = slot;
    return plan;
}

/* Nobody's items yet. */
static inline dv_plan *plan_of(size_t items) {
    dv_plan *plan = dv_plan_make(numbered_set("item-", items));
    assert_non_null(plan);
    plan->header =
        (dv_plan_header){.epoch = "00000000001aaaaaaaaaaa1", .pzxid = 7, .options = {.round_timeout_ms = 60000}};
    return plan;
}

/* ---- the reader, and what it told ---- */

static struct {
    dv_plan_reader *reader;
    dv_plan_memory memory;
    size_t changed, failed, gone;
    int error;
    size_t stop_at; /* it is stopped inside the call of that number; 0: never */
} heard;

static inline void on_changed(void *owner, int64_t now) {
    (void)now;
    assert_ptr_equal(owner, &heard);
    assert_int_equal(heard.gone, 0);
    heard.changed++;
    if (heard.changed == heard.stop_at) dv_plan_reader_stop(heard.reader);
}

static inline void on_failed(void *owner, int error, int64_t now) {
    (void)owner, (void)now;
    assert_int_equal(heard.gone, 0);
    heard.failed++;
    heard.error = error;
}

static inline void on_gone(void *owner, int64_t now) {
    (void)owner, (void)now;
    heard.gone++;
    heard.reader = NULL;
}

static const dv_plan_reader_events reader_events = {on_changed, on_failed, on_gone};

static inline void start_reader(dv_plan_set *configured) {
    heard.changed = heard.failed = heard.gone = heard.stop_at = 0;
    dv_client_lock(nodes.client);
    heard.reader = dv_plan_reader_start(nodes.client, ROOT, &heard.memory, configured, &reader_events, &heard);
    dv_client_unlock(nodes.client);
    assert_non_null(heard.reader);
    dv_fake_run(nodes.fake);
}

static inline void stop_reader(void) {
    dv_client_lock(nodes.client);
    if (heard.reader) dv_plan_reader_stop(heard.reader);
    dv_client_unlock(nodes.client);
    dv_fake_run(nodes.fake);
}

static inline void look(void) {
    dv_client_lock(nodes.client);
    dv_plan_reader_look(heard.reader, dv_client_now(nodes.client));
    dv_client_unlock(nodes.client);
    dv_fake_run(nodes.fake);
}

/* Asserts that the memory is the writer's newest plan, and the root it is from. */
static inline void assert_follows(void) {
    assert_int_equal(heard.memory.standing, DV_PLAN_GOOD);
    assert_plans_equal(heard.memory.plan, writer.plan);
    assert_int_equal(heard.memory.plan->mzxid, node_at(ROOT)->stat.mzxid);
    assert_int_equal(heard.memory.mzxid, node_at(ROOT)->stat.mzxid);
    assert_int_equal(heard.memory.version, node_at(ROOT)->stat.version);
    assert_string_equal(heard.memory.root.header.guid, writer.plan->header.guid);
    assert_int_equal(heard.memory.root.delta_count, writer.root.delta_count);
}

static inline int set_up_nodes(void **state) {
    (void)state;
    memset(&nodes, 0, sizeof nodes);
    memset(&heard, 0, sizeof heard);
    memset(&writer, 0, sizeof writer);
    nodes.zxid = 100;
    nodes.fake = dv_fake_open(NULL);
    nodes.client = dv_fake_client(nodes.fake);
    dv_fake_session(nodes.fake, DIVVY_CONNECTED);
    return 0;
}

static inline int tear_down_nodes(void **state) {
    (void)state;
    stop_reader();
    serve_all();
    bool clean = !heard.reader && !dv_fake_has_timers(nodes.fake) && !nodes.client->listeners;
    dv_fake_close(nodes.fake);
    dv_plan_memory_clear(&heard.memory);
    dv_plan_root_clear(&writer.root);
    dv_plan_free(writer.plan);
    for (size_t i = 0; i < nodes.count; i++) free(nodes.nodes[i].data);
    return clean ? 0 : -1;
}

#endif
