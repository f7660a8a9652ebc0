/* Tests of recipe/patient_watch.h where it reads no more than it must, on a virtual clock. SPDX-License-Identifier:
 * Apache-2.0
 *
 * Here are children, of whom each read tells at once; the tests count the reads. docs/protocol.md, W1 to W5. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fake_znode.h"
#include "lib/test.h"
#include "recipe/patient_watch.h"

#define PARTY "/p"
#define BOUNDARY_MS 1000
#define SETTLE_MAX_MS 5000
#define INTERVAL_MS (BOUNDARY_MS / 4)
#define AUDIT_MS 60000

static dv_fake *fake;
static dv_patient_watch *watch;
static int64_t start;

/* The party: a child for each letter. */
static struct {
    char letters[64];
    int64_t pzxid;
} party;

/* The events that were told, and the reads. */
static struct {
    int changed, settled, failed, gone, error;
    int64_t settled_at, pzxid;
    char names[64];
    bool needs_names, stop_when_changed;
    int lists, stats, seen;
    int64_t read_at;
} told;

static int64_t elapsed(void) {
    return dv_fake_now(fake) - start;
}

static void on_changed(void *owner, int64_t now) {
    (void)owner, (void)now;
    told.changed++;
    if (told.stop_when_changed) dv_patient_watch_stop(watch);
}

static void on_settled(void *owner, const char *const *names, size_t count, int64_t pzxid, int64_t now) {
    (void)owner;
    told.settled++;
    told.settled_at = now - start;
    told.pzxid = pzxid;
    told.names[0] = '\0';
    for (size_t i = 0; i < count; i++) strcat(told.names, names[i]);
}

static void on_failed(void *owner, int error, int64_t now) {
    (void)owner, (void)now;
    told.failed++;
    told.error = error;
}

static void on_gone(void *owner, int64_t now) {
    (void)owner, (void)now;
    told.gone++;
    watch = NULL;
}

static bool needs_names(void *owner) {
    (void)owner;
    return told.needs_names;
}

static void on_seen(void *owner, const char *const *names, size_t count, int64_t now) {
    (void)owner, (void)names, (void)count, (void)now;
    told.seen++;
}

static bool asked(void) {
    return dv_fake_oldest(fake) != NULL;
}

/* The read under way is answered with what is there. */
static void answer(void) {
    const char *names[sizeof party.letters];
    char texts[sizeof party.letters][2];
    size_t count = strlen(party.letters);
    for (size_t i = 0; i < count; i++) {
        texts[i][0] = party.letters[i];
        texts[i][1] = '\0';
        names[i] = texts[i];
    }
    bool stat = strcmp(dv_fake_pending(fake), "exists " PARTY) == 0;
    if (!stat) assert_string_equal(dv_fake_pending(fake), "children! " PARTY);
    told.read_at = elapsed();
    if (stat) told.stats++;
    else told.lists++;
    dv_fake_answer(fake, &(dv_reply){.children = stat ? NULL : names,
                                     .child_count = stat ? 0 : count,
                                     .stat = &(dv_stat){.pzxid = party.pzxid, .children = (int32_t)count}});
}

/* All reads are answered at once, while the time goes on. */
static void go_on(int64_t ms) {
    for (int64_t end = elapsed() + ms;; dv_fake_advance(fake, 1)) {
        while (asked()) answer();
        if (elapsed() >= end) return;
    }
}

/* Somebody came, or left, and a watch tells of it if there is one. */
static void become(const char *letters) {
    snprintf(party.letters, sizeof party.letters, "%s", letters);
    party.pzxid++;
    dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, true);
}

static void begin_with(int64_t join_ms, int64_t leave_ms) {
    static const dv_patient_watch_events events = {.changed = on_changed,
                                                   .settled = on_settled,
                                                   .failed = on_failed,
                                                   .gone = on_gone,
                                                   .needs_names = needs_names,
                                                   .seen = on_seen};
    const dv_patience patience = {join_ms, leave_ms, SETTLE_MAX_MS};
    memset(&told, 0, sizeof told);
    strcpy(party.letters, "abc");
    party.pzxid = 10;
    start = dv_fake_now(fake);
    dv_client_lock(dv_fake_client(fake));
    watch = dv_patient_watch_start(dv_fake_client(fake), PARTY, &patience, &events, &told);
    dv_client_unlock(dv_fake_client(fake));
    assert_non_null(watch);
}

