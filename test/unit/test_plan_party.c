/* Tests of partitioner/plan_party.h, on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include "lib/fake_znode.h"
#include "lib/scarce.h"
#include "plan/roster.h"
#include "plan_fixture.h"

#define PARTY "/p/party"
#define DYNAMIC "{}"
#define STATIC "{\"static\":true,\"weight\":500,\"zone\":\"z\",\"rejoin_delay_ms\":30000}"

static dv_fake *fake;
static dv_roster *people;

/* What was told. */
static struct { int done, error, ghosts; } told;

static void on_done(void *context, int error, int64_t now) {
    (void)now;
    assert_ptr_equal(context, &told);
    told.done++;
    told.error = error;
}

static void on_ghost(void *context, const char *node) {
    assert_ptr_equal(context, &told);
    assert_string_equal(node, "g,a=2-w1");
    told.ghosts++;
}

/* --- memory runs out in the library, never in the backend, which can only refuse to send -------------------------- */

static dv_znode_backend backend;
static const dv_znode_backend *fakes_backend;
static size_t sent, refused_after;

static int submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    if (sent >= refused_after) return DIVVY_ENOMEM;
    long after = scarce_after;
    scarce_after = -1;
    int error = fakes_backend->submit(znode, op, watch, done, context);
    scarce_after = after;
    sent++;
    return error;
}

static int set_up(void **state) {
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
    people = dv_roster_new(dv_fake_client(fake), PARTY, on_ghost, &told);
    assert_non_null(people);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_roster_free(people);
    people = NULL;
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_close(fake);
    return 0;
}

/* --- what the test does ----------------------------------------------------------------------------------------- */

static int settle(const char *const *names, size_t count, int64_t pzxid) {
    dv_turn_begin(dv_fake_client(fake));
    int error = dv_roster_settle(people, names, count, pzxid);
    dv_turn_end(dv_fake_client(fake));
    return error;
}
#define SETTLE(pzxid, ...) \
    assert_int_equal(settle((const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})), pzxid), 0)

static int ask_of(const dv_plan *previous) {
    dv_turn_begin(dv_fake_client(fake));
    int asked = dv_roster_ask(people, previous, DV_ROSTER_NEEDED, on_done, &told);
    dv_turn_end(dv_fake_client(fake));
    return asked;
}

static int ask(void) {
    return ask_of(NULL);
}

static int ask_namesakes(const char *node) {
    dv_turn_begin(dv_fake_client(fake));
    int asked = dv_roster_ask_namesakes(people, dv_roster_find(people, node), on_done, &told);
    dv_turn_end(dv_fake_client(fake));
    return asked;
}

static void answer(const char *data, int64_t czxid) {
    dv_fake_answer(fake, &(dv_reply){.data = data,
                                     .data_bytes = strlen(data),
                                     .stat = &(dv_stat){.czxid = czxid, .ephemeral_owner = 1}});
}

static void answer_error(int error) {
    dv_fake_answer(fake, &(dv_reply){.error = error});
}

static void assert_pending(const char *text) {
    assert_string_equal(dv_fake_pending(fake), text);
}

static const dv_plan_node *node_at(size_t n) {
    const dv_plan_party *party = dv_roster_party(people);
    assert_true(n < party->count);
    return &party->nodes[n];
}

static void assert_told(int error) {
    assert_int_equal(told.done, 1);
    assert_int_equal(told.error, error);
    memset(&told, 0, sizeof told);
}

/* --- the party -------------------------------------------------------------------------------------------------- */

/* The names alone tell who they are and which items they carry, in the order of the names. */
static void test_names(void **state) {
    (void)state;
    SETTLE(7, "b,a=2,s=0000000a-w-2", "a,a=2,x=1,s=1a2b3c4d-w1", "c,a=3-w3");
    const dv_plan_party *party = dv_roster_party(people);
    assert_int_equal(party->count, 3);
    assert_int_equal(party->pzxid, 7);
    assert_string_equal(node_at(0)->node, "a,a=2,x=1,s=1a2b3c4d-w1");
    assert_string_equal(node_at(0)->identifier, "w1");
    assert_int_equal(node_at(0)->tag, 0x1a2b3c4d);
    assert_string_equal(node_at(1)->identifier, "w-2");
    assert_int_equal(node_at(1)->tag, 10);
    assert_int_equal(node_at(2)->tag, 0);
    for (size_t n = 0; n < 3; n++) assert_false(node_at(n)->known);
    assert_int_equal(dv_roster_find(people, "c,a=3-w3"), 2);
    assert_int_equal(dv_roster_find(people, "d"), SIZE_MAX);
}

