// The rules of a lock's queue: Q1 to Q6, N6 and K1 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
// The world is one directory: the places in it as the servers have them, and what each client knows. A step is one
// request sent, one answer taken, one commit by the leader, or one belief that begins or ends. apply() moves the world
// by a step that the rules allow, and else says why they do not. It is meant for two uses: a search tries all steps
// (test/model/queue.cc), and a replay tries the steps of a trace.
//
// A list's answer shows the queue as it was at some moment, no older than what the client has seen before. So channels
// and servers need no state of their own.
#ifndef DV_MODEL_RULES_QUEUE_H
#define DV_MODEL_RULES_QUEUE_H

#include "queue_world.h"

namespace queue {

// ---- what is so ----

inline bool stands(const World &w, unsigned p) {
    return w.created[p] && !w.deleted[p];
}

// R3: its owner took it for never made, and it may yet come, or has come.
inline bool is_doubted(const World &w, unsigned p) {
    return w.stage[p] == GONE && !w.going[p] && (w.pending[p] == LATE || stands(w, p));
}

// Also of what else is made and deleted at versions of the queue.
template <class Any> bool stood_at(const Any &w, unsigned i, unsigned version) {
    return w.created[i] && w.created[i] <= version && (!w.deleted[i] || version < w.deleted[i]);
}

// Returns the first version from `v` on that shows the list; none: one that is still to come, after `last`.
template <class Any, unsigned N> unsigned version_of(const Any &w, const Bits<N> &list, unsigned v, unsigned last) {
    for (bool moved = true; moved;) {
        moved = false;
        for (unsigned i = 0; i < w.used; i++) {
            unsigned next = last + 1;
            if (stood_at(w, i, v) == list.has(i)) continue;
            if (!list.has(i) && w.deleted[i]) next = w.deleted[i];
            if (list.has(i) && w.created[i] > v) next = w.created[i];
            if (next > last) return next;
            v = next;
            moved = true;
        }
    }
    return v;
}

// K1, Q3: a writer waits for all before it, the others for those that do not read.
inline bool blocks(const World &w, unsigned other, unsigned p) {
    if (is("reader_passes") && w.mode[p] == READER) return false;
    return other != p && (w.mode[p] == WRITER || w.mode[other] != READER) && w.number[other] < w.number[p];
}

inline bool is_asked(const World &w, unsigned who, Kind kind, unsigned place) {
    for (unsigned i = 0; i < ASKED && w.asked[who][i]; i++)
        if (w.asked[who][i] == kind + 1 && w.asked_place[who][i] == place) return true;
    return false;
}

inline unsigned count_asked(const World &w, unsigned who, Kind kind) {
    unsigned count = 0;
    for (unsigned i = 0; i < ASKED && w.asked[who][i]; i++) count += w.asked[who][i] == kind + 1;
    return count;
}

// Returns 1 + the index of the last one that blocks the place, or 0.
inline uint16_t nearest(const World &w, const Set &list, unsigned p) {
    unsigned found = 0;
    for (unsigned q = 0; q < w.used; q++) {
        if (!list.has(q) || !blocks(w, q, p)) continue;
        bool later = found && w.number[q] > w.number[found - 1];
        if (!found || later != is("waits_for_first")) found = q + 1;
    }
    return static_cast<uint16_t>(found);
}

inline bool excluded(const World &w, unsigned a, unsigned b) {
    return w.mode[a] != READER || w.mode[b] != READER;
}

// Returns what must never be so, or NULL. What somebody else has deleted is excused.
inline const char *wrong(const World &w) {
    for (unsigned p = 0; p < w.used; p++) {
        bool held = w.stage[p] == HELD && !w.foreign[p];
        bool waits =
            w.watched[p] && w.watched[p] <= PLACES && w.stage[p] == THERE && stands(w, p) && w.mode[p] != READER;
        if (held && !stands(w, p)) return "a place is held that does not stand";
        for (unsigned q = 0; (held || waits) && q < w.used; q++) {
            bool also = q != p && w.stage[q] == HELD && !w.foreign[q];
            if (held && also && excluded(w, p, q)) return "two clients hold that exclude each other";
            if (held && stands(w, q) && w.number[q] < w.number[p] && q != p && excluded(w, p, q) &&
                (w.mode[p] != PLAIN || w.mode[q] != READER))
                return "a client holds behind a place that blocks it";
            bool same = waits && q > p && w.watched[q] == w.watched[p] && w.stage[q] == THERE && stands(w, q);
            if (same && w.mode[q] != READER) return "one release wakes two waiters";
        }
    }
    return nullptr;
}

// ---- requests ----

inline const char *ask(World &w, const Step &s) {
    for (unsigned i = 0; i < ASKED; i++) { // its session may have ended, without its knowledge
        if (w.asked[s.who][i]) continue;
        w.asked[s.who][i] = static_cast<uint8_t>(s.kind + 1);
        w.asked_place[s.who][i] = static_cast<uint16_t>(s.place);
        return nullptr;
    }
    return "too much is under way";
}

inline void use_place(World &w, unsigned p) {
    if (w.used <= p) w.used = static_cast<uint16_t>(p + 1);
}

inline const char *ask_create(World &w, const Step &s) {
    use_place(w, s.place);
    bool refused = w.stage[s.place] == GONE && w.owner[s.place] == s.who && !w.pending[s.place] && !w.created[s.place];
    if (w.stage[s.place] != UNUSED && !refused) return "Q1: a name is used again"; // B4: by itself, after a multi
    if (const char *why = ask(w, s)) return why;
    w.stage[s.place] = MAKING;
    w.owner[s.place] = static_cast<uint8_t>(s.who);
    w.mode[s.place] = s.mode;
    w.pending[s.place] = 1;
    return nullptr;
}

// Q4: some place of this client waits, and its last list has the other right before it. One that has gone may have been
// in a list before, if the last one was for something else.
inline const char *ask_watch(World &w, const Step &s) {
    bool waits = false, gone = w.deleted[s.place] && w.deleted[s.place] <= w.seen[s.who];
    for (unsigned p = 0; p < w.used; p++) {
        bool was_before = w.before[p] == s.place + 1 || (gone && blocks(w, s.place, p));
        waits = waits || (w.owner[p] == s.who && w.stage[p] == THERE && was_before);
    }
    return waits ? ask(w, s) : "Q4: it stands right before no place of the client's";
}

inline const char *ask_delete(World &w, const Step &s) {
    bool knows = w.stage[s.place] == THERE || w.stage[s.place] == LEAVING;
    knows = knows || (w.stage[s.place] == HELD && is("deletes_while_held"));
    knows = knows || (w.stage[s.place] == GONE && w.going[s.place]);   // B4: again, after a multi
    knows = knows || (w.stage[s.place] == GONE && w.foreign[s.place]); // a list for another place of its has shown it
    bool late = w.stage[s.place] == GONE && stands(w, s.place) && w.created[s.place] <= w.seen[s.who]; // R3
    if (w.owner[s.place] != s.who) return "Q6: it is somebody else's place";
    if (!knows && !late) return w.stage[s.place] == HELD ? "Q6: it is held" : "Q6: it is not known to stand";
    if (const char *why = ask(w, s)) return why;
    if (w.stage[s.place] == THERE || late) w.stage[s.place] = LEAVING;
    w.watched[s.place] = 0;
    w.going[s.place] = 1;
    return nullptr;
}

// ---- commits ----

// Requests of a session are carried out in their order. One whose answer was lost may come at any time.
inline bool comes_first(const World &w, unsigned who, Kind kind, unsigned place) {
    if (!is_asked(w, who, kind, place)) return true;
    for (unsigned i = 0; i < ASKED && w.asked[who][i]; i++) {
        unsigned p = w.asked_place[who][i];
        if (w.asked[who][i] == kind + 1 && p == place) return true;
        if (w.asked[who][i] == ASK_CREATE + 1 && w.pending[p]) return false;
        if (w.asked[who][i] == ASK_DELETE + 1 && stands(w, p)) return false;
    }
    return true;
}

// A create that the leader has passed over was refused.
inline void pass_over(World &w, unsigned who, unsigned place) {
    if (!is_asked(w, who, ASK_CREATE, place)) return;
    for (unsigned i = 0; i < ASKED && w.asked[who][i]; i++) {
        if (w.asked[who][i] != ASK_CREATE + 1) continue;
        if (w.asked_place[who][i] == place) return;
        w.pending[w.asked_place[who][i]] = 0;
    }
}

inline const char *commit_create(World &w, const Step &s) {
    use_place(w, s.place);
    if (w.owner[s.place] < NOBODY && w.stage[s.place] != UNUSED) {
        if (!w.pending[s.place]) return "Q1: a create comes twice, or was not asked for";
        if (!w.alive[w.owner[s.place]]) return "its session has ended";
        pass_over(w, w.owner[s.place], s.place);
    } else {
        if (w.stage[s.place] != UNUSED) return "a name is used again";
        w.owner[s.place] = NOBODY;
        w.stage[s.place] = THERE;
        w.mode[s.place] = s.mode;
    }
    bool worn = s.number >= NUMBER_MAX && w.last_number >= NUMBER_MAX; // the last ones come again and again
    if (w.numbered && s.number <= w.last_number && !worn) return "N6: the number has not grown";
    w.last_number = w.number[s.place] = s.number;
    w.numbered = 1;
    w.pending[s.place] = 0;
    w.created[s.place] = ++w.version;
    return nullptr;
}

inline const char *commit_delete(World &w, const Step &s) {
    unsigned p = s.place, owner = w.owner[p];
    if (!stands(w, p)) return "it does not stand";
    if (s.kind == COMMIT_DELETE && owner < NOBODY && !w.going[p]) return "Q6: its delete was not asked for";
    if (s.kind == COMMIT_EXPIRED_DELETE && w.stage[p] == HELD) return "C5: it is held";
    w.foreign[p] = s.kind == COMMIT_FOREIGN_DELETE;
    w.deleted[p] = ++w.version;
    return nullptr;
}

// K2: numbers begin at 0 again.
inline const char *commit_end(World &w) {
    for (unsigned p = 0; p < w.used; p++)
        if (stands(w, p)) return "K2: the directory is not empty";
    w.numbered = 0;
    return nullptr;
}

inline const char *end_session(World &w, const Step &s) {
    if (!w.alive[s.who]) return "it has ended";
    for (unsigned p = 0; p < w.used; p++) {
        if (w.owner[p] != s.who || w.stage[p] == UNUSED) continue;
        if (w.stage[p] == HELD) return "C5: a place of it is held";
        if (stands(w, p)) return "a place of it stands";
    }
    for (unsigned p = 0; p < w.used; p++) {
        if (w.owner[p] != s.who || w.stage[p] == UNUSED) continue;
        w.pending[p] = 0;
    }
    w.alive[s.who] = 0;
    return nullptr;
}

// The client hears of it.
inline const char *lose_session(World &w, const Step &s) {
    if (w.alive[s.who]) return "its session has not ended";
    for (unsigned p = 0; p < w.used; p++) {
        if (w.owner[p] != s.who || w.stage[p] == UNUSED) continue;
        if (w.stage[p] == HELD) return "C5: a place of it is held";
        w.stage[p] = GONE;
        w.watched[p] = 0;
    }
    return nullptr;
}

// ---- answers ----

inline void see(World &w, unsigned who, unsigned version) {
    if (w.seen[who] < version) w.seen[who] = static_cast<uint16_t>(version);
}

// Answers come in the order of the requests, but for those that no server has given.
inline const char *take(World &w, const Step &s, Kind asked) {
    unsigned at = 0;
    while (s.answer == LOST && at + 1 < ASKED && w.asked[s.who][at + 1] &&
           (w.asked[s.who][at] != asked + 1 || w.asked_place[s.who][at] != s.place))
        at++;
    if (w.asked[s.who][at] != asked + 1 || w.asked_place[s.who][at] != s.place)
        return "it was not asked for, or an answer is still to come before it";
    for (unsigned i = at; i + 1 < ASKED && w.asked[s.who][i]; i++) {
        w.asked[s.who][i] = w.asked[s.who][i + 1];
        w.asked_place[s.who][i] = w.asked_place[s.who][i + 1];
    }
    w.asked[s.who][ASKED - 1] = 0;
    w.asked_place[s.who][ASKED - 1] = 0;
    return nullptr;
}

inline const char *take_create(World &w, const Step &s) {
    if (const char *why = take(w, s, ASK_CREATE)) return why;
    uint8_t &stage = w.stage[s.place];
    if (s.answer == DONE) {
        if (!w.created[s.place]) return "the answer came before the commit";
        if (w.number[s.place] != s.number) return "N6: it is another number";
        see(w, s.who, w.created[s.place]);
        if (stage == MAKING) stage = THERE;
    } else if (s.answer == LOST) {
        if (stage == MAKING) stage = is("lost_is_undone") ? GONE : UNSURE;
    } else {
        if (w.created[s.place]) return "the place was made, and its owner was told that it was not";
        w.pending[s.place] = 0;
        stage = GONE;
    }
    return nullptr;
}

// What one place makes of a list. R1: after a lost answer it counts only behind a barrier, and if asked for behind it.
inline void use_list(World &w, const Set &list, unsigned p) {
    if (list.has(p)) {
        if (w.stage[p] == UNSURE && (w.settled[p] == 1 || is("no_barrier"))) w.stage[p] = THERE;
        w.listed[p] = 1;
        w.before[p] = nearest(w, list, p);
    } else if (w.stage[p] == UNSURE) {
        if (w.settled[p] == 1 || is("no_barrier")) w.stage[p] = GONE;
    } else if (w.stage[p] == THERE) {
        if (w.deleted[p]) w.stage[p] = GONE; // Q1: a list behind the create has it, unless somebody deleted it
    }
}

// Counts a list that was asked for before the barrier's answer came. Returns whether this one was not.
inline bool is_behind(World &w, unsigned p) {
    if (w.settled[p] < 2) return true;
    w.settled[p]--;
    return false;
}

inline const char *take_list(World &w, const Step &s) {
    if (const char *why = take(w, s, ASK_LIST)) return why;
    for (unsigned p = 0; s.answer != DONE && p < w.used; p++)
        if (w.owner[p] == s.who) is_behind(w, p);
    if (s.answer != DONE) return nullptr;
    unsigned v = version_of(w, s.list, w.seen[s.who], w.version);
    if (v > w.version) return "Q1: the queue was never so since what the client has seen";
    see(w, s.who, v);
    for (unsigned p = 0; p < w.used; p++) {
        if (w.stage[p] == UNUSED || w.owner[p] != s.who) continue;
        if (w.stage[p] == MAKING && s.list.has(p)) return "Q1: the list has a place whose create is not answered";
        bool behind = is_behind(w, p);
        if (behind || w.stage[p] != UNSURE) use_list(w, s.list, p);
    }
    return nullptr;
}

inline const char *take_watch(World &w, const Step &s) {
    unsigned q = s.place;
    if (const char *why = take(w, s, ASK_WATCH)) return why;
    if (s.answer == DONE) {
        if (!w.created[q] || (w.deleted[q] && w.deleted[q] <= w.seen[s.who])) return "Q4: the node was gone";
        see(w, s.who, w.created[q]);
    } else if (s.answer == NO_NODE) {
        if (!w.deleted[q]) return "Q4: the node was there";
        see(w, s.who, w.deleted[q]);
    }
    for (unsigned p = 0; p < w.used; p++) {
        if (w.stage[p] != THERE || w.owner[p] != s.who || w.before[p] != q + 1) continue;
        bool in_vain = s.answer == NO_NODE && is("watch_by_exists"); // for a node that never comes
        w.watched[p] = static_cast<uint16_t>(s.answer == DONE ? q + 1 : in_vain ? PLACES + 1 : 0);
        if (!w.watched[p]) w.listed[p] = 0;
    }
    return nullptr;
}

inline const char *take_delete(World &w, const Step &s) {
    if (const char *why = take(w, s, ASK_DELETE)) return why;
    bool is_proof = s.answer == DONE || s.answer == NO_NODE; // a refused one may have been part of a multi
    if (is_proof && !w.deleted[s.place]) return "Q6: the place stands";
    if (is_proof) see(w, s.who, w.deleted[s.place]);
    bool gone = is_proof || (s.answer == LOST && is("lost_delete_is_done"));
    if (gone && w.stage[s.place] == LEAVING) w.stage[s.place] = GONE;
    return nullptr;
}

inline const char *take_barrier(World &w, const Step &s) {
    if (const char *why = take(w, s, ASK_BARRIER)) return why;
    for (unsigned p = 0; s.answer == DONE && p < w.used; p++) {
        if (w.owner[p] != s.who || w.stage[p] == UNUSED || is_asked(w, s.who, ASK_CREATE, p)) continue;
        bool unsure = w.stage[p] == UNSURE;
        w.pending[p] = w.pending[p] && (unsure || w.pending[p] == LATE) ? LATE : 0; // R3: the session may move back
        if (unsure && !w.settled[p]) w.settled[p] = static_cast<uint8_t>(1 + count_asked(w, s.who, ASK_LIST));
    }
    return nullptr;
}

// ---- beliefs ----

inline const char *wake(World &w, const Step &s) {
    unsigned q = w.watched[s.place];
    if (!q) return "it has no watch";
    if (q > PLACES || !w.deleted[q - 1]) return "Q4: the node has not gone";
    see(w, w.owner[s.place], w.deleted[q - 1]);
    w.watched[s.place] = 0;
    w.listed[s.place] = 0;
    return nullptr;
}

inline const char *hold(World &w, const Step &s) {
    unsigned p = s.place;
    if (w.stage[p] != THERE || w.owner[p] != s.who) return "Q3: its owner does not know that it stands";
    bool unseen = is("held_unseen");
    if (!w.listed[p] && !unseen) return "Q3: no list has shown it";
    if (w.number[p] >= NUMBER_LIMIT) return "N6: numbers no longer grow";
    if (w.before[p] && !unseen) return "Q3: the last list has somebody before it";
    w.stage[p] = HELD;
    w.watched[p] = 0;
    return nullptr;
}

inline const char *leave(World &w, const Step &s) {
    if (w.stage[s.place] != HELD || w.owner[s.place] != s.who) return "it is not held";
    w.stage[s.place] = LEAVING;
    return nullptr;
}

// Makes the step. Returns NULL, or why the rules do not allow it; then the world is of no more use.
inline const char *apply(World &w, const Step &s) {
    switch (s.kind) {
    case LOSE_SESSION: return lose_session(w, s);
    case BEGIN_SESSION:
        if (w.alive[s.who]) return "it has begun";
        w.alive[s.who] = 1;
        return nullptr;
    case ASK_CREATE: return ask_create(w, s);
    case ASK_LIST:
    case ASK_BARRIER: return ask(w, s);
    case ASK_WATCH: return ask_watch(w, s);
    case ASK_DELETE: return ask_delete(w, s);
    case COMMIT_CREATE: return commit_create(w, s);
    case COMMIT_DELETE:
    case COMMIT_FOREIGN_DELETE:
    case COMMIT_EXPIRED_DELETE: return commit_delete(w, s);
    case COMMIT_END: return commit_end(w);
    case END_SESSION: return end_session(w, s);
    case TAKE_CREATE: return take_create(w, s);
    case TAKE_LIST: return take_list(w, s);
    case TAKE_WATCH: return take_watch(w, s);
    case TAKE_DELETE: return take_delete(w, s);
    case TAKE_BARRIER: return take_barrier(w, s);
    case WOKEN: return wake(w, s);
    case HOLD: return hold(w, s);
    case LEAVE: return leave(w, s);
    case KINDS: break;
    }
    return "there is no such step";
}

} // namespace queue

#endif
