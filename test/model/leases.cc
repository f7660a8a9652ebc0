// A search of the rules of a semaphore's leases: test/model/rules/leases.h. SPDX-License-Identifier: Apache-2.0
//
//   leases                   the rules, then each broken variant: the test model.leases
//   leases --rules           the rules alone
//   leases --long            the rules alone, with more faults: some seconds, a gigabyte
//   leases --list            the variants
//   leases --variant NAME    one of them, with the way to its fault
//
// Clients share a pool of one or two slots. Each wants one slot once, by the queue or by the shortcut; where the
// shortcut fails it goes to the queue. In some pools somebody sets the limit, or one of the clients is kazoo's. There
// are two faults. A connection breaks: what is under way gets no answer, and is carried out now, later or never. Or a
// session ends. Behind a broken connection, but not with --long, the leader may hear late of one that the client gave
// up: it then carries out what it had passed over, and refuses the client's writes, so that the connection ends (R3).
//
// The search visits every order of steps. It claims, of all that the rules allow:
//
//  1. No two clients hold one slot (S2), and whoever holds has its lease (S1).
//  2. With each lease that is made, or begins to be believed in, all are within the limit that is in force, or was since
//     the shortcut's lease was made (S9).
//  3. Nobody in the queue is overtaken (S9), and a slot's tokens grow (S3).
//  4. From each state there is a way without a fault on which all clients end, and leave nothing.
//
// A client does in its turn all that it can. A list or a limit may be any since what the client has seen. Left out:
// counts above one, and writes of the limit by contenders (E3).
#define QUEUE_PLACES 6
#define QUEUE_CLIENTS 3
#define QUEUE_ASKED 4
#define LEASES_LEASES 8
#define LEASES_WRITES 8
#define LEASES_SETS 1
#include <algorithm>
#include <initializer_list>
#include <vector>

#include "leases_state.h"

namespace {

const std::vector<model::Variant> VARIANTS = {
    {"early_list", "goes by a list that came before it was first", "S9", "kazoo", 0},
    {"unversioned", "is admitted at any version of the limit", "S9", nullptr, 0},
    {"queue_unseen", "takes the shortcut without a look at the queue", "overtaken", nullptr, 0},
    {"set_unseen", "takes the shortcut in a pool that was set since", "S3", nullptr, 0},
    {"unsettled", "takes what it does not find for never done, without a barrier", "left", "both", 0},
    {"no_late_look", "never looks again for what it took for never made", "waits for ever", "both", 0},
    {"late_look_at_once", "looks again without a barrier", "left", "both", 0},
    {"deletes_while_held", "deletes its lease before its belief has ended", "S1", nullptr, 0},
};

// ---- steps ----

class Steps {
  public:
    // The steps are put into `to`.
    Steps(const State &state, std::vector<Next> &to) : all(to), from(state) {}
    // What a client does in its turn comes before all else.
    void find() {
        all.clear();
        for (unsigned who = 0; who < CLIENTS; who++) {
            if (from.road[who] < AS_KAZOO) turn(who);
            if (!all.empty()) return;
        }
        for (unsigned who = 0; who < CLIENTS; who++) {
            if (from.road[who] == AS_KAZOO) kazoo(who);
            if (from.road[who] >= AS_KAZOO) continue;
            commits(who);
            if (from.w.q.asked[who][0]) answer(who);
            beliefs(who);
            if (from.moved[who]) break_connection(who, true);
            if (from.faults) break_connection(who, false), end_session(who);
        }
        resize();
    }

  private:
    std::vector<Next> &all;
    const State &from;

