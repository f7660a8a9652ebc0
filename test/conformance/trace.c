/* One trace: a few sessions, their rounds, their ends. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "wait.h"

/* How many rounds a link stays cut at most: a session that is cut off lives on for its timeout only. */
enum { CUT_ROUNDS_MAX = 8 };

size_t trace_operations, trace_sessions;

typedef struct {
    world *worlds;
    script script;
    session_plan plans[SEATS];
    int seats;
    int cut;      /* the seat whose link is down, or -1 */
    bool expired; /* and whose session is over */
    int cut_rounds;
    unsigned numbers;
    bool verbose;
} trace;

/* ---- sessions ---- */

static void marker_path(char path[PATH_BYTES], const trace *t, int seat_number) {
    snprintf(path, PATH_BYTES, "/marks%s-%d", t->script.root + 1, seat_number);
}

static int do_quietly(seat *s, dv_op op) {
    command c = {.count = 1, .watch = -1};
    c.ops[0] = op;
    session_run(s, &c);
    return s->last_error;
}

/* Behind all that has been committed, on all sessions but those that are named. */
static void send_barriers(const trace *t, world *w, int but) {
    for (int i = 0; i < t->seats; i++)
        if (i != but && i != t->cut && w->seats[i].client) session_barrier_send(&w->seats[i]);
}

static void settle_all(const trace *t, world *w) {
    for (int i = 0; i < t->seats; i++)
        if (i != t->cut && w->seats[i].client) world_await(&w->seats[i], is_settled, "an answer");
}

/* Makes a node that goes with the session, for the end of it to be seen by. All others learn of it: it is a child of
 * "/", which they may read. */
static void mark_session(const trace *t, int seat_number) {
    char path[PATH_BYTES];
    marker_path(path, t, seat_number);
    for (int w = 0; w < WORLDS; w++) {
        int error = do_quietly(&t->worlds[w].seats[seat_number],
                               (dv_op){.kind = DV_CREATE, .path = path, .mode = DV_EPHEMERAL});
        if (error && !t->worlds[w].surprise[0])
            dv_test_die("conformance: %s cannot be made: %s", path, divvy_strerror(error));
        send_barriers(t, &t->worlds[w], seat_number);
        settle_all(t, &t->worlds[w]);
    }
}

static session_plan plan_session(trace *t) {
    static const char *const credentials[] = {"anna:secret", "bert:secret"};
    script *s = &t->script;
    session_plan plan = {.server = (int)script_between(s, 0, t->worlds[0].servers - 1),
                         .mortal = script_chance(s, 50),
                         .acl = DIVVY_ACL_OPEN};
    if (script_chance(s, 35)) {
        plan.auth = credentials[script_between(s, 0, 1)];
        plan.acl = script_chance(s, 40)   ? DIVVY_ACL_CREATOR
                   : script_chance(s, 50) ? DIVVY_ACL_READABLE
                                          : DIVVY_ACL_OPEN;
    }
    return plan;
}

static void open_session(trace *t, int seat_number) {
    t->plans[seat_number] = plan_session(t);
    t->script.watch_next[seat_number] = 0;
    for (int w = 0; w < WORLDS; w++) {
        seat *s = &t->worlds[w].seats[seat_number];
        t->worlds[w].calls->open(s, &t->plans[seat_number]);
        session_listen(s);
        world_await(s, is_connected, "a connection");
    }
    mark_session(t, seat_number);
    trace_sessions++;
}

/* Until the session's end has been committed, and every other session has heard of all that it meant. */
static void await_end(const trace *t, int seat_number) {
    char path[PATH_BYTES];
    marker_path(path, t, seat_number);
    for (int i = 0; i < WORLDS; i++) {
        world *w = &t->worlds[i];
        seat *control = &w->seats[CONTROL];
        int64_t deadline = dv_test_now_ms() + 60000;
        do {
            session_barrier_send(control);
            if (dv_test_now_ms() > deadline) dv_test_die("conformance: %s does not go", path);
        } while (do_quietly(control, (dv_op){.kind = DV_EXISTS, .path = path}) != DIVVY_ENOENT);
        send_barriers(t, w, -1);
        settle_all(t, w);
    }
}

/* ---- rounds ---- */

static bool compare_all(const trace *t, bool sorted) {
    bool same = true;
    for (int i = 0; i < t->seats; i++) same = compare_logs(t->worlds, i, sorted) && same;
    return same;
}

