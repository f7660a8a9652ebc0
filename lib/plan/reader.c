/* The reader of the sticky plan: keeps a memory up to P/plan. SPDX-License-Identifier: Apache-2.0
 *
 * The root is read, then its texts, one after the other. Chunks are requested ahead, and their answers come in the
 * order of asking (znode.h, rule 3). `reading` keeps the parts of a plan until it is whole. */
#include "plan/reader.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "plan/draft.h"
#include "plan/loads.h"
#include "plan/wish.h"
#include "recipe/fetch.h"

enum { RETRY_MS = 1000, AUDIT_INTERVAL_MS = 60000 };

/* The texts of a plan, in their order. Loads and wishes follow the deltas. */
enum { ITEMS, BASE, DELTAS };

/* A root, and as much of its plan as is there. */
typedef struct {
    dv_plan_root root;
    int64_t mzxid;
    int32_t version;
    bool from_memory;  /* `plan` began as a copy of the one in memory */
    dv_plan_set *set;  /* NULL: among the texts */
    dv_plan *plan;     /* NULL: among the texts */
    dv_loads *loads;   /* that the plan will have; its text is read only where `reads_loads` says so */
    dv_wishes *wishes; /* likewise */
    bool reads_loads, reads_wishes;
    size_t text, chunk; /* what the next answer is to */
    dv_plan_text bytes; /* of `text`, so far */
    size_t room;
} plan_reading;

struct dv_plan_reader {
    dv_event stopping;
    divvy_client *client;
    dv_listener listener;
    const char *path;
    dv_plan_memory *memory;
    dv_plan_set *configured;
    const dv_plan_reader_events *events;
    void *owner;

    dv_watch watch;
    dv_timer timer;      /* an audit, or another try after an allocation failed */
    bool wanted;         /* the root has to be read */
    bool asked;          /* by dv_plan_reader_look(): somebody waits to hear of it */
    bool root_requested; /* an exists, or a get, of the root is under way */
    bool resting;        /* an allocation failed: nothing is asked before the timer */
    bool ended;
    unsigned under_way; /* operations, the fetch, and calls that stand in the reader */
    dv_fetch *chunks;   /* of `reading`, or of one that was given up; NULL: all have been answered */

    plan_reading *reading; /* NULL: none */
    int64_t doubted;       /* mzxid of the root that had a missing or a wrong chunk */
    int64_t distrusted;    /* mzxid of the root to which the plan in memory did not lead */
    dv_plan_fault fault;
};

static void read_root(dv_plan_reader *r, int64_t now);

/* ---- the life of a reader ---- */

static void drop_reading(dv_plan_reader *r) {
    plan_reading *reading = r->reading;
    r->reading = NULL;
    if (!reading) return;
    dv_plan_root_clear(&reading->root);
    dv_plan_set_unref(reading->set);
    dv_plan_free(reading->plan);
    dv_loads_unref(reading->loads);
    dv_wishes_unref(reading->wishes);
    free(reading->bytes.bytes);
    free(reading);
}

/* Each piece of work ends here. */
static void leave(dv_plan_reader *r, int64_t now) {
    assert(r->under_way > 0);
    if (--r->under_way > 0 || !r->ended) {
        read_root(r, now);
        return;
    }
    assert(!r->root_requested && !r->chunks);
    dv_unlisten(r->client, &r->listener);
    dv_timer_cancel(&r->timer);
    dv_znode_unwatch(r->client->znode, &r->watch);
    drop_reading(r);
    dv_plan_set_unref(r->configured);
    r->events->gone(r->owner, now);
    free(r);
}

/* Tells the owner that the root was judged: the memory says how. */
static void tell(dv_plan_reader *r, bool changed, int64_t now) {
    drop_reading(r);
    bool asked = r->asked && !r->wanted; /* Else the next read answers the call that asked. */
    if (asked) r->asked = false;
    if (!r->ended && (changed || asked)) r->events->changed(r->owner, now);
}

static void stand(dv_plan_reader *r, dv_plan_standing standing, const dv_stat *stat, int64_t now) {
    int64_t mzxid = stat ? stat->mzxid : 0;
    bool changed = r->memory->standing != standing || r->memory->mzxid != mzxid;
    dv_plan_memory_stand(r->memory, standing, mzxid, stat ? stat->version : 0);
    tell(r, changed, now);
}

