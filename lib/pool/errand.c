/* Errand: what an operator asks of a pool, brought into its plan. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D51. A look goes through these steps in the order of the file: the party, its odd members, the
 * plan, the data of nodes, the write. Each look ends by end(), or by again(). */
#include "pool/errand.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "plan/step.h"
#include "znode/path.h"

enum { PAUSE_MS = 100, READS_AT_A_TIME = 200 };

/* ---- life ---- */

static void free_errand(dv_errand *e) {
    assert(!e->reader && !e->writer && !e->fetch);
    dv_roster_free(e->roster);
    dv_plan_memory_clear(&e->memory);
    dv_gathering_clear(&e->party);
    dv_plan_free(e->next);
    free(e->result.key);
    for (size_t i = 0; i < sizeof e->texts / sizeof *e->texts; i++) free(e->texts[i]);
    free(e->path);
    free(e->party_path);
    free(e->plan_path);
    free(e);
}

static void take_up(dv_errand *e) {
    e->under_way++;
}

/* Ends a piece of work. The errand may be gone after it. */
static void put_down(dv_errand *e) {
    divvy_client *client = e->client;
    assert(e->under_way > 0);
    if (--e->under_way > 0 || !e->dropped) return;
    free_errand(e);
    dv_client_unref(client);
}

/* Nothing more is begun, and what is in memory stays as it is. */
static void stop(dv_errand *e) {
    if (e->ended) return;
    e->ended = true;
    dv_unlisten(e->client, &e->listener);
    dv_timer_cancel(&e->timer);
    if (e->reader) dv_plan_reader_stop(e->reader);
    if (e->writer) dv_plan_writer_stop(e->writer);
    if (e->fetch) dv_fetch_stop(e->fetch, DIVVY_ECANCELED);
}

static void note_plans(dv_errand *e) {
    dv_errand_result *r = &e->result;
    r->after = e->next ? e->next : e->memory.plan;
    r->before = r->tried && e->memory.before ? e->memory.before : e->memory.plan;
}

static void end(dv_errand *e, int error, int64_t now) {
    assert(!e->ended);
    stop(e);
    e->result.error = error;
    if (!error) note_plans(e);
    if (!e->dropped) e->done(e->owner, now);
}

/* The end of a look that did not come to the end of the errand. */
static void again(dv_errand *e, int64_t now) {
    e->busy = false;
    dv_timer_set(e->client, &e->timer, now + PAUSE_MS);
}

/* Goes on after an error: what a connection has lost is asked for again. */
static void retry(dv_errand *e, int error, int64_t now) {
    int over = dv_client_end_error(e->client);
    if (over) end(e, over, now);
    else if (dv_outcome_unknown(error) || dv_session_over(error) || error == DIVVY_EQUOTA) again(e, now);
    else end(e, error, now);
}

/* ---- the write ---- */

static void judge(dv_errand *e, int64_t now);

/* The memory has what was written, and keeps it. */
static void on_written(void *owner, dv_plan_outcome outcome, int error, int64_t now) {
    dv_errand *e = owner;
    (void)now;
    e->outcome = outcome;
    e->write_error = error;
    if (outcome == DV_PLAN_WRITTEN && e->reader) dv_plan_reader_stop(e->reader);
}

static void conclude(dv_errand *e, int64_t now) {
    int error = e->write_error;
    if (e->outcome == DV_PLAN_WRITTEN) {
        judge(e, now);
    } else if (e->outcome == DV_PLAN_FAILED && error == DIVVY_EACCES) {
        dv_errand_refuse(e, error, "the plan %s may not be written: %s", e->plan_path, divvy_strerror(error));
        end(e, error, now);
    } else if (e->outcome == DV_PLAN_FAILED) {
        retry(e, error, now);
    } else {
        again(e, now);
    }
}

/* Its garbage is collected, too. */
static void on_writer_gone(void *owner, int64_t now) {
    dv_errand *e = owner;
    e->writer = NULL;
    if (!e->ended) conclude(e, now);
    put_down(e);
}

