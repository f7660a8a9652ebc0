// A search of the rules of a lock's queue: test/model/rules/queue.h. SPDX-License-Identifier: Apache-2.0
//
//   queue                   the rules with any two faults, then each broken variant: the test model.queue
//   queue --rules           the rules alone
//   queue --list            the variants
//   queue --variant NAME    one of them, with the way to its fault
//
// Three clients take one place each: two writers and a reader. A client holds once, and then leaves. Where it learns
// that its place is gone, it takes another. Faults happen at any time. A connection breaks, and nothing that is under
// way gets an answer. A session ends. Somebody else deletes a place. A request whose answer is lost may have been
// carried out, may be carried out later, or never. The leader may hear late of a connection that the client gave up: it
// then carries out what it had passed over, and refuses the client's writes, so that the connection ends (R3).
//
// The search visits every order of steps. It claims:
//
//  1. No two clients hold that exclude each other. No client holds behind a place that blocks it. A place that
//     somebody else has deleted is excused.
//  2. A release wakes one writer at most (Q4).
//  3. Each client ends, and leaves nothing (Q6).
//
// A client does in its turn all that it can, as the library does. Left out: the clock, for a session ends only when
// nothing of it is held (C5); directories that come and go (K2); the preferences of candidates.
#include <type_traits>
#include <vector>

#include "rules/queue.h"
#include "search.h"

using namespace queue;

