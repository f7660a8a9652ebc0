/* What an operator's command says has been done, and what it warns of. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "divvy/operator.h"
#include "lib/test.h"

enum { ITEMS = 3, MEMBERS = 2 };

static char path[] = "/q"; /* of the pool */
static const char *const items[ITEMS] = {"a", "ab", "c"};

/* Two members, whose identifiers are m0 and m1. Owners are one digit for each item; 9 is nobody. */
static dv_plan *plan_of(uint64_t generation, const char *owners, const char *tags) {
    dv_plan *plan = dv_plan_make(dv_plan_set_make(items, ITEMS));
    assert_non_null(plan);
    for (uint32_t n = 0; n < MEMBERS; n++) {
        const dv_plan_member m = {.slot = n,
                                  .key = n ? (char[]){"g1-m1"} : (char[]){"m0"},
                                  .is_static = n == 0,
                                  .weight = n ? 500 : 1000,
                                  .zone = (char[]){""},
                                  .leaving = (char[]){""},
                                  .tags = (char *)(uintptr_t)tags};
        assert_true(dv_plan_add_member(plan, &m));
    }
    for (size_t i = 0; i < ITEMS; i++)
        plan->owners[i] = owners[i] == '9' ? DV_PLAN_NO_SLOT : (uint32_t)(owners[i] - '0');
    plan->header.generation = generation;
    return plan;
}

static void wish(dv_plan *plan, dv_wish_kind kind, const char *name, const char *value) {
    const dv_wish_event event = {.wish = {kind, name, value, "anna", "", 1000}};
    dv_wishes *wishes;
    assert_int_equal(dv_wishes_change(&wishes, plan->wishes, &event), 0);
    dv_wishes_unref(plan->wishes);
    plan->wishes = wishes;
}

/* ---- what was done ---- */

typedef struct {
    dv_plan *before, *after; /* the same: nothing was to be done */
    dv_errand errand;
    dv_outcome outcome;
    dv_operator_options options;
} scene;

static void set_scene(scene *s, const dv_ask *ask, const char *before, const char *after) {
    *s = (scene){.options = {.path = "/q"}};
    s->before = plan_of(6, before, "");
    s->after = after ? plan_of(7, after, "") : s->before;
    s->errand =
        (dv_errand){.ask = *ask, .path = path, .result = {.before = s->before, .after = s->after, .items_before = 2}};
    s->outcome = (dv_outcome){.plan = s->after, .rounds = s->before != s->after};
}

static void clear(scene *s) {
    if (s->after != s->before) dv_plan_free(s->after);
    dv_plan_free(s->before);
}

static void says(scene *s, const char *text) {
    char *said = dv_operator_text("pin", &s->errand, &s->outcome, &s->options);
    assert_non_null(said);
    assert_string_equal(said, text);
    free(said);
}

