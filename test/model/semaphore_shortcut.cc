// A model of the semaphore's shortcut: rule E14 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
//   semaphore_shortcut                   the rules, then each broken variant: the test model.semaphore_shortcut
//   semaphore_shortcut --rules           the rules alone
//   semaphore_shortcut --list            the variants
//   semaphore_shortcut --variant NAME    one of them, with the way to its fault
//
// Four contenders share a pool of one or two slots. Each takes a slot once or twice and releases it, by the shortcut
// (E14) or by the queue (E1 to E7), with any slot in mind. In the pool "kazoo" two of them are kazoo's, in the pool
// "resized" the limit changes, in the pool "tries" an acquire that finds the pool full or somebody before it ends.
// The search visits every order of the steps at the servers and of the answers. One answer may be lost, one session may
// end, and one lease may be deleted by somebody else. It claims:
//
//  1. When an acquire ends well, those who hold are within the limit that was in force at its list, or is now (S9).
//  2. No two hold one slot (S2).
//  3. The token is greater than that of each earlier holder of the slot (S3).
//  4. Nobody waits in the queue who stood there before the lease was made.
//  5. Who holds had its lease at its list (S1).
//  6. All acquires end, and then nothing is left. Of several tries at a free pool one gets a slot.
//
// Left out: counts above one, children in doubt (E2), and when the shortcut is worth trying, which is free to each. A
// read may come from a server that lags: that is an earlier read, whose answer was slow.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "search.h"

