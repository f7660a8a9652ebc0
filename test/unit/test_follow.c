/* Tests of follow/follow.h without a partitioner: its host is the test. SPDX-License-Identifier: Apache-2.0 */
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
    char mine[256], now[64]; /* the items that are ours; and the node that is to have the first of the set */
    int left_error, error, failure_reason;
    char text[512]; /* of a failure, or of the last warning */
} member_host;

/* ---- the host ---- */

static void on_target(void *owner, const dv_follow_target *target, int64_t now) {
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
    if (target->owners && target->owners->now[0]) snprintf(h->now, sizeof h->now, "%s", target->owners->now[0]);
}

static void on_no_plan(void *owner) {
    ((member_host *)owner)->no_plans++;
}

static void on_other_plan(void *owner) {
    ((member_host *)owner)->other_plans++;
}

static void on_left(void *owner, int error, int64_t now) {
    (void)now;
    ((member_host *)owner)->lefts++;
    ((member_host *)owner)->left_error = error;
}

static bool on_member_again(void *owner) {
    (void)owner;
    return true;
}

static void on_ghost(void *owner, const char *node) {
    (void)owner;
    fail_msg("%s is no ghost", node);
}

static void on_warning(void *owner, int code, const char *text) {
    member_host *h = owner;
    assert_in_range(code, 0, DIVVY_WARN_LOAD_UNIT);
    h->warnings[code]++;
    snprintf(h->text, sizeof h->text, "%s", text);
}

static void on_failure(void *owner, int error, int reason, const char *text, int64_t now) {
    member_host *h = owner;
    (void)now;
    h->failures++;
    h->error = error;
    h->failure_reason = reason;
    snprintf(h->text, sizeof h->text, "%s", text);
    dv_follow_stop(h->f);
}

static void on_begun(void *owner) {
    ((member_host *)owner)->under_way++;
}

static void on_ended(void *owner, int64_t now) {
    (void)now;
    assert_true(((member_host *)owner)->under_way-- > 0);
}

static bool knows_all_members(void *owner) {
    (void)owner;
    return true;
}

static bool shows(void *owner, const char *item) {
    (void)owner, (void)item;
    return false;
}

static bool is_never_used(void *owner) {
    (void)owner;
    return true;
}

static int64_t handed_over_ms(void *owner, int64_t mzxid) {
    (void)owner, (void)mzxid;
    return 0;
}

/* ---- what the test does ---- */

static dv_follower *make(member_host *h, const user *u, const char *identifier, bool is_static) {
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

static void begin(member_host *h, const user *u, const char *node, const char *identifier, bool is_static) {
    *h = (member_host){.client = u->client, .pzxid = stat_of(PARTY).pzxid};
    snprintf(h->node, sizeof h->node, "%s", node);
    dv_client_lock(h->client);
    h->f = make(h, u, identifier, is_static);
    assert_non_null(h->f);
    dv_follow_start(h->f, dv_client_now(h->client));
    dv_client_unlock(h->client);
}

/* Gives it the party as it was when it began, or the test looked last. Returns whether a plan decides. */
static bool give_party(member_host *h, bool all_follow_plans) {
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
static void end(member_host *h) {
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

/* The items that the plan gives to the node, as on_target() writes them. */
static const char *items_of(const dv_plan *plan, const char *node) {
    static char text[256];
    const dv_plan_member *m = dv_plan_find(plan, false, node);
    assert_non_null(m);
    text[0] = '\0';
    for (size_t i = 0; i < plan->set->count; i++) {
        if (plan->owners[i] == m->slot) strcat(strcat(text, plan->set->names[i] + strlen("item-00000")), " ");
    }
    return text;
}

/* ---- what is ours ---- */

/* Before a plan was read what names gave is kept; then the plan's items are ours, and it agrees. Nothing is written,
 * since the plan is what the party wants. */
TEST(test_target) {
    member_host h;
    open_pool(9, 3);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    int32_t version = stat_of(ROOT).version;
    begin(&h, &users[1], member(1), "m1", false);
    assert_true(give_party(&h, true));
    assert_int_equal(h.targets, 1);
    assert_int_equal(h.source, DV_FOLLOW_KEEP);
    assert_true(h.is_settled);
    assert_false(dv_follow_agrees(h.f));
    STEP_UNTIL(h.generation > 0);
    assert_int_equal(h.source, DV_FOLLOW_PLAN);
    assert_int_equal(h.generation, 1);
    assert_int_equal(h.other_plans, 1);
    assert_int_equal(h.reason, DIVVY_REASON_MEMBERS);
    assert_false(h.is_settled);
    assert_string_equal(h.mine, items_of(users[0].memory.plan, member(1)));
    assert_int_equal(strlen(h.mine), 2 * 3);
    assert_true(dv_follow_agrees(h.f));
    assert_false(dv_follow_names_decide(h.f));
    assert_true(dv_follow_is_dynamic(h.f, member(2)));
    divvy_testing_run(ensemble, 10000);
    assert_int_equal(stat_of(ROOT).version, version);
    assert_int_equal(h.failures + h.lefts + h.no_plans, 0);
    end(&h);
    assert_int_equal(h.no_plans, 1);
    close_pool();
}

/* The owners of a target are the live nodes by the plan: the only member has the first item. */
TEST(test_owners) {
    member_host h;
    open_pool(4, 1);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.generation > 0);
    assert_true(h.has_owners);
    assert_string_equal(h.now, member(0));
    end(&h);
    close_pool();
}

/* Where there is no plan, the member of the party writes the first one, and is the first of its writers. */
TEST(test_first_plan) {
    member_host h;
    open_pool(4, 1);
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.generation > 0);
    assert_string_equal(h.mine, "1 2 3 4 ");
    WITH_LOCK(assert_true(dv_follow_is_first_of(h.f, users[1].set)));
    assert_true(is_there(ROOT));
    end(&h);
    close_pool();
}

/* One that is stopped while it writes the first plan writes nothing more. */
TEST(test_stop_while_writing) {
    member_host h;
    open_pool(4, 1);
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.under_way == 2); /* the reader, and the writer that has begun */
    assert_false(is_there(ROOT));
    end(&h);
    assert_false(is_there(ROOT));
    close_pool();
}

