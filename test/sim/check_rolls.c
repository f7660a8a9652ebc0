/* Settled parties and rolls, held against what the servers committed: S25, S26, L1. SPDX-License-Identifier: Apache-2.0
 *
 * In histories with `rolls` parties of two to four members and more have one or two lookouts. In all histories a
 * member has settled on exactly the children that were there at that pzxid.
 *
 * Excused:
 *  - Rolls that somebody else wrote, and those behind them: such a step may be false, as members find by its sum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/roll.h"
#include "plans.h"
#include "rolls.h"

enum { STREAM = 26, SETTLE_MS = 40000 };

/* A party that was there. */
typedef struct {
    dv_roll_party party;
    char *block;
} past_party;

struct sim_rolls_truth {
    past_party *parties;
    size_t count, room;
    bool was_spoilt;
    int64_t written; /* the newest party that a member wrote a roll of */
};

static const char party_path[] = "/pool/party";

static struct sim_rolls_truth *truth_of(sim_world *w) {
    if (!w->rolls_truth) w->rolls_truth = calloc(1, sizeof *w->rolls_truth);
    if (!w->rolls_truth) abort();
    return w->rolls_truth;
}

void sim_rolls_truth_free(sim_world *w) {
    struct sim_rolls_truth *t = w->rolls_truth;
    for (size_t i = 0; t && i < t->count; i++) free(t->parties[i].block);
    if (t) free(t->parties);
    free(t);
    w->rolls_truth = NULL;
}

void sim_rolls_configure(const sim_member *m) {
    sim_random random = sim_random_of(m->world->script->seed, STREAM);
    if (!m->world->script->rolls) return;
    m->client->listen_from = (size_t)sim_between(&random, 2, 4);
    m->client->lookouts = (size_t)sim_between(&random, 1, 2);
}

/* ---- what is true ---- */

