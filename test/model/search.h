// The search of a model, the way to a fault, and the command line. SPDX-License-Identifier: Apache-2.0
#ifndef DV_MODEL_SEARCH_H
#define DV_MODEL_SEARCH_H

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "seen.h"

namespace model {

// A rule that is broken on purpose.
struct Variant {
    const char *name, *what; // what: its line of --list, behind the subject
    const char *shows;       // a part of the fault that the search has to find
    const char *world;       // where it is searched; NULL: in each world, until a fault is found
    int tag;                 // for the model's own use
};

inline const Variant *broken; // the one that is searched; NULL: the rules

inline bool is(const char *name) {
    return broken && !strcmp(broken->name, name);
}

// Returns whether the search is for this fault. That of the rules is for any.
inline bool asks_for(const char *fault) {
    return fault && (!broken || strstr(fault, broken->shows));
}

// How a search ended.
struct Outcome {
    const char *wrong; // or NULL, when all worlds were visited
    size_t states;
    std::vector<std::string> way, counts; // the way to what is wrong; how often each kind of step was made
};

// Visits all worlds, in the order of their distance from the first ones.
template <class World, class Way> class Search : public Seen<World, Way> {
  public:
    struct Next {
        World world;
        Way way;
        bool fair;         // happens sooner or later
        const char *fault; // what the step breaks, or NULL
        bool is_over;      // nothing can go wrong from there, so it is not visited
    };

    virtual ~Search() = default;

    Outcome run() {
        Outcome outcome = {};
        uint32_t at = 0;
        const Way *last = nullptr;
        begin();
        for (uint32_t i = 0; i < this->all.size() && !outcome.wrong; i++) {
            at = i;
            outcome.wrong = visit(i, &last);
        }
        if (!outcome.wrong) outcome.wrong = finish(&at);
        outcome.states = this->all.size();
        outcome.counts = counts();
        if (!outcome.wrong) return outcome;
        std::vector<uint32_t> way = this->way_to(at);
        for (; !way.empty(); way.pop_back()) {
            const auto &visited = this->all[way.back()];
            outcome.way.push_back(label(this->all[visited.parent].world, visited.way));
        }
        if (last) outcome.way.push_back(label(this->all[at].world, *last));
        return outcome;
    }

  protected:
    // Adds the first worlds.
    virtual void begin() = 0;
    virtual const std::vector<Next> &steps_of(const World &w) = 0;
    // Tells of a step. It is called for each step of a way in order.
    virtual std::string label(const World &before, const Way &way) = 0;
    // Returns what is wrong with a world in which nothing fair can happen, or NULL.
    virtual const char *rest(const World &) {
        return nullptr;
    }
    // Returns the world without what has no meaning in it, so that fewer worlds differ.
    virtual World canonical(const World &w) {
        return w;
    }
    // Is told of each step between two worlds.
    virtual void made(uint32_t, uint32_t, const Next &) {}
    // Returns what is wrong with all worlds, and where; or NULL.
    virtual const char *finish(uint32_t *) {
        return nullptr;
    }
    virtual std::vector<std::string> counts() {
        return {};
    }

  private:
    const char *visit(uint32_t i, const Way **last) {
        const World &w = this->all[i].world;
        const std::vector<Next> &steps = steps_of(w);
        bool rests = true;
        for (const Next &n : steps) rests = rests && !n.fair;
        const char *wrong = rests ? rest(w) : nullptr;
        if (wrong) return wrong;
        for (const Next &n : steps) {
            if (!n.is_over || n.fault) made(i, this->add(canonical(n.world), i, n.way), n);
            if (!n.fault) continue;
            *last = &n.way;
            return n.fault;
        }
        return nullptr;
    }
};

// Gives each number its rank, where only their order matters. 0 stays; all are below 64. Returns the highest.
template <class Number> unsigned rank(Number *const *all, size_t count) {
    uint64_t present = 1;
    for (size_t i = 0; i < count; i++) present |= 1ull << *all[i];
    for (size_t i = 0; i < count; i++)
        *all[i] = static_cast<Number>(__builtin_popcountll(present & ((1ull << *all[i]) - 1)));
    return static_cast<unsigned>(__builtin_popcountll(present)) - 1;
}

// ---- rules that are asked whether they allow a step ----

struct Step {
    uint8_t kind, who, argument;
};

// A kind of step: whose it is, and with which arguments.
struct About {
    const char *label;
    uint8_t members, arguments; // 1: nobody's
    bool fair;                  // happens sooner or later
};

// Calls attempt(step) for each step that there may be.
template <class Step, size_t KINDS, class Attempt> void try_all(const About (&about)[KINDS], Attempt attempt) {
    for (uint8_t kind = 0; kind < KINDS; kind++) {
        unsigned members = about[kind].members, all = members * about[kind].arguments;
        for (unsigned n = 0; n < all; n++)
            attempt(Step{kind, static_cast<uint8_t>(n % members), static_cast<uint8_t>(n / members)});
    }
}

// Returns the label behind the name of the member: " does something", or "'s something".
inline std::string tell(const About &about, unsigned member) {
    if (about.members < 2) return about.label;
    return std::string(1, static_cast<char>('A' + member)) + (about.label[0] == '\'' ? "" : " ") + about.label;
}

template <size_t KINDS> std::vector<std::string> list_counts(const About (&about)[KINDS], const uint64_t *taken) {
    std::vector<std::string> lines;
    for (size_t i = 0; i < KINDS; i++) lines.push_back(std::to_string(taken[i]) + " x " + about[i].label);
    return lines;
}

// ---- the command line ----

// A part of the search, with bounds of its own.
struct Part {
    const char *name;
    bool is_long; // only --long searches it
};

struct Model {
    const char *name, *subject;
    std::vector<Variant> variants;
    std::vector<Part> parts;
    bool has_long;
    Outcome (*search)(unsigned part, bool is_long);
};

class Run {
  public:
    Run(const Model &model, bool tells, bool long_search) : m(model), told(tells), is_long(long_search) {}

