// A replay of the simulator's records against the rules of a semaphore's leases. SPDX-License-Identifier: Apache-2.0
//
//   sim --locks --histories 200 --seed 1 --steps FILE
//   replay_admission FILE              asks the rules of test/model/rules/leases.h for each record
//   replay_admission --spoil N FILE    drops, and alters, each record of the first N histories in turn
//
// Ends with status 1 where a record is refused, or where a rule was never taken. With --spoil it does so where spoilt
// histories are not refused; DROPPED and ALTERED say why some need not be. Watches that fire are not recorded, nor is
// what kazoo members and administrators ask for.
#define QUEUE_PLACES 24000
#define QUEUE_CLIENTS 100
#define QUEUE_ASKED 250
#define LEASES_LEASES 2000
#define LEASES_WRITES 2000
#define LEASES_SETS 64

#include "places.h"

#include "../model/rules/leases.h"

using namespace leases;
using queue::DONE;
using replay::Record;

namespace {

uint64_t taken[KINDS][queue::REFUSED + 1], taken_queue[queue::KINDS];

unsigned read_number(std::string_view text) {
    unsigned number = 0;
    for (char c : text) number = c >= '0' && c <= '9' ? number * 10 + static_cast<unsigned>(c - '0') : number;
    return number;
}

// E5: `<guid>,n=<first>,c=<count>,x=<first>+<more>.<first>+<more>`. Other leases are kazoo's.
void read_slots(std::string_view name, Step *s) {
    std::string_view rest = name.substr(std::min(name.find(",n="), name.size()));
    replay::take_word(&rest, '=');
    unsigned first = read_number(replay::take_word(&rest, ',')), others = 0;
    replay::take_word(&rest, '=');
    s->count = rest.empty() ? 1 : read_number(replay::take_word(&rest, ','));
    replay::take_word(&rest, '=');
    for (unsigned i; !rest.empty();) {
        std::string_view run = replay::take_word(&rest, '.');
        i = read_number(replay::take_word(&run, '+'));
        for (unsigned end = i + read_number(run); i <= end && i < 32; i++, others++) s->numbers |= 1u << i;
    }
    if (name.find(",n=") == std::string_view::npos) return;
    for (unsigned i = first; i + others < first + s->count && i < 32; i++) s->numbers |= 1u << i;
}

// One pool's world, and its places, leases and clients by name.
class Pool {
  public:
    Pool() {
        memset(&w, 0, sizeof w);
        memset(w.owner, NOBODY, sizeof w.owner);
    }
    // Returns NULL, or why the record is refused.
    const char *play(const Record &r) {
        const char *why = r.object[0] == 'p' ? play_pool(r) : play_queue(r);
        if (!why && r.object[0] == 'q') why = queue::wrong(w.q);
        return why || r.kind.substr(0, 3) == "ask" ? why : wrong(w);
    }
    bool knows(std::string_view who) const {
        return places.knows(who);
    }

  private:
    World w;
    replay::Places places;
    std::unordered_map<std::string_view, unsigned> leases;
    std::map<std::string, unsigned> writes; // by czxid and version of the pool
    std::string czxid, last_zxid;

    const char *do_step(const Step &s) {
        const char *why = apply(w, s);
        if (!why) taken[s.kind][s.answer]++;
        return why;
    }
    const char *do_queue_step(const queue::Step &s) {
        const char *why = apply_queue(w, s);
        if (!why) taken_queue[s.kind]++;
        return why;
    }
    const char *begin(unsigned who) {
        queue::Step s = {};
        s.kind = queue::BEGIN_SESSION;
        s.who = who;
        return do_queue_step(s);
    }
    const char *play_queue(const Record &r) {
        queue::Step s = {};
        bool begins = false;
        const char *why = places.step_of(r, w.q, &s, &begins);
        if (!why && (s.kind == queue::HOLD || s.kind == queue::LEAVE)) why = "nobody holds a place in a pool's queue";
        if (!why && begins) why = begin(s.who);
        return why ? why : do_queue_step(s);
    }

    // ---- the pool ----