static void stand_broken(dv_plan_reader *r, const dv_stat *stat, int64_t now) {
    dv_client_warn(
        r->client, DIVVY_WARN_PLAN,
        "the plan %.200s is broken, since a text of it %s (byte %zu): until a member has written another one "
        "members divide the items as without a plan; if none does, delete it",
        r->path, r->fault.why, r->fault.at);
    stand(r, DV_PLAN_BROKEN, stat, now);
}

static void stand_newer(dv_plan_reader *r, const dv_stat *stat, int64_t now) {
    dv_client_warn(r->client, DIVVY_WARN_PLAN,
                   "a later release of divvy wrote the plan %.200s, which this member cannot follow: update it, or end "
                   "the members of the later release",
                   r->path);
    stand(r, DV_PLAN_NEWER, stat, now);
}

/* Not now: the root is read again, at once or a little later. */
static void put_off(dv_plan_reader *r, int error, int64_t now) {
    assert(!r->root_requested && !r->resting);
    drop_reading(r);
    r->wanted = true;
    if (error != DIVVY_ENOMEM) return;
    r->resting = true;
    dv_timer_set(r->client, &r->timer, now + RETRY_MS);
}

/* ---- a plan, text after text ---- */

static size_t text_count(const plan_reading *reading) {
    return DELTAS + reading->root.delta_count + reading->reads_loads + reading->reads_wishes;
}

static bool is_loads(const plan_reading *reading, size_t text) {
    return reading->reads_loads && text == DELTAS + reading->root.delta_count;
}

static bool is_wishes(const plan_reading *reading, size_t text) {
    return reading->reads_wishes && text + 1 == text_count(reading);
}

static const dv_plan_part *part_of(const plan_reading *reading, size_t text) {
    const dv_plan_root *root = &reading->root;
    if (is_loads(reading, text)) return &root->loads;
    if (is_wishes(reading, text)) return &root->wishes;
    return text == ITEMS ? &root->items : text == BASE ? &root->base : &root->deltas[text - DELTAS].part;
}

static int take_text(dv_plan_reader *r, const char *text, size_t bytes) {
    plan_reading *reading = r->reading;
    if (reading->text == ITEMS) return dv_plan_items_parse(&reading->set, &reading->root, text, bytes, &r->fault);
    if (reading->text == BASE) return dv_plan_from_base(&reading->plan, reading->set, text, bytes, &r->fault);
    if (is_loads(reading, reading->text))
        return dv_loads_parse(&reading->loads, reading->root.set_count, text, bytes, &r->fault);
    if (is_wishes(reading, reading->text)) return dv_wishes_parse(&reading->wishes, text, bytes, &r->fault);
    return dv_plan_apply(reading->plan, text, bytes, &r->fault);
}

/* Returns how many deltas lie behind the plan in memory; SIZE_MAX: the root's do not go by it. */
static size_t deltas_known(const dv_plan_reader *r, const plan_reading *reading) {
    const dv_plan *mine = r->memory->plan;
    const dv_plan_root *root = &reading->root;
    if (!mine || r->distrusted == reading->mzxid || !dv_plan_root_has_set(root, mine->set)) return SIZE_MAX;
    for (size_t d = root->delta_count; d > 0; d--) {
        if (strcmp(root->deltas[d - 1].guid, mine->header.guid) == 0) return d;
    }
    return strcmp(root->base_guid, mine->header.guid) == 0 ? 0 : SIZE_MAX;
}

static dv_plan_set *set_at_hand(const dv_plan_reader *r, const dv_plan_root *root) {
    dv_plan_set *const sets[] = {r->configured, r->memory->plan ? r->memory->plan->set : NULL};
    for (size_t i = 0; i < 2; i++) {
        if (sets[i] && dv_plan_root_has_set(root, sets[i])) return dv_plan_set_ref(sets[i]);
    }
    return NULL;
}

/* D22, D48: loads and wishes are read where they are others than in memory. Where the root has none, an older release
 * wrote it, and those in memory stay. */
static void choose_optional(const dv_plan_reader *r, plan_reading *reading) {
    const dv_plan *mine = r->memory->plan;
    const dv_plan_root *root = &reading->root, *known = &r->memory->root;
    bool same_set = mine && dv_plan_root_has_set(root, mine->set), has_wishes = dv_plan_part_is_there(&root->wishes);
    bool has_loads = dv_plan_part_is_there(&root->loads);
    reading->reads_loads = has_loads && !(same_set && dv_plan_part_equal(&root->loads, &known->loads));
    reading->reads_wishes = has_wishes && !(mine && dv_plan_part_equal(&root->wishes, &known->wishes));
    if (!reading->reads_loads && same_set) reading->loads = dv_loads_ref(mine->loads);
    if (!reading->reads_wishes && mine) reading->wishes = dv_wishes_ref(mine->wishes);
}

