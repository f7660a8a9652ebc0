/* What operators, loads, tags and caps make of a pool, in words. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "divvy/explain_judge.h"
#include "divvy/status_plan.h"
#include "divvy/status_print.h"
#include "divvy/status_rules.h"
#include "lib/test.h"

/* AT_MS: 2026-01-31T12:00:00Z. */
#define AT_MS INT64_C(1769860800000)

enum { MEMBERS = 3, ITEMS = 6, NOW_SECONDS = 60 };

static char *text(const char *constant) {
    return (char *)(uintptr_t)constant; /* Nobody writes it. */
}

/* Three members, a, b and c, and items i0 to i5, two for each. */
typedef struct {
    dv_pool_plan plan;
    dv_status_member members[MEMBERS];
    dv_status_item items[ITEMS];
    dv_status status;
} pool;

static void set_pool(pool *p) {
    static const char *const names[ITEMS] = {"i0", "i1", "i2", "i3", "i4", "i5"};
    static const char *const nodes[MEMBERS] = {"g1,a=3-a", "g2,a=3-b", "g3,a=3-c"};
    *p = (pool){.status = {.path = "/q", .found = true, .member_count = MEMBERS, .item_count = ITEMS}};
    dv_plan *plan = dv_plan_make(dv_plan_set_make(names, ITEMS));
    assert_non_null(plan);
    plan->header = (dv_plan_header){.generation = 7, .is_balanced = true};
    for (uint32_t n = 0; n < MEMBERS; n++) {
        dv_plan_member m = {.slot = n, .key = text(nodes[n]), .weight = 1000, .zone = text(""), .leaving = text("")};
        m.tags = text("");
        assert_true(dv_plan_add_member(plan, &m));
        p->members[n] = (dv_status_member){.node = text(nodes[n]),
                                           .identifier = nodes[n] + 7,
                                           .host = text("h"),
                                           .since = text(""),
                                           .session = n + 1,
                                           .item_count = 2,
                                           .follows = true,
                                           .can_balance = true};
    }
    for (size_t i = 0; i < ITEMS; i++) {
        plan->owners[i] = (uint32_t)i / 2;
        p->items[i] = (dv_status_item){.name = text(names[i]),
                                       .node = text(names[i]),
                                       .there = true,
                                       .head = text("g"),
                                       .owner = text(nodes[i / 2] + 7),
                                       .member = i / 2,
                                       .session = (int64_t)i / 2 + 1};
    }
    p->plan.memory = (dv_plan_memory){.plan = plan, .standing = DV_PLAN_GOOD};
    p->status.plan = &p->plan;
    p->status.members = p->members;
    p->status.items = p->items;
    p->status.read_at_ms = AT_MS + NOW_SECONDS * 1000;
}

static dv_plan *plan_of(pool *p) {
    return p->plan.memory.plan;
}

static void disown(pool *p, size_t item) {
    plan_of(p)->owners[item] = DV_PLAN_NO_SLOT;
    p->items[item].head = p->items[item].owner = NULL;
    p->items[item].member = DV_NO_MEMBER;
}

static void wish(pool *p, dv_wish_kind kind, const char *name, const char *value, const char *by, const char *why) {
    dv_plan *plan = plan_of(p);
    dv_wishes *wishes;
    const dv_wish_event event = {.wish = {kind, name, value, by, why, AT_MS}};
    assert_int_equal(dv_wishes_change(&wishes, plan->wishes, &event), 0);
    dv_wishes_unref(plan->wishes);
    plan->wishes = wishes;
}

static void give_tags(pool *p, size_t member, const char *tags, uint32_t cap) {
    dv_plan_member *m = &plan_of(p)->members[member];
    free(m->tags);
    m->tags = strdup(tags);
    m->cap = cap;
    assert_non_null(m->tags);
}

static void match(pool *p) {
    for (size_t i = 0; i < MEMBERS; i++) p->members[i].releasing = 0, p->members[i].entry = NULL;
    for (size_t i = 0; i < ITEMS; i++) p->items[i].planned = NULL;
    dv_status_plan_clear(&p->status);
    assert_int_equal(dv_status_plan_match(&p->status), 0);
}

static void clear(pool *p) {
    dv_status_plan_clear(&p->status);
    dv_plan_memory_clear(&p->plan.memory);
}

/* Checks the word and the sentence about an item. */
static void says(pool *p, const char *item, const char *word, const char *sentence) {
    char why[DV_RULE_BYTES];
    match(p);
    const char *rule = dv_status_rules_why(&p->status, item, why);
    if (word) assert_string_equal(rule, word);
    else assert_null(rule);
    assert_string_equal(why, sentence);
}