/* Nobody knows anybody before the first party, and a party may be empty. */
static void test_empty(void **state) {
    (void)state;
    assert_int_equal(dv_roster_find(people, "a"), SIZE_MAX);
    assert_int_equal(ask(), 0);
    assert_int_equal(settle(NULL, 0, 5), 0);
    assert_int_equal(ask(), 0);
    SETTLE(6, "a,a=2-w");
    assert_int_equal(settle(NULL, 0, 7), 0);
    assert_int_equal(dv_roster_party(people)->count, 0);
    assert_int_equal(dv_roster_party(people)->pzxid, 7);
}

/* D32: a name that would break a plan is nobody's; and one that a list has twice is one. */
static void test_odd_names(void **state) {
    (void)state;
    char longest[DV_PLAN_KEY_BYTES_MAX + 1], longer[DV_PLAN_KEY_BYTES_MAX + 2];
    memset(longest, 'x', sizeof longest);
    memset(longer, 'x', sizeof longer);
    longest[sizeof longest - 1] = longer[sizeof longer - 1] = '\0';
    SETTLE(5, "n,a=2-\xff", longest, longer, "m,a=2-w", "m,a=2-w");
    assert_int_equal(dv_roster_party(people)->count, 2);
    assert_string_equal(node_at(0)->node, "m,a=2-w");
    assert_string_equal(node_at(1)->node, longest);
    SETTLE(6, "m,a=2-w", "l,a=2-w", "m,a=2-w", "l,a=2-w");
    assert_int_equal(dv_roster_party(people)->count, 2);
}

/* What the caller has filled in stays, but for the owners, whose numbers meant the nodes before. */
static void test_callers_fields(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w");
    dv_plan_party *party = dv_roster_party(people);
    uint32_t owners[1] = {0};
    dv_plan_set *set = numbered_set("i", 1);
    party->set = set;
    party->options.max_moves = 3;
    party->owners = owners;
    SETTLE(6, "b,a=2-w");
    assert_ptr_equal(dv_roster_party(people), party);
    assert_ptr_equal(party->set, set);
    assert_int_equal(party->options.max_moves, 3);
    assert_null(party->owners);
    dv_plan_set_unref(set);
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

/* One get tells all about a node, its age too. A node that says nothing has the defaults. */
static void test_ask(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "c,a=2-w3");
    assert_int_equal(ask(), 3);
    assert_pending("get /p/party/a,a=2-w1, get /p/party/b,a=2-w2, get /p/party/c,a=2-w3");
    answer(STATIC, 11);
    answer("nonsense", 12);
    assert_int_equal(told.done, 0);
    answer("", 13);
    assert_told(0);
    assert_true(node_at(0)->known && node_at(0)->is_static);
    assert_int_equal(node_at(0)->weight, 500);
    assert_string_equal(node_at(0)->zone, "z");
    assert_int_equal(node_at(0)->rejoin_delay_ms, 30000);
    assert_int_equal(node_at(0)->czxid, 11);
    for (size_t n = 1; n < 3; n++) {
        assert_true(node_at(n)->known && !node_at(n)->is_static);
        assert_int_equal(node_at(n)->weight, DV_WEIGHT);
        assert_string_equal(node_at(n)->zone, "");
        assert_int_equal(node_at(n)->czxid, 11 + (int64_t)n);
    }
    assert_int_equal(ask(), 0);
}

/* Who is in the plan by its node's name is not read; and after the answers a step finds nothing more to ask. */
static void test_ask_for_a_step(void **state) {
    (void)state;
    SETTLE(5, "a,a=2,s=00000001-w1", "b,a=2,s=00000001-w2", "c,a=2,s=00000001-w2");
    dv_plan_party *party = dv_roster_party(people);
    dv_plan_set *set = numbered_set("i", 6);
    party->set = set;
    party->options = (dv_plan_options){.algorithm = DV_PLAN_ALGORITHM};
    dv_plan *previous = dv_plan_make(dv_plan_set_ref(set)), *next;
    previous->header = (dv_plan_header){.generation = 1, .guid = "g", .pzxid = 4, .options = party->options};
    previous->mzxid = 4;
    add_member(previous, (dv_plan_member){.key = "a,a=2,s=00000001-w1", .weight = 1000});
    assert_int_equal(ask_of(previous), 2);
    assert_pending("get /p/party/b,a=2,s=00000001-w2, get /p/party/c,a=2,s=00000001-w2");
    answer(STATIC, 21);
    assert_int_equal(dv_plan_step(&next, previous, party, NULL), DV_PLAN_ASK);
    answer(STATIC, 20);
    assert_told(0);
    assert_int_equal(ask_of(previous), 0);
    assert_int_equal(dv_plan_step(&next, previous, party, NULL), DV_PLAN_NEXT);
    assert_non_null(dv_plan_member_of(next, party, 1));
    assert_null(dv_plan_member_of(next, party, 2)); /* D12: the older one is fenced */
    dv_plan_free(next);
    dv_plan_free(previous);
    dv_plan_set_unref(set);
}