    const char *leases_of(std::string_view names, Bits<LEASES> *out) const {
        while (!names.empty()) {
            auto found = leases.find(replay::take_word(&names, ';'));
            if (found == leases.end()) return "the list has a lease that nobody made";
            out->add(found->second);
        }
        return nullptr;
    }
    std::string write_name(unsigned number) const {
        return czxid + "." + std::to_string(number);
    }
    static bool kind_of(const Record &r, Step *s) {
        struct Word {
            std::string_view name;
            Kind kind;
        } word = {};
        static const Word words[] = {{"ask-create", ASK_TRY},
                                     {"ask-admit", ASK_ADMIT},
                                     {"ask-get", ASK_GET},
                                     {"ask-list", ASK_LIST},
                                     {"ask-look", ASK_LOOK},
                                     {"ask-set", ASK_SET},
                                     {"ask-delete", ASK_DELETE},
                                     {"commit-make", COMMIT_MAKE},
                                     {"commit-set", COMMIT_SET},
                                     {"commit-end", COMMIT_END},
                                     {"create", TAKE_TRY},
                                     {"commit-create", COMMIT_CREATE},
                                     {"admit", TAKE_ADMIT},
                                     {"get", TAKE_GET},
                                     {"list", TAKE_LIST},
                                     {"look", TAKE_LOOK},
                                     {"set", TAKE_SET},
                                     {"delete", TAKE_DELETE},
                                     {"holds", HOLD},
                                     {"ends", LEAVE},
                                     {"commit-delete", COMMIT_DELETE}};
        bool known = replay::find(words, r.kind, &word) && replay::read_answer(r.value("answer"), &s->answer);
        s->kind = word.kind;
        return known;
    }
    // What clients do not ask for is somebody else's.
    const char *read_commit(const Record &r, Step *s) {
        std::string_view by = r.value("by"), zxid = r.value("zxid");
        bool begins;
        if (s->kind == COMMIT_SET && !places.knows(r.who)) s->kind = COMMIT_FOREIGN_SET;
        if (s->kind == COMMIT_CREATE && !s->numbers) s->kind = COMMIT_FOREIGN_CREATE;
        if (by == "end") s->kind = COMMIT_EXPIRED_DELETE;
        if (by == "other") s->kind = COMMIT_FOREIGN_DELETE;
        s->same = !zxid.empty() && last_zxid == zxid;
        last_zxid = zxid;
        return places.knows(r.who) ? places.client_of(r.who, &s->who, &begins) : nullptr;
    }
    const char *read_asked(const Record &r, Step *s) {
        bool begins = false;
        const char *why = places.client_of(r.who, &s->who, &begins);
        return why || !begins ? why : begin(s->who);
    }
    // The write that an answer is of.
    const char *read_write(const Record &r, Step *s) const {
        std::string_view stat = r.value("czxid"), version = r.value("version");
        if (s->answer != DONE || (s->kind != TAKE_GET && s->kind != TAKE_LIST)) return nullptr;
        auto found = writes.find(std::string(stat) + "." + std::string(version));
        if (found == writes.end()) return "E6: the pool was never set so";
        s->write = found->second;
        return nullptr;
    }
    const char *read_names(const Record &r, Step *s) {
        std::string_view name = r.value("name"), place = r.value("place");
        if (!name.empty()) {
            s->lease = leases.emplace(name, leases.size()).first->second;
            read_slots(name, s);
        }
        if (leases.size() > LEASES || w.writes == WRITES) return "there are too many leases, or writes";
        if (!place.empty()) {
            s->place = places.place_of(place);
            bool same = s->place < w.q.used && w.q.number[s->place] == replay::number_of(place);
            if (!same) return "E6: it is another place";
        }
        return leases_of(r.value("names"), &s->list);
    }
    const char *step_of(const Record &r, Step *s) {
        if (!kind_of(r, s)) return "there is no such record";
        if (const char *why = read_names(r, s)) return why;
        bool commits = s->kind >= COMMIT_MAKE && s->kind <= COMMIT_EXPIRED_DELETE;
        if (const char *why = commits ? read_commit(r, s) : read_asked(r, s)) return why;
        std::string_view limit = r.value("limit");
        s->limit = limit == "unset" || limit == "bad" ? unsigned{UNSET} : read_number(limit);
        s->number = read_number(r.value("version"));
        s->watches = r.has("watch");
        bool found = s->kind == TAKE_LOOK && s->answer == DONE;
        if (found && w.owner[s->lease] == s->who && r.value("session") != r.who)
            return "R1: its lease is another session's";
        return read_write(r, s);
    }
    const char *play_pool(const Record &r) {
        Step s = {};
        const char *why = step_of(r, &s);
        if (!why) why = do_step(s);
        if (why || s.kind < COMMIT_MAKE || s.kind > COMMIT_FOREIGN_SET) return why;
        if (s.kind == COMMIT_MAKE) czxid = r.value("zxid");
        writes[write_name(w.number[w.writes - 1])] = w.writes - 1u;
        return nullptr;
    }
};

class Player {
  public:
    // Returns NULL, or why the record is refused. One without a pool is of all pools.
    const char *play(const Record &r) {
        bool named = r.object.size() == 2 && r.object[1] >= '0' && r.object[1] < '0' + POOLS;
        if (named) return pools[static_cast<size_t>(r.object[1] - '0')].play(r);
        if (r.object != "*") return "there is no such pool";
        for (auto &pool : pools) {
            bool concerned = r.kind != "session-end" || pool.knows(r.who);
            const char *why = concerned ? pool.play(r) : nullptr;
            if (why) return why;
        }
        return nullptr;
    }