static void tell(const trace *t, int seat_number, const char *what) {
    if (t->verbose) printf("session %d: %s\n", seat_number, what);
}

static int some_seat(trace *t) {
    int at;
    do at = (int)script_between(&t->script, 0, t->seats - 1);
    while (at == t->cut);
    return at;
}

/* A few commands sent by one session without waiting. */
static bool round_of_one(trace *t) {
    command commands[BATCH_MAX];
    int seat_number = some_seat(t);
    int64_t count = script_between(&t->script, 1, script_chance(&t->script, 12) ? BATCH_MAX : BATCH_MAX / 3);
    bool takes_back = script_chance(&t->script, 5);
    int64_t taken_back = script_between(&t->script, 0, WATCHES - 1);
    for (int64_t i = 0; i < count; i++) {
        script_command(&t->script, seat_number, &commands[i], false);
        commands[i].number = ++t->numbers;
    }
    for (int w = 0; w < WORLDS; w++) {
        struct world *in = &t->worlds[w];
        seat *s = &in->seats[seat_number];
        if (takes_back) {
            dv_client_lock(s->client);
            dv_znode_unwatch(s->client->znode, &s->watches[taken_back].watch);
            dv_client_unlock(s->client);
        }
        for (int64_t i = 0; i < count; i++) session_submit(s, &commands[i]);
        world_await(s, is_settled, "an answer");
        send_barriers(t, in, seat_number);
        settle_all(t, in);
    }
    trace_operations += (size_t)count;
    if (t->verbose) {
        printf("session %d: a round of %d\n", seat_number, (int)count);
        const told_list *log = &t->worlds[0].seats[seat_number].log;
        for (size_t i = 0; i < log->count; i++) printf("    %s\n", log->items[i].text);
    }
    return compare_all(t, false);
}

/* Reads from all sessions at once, while nothing is written. */
static bool round_of_reads(trace *t) {
    command commands[SEATS][2];
    for (int i = 0; i < t->seats; i++) {
        for (int c = 0; c < 2; c++) {
            script_command(&t->script, i, &commands[i][c], true);
            commands[i][c].number = ++t->numbers;
        }
    }
    for (int w = 0; w < WORLDS; w++) {
        for (int i = 0; i < t->seats; i++)
            for (int c = 0; i != t->cut && c < 2; c++) session_submit(&t->worlds[w].seats[i], &commands[i][c]);
        settle_all(t, &t->worlds[w]);
    }
    trace_operations += 2 * (size_t)(t->seats - (t->cut >= 0));
    return compare_all(t, false);
}

static void drop_session(trace *t, int seat_number) {
    for (int w = 0; w < WORLDS; w++) {
        seat *s = &t->worlds[w].seats[seat_number];
        session_close(s);
        s->world->calls->leave(s);
    }
}

static bool round_of_close(trace *t) {
    int seat_number = some_seat(t);
    tell(t, seat_number, "closes");
    drop_session(t, seat_number);
    await_end(t, seat_number);
    coverage_note("session closed", 0);
    if (!compare_all(t, true)) return false;
    open_session(t, seat_number);
    return compare_all(t, false);
}

static bool is_suspended(const seat *s) {
    return s->client->state == DIVVY_SUSPENDED;
}

static bool round_of_cut(trace *t) {
    int seat_number = some_seat(t);
    if (t->cut >= 0 || !t->plans[seat_number].mortal || t->seats < 2) return true;
    tell(t, seat_number, "is cut off");
    for (int w = 0; w < WORLDS; w++) {
        seat *s = &t->worlds[w].seats[seat_number];
        s->cut = true;
        s->world->calls->cut(s);
        world_await(s, is_suspended, "the end of its connection");
    }
    t->cut = seat_number;
    t->cut_rounds = 0;
    t->expired = false;
    return true;
}

static bool round_of_expiry(trace *t) {
    if (t->cut < 0 || t->expired) return true;
    tell(t, t->cut, "expires");
    for (int w = 0; w < WORLDS; w++) {
        seat *s = &t->worlds[w].seats[t->cut];
        s->doomed = true;
        if (!s->world->calls->expire(s)) world_surprise(s, "was gone before it was to expire");
    }
    await_end(t, t->cut);
    t->expired = true;
    coverage_note("session expired", 0);
    return compare_all(t, true);
}