static void forget_reads(void) {
    told.lists = told.stats = told.seen = 0;
}

/* Begun and settled, and then nothing for a while. */
static void settle_first(int64_t join_ms, int64_t leave_ms) {
    begin_with(join_ms, leave_ms);
    go_on(3000);
    assert_int_equal(told.settled, 1);
    assert_string_equal(told.names, "abc");
    assert_int_equal(told.pzxid, 10);
    forget_reads();
}

static int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (watch) {
        dv_client_lock(dv_fake_client(fake));
        dv_patient_watch_stop(watch);
        dv_client_unlock(dv_fake_client(fake));
        dv_fake_run(fake);
    }
    while (asked()) dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ECONNECTION});
    bool clean = !watch && !dv_fake_has_timers(fake) && !dv_fake_client(fake)->listeners;
    dv_fake_close(fake);
    return clean ? 0 : -1;
}

/* --- one list for a change --------------------------------------------------------------------------------------- */

/* The names are read once, at the boundary, to the millisecond; before that a number tells that they stand still. */
TEST(test_first) {
    begin_with(BOUNDARY_MS, BOUNDARY_MS);
    go_on(BOUNDARY_MS - 1);
    assert_int_equal(told.settled, 0);
    assert_int_equal(told.lists, 0);
    assert_int_equal(told.stats, 4);
    go_on(1);
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.settled_at, BOUNDARY_MS);
    assert_int_equal(told.lists, 1);
    assert_int_equal(told.changed, 0);
    go_on(AUDIT_MS - 1);
    assert_int_equal(told.lists + told.stats, 5);
}

/* So it is with every change after that, and the list sets the watch for the next one. */
TEST(test_changes) {
    static const char *const parties[] = {"abcd", "abc", "abx", "ab"};
    settle_first(BOUNDARY_MS, BOUNDARY_MS);
    for (int n = 0; n < 4; n++) {
        int64_t at = elapsed();
        become(parties[n]);
        assert_int_equal(told.changed, n + 1);
        go_on(3000);
        assert_int_equal(told.settled, n + 2);
        assert_int_equal(told.settled_at, at + BOUNDARY_MS);
        assert_string_equal(told.names, parties[n]);
        assert_int_equal(told.pzxid, party.pzxid);
        assert_int_equal(told.lists, n + 1);
        assert_int_equal(told.stats, 4 * (n + 1));
    }
}

static void vouch(int64_t pzxid) {
    dv_client_lock(dv_fake_client(fake));
    dv_patient_watch_vouch(watch, pzxid, dv_fake_now(fake));
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

/* W20: what others have seen stand still is listed next, and told if the list is that. Else that is over: later changes
 * are looked at as cheaply as ever. */
TEST(test_vouched) {
    settle_first(BOUNDARY_MS, BOUNDARY_MS);
    int64_t at = elapsed();
    become("abcd");
    vouch(party.pzxid);
    go_on(INTERVAL_MS);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.settled_at, at + INTERVAL_MS);
    assert_int_equal(told.lists, 1);
    go_on(3000);
    become("abcde");
    vouch(99);
    go_on(INTERVAL_MS);
    assert_int_equal(told.lists, 2);
    become("abcdef");
    go_on(3000);
    assert_int_equal(told.settled, 3);
    assert_string_equal(told.names, "abcdef");
    assert_int_equal(told.lists, 3); /* what was vouched for in vain, and what stood still */
}

/* W20: what was vouched for and then told is not listed again: the next read is an audit, which counts. */
TEST(test_vouched_and_told) {
    settle_first(BOUNDARY_MS, BOUNDARY_MS);
    char **names = calloc(1, sizeof *names);
    int64_t now = dv_fake_now(fake);
    party.letters[0] = '\0';
    party.pzxid = 11;
    dv_client_lock(dv_fake_client(fake));
    dv_patient_watch_note(watch, &(dv_stat){.pzxid = 11}, now);
    dv_patient_watch_vouch(watch, 11, now + INTERVAL_MS);
    dv_patient_watch_learn(watch, names, 0, 11, now);
    dv_client_unlock(dv_fake_client(fake));
    assert_int_equal(told.settled, 2);
    go_on(AUDIT_MS);
    assert_int_equal(told.lists, 0);
    assert_int_equal(told.stats, 1);
}