/* D10: a first plan leaves the items where names have put them. */
TEST(test_first_plan_after_names) {
    member_host h;
    open_pool(4, 2);
    begin(&h, &users[1], member(0), "m0", false);
    const char *const nodes[] = {member(0)};
    uint32_t *owners = calloc(4, sizeof *owners);
    owners[0] = owners[3] = 1; /* nobody whom the follower knows */
    assert_non_null(owners);
    WITH_LOCK(dv_follow_remember(h.f, nodes, 1, owners, users[1].set));
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.generation > 0);
    assert_string_equal(h.mine, "2 3 ");
    end(&h);
    close_pool();
}

/* D38: a static member whose identifier a later process has is told so, has nothing, and does not agree. */
TEST(test_fenced) {
    member_host h;
    open_pool(4, 0);
    char first[64], second[64];
    snprintf(first, sizeof first, "00000000001000000000011,a=2,s=%08x-w", users[0].set->crc);
    snprintf(second, sizeof second, "00000000002000000000021,a=2,s=%08x-w", users[0].set->crc);
    join(first, STATIC_DATA);
    begin(&h, &users[1], first, "w", true);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.generation > 0);
    assert_string_equal(h.mine, "1 2 3 4 ");
    assert_false(dv_follow_is_replaced(h.f));
    join(second, STATIC_DATA);
    h.pzxid = stat_of(PARTY).pzxid;
    assert_true(give_party(&h, true));
    STEP_UNTIL(dv_follow_is_replaced(h.f));
    assert_int_equal(h.source, DV_FOLLOW_PLAN); /* T9: it hands over by it */
    assert_string_equal(h.mine, "");
    assert_false(dv_follow_agrees(h.f));
    assert_int_equal(h.warnings[DIVVY_WARN_FENCED], 1);
    end(&h);
    close_pool();
}

/* A plan of a later release gives nothing to anybody. */
TEST(test_newer) {
    member_host h;
    open_pool(4, 1);
    put_text(ROOT, "{\"v\":2,\"more\":[]}");
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.targets > 1);
    assert_int_equal(h.source, DV_FOLLOW_NOTHING);
    assert_int_equal(h.generation, 0);
    assert_false(dv_follow_agrees(h.f));
    end(&h);
    close_pool();
}

/* Nobody can follow a broken plan: names decide, until the follower has written a new one. */
TEST(test_broken) {
    member_host h;
    open_pool(4, 1);
    put_text(ROOT, "no plan");
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.targets > 1);
    assert_int_equal(h.source, DV_FOLLOW_NAMES);
    assert_true(dv_follow_agrees(h.f));
    STEP_UNTIL(h.source == DV_FOLLOW_PLAN);
    assert_string_equal(h.mine, "1 2 3 4 ");
    end(&h);
    close_pool();
}

