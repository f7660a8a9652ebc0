// A model of the session clock: rules C1 to C5 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
//   clock                   the rules, then each broken variant: the test model.clock
//   clock --rules           the rules alone
//   clock --long            the rules with three faults
//   clock --list            the variants
//   clock --variant NAME    one of them, with the way to its fault
//
// A client has a connection to a follower. The follower marks the session at each request, and hands the mark over when
// the leader pings it. Then the leader begins to count the session's timeout again, as it does when a server takes the
// session up. A write is answered by the leader, and prolongs nothing. A session whose timeout has passed ends at a
// moment of the leader's choice, and others are admitted from then on.
//
// Time passes in units of half a lag. Requests and answers may take for ever, as they do when the client is stopped. Two
// faults happen, of any kind. A connection breaks. The leader is stopped, for any time, and may do anything first when
// it runs again. The leader changes: the follower joins the new one, or is cut off, and still answers reads. Besides,
// the leader's clock may once gain a unit on the client's. A session is new, or has any time left when the client begins
// to count.
//
// The search visits every order of steps. It claims:
//
//  1. No session ends while its client believes in it.
//  2. If each request is answered within a unit, and the client writes once a unit, its deadline never comes. (This
//     search has no faults. Its timeout is twice as long, because this client remembers one answer at a time.)
//
// For the first claim one request at a time is enough, and one answer that is remembered, which comes when it likes. A
// proof consists of an answer and one or two writes, each sent after the answer to the one before. What else is sent can
// only prolong the session. So the search has them alone: a read, whose answer no leader has a part in, and writes.
//
// Assumed, and broken by a variant each: ticks are not told too small; pings and their answers lag by less than a lag
// while the leader runs; and the leader is not stopped between the moment at which a ping is due and its answer.
//
// Left out: a client of the leader itself, whose requests prolong the session at once; observers; a leader whose clock
// is slow, which counts as a lag; how the client chooses the times of its heartbeats.
#include <cstdint>
#include <vector>

#include "search.h"