/* Checks what `divvy explain` says, and returns that. */
static dv_explain_verdict explains(pool *p, size_t item, const char *state, const char *now) {
    match(p);
    dv_explain_place place = {.name = p->items[item].owner, .member = p->items[item].member};
    dv_status one = p->status;
    one.items = &p->items[item];
    one.item_count = 1;
    dv_explanation e = {.status = &one,
                        .item = one.items,
                        .places = &place,
                        .place_count = p->items[item].head ? 1 : 0,
                        .is_planned = true,
                        .planned_ms = AT_MS};
    dv_explain_verdict v = dv_explain_judge(&e);
    assert_string_equal(v.state, state);
    assert_string_equal(v.now, now);
    return v;
}

static char *page_within(pool *p, size_t columns) {
    dv_status_page page = {.members = NULL};
    const dv_status_page before = {.members = NULL};
    match(p);
    char *out = dv_status_page_print(&p->status, &page, &before, false, columns);
    dv_status_page_free(&page);
    assert_non_null(out);
    return out;
}

static char *page_of(pool *p) {
    return page_within(p, 0);
}

/* Checks that the page has a text, or that it has not. */
static void shows(pool *p, const char *what, bool shown) {
    char *page = page_of(p);
    if ((strstr(page, what) != NULL) != shown) fprintf(stderr, "%s", page);
    assert_int_equal(strstr(page, what) != NULL, shown);
    free(page);
}

/* A pool without loads, wishes, tags and caps shows none of their columns, and says nothing of them. */
TEST(test_nothing_of_the_kind) {
    pool p;
    set_pool(&p);
    says(&p, "i0", NULL, "");
    explains(&p, 0, "settled", "it is where the plan wants it");
    static const char *const words[] = {"SHARE", "TAGS", "CAP", "WHY", "pinned", "paused", "wait:"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) shows(&p, words[i], false);
    char *json = dv_status_page_json(&p.status);
    assert_null(strstr(json, "\"rules\""));
    assert_null(strstr(json, "\"why\""));
    free(json);
    clear(&p);
}

/* What an operator asked for is told with who asked, since when, and why; what is not said is left out. */
TEST(test_operators_wishes) {
    pool p;
    set_pool(&p);
    wish(&p, DV_WISH_PIN, "i0", "a", "anna", "new disk");
    wish(&p, DV_WISH_MOVE, "i2", "g2,a=3-b", "", "");
    wish(&p, DV_WISH_PAUSE, "i5", "g3,a=3-c", "bob", "it fails");
    disown(&p, 5);
    says(&p, "i0", "pinned", "pinned to a by anna since 2026-01-31T12:00:00Z: new disk");
    says(&p, "i2", "moved", "moved to b since 2026-01-31T12:00:00Z");
    says(&p, "i5", "paused", "paused by bob since 2026-01-31T12:00:00Z: it fails");
    says(&p, "i1", NULL, "");
    explains(&p, 0, "settled",
             "it is where the plan wants it: pinned to a by anna since 2026-01-31T12:00:00Z: new disk");
    explains(&p, 5, "paused", "paused by bob since 2026-01-31T12:00:00Z: it fails");
    shows(&p, "6 items, 0 unowned", true);
    shows(&p, "i5    (paused)", true);
    shows(&p, "1 pinned, 1 moved by hand, 1 paused\n", true);
    shows(&p, "WHY", true);
    clear(&p);
}

/* A pin to a member that is not there is told, and so is where its item is until that comes. */
TEST(test_lost_pin) {
    pool p;
    set_pool(&p);
    wish(&p, DV_WISH_PIN, "i3", "m9", "anna", "");
    dv_explain_verdict v = explains(
        &p, 3, "settled",
        "it is where the plan wants it; pinned to m9 by anna since 2026-01-31T12:00:00Z; that waits: that member "
        "is not there");
    assert_string_equal(v.next, "it goes there when that member comes; or: divvy unpin --path /q i3");
    shows(&p,
          "1 item is pinned to a member that is not there; the first is i3, which m9 is to have: others have it until "
          "then\n",
          true);
    clear(&p);
}