/* D22: of the texts only those that lead from what is known to the new plan. */
static int begin_reading(dv_plan_reader *r) {
    plan_reading *reading = r->reading;
    choose_optional(r, reading);
    size_t known = deltas_known(r, reading);
    if (known == SIZE_MAX) {
        reading->set = set_at_hand(r, &reading->root);
        reading->text = reading->set ? BASE : ITEMS;
        return 0;
    }
    reading->from_memory = true;
    reading->text = DELTAS + known;
    reading->plan = dv_plan_copy(r->memory->plan);
    return reading->plan ? 0 : DIVVY_ENOMEM;
}

/* All texts are taken. */
static int complete(dv_plan_reader *r) {
    plan_reading *reading = r->reading;
    assert(reading->text == text_count(reading) && reading->bytes.count == 0);
    int error = dv_plan_complete(reading->plan, &reading->root, &r->fault);
    if (error) return error;
    reading->plan->mzxid = reading->mzxid;
    dv_loads_unref(reading->plan->loads);
    dv_wishes_unref(reading->plan->wishes);
    reading->plan->loads = reading->loads;
    reading->plan->wishes = reading->wishes;
    reading->loads = NULL;
    reading->wishes = NULL;
    dv_plan_memory_take(r->memory, reading->plan, &reading->root, reading->version);
    reading->plan = NULL;
    return 0;
}

/* Takes the texts that are there, in their order. 0, also when one is missing yet, or what a parser says. */
static int take_texts(dv_plan_reader *r) {
    plan_reading *reading = r->reading;
    for (; reading->text < text_count(reading); reading->text++) {
        const dv_plan_part *part = part_of(reading, reading->text);
        assert(reading->chunk <= part->chunk_count && !(part->text && part->chunk_count > 0));
        if (reading->chunk < part->chunk_count) return 0;
        int error = part->text ? take_text(r, part->text, part->bytes)
                               : take_text(r, reading->bytes.bytes, reading->bytes.count);
        if (error) return error;
        free(reading->bytes.bytes);
        reading->bytes = (dv_plan_text){0};
        reading->room = reading->chunk = 0;
    }
    return 0;
}

/* Nothing is allocated before bytes are there, whatever the root claims. */
static bool append(plan_reading *reading, const void *bytes, size_t count) {
    dv_plan_text *to = &reading->bytes;
    if (to->count + count > reading->room) {
        size_t all = part_of(reading, reading->text)->bytes, twice = reading->room * 2;
        size_t room = to->count + count > twice ? to->count + count : twice;
        if (room > all) room = all;
        char *larger = realloc(to->bytes, room);
        if (!larger) return false;
        to->bytes = larger;
        reading->room = room;
    }
    assert(count <= reading->room - to->count);
    memcpy(to->bytes + to->count, bytes, count);
    to->count += count;
    return true;
}

static int take_chunk(void *context, const char *path, const dv_reply *reply, int64_t now);
static void on_chunks_taken(void *context, int error, int64_t now);

static int request_chunks(dv_plan_reader *r) {
    static const dv_fetch_kind kind = {DV_GET, 8, take_chunk, on_chunks_taken};
    const plan_reading *reading = r->reading;
    assert(!r->chunks && reading->chunk == 0);
    const char **names = malloc(dv_plan_root_chunk_count(&reading->root) * sizeof *names);
    if (!names) return DIVVY_ENOMEM;
    size_t count = 0;
    for (size_t t = reading->text; t < text_count(reading); t++) {
        const dv_plan_part *part = part_of(reading, t);
        for (size_t c = 0; c < part->chunk_count; c++) names[count++] = part->chunks[c].name;
    }
    assert(count > 0 && count <= dv_plan_root_chunk_count(&reading->root));
    int error = dv_fetch_start(&r->chunks, r->client, &kind, r->path, names, count, r);
    free((void *)names);
    if (!error) r->under_way++;
    return error;
}

