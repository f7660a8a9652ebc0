/* The items that concern this member: a table that can be replaced while it is worked on. SPDX-License-Identifier:
 * Apache-2.0
 *
 * docs/protocol.md, rules D17, P15. Items stand behind pointers, which the queues, and requests under way, may hold for
 * longer than a table lasts. An item is made when it comes into our share, and is spare once it has been given up, with
 * all that was said of it. So a member of a large pool has nothing of most items but what the plan says. The table is
 * of fixed extent, and is replaced as a whole. So a thread that looks without the client lock sees a whole table. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "partitioner/partitioner.h"
#include "znode/path.h"

enum { LOCK_PATH_BYTES_MAX = 64 * 1024, LOCK_NAME_BYTES = 64 };

/* ---- sets, as users give them ---- */

static size_t lock_path_bytes(size_t locks_path_bytes, const char *name) {
    return locks_path_bytes + 1 + dv_name_encode(name, NULL, 0) + LOCK_NAME_BYTES;
}

/* Returns the first item whose lock would have too long a path, or count. P15: it is never asked for. */
static size_t find_too_long(const char *locks_path, const dv_plan_set *set) {
    size_t path_bytes = strlen(locks_path), i = 0;
    size_t surely = path_bytes + LOCK_NAME_BYTES < LOCK_PATH_BYTES_MAX / 2 ? LOCK_PATH_BYTES_MAX / 8 : 0;
    while (i < set->count && (strlen(set->names[i]) <= surely || /* N2: at most three times as long when escaped */
                              lock_path_bytes(path_bytes, set->names[i]) <= LOCK_PATH_BYTES_MAX))
        i++;
    return i;
}

/* In the order of the user, so that what is wrong is told by its place there. */
static int check_given(divvy_client *client, const char *call, const char *const *items, size_t count) {
    if (!items || count == 0) return dv_fail(client, DIVVY_EINVAL, "%s: there are no items", call);
    if (count > DV_PLAN_ITEMS_MAX)
        return dv_fail(client, DIVVY_E2BIG, "%s: %zu items; 1,000,000 are the most", call, count);
    for (size_t i = 0; i < count; i++) {
        if (!items[i] || !*items[i])
            return dv_fail(client, DIVVY_EINVAL, "%s: item %zu of %zu is %s", call, i + 1, count,
                           items[i] ? "empty" : "NULL");
    }
    return 0;
}

static const char *find_doubled(const char *const *sorted, size_t count) {
    for (size_t i = 1; i < count; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0) return sorted[i];
    }
    return NULL;
}

int dv_items_make_set(dv_plan_set **out, divvy_client *client, const char *call, const char *locks_path,
                      const char *const *items, size_t count) {
    *out = NULL;
    int error = check_given(client, call, items, count);
    if (error) return error;
    const char **sorted = (const char **)(uintptr_t)malloc(count * sizeof *sorted);
    if (!sorted) return dv_fail_plainly(client, DIVVY_ENOMEM);
    memcpy((void *)sorted, (const void *)items, count * sizeof *sorted);
    qsort((void *)sorted, count, sizeof *sorted, dv_name_compare);
    const char *doubled = find_doubled(sorted, count);
    if (doubled) error = dv_fail(client, DIVVY_EINVAL, "%s: the item \"%.100s\" is given twice", call, doubled);
    dv_plan_set *set = error ? NULL : dv_plan_set_make(sorted, count);
    if (!error && !set) error = dv_fail_plainly(client, DIVVY_ENOMEM);
    free((void *)sorted);
    size_t too_long = set ? find_too_long(locks_path, set) : 0;
    if (set && too_long < set->count) {
        error =
            dv_fail(client, DIVVY_E2BIG,
                    "%s: the lock of item \"%.40s...\" would have a path of %zu bytes; 65536 are the most. Name the "
                    "item by something shorter, such as a hash of it",
                    call, set->names[too_long], lock_path_bytes(strlen(locks_path), set->names[too_long]));
        dv_plan_set_unref(set);
        return error;
    }
    *out = set;
    return error;
}

/* ---- items ---- */