namespace {

using model::is;
using model::Variant;

enum { LAG = 2, PING = 3, MARGIN = 1 };
enum Where : uint8_t { NOWHERE, TO_FOLLOWER, TO_LEADER, TO_CLIENT };
enum Connection : uint8_t { DOWN, ASKED, GRANTED, UP };
enum Ping : uint8_t { AT_REST, SENT, ANSWERED };
enum Stage : uint8_t { NONE, FRESH, PINGED };

// A request, or its answer. Ages are units since then, up to the timeout.
struct Request {
    uint8_t where, writes, age;
    uint8_t is_first, is_second; // sent late enough to be that write of a proof
};

// The answer that the client has remembered, which is not proven yet.
struct Answer {
    uint8_t stage, is_here, age; // is_here: by the present connection; age: since its request was sent
    uint8_t since;               // the answer came, or the first write was answered; up to what matters
};

// All fields are bytes, so that two equal worlds have equal bytes.
struct World {
    Request request; // the one that is under way
    Answer answer;
    uint8_t believes, proven, connection, wrote; // proven: age of the newest proven request; wrote: in this unit
    uint8_t left, ended;                         // what the leader's clock has left for the session
    uint8_t marked, ping, ping_marked, due, lag; // due: until the next ping
    uint8_t stopped, cut;                        // cut: the client's follower follows a leader that was replaced
    uint8_t may_fail, may_drift;
};

const std::vector<Variant> VARIANTS = {
    {"from_answer", "the deadline counts from the answer, not from the request", "a session ends", "faults", 0},
    {"one_write", "one late write proves", "a session ends", "faults", 0},
    {"any_write", "each write that is answered proves itself", "a session ends", "faults", 0},
    {"reads_prove", "an answered read completes a proof as a write does", "a session ends", "faults", 0},
    {"no_ping_wait", "the first write of a proof does not wait until a ping was due", "a session ends", "faults", 0},
    {"no_lag_wait", "the second write of a proof does not wait for a lag", "a session ends", "faults", 0},
    {"no_margin", "the deadline has no margin for clocks that differ", "a session ends", "faults", 0},
    {"no_first_proof", "the client believes as soon as it begins to count", "a session ends", "faults", 0},
    {"tick_small", "the tick is told too small", "a session ends", "faults", 0},
    {"pings_lag", "pings and their answers may take for ever", "a session ends", "faults", 0},
    {"stops_in_lag", "the leader may be stopped while a ping is due or under way", "a session ends", "faults", 0},
    {"seldom", "the client that has answers in time writes once in half its timeout", "a deadline comes", "in time", 0},
};

const char *fault; // of the step that was made last
bool in_time;      // searches the second claim

uint8_t timeout() {
    return in_time ? 24 : 12;
}

uint8_t deadline() {
    return is("no_margin") ? timeout() : static_cast<uint8_t>(timeout() - MARGIN);
}

void grow(uint8_t &age, unsigned most) {
    if (age < most) age++;
}

// ---- the client ----

Request make_write(const World &w) {
    const Answer &a = w.answer;
    unsigned ping = is("no_ping_wait") ? 0 : is("tick_small") ? PING - 1 : PING, lag = is("no_lag_wait") ? 0 : LAG;
    return {TO_FOLLOWER, 1, 0, a.stage == FRESH && a.since >= ping, a.stage == PINGED && a.since >= lag};
}

bool can_write(const World &w) {
    if (w.connection != UP || w.request.where) return false;
    if (in_time) return !w.wrote;
    Request r = make_write(w); // others do nothing for a proof
    bool counts = w.answer.stage ? r.is_first || r.is_second || !w.answer.is_here : is("any_write");
    return counts && !w.believes;
}

bool can_read(const World &w) {
    if (w.connection != UP || w.request.where || in_time || w.believes) return false;
    return !w.answer.stage || is("reads_prove");
}

void write(World &w) {
    w.request = make_write(w);
    w.wrote = in_time;
}

void read(World &w) {
    w.request = make_write(w);
    w.request.writes = 0;
}

void prove(World &w, uint8_t age) {
    w.answer = Answer{};
    if (age >= deadline()) return;
    if (!w.believes || age < w.proven) w.proven = age;
    w.believes = 1;
    if (w.ended) fault = "the client believes in a session that has ended";
}

void take_answer(World &w) {
    Request r = w.request;
    Answer &a = w.answer;
    w.request = Request{};
    uint8_t age = is("from_answer") ? 0 : r.age;
    if (r.writes && is("any_write")) prove(w, age);
    if (a.stage == NONE && !w.ended && (in_time || !w.believes)) {
        a = Answer{FRESH, 1, age, 0};
    } else if (a.stage != NONE && (r.writes || is("reads_prove"))) {
        bool done = !a.is_here || (a.stage == PINGED && r.is_second) || (is("one_write") && r.is_first);
        if (done) {
            prove(w, a.age);
        } else if (a.stage == FRESH && r.is_first) {
            a.stage = PINGED;
            a.since = 0;
        }
    }
}

void disconnect(World &w) {
    w.connection = DOWN;
    w.cut = w.marked = w.ping = w.ping_marked = 0; // of another follower from now on, and to mark prolongs alone
    w.answer.is_here = 0;
    w.request = Request{};
}

// ---- the follower ----

bool can_commit(const World &w) {
    return w.request.where == TO_LEADER && !w.cut && !w.stopped && !w.ended;
}

void take_request(World &w) {
    w.request.where = w.request.writes ? TO_LEADER : TO_CLIENT;
    if (!w.cut) w.marked = 1;
}

void answer_ping(World &w) {
    w.ping = ANSWERED;
    w.ping_marked = w.marked;
    w.marked = 0;
}

// ---- the leader ----

bool is_pinging(const World &w) {
    return w.ping != AT_REST || w.due == 0;
}

void prolong(World &w) {
    w.left = timeout();
}

void take_ping_answer(World &w) {
    if (w.ping_marked) prolong(w);
    w.ping = w.ping_marked = 0;
    if (w.due) w.lag = 0;
}

void end_session(World &w) {
    w.ended = 1;
    if (w.believes) fault = "a session ends in which its client believes";
}

void change_leader(World &w, bool cut) {
    w.may_fail--;
    if (!cut) disconnect(w);
    w.cut = cut;
    w.marked = w.ping = w.ping_marked = w.lag = w.stopped = 0;
    w.due = PING;
    prolong(w);
}

// ---- time ----

bool can_pass(const World &w) {
    bool lags = !w.stopped && !w.cut && is_pinging(w) && w.lag >= LAG - 1;
    if (lags && !is("pings_lag")) return false;
    if (!in_time) return true;
    return !can_write(w) && !(w.request.where && w.request.age >= 1);
}

void pass(World &w, bool drifts) {
    for (unsigned n = drifts ? 2 : 1; n > 0 && w.left > 0; n--) w.left--;
    if (drifts) w.may_drift--;
    if (w.request.where) grow(w.request.age, timeout());
    if (w.answer.stage) {
        grow(w.answer.age, timeout());
        grow(w.answer.since, PING);
    }
    if (w.believes) w.proven++;
    if (w.cut && w.due == 0) w.due = PING;
    if (!w.cut && !w.stopped && is_pinging(w)) grow(w.lag, LAG);
    if (w.due > 0) w.due--;
    static const unsigned EVERY = 12;
    if (is("seldom") && w.wrote) w.wrote = static_cast<uint8_t>((w.wrote + 1u) % EVERY);
    else w.wrote = 0;
    if (w.believes && w.proven >= deadline() && in_time) fault = "a deadline comes, though all answers came in time";
}

// ---- the search ----

using Base = model::Search<World, const char *>;
using Step = Base::Next;

template <typename Do> void step(std::vector<Step> &steps, const World &from, const char *label, Do act) {
    Step s{from, label, true, nullptr, false};
    fault = nullptr;
    act(s.world);
    s.fault = fault;
    steps.push_back(s);
}

void add_client_steps(std::vector<Step> &steps, const World &w) {
    if (can_write(w)) step(steps, w, "the client sends a write", write);
    if (can_read(w)) step(steps, w, "the client sends a read", read);
    if (w.request.where == TO_CLIENT) step(steps, w, "the client has an answer", take_answer);
    if (w.connection == UP && w.may_fail) {
        step(steps, w, "THE CONNECTION BREAKS", [](World &n) {
            n.may_fail--;
            disconnect(n);
        });
    }
    if (w.connection == DOWN) step(steps, w, "the client asks a server", [](World &n) { n.connection = ASKED; });
    if (w.connection == GRANTED) step(steps, w, "the client is connected", [](World &n) { n.connection = UP; });
}

void add_server_steps(std::vector<Step> &steps, const World &w) {
    if (w.request.where == TO_FOLLOWER) step(steps, w, "the follower has a request", take_request);
    if (can_commit(w)) step(steps, w, "the leader commits a write", [](World &n) { n.request.where = TO_CLIENT; });
    if (w.ping == SENT) step(steps, w, "the follower answers a ping", answer_ping);
    if (w.stopped) {
        step(steps, w, "the leader runs again", [](World &n) { n.stopped = n.lag = 0; });
        return;
    }
    if (w.connection == ASKED) {
        step(steps, w, "the leader grants the session", [](World &n) {
            n.connection = GRANTED;
            prolong(n);
        });
    }
    if (w.ping == AT_REST && w.due == 0 && !w.cut) {
        step(steps, w, "the leader pings", [](World &n) {
            n.ping = SENT;
            n.due = PING;
        });
    }
    if (w.ping == ANSWERED) step(steps, w, "the leader has the answer to a ping", take_ping_answer);
    if (w.left == 0) step(steps, w, "the leader ends the session", end_session);
    if (w.may_fail && (w.cut || !is_pinging(w) || is("stops_in_lag"))) {
        step(steps, w, "THE LEADER IS STOPPED", [](World &n) {
            n.may_fail--;
            n.stopped = 1;
        });
    }
}

std::vector<Step> list(const World &w) {
    std::vector<Step> steps;
    if (w.believes && w.proven >= deadline()) return steps;                         // C5: for good
    if (w.answer.stage && w.answer.age >= deadline() && !in_time) return steps;     // proves nothing
    if (w.ended && !(w.answer.stage && w.request.where == TO_CLIENT)) return steps; // nothing is proven later
    add_client_steps(steps, w);
    add_server_steps(steps, w);
    if (w.may_fail) {
        step(steps, w, "THE LEADER CHANGES", [](World &n) { change_leader(n, false); });
        if (w.connection == UP)
            step(steps, w, "THE LEADER CHANGES, AND THE FOLLOWER IS CUT OFF", [](World &n) { change_leader(n, true); });
    }
    if (can_pass(w)) {
        step(steps, w, "a unit of time passes", [](World &n) { pass(n, false); });
        if (w.may_drift) step(steps, w, "A UNIT PASSES, TWO FOR THE LEADER", [](World &n) { pass(n, true); });
    }
    return steps;
}

class Search : public Base {
  public:
    explicit Search(uint8_t how_many) : faults(how_many) {}

  private:
    const uint8_t faults;
    std::vector<Step> steps;

    void begin() override {
        World w = {};
        w.connection = UP;
        if (!in_time) w.may_fail = faults, w.may_drift = 1;
        for (w.due = 0; w.due <= PING; w.due++) {
            w.believes = 1;
            w.left = timeout();
            add(w, 0, "a session is created");
            w.believes = is("no_first_proof");
            for (w.left = 0; w.left <= timeout() && !in_time; w.left++) add(w, 0, "the client begins to count");
        }
    }
    const std::vector<Step> &steps_of(const World &w) override {
        return steps = list(w);
    }
    std::string label(const World &, const char *const &way) override {
        return way;
    }
};

model::Outcome search(unsigned part, bool is_long) {
    in_time = part == 1;
    return Search(is_long ? 3 : 2).run();
}

} // namespace

int main(int count, char **arguments) {
    return model::run({"clock", "", VARIANTS, {{"faults", false}, {"in time", false}}, true, search}, count, arguments);
}