/* An item without an owner says which of the hard rules is why. */
TEST(test_tags_and_caps) {
    pool p;
    set_pool(&p);
    disown(&p, 4);
    says(&p, "i4", NULL, "");
    wish(&p, DV_WISH_NEED, "i4", "ssd", "", "");
    says(&p, "i4", "tag", "no member has the tag ssd");
    explains(&p, 4, "unassigned", "no member has the tag ssd");
    shows(&p, "no member has the tag ssd, which 1 item needs; the first is i4\n", true);
    give_tags(&p, 1, "gpu,ssd", 2);
    free(plan_of(&p)->members[1].leaving); /* One that has left does not come back. */
    plan_of(&p)->members[1].leaving = strdup("g2,a=3-b");
    says(&p, "i4", "tag", "no member has the tag ssd");
    plan_of(&p)->members[1].leaving[0] = '\0';
    says(&p, "i4", "cap", "all members with the tag ssd are at their cap");
    plan_of(&p)->members[1].weight = 0;
    says(&p, "i4", "tag", "all members with the tag ssd are drained or away");
    clear(&p);
    set_pool(&p);
    disown(&p, 4);
    for (size_t m = 0; m < MEMBERS; m++) give_tags(&p, m, "", m == 2 ? 1 : 2);
    says(&p, "i4", "cap", "all members are at their cap");
    shows(&p, "the caps of all members allow 5 items, and there are 6\n", true);
    shows(&p, "CAP", true);
    clear(&p);
}

/* An item that a member may have, or that waits for one with a weight, is not kept from it by a rule. */
TEST(test_no_rule_is_why) {
    pool p;
    set_pool(&p);
    disown(&p, 4);
    wish(&p, DV_WISH_NEED, "i0", "ssd", "", "");
    says(&p, "i4", NULL, "");
    for (size_t m = 0; m < MEMBERS; m++) plan_of(&p)->members[m].weight = 0;
    says(&p, "i4", NULL, "");
    plan_of(&p)->members[1].weight = 1000;
    give_tags(&p, 1, "gpu,ssd", 0);
    wish(&p, DV_WISH_NEED, "i4", "ssd", "", "");
    says(&p, "i4", NULL, "");
    give_tags(&p, 1, "ssd2,ss", 0); /* Neither is the tag. */
    says(&p, "i4", "tag", "no member has the tag ssd");
    clear(&p);
}

/* The command that undoes a need has the name that the need has: the item's own, else the longest prefix. */
TEST(test_undo_a_need) {
    pool p;
    char undo[DV_RULE_BYTES];
    set_pool(&p);
    wish(&p, DV_WISH_NEED, "*", "hdd", "", "");
    wish(&p, DV_WISH_NEED, "i*", "ssd", "", "");
    wish(&p, DV_WISH_NEED, "i2", "gpu", "", "");
    wish(&p, DV_WISH_NEED, "i3*", "tape", "", "");
    match(&p);
    static const char *const undone[][2] = {{"i1", "'i*'"}, {"i2", "i2"}, {"i3", "'i3*'"}, {"x", "'*'"}};
    for (size_t i = 0; i < sizeof undone / sizeof *undone; i++) {
        const dv_wish *need = dv_pool_rules_need(&p.status.rules, undone[i][0]);
        assert_non_null(need);
        assert_string_equal(need->value, dv_wishes_tag(plan_of(&p)->wishes, undone[i][0]));
        dv_pool_rules_tell_undo(need, "/q", undo);
        assert_string_equal(undo + strlen("divvy need --path /q --undo "), undone[i][1]);
    }
    clear(&p);
}

/* An item that is where its tag wants it says so. */
TEST(test_needs_a_tag) {
    pool p;
    set_pool(&p);
    wish(&p, DV_WISH_NEED, "i*", "ssd", "anna", "fast");
    for (size_t m = 0; m < MEMBERS; m++) give_tags(&p, m, "ssd", 0);
    says(&p, "i1", NULL, "");
    explains(
        &p, 1, "settled",
        "it is where the plan wants it: it needs the tag ssd (asked for by anna since 2026-01-31T12:00:00Z: fast)");
    shows(&p, "1 need of a tag\ni* needs the tag ssd, asked for by anna since 2026-01-31T12:00:00Z: fast\n", true);
    shows(&p, "TAGS", true);
    clear(&p);
}

/* An item whose owner lacks its tag, and one that is pinned to another, wait for a round: that is said. */
TEST(test_waits_for_a_round) {
    pool p;
    set_pool(&p);
    wish(&p, DV_WISH_NEED, "i1", "ssd", "", "");
    wish(&p, DV_WISH_PIN, "i2", "c", "anna", "");
    wish(&p, DV_WISH_PAUSE, "i4", "c", "bob", "");
    explains(&p, 1, "settled",
             "it is where the plan leaves it; it needs the tag ssd (asked for since 2026-01-31T12:00:00Z), and a does "
             "not have it; it waits for a round");
    explains(&p, 2, "settled",
             "it is where the plan leaves it; pinned to c by anna since 2026-01-31T12:00:00Z; it waits for a round");
    explains(&p, 4, "settled",
             "it is where the plan leaves it; paused by bob since 2026-01-31T12:00:00Z; it waits for a round");
    clear(&p);
}