static dv_item *make_item(divvy_partitioner *p, const char *name) {
    char usual[256];
    size_t path_bytes = strlen(p->locks_path), node_bytes = dv_name_encode(name, usual, sizeof usual);
    dv_item *item = calloc(1, offsetof(dv_item, directory) + path_bytes + 1 + node_bytes + 1);
    if (!item) return NULL;
    item->partitioner = p;
    memcpy(item->directory, p->locks_path, path_bytes);
    item->directory[path_bytes] = '/';
    char *node = item->directory + path_bytes + 1;
    if (node_bytes < sizeof usual) memcpy(node, usual, node_bytes + 1);
    else dv_name_encode(name, node, node_bytes + 1);
    item->plain = strcmp(node, name) == 0;
    item->too_long = path_bytes + 1 + node_bytes + LOCK_NAME_BYTES > LOCK_PATH_BYTES_MAX;
    return item;
}

dv_item *dv_item_ref(dv_item *item) {
    item->refs++;
    return item;
}

void dv_item_unref(dv_item *item) {
    assert(item->refs > 0);
    item->refs--;
    if (item->refs == 1) dv_items_prune(item);
    if (item->refs > 0) return;
    free(item->load);
    free(item);
}

dv_item *dv_item_find(const divvy_partitioner *p, const char *name) {
    const dv_names *names = dv_items_of(p)->names;
    const char **found =
        bsearch(&name, (const void *)names->names, names->count, sizeof *names->names, dv_name_compare);
    return found ? dv_item_at(p, (size_t)(found - names->names)) : NULL;
}

/* ---- tables ---- */

/* Its items belong to the next table by now. */
static void free_table(dv_item_table *table) {
    if (!table) return;
    dv_name_index_free(table->index);
    dv_names_unref(table->names);
    free((void *)table->items);
    free(table);
}

/* A row of a table on the way. */
typedef struct {
    dv_item *item;
    uint32_t number;
    bool dealt;
} row;

/* A table on the way. Items that were made for it have no reference yet. */
typedef struct {
    const char **names;
    row *rows;
    size_t count;
} draft;

static void free_draft(draft *d) {
    for (size_t i = 0; i < d->count; i++) {
        if (d->rows[i].item->refs == 0) free(d->rows[i].item);
    }
    free((void *)d->names);
    free(d->rows);
}

/* Returns whether the user has nothing of it, and knows that: he is told by the names in the table. */
static bool given_up(const dv_item *item) {
    return !dv_item_shown(item) && !item->life.contender && !item->told.token && !item->told.prepare;
}

/* Returns whether an item can leave the table. One that is dealt may come back, so it stays until nothing of it is
 * left, in a queue, on its way or in what others read. */
static bool is_spare(const dv_item *item, bool dealt) {
    if (!given_up(item) || !dealt) return given_up(item);
    bool is_said = item->noted.marks || item->noted.was_listed || (item->load && item->load->told != DV_CLASS_NONE);
    return !item->life.wanted && item->refs == 1 && !is_said;
}

static void add_row(draft *d, const char *name, dv_item *item, size_t number, bool dealt) {
    assert(d->count == 0 || strcmp(d->names[d->count - 1], name) < 0);
    d->names[d->count] = name;
    d->rows[d->count++] = (row){item, (uint32_t)number, dealt};
}

/* Makes those of the items from..to of the set that are ours. Returns false when an allocation fails. */
static bool add_new(draft *d, divvy_partitioner *p, const dv_plan_set *set, const uint8_t *mine, size_t from,
                    size_t to) {
    for (size_t i = from; mine && i < to; i++) {
        dv_item *item = mine[i] ? make_item(p, set->names[i]) : NULL;
        if (mine[i] && !item) return false;
        if (item) add_row(d, set->names[i], item, i, true);
    }
    return true;
}

static size_t count_mine(const dv_plan_set *set, const uint8_t *mine) {
    size_t count = 0;
    for (size_t i = 0; mine && i < set->count; i++) count += mine[i] != 0;
    return count;
}

/* Lists the items that are in the table and have to stay, and those of the set that are ours: both are sorted. */
static bool merge(draft *d, divvy_partitioner *p, const dv_plan_set *set, const uint8_t *mine) {
    const dv_item_table *old = dv_items_of(p);
    size_t old_count = old ? old->names->count : 0, room = old_count + count_mine(set, mine) + 1, next = 0;
    *d = (draft){(const char **)(uintptr_t)malloc(room * sizeof *d->names), calloc(room, sizeof *d->rows), 0};
    if (!d->names || !d->rows) return false;
    for (size_t i = 0; i < old_count; i++) {
        dv_item *item = old->items[i];
        const char *name = old->names->names[i];
        size_t at = set == p->dealt ? item->number : dv_plan_set_find(set, name, next);
        bool dealt = set == p->dealt ? item->dealt : at < set->count && strcmp(set->names[at], name) == 0;
        if (!add_new(d, p, set, mine, next, at)) return false;
        next = at + dealt;
        if (!is_spare(item, dealt) || (dealt && mine && mine[at])) add_row(d, name, item, at, dealt);
    }
    return add_new(d, p, set, mine, next, set->count);
}

