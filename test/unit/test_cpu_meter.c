/* The processor time of processes that begin and end. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "divvy/cpu_meter.h"
#include "lib/test.h"

/* ---- the text of the kernel ---- */

static const char line[] =
    "4321 (%s) S 1 4321 4321 0 -1 4194560 1 2 3 4 %s 20 0 1 0 987654 1000 10 18446744073709551615\n";

/* Parses a line with this name and these four times. */
static bool parse(const char *name, const char *times, dv_cpu_process *out) {
    char text[512];
    snprintf(text, sizeof text, line, name, times);
    return dv_cpu_parse(text, out);
}

/* Own time is that of the user and the kernel, as is that of children. The name may be anything. */
TEST(test_parse) {
    static const char *const names[] = {"worker", "",     ")",       "((", "a b", ") S 1 1 1 0 -1 9 9 9 9 9 9 9 9",
                                        "x\ny",   "\xff", "(sd-pam)"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        dv_cpu_process p = {.pid = -1};
        assert_true(parse(names[i], "10 200 3000 40000", &p));
        assert_int_equal(p.pid, 4321);
        assert_int_equal(p.own, 210);
        assert_int_equal(p.children, 43000);
        assert_int_equal(p.started, 987654);
    }
}

/* Whatever is no such text is refused: no time is negative, or more than there can be. */
TEST(test_parse_hostile) {
    static const char *const texts[] = {"",
                                        " ",
                                        "1",
                                        "1 ",
                                        "x (a) S",
                                        "1 a S 1 1 1",
                                        "-1 (a) S 1 1 1 0 -1 0 0 0 0 0 1 1 1 1 20 0 1 0 9",
                                        "0 (a) S 1 1 1 0 -1 0 0 0 0 0 1 1 1 1 20 0 1 0 9",
                                        "1 (a",
                                        "1 (a)",
                                        "1 (a) S 1 1 1",
                                        "99999999999 (a) S 1 1 1 0 -1 0 0 0 0 0 1 1 1 1 20 0 1 0 9",
                                        "1 (a) S 1 1 1 0 -1 0 0 0 0 0 1 1 1 1 20 0 1 0",
                                        "1 (a) S 1 1 1 0 -1 0 0 0 0 0 1 1 1 1 20 0 1 0 x"};
    static const char *const times[] = {"-1 0 0 0",
                                        "0 -1 0 0",
                                        "0 0 -5 0",
                                        "0 0 0 -5",

                                        "a 0 0 0",
                                        "1x 0 0 0",
                                        "18446744073709551615 0 0 0",
                                        "99999999999999999999999 0 0 0",
                                        "0x1 0 0 0"};
    dv_cpu_process p;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_false(dv_cpu_parse(texts[i], &p));
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) assert_false(parse("a", times[i], &p));
}

/* A line that ends anywhere is refused or gives the whole numbers that it has, and is not read beyond its end. */
TEST(test_parse_cut) {
    char text[512];
    int bytes = snprintf(text, sizeof text, line, "a b", "1 2 3 4");
    for (int i = 0; i < bytes; i++) {
        char *cut = strndup(text, (size_t)i);
        dv_cpu_process p;
        if (dv_cpu_parse(cut, &p)) assert_int_equal(p.own + p.children, 10);
        free(cut);
    }
}

