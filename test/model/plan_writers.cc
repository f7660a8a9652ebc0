// A model of the writers and readers of the plan: D21 to D30 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
//   plan_writers                   the rules, then each broken variant: the test model.plan_writers
//   plan_writers --rules           the rules alone, with counts of steps
//   plan_writers --long            the same, with more faults
//   plan_writers --list            the variants
//   plan_writers --variant NAME    one of them, with the way to its fault
//
// Three members follow the plan at P/plan, write the next one when something happens, and delete garbage. A root has a
// version, its epoch child, and chunks. Somebody else deletes a child, or P/plan with all its children, and may make an
// empty P/plan again. Answers may be lost with the connection, and a request that went with it may still be applied.
// After a change of servers a read may tell of the root before. The search visits every order of steps. It claims:
//
//  1. Who follows a plan has the one that its writer wrote, and it stood there.
//  2. A writer never writes over a root that it did not read (D25, D27).
//  3. The mzxid of what a member follows never falls (D21).
//  4. The root that stands has all chunks that it names, but for those that somebody else deleted (D28, D30).
//  5. A write that its writer takes for undone is never applied (D25).
//  6. At rest a plan stands, and all members follow it (D23, D26).
//
// Left out: the party, its settling and f (a member may find at any time that there is something to write), operators
// (D51), newer plans, several chunks of one write, a chunk that is made in the multi of its root, and turns (D37): at
// most two members write at one time.
// A get of the root and what is sent upon it are one step: what others do between them can be done before the request
// is applied. Names that nobody can know again are used again; the rules would take a fresh one.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "search.h"