namespace {

struct State {
    World w;
    uint8_t faults, may_break, may_end, may_delete, may_move, held[CLIENTS], places[CLIENTS];
    uint8_t moved[CLIENTS];            // the leader takes another connection for the client's
    uint8_t looks[CLIENTS], unused[3]; // R3: how far it has looked on this connection
};
enum { NEED_NOT_LOOK, WANTS_BARRIER, WANTS_LIST, HAS_LOOKED };
static_assert(std::has_unique_object_representations_v<State>, "equal states have equal bytes");

const Mode MODES[CLIENTS] = {WRITER, READER, WRITER};

const std::vector<model::Variant> VARIANTS = {
    // the last field: faults beside the first
    {"held_unseen", "holds without a list that shows its place", "holds behind a place", nullptr, 0},
    {"waits_for_first", "waits for the first of the queue, not for the one before it", "wakes two", nullptr, 0},
    {"watch_by_exists", "watches where nothing stands, and takes that for waiting", "waits for ever", nullptr, 0},
    {"lost_is_undone", "takes a create whose answer was lost for undone", "left behind", nullptr, 0},
    {"no_barrier", "believes a list after a lost answer without a barrier", "left behind", nullptr, 0},
    {"no_late_look", "never looks again for what it took for never made", "left behind", nullptr, 1},
    {"late_look_at_once", "looks again without a barrier", "left behind", nullptr, 1},
    {"lost_delete_is_done", "takes a delete whose answer was lost for done", "left behind", nullptr, 0},
    {"reader_passes", "reads beside a writer before it", "holds behind a place", nullptr, 0},
    {"deletes_while_held", "deletes its place before its belief has ended", "is held that does not stand", nullptr, 0},
};

struct Way {
    Kind kind;
    uint8_t who, broken;
};

using Base = model::Search<State, Way>;
using Next = Base::Next;

// Where nothing can come late a client looks too, in vain.
bool is_found_late(const State &s, unsigned p) {
    unsigned who = s.w.owner[p];
    return is_doubted(s.w, p) && stands(s.w, p) && s.looks[who] == HAS_LOOKED && s.w.created[p] <= s.w.seen[who];
}

bool asks(const World &w, unsigned who, Kind kind) {
    for (unsigned i = 0; i < ASKED; i++)
        if (w.asked[who][i] == kind + 1) return true;
    return false;
}

Set list_at(const World &w, unsigned version) {
    Set list = {};
    for (unsigned p = 0; p < PLACES; p++)
        if (stood_at(w, p, version)) list.add(p);
    return list;
}

// Returns whether a list brings the place on.
bool wants_list(const World &w, unsigned p) {
    unsigned who = w.owner[p];
    if (asks(w, who, ASK_LIST) || asks(w, who, ASK_WATCH)) return false;
    if (w.stage[p] == THERE) return !w.listed[p];
    return w.stage[p] == UNSURE && (w.settled[p] || is("no_barrier"));
}

// ---- what is forgotten: equal futures are to have equal bytes ----

bool is_referred_to(const World &w, unsigned p) {
    for (unsigned who = 0; who < CLIENTS; who++)
        for (unsigned i = 0; i < ASKED; i++)
            if (w.asked[who][i] && w.asked[who][i] != ASK_LIST + 1 && w.asked_place[who][i] == p) return true;
    for (unsigned q = 0; q < PLACES; q++)
        if (w.before[q] == p + 1 || w.watched[q] == p + 1) return true;
    return false;
}

void copy_place(World &to, unsigned p, const World &from, unsigned q) {
    to.number[p] = from.number[q], to.created[p] = from.created[q], to.deleted[p] = from.deleted[q];
    to.before[p] = from.before[q], to.watched[p] = from.watched[q], to.stage[p] = from.stage[q];
    to.owner[p] = from.owner[q], to.mode[p] = from.mode[q], to.pending[p] = from.pending[q];
    to.going[p] = from.going[q], to.settled[p] = from.settled[q], to.listed[p] = from.listed[q];
    to.foreign[p] = from.foreign[q];
}

// A client that knows of no place yet reads nothing older than its own create, which is still to come.
unsigned oldest_seen(State &s) {
    World &w = s.w;
    unsigned oldest = w.version;
    for (unsigned who = 0; who < CLIENTS; who++) {
        bool reads = s.looks[who];
        for (unsigned p = 0; p < PLACES; p++)
            reads = reads || (w.owner[p] == who && ((w.stage[p] > MAKING && w.stage[p] < GONE) || is_doubted(w, p)));
        if (!reads) w.seen[who] = w.version;
        if (w.seen[who] < oldest) oldest = w.seen[who];
    }
    return oldest;
}

// The oldest counts as 1.
uint16_t since(unsigned version, unsigned oldest) {
    return static_cast<uint16_t>(version > oldest ? version - oldest + 1 : 1);
}

uint16_t moved(const unsigned *to, unsigned place) {
    return static_cast<uint16_t>(place && place <= PLACES ? to[place - 1] + 1 : place);
}

// Puts places into one order.
void sort_places(World &w) {
    unsigned to[PLACES];
    bool in_order = true;
    for (unsigned p = 0; p < PLACES; p++) {
        to[p] = 0;
        for (unsigned q = 0; q < PLACES; q++) {
            unsigned one = w.stage[q] == UNUSED ? 1000 : w.owner[q] * 100 + w.number[q] * 10u;
            unsigned other = w.stage[p] == UNUSED ? 1000 : w.owner[p] * 100 + w.number[p] * 10u;
            to[p] += one < other || (one == other && q < p);
        }
        in_order = in_order && to[p] == p;
    }
    if (in_order) return;
    const World old = w;
    for (unsigned p = 0; p < PLACES; p++) {
        World one = old;
        one.before[p] = moved(to, old.before[p]);
        one.watched[p] = moved(to, old.watched[p]);
        copy_place(w, to[p], one, p);
    }
    for (unsigned who = 0; who < CLIENTS; who++)
        for (unsigned i = 0; i < ASKED; i++)
            if (w.asked[who][i] && w.asked[who][i] != ASK_LIST + 1 && w.asked[who][i] != ASK_BARRIER + 1)
                w.asked_place[who][i] = static_cast<uint16_t>(to[old.asked_place[who][i]]);
}

// Takes out what is over, counts versions from the oldest that a client may read, and ranks numbers.
void forget(State &s) {
    World &w = s.w;
    for (unsigned p = 0; p < PLACES && !s.faults; p++)
        if (w.owner[p] >= CLIENTS || !s.moved[w.owner[p]]) w.pending[p] = w.pending[p] == LATE ? 0 : w.pending[p];
    for (unsigned who = 0; who < CLIENTS; who++) {
        bool finds = false;
        for (unsigned p = 0; p < PLACES; p++) finds = finds || (w.owner[p] == who && is_found_late(s, p));
        if (!finds && s.looks[who] == HAS_LOOKED) s.looks[who] = NEED_NOT_LOOK;
    }
    unsigned oldest = oldest_seen(s);
    World none;
    memset(&none, 0, sizeof none);
    for (unsigned p = 0; p < PLACES; p++) {
        if (w.stage[p] != THERE) w.listed[p] = 0, w.before[p] = 0;
        if (w.stage[p] != UNSURE) w.settled[p] = 0;
        if (w.stage[p] >= LEAVING) w.foreign[p] = 0;
        if (!stands(w, p)) w.going[p] = 0;
    }
    for (unsigned p = 0; p < PLACES; p++) {
        bool over = w.stage[p] == GONE && !w.pending[p] && !stands(w, p) && w.deleted[p] <= oldest;
        if (over && !is_referred_to(w, p)) copy_place(w, p, none, 0);
    }
    for (unsigned who = 0; who < CLIENTS; who++) {
        for (unsigned i = 0; i < ASKED; i++)
            if (w.asked[who][i] == ASK_LIST + 1 || w.asked[who][i] == ASK_BARRIER + 1) w.asked_place[who][i] = 0;
        w.seen[who] = since(w.seen[who], oldest);
    }
    uint32_t rank[PLACES] = {}, count = 0;
    for (unsigned p = 0; p < PLACES; p++) {
        for (unsigned q = 0; w.number[p] && q < PLACES; q++) rank[p] += w.number[q] && w.number[q] <= w.number[p];
        count += w.number[p] != 0;
        if (w.created[p]) w.created[p] = since(w.created[p], oldest);
        if (w.deleted[p]) w.deleted[p] = since(w.deleted[p], oldest);
    }
    memcpy(w.number, rank, sizeof rank);
    w.version = since(w.version, oldest);
    w.last_number = count;
    w.numbered = count > 0;
    sort_places(w);
    for (w.used = 0; w.used < PLACES && w.stage[w.used] != UNUSED;) w.used++;
}

class Steps {
  public:
    // The steps are put into `to`.
    Steps(const State &state, std::vector<Next> &to) : all(to), from(state) {}

