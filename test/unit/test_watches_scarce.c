/* Tests of znode/apache/watches.c where memory is short. SPDX-License-Identifier: Apache-2.0 */
#include "lib/scarce.h"
#include "lib/test.h"
#include "znode/apache/apache.h"

enum { WATCHES = 4 };

typedef struct {
    dv_watch watch; /* first */
    int fired;
    dv_watch_kind kind;
} waiter;

static dv_apache apache;
static dv_event *posted;
static int posts;
static waiter waiters[WATCHES];

static void post(void *queue, dv_event *event) {
    (void)queue;
    posted = event;
    posts++;
}

static void on_fired(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    (void)now;
    waiter *w = (waiter *)(void *)watch;
    w->fired++;
    w->kind = kind;
}

static int set_up(void **state) {
    (void)state;
    apache = (dv_apache){.znode.sink.post = post};
    apache.watches.stats = &apache.stats;
    posted = NULL;
    posts = 0;
    for (int i = 0; i < WATCHES; i++) waiters[i] = (waiter){.watch.fired = on_fired};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    scarce_after = -1;
    dv_watches_clear(&apache.watches);
    return apache.stats.watches == 0 && apache.stats.watch_path_bytes == 0 ? 0 : -1;
}

static dv_watched *begin(int i, const char *path, bool of_children) {
    dv_watched *watched = dv_watch_begin(&apache.watches, path, of_children, &waiters[i].watch);
    assert_non_null(watched);
    return watched;
}

static void arm(int i, const char *path, bool of_children) {
    dv_watch_end(begin(i, path, of_children), &waiters[i].watch, true);
}

static void lose(const char *path) {
    scarce_after = 0;
    dv_apache_on_watch(NULL, ZOO_DELETED_EVENT, ZOO_CONNECTED_STATE, path, &apache);
    scarce_after = -1;
}

static void run_posted(void) {
    dv_event *event = posted;
    posted = NULL;
    assert_non_null(event);
    event->run(event, 0);
}

/* There is no memory for the path of one that has fired. So all fire, one whose read is under way too: who waits for
 * it would wait for ever. */
TEST(test_all_fire) {
    arm(0, "/a", false);
    arm(1, "/b", true);
    arm(2, "/b", false);
    dv_watched *under_way = begin(3, "/c", false);
    lose("/a");
    lose("/b");
    assert_int_equal(posts, 1);
    run_posted();
    for (int i = 0; i < WATCHES; i++) {
        assert_int_equal(waiters[i].fired, 1);
        assert_int_equal(waiters[i].kind, i == 1 ? DV_WATCH_CHILDREN : DV_WATCH_CHANGED);
        assert_null(waiters[i].watch.link);
    }
    dv_watch_end(under_way, &waiters[3].watch, true);
    assert_int_equal(apache.stats.watches, 0);
    arm(0, "/a", false);
    lose("/a");
    assert_int_equal(posts, 2);
    run_posted();
    assert_int_equal(waiters[0].fired, 2);
    assert_int_equal(waiters[1].fired, 1);
}

/* With memory only the one fires that waits for that node. */
TEST(test_one_fires) {
    arm(0, "/a", false);
    arm(1, "/b", false);
    dv_apache_on_watch(NULL, ZOO_CHANGED_EVENT, ZOO_CONNECTED_STATE, "/a", &apache);
    run_posted();
    assert_int_equal(waiters[0].fired, 1);
    assert_int_equal(waiters[1].fired, 0);
}

TEST_EACH(set_up, tear_down);
