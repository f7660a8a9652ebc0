/* A patient watch on a backend that a test answers step by step. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PATIENT_WATCH_FIXTURE_H
#define DV_TEST_PATIENT_WATCH_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fake_znode.h"
#include "lib/test.h"
#include "recipe/patient_watch.h"

#define PARTY "/p"
#define BOUNDARY_MS 1000
#define LEAVE_BOUNDARY_MS 400
#define SETTLE_MAX_MS 5000
#define INTERVAL_MS (LEAVE_BOUNDARY_MS / 4) /* what W1 gives for these boundaries */

static dv_fake *fake;
static dv_patient_watch *watch;
static int64_t start;

/* The events that the owner was told, and when. */
static struct {
    int changed, settled, failed, gone, error;
    int64_t changed_at, settled_at;
    int64_t pzxid;   /* of the newest settled() */
    char names[256]; /* of the newest settled(), one after the other */
    bool stop_when_settled, stop_when_changed, stop_when_seen;
    int seen;
    char seen_names[256];
} told;

static inline int64_t elapsed(void) {
    return dv_fake_now(fake) - start;
}

static inline void on_changed(void *owner, int64_t now) {
    assert_ptr_equal(owner, &told);
    assert_int_equal(told.gone + told.failed, 0);
    told.changed++;
    told.changed_at = now - start;
    if (told.stop_when_changed) dv_patient_watch_stop(watch);
}

static inline void on_settled(void *owner, const char *const *names, size_t count, int64_t pzxid, int64_t now) {
    assert_ptr_equal(owner, &told);
    assert_int_equal(told.gone + told.failed, 0);
    told.settled++;
    told.settled_at = now - start;
    told.pzxid = pzxid;
    told.names[0] = '\0';
    for (size_t i = 0; i < count; i++) strcat(told.names, names[i]);
    if (told.stop_when_settled) dv_patient_watch_stop(watch);
}

static inline void on_failed(void *owner, int error, int64_t now) {
    (void)owner, (void)now;
    told.failed++;
    told.error = error;
}

static inline void on_gone(void *owner, int64_t now) {
    (void)owner, (void)now;
    told.gone++;
    watch = NULL;
}

static inline bool needs_names(void *owner) {
    assert_ptr_equal(owner, &told);
    return true;
}

static inline void on_seen(void *owner, const char *const *names, size_t count, int64_t now) {
    (void)now;
    assert_ptr_equal(owner, &told);
    assert_int_equal(told.gone + told.failed, 0);
    told.seen++;
    told.seen_names[0] = '\0';
    for (size_t i = 0; i < count; i++) strcat(told.seen_names, names[i]);
    if (told.stop_when_seen) dv_patient_watch_stop(watch);
}

static inline void begin_with(int64_t join_ms, int64_t leave_ms, int64_t settle_max_ms) {
    static const dv_patient_watch_events events = {.changed = on_changed,
                                                   .settled = on_settled,
                                                   .failed = on_failed,
                                                   .gone = on_gone,
                                                   .needs_names = needs_names,
                                                   .seen = on_seen};
    const dv_patience patience = {join_ms, leave_ms, settle_max_ms};
    memset(&told, 0, sizeof told);
    start = dv_fake_now(fake);
    dv_client_lock(dv_fake_client(fake));
    watch = dv_patient_watch_start(dv_fake_client(fake), PARTY, &patience, &events, &told);
    dv_client_unlock(dv_fake_client(fake));
    assert_non_null(watch);
}

static inline void begin(void) {
    begin_with(BOUNDARY_MS, LEAVE_BOUNDARY_MS, SETTLE_MAX_MS);
}

static inline void stop(void) {
    dv_client_lock(dv_fake_client(fake));
    dv_patient_watch_stop(watch);
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

static inline bool asked(void) {
    const char *pending = dv_fake_pending(fake);
    if (*pending) assert_string_equal(pending, "children! " PARTY);
    return *pending;
}

/* The read under way is answered: each letter is a child. */
static inline void answer(const char *letters, int64_t pzxid) {
    const char *names[26];
    char texts[26][2];
    size_t count = strlen(letters);
    for (size_t i = 0; i < count; i++) {
        texts[i][0] = letters[i];
        texts[i][1] = '\0';
        names[i] = texts[i];
    }
    assert_true(asked());
    dv_fake_answer(fake, &(dv_reply){.children = names,
                                     .child_count = count,
                                     .stat = &(dv_stat){.pzxid = pzxid, .children = (int32_t)count}});
}

static inline void fire(void) {
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, true));
}

/* Nothing is asked until exactly `at` after the start; then there is a read under way. */
static inline void read_comes_at(int64_t at) {
    dv_fake_advance(fake, at - elapsed() - 1);
    assert_false(asked());
    dv_fake_advance(fake, 1);
    assert_true(asked());
}

/* Begun, and settled with `letters` a boundary later. */
static inline void settle_first(const char *letters) {
    begin();
    answer(letters, 10);
    dv_fake_advance(fake, BOUNDARY_MS);
    answer(letters, 10);
    assert_int_equal(told.settled, 1);
}

static inline int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    if (watch) stop();
    while (dv_fake_oldest(fake)) dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ECONNECTION});
    bool clean = !watch && !dv_fake_has_timers(fake) && !dv_fake_client(fake)->listeners;
    dv_fake_close(fake);
    return clean ? 0 : -1;
}

#endif