    void find() {
        all.clear();
        for (unsigned p = 0; p < PLACES && all.empty(); p++)
            if (from.w.stage[p] != UNUSED) at_once(from.w.owner[p], p);
        for (unsigned who = 0; who < CLIENTS && all.empty(); who++) look_again(who);
        if (!all.empty()) return;
        for (unsigned who = 0; who < CLIENTS; who++) {
            sessions(who);
            if (from.moved[who]) break_connection(who, true);
            for (unsigned p = 0; p < PLACES; p++)
                if (from.w.stage[p] != UNUSED && from.w.owner[p] == who) place(who, p);
            if (from.w.asked[who][0]) answers(who);
        }
        create();
    }

  private:
    std::vector<Next> &all;
    const State &from;

    static Step step(Kind kind, unsigned who, unsigned place) {
        Step s = {};
        s.kind = kind;
        s.who = who;
        s.place = place;
        return s;
    }
    // Tries the step. The rules are asked.
    State *attempt(const Step &s, bool fair) {
        Next n{from, {s.kind, static_cast<uint8_t>(s.who), 0}, fair, nullptr, false};
        if (apply(n.world.w, s)) return nullptr;
        all.push_back(n);
        return &all.back().world;
    }
    bool fault(uint8_t kind) const {
        return from.faults && kind;
    }