    static Step step(Kind kind, unsigned who, unsigned lease = 0) {
        Step s = {};
        s.kind = kind;
        s.who = who;
        s.lease = lease;
        s.count = 1;
        s.numbers = 1;
        return s;
    }
    static queue::Step queue_step(queue::Kind kind, unsigned who, unsigned place = 0) {
        queue::Step s = {};
        s.kind = kind;
        s.who = who;
        s.place = place;
        return s;
    }
    Next next(unsigned kind, unsigned who, bool fair, bool of_queue = false) const {
        return {from, {of_queue, static_cast<uint8_t>(kind), static_cast<uint8_t>(who)}, fair, nullptr, false};
    }
    // Returns the state behind a step that the rules allow, or NULL. What breaks an invariant is kept as a fault.
    State *keep(Next &n, const char *why) {
        if (why && why[0] != 'S') return nullptr;
        n.fault = why ? why : wrong(n.world.w);
        all.push_back(n);
        return &all.back().world;
    }
    State *attempt(const Step &s, bool fair = true) {
        Next n = next(s.kind, s.who, fair);
        return keep(n, apply(n.world.w, s));
    }
    State *attempt(const queue::Step &s, bool fair = true) {
        Next n = next(s.kind, s.who, fair, true);
        return keep(n, apply_queue(n.world.w, s));
    }
    bool asks(unsigned who, unsigned kind) const {
        for (unsigned i = 0; i < queue::ASKED; i++)
            if (from.w.q.asked[who][i] == kind + 1) return true;
        return false;
    }
    bool asks(unsigned who, Kind kind) const {
        return asks(who, unsigned(queue::KINDS) + kind);
    }
    // Sends several requests in one turn.
    void send(unsigned who, std::initializer_list<Step> steps, const queue::Step *first, const queue::Step *second) {
        Next n = next(steps.begin()->kind, who, true);
        const char *why = first ? apply_queue(n.world.w, *first) : nullptr;
        if (!why && second && first) why = apply_queue(n.world.w, *second);
        bool between = second && !first;
        for (const Step &s : steps) {
            if (!why && between && s.kind == ASK_LIST) why = apply_queue(n.world.w, *second);
            if (!why) why = apply(n.world.w, s);
        }
        keep(n, why);
    }
    unsigned place_of(unsigned who) const {
        for (unsigned p = 0; p < PLACES; p++)
            if (from.w.q.owner[p] == who && from.w.q.stage[p] != queue::UNUSED && from.w.q.stage[p] < queue::LEAVING)
                return p;
        return PLACES;
    }
    unsigned lease_of(unsigned who) const {
        for (unsigned l = 0; l < LEASES; l++)
            if (from.w.owner[l] == who && from.w.stage[l] != queue::UNUSED && from.w.stage[l] != queue::GONE) return l;
        return LEASES;
    }
    template <class Stages> static unsigned unused(const Stages &stage) {
        unsigned i = 0;
        while (i < sizeof stage && stage[i] != queue::UNUSED) i++;
        return i;
    }

    // ---- what a client does ----