  private:
    enum { POOLS = 2 };
    std::vector<Pool> pools = std::vector<Pool>(POOLS);
};

// ---- sensitivity ----

// Returns whether something in it can be altered: a list loses its first name, another thing changes.
bool alter(Record *r) {
    std::string_view names = r->value("names"), answer = r->value("answer");
    std::string name(r->value("name"));
    size_t end = names.find(r->object[0] == 'p' ? ';' : ',');
    if (r->has("names"))
        return r->set("names", std::string(end == std::string_view::npos ? "" : names.substr(end + 1)));
    if (r->kind == "barrier") return r->set("answer", answer == "done" ? "lost" : "done");
    if (r->has("made")) return r->set("made", replay::another_number(r->value("made")));
    if (r->has("limit")) return r->set("limit", r->value("limit") == "7" ? "8" : "7");
    if (r->has("answer") && r->kind != "delete") return r->set("answer", answer == "done" ? "none" : "done");
    if (r->kind == "commit-create" && r->object[0] == 'q') return r->set("name", replay::another_number(name));
    return r->set("name", "x" + name);
}

const char *const LAST = "the last answer that its client took, or a lost one";
const std::vector<replay::Excuse> DROPPED = {
    {"barrier", 30, "the next one takes its place, or nothing of the pool was unsure"},
    {"commit-end", 0, "numbers may have gone on, and nobody was told of the pool"},
    {"create", 95, LAST},
    {"delete", 75, LAST},
    {"get", 95, LAST},
    {"list", 95, LAST},
    {"session-end", 0, "its nodes have gone before, and it does nothing more"},
    {"watch", 80, LAST},
};
const std::vector<replay::Excuse> ALTERED = {
    {"barrier", 0, "nothing was unsure but a delete, or the next one takes its place"},
    {"commit-make", 50, "nobody read the limit that it was made with"},
    {"create", 95, "the lease was made, and its answer was lost"},
    {"list", 80, "the pool, or the queue, was so a moment before"},
};

// Prints how often each rule was taken. Returns whether each was that has a record.
bool print_taken() {
    bool good = true;
    static const char *const words[] = {"done", "no node", "lost", "refused"};
    for (unsigned k = 0; k < queue::KINDS; k++)
        if (taken_queue[k]) printf("%9llu %s\n", static_cast<unsigned long long>(taken_queue[k]), queue::names[k]);
    for (unsigned k = 0; k < KINDS; k++) {
        bool answers = k >= TAKE_TRY && k <= TAKE_DELETE;
        for (unsigned a = 0; a <= (answers ? unsigned{queue::REFUSED} : 0u); a++)
            printf("%9llu %s%s%s\n", static_cast<unsigned long long>(taken[k][a]), names[k], answers ? ": " : "",
                   answers ? words[a] : "");
        good = good && taken[k][DONE];
    }
    return good;
}

} // namespace

int main(int count, char **arguments) {
    replay::Kind kind = {"replay_admission", "*pq", alter, print_taken, DROPPED, ALTERED, nullptr};
    return replay::run<Player>(kind, count, arguments);
}