    // Searches the rules. Returns whether they have no fault.
    bool search_rules() {
        bool good = true;
        for (unsigned i = 0; i < m.parts.size(); i++) {
            if (m.parts[i].is_long && !is_long) continue;
            const Outcome o = search(nullptr, i);
            states += o.states;
            print(o, i, true);
            good = good && !o.wrong;
        }
        return good;
    }
    // Searches a variant. Returns whether it has the fault that it is known for.
    bool search_variant(const Variant &v) {
        for (unsigned i = 0; i < m.parts.size(); i++) {
            if (v.world ? strcmp(v.world, m.parts[i].name) != 0 : m.parts[i].is_long) continue;
            const Outcome o = search(&v, i);
            if (!o.wrong) continue;
            print(o, i, told);
            if (strstr(o.wrong, v.shows)) return true;
            break;
        }
        printf("%-26s did not show its fault: %s\n", v.name, v.shows);
        return false;
    }
    // Returns whether the row of the model in docs/verification.md has the numbers, and tells if it has not.
    bool is_documented(const std::string &file) const {
        std::ifstream in(file);
        std::string line, begin = std::string("| [") + m.name + "](";
        std::string wanted = (is_long ? "long " : "| ") + std::to_string(states);
        std::string end = "| " + std::to_string(m.variants.size()) + " |";
        while (std::getline(in, line)) {
            if (line.compare(0, begin.size(), begin) != 0) continue;
            for (size_t at; (at = line.find(',')) != std::string::npos;) line.erase(at, 1);
            size_t at = line.find(wanted);
            bool is_whole = at != std::string::npos && !strchr("0123456789", line[at + wanted.size()]);
            if (is_whole && line.size() > end.size() && !line.compare(line.size() - end.size(), end.size(), end))
                return true;
        }
        printf("%s: no row of %s has %s states and %zu broken variants\n", file.c_str(), m.name, wanted.c_str(),
               m.variants.size());
        return false;
    }

  private:
    const Model &m;
    const bool told, is_long;
    size_t states = 0;

    Outcome search(const Variant *v, unsigned part) const {
        broken = v;
        return m.search(part, is_long);
    }
    void print(const Outcome &o, unsigned part, bool tells_way) const {
        printf("%-26s %-21s %9zu states: %s\n", broken ? broken->name : "the rules", m.parts[part].name, o.states,
               o.wrong ? o.wrong : "exhausted, nothing wrong");
        for (const std::string &line : o.way)
            if (tells_way) printf("    %s\n", line.c_str());
        for (const std::string &line : o.counts)
            if (told && !broken) printf("    %s\n", line.c_str());
        fflush(stdout);
    }
};

// Does what the arguments ask for: searches the rules and each variant, or some of them. Returns the exit status.
inline int run(const Model &m, int count, char **arguments) {
    std::string mode, name, docs;
    bool known = true, good = true;
    for (int i = 1; i < count; i++) {
        std::string option = arguments[i];
        bool has_value = i + 1 < count;
        if (option == "--docs" && has_value) docs = arguments[++i];
        else if (option == "--variant" && has_value) mode = option, name = arguments[++i];
        else if (option == "--rules" || option == "--list" || (option == "--long" && m.has_long)) mode = option;
        else known = false;
    }
    bool found = mode != "--variant";
    for (const Variant &v : m.variants) found = found || name == v.name;
    if (!known || !found) {
        fprintf(stderr, "usage: %s [--rules | %s--list | --variant NAME] [--docs FILE]\n", m.name,
                m.has_long ? "--long | " : "");
        return 2;
    }
    Run it(m, !mode.empty(), mode == "--long");
    if (mode.empty() || mode == "--rules" || mode == "--long") good = it.search_rules();
    for (const Variant &v : m.variants) {
        if (mode == "--list") printf("%-26s %s%s%s\n", v.name, m.subject, *m.subject ? " " : "", v.what);
        if (mode.empty() || name == v.name) good = it.search_variant(v) && good;
    }
    if (!docs.empty() && name.empty() && mode != "--list") good = it.is_documented(docs) && good;
    return !good;
}

} // namespace model

#endif