/* Each request has its words: done, or so already; with the owner then, and before. */
TEST(test_requests) {
    static const struct {
        dv_ask ask;
        const char *before, *after; /* owners; NULL: nothing was to be done */
        const char *text;
    } rows[] = {
        {{.kind = DV_ASK_PIN, .name = "a", .value = "m1"},
         "010",
         "110",
         "a: pinned to m1; m1 by plan 7 (before: m0)\n"},
        {{.kind = DV_ASK_PIN, .name = "a", .value = "m1"}, "110", NULL, "a: pinned to m1 already; m1 by plan 6\n"},
        {{.kind = DV_ASK_PIN, .name = "a", .undo = true},
         "110",
         "000",
         "a: no longer pinned; m0 by plan 7 (before: m1); 1 other item moves\n"},
        {{.kind = DV_ASK_PIN, .name = "a", .undo = true},
         "010",
         NULL,
         "a: not pinned, nor moved (a move ends with its member); m0 by plan 6\n"},
        {{.kind = DV_ASK_MOVE, .name = "a", .value = "m1"},
         "010",
         "101",
         "a: moved to m1; m1 by plan 7 (before: m0); 2 other items move\n"},
        {{.kind = DV_ASK_PAUSE, .name = "c"}, "010", "019", "c: paused; nobody by plan 7 (before: m0)\n"},
        {{.kind = DV_ASK_PAUSE, .name = "c"}, "019", NULL, "c: paused already; nobody by plan 6\n"},
        {{.kind = DV_ASK_PAUSE, .name = "c", .undo = true},
         "019",
         "010",
         "c: resumed; m0 by plan 7 (before: nobody)\n"},
        {{.kind = DV_ASK_PAUSE, .name = "c", .undo = true}, "010", NULL, "c: not paused; m0 by plan 6\n"},
        {{.kind = DV_ASK_NEED, .name = "a", .value = "ssd"},
         "010",
         "110",
         "a: needs the tag ssd; 1 item moves by plan 7\n"},
        {{.kind = DV_ASK_NEED, .name = "a", .value = "ssd"}, "010", NULL, "a: needs the tag ssd already\n"},
        {{.kind = DV_ASK_NEED, .name = "a", .undo = true}, "010", "101", "a: needs no tag; 3 items move by plan 7\n"},
        {{.kind = DV_ASK_NEED, .name = "a", .undo = true}, "010", NULL, "a: needs no tag already\n"},
        {{.kind = DV_ASK_OPTION, .name = "max-moves", .value = "2"},
         "010",
         "010",
         "max-moves: 2; 0 items move by plan 7\n"},
        {{.kind = DV_ASK_OPTION, .name = "max-moves", .value = "2"}, "010", NULL, "max-moves: 2 already\n"},
        {{.kind = DV_ASK_OPTION, .name = "max-moves", .undo = true},
         "010",
         NULL,
         "max-moves: as the members were started, already\n"},
        {{.kind = DV_ASK_FORGET, .name = "m0"}, "010", "111", "m0: no longer waited for; 2 items move by plan 7\n"},
    };
    scene s;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set_scene(&s, &rows[i].ask, rows[i].before, rows[i].after);
        says(&s, rows[i].text);
        clear(&s);
    }
}

/* A move that ends is no pin. A pinned item that is paused has nobody. Where moves go in rounds, that is said. */
TEST(test_what_else_there_is) {
    scene s;
    set_scene(&s, &(dv_ask){.kind = DV_ASK_PIN, .name = "a", .undo = true}, "110", "010");
    wish(s.before, DV_WISH_MOVE, "a", "g1-m1");
    says(&s, "a: no longer moved; m0 by plan 7 (before: m1)\n");
    s.errand.ask = (dv_ask){.kind = DV_ASK_PIN, .name = "c", .value = "m1"};
    wish(s.after, DV_WISH_PAUSE, "c", "m0");
    s.after->owners[2] = DV_PLAN_NO_SLOT;
    says(&s, "c: pinned to m1; nobody by plan 7, as it is paused (before: m0); 1 other item moves\n");
    clear(&s);
}

/* A need by a longer name that is undone leaves that of a prefix, with what undoes it. */
TEST(test_needs_that_remain) {
    scene s;
    set_scene(&s, &(dv_ask){.kind = DV_ASK_NEED, .name = "ab", .undo = true}, "010", "010");
    wish(s.after, DV_WISH_NEED, "*", "hdd");
    wish(s.after, DV_WISH_NEED, "a*", "ssd");
    wish(s.after, DV_WISH_NEED, "abc*", "gpu"); /* not of this item */
    wish(s.after, DV_WISH_PIN, "c", "m1");
    says(&s, "ab: no longer needs a tag by itself, but a* needs ssd; undo that: divvy need --path /q --undo 'a*'; 0 "
             "items move by plan 7\n");
    s.errand.result.before = s.after;
    says(&s, "ab: needs no tag by itself already, but a* needs ssd; undo that: divvy need --path /q --undo 'a*'\n");
    clear(&s);
}

