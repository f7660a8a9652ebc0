// A replay of the simulator's records against the rules of a lock's queue. SPDX-License-Identifier: Apache-2.0
//
//   sim --locks --histories 200 --seed 1 --steps FILE
//   replay_queue FILE              asks the rules of test/model/rules/queue.h for each record
//   replay_queue --spoil N FILE    drops, and alters, each record of the first N histories in turn
//
// Ends with status 1 where a record is refused, or where a rule was never taken. With --spoil it does so where spoilt
// histories are not refused; DROPPED and ALTERED say why some need not be. Watches that fire are not recorded, nor is
// what kazoo members and administrators ask for.
#define QUEUE_PLACES 24000
#define QUEUE_CLIENTS 100
#define QUEUE_ASKED 250

#include "places.h"

using namespace queue;
using replay::Record;

namespace {

uint64_t taken[KINDS][REFUSED + 1];

// One lock's world, and its places and clients by name.
class Lock {
  public:
    Lock() {
        memset(&w, 0, sizeof w);
    }

    // Returns NULL, or why the record is refused.
    const char *play(const Record &r) {
        Step s = {};
        bool begins = false;
        const char *why = places.step_of(r, w, &s, &begins);
        if (!why && begins) why = begin(s.who);
        if (!why) why = do_step(s);
        bool moves = s.kind != ASK_LIST && s.kind != ASK_BARRIER && s.kind != TAKE_BARRIER; // what wrong() looks at
        return why || !moves ? why : wrong(w);
    }
    bool knows(std::string_view who) const {
        return places.knows(who);
    }

  private:
    World w;
    replay::Places places;

    const char *do_step(const Step &s) {
        const char *why = apply(w, s);
        if (!why) taken[s.kind][s.answer]++;
        return why;
    }
    const char *begin(unsigned who) {
        Step s = {};
        s.kind = BEGIN_SESSION;
        s.who = who;
        return do_step(s);
    }
};

class Player {
  public:
    // Returns NULL, or why the record is refused. One without a lock is of all locks.
    const char *play(const Record &r) {
        bool named = r.object.size() == 2 && r.object[0] == 'l' && r.object[1] >= '0' && r.object[1] < '0' + LOCKS;
        if (named) return locks[static_cast<size_t>(r.object[1] - '0')].play(r);
        if (r.object != "*") return "there is no such lock";
        for (auto &lock : locks) {
            bool concerned = r.kind != "session-end" || lock.knows(r.who);
            const char *why = concerned ? lock.play(r) : nullptr;
            if (why) return why;
        }
        return nullptr;
    }

  private:
    enum { LOCKS = 4 };
    std::vector<Lock> locks = std::vector<Lock>(LOCKS);
};

// ---- sensitivity ----

// Returns whether something in it can be altered: a list loses its first name, a number, an answer or a name changes.
bool alter(Record *r) {
    std::string_view names = r->value("names"), mode = r->value("mode"), answer = r->value("answer");
    std::string name(r->value("name"));
    size_t comma = names.find(',');
    if (r->has("names"))
        return r->set("names", std::string(comma == std::string_view::npos ? "" : names.substr(comma + 1)));
    if (r->kind == "barrier") return r->set("answer", answer == "done" ? "lost" : "done");
    if (r->has("made")) return r->set("made", replay::another_number(r->value("made")));
    if (r->has("answer") && r->kind != "delete") return r->set("answer", answer == "done" ? "none" : "done");
    if (r->has("mode")) return r->set("mode", mode == "read" ? "plain" : "read");
    if (r->kind == "commit-create") return r->set("name", replay::another_number(name));
    return r->set("name", "x" + name);
}

const char *const LAST = "the last answer that its client took, or lost ones came behind it";
const std::vector<replay::Excuse> DROPPED = {
    {"barrier", 50, "the next one takes its place, or nothing of a lock was unsure"},
    {"commit-delete", 90, "nobody saw the place, or its absence"},
    {"commit-end", 0, "numbers may have gone on"},
    {"create", 95, LAST},
    {"delete", 75, LAST},
    {"list", 95, LAST},
    {"session-end", 0, "its places have gone before, and it does nothing more"},
    {"watch", 90, LAST},
};
const std::vector<replay::Excuse> ALTERED = {
    {"barrier", 0, "nothing was unsure but a delete, or the next one takes its place"},
    {"commit-create", 90, "nobody saw the place"},
    {"list", 80, "the queue was so a moment before"},
    {"watch", 90, LAST},
};

// Prints how often each rule was taken. Returns whether each was that has a record.
bool print_taken() {
    bool good = true;
    static const char *const words[] = {"done", "no node", "lost"};
    for (unsigned k = 0; k < KINDS; k++) {
        bool answers = k >= TAKE_CREATE && k <= TAKE_BARRIER, recorded = k != WOKEN && k != LOSE_SESSION;
        for (unsigned a = 0; recorded && a <= (answers ? unsigned{LOST} : 0u); a++)
            printf("%9llu %s%s%s\n", static_cast<unsigned long long>(taken[k][a]), names[k], answers ? ": " : "",
                   answers ? words[a] : "");
        good = good && (taken[k][DONE] || !recorded);
    }
    return good;
}

} // namespace

int main(int count, char **arguments) {
    replay::Kind kind = {"replay_queue", "*l", alter, print_taken, DROPPED, ALTERED, nullptr};
    return replay::run<Player>(kind, count, arguments);
}