static void come_back(seat *s, int server) {
    s->cut = false;
    s->world->calls->restore(s, server);
    world_await(s, is_connected, "a connection");
}

static bool round_of_return(trace *t) {
    int seat_number = t->cut;
    if (seat_number < 0) return true;
    tell(t, seat_number, "comes back");
    int server = (int)script_between(&t->script, 0, t->worlds[0].servers - 1);
    t->cut = -1;
    for (int w = 0; w < WORLDS; w++) {
        seat *s = &t->worlds[w].seats[seat_number];
        come_back(s, server);
        session_barrier_send(s);
        world_await(s, is_settled, "an answer");
    }
    coverage_note("session came back", 0);
    bool same = compare_all(t, true);
    if (same && t->expired) mark_session(t, seat_number);
    if (t->expired) trace_sessions++;
    return same;
}

static bool play_round(trace *t) {
    int64_t what = script_between(&t->script, 0, 999);
    if (t->cut >= 0 && what < 120) return round_of_expiry(t);
    if (t->cut >= 0 && (what < 400 || ++t->cut_rounds >= CUT_ROUNDS_MAX)) return round_of_return(t);
    if (what < 12) return round_of_close(t);
    if (what < 30) return round_of_cut(t);
    if (what < 80) return round_of_reads(t);
    return round_of_one(t);
}

/* ---- the whole ---- */

static void open_control(world *w, const trace *t) {
    static const session_plan plan = {.acl = DIVVY_ACL_OPEN};
    seat *control = &w->seats[CONTROL];
    if (!control->client) {
        w->calls->open(control, &plan);
        session_listen(control);
        world_await(control, is_connected, "a connection");
    }
    told_list_clear(&control->log);
    do_quietly(control, (dv_op){.kind = DV_CREATE, .path = t->script.root});
    if (control->last_error && !w->surprise[0])
        dv_test_die("conformance: %s: %s", t->script.root, divvy_strerror(control->last_error));
}

/* Returns whether everything that befell the first world's sessions was ordered by the script. A session may be over
 * and not know it, so each has to answer before. */
static bool premise_holds(trace *t) {
    world *w = &t->worlds[0];
    seat *away = t->cut >= 0 ? &w->seats[t->cut] : NULL;
    if (away && !away->doomed) {
        come_back(away, t->plans[t->cut].server);
        t->cut = -1;
    }
    send_barriers(t, w, -1);
    settle_all(t, w);
    return !w->surprise[0];
}

/* Plays the rounds. Returns whether both worlds have said the same. */
static bool play_rounds(trace *t, const trace_plan *plan) {
    bool same = compare_all(t, false);
    for (unsigned i = 0; same && i < plan->rounds; i++) {
        if (plan->stall_ms && i == plan->rounds / 2) dv_test_sleep_ms(plan->stall_ms);
        same = play_round(t);
        script_free_round(&t->script);
        for (int w = 0; w < WORLDS; w++) divvy_client_process(t->worlds[w].seats[CONTROL].client, 0);
    }
    return same && round_of_return(t);
}

/* Ends all sessions, one after the other. Returns whether both worlds have said the same of that. */
static bool drop_all(trace *t, bool same) {
    t->cut = -1;
    for (int i = 0; i < t->seats; i++) {
        drop_session(t, i);
        if (same) await_end(t, i);
        if (same) same = compare_all(t, true);
        for (int w = 0; w < WORLDS; w++) told_list_clear(&t->worlds[w].seats[i].log);
    }
    return same;
}

trace_end trace_run(world worlds[WORLDS], uint64_t seed, const trace_plan *plan) {
    trace t = {.worlds = worlds, .cut = -1, .verbose = plan->verbose};
    worlds[0].surprise[0] = '\0';
    script_begin(&t.script, seed);
    script_learning = &t.script;
    for (int w = 0; w < WORLDS; w++) open_control(&worlds[w], &t);
    t.seats = (int)script_between(&t.script, 2, SEATS);
    for (int i = 0; i < t.seats; i++) open_session(&t, i);
    bool same = play_rounds(&t, plan);
    bool premise = same || premise_holds(&t);
    same = drop_all(&t, same);
    script_learning = NULL;
    if (same) return TRACE_SAME;
    return premise && !worlds[0].surprise[0] ? TRACE_DIFFERS : TRACE_VOID;
}
