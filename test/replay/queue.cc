// A replay of the simulator's records against the rules of a lock's queue. SPDX-License-Identifier: Apache-2.0
//
//   sim --locks --histories 200 --seed 1 --steps FILE
//   replay_queue FILE              asks the rules of test/model/rules/queue.h for each record
//   replay_queue --spoil N FILE    drops, and alters, each record of the first N histories in turn
//
// Ends with status 1 where a record is refused, or where a rule was never taken. With --spoil it does so where spoilt
// histories are not refused; DROPPED and ALTERED say why some need not be. Watches that fire are not recorded, nor is
// what kazoo members and administrators ask for.
#define QUEUE_PLACES 2000
#define QUEUE_CLIENTS 100
#define QUEUE_ASKED 250
#include <memory>
#include <unordered_map>

#include "../model/rules/queue.h"
#include "replay.h"

using namespace queue;
using replay::number_at;
using replay::number_of;
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
        bool moves = s.kind != ASK_LIST && s.kind != ASK_BARRIER && s.kind != TAKE_BARRIER; // what wrong() looks at
        return why || !moves ? why : wrong(w);
    }
    bool knows(std::string_view who) const {
        return clients.count(who) > 0;
    }

  private:
    World w;
    std::unordered_map<std::string_view, unsigned> places, clients; // places by the name without its number

    const char *do_step(const Step &s) {
        const char *why = apply(w, s);
        if (!why) taken[s.kind][s.answer]++;
        return why;
    }
    static std::string_view without_number(std::string_view name) {
        return name.substr(0, number_at(name));
    }
    unsigned place_of(std::string_view name) {
        return places.emplace(without_number(name), places.size()).first->second;
    }
    const char *client_of(std::string_view who, unsigned *out) {
        auto found = clients.emplace(who, clients.size());
        *out = found.first->second;
        if (*out >= CLIENTS) return "there are too many clients";
        if (!found.second) return nullptr;
        Step s = {};
        s.kind = BEGIN_SESSION;
        s.who = *out;
        return do_step(s);
    }
    const char *list_of(std::string_view names, Set *out) {
        while (!names.empty()) {
            std::string_view name = replay::take_word(&names, ',');
            auto found = places.find(without_number(name));
            if (found == places.end()) return "the list has a place that nobody made";
            if (w.number[found->second] != number_of(name)) return "the list has a place with another number";
            out->add(found->second);
        }
        return nullptr;
    }
    template <class Word, size_t N> static bool find(const Word (&words)[N], std::string_view name, Word *out) {
        for (const Word &word : words) {
            if (name != word.name) continue;
            *out = word;
            return true;
        }
        return false;
    }
    static bool kind_of(const Record &r, Step *s) {
        struct KindName {
            std::string_view name;
            Kind kind;
        } kind = {};
        struct AnswerName {
            std::string_view name;
            Answer answer;
        } answer = {};
        static const KindName kinds[] = {{"ask-list", ASK_LIST},
                                         {"list", TAKE_LIST},
                                         {"ask-create", ASK_CREATE},
                                         {"create", TAKE_CREATE},
                                         {"ask-delete", ASK_DELETE},
                                         {"delete", TAKE_DELETE},
                                         {"commit-create", COMMIT_CREATE},
                                         {"commit-delete", COMMIT_DELETE},
                                         {"ask-watch", ASK_WATCH},
                                         {"watch", TAKE_WATCH},
                                         {"holds", HOLD},
                                         {"ends", LEAVE},
                                         {"session-end", END_SESSION},
                                         {"ask-barrier", ASK_BARRIER},
                                         {"barrier", TAKE_BARRIER},
                                         {"commit-end", COMMIT_END}};
        static const AnswerName answers[] = {
            {"", DONE}, {"done", DONE}, {"none", NO_NODE}, {"lost", LOST}, {"refused", REFUSED}};
        bool known = find(kinds, r.kind, &kind) && find(answers, r.value("answer"), &answer);
        s->kind = kind.kind;
        s->answer = answer.answer;
        return known;
    }
    const char *step_of(const Record &r, Step *s) {
        if (!kind_of(r, s)) return "there is no such record";
        bool commits = s->kind >= COMMIT_CREATE && s->kind <= COMMIT_END;
        if (const char *why = commits ? nullptr : client_of(r.who, &s->who)) return why;
        std::string_view name = r.value("name"), by = r.value("by"), made = r.value("made"), mode = r.value("mode");
        if (!name.empty()) s->place = place_of(name);
        if (places.size() > PLACES) return "there are too many places";
        if (by == "end") s->kind = COMMIT_EXPIRED_DELETE;
        if (by == "other") s->kind = COMMIT_FOREIGN_DELETE;
        s->number = number_of(made.empty() ? name : made);
        if (!made.empty() && without_number(made) != name) return "Q1: the server has made another name";
        bool reads = name.find("__rlock__") != std::string_view::npos;
        s->mode = reads ? READER : mode == "write" ? WRITER : PLAIN;
        if (!mode.empty() && reads != (mode == "read")) return "K1: the marker is another one";
        return list_of(r.value("names"), &s->list);
    }
};

class Player {
  public:
    Player() {
        for (auto &lock : locks) lock = std::make_unique<Lock>();
    }
    // Returns NULL, or why the record is refused. One without a lock is of all locks.
    const char *play(const Record &r) {
        bool named = r.object.size() == 2 && r.object[0] == 'l' && r.object[1] >= '0' && r.object[1] < '0' + LOCKS;
        if (named) return locks[r.object[1] - '0']->play(r);
        if (r.object != "*") return "there is no such lock";
        for (auto &lock : locks) {
            bool concerned = r.kind != "session-end" || lock->knows(r.who);
            const char *why = concerned ? lock->play(r) : nullptr;
            if (why) return why;
        }
        return nullptr;
    }

  private:
    enum { LOCKS = 4 };
    std::unique_ptr<Lock> locks[LOCKS];
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
    replay::Kind kind = {"replay_queue", "*l", alter, print_taken, DROPPED, ALTERED};
    return replay::run<Player>(kind, count, arguments);
}