/* Goes as far as it can with what is there. */
static void go_on(dv_plan_reader *r, int error, int64_t now) {
    plan_reading *reading = r->reading;
    assert(!r->ended && !r->root_requested);
    if (!error) error = take_texts(r);
    bool whole = !error && reading->text == text_count(reading);
    if (whole) error = complete(r);
    else if (!error && !r->chunks) error = request_chunks(r);
    if (!error) {
        if (whole) tell(r, true, now);
    } else if (error == DIVVY_ENOMEM) {
        put_off(r, error, now);
    } else if (reading->from_memory) { /* D8: then by the base */
        assert(r->distrusted != reading->mzxid);
        r->distrusted = reading->mzxid;
        put_off(r, error, now);
    } else {
        stand_broken(r, &(dv_stat){.mzxid = reading->mzxid, .version = reading->version}, now);
    }
}

/* D23: a chunk is missing, or another than the root names. If a newer root stands there by now, that is why. */
static void doubt(dv_plan_reader *r, int64_t now) {
    assert(r->doubted != r->reading->mzxid);
    r->fault = (dv_plan_fault){.why = "is not there in all of its chunks", .at = r->reading->bytes.count};
    r->doubted = r->reading->mzxid;
    put_off(r, DIVVY_ENOENT, now);
}

static void add_chunk(dv_plan_reader *r, const dv_reply *reply, int64_t now) {
    plan_reading *reading = r->reading;
    assert(reading->text < text_count(reading));
    const dv_plan_part *part = part_of(reading, reading->text);
    assert(reading->chunk < part->chunk_count);
    const dv_plan_chunk *chunk = &part->chunks[reading->chunk];
    if (reply->error || !dv_plan_chunk_matches(chunk, reply->data, reply->data_bytes)) {
        doubt(r, now);
        return;
    }
    reading->chunk++;
    go_on(r, append(reading, reply->data, reply->data_bytes) ? 0 : DIVVY_ENOMEM, now);
}

static int take_chunk(void *context, const char *path, const dv_reply *reply, int64_t now) {
    (void)path;
    dv_plan_reader *r = context;
    bool wanted = !r->ended && r->reading;
    if (wanted && dv_session_over(reply->error)) drop_reading(r);
    else if (wanted && dv_outcome_unknown(reply->error)) put_off(r, reply->error, now);
    else if (wanted) add_chunk(r, reply, now);
    /* Where its plan was given up, no other is begun before all answers are here. */
    return r->reading && !r->ended ? 0 : DIVVY_ECANCELED;
}

static void on_chunks_taken(void *context, int error, int64_t now) {
    dv_plan_reader *r = context;
    assert(r->chunks && !r->root_requested);
    r->chunks = NULL;
    if (error && r->reading && !r->ended) put_off(r, error, now); /* Not all could be requested. */
    leave(r, now);
}

/* ---- the root ---- */

/* D26: a root of generation 0 says nothing; who remembers a plan goes on with that, as where there is none. */
static bool holds_place_only(const dv_plan_reader *r) {
    const dv_plan *mine = r->memory->plan;
    return r->reading->root.header.generation == 0 && mine && mine->header.generation > 0;
}

static void judge(dv_plan_reader *r, const dv_reply *reply, int64_t now) {
    assert(!r->reading && !r->chunks);
    dv_plan_memory *m = r->memory;
    const dv_stat *stat = reply->stat;
    if (stat->mzxid == m->mzxid || dv_plan_memory_passed(m, stat->mzxid)) { /* D21 */
        bool is_ours = stat->mzxid == m->mzxid && m->standing == DV_PLAN_GOOD;
        tell(r, is_ours && dv_plan_memory_count_nodes(m, stat->children), now);
        return;
    }
    if (r->doubted == stat->mzxid) {
        stand_broken(r, stat, now);
        return;
    }
    plan_reading *reading = calloc(1, sizeof *reading);
    if (!reading) {
        put_off(r, DIVVY_ENOMEM, now);
        return;
    }
    *reading = (plan_reading){.mzxid = stat->mzxid, .version = stat->version};
    int error = dv_plan_root_parse(&reading->root, reply->data, reply->data_bytes, &r->fault);
    r->reading = reading;
    if (!error && holds_place_only(r)) stand(r, DV_PLAN_MISSING, stat, now);
    else if (!error) go_on(r, begin_reading(r), now);
    else if (error == DIVVY_ENOMEM) put_off(r, error, now);
    else if (error == DIVVY_EUNSUPPORTED) stand_newer(r, stat, now);
    else stand_broken(r, stat, now);
}

