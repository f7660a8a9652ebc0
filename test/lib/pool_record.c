/* The record of what members are told, and the check that they may be told it. See pool.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "pool_internal.h"

#include <stdint.h>
#include <string.h>

void *dv_test_alloc(size_t count, size_t bytes) {
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) dv_test_die("no memory");
    return memory;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **dv_test_sorted_copy(const char *const *names, size_t count) {
    char **copy = dv_test_alloc(count, sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        if (!(copy[i] = strdup(names[i]))) dv_test_die("no memory");
    }
    qsort(copy, count, sizeof *copy, compare_names);
    return copy;
}

void dv_test_free_copies(char **names, size_t count) {
    for (size_t i = 0; names && i < count; i++) free(names[i]);
    free(names);
}

size_t dv_test_member_item(const dv_test_member *m, const char *name) {
    char **found = bsearch(&name, m->items, m->item_count, sizeof *m->items, compare_names);
    return found ? (size_t)(found - m->items) : SIZE_MAX;
}

/* ---- writing, in a callback, with the mutex held ---- */

__attribute__((format(printf, 2, 3))) static void violate(dv_test_member *m, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (!*m->violation) vsnprintf(m->violation, sizeof m->violation, format, arguments);
    va_end(arguments);
}

static void add(dv_test_member *m, dv_test_record record) {
    if (atomic_load(&m->destroyed)) violate(m, "a callback came after on_destroyed");
    if (m->record_count == m->record_room) {
        m->record_room = m->record_room ? 2 * m->record_room : 64;
        m->records = realloc(m->records, m->record_room * sizeof *m->records);
        if (!m->records) dv_test_die("no memory");
    }
    record.at_ms = dv_test_now_ms();
    m->records[m->record_count++] = record;
}

/* S8: the table of P4; kazoo's modes have fewer. A RELEASE that follows on another may be told without what was between
 * them (P17). */
static bool is_legal(const dv_test_member *m, divvy_partition_state from, divvy_partition_state to) {
    static const bool table[4][4] = {
        [DIVVY_ALLOCATING] = {[DIVVY_ACQUIRED] = true, [DIVVY_RELEASE] = true, [DIVVY_FAILURE] = true},
        [DIVVY_ACQUIRED] = {[DIVVY_ALLOCATING] = true, [DIVVY_RELEASE] = true, [DIVVY_FAILURE] = true},
        [DIVVY_RELEASE] = {[DIVVY_ALLOCATING] = true, [DIVVY_RELEASE] = true, [DIVVY_FAILURE] = true},
    };
    bool kazoo_has = !(from == DIVVY_ACQUIRED && to == DIVVY_ALLOCATING);
    return table[from][to] && (kazoo_has || !m->config.kazoo);
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    dv_test_member *m = user;
    (void)p;
    pthread_mutex_lock(&m->mutex);
    add(m, (dv_test_record){.kind = DV_TEST_STATE, .from = from, .to = to});
    if (from != m->told_state)
        violate(m, "%s -> %s was told, and %s before it", divvy_partition_state_name(from),
                divvy_partition_state_name(to), divvy_partition_state_name(m->told_state));
    if (!is_legal(m, from, to))
        violate(m, "%s -> %s is not in the table", divvy_partition_state_name(from), divvy_partition_state_name(to));
    m->told_state = to;
    pthread_mutex_unlock(&m->mutex);
    if (m->config.on_state) m->config.on_state(m, from, to);
}

static void lose(dv_test_member *m, const char *name, int reason) {
    size_t i = dv_test_member_item(m, name);
    if (i == SIZE_MAX || !m->shown[i]) violate(m, "%s was lost and not gained before", name);
    if (i == SIZE_MAX) return;
    m->shown[i] = m->revoked[i] = 0;
    add(m, (dv_test_record){.kind = DV_TEST_LOST, .reason = reason, .item = i, .token = m->tokens[i]});
}

static void gain(dv_test_member *m, const char *name, int64_t token, int reason) {
    size_t i = dv_test_member_item(m, name);
    if (i == SIZE_MAX || m->shown[i]) violate(m, "%s was gained twice, or is not ours", name);
    if (i == SIZE_MAX) return;
    /* S3: between two ownerships of ours an item may have had others, whose tokens are smaller; ours cannot shrink. */
    if (token <= 0 || token < m->tokens[i]) violate(m, "%s was gained with token %lld", name, (long long)token);
    m->shown[i] = 1;
    m->tokens[i] = token;
    add(m, (dv_test_record){.kind = DV_TEST_GAINED, .reason = reason, .item = i, .token = token});
}

static void revoke(dv_test_member *m, const char *name, int reason) {
    size_t i = dv_test_member_item(m, name);
    if (i == SIZE_MAX || !m->shown[i] || m->revoked[i]) violate(m, "%s was revoked twice, or not owned", name);
    if (i == SIZE_MAX) return;
    m->revoked[i] = 1;
    add(m, (dv_test_record){.kind = DV_TEST_REVOKED, .reason = reason, .item = i, .token = m->tokens[i]});
}

