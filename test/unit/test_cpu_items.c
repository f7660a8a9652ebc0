/* The processor time of the commands of items, with processes that burn it. SPDX-License-Identifier: Apache-2.0
 *
 * This process stands in for divvy, and a child of it, a subreaper, for a guardian. What burns time goes by its own
 * clock of processor time, so that a busy machine only makes the test longer. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "divvy/cpu_items.h"
#include "divvy/descendants.h"
#include "lib/test.h"

/* The kernel rounds each process's two times down to ticks of 10 ms. */
enum { TICK_MS = 10, PROCESSES = 4, SLACK_MS = 2 * TICK_MS * PROCESSES };

static dv_cpu_items items;
static pid_t guardian;
static int orders[2], answers[2]; /* pipes: to the guardian, and from it */

/* ---- the guardian and its command ---- */

static int64_t used_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void burn(int64_t ms) {
    for (int64_t until = used_ms() + ms; used_ms() < until;) continue;
}

static void answer(void) {
    if (write(answers[1], "", 1) != 1) _exit(1);
}

/* Burns 200 ms in a child that it waits for, 100 ms itself, and 100 ms in a grandchild whose parent has gone. */
static void work(void) {
    pid_t child = fork();
    if (child == 0) {
        burn(200);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    burn(100);
    child = fork();
    if (child == 0 && fork() > 0) _exit(0);
    if (child == 0) {
        burn(100);
        answer();
        for (;;) pause();
    }
    waitpid(child, NULL, 0);
}

static _Noreturn void be_guardian(void) {
    char order;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    burn(100); /* What a guardian needs itself is no load of the item. */
    pid_t command = fork();
    if (command > 0) {
        for (;;) waitpid(-1, NULL, 0);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(orders[0], &order, 1) == 1) work();
    _exit(0);
}

static void have_it_work(void) {
    char byte;
    assert_int_equal(write(orders[1], "", 1), 1);
    assert_int_equal(read(answers[0], &byte, 1), 1);
}

static void event(dv_child_kind kind, uint64_t cpu_us, int64_t now_us) {
    dv_child_event e = {.kind = kind, .item = "a", .guardian = guardian, .cpu_us = cpu_us};
    assert_int_equal(dv_cpu_items_take(&items, &e, now_us), 0);
}

static int set_up(void **state) {
    (void)state;
    items = (dv_cpu_items){0};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (pipe(orders) || pipe(answers)) return -1;
    guardian = fork();
    if (guardian == 0) be_guardian();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    static const dv_descent everything = {.ours_only = false};
    while (!dv_descendants_are_gone(&everything)) dv_descendants_signal(&everything, SIGKILL);
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    for (int i = 0; i < 2; i++) close(orders[i]);
    for (int i = 0; i < 2; i++) close(answers[i]);
    dv_cpu_items_close(&items);
    return 0;
}

/* ---- what is claimed ---- */

static void assert_used_ms(int64_t expected_ms) {
    int64_t ms = (int64_t)items.all[0]->used_us / 1000;
    assert_in_range(ms, expected_ms > SLACK_MS ? expected_ms - SLACK_MS : 0, expected_ms + SLACK_MS);
}

/* A command's time is that of all its processes: those that were waited for, those that live, and orphans. None is
 * counted twice, and the guardian's own is not the command's. */
TEST(test_processes) {
    event(DV_CHILD_STARTED, 0, 0);
    assert_int_equal(dv_cpu_items_look(&items), 0);
    have_it_work();
    assert_int_equal(dv_cpu_items_look(&items), 0);
    assert_used_ms(400);
    assert_int_equal(dv_cpu_items_look(&items), 0);
    assert_used_ms(400);
    have_it_work();
    assert_int_equal(dv_cpu_items_look(&items), 0);
    assert_used_ms(800);
}

/* A command that has ended tells its whole time, and what looks had not seen of that counts. So it does where nobody
 * looked in between. */
TEST(test_end) {
    event(DV_CHILD_STARTED, 0, 0);
    have_it_work();
    assert_int_equal(dv_cpu_items_look(&items), 0);
    uint64_t seen_us = items.all[0]->used_us;
    event(DV_CHILD_EXITED, seen_us + 70000, 0);
    assert_int_equal(items.all[0]->used_us, seen_us + 70000);
    event(DV_CHILD_STARTED, 0, 0);
    event(DV_CHILD_EXITED, 30000, 0);
    event(DV_CHILD_FAILED, 0, 0);
    assert_int_equal(items.all[0]->used_us, seen_us + 100000);
    assert_int_equal(dv_cpu_items_look(&items), 0);
    assert_int_equal(items.all[0]->used_us, seen_us + 100000);
}

/* A reading is time by time since the last one, and begins the next. One that would come too early waits. */
TEST(test_reading) {
    event(DV_CHILD_STARTED, 0, 5000000);
    event(DV_CHILD_EXITED, 600000, 5500000);
    assert_true(dv_cpu_items_read(&items, items.all[0], 5999999, 1000000) == -1);
    assert_true(dv_cpu_items_read(&items, items.all[0], 6200000, 1000000) == 0.5);
    assert_true(dv_cpu_items_read(&items, items.all[0], 7200000, 1000000) == 0);
}

/* What a command that stands by has used to get ready is no load. */
TEST(test_standby) {
    event(DV_CHILD_STANDBY, 0, 0);
    have_it_work();
    assert_int_equal(dv_cpu_items_look(&items), 0);
    event(DV_CHILD_BEGUN, 0, 1000000);
    assert_int_equal(items.all[0]->used_us, 0);
    assert_true(dv_cpu_items_read(&items, items.all[0], 2000000, 1000000) == 0);
}

static bool keep(const char *item, void *user) {
    (void)user;
    return strcmp(item, "b") == 0;
}

/* Items are forgotten that nobody keeps and that have no command. */
TEST(test_forget) {
    static const char *const names[] = {"c", "a", "b", "d"};
    for (size_t i = 0; i < 4; i++) {
        dv_child_event e = {.kind = DV_CHILD_STARTED, .item = names[i], .guardian = guardian};
        assert_int_equal(dv_cpu_items_take(&items, &e, 0), 0);
        e.kind = DV_CHILD_ENDED;
        if (i != 3) assert_int_equal(dv_cpu_items_take(&items, &e, 0), 0);
    }
    assert_int_equal(items.count, 4);
    assert_string_equal(items.all[0]->item, "a");
    dv_cpu_items_forget(&items, keep, NULL);
    assert_int_equal(items.count, 2);
    assert_string_equal(items.all[0]->item, "b");
    assert_string_equal(items.all[1]->item, "d");
}

TEST_EACH(set_up, tear_down);
