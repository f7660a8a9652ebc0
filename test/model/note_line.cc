// A model of the writes of a member's note: rules T0 and T5 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
//   note_line                   the rules, then each broken variant: the test model.note_line
//   note_line --rules           the rules alone
//   note_line --list            the variants
//   note_line --variant NAME    one of them, with the way to its fault
//
// A member writes its note several times. Each write deletes a place of its own in the same transaction, and its text
// says that this place was given, and all that were given before. Several writes are under way, one behind the other.
// Answers may be lost with the connection, or say nothing. A server may put a request off, which the client then sends
// again behind the others. Somebody else may delete a place, so that its write is refused.
//
// The search visits every order of steps. It claims:
//
//  1. The member learns of each write whether it was applied.
//  2. The note that stands never says that something was given whose place did not leave with it or an earlier write.
//  3. Each write ends.
//
// Left out: somebody else's writes of the note, after which the member has none; the end of the session; the user.
#include <cstring>
#include <vector>

#include "search.h"

namespace {

using model::is;
using model::Variant;

enum { WRITES = 4, LINE = 3, CHANNEL = 6 };
enum Answer : uint8_t { DONE, VERSION, NO_NODE, UNKNOWN };
enum Outcome : uint8_t { OPEN, APPLIED, FAILED };

// A write as the member knows it.
struct Write {
    uint8_t sent, again, unsure, fallen, outcome, version, says; // says: bits of the writes that its text names
};

struct Message {
    uint8_t write, version, says, answer; // write: from 1 on; 0: no message
};

// All fields are bytes, so that two equal worlds have equal bytes.
struct World {
    Write writes[WRITES];
    uint8_t begun, first, version, given; // the line is [first, begun); given: bits, as the member believes
    Message requests[CHANNEL], answers[CHANNEL], put_off[CHANNEL];
    uint8_t connected;
    uint8_t server_version, server_says, applied, places; // bits of writes
    uint8_t may_break, may_say_nothing, may_put_off, may_delete;
};

const std::vector<Variant> VARIANTS = {
    {"lost_is_done", "takes a write whose answer was lost for done", "believes a write", nullptr, 0},
    {"lost_is_undone", "takes a write whose answer was lost for undone", "does not believe", nullptr, 0},
    {"version_is_proof", "takes a refusal of the version for proof, also behind a write that is open",
     "believes a write", nullptr, 0},
    {"line_goes_on", "writes what stands behind a refused write at the version that is there",
     "says that something was given", nullptr, 0},
    {"given_stays", "says of a refused write that it gave", "says that something was given", nullptr, 0},
    {"no_version", "writes at any version", "says that something was given", nullptr, 0},
};

const char *fault; // of the step that was made last

uint8_t bit(unsigned n) {
    return static_cast<uint8_t>(1u << n);
}

// ---- channels ----

void put(Message *channel, Message m) {
    for (unsigned i = 0; i < CHANNEL; i++) {
        if (channel[i].write) continue;
        channel[i] = m;
        return;
    }
    fault = "a channel is full";
}

Message take(Message *channel) {
    Message m = channel[0];
    memmove(channel, channel + 1, (CHANNEL - 1) * sizeof *channel);
    channel[CHANNEL - 1] = Message{};
    return m;
}

// ---- the member ----

void send(World &w, unsigned n) {
    Write &write = w.writes[n];
    write.again = 1;
    if (!w.connected) return;
    write.again = 0;
    write.sent = 1;
    put(w.requests, Message{static_cast<uint8_t>(n + 1), write.version, write.says, 0});
}

void end(World &w, unsigned n, Outcome outcome) {
    w.writes[n].outcome = outcome;
    w.writes[n].again = 0;
    bool applied = w.applied & bit(n);
    if (outcome == APPLIED && !applied) fault = "the member believes a write that was not applied";
    if (outcome == FAILED && applied) fault = "the member does not believe a write that was applied";
}

void fall(World &w) {
    for (unsigned n = w.first; n < w.begun; n++) {
        if (is("line_goes_on")) {
            w.writes[n].version--;
            if (!w.writes[n].sent) w.writes[n].again = 1;
            continue;
        }
        w.writes[n].fallen = 1;
        if (!w.writes[n].sent && w.writes[n].outcome == OPEN) end(w, n, FAILED);
    }
}

void go_on(World &w) {
    while (w.first < w.begun && w.writes[w.first].outcome != OPEN) {
        unsigned n = w.first++;
        bool failed = w.writes[n].outcome == FAILED;
        if (!failed) w.version++;
        if (failed && !is("given_stays")) w.given = static_cast<uint8_t>(w.given & ~bit(n));
        if (failed) fall(w);
    }
    if (w.first < w.begun && w.writes[w.first].again) send(w, w.first);
}

void take_answer(World &w, Message m) {
    unsigned n = m.write - 1u;
    Write &write = w.writes[n];
    bool is_first = n == w.first, lost = m.answer == UNKNOWN;
    write.sent = 0;
    if (m.answer == DONE) {
        end(w, n, APPLIED);
    } else if (lost && (is("lost_is_done") || is("lost_is_undone"))) {
        end(w, n, is("lost_is_done") ? APPLIED : FAILED);
    } else if (write.fallen) {
        end(w, n, FAILED);
    } else if (!is_first && m.answer == VERSION && is("version_is_proof")) {
        end(w, n, APPLIED);
    } else if (lost || !is_first || (is("line_goes_on") && m.answer == VERSION && m.version != write.version)) {
        write.again = 1;
        write.unsure |= lost;
    } else {
        end(w, n, m.answer == VERSION && write.unsure ? APPLIED : FAILED);
    }
    go_on(w);
}

bool has_room(const World &w) {
    bool smooth = true;
    for (unsigned n = w.first; n < w.begun; n++) {
        const Write &write = w.writes[n];
        smooth = smooth && write.sent && !write.unsure && !write.fallen;
    }
    return w.connected && smooth && w.begun < WRITES && w.begun - w.first < LINE;
}

void begin(World &w) {
    unsigned n = w.begun++;
    w.given |= bit(n);
    w.writes[n].version = static_cast<uint8_t>(w.version + (n - w.first));
    w.writes[n].says = w.given;
    send(w, n);
}

// ---- the server ----

void serve(World &w) {
    Message m = take(w.requests);
    unsigned n = m.write - 1u;
    m.answer = DONE;
    if (m.version != w.server_version && !is("no_version")) m.answer = VERSION;
    else if (!(w.places & bit(n))) m.answer = NO_NODE;
    if (m.answer == DONE) {
        if (w.applied & bit(n)) fault = "a write was applied twice";
        w.applied |= bit(n);
        w.places = static_cast<uint8_t>(w.places & ~bit(n));
        w.server_version++;
        w.server_says = m.says;
        if (w.server_says & ~w.applied) fault = "the note says that something was given whose place has not left so";
    }
    put(w.answers, m);
}

// All that is under way is lost, or was done already. What the client had put off is still there.
void break_connection(World &w) {
    w.connected = 0;
    w.may_break--;
    memset(w.requests, 0, sizeof w.requests);
    memset(w.answers, 0, sizeof w.answers);
    for (unsigned n = w.first; n < w.begun; n++) {
        bool waits = false;
        for (const Message &m : w.put_off) waits = waits || m.write == n + 1;
        if (w.writes[n].sent && !waits) take_answer(w, Message{static_cast<uint8_t>(n + 1), 0, 0, UNKNOWN});
    }
}

// ---- the search ----

using Base = model::Search<World, const char *>;
using Step = Base::Next;

template <typename Do> void step(std::vector<Step> &steps, const World &from, const char *label, bool fair, Do act) {
    Step s{from, label, fair, nullptr, false};
    fault = nullptr;
    act(s.world);
    s.fault = fault;
    steps.push_back(s);
}

std::vector<Step> list(const World &w) {
    std::vector<Step> steps;
    if (has_room(w)) step(steps, w, "the member writes its note", false, begin);
    if (w.requests[0].write) step(steps, w, "a request arrives", true, serve);
    if (w.answers[0].write) {
        step(steps, w, "an answer arrives", true, [](World &n) { take_answer(n, take(n.answers)); });
        if (w.may_say_nothing) {
            step(steps, w, "an answer arrives, and says nothing", false, [](World &n) {
                n.may_say_nothing--;
                Message m = take(n.answers);
                m.answer = UNKNOWN;
                take_answer(n, m);
            });
        }
    }
    if (w.requests[0].write && w.may_put_off) {
        step(steps, w, "the server puts a request off", false, [](World &n) {
            n.may_put_off--;
            put(n.put_off, take(n.requests));
        });
    }
    if (w.put_off[0].write && w.connected) {
        step(steps, w, "what was put off is sent again", true, [](World &n) { put(n.requests, take(n.put_off)); });
    }
    if (w.connected && w.may_break) step(steps, w, "THE CONNECTION BREAKS", false, break_connection);
    if (!w.connected) {
        step(steps, w, "the connection is back", true, [](World &n) {
            n.connected = 1;
            go_on(n);
        });
    }
    for (unsigned n = 0; n < WRITES && w.may_delete; n++) {
        if (!(w.places & bit(n))) continue;
        step(steps, w, "SOMEBODY DELETES A PLACE", false, [n](World &next) {
            next.may_delete--;
            next.places = static_cast<uint8_t>(next.places & ~bit(n));
        });
    }
    return steps;
}

class Search : public Base {
    std::vector<Step> steps;

    void begin() override {
        World w = {};
        w.connected = w.may_say_nothing = w.may_delete = 1;
        w.may_break = w.may_put_off = 2;
        w.places = bit(WRITES) - 1;
        add(w, 0, "begin");
    }
    const std::vector<Step> &steps_of(const World &w) override {
        return steps = list(w);
    }
    const char *rest(const World &w) override {
        return w.first < w.begun ? "a write never ends" : nullptr;
    }
    std::string label(const World &, const char *const &way) override {
        return way;
    }
};

model::Outcome search(unsigned, bool) {
    return Search().run();
}

} // namespace

int main(int count, char **arguments) {
    return model::run({"note_line", "the member", VARIANTS, {{"", false}}, false, search}, count, arguments);
}
