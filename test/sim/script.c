/* The script of a history, drawn from its seed. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "client/clock.h"
#include "sim.h"

/* The frequency of each kind, by profile: mixed, churn, servers, links, replies. */
static const struct {
    const char *name;
    unsigned char weight[SIM_PROFILES];
} kinds[SIM_KINDS] = {
    [SIM_JOIN] = {"join", {24, 50, 24, 24, 26}},
    [SIM_FINISH] = {"finish", {5, 25, 2, 2, 8}},
    [SIM_DESTROY] = {"destroy", {5, 15, 2, 2, 6}},
    [SIM_CLOSE] = {"close", {3, 0, 1, 1, 2}},
    [SIM_CRASH] = {"crash", {5, 0, 3, 3, 2}},
    [SIM_PAUSE_SHORT] = {"pause-short", {6, 0, 3, 6, 2}},
    [SIM_PAUSE_LONG] = {"pause-long", {4, 0, 2, 4, 0}},
    [SIM_LINK_DOWN] = {"link-down", {4, 0, 2, 12, 0}},
    [SIM_LINK_NO_REQUESTS] = {"link-no-requests", {3, 0, 1, 10, 0}},
    [SIM_LINK_NO_REPLIES] = {"link-no-replies", {3, 0, 1, 10, 0}},
    [SIM_LOSE_NOT_APPLIED] = {"lose-not-applied", {5, 0, 1, 3, 16}},
    [SIM_LOSE_APPLIED] = {"lose-applied", {6, 0, 1, 3, 20}},
    [SIM_LOSE_APPLIED_LATE] = {"lose-applied-late", {6, 0, 1, 3, 20}},
    [SIM_EXPIRE] = {"expire", {2, 0, 1, 1, 1}},
    [SIM_PREFER] = {"prefer-server", {4, 0, 8, 4, 4}},
    [SIM_DRIFT] = {"clock-drift", {3, 2, 3, 3, 1}},
    [SIM_SERVER_KILL] = {"server-kill", {2, 0, 6, 0, 0}},
    [SIM_SERVER_PAUSE] = {"server-pause", {2, 0, 6, 0, 0}},
    [SIM_LEADER_KILL] = {"leader-kill", {1, 0, 4, 0, 0}},
    [SIM_LEADER_PAUSE] = {"leader-pause", {1, 0, 10, 0, 0}},
    [SIM_SERVERS_CUT] = {"servers-cut", {2, 0, 7, 0, 0}},
    [SIM_SERVERS_CUT_ONE_WAY] = {"servers-cut-one-way", {2, 0, 7, 0, 0}},
    [SIM_FOLLOWER_CUT] = {"follower-cut", {3, 0, 12, 0, 0}},
    [SIM_HEAL] = {"heal", {3, 0, 6, 4, 0}},
    [SIM_DELETE_PLACE] = {"foreign-delete-place", {2, 0, 0, 1, 1}},
    [SIM_DELETE_MEMBER] = {"foreign-delete-member", {1, 0, 0, 1, 1}},
    [SIM_STRAY] = {"stray", {1, 1, 0, 0, 0}},
    [SIM_SLOW_USER] = {"slow-user", {3, 3, 2, 4, 2}},
    [SIM_PARTY_LOOK] = {"party-look", {3, 0, 3, 3, 3}},
    [SIM_WAIT] = {"waiting-call", {3, 0, 2, 3, 2}},
    [SIM_ACQUIRE_WAIT] = {"acquire", {16, 16, 8, 10, 14}},
    [SIM_RESIZE] = {"resize", {4, 5, 2, 2, 4}},
    [SIM_CLAIMS_LOOK] = {"list-contenders", {3, 2, 2, 2, 2}},
    [SIM_DELETE_CLAIM] = {"foreign-delete-claim", {2, 0, 0, 1, 1}},
    [SIM_DELETE_DIRECTORY] = {"delete-directory", {2, 2, 1, 1, 1}},
    [SIM_SEQUENCE_END] = {"sequence-end", {1, 1, 1, 1, 1}},
    [SIM_SERVICES_LOOK] = {"healthy-services", {14, 14, 10, 10, 12}},
    [SIM_SERVICES_CLAIM] = {"unique-service", {12, 12, 10, 10, 12}},
    [SIM_SERVICES_UNREGISTER] = {"unregister", {6, 10, 3, 4, 8}},
    [SIM_SERVICES_PURGE] = {"purge", {4, 4, 3, 3, 4}},
    [SIM_DELETE_SERVICE] = {"foreign-delete-service", {2, 2, 1, 1, 2}},
    [SIM_WALL_CLOCK] = {"server-wall-clock", {2, 2, 3, 1, 1}},
    [SIM_SET_ITEMS] = {"set-items", {3, 4, 2, 2, 3}},
    [SIM_SET_WEIGHT] = {"set-weight", {4, 5, 2, 2, 4}},
    [SIM_LEAVE] = {"leave", {5, 14, 3, 3, 6}},
    [SIM_DEPLOY] = {"deploy", {3, 4, 2, 2, 2}},
    [SIM_DELETE_PLAN] = {"delete-plan", {2, 1, 1, 1, 2}},
    [SIM_SPOIL_PLAN] = {"spoil-plan", {2, 1, 1, 1, 2}},
    [SIM_RESTORE_PLAN] = {"restore-plan", {1, 1, 1, 1, 1}},
    [SIM_NEWER_PLAN] = {"newer-plan", {1, 0, 1, 1, 1}},
    [SIM_STALL] = {"stall-namesake", {0, 0, 0, 0, 0}},
    [SIM_ASK] = {"operator-asks", {0, 0, 0, 0, 0}},
    [SIM_OLDER_ROOT] = {"older-plan", {0, 0, 0, 0, 0}},
};