static dv_item_table *make_table(const draft *d) {
    dv_item_table *table = calloc(1, sizeof *table);
    if (!table) return NULL;
    table->names = dv_names_copy(d->names, d->count);
    table->index = table->names ? dv_name_index_new(table->names) : NULL;
    table->items = calloc(d->count + 1, sizeof *table->items);
    if (table->index && table->items) return table;
    free_table(table);
    return NULL;
}

static int64_t owned_token(const dv_item *item) {
    return dv_item_owned(item) ? item->life.token : 0;
}

void dv_items_note_owned(const dv_item *item) {
    atomic_store(dv_name_token(dv_item_name(item->partitioner, item->index)), owned_token(item));
}

/* Fills the table, which takes a reference to each item. All is there already, so nothing can fail here. */
static void fill_table(dv_item_table *table, const draft *d) {
    for (size_t i = 0; i < d->count; i++) {
        dv_item *item = table->items[i] = dv_item_ref(d->rows[i].item);
        item->index = (uint32_t)i;
        item->number = d->rows[i].number;
        item->dealt = d->rows[i].dealt;
        atomic_store(dv_name_token(table->names->names[i]), owned_token(item));
    }
}

static bool is_in(const dv_item_table *table, const dv_item *item) {
    return item->index < table->names->count && table->items[item->index] == item;
}

/* Drops the old table's references. An item that it alone has was given up as a whole, or never begun with. */
static void let_go(const dv_item_table *old, const dv_item_table *table, int64_t now) {
    for (size_t i = 0; i < old->names->count; i++) {
        dv_item *item = old->items[i];
        if (is_in(table, item)) {
            item->refs--;
            assert(item->refs > 0);
            continue;
        }
        assert(given_up(item) && !item->life.is_first);
        dv_report_forget(item);
        dv_item_want(item, false, now);
        item->dealt = false;
        dv_item_unref(item);
    }
}

/* Those that are not dealt have the number of the next that is. */
dv_item *dv_item_dealt(const divvy_partitioner *p, size_t number) {
    size_t low = 0, high = dv_item_count(p);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const dv_item *item = dv_item_at(p, middle);
        if (item->number < number || (item->number == number && !item->dealt)) low = middle + 1;
        else high = middle;
    }
    dv_item *item = low < dv_item_count(p) ? dv_item_at(p, low) : NULL;
    return item && item->number == number && item->dealt ? item : NULL;
}

bool dv_items_have(const divvy_partitioner *p, const char *name) {
    return dv_item_find(p, name) || dv_plan_set_has(p->dealt, name);
}

/* ---- readers without the client lock ---- */

static void free_tables(dv_item_table **first) {
    while (*first) {
        dv_item_table *table = *first;
        *first = table->older;
        free_table(table);
    }
}

/* Frees replaced tables that nobody looks into, one grace period after the other: none waits for more than two. */
static void collect(divvy_partitioner *p, int64_t now) {
    enum { AGAIN_MS = 10 };
    while (p->aging || p->retired) {
        if (!p->aging) {
            p->aging = p->retired;
            p->retired = NULL;
            dv_readers_begin_grace(p->readers);
        }
        if (!dv_readers_end_grace(p->readers)) {
            dv_timer_set(p->object.client, &p->collect_timer, now + AGAIN_MS);
            return;
        }
        free_tables(&p->aging);
    }
    assert(!p->aging && !p->retired);
}

static void on_collect_timer(dv_timer *timer, int64_t now) {
    divvy_partitioner *p = DV_CONTAINER(timer, divvy_partitioner, collect_timer);
    collect(p, now);
}

static void retire(divvy_partitioner *p, dv_item_table *old) {
    assert(old != dv_items_of(p) && !old->older);
    old->older = p->retired;
    p->retired = old;
    p->collect_timer.fire = on_collect_timer;
    if (!p->collect_timer.link) collect(p, dv_client_now(p->object.client));
}

