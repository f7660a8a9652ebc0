/* See fake_znode.h. SPDX-License-Identifier: Apache-2.0 */
#include "fake_znode.h"

#include "wait.h"

#include <string.h>
#include <sys/eventfd.h>

#define TURNS_MAX 10000
#define TEXT_BYTES 65536
#define OP_TEXT_BYTES 1024

typedef struct registration {
    struct registration *next;
    char *path;
    bool of_children, armed;
    dv_watch *watch;
} registration;

struct dv_fake {
    dv_znode znode; /* first */
    divvy_client *client;
    int64_t now;
    bool connected, was_connected, over, beats_held;
    uint64_t connections;
    dv_fake_request *oldest;
    registration *watches;
    char text[TEXT_BYTES];
};

/* An answer, or with no request news of the session. */
typedef struct {
    dv_event event;
    dv_fake *fake;
    dv_fake_request *request;
    int error;
    bool answered; /* by the server */
    const dv_reply *replies;
    dv_session_news news;
} incident;

static dv_fake *of(const dv_znode *znode) {
    return (dv_fake *)(uintptr_t)znode;
}

static void *must(void *memory) {
    if (!memory) dv_test_die("no memory");
    return memory;
}

/* --- watches ---------------------------------------------------------------------------------------------------- */

static void drop_watch(registration **place) {
    registration *gone = *place;
    *place = gone->next;
    gone->watch->link = NULL;
    free(gone->path);
    free(gone);
}

static void unwatch(dv_znode *znode, dv_watch *watch) {
    for (registration **at = &of(znode)->watches; *at;) {
        if ((*at)->watch == watch) drop_watch(at);
        else at = &(*at)->next;
    }
}

static void keep_watch(dv_fake *fake, const dv_op *op, dv_watch *watch) {
    unwatch(&fake->znode, watch);
    watch->link = (dv_watch **)(uintptr_t)fake; /* Only that it is not NULL means something. */
    registration *r = must(calloc(1, sizeof *r));
    *r = (registration){fake->watches, must(strdup(op->path)), op->kind == DV_CHILDREN, false, watch};
    fake->watches = r;
}

static void settle_watch(dv_fake *fake, const dv_fake_request *q, int error) {
    for (registration **at = &fake->watches; q->watch && *at; at = &(*at)->next) {
        if ((*at)->watch != q->watch) continue;
        if (error == 0 || (error == DIVVY_ENOENT && q->ops->kind == DV_EXISTS)) (*at)->armed = true;
        else drop_watch(at);
        return;
    }
}

bool dv_fake_fire(dv_fake *fake, const char *path, dv_watch_kind kind, bool armed) {
    bool fired = false;
    dv_client_lock(fake->client);
    for (registration **at = &fake->watches; fake->connected && *at && !fired;) {
        registration *r = *at;
        bool kind_fits =
            r->of_children ? kind == DV_WATCH_CHILDREN || kind == DV_WATCH_DELETED : kind != DV_WATCH_CHILDREN;
        fired = strcmp(r->path, path) == 0 && kind_fits && (r->armed || !armed);
        if (!fired) {
            at = &r->next;
            continue;
        }
        dv_watch *watch = r->watch;
        drop_watch(at);
        watch->fired(watch, kind, fake->now);
    }
    dv_client_unlock(fake->client);
    dv_fake_run(fake);
    return fired;
}

bool dv_fake_is_watched(const dv_fake *fake, const char *path) {
    for (const registration *r = fake->watches; r; r = r->next) {
        if (strcmp(r->path, path) == 0) return true;
    }
    return false;
}

/* --- requests --------------------------------------------------------------------------------------------------- */

static void complete(dv_fake *fake, dv_fake_request *q, int error, const dv_reply *replies) {
    const dv_reply failed = {.error = error};
    settle_watch(fake, q, error);
    if (q->is_multi) q->multi_done(q->context, error, replies, replies ? q->count : 0, fake->now);
    else q->done(q->context, replies ? replies : &failed, fake->now);
    free(q->ops);
    free(q);
}

static void run_incident(dv_event *event, int64_t now) {
    incident *i = (incident *)(void *)event;
    const dv_fake_request *q = i->request;
    if (i->answered) {
        bool wrote = q->is_multi || q->ops->kind == DV_CREATE || q->ops->kind == DV_DELETE || q->ops->kind == DV_SET;
        dv_answer answer = {q->sent_at, q->connection, wrote, i->error};
        i->fake->znode.on_answer(i->fake->znode.context, &answer, now);
    }
    if (i->request) complete(i->fake, i->request, i->error, i->replies);
    else i->fake->znode.on_session(i->fake->znode.context, &i->news, now);
    free(i);
}