/* D32: a member cannot be static without an identifier, its key in the plan. And no age is asked for again and
 * again. */
static void test_odd_answers(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-", "b,a=2-w", "c,a=2-w");
    assert_int_equal(ask(), 3);
    answer(STATIC, 11);
    answer(STATIC, 0);
    answer(STATIC, 0);
    assert_told(0);
    assert_false(node_at(0)->is_static);
    assert_int_equal(ask(), 0);
}

/* The namesakes of a node are read, itself among them, and nobody else. */
static void test_namesakes(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "c,a=2-w1");
    assert_int_equal(ask_namesakes("c,a=2-w1"), 2);
    assert_pending("get /p/party/a,a=2-w1, get /p/party/c,a=2-w1");
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    assert_int_equal(ask_namesakes("a,a=2-w1"), 0);
    assert_true(dv_plan_fenced(dv_roster_party(people), 0));
    assert_false(dv_plan_fenced(dv_roster_party(people), 2));
    SETTLE(6, "a,a=2-w1", "b,a=2-w2", "c,a=2-w1", "d,a=2-w1");
    assert_int_equal(ask_namesakes("a,a=2-w1"), 1);
    assert_pending("get /p/party/d,a=2-w1");
    answer(DYNAMIC, 13);
    assert_told(0);
    assert_false(dv_plan_fenced(dv_roster_party(people), 2)); /* not by one that is not static */
}

/* --- what is kept ----------------------------------------------------------------------------------------------- */

/* Who stays is not read again; who goes is forgotten, and is a stranger when a node of that name comes back. */
static void test_kept(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "b,a=2-w2");
    ask();
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    SETTLE(6, "c,a=2-w3", "b,a=2-w2");
    assert_true(node_at(0)->known);
    assert_string_equal(node_at(0)->zone, "z");
    assert_int_equal(node_at(0)->czxid, 12);
    assert_int_equal(ask(), 1);
    assert_pending("get /p/party/c,a=2-w3");
    answer(DYNAMIC, 13);
    assert_told(0);
    SETTLE(7, "a,a=2-w1", "b,a=2-w2");
    assert_int_equal(ask(), 1);
    assert_pending("get /p/party/a,a=2-w1");
    answer(DYNAMIC, 14);
    assert_told(0);
    assert_false(node_at(0)->is_static);
}

/* Answers that come when another party has settled are good for those who are still there; who asked is told that it
 * asked about another party. */
static void test_late_answers(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "c,a=2-w3");
    ask();
    answer(STATIC, 11);
    SETTLE(6, "b,a=2-w2", "d,a=2-w4");
    answer(STATIC, 12);
    assert_int_equal(told.done, 0);
    answer(STATIC, 13);
    assert_told(DIVVY_ECANCELED);
    assert_true(node_at(0)->known && node_at(0)->is_static);
    assert_int_equal(node_at(0)->czxid, 12);
    assert_int_equal(ask(), 1);
    answer(DYNAMIC, 14);
    assert_told(0);
}

/* Two may ask at a time, and each is told by itself. */
static void test_two_ask(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "b,a=2-w1");
    assert_int_equal(ask(), 2);
    assert_int_equal(ask_namesakes("a,a=2-w1"), 2);
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    answer(DYNAMIC, 98);
    answer(DYNAMIC, 99);
    assert_told(0);
    assert_true(node_at(0)->is_static);
    assert_int_equal(node_at(1)->czxid, 12);
}

/* --- what a plan tells ------------------------------------------------------------------------------------------- */

