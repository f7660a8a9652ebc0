/* The user of a partitioner: works on the items of its share, stops when it is told to, and prepares for what comes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "member.h"

#include <stdio.h>
#include <string.h>

/* What the user was told of an item. */
typedef enum { TOLD_NOTHING, TOLD_COMING, TOLD_OURS, TOLD_LEAVING } told;

typedef struct {
    chaos_member *m;
    divvy_partitioner *partitioner;
    int64_t session;                /* of the last look */
    unsigned shifts;                /* that were answered */
    chaos_belief work[CHAOS_ITEMS]; /* which goes on for a while on items that are revoked */
    uint64_t release_id;            /* the RELEASE that is being answered */
    int64_t release_at;
    told told[CHAOS_ITEMS];           /* as on_items says */
    int64_t prepared_at[CHAOS_ITEMS]; /* when work on an item that comes can begin; 0: it does not come */
    int state;                        /* as on_state says */
} user;

static const char *const item_names[CHAOS_ITEMS] = {"i0", "i1", "i2", "i3", "i4",  "i5",
                                                    "i6", "i7", "i8", "i9", "i10", "i11"};

static size_t item_of(const char *name) {
    size_t i = 0;
    while (i < CHAOS_ITEMS && strcmp(item_names[i], name) != 0) i++;
    return i;
}

/* ---- what is told: S6, S8 ---- */

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *argument) {
    user *u = argument;
    (void)p;
    if ((int)from != u->state)
        chaos_log("V %lld S8 told %d -> %d in state %d", (long long)chaos_now_ms(), from, to, u->state);
    u->state = (int)to;
    chaos_log("T %lld %d %d", (long long)chaos_now_ms(), from, to);
}

/* Notes that items were told as something, which must fit what was told of them before. */
static void check_told(user *u, const char *const *items, size_t count, const char *what, unsigned before, told to) {
    for (size_t i = 0; i < count; i++) {
        size_t item = item_of(items[i]);
        if (item == CHAOS_ITEMS || !(before & 1u << u->told[item]))
            chaos_log("V %lld S8 %s was told as %s, and as %d before", (long long)chaos_now_ms(), items[i], what,
                      item == CHAOS_ITEMS ? -1 : (int)u->told[item]);
        if (item < CHAOS_ITEMS) u->told[item] = to;
    }
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *argument) {
    enum { NONE = 1u << TOLD_NOTHING, COMING = 1u << TOLD_COMING, OURS = 1u << TOLD_OURS, GOING = 1u << TOLD_LEAVING };
    user *u = argument;
    (void)p;
    check_told(u, event->lost, event->lost_count, "lost", COMING | OURS | GOING, TOLD_NOTHING);
    check_told(u, event->gained, event->gained_count, "gained", NONE | COMING, TOLD_OURS);
    check_told(u, event->revoked, event->revoked_count, "revoked", OURS | GOING, TOLD_OURS);
    check_told(u, event->leaving, event->leaving_count, "leaving", OURS, TOLD_LEAVING);
    check_told(u, event->staying, event->staying_count, "staying", GOING, TOLD_OURS);
    check_told(u, event->prepare, event->prepare_count, "prepare", NONE, TOLD_COMING);
}

/* ---- the partitioner ---- */

static bool begin(user *u) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = CHAOS_ROOT "/pool";
    config.items = item_names;
    config.item_count = CHAOS_ITEMS;
    config.identifier = u->m->name;
    config.mode = u->m->eager ? DIVVY_EAGER : DIVVY_INCREMENTAL;
    config.on_suspend = u->m->eager ? DIVVY_RELEASE_ON_SUSPEND : DIVVY_HOLD;
    config.on_session_loss = u->m->rejoins ? DIVVY_REJOIN : DIVVY_FAIL;
    config.time_boundary_ms = 200;
    config.leave_boundary_ms = 100;
    config.handover_timeout_ms = u->m->preparing == CHAOS_PREPARES_SLOW ? CHAOS_HASTY_MS : CHAOS_HANDOVER_MS;
    config.prepare_timeout_ms = u->m->preparing == CHAOS_UNPREPARED ? 0 : CHAOS_PREPARE_MS;
    config.on_state = on_state;
    config.on_items = on_items;
    config.user = u;
    memset(u->told, 0, sizeof u->told);
    memset(u->prepared_at, 0, sizeof u->prepared_at);
    u->state = DIVVY_ALLOCATING;
    u->release_at = 0;
    return divvy_partitioner_create(&u->partitioner, u->m->client, &config) == 0;
}

/* Ends work on an item; until then we took it for ours, if the session lived. */
static void stop_work(user *u, chaos_belief *work) {
    int64_t asked_ms = chaos_now_ms();
    if (work->last_ms && divvy_client_time_left_ms(u->m->client) > 0 &&
        divvy_client_session_id(u->m->client) == u->session)
        chaos_confirm(work, asked_ms);
    chaos_give_up(work);
}

static void end(user *u, bool finish) {
    for (size_t i = 0; i < CHAOS_ITEMS; i++) {
        if (finish) stop_work(u, &u->work[i]);
        else chaos_lose(&u->work[i]);
    }
    if (finish) divvy_partitioner_finish(u->partitioner, CHAOS_CALL_MS);
    divvy_partitioner_destroy(u->partitioner);
    u->partitioner = NULL;
}

/* ---- work ---- */

typedef struct {
    int64_t token[CHAOS_ITEMS]; /* 0: not in it */
    bool revoked[CHAOS_ITEMS];
} share;

