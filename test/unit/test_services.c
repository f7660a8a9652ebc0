/* Tests of divvy_services: lists of the healthy services, and when they are made again. SPDX-License-Identifier:
 * Apache-2.0
 *
 * DIVVY_TEST_SEED=n makes the same choices again. */
#include "registry/services.h"

#include <pthread.h>

#include "lib/seed.h"
#include "registry_ensemble_fixture.h"

static divvy_services *list_of(divvy_registry *r, const char *role) {
    divvy_services *list = (divvy_services *)&w; /* anything */
    if (divvy_registry_services(r, role, &list, WAIT_MS) != 0) fail_msg("%s", divvy_client_error(w.clients[0]));
    assert_non_null(list);
    return list;
}

/* The ids of a list, in its order. */
static const char *ids(const divvy_services *list) {
    static char text[512];
    text[0] = '\0';
    for (size_t i = 0; i < divvy_services_count(list); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", text_of(divvy_services_entry(list, i), "id"));
    return text;
}

static uint64_t requests(void) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(w.clients[0], &stats, sizeof stats), 0);
    return stats.requests - stats.checks;
}

/* Opens a registry that reads, with a view of a role or of all, and one that announces. */
static divvy_registry *open_reader(const char *role) {
    divvy_registry *reader = open_registry(&w, 0, NULL);
    open_registry(&w, 1, NULL);
    assert_int_equal(divvy_registry_watch(reader, role, NULL, NULL), 0);
    return reader;
}

static void announce(const char *role, const char *id, double load, double ttl_s) {
    beat_only(w.registries[1], json("{'role':'%s','id':'%s','load':%g,'ttl':%g}", role, id, load, ttl_s));
    run(&w, 500); /* until the view has it */
}

/* ---- one list for all who ask ---- */

/* While nothing changes all are given the same list, without a request; a change makes another. */
TEST(test_shared) {
    divvy_registry *r = open_reader("web");
    announce("web", "a", 3, 1000);
    announce("web", "b", 1, 1000);
    divvy_services *first = list_of(r, "web");
    assert_string_equal(ids(first), "b a ");
    uint64_t before = requests();
    for (int i = 0; i < 10; i++) {
        divvy_services *again = list_of(r, "web");
        assert_ptr_equal(again, first);
        divvy_services_unref(again);
    }
    assert_int_equal(requests(), before);
    announce("web", "a", 0, 1000);
    divvy_services *second = list_of(r, "web");
    assert_ptr_not_equal(second, first);
    assert_string_equal(ids(second), "a b ");
    assert_string_equal(ids(first), "b a ");
    assert_ptr_equal(divvy_services_entry(second, 1), divvy_services_entry(first, 0)); /* no copy */
    divvy_services_unref(first);
    divvy_services_unref(second);
}

/* A change of one role leaves the lists of the others as they are, and makes that of all again. */
TEST(test_roles) {
    divvy_registry *r = open_reader(NULL);
    announce("web", "a", 3, 1000);
    announce("mail", "m", 1, 1000);
    divvy_services *web = list_of(r, "web"), *mail = list_of(r, "mail"), *all = list_of(r, NULL);
    assert_string_equal(ids(all), "m a ");
    announce("mail", "m", 4, 1000);
    divvy_services *web_again = list_of(r, "web"), *mail_again = list_of(r, "mail"), *all_again = list_of(r, NULL);
    assert_ptr_equal(web, web_again);
    assert_ptr_not_equal(mail, mail_again);
    assert_string_equal(ids(all_again), "a m ");
    divvy_services *lists[] = {web, mail, all, web_again, mail_again, all_again};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) divvy_services_unref(lists[i]);
}

/* A role that does not exist has an empty list. */
TEST(test_empty) {
    divvy_registry *r = open_reader(NULL);
    announce("web", "a", 3, 1000);
    divvy_services *none = list_of(r, "nobody");
    assert_int_equal(divvy_services_count(none), 0);
    assert_null(divvy_services_entry(none, 0));
    divvy_services_unref(none);
    assert_int_equal(divvy_services_count(NULL), 0);
    assert_null(divvy_services_entry(NULL, 0));
    divvy_services_unref(NULL);
    divvy_services *one = list_of(r, "web");
    assert_non_null(divvy_services_entry(one, 0));
    assert_null(divvy_services_entry(one, 1));
    assert_null(divvy_services_entry(one, SIZE_MAX));
    divvy_services_unref(one);
}