/* An item in two lists is lost first, gained then, revoked last. */
static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    dv_test_member *m = user;
    (void)p;
    pthread_mutex_lock(&m->mutex);
    for (size_t i = 0; i < event->lost_count; i++) lose(m, event->lost[i], event->reason);
    for (size_t i = 0; i < event->gained_count; i++) gain(m, event->gained[i], event->gained_tokens[i], event->reason);
    for (size_t i = 0; i < event->revoked_count; i++) revoke(m, event->revoked[i], event->reason);
    if (event->generation < m->generation) violate(m, "the generation went back");
    size_t told = event->lost_count + event->gained_count + event->revoked_count;
    told += event->leaving_count + event->staying_count + event->prepare_count;
    if (told == 0) violate(m, "an event without items");
    m->generation = event->generation;
    pthread_mutex_unlock(&m->mutex);
    if (m->config.on_items) m->config.on_items(m, event);
}

static void on_destroyed(void *user) {
    dv_test_member *m = user;
    pthread_mutex_lock(&m->mutex);
    add(m, (dv_test_record){.kind = DV_TEST_DESTROYED});
    atomic_store(&m->destroyed, true);
    pthread_mutex_unlock(&m->mutex);
}

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    dv_test_member *m = user;
    (void)client;
    pthread_mutex_lock(&m->mutex);
    bool destroyed = atomic_load(&m->destroyed);
    atomic_store(&m->destroyed, false); /* The client may say something for longer than the partitioner. */
    add(m, (dv_test_record){.kind = DV_TEST_WARNING, .to = code});
    atomic_store(&m->destroyed, destroyed);
    if (!*message) violate(m, "a warning without a text");
    pthread_mutex_unlock(&m->mutex);
}

void dv_test_record_hook(dv_test_member *m, divvy_client_config *client, divvy_partitioner_config *partitioner) {
    client->user = partitioner->user = m;
    client->on_warning = on_warning;
    if (m->config.silent) return;
    partitioner->on_state = on_state;
    partitioner->on_items = on_items;
    partitioner->on_destroyed = on_destroyed;
}

void dv_test_record_init(dv_test_member *m) {
    pthread_mutex_init(&m->mutex, NULL);
    m->shown = dv_test_alloc(m->item_count, 1);
    m->revoked = dv_test_alloc(m->item_count, 1);
    m->tokens = dv_test_alloc(m->item_count, sizeof *m->tokens);
    m->marked = dv_test_alloc(m->item_count, sizeof *m->marked);
}

void dv_test_record_free(dv_test_member *m) {
    pthread_mutex_destroy(&m->mutex);
    free(m->records);
    free(m->shown);
    free(m->revoked);
    free(m->tokens);
    free(m->marked);
}

/* ---- reading ---- */

void dv_test_record_check(dv_test_member *m) {
    pthread_mutex_lock(&m->mutex);
    char violation[sizeof m->violation];
    memcpy(violation, m->violation, sizeof violation);
    *m->violation = '\0'; /* said once, so that the teardown can do its work */
    pthread_mutex_unlock(&m->mutex);
    if (*violation) fail_msg("%s: %s", divvy_partitioner_identifier(m->partitioner), violation);
}

void dv_test_record_compare(dv_test_member *m) {
    if (m->config.silent || !m->partitioner) return;
    divvy_partition *share = divvy_partitioner_partition(m->partitioner);
    assert_non_null(share);
    size_t at = 0;
    for (size_t i = 0; i < m->item_count; i++) {
        const char *name = divvy_partition_item(share, at);
        bool in_share = name && strcmp(name, m->items[i]) == 0;
        if (in_share != m->shown[i])
            fail_msg("%s is %s the snapshot, and callbacks said otherwise", m->items[i], in_share ? "in" : "not in");
        if (!in_share) continue;
        assert_int_equal(divvy_partition_token(share, at), m->tokens[i]);
        assert_int_equal(divvy_partition_revoked(share, at), m->revoked[i]);
        at++;
    }
    assert_int_equal(at, divvy_partition_count(share));
    divvy_partition_unref(share);
}

static bool matches(const dv_test_record *record, enum dv_test_kind kind, int to) {
    return record->kind == kind && (to < 0 || record->to == to);
}

size_t dv_test_member_count(dv_test_member *m, enum dv_test_kind kind, int to) {
    size_t count = 0;
    pthread_mutex_lock(&m->mutex);
    for (size_t i = 0; i < m->record_count; i++) count += matches(&m->records[i], kind, to);
    pthread_mutex_unlock(&m->mutex);
    return count;
}

size_t dv_test_member_last(dv_test_member *m, enum dv_test_kind kind, int to) {
    pthread_mutex_lock(&m->mutex);
    size_t i = m->record_count;
    while (i > 0 && !matches(&m->records[i - 1], kind, to)) i--;
    pthread_mutex_unlock(&m->mutex);
    return i ? i - 1 : SIZE_MAX;
}

const char *dv_test_member_states(dv_test_member *m) {
    static char text[2000];
    size_t used = (size_t)snprintf(text, sizeof text, "ALLOCATING");
    pthread_mutex_lock(&m->mutex);
    for (size_t i = 0; i < m->record_count && used < sizeof text; i++) {
        const dv_test_record *record = &m->records[i];
        if (record->kind == DV_TEST_STATE)
            used += (size_t)snprintf(text + used, sizeof text - used, " %s", divvy_partition_state_name(record->to));
    }
    pthread_mutex_unlock(&m->mutex);
    return text;
}