    // A client takes its place, and another one where that is gone, and has not been held.
    void create() {
        unsigned unused = 0;
        while (unused < PLACES && from.w.stage[unused] != UNUSED) unused++;
        for (unsigned who = 0; who < CLIENTS && unused < PLACES; who++) {
            bool has = from.held[who];
            for (unsigned p = 0; p < PLACES; p++)
                has = has || (from.w.stage[p] != UNUSED && from.w.stage[p] != GONE && from.w.owner[p] == who);
            Step s = step(ASK_CREATE, who, unused);
            s.mode = MODES[who];
            has = has || (who == 2 && !from.places[0]); // the two writers are alike
            if (State *n = has ? nullptr : attempt(s, from.places[who] > 0)) n->places[who] = 1;
        }
    }
    void place(unsigned who, unsigned p) {
        const World &w = from.w;
        Step commit = step(COMMIT_CREATE, who, p);
        commit.number = w.last_number + 1;
        bool lost = !is_asked(w, who, ASK_CREATE, p);
        if (w.pending[p] == LATE && (from.moved[who] || fault(from.may_move))) come_late(commit);
        if (from.moved[who]) return;
        if (w.pending[p] != LATE && comes_first(w, who, ASK_CREATE, p)) attempt(commit, !lost);
        if (w.going[p] && comes_first(w, who, ASK_DELETE, p))
            attempt(step(COMMIT_DELETE, who, p), is_asked(w, who, ASK_DELETE, p));
        if (fault(from.may_delete) && stands(w, p)) {
            if (State *n = attempt(step(COMMIT_FOREIGN_DELETE, who, p), false)) n->faults--, n->may_delete--;
        }
        if (w.watched[p]) attempt(step(WOKEN, who, p), true);
        if (w.stage[p] == HELD) attempt(step(LEAVE, who, p), true);
    }
    void come_late(const Step &commit) {
        State *n = attempt(commit, false);
        if (!n || n->moved[commit.who]) return;
        n->moved[commit.who] = 1;
        n->faults--;
        n->may_move--;
    }
    // What a client does in the turn in which it can.
    void at_once(unsigned who, unsigned p) {
        const World &w = from.w;
        bool opens = w.stage[p] == MAKING && !asks(w, who, ASK_LIST); // Q1: the list goes right behind the create
        bool waits = w.stage[p] == THERE && w.listed[p] && w.before[p] && !w.watched[p];
        bool leaves = w.stage[p] == LEAVING || (w.stage[p] == HELD && is("deletes_while_held"));
        if (wants_list(w, p) || opens) attempt(step(ASK_LIST, who, p), true);
        if (w.stage[p] == UNSURE && !w.settled[p] && !asks(w, who, ASK_BARRIER))
            attempt(step(ASK_BARRIER, who, p), true);
        if (waits && !asks(w, who, ASK_WATCH)) attempt(step(ASK_WATCH, who, w.before[p] - 1u), true);
        if (w.stage[p] == THERE) {
            if (State *n = attempt(step(HOLD, who, p), true)) n->held[who] = 1;
        }
        if ((leaves || is_found_late(from, p)) && !asks(w, who, ASK_DELETE)) attempt(step(ASK_DELETE, who, p), true);
    }
    void look_again(unsigned who) {
        if (from.looks[who] == WANTS_BARRIER && !asks(from.w, who, ASK_BARRIER))
            attempt(step(ASK_BARRIER, who, 0), true);
        if (from.looks[who] == WANTS_LIST && !asks(from.w, who, ASK_LIST)) attempt(step(ASK_LIST, who, 0), true);
    }
    void answers(unsigned who) {
        static const Kind answered[] = {TAKE_CREATE, TAKE_LIST, TAKE_WATCH, TAKE_DELETE, TAKE_BARRIER};
        const World &w = from.w;
        Step s = step(answered[w.asked[who][0] - 1 - ASK_CREATE], who, w.asked_place[who][0]);
        s.number = w.number[s.place];
        if (s.kind == TAKE_LIST) {
            for (unsigned v = w.seen[who]; v <= w.version; v++) {
                s.list = list_at(w, v);
                State *n = attempt(s, true);
                if (n && n->looks[who] == WANTS_LIST) n->looks[who] = HAS_LOOKED;
            }
        } else {
            State *n = attempt(s, true);
            if (n && s.kind == TAKE_BARRIER && !from.moved[who]) pass_barrier(who, *n);
        }
        if (s.kind == TAKE_WATCH || s.kind == TAKE_DELETE) {
            s.answer = NO_NODE;
            attempt(s, true);
        }
        if (fault(from.may_break)) break_connection(who, false);
    }
    // Nothing of the client's has come behind it yet.
    static void pass_barrier(unsigned who, State &s) {
        if (s.looks[who] == WANTS_BARRIER) s.looks[who] = WANTS_LIST;
        for (unsigned p = 0; p < PLACES; p++)
            if (s.w.owner[p] == who) see(s.w, who, s.w.created[p]);
    }
    bool lose_all(World &w, unsigned who) const {
        static const Kind answered[] = {TAKE_CREATE, TAKE_LIST, TAKE_WATCH, TAKE_DELETE, TAKE_BARRIER};
        while (w.asked[who][0]) {
            Step s = step(answered[w.asked[who][0] - 1 - ASK_CREATE], who, w.asked_place[who][0]);
            s.answer = LOST;
            if (apply(w, s)) return false;
        }
        return true;
    }
    // The next one is there at once. R3: what it may have taken for never made by mistake is looked for on it.
    void break_connection(unsigned who, bool fair) {
        Next n{from, {KINDS, static_cast<uint8_t>(who), 1}, fair, nullptr, false};
        State &s = n.world;
        if (!fair) s.faults--, s.may_break--;
        s.moved[who] = s.looks[who] = 0;
        if (!lose_all(s.w, who)) return;
        for (unsigned p = 0; p < PLACES; p++)
            if (s.w.owner[p] == who) s.w.settled[p] = 0;
        for (unsigned p = 0; p < PLACES; p++)
            if (s.w.owner[p] == who && is_doubted(s.w, p) && !is("no_late_look"))
                s.looks[who] = is("late_look_at_once") ? WANTS_LIST : WANTS_BARRIER;
        all.push_back(n);
    }
    // The client has a new one at once. Its places of before are gone.
    void sessions(unsigned who) {
        if (!from.w.alive[who] || !fault(from.may_end)) return;
        Next n{from, {END_SESSION, static_cast<uint8_t>(who), 0}, false, nullptr, false};
        n.world.faults--;
        n.world.may_end--;
        World &w = n.world.w;
        for (unsigned p = 0; p < PLACES; p++) {
            bool his = w.stage[p] != UNUSED && w.owner[p] == who && stands(w, p);
            if (his && apply(w, step(COMMIT_EXPIRED_DELETE, who, p))) return;
        }
        for (Kind kind : {END_SESSION, LOSE_SESSION, BEGIN_SESSION}) {
            if (apply(w, step(kind, who, 0)) || !lose_all(w, who)) return;
        }
        n.world.moved[who] = n.world.looks[who] = 0;
        all.push_back(n);
    }
};

// Returns what must not be at rest, or NULL.
const char *rests_badly(const World &w) {
    for (unsigned p = 0; p < PLACES; p++) {
        if (w.stage[p] == UNUSED) continue;
        if (stands(w, p)) return w.stage[p] == GONE ? "a place is left behind" : "a client waits for ever";
        if (w.stage[p] != GONE) return "a client waits for ever for a place that is not there";
    }
    return nullptr;
}

class Search : public Base {
  public:
    explicit Search(uint8_t how_many) : faults(how_many) {}