/* The end of a ttl makes another list, without a change and without a request. */
TEST(test_ttl_ends) {
    divvy_registry *r = open_registry(&w, 0, NULL);
    divvy_registry_config persistent = DIVVY_REGISTRY_CONFIG_INIT;
    persistent.persistent = 1;
    open_registry(&w, 1, &persistent);
    assert_int_equal(divvy_registry_watch(r, "web", NULL, NULL), 0);
    announce("web", "short", 1, 10);
    announce("web", "long", 2, 1000);
    divvy_services *first = list_of(r, "web");
    assert_string_equal(ids(first), "short long ");
    run(&w, 5000);
    divvy_services *same = list_of(r, "web");
    assert_ptr_equal(same, first);
    run(&w, 6000);
    uint64_t before = requests();
    divvy_services *second = list_of(r, "web");
    assert_int_equal(requests(), before);
    assert_string_equal(ids(second), "long ");
    announce("web", "short", 1, 10);
    divvy_services *third = list_of(r, "web");
    assert_string_equal(ids(third), "short long ");
    divvy_services *lists[] = {first, same, second, third};
    for (size_t i = 0; i < 4; i++) divvy_services_unref(lists[i]);
}

/* A list outlives its entries, its view, its registry and its client. */
TEST(test_outlives) {
    divvy_registry *r = open_reader("web");
    announce("web", "a", 3, 1000);
    divvy_services *list = list_of(r, "web");
    assert_int_equal(divvy_registry_unregister(w.registries[1], "web", "a", WAIT_MS), 0);
    run(&w, 500);
    divvy_services *after = list_of(r, "web");
    assert_int_equal(divvy_services_count(after), 0);
    assert_int_equal(divvy_registry_unwatch(r, "web"), 0);
    divvy_registry_close(r);
    w.registries[0] = NULL;
    divvy_client_close(w.clients[0]);
    w.clients[0] = NULL;
    assert_string_equal(ids(list), "a ");
    assert_true(number_of(divvy_services_entry(list, 0), "load") == 3);
    divvy_services_unref(list);
    divvy_services_unref(after);
}

/* A view that ends takes its entries out of the list of all, which another view keeps. */
TEST(test_view_ends) {
    divvy_registry *r = open_reader("web");
    announce("web", "a", 3, 1000);
    assert_int_equal(divvy_registry_watch(r, NULL, NULL, NULL), 0);
    run(&w, 500);
    divvy_services *all = list_of(r, NULL);
    assert_string_equal(ids(all), "a ");
    assert_int_equal(divvy_registry_unwatch(r, "web"), 0);
    divvy_services *again = list_of(r, NULL), *web = list_of(r, "web");
    assert_string_equal(ids(again), "a ");
    assert_string_equal(ids(web), "a ");
    divvy_services_unref(all);
    divvy_services_unref(again);
    divvy_services_unref(web);
}

/* Where nothing is watched a list is read, and it is of the one who asked. */
TEST(test_read) {
    divvy_registry *r = open_registry(&w, 0, NULL);
    open_registry(&w, 1, NULL);
    announce("web", "a", 3, 1000);
    announce("web", "b", 1, 1000);
    uint64_t before = requests();
    divvy_services *first = list_of(r, "web"), *second = list_of(r, NULL);
    assert_true(requests() > before);
    assert_string_equal(ids(first), "b a ");
    assert_string_equal(ids(second), "b a ");
    assert_ptr_not_equal(divvy_services_entry(first, 0), divvy_services_entry(second, 0));
    divvy_services_unref(first);
    divvy_services_unref(second);
}