static int by_text(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void note_party(sim_world *w, int64_t zxid) {
    struct sim_rolls_truth *t = truth_of(w);
    size_t count = w->truth.party_count;
    if (t->count == t->room) {
        t->room = t->room ? 2 * t->room : 64;
        t->parties = realloc(t->parties, t->room * sizeof *t->parties);
    }
    const char **names = t->parties ? malloc((count + 1) * (sizeof *names + SIM_NODE_BYTES)) : NULL;
    if (!names) abort();
    char *texts = (char *)(names + count);
    for (size_t i = 0; i < count; i++) {
        names[i] = texts + i * SIM_NODE_BYTES;
        strcpy(texts + i * SIM_NODE_BYTES, w->truth.party[i].name);
    }
    qsort((void *)(uintptr_t)names, count, sizeof *names, by_text);
    t->parties[t->count++] = (past_party){{names, count, zxid}, (char *)(uintptr_t)names};
}

static const dv_roll_party *party_at(const struct sim_rolls_truth *t, int64_t pzxid) {
    for (size_t i = t ? t->count : 0; i-- > 0;) {
        if (t->parties[i].party.pzxid == pzxid) return &t->parties[i].party;
    }
    return NULL;
}

static bool leads(const dv_roll *roll, const dv_roll_party *from, const dv_roll_party *to) {
    char **names;
    bool well = dv_roll_follow(roll, from, &names) == 0 && roll->count == to->count;
    for (size_t i = 0; well && i < to->count; i++) well = strcmp(names[i], to->names[i]) == 0;
    free(names);
    return well;
}

/* S26: from each of its steps a roll leads to the party that it is of. */
static void check_roll(sim_world *w, const char *data, size_t bytes) {
    struct sim_rolls_truth *t = truth_of(w);
    dv_roll roll;
    if (dv_roll_parse(&roll, data, bytes, NULL) != 0) {
        sim_violate(w, "S26", "a member has written what is no roll: %.*s", (int)bytes, data);
        return;
    }
    const dv_roll_party *to = party_at(t, roll.pzxid);
    if (!to) sim_violate(w, "S26", "a roll is of the party of 0x%llx, which never was", (unsigned long long)roll.pzxid);
    for (size_t i = 0; to && i < roll.step_count && !t->was_spoilt; i++) {
        const dv_roll_party *from = party_at(t, roll.steps[i].from);
        if (!from || !leads(&roll, from, to))
            sim_violate(w, "S26", "the step of a roll from 0x%llx does not lead to the party of 0x%llx",
                        (unsigned long long)roll.steps[i].from, (unsigned long long)roll.pzxid);
    }
    if (roll.pzxid <= t->written && !t->was_spoilt)
        sim_violate(w, "S26", "a roll of 0x%llx stands where one of 0x%llx stood", (unsigned long long)roll.pzxid,
                    (unsigned long long)t->written);
    t->written = roll.pzxid;
    dv_roll_clear(&roll);
}

void sim_rolls_transaction(sim_world *w, const divvy_testing_transaction *t) {
    if (!t->path || strncmp(t->path, party_path, sizeof party_path - 1) != 0) return;
    const char *rest = t->path + sizeof party_path - 1;
    bool is_child = *rest == '/';
    if (is_child && (t->kind == DIVVY_TESTING_CREATE || t->kind == DIVVY_TESTING_DELETE)) note_party(w, t->zxid);
    if (!*rest && t->kind == DIVVY_TESTING_CREATE) note_party(w, t->zxid);
    if (*rest || t->kind != DIVVY_TESTING_SET) return;
    const dv_mem_step *step = sim_plan_step_of(w, t->path, DV_MEM_TXN_SET);
    bool is_of_member = step && step->data && t->session_id && !sim_is_admin(w, t->session_id);
    if (!is_of_member) {
        truth_of(w)->was_spoilt = true;
        return;
    }
    w->coverage->roll_meetings[SIM_MET_ROLL_WRITTEN]++;
    check_roll(w, step->data->data, step->data->bytes);
}

/* ---- somebody else ---- */

void sim_rolls_spoil(sim_world *w, uint32_t choice) {
    static const char *const texts[] = {"", "no roll", "{\"v\":1,\"steps\":[]}"};
    const struct sim_rolls_truth *t = truth_of(w);
    char text[256];
    if (!w->script->rolls || choice % 3 || t->count < 2) return;
    choice /= 3;
    const dv_roll_party *last = &t->parties[t->count - 1].party, *before = &t->parties[t->count - 2].party;
    snprintf(text, sizeof text,
             "{\"v\":1,\"pzxid\":\"%llx\",\"place\":0,\"count\":%zu,\"sum\":\"%08x\",\"steps\":[[\"%llx\",[%s],[]]]}",
             (unsigned long long)last->pzxid, last->count, dv_roll_sum(last->names, last->count),
             (unsigned long long)before->pzxid, last->count > before->count ? "\"false\"" : "");
    const char *data = choice % 4 < 3 ? texts[choice % 4] : text;
    sim_trace(w, "somebody writes a roll: %s", data);
    w->coverage->roll_meetings[SIM_MET_ROLL_SPOILT]++;
    divvy_testing_put(w->ensemble, party_path, data, strlen(data), DIVVY_TESTING_PERSISTENT);
}

/* ---- the checks ---- */

/* S25: what a member takes for the party of a pzxid was there then. */
void sim_rolls_check_step(sim_member *m) {
    const divvy_partitioner *p = m->partitioner;
    if (p->party_pzxid == m->roll_pzxid || p->party_pzxid == 0) return;
    if (!p->party.members) return; /* Its session has ended since, and it knows no party. */
    m->roll_pzxid = p->party_pzxid;
    bool listens = p->watch && dv_roll_watch_listens(p->watch),
         stands_in = p->watch && dv_roll_watch_stands_in(p->watch);
    m->world->coverage->roll_meetings[SIM_MET_ROLL_FOLLOWED] += listens;
    m->world->coverage->roll_meetings[SIM_MET_ROLL_AWAITED] += stands_in;
    const dv_roll_party *party = party_at(m->world->rolls_truth, p->party_pzxid);
    bool well = party && party->count == p->party.count;
    for (size_t i = 0; well && i < party->count; i++) well = strcmp(party->names[i], p->party.members[i].node) == 0;
    if (!well && p->state != DIVVY_FAILURE)
        sim_violate(m->world, "S25", "%s has settled on %zu names as the party of 0x%llx, and there were %zd", m->name,
                    p->party.count, (unsigned long long)p->party_pzxid, party ? (ssize_t)party->count : -1);
}

/* L1: at rest each member has settled on the party that is there. */
bool sim_rolls_well(const sim_world *w, char *text, size_t bytes) {
    const struct sim_rolls_truth *t = w->rolls_truth;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        const divvy_partitioner *p = m->phase == SIM_RUNS ? m->partitioner : NULL;
        if (!p || p->state == DIVVY_FAILURE || !t || !t->count) continue;
        int64_t pzxid = t->parties[t->count - 1].party.pzxid;
        if (p->party_pzxid == pzxid) continue;
        snprintf(text, bytes, "%s has settled on the party of 0x%llx, and that of 0x%llx is there", m->name,
                 (unsigned long long)p->party_pzxid, (unsigned long long)pzxid);
        return false;
    }
    return true;
}

/* A change is noticed by an audit (W21), waited for (W20), and listed; so may be the change before it. */
int64_t sim_rolls_bound_ms(const sim_world *w) {
    return w->script->rolls ? SETTLE_MS + 2 * w->settle_max_ms : 0;
}