namespace {

using model::About;
using model::is;
using model::Step;
using model::Variant;

enum { MEMBERS = 3, NAMES = 12, WRITERS = 2 };

enum Known : uint16_t { FOLLOWED, NO_ROOT, BROKEN, EMPTY }; // the root, as a member read it last; EMPTY: generation 0
enum Stage : uint16_t { RESTS, READS, READS_AGAIN, WAITS, ANSWERED, UNSURE, LISTS };
enum Request : uint16_t { NOTHING, CREATE, MAKE_CHUNK, MAKE_EPOCH, SET, SET_WITH_EPOCH, LATE_CHUNK, TIDY };
enum Answer : uint16_t { DONE, REFUSED, NO_EPOCH };
enum Text : uint16_t { INLINE, BASE, DELTA, GENERATION_0 };

// All fields are 16 bits wide, so that two equal worlds have equal bytes. Sets are bits of names, which count from 1.
struct Plan {
    uint16_t generation, epoch, chunks, chain; // chain: the plans from which its deltas lead to it, and itself
};

struct Root {
    uint16_t there, plan, version, mzxid; // plan: 0: no text that parses
};

struct Message {
    uint16_t kind, plan, version, epoch, read, deletes; // read: the mzxid of the root that the writer read
};

struct Member {
    uint16_t plan, followed;          // in memory, and its mzxid
    uint16_t known, seen, newest;     // seen: the mzxid of the root that it read last; newest: of all
    uint16_t lacks, wants;            // the root has too few children; it has something to write
    uint16_t needs_epoch, made_epoch; // D27
    uint16_t stage, reads, left;      // reads: the plan whose chunks it reads; left: those chunks
    uint16_t writes, version, answer, mzxid, more;
    Message out;
};

// How often a member has something to write, a connection is lost, a read is old; and what somebody else does.
struct Budget {
    uint16_t may_write, may_break, may_lag, may_delete, may_remove, may_make;
};

struct World : Budget {
    Plan plans[NAMES];
    Root root, before;
    uint16_t chunks, epochs, deleted, committed, undone, zxid;
    Member members[MEMBERS];
};

enum Kind : uint8_t {
    READ,
    READ_OLD,
    READ_CHUNK,
    READ_AGAIN,
    WANT,
    ATTEMPT,
    SERVE,
    DROP,
    TAKE_ANSWER,
    BREAK,
    FIND_OUT,
    LIST,
    DELETE_CHUNK,
    DELETE_EPOCH,
    REMOVE_PLAN,
    MAKE_PLAN,
    KINDS
};

const About ABOUT[KINDS] = {
    {"reads the root", MEMBERS, 1, true},
    {"CHANGES SERVERS, AND READS THE ROOT BEFORE", MEMBERS, 1, false},
    {"reads a chunk", MEMBERS, 1, true},
    {"reads the root again", MEMBERS, 1, true},
    {"has something to write", MEMBERS, 1, false},
    {"attempts to write", MEMBERS, 4, true},
    {"'s request is applied, or refused", MEMBERS, 1, true},
    {"'s request of the lost connection is lost", MEMBERS, 1, true},
    {"takes an answer", MEMBERS, 1, true},
    {"LOSES ITS CONNECTION", MEMBERS, 1, false},
    {"reads whether its write was applied", MEMBERS, 1, true},
    {"lists the children of the plan", MEMBERS, 1, true},
    {"SOMEBODY DELETES A CHUNK", 1, NAMES + 1, false},
    {"SOMEBODY DELETES AN EPOCH CHILD", 1, NAMES + 1, false},
    {"SOMEBODY DELETES P/plan WITH ITS CHILDREN", 1, 1, false},
    {"SOMEBODY MAKES AN EMPTY P/plan", 1, 1, false},
};

const std::vector<Variant> VARIANTS = {
    {"no_epoch", "a writer does not check the epoch child", "a writer writes over a root that it did not read", nullptr,
     0},
    {"epoch_in_multi", "a writer makes a new epoch child in the multi that sets the root",
     "a writer writes over a root that it did not read", "epoch", 0},
    {"epoch_unread", "a writer that made an epoch child does not read the root again",
     "a writer writes over a root that it did not read", "epoch", 0},
    {"in_parts", "a reader follows a plan without a chunk that is missing", "a member follows a plan in parts", nullptr,
     0},
    {"blind_deltas", "a reader applies deltas to whatever it has", "a member follows what nobody wrote", nullptr, 0},
    {"any_root", "a reader follows a root that is older than one that it read",
     "a member follows a plan that is older than its own", nullptr, 0},
    {"root_first", "a writer makes its chunk after the root",
     "the root names a chunk that is not there, and that nobody else deleted", nullptr, 0},
    {"garbage_above", "a writer deletes chunks of higher generations, too",
     "the root names a chunk that is not there, and that nobody else deleted", nullptr, 0},
    {"garbage_unchecked", "a writer deletes garbage without a check of root and epoch",
     "the root names a chunk that is not there, and that nobody else deleted", nullptr, 0},
    {"no_barrier", "a writer reads without a barrier what became of its write",
     "a write is applied that its writer took for undone", nullptr, 0},
    {"lost_is_done", "a writer takes a write whose answer was lost for done",
     "a member follows a plan that never stood there", nullptr, 0},
    {"kept_broken", "members do not write a broken plan again", "no plan stands, and nobody writes one", nullptr, 0},
};

const char *fault; // of the step that was made last

uint16_t bit(unsigned name) {
    return static_cast<uint16_t>(name ? 1u << (name - 1) : 0);
}

unsigned count(unsigned set) {
    return static_cast<unsigned>(__builtin_popcount(set));
}

Plan &plan_of(World &w, unsigned name) {
    static Plan none;
    none = Plan{};
    return name ? w.plans[name - 1] : none;
}

// ---- names and zxids: only their order matters, and what somebody knows ----

uint16_t plans_in_use(const World &w) {
    unsigned used = w.chunks | bit(w.root.plan) | bit(w.before.plan);
    for (const Member &m : w.members) used |= bit(m.plan) | bit(m.reads) | bit(m.writes) | bit(m.out.plan);
    return static_cast<uint16_t>(used);
}

uint16_t names_in_use(const World &w) {
    unsigned plans = plans_in_use(w), used = plans | w.epochs;
    for (unsigned i = 0; i < NAMES; i++)
        if (plans & bit(i + 1)) used |= w.plans[i].chunks | w.plans[i].chain | bit(w.plans[i].epoch);
    for (const Member &m : w.members) used |= bit(m.made_epoch) | bit(m.out.epoch) | m.left | m.out.deletes;
    return static_cast<uint16_t>(used);
}

void rank_zxids(World &w) {
    std::vector<uint16_t *> all = {&w.root.mzxid, &w.before.mzxid, &w.zxid};
    for (Member &m : w.members) {
        for (uint16_t *z : {&m.followed, &m.seen, &m.newest, &m.mzxid, &m.out.read}) all.push_back(z);
    }
    model::rank(all.data(), all.size());
}

uint16_t renamed(uint16_t set, const uint8_t *names) {
    unsigned to = 0;
    for (unsigned i = 1; i <= NAMES; i++)
        if (set & bit(i)) to |= bit(names[i]);
    return static_cast<uint16_t>(to);
}

// Numbers the names in the order in which they are met.
void rename_all(World &w) {
    uint8_t names[NAMES + 1] = {};
    uint8_t last = 0;
    auto meet = [&names, &last](unsigned name) {
        if (name && !names[name]) names[name] = ++last;
    };
    std::vector<uint16_t *> all = {&w.root.plan, &w.before.plan};
    std::vector<uint16_t *> sets = {&w.chunks, &w.epochs, &w.deleted, &w.committed, &w.undone};
    for (Member &m : w.members) {
        for (uint16_t *name : {&m.plan, &m.reads, &m.writes, &m.made_epoch, &m.out.plan, &m.out.epoch})
            all.push_back(name);
        sets.push_back(&m.left);
        sets.push_back(&m.out.deletes);
    }
    for (Plan &plan : w.plans) {
        all.push_back(&plan.epoch);
        sets.push_back(&plan.chunks);
        sets.push_back(&plan.chain);
    }
    for (uint16_t *name : all) meet(*name);
    for (unsigned i = 1, used = names_in_use(w); i <= NAMES; i++)
        if (used & bit(i)) meet(i);
    for (uint16_t *name : all) *name = names[*name];
    for (uint16_t *set : sets) *set = renamed(*set, names);
    Plan old[NAMES];
    memcpy(old, w.plans, sizeof old);
    memset(w.plans, 0, sizeof w.plans);
    for (unsigned i = 0; i < NAMES; i++)
        if (names[i + 1]) w.plans[names[i + 1] - 1] = old[i];
}

void sort_members(World &w, uint8_t *was) {
    Member old[MEMBERS];
    uint8_t order[MEMBERS] = {0, 1, 2}, before[MEMBERS];
    memcpy(old, w.members, sizeof old);
    memcpy(before, was, sizeof before);
    std::sort(order, order + MEMBERS,
              [&old](uint8_t x, uint8_t y) { return memcmp(&old[x], &old[y], sizeof *old) < 0; });
    for (unsigned i = 0; i < MEMBERS; i++) {
        w.members[i] = old[order[i]];
        was[i] = before[order[i]];
    }
}

// Forgets what cannot matter, and puts members and names into order: they are alike. Tells where each member was.
void settle(World &w, uint8_t *was) {
    uint16_t plans = plans_in_use(w);
    for (unsigned i = 0; i < NAMES; i++) {
        if (plans & bit(i + 1)) w.plans[i].chain &= plans;
        else w.plans[i] = Plan{};
    }
    w.deleted &= names_in_use(w);
    w.committed &= plans;
    w.undone &= plans;
    rank_zxids(w);
    for (uint8_t i = 0; i < MEMBERS; i++) was[i] = i;
    for (unsigned i = 0; i < 2; i++) {
        sort_members(w, was);
        rename_all(w);
    }
}

uint16_t new_name(const World &w) {
    uint16_t used = names_in_use(w), name = 1;
    while (name < NAMES && (used & bit(name))) name++;
    if (used & bit(name)) fault = "the model has too few names";
    return name;
}

// ---- reading ----

void rest(Member &m) {
    m.stage = RESTS;
    m.reads = m.left = m.writes = m.version = m.answer = m.mzxid = m.more = 0;
}

bool has_too_few(World &w) {
    return w.root.plan && count(w.chunks) + count(w.epochs) < count(plan_of(w, w.root.plan).chunks) + 1u;
}

void follow(World &w, Member &m, uint16_t plan, uint16_t mzxid) {
    if (!(w.committed & bit(plan))) fault = "a member follows a plan that never stood there";
    if (mzxid < m.followed) fault = "a member follows a plan that is older than its own";
    m.plan = plan;
    m.followed = mzxid;
    m.known = FOLLOWED;
    m.wants = 0;
    rest(m);
}

// Has seen the root with this mzxid.
void see(World &w, Member &m, uint16_t mzxid) {
    if (mzxid != m.seen) m.needs_epoch = m.made_epoch = 0;
    m.seen = mzxid;
    m.newest = std::max(m.newest, mzxid);
    m.lacks = mzxid == w.root.mzxid && has_too_few(w);
}

void read_root(World &w, Member &m, const Root &root) {
    rest(m);
    if (!root.there) {
        see(w, m, 0);
        m.known = NO_ROOT;
        return;
    }
    see(w, m, root.mzxid);
    const Plan &plan = plan_of(w, root.plan);
    if (!root.plan) {
        m.known = BROKEN;
        m.needs_epoch = !m.made_epoch;
    } else if (!plan.generation) {
        m.known = EMPTY;
    } else if (plan.chain & bit(m.plan) || !plan.chunks) {
        follow(w, m, root.plan, root.mzxid);
    } else if (is("blind_deltas") && count(plan.chain) > 1) {
        fault = "a member follows what nobody wrote";
    } else {
        m.stage = READS;
        m.reads = root.plan;
        m.left = plan.chunks;
    }
}

bool is_news(World &w, const Member &m, const Root &root) {
    if (root.there ? root.mzxid != m.seen : m.seen != 0 || m.known != NO_ROOT) return true;
    return root.there && root.mzxid == w.root.mzxid && m.lacks != has_too_few(w);
}

void read_chunk(World &w, Member &m) {
    uint16_t chunk = m.left & static_cast<uint16_t>(-m.left);
    if (!(w.chunks & chunk) && is("in_parts")) fault = "a member follows a plan in parts";
    m.left &= static_cast<uint16_t>(~chunk);
    if (!(w.chunks & chunk)) m.stage = READS_AGAIN;
    else if (!m.left) follow(w, m, m.reads, m.seen);
}

void read_again(World &w, Member &m) {
    if (is_news(w, m, w.root) && (!w.root.there || w.root.mzxid != m.seen)) return read_root(w, m, w.root);
    rest(m);
    m.known = BROKEN;
}

// ---- writing ----

void send(Member &m, Request kind, uint16_t name, uint16_t version, uint16_t epoch, uint16_t deletes) {
    m.stage = WAITS;
    m.out = Message{kind, name, version, epoch, m.seen, deletes};
}

void send_root(World &w, Member &m) {
    const Plan &plan = plan_of(w, m.writes);
    send(m, SET, m.writes, m.version, plan.epoch, 0);
}

bool has_something_to_write(const Member &m) {
    bool broken = m.known == BROKEN && !is("kept_broken");
    return m.wants || m.lacks || m.known == NO_ROOT || m.known == EMPTY || broken;
}

unsigned writers(const World &w) {
    unsigned n = 0;
    for (const Member &m : w.members) n += m.out.kind || m.stage > READS_AGAIN;
    return n;
}

// Returns why the member cannot write such a text; or NULL, and the first request is on its way.
const char *attempt(World &w, Member &m, unsigned text) {
    const Plan before = plan_of(w, w.root.plan);
    bool at_rest = m.stage == RESTS && !m.out.kind && has_something_to_write(m);
    bool is_known = w.root.there ? w.root.mzxid == m.seen : m.known == NO_ROOT;
    if (!at_rest || !is_known) return "no attempt, or it has to read first";
    if (writers(w) == WRITERS) return "too many write";
    if (text == GENERATION_0 && w.root.there) return "the root stands";
    if ((text == BASE || text == DELTA) && !w.root.there) return "a chunk has no parent";
    if (text == DELTA && (m.known != FOLLOWED || m.lacks || !before.chunks)) return "nothing to add a delta to";
    bool makes_epoch = w.root.there && m.needs_epoch;
    if (makes_epoch && text != INLINE) return "an epoch child comes first";
    uint16_t name = new_name(w);
    Plan &plan = plan_of(w, name);
    uint16_t highest = std::max(plan_of(w, m.plan).generation, before.generation);
    plan = Plan{static_cast<uint16_t>(highest + 1), before.epoch, 0, bit(name)};
    if (text == GENERATION_0) plan.generation = 0;
    if (text == BASE) plan.chunks = bit(name);
    if (text == BASE) plan.chain |= bit(m.plan);
    if (text == DELTA) plan.chunks = before.chunks;
    if (text == DELTA) plan.chain |= before.chain;
    if (m.made_epoch) plan.epoch = m.made_epoch;
    m.writes = name;
    m.version = w.root.version;
    if (!w.root.there) {
        plan.epoch = name;
        send(m, CREATE, name, 0, name, 0);
    } else if (makes_epoch) {
        plan.epoch = name;
        send(m, is("epoch_in_multi") ? SET_WITH_EPOCH : MAKE_EPOCH, name, m.version, name, 0);
    } else if (text == BASE && !is("root_first")) {
        send(m, MAKE_CHUNK, name, 0, 0, 0);
    } else {
        send_root(w, m);
    }
    return nullptr;
}

void list_garbage(World &w, Member &m) {
    uint16_t garbage = 0, own = m.plan, version = m.version;
    const Plan plan = plan_of(w, own);
    for (unsigned name = 1; name <= NAMES; name++) {
        bool above = plan_of(w, name).generation > plan.generation && !is("garbage_above");
        if (w.chunks & bit(name) && !(plan.chunks & bit(name)) && !above) garbage |= bit(name);
    }
    rest(m);
    if (garbage) send(m, TIDY, own, version, plan.epoch, garbage);
}

// What became of a root that was written.
void written(World &w, Member &m) {
    uint16_t plan = m.writes, version = m.version, mzxid = m.mzxid, more = m.more;
    bool lacks_chunk = is("root_first") && plan_of(w, plan).chunks == bit(plan);
    see(w, m, mzxid);
    if (!plan_of(w, plan).generation) {
        rest(m);
        m.known = EMPTY;
        return;
    }
    follow(w, m, plan, mzxid);
    m.lacks = 0;
    if (lacks_chunk) return send(m, LATE_CHUNK, plan, 0, 0, 0);
    if (!more) return;
    m.stage = LISTS;
    m.version = static_cast<uint16_t>(version + 1);
}

void take_answer(World &w, Member &m) {
    uint16_t kind = m.out.kind, answer = m.answer;
    m.out = Message{};
    m.stage = RESTS;
    if (answer == NO_EPOCH && kind == SET) {
        m.needs_epoch = 1;
        m.made_epoch = 0;
    }
    if (answer != DONE || kind == TIDY || kind == LATE_CHUNK) return rest(m);
    if (kind == MAKE_CHUNK) return send_root(w, m);
    if (kind == MAKE_EPOCH) {
        m.needs_epoch = 0;
        m.made_epoch = m.writes;
        if (is("epoch_unread")) return send_root(w, m);
        return rest(m);
    }
    written(w, m);
}

void break_connection(World &w, Member &m) {
    bool roots = m.out.kind == CREATE || m.out.kind == SET || m.out.kind == SET_WITH_EPOCH;
    w.may_break--;
    if (m.stage == ANSWERED) m.out = Message{};
    m.answer = m.mzxid = m.more = 0;
    if (!roots) return rest(m);
    m.stage = UNSURE;
    if (is("lost_is_done")) follow(w, m, m.writes, w.root.mzxid);
}

void find_out(World &w, Member &m) {
    uint16_t plan = m.writes;
    if (w.root.plan != plan) {
        w.undone |= bit(plan);
        return rest(m);
    }
    m.mzxid = w.root.mzxid;
    written(w, m);
}

// ---- the servers ----

void set_root(World &w, const Message &r) {
    w.before = w.root;
    w.root = Root{1, r.plan, static_cast<uint16_t>(r.version + 1), ++w.zxid};
    w.committed |= bit(r.plan);
    if (w.undone & bit(r.plan)) fault = "a write is applied that its writer took for undone";
}

Answer set(World &w, const Message &r) {
    bool checks = r.kind == SET && !is("no_epoch");
    if (!w.root.there || (checks && !(w.epochs & bit(r.epoch)))) return NO_EPOCH;
    if (w.root.version != r.version) return REFUSED;
    if (w.root.mzxid != r.read) fault = "a writer writes over a root that it did not read";
    if (r.kind == SET_WITH_EPOCH) w.epochs |= bit(r.epoch);
    set_root(w, r);
    return DONE;
}

Answer tidy(World &w, const Message &r) {
    bool checked = w.root.there && w.root.version == r.version && w.epochs & bit(r.epoch);
    if ((!checked && !is("garbage_unchecked")) || (w.chunks & r.deletes) != r.deletes) return REFUSED;
    w.chunks &= static_cast<uint16_t>(~r.deletes);
    return DONE;
}

Answer serve(World &w, const Message &r) {
    switch (r.kind) {
    case CREATE:
        if (w.root.there) return REFUSED;
        set_root(w, r);
        w.epochs = bit(r.epoch);
        return DONE;
    case SET:
    case SET_WITH_EPOCH: return set(w, r);
    case TIDY: return tidy(w, r);
    default:
        if (!w.root.there) return REFUSED;
        if (r.kind == MAKE_EPOCH) w.epochs |= bit(r.plan);
        else w.chunks |= bit(r.plan);
        return DONE;
    }
}

void take_request(World &w, Member &m) {
    Answer answer = serve(w, m.out);
    unsigned missing = plan_of(w, w.root.plan).chunks & ~w.chunks & ~w.deleted;
    if (missing) fault = "the root names a chunk that is not there, and that nobody else deleted";
    if (m.stage != WAITS) {
        m.out = Message{};
        return;
    }
    m.stage = ANSWERED;
    m.answer = answer;
    m.mzxid = w.root.mzxid;
    m.more = count(w.chunks) + count(w.epochs) > count(plan_of(w, m.out.plan).chunks) + 1u;
}

// ---- the steps ----

const char *apply_other(World &w, const Step &s) {
    uint16_t *left = s.kind == REMOVE_PLAN ? &w.may_remove : s.kind == MAKE_PLAN ? &w.may_make : &w.may_delete;
    uint16_t *children = s.kind == DELETE_CHUNK ? &w.chunks : &w.epochs;
    bool deletes = s.kind == DELETE_CHUNK || s.kind == DELETE_EPOCH;
    if (!*left) return "no more of that";
    if (deletes && !(*children & bit(s.argument))) return "no such child";
    if (!deletes && w.root.there == (s.kind == MAKE_PLAN)) return "P/plan is there, or is not";
    --*left;
    if (deletes) {
        *children &= static_cast<uint16_t>(~bit(s.argument));
        if (s.kind == DELETE_CHUNK) w.deleted |= bit(s.argument);
        return nullptr;
    }
    w.before = w.root;
    w.root = Root{};
    w.chunks = w.epochs = 0;
    if (s.kind == MAKE_PLAN) w.root = Root{1, 0, 0, ++w.zxid};
    return nullptr;
}

const char *apply_fault(World &w, Member &m, const Step &s) {
    bool passed_over = w.before.there && w.before.mzxid < m.newest && !is("any_root");
    if (s.kind == READ_OLD) {
        if (m.stage != RESTS || m.out.kind || !w.may_lag) return "no such read";
        if (passed_over || !is_news(w, m, w.before)) return "nothing new";
        w.may_lag--;
        read_root(w, m, w.before);
    } else if (s.kind == BREAK) {
        if ((m.stage != WAITS && m.stage != ANSWERED) || !w.may_break) return "nothing to lose";
        break_connection(w, m);
    } else {
        if (m.stage != RESTS || m.out.kind || m.known != FOLLOWED || m.wants || !w.may_write) return "nothing to write";
        w.may_write--;
        m.wants = 1;
    }
    return nullptr;
}

// Makes the step and returns NULL; or returns why the rules do not allow it. A claim that it breaks is in fault.
const char *apply(World &w, const Step &s) {
    if (ABOUT[s.kind].members == 1) return apply_other(w, s);
    Member &m = w.members[s.who];
    bool barrier = !m.out.kind || is("no_barrier");
    const char *no = "not now";
    switch (s.kind) {
    case READ:
        if (m.stage != RESTS || m.out.kind || !is_news(w, m, w.root)) return no;
        return read_root(w, m, w.root), nullptr;
    case READ_CHUNK: return m.stage == READS ? read_chunk(w, m), nullptr : no;
    case READ_AGAIN: return m.stage == READS_AGAIN ? read_again(w, m), nullptr : no;
    case ATTEMPT: return attempt(w, m, s.argument);
    case SERVE: return m.out.kind && m.stage != ANSWERED ? take_request(w, m), nullptr : no;
    case DROP:
        if (!m.out.kind || m.stage == WAITS || m.stage == ANSWERED) return no;
        m.out = Message{};
        return nullptr;
    case TAKE_ANSWER: return m.stage == ANSWERED ? take_answer(w, m), nullptr : no;
    case FIND_OUT: return m.stage == UNSURE && barrier ? find_out(w, m), nullptr : no;
    case LIST: return m.stage == LISTS ? list_garbage(w, m), nullptr : no;
    default: return apply_fault(w, m, s);
    }
}

// ---- the search ----

struct Way {
    Step step;
    uint8_t was[MEMBERS]; // where the members stood before they were put into order
};

const char *wrong_at_rest(const World &w) {
    if (!w.root.there || !w.root.plan) return "no plan stands, and nobody writes one";
    for (const Member &m : w.members)
        if (m.plan != w.root.plan) return "a member does not follow the plan that stands";
    return nullptr;
}

struct Setup {
    const char *name;
    Budget budget;
    bool comes_new; // one of the members has just come, and knows no plan
    bool is_long;
};

const Setup SETUPS[] = {
    {"lost", {2, 1, 0, 0, 0, 0}, false, false},    {"old", {2, 0, 1, 0, 0, 0}, true, false},
    {"removed", {1, 0, 0, 0, 1, 0}, false, false}, {"made", {0, 0, 0, 0, 1, 1}, false, false},
    {"children", {0, 0, 0, 1, 0, 0}, true, false}, {"epoch", {0, 0, 0, 1, 1, 0}, false, true},
};

World first_world(const Setup &setup) {
    World w = {};
    static_cast<Budget &>(w) = setup.budget;
    w.plans[0] = Plan{1, 1, bit(1), bit(1)};
    w.root = Root{1, 1, 1, 1};
    w.chunks = w.epochs = w.committed = bit(1);
    w.zxid = 1;
    for (Member &m : w.members) m.plan = m.followed = m.seen = m.newest = 1;
    if (setup.comes_new) w.members[0] = Member{};
    if (setup.comes_new) w.members[0].known = NO_ROOT;
    return w;
}

using Base = model::Search<World, Way>;

class Search : public Base {
  public:
    explicit Search(const Setup &s) : setup(s) {}

