/* The desk of divvy serve: who waits, and for how long. SPDX-License-Identifier: Apache-2.0
 *
 * The test is the daemon's thread, and says when the desk's thread has an answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/test.h"

#ifdef DIVVY_TEST_DESK

#include <assert.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "divvy/command.h"
#include "divvy/connection.h"
#include "divvy/serve_desk.h"

enum { CONNECTIONS = 100, FRESH_MS = 2000 };

struct MHD_Connection {
    atomic_int suspended;
};

static struct MHD_Connection connections[CONNECTIONS];
static atomic_llong now_ms;
static atomic_int examined; /* so many questions were taken */
static sem_t resumed;
static int gate_fd; /* each number written to it lets so many examinations end */
static int desk_stop_fd;
static dv_serve_desk *desk;

/* ---- what the desk stands on ---- */

void MHD_suspend_connection(struct MHD_Connection *connection) {
    assert(!connection->suspended);
    connection->suspended = 1;
}

void MHD_resume_connection(struct MHD_Connection *connection) {
    assert(connection->suspended);
    connection->suspended = 0;
    sem_post(&resumed);
}

int64_t dv_session_now_ms(void) {
    return now_ms;
}

void dv_command_say(const char *format, ...) {
    fputs(format, stderr);
}

dv_serve_examiner *dv_serve_examiner_new(struct dv_serve *serve, int stop_fd) {
    (void)serve;
    desk_stop_fd = stop_fd;
    return (dv_serve_examiner *)&desk_stop_fd;
}

void dv_serve_examiner_free(dv_serve_examiner *examiner) {
    (void)examiner;
}

/* Waits for the gate, or for the end. */
dv_serve_answer dv_serve_examine(dv_serve_examiner *examiner, const dv_serve_question *question) {
    char *text = NULL;
    uint64_t one;
    struct pollfd fds[] = {{.fd = gate_fd, .events = POLLIN}, {.fd = desk_stop_fd, .events = POLLIN}};
    (void)examiner;
    int number = ++examined;
    poll(fds, 2, -1);
    if (read(gate_fd, &one, sizeof one) < 0) number = -number;
    if (asprintf(&text, "%s %d", question->item ? question->item : "", number) < 0) text = NULL;
    return (dv_serve_answer){200, text, FRESH_MS};
}

void dv_serve_examiner_rest(dv_serve_examiner *examiner, int wake_fd) {
    struct pollfd fds[] = {{.fd = wake_fd, .events = POLLIN}, {.fd = desk_stop_fd, .events = POLLIN}};
    (void)examiner;
    poll(fds, 2, -1);
}

/* ---- asking ---- */

static int set_up(void **state) {
    (void)state;
    memset(connections, 0, sizeof connections);
    now_ms = 1000;
    examined = 0;
    sem_init(&resumed, 0, 0);
    gate_fd = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK);
    desk = dv_serve_desk_start(NULL);
    return desk ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    dv_serve_desk_close(desk);
    dv_serve_desk_free(desk);
    close(gate_fd);
    sem_destroy(&resumed);
    return 0;
}

/* Asks for an item. Returns the answer, to be freed; NULL: the connection waits. */
static char *ask(int connection, const char *item, unsigned status) {
    const dv_serve_question question = {.subject = DV_SERVE_EXPLAIN, .pool = 1, .item = item};
    dv_serve_answer answer;
    if (!dv_serve_desk_ask(desk, &connections[connection], &question, &answer)) {
        assert_true(connections[connection].suspended);
        return NULL;
    }
    assert_int_equal(answer.status, status);
    assert_non_null(answer.text);
    return answer.text;
}

static void assert_waits(int connection, const char *item) {
    assert_null(ask(connection, item, 0));
}

static void assert_told(int connection, const char *item, unsigned status, const char *text) {
    char *told = ask(connection, item, status);
    assert_non_null(told);
    assert_string_equal(told, text);
    free(told);
}

static void open_gate(uint64_t count) {
    assert_int_equal(write(gate_fd, &count, sizeof count), sizeof count);
}

/* Waits until so many connections go on. The desk's thread has its lock while it lets them; then it is done, too. */
static void wait_resumed(int count) {
    for (int i = 0; i < count; i++) sem_wait(&resumed);
    dv_serve_desk_leave(desk, &connections[CONNECTIONS - 1]);
}

/* Waits until the desk has begun with so many questions: from then on they are no longer in the queue. */
static void wait_examined(int count) {
    while (examined < count) usleep(1000);
}

/* ---- answers ---- */

/* Equal questions are one, and all who asked have its answer. It is told at once while it is fresh; then it is asked
 * for again. */
TEST_IN(test_equal, set_up, tear_down) {
    for (int i = 0; i < 10; i++) assert_waits(i, "x");
    open_gate(1);
    wait_resumed(10);
    for (int i = 0; i < 10; i++) assert_told(i, "x", 200, "x 1");
    now_ms += FRESH_MS - 1;
    assert_told(0, "x", 200, "x 1");
    now_ms += 1;
    assert_waits(0, "x");
    open_gate(1);
    wait_resumed(1);
    assert_told(0, "x", 200, "x 2");
    assert_int_equal(examined, 2);
}