/* A pin beats tags and caps, and that is said. */
TEST(test_pin_overrides) {
    pool p;
    set_pool(&p);
    wish(&p, DV_WISH_NEED, "i0", "ssd", "", "");
    wish(&p, DV_WISH_PIN, "i0", "a", "", "");
    explains(
        &p, 0, "settled",
        "it is where the plan wants it: pinned to a since 2026-01-31T12:00:00Z; that overrides the tag ssd, which a "
        "does not have");
    shows(&p,
          "1 pin or move beats a tag or a cap; the first is of i0: that overrides the tag ssd, which a does not have\n",
          true);
    wish(&p, DV_WISH_PIN, "i2", "b", "", "");
    give_tags(&p, 1, "", 1);
    explains(
        &p, 2, "settled",
        "it is where the plan wants it: pinned to b since 2026-01-31T12:00:00Z; that overrides the cap of b, which "
        "has 2 items and takes 1");
    shows(&p, "2 pins or moves beat a tag or a cap; the first is of i0: ", true);
    clear(&p);
}

/* Where a line is too long, columns of rules that say nothing go first, and a reason is cut at its end. */
TEST(test_narrow) {
    pool p;
    set_pool(&p);
    plan_of(&p)->members[1].weight = 0;
    wish(&p, DV_WISH_PIN, "i0", "a", "anna", "a new disk has come for it, and has to be filled");
    char *page = page_within(&p, 60);
    static const char *const heads[][2] = {{"STATE", "1"}, {"SHARE", ""}, {"TAGS", ""}, {"CAP", ""}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        assert_int_equal(strstr(page, heads[i][0]) != NULL, *heads[i][1] != '\0');
    assert_non_null(strstr(page, "  pinned to a by anna since"));
    assert_non_null(strstr(page, "...\n"));
    free(page);
    clear(&p);
}

/* What an operator has set stands below the plan. Of many the first ones do. */
TEST(test_options) {
    pool p;
    set_pool(&p);
    wish(&p, DV_WISH_OPTION, "max-moves", "2", "anna", "calm");
    shows(&p, "\nmax-moves=2, set by anna since 2026-01-31T12:00:00Z: calm\n", true);
    shows(&p, "more options", false);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++) wish(&p, DV_WISH_NEED, names[i], "ssd", "", "");
    shows(&p, "4 needs of tags\n", true);
    shows(&p, "\n1 more options and needs: --json shows all\n", true);
    clear(&p);
}

/* Items that the plan has moved count until their owners have them. */
TEST(test_on_their_way) {
    pool p;
    set_pool(&p);
    dv_plan *plan = plan_of(&p);
    plan->moved = calloc(2, sizeof *plan->moved);
    assert_non_null(plan->moved);
    plan->moved[0] = 1;
    plan->moved[1] = 3;
    plan->moved_count = 2;
    shows(&p, "on their way", false);
    p.items[3].member = 0;
    shows(&p, "1 on their way", true);
    disown(&p, 3); /* It goes to nobody, and nobody has it. */
    shows(&p, "on their way", false);
    clear(&p);
}

/* Loads are shown as parts of the fair share; what the last step moved for them is told where it went. */
TEST(test_loads) {
    static const uint32_t given[] = {1, 3};
    pool p;
    set_pool(&p);
    dv_loads *loads = dv_loads_make("cores", ITEMS);
    assert_non_null(loads);
    assert_true(dv_loads_add_giver(loads, "c", 1310, given, 2));
    plan_of(&p)->loads = loads;
    shows(&p, "1.00", false); /* No load is known yet. */
    for (size_t i = 0; i < ITEMS; i++) loads->classes[i] = DV_CLASS_ONE;
    explains(&p, 3, "settled", "it is where the plan wants it: moved for load: c was at 1.31 of its share");
    explains(&p, 2, "settled", "it is where the plan wants it");
    shows(&p, "SHARE", true);
    shows(&p, "1.00", true);
    shows(&p, "more than a fair share", false);
    loads->classes[0] = DV_CLASS_ONE + 20; /* 32 */
    shows(&p, "1 item is more than a fair share of the load; the most is i0 with 86 % of it\n", true);
    clear(&p);
}