    void begin(unsigned who) {
        unsigned p = unused(from.w.q.stage), l = unused(from.w.stage);
        if (from.done[who]) return;
        queue::Step list = queue_step(queue::ASK_LIST, who);
        if (from.road[who] == BY_SHORTCUT && l < LEASES) {
            send(who, {step(ASK_TRY, who, l), step(ASK_GET, who), step(ASK_LIST, who)}, nullptr, &list);
            if (!all.empty()) all.back().world.road[who] = BY_QUEUE;
        } else if (p < PLACES) {
            queue::Step create = queue_step(queue::ASK_CREATE, who, p);
            send(who, {step(ASK_GET, who), step(ASK_LIST, who)}, &create, &list);
        }
    }
    void turn(unsigned who) {
        unsigned p = place_of(who), l = lease_of(who);
        if (l < LEASES) turn_of_lease(who, l);
        if (all.empty() && p < PLACES) turn_of_place(who, p, l);
        if (p == PLACES && l == LEASES && !from.w.q.asked[who][0]) begin(who);
        if (all.empty()) look_again(who);
    }
    // R3.
    void look_again(unsigned who) {
        const World &w = from.w;
        if (from.looks[who] == WANTS_BARRIER && !asks(who, queue::ASK_BARRIER))
            attempt(queue_step(queue::ASK_BARRIER, who));
        if (from.looks[who] == WANTS_LISTS && !asks(who, queue::ASK_LIST) && !asks(who, ASK_LOOK)) look_late(who);
        for (unsigned p = 0; p < PLACES && !asks(who, queue::ASK_DELETE); p++) {
            bool found = queue::is_doubted(w.q, p) && is_found_late(from, who, w.q.created[p]);
            if (w.q.owner[p] == who && (found || w.q.stage[p] == queue::LEAVING))
                attempt(queue_step(queue::ASK_DELETE, who, p));
        }
        for (unsigned l = 0; l < LEASES && !asks(who, ASK_DELETE); l++)
            if (w.owner[l] == who && is_doubted_lease(w, l) && is_found_late(from, who, w.created[l]))
                attempt(step(ASK_DELETE, who, l));
    }
    void look_late(unsigned who) {
        Next n = next(queue::ASK_LIST, who, true, true);
        const char *why = apply_queue(n.world.w, queue_step(queue::ASK_LIST, who));
        for (unsigned l = 0; l < LEASES && !why; l++)
            if (from.w.owner[l] == who && is_doubted_lease(from.w, l)) why = apply(n.world.w, step(ASK_LOOK, who, l));
        n.world.looks[who] = LOOKS;
        keep(n, why);
    }
    void turn_of_lease(unsigned who, unsigned l) {
        const World &w = from.w;
        if (w.stage[l] == queue::UNSURE && !from.w.q.asked[who][0])
            w.settled[l] || is("unsettled") ? attempt(step(ASK_LOOK, who, l))
                                            : attempt(queue_step(queue::ASK_BARRIER, who));
        if (w.stage[l] == queue::THERE) {
            if (State *n = attempt(step(HOLD, who, l))) n->done[who] = 1;
            bool missed = all.empty() && !w.place[l] && !w.q.asked[who][0];
            if (missed) attempt(step(ASK_DELETE, who, l)); // E14
        }
        bool leaves = w.stage[l] == queue::LEAVING || (w.stage[l] == queue::HELD && is("deletes_while_held"));
        if (leaves && !asks(who, ASK_DELETE)) attempt(step(ASK_DELETE, who, l));
    }
    void turn_of_place(unsigned who, unsigned p, unsigned l) {
        const queue::World &q = from.w.q;
        bool busy = asks(who, queue::ASK_LIST) || asks(who, queue::ASK_WATCH) || asks(who, queue::ASK_BARRIER);
        if (q.stage[p] == queue::UNSURE && !busy)
            attempt(queue_step(q.settled[p] ? queue::ASK_LIST : queue::ASK_BARRIER, who, p));
        if (q.stage[p] != queue::THERE || l < LEASES) return;
        if (is_first(from.w, p)) {
            admit(who, p);
            if (all.empty() && !asks(who, ASK_GET) && !asks(who, ASK_LIST))
                send(who, {step(ASK_GET, who), step(ASK_LIST, who)}, nullptr, nullptr);
        } else if (!busy) {
            if (!q.listed[p]) attempt(queue_step(queue::ASK_LIST, who, p));
            else if (!q.watched[p]) attempt(queue_step(queue::ASK_WATCH, who, q.before[p] - 1u));
        }
    }
    // It goes by the list that has just come.
    void admit(unsigned who, unsigned p) {
        unsigned l = unused(from.w.stage), known = from.w.known[who];
        if (l == LEASES || !known || asks(who, ASK_LIST) || asks(who, ASK_GET)) return;
        if (is("early_list") && !from.w.list_write[who]) return;
        for (unsigned slot = 0; slot < 2; slot++) {
            Step s = step(ASK_ADMIT, who, l);
            s.place = p;
            s.numbers = 1u << slot;
            s.number = from.w.number[known - 1];
            s.limit = from.w.limit[known - 1];
            if (attempt(s)) return; // the lowest that is free
        }
    }

    // ---- what the leader does ----