static dv_plan *plan_of(const char *dynamic, int64_t absent) {
    dv_plan *plan = dv_plan_make(numbered_set("i", 1));
    assert_non_null(plan);
    plan->header = (dv_plan_header){.generation = 1, .guid = "g", .pzxid = 5};
    plan->mzxid = 6;
    add_member(plan, (dv_plan_member){.slot = 0, .is_static = true, .key = "w3", .weight = 1000});
    add_member(plan, (dv_plan_member){.slot = 1, .key = (char *)(uintptr_t)dynamic, .weight = 1000});
    add_member(plan, (dv_plan_member){.slot = 2,
                                      .is_static = true,
                                      .key = "w1",
                                      .weight = 700,
                                      .zone = "z",
                                      .rejoin_delay_ms = 5,
                                      .absent = absent});
    return plan;
}

/* D43: who follows a plan for its party need not read who its static members are; but for those with a namesake. */
static void test_learn(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "c,a=2-w3", "d,a=2-w3");
    dv_plan *plan = plan_of("b,a=2-w2", 0);
    dv_roster_learn(people, plan);
    assert_true(node_at(0)->known && node_at(0)->is_static);
    assert_int_equal(node_at(0)->weight, 700);
    assert_string_equal(node_at(0)->zone, "z");
    assert_int_equal(node_at(0)->rejoin_delay_ms, 5);
    assert_int_equal(node_at(0)->czxid, 0);
    for (size_t n = 1; n < 4; n++) assert_false(node_at(n)->known);
    assert_int_equal(ask_namesakes("a,a=2-w1"), 0);
    assert_int_equal(ask_of(plan), 2);
    assert_pending("get /p/party/c,a=2-w3, get /p/party/d,a=2-w3");
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    dv_roster_learn(people, plan);
    assert_int_equal(node_at(2)->czxid, 11); /* What was read is better than what was said of it. */
    dv_plan_free(plan);
}

/* When a namesake comes it is asked how old both are, and what the node itself says counts from then on. */
static void test_learnt_and_doubled(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "b,a=2-w2");
    dv_plan *plan = plan_of("b,a=2-w2", 0);
    dv_roster_learn(people, plan);
    SETTLE(7, "a,a=2-w1", "b,a=2-w2", "e,a=2-w1");
    dv_roster_learn(people, plan);
    assert_int_equal(ask_namesakes("e,a=2-w1"), 2);
    assert_pending("get /p/party/a,a=2-w1, get /p/party/e,a=2-w1");
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    assert_int_equal(node_at(0)->czxid, 11);
    assert_int_equal(node_at(0)->rejoin_delay_ms, 30000);
    assert_true(dv_plan_fenced(dv_roster_party(people), 0));
    assert_int_equal(ask_of(plan), 0);
    dv_plan_free(plan);
}

/* One round of reads is enough for a step, though only its answers tell that there are two of a member. */
static void test_learnt_and_asked(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "f,a=2-w4");
    dv_plan *plan = plan_of("b,a=2-w2", 0);
    dv_plan_party *party = dv_roster_party(people);
    dv_plan *next;
    party->set = plan->set;
    dv_roster_learn(people, plan);
    SETTLE(7, "a,a=2-w1", "b,a=2-w2", "e,a=2-w1", "f,a=2-w4");
    assert_int_equal(ask_of(plan), 3);
    assert_pending("get /p/party/a,a=2-w1, get /p/party/e,a=2-w1, get /p/party/f,a=2-w4");
    for (int n = 0; n < 3; n++) answer(STATIC, 11 + n);
    assert_told(0);
    assert_int_equal(ask_of(plan), 0);
    assert_int_equal(dv_plan_step(&next, plan, party, NULL), DV_PLAN_NEXT);
    dv_plan_free(next);
    dv_plan_free(plan);
}

/* A node that only has the identifier of an absent member is not that member. */
static void test_absent_namesake(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1");
    dv_plan *plan = plan_of("a,a=2-w1", 4);
    dv_roster_learn(people, plan);
    assert_false(node_at(0)->known);
    dv_plan_free(plan);
}

/* Without memory it stays unknown, and is read. */
static void test_scarce_learn(void **state) {
    (void)state;
    dv_plan *plan = plan_of("b,a=2-w2", 0);
    int failures = 0;
    for (bool learnt = false; !learnt; failures++) {
        SETTLE(5 + failures, "x,a=2-w9");
        SETTLE(50 + failures, "a,a=2-w1");
        scarce_after = failures;
        dv_roster_learn(people, plan);
        scarce_after = -1;
        learnt = node_at(0)->known;
    }
    assert_int_equal(failures, 4); /* two tables, the zone, and once nothing */
    dv_plan_free(plan);
}

