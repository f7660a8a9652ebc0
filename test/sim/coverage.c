/* The situations that histories have met, so that a simulator that misses some says so.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "lib/item_words.h"
#include "sim.h"

static const char *const transition_names[SIM_TRANSITIONS] = {
    [SIM_ALLOCATING_ACQUIRED] = "ALLOCATING -> ACQUIRED",
    [SIM_ALLOCATING_RELEASE_MEMBERS] = "ALLOCATING -> RELEASE, target",
    [SIM_ALLOCATING_RELEASE_SUSPEND] = "ALLOCATING -> RELEASE, session event",
    [SIM_ALLOCATING_RELEASE_LOSS] = "ALLOCATING -> RELEASE, loss",
    [SIM_ALLOCATING_ALLOCATING] = "ALLOCATING -> ALLOCATING, target",
    [SIM_ALLOCATING_FAILURE_LOSS] = "ALLOCATING -> FAILURE, loss",
    [SIM_ALLOCATING_FAILURE_TIMEOUT] = "ALLOCATING -> FAILURE, allocate_timeout",
    [SIM_ALLOCATING_FAILURE_FINISH] = "ALLOCATING -> FAILURE, finish",
    [SIM_ACQUIRED_RELEASE_MEMBERS] = "ACQUIRED -> RELEASE, target",
    [SIM_ACQUIRED_RELEASE_EAGER] = "ACQUIRED -> RELEASE, eager",
    [SIM_ACQUIRED_RELEASE_SUSPEND] = "ACQUIRED -> RELEASE, session event",
    [SIM_ACQUIRED_RELEASE_LOSS] = "ACQUIRED -> RELEASE, loss",
    [SIM_ACQUIRED_RELEASE_FOREIGN] = "ACQUIRED -> RELEASE, foreign deletion",
    [SIM_ACQUIRED_ALLOCATING_ADDED] = "ACQUIRED -> ALLOCATING, target",
    [SIM_ACQUIRED_ALLOCATING_FOREIGN] = "ACQUIRED -> ALLOCATING, foreign deletion",
    [SIM_ACQUIRED_ACQUIRED] = "ACQUIRED -> ACQUIRED, equal target",
    [SIM_ACQUIRED_FAILURE_LOSS] = "ACQUIRED -> FAILURE, loss",
    [SIM_ACQUIRED_FAILURE_FINISH] = "ACQUIRED -> FAILURE, finish",
    [SIM_RELEASE_RELEASE_TARGET] = "RELEASE -> RELEASE, target",
    [SIM_RELEASE_RELEASE_MEMBERS] = "RELEASE -> RELEASE, more to release",
    [SIM_RELEASE_RELEASE_SUSPEND] = "RELEASE -> RELEASE, session event",
    [SIM_RELEASE_RELEASE_LOSS] = "RELEASE -> RELEASE, loss",
    [SIM_RELEASE_ALLOCATING] = "RELEASE -> ALLOCATING",
    [SIM_RELEASE_FAILURE_LOSS] = "RELEASE -> FAILURE, loss",
    [SIM_RELEASE_FAILURE_FINISH] = "RELEASE -> FAILURE, finish",
};

static const char *const meeting_names[SIM_MEETINGS] = {
    [SIM_MET_KEPT] = "a revoked item that stayed",
    [SIM_MET_SHORT] = "a share that does not fit",
    [SIM_MET_STALE_REJECTED] = "a stale write that the resource refused",
    [SIM_MET_UNSEEN] = "a second release refused",
    [SIM_MET_BLIND_WRITE] = "a write past the deadline",
    [SIM_MET_REJOIN] = "a member on a second session",
    [SIM_MET_KAZOO] = "a kazoo member",
    [SIM_MET_KAZOO_ACQUIRED] = "a kazoo member that acquired",
    [SIM_MET_STRAY] = "a stray in the party",
    [SIM_MET_GHOST] = "a persistent node of a member's name",
    [SIM_MET_WAITED_SECOND] = "a place behind another",
    [SIM_MET_TIDIED] = "a pool that the last member tidied",
};

static const char *const claim_meeting_names[SIM_CLAIM_MEETINGS] = {
    [SIM_MET_EXCLUSIVE] = "an exclusive lock",
    [SIM_MET_READ] = "a read lock",
    [SIM_MET_WRITE] = "a write lock",
    [SIM_MET_READERS] = "two readers at a time",
    [SIM_MET_SLOT] = "a slot",
    [SIM_MET_SLOTS] = "several slots at once",
    [SIM_MET_SCATTERED] = "slots that do not stand side by side",
    [SIM_MET_HANDED_OVER] = "a lock that was waited for",
    [SIM_MET_TIMED_OUT] = "an acquire that timed out",
    [SIM_MET_BUSY] = "a try in vain",
    [SIM_MET_CANCELED] = "an acquire that was canceled",
    [SIM_MET_CLAIM_LOST] = "a loss",
    [SIM_MET_CLAIM_FOREIGN] = "a loss by somebody else's deletion",
    [SIM_MET_ALREADY] = "an acquire of what is held or waited for",
    [SIM_MET_NOT_HELD] = "a release of what is not held",
    [SIM_MET_DESTROYED_WAITING] = "a destroy while an acquire waits",
    [SIM_MET_DESTROYED_INSIDE] = "a destroy inside a callback",
    [SIM_MET_LEFT_ADMITTING] = "an acquire given up during its transaction",
    [SIM_MET_RESOLVED] = "a lost reply of an admission",
    [SIM_MET_RESOLVED_NOTHING] = "an admission that was lost",
    [SIM_MET_FULL] = "a head that waited for room",
    [SIM_MET_RAISED] = "a limit that was raised",
    [SIM_MET_LOWERED] = "a limit that was lowered",
    [SIM_MET_OVERFULL] = "a limit below what was taken",
    [SIM_MET_OTHER_LIMIT] = "an acquire that the limit ended",
    [SIM_MET_NUMBERS_ENDED] = "an acquire at the end of the numbers",
    [SIM_MET_DIRECTORY_GONE] = "a directory that was deleted",
    [SIM_MET_KAZOO_LOCK] = "a lock held by kazoo",
    [SIM_MET_KAZOO_LEASE] = "a slot held by kazoo",
    [SIM_MET_SHORTCUT] = "a slot by the shortcut",
    [SIM_MET_SHORTCUT_MISSED] = "a shortcut in vain",
};

static const char *const election_meeting_names[SIM_ELECTION_MEETINGS] = {
    [SIM_MET_ELECTED] = "an election",
    [SIM_MET_PREFERRED] = "an election of a preferred one",
    [SIM_MET_DEPOSED] = "a leader's loss",
    [SIM_MET_LEADER] = "told of a leader",
    [SIM_MET_NO_LEADER] = "told of none",
    [SIM_MET_ASKED] = "asked to step down",
    [SIM_MET_STEPPED_DOWN] = "a request that was followed",
    [SIM_MET_DECLINED] = "a request that was not",
};

static const char *const service_meeting_names[SIM_SERVICE_MEETINGS] = {
    [SIM_MET_EPHEMERAL] = "an ephemeral entry stored",
    [SIM_MET_PERSISTENT] = "a persistent entry stored",
    [SIM_MET_HELD] = "a unique role claimed or kept",
    [SIM_MET_HELD_BY_ANOTHER] = "a unique role that another holds",
    [SIM_MET_HELD_BY_NOBODY] = "a unique role that nobody holds for certain",
    [SIM_MET_TAKEN_OVER] = "a unique role taken over",
    [SIM_MET_PURGED] = "an entry purged",
    [SIM_MET_UNREGISTERED] = "a service unregistered",
    [SIM_MET_NO_SERVICE] = "a service to unregister that was not there",
    [SIM_MET_READ_SERVICES] = "a lookup by reading",
    [SIM_MET_VIEWED] = "a lookup in a view",
    [SIM_MET_ADDED] = "told of a service that came",
    [SIM_MET_CHANGED] = "told of one that changed",
    [SIM_MET_REMOVED] = "told of one that went",
    [SIM_MET_CALL_TIMED_OUT] = "a call that timed out",
};

static const char *const plan_meeting_names[SIM_PLAN_MEETINGS] = {
    [SIM_MET_WRITTEN] = "a plan written",
    [SIM_MET_TOLD] = "a history that goes on",
    [SIM_MET_TOLD_AGAIN] = "a history that nobody could read",
    [SIM_MET_HOLE] = "a plan that its history lacks",
    [SIM_MET_TOOK] = "a change whose handovers were timed",
    [SIM_MET_LEAST] = "moves held against the least",
    [SIM_MET_CHUNKS] = "a plan in chunks",
    [SIM_MET_DELTA] = "a plan with deltas",
    [SIM_MET_NEW_BASE] = "a new base that is the plan before",
    [SIM_MET_GARBAGE] = "a chunk collected",
    [SIM_MET_SWEPT] = "directories of no items swept at rest",
    [SIM_MET_RENEWED] = "a queue renewed by its new owner",
    [SIM_MET_ABSENT] = "a member that was waited for",
    [SIM_MET_LEAVING] = "a member that leaves",
    [SIM_MET_SET] = "other items",
    [SIM_MET_BACK] = "items back to what all are started with",
    [SIM_MET_WEIGHT] = "another configured weight",
    [SIM_MET_OPTIONS] = "other options",
    [SIM_MET_ROUND] = "a round of moves",
    [SIM_MET_ROUND_TIMEOUT] = "a round that took too long",
    [SIM_MET_FENCED] = "a member whose place another took",
    [SIM_MET_CAME_BACK] = "one that came back after its successor",
    [SIM_MET_REPLACED] = "one that ended as it was replaced",
    [SIM_MET_NO_ROOT] = "a plan followed whose root has gone",
    [SIM_MET_BROKEN] = "a broken plan",
    [SIM_MET_NEWER] = "a plan of a later release",
    [SIM_MET_REPAIRED] = "a plan that replaced none to follow",
    [SIM_MET_RESTORED] = "a plan that replaced one from elsewhere",
    [SIM_MET_TO_NAMES] = "a change-over to a rule of names",
    [SIM_MET_TO_PLAN] = "a change-over to a plan",
    [SIM_MET_ITEM_LEAVING] = "an item that is leaving",
    [SIM_MET_PREPARED] = "an item prepared for in time",
    [SIM_MET_PREPARE_TIMEOUT] = "an item not prepared for in time",
    [SIM_MET_GIVEN] = "an item given by a note",
    [SIM_MET_IN_A_LINE] = "two writes of a note were under way",
    [SIM_MET_BY_NUMBER] = "an item taken by its number",
    [SIM_MET_BY_LIST] = "an item taken by a list after a wait",
    [SIM_MET_OVERDUE] = "an owner whose patience ended",
    [SIM_MET_GONE_BACK] = "a leaving item that a plan gave back",
    [SIM_MET_ANSWER_LOST] = "a lost answer to a note that was written",
    [SIM_MET_NOTE_DELETED] = "a note that somebody deleted",
    [SIM_MET_POLLED_LEAVING] = "a user that polls, and an item leaves",
    [SIM_MET_POLLED_PREPARE] = "a user that polls, and prepares",
    [SIM_MET_ASK_DONE] = "an operator's wish that was followed",
    [SIM_MET_ASK_REFUSED] = "an operator's wish that was refused",
    [SIM_MET_ASK_LOST] = "an operator's write that lost its connection",
    [SIM_MET_PINNED] = "a plan with an item pinned",
    [SIM_MET_MOVED] = "a plan with an item moved by an operator",
    [SIM_MET_PAUSED] = "a plan with an item paused",
    [SIM_MET_RESUMED] = "an item back with who had it",
    [SIM_MET_NO_TAKER] = "an item that no member may take",
    [SIM_MET_SUSPENDED] = "wishes and loads that wait",
    [SIM_MET_IN_FORCE_AGAIN] = "wishes and loads in force again",
    [SIM_MET_KEPT_PARTS] = "wishes and loads that an older release left out",
    [SIM_MET_REPORTED] = "a report of loads",
    [SIM_MET_LOADS] = "loads that a plan took over",
    [SIM_MET_LOAD_MOVED] = "items moved for load",
    [SIM_MET_LOAD_MOVED_AGAIN] = "items moved for load again",
    [SIM_MET_LOADS_AT_REST] = "loads and plans that stand still",
};

static const char *const roll_meeting_names[SIM_ROLL_MEETINGS] = {
    [SIM_MET_ROLL_WRITTEN] = "a roll that a member wrote",
    [SIM_MET_ROLL_SPOILT] = "a roll that somebody else wrote",
    [SIM_MET_ROLL_FOLLOWED] = "a party that a listener settled on",
    [SIM_MET_ROLL_AWAITED] = "a party listed after a wait in vain",
};

static const char *const watch_meeting_names[SIM_WATCH_MEETINGS] = {
    [SIM_MET_WATCH_ENDED] = "a session that its death watch ended",
    [SIM_MET_WATCH_WAITED] = "a death watch that waited for work to end",
    [SIM_MET_WATCH_LATE] = "a death watch that came too late",
    [SIM_MET_WATCH_AGAIN] = "a death watch that tried again",
    [SIM_MET_WATCH_KILLED] = "a death watch that died with its process",
    [SIM_MET_WATCH_FORGETS] = "a death watch that was told to forget",
};

static const char *const kazoo_gap_names[SIM_KAZOO_GAPS] = {
    [SIM_GAP_STOPPED] = "kazoo's gap: stopped past its session's end",
    [SIM_GAP_SUSPENDED] = "kazoo's gap: suspended, and at work",
    [SIM_GAP_CONNECTED] = "kazoo's gap: cut off, and not aware of it",
    [SIM_GAP_SHARED] = "kazoo's gap: another worked on the same",
};

void sim_coverage_add(sim_coverage *to, const sim_coverage *from) {
    to->histories += from->histories;
    to->steps += from->steps;
    to->script_events += from->script_events;
    to->simulated_ms += from->simulated_ms;
    for (int i = 0; i < SIM_KINDS; i++) to->kinds[i] += from->kinds[i];
    for (int i = 0; i < SIM_TRANSITIONS; i++) to->transitions[i] += from->transitions[i];
    for (int i = 0; i < SIM_MEETINGS; i++) to->meetings[i] += from->meetings[i];
    for (int i = 0; i < SIM_CLAIM_MEETINGS; i++) to->claim_meetings[i] += from->claim_meetings[i];
    for (int i = 0; i < SIM_ELECTION_MEETINGS; i++) to->election_meetings[i] += from->election_meetings[i];
    for (int i = 0; i < SIM_SERVICE_MEETINGS; i++) to->service_meetings[i] += from->service_meetings[i];
    for (int i = 0; i < SIM_PLAN_MEETINGS; i++) to->plan_meetings[i] += from->plan_meetings[i];
    to->rolled += from->rolled;
    for (int i = 0; i < SIM_ROLL_MEETINGS; i++) to->roll_meetings[i] += from->roll_meetings[i];
    to->watched += from->watched;
    for (int i = 0; i < SIM_WATCH_MEETINGS; i++) to->watch_meetings[i] += from->watch_meetings[i];
    for (int i = 0; i < DV_PLACES * DV_STAGES; i++)
        to->stands[i / DV_STAGES][i % DV_STAGES] += from->stands[i / DV_STAGES][i % DV_STAGES];
    for (int i = 0; i < SIM_KAZOO_GAPS; i++) to->kazoo_gaps[i] += from->kazoo_gaps[i];
    if (from->kazoo_gap_max_ms > to->kazoo_gap_max_ms) to->kazoo_gap_max_ms = from->kazoo_gap_max_ms;
}

static void print_line(const char *what, const char *name, uint64_t count) {
    printf("  %-10s %-44s %10llu\n", what, name, (unsigned long long)count);
}

static void print_kazoo_gaps(const sim_coverage *c) {
    for (int i = 0; i < SIM_KAZOO_GAPS; i++) print_line("excused", kazoo_gap_names[i], c->kazoo_gaps[i]);
    printf("  %-10s %-44s %10lld ms\n", "excused", "kazoo's gap: the longest", (long long)c->kazoo_gap_max_ms);
}

/* Calls `each` for each pair of place and stage that an item can have. */
static size_t for_each_stand(const sim_coverage *c, size_t (*each)(const char *name, uint64_t count)) {
    size_t sum = 0;
    for (int place = 0; place < DV_PLACES; place++) {
        for (int stage = 0; stage < DV_STAGES; stage++) {
            char name[64];
            if (!dv_item_can_be((dv_item_place)place, (dv_item_stage)stage)) continue;
            snprintf(name, sizeof name, "place %s, %s", item_place_word((dv_item_place)place),
                     item_stage_word((dv_item_stage)stage));
            sum += each(name, c->stands[place][stage]);
        }
    }
    return sum;
}

