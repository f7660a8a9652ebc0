/* The desk of divvy serve. SPDX-License-Identifier: Apache-2.0 */
#include "serve_desk.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "command.h"
#include "connection.h"

typedef enum { FREE, QUEUED, UNDER_WAY, ANSWERED } question_state;

/* An answer: the question keeps it while it is fresh, and so does each connection that it is for. */
typedef struct {
    unsigned refs, status;
    char *text;
} answer;

typedef struct {
    question_state state;
    dv_serve_question asked;
    char *item;
    uint64_t number; /* in the order of asking, or of answering */
    answer *answer;
    int64_t fresh_until_ms;
} question;

typedef struct {
    struct MHD_Connection *connection; /* NULL: this place is free */
    const question *question;
    answer *answer; /* NULL when it goes on: there was none in time */
    int64_t since_ms;
    bool suspended;
} waiter;

struct dv_serve_desk {
    dv_serve_examiner *examiner;
    pthread_t thread;
    bool runs;
    int stop_fd, wake_fd;
    pthread_mutex_t lock; /* of all that follows */
    question questions[DV_SERVE_QUESTIONS_MAX];
    waiter waiters[DV_SERVE_WAITERS_MAX];
    uint64_t last_number;
    bool closed;
};

static void make_readable(int fd) {
    uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0) continue;
}

/* ---- answers ---- */

static void drop(answer *a) {
    if (!a || --a->refs > 0) return;
    free(a->text);
    free(a);
}

static bool copy_out(const answer *a, dv_serve_answer *out) {
    *out = (dv_serve_answer){.status = a->status, .text = a->text ? strdup(a->text) : NULL};
    return true;
}

static bool refuse(const char *why, dv_serve_answer *out) {
    *out = (dv_serve_answer){.status = MHD_HTTP_SERVICE_UNAVAILABLE, .text = strdup(why)};
    return true;
}

/* ---- those who wait ---- */

static waiter *find_waiter(dv_serve_desk *desk, const struct MHD_Connection *connection) {
    for (size_t i = 0; i < DV_SERVE_WAITERS_MAX; i++) {
        if (desk->waiters[i].connection == connection) return &desk->waiters[i];
    }
    return NULL;
}

static bool is_awaited(const dv_serve_desk *desk, const question *q) {
    for (size_t i = 0; i < DV_SERVE_WAITERS_MAX; i++) {
        if (desk->waiters[i].connection && desk->waiters[i].suspended && desk->waiters[i].question == q) return true;
    }
    return false;
}

static void let_go_on(waiter *w, answer *with) {
    w->answer = with;
    if (with) with->refs++;
    w->suspended = false;
    MHD_resume_connection(w->connection);
}

static void leave(waiter *w) {
    drop(w->answer);
    *w = (waiter){.connection = NULL};
}

void dv_serve_desk_leave(dv_serve_desk *desk, struct MHD_Connection *connection) {
    pthread_mutex_lock(&desk->lock);
    waiter *w = find_waiter(desk, connection);
    if (w) leave(w);
    pthread_mutex_unlock(&desk->lock);
}

void dv_serve_desk_sweep(dv_serve_desk *desk) {
    int64_t now_ms = dv_session_now_ms();
    pthread_mutex_lock(&desk->lock);
    for (size_t i = 0; i < DV_SERVE_WAITERS_MAX; i++) {
        waiter *w = &desk->waiters[i];
        if (w->connection && w->suspended && now_ms - w->since_ms >= DV_SERVE_PATIENCE_MS) let_go_on(w, NULL);
    }
    pthread_mutex_unlock(&desk->lock);
}

/* ---- questions ---- */

static void forget(question *q) {
    free(q->item);
    drop(q->answer);
    *q = (question){.state = FREE};
}

static bool is_same(const dv_serve_question *a, const dv_serve_question *b) {
    return a->subject == b->subject && a->pool == b->pool && !a->item == !b->item &&
           (!a->item || strcmp(a->item, b->item) == 0);
}

static question *find_question(dv_serve_desk *desk, const dv_serve_question *asked) {
    for (size_t i = 0; i < DV_SERVE_QUESTIONS_MAX; i++) {
        question *q = &desk->questions[i];
        if (q->state != FREE && is_same(&q->asked, asked)) return q;
    }
    return NULL;
}

/* Returns a place that is free, or that of the oldest answer; NULL: all questions are yet to be answered. */
static question *find_place(dv_serve_desk *desk) {
    question *oldest = NULL;
    for (size_t i = 0; i < DV_SERVE_QUESTIONS_MAX; i++) {
        question *q = &desk->questions[i];
        if (q->state == FREE) return q;
        if (q->state == ANSWERED && (!oldest || q->number < oldest->number)) oldest = q;
    }
    if (oldest) forget(oldest);
    return oldest;
}

/* Puts the question at the end of the queue; NULL: there is no room. */
static question *queue_up(dv_serve_desk *desk, const dv_serve_question *asked) {
    question *q = find_question(desk, asked);
    if (q && q->state != ANSWERED) return q;
    if (!q) q = find_place(desk);
    char *item = q && asked->item ? strdup(asked->item) : NULL;
    if (!q || (asked->item && !item)) return NULL;
    forget(q);
    *q = (question){.state = QUEUED, .asked = *asked, .item = item, .number = ++desk->last_number};
    q->asked.item = item;
    make_readable(desk->wake_fd);
    return q;
}

