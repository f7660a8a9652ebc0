// A model of the death watch: rules C10 and G10 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
//   death_watch                   the rules, then each broken variant: the test model.death_watch
//   death_watch --rules           the rules alone
//   death_watch --list            the variants
//   death_watch --variant NAME    one of them, with the way to its fault
//
// A member A owns an item by its session, or wants it. Its client may lose one session and open a second. In the kind
// "command" a guardian runs what works on the item, and the forker of guardians is the watch. In the kind "library" the
// watch is a process of its own, and A works itself. B is a worker that is started in A's place, perhaps with A's
// number. D is a peer elsewhere. Both take the item when the servers have no owner.
//
// The search visits every order of steps. Nothing but a tick is timed, so that each delay is among the orders. T ticks
// are a session timeout. It claims:
//
//  1. Nobody works on the item beside its next owner (S2). Excused is what can happen without a watch: a session has
//     run out, and a process goes on that takes no signals, or that has lost its guardian and all who sweep.
//  2. When A has ended, its watch lives, and what ran under A can be ended, the item gets its next owner at once.
//
// Left out: more items and guardians; guardians and watches that are stopped, which are late ones; the margin of the
// session clock (rule C2). A has one heartbeat, may be stopped once, and one message of the watch may be lost. divvy
// itself neither executes another program nor closes all its descriptors. When A gives a session up, a command that it
// ordered and that has not started yet never starts.
#include <cstdint>
#include <cstring>
#include <vector>

#include "search.h"