/* Changes that no watch tells, as none is set, are found one interval later, and start the boundary again. */
TEST(test_changes_while_settling) {
    settle_first(BOUNDARY_MS, BOUNDARY_MS);
    int64_t at = elapsed();
    become("abcd");
    go_on(2 * INTERVAL_MS + 10);
    become("abcde");
    go_on(INTERVAL_MS - 20);
    become("abcdef");
    go_on(5000);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.settled_at, at + 3 * INTERVAL_MS + BOUNDARY_MS);
    assert_string_equal(told.names, "abcdef");
    assert_int_equal(told.changed, 1);
    assert_int_equal(told.lists, 1);
}

/* One that comes right before the list is seen in it: it is not told, and from then on there is a watch to wait for. */
TEST(test_changes_before_the_list) {
    settle_first(BOUNDARY_MS, BOUNDARY_MS);
    int64_t at = elapsed();
    become("abcd");
    go_on(BOUNDARY_MS - 1);
    become("abcde");
    go_on(1);
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.lists, 1);
    int stats = told.stats;
    go_on(BOUNDARY_MS - 1);
    assert_int_equal(told.lists, 1);
    assert_int_equal(told.stats, stats);
    go_on(1);
    assert_int_equal(told.settled_at, at + 2 * BOUNDARY_MS);
    assert_string_equal(told.names, "abcde");
    assert_int_equal(told.lists, 2);
}

/* W2: what counts is when the list was sent, and when the number came that it has to show. */
TEST(test_slow_answers) {
    begin_with(BOUNDARY_MS, BOUNDARY_MS);
    dv_fake_advance(fake, 700);
    answer();
    go_on(BOUNDARY_MS - 1);
    assert_true(!asked() && told.lists == 0);
    dv_fake_advance(fake, 1);
    assert_string_equal(dv_fake_pending(fake), "children! " PARTY);
    dv_fake_advance(fake, 3000);
    answer();
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.settled_at, 700 + BOUNDARY_MS + 3000);
}

/* --- two boundaries ---------------------------------------------------------------------------------------------- */

/* W3: departures alone count after the leave boundary, and one list is enough to know. */
TEST(test_departures) {
    settle_first(BOUNDARY_MS, 400);
    int64_t at = elapsed();
    become("bc");
    go_on(2000);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.settled_at, at + 400);
    assert_int_equal(told.lists, 1);
}

/* Where none have settled yet even an empty list waits for the join boundary, and nothing is listed before. */
TEST(test_first_is_a_join) {
    begin_with(BOUNDARY_MS, 0);
    party.letters[0] = '\0';
    go_on(BOUNDARY_MS - 1);
    assert_int_equal(told.lists, 0);
    go_on(1);
    assert_int_equal(told.settled_at, BOUNDARY_MS);
    assert_int_equal(told.lists, 1);
}

/* More members than before are a join, for which no names are needed; where as many left the names tell. */
TEST(test_joins) {
    settle_first(BOUNDARY_MS, 400);
    int64_t at = elapsed();
    become("abcd");
    go_on(2000);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.settled_at, at + BOUNDARY_MS);
    assert_int_equal(told.lists, 1);
    at = elapsed();
    become("abce");
    go_on(2000);
    assert_int_equal(told.settled, 3);
    assert_int_equal(told.settled_at, at + BOUNDARY_MS);
    assert_int_equal(told.lists, 3);
}

/* With a leave boundary of 0 the first read may settle, so it is a list. */
TEST(test_leave_boundary_zero) {
    settle_first(BOUNDARY_MS, 0);
    int64_t at = elapsed();
    become("ab");
    go_on(0);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.settled_at, at);
    assert_int_equal(told.lists, 1);
    assert_int_equal(told.stats, 0);
}

/* --- churn ------------------------------------------------------------------------------------------------------- */