/* --- errors ----------------------------------------------------------------------------------------------------- */

/* The first error is told, when all that is under way has ended; what was answered well is known. */
static void test_errors(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "c,a=2-w3");
    ask();
    answer_error(DIVVY_ENOENT);
    answer_error(DIVVY_EACCES);
    assert_int_equal(told.done, 0);
    answer(STATIC, 13);
    assert_told(DIVVY_ENOENT);
    assert_true(node_at(2)->known);
    assert_int_equal(ask(), 2);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_run(fake);
    assert_told(DIVVY_ECONNECTION);
}

/* A roster that is freed with reads under way, asked twice, calls nobody. */
static void test_freed(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "b,a=2-w2");
    ask();
    ask_namesakes("b,a=2-w2");
    answer(STATIC, 11);
    dv_roster_free(people);
    people = NULL;
    answer(STATIC, 12);
    answer(STATIC, 13);
    assert_pending("");
    assert_int_equal(told.done, 0);
}

static void free_inside(void *context, int error, int64_t now) {
    on_done(context, error, now);
    dv_roster_free(people);
    people = NULL;
}

/* A node that is read and turns out to be persistent is nobody's: it is told of once, claims no place in a plan, and
 * fences nobody. */
static void test_ghost(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "g,a=2-w1");
    assert_int_equal(ask(), 2);
    answer(STATIC, 11);
    dv_fake_answer(fake, &(dv_reply){.data = STATIC, .data_bytes = strlen(STATIC), .stat = &(dv_stat){.czxid = 12}});
    assert_int_equal(told.ghosts, 1);
    assert_true(node_at(1)->is_ghost);
    assert_false(node_at(0)->is_ghost);
    assert_false(dv_plan_fenced(dv_roster_party(people), 0));
    assert_int_equal(told.error, 0);
    assert_int_equal(ask(), 0);
}

/* Who writes asks for all that was not read: that a plan has a member of a node's name does not make the node
 * ephemeral. */
static void test_writer_asks_all(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "g,a=2-w1");
    assert_int_equal(ask(), 2);
    answer("{}", 11);
    answer_error(DIVVY_ECONNECTION);
    assert_told(DIVVY_ECONNECTION);
    dv_plan_member member = {.key = "g,a=2-w1", .zone = "", .leaving = ""};
    dv_plan plan = {.members = &member, .member_count = 1};
    assert_int_equal(ask_of(&plan), 0);
    dv_turn_begin(dv_fake_client(fake));
    int asked = dv_roster_ask(people, &plan, DV_ROSTER_ALL, on_done, &told);
    dv_turn_end(dv_fake_client(fake));
    assert_int_equal(asked, 1);
    dv_fake_answer(fake, &(dv_reply){.data = "", .stat = &(dv_stat){.czxid = 12}});
    assert_true(node_at(1)->is_ghost);
}

/* It may be freed by who is told. */
static void test_freed_inside(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1");
    dv_turn_begin(dv_fake_client(fake));
    assert_int_equal(dv_roster_ask(people, NULL, DV_ROSTER_NEEDED, free_inside, &told), 1);
    dv_turn_end(dv_fake_client(fake));
    answer(STATIC, 11);
    assert_told(0);
}

/* --- memory ----------------------------------------------------------------------------------------------------- */

/* A settle changes nothing when an allocation fails, whichever it is. */
static void test_scarce_settle(void **state) {
    (void)state;
    static const char *const others[] = {"e,a=2-w5", "b,a=2-w2", "d,a=2-w4", "e,a=2-w5"};
    SETTLE(5, "a,a=2-w1", "b,a=2-w2");
    ask();
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    int error = DIVVY_ENOMEM, failures = 0;
    for (; error == DIVVY_ENOMEM; failures++) {
        assert_int_equal(dv_roster_party(people)->count, 2);
        assert_int_equal(dv_roster_party(people)->pzxid, 5);
        assert_int_equal(ask(), 0);
        scarce_after = failures;
        error = settle(others, COUNT(others), 6);
        scarce_after = -1;
    }
    assert_int_equal(error, 0);
    assert_int_equal(failures, 5); /* the table and three names, and once nothing */
    assert_int_equal(dv_roster_party(people)->count, 3);
    assert_true(node_at(0)->known);
}