/* Suspends the connection until there is an answer. */
static bool wait_for_answer(dv_serve_desk *desk, struct MHD_Connection *connection, const dv_serve_question *asked) {
    waiter *w = find_waiter(desk, NULL);
    const question *q = w ? queue_up(desk, asked) : NULL;
    if (!q) return false;
    *w = (waiter){.connection = connection, .question = q, .since_ms = dv_session_now_ms(), .suspended = true};
    MHD_suspend_connection(connection);
    return true;
}

static const char late[] = "the servers have not answered in time\n";
static const char ending[] = "divvy serve ends\n";

static bool answer_now(dv_serve_desk *desk, struct MHD_Connection *connection, const dv_serve_question *asked,
                       dv_serve_answer *out) {
    waiter *w = find_waiter(desk, connection);
    if (w) {
        bool told = w->answer ? copy_out(w->answer, out) : refuse(desk->closed ? ending : late, out);
        leave(w);
        return told;
    }
    if (desk->closed) return refuse(ending, out);
    const question *q = find_question(desk, asked);
    if (q && q->state == ANSWERED && dv_session_now_ms() < q->fresh_until_ms) return copy_out(q->answer, out);
    return !wait_for_answer(desk, connection, asked) && refuse("too many questions wait for an answer\n", out);
}

bool dv_serve_desk_ask(dv_serve_desk *desk, struct MHD_Connection *connection, const dv_serve_question *asked,
                       dv_serve_answer *out) {
    pthread_mutex_lock(&desk->lock);
    bool told = answer_now(desk, connection, asked, out);
    pthread_mutex_unlock(&desk->lock);
    return told;
}

/* ---- the thread ---- */

/* Returns the question that has waited longest, or NULL. Those that nobody waits for any longer are dropped. */
static question *take_next(dv_serve_desk *desk) {
    question *next = NULL;
    for (size_t i = 0; i < DV_SERVE_QUESTIONS_MAX; i++) {
        question *q = &desk->questions[i];
        if (q->state == QUEUED && !is_awaited(desk, q)) forget(q);
        if (q->state == QUEUED && (!next || q->number < next->number)) next = q;
    }
    if (next) next->state = UNDER_WAY;
    return next;
}

static void publish(dv_serve_desk *desk, question *q, dv_serve_answer *told) {
    answer *a = calloc(1, sizeof *a);
    if (a) *a = (answer){.refs = 1, .status = told->status, .text = told->text};
    else free(told->text);
    for (size_t i = 0; i < DV_SERVE_WAITERS_MAX; i++) {
        waiter *w = &desk->waiters[i];
        if (w->connection && w->suspended && w->question == q) let_go_on(w, a);
    }
    q->state = ANSWERED;
    q->answer = a;
    q->number = ++desk->last_number;
    q->fresh_until_ms = dv_session_now_ms() + told->fresh_ms;
    if (!a) forget(q);
}

static void *work(void *context) {
    dv_serve_desk *desk = context;
    uint64_t woken;
    pthread_mutex_lock(&desk->lock);
    while (!desk->closed) {
        question *q = take_next(desk);
        pthread_mutex_unlock(&desk->lock);
        /* Under way, it is nobody else's. */
        dv_serve_answer told = q ? dv_serve_examine(desk->examiner, &q->asked) : (dv_serve_answer){.text = NULL};
        if (!q) dv_serve_examiner_rest(desk->examiner, desk->wake_fd);
        if (!q && read(desk->wake_fd, &woken, sizeof woken) < 0) woken = 0; /* It is the other one. */
        pthread_mutex_lock(&desk->lock);
        if (q) publish(desk, q, &told);
    }
    pthread_mutex_unlock(&desk->lock);
    return NULL;
}

/* ---- the whole ---- */

dv_serve_desk *dv_serve_desk_start(struct dv_serve *serve) {
    dv_serve_desk *desk = calloc(1, sizeof *desk);
    if (desk) {
        pthread_mutex_init(&desk->lock, NULL);
        desk->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        desk->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        bool opened = desk->stop_fd >= 0 && desk->wake_fd >= 0;
        desk->examiner = opened ? dv_serve_examiner_new(serve, desk->stop_fd) : NULL;
        desk->runs = desk->examiner && pthread_create(&desk->thread, NULL, work, desk) == 0;
        if (desk->runs) return desk;
    }
    dv_command_say("serve: the thread that answers questions cannot be started");
    dv_serve_desk_free(desk);
    return NULL;
}

void dv_serve_desk_close(dv_serve_desk *desk) {
    pthread_mutex_lock(&desk->lock);
    desk->closed = true;
    make_readable(desk->stop_fd);
    for (size_t i = 0; i < DV_SERVE_WAITERS_MAX; i++) {
        waiter *w = &desk->waiters[i];
        if (w->connection && w->suspended) let_go_on(w, NULL);
    }
    pthread_mutex_unlock(&desk->lock);
}

void dv_serve_desk_free(dv_serve_desk *desk) {
    if (!desk) return;
    if (desk->runs) {
        dv_serve_desk_close(desk);
        pthread_join(desk->thread, NULL);
    }
    for (size_t i = 0; i < DV_SERVE_QUESTIONS_MAX; i++) forget(&desk->questions[i]);
    for (size_t i = 0; i < DV_SERVE_WAITERS_MAX; i++) leave(&desk->waiters[i]);
    dv_serve_examiner_free(desk->examiner);
    if (desk->stop_fd >= 0) close(desk->stop_fd);
    if (desk->wake_fd >= 0) close(desk->wake_fd);
    pthread_mutex_destroy(&desk->lock);
    free(desk);
}
