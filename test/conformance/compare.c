/* The comparison of the two worlds' logs. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

/* ---- lists ---- */

void told_list_clear(told_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].text);
        free(list->items[i].marks);
    }
    list->count = 0;
}

told *told_list_add(told_list *list, const char *text, const mark *marks, size_t mark_count) {
    if (list->count == list->room) {
        list->room = list->room ? list->room * 2 : 32;
        list->items = realloc(list->items, list->room * sizeof *list->items);
        if (!list->items) abort();
    }
    told *t = &list->items[list->count++];
    *t = (told){.text = strdup(text), .mark_count = mark_count};
    if (mark_count) {
        t->marks = malloc(mark_count * sizeof *marks);
        if (!t->marks) abort();
        memcpy(t->marks, marks, mark_count * sizeof *marks);
    }
    return t;
}

/* ---- zxids: pairs of what is the same transaction, in order in both worlds ---- */

typedef struct {
    int64_t zxid[WORLDS], time_ms[WORLDS];
} pair;

static pair *pairs;
static size_t pair_count, pair_room;

static size_t place_of(int64_t zxid) {
    size_t low = 0, high = pair_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pairs[middle].zxid[0] < zxid) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool insert(size_t at, const mark *a, const mark *b) {
    if (at > 0 && pairs[at - 1].zxid[1] >= b->zxid) return false;
    if (at < pair_count && pairs[at].zxid[1] <= b->zxid) return false;
    if (pair_count == pair_room) {
        pair_room = pair_room ? pair_room * 2 : 1024;
        pairs = realloc(pairs, pair_room * sizeof *pairs);
        if (!pairs) abort();
    }
    memmove(&pairs[at + 1], &pairs[at], (pair_count++ - at) * sizeof *pairs);
    pairs[at] = (pair){{a->zxid, b->zxid}, {a->time_ms, b->time_ms}};
    return true;
}

static bool same_time(int64_t *known, int64_t told_ms) {
    if (told_ms == -1) return true;
    if (*known == -1) *known = told_ms;
    return *known == told_ms;
}

static bool same_mark(const mark *a, const mark *b) {
    size_t at = place_of(a->zxid);
    if (at == pair_count || pairs[at].zxid[0] != a->zxid) return insert(at, a, b);
    pair *p = &pairs[at];
    return p->zxid[1] == b->zxid && same_time(&p->time_ms[0], a->time_ms) && same_time(&p->time_ms[1], b->time_ms);
}

void compare_free(void) {
    free(pairs);
    pairs = NULL;
    pair_count = pair_room = 0;
}

/* ---- entries and lists ---- */

static size_t compared;

size_t compared_count(void) {
    return compared;
}

static bool same(const told *a, const told *b) {
    compared++;
    if (strcmp(a->text, b->text) != 0 || a->mark_count != b->mark_count) return false;
    for (size_t i = 0; i < a->mark_count; i++)
        if (!same_mark(&a->marks[i], &b->marks[i])) return false;
    return true;
}

static int by_text(const void *a, const void *b) {
    return strcmp(((const told *)a)->text, ((const told *)b)->text);
}

/* Watch events that follow one another, in the order of their names. */
static void sort_watches(told_list *list) {
    for (size_t i = 0, end; i < list->count; i = end + 1) {
        for (end = i; end < list->count && list->items[end].is_watch;) end++;
        if (end > i) qsort(&list->items[i], end - i, sizeof *list->items, by_text);
    }
}

static void print_list(const world *w, const told_list *list, size_t at) {
    enum { BEFORE = 6, BEHIND = 4 };
    for (size_t i = at > BEFORE ? at - BEFORE : 0; i < list->count && i <= at + BEHIND; i++) {
        const told *t = &list->items[i];
        printf("  %s %-6s %s", i == at ? ">" : " ", w->name, t->text);
        for (size_t m = 0; m < t->mark_count; m++) printf(" 0x%llx", (unsigned long long)t->marks[m].zxid);
        printf("\n");
    }
    if (at >= list->count) printf("  > %-6s (nothing)\n", w->name);
}

bool compare_logs(world worlds[WORLDS], int seat_number, bool sorted) {
    told_list *a = &worlds[0].seats[seat_number].log, *b = &worlds[1].seats[seat_number].log;
    if (sorted) {
        sort_watches(a);
        sort_watches(b);
    }
    size_t at = 0;
    while (at < a->count && at < b->count && same(&a->items[at], &b->items[at])) at++;
    bool equal = at == a->count && at == b->count;
    if (!equal && breakage_now == BREAK_NOTHING) {
        printf("difference in what session %d was told:\n", seat_number);
        print_list(&worlds[0], a, at);
        print_list(&worlds[1], b, at);
    }
    told_list_clear(a);
    told_list_clear(b);
    return equal;
}
