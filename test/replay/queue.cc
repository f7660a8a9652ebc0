// A replay of the simulator's records against the rules of a lock's queue. SPDX-License-Identifier: Apache-2.0
//
//   sim --locks --histories 200 --seed 1 --steps FILE
//   replay_queue FILE              asks the rules of test/model/rules/queue.h for each record
//   replay_queue --spoil N FILE    drops, and alters, each record of the first N histories in turn
//
// Ends with status 1 where a record is refused, or where a rule was never taken. With --spoil it does so where spoilt
// histories are not refused; DROPPED and ALTERED say why some need not be. Watches that fire are not recorded, nor is
// what kazoo members and administrators ask for.
#define QUEUE_PLACES 400
#define QUEUE_CLIENTS 100
#define QUEUE_ASKED 24
#include <memory>

#include "../model/rules/queue.h"
#include "replay.h"

using namespace queue;
using replay::number_at;
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
        const char *why = step_of(r, &s);
        if (why) return why;
        why = do_step(s);
        return why ? why : wrong(w);
    }
    bool knows(const std::string &who) const {
        return clients.count(who) > 0;
    }

  private:
    World w;
    std::map<std::string, unsigned> places, clients; // places by the name without its number

    const char *do_step(const Step &s) {
        const char *why = apply(w, s);
        if (!why) taken[s.kind][s.answer]++;
        return why;
    }
    unsigned place_of(const std::string &name) {
        size_t digits = number_at(name);
        auto found = places.emplace(digits == std::string::npos ? name : name.substr(0, digits), places.size());
        return found.first->second;
    }
    const char *client_of(const std::string &who, unsigned *out) {
        auto found = clients.emplace(who, clients.size());
        *out = found.first->second;
        if (*out >= CLIENTS) return "there are too many clients";
        if (!found.second) return nullptr;
        Step s = {};
        s.kind = BEGIN_SESSION;
        s.who = *out;
        return do_step(s);
    }
    static uint32_t number_of(const std::string &name) {
        size_t digits = number_at(name);
        if (digits == std::string::npos) return 0;
        return static_cast<uint32_t>(strtol(name.c_str() + digits, nullptr, 10));
    }
    const char *list_of(const std::string &names, Set *out) {
        std::istringstream in(names);
        std::string name;
        while (std::getline(in, name, ',')) {
            size_t digits = number_at(name);
            auto found = places.find(digits == std::string::npos ? name : name.substr(0, digits));
            if (found == places.end()) return "the list has a place that nobody made";
            if (w.number[found->second] != number_of(name)) return "the list has a place with another number";
            out->add(found->second);
        }
        return nullptr;
    }
    const char *step_of(const Record &r, Step *s) {
        static const std::map<std::string, Kind> kinds = {{"ask-create", ASK_CREATE},
                                                          {"ask-list", ASK_LIST},
                                                          {"ask-watch", ASK_WATCH},
                                                          {"ask-delete", ASK_DELETE},
                                                          {"ask-barrier", ASK_BARRIER},
                                                          {"create", TAKE_CREATE},
                                                          {"list", TAKE_LIST},
                                                          {"watch", TAKE_WATCH},
                                                          {"delete", TAKE_DELETE},
                                                          {"barrier", TAKE_BARRIER},
                                                          {"holds", HOLD},
                                                          {"ends", LEAVE},
                                                          {"commit-create", COMMIT_CREATE},
                                                          {"commit-delete", COMMIT_DELETE},
                                                          {"commit-end", COMMIT_END},
                                                          {"session-end", END_SESSION}};
        static const std::map<std::string, Answer> answers = {
            {"", DONE}, {"done", DONE}, {"none", NO_NODE}, {"lost", LOST}, {"refused", REFUSED}};
        auto kind = kinds.find(r.kind);
        auto answer = answers.find(r.value("answer"));
        if (kind == kinds.end() || answer == answers.end()) return "there is no such record";
        s->kind = kind->second;
        s->answer = answer->second;
        bool commits = s->kind >= COMMIT_CREATE && s->kind <= COMMIT_END;
        if (const char *why = commits ? nullptr : client_of(r.who, &s->who)) return why;
        std::string name = r.value("name"), by = r.value("by"), made = r.value("made");
        if (!name.empty()) s->place = place_of(name);
        if (places.size() > PLACES) return "there are too many places";
        if (by == "end") s->kind = COMMIT_EXPIRED_DELETE;
        if (by == "other") s->kind = COMMIT_FOREIGN_DELETE;
        s->number = number_of(made.empty() ? name : made);
        if (!made.empty() && place_of(made) != s->place) return "Q1: the server has made another name";
        bool reads = name.find("__rlock__") != std::string::npos;
        s->mode = reads ? READER : r.value("mode") == "write" ? WRITER : PLAIN;
        if (!r.value("mode").empty() && reads != (r.value("mode") == "read")) return "K1: the marker is another one";
        return list_of(r.value("names"), &s->list);
    }
};

class Player {
  public:
    Player() {
        for (const char *name : {"l0", "l1", "l2", "l3"}) locks[name] = std::make_unique<Lock>();
    }
    // Returns NULL, or why the record is refused. One without a lock is of all locks.
    const char *play(const Record &r) {
        auto found = locks.find(r.object);
        if (found != locks.end()) return found->second->play(r);
        if (r.object != "*") return "there is no such lock";
        for (auto &lock : locks) {
            bool concerned = r.kind != "session-end" || lock.second->knows(r.who);
            const char *why = concerned ? lock.second->play(r) : nullptr;
            if (why) return why;
        }
        return nullptr;
    }

  private:
    std::map<std::string, std::unique_ptr<Lock>> locks;
};

// ---- sensitivity ----

// Returns whether something in it can be altered: a list loses its first name, a number, an answer or a name changes.
bool alter(Record *r) {
    std::map<std::string, std::string> &v = r->values, before = v;
    size_t comma = r->value("names").find(',');
    if (v.count("names")) v["names"] = comma == std::string::npos ? "" : v["names"].substr(comma + 1);
    else if (v.count("made")) v["made"] = replay::another_number(v["made"]);
    else if (v.count("answer") && r->kind != "delete") v["answer"] = v["answer"] == "done" ? "none" : "done";
    else if (v.count("mode")) v["mode"] = v["mode"] == "read" ? "plain" : "read";
    else if (r->kind == "commit-create") v["name"] = replay::another_number(v["name"]);
    else if (v.count("name")) v["name"] = "x" + v["name"];
    return before != v;
}

const std::vector<replay::Excuse> DROPPED = {
    {"barrier", 30, "the answer of the next one takes its place"},
    {"commit-delete", 90, "nobody saw the place, or its absence"},
    {"commit-end", 0, "numbers may have gone on"},
    {"delete", 90, "the last of a client's: nothing comes behind it"},
    {"session-end", 0, "its places have gone before, and it does nothing more"},
};
const std::vector<replay::Excuse> ALTERED = {
    {"barrier", 0, "a barrier that was refused is one; most are heartbeats"},
    {"commit-create", 90, "nobody saw the place"},
    {"list", 80, "the queue was so a moment before"},
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
    replay::Kind kind = {"replay_queue", "*l", alter, print_taken, DROPPED, ALTERED};
    return replay::run<Player>(kind, count, arguments);
}