/* A weight, with the load now and before. A dry run has the moves, and JSON has all of it. */
TEST(test_weights) {
    scene s;
    set_scene(&s, &(dv_ask){.kind = DV_ASK_WEIGHT, .name = "m1", .dry_run = true}, "011", "000");
    s.errand.result.key = (char[]){"g1-m1"};
    s.errand.result.weight_before = 1000;
    says(&s, "dry run: m1: weight 500 (before: 1000); 0 items by plan 7 (before: 2)\n"
             "ITEM  FROM  TO\n"
             "ab    m1    m0\n"
             "c     m1    m0\n");
    s.options.json = true;
    says(&s, "{\"path\":\"/q\",\"command\":\"pin\",\"name\":\"m1\",\"value\":null,\"undo\":false,\"dry_run\":true,"
             "\"changed\":true,\"generation\":7,\"moved\":2,\"rounds\":1,\"key\":\"g1-m1\",\"weight\":500,"
             "\"weight_before\":1000,\"items\":0,\"items_before\":2,\"moves\":[{\"item\":\"ab\",\"from\":\"m1\","
             "\"to\":\"m0\"},{\"item\":\"c\",\"from\":\"m1\",\"to\":\"m0\"}]}\n");
    s.options.json = false;
    s.errand.ask.dry_run = false;
    s.errand.result.weight_before = 500;
    says(&s, "m1: weight 500 already; 0 items by plan 7\n");
    clear(&s);
    set_scene(&s, &(dv_ask){.kind = DV_ASK_PAUSE, .name = "c"}, "010", "019");
    s.options.json = true;
    says(&s, "{\"path\":\"/q\",\"command\":\"pin\",\"name\":\"c\",\"value\":null,\"undo\":false,\"dry_run\":false,"
             "\"changed\":true,\"generation\":7,\"moved\":1,\"rounds\":1,\"owner\":null,\"owner_before\":\"m0\","
             "\"absent\":false}\n");
    clear(&s);
}

/* ---- warnings ---- */

/* Checks what stderr gets. */
static void warns(scene *s, const char *text) {
    char said[1024];
    int fd = memfd_create("stderr", 0), kept = dup(STDERR_FILENO);
    fflush(stderr);
    assert_true(fd >= 0 && kept >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    dv_operator_warn(&s->errand, &s->outcome);
    dup2(kept, STDERR_FILENO);
    ssize_t bytes = pread(fd, said, sizeof said - 1, 0);
    close(fd);
    close(kept);
    assert_true(bytes >= 0);
    said[bytes] = '\0';
    assert_string_equal(said, text);
}

static void retag(dv_plan *plan, size_t member, const char *tags) {
    free(plan->members[member].tags);
    plan->members[member].tags = strdup(tags);
    assert_non_null(plan->members[member].tags);
}

/* A tag that no member has, items that wait for it, and a prefix that no item has yet. Each tag is listed once. */
TEST(test_warnings_of_needs) {
    scene s;
    set_scene(&s, &(dv_ask){.kind = DV_ASK_NEED, .name = "a*", .value = "ssd"}, "010", "990");
    warns(&s, "divvy: warning: no member of /q has the tag ssd; no member has any\n"
              "divvy: warning: of 2 items that need the tag ssd, 2 are without an owner\n");
    retag(s.after, 0, "gpu,ss");
    retag(s.after, 1, "gpu,ssd2");
    s.after->owners[0] = 0;
    warns(&s, "divvy: warning: no member of /q has the tag ssd; there are: gpu, ss, ssd2\n"
              "divvy: warning: of 2 items that need the tag ssd, 1 is without an owner\n");
    retag(s.after, 1, "ssd");
    s.errand.ask.name = "ab";
    warns(&s, "divvy: warning: of 1 item that needs the tag ssd, 1 is without an owner\n");
    s.errand.ask.name = "x*";
    warns(&s, "divvy: warning: no item of /q begins so yet: x*\n");
    s.errand.ask = (dv_ask){.kind = DV_ASK_NEED, .name = "a*", .undo = true};
    warns(&s, "");
    clear(&s);
}

/* A member that is not there: one that the plan waits for, or perhaps a mistake, so that those are named that are. */
TEST(test_warnings_of_absence) {
    scene s;
    set_scene(&s, &(dv_ask){.kind = DV_ASK_PIN, .name = "a", .value = "m2"}, "010", "910");
    s.errand.result.absent = true;
    warns(&s,
          "divvy: warning: m2 is not in the pool /q; until it comes, the owner of a is nobody; there are: m0, m1\n");
    s.errand.result.key = (char[]){"m0"};
    s.errand.ask.value = "m0";
    warns(&s, "divvy: warning: m0 is absent; until it is back, the owner of a is nobody\n");
    s.errand.ask.kind = DV_ASK_MOVE;
    s.after->owners[0] = 1;
    warns(&s, "divvy: warning: m0 is absent; until it is back, the owner of a is m1, and the move is over if it comes "
              "too late\n");
    clear(&s);
}
