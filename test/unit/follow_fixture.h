/* A follower whose host is the test. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_FOLLOW_FIXTURE_H
#define DV_TEST_FOLLOW_FIXTURE_H

#include "divvy/partitioner.h"
#include "follow/follow.h"
#include "lib/scarce.h"
#include "plan_writers.h"

#define STATIC_DATA "{\"static\":true,\"weight\":1000,\"zone\":\"\",\"rejoin_delay_ms\":30000}"

/* A member of the pool, and what its follower told it last. */
typedef struct {
    dv_follower *f;
    divvy_client *client;
    char node[64];
    int64_t pzxid; /* of the party */
    size_t under_way;
    size_t targets, no_plans, other_plans, lefts, failures, warnings[DIVVY_WARN_LOAD_UNIT + 1];
    dv_follow_source source;
    bool is_settled, has_owners;
    int reason;
    uint64_t generation;
    bool shows;
    size_t at;               /* of an item in the set */
    char mine[256], now[64]; /* the items that are ours; and the node that is to have that item */
    int left_error, error, failure_reason;
    char text[512]; /* of a failure, or of the last warning */
} member_host;

/* ---- the host ---- */

static inline void on_target(void *owner, const dv_follow_target *target, int64_t now) {
    member_host *h = owner;
    (void)now;
    h->targets++;
    h->source = target->source;
    h->is_settled = target->is_settled;
    h->has_owners = target->owners != NULL;
    h->reason = target->reason;
    h->generation = target->generation;
    h->mine[0] = h->now[0] = '\0';
    for (size_t i = 0; target->set && i < target->set->count; i++) {
        if (target->mine[i]) strcat(strcat(h->mine, target->set->names[i] + strlen("item-00000")), " ");
    }
    if (target->owners && target->owners->now[h->at]) snprintf(h->now, sizeof h->now, "%s", target->owners->now[h->at]);
}

static inline void on_no_plan(void *owner) {
    ((member_host *)owner)->no_plans++;
}

static inline void on_other_plan(void *owner) {
    ((member_host *)owner)->other_plans++;
}

static inline void on_left(void *owner, int error, int64_t now) {
    (void)now;
    ((member_host *)owner)->lefts++;
    ((member_host *)owner)->left_error = error;
}

static inline bool on_member_again(void *owner) {
    (void)owner;
    return true;
}

static inline void on_ghost(void *owner, const char *node) {
    (void)owner;
    fail_msg("%s is no ghost", node);
}

static inline void on_warning(void *owner, int code, const char *text) {
    member_host *h = owner;
    assert_in_range(code, 0, DIVVY_WARN_LOAD_UNIT);
    h->warnings[code]++;
    snprintf(h->text, sizeof h->text, "%s", text);
}

static inline void on_failure(void *owner, int error, int reason, const char *text, int64_t now) {
    member_host *h = owner;
    (void)now;
    h->failures++;
    h->error = error;
    h->failure_reason = reason;
    snprintf(h->text, sizeof h->text, "%s", text);
    dv_follow_stop(h->f);
}

static inline void on_begun(void *owner) {
    ((member_host *)owner)->under_way++;
}

static inline void on_ended(void *owner, int64_t now) {
    (void)now;
    assert_true(((member_host *)owner)->under_way-- > 0);
}

static inline bool knows_all_members(void *owner) {
    (void)owner;
    return true;
}

static inline bool shows(void *owner, const char *item) {
    (void)item;
    return ((member_host *)owner)->shows;
}

static inline bool is_never_used(void *owner) {
    (void)owner;
    return true;
}

static inline int64_t handed_over_ms(void *owner, int64_t mzxid) {
    (void)owner, (void)mzxid;
    return 0;
}

/* ---- what the test does ---- */

static inline dv_follower *make(member_host *h, const user *u, const char *identifier, bool is_static) {
    static const dv_follow_events events = {on_target, on_no_plan, on_other_plan, on_left,  on_member_again,
                                            on_ghost,  on_warning, on_failure,    on_begun, on_ended};
    static const dv_follow_questions questions = {knows_all_members, shows, is_never_used, handed_over_ms};
    const dv_follow_config config = {.client = u->client,
                                     .path = "/p",
                                     .locks_path = "/p/locks",
                                     .party_path = PARTY,
                                     .identifier = identifier,
                                     .configured = u->set,
                                     .weight = 1000,
                                     .round_timeout_ms = 60000,
                                     .settle_max_ms = 1000,
                                     .is_static = is_static,
                                     .hands_over = true};
    return dv_follow_new(&config, &events, &questions, h);
}

static inline void begin(member_host *h, const user *u, const char *node, const char *identifier, bool is_static) {
    *h = (member_host){.client = u->client, .pzxid = stat_of(PARTY).pzxid};
    snprintf(h->node, sizeof h->node, "%s", node);
    dv_client_lock(h->client);
    h->f = make(h, u, identifier, is_static);
    assert_non_null(h->f);
    dv_follow_start(h->f, dv_client_now(h->client));
    dv_client_unlock(h->client);
}

/* Gives it the party as it was when it began, or the test looked last. Returns whether a plan decides. */
static inline bool give_party(member_host *h, bool all_follow_plans) {
    divvy_strings *names = divvy_testing_children(ensemble, PARTY);
    size_t count = divvy_strings_count(names);
    const char **nodes = calloc(count + 1, sizeof *nodes);
    for (size_t i = 0; i < count; i++) nodes[i] = divvy_strings_get(names, i);
    const dv_follow_party party = {nodes, count, h->node, h->pzxid, all_follow_plans};
    dv_client_lock(h->client);
    bool decides = dv_follow_settled(h->f, &party, dv_client_now(h->client));
    dv_client_unlock(h->client);
    free((void *)nodes);
    divvy_strings_free(names);
    return decides;
}

/* It is at rest once all has ended that it has begun, and hears nothing more of the plan. */
static inline void end(member_host *h) {
    dv_client_lock(h->client);
    dv_follow_stop(h->f);
    size_t targets = h->targets, no_plans = h->no_plans;
    dv_follow_stop(h->f);
    dv_follow_connected(h->f, dv_client_now(h->client));
    dv_client_unlock(h->client);
    for (bool is_over = false; !is_over; is_over = h->under_way == 0) {
        if (h->under_way > 0) step_once();
        dv_client_lock(h->client);
        assert_int_equal(dv_follow_at_rest(h->f), h->under_way == 0);
        dv_client_unlock(h->client);
    }
    assert_int_equal(h->targets, targets);
    assert_int_equal(h->no_plans, no_plans);
    dv_client_lock(h->client);
    dv_follow_free(h->f);
    dv_client_unlock(h->client);
}

#define WITH_LOCK(call)             \
    do {                            \
        dv_client_lock(h.client);   \
        call;                       \
        dv_client_unlock(h.client); \
    } while (0)

/* Begins as the second user, and runs until it follows the plan. */
static inline void follow(member_host *h, const char *node, const char *identifier) {
    begin(h, &users[1], node, identifier, false);
    assert_true(give_party(h, true));
    STEP_UNTIL(h->generation > 0);
}

/* The items that the plan gives to the node, as on_target() writes them. */
static inline const char *items_of(const dv_plan *plan, const char *node) {
    static char text[256];
    const dv_plan_member *m = dv_plan_find(plan, false, node);
    assert_non_null(m);
    text[0] = '\0';
    for (size_t i = 0; i < plan->set->count; i++) {
        if (plan->owners[i] == m->slot) strcat(strcat(text, plan->set->names[i] + strlen("item-00000")), " ");
    }
    return text;
}

#endif
