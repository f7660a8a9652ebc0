/* Faults of the links between members and servers. SPDX-License-Identifier: Apache-2.0 */
#include "chaos.h"

/* Does the same to all links of a member. */
#define FOR_LINKS(c, member, link)                                                                                    \
    for (dv_test_proxy **link = (c)->members[member].proxies, **link##_end = link + CHAOS_SERVERS; link < link##_end; \
         link++)

static void restore(chaos *c, chaos_fault *fault) {
    FOR_LINKS(c, fault->target, link) dv_test_proxy_restore(*link);
}

static void begin_cut(chaos *c, chaos_fault *fault) {
    fault->target = chaos_random(c, CHAOS_MEMBERS);
    FOR_LINKS(c, fault->target, link) dv_test_proxy_cut(*link);
}

static void begin_freeze(chaos *c, chaos_fault *fault) {
    fault->target = chaos_random(c, CHAOS_MEMBERS);
    FOR_LINKS(c, fault->target, link) dv_test_proxy_freeze(*link);
}

static void begin_replies_lost(chaos *c, chaos_fault *fault) {
    fault->target = chaos_random(c, CHAOS_MEMBERS);
    FOR_LINKS(c, fault->target, link) dv_test_proxy_drop_replies(*link, true);
}

static void begin_requests_lost(chaos *c, chaos_fault *fault) {
    fault->target = chaos_random(c, CHAOS_MEMBERS);
    FOR_LINKS(c, fault->target, link) dv_test_proxy_drop_requests(*link, true);
}

static void begin_before_request(chaos *c, chaos_fault *fault) {
    fault->target = chaos_random(c, CHAOS_MEMBERS);
    unsigned count = (unsigned)(1 + chaos_random(c, 4));
    FOR_LINKS(c, fault->target, link) dv_test_proxy_strike(*link, DV_TEST_BEFORE_REQUEST, count);
}

static void begin_before_reply(chaos *c, chaos_fault *fault) {
    fault->target = chaos_random(c, CHAOS_MEMBERS);
    unsigned count = (unsigned)(1 + chaos_random(c, 4));
    FOR_LINKS(c, fault->target, link) dv_test_proxy_strike(*link, DV_TEST_BEFORE_REPLY, count);
}

static void begin_delay(chaos *c, chaos_fault *fault) {
    fault->target = chaos_random(c, CHAOS_MEMBERS);
    int delay_ms = 20 + chaos_random(c, CHAOS_SESSION_MS / 4);
    FOR_LINKS(c, fault->target, link) dv_test_proxy_delay(*link, delay_ms);
}

static void begin_half_open(chaos *c, chaos_fault *fault) {
    fault->target = chaos_random(c, CHAOS_MEMBERS);
    FOR_LINKS(c, fault->target, link) dv_test_proxy_half_open(*link);
}

/* One server cannot be reached by anybody. */
static void begin_unreachable(chaos *c, chaos_fault *fault) {
    fault->target = 1 + chaos_random(c, CHAOS_SERVERS);
    for (int i = 0; i < CHAOS_MEMBERS; i++) dv_test_proxy_cut(c->members[i].proxies[fault->target - 1]);
}

static void end_unreachable(chaos *c, chaos_fault *fault) {
    for (int i = 0; i < CHAOS_MEMBERS; i++) dv_test_proxy_restore(c->members[i].proxies[fault->target - 1]);
}

/* All members lose all links, again and again. */
static void begin_flap(chaos *c, chaos_fault *fault) {
    fault->target = -1;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < CHAOS_MEMBERS; i++) FOR_LINKS(c, i, link) dv_test_proxy_cut(*link);
        chaos_wait(c, chaos_random(c, CHAOS_SESSION_MS / 6));
        for (int i = 0; i < CHAOS_MEMBERS; i++) FOR_LINKS(c, i, link) dv_test_proxy_restore(*link);
        chaos_wait(c, chaos_random(c, CHAOS_SESSION_MS / 6));
    }
}

static void end_flap(chaos *c, chaos_fault *fault) {
    (void)fault;
    for (int i = 0; i < CHAOS_MEMBERS; i++) FOR_LINKS(c, i, link) dv_test_proxy_restore(*link);
}

enum { SHORT_MS = CHAOS_SESSION_MS / 2, LONG_LEAST_MS = 4 * CHAOS_SESSION_MS / 3, LONG_MS = 2 * CHAOS_SESSION_MS };

const chaos_kind chaos_link_kinds[] = {
    {"link_cut_short", CHAOS_OF_LINKS, 10, SHORT_MS, begin_cut, restore, false, NULL},
    {"link_cut_long", CHAOS_OF_LINKS, LONG_LEAST_MS, LONG_MS, begin_cut, restore, false, NULL},
    {"link_frozen", CHAOS_OF_LINKS, 100, LONG_MS, begin_freeze, restore, false, NULL},
    {"link_replies_lost", CHAOS_OF_LINKS, 50, LONG_MS, begin_replies_lost, restore, false, NULL},
    {"link_requests_lost", CHAOS_OF_LINKS, 50, LONG_MS, begin_requests_lost, restore, false, NULL},
    {"cut_before_request", CHAOS_OF_LINKS, SHORT_MS, LONG_MS, begin_before_request, restore, false, NULL},
    {"cut_before_reply", CHAOS_OF_LINKS, SHORT_MS, LONG_MS, begin_before_reply, restore, false, NULL},
    {"link_delayed", CHAOS_OF_LINKS, SHORT_MS, LONG_MS, begin_delay, restore, false, NULL},
    {"link_half_open", CHAOS_OF_LINKS, SHORT_MS, LONG_MS, begin_half_open, restore, false, NULL},
    {"server_unreachable", CHAOS_OF_LINKS, SHORT_MS, LONG_MS, begin_unreachable, end_unreachable, false, NULL},
    {"links_flapping", CHAOS_OF_LINKS, 10, 100, begin_flap, end_flap, false, NULL},
    {0},
};