/* It cannot be read. */
static void give_up(dv_plan_reader *r, int error, int64_t now) {
    assert(!r->ended && !r->root_requested);
    r->ended = true;
    r->events->failed(r->owner, error, now);
}

/* Notes that the root was requested, or could not be. */
static void requested_root(dv_plan_reader *r, int error, int64_t now) {
    assert(!r->root_requested && !r->reading && !r->chunks);
    if (error) {
        put_off(r, error, now);
        return;
    }
    r->root_requested = true;
    r->under_way++;
}

/* Returns whether an answer says something of the root: what it is, or that there is none. */
static bool tells_root(dv_plan_reader *r, int error, int64_t now) {
    assert(r->root_requested && !r->reading);
    r->root_requested = false;
    if (r->ended || dv_session_over(error)) return false;
    if (!error || error == DIVVY_ENOENT) return true;
    if (dv_outcome_unknown(error)) put_off(r, error, now);
    else give_up(r, error, now);
    return false;
}

static void on_exists(void *context, const dv_reply *reply, int64_t now) {
    dv_plan_reader *r = context;
    bool tells = tells_root(r, reply->error, now);
    if (tells && reply->error) stand(r, DV_PLAN_MISSING, NULL, now);
    else if (tells) r->wanted = true; /* The root has just come. */
    leave(r, now);
}

static void on_root(void *context, const dv_reply *reply, int64_t now) {
    dv_plan_reader *r = context;
    bool tells = tells_root(r, reply->error, now);
    if (tells && !reply->error) {
        judge(r, reply, now);
    } else if (tells) { /* Only an exists leaves a watch where there is nothing. */
        requested_root(r, dv_znode_exists(r->client->znode, r->path, &r->watch, on_exists, r), now);
    }
    leave(r, now);
}

static void read_root(dv_plan_reader *r, int64_t now) {
    bool busy = r->root_requested || r->reading || r->chunks || r->resting;
    if (r->ended || !r->wanted || busy || !dv_client_connected(r->client)) return;
    dv_timer_set(r->client, &r->timer, now + AUDIT_INTERVAL_MS);
    r->wanted = false;
    requested_root(r, dv_znode_get(r->client->znode, r->path, &r->watch, on_root, r), now);
}

/* ---- stimuli ---- */

static void request_root(dv_plan_reader *r, int64_t now) {
    r->wanted = true;
    read_root(r, now);
}

static void on_event(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    (void)kind;
    request_root(DV_CONTAINER(watch, dv_plan_reader, watch), now);
}

static void on_timer(dv_timer *timer, int64_t now) {
    dv_plan_reader *r = DV_CONTAINER(timer, dv_plan_reader, timer);
    r->resting = false;
    request_root(r, now);
}

static void hear(dv_listener *listener, dv_session_event event, int64_t now) {
    dv_plan_reader *r = DV_CONTAINER(listener, dv_plan_reader, listener);
    if (event == DV_SESSION_CONNECTED) {
        request_root(r, now); /* A watch may have been missed. */
    } else if (event == DV_SESSION_SUSPENDED) {
        r->wanted = true;
    } else if (event == DV_SESSION_LOST || event == DV_SESSION_CLOSED) {
        r->ended = true;
        r->under_way++;
        leave(r, now);
    }
}

dv_plan_reader *dv_plan_reader_start(divvy_client *client, const char *path, dv_plan_memory *memory,
                                     dv_plan_set *configured, const dv_plan_reader_events *events, void *owner) {
    dv_plan_reader *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (dv_plan_reader){.client = client,
                          .path = path,
                          .memory = memory,
                          .configured = configured ? dv_plan_set_ref(configured) : NULL,
                          .events = events,
                          .owner = owner,
                          .watch.fired = on_event,
                          .timer.fire = on_timer,
                          .listener = {.hear = hear}};
    dv_listen(client, &r->listener);
    request_root(r, dv_client_now(client));
    return r;
}

void dv_plan_reader_look(dv_plan_reader *r, int64_t now) {
    r->asked = true;
    request_root(r, now);
}

static void on_stopping(dv_event *event, int64_t now) {
    leave((dv_plan_reader *)(void *)event, now);
}

void dv_plan_reader_stop(dv_plan_reader *r) {
    if (r->ended) return;
    r->ended = true;
    r->under_way++;
    r->stopping.run = on_stopping;
    dv_client_post(r->client, &r->stopping);
}