/* A wrong call returns its error, and leaves NULL. */
TEST(test_errors) {
    divvy_registry *r = open_registry(&w, 0, NULL);
    divvy_services *list = (divvy_services *)&w;
    assert_int_equal(divvy_registry_services(NULL, "web", &list, 0), DIVVY_EINVAL);
    assert_null(list);
    list = (divvy_services *)&w;
    assert_int_equal(divvy_registry_services(r, "", &list, 0), DIVVY_EINVAL);
    assert_null(list);
    assert_int_equal(divvy_registry_services(r, "web", NULL, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_services(r, "web", &list, -2), DIVVY_EINVAL);
}

/* ---- for how long a list is that of its entries ---- */

enum { ENTRIES = 6, CLOCK_FROM_MS = 900, CLOCK_UNTIL_MS = 2200 };

static dv_entry *some_entry(unsigned *random) {
    static const char *const texts[] = {
        "{'name':'web','id':'a','load':%u,'ttl':%g}", "{'name':'web','id':'a','load':%u,'ttl':%g,'enabled':false}",
        "{'name':'web','id':'a','load':%u}", /* Curator's */
    };
    static int64_t made;
    const dv_stat stat = {.mtime_ms = 1000 + rand_r(random) % 100, .czxid = ++made};
    double ttl_s = (double)(1 + rand_r(random) % 1000) / 1000;
    char text[128];
    snprintf(text, sizeof text, texts[rand_r(random) % 3], (unsigned)rand_r(random) % 4, ttl_s);
    for (char *c = text; *c; c++) *c = *c == '\'' ? '"' : *c;
    dv_entry *entry;
    const char *reason;
    assert_int_equal(dv_entry_parse(&entry, "web", "a", text, strlen(text), &stat, &reason), 0);
    if (rand_r(random) % 8 == 0) entry->flags |= DV_ENTRY_PRESERVED;
    return entry;
}

static bool are_same(const divvy_services *a, const divvy_services *b) {
    bool same = divvy_services_count(a) == divvy_services_count(b);
    for (size_t i = 0; same && i < divvy_services_count(a); i++)
        same = divvy_services_entry(a, i) == divvy_services_entry(b, i);
    return same;
}

/* A list holds at exactly those moments, before and after it was made, at which the same list would be made. */
TEST(test_holds) {
    unsigned random = (unsigned)dv_test_seed("build/test/unit_services");
    int held = 0, not = 0;
    for (int round = 0; round < 200; round++) {
        dv_entries entries = {NULL, 0, 0};
        for (int i = 0; i < ENTRIES; i++) assert_true(dv_entries_add(&entries, some_entry(&random)));
        int64_t made_ms = CLOCK_FROM_MS + rand_r(&random) % (CLOCK_UNTIL_MS - CLOCK_FROM_MS);
        divvy_services *list = dv_services_new(&entries, made_ms);
        assert_true(dv_services_hold_at(list, made_ms));
        for (int64_t ms = CLOCK_FROM_MS; ms < CLOCK_UNTIL_MS; ms++) {
            divvy_services *then = dv_services_new(&entries, ms);
            assert_int_equal(dv_services_hold_at(list, ms), are_same(list, then));
            held += are_same(list, then);
            not += !are_same(list, then);
            divvy_services_unref(then);
        }
        divvy_services_unref(list);
        dv_entries_free(&entries);
    }
    assert_true(held > 1000 && not > 1000);
}

/* ---- changes ---- */

enum { SLOTS_MOST = 1500, KEPT = 8, CHANGES = 6000, CHANGES_FROM_MS = 1500 };

/* A list that a user keeps, and what it had when it was taken. */
typedef struct {
    divvy_services *list;
    size_t count;
    const cJSON *entries[SLOTS_MOST];
} kept_list;

static void expect_kept(const kept_list *k) {
    assert_int_equal(divvy_services_count(k->list), k->count);
    for (size_t i = 0; i < k->count; i++) assert_ptr_equal(divvy_services_entry(k->list, i), k->entries[i]);
}

static void keep(kept_list *k, divvy_services *list) {
    expect_kept(k);
    divvy_services_unref(k->list);
    k->list = list ? dv_services_ref(list) : NULL;
    k->count = divvy_services_count(list);
    for (size_t i = 0; i < k->count; i++) k->entries[i] = divvy_services_entry(list, i);
}

/* Returns the list of what is in the slots, made at once. */
static divvy_services *make_fresh(dv_entry *const *slots, size_t count, int64_t now_ms) {
    dv_entries entries = {NULL, 0, 0};
    for (size_t i = 0; i < count; i++) {
        if (slots[i]) assert_true(dv_entries_add(&entries, slots[i]));
    }
    divvy_services *made = dv_services_new(&entries, now_ms);
    free(entries.list); /* which was lent the entries */
    return made;
}

/* Changes a view of so many slots at random, while users keep lists. It grows, and shrinks in the end. */
static void change_at_random(size_t count, unsigned random) {
    static dv_entry *slots[SLOTS_MOST];
    static kept_list kept[KEPT];
    int64_t now_ms = CHANGES_FROM_MS;
    divvy_services *list = make_fresh(slots, count, now_ms);
    for (int step = 0; step < CHANGES; step++) {
        bool goes = rand_r(&random) % 10 < (step < CHANGES * 2 / 3 ? 2 : 7);
        dv_entry **slot = &slots[(unsigned)rand_r(&random) % count], *before = *slot;
        *slot = goes ? NULL : some_entry(&random);
        assert_true(dv_services_change(&list, before, *slot, now_ms));
        dv_entry_free(before);
        if (step % 16 == 0) keep(&kept[(unsigned)rand_r(&random) % KEPT], list);
        if (step % 8 == 0) {
            divvy_services *fresh = make_fresh(slots, count, now_ms);
            assert_true(are_same(list, fresh));
            divvy_services_unref(fresh);
        }
        now_ms += step % 64 == 0;
        divvy_services *fresh = dv_services_hold_at(list, now_ms) ? NULL : make_fresh(slots, count, now_ms);
        if (fresh) divvy_services_unref(list);
        if (fresh) list = fresh;
    }
    for (size_t i = 0; i < count; i++) {
        assert_true(dv_services_change(&list, slots[i], NULL, now_ms));
        dv_entry_free(slots[i]);
        slots[i] = NULL;
    }
    assert_int_equal(divvy_services_count(list), 0);
    for (int i = 0; i < KEPT; i++) keep(&kept[i], NULL);
    divvy_services_unref(list);
}

/* A list that is changed entry by entry is the one that would be made at once; no list that is kept changes. */
TEST(test_changes) {
    unsigned random = (unsigned)dv_test_seed("build/test/unit_services");
    change_at_random(1, random);
    change_at_random(3, random);
    change_at_random(200, random);
    change_at_random(SLOTS_MOST, random);
}

/* ---- threads ---- */

enum { READERS = 3, TURNS = 2000 };

static struct {
    pthread_mutex_t lock;
    divvy_services *current;
    bool over;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static divvy_services *take_current(bool *over) {
    pthread_mutex_lock(&shared.lock);
    divvy_services *list = dv_services_ref(shared.current);
    *over = shared.over;
    pthread_mutex_unlock(&shared.lock);
    return list;
}

static void *read_lists(void *context) {
    for (bool over = false; !over;) {
        divvy_services *list = take_current(&over);
        for (size_t i = 0; i < divvy_services_count(list); i++)
            *(double *)context += number_of(divvy_services_entry(list, i), "load");
        divvy_services_unref(list);
    }
    return NULL;
}

/* The last thread that has a list frees it, and the last list that has an entry frees that. */
TEST(test_threads) {
    unsigned random = (unsigned)dv_test_seed("build/test/unit_services");
    pthread_t readers[READERS];
    double sums[READERS] = {0};
    dv_entries entries = {NULL, 0, 0};
    for (int i = 0; i < ENTRIES; i++) assert_true(dv_entries_add(&entries, some_entry(&random)));
    shared.current = dv_services_new(&entries, 0);
    for (int i = 0; i < READERS; i++) assert_int_equal(pthread_create(&readers[i], NULL, read_lists, &sums[i]), 0);
    for (int turn = 0; turn < TURNS; turn++) {
        dv_entry **slot = &entries.list[turn % ENTRIES], *before = *slot;
        *slot = some_entry(&random);
        pthread_mutex_lock(&shared.lock);
        assert_true(dv_services_change(&shared.current, before, *slot, 0));
        shared.over = turn == TURNS - 1;
        pthread_mutex_unlock(&shared.lock);
        dv_entry_free(before);
    }
    for (int i = 0; i < READERS; i++) pthread_join(readers[i], NULL);
    dv_entries_free(&entries);
    divvy_services_unref(shared.current);
}

TEST_EACH(setup, teardown);
