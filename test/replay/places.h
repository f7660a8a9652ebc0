// The steps of a queue that records tell of, by the names of places and clients. SPDX-License-Identifier: Apache-2.0
#ifndef DV_REPLAY_PLACES_H
#define DV_REPLAY_PLACES_H

#include <unordered_map>

#include "../model/rules/queue.h"
#include "replay.h"

namespace replay {

// Looks up a word, such as {"done", queue::DONE}. Returns whether it is there.
template <class Word, size_t N> bool find(const Word (&words)[N], std::string_view name, Word *out) {
    for (const Word &word : words) {
        if (name != word.name) continue;
        *out = word;
        return true;
    }
    return false;
}

inline bool read_answer(std::string_view text, queue::Answer *out) {
    struct Word {
        std::string_view name;
        queue::Answer answer;
    } word = {};
    static const Word words[] = {{"", queue::DONE},
                                 {"done", queue::DONE},
                                 {"none", queue::NO_NODE},
                                 {"lost", queue::LOST},
                                 {"refused", queue::REFUSED}};
    bool known = find(words, text, &word);
    *out = word.answer;
    return known;
}

inline std::string_view without_number(std::string_view name) {
    return name.substr(0, number_at(name));
}

// The indices of one queue's places, by the name without its number, and of its clients.
class Places {
  public:
    bool knows(std::string_view who) const {
        return clients.count(who) > 0;
    }
    unsigned place_of(std::string_view name) {
        return places.emplace(without_number(name), places.size()).first->second;
    }
    // *begins: its session begins with this record.
    const char *client_of(std::string_view who, unsigned *out, bool *begins) {
        auto found = clients.emplace(who, clients.size());
        *out = found.first->second;
        *begins = found.second;
        return *out < queue::CLIENTS ? nullptr : "there are too many clients";
    }
    // Makes a step of a record. Returns NULL, or why there is none.
    const char *step_of(const Record &r, const queue::World &w, queue::Step *s, bool *begins) {
        if (!kind_of(r, s)) return "there is no such record";
        bool commits = s->kind >= queue::COMMIT_CREATE && s->kind <= queue::COMMIT_END;
        if (const char *why = commits ? nullptr : client_of(r.who, &s->who, begins)) return why;
        std::string_view name = r.value("name"), by = r.value("by"), made = r.value("made"), mode = r.value("mode");
        if (!name.empty()) s->place = place_of(name);
        if (places.size() > queue::PLACES) return "there are too many places";
        if (by == "end") s->kind = queue::COMMIT_EXPIRED_DELETE;
        if (by == "other") s->kind = queue::COMMIT_FOREIGN_DELETE;
        s->number = number_of(made.empty() ? name : made);
        if (!made.empty() && without_number(made) != name) return "Q1: the server has made another name";
        bool reads = name.find("__rlock__") != std::string_view::npos;
        s->mode = reads ? queue::READER : mode == "write" ? queue::WRITER : queue::PLAIN;
        if (!mode.empty() && reads != (mode == "read")) return "K1: it has another marker";
        return list_of(r.value("names"), w, &s->list);
    }

  private:
    std::unordered_map<std::string_view, unsigned> places, clients;

    const char *list_of(std::string_view names, const queue::World &w, queue::Set *out) const {
        while (!names.empty()) {
            std::string_view name = take_word(&names, ',');
            auto found = places.find(without_number(name));
            if (found == places.end()) return "the list has a place that nobody made";
            if (w.number[found->second] != number_of(name)) return "the list has a place with another number";
            out->add(found->second);
        }
        return nullptr;
    }
    static bool kind_of(const Record &r, queue::Step *s) {
        struct Word {
            std::string_view name;
            queue::Kind kind;
        } word = {};
        static const Word words[] = {{"ask-list", queue::ASK_LIST},
                                     {"list", queue::TAKE_LIST},
                                     {"ask-create", queue::ASK_CREATE},
                                     {"create", queue::TAKE_CREATE},
                                     {"ask-delete", queue::ASK_DELETE},
                                     {"delete", queue::TAKE_DELETE},
                                     {"commit-create", queue::COMMIT_CREATE},
                                     {"commit-delete", queue::COMMIT_DELETE},
                                     {"ask-watch", queue::ASK_WATCH},
                                     {"watch", queue::TAKE_WATCH},
                                     {"holds", queue::HOLD},
                                     {"ends", queue::LEAVE},
                                     {"session-end", queue::END_SESSION},
                                     {"ask-barrier", queue::ASK_BARRIER},
                                     {"barrier", queue::TAKE_BARRIER},
                                     {"commit-end", queue::COMMIT_END}};
        bool known = find(words, r.kind, &word) && read_answer(r.value("answer"), &s->answer);
        s->kind = word.kind;
        return known;
    }
};

} // namespace replay

#endif