static void write_plan(dv_errand *e, int64_t now) {
    static const dv_plan_writer_events events = {on_written, on_writer_gone};
    const dv_plan_writer_config config = {.path = e->plan_path,
                                          .party_path = e->party_path,
                                          .memory = &e->memory,
                                          .roster = e->roster,
                                          .events = &e->events};
    assert(!e->writer);
    e->writer = dv_plan_writer_start(e->client, &config, &events, e);
    if (!e->writer) {
        end(e, DIVVY_ENOMEM, now);
        return;
    }
    take_up(e);
    e->result.tried = true;
}

/* Computes the plan that a write would lead to, and writes nothing. */
static void rehearse(dv_errand *e, int64_t now) {
    int result = dv_plan_step(&e->next, e->memory.plan, dv_roster_party(e->roster), &e->events);
    assert(result != DV_PLAN_ASK);
    end(e, result < 0 ? result : 0, now);
}

/* ---- the data of nodes ---- */

static void take_lack(dv_errand *e, int error, int64_t now) {
    if (error == DIVVY_EACCES)
        dv_errand_refuse(e, error, "a member of %s may not be read: %s", e->party_path, divvy_strerror(error));
    retry(e, error, now);
}

static void on_facts(void *context, int error, int64_t now) {
    dv_errand *e = context;
    if (!e->ended) {
        e->has_facts = error == 0;
        if (error == 0) judge(e, now);
        else if (error == DIVVY_ENOENT || error == DIVVY_ECANCELED) again(e, now); /* The party is another by now. */
        else take_lack(e, error, now);
    }
    put_down(e);
}

static int settle(dv_errand *e) {
    size_t count;
    const char **nodes = dv_gathering_pick(&e->party, dv_gathering_follows, &count);
    if (!nodes) return DIVVY_ENOMEM;
    if (!e->roster) e->roster = dv_roster_new(e->client, e->party_path, NULL, NULL);
    int error = e->roster ? dv_roster_settle(e->roster, nodes, count, e->party.pzxid) : DIVVY_ENOMEM;
    free((void *)nodes);
    return error;
}

/* Returns 0, also where nothing has to be read, or DIVVY_ENOMEM. */
static int read_facts(dv_errand *e) {
    int asked = settle(e);
    if (!asked) asked = dv_roster_ask(e->roster, e->memory.plan, DV_ROSTER_ALL, on_facts, e);
    if (asked > 0) take_up(e);
    e->has_facts = asked == 0;
    return asked < 0 ? asked : 0;
}

/* ---- the plan ---- */

/* Returns whether there is a plan to be changed. */
static bool has_plan(dv_errand *e) {
    const dv_plan_memory *m = &e->memory;
    if (m->standing == DV_PLAN_NEWER)
        dv_errand_refuse(e, DIVVY_EUNSUPPORTED,
                         "a later release of divvy wrote the plan of %s; use the divvy of that release", e->path);
    else if (m->standing == DV_PLAN_BROKEN) dv_errand_wait_for(e, "the plan of %s is broken", e->path);
    else if (m->standing != DV_PLAN_GOOD || m->plan->header.generation == 0)
        dv_errand_wait_for(e, "the members of %s have no plan yet", e->path);
    return !e->result.error && !*e->result.waits_for;
}

/* D51: a plan for this party that leaves the items as they are would keep the members from what they have to do. */
static bool members_come_first(dv_errand *e) {
    if (!e->has_facts || !dv_plan_members_return(e->memory.plan, dv_roster_party(e->roster))) return false;
    dv_errand_wait_for(e, "the members of %s have not gone back yet to the items that they were started with", e->path);
    return true;
}

/* The result of a look at all that is known. */
typedef enum {
    FAILS,  /* by an error */
    IS_SO,  /* the plan says it already */
    WAITS,  /* for what may come by itself */
    READS,  /* the data of nodes first */
    WRITES, /* or says what it would write */
} verdict;