const char *sim_kind_name(sim_kind kind) {
    return kinds[kind].name;
}

const char *sim_theme_option(sim_theme theme) {
    static const char *const options[] = {"", " --locks", " --registry", " --plans", " --elections"};
    return options[theme];
}

bool sim_kind_belongs(sim_kind kind, sim_theme theme) {
    if (theme == SIM_OF_PLANS) return kind < SIM_KINDS_OF_POOLS || kind >= SIM_KINDS_OF_SERVICES;
    if (kind >= SIM_KINDS_OF_SERVICES) return false;
    if (theme == SIM_OF_POOLS) return kind < SIM_KINDS_OF_POOLS;
    if (sim_has_claims(theme)) return kind < SIM_KINDS_OF_LOCKS;
    switch (kind) {
    case SIM_FINISH:
    case SIM_DELETE_PLACE:
    case SIM_DELETE_MEMBER:
    case SIM_STRAY:
    case SIM_SLOW_USER:
    case SIM_WAIT: return false;
    default: return kind < SIM_KINDS_OF_POOLS || kind >= SIM_KINDS_OF_LOCKS;
    }
}

static sim_kind draw_kind(sim_random *r, sim_profile profile, sim_theme theme) {
    uint32_t total = 0;
    for (int k = 0; k < SIM_KINDS; k++) total += sim_kind_belongs((sim_kind)k, theme) ? kinds[k].weight[profile] : 0;
    uint32_t at = sim_below(r, total);
    for (int k = 0; k < SIM_KINDS; k++) {
        if (!sim_kind_belongs((sim_kind)k, theme)) continue;
        if (at < kinds[k].weight[profile]) return (sim_kind)k;
        at -= kinds[k].weight[profile];
    }
    return SIM_JOIN;
}

int64_t sim_least_timeout_ms(const sim_script *s, int64_t tick_ms) {
    return dv_clock_least_timeout_ms(tick_ms) + 10 * s->client_delay_max_ms + 20 * s->server_delay_max_ms;
}

