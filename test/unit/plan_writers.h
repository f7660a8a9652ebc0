/* Writers of plans on the in-memory ensemble, each with a memory and a settled party of its own, and a witness who
 * reads what they wrote. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PLAN_WRITERS_H
#define DV_TEST_PLAN_WRITERS_H

#include "plan/draft.h"
#include "plan/reader.h"
#include "plan/writer.h"
#include "plan_fixture.h"
#include "test_ensemble.h"

#define ROOT "/p/plan"
#define PARTY "/p/party"

enum { NOT_DONE = -1, USERS_MAX = 3, WAIT_MS = 60000 };

typedef struct {
    divvy_client *client;
    dv_plan_memory memory;
    dv_roster *roster;
    dv_plan_set *set;
    dv_plan_events events;
    bool over_newer;
    dv_plan_writer *attempt;
    int outcome, error; /* of the last attempt; NOT_DONE */
    int done, gone;
    bool stop_when_done, crashed;
    dv_plan_reader *reader;
    bool read;
} user;

static divvy_testing_ensemble *ensemble;
static user users[USERS_MAX];
static divvy_client *witness; /* and administrator */

/* ---- the ensemble ---- */

static inline void step_once(void) {
    int64_t until = divvy_testing_now_ms(ensemble) + 1000;
    assert_true(divvy_testing_step(ensemble, until) >= 0);
}

#define STEP_UNTIL(condition)                                       \
    do {                                                            \
        int64_t latest_ = divvy_testing_now_ms(ensemble) + WAIT_MS; \
        while (!(condition)) {                                      \
            assert_true(divvy_testing_now_ms(ensemble) < latest_);  \
            step_once();                                            \
        }                                                           \
    } while (0)

static inline void put_data(const char *path, const char *data, size_t bytes) {
    assert_int_equal(divvy_testing_put(ensemble, path, data, bytes, DIVVY_TESTING_PERSISTENT), 0);
    divvy_testing_run(ensemble, 10);
}

static inline void put_text(const char *path, const char *text) {
    put_data(path, text, strlen(text));
}

static inline void put_away(const char *path) {
    assert_int_equal(divvy_testing_remove(ensemble, path), 0);
    divvy_testing_run(ensemble, 10);
}

static inline bool is_there(const char *path) {
    return divvy_testing_exists(ensemble, path) == 1;
}

static inline dv_stat stat_of(const char *path) {
    outcome o;
    assert_int_equal(do_op(witness, &o, op_of(DV_EXISTS, path)), 0);
    return o.stat;
}

static inline divvy_strings *children_of_root(void) {
    divvy_strings *children = divvy_testing_children(ensemble, ROOT);
    assert_non_null(children);
    return children;
}

static inline size_t child_count(void) {
    divvy_strings *children = children_of_root();
    size_t count = divvy_strings_count(children);
    divvy_strings_free(children);
    return count;
}

static inline void remove_plan(void) {
    divvy_strings *children = children_of_root();
    for (size_t i = 0; i < divvy_strings_count(children); i++) {
        char path[256];
        snprintf(path, sizeof path, ROOT "/%s", divvy_strings_get(children, i));
        assert_int_equal(divvy_testing_remove(ensemble, path), 0);
    }
    divvy_strings_free(children);
    divvy_testing_run(ensemble, 10);
    put_away(ROOT);
}

/* ---- the party ---- */

static inline void join(const char *node, const char *data) {
    char path[256];
    snprintf(path, sizeof path, PARTY "/%s", node);
    outcome o;
    assert_int_equal(do_op(witness, &o, op_create(path, data, DV_EPHEMERAL)), 0);
    divvy_testing_run(ensemble, 10);
}

static inline void part(const char *node) {
    char path[256];
    snprintf(path, sizeof path, PARTY "/%s", node);
    put_away(path);
}

/* A dynamic member of the first set's tag. */
static inline const char *member(unsigned number) {
    static char name[64];
    snprintf(name, sizeof name, "0000000000%u0000000000%u1,a=2,s=%08x-m%u", number % 10, number / 10, users[0].set->crc,
             number);
    return name;
}