    void commits(unsigned who) {
        const World &w = from.w;
        bool may_come = from.moved[who] || from.may_move;
        for (unsigned p = 0; p < PLACES; p++) {
            if (w.q.stage[p] == queue::UNUSED || w.q.owner[p] != who) continue;
            queue::Step s = queue_step(queue::COMMIT_CREATE, who, p);
            s.number = w.q.last_number + 1;
            if (w.q.pending[p] == LATE) come_late(who, may_come ? attempt(s, false) : nullptr);
            if (from.moved[who]) continue;
            if (w.q.pending[p] && w.q.pending[p] != LATE) attempt(s, queue::is_asked(w.q, who, queue::ASK_CREATE, p));
            if (w.q.going[p])
                attempt(queue_step(queue::COMMIT_DELETE, who, p), queue::is_asked(w.q, who, queue::ASK_DELETE, p));
        }
        for (unsigned l = 0; l < LEASES; l++) {
            if (w.stage[l] == queue::UNUSED || w.owner[l] != who) continue;
            bool late = w.pending[l] == LATE, comes = late ? may_come : w.pending[l] && !from.moved[who];
            State *n = nullptr;
            if (comes && w.place[l]) n = transact(who, l);
            if (comes && !w.place[l]) n = attempt(step(COMMIT_CREATE, who, l), is_asked(w, who, ASK_TRY, l));
            if (late) come_late(who, n);
            if (w.going[l] && !from.moved[who]) attempt(step(COMMIT_DELETE, who, l), is_asked(w, who, ASK_DELETE, l));
        }
    }
    // R3: the leader hears late of a connection that the client has given up. It refuses the client's writes now.
    void come_late(unsigned who, State *n) {
        if (!n) return;
        if (!n->moved[who]) n->may_move--;
        n->moved[who] = 1;
    }
    // E6. The server looks at the version and at the place alone.
    State *transact(unsigned who, unsigned l) {
        Next n = next(COMMIT_CREATE, who, is_asked(from.w, who, ASK_ADMIT, l));
        Step set = step(COMMIT_SET, who, l), create = step(COMMIT_CREATE, who, l);
        set.limit = from.w.limit[from.w.by[l] - 1];
        create.same = true;
        if (n.world.w.writes == WRITES || apply(n.world.w, set)) return nullptr;
        const char *why = apply(n.world.w, create);
        if (!why) why = apply_queue(n.world.w, queue_step(queue::COMMIT_DELETE, who, from.w.place[l] - 1u));
        return keep(n, why);
    }
    // It counts the leases at the head, makes its own, leaves the queue, and releases.
    void kazoo(unsigned who) {
        const World &w = from.w;
        unsigned p = from.kazoo_place, l = from.kazoo_lease, taken = 0;
        State *n = nullptr;
        for (unsigned k = 0; k < LEASES; k++) taken += stands(w, k);
        bool first = from.kazoo == STANDS && taken < w.limit[w.writes - 1u];
        for (unsigned q = 0; q < PLACES; q++)
            first = first && (!queue::stands(w.q, q) || w.q.number[q] >= w.q.number[p]);
        queue::Step of_queue = queue_step(from.kazoo == WAITS ? queue::COMMIT_CREATE : queue::COMMIT_DELETE, who, p);
        Step create = step(COMMIT_FOREIGN_CREATE, who, unused(w.stage));
        create.numbers = 0;
        of_queue.number = w.q.last_number + 1;
        if (from.kazoo == WAITS) of_queue.place = unused(w.q.stage);
        if (from.done[who] || of_queue.place == PLACES || create.lease == LEASES) return;
        Next counts = next(COUNTS, who, true);
        if (first) n = keep(counts, nullptr);
        if (from.kazoo == WAITS || from.kazoo == LEAVES_QUEUE) n = attempt(of_queue);
        if (from.kazoo == ADMITS) n = attempt(create);
        if (from.kazoo == RELEASES) n = attempt(step(COMMIT_DELETE, who, l));
        if (!n) return;
        n->done[who] = n->kazoo == RELEASES;
        if (n->kazoo == WAITS) n->kazoo_place = static_cast<uint8_t>(of_queue.place);
        if (n->kazoo == ADMITS) n->kazoo_lease = static_cast<uint8_t>(create.lease);
        n->kazoo++;
    }
    void resize() {
        Step s = step(COMMIT_FOREIGN_SET, 0);
        s.limit = from.may_resize;
        if (!from.may_resize) return;
        if (State *n = attempt(s, false)) n->may_resize = 0;
    }