static void draw_ensemble(sim_script *s, sim_random *r) {
    s->servers = sim_chance(r, 80) ? 3 : sim_chance(r, 50) ? 1 : 5;
    s->tick_ms = SIM_ONE_OF(r, 200, 500, 1000, 2000, 2000);
    s->sync_limit_ticks = sim_between(r, 3, 10);
    s->client_delay_max_ms = SIM_ONE_OF(r, 0, 1, 1, 1, 5, 20);
    s->server_delay_max_ms = SIM_ONE_OF(r, 0, 1, 1, 1, 5, 20);
    /* From one tick up: servers give what their minSessionTimeout says, and that may be below two ticks. */
    int64_t least_ms = sim_least_timeout_ms(s, s->tick_ms), few_ms = 5 * s->tick_ms, most_ms = 20 * s->tick_ms;
    if (least_ms < s->tick_ms) least_ms = s->tick_ms;
    if (sim_chance(r, 60)) least_ms = few_ms > 2000 ? few_ms : 2000;
    else most_ms = few_ms;
    s->timeout_ms = sim_chance(r, 60) ? least_ms : sim_between(r, least_ms, most_ms);
    s->election_max_ms = SIM_ONE_OF(r, 200, 400, 1000);
}

static void draw_claims(sim_script *s, sim_random *r, sim_kazoo_share kazoo) {
    s->locks = (size_t)SIM_ONE_OF(r, 1, 2, 2, 4);
    s->pools = (size_t)SIM_ONE_OF(r, 0, 1, 1, 2);
    for (size_t i = 0; i < SIM_POOLS_MAX; i++) s->limits[i] = (uint32_t)SIM_ONE_OF(r, 1, 2, 3, 5, 9);
    s->hold_ms = SIM_ONE_OF(r, 1, 30, 200, 1000);
    s->partitioners = sim_chance(r, 20);
    s->sequence_ends = sim_chance(r, 5);
    s->kazoo_claims = !s->sequence_ends && sim_chance(r, kazoo == SIM_KAZOO_OFTEN ? 70 : 15);
    s->kazoo = false;
    s->items = s->items > 6 ? 6 : s->items;
}

static void draw_services(sim_script *s, sim_random *r) {
    s->ttl_ms = SIM_ONE_OF(r, 1500, 3000, 5000, s->timeout_ms);
    s->wall_clocks = sim_chance(r, 30);
    s->kazoo = s->small_budgets = false;
    s->items = 1;
}

static void draw_plans(sim_script *s, sim_random *r, sim_kazoo_share kazoo) {
    s->kazoo = sim_chance(r, kazoo == SIM_KAZOO_OFTEN ? 70 : 10);
    s->lower = sim_chance(r, 25);
    s->statics = sim_chance(r, 50);
    s->weights = sim_chance(r, 35);
    s->zones = sim_chance(r, 20);
    s->deploys = !s->kazoo && !s->lower && sim_chance(r, 50);
    s->spoils = sim_chance(r, 30);
    s->max_moves = sim_chance(r, 30) ? (size_t)sim_between(r, 1, 4) : 0;
    s->round_timeout_ms = SIM_ONE_OF(r, 2000, 5000, 60000);
    s->rejoin_delay_max_ms = s->statics ? SIM_ONE_OF(r, 500, 2000, 10000) : 0;
    s->plan_sizes.chunk_bytes = sim_chance(r, 60) ? (size_t)SIM_ONE_OF(r, 40, 100, 300) : s->plan_sizes.chunk_bytes;
    if (sim_chance(r, 80)) s->plan_sizes.inline_root_bytes = (size_t)SIM_ONE_OF(r, 0, 600, 1200);
}

/* Several live processes of one static identifier, old ones and new, that stall beyond their sessions and come back.
 * From a stream of their own, so that other histories are what they were. */
static void draw_namesakes(sim_script *s) {
    enum { JOIN_PERCENT = 8, STALL_PERCENT = 12 };
    sim_random random = sim_random_of(s->seed, 15), *r = &random;
    if (!sim_chance(r, 15)) return;
    s->namesakes = sim_chance(r, 70) ? 1 : 2;
    s->statics = true;
    if (s->rejoin_delay_max_ms == 0) s->rejoin_delay_max_ms = SIM_ONE_OF(r, 500, 2000, 10000);
    for (size_t i = 3; i < s->count; i++) {
        uint32_t at = sim_below(r, 100);
        if (at < JOIN_PERCENT) s->events[i].kind = SIM_JOIN;
        else if (at < JOIN_PERCENT + STALL_PERCENT && s->profile != SIM_CHURN) s->events[i].kind = SIM_STALL;
    }
}

