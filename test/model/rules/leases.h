// The rules of a semaphore's leases: E2 to E7 and E14 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
// They stand on the rules of the queue, queue.h. That says who is first; these say what a client has to know before it
// asks for an admission, or believes in a lease, and what the leader then commits. apply() moves the world by a step of
// the pool that the rules allow, and else says why they do not. apply_queue() does so for a step of its queue.
//
// Other than in admission.h, which says what a contender does next, these say what it may do. A replay asks them for
// each record of a trace; a search of them (test/model/leases.cc) shows that who keeps them is safe.
#ifndef DV_MODEL_RULES_LEASES_H
#define DV_MODEL_RULES_LEASES_H

#include "leases_world.h"

namespace leases {

using queue::DONE;
using queue::LOST;
using queue::NO_NODE;
using queue::see;

// ---- requests ----

// They stand in one line with those of the queue.
inline queue::Step in_line(const Step &s, Kind asked, unsigned subject) {
    queue::Step t = {};
    t.kind = static_cast<queue::Kind>(static_cast<unsigned>(queue::KINDS) + asked);
    t.who = s.who;
    t.place = subject;
    t.answer = s.answer;
    return t;
}

inline const char *ask(World &w, const Step &s, unsigned subject) {
    return queue::ask(w.q, in_line(s, s.kind, subject));
}

inline const char *take(World &w, const Step &s, Kind asked, unsigned subject) {
    queue::Step t = in_line(s, asked, subject);
    return queue::take(w.q, t, t.kind);
}

inline bool is_asked(const World &w, unsigned who, Kind kind, unsigned subject) {
    return queue::is_asked(w.q, who, static_cast<queue::Kind>(static_cast<unsigned>(queue::KINDS) + kind), subject);
}

inline void use_lease(World &w, unsigned l) {
    if (w.used <= l) w.used = static_cast<uint16_t>(l + 1);
}

inline void begin_lease(World &w, const Step &s) {
    use_lease(w, s.lease);
    w.stage[s.lease] = queue::MAKING;
    w.owner[s.lease] = static_cast<uint8_t>(s.who);
    w.numbers[s.lease] = s.numbers;
    w.count[s.lease] = static_cast<uint8_t>(s.count);
    w.pending[s.lease] = 1;
}

// E14: what it goes by is read behind it.
inline const char *ask_try(World &w, const Step &s) {
    if (w.stage[s.lease] != queue::UNUSED) return "R2: a name is used again";
    begin_lease(w, s);
    return ask(w, s, s.lease);
}

inline const char *ask_admit(World &w, const Step &s) {
    if (w.stage[s.lease] != queue::UNUSED) return "R2: a name is used again";
    if (w.q.owner[s.place] != s.who || !is_first(w, s.place)) return "E2: its place is not known as first";
    if (!w.list_first[s.who].has(s.place) && !is("early_list")) return "E2: no list came since it was first";
    unsigned write = w.known[s.who];
    if (!write) return "E6: it has not read the limit";
    if (w.list_write[s.who] != write) return "E6: limit and leases are of two versions";
    if (w.number[write - 1] != s.number) return "E6: it names another version";
    if (w.limit[write - 1] == UNSET || w.limit[write - 1] != s.limit) return "E6: it names another limit";
    begin_lease(w, s);
    if (const char *why = room(w, w.list[s.who], s.lease, s.limit)) return why;
    w.place[s.lease] = static_cast<uint16_t>(s.place + 1);
    w.by[s.lease] = static_cast<uint16_t>(write);
    memset(&w.list_first[s.who], 0, sizeof w.list_first[s.who]);
    return ask(w, s, s.lease);
}

// E7: nobody but the head watches the pool.
inline const char *ask_read(World &w, const Step &s) {
    bool is_head = false;
    for (unsigned p = 0; p < w.q.used; p++) is_head = is_head || (w.q.owner[p] == s.who && is_first(w, p));
    if (s.watches && !is_head) return "E7: it watches, and is not first";
    return ask(w, s, s.kind == ASK_LOOK ? s.lease : 0);
}

// E3, E13: at a version that it has read.
inline const char *ask_set(World &w, const Step &s) {
    unsigned write = w.known[s.who];
    while (write && w.number[write - 1] != s.number) write--;
    if (!write || w.limit[write - 1] == NO_POOL) return "E3: it has not read this version";
    Set asked = {static_cast<uint8_t>(s.who), PENDING, static_cast<uint16_t>(write - 1),
                 static_cast<uint16_t>(s.limit)};
    for (Set &set : w.sets) {
        if (set.state == FREE || set.who != s.who || set.write != asked.write || set.limit != asked.limit) continue;
        set.state |= TWICE;
        return ask(w, s, write - 1);
    }
    for (Set &set : w.sets) {
        bool over = set.write + 1u < w.writes && !is_asked(w, set.who, ASK_SET, set.write);
        if (set.state != FREE && !over) continue;
        set = asked;
        return ask(w, s, write - 1);
    }
    return "too many writes are under way";
}

inline const char *ask_delete(World &w, const Step &s) {
    uint8_t &stage = w.stage[s.lease];
    bool knows = stage == queue::THERE || stage == queue::LEAVING || (stage == queue::GONE && w.going[s.lease]);
    knows = knows || (stage == queue::HELD && is("deletes_while_held"));
    bool late = stage == queue::GONE && stands(w, s.lease) && w.created[s.lease] <= w.q.seen[s.who]; // R3
    if (w.owner[s.lease] != s.who) return "Q6: it is somebody else's lease";
    if (!knows && !late) return stage == queue::HELD ? "Q6: it is held" : "Q6: it is not known to stand";
    if (stage == queue::THERE || late) stage = queue::LEAVING;
    w.going[s.lease] = 1;
    return ask(w, s, s.lease);
}

// ---- commits ----

inline void write(World &w, unsigned number, unsigned limit) {
    w.written[w.writes] = ++w.q.version;
    w.number[w.writes] = static_cast<uint16_t>(number);
    w.limit[w.writes++] = static_cast<uint16_t>(limit);
}

inline const char *commit_make(World &w, const Step &s) {
    if (w.writes && w.limit[w.writes - 1] != NO_POOL) return "the pool is there";
    write(w, 0, s.limit);
    return nullptr;
}

inline const char *commit_end(World &w) {
    if (!w.writes || w.limit[w.writes - 1] == NO_POOL) return "the pool is not there";
    for (unsigned l = 0; l < w.used; l++)
        if (stands(w, l)) return "the pool is not empty";
    write(w, 0, NO_POOL);
    return nullptr;
}

// A write of a client's is one that it has asked for, or the first part of its admission.
inline const char *commit_set(World &w, const Step &s) {
    if (!w.writes || w.limit[w.writes - 1] == NO_POOL) return "the pool is not there";
    unsigned last = w.writes - 1u;
    bool good = s.kind == COMMIT_FOREIGN_SET, admits = false;
    for (Set &set : w.sets) {
        bool same = set.who == s.who && set.limit == s.limit && w.number[set.write] == w.number[last];
        if (good || !(set.state & PENDING) || !same) continue;
        set.state = static_cast<uint8_t>((set.state & TWICE) | APPLIED);
        good = true;
    }
    for (unsigned l = 0; l < w.used && !good; l++) {
        bool asked = w.stage[l] != queue::UNUSED && w.owner[l] == s.who && w.pending[l] && w.by[l];
        admits = admits || (asked && (w.number[w.by[l] - 1] == w.number[last] || is("unversioned")));
    }
    if (!good && !admits) return "E6: the pool is set, and nobody asked for that at this version";
    write(w, w.number[last] + 1u, s.limit);
    w.owes = admits;
    return nullptr;
}

// E6 and S9, held against the truth.
inline const char *admit(World &w, const Step &s) {
    unsigned l = s.lease, p = w.place[l] - 1u, before = w.writes - 2u;
    if (!w.owes || !s.same) return "E6: the pool was not set with it";
    bool known = w.by[l] == before + 1u || w.number[w.by[l] - 1] == w.number[before] || is("unversioned");
    if (!known) return "E6: the pool was set since";
    if (w.limit[before] != w.limit[before + 1]) return "S9: its admission has changed the limit";
    if (!queue::stands(w.q, p)) return "E6: its place does not stand";
    for (unsigned q = 0; q < w.q.used; q++)
        if (queue::stands(w.q, q) && w.q.number[q] < w.q.number[p]) return "S9: somebody in the queue is overtaken";
    if (room(w, certain(w), l, w.limit[before])) return "S9: there is no room for it, or one of its slots is taken";
    w.owes = 0;
    w.consumes = w.place[l];
    w.q.going[p] = 1;
    return nullptr;
}

// kazoo's lease comes while its place, which nobody of ours asked for, is the head.
inline const char *admit_kazoo(World &w, const Step &s) {
    unsigned head = PLACES;
    for (unsigned p = 0; p < w.q.used; p++)
        if (queue::stands(w.q, p) && (head == PLACES || w.q.number[p] < w.q.number[head])) head = p;
    if (head == PLACES || w.q.owner[head] != NOBODY) return "S9: kazoo's is admitted, and is not the head";
    use_lease(w, s.lease);
    w.owner[s.lease] = NOBODY;
    w.stage[s.lease] = queue::THERE;
    w.count[s.lease] = 1;
    w.created[s.lease] = ++w.q.version;
    return room(w, certain(w), s.lease, w.limit[w.writes - 1]) ? "S9: there is no room for kazoo's" : nullptr;
}

inline const char *commit_create(World &w, const Step &s) {
    unsigned l = s.lease;
    if (!w.writes || w.limit[w.writes - 1] == NO_POOL) return "the pool is not there";
    if (s.kind == COMMIT_FOREIGN_CREATE) return w.stage[l] ? "R2: a name is used again" : admit_kazoo(w, s);
    if (w.stage[l] == queue::UNUSED || !w.pending[l]) return "R1: a create comes twice, or was not asked for";
    if (!w.q.alive[w.owner[l]]) return "its session has ended";
    const char *why = w.place[l] ? admit(w, s) : w.owes ? "E6: an admission was done in part" : nullptr;
    if (why) return why;
    w.pending[l] = 0;
    w.created[l] = w.place[l] ? w.q.version : ++w.q.version;
    return nullptr;
}

inline const char *commit_delete(World &w, const Step &s) {
    unsigned l = s.lease;
    if (!stands(w, l)) return "it does not stand";
    if (s.kind == COMMIT_DELETE && w.owner[l] < NOBODY && !w.going[l]) return "Q6: its delete was not asked for";
    if (s.kind == COMMIT_EXPIRED_DELETE && w.stage[l] == queue::HELD) return "C5: it is held";
    w.foreign[l] = s.kind == COMMIT_FOREIGN_DELETE;
    // Its owner may not have heard yet that it was admitted: it will take its place for there still.
    if (w.foreign[l] && w.place[l]) w.q.foreign[w.place[l] - 1] = 1;
    w.deleted[l] = ++w.q.version;
    return nullptr;
}

// ---- answers ----

// The place has gone with the transaction.
inline void learn_made(World &w, unsigned l) {
    see(w.q, w.owner[l], w.created[l]);
    if (w.stage[l] != queue::MAKING && w.stage[l] != queue::UNSURE) return;
    w.stage[l] = queue::THERE;
    if (w.place[l]) w.q.stage[w.place[l] - 1] = queue::GONE;
}

// The server had come to what has changed.
inline const char *learn_refused(World &w, unsigned l) {
    unsigned p = w.place[l] - 1u, by = w.by[l], gone = w.q.deleted[p], written = by < w.writes ? w.written[by] : 0;
    if (!written && !gone) return "E6: it was refused, and nothing had changed";
    bool by_place = gone && (!written || gone < written); // one of the two is why: the first is certain
    see(w.q, w.owner[l], by_place ? gone : written);
    return nullptr;
}

inline const char *take_made(World &w, const Step &s) {
    unsigned l = s.lease;
    if (const char *why = take(w, s, s.kind == TAKE_TRY ? ASK_TRY : ASK_ADMIT, l)) return why;
    if (s.answer == DONE) {
        if (!w.created[l]) return "the answer came before the commit";
        learn_made(w, l);
    } else if (s.answer == LOST) {
        if (w.stage[l] == queue::MAKING) w.stage[l] = queue::UNSURE;
    } else {
        if (w.created[l]) return "the lease was made, and its owner was told that it was not";
        if (const char *why = w.place[l] ? learn_refused(w, l) : nullptr) return why;
        w.pending[l] = 0;
        w.stage[l] = queue::GONE;
    }
    return nullptr;
}

// Returns why nothing newer than what the client has seen shows this write, or NULL.
inline const char *is_shown(const World &w, const Step &s) {
    if (s.write >= w.writes) return "E6: the pool was never set so";
    return last_of(w, s.write) < w.q.seen[s.who] ? "E6: the client has seen a newer pool" : nullptr;
}

inline const char *take_get(World &w, const Step &s) {
    if (const char *why = take(w, s, ASK_GET, 0)) return why;
    if (s.answer == NO_NODE) w.known[s.who] = 0;
    if (s.answer != DONE) return nullptr;
    if (const char *why = is_shown(w, s)) return why;
    if (w.limit[s.write] != s.limit) return "E3: this write asked for another limit";
    see(w.q, s.who, w.written[s.write]);
    w.known[s.who] = static_cast<uint16_t>(s.write + 1);
    return nullptr;
}

// E14: all that it goes by was asked for behind the lease, as its answer came before.
inline void judge_tried(World &w, unsigned who, unsigned l) {
    if (w.owner[l] != who || w.stage[l] != queue::THERE || w.place[l] || !w.list[who].has(l)) return;
    unsigned known = w.known[who], listed = w.list_write[who];
    if (!known || w.limit[known - 1] == UNSET || (!w.queue_empty[l] && !is("queue_unseen"))) return;
    bool set = w.written[known - 1] > w.created[l] || w.written[listed - 1] > w.created[l];
    if (set && !is("set_unseen")) return;
    if (!room(w, w.list[who], l, w.limit[known - 1])) w.fits[l] = 1;
}

inline const char *take_list(World &w, const Step &s) {
    if (const char *why = take(w, s, ASK_LIST, 0)) return why;
    if (s.answer != DONE) return nullptr;
    if (const char *why = is_shown(w, s)) return why;
    unsigned v = w.q.seen[s.who] > w.written[s.write] ? w.q.seen[s.who] : w.written[s.write];
    v = queue::version_of(w, s.list, v, w.q.version);
    if (v > last_of(w, s.write)) return "E2: the pool was never so since what the client has seen";
    see(w.q, s.who, v);
    w.list[s.who] = s.list;
    w.list_write[s.who] = static_cast<uint16_t>(s.write + 1);
    memset(&w.list_first[s.who], 0, sizeof w.list_first[s.who]);
    for (unsigned p = 0; p < w.q.used; p++)
        if (w.q.owner[p] == s.who && is_first(w, p)) w.list_first[s.who].add(p);
    for (unsigned l = 0; l < w.used; l++) judge_tried(w, s.who, l);
    return nullptr;
}

// R1: what is not found is not there for certain behind a barrier only.
inline const char *take_look(World &w, const Step &s) {
    unsigned l = s.lease, seen = w.q.seen[s.who];
    if (const char *why = take(w, s, ASK_LOOK, l)) return why;
    if (s.answer == DONE) {
        if (!w.created[l] || (w.deleted[l] && w.deleted[l] <= seen)) return "E2: the lease was gone";
        see(w.q, s.who, w.created[l]);
        if (w.owner[l] == s.who) learn_made(w, l);
    } else if (s.answer == NO_NODE) {
        if (stands(w, l) && w.created[l] <= seen) return "E2: the lease was there";
        if (w.deleted[l] && w.created[l] <= seen) see(w.q, s.who, w.deleted[l]);
        bool gone = w.stage[l] == queue::THERE || w.settled[l] || is("unsettled");
        if (w.owner[l] == s.who && (w.stage[l] == queue::THERE || w.stage[l] == queue::UNSURE) && gone)
            w.stage[l] = queue::GONE;
    }
    return nullptr;
}

// Of several writes of a client's at one version, each may be the one that is answered.
inline const char *take_set(World &w, const Step &s) {
    bool asked = false, applied = false, refused = false;
    unsigned at = 0;
    for (const Set &set : w.sets) {
        bool its = set.state != FREE && set.who == s.who && is_asked(w, s.who, ASK_SET, set.write);
        if (!its || (asked && set.write != at)) continue;
        asked = true;
        at = set.write;
        applied = applied || set.state & APPLIED;
        refused = refused || !(set.state & APPLIED) || set.state & TWICE;
    }
    if (const char *why = asked ? take(w, s, ASK_SET, at) : "it was not asked for") return why;
    if (s.answer == DONE && !applied) return "E3: the answer came before the commit";
    bool untrue = s.answer != DONE && s.answer != LOST && !refused;
    return untrue ? "E3: it was written, and the client told otherwise" : nullptr;
}

inline const char *take_delete(World &w, const Step &s) {
    if (const char *why = take(w, s, ASK_DELETE, s.lease)) return why;
    if (s.answer != DONE && s.answer != NO_NODE) return nullptr;
    if (!w.deleted[s.lease]) return "Q6: the lease stands";
    see(w.q, s.who, w.deleted[s.lease]);
    if (w.stage[s.lease] == queue::LEAVING) w.stage[s.lease] = queue::GONE;
    return nullptr;
}

// ---- beliefs ----

// S9 of a lease by the shortcut. The limit may have changed since its list.
inline const char *judge_shortcut(const World &w, unsigned l) {
    unsigned limit = 0;
    for (unsigned i = 0; i < w.writes; i++)
        if (last_of(w, i) >= w.created[l] && w.limit[i] != NO_POOL && w.limit[i] > limit) limit = w.limit[i];
    for (unsigned p = 0; p < w.q.used; p++)
        if (queue::stands(w.q, p) && w.q.created[p] < w.created[l]) return "S9: it has overtaken somebody";
    return room(w, certain(w), l, limit) ? "S9: there is no room for it, or one of its slots is taken" : nullptr;
}

inline const char *hold(World &w, const Step &s) {
    unsigned l = s.lease;
    if (w.stage[l] != queue::THERE || w.owner[l] != s.who) return "E6: its owner does not know that it stands";
    if (!w.place[l] && !w.fits[l]) return "E14: what was read behind it does not agree";
    for (unsigned k = 0; k < w.used && !w.foreign[l]; k++) // what others have deleted is free before its owner knows
        if (w.counts[k] && w.numbers[k] & w.numbers[l] && w.created[k] > w.created[l])
            return "S3: a slot was held with a greater token";
    w.stage[l] = queue::HELD;
    const char *why = is_tried(w, l) && !w.foreign[l] && !w.deleted[l] ? judge_shortcut(w, l) : nullptr;
    w.counts[l] = 1;
    return why;
}

inline const char *leave(World &w, const Step &s) {
    if (w.stage[s.lease] != queue::HELD || w.owner[s.lease] != s.who) return "it is not held";
    w.stage[s.lease] = queue::LEAVING;
    return nullptr;
}

// Makes the step. Returns NULL, or why the rules do not allow it; then the world is of no more use.
inline const char *apply(World &w, const Step &s) {
    bool commits = s.kind >= COMMIT_MAKE && s.kind <= COMMIT_EXPIRED_DELETE;
    if (commits && (w.consumes || (w.owes && s.kind != COMMIT_CREATE))) return "E6: an admission was done in part";
    if (commits && w.writes == WRITES) return "there are too many writes";
    switch (s.kind) {
    case ASK_TRY: return ask_try(w, s);
    case ASK_ADMIT: return ask_admit(w, s);
    case ASK_GET:
    case ASK_LIST:
    case ASK_LOOK: return ask_read(w, s);
    case ASK_SET: return ask_set(w, s);
    case ASK_DELETE: return ask_delete(w, s);
    case COMMIT_MAKE: return commit_make(w, s);
    case COMMIT_SET:
    case COMMIT_FOREIGN_SET: return commit_set(w, s);
    case COMMIT_END: return commit_end(w);
    case COMMIT_CREATE:
    case COMMIT_FOREIGN_CREATE: return commit_create(w, s);
    case COMMIT_DELETE:
    case COMMIT_FOREIGN_DELETE:
    case COMMIT_EXPIRED_DELETE: return commit_delete(w, s);
    case TAKE_TRY:
    case TAKE_ADMIT: return take_made(w, s);
    case TAKE_GET: return take_get(w, s);
    case TAKE_LIST: return take_list(w, s);
    case TAKE_LOOK: return take_look(w, s);
    case TAKE_SET: return take_set(w, s);
    case TAKE_DELETE: return take_delete(w, s);
    case HOLD: return hold(w, s);
    case LEAVE: return leave(w, s);
    case KINDS: break;
    }
    return "there is no such step";
}

// ---- the queue's steps, and what they mean to leases ----

inline const char *end_session(const World &w, unsigned who) {
    for (unsigned l = 0; l < w.used; l++) {
        if (w.owner[l] != who || w.stage[l] == queue::UNUSED) continue;
        if (w.stage[l] == queue::HELD) return "C5: a lease of it is held";
        if (stands(w, l)) return "a lease of it stands";
    }
    return nullptr;
}

inline void pass_barrier(World &w, unsigned who) {
    for (unsigned l = 0; l < w.used; l++) {
        if (w.owner[l] != who || w.stage[l] == queue::UNUSED) continue;
        if (is_asked(w, who, ASK_TRY, l) || is_asked(w, who, ASK_ADMIT, l)) continue;
        bool unsure = w.stage[l] == queue::UNSURE;
        w.pending[l] = w.pending[l] && (unsure || w.pending[l] == LATE) ? LATE : 0; // R3: the session may move back
        if (unsure) w.settled[l] = 1;
    }
}

// E14: its answer came before this list.
inline void note_queue(World &w, const queue::Step &s) {
    static const queue::Set empty = {};
    bool is_empty = !memcmp(&s.list, &empty, sizeof empty);
    for (unsigned l = 0; l < w.used; l++)
        if (w.owner[l] == s.who && w.stage[l] == queue::THERE && is_empty) w.queue_empty[l] = 1;
}

inline const char *apply_queue(World &w, const queue::Step &s) {
    bool commits = s.kind >= queue::COMMIT_CREATE && s.kind <= queue::COMMIT_END;
    bool consumed = w.consumes && s.kind == queue::COMMIT_DELETE && s.place == w.consumes - 1u;
    if (commits && (w.owes || (w.consumes && !consumed))) return "E6: an admission was done in part";
    if (consumed) w.q.version--, w.consumes = 0; // with the lease
    const char *why = s.kind == queue::END_SESSION ? end_session(w, s.who) : nullptr;
    if (!why) why = queue::apply(w.q, s);
    if (why || s.answer != DONE) return why;
    if (s.kind == queue::TAKE_LIST) note_queue(w, s);
    if (s.kind == queue::TAKE_BARRIER) pass_barrier(w, s.who);
    if (s.kind == queue::END_SESSION) {
        for (unsigned l = 0; l < w.used; l++)
            if (w.owner[l] == s.who) w.pending[l] = 0;
    }
    return nullptr;
}

} // namespace leases

#endif