    // ---- answers ----

    void answer(unsigned who) {
        static const queue::Kind of_queue[] = {queue::TAKE_CREATE, queue::TAKE_LIST, queue::TAKE_WATCH,
                                               queue::TAKE_DELETE, queue::TAKE_BARRIER};
        unsigned asked = from.w.q.asked[who][0] - 1u, subject = from.w.q.asked_place[who][0];
        if (asked < queue::KINDS) answer_of_queue(queue_step(of_queue[asked - queue::ASK_CREATE], who, subject));
        else answer_of_pool(step(static_cast<Kind>(asked - queue::KINDS + TAKE_TRY - ASK_TRY), who, subject));
    }
    void answer_of_queue(queue::Step s) {
        s.number = from.w.q.number[s.place];
        if (s.kind == queue::TAKE_LIST) {
            for (unsigned v = from.w.q.seen[s.who]; v <= from.w.q.version; v++) {
                memset(&s.list, 0, sizeof s.list);
                for (unsigned p = 0; p < PLACES; p++)
                    if (queue::stood_at(from.w.q, p, v)) s.list.add(p);
                note_look(s.who, attempt(s));
            }
            return;
        }
        State *n = attempt(s);
        if (n && s.kind == queue::TAKE_BARRIER) note_barrier(s.who, *n);
        if (s.kind != queue::TAKE_WATCH && s.kind != queue::TAKE_DELETE) return;
        s.answer = queue::NO_NODE;
        attempt(s);
    }
    void note_barrier(unsigned who, State &n) const {
        if (n.moved[who]) return; // else nothing of the client's has come behind it yet
        if (n.looks[who] == WANTS_BARRIER) n.looks[who] = WANTS_LISTS;
        for (unsigned p = 0; p < PLACES; p++)
            if (n.w.q.owner[p] == who) queue::see(n.w.q, who, n.w.q.created[p]);
        for (unsigned l = 0; l < LEASES; l++)
            if (n.w.owner[l] == who) queue::see(n.w.q, who, n.w.created[l]);
    }
    // Where its place has gone, it enters the queue again.
    static void note_refused(State &n, unsigned l) {
        unsigned p = n.w.place[l] - 1u, gone = n.w.q.deleted[p];
        if (gone && gone <= n.w.q.seen[n.w.owner[l]]) n.w.q.stage[p] = queue::GONE;
    }
    static void note_look(unsigned who, State *n) {
        if (!n || n->looks[who] != LOOKS) return;
        bool more = false;
        for (unsigned i = 0; i < queue::ASKED; i++) {
            unsigned asked = n->w.q.asked[who][i];
            more = more || asked == queue::ASK_LIST + 1 || asked == unsigned(queue::KINDS) + ASK_LOOK + 1;
        }
        if (!more) n->looks[who] = HAS_LOOKED;
    }
    void answer_of_pool(Step s) {
        if (s.kind == TAKE_GET) {
            for (s.write = 0; s.write < from.w.writes; s.write++) {
                s.limit = from.w.limit[s.write];
                attempt(s);
            }
        } else if (s.kind == TAKE_LIST) {
            for (unsigned v = from.w.q.seen[s.who]; v <= from.w.q.version; v++) {
                memset(&s.list, 0, sizeof s.list);
                for (unsigned l = 0; l < LEASES; l++)
                    if (stood_at(from.w, l, v)) s.list.add(l);
                for (s.write = 0; s.write + 1u < from.w.writes && from.w.written[s.write + 1] <= v;) s.write++;
                attempt(s);
            }
        } else {
            note_look(s.who, attempt(s));
            s.answer = s.kind == TAKE_ADMIT ? queue::REFUSED : queue::NO_NODE;
            bool may_fail = s.kind == TAKE_ADMIT || s.kind == TAKE_LOOK || s.kind == TAKE_DELETE;
            State *n = may_fail ? attempt(s) : nullptr;
            note_look(s.who, n);
            if (n && s.kind == TAKE_ADMIT) note_refused(*n, s.lease);
        }
    }