namespace {

using model::is;
using model::Variant;

enum { T = 2, GIVE_UP = 2 * T };                           // in ticks
enum Process : uint8_t { RUNS, STOPPED, EXECUTED, ENDED }; // EXECUTED: another program, the same process
enum Who : uint8_t { NOBODY, A1, A2, B, D };               // sessions; D's never ends
enum Life : uint8_t { NOT_YET, LIVES, OVER, CLOSED };      // CLOSED: by a watch
enum Watch : uint8_t { WATCHES, KILLED, LEFT };
enum Call : uint8_t { IDLE, CONNECTING, CONNECTED, CLOSING, DONE };
enum Guardian : uint8_t { NONE, GUARDS, GONE, ORPHANED, SWEPT }; // ORPHANED: killed, and nobody has swept yet
enum Work : uint8_t { NO_WORK, WORKS, STUBBORN, NO_MORE };       // STUBBORN: takes no signals

enum Letter : uint8_t { EMPTY, WILL_A1, WILL_A2, WILL_B, FORGET };
enum { LETTERS = 4 };

// The whole world. All fields are bytes, so that two equal worlds have equal bytes.
struct World {
    uint8_t process, descriptors_closed, socket_is_held, since_end; // since_end: or since EOF, in ticks
    uint8_t session, told, belief, owns;                   // A's client; belief: ticks since its last proof was sent
    uint8_t asks;                                          // the session of a request for the item, on its way
    uint8_t beat, beat_age, beat_came;                     // the session of a heartbeat, on its way or on its way back
    uint8_t life[D], age[D];                               // the sessions at the servers
    uint8_t owner;                                         // by the servers
    uint8_t letters[LETTERS];                              // to the watch
    uint8_t watch, will, call, target, tried, stray_close; // stray_close: its sender was killed
    uint8_t forker_killed, order, guardian, work, work_session;
    uint8_t b_runs, b_has_number, b_owns;
    uint8_t may_stop, may_lose, may_beat; // what is left of faults and heartbeats
};

const std::vector<Variant> VARIANTS = {
    {"eof", "takes the end of its socket for the end of the process", "A's work goes on", "library", 0},
    {"silence", "takes a process that is stopped for one that has ended", "A's work goes on", "library", 0},
    {"too_early", "closes before what ran under the member has ended", "A's work goes on", "command", 0},
    {"killed_is_gone", "counts a killed guardian as one that has nothing left", "A's work goes on", "command", 0},
    {"unread_order", "judges before it has read all orders to start, and starts them afterwards", "A's work goes on",
     "command", 0},
    {"forker_killed", "is a process of its own, and takes the death of the forker for the end of all commands",
     "A's work goes on", "command", 0},
    {"number", "knows the process by its number, which was used again", "B works on", "library", 0},
    {"other_will", "serves a machine, and takes the will that came last, from whichever process", "B works on",
     "library", 0},
    {"newest", "closes the newest session of the member's name, instead of the one that it was told", "B works on",
     "library", 0},
    {"unread_will", "does not read what lies in its socket before it acts", "waits for a session", "library", 0},
    {"first_will", "keeps the first will that it was told", "waits for a session", "library", 0},
    {"waits_for_eof", "waits for the end of its socket as well, which a forked child holds open", "waits for a session",
     "library", 0},
    {"once", "tries once", "waits for a session", "library", 0},
};

bool commands;
size_t closes; // steps that took the item from its owner, by a close

// ---- steps ----

using Base = model::Search<World, const char *>;
using Step = Base::Next; // what is fair happens sooner or later, without a tick

std::vector<Step> steps;

World &step(const World &from, const char *label, bool fair) {
    steps.push_back({from, label, fair, nullptr, false});
    return steps.back().world;
}

bool believes(const World &w) {
    return w.process != ENDED && w.owns && w.belief < T;
}

bool runs_under_a(const World &w) {
    return w.work == WORKS || w.work == STUBBORN;
}

// The guardian's and the watch's sockets are closed at A's end. A forked child holds the watch's, but no guardian's.
bool has_let_go(const World &w) {
    return w.process == EXECUTED || w.process == ENDED || w.descriptors_closed;
}

bool socket_is_at_end(const World &w) {
    return has_let_go(w) && !w.socket_is_held;
}

bool has_letters(const World &w) {
    return w.letters[0] != EMPTY;
}

void write_letter(World &w, uint8_t letter) {
    for (uint8_t &place : w.letters) {
        if (place != EMPTY) continue;
        place = letter;
        return;
    }
}

void end_session(World &w, uint8_t session, Life how) {
    if (w.life[session] != LIVES) return;
    if (how == CLOSED && w.owner == session) closes++;
    w.life[session] = how;
    w.age[session] = 0;
    if (w.owner == session) w.owner = NOBODY;
}

// The client opens sessions, tells its watch of each before it asks for anything there, and believes by its clock.
void member_session(const World &w) {
    if (w.process != RUNS) return;
    if (w.session == NOBODY && w.life[A2] == NOT_YET) {
        World &n = step(w, "A opens a session", false);
        n.session = w.life[A1] == NOT_YET ? A1 : A2;
        n.life[n.session] = LIVES;
        n.told = n.belief = n.owns = 0;
    }
    if (w.session == NOBODY) return;
    if (!w.told) {
        World &n = step(w, "A tells its watch of the session", false);
        n.told = 1;
        if (!w.descriptors_closed) write_letter(n, w.session == A1 ? WILL_A1 : WILL_A2);
    }
    if (w.belief >= T || w.life[w.session] != LIVES) {
        World &n = step(w, "A's client gives its session up", false);
        n.session = n.owns = n.order = 0;
        if (w.work == NO_WORK) n.work = NO_MORE; // A takes back what it ordered.
    }
    if (w.may_beat && w.belief < T && w.belief > 0) {
        World &n = step(w, "A sends a heartbeat", false);
        n.beat = w.session;
        n.may_beat = 0;
    }
    if (w.told && w.belief < T && w.asks == NOBODY && !w.owns && w.owner != w.session)
        step(w, "A asks for the item", false).asks = w.session;
    if (w.belief < T && w.owner == w.session && !w.owns) step(w, "A learns that it owns the item", false).owns = 1;
}

// What A does besides: it has work done, closes its client, or comes to an end of some kind.
void member_life(const World &w) {
    if (w.process == RUNS && commands && believes(w) && !w.order && !runs_under_a(w) && w.guardian != GUARDS &&
        w.guardian != ORPHANED && !w.forker_killed)
        step(w, "A orders a command", false).order = 1;
    bool idle = !runs_under_a(w) && !w.order && w.guardian != GUARDS && w.guardian != ORPHANED;
    if (w.process == RUNS && w.session != NOBODY && w.told && idle && w.asks == NOBODY) {
        World &n = step(w, "A closes its client, and has its watch forget", false);
        end_session(n, w.session, OVER);
        n.session = NOBODY;
        n.owns = 0;
        if (!w.descriptors_closed) write_letter(n, FORGET);
    }
    if (w.process == RUNS && w.may_stop) {
        World &n = step(w, "A is stopped", false);
        n.process = STOPPED;
        n.may_stop = 0;
    }
    if (w.process == STOPPED) step(w, "A goes on", false).process = RUNS;
    if (w.process == RUNS && !commands && !w.descriptors_closed) {
        step(w, "A closes all its descriptors", false).descriptors_closed = 1;
        if (!w.socket_is_held) step(w, "A forks a child, which holds its socket", false).socket_is_held = 1;
    }
    if (w.process == RUNS && !commands) step(w, "A executes another program", false).process = EXECUTED;
    if (w.process != ENDED) step(w, "A IS KILLED", false).process = ENDED;
}

// Guardians end what they guard when A has let go of them, and before the deadline; see tick().
void guardians(const World &w) {
    if (w.order && !w.forker_killed) {
        World &n = step(w, "the forker forks a guardian", true);
        n.order = 0;
        n.guardian = GUARDS;
        n.work = NO_WORK;
    }
    if (w.guardian == GUARDS && w.work == NO_WORK) {
        for (Work work : {WORKS, STUBBORN}) {
            if (w.belief >= T || (work == STUBBORN && has_let_go(w))) continue;
            World &n = step(w, work == WORKS ? "a command starts" : "a command starts that takes no signals", true);
            n.work = work;
            n.work_session = w.session;
        }
        if (w.belief >= T) step(w, "the guardian starts nothing", true).work = NO_MORE;
    }
    if (w.guardian == GUARDS && w.work == WORKS) step(w, "the guardian ends the command", has_let_go(w)).work = NO_MORE;
    if (w.work == STUBBORN) step(w, "the stubborn command ends", false).work = NO_MORE;
    if (w.guardian == GUARDS && w.work == NO_MORE) step(w, "the guardian ends", true).guardian = GONE;
    if (w.guardian == GUARDS) step(w, "THE GUARDIAN IS KILLED", false).guardian = ORPHANED;
    if (w.guardian == ORPHANED && (!w.forker_killed || w.process == RUNS)) {
        if (w.work == WORKS) step(w, "what a killed guardian left is swept", true).work = NO_MORE;
        if (!runs_under_a(w) && !w.forker_killed) step(w, "the forker has swept", true).guardian = SWEPT;
    }
    if (commands && !w.forker_killed) {
        World &n = step(w, "THE FORKER IS KILLED", false);
        n.forker_killed = 1;
        if (is("forker_killed")) return; // The watch is another process, and lives on.
        n.watch = KILLED;
        if (w.call == CLOSING) n.stray_close = w.target;
        n.call = IDLE;
    }
}

// ---- the watch ----

bool has_ended(const World &w) {
    if (is("eof")) return socket_is_at_end(w);
    if (is("silence")) return w.process == ENDED || w.process == STOPPED;
    if (is("waits_for_eof")) return w.process == ENDED && socket_is_at_end(w);
    return w.process == ENDED;
}

bool nothing_is_left(const World &w) {
    if (!commands || is("too_early")) return true;
    if (is("forker_killed") && w.forker_killed) return true;
    if (w.order && !is("unread_order")) return false;
    if (is("killed_is_gone") && w.guardian == ORPHANED) return true;
    return w.guardian == NONE || w.guardian == GONE || w.guardian == SWEPT;
}

uint8_t session_to_close(const World &w) {
    if (is("newest")) return w.life[B] != NOT_YET ? B : w.life[A2] != NOT_YET ? A2 : A1;
    if (is("number") && w.b_has_number) return B;
    return w.will == WILL_A1 ? A1 : w.will == WILL_A2 ? A2 : w.will == WILL_B ? B : NOBODY;
}

void read_letter(const World &w) {
    World &n = step(w, "the watch reads what it is told", true);
    memmove(n.letters, n.letters + 1, LETTERS - 1);
    n.letters[LETTERS - 1] = EMPTY;
    if (!is("first_will") || w.will == EMPTY) n.will = w.letters[0];
}

void death_watch(const World &w) {
    if (w.watch == WATCHES && !commands) { // else it is the forker
        World &n = step(w, "THE WATCH IS KILLED", false);
        n.watch = KILLED;
        if (w.call == CLOSING) n.stray_close = w.target;
        n.call = IDLE;
    }
    if (w.watch != WATCHES) return;
    if (has_letters(w)) read_letter(w);
    if (w.since_end >= GIVE_UP && w.call != CLOSING) step(w, "the watch gives up", true).watch = LEFT;
    if (w.call == CONNECTED) step(w, "the watch closes the session", true).call = CLOSING;
    if (w.call == DONE) step(w, "the watch leaves", true).watch = LEFT;
    if (w.call != IDLE || !has_ended(w) || !nothing_is_left(w) || (has_letters(w) && !is("unread_will"))) return;
    uint8_t session = session_to_close(w);
    if (session == NOBODY || (is("once") && w.tried)) {
        step(w, "the watch leaves, with nothing to do", true).watch = LEFT;
        return;
    }
    World &n = step(w, "the watch takes the session up", true);
    n.call = CONNECTING;
    n.target = session;
    n.tried = is("once");
}

// ---- the network, the servers, the others, and time ----

void lose(const World &w, const char *label, Call call) {
    if (!w.may_lose) return;
    World &n = step(w, label, false);
    n.may_lose = 0;
    n.call = call;
}

void network(const World &w) {
    if (w.call == CONNECTING) {
        World &n = step(w, "the watch's connection takes the session up", true);
        n.call = w.life[w.target] == LIVES ? CONNECTED : DONE; // else it is told that the session has expired
        n.age[w.target] = 0;
        lose(w, "the watch's connection fails", IDLE);
    }
    if (w.call == CLOSING) {
        World &n = step(w, "the watch's close arrives", true);
        end_session(n, w.target, CLOSED);
        n.call = DONE;
        lose(w, "the watch's close is lost", IDLE);
        if (w.may_lose) {
            lose(w, "the answer to the watch's close is lost", IDLE);
            end_session(steps.back().world, w.target, CLOSED);
        }
    }
    if (w.stray_close != NOBODY) {
        World &n = step(w, "the close of a killed watch arrives", true);
        end_session(n, w.stray_close, CLOSED);
        n.stray_close = NOBODY;
    }
    if (w.asks != NOBODY) {
        World &n = step(w, "A's request for the item arrives", true);
        if (w.life[w.asks] == LIVES && w.owner == NOBODY) n.owner = w.asks;
        n.asks = NOBODY;
    }
    if (w.beat != NOBODY && !w.beat_came) {
        World &n = step(w, "A's heartbeat arrives", true);
        n.beat_came = w.life[w.beat] == LIVES;
        if (n.beat_came) n.age[w.beat] = 0;
        else n.beat = NOBODY;
    } else if (w.beat != NOBODY) {
        World &n = step(w, "the heartbeat's answer arrives", true);
        if (w.process == RUNS && w.beat == w.session && w.belief < T) n.belief = w.beat_age;
        n.beat = n.beat_age = n.beat_came = NOBODY;
    }
}

void others(const World &w) {
    if (w.process == ENDED && !w.b_runs) {
        for (bool has_number : {false, true}) {
            World &n = step(w, has_number ? "B starts with A's number" : "B starts", false);
            n.b_runs = 1;
            n.b_has_number = has_number;
            n.life[B] = LIVES;
            if (is("other_will")) write_letter(n, WILL_B);
        }
    }
    if (w.b_runs && w.owner == NOBODY && w.life[B] == LIVES) {
        World &n = step(w, "B takes the item", true);
        n.owner = B;
        n.b_owns = 1;
    }
    if (w.b_owns && w.life[B] != LIVES) step(w, "B learns that its session is over", false).b_owns = 0;
    if (w.owner == NOBODY) step(w, "D takes the item", true).owner = D;
    for (uint8_t session : {A1, A2})
        if (w.life[session] == LIVES && w.age[session] >= T)
            end_session(step(w, "a session expires", false), session, OVER);
}

// A tick waits for those who end what works before its deadline: the guardian, the forker, or A (rules G3, G4).
void tick(const World &w) {
    bool somebody_ends_it = w.guardian == GUARDS || !w.forker_killed || w.process == RUNS;
    if (w.work == WORKS && w.belief + 1 >= T && somebody_ends_it) return;
    World &n = step(w, "a tick", false);
    for (uint8_t session : {A1, A2})
        if (w.life[session] == LIVES && w.age[session] < T) n.age[session]++;
    if (w.belief < T) n.belief++;
    if (w.beat != NOBODY && w.beat_age < T) n.beat_age++;
    if (has_let_go(w) && w.since_end < GIVE_UP) n.since_end++;
}

// ---- claims ----

const char *overlap(const World &w) {
    bool excused = (w.belief >= T || w.session != w.work_session) && w.life[w.work_session] != CLOSED &&
                   (w.work == STUBBORN || (w.guardian == ORPHANED && w.forker_killed));
    bool a = believes(w) || (runs_under_a(w) && !excused);
    bool d = w.owner == D;
    return a && (w.b_owns || d) ? "A's work goes on beside the next owner's"
           : w.b_owns && d      ? "B works on beside D"
                                : nullptr;
}

// Only for a world in which nothing fair can happen before a tick.
const char *idle_item(const World &w) {
    bool promised = w.process == ENDED && w.watch != KILLED && !w.forker_killed && w.work != STUBBORN &&
                    !w.descriptors_closed && w.since_end < GIVE_UP;
    return promised && w.owner != NOBODY && w.owner == w.session ? "the item waits for a session timeout" : nullptr;
}

// ---- the search ----

// Nothing can go wrong from here on: no watch can hit B, nothing starts that works for A, and the item has its next
// owner, or gets it, as A has ended with its sessions and all that worked.
bool is_over(const World &w) {
    bool b_can_be_hit = is("number") || is("other_will") || is("newest");
    bool has_next_owner = w.owner == D || (w.owner == B && !b_can_be_hit);
    bool all_ended = w.process == ENDED && w.life[A1] != LIVES && w.life[A2] != LIVES && !runs_under_a(w);
    bool starts = w.order || (w.guardian == GUARDS && w.work == NO_WORK);
    return !starts && (has_next_owner || (all_ended && !b_can_be_hit));
}

// Returns the world without what has no meaning in it, so that fewer worlds differ.
World canonical(World w) {
    if (w.process == ENDED) w.told = w.owns = w.may_stop = w.may_beat = 0;
    if (w.process == ENDED && w.beat_came) w.beat = w.beat_came = 0;
    if (w.beat == NOBODY) w.beat_age = w.beat_came = 0;
    if (!is("number")) w.b_has_number = 0;
    if (!is("eof") && !is("waits_for_eof")) w.socket_is_held = 0; // Nobody looks.
    if (w.watch == KILLED) w.since_end = 0;
    if (w.watch != WATCHES) {
        w.will = w.call = w.target = w.tried = 0;
        memset(w.letters, EMPTY, LETTERS);
    }
    if (w.call == IDLE || w.call == DONE) w.target = NOBODY;
    if (!runs_under_a(w)) w.work_session = NOBODY;
    for (uint8_t session : {A1, A2})
        if (w.life[session] == CLOSED && w.work_session != session) w.life[session] = OVER;
    return w;
}

class Search : public Base {
    void begin() override {
        World w = {};
        w.may_stop = w.may_lose = w.may_beat = 1;
        closes = 0;
        add(w, 0, "begin");
    }
    const std::vector<Step> &steps_of(const World &w) override {
        steps.clear();
        member_session(w), member_life(w), guardians(w), death_watch(w), network(w), others(w), tick(w);
        for (Step &s : steps) {
            const char *wrong = overlap(s.world);
            s.fault = model::asks_for(wrong) ? wrong : nullptr;
            s.is_over = is_over(s.world);
        }
        return steps;
    }
    const char *rest(const World &w) override {
        const char *wrong = idle_item(w);
        return model::asks_for(wrong) ? wrong : nullptr;
    }
    World canonical(const World &w) override {
        return ::canonical(w);
    }
    const char *finish(uint32_t *) override {
        return closes ? nullptr : "the watch never closed the session of an owner";
    }
    std::string label(const World &, const char *const &way) override {
        return way;
    }
};

model::Outcome search(unsigned part, bool) {
    commands = part == 1;
    return Search().run();
}

} // namespace

int main(int count, char **arguments) {
    return model::run({"death_watch", "the watch", VARIANTS, {{"library", false}, {"command", false}}, false, search},
                      count, arguments);
}