static incident *post(dv_fake *fake, dv_fake_request *q, int error, const dv_reply *replies) {
    incident *i = must(calloc(1, sizeof *i));
    *i = (incident){.event.run = run_incident, .fake = fake, .request = q, .error = error, .replies = replies};
    fake->znode.sink.post(fake->znode.sink.queue, &i->event);
    return i;
}

static dv_fake_request *take_oldest(dv_fake *fake) {
    dv_fake_request *q = fake->oldest;
    if (!q) dv_test_die("fake: nothing is under way");
    fake->oldest = q->next;
    return q;
}

void dv_fake_resume(dv_fake *fake) {
    fake->was_connected = true;
}

void dv_fake_hold_beats(dv_fake *fake, bool held) {
    fake->beats_held = held;
}

static void accept(dv_fake *fake, dv_fake_request *q, const dv_op *ops, size_t count) {
    static const dv_reply beaten = {.error = 0};
    q->ops = must(calloc(count, sizeof *ops));
    q->count = count;
    memcpy(q->ops, ops, count * sizeof *ops);
    q->sent_at = fake->now;
    q->connection = fake->connections;
    if (q->watch) keep_watch(fake, ops, q->watch);
    if (!fake->connected) {
        post(fake, q, fake->over ? DIVVY_ELOST : DIVVY_ECONNECTION, NULL);
        return;
    }
    if (q->is_multi && dv_again_multi_done(q->context) == dv_session_beaten && !fake->beats_held) {
        post(fake, q, 0, &beaten)->answered = true;
        return;
    }
    dv_fake_request **end = &fake->oldest;
    while (*end) end = &(*end)->next;
    *end = q;
}

static int submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    dv_fake_request *q = must(calloc(1, sizeof *q));
    *q = (dv_fake_request){.done = done, .context = context, .watch = watch};
    accept(of(znode), q, op, 1);
    return 0;
}

static int multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context) {
    dv_fake_request *q = must(calloc(1, sizeof *q));
    *q = (dv_fake_request){.multi_done = done, .context = context, .is_multi = true};
    accept(of(znode), q, ops, count);
    return 0;
}

const dv_fake_request *dv_fake_oldest(const dv_fake *fake) {
    return fake->oldest;
}

void dv_fake_answer(dv_fake *fake, const dv_reply *reply) {
    post(fake, take_oldest(fake), reply->error, reply)->answered = !dv_outcome_unknown(reply->error);
    dv_fake_run(fake);
}

void dv_fake_answer_multi(dv_fake *fake, int error, const dv_reply *replies) {
    post(fake, take_oldest(fake), error, replies)->answered = !dv_outcome_unknown(error);
    dv_fake_run(fake);
}

static int op_text(char *out, const dv_op *op, bool watch) {
    static const char *const kinds[] = {"create", "delete", "set", "check", "get", "exists", "children"};
    const char *kind = kinds[op->kind], *guid = strstr(op->path, DV_FAKE_GUID);
    if (op->kind == DV_CREATE && op->mode)
        kind = op->mode == DV_CONTAINER ? "container" : op->mode & DV_SEQUENTIAL ? "sequential" : "ephemeral";
    int before = guid ? (int)(guid - op->path) : (int)strlen(op->path);
    return snprintf(out, OP_TEXT_BYTES, "%s%s %.*s%s%s", kind, watch ? "!" : "", before, op->path, guid ? "#" : "",
                    guid ? guid + strlen(DV_FAKE_GUID) : "");
}

const char *dv_fake_pending(dv_fake *fake) {
    char *at = fake->text;
    *at = '\0';
    for (const dv_fake_request *q = fake->oldest; q; q = q->next) {
        bool brackets = q->is_multi && q->count > 1;
        at += sprintf(at, "%s%s", at == fake->text ? "" : ", ", brackets ? "multi [" : "");
        for (size_t i = 0; i < q->count; i++) {
            if (at > fake->text + TEXT_BYTES - 2 * OP_TEXT_BYTES) return fake->text;
            at += sprintf(at, "%s", i ? "; " : "");
            at += op_text(at, &q->ops[i], q->watch != NULL);
        }
        at += sprintf(at, "%s", brackets ? "]" : "");
    }
    return fake->text;
}

/* --- time and the session --------------------------------------------------------------------------------------- */

void dv_fake_run(dv_fake *fake) {
    for (int turns = 0; dv_loop_run_due(fake->client) > 0; turns++) {
        if (turns == TURNS_MAX) dv_test_die("fake: it never comes to rest; under way: %s", dv_fake_pending(fake));
    }
}

int64_t dv_fake_now(const dv_fake *fake) {
    return fake->now;
}

void dv_fake_advance(dv_fake *fake, int64_t ms) {
    int64_t to = fake->now + ms;
    dv_fake_run(fake);
    for (int64_t at; (at = dv_timers_next_at(&fake->client->timers)) <= to;) {
        if (at > fake->now) fake->now = at;
        dv_fake_run(fake);
    }
    fake->now = to;
    dv_fake_run(fake);
}