    void beliefs(unsigned who) {
        for (unsigned p = 0; p < PLACES; p++)
            if (from.w.q.watched[p] && from.w.q.owner[p] == who) attempt(queue_step(queue::WOKEN, who, p));
        unsigned l = lease_of(who);
        if (l < LEASES && from.w.stage[l] == queue::HELD) attempt(step(LEAVE, who, l));
    }

    // ---- faults ----

    static bool lose_all(World &w, unsigned who) {
        static const queue::Kind of_queue[] = {queue::TAKE_CREATE, queue::TAKE_LIST, queue::TAKE_WATCH,
                                               queue::TAKE_DELETE, queue::TAKE_BARRIER};
        while (w.q.asked[who][0]) {
            unsigned asked = w.q.asked[who][0] - 1u, subject = w.q.asked_place[who][0];
            const char *why;
            if (asked < queue::KINDS) {
                queue::Step s = queue_step(of_queue[asked - queue::ASK_CREATE], who, subject);
                s.answer = queue::LOST;
                why = apply_queue(w, s);
            } else {
                Step s = step(static_cast<Kind>(asked - queue::KINDS + TAKE_TRY - ASK_TRY), who, subject);
                s.answer = queue::LOST;
                why = apply(w, s);
            }
            if (why) return false;
        }
        return true;
    }
    // The next one is there at once. R3: what it may have taken for never made by mistake is looked for on it.
    void break_connection(unsigned who, bool fair) {
        Next n = next(BREAKS, who, fair);
        State &s = n.world;
        if (!fair) s.faults--;
        if ((!fair && !from.w.q.asked[who][0]) || !lose_all(s.w, who)) return;
        for (unsigned p = 0; p < PLACES; p++)
            if (s.w.q.owner[p] == who) s.w.q.settled[p] = 0;
        for (unsigned l = 0; l < LEASES; l++)
            if (s.w.owner[l] == who) s.w.settled[l] = 0;
        s.moved[who] = 0;
        s.looks[who] = is("no_late_look") || !doubts(s.w, who) ? NEED_NOT_LOOK
                       : is("late_look_at_once")               ? WANTS_LISTS
                                                               : WANTS_BARRIER;
        keep(n, nullptr);
    }
    // The client has a new one at once, and begins again.
    void end_session(unsigned who) {
        Next n = next(ENDS, who, false);
        World &w = n.world.w;
        n.world.faults--;
        for (unsigned p = 0; p < PLACES; p++) {
            bool its = w.q.stage[p] != queue::UNUSED && w.q.owner[p] == who && queue::stands(w.q, p);
            if (its && apply_queue(w, queue_step(queue::COMMIT_EXPIRED_DELETE, who, p))) return;
        }
        for (unsigned l = 0; l < LEASES; l++) {
            bool its = w.stage[l] != queue::UNUSED && w.owner[l] == who && stands(w, l);
            if (its && apply(w, step(COMMIT_EXPIRED_DELETE, who, l))) return;
        }
        for (queue::Kind kind : {queue::END_SESSION, queue::LOSE_SESSION, queue::BEGIN_SESSION})
            if (apply_queue(w, queue_step(kind, who)) || !lose_all(w, who)) return;
        for (unsigned l = 0; l < LEASES; l++)
            if (w.stage[l] != queue::UNUSED && w.owner[l] == who) w.stage[l] = queue::GONE;
        n.world.moved[who] = n.world.looks[who] = 0;
        keep(n, nullptr);
    }
};

const char *rests_badly(const State &s) {
    for (unsigned who = 0; who < CLIENTS; who++)
        if (s.road[who] != NOT_AT_ALL && !s.done[who]) return "a client waits for ever";
    for (unsigned p = 0; p < PLACES; p++)
        if (queue::stands(s.w.q, p)) return "a place is left";
    for (unsigned l = 0; l < LEASES; l++)
        if (stands(s.w, l)) return "a lease is left";
    return nullptr;
}

class Search : public Base {
  public:
    Search(const Pool &where, bool is_long)
        : pool(where), faults(is_long ? where.long_faults : where.faults), may_move(!is_long && faults) {}