/* Who has waited for an answer gets it, also when it is fresh no longer by then. */
TEST_IN(test_late, set_up, tear_down) {
    assert_waits(0, "x");
    open_gate(1);
    wait_resumed(1);
    now_ms += 10 * FRESH_MS;
    assert_waits(1, "x");
    assert_told(0, "x", 200, "x 1");
    open_gate(1);
    wait_resumed(1);
    assert_told(1, "x", 200, "x 2");
}

/* Other items, pools and subjects are other questions. They are answered in the order of asking. */
TEST_IN(test_order, set_up, tear_down) {
    static const char *const items[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++) assert_waits(i, items[i]);
    const dv_serve_question other_pool = {.subject = DV_SERVE_EXPLAIN, .pool = 2, .item = "a"};
    const dv_serve_question changes = {.subject = DV_SERVE_CHANGES, .pool = 1};
    dv_serve_answer answer;
    assert_false(dv_serve_desk_ask(desk, &connections[4], &other_pool, &answer));
    assert_false(dv_serve_desk_ask(desk, &connections[5], &changes, &answer));
    open_gate(6);
    wait_resumed(6);
    assert_told(0, "a", 200, "a 1");
    assert_told(1, "b", 200, "b 2");
    assert_told(3, "d", 200, "d 4");
    assert_true(dv_serve_desk_ask(desk, &connections[4], &other_pool, &answer));
    assert_string_equal(answer.text, "a 5");
    free(answer.text);
}

/* ---- bounds ---- */

/* Where every place has a question that waits, a new question is refused. One that waits already may be asked again. A
 * place is free when its question is answered. */
TEST_IN(test_full, set_up, tear_down) {
    char item[16];
    for (int i = 0; i < DV_SERVE_QUESTIONS_MAX; i++) {
        snprintf(item, sizeof item, "i%d", i);
        assert_waits(i, item);
    }
    assert_told(60, "more", 503, "too many questions wait for an answer\n");
    assert_waits(61, "i7");
    open_gate(1);
    wait_resumed(1);
    assert_waits(60, "more");
    open_gate(DV_SERVE_QUESTIONS_MAX);
    wait_resumed(DV_SERVE_QUESTIONS_MAX + 1);
    assert_told(60, "more", 200, "more 33");
    assert_told(61, "i7", 200, "i7 8");
    assert_told(0, "i0", 200, "i0 1"); /* Its place is another's by now. */
}

/* No more connections wait than there may. */
TEST_IN(test_many, set_up, tear_down) {
    for (int i = 0; i < DV_SERVE_WAITERS_MAX; i++) assert_waits(i, "x");
    assert_told(DV_SERVE_WAITERS_MAX, "x", 503, "too many questions wait for an answer\n");
    open_gate(1);
    wait_resumed(DV_SERVE_WAITERS_MAX);
    for (int i = 0; i < DV_SERVE_WAITERS_MAX; i++) assert_told(i, "x", 200, "x 1");
}

/* Nobody waits for longer than the bound. A question that nobody waits for any longer is not asked. */
TEST_IN(test_patience, set_up, tear_down) {
    assert_waits(0, "x");
    wait_examined(1);
    assert_waits(1, "y");
    now_ms += DV_SERVE_PATIENCE_MS - 1;
    assert_waits(2, "z");
    dv_serve_desk_sweep(desk);
    assert_true(connections[0].suspended);
    now_ms += 1;
    dv_serve_desk_sweep(desk);
    wait_resumed(2);
    assert_true(connections[2].suspended);
    assert_told(0, "x", 503, "the servers have not answered in time\n");
    assert_told(1, "y", 503, "the servers have not answered in time\n");
    open_gate(2);
    wait_resumed(1);
    assert_told(2, "z", 200, "z 2");
    assert_told(3, "x", 200, "x 1"); /* It was answered for nobody, and is told to the next one. */
}

/* A connection that goes gives its place to another. */
TEST_IN(test_leave, set_up, tear_down) {
    assert_waits(0, "x");
    open_gate(1);
    wait_resumed(1);
    dv_serve_desk_leave(desk, &connections[0]);
    dv_serve_desk_leave(desk, &connections[1]); /* It never asked. */
    now_ms += FRESH_MS;
    assert_waits(0, "x");
    open_gate(1);
    wait_resumed(1);
    assert_told(0, "x", 200, "x 2");
}

/* ---- the end ---- */

/* At the end all go on, whatever is under way, and nobody waits from then on. */
TEST_IN(test_close, set_up, tear_down) {
    assert_waits(0, "x");
    wait_examined(1);
    assert_waits(1, "y");
    dv_serve_desk_close(desk);
    wait_resumed(2);
    assert_told(0, "x", 503, "divvy serve ends\n");
    assert_told(1, "y", 503, "divvy serve ends\n");
    assert_told(2, "z", 503, "divvy serve ends\n");
    assert_told(2, "z", 503, "divvy serve ends\n");
}

#else

/* The build has no libmicrohttpd. */
TEST(test_no_desk) {
    skip();
}

#endif