/* Times in which nothing happens, so that loads are told, items move for them, and may move again. */
static void draw_calm(sim_script *s, sim_random *r) {
    enum { CALMS = 3, LEAST_MS = 140000, MOST_MS = 450000, MORE_ITEMS = 6 };
    if (s->items < MORE_ITEMS) s->items += MORE_ITEMS;
    s->tick_ms = 2000; /* Sessions that are beaten for slowly make long histories short. */
    s->timeout_ms = sim_between(r, 10000, 30000);
    for (int n = 0; n < CALMS; n++) {
        size_t from = (size_t)sim_between(r, 5, (int64_t)s->count - 1);
        int64_t calm_ms = sim_between(r, LEAST_MS, MOST_MS);
        for (size_t i = from; i < s->count; i++) s->events[i].at_ms += calm_ms;
    }
}

/* An operator, and loads, which take minutes to count; likewise. */
static void draw_operated(sim_script *s) {
    enum { OPERATED_PERCENT = 12, ASK_PERCENT = 14, OLDER_PERCENT = 2 };
    sim_random random = sim_random_of(s->seed, 21), *r = &random;
    if (!sim_chance(r, OPERATED_PERCENT)) return;
    s->operated = true;
    s->loads = sim_chance(r, 50);
    s->tags = sim_chance(r, 40);
    s->caps = sim_chance(r, 30);
    s->older = sim_chance(r, 35);
    for (size_t i = 3; i < s->count; i++) {
        uint32_t at = sim_below(r, 100);
        if (at < ASK_PERCENT) s->events[i].kind = SIM_ASK;
        else if (s->older && at < ASK_PERCENT + OLDER_PERCENT) s->events[i].kind = SIM_OLDER_ROOT;
    }
    if (s->loads) draw_calm(s, r);
}

void sim_script_draw(sim_script *s, uint64_t seed, sim_kazoo_share kazoo, sim_theme theme) {
    sim_random random = sim_random_of(seed, 1), *r = &random;
    memset(s, 0, offsetof(sim_script, events));
    s->seed = seed;
    s->theme = theme;
    s->profile = (sim_profile)SIM_ONE_OF(r, SIM_MIXED, SIM_MIXED, SIM_MIXED, SIM_CHURN, SIM_SERVERS, SIM_SERVERS,
                                         SIM_LINKS, SIM_REPLIES, SIM_REPLIES);
    draw_ensemble(s, r);
    /* The hardest trial of the clock: a server that has lost its leader, and sessions that last no longer than its
     * silence. */
    if (s->timeout_ms < 2 * s->tick_ms && sim_chance(r, 50)) s->profile = SIM_SERVERS;
    bool large = sim_chance(r, 2) && (theme == SIM_OF_POOLS || theme == SIM_OF_PLANS);
    s->slots = large ? (size_t)sim_between(r, 8, 15) : (size_t)sim_between(r, 2, 6);
    s->items = large ? (size_t)sim_between(r, 40, 100) : (size_t)sim_between(r, 1, sim_chance(r, 70) ? 6 : 20);
    s->boundary_ms = SIM_ONE_OF(r, 0, 0, 50, 200, 1000);
    s->react_ms = SIM_ONE_OF(r, 0, 50, 500, 500, 3000);
    s->small_budgets = sim_chance(r, 8);
    s->kazoo = sim_chance(r, kazoo == SIM_KAZOO_OFTEN ? 70 : 10);
    s->plan_sizes.inline_root_bytes = DV_PLAN_INLINE_ROOT_BYTES;
    s->plan_sizes.chunk_bytes = DV_PLAN_CHUNK_BYTES;
    s->round_timeout_ms = 60000;
    if (theme == SIM_OF_PLANS) draw_plans(s, r, kazoo);
    if (sim_has_claims(theme)) draw_claims(s, r, kazoo);
    if (theme == SIM_OF_ELECTIONS) {
        s->pools = 0;
        s->small_budgets = false; /* An election's view keeps its room: others could wait for that without end. */
    }
    if (theme == SIM_OF_SERVICES) draw_services(s, r);
    /* Faults are close enough together for one to meet what another has begun, and far enough for pools to settle. */
    if (s->profile == SIM_CHURN) {
        s->boundary_ms = SIM_ONE_OF(r, 200, 1000);
        s->slots = s->slots < 5 ? 5 : s->slots;
    }
    int64_t gap_ms = SIM_ONE_OF(r, 50, s->timeout_ms / 40, s->timeout_ms / 16, s->timeout_ms / 8);
    if (s->profile == SIM_CHURN) gap_ms = s->boundary_ms / 3 + 20;
    s->count = (size_t)(large ? sim_between(r, 60, 120) : sim_between(r, 120, 260));
    if (sim_has_claims(theme) || theme == SIM_OF_SERVICES)
        s->count /= 2; /* Claims and services act of themselves as well. */
    int64_t at_ms = 1;
    for (size_t i = 0; i < s->count; i++) {
        bool first = i < s->slots && i < 3;
        s->events[i] = (sim_event){at_ms, first ? SIM_JOIN : draw_kind(r, s->profile, theme), 0, 0, 0, 0};
        s->events[i].a = (uint32_t)sim_draw(r);
        s->events[i].b = (uint32_t)sim_draw(r);
        s->events[i].c = (uint32_t)sim_draw(r);
        s->events[i].d = (uint32_t)sim_draw(r);
        at_ms += sim_chance(r, 10) ? sim_between(r, 0, 6 * gap_ms) : sim_between(r, 0, 3 * gap_ms / 2);
    }
    if (theme == SIM_OF_PLANS) draw_namesakes(s);
    if (theme == SIM_OF_PLANS) draw_operated(s);
}