  private:
    const Setup &setup;
    std::vector<Next> steps;
    uint64_t taken[KINDS] = {};
    uint8_t names[MEMBERS] = {0, 1, 2}; // who stands where, on the way that is told

    void begin() override {
        Way none = {};
        World w = first_world(setup);
        settle(w, none.was);
        add(w, 0, none);
    }
    const std::vector<Next> &steps_of(const World &w) override {
        steps.clear();
        model::try_all<Step>(ABOUT, [&](const Step &s) {
            Next n = {w, {s, {}}, ABOUT[s.kind].fair, nullptr, false};
            fault = nullptr;
            if (apply(n.world, s)) return;
            taken[s.kind]++;
            n.fault = fault;
            settle(n.world, n.way.was);
            steps.push_back(n);
        });
        return steps;
    }
    const char *rest(const World &w) override {
        return wrong_at_rest(w);
    }
    std::string label(const World &, const Way &way) override {
        static const char *const texts[] = {"inline", "a base", "a delta", "generation 0"};
        uint8_t old[MEMBERS];
        std::string text = model::tell(ABOUT[way.step.kind], names[way.step.who]);
        if (way.step.kind == ATTEMPT) text += std::string(": ") + texts[way.step.argument];
        memcpy(old, names, sizeof old);
        for (unsigned i = 0; i < MEMBERS; i++) names[i] = old[way.was[i]];
        return text;
    }
    std::vector<std::string> counts() override {
        return model::list_counts(ABOUT, taken);
    }
};

model::Outcome search(unsigned part, bool) {
    return Search(SETUPS[part]).run();
}

} // namespace

int main(int count_of, char **arguments) {
    std::vector<model::Part> parts;
    for (const Setup &setup : SETUPS) parts.push_back({setup.name, setup.is_long});
    return model::run({"plan_writers", "", VARIANTS, parts, true, search}, count_of, arguments);
}