static size_t print_stand(const char *name, uint64_t count) {
    print_line("item", name, count);
    return 0;
}

/* Transitions are of partitioners, and few in histories of locks. */
void sim_coverage_print(const sim_coverage *c, sim_theme theme) {
    printf("coverage\n");
    for (int i = 0; i < SIM_KINDS; i++)
        if (sim_kind_belongs((sim_kind)i, theme)) print_line("event", sim_kind_name((sim_kind)i), c->kinds[i]);
    for (int i = 0; theme == SIM_OF_LOCKS && i < SIM_CLAIM_MEETINGS; i++)
        print_line("met", claim_meeting_names[i], c->claim_meetings[i]);
    for (int i = 0; theme == SIM_OF_ELECTIONS && i < SIM_ELECTION_MEETINGS; i++)
        print_line("met", election_meeting_names[i], c->election_meetings[i]);
    for (int i = 0; theme == SIM_OF_SERVICES && i < SIM_SERVICE_MEETINGS; i++)
        print_line("met", service_meeting_names[i], c->service_meetings[i]);
    for (int i = 0; theme == SIM_OF_PLANS && i < SIM_PLAN_MEETINGS; i++)
        print_line("met", plan_meeting_names[i], c->plan_meetings[i]);
    for (int i = 0; c->watched && i < SIM_WATCH_MEETINGS; i++)
        print_line("met", watch_meeting_names[i], c->watch_meetings[i]);
    for (int i = 0; c->rolled && i < SIM_ROLL_MEETINGS; i++)
        print_line("met", roll_meeting_names[i], c->roll_meetings[i]);
    if (theme != SIM_OF_SERVICES) print_kazoo_gaps(c);
    if (theme != SIM_OF_POOLS && theme != SIM_OF_PLANS) return;
    for_each_stand(c, print_stand);
    for (int i = 0; i < SIM_TRANSITIONS; i++) print_line("transition", transition_names[i], c->transitions[i]);
    for (int i = 0; i < SIM_MEETINGS; i++) print_line("met", meeting_names[i], c->meetings[i]);
}