/* This process has such a text, too. */
TEST(test_parse_own) {
    char text[1024] = "";
    FILE *file = fopen("/proc/self/stat", "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    dv_cpu_process p;
    assert_true(dv_cpu_parse(text, &p));
    assert_int_equal(p.pid, getpid());
    assert_true(p.started > 0);
}

/* ---- the meter ---- */

static dv_cpu_meter meter;

static int set_up(void **state) {
    (void)state;
    meter = (dv_cpu_meter){0};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_cpu_meter_reset(&meter);
    return 0;
}

#define PROCESS(number, own_ticks, children_ticks) \
    { .pid = (number), .started = 7, .own = (own_ticks), .children = (children_ticks) }

/* One look at the processes that are given. */
#define LOOK(...) \
    look((const dv_cpu_process[]){__VA_ARGS__}, sizeof((dv_cpu_process[]){__VA_ARGS__}) / sizeof(dv_cpu_process))

static uint64_t look(const dv_cpu_process *processes, size_t count) {
    uint64_t ticks = 99;
    assert_int_equal(dv_cpu_meter_look(&meter, processes, count, &ticks), 0);
    return ticks;
}

/* Each look tells what was used since the last one, whatever the order of the processes. */
TEST_IN(test_growth, set_up, tear_down) {
    assert_int_equal(LOOK(PROCESS(10, 0, 0), PROCESS(11, 5, 0)), 5);
    assert_int_equal(LOOK(PROCESS(11, 8, 0), PROCESS(10, 0, 0)), 3);
    assert_int_equal(LOOK(PROCESS(10, 0, 0), PROCESS(11, 8, 0)), 0);
    assert_int_equal(LOOK(PROCESS(10, 0, 0), PROCESS(11, 10, 0), PROCESS(12, 4, 1)), 7);
}

/* A process that has begun and ended between two looks counts, by its parent's time of children. */
TEST_IN(test_short_lived, set_up, tear_down) {
    assert_int_equal(LOOK(PROCESS(10, 0, 0)), 0);
    assert_int_equal(LOOK(PROCESS(10, 0, 25)), 25);
    assert_int_equal(LOOK(PROCESS(10, 2, 25)), 2);
}

/* The time of a child that was seen before it ended is not counted again when its parent has it. */
TEST_IN(test_not_twice, set_up, tear_down) {
    assert_int_equal(LOOK(PROCESS(10, 0, 0), PROCESS(11, 1000, 50)), 1050);
    assert_int_equal(LOOK(PROCESS(10, 0, 1060)), 10);
    assert_int_equal(LOOK(PROCESS(10, 0, 1060)), 0);
}

/* So it is where a whole branch ends, and its orphans come to the root. */
TEST_IN(test_branch, set_up, tear_down) {
    assert_int_equal(LOOK(PROCESS(10, 0, 0), PROCESS(11, 100, 0), PROCESS(12, 30, 5), PROCESS(13, 7, 0)), 142);
    assert_int_equal(LOOK(PROCESS(10, 0, 136), PROCESS(13, 8, 0)), 2);
    assert_int_equal(LOOK(PROCESS(10, 0, 145)), 1);
}

/* The parent was read just before it waited for its child: what the look misses comes with the next one, and no more
 * than that. */
TEST_IN(test_parent_read_before, set_up, tear_down) {
    assert_int_equal(LOOK(PROCESS(10, 0, 0), PROCESS(11, 5000, 0)), 5000);
    assert_int_equal(LOOK(PROCESS(10, 0, 0)), 0);
    assert_int_equal(LOOK(PROCESS(10, 0, 5003)), 3);
    assert_int_equal(LOOK(PROCESS(10, 0, 5010)), 7);
}

/* A process that one look misses, as its parent ended just then, has its time counted once. */
TEST_IN(test_missed, set_up, tear_down) {
    assert_int_equal(LOOK(PROCESS(10, 0, 0), PROCESS(11, 20, 0), PROCESS(12, 5000, 100)), 5120);
    assert_int_equal(LOOK(PROCESS(10, 0, 20)), 0);
    assert_int_equal(LOOK(PROCESS(10, 0, 21), PROCESS(12, 5002, 100)), 3);
    assert_int_equal(LOOK(PROCESS(10, 0, 5130)), 7);
}

/* Nobody waits for a child whose parent ignores SIGCHLD: its time vanishes. What is lost with it is bounded: the look
 * after the next one counts all again. */
TEST_IN(test_time_that_vanishes, set_up, tear_down) {
    assert_int_equal(LOOK(PROCESS(10, 0, 0), PROCESS(11, 1000000, 0)), 1000000);
    assert_int_equal(LOOK(PROCESS(10, 4, 0)), 4);
    assert_int_equal(LOOK(PROCESS(10, 6, 0)), 2);
    assert_int_equal(LOOK(PROCESS(10, 6, 50)), 50);
}

/* A number that another process has got by now is another process. */
TEST_IN(test_number_again, set_up, tear_down) {
    assert_int_equal(LOOK(PROCESS(10, 0, 0), PROCESS(11, 900, 0)), 900);
    assert_int_equal(LOOK(PROCESS(10, 0, 900), {.pid = 11, .started = 8, .own = 3}), 3);
    assert_int_equal(LOOK(PROCESS(10, 0, 900), {.pid = 11, .started = 8, .own = 5}), 2);
}

/* Times that fall, and processes that all vanish, give nothing negative. */
TEST_IN(test_falls, set_up, tear_down) {
    assert_int_equal(LOOK(PROCESS(10, 100, 100)), 200);
    assert_int_equal(LOOK(PROCESS(10, 50, 20)), 0);
    assert_int_equal(look(NULL, 0), 0);
    assert_int_equal(look(NULL, 0), 0);
    dv_cpu_meter_reset(&meter);
    assert_int_equal(LOOK(PROCESS(10, 1, 1)), 2);
}

/* ---- random trees ---- */

enum { NODES = 12, STEPS = 400 };

/* A tree of processes: node 0 is the root, the subreaper. */
typedef struct {
    bool alive;
    int parent;
    dv_cpu_process p;
} node;

static uint32_t seed;

static uint32_t below(uint32_t bound) {
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % bound;
}

/* Ends a node: its parent waits for it, and its children come to the root. */
static void end_node(node *nodes, int i) {
    node *n = &nodes[i], *parent = &nodes[n->parent];
    parent->p.children += n->p.own + n->p.children;
    n->alive = false;
    for (int c = 1; c < NODES; c++) {
        if (nodes[c].alive && nodes[c].parent == i) nodes[c].parent = 0;
    }
}

static void start_node(node *nodes, int i, uint64_t now) {
    int parent = (int)below(NODES);
    if (!nodes[parent].alive) parent = 0;
    nodes[i] = (node){.alive = true, .parent = parent, .p = {.pid = 100 + i, .started = now}};
}

/* Lets all that lives work for a while, and some of it begin or end. Returns the time that was used. */
static uint64_t live(node *nodes, uint64_t now) {
    uint64_t used = 0;
    for (int turn = 0; turn < 6; turn++) {
        int i = 1 + (int)below(NODES - 1);
        uint64_t some = below(50);
        if (nodes[i].alive) nodes[i].p.own += some;
        if (nodes[i].alive) used += some;
        if (!nodes[i].alive) start_node(nodes, i, now * 10 + (uint64_t)turn);
        else if (below(4) == 0) end_node(nodes, i);
    }
    return used;
}

/* Whatever begins and ends, looks at a tree that stands still meanwhile tell each tick once. */
TEST_IN(test_random, set_up, tear_down) {
    for (uint32_t first = 1; first <= 200; first++) {
        seed = first;
        node nodes[NODES] = {{.alive = true, .p = {.pid = 100, .started = 1}}};
        uint64_t now = 1;
        for (int step = 0; step < STEPS; step++) {
            dv_cpu_process seen[NODES];
            size_t count = 0;
            uint64_t used = live(nodes, ++now);
            for (int i = 0; i < NODES; i++) {
                if (nodes[i].alive) seen[count++] = nodes[i].p;
            }
            uint64_t told = look(seen, count);
            if (told != used) print_error("seed %u, step %d\n", first, step);
            assert_int_equal(told, used);
        }
        dv_cpu_meter_reset(&meter);
    }
}

/* ---- cores ---- */

/* Cores are time by time, never more than there are, and 0 where no time has passed. */
TEST(test_cores) {
    assert_true(dv_cpu_cores(500000, 1000000, 8) == 0.5);
    assert_true(dv_cpu_cores(0, 1000000, 8) == 0);
    assert_true(dv_cpu_cores(UINT64_MAX, 1, 8) == 8);
    assert_true(dv_cpu_cores(5, 0, 8) == 0);
    assert_true(dv_cpu_cores(5, -3, 8) == 0);
}