static verdict consider(dv_errand *e, int *error, int64_t now) {
    const dv_ask_rule *rule = e->rule;
    dv_errand_result *r = &e->result;
    r->waits_for[0] = '\0';
    *error = has_plan(e) ? rule->find(e) : 0;
    bool found = !*error && !r->error && !*r->waits_for,
         knows = found && (e->has_facts || !(e->ask.facts || rule->needs_facts(e)));
    bool so = knows && rule->is_so(e), settled = found && dv_gathering_settled(&e->party, e->memory.plan, now);
    if (settled && !so && members_come_first(e)) return WAITS;
    if (found && !so && settled && e->has_facts) rule->tell(e);
    if (!*error) *error = r->error;
    if (*error) return FAILS;
    if (so) return IS_SO;
    if (!settled) return WAITS;
    return e->has_facts ? WRITES : READS;
}

static void judge(dv_errand *e, int64_t now) {
    int error;
    assert(e->busy && !e->ended);
    verdict v = consider(e, &error, now);
    if (v == READS) {
        error = read_facts(e);
        if (error) v = FAILS;
        else if (e->has_facts) v = consider(e, &error, now); /* There was nothing to read. */
    }
    switch (v) {
    case FAILS: end(e, error, now); break;
    case IS_SO: end(e, 0, now); break;
    case WAITS: again(e, now); break;
    case READS: break;
    case WRITES:
        if (e->ask.dry_run) rehearse(e, now);
        else write_plan(e, now);
    }
}

static void on_plan(void *owner, int64_t now) {
    dv_errand *e = owner;
    if (e->ended || !e->reads_plan) return;
    e->reads_plan = false;
    judge(e, now);
}

static void on_plan_failed(void *owner, int error, int64_t now) {
    dv_errand *e = owner;
    if (e->ended) return;
    if (error == DIVVY_EACCES)
        dv_errand_refuse(e, error, "the plan %s may not be read: %s", e->plan_path, divvy_strerror(error));
    end(e, error, now);
}

static void on_reader_gone(void *owner, int64_t now) {
    dv_errand *e = owner;
    e->reader = NULL;
    if (!e->ended && e->reads_plan) { /* The session is over. There may be another. */
        e->reads_plan = false;
        retry(e, DIVVY_ELOST, now);
    }
    put_down(e);
}

static void read_plan(dv_errand *e, int64_t now) {
    static const dv_plan_reader_events events = {on_plan, on_plan_failed, on_reader_gone};
    if (!e->reader) {
        e->reader = dv_plan_reader_start(e->client, e->plan_path, &e->memory, NULL, &events, e);
        if (e->reader) take_up(e);
    }
    if (!e->reader) {
        end(e, DIVVY_ENOMEM, now);
        return;
    }
    e->reads_plan = true;
    dv_plan_reader_look(e->reader, now);
}

/* ---- P2: odd members ---- */

static int take_odd(void *owner, const char *path, const dv_reply *reply, int64_t now) {
    dv_errand *e = owner;
    char why[DV_GATHERING_TEXT_BYTES];
    (void)now;
    if (reply->error) return reply->error == DIVVY_ENOENT ? 0 : reply->error;
    if (reply->stat->ephemeral_owner == 0 || e->result.error) return 0; /* Only its name is like a member's. */
    dv_gathering_tell_odd(dv_path_last(path), why, sizeof why);
    dv_errand_refuse(e, DIVVY_ESTATE, "the pool %s %s", e->path, why);
    return 0;
}

static void read_plan_of_members(dv_errand *e, int64_t now) {
    if (dv_gathering_any(&e->party, dv_gathering_follows)) {
        read_plan(e, now);
        return;
    }
    dv_errand_refuse(e, DIVVY_ESTATE, "nobody is in the pool %s: there is nobody who follows a plan", e->path);
    end(e, DIVVY_ESTATE, now);
}

static void on_odd_read(void *owner, int error, int64_t now) {
    dv_errand *e = owner;
    e->fetch = NULL;
    if (!e->ended) {
        if (e->result.error) end(e, e->result.error, now);
        else if (error) take_lack(e, error, now);
        else read_plan_of_members(e, now);
    }
    put_down(e);
}

