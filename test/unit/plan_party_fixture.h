/* A roster on a backend that a test answers step by step. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PLAN_PARTY_FIXTURE_H
#define DV_TEST_PLAN_PARTY_FIXTURE_H

#include "lib/fake_znode.h"
#include "lib/scarce.h"
#include "plan/roster.h"
#include "plan_fixture.h"

#define PARTY "/p/party"
#define DYNAMIC "{}"
#define STATIC "{\"static\":true,\"weight\":500,\"zone\":\"z\",\"rejoin_delay_ms\":30000}"

static dv_fake *fake;
static dv_roster *roster;

/* The events that were told. */
static struct { int done, error, ghosts; } told;

static inline void on_done(void *context, int error, int64_t now) {
    (void)now;
    assert_ptr_equal(context, &told);
    told.done++;
    told.error = error;
}

static inline void on_ghost(void *context, const char *node) {
    assert_ptr_equal(context, &told);
    assert_string_equal(node, "g,a=2-w1");
    told.ghosts++;
}

/* --- memory runs out in the library, never in the backend, which can only refuse to send -------------------------- */

static dv_znode_backend backend;
static const dv_znode_backend *fakes_backend;
static size_t sent, refused_after;

static inline int submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    if (sent >= refused_after) return DIVVY_ENOMEM;
    long after = scarce_after;
    scarce_after = -1;
    int error = fakes_backend->submit(znode, op, watch, done, context);
    scarce_after = after;
    sent++;
    return error;
}

static inline int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    dv_znode *znode = dv_fake_client(fake)->znode;
    fakes_backend = znode->backend;
    backend = *fakes_backend;
    backend.submit = submit;
    znode->backend = &backend;
    sent = 0;
    refused_after = SIZE_MAX;
    memset(&told, 0, sizeof told);
    roster = dv_roster_new(dv_fake_client(fake), PARTY, on_ghost, &told);
    assert_non_null(roster);
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    dv_roster_free(roster);
    roster = NULL;
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_close(fake);
    return 0;
}

/* --- what the test does ----------------------------------------------------------------------------------------- */

static inline int settle(const char *const *names, size_t count, int64_t pzxid) {
    dv_client_lock(dv_fake_client(fake));
    int error = dv_roster_settle(roster, names, count, pzxid);
    dv_client_unlock(dv_fake_client(fake));
    return error;
}
#define SETTLE(pzxid, ...) \
    assert_int_equal(settle((const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})), pzxid), 0)

static int ask_of(const dv_plan *previous) {
    dv_client_lock(dv_fake_client(fake));
    int asked = dv_roster_ask(roster, previous, DV_ROSTER_NEEDED, on_done, &told);
    dv_client_unlock(dv_fake_client(fake));
    return asked;
}

static inline int ask(void) {
    return ask_of(NULL);
}

static inline int ask_namesakes(const char *node) {
    dv_client_lock(dv_fake_client(fake));
    int asked = dv_roster_ask_namesakes(roster, dv_roster_find(roster, node), on_done, &told);
    dv_client_unlock(dv_fake_client(fake));
    return asked;
}

static inline void answer(const char *data, int64_t czxid) {
    dv_fake_answer(fake, &(dv_reply){.data = data,
                                     .data_bytes = strlen(data),
                                     .stat = &(dv_stat){.czxid = czxid, .ephemeral_owner = 1}});
}

static inline void answer_error(int error) {
    dv_fake_answer(fake, &(dv_reply){.error = error});
}

static inline void assert_pending(const char *text) {
    assert_string_equal(dv_fake_pending(fake), text);
}

static inline const dv_plan_node *node_at(size_t n) {
    const dv_plan_party *party = dv_roster_party(roster);
    assert_true(n < party->count);
    return &party->nodes[n];
}

static inline void assert_told(int error) {
    assert_int_equal(told.done, 1);
    assert_int_equal(told.error, error);
    memset(&told, 0, sizeof told);
}

#endif