  private:
    const Pool &pool;
    const uint8_t faults;
    const bool may_move;
    std::vector<Next> steps;
    std::vector<std::pair<uint32_t, uint32_t>> edges; // of fair steps: to, and from

    void begin() override {
        State s;
        memset(&s, 0, sizeof s);
        memset(s.w.owner, NOBODY, sizeof s.w.owner);
        memset(s.w.q.owner, NOBODY, sizeof s.w.q.owner);
        s.faults = faults;
        s.may_resize = pool.resized;
        s.may_move = may_move;
        Step make = {};
        make.kind = COMMIT_MAKE;
        make.limit = pool.limit;
        apply(s.w, make);
        for (unsigned who = 0; who < CLIENTS; who++) {
            s.road[who] = pool.roads[who];
            s.w.q.alive[who] = 1;
            s.w.q.seen[who] = s.w.q.version;
        }
        add(s, 0, Way{});
    }
    const std::vector<Next> &steps_of(const State &s) override {
        Steps(s, steps).find();
        return steps;
    }
    const char *rest(const State &s) override {
        return rests_badly(s);
    }
    State canonical(const State &s) override {
        State next = s;
        forget(next);
        return next;
    }
    void made(uint32_t from, uint32_t to, const Next &n) override {
        if (n.fair) edges.emplace_back(to, from);
    }
    // A full pool is read again and again, so that it never rests. From each state there is a fair way to an end.
    const char *finish(uint32_t *at) override {
        std::vector<bool> good(all.size());
        std::vector<uint32_t> ends;
        for (uint32_t i = 0; i < all.size(); i++) {
            good[i] = !rests_badly(all[i].world);
            if (good[i]) ends.push_back(i);
        }
        std::sort(edges.begin(), edges.end());
        for (size_t i = 0; i < ends.size(); i++) {
            auto edge = std::lower_bound(edges.begin(), edges.end(), std::make_pair(ends[i], 0u));
            for (; edge != edges.end() && edge->first == ends[i]; ++edge) {
                if (good[edge->second]) continue;
                good[edge->second] = true;
                ends.push_back(edge->second);
            }
        }
        for (*at = 0; *at < all.size(); ++*at)
            if (!good[*at]) return "a client waits for ever";
        return nullptr;
    }
    std::string label(const State &, const Way &way) override {
        const char *what = way.kind == COUNTS   ? "(kazoo) counts the leases, and has room"
                           : way.kind == BREAKS ? "THE CONNECTION BREAKS"
                           : way.kind == ENDS   ? "THE SESSION ENDS"
                           : way.of_queue       ? queue::names[way.kind]
                                                : names[way.kind];
        return "client " + std::to_string(way.who) + ": " + what;
    }
};

model::Outcome search(unsigned part, bool is_long) {
    variant = model::broken ? model::broken->name : "";
    return Search(POOLS[part], is_long).run();
}

} // namespace

int main(int count, char **arguments) {
    std::vector<model::Part> parts;
    for (const Pool &pool : POOLS) parts.push_back({pool.name, false});
    return model::run({"leases", "the client", VARIANTS, parts, true, search}, count, arguments);
}