/* Looks for members that keep the pool from doing what is asked. Of all other nodes the name tells enough. */
static void look_at_odd(dv_errand *e, int64_t now) {
    static const dv_fetch_kind kind = {DV_EXISTS, READS_AT_A_TIME, take_odd, on_odd_read};
    size_t count = 0;
    bool (*is_odd)(const char *node) = e->rule->of_wishes ? dv_gathering_knows_no_wishes : dv_gathering_is_odd;
    const char **odd = dv_gathering_pick(&e->party, is_odd, &count);
    int error = odd ? 0 : DIVVY_ENOMEM;
    if (!error && count > 0) error = dv_fetch_start(&e->fetch, e->client, &kind, e->party_path, odd, count, e);
    free((void *)odd);
    if (error) end(e, error, now);
    else if (count > 0) take_up(e);
    else read_plan_of_members(e, now);
}

/* ---- the party ---- */

static void take_party(dv_errand *e, const dv_reply *reply, int64_t now) {
    if (reply->error == DIVVY_EACCES)
        dv_errand_refuse(e, reply->error, "%s cannot be read: %s", e->party_path, divvy_strerror(reply->error));
    if (reply->error && reply->error != DIVVY_ENOENT) {
        retry(e, reply->error, now);
        return;
    }
    int error = dv_gathering_take(&e->party, reply, now);
    if (!error && e->party.pzxid == 0) {
        error = DIVVY_ENOENT;
        dv_errand_refuse(e, error, "there is no pool at %s: nobody was ever a member there; is the path right?",
                         e->path);
    }
    if (error) end(e, error, now);
    else look_at_odd(e, now);
}

static void on_party(void *context, const dv_reply *reply, int64_t now) {
    dv_errand *e = context;
    if (!e->ended) take_party(e, reply, now);
    put_down(e);
}

static void look(dv_errand *e, int64_t now) {
    if (e->busy || e->ended || !dv_client_connected(e->client)) return;
    e->busy = true;
    e->has_facts = false;
    dv_timer_cancel(&e->timer);
    if (dv_znode_children(e->client->znode, e->party_path, NULL, on_party, e) != 0) end(e, DIVVY_ENOMEM, now);
    else take_up(e);
}

/* ---- stimuli ---- */

static void on_timer(dv_timer *timer, int64_t now) {
    dv_errand *e = DV_CONTAINER(timer, dv_errand, timer);
    int over = dv_client_end_error(e->client);
    if (over) end(e, over, now);
    else look(e, now);
}

static void hear(dv_listener *listener, dv_session_event event, int64_t now) {
    dv_errand *e = DV_CONTAINER(listener, dv_errand, listener);
    int over = dv_client_end_error(e->client);
    if (over) end(e, over, now);
    else if (event == DV_SESSION_CONNECTED) look(e, now);
    else if (event == DV_SESSION_CLOSED) end(e, DIVVY_ECLOSED, now);
}

static bool copy_texts(dv_errand *e, const char *path, const char *root) {
    const char **const texts[] = {&e->ask.name, &e->ask.value, &e->ask.by, &e->ask.why};
    bool complete = true;
    e->path = strdup(path);
    e->party_path = dv_path_join(root, "party");
    e->plan_path = dv_path_join(root, "plan");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        e->texts[i] = strdup(*texts[i] ? *texts[i] : "");
        *texts[i] = e->texts[i];
        complete = complete && e->texts[i];
    }
    return complete && e->path && e->party_path && e->plan_path;
}

dv_errand *dv_errand_start(divvy_client *client, const char *path, const char *root, const dv_ask *ask,
                           dv_errand_done_fn done, void *owner) {
    dv_errand *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    *e = (dv_errand){.client = client, .ask = *ask, .rule = dv_ask_rule_of(ask->kind), .done = done, .owner = owner};
    if (!copy_texts(e, path, root)) {
        free_errand(e);
        return NULL;
    }
    e->listener = (dv_listener){.hear = hear};
    e->timer.fire = on_timer;
    dv_client_ref(client);
    dv_listen(client, &e->listener);
    dv_timer_set(client, &e->timer, dv_client_now(client));
    return e;
}

void dv_errand_drop(dv_errand *e) {
    assert(!e->dropped);
    take_up(e);
    stop(e);
    e->dropped = true;
    put_down(e);
}
