// The rules of a member's state and of its items: P4 to P8 and P18 of docs/protocol.md.
// SPDX-License-Identifier: Apache-2.0
//
// apply() makes one step of a member, such as one move of an item or one change of its state, or says why the rules do
// not allow it. test/model/member.cc searches what a member does with them; test/replay/member.cc asks them of what one
// has done.
#ifndef DV_MODEL_RULES_MEMBER_H
#define DV_MODEL_RULES_MEMBER_H

#include <cstdint>

namespace member {

enum State : uint8_t { ALLOCATING, ACQUIRED, RELEASE, FAILURE, STATES };
enum Place : uint8_t { NO_PLACE, ASKED, WAITING, PARKED, FIRST, GOING };
enum Stage : uint8_t { HIDDEN, PREPARING, SHOWN, KEPT, LEAVING, REVOKED };
enum Next : uint8_t { NOBODY, UNREAD, HAS_NOTE, READY }; // what is known of the next owner

enum Move : uint8_t {
    ASK,
    WIN,
    LEAVE,
    PREPARE,
    CALL_OFF,
    SHOW,
    KEEP,
    ANNOUNCE,
    RETRACT,
    STAY,
    REVOKE,
    RETURN,
    WAIT,
    GIVE,
    LOSE,
    HIDE,
    MOVES
};

struct Row {
    const char *name;
    unsigned places;
    int to_place;
    unsigned stages;
    int to_stage;
};

constexpr unsigned set() {
    return 0;
}
template <typename... More> constexpr unsigned set(unsigned first, More... more) {
    return 1u << first | set(more...);
}

const unsigned QUEUED = set(ASKED, WAITING, PARKED), UNSHOWN = set(HIDDEN, PREPARING),
               OWNED = set(SHOWN, KEPT, LEAVING);
const int SAME = -1;

const Row ROWS[MOVES] = {
    {"ask", set(NO_PLACE, GOING), ASKED, UNSHOWN, SAME},
    {"win", QUEUED, FIRST, UNSHOWN, SAME},
    {"leave", QUEUED | set(FIRST), GOING, UNSHOWN, SAME},
    {"prepare", ~0u, SAME, set(HIDDEN), PREPARING},
    {"call off", ~0u, SAME, set(PREPARING), HIDDEN},
    {"show", set(FIRST), SAME, UNSHOWN, SHOWN},
    {"keep", set(FIRST), SAME, set(SHOWN), KEPT},
    {"announce", set(FIRST), SAME, set(KEPT), LEAVING},
    {"retract", set(FIRST), SAME, set(LEAVING), KEPT},
    {"stay", set(FIRST), SAME, set(KEPT, LEAVING), SHOWN},
    {"revoke", set(FIRST), SAME, OWNED, REVOKED},
    {"return", set(FIRST), SAME, set(REVOKED), SHOWN},
    {"wait", set(FIRST), SAME, set(REVOKED), LEAVING},
    {"release", set(FIRST), GOING, set(REVOKED), HIDDEN},
    {"lose", set(FIRST), GOING, OWNED | set(REVOKED), HIDDEN},
    {"hide", set(FIRST), SAME, OWNED | set(REVOKED), HIDDEN},
};

const char *const STATE_NAMES[STATES] = {"ALLOCATING", "ACQUIRED", "RELEASE", "FAILURE"};
const unsigned NEXT_STATES[STATES] = {set(ACQUIRED, RELEASE, FAILURE), set(ALLOCATING, RELEASE, FAILURE),
                                      set(ALLOCATING, RELEASE, FAILURE), 0};

struct Item {
    uint8_t place, stage, wanted, next, leaving; // place: of what stands in the queue; leaving: places on their way out
};

// What a member is about, from one step to the next.
enum Doing : uint8_t { NOTHING, REVOKING, RELEASING };
enum Scope : uint8_t { LACK, ANY, ALL }; // what the target lacks, and perhaps more, or everything

// A world has these, and `items`. All fields are bytes, so that two equal worlds have equal bytes.
struct Own {
    uint8_t state, told, has_target, change_seen, again, proven, rejoining; // told: of this RELEASE; again: P7
    uint8_t eager, suspends, rejoins;                                       // as the user has chosen
    uint8_t unfit, disagrees, leaves; // items that do not fit (P9); its plan does not agree (D34); it leaves (D14)
    uint8_t doing, scope, event;      // until REST: of what a RELEASE is; a session event has come
};

enum Kind : uint8_t { MOVE, ENTER, WANT, TELL, SUSPEND, RELEASES, RELEASED, SETTLED, REST, KINDS };

struct Step {
    Kind kind;
    uint8_t what; // a move, a state
    Item *item;   // that is moved, or that the target has from now on, or no longer
};

inline bool is_shown(const Item &i) {
    return i.stage >= SHOWN;
}

inline bool is_kept(const Item &i) {
    return i.stage == KEPT || i.stage == LEAVING;
}

inline Place place_of(const Item &i) {
    return i.place == NO_PLACE && i.leaving ? GOING : static_cast<Place>(i.place);
}

// P4: the target lacks it.
inline bool lacks(const Item &i) {
    return is_shown(i) && !i.wanted && !is_kept(i);
}

template <class World> bool lacks_shown(const World &w) {
    for (const Item &i : w.items)
        if (lacks(i)) return true;
    return false;
}

// Returns whether all of the target that fits is locked, and nothing is on its way out.
template <class World> bool is_locked(const World &w) {
    unsigned missing = 0;
    for (const Item &i : w.items) {
        if (i.leaving) return false;
        missing += i.wanted && i.place != FIRST;
    }
    return missing == w.unfit;
}

template <class World> bool is_complete(const World &w) {
    return is_locked(w) && w.has_target && w.proven && !w.disagrees;
}

// Returns why the move is not to be made, or NULL.
template <class World> const char *refuse_move(const World &w, const Item &i, Move m) {
    const Row &row = ROWS[m];
    bool ends = w.state == FAILURE || w.rejoining, stays = i.wanted && w.has_target && !w.eager && !w.leaves;
    if (!(row.places >> place_of(i) & 1 && row.stages >> i.stage & 1))
        return "P18: a move of an item that the table does not allow";
    switch (m) {
    case ASK: return !i.wanted || !w.has_target || ends ? "P4: a place is asked for outside the target" : nullptr;
    case PREPARE: return i.wanted ? nullptr : "T2: the user is to prepare for what is not to be his";
    case SHOW:
        if (!i.wanted || ends || w.leaves) return "P4: an item is shown that is not to be had";
        if (!w.proven) return "P10: an item is shown before the session is proven";
        if (w.eager && (w.state != ALLOCATING || w.change_seen || !is_complete(w)))
            return "P5: an item is shown before the whole share is there";
        return nullptr;
    case KEEP: return i.wanted ? "T1: an item is kept for another, and is its own" : nullptr;
    case REVOKE:
        if (w.doing != REVOKING) return "P6: an item is revoked behind the beginning of RELEASE";
        return w.scope != LACK || lacks(i) ? nullptr : "P4: an item is revoked that is not to go";
    case RETURN:
        if (w.doing != RELEASING) return "P6: an item comes back that nobody released";
        return stays ? nullptr : "P6: an item comes back that is not to stay";
    case WAIT:
        if (w.doing != RELEASING) return "P6: an item waits again that nobody released";
        return i.wanted || !w.has_target ? "T3: an item waits for another, and is its own" : nullptr;
    case GIVE:
        if (w.doing != RELEASING) return "P6: an item leaves that nobody released";
        return stays ? "P6: an item leaves that is to stay" : nullptr;
    case HIDE: return ends ? nullptr : "P8: an item is hidden, and neither the session nor the member has ended";
    default: return nullptr;
    }
}

template <class World> const char *make_move(World &w, Item &i, Move m) {
    const Row &row = ROWS[m];
    const char *why = refuse_move(w, i, m);
    if (why) return why;
    if (row.to_place == GOING) {
        i.place = NO_PLACE;
        i.leaving++;
    } else if (row.to_place != SAME) {
        i.place = static_cast<uint8_t>(row.to_place);
    }
    if (row.to_stage != SAME) i.stage = static_cast<uint8_t>(row.to_stage);
    if (!is_shown(i)) i.next = NOBODY;
    return nullptr;
}

// Returns why it is not to be ALLOCATING, or NULL.
template <class World> const char *refuse_allocating(const World &w) {
    if (w.state == ACQUIRED) return is_complete(w) ? "P4: ACQUIRED ends, and nothing is missing" : nullptr;
    if (w.doing != RELEASING) return "P6: a RELEASE ends that nobody released";
    if (w.again) return "P7: a session event in RELEASE is forgotten";
    for (const Item &i : w.items)
        if (i.stage == REVOKED) return "P6: an item is revoked outside RELEASE";
    return w.has_target && lacks_shown(w) ? "P4: an item is shown outside the target, and nobody revokes it" : nullptr;
}

template <class World> const char *refuse_acquired(const World &w) {
    if (!is_complete(w)) return "P4: ACQUIRED without the whole target, or with a place on its way out";
    if (w.eager && w.change_seen) return "P5: ACQUIRED, and a change was seen";
    unsigned missing = 0;
    for (const Item &i : w.items) missing += i.wanted && !is_shown(i);
    return missing > w.unfit ? "P5: ACQUIRED, and not the whole target is shown" : nullptr;
}

// P5: what is acquired comes and goes as a whole in eager mode. P11 alone takes one item.
template <class World> Scope scope_of_release(const World &w) {
    if (w.event || w.again || (w.eager && w.state == ACQUIRED)) return ALL;
    return w.eager ? ANY : LACK;
}

template <class World> const char *refuse_release(const World &w) {
    if (w.rejoining) return nullptr;
    if (w.state == RELEASE && w.doing != RELEASING) return "P6: a RELEASE follows one that nobody released";
    bool is_void = w.eager && w.state == ACQUIRED && (w.change_seen || !is_locked(w)); // P5, P13
    return w.event || w.again || is_void || lacks_shown(w) ? nullptr : "P4: RELEASE, and nothing is to go";
}

template <class World> const char *enter_state(World &w, State to) {
    const char *why = nullptr;
    if (!(NEXT_STATES[w.state] >> to & 1)) return "P4: a change of state that the table does not allow";
    if (to == ALLOCATING) why = refuse_allocating(w);
    if (to == ACQUIRED) why = refuse_acquired(w);
    if (to == RELEASE) why = refuse_release(w);
    if (why) return why;
    if (to == RELEASE) {
        w.scope = scope_of_release(w);
        w.doing = REVOKING;
        w.again = 0;
    }
    w.state = to;
    w.told = 0;
    return nullptr;
}

// P6: what is revoked is fixed on entering RELEASE.
template <class World> const char *end_revoking(World &w) {
    w.doing = NOTHING;
    for (const Item &i : w.items)
        if (!w.rejoining && is_shown(i) && i.stage != REVOKED && (w.scope == ALL || lacks(i)))
            return "P4: a RELEASE leaves out what is to go";
    return nullptr;
}

// P7
template <class World> const char *hear_event(World &w) {
    bool shows = false;
    for (const Item &i : w.items) shows = shows || is_shown(i);
    if (!w.suspends || w.state == FAILURE) return nullptr;
    if (w.state == RELEASE) w.again = shows && !w.eager;
    else w.event = 1;
    return nullptr;
}

// Returns what is wrong with a member that has nothing to do at the moment, or NULL.
template <class World> const char *judge_rest(World &w) {
    if (w.event && w.state != RELEASE && w.state != FAILURE) return "P7: a session event revokes nothing";
    w.doing = NOTHING;
    w.scope = w.event = 0;
    for (const Item &i : w.items) {
        if (is_shown(i) && i.place != FIRST) return "P18: an item is shown without the first place";
        if (is_shown(i) && (w.state == FAILURE || w.rejoining)) return "P8: an item is shown after the end";
        if (i.stage == REVOKED && w.state != RELEASE) return "P6: an item is revoked outside RELEASE";
        if (lacks(i) && w.state != RELEASE) return "P4: an item is shown outside the target, and nobody revokes it";
    }
    if (w.eager && w.state == ACQUIRED && w.change_seen) return "P5: a change was seen, and the share stays";
    if (w.state == ACQUIRED && !is_locked(w))
        return "P4: ACQUIRED without the whole target, or with a place on its way out";
    return nullptr;
}

// P4: on each settle places outside the target are left.
template <class World> const char *judge_settled(const World &w) {
    for (const Item &i : w.items)
        if (w.state != FAILURE && !i.wanted && !is_shown(i) && i.place != NO_PLACE)
            return "P4: a place outside the target stays";
    return nullptr;
}

template <class World> const char *apply(World &w, const Step &s) {
    bool revokes = s.kind == MOVE && s.what == REVOKE;
    const char *why = w.doing == REVOKING && !revokes ? end_revoking(w) : nullptr;
    if (why) return why;
    switch (s.kind) {
    case MOVE: return make_move(w, *s.item, static_cast<Move>(s.what));
    case ENTER: return enter_state(w, static_cast<State>(s.what));
    case WANT: s.item->wanted = !s.item->wanted; return nullptr;
    case TELL: w.told = 1; return nullptr;
    case SUSPEND: return hear_event(w);
    case RELEASES:
        if (w.state != RELEASE || !w.told) return "P6: a RELEASE ends that nobody was told of";
        w.doing = RELEASING;
        return nullptr;
    case SETTLED: return judge_settled(w);
    case RELEASED:
        if (w.doing == RELEASING) w.doing = NOTHING;
        return nullptr;
    default: return judge_rest(w);
    }
}

} // namespace member

#endif