/* A call asks nothing when an allocation fails, also when not even the first read can be sent. */
static void test_scarce_ask(void **state) {
    (void)state;
    SETTLE(5, "a,a=2-w1", "b,a=2-w2");
    int asked = DIVVY_ENOMEM, failures = 0;
    for (; asked == DIVVY_ENOMEM; failures++) {
        scarce_after = failures;
        asked = ask();
        scarce_after = -1;
        assert_int_equal(sent, asked == DIVVY_ENOMEM ? 0 : 2);
    }
    assert_int_equal(asked, 2);
    assert_true(failures > 5);
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    SETTLE(6, "c,a=2-w3", "d,a=2-w4");
    refused_after = sent;
    assert_int_equal(ask(), DIVVY_ENOMEM);
    refused_after = sent + 1;
    assert_int_equal(ask(), 2);
    answer(STATIC, 13);
    assert_told(DIVVY_ENOMEM);
    refused_after = SIZE_MAX;
    assert_int_equal(ask(), 1);
    answer(STATIC, 14);
    assert_told(0);
}

/* Nobody is created without memory. */
static void test_scarce_new(void **state) {
    (void)state;
    scarce_after = 0;
    assert_null(dv_roster_new(dv_fake_client(fake), PARTY, on_ghost, &told));
    scarce_after = -1;
}

/* --- many ------------------------------------------------------------------------------------------------------- */

enum { MANY = 1000, AT_ONCE = 200 };

static size_t under_way(void) {
    size_t count = 0;
    for (const dv_fake_request *q = dv_fake_oldest(fake); q != NULL; q = q->next) count++;
    return count;
}

/* 1,000 members are read 200 at a time, and of the next party only who is new; also an error ends the sending. */
static void test_many(void **state) {
    (void)state;
    static char texts[MANY + 1][32];
    const char *names[MANY + 1];
    for (size_t n = 0; n <= MANY; n++) {
        snprintf(texts[n], sizeof texts[n], "n%06zu,a=2-w%zu", n * 7919 % 10007, n);
        names[n] = texts[n];
    }
    assert_int_equal(settle(names, MANY, 5), 0);
    assert_int_equal(ask(), MANY);
    size_t answered = 0;
    for (; under_way() > 0; answered++) {
        size_t left = MANY - answered;
        assert_int_equal(under_way(), left < AT_ONCE ? left : AT_ONCE);
        answer(DYNAMIC, 10 + (int64_t)answered);
    }
    assert_int_equal(answered, MANY);
    assert_told(0);
    assert_int_equal(settle(names + 1, MANY, 6), 0);
    assert_int_equal(ask(), 1);
    answer(DYNAMIC, 5000);
    assert_told(0);
    assert_int_equal(settle(NULL, 0, 7), 0);
    assert_int_equal(settle(names, MANY, 8), 0);
    assert_int_equal(ask(), MANY);
    answer_error(DIVVY_ENOENT);
    assert_int_equal(under_way(), AT_ONCE - 1);
    for (size_t n = 1; n < AT_ONCE; n++) answer(DYNAMIC, 1);
    assert_told(DIVVY_ENOENT);
    assert_int_equal(under_way(), 0);
}

#define WITH_PEOPLE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_PEOPLE(test_names),
        WITH_PEOPLE(test_empty),
        WITH_PEOPLE(test_odd_names),
        WITH_PEOPLE(test_callers_fields),
        WITH_PEOPLE(test_ask),
        WITH_PEOPLE(test_ask_for_a_step),
        WITH_PEOPLE(test_odd_answers),
        WITH_PEOPLE(test_namesakes),
        WITH_PEOPLE(test_kept),
        WITH_PEOPLE(test_late_answers),
        WITH_PEOPLE(test_two_ask),
        WITH_PEOPLE(test_errors),
        WITH_PEOPLE(test_freed),
        WITH_PEOPLE(test_ghost),
        WITH_PEOPLE(test_writer_asks_all),
        WITH_PEOPLE(test_freed_inside),
        WITH_PEOPLE(test_scarce_settle),
        WITH_PEOPLE(test_scarce_ask),
        WITH_PEOPLE(test_scarce_new),
        WITH_PEOPLE(test_learn),
        WITH_PEOPLE(test_learnt_and_doubled),
        WITH_PEOPLE(test_learnt_and_asked),
        WITH_PEOPLE(test_absent_namesake),
        WITH_PEOPLE(test_scarce_learn),
        WITH_PEOPLE(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