/* P10: the token is the same before and after the clock was read, so it and the deadline are of one session. */
int64_t dv_items_believed_token(const divvy_partitioner *c, const char *name) {
    divvy_partitioner *p = (divvy_partitioner *)(uintptr_t)c;
    atomic_uint *inside = dv_readers_enter(p->readers);
    int64_t token;
    const dv_item_table *table;
    const char *found;
    do {
        table = atomic_load(&p->table);
        found = dv_name_index_find(table->index, name);
        token = found ? atomic_load(dv_name_token(found)) : 0;
        if (token && !dv_client_alive_at(p->object.client, dv_client_now(p->object.client))) token = 0;
    } while (token && (atomic_load(&p->table) != table || atomic_load(dv_name_token(found)) != token));
    dv_readers_leave(inside);
    return token;
}

/* ---- replacing ---- */

static void tell_too_long(divvy_partitioner *p) {
    size_t i = find_too_long(p->locks_path, p->dealt);
    if (i == p->dealt->count) return;
    dv_report_warn_once(p, DIVVY_WARN_ITEM_NAME,
                        "%s: the item \"%.40s...\" has a name that is too long for a lock, whose path may have 65536 "
                        "bytes; it stays unowned. Give it a shorter name in the set of items",
                        p->path, p->dealt->names[i]);
}

static bool has_encoded(const dv_plan_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        if (!dv_name_is_plain(set->names[i])) return true;
    }
    return false;
}

/* Leaves out what is spare, and adds what is ours by `mine`. */
static int replace(divvy_partitioner *p, const dv_plan_set *set, const uint8_t *mine) {
    if (!p->readers && !(p->readers = dv_readers_new())) return DIVVY_ENOMEM;
    draft d;
    dv_item_table *old = dv_items_of(p), *table = merge(&d, p, set, mine) ? make_table(&d) : NULL;
    if (table) fill_table(table, &d);
    free_draft(&d);
    if (!table) return DIVVY_ENOMEM;
    atomic_store(&p->table, table);
    p->spare = 0;
    if (!old) return 0;
    let_go(old, table, dv_client_now(p->object.client));
    retire(p, old);
    return 0;
}

int dv_items_use(divvy_partitioner *p, dv_plan_set *set) {
    bool same = p->dealt && dv_plan_set_equal(p->dealt, set);
    if (!same && replace(p, set, NULL) != 0) return DIVVY_ENOMEM;
    dv_plan_set_ref(set);
    dv_plan_set_unref(p->dealt);
    p->dealt = set;
    if (same) return 0;
    p->has_encoded = has_encoded(set);
    tell_too_long(p);
    return 0;
}

int dv_items_need(divvy_partitioner *p, const uint8_t *mine) {
    size_t missing = count_mine(p->dealt, mine);
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *item = dv_item_at(p, i);
        missing -= item->dealt && mine[item->number];
    }
    return missing == 0 ? 0 : replace(p, p->dealt, mine);
}

/* Once for all that are given up by the events that wait in the queue. Without memory they stay until the next time. */
static void on_prune(dv_event *event, int64_t now) {
    divvy_partitioner *p = DV_CONTAINER(event, divvy_partitioner, prune);
    event->run = NULL;
    replace(p, p->dealt, NULL);
    dv_op_end(p, now);
}

/* A table is replaced in time that goes with its length, so not for each item that is spare. */
void dv_items_prune(dv_item *item) {
    enum { SPARE_PART = 4 };
    divvy_partitioner *p = item->partitioner;
    if (p->state == DIVVY_FAILURE || !is_in(dv_items_of(p), item) || !is_spare(item, item->dealt)) return;
    p->spare++;
    if (!item->dealt || p->spare * SPARE_PART > dv_item_count(p)) dv_op_post(p, &p->prune, on_prune);
}

void dv_items_free(divvy_partitioner *p) {
    dv_item_table *table = dv_items_of(p);
    for (size_t i = 0; table && i < table->names->count; i++) dv_item_unref(table->items[i]);
    free_table(table);
    free_tables(&p->aging);
    free_tables(&p->retired);
    dv_readers_free(p->readers);
    dv_plan_set_unref(p->dealt);
    dv_plan_set_unref(p->configured);
}
