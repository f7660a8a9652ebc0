// A model of the roll: rules W18 to W21 of docs/protocol.md. SPDX-License-Identifier: Apache-2.0
//
//   roll                   the rules, then each broken variant: the test model.roll
//   roll --rules           the rules alone
//   roll --long            the rules alone, in larger worlds too
//   roll --list            the variants
//   roll --variant NAME    one of them, with the way to its fault
//
// Members a, b, ... have the order of their letters. Those of the first LOOKOUTS places list the party and write the
// roll; the others listen. Each member reads from a server of its own, which may be behind. Members join, their
// sessions end, they hang while the session lives on, they reconnect to another server; requests are lost before or
// behind the server; somebody deletes a member's node, or the roll, or writes a false one. Some members are of an older
// release, and know no roll, or may not write.
//
// The search visits every order of steps. Nothing is timed, but by two kinds of worlds: in impatient ones a wait (W20)
// may end at any time, in patient ones only when nothing else goes on. It claims:
//
//  1. When nothing goes on, each live member has settled on the party that is there, with its names.
//  2. No steps repeat for ever.
//  3. What a member writes is true: whoever knows the party that a step leads from comes to the names.
//  4. In patient worlds nobody waits in vain while a lookout, or one that stands in for them, lives and may write;
//     nobody waits in vain a second time before a lookout has written a roll that it takes; and a roll lacks the step
//     from the one before only if no such lookout knows that party.
//  5. In patient worlds all but lookouts listen in the end, if a lookout lives, may write, and wrote last.
//
// Left out: pools that grow large and small again before a lookout has seen it; the boundaries (W2 to W4), so that each list settles; what does not listen for other reasons (P11, eager);
// kazoo's members, which are as those of an older release; how many steps a roll has room for, but that it is two.
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "search.h"