static size_t miss(const char *what, const char *name, uint64_t count) {
    if (count) return 0;
    printf("not covered: %s %s\n", what, name);
    return 1;
}

static size_t miss_stand(const char *name, uint64_t count) {
    return miss("item", name, count);
}

size_t sim_coverage_missing(const sim_coverage *c, sim_theme theme) {
    size_t missing = 0;
    for (int i = 0; i < SIM_KINDS; i++)
        if (sim_kind_belongs((sim_kind)i, theme)) missing += miss("event", sim_kind_name((sim_kind)i), c->kinds[i]);
    for (int i = 0; theme == SIM_OF_LOCKS && i < SIM_CLAIM_MEETINGS; i++)
        missing += miss("meeting", claim_meeting_names[i], c->claim_meetings[i]);
    for (int i = 0; theme == SIM_OF_ELECTIONS && i < SIM_ELECTION_MEETINGS; i++)
        missing += miss("meeting", election_meeting_names[i], c->election_meetings[i]);
    for (int i = 0; theme == SIM_OF_SERVICES && i < SIM_SERVICE_MEETINGS; i++)
        missing += miss("meeting", service_meeting_names[i], c->service_meetings[i]);
    for (int i = 0; theme == SIM_OF_PLANS && i < SIM_PLAN_MEETINGS; i++)
        missing += miss("meeting", plan_meeting_names[i], c->plan_meetings[i]);
    for (int i = 0; c->watched && theme != SIM_OF_SERVICES && i < SIM_WATCH_MEETINGS; i++)
        missing += miss("meeting", watch_meeting_names[i], c->watch_meetings[i]);
    for (int i = 0; c->rolled && i < SIM_ROLL_MEETINGS; i++)
        missing += miss("meeting", roll_meeting_names[i], c->roll_meetings[i]);
    if (theme == SIM_OF_PLANS) missing += for_each_stand(c, miss_stand);
    if (theme != SIM_OF_POOLS) return missing;
    missing += miss("gap", kazoo_gap_names[SIM_GAP_STOPPED], c->kazoo_gaps[SIM_GAP_STOPPED]);
    missing += miss("gap", kazoo_gap_names[SIM_GAP_SHARED], c->kazoo_gaps[SIM_GAP_SHARED]);
    for (int i = 0; i < SIM_TRANSITIONS; i++) missing += miss("transition", transition_names[i], c->transitions[i]);
    for (int i = 0; i < SIM_MEETINGS; i++) missing += miss("meeting", meeting_names[i], c->meetings[i]);
    return missing;
}