static bool read_share(const user *u, share *out) {
    divvy_partition *snapshot = divvy_partitioner_partition(u->partitioner);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < divvy_partition_count(snapshot); i++) {
        size_t item = item_of(divvy_partition_item(snapshot, i));
        if (item == CHAOS_ITEMS) continue;
        out->token[item] = divvy_partition_token(snapshot, i);
        out->revoked[item] = divvy_partition_revoked(snapshot, i) != 0;
    }
    divvy_partition_unref(snapshot);
    return snapshot != NULL;
}

/* Asks for each item whether we own it, between two looks at the share: what is in both by one token was ours all the
 * time between, and the answers are about that token. */
static void look(user *u) {
    share before, after;
    bool owns[CHAOS_ITEMS];
    int64_t session = divvy_client_session_id(u->m->client), asked_ms = chaos_now_ms();
    if (!read_share(u, &before)) return;
    for (size_t i = 0; i < CHAOS_ITEMS; i++) {
        owns[i] = divvy_partitioner_owns(u->partitioner, item_names[i]) == 1;
        if (owns[i] && before.revoked[i])
            chaos_log("V %lld S8 owns() says yes for %s, which is revoked", (long long)chaos_now_ms(), item_names[i]);
    }
    bool lives = divvy_client_time_left_ms(u->m->client) > 0;
    if (!read_share(u, &after) || divvy_client_session_id(u->m->client) != session) return;
    u->session = session;
    for (size_t i = 0; i < CHAOS_ITEMS; i++) {
        chaos_belief *work = &u->work[i];
        int64_t token = before.token[i] == after.token[i] ? before.token[i] : 0;
        if (work->held && work->token != token) chaos_lose(work);
        bool yes = token && (owns[i] || (work->held && after.revoked[i] && lives));
        if (work->held && yes) chaos_confirm(work, asked_ms);
        else if (work->held) chaos_lose(work);
        else if (yes) chaos_believe(work, session, token, "-");
    }
}

/* Stops work on what is revoked, after a while, and says so. */
static void answer_release(user *u) {
    uint64_t id = divvy_partitioner_state_id(u->partitioner);
    if (divvy_partitioner_state(u->partitioner) != DIVVY_RELEASE) return;
    int64_t now_ms = chaos_now_ms();
    if (u->release_at == 0 || u->release_id != id) {
        u->release_id = id;
        u->release_at = now_ms + chaos_random(CHAOS_RELEASE_MS);
    }
    if (now_ms < u->release_at) return;
    share revoked;
    if (!read_share(u, &revoked)) return;
    for (size_t i = 0; i < CHAOS_ITEMS; i++) {
        if (revoked.revoked[i] && u->work[i].token == revoked.token[i]) stop_work(u, &u->work[i]);
    }
    divvy_partitioner_release_set_id(u->partitioner, id);
    u->release_at = 0;
}

/* ---- handovers ---- */

/* Finds the items to prepare for, and when each new one will be prepared. */
static bool read_coming(user *u) {
    divvy_partition *coming = divvy_partitioner_to_prepare(u->partitioner);
    bool comes[CHAOS_ITEMS] = {false};
    if (!coming) return false;
    for (size_t i = 0; i < divvy_partition_count(coming); i++) {
        size_t item = item_of(divvy_partition_item(coming, i));
        if (item < CHAOS_ITEMS) comes[item] = true;
    }
    divvy_partition_unref(coming);
    int64_t now_ms = chaos_now_ms();
    for (size_t i = 0; i < CHAOS_ITEMS; i++) {
        if (!comes[i]) u->prepared_at[i] = 0;
        else if (u->prepared_at[i] == 0)
            u->prepared_at[i] =
                now_ms + (u->m->preparing == CHAOS_PREPARES_FAST ? chaos_random(CHAOS_FAST_MS)
                                                                 : CHAOS_FAST_MS + chaos_random(CHAOS_PREPARE_MS));
    }
    return true;
}

static void prepare(user *u) {
    if (u->m->preparing == CHAOS_UNPREPARED || !read_coming(u) || u->m->preparing == CHAOS_PREPARES_NEVER) return;
    int64_t now_ms = chaos_now_ms();
    for (size_t i = 0; i < CHAOS_ITEMS; i++) {
        if (u->prepared_at[i] == 0 || u->prepared_at[i] > now_ms) continue;
        divvy_partitioner_prepared(u->partitioner, item_names[i]);
    }
}

/* Wants three times as many items as others, or as many again: for items that move while something else happens. */
static void shift(user *u) {
    enum { MUCH = 3000, USUAL = 1000 };
    unsigned shifts = u->m->shifts;
    if (shifts == u->shifts) return;
    u->shifts = shifts;
    divvy_partitioner_set_weight(u->partitioner, shifts % 2 ? MUCH : USUAL);
}

void *chaos_items_run(void *argument) {
    user u = {.m = argument};
    for (size_t i = 0; i < CHAOS_ITEMS; i++) u.work[i] = (chaos_belief){.kind = "item", .object = item_names[i]};
    while (!u.m->stopping) {
        if (!u.partitioner && !begin(&u)) chaos_sleep_ms(100);
        if (!u.partitioner) continue;
        look(&u);
        answer_release(&u);
        prepare(&u);
        shift(&u);
        if (divvy_partitioner_state(u.partitioner) == DIVVY_FAILURE) end(&u, false);
        chaos_sleep_ms(CHAOS_POLL_MS);
    }
    if (u.partitioner) end(&u, true);
    return NULL;
}