namespace {

using model::is;

enum { MEMBERS = 4, LOOKOUTS = 1, TREES = 3, STEPS = 2, NOT_THERE = 15 };
enum Kind : uint8_t { NONE, GOOD };
enum Pen : uint8_t { AT_REST, TO_READ, TO_READ_LATER, SENT }; // later: as it does not know the party of the roll

// Names are bits: of member m those from 3 m on, one for each node that it had.
typedef uint16_t Names;

// All numbers are zxids, made small by canonical().
struct Roll {
    uint8_t kind, pzxid, place, steps;
    Names names;
    uint8_t from[STEPS];
    Names change[STEPS];
};

struct Tree {
    Names party;
    uint8_t pzxid, mzxid;
    Roll roll;
};

struct Member {
    uint8_t up, hangs, node, view; // node: 0 to 2
    uint8_t told, told_pzxid, knew_before, before_pzxid;
    Names names, before;
    uint8_t children_watch, to_list, data_watch, to_read, mzxid, seen_pzxid;
    uint8_t listens, acts, paid; // paid: it has waited in vain since a lookout wrote
    uint8_t pen, expected;
    Roll roll; // on its way
};

struct World {
    Tree trees[TREES];
    Member members[MEMBERS];
    uint8_t count, joins, ends, hangs, lost, reconnects, deletions, forgeries;
};

struct Setting {
    const char *name;
    bool patient;
    uint8_t here, joins, ends, hangs, lost, reconnects, deletions, forgeries;
    uint8_t old, denied; // bits of members
    bool has_roll;
    int large; // from so many members on they listen
};

// The last are searched by --long alone.
const Setting SETTINGS[] = {
    {"joins", false, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, true, 2},
    {"ends", false, 3, 0, 2, 0, 0, 0, 0, 0, 0, 0, true, 2},
    {"patient", true, 3, 1, 2, 0, 0, 0, 0, 0, 0, 0, true, 2},
    {"no roll", true, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, false, 2},
    {"hangs", true, 3, 1, 1, 1, 0, 0, 0, 0, 0, 0, true, 2},
    {"lost", true, 3, 1, 0, 0, 1, 0, 0, 0, 0, 0, true, 2},
    {"reconnects", true, 3, 1, 1, 0, 0, 1, 0, 0, 0, 0, true, 2},
    {"deleted", false, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0, true, 2},
    {"forged", false, 3, 1, 0, 0, 0, 0, 0, 1, 0, 0, true, 2},
    {"old", true, 3, 1, 1, 0, 0, 0, 0, 0, 1, 0, true, 2},
    {"denied", true, 3, 1, 1, 0, 0, 0, 0, 0, 0, 1, true, 2},
    {"b denied", true, 3, 1, 1, 0, 0, 0, 0, 0, 0, 2, true, 2},
    {"falls", true, 3, 0, 2, 0, 0, 0, 0, 0, 0, 0, true, 3},
    {"all old", false, 3, 1, 1, 0, 0, 0, 0, 0, 7, 0, true, 2},
    {"lost, deleted, whole", false, 2, 1, 0, 0, 1, 0, 1, 0, 0, 0, true, 2},
    {"changes, whole", false, 3, 1, 1, 0, 0, 0, 0, 0, 0, 0, true, 2},
    {"no roll, whole", true, 3, 1, 1, 0, 0, 0, 0, 0, 0, 0, false, 2},
    {"lost, whole", true, 3, 1, 1, 0, 1, 0, 0, 0, 0, 0, true, 2},
    {"old, whole", true, 3, 1, 2, 0, 0, 0, 0, 0, 1, 0, true, 2},
    {"denied, whole", true, 3, 1, 2, 0, 0, 0, 0, 0, 0, 1, true, 2},
};

const std::vector<model::Variant> VARIANTS = {
    {"no_audit", "does not ask for the party's pzxid", "for ever another party than the one that is there", "ends", 0},
    {"no_wait", "waits for a roll for ever", "for ever another party than the one that is there", "ends", 0},
    {"sum_unchecked", "does not compare the names that it comes to with the roll's sum",
     "other names than those of the party", "forged", 0},
    {"chain_unchecked", "writes its step behind a roll of another party than the one that it leads from",
     "a roll that is not true", "patient", 0},
    {"any_version", "writes the roll whatever the version is", "a roll that lacks a step which a lookout knew",
     "patient", 0},
    {"written_once", "does not look again when its write was lost or refused", "waits in vain, but need not", "lost",
     0},
    {"acts_for_ever", "lists for ever when it has waited once in vain", "lists for ever, though a lookout lives",
     "hangs", 0},
    {"any_roll_ends_it", "listens again when one that is no lookout has written", "waits in vain, but need not", "old",
     0},
    {"deaf_lookout", "goes on listening when it becomes a lookout", "a roll that lacks a step which a lookout knew",
     "patient", 0},
    {"small_unwritten", "writes no roll of a party that has become small", "waits in vain, but need not", "falls", 0},
    {"stranger_first", "writes at once, though it does not know the party of the roll",
     "a roll that lacks a step which a lookout knew", "patient", 0},
    {"listens_unasked", "listens though no roll names the party that it knows", "waits in vain, but need not", "old",
     0},
    {"nobody_stands_in", "does not write when it has waited in vain", "waits in vain, but need not", "old", 0},
};

const Setting *setting;

// ---- steps ----

struct Step {
    World world;
    const char *label;
    int member;
    bool is_fault;
    int later; // in patient worlds a later step happens only when no earlier one can
};

std::vector<Step> steps;
const char *wrong; // what a step found

World &step(const World &from, const char *label, int member, bool is_fault = false, int later = 0) {
    steps.push_back({from, label, member, is_fault, later});
    return steps.back().world;
}

Names node_of(int member, uint8_t node) {
    return static_cast<Names>(1u << (3 * member + node));
}

int size_of(Names names) {
    return __builtin_popcount(names);
}

bool is_old(int i) {
    return setting->old >> i & 1;
}

bool is_denied(int i) {
    return setting->denied >> i & 1;
}

const Tree &head(const World &w) {
    return w.trees[w.count - 1];
}

const Tree &seen_by(const World &w, const Member &m) {
    return w.trees[m.view];
}

// W18: the place in the row of those that settled last.
int place_of(const Member &m, int i) {
    if (!m.told || !(m.names & node_of(i, m.node))) return NOT_THERE;
    int place = 0;
    for (int j = 0; j < i; j++) place += size_of(m.names >> (3 * j) & 7);
    return place;
}

bool is_large(Names names) {
    return size_of(names) >= setting->large;
}

bool may_listen(const Member &m, int i) {
    int place = place_of(m, i);
    bool is_lookout = place < LOOKOUTS && !is("deaf_lookout");
    return m.told && place != NOT_THERE && !is_lookout && is_large(m.names) && !is_old(i);
}

// A lookout, or one that stands in, that can do what the rules ask of it.
bool is_good_lookout(const World &w, int i) {
    const Member &m = w.members[i];
    return m.up && !m.hangs && !is_old(i) && !is_denied(i) && (place_of(m, i) < LOOKOUTS || m.acts);
}

void advance(Member &m, const Tree &to, uint8_t view) {
    const bool children = m.children_watch && to.pzxid != m.seen_pzxid;
    if (children) m.children_watch = 0, m.to_list = 1;
    if (m.data_watch && to.mzxid != m.mzxid) m.data_watch = 0, m.to_read = 1;
    m.view = view;
}

void catch_up(World &w, int i) {
    Member &m = w.members[i];
    while (m.view + 1 < w.count) advance(m, w.trees[m.view + 1], static_cast<uint8_t>(m.view + 1));
}

uint8_t next_zxid(const World &w) {
    uint8_t zxid = 0;
    for (int k = 0; k < w.count; k++) {
        if (w.trees[k].pzxid > zxid) zxid = w.trees[k].pzxid;
        if (w.trees[k].mzxid > zxid) zxid = w.trees[k].mzxid;
    }
    return static_cast<uint8_t>(zxid + 1);
}

Tree &grow(World &w) {
    w.trees[w.count] = w.trees[w.count - 1];
    return w.trees[w.count++];
}

// ---- the roll ----

// Takes the steps of the roll from the party of that pzxid. Returns whether they lead anywhere.
bool follow(const Roll &roll, uint8_t pzxid, Names *names) {
    if (roll.pzxid == pzxid) return true;
    for (int k = 0; k < roll.steps; k++) {
        if (roll.from[k] != pzxid) continue;
        for (; k < roll.steps; k++) *names ^= roll.change[k];
        return true;
    }
    return false;
}

bool is_usable(const Tree &t) {
    return t.roll.kind == GOOD && t.roll.pzxid <= t.pzxid;
}

bool knows_party_of(const Roll &roll, const Member &m) {
    Names names = m.before;
    return m.knew_before && follow(roll, m.before_pzxid, &names) && names == roll.names;
}

Roll compose(const Tree &t, const Member &m, int place) {
    Roll roll = {};
    roll.kind = GOOD;
    roll.pzxid = m.told_pzxid;
    roll.names = m.names;
    roll.place = static_cast<uint8_t>(place == NOT_THERE ? MEMBERS : place);
    Names names = m.before;
    bool leads = is_usable(t) && knows_party_of(t.roll, m);
    if (leads) follow(t.roll, m.before_pzxid, &names);
    if (is("chain_unchecked") && is_usable(t) && m.knew_before && !leads) {
        leads = true;
        names = m.before;
    }
    if (leads) {
        for (int k = t.roll.steps == STEPS ? 1 : 0; k < t.roll.steps; k++) {
            roll.from[roll.steps] = t.roll.from[k];
            roll.change[roll.steps++] = t.roll.change[k];
        }
        roll.from[roll.steps] = t.roll.pzxid;
        roll.change[roll.steps++] = names ^ m.names;
    } else if (m.knew_before) {
        roll.from[roll.steps] = m.before_pzxid;
        roll.change[roll.steps++] = m.before ^ m.names;
    }
    return roll;
}

// W18, W19: what a member does when a party has settled.
void after_settling(Member &m, int i) {
    if (is_old(i)) return;
    bool now = is_large(m.names), before = m.knew_before && is_large(m.before) && !is("small_unwritten");
    bool stands_in = m.acts && !is("nobody_stands_in");
    if ((now || before) && (place_of(m, i) < LOOKOUTS || stands_in) && m.pen != SENT) m.pen = TO_READ;
    if (may_listen(m, i)) {
        m.to_read = 1;
        if (is("listens_unasked")) m.listens = 1, m.acts = m.to_list = m.children_watch = 0;
        return;
    }
    if (m.listens || m.acts) {
        m.listens = 0;
        if (!m.children_watch) m.to_list = 1;
    }
    m.acts = m.paid = 0;
    m.data_watch = m.to_read = 0;
}

void settle(Member &m, int i, Names names, uint8_t pzxid) {
    if (m.pen == AT_REST || !m.knew_before) { // Else the one before that its roll is to lead from stays.
        m.knew_before = m.told;
        m.before = m.names;
        m.before_pzxid = m.told_pzxid;
    }
    m.told = 1;
    m.names = names;
    m.told_pzxid = pzxid;
    after_settling(m, i);
}

void take_roll(Member &m, int i, const Tree &t) {
    const Roll &roll = t.roll;
    if (!is_usable(t)) return;
    Names names = m.names;
    if (roll.pzxid > m.told_pzxid) {
        bool leads = follow(roll, m.told_pzxid, &names) && (names == roll.names || is("sum_unchecked"));
        if (leads) {
            settle(m, i, names, roll.pzxid);
            m.to_read = 0;
        } else if (m.listens) {
            m.listens = 0;
            m.to_list = 1;
        }
    }
    if (roll.pzxid != m.told_pzxid || !may_listen(m, i)) return;
    bool ends_it = roll.place < LOOKOUTS || is("any_roll_ends_it");
    if (is("acts_for_ever")) ends_it = false;
    if (m.acts && !ends_it) return;
    if (roll.place < LOOKOUTS) m.paid = 0;
    m.acts = 0;
    m.listens = 1;
    m.to_list = m.children_watch = 0;
}

// ---- what members do ----

void reads(const World &w, int i) {
    const Member &m = w.members[i];
    const Tree &t = seen_by(w, m);
    if (m.view + 1 < w.count) {
        World &n = step(w, "its server goes on:", i);
        advance(n.members[i], w.trees[m.view + 1], static_cast<uint8_t>(m.view + 1));
        if (w.reconnects) {
            World &r = step(w, "RECONNECTS:", i, true);
            r.reconnects--;
            advance(r.members[i], head(w), static_cast<uint8_t>(w.count - 1));
        }
    }
    if (m.to_read) {
        World &n = step(w, "reads the roll:", i);
        Member &x = n.members[i];
        x.to_read = 0;
        x.data_watch = 1;
        x.mzxid = t.mzxid;
        if (x.listens) x.seen_pzxid = t.pzxid;
        take_roll(x, i, t);
    }
    if (m.to_list && !m.listens) {
        World &n = step(w, m.told ? "lists the party:" : "lists the party first:", i);
        Member &x = n.members[i];
        x.to_list = 0;
        x.children_watch = 1;
        x.seen_pzxid = t.pzxid;
        if (!x.told || x.told_pzxid != t.pzxid) settle(x, i, t.party, t.pzxid);
        else if (x.acts && x.pen == AT_REST) after_settling(x, i);
    }
    bool may_ask = m.listens && !m.to_read && !is("no_audit");
    if (may_ask && (t.pzxid != m.seen_pzxid || t.mzxid != m.mzxid)) {
        World &n = step(w, "asks for the party's pzxid:", i);
        Member &x = n.members[i];
        x.seen_pzxid = t.pzxid;
        if (x.mzxid != t.mzxid) x.to_read = 1;
    }
}

void waits(const World &w, int i) {
    const Member &m = w.members[i];
    if (!m.listens || m.seen_pzxid == m.told_pzxid || is("no_wait")) return;
    bool a_lookout_lives = false;
    for (int j = 0; j < MEMBERS; j++) a_lookout_lives = a_lookout_lives || is_good_lookout(w, j);
    const char *label = "has waited in vain:";
    if (a_lookout_lives) label = "HAS WAITED IN VAIN THOUGH A LOOKOUT LIVES:";
    else if (m.paid) label = "HAS WAITED IN VAIN A SECOND TIME:";
    World &n = step(w, label, i, false, 2);
    Member &x = n.members[i];
    x.listens = 0;
    x.acts = x.to_list = x.paid = 1;
}

void writes(const World &w, int i) {
    const Member &m = w.members[i];
    const Tree &t = seen_by(w, m);
    if (m.pen == TO_READ || m.pen == TO_READ_LATER) {
        World &n = step(w, "reads the roll, to write it:", i, false, m.pen == TO_READ_LATER);
        Member &x = n.members[i];
        bool waits = m.pen == TO_READ && is_usable(t) && !knows_party_of(t.roll, m) && !is("stranger_first");
        x.pen = AT_REST;
        if (!is_usable(t) || t.roll.pzxid < m.told_pzxid) {
            x.pen = waits ? TO_READ_LATER : SENT;
        }
        if (x.pen == SENT) {
            x.expected = t.mzxid;
            x.roll = compose(t, m, place_of(m, i));
        }
    }
    if (m.pen != SENT || w.count == TREES) return;
    bool good = head(w).mzxid == m.expected || is("any_version");
    World &n = step(w, is_denied(i) ? "may not write:" : good ? "writes the roll:" : "its write is refused:", i);
    bool again = !good || m.roll.pzxid != m.told_pzxid; // Another party has settled since.
    n.members[i].pen = is_denied(i) || is("written_once") || !again ? AT_REST : TO_READ;
    n.members[i].roll = {};
    if (good && !is_denied(i)) {
        uint8_t zxid = next_zxid(n);
        Tree &to = grow(n);
        to.mzxid = zxid;
        to.roll = m.roll;
    }
    catch_up(n, i);
    if (!w.lost) return;
    World lost = w;
    lost.lost--;
    lost.members[i].pen = is("written_once") ? AT_REST : TO_READ;
    lost.members[i].roll = {};
    step(lost, "ITS WRITE IS LOST:", i, true);
    if (!good || is_denied(i)) return;
    World &applied = step(lost, "THE ANSWER TO ITS WRITE IS LOST:", i, true);
    uint8_t zxid = next_zxid(applied);
    Tree &to = grow(applied);
    to.mzxid = zxid;
    to.roll = m.roll;
}

// ---- what happens to them ----

void come_and_go(const World &w) {
    if (w.count == TREES) return;
    for (int i = 0; i < MEMBERS; i++) {
        const Member &m = w.members[i];
        if (w.joins && !m.up && m.node < 2) {
            World &n = step(w, "JOINS:", i, true);
            n.joins--;
            uint8_t zxid = next_zxid(n);
            Tree &t = grow(n);
            Member &x = n.members[i];
            uint8_t node = static_cast<uint8_t>(m.node + (m.view == 255));
            x = {};
            x.up = x.to_list = 1;
            x.node = node;
            x.view = static_cast<uint8_t>(n.count - 1);
            t.party |= node_of(i, node);
            t.pzxid = zxid;
        }
        if (w.ends && m.up) {
            World &n = step(w, "ITS SESSION ENDS:", i, true);
            n.ends--;
            uint8_t zxid = next_zxid(n), node = m.node;
            Tree &t = grow(n);
            t.party &= static_cast<Names>(~(7u << (3 * i)));
            t.pzxid = zxid;
            n.members[i] = {};
            n.members[i].node = node;
            n.members[i].view = 255; // It had a node.
        }
        if (w.deletions && m.up && !m.hangs && m.node < 2) {
            // Its node, and it makes another one at once.
            World &n = step(w, "SOMEBODY DELETES ITS NODE:", i, true);
            n.deletions--;
            uint8_t zxid = next_zxid(n);
            Tree &t = grow(n);
            Member &x = n.members[i];
            t.party &= static_cast<Names>(~node_of(i, m.node));
            t.party |= node_of(i, ++x.node);
            t.pzxid = zxid;
            catch_up(n, i);
            if (x.listens || x.acts) x.to_list = 1;
            x.listens = x.acts = 0;
        }
        if (w.hangs && m.up && !m.hangs) {
            World &n = step(w, "HANGS:", i, true);
            n.hangs--;
            uint8_t node = m.node;
            n.members[i] = {};
            n.members[i].up = n.members[i].hangs = 1;
            n.members[i].node = node;
        }
    }
    if (w.deletions && head(w).roll.kind == GOOD) {
        World &n = step(w, "SOMEBODY DELETES THE ROLL", -1, true);
        n.deletions--;
        uint8_t zxid = next_zxid(n);
        Tree &t = grow(n);
        t.roll = {};
        t.mzxid = zxid;
    }
    if (w.forgeries && is_usable(head(w)) && head(w).roll.pzxid < head(w).pzxid) {
        // Its step leads to other names than it says.
        World &n = step(w, "SOMEBODY WRITES A FALSE ROLL", -1, true);
        n.forgeries--;
        uint8_t zxid = next_zxid(n);
        Tree &t = grow(n);
        Roll roll = {};
        roll.kind = GOOD;
        roll.pzxid = t.pzxid;
        roll.names = t.party;
        roll.steps = 1;
        roll.from[0] = t.roll.pzxid;
        roll.change[0] = 1;
        t.roll = roll;
        t.mzxid = zxid;
    }
}

// ---- the claims ----

const char *at_rest(const World &w) {
    const Tree &t = head(w);
    bool good = false;
    for (int i = 0; i < MEMBERS; i++) good = good || (is_good_lookout(w, i) && place_of(w.members[i], i) < LOOKOUTS);
    for (int i = 0; i < MEMBERS; i++) {
        const Member &m = w.members[i];
        if (!m.up || m.hangs) continue;
        if (!m.told || m.told_pzxid != t.pzxid) return "for ever another party than the one that is there";
        if (m.names != t.party) return "other names than those of the party";
        if (setting->forgeries || !setting->patient || !good || !is_usable(t) || t.roll.place >= LOOKOUTS) continue;
        if (is_large(t.party) && place_of(m, i) >= LOOKOUTS && !is_old(i) && !m.listens)
            return "lists for ever, though a lookout lives";
    }
    return nullptr;
}

// Looks at a roll that a member has written.
const char *judge_roll(const World &before, const World &after) {
    const Roll &old = head(before).roll, &roll = head(after).roll;
    if (head(after).mzxid == head(before).mzxid || setting->forgeries || roll.kind != GOOD) return nullptr;
    for (const Member &m : after.members) {
        Names names = m.names;
        if (m.up && m.told && follow(roll, m.told_pzxid, &names) && names != roll.names &&
            m.names == before.members[&m - after.members].names)
            return "a roll that is not true";
    }
    Names names = 0;
    if (!setting->patient || setting->lost || old.kind != GOOD || follow(roll, old.pzxid, &names)) return nullptr;
    for (int i = 0; i < MEMBERS; i++) {
        const Member &m = before.members[i];
        bool knows = m.told_pzxid == old.pzxid || (m.knew_before && m.before_pzxid == old.pzxid);
        if (is_good_lookout(before, i) && m.told && knows) return "a roll that lacks a step which a lookout knew";
    }
    return nullptr;
}

// ---- the search ----

bool goes_on(const World &w, int i) {
    const Member &m = w.members[i];
    const Tree &t = seen_by(w, m);
    bool asks = m.listens && (t.pzxid != m.seen_pzxid || t.mzxid != m.mzxid);
    return m.to_read || (m.to_list && !m.listens) || asks || m.pen != AT_REST;
}

// Returns the world with small zxids, and without trees that nobody sees any longer.
World canonical(World w) {
    int from = w.count - 1;
    for (int i = 0; i < MEMBERS; i++) {
        Member &m = w.members[i];
        if (!m.up || m.hangs) continue;
        while (m.view + 1 < w.count && !goes_on(w, i)) {
            Member moved = m;
            advance(moved, w.trees[m.view + 1], static_cast<uint8_t>(m.view + 1));
            bool hears = moved.to_list != m.to_list || moved.to_read != m.to_read;
            m = hears ? m : moved;
            if (hears) break;
        }
        if (m.view < from) from = m.view;
        if (m.pen == AT_REST) m.knew_before = 0;
        if (!m.knew_before) m.before = 0, m.before_pzxid = 0;
    }
    for (int k = 0; k < TREES; k++) w.trees[k] = k + from < w.count ? w.trees[k + from] : Tree{};
    w.count = static_cast<uint8_t>(w.count - from);
    for (Member &m : w.members)
        if (m.up && !m.hangs) m.view = static_cast<uint8_t>(m.view - from);
    std::vector<uint8_t *> all;
    auto roll = [&](Roll &r) {
        all.push_back(&r.pzxid);
        for (uint8_t &f : r.from) all.push_back(&f);
    };
    for (Tree &t : w.trees) all.push_back(&t.pzxid), all.push_back(&t.mzxid), roll(t.roll);
    for (Member &m : w.members) {
        for (uint8_t *z : {&m.told_pzxid, &m.before_pzxid, &m.mzxid, &m.seen_pzxid, &m.expected}) all.push_back(z);
        roll(m.roll);
    }
    uint8_t to[256] = {}, next = 0;
    for (uint8_t *z : all) to[*z] = 1;
    to[0] = 0;
    for (int z = 1; z < 256; z++)
        if (to[z]) to[z] = ++next;
    for (uint8_t *z : all) *z = to[*z];
    return w;
}

uint64_t hash(const World &w) {
    static_assert(sizeof w % 2 == 0, "");
    const uint16_t *words = reinterpret_cast<const uint16_t *>(&w);
    uint64_t h = 0;
    for (size_t i = 0; i < sizeof w / 2; i++) {
        h = (h ^ words[i]) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
    }
    return h;
}

struct Frame {
    World world;
    std::vector<Step> next;
    size_t at;
    uint64_t key;
    const char *label;
    int member;
};

void expand(Frame &f) {
    steps.clear();
    const World &w = f.world;
    for (int i = 0; i < MEMBERS; i++)
        if (w.members[i].up && !w.members[i].hangs) reads(w, i), waits(w, i), writes(w, i);
    come_and_go(w);
    int first = 3;
    for (const Step &s : steps)
        if (!s.is_fault && s.later < first) first = s.later;
    wrong = first < 3 ? nullptr : at_rest(w);
    for (const Step &s : steps)
        if (s.later <= first || !setting->patient) f.next.push_back(s);
}

World beginning() {
    World w = {};
    w.count = 1;
    w.joins = setting->joins, w.ends = setting->ends, w.hangs = setting->hangs, w.lost = setting->lost;
    w.reconnects = setting->reconnects, w.deletions = setting->deletions, w.forgeries = setting->forgeries;
    Tree &t = w.trees[0];
    for (int i = 0; i < setting->here; i++) t.party |= node_of(i, 0);
    t.pzxid = 1;
    t.mzxid = 2;
    if (setting->has_roll) {
        t.roll.kind = GOOD;
        t.roll.pzxid = 1;
        t.roll.names = t.party;
    }
    for (int i = 0; i < setting->here; i++) {
        Member &m = w.members[i];
        m.up = m.told = m.told_pzxid = m.seen_pzxid = 1;
        m.names = t.party;
        m.mzxid = 2;
        m.listens = may_listen(m, i) && setting->has_roll;
        m.data_watch = may_listen(m, i);
        m.children_watch = !m.listens;
        if (place_of(m, i) < LOOKOUTS && !setting->has_roll) m.pen = TO_READ;
    }
    return w;
}

std::string label(const char *what, int member) {
    return std::string(what) + " " + static_cast<char>(member < 0 ? ' ' : 'a' + member);
}

// Searches along each way to its end, and so finds steps that repeat.
model::Outcome search_along() {
    std::unordered_map<uint64_t, bool> on_way; // false: done
    std::vector<Frame> way;
    auto push = [&](const World &w, const char *label, int member) {
        uint64_t key = hash(w);
        on_way[key] = true;
        way.push_back({w, {}, 0, key, label, member});
        expand(way.back());
    };
    push(canonical(beginning()), "begin", -1);
    const char *found = wrong;
    const char *last = nullptr;
    int who = -1;
    while (!way.empty() && !found) {
        Frame &f = way.back();
        if (f.at == f.next.size()) {
            on_way[f.key] = false;
            way.pop_back();
            continue;
        }
        const Step &s = f.next[f.at++];
        last = s.label, who = s.member;
        if (setting->patient && !strncmp(s.label, "HAS", 3)) found = "waits in vain, but need not";
        if (!found && !s.is_fault) found = judge_roll(f.world, s.world);
        if (found) break;
        World w = canonical(s.world);
        auto known = on_way.find(hash(w));
        if (known == on_way.end()) push(w, s.label, s.member);
        else if (known->second) found = "steps that repeat for ever";
        if (!found) found = wrong;
        wrong = nullptr;
    }
    model::Outcome outcome = {found, on_way.size(), {}, {}};
    if (!found) return outcome;
    for (const Frame &f : way) outcome.way.push_back(label(f.label, f.member));
    if (last) outcome.way.push_back(label(last, who));
    return outcome;
}

model::Outcome search(unsigned part, bool) {
    setting = &SETTINGS[part];
    return search_along();
}

} // namespace

int main(int count, char **arguments) {
    std::vector<model::Part> parts;
    for (const Setting &s : SETTINGS) parts.push_back({s.name, strstr(s.name, "whole") != nullptr});
    return model::run({"roll", "a member that", VARIANTS, parts, true, search}, count, arguments);
}