void dv_fake_end_latecomers(dv_fake *fake) {
    if (fake->client->latecomer_count) dv_fake_advance(fake, fake->client->config.session_timeout_ms + 60000);
}

void dv_fake_sleep(dv_fake *fake, int64_t ms) {
    fake->now += ms;
}

void dv_fake_session(dv_fake *fake, divvy_session_state state) {
    static const int errors[] = {
        [DIVVY_SUSPENDED] = DIVVY_ECONNECTION, [DIVVY_LOST] = DIVVY_ELOST, [DIVVY_AUTH_FAILED] = DIVVY_EAUTH};
    fake->connected = state == DIVVY_CONNECTED;
    fake->over = state == DIVVY_LOST || state == DIVVY_AUTH_FAILED;
    /* The news first, then what it means for the requests, as the native client has it. */
    post(fake, NULL, 0, NULL)->news = (dv_session_news){.state = state,
                                                        .session_id = DV_FAKE_SESSION,
                                                        .timeout_ms = fake->client->config.session_timeout_ms,
                                                        .created_at = fake->was_connected ? 0 : fake->now};
    fake->connections += fake->connected;
    fake->was_connected = fake->was_connected || fake->connected;
    while (!fake->connected && fake->oldest) post(fake, take_oldest(fake), errors[state], NULL);
    dv_fake_run(fake);
}

static size_t count_timers(const dv_timer *timer) {
    return timer ? 1 + count_timers(timer->child) + count_timers(timer->next) : 0;
}

bool dv_fake_has_timers(const dv_fake *fake) {
    const divvy_client *client = fake->client;
    size_t own = (client->deadline_timer.link != NULL) + (client->beat_timer.link != NULL);
    return count_timers(client->timers.first) > own;
}

bool dv_fake_is_connected(const dv_fake *fake) {
    return fake->connected;
}

static int64_t now_ms(const dv_znode *znode) {
    return of(znode)->now;
}

static int fill_random(dv_znode *znode, void *bytes, size_t count) {
    (void)znode;
    memset(bytes, 0, count);
    return 0;
}

static void fill_stats(const dv_znode *znode, divvy_stats *out) {
    *out = (divvy_stats){.connects = of(znode)->connections};
}

static const char *servers(const dv_znode *znode, int *error) {
    (void)znode;
    *error = 0;
    return "fake";
}

static void abandon(dv_znode *znode, int error, int64_t now) {
    dv_fake *fake = of(znode);
    (void)now;
    fake->connected = false;
    fake->over = true;
    while (fake->watches) drop_watch(&fake->watches);
    while (fake->oldest) complete(fake, take_oldest(fake), error, NULL);
}

static void close_znode(dv_znode *znode) {
    (void)znode;
}

static void free_znode(dv_znode *znode) {
    free(of(znode));
}

/* --- life ------------------------------------------------------------------------------------------------------- */

static int start(dv_znode *znode) {
    (void)znode;
    return 0;
}

static const char *get_chroot(const dv_znode *znode) {
    (void)znode;
    return "";
}

static int new_znode(dv_znode **out, const dv_backend_config *config, const char **reason, void *context) {
    static const dv_znode_backend backend = {
        .submit = submit,
        .multi = multi,
        .unwatch = unwatch,
        .now_ms = now_ms,
        .random = fill_random,
        .stats = fill_stats,
        .servers = servers,
        .start = start,
        .chroot = get_chroot,
        .abandon = abandon,
        .close = close_znode,
        .free = free_znode,
    };
    dv_fake *fake = context;
    (void)reason;
    fake->znode = (dv_znode){.backend = &backend,
                             .sink = config->sink,
                             .on_session = config->on_session,
                             .on_answer = config->on_answer,
                             .on_log = config->on_log,
                             .context = config->context};
    *out = &fake->znode;
    return 0;
}

dv_fake *dv_fake_open(const divvy_client_config *config) {
    static const divvy_client_config defaults = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client_config manual = config ? *config : defaults;
    dv_fake *fake = must(calloc(1, sizeof *fake));
    fake->now = 1000000;
    manual.manual = 1;
    if (!manual.ensemble_tick_ms) manual.ensemble_tick_ms = manual.session_timeout_ms / 2;
    if (divvy_private_client_open(&fake->client, &manual, new_znode, fake) != 0)
        dv_test_die("fake: %s", divvy_client_error(NULL));
    return fake;
}

void dv_fake_close(dv_fake *fake) {
    divvy_client *client = fake->client;
    if (client->state == DIVVY_CONNECTED) dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_client_shut_down(client);
}

divvy_client *dv_fake_client(dv_fake *fake) {
    return fake->client;
}