void sim_script_print(const sim_script *s) {
    static const char *const profiles[] = {"mixed", "churn", "servers", "links", "replies"};
    printf("seed %llu: profile %s, %u servers, tick %lld ms, timeout %lld ms, sync limit %lld ticks, delays up to %lld "
           "and "
           "%lld ms, %zu slots, %zu items, boundary about %lld ms, releases up to %lld ms%s%s, %zu events\n",
           (unsigned long long)s->seed, profiles[s->profile], s->servers, (long long)s->tick_ms,
           (long long)s->timeout_ms, (long long)s->sync_limit_ticks, (long long)s->client_delay_max_ms,
           (long long)s->server_delay_max_ms, s->slots, s->items, (long long)s->boundary_ms, (long long)s->react_ms,
           s->small_budgets ? ", small budgets" : "", s->kazoo ? ", kazoo members" : "", s->count);
    if (sim_has_claims(s->theme))
        printf("%zu locks, %zu pools of %u and %u, held up to %lld ms%s%s%s\n", s->locks, s->pools, s->limits[0],
               s->limits[1], (long long)s->hold_ms, s->partitioners ? ", partitioners beside" : "",
               s->sequence_ends ? ", sequence numbers end" : "", s->kazoo_claims ? ", kazoo beside" : "");
    if (s->theme == SIM_OF_PLANS)
        printf("plans%s%s%s%s%s%s%s%s%s%s%s%s, %zu moves at a time, rounds up to %lld ms, absences up to %lld ms, "
               "roots up to %zu "
               "bytes, "
               "chunks of %zu\n",
               s->lower ? ", members of lower levels" : "", s->statics ? ", static members" : "",
               s->namesakes ? ", namesakes" : "", s->weights ? ", weights" : "", s->zones ? ", zones" : "",
               s->deploys ? ", deploys" : "", s->spoils ? ", spoilt" : "", s->operated ? ", an operator" : "",
               s->loads ? ", loads" : "", s->tags ? ", tags" : "", s->caps ? ", caps" : "",
               s->older ? ", older members" : "", s->max_moves, (long long)s->round_timeout_ms,
               (long long)s->rejoin_delay_max_ms, s->plan_sizes.inline_root_bytes, s->plan_sizes.chunk_bytes);
    if (s->theme == SIM_OF_SERVICES)
        printf("ttl up to %lld ms%s\n", (long long)s->ttl_ms, s->wall_clocks ? ", wrong clocks of servers" : "");
}