/* What waits says for whom. The plan then has other reasons for what it does. */
TEST(test_waits) {
    pool p;
    set_pool(&p);
    wish(&p, DV_WISH_PIN, "i0", "a", "anna", "");
    p.members[1].can_balance = false;
    plan_of(&p)->header.is_balanced = false;
    shows(&p, "loads and operators' wishes wait: the member b is of an earlier release\n", true);
    explains(&p, 0, "settled",
             "it is where the plan wants it; pinned to a by anna since 2026-01-31T12:00:00Z; that waits: the member b "
             "is of an earlier release");
    p.members[1].follows = false;
    p.members[1].kazoo = true;
    shows(&p, "loads and operators' wishes wait: the member b is kazoo's\n", true);
    p.members[1] = p.members[0];
    shows(&p, "loads and operators' wishes wait: they are in force with the next plan\n", true);
    plan_of(&p)->header.is_balanced = true;
    clear(&p);
    set_pool(&p);
    wish(&p, DV_WISH_PIN, "i0", "a", "anna", "");
    shows(&p, "wait:", false);
    clear(&p);
}

/* Makes a member of the plan a static one that is away, whose place is kept for that long; 0: not at all. */
static void send_away(pool *p, size_t member, const char *key, int64_t kept_ms) {
    dv_plan_member *m = &plan_of(p)->members[member];
    free(m->key);
    m->key = strdup(key);
    assert_non_null(m->key);
    m->is_static = kept_ms > 0;
    m->rejoin_delay_ms = kept_ms;
    m->absent = 7;
}

/* A static member that is away still has its tags, while its place is kept; one that has gone has none. */
TEST(test_tags_of_who_is_away) {
    pool p;
    set_pool(&p);
    give_tags(&p, 1, "ssd", 0);
    wish(&p, DV_WISH_NEED, "i4", "ssd", "", "");
    disown(&p, 4);
    send_away(&p, 1, "b", 60000);
    says(&p, "i4", "tag", "all members with the tag ssd are drained or away");
    send_away(&p, 1, "g2,a=3-b", 0);
    says(&p, "i4", "tag", "no member has the tag ssd");
    clear(&p);
}

/* A move to a static member names it; one to a member that is away, or gone for good, is lost. */
TEST(test_moves_to_static_members) {
    pool p;
    set_pool(&p);
    send_away(&p, 2, "c", 60000);
    plan_of(&p)->members[2].absent = 0;
    wish(&p, DV_WISH_MOVE, "i5", "c", "anna", "");
    wish(&p, DV_WISH_PIN, "i4", "c", "anna", "");
    says(&p, "i5", "moved", "moved to c by anna since 2026-01-31T12:00:00Z");
    shows(&p, "a member that is not there", false);
    plan_of(&p)->members[2].absent = 7;
    shows(&p,
          "2 items are pinned to a member that is not there; the first is i5, which c is to have: the plan keeps it "
          "for that\n",
          true);
    wish(&p, DV_WISH_MOVE, "i5", "m9", "anna", "");
    shows(&p, "the first is i5, which m9 is to have: others have it until then\n", true);
    clear(&p);
}

/* Of heavy items the heaviest is told. A paused one is no load, and one whose load is not known counts as the mean. */
TEST(test_heavy_items) {
    pool p;
    set_pool(&p);
    dv_loads *loads = plan_of(&p)->loads = dv_loads_make("cores", ITEMS);
    assert_non_null(loads);
    for (size_t i = 0; i + 1 < ITEMS; i++) loads->classes[i] = DV_CLASS_ONE;
    for (size_t i = 0; i < 2; i++) loads->classes[i] = (uint8_t)(DV_CLASS_ONE + 20 - i);
    wish(&p, DV_WISH_NEED, "i5", "ssd", "", "");
    shows(&p, "more than a fair share of the load; the most is i0 with", true);
    wish(&p, DV_WISH_PAUSE, "i0", "a", "bob", "");
    shows(&p, "the most is i0", false);
    for (size_t m = 0; m < MEMBERS; m++) plan_of(&p)->members[m].weight = 0; /* Nobody has a share. */
    shows(&p, "more than a fair share", false);
    clear(&p);
}

/* A pin of what is no item of the pool counts for nothing. A pin to a member that is not there beats no tag. */
TEST(test_pins_in_vain) {
    pool p;
    set_pool(&p);
    wish(&p, DV_WISH_PIN, "gone", "a", "anna", "");
    wish(&p, DV_WISH_NEED, "i2", "ssd", "", "");
    wish(&p, DV_WISH_PIN, "i2", "m9", "anna", "");
    shows(&p, "1 item is pinned to a member that is not there; the first is i2", true);
    shows(&p, "beats", false);
    shows(&p, "1 pinned", true);
    clear(&p);
}