static inline void settle(user *u) {
    divvy_strings *names = divvy_testing_children(ensemble, PARTY);
    size_t count = divvy_strings_count(names);
    const char **texts = calloc(count + 1, sizeof *texts);
    for (size_t i = 0; i < count; i++) texts[i] = divvy_strings_get(names, i);
    assert_int_equal(dv_roster_settle(u->roster, texts, count, stat_of(PARTY).pzxid), 0);
    free((void *)texts);
    divvy_strings_free(names);
    dv_plan_party *party = dv_roster_party(u->roster);
    party->set = u->set;
}

/* ---- reading: the memory is what stands there now ---- */

static inline void reader_changed(void *owner, int64_t now) {
    (void)now;
    ((user *)owner)->read = true;
}

static inline void reader_failed(void *owner, int error, int64_t now) {
    (void)owner, (void)now;
    fail_msg("the plan cannot be read: %d", error);
}

static inline void reader_gone(void *owner, int64_t now) {
    (void)now;
    ((user *)owner)->reader = NULL;
}

static const dv_plan_reader_events reader_events = {reader_changed, reader_failed, reader_gone};

static inline void refresh(user *u) {
    u->read = false;
    dv_client_lock(u->client);
    u->reader = dv_plan_reader_start(u->client, ROOT, &u->memory, u->set, &reader_events, u);
    assert_non_null(u->reader);
    dv_plan_reader_look(u->reader, dv_client_now(u->client));
    dv_client_unlock(u->client);
    STEP_UNTIL(u->read);
    dv_client_lock(u->client);
    dv_plan_reader_stop(u->reader);
    dv_client_unlock(u->client);
    STEP_UNTIL(u->reader == NULL);
}

/* ---- writing ---- */

static inline void on_done(void *owner, dv_plan_outcome what, int error, int64_t now) {
    user *u = owner;
    (void)now;
    assert_int_equal(u->gone, 0);
    assert_int_equal(u->done, 0);
    u->done++;
    u->outcome = (int)what;
    u->error = error;
    assert_true(what == DV_PLAN_FAILED ? error < 0 : error == 0);
    if (u->stop_when_done) dv_plan_writer_stop(u->attempt);
}

static inline void on_gone(void *owner, int64_t now) {
    user *u = owner;
    (void)now;
    assert_int_equal(u->gone, 0);
    u->gone++;
    u->attempt = NULL;
}

static dv_plan_sizes sizes = {DV_PLAN_INLINE_ROOT_BYTES, DV_PLAN_CHUNK_BYTES};

static inline void begin_attempt(user *u) {
    static const dv_plan_writer_events events = {on_done, on_gone};
    const dv_plan_writer_config config = {ROOT, PARTY, &u->memory, u->roster, &u->events, u->over_newer, &sizes, {0}};
    u->outcome = NOT_DONE;
    u->error = u->done = u->gone = 0;
    dv_client_lock(u->client);
    u->attempt = dv_plan_writer_start(u->client, &config, &events, u);
    dv_client_unlock(u->client);
    assert_non_null(u->attempt);
    assert_int_equal(u->done + u->gone, 0);
}

static inline int attempt(user *u) {
    begin_attempt(u);
    STEP_UNTIL(u->gone);
    assert_int_equal(u->done, 1);
    return u->outcome;
}

static inline void stop_attempt(user *u) {
    dv_client_lock(u->client);
    if (u->attempt) dv_plan_writer_stop(u->attempt);
    dv_client_unlock(u->client);
}

/* As a member would: reads what it has to, until nothing is left to write. How many plans it wrote. */
static inline unsigned write_all(user *u) {
    unsigned written = 0;
    for (int tries = 0; tries < 20; tries++) {
        settle(u);
        int what = attempt(u);
        if (what == DV_PLAN_NEEDLESS) return written;
        if (what == DV_PLAN_WRITTEN) written++;
        else if (what == DV_PLAN_FAILED && u->error == DIVVY_ECONNECTION) STEP_UNTIL(dv_client_connected(u->client));
        else if (what == DV_PLAN_BEHIND) refresh(u);
        else fail_msg("outcome %d, error %d", what, u->error);
    }
    fail_msg("it writes without end");
    return 0;
}

/* ---- what was written ---- */

/* Reads what stands there, as a reader that knows nothing of it. */
static inline void read_anew(user *reader) {
    *reader = (user){.client = witness};
    refresh(reader);
}