/* W1, W4: however often they change they are read once each interval at most, and their names once each settle_max. */
TEST(test_churn) {
    settle_first(BOUNDARY_MS, BOUNDARY_MS);
    int64_t began = elapsed();
    for (int n = 0; n < 6000; n++) {
        become(n % 2 ? "abcd" : "abc");
        go_on(10);
    }
    int64_t took = elapsed() - began;
    int settled = told.settled - 1;
    assert_int_equal(settled, took / SETTLE_MAX_MS);
    assert_int_equal(told.lists, settled);
    assert_in_range(told.changed, settled, settled + 1);
    assert_in_range(told.stats, took / INTERVAL_MS / 2, took / INTERVAL_MS);
}

/* --- who wants names --------------------------------------------------------------------------------------------- */

/* While names are wanted at once every read is a list, with a watch, and seen; from then on when they no longer are. */
TEST(test_needs_names) {
    settle_first(BOUNDARY_MS, BOUNDARY_MS);
    told.needs_names = true;
    become("abcd");
    go_on(0);
    assert_int_equal(told.lists, 1);
    assert_int_equal(told.seen, 1);
    go_on(2000);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.lists, 2);
    assert_int_equal(told.seen, 2);
    assert_int_equal(told.stats, 0);
    told.needs_names = false;
    become("abc");
    go_on(2000);
    assert_int_equal(told.settled, 3);
    assert_int_equal(told.lists, 3);
    assert_int_equal(told.stats, 4);
}

/* --- what is lost ------------------------------------------------------------------------------------------------ */

/* W5: an audit, and a look on a new connection, read one number where a watch is set. */
TEST(test_audit) {
    settle_first(BOUNDARY_MS, BOUNDARY_MS);
    go_on(2 * AUDIT_MS);
    assert_int_equal(told.stats, 2);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    go_on(1000);
    dv_fake_session(fake, DIVVY_CONNECTED);
    go_on(1000);
    assert_int_equal(told.stats, 3);
    assert_int_equal(told.lists, 0);
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.changed, 0);
}

/* A change that no watch told of is found by it, and settles from there on. */
TEST(test_audit_finds_a_change) {
    settle_first(BOUNDARY_MS, BOUNDARY_MS);
    strcpy(party.letters, "xyz");
    party.pzxid++;
    go_on(AUDIT_MS - 3000 + BOUNDARY_MS);
    int64_t found = told.read_at;
    assert_int_equal(told.changed, 1);
    go_on(BOUNDARY_MS);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.settled_at, found + BOUNDARY_MS);
    assert_string_equal(told.names, "xyz");
    assert_int_equal(told.lists, 1);
}

/* A list whose answer was lost has set no watch: the next read is a list again, whatever the number says. */
TEST(test_lost_list) {
    settle_first(BOUNDARY_MS, BOUNDARY_MS);
    become("abcd");
    go_on(BOUNDARY_MS - 1);
    dv_fake_advance(fake, 1);
    assert_string_equal(dv_fake_pending(fake), "children! " PARTY);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    go_on(0);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.lists, 1);
    assert_true(dv_fake_is_watched(fake, PARTY));
    assert_string_equal(told.names, "abcd");
}

/* --- the end ----------------------------------------------------------------------------------------------------- */

/* A directory that cannot be read cannot be counted either. */
TEST(test_fails) {
    static const int errors[] = {DIVVY_ENOENT, DIVVY_EACCES};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        begin_with(BOUNDARY_MS, BOUNDARY_MS);
        assert_string_equal(dv_fake_pending(fake), "exists " PARTY);
        dv_fake_answer(fake, &(dv_reply){.error = errors[i]});
        assert_int_equal(told.failed, 1);
        assert_int_equal(told.error, errors[i]);
        assert_int_equal(told.gone, 1);
    }
}

/* Stopped while a number is read, or by who is told of a change that it showed, it tells nothing more but gone(). */
TEST(test_stop) {
    begin_with(BOUNDARY_MS, BOUNDARY_MS);
    dv_client_lock(dv_fake_client(fake));
    dv_patient_watch_stop(watch);
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
    assert_int_equal(told.gone, 0);
    answer();
    assert_int_equal(told.gone, 1);
    settle_first(BOUNDARY_MS, BOUNDARY_MS);
    told.stop_when_changed = true;
    strcpy(party.letters, "abcd");
    party.pzxid++;
    go_on(2 * AUDIT_MS);
    assert_int_equal(told.changed, 1);
    assert_int_equal(told.gone, 1);
    assert_int_equal(told.settled, 1);
}

TEST_EACH(set_up, tear_down);