namespace {

using model::is;
using model::Variant;

enum { ACTORS = 4, NO_SLOT = 2 };

enum Stage : uint8_t {
    IDLE,
    ENTERS,  // by the queue
    QUEUED,  // its place stands there
    LIMITED, // at the head, it has read the limit
    ROOM,    // and the list: its transaction is under way
    FULL,    // or there is no room
    LEAVES,  // a try, with its place
    MADE,    // the shortcut: its lease stands there
    LIMIT_READ,
    QUEUE_READ,
    ALL_READ, // the answers are under way
    MISSES,   // its lease is to be deleted
    HOLDS,
    RELEASES_PLACE, // kazoo: it holds, and is still in the queue
    ENDED,          // its session has
};

enum Kind : uint8_t { DIVVY, KAZOO };

struct Actor {
    uint8_t kind, stage, acquires;      // that are left
    uint8_t place, lease;               // the order in which they came, from 1; 0: none
    uint8_t slot;                       // of the lease, or chosen
    uint8_t limit, in_force;            // that was read; and that was true at its list
    uint8_t set_since_limit, set_since; // the pool was set since the limit was read; since the lease was made
    uint8_t before;                     // those in the queue, when its lease was made, who still stand there
    uint8_t good, had_lease, outrun;    // outrun: a later lease of its slot was held
    uint8_t changed;                    // full, and a watch has fired
    uint8_t failed;                     // its try
};

struct World {
    Actor actors[ACTORS];
    uint8_t limit, may_resize, may_lose, may_end, may_delete, anybody_held;
};

enum Pool { PLAIN, WITH_KAZOO, RESIZED, TRIES };

const std::vector<Variant> VARIANTS = {
    {"queue_unseen", "does not look at the queue", "overtaken", "plain", 0},
    {"queue_unseen_beside_kazoo", "does not look at the queue, where kazoo's processes are", "overtaken", "kazoo", 0},
    {"queue_last", "lists the queue behind the pool", "two hold one slot", "kazoo", 0},
    {"list_first", "lists the pool before its lease is made", "two hold one slot", "plain", 0},
    {"numbers_unseen", "counts the leases, and does not compare their slots", "two hold one slot", "plain", 0},
    {"count_unseen", "compares the slots of the leases, and does not count those without", "more hold than", "kazoo",
     0},
    {"set_unseen", "does not ask whether the pool was set since its lease was made", "the token is smaller", "plain",
     0},
    {"limit_remembered", "takes the limit that it has in mind", "more hold than", "resized", 0},
    {"own_unseen", "does not look for its lease in the list", "without a lease", "plain", 0},
    {"lost_is_held", "holds its lease when the answers were lost and the lease is found", "overtaken", "plain", 0},
    {"lease_stays", "leaves its lease where it was when it goes to the queue", "waits for ever", "plain", 0},
    {"try_as_well", "takes the shortcut for a try", "each try has failed", "tries", 0},
};

Pool pool;
size_t shortcuts; // that were believed

// ---- steps ----

struct Doing {
    const char *label;
    size_t who;
};

using Base = model::Search<World, Doing>;
using Step = Base::Next;

std::vector<Step> steps;

World &step(const World &from, size_t who, const char *what, bool fair = true) {
    steps.push_back({from, {what, who}, fair, nullptr, false});
    return steps.back().world;
}

void violate(const char *what) {
    if (!steps.back().fault) steps.back().fault = what;
}

bool holds(const Actor &a) {
    return a.stage == HOLDS || a.stage == RELEASES_PLACE;
}

uint8_t next_place(const World &w) {
    uint8_t last = 0;
    for (const Actor &a : w.actors) last = a.place > last ? a.place : last;
    return static_cast<uint8_t>(last + 1);
}

uint8_t next_lease(const World &w) {
    uint8_t last = 0;
    for (const Actor &a : w.actors) last = a.lease > last ? a.lease : last;
    return static_cast<uint8_t>(last + 1);
}

bool is_head(const World &w, const Actor &a) {
    for (const Actor &other : w.actors)
        if (other.place && other.place < a.place) return false;
    return a.place;
}

bool queue_is_empty(const World &w) {
    for (const Actor &a : w.actors)
        if (a.place) return false;
    return true;
}

int count_leases(const World &w) {
    int count = 0;
    for (const Actor &a : w.actors) count += a.lease != 0;
    return count;
}

bool is_taken(const World &w, size_t who, uint8_t slot) {
    for (size_t i = 0; i < ACTORS; i++)
        if (i != who && w.actors[i].lease && w.actors[i].slot == slot) return true;
    return false;
}

// ---- what the servers do ----

void fire_watches(World &w) {
    for (Actor &a : w.actors)
        if (a.stage == FULL) a.changed = 1;
}

void enter_queue(World &w, size_t who) {
    w.actors[who].place = next_place(w);
}

void leave_queue(World &w, size_t who) {
    w.actors[who].place = 0;
    for (Actor &a : w.actors) a.before = static_cast<uint8_t>(a.before & ~(1u << who));
}

void make_lease(World &w, size_t who, uint8_t slot) {
    Actor &a = w.actors[who];
    a.lease = next_lease(w);
    a.slot = slot;
    a.set_since = a.outrun = a.before = 0;
    for (size_t i = 0; i < ACTORS; i++)
        if (w.actors[i].place) a.before = static_cast<uint8_t>(a.before | 1u << i);
    fire_watches(w);
}

void delete_lease(World &w, size_t who) {
    w.actors[who].lease = 0;
    fire_watches(w);
}

void set_pool(World &w, uint8_t limit) {
    w.limit = limit;
    for (Actor &a : w.actors) a.set_since_limit = a.set_since = 1;
    fire_watches(w);
}

// ---- claims 1 to 5, at the end of an acquire ----

void begin_to_hold(World &w, size_t who, uint8_t limit) {
    Actor &a = w.actors[who];
    int holders = 1;
    bool beside = false;
    for (size_t i = 0; i < ACTORS; i++) {
        Actor &other = w.actors[i];
        if (i == who) continue;
        holders += holds(other);
        beside = beside || (holds(other) && a.slot != NO_SLOT && other.slot == a.slot);
        if (other.lease && other.lease < a.lease && other.slot == a.slot && a.slot != NO_SLOT) other.outrun = 1;
    }
    if (holders > limit) violate("more hold than the limit says");
    if (beside) violate("two hold one slot");
    w.anybody_held = 1;
}

void believe(World &w, size_t who) {
    Actor &a = w.actors[who];
    begin_to_hold(w, who, a.in_force > w.limit ? a.in_force : w.limit);
    if (a.outrun) violate("the token is smaller than one that was held before");
    if (a.before) violate("somebody is overtaken who waited before");
    if (!a.had_lease) violate("somebody holds without a lease");
    a.stage = HOLDS;
    shortcuts++;
}

// ---- the shortcut ----

bool fits(const World &w, size_t who) {
    const Actor &a = w.actors[who];
    int others = 0;
    for (size_t i = 0; i < ACTORS; i++)
        others += i != who && w.actors[i].lease && !(is("count_unseen") && w.actors[i].slot == NO_SLOT);
    return others + 1 <= a.limit && a.slot < a.limit && (is("numbers_unseen") || !is_taken(w, who, a.slot));
}

bool is_good(const World &w, size_t who) {
    const Actor &a = w.actors[who];
    return fits(w, who) && (a.lease || is("own_unseen") || is("list_first")) &&
           (!a.set_since || is("set_unseen") || is("list_first"));
}

void read_queue(const World &w, size_t who, Stage from, Stage to) {
    if (w.actors[who].stage != from) return;
    World &n = step(w, who, "lists the queue");
    bool unseen = is("queue_unseen") || is("queue_unseen_beside_kazoo");
    n.actors[who].good = n.actors[who].good && (queue_is_empty(w) || unseen);
    n.actors[who].stage = to;
}

void read_pool(const World &w, size_t who, Stage from, Stage to) {
    if (w.actors[who].stage != from) return;
    World &n = step(w, who, "lists the pool");
    Actor &a = n.actors[who];
    a.good = a.good && (is("list_first") || is_good(w, who));
    a.had_lease = a.lease || is("list_first");
    a.in_force = w.limit;
    a.stage = to;
}

void begin_shortcut(const World &w, size_t who, uint8_t slot) {
    World &n = step(w, who, slot ? "makes a lease of slot 1 at once" : "makes a lease of slot 0 at once");
    Actor &a = n.actors[who];
    a.acquires--;
    a.stage = MADE;
    a.slot = slot;
    a.limit = 2;
    a.good = 1;
    if (is("list_first")) a.good = fits(n, who);
    make_lease(n, who, slot);
}

void lose_answers(const World &w, size_t who) {
    const Actor &a = w.actors[who];
    if (!w.may_lose || a.stage < MADE || a.stage > ALL_READ) return;
    World &n = step(w, who, "loses its answers, and finds its lease", false);
    n.may_lose = 0;
    n.actors[who].stage = MISSES;
    if (!is("lost_is_held") || !a.lease) return;
    n.actors[who].had_lease = 1;
    n.actors[who].in_force = w.limit;
    believe(n, who);
}

void shortcut(const World &w, size_t who) {
    const Actor &a = w.actors[who];
    lose_answers(w, who);
    if (a.stage == MADE) {
        World &n = step(w, who, "reads the limit");
        if (!is("limit_remembered")) n.actors[who].limit = w.limit;
        n.actors[who].stage = LIMIT_READ;
    }
    bool last = is("queue_last");
    if (last) read_pool(w, who, LIMIT_READ, QUEUE_READ), read_queue(w, who, QUEUE_READ, ALL_READ);
    else read_queue(w, who, LIMIT_READ, QUEUE_READ), read_pool(w, who, QUEUE_READ, ALL_READ);
    if (a.stage == ALL_READ && a.good) believe(step(w, who, "holds, by its answers"), who);
    if (a.stage == ALL_READ && !a.good) step(w, who, "misses").actors[who].stage = MISSES;
    if (a.stage == MISSES) {
        World &n = step(w, who, "deletes its lease, and goes to the queue");
        n.actors[who].stage = ENTERS;
        if (!is("lease_stays")) delete_lease(n, who);
    }
}

// ---- the queue ----

void end_try(const World &w, size_t who) {
    if (pool != TRIES) return;
    World &n = step(w, who, "ends its try");
    n.actors[who].failed = 1;
    n.actors[who].stage = LEAVES;
}

void admit(const World &w, size_t who) {
    World &n = step(w, who, "makes its transaction");
    Actor &a = n.actors[who];
    if (a.set_since_limit) { // another version: it reads again
        a.stage = QUEUED;
        return;
    }
    set_pool(n, w.limit);
    leave_queue(n, who);
    make_lease(n, who, a.slot);
    begin_to_hold(n, who, w.limit);
    a.stage = HOLDS;
}

void queue(const World &w, size_t who) {
    const Actor &a = w.actors[who];
    if (a.stage == ENTERS) {
        World &n = step(w, who, "enters the queue");
        n.actors[who].stage = QUEUED;
        enter_queue(n, who);
    }
    if (a.stage == QUEUED && is_head(w, a)) {
        World &n = step(w, who, "reads the limit at the head");
        n.actors[who].stage = LIMITED;
        n.actors[who].set_since_limit = 0;
        n.actors[who].limit = w.limit;
    } else if (a.stage == QUEUED) {
        end_try(w, who);
    }
    if (a.stage == LIMITED) {
        World &n = step(w, who, "lists the pool at the head");
        uint8_t slot = is_taken(w, who, 0) ? 1 : 0;
        bool room = count_leases(w) < a.limit && slot < a.limit && !is_taken(w, who, slot);
        n.actors[who].slot = slot;
        n.actors[who].stage = a.set_since_limit ? QUEUED : room ? ROOM : FULL;
        n.actors[who].changed = 0;
    }
    if (a.stage == ROOM) admit(w, who);
    if (a.stage == FULL && a.changed) step(w, who, "is woken").actors[who].stage = QUEUED;
    if (a.stage == FULL) end_try(w, who);
    if (a.stage == LEAVES) {
        World &n = step(w, who, "leaves the queue");
        n.actors[who].stage = IDLE;
        leave_queue(n, who);
    }
}

void divvy(const World &w, size_t who) {
    const Actor &a = w.actors[who];
    if (a.stage == IDLE && a.acquires) {
        World &n = step(w, who, "begins an acquire");
        n.actors[who].stage = ENTERS;
        n.actors[who].acquires--;
        if (pool != TRIES || is("try_as_well")) begin_shortcut(w, who, 0);
        if (pool != TRIES) begin_shortcut(w, who, 1);
    }
    shortcut(w, who);
    queue(w, who);
    if (a.stage == HOLDS) {
        World &n = step(w, who, "releases");
        n.actors[who].stage = IDLE;
        delete_lease(n, who);
    }
}

// It remembers the limit, counts leases at the head, makes its own, and leaves the queue.
void kazoo(const World &w, size_t who) {
    const Actor &a = w.actors[who];
    if (a.stage == IDLE && a.acquires) {
        World &n = step(w, who, "(kazoo) enters the queue");
        n.actors[who].stage = QUEUED;
        n.actors[who].acquires--;
        enter_queue(n, who);
    }
    if (a.stage == QUEUED && is_head(w, a)) {
        World &n = step(w, who, "(kazoo) lists the pool");
        n.actors[who].stage = count_leases(w) < w.limit ? ROOM : FULL;
        n.actors[who].changed = 0;
    }
    if (a.stage == FULL && a.changed) step(w, who, "(kazoo) is woken").actors[who].stage = QUEUED;
    if (a.stage == ROOM) {
        World &n = step(w, who, "(kazoo) makes its lease");
        make_lease(n, who, NO_SLOT);
        begin_to_hold(n, who, w.limit);
        n.actors[who].stage = RELEASES_PLACE;
    }
    if (a.stage == RELEASES_PLACE) {
        World &n = step(w, who, "(kazoo) leaves the queue");
        n.actors[who].stage = HOLDS;
        leave_queue(n, who);
    }
    if (a.stage == HOLDS) {
        World &n = step(w, who, "(kazoo) releases");
        n.actors[who].stage = IDLE;
        delete_lease(n, who);
    }
}

// ---- faults, and what others do ----

void faults(const World &w, size_t who) {
    const Actor &a = w.actors[who];
    if (w.may_end && a.stage != ENDED && a.stage != IDLE) {
        World &n = step(w, who, "'S SESSION ENDS", false); // It has stopped before, by its clock.
        n.may_end = 0;
        n.actors[who].stage = ENDED;
        n.actors[who].acquires = 0;
        if (a.lease) delete_lease(n, who);
        leave_queue(n, who);
    }
    if (w.may_delete && a.lease && a.stage >= MADE && a.stage <= QUEUE_READ) {
        World &n = step(w, who, "'S LEASE IS DELETED", false);
        n.may_delete = 0;
        delete_lease(n, who);
    }
}

void resize(const World &w) {
    if (!w.may_resize) return;
    World &n = step(w, 0, "or another writes the other limit", false);
    n.may_resize--;
    set_pool(n, w.limit == 1 ? 2 : 1);
}

// ---- claim 6, and the search ----

// Only for a world in which nothing fair can happen.
const char *wrong_at_rest(const World &w) {
    bool failed = false;
    for (const Actor &a : w.actors) {
        if (a.stage != IDLE && a.stage != ENDED) return "an acquire waits for ever";
        if (a.lease || a.place) return "something is left";
        failed = failed || a.failed;
    }
    return failed && !w.anybody_held && w.may_end ? "each try has failed, and nobody held" : nullptr;
}

// Returns the world without what has no meaning in it, so that fewer worlds differ.
World canonical(World w) {
    if (pool != TRIES) w.anybody_held = 0;
    for (Actor &a : w.actors) {
        bool tries = a.stage >= MADE && a.stage <= ALL_READ;
        if (!tries) a.good = a.had_lease = a.in_force = a.before = a.outrun = a.set_since = 0;
        if (tries && !a.good) a.set_since = a.before = a.outrun = 0;
        if (a.stage != LIMITED && a.stage != ROOM) a.set_since_limit = 0;
        if (a.stage != LIMITED && a.stage != ROOM && !tries) a.limit = 0;
        if (!a.lease && a.stage != ROOM && !tries) a.slot = 0;
        if (a.stage != FULL) a.changed = 0;
    }
    for (bool leases : {false, true}) { // numbers without gaps
        uint8_t at = 0;
        for (uint8_t next = 1; next <= ACTORS + 1; next++)
            for (Actor &a : w.actors) {
                uint8_t &number = leases ? a.lease : a.place;
                if (number != next) continue;
                number = ++at;
            }
    }
    return w;
}

World beginning() {
    World w = {};
    w.limit = pool == TRIES ? 1 : 2;
    w.may_lose = w.may_end = w.may_delete = 1;
    w.may_resize = pool == RESIZED;
    for (size_t i = 0; i < ACTORS; i++) w.actors[i].acquires = 1;
    if (pool == WITH_KAZOO) w.actors[2].kind = w.actors[3].kind = KAZOO;
    if (pool != WITH_KAZOO) w.actors[3].acquires = 0;
    if (pool == RESIZED) w.may_delete = 0;
    if (pool == TRIES) w.may_delete = w.may_lose = 0;
    return w;
}

class Search : public Base {
    void begin() override {
        shortcuts = 0;
        add(::canonical(beginning()), 0, {});
    }
    const std::vector<Step> &steps_of(const World &w) override {
        steps.clear();
        for (size_t i = 0; i < ACTORS; i++) {
            if (w.actors[i].kind == KAZOO) kazoo(w, i);
            else divvy(w, i);
            faults(w, i);
        }
        resize(w);
        return steps;
    }
    const char *rest(const World &w) override {
        return wrong_at_rest(w);
    }
    World canonical(const World &w) override {
        return ::canonical(w);
    }
    const char *finish(uint32_t *) override {
        return shortcuts || pool == TRIES ? nullptr : "nobody ever held by the shortcut";
    }
    std::string label(const World &, const Doing &doing) override {
        return std::string(1, static_cast<char>('A' + doing.who)) + " " + doing.label;
    }
};

model::Outcome search(unsigned part, bool) {
    pool = static_cast<Pool>(part);
    return Search().run();
}

} // namespace

int main(int count, char **arguments) {
    return model::run({"semaphore_shortcut",
                       "the shortcut",
                       VARIANTS,
                       {{"plain", false}, {"kazoo", false}, {"resized", false}, {"tries", false}},
                       false,
                       search},
                      count, arguments);
}