/* Asserts that the plan reads as its writer remembers it, in every text. */
static inline void assert_reads_as(const dv_plan_memory *expected) {
    user fresh;
    read_anew(&fresh);
    assert_int_equal(fresh.memory.standing, DV_PLAN_GOOD);
    assert_int_equal(expected->standing, DV_PLAN_GOOD);
    assert_plans_equal(fresh.memory.plan, expected->plan);
    assert_int_equal(fresh.memory.plan->mzxid, expected->plan->mzxid);
    assert_int_equal(fresh.memory.mzxid, expected->mzxid);
    assert_int_equal(fresh.memory.version, expected->version);
    assert_int_equal(fresh.memory.root.delta_count, expected->root.delta_count);
    char epoch[256];
    snprintf(epoch, sizeof epoch, ROOT "/%s", expected->plan->header.epoch);
    assert_true(is_there(epoch));
    dv_plan_memory_clear(&fresh.memory);
}

/* Returns how many chunks there are that the root does not name. */
static inline size_t garbage_count(const dv_plan_memory *memory) {
    const char **names = dv_plan_root_chunk_names(&memory->root);
    size_t count = dv_plan_root_chunk_count(&memory->root), garbage = 0;
    divvy_strings *children = children_of_root();
    for (size_t i = 0; i < divvy_strings_count(children); i++) {
        uint64_t generation;
        const char *name = divvy_strings_get(children, i);
        bool named = false;
        for (size_t n = 0; n < count; n++) named = named || strcmp(names[n], name) == 0;
        garbage += dv_plan_chunk_parse(name, &generation) && !named;
    }
    divvy_strings_free(children);
    free((void *)names);
    return garbage;
}

/* Weight 1000 + n for the first member: a change as small as there is. */
static inline int write_weight(user *u, uint32_t weight) {
    u->events = (dv_plan_events){.weight = {u->memory.plan->members[0].key, weight}};
    settle(u);
    int what = attempt(u);
    u->events = (dv_plan_events){0};
    return what;
}

/* ---- life ---- */

static inline void open_user(user *u, size_t items) {
    *u = (user){.client = open_client(ensemble, 10000, -1), .set = numbered_set("item-", items)};
    u->roster = dv_roster_new(u->client, PARTY, NULL, NULL);
    assert_non_null(u->roster);
}

static inline void open_pool_with(const divvy_testing_config *config, size_t items, unsigned members) {
    ensemble = open_ensemble(config);
    witness = open_client(ensemble, 10000, -1);
    assert_int_equal(do_create(witness, "/p", DV_PERSISTENT), 0);
    assert_int_equal(do_create(witness, PARTY, DV_PERSISTENT), 0);
    for (unsigned n = 0; n < USERS_MAX; n++) open_user(&users[n], items);
    for (unsigned n = 0; n < members; n++) join(member(n), "{}");
    for (unsigned n = 0; n < USERS_MAX; n++) {
        refresh(&users[n]);
        settle(&users[n]);
    }
}

static inline void open_pool(size_t items, unsigned members) {
    open_pool_with(NULL, items, members);
}

/* Kills its process: it sends nothing more. */
static inline void crash(user *u) {
    assert_int_equal(divvy_testing_crash_client(ensemble, u->client), 0);
    u->crashed = true;
}

static inline void close_user(user *u) {
    if (u->crashed) divvy_client_close(u->client); /* ends the attempt, too */
    else stop_attempt(u);
    STEP_UNTIL(u->attempt == NULL);
    dv_roster_free(u->roster);
    dv_plan_memory_clear(&u->memory);
    dv_plan_set_unref(u->set);
    if (!u->crashed) {
        assert_null(u->client->listeners);
        divvy_client_close(u->client);
    }
}

static inline void close_pool(void) {
    for (unsigned n = 0; n < USERS_MAX; n++) close_user(&users[n]);
    divvy_client_close(witness);
    close_ensemble(ensemble);
}

/* Makes plans with every text in chunks of 100 bytes at most; and as it is. */
static inline void use_chunks(size_t bytes) {
    sizes = (dv_plan_sizes){.inline_root_bytes = 0, .chunk_bytes = bytes};
}

static inline int restore_sizes(void **state) {
    (void)state;
    sizes = (dv_plan_sizes){DV_PLAN_INLINE_ROOT_BYTES, DV_PLAN_CHUNK_BYTES};
    return 0;
}

#endif
