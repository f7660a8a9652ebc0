// The decisions of handovers that no world of the model asks for, held against the rules. SPDX-License-Identifier:
// Apache-2.0
//
//   unit_facts_cases [--short]
//
// Prints how many cases there were of each kind. The exit status is 1 if the code and the rules differ. --short asks
// every 101st of the large kinds: for sanitizers.
//
// A case is a set of facts, all of them together: notes of other members, our own, stages, times, flags. The rules are
// T0 to T6, T8, T9, P11, P15, Q11 and D44 of docs/protocol.md, once more and plainly.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "cases/facts_code.h"

namespace {

size_t cases, wrong;

void expect(bool holds, const char *what, size_t number) {
    if (!holds && wrong++ < 10) printf("%s (case %zu)\n", what, number);
}

// Takes facts from the number of a case, one after the other.
class Digits {
  public:
    explicit Digits(size_t n) : rest(n) {}
    uint8_t next(unsigned values) {
        size_t digit = rest % values;
        rest /= values;
        return static_cast<uint8_t>(digit);
    }
    bool flag() {
        return next(2);
    }

  private:
    size_t rest;
};

bool is_shown(uint8_t stage) {
    return stage >= SHOWN;
}
bool is_kept(uint8_t stage) {
    return stage == KEPT || stage == LEAVING;
}
bool is_there(uint8_t note) {
    return note == SILENT || note == SAYS || note == OTHER_SET;
}
bool has_gone(uint8_t note) {
    return note == GONE || note == NEVER;
}

// ---- T1, T3 to T5, T8, P11, P15: what is given ----

// T1: returns whether the item may stay for its next owner at all.
bool may_stay(const give_facts &f) {
    bool has_next = f.next != NOBODY || f.awaited;
    bool ours = is_shown(f.stage) && !f.wanted && !f.not_dealt;
    return ours && has_next && !f.no_target && !f.cannot && !(f.encoded && f.kazoo);
}

// T1, T4: until when, from the plan on.
int64_t stays_until(const give_facts &f) {
    if (f.next == NEVER) return INT64_MIN;
    return f.next == NOBODY ? std::min<int64_t>(f.timeout_ms, 400) : f.timeout_ms;
}

void ask_give(size_t number) {
    static const int64_t ages[] = {0, 399, 400, 29999, 30000};
    Digits d(number);
    give_facts f = {};
    f.stage = d.next(STAGES);
    f.next = d.next(NOTES);
    f.age_ms = ages[d.next(5)];
    f.timeout_ms = d.flag() ? 300 : 30000;
    for (bool *flag : {&f.wanted, &f.not_dealt, &f.no_target, &f.cannot, &f.encoded, &f.kazoo, &f.withdrawn, &f.awaited,
                       &f.listed, &f.departs, &f.writes, &f.no_room})
        *flag = d.flag();
    if (is_kept(f.stage) && f.next == NOBODY && f.stage == LEAVING) return; // it was announced to nobody
    const give_answer a = facts_give(&f);
    bool ready = f.next == SAYS, stays = may_stay(f), waits = stays && !f.withdrawn && f.age_ms < stays_until(f);
    bool cannot_write = f.departs || (f.writes && f.no_room); // T3
    bool lists = stays && f.next != NOBODY && !has_gone(f.next);
    uint8_t stage = f.stage;
    if (is_shown(f.stage) && f.stage != REVOKED) {
        stage = f.next == NOBODY || f.next == UNREAD ? KEPT : LEAVING;
        if (!waits || (ready && !cannot_write)) stage = SHOWN;
    }
    expect(a.keeps == (waits && !ready), "what is released stays, or goes, against T3", number);
    expect(a.lists == lists, "the note lists the item as leaving, or does not, against T1", number);
    expect(a.seen == (stays && ready ? FACT_MZXID : 0), "the item is given at another r (T5)", number);
    expect(a.stage == stage, "the item is kept, or revoked, against T1, T3 or T4", number);
    expect(a.differs == (lists != f.listed), "the note is written again, or is not", number);
    expect(a.told == ((stage == LEAVING) != (f.stage == LEAVING)), "the user is told, or is not", number);
    int64_t until = stays_until(f) == INT64_MIN ? 0 : stays_until(f);
    if (!is_kept(stage)) until = FACT_NOTHING_DUE;
    expect(a.due_ms == until, "T4 is due at another time", number);
    cases++;
}

void ask_plan(size_t number) {
    Digits d(number);
    plan_facts f = {};
    f.stage = d.next(STAGES);
    f.owner = d.next(3);
    f.is_older = d.flag();
    f.had_since = d.flag();
    f.had_next = d.flag();
    const plan_answer a = facts_plan(&f);
    bool shown = is_shown(f.stage);
    bool has_next = shown && (f.owner == 2 || (f.owner == 0 && f.had_next));
    expect(a.has_next == has_next, "another is the next owner", number);
    expect(a.since == (!shown ? 0 : f.had_since ? 2 : 1), "the time of T4 begins again, or does not", number);
    expect(a.is_awaited == (shown && f.owner == 0 && !has_next && f.is_older), "T1 waits for a node, or does not",
           number);
    cases++;
}

// D44: the time of the last note that lists something given, after the plan; 0 while anything is on its way.
void ask_ended(size_t number) {
    Digits d(number);
    end_facts f = {};
    for (bool *flag :
         {&f.no_note, &f.writes, &f.departs, &f.listed, &f.wanted, &f.is_first, &f.has_given, &f.own_failed})
        *flag = d.flag();
    f.stage = d.flag() ? SHOWN : HIDDEN;
    f.own_written = d.next(3);
    for (uint8_t &other : f.others) other = static_cast<uint8_t>(d.next(16)) | (&other == &f.others[1] ? 16 : 0);
    if (f.others[0] == 0) f.others[0] = 16;
    bool moving = f.listed || (f.wanted ? !f.is_first : f.stage == SHOWN);
    bool unknown = f.no_note || f.writes || f.departs || moving;
    bool own_counts = f.own_written == 2 && f.has_given;
    int64_t last = own_counts ? (f.own_failed ? -1 : 1000) : 0;
    unknown = unknown || last < 0;
    for (int n = 0; n < 2; n++) {
        uint8_t other = f.others[n];
        bool there = !(other & 8);
        unknown = unknown || (there && (other & 4));
        if (there && (other & 1) && (other & 2)) last = std::max<int64_t>(last, 2000 + n);
    }
    int64_t is = facts_ended_ms(&f);
    expect(is == (unknown ? 0 : last), "the last item came at another time (D44)", number);
    cases++;
}

// ---- T2, T9, Q11: what is taken ----

// T9: how likely the member of that note has the item.
int likelihood(uint8_t note) {
    return note == SAYS ? 3 : note == UNREAD ? 2 : is_there(note) ? 1 : note == NOBODY ? -1 : 0;
}

uint8_t owner_of(const take_facts &f) {
    uint8_t owner = f.former;
    for (uint8_t note : f.namesakes)
        if (likelihood(note) > likelihood(owner)) owner = note;
    return owner;
}

struct Taken {
    uint8_t owner;
    bool learned, asks, prepared; // a plan gives it to us; the user has to prepare; he has
    int64_t patience_ms;
};

Taken rule_take(const take_facts &f) {
    Taken t = {};
    t.learned = !f.no_plan && !f.no_handover;
    t.owner = t.learned ? owner_of(f) : static_cast<uint8_t>(NOBODY);
    t.asks = f.wanted && t.learned && !is_shown(f.stage) && !f.does_not_take_part && f.prepare_ms > 0;
    t.prepared = f.stage == PREPARING ? f.prepared || f.overdue || f.age_ms >= 700 : !t.asks;
    t.patience_ms = f.is_old ? 1000 : 100;
    return t;
}

void judge_take(const take_facts &f, const take_answer &a, size_t number) {
    const Taken t = rule_take(f);
    bool leaving = t.owner == SAYS, hands_over = !f.no_handover && t.owner != NOBODY && !f.cannot;
    bool enters =
        !hands_over || has_gone(t.owner) || (is_there(t.owner) && t.prepared && (leaving || f.age_ms >= t.patience_ms));
    bool nobody = !f.renews_nothing && !f.place_leaves &&
                  (t.learned ? t.owner == NOBODY || has_gone(t.owner) : !f.kazoo && (f.nobody_came || f.is_eager));
    bool lists = f.wanted && !f.not_dealt && !f.is_first && f.has_place && f.is_behind;
    expect(a.owner == t.owner, "it waits for another than T9 has it", number);
    expect(a.may_enter == enters, "it enters the queue, or does not, against T2", number);
    expect(a.awaited == (!f.no_handover && leaving), "it enters without a list, or with one, against T2", number);
    expect(a.from_nobody == nobody, "its queue counts as empty, or does not, against Q11", number);
    expect(a.lists == lists, "the note lists the item as ready, or does not", number);
    bool waits = f.wanted && !f.has_place && is_there(t.owner);
    int64_t due = f.stage == PREPARING && !t.prepared ? 700 : t.patience_ms;
    if (f.stage != PREPARING && t.asks) due = 0; // he is told first
    bool has_due = waits && due > f.age_ms;
    expect(a.has_due == has_due && (!has_due || a.due_ms == due), "T2 is due at another time", number);
}

void judge_update(const take_facts &f, const take_answer &a, size_t number) {
    const Taken t = rule_take(f);
    bool is_idle = (!f.wanted || f.is_first) && !t.learned && f.stage != PREPARING;
    bool lists = f.wanted && !f.not_dealt && !f.is_first && f.has_place && f.is_behind;
    bool was_asked = f.stage == PREPARING, changes = !f.no_handover && !is_idle && t.asks != was_asked;
    uint8_t stage = f.stage;
    if (changes) stage = t.asks ? PREPARING : HIDDEN;
    bool enters = f.wanted && f.has_place && !f.is_first && !f.is_behind;
    expect(a.stage == stage, "the user is to prepare, or is not, against T2", number);
    expect(a.told == changes, "the user is told, or is not", number);
    expect(a.is_ready == (!f.no_handover && !is_idle && lists && !f.listed), "a ready item is missed", number);
    expect(a.is_entering == (!f.no_handover && !is_idle && enters), "a place under way is missed", number);
    expect(a.flushed == (changes && (!t.asks || is_there(t.owner))), "the user waits to be told", number);
    expect(a.forgets_prepared == (changes && t.asks && f.prepared && !f.was_told),
           "the user has prepared for what he was not told, or has not", number);
}

bool take_of(size_t number, take_facts *f) {
    static const int64_t ages[] = {50, 150, 699, 1000};
    static const uint8_t stages[] = {HIDDEN, PREPARING, SHOWN};
    Digits d(number);
    f->former = d.next(NOTES);
    f->namesakes[0] = d.next(NOTES);
    f->stage = stages[d.next(3)];
    f->age_ms = ages[d.next(4)];
    for (bool *flag : {&f->is_old, &f->wanted, &f->no_plan, &f->cannot, &f->no_handover, &f->does_not_take_part,
                       &f->prepared, &f->overdue, &f->has_place})
        *flag = d.flag();
    f->prepare_ms = d.flag() ? 0 : 5000;
    f->namesakes[1] = number % 11 == 0 ? SAYS : number % 7 == 0 ? UNREAD : NOBODY;
    f->is_behind = number / 3 % 2;
    f->listed = number / 5 % 2;
    f->was_told = number / 13 % 2;
    f->not_dealt = number % 17 == 0;
    f->is_first = f->stage == SHOWN || (f->has_place && number % 19 == 0);
    return !(f->stage == SHOWN && !f->has_place) && !(f->is_first && f->is_behind);
}

void ask_take(size_t number) {
    take_facts f = {};
    if (!take_of(number, &f)) return;
    const take_answer a = facts_take(&f);
    judge_take(f, a, number);
    judge_update(f, a, number);
    cases++;
}

void ask_empty(size_t number) {
    Digits d(number);
    take_facts f = {};
    f.former = d.next(NOTES);
    f.wanted = true;
    f.age_ms = 50;
    f.prepare_ms = 5000;
    for (bool *flag : {&f.no_plan, &f.renews_nothing, &f.place_leaves, &f.kazoo, &f.nobody_came, &f.is_eager})
        *flag = d.flag();
    judge_take(f, facts_take(&f), number);
    cases++;
}

// T2: the user has prepared for what he was told of, or has seen in a list; P10: he is told again once that is proven.
void ask_told(size_t number) {
    Digits d(number);
    told_facts f = {};
    for (bool *flag : {&f.wanted, &f.is_first, &f.has_place, &f.was_told, &f.looks, &f.is_preparing, &f.says_all,
                       &f.says, &f.proven, &f.arrives})
        *flag = d.flag();
    const told_answer a = facts_told(&f);
    bool knows = f.was_told || (f.looks && f.is_preparing);
    bool prepared = !f.arrives && (f.says || (f.says_all && knows));
    expect(a.learned == !(f.wanted || f.is_first || f.has_place), "a plan is news where it says nothing new", number);
    expect(a.prepared == prepared, "the user has prepared for what he does not know, or has not", number);
    expect(a.told_again == (f.proven && f.is_preparing), "the user is told again, or is not", number);
    cases++;
}

// T0, T6: an item is given to the place behind that of its owner, if that stood when the owner read the note of r.
void ask_note(size_t number) {
    Digits d(number);
    note_facts f = {};
    f.given_count = d.next(FACT_GIVEN + 1);
    for (int n = 0; n < FACT_GIVEN; n++) {
        f.given_item[n] = d.next(3);
        f.given_at[n] = d.next(3);
        f.given_to[n] = static_cast<uint8_t>(1 + d.next(2));
    }
    f.leaving = static_cast<uint8_t>(number * 7 % 64);
    f.ready = static_cast<uint8_t>(number * 11 / 3 % 64);
    unsigned gives = 0, given;
    for (unsigned s = 1; s <= 3; s++)
        for (unsigned c = 1; c <= 2; c++)
            for (int n = 0; n < f.given_count; n++)
                if (f.given_item[n] == 1 && f.given_at[n] + 1u == s && c <= f.given_to[n]) gives |= 1u << (3 * s + c);
    unsigned says = facts_note_says(&f, &given);
    expect(says == (f.leaving | static_cast<unsigned>(f.ready) << 8), "a note says something else than was printed",
           number);
    expect(given == gives, "an item is given, or is not, against T6", number);
    cases++;
}

void ask_all(const char *name, size_t count, size_t each, void (*ask)(size_t)) {
    size_t before = cases;
    for (size_t n = 0; n < count; n += each) ask(n);
    printf("    %7zu  %s\n", cases - before, name);
}

} // namespace

int main(int count, char **arguments) {
    size_t each = count > 1 && !strcmp(arguments[1], "--short") ? 101 : 1;
    facts_begin();
    ask_all("what is given", size_t{STAGES} * NOTES * 5 * 2 << 12, each, ask_give);
    ask_all("a plan's next owner", STAGES * 3 * 8, 1, ask_plan);
    ask_all("the last item that came", size_t{1} * 512 * 3 * 256, each, ask_ended);
    ask_all("what is taken", size_t{NOTES} * NOTES * 3 * 4 << 10, each, ask_take);
    ask_all("an empty queue", NOTES * 64, 1, ask_empty);
    ask_all("what the user knows", 1024, 1, ask_told);
    ask_all("what a note says", size_t{4} * 18 * 18 * 18, each, ask_note);
    facts_end();
    printf("%zu cases\n", cases);
    if (wrong) printf("%zu answers differ\n", wrong);
    return wrong || !cases;
}