/* ---- requests ---- */

/* A leave is fulfilled by a plan that has the mark of our node; a member that works on agrees with it. */
TEST(test_leave) {
    member_host h;
    open_pool(9, 3);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    begin(&h, &users[1], member(2), "m2", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.generation > 0);
    WITH_LOCK(assert_true(dv_follow_request_leave(h.f, true, dv_client_now(h.client))));
    assert_int_equal(h.lefts, 0);
    STEP_UNTIL(h.lefts > 0);
    assert_int_equal(h.left_error, 0);
    refresh(&users[0]);
    assert_string_equal(dv_plan_find(users[0].memory.plan, false, member(2))->leaving, member(2));
    STEP_UNTIL(h.generation == 2);
    assert_int_equal(h.reason, DIVVY_REASON_LEAVE);
    assert_string_equal(h.mine, "");
    assert_true(dv_follow_agrees(h.f));
    end(&h);
    assert_int_equal(h.lefts, 1);
    close_pool();
}

/* There is no place to give up before a party has settled; and none where names decide, which ends a leave, too. */
TEST(test_leave_without_plan) {
    member_host h;
    open_pool(4, 2);
    begin(&h, &users[1], member(0), "m0", false);
    WITH_LOCK(assert_false(dv_follow_request_leave(h.f, false, dv_client_now(h.client))));
    assert_true(give_party(&h, true));
    WITH_LOCK(assert_true(dv_follow_request_leave(h.f, false, dv_client_now(h.client))));
    assert_false(give_party(&h, false));
    assert_true(dv_follow_names_decide(h.f));
    assert_true(dv_follow_agrees(h.f));
    assert_int_equal(h.no_plans, 1);
    assert_int_equal(h.lefts, 1);
    assert_int_equal(h.left_error, DIVVY_ESTATE);
    end(&h);
    close_pool();
}

/* A weight that is requested is the plan's. */
TEST(test_weight) {
    member_host h;
    open_pool(9, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    begin(&h, &users[1], member(1), "m1", false);
    assert_true(give_party(&h, true));
    WITH_LOCK(dv_follow_request_weight(h.f, 500, dv_client_now(h.client)));
    STEP_UNTIL(h.generation == 2);
    assert_int_equal(h.reason, DIVVY_REASON_WEIGHT);
    assert_int_equal(strlen(h.mine), 2 * 3);
    end(&h);
    close_pool();
}

/* Other items that are requested are the plan's. They are not warned of, since our user knows them. */
TEST(test_set) {
    member_host h;
    open_pool(4, 1);
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    dv_plan_set *set = numbered_set("item-", 6);
    WITH_LOCK(dv_follow_request_set(h.f, set, dv_client_now(h.client)));
    STEP_UNTIL(h.generation > 0 && strlen(h.mine) == 2 * 6);
    assert_int_equal(h.warnings[DIVVY_WARN_ITEMS_DIFFER], 0);
    end(&h);
    dv_plan_set_unref(set);
    close_pool();
}

/* ---- failures ---- */

/* Whatever allocation fails, no follower is made. */
TEST(test_scarce_new) {
    member_host h;
    int failures = 0;
    open_pool(4, 1);
    for (bool failed = true; failed; failures++) {
        scarce_after = failures;
        h.f = make(&h, &users[1], "m0", false);
        failed = scarce_after < 0;
        scarce_after = -1;
        assert_true(failed == !h.f);
    }
    assert_true(failures > 3);
    dv_follow_free(h.f);
    close_pool();
}

/* A plan that may not be read ends the member, with the path that it concerns. */
TEST(test_denied) {
    enum { NOAUTH = -102 };
    member_host h;
    open_pool(4, 1);
    assert_int_equal(divvy_testing_answer(ensemble, users[1].client, NOAUTH, 0, 0, 1000), 0);
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.failures > 0);
    assert_int_equal(h.error, DIVVY_EACCES);
    assert_int_equal(h.failure_reason, DIVVY_REASON_DENIED);
    assert_non_null(strstr(h.text, "/p/plan cannot be read"));
    assert_int_equal(h.no_plans, 1);
    end(&h);
    assert_int_equal(h.failures, 1);
    assert_int_equal(divvy_testing_answer(ensemble, users[1].client, NOAUTH, 0, 0, 0), 0);
    close_pool();
}