  private:
    const uint8_t faults;
    std::vector<Next> steps;

    void begin() override {
        State s;
        memset(&s, 0, sizeof s);
        s.faults = s.may_break = s.may_end = s.may_delete = s.may_move = faults;
        for (unsigned who = 0; who < CLIENTS; who++) s.w.alive[who] = 1;
        add(s, 0, Way{});
    }
    const std::vector<Next> &steps_of(const State &s) override {
        Steps(s, steps).find();
        for (Next &n : steps) n.fault = wrong(n.world.w);
        return steps;
    }
    const char *rest(const State &s) override {
        return rests_badly(s.w);
    }
    State canonical(const State &s) override {
        State next = s;
        forget(next);
        if (!next.faults) next.may_break = next.may_end = next.may_delete = next.may_move = 0;
        return next;
    }
    std::string label(const State &, const Way &way) override {
        const char *what = way.broken ? "THE CONNECTION BREAKS" : names[way.kind];
        return "client " + std::to_string(way.who) + ": " + what;
    }
};

model::Outcome search(unsigned, bool) {
    variant = model::broken ? model::broken->name : "";
    return Search(model::broken ? static_cast<uint8_t>(1 + model::broken->tag) : 2).run();
}

} // namespace

int main(int count, char **arguments) {
    return model::run({"queue", "the client", VARIANTS, {{"", false}}, false, search}, count, arguments);
}
