/* The commits at P/notes: what each note says, held against the queues (S15), and who enters them (S19).
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handovers.h"
#include "partitioner/handover.h"
#include "testing/ensemble.h"

static const char notes_path[] = "/pool/notes/";

static struct sim_handovers *truth_of(const sim_world *w) {
    return w->plans_truth->handovers;
}

void sim_handovers_free(struct sim_handovers *h) {
    free(h->notes);
    free(h->given);
    free(h->ready);
    free(h->touched);
    free(h);
}

size_t sim_item_of_name(const char *name) {
    return (size_t)atoi(name + sizeof "item-" - 1);
}

sim_member *sim_member_of_session(sim_world *w, int64_t session) {
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[i];
        if (m->phase != SIM_ABSENT && m->client && divvy_client_session_id(m->client) == session) return m;
    }
    return NULL;
}

/* ---- who is excused ---- */

bool sim_session_touched(const sim_world *w, int64_t session) {
    const struct sim_handovers *h = truth_of(w);
    for (size_t i = 0; i < h->touched_count; i++) {
        if (h->touched[i] == session) return true;
    }
    return sim_truth_killed(&w->truth, session);
}

static void note_touched(sim_world *w, const divvy_testing_transaction *t) {
    struct sim_handovers *h = truth_of(w);
    if (!t->ephemeral_owner || !sim_is_admin(w, t->session_id) || sim_is_admin(w, t->ephemeral_owner)) return;
    h->touched = sim_plans_grown(h->touched, h->touched_count, &h->touched_room, sizeof *h->touched);
    h->touched[h->touched_count++] = t->ephemeral_owner;
}

/* Excused from S15 are members that end, and sessions that somebody else has deleted a node of: their places go one by
 * one, and their note goes later. A multi that failed for such a deletion gave nothing (T5). */
static bool is_excused(sim_world *w, const sim_note *n) {
    const sim_member *m = sim_member_of_session(w, n->session);
    return !m || !m->partitioner || m->life != n->life || m->ended || m->failing ||
           m->partitioner->life != DV_LIFE_TAKING_PART || sim_session_touched(w, n->session);
}

/* ---- notes ---- */

static sim_note *note_at(const sim_world *w, const char *node) {
    struct sim_handovers *h = truth_of(w);
    for (size_t i = h->note_count; i-- > 0;) {
        if (strcmp(h->notes[i].node, node) == 0) return &h->notes[i];
    }
    return NULL;
}

const sim_note *sim_note_of_node(const sim_world *w, const char *node) {
    return note_at(w, node);
}

static sim_note *standing_note(const sim_world *w, int64_t session) {
    struct sim_handovers *h = truth_of(w);
    for (size_t i = h->note_count; i-- > 0;) {
        if (h->notes[i].stands && h->notes[i].session == session) return &h->notes[i];
    }
    return NULL;
}

const dv_plan_set *sim_note_set(sim_world *w, const dv_note *note, int64_t session) {
    const struct sim_plans_truth *t = w->plans_truth;
    const sim_member *m = sim_member_of_session(w, session);
    const struct dv_handover *h = m && m->partitioner ? m->partitioner->handover : NULL;
    if (h && h->draft.set && dv_note_is_of(note, h->draft.set)) return h->draft.set;
    for (size_t i = t->count; i-- > 0;) {
        if (t->versions[i].plan && dv_note_is_of(note, t->versions[i].plan->set)) return t->versions[i].plan->set;
    }
    return NULL;
}

/* ---- S15: what a note says is true ---- */

static const sim_node *place_of(const sim_world *w, size_t item, int64_t session) {
    const sim_queue *q = &w->truth.queues[item];
    for (size_t i = 0; i < q->count; i++) {
        if (q->nodes[i].contends && q->nodes[i].session == session) return &q->nodes[i];
    }
    return NULL;
}

static size_t count_places(const sim_world *w, size_t item, int64_t session) {
    const sim_queue *q = &w->truth.queues[item];
    size_t count = 0;
    for (size_t i = 0; i < q->count; i++) count += q->nodes[i].contends && q->nodes[i].session == session;
    return count;
}

static const sim_node *first_of(const sim_world *w, size_t item) {
    const sim_queue *q = &w->truth.queues[item];
    for (size_t i = 0; i < q->count; i++) {
        if (q->nodes[i].contends && q->nodes[i].czxid == q->first) return &q->nodes[i];
    }
    return NULL;
}

static bool is_known(const struct sim_handovers *h, const sim_given *given) {
    for (size_t i = h->given_count; i-- > 0;) {
        const sim_given *g = &h->given[i];
        if (g->item == given->item && g->sequence == given->sequence && g->seen == given->seen) return true;
    }
    return false;
}

bool sim_given_to(const sim_world *w, size_t item, int32_t sequence, int64_t czxid) {
    const struct sim_handovers *h = truth_of(w);
    for (size_t i = h->given_count; i-- > 0;) {
        if (h->given[i].item == item && h->given[i].sequence == sequence - 1 && h->given[i].seen >= czxid) return true;
    }
    return false;
}

bool sim_is_ready_lately(const sim_world *w, size_t item, int64_t since_ms) {
    const struct sim_handovers *h = truth_of(w);
    for (size_t i = h->note_count; i-- > 0;) {
        if (h->notes[i].ready[item] || h->notes[i].ready_ms[item] >= since_ms) return true;
    }
    return false;
}

static bool said_ready(const struct sim_handovers *h, const sim_given *given, int64_t owner) {
    for (size_t i = h->ready_count; i-- > 0;) {
        const sim_ready *r = &h->ready[i];
        if (r->mzxid == given->seen && r->item == given->item && r->session != owner) return true;
    }
    return false;
}

/* It was said before, or it is done by this transaction. */
static void check_given(sim_world *w, const sim_note *n, const sim_given *given) {
    struct sim_handovers *h = truth_of(w);
    const sim_node *first = first_of(w, given->item);
    const char *name = w->items[given->item];
    char path[sizeof "/pool/locks/" + 32 + SIM_NODE_BYTES];
    if (is_known(h, given)) return;
    snprintf(path, sizeof path, "/pool/locks/%s/%s", name, first ? first->name : "");
    if (!first || first->session != n->session || first->sequence != given->sequence)
        sim_violate(w, "S15", "the note %s gives %s at %d, which its member does not own", n->node, name,
                    given->sequence);
    else if (!sim_plan_step_of(w, path, DV_MEM_TXN_DELETE))
        sim_violate(w, "S15", "the note %s gives %s at %d, whose place stays", n->node, name, given->sequence);
    else if (!said_ready(h, given, n->session))
        sim_violate(w, "S15", "the note %s gives %s by 0x%llx, and no note of another says there that it is ready",
                    n->node, name, (unsigned long long)given->seen);
    h->given = sim_plans_grown(h->given, h->given_count, &h->given_room, sizeof *h->given);
    h->given[h->given_count++] = *given;
    w->coverage->plan_meetings[SIM_MET_GIVEN]++;
}

static void check_leaving(sim_world *w, const sim_note *n, size_t item) {
    const sim_node *first = first_of(w, item);
    w->coverage->plan_meetings[SIM_MET_ITEM_LEAVING]++;
    if (first && first->session == n->session) return;
    if (!is_excused(w, n))
        sim_violate(w, "S15", "the note %s says that %s is leaving, which its member does not own", n->node,
                    w->items[item]);
}

static void check_ready(sim_world *w, const sim_note *n, size_t item) {
    if (place_of(w, item, n->session) || is_excused(w, n)) return;
    sim_violate(w, "S15", "the note %s says that %s is ready, and its member has no place in the queue", n->node,
                w->items[item]);
}

/* What stands in one of the two lists, as it is now and was before. */
static void take_list(sim_world *w, sim_note *n, const dv_plan_set *set, const uint32_t *list, size_t count,
                      bool is_leaving) {
    bool now[SIM_ITEMS_MAX] = {false}, *was = is_leaving ? n->leaving : n->ready;
    int64_t *when = is_leaving ? n->leaving_ms : n->ready_ms;
    for (size_t i = 0; i < count; i++) now[sim_item_of_name(set->names[list[i]])] = true;
    for (size_t item = 0; item < w->script->items; item++) {
        if (now[item] && !was[item] && is_leaving) check_leaving(w, n, item);
        if (now[item] && !was[item] && !is_leaving) check_ready(w, n, item);
        if (now[item] != was[item]) when[item] = w->now_ms;
        was[item] = now[item];
    }
}

static void note_ready(sim_world *w, const sim_note *n) {
    struct sim_handovers *h = truth_of(w);
    for (size_t item = 0; item < w->script->items; item++) {
        if (!n->ready[item]) continue;
        h->ready = sim_plans_grown(h->ready, h->ready_count, &h->ready_room, sizeof *h->ready);
        h->ready[h->ready_count++] = (sim_ready){n->mzxid, n->session, item};
    }
}

static void note_answer_due(sim_world *w, int64_t session) {
    const sim_member *m = sim_member_of_session(w, session);
    if (m) truth_of(w)->hands[m->slot].answer_due = true;
}

static void note_written(sim_world *w, const divvy_testing_transaction *t, const dv_mem_step *step) {
    struct sim_handovers *h = truth_of(w);
    const char *node = t->path + sizeof notes_path - 1;
    dv_note note;
    dv_plan_fault fault = {.why = "?"};
    if (t->kind == DIVVY_TESTING_CREATE) {
        h->notes = sim_plans_grown(h->notes, h->note_count, &h->note_room, sizeof *h->notes);
        const sim_member *m = sim_member_of_session(w, t->ephemeral_owner);
        h->notes[h->note_count] = (sim_note){.session = t->ephemeral_owner, .life = m ? m->life : 0, .stands = true};
        snprintf(h->notes[h->note_count++].node, SIM_NODE_BYTES, "%s", node);
    }
    sim_note *n = note_at(w, node);
    if (!n || dv_note_parse(&note, step && step->data ? step->data->data : "",
                            step && step->data ? step->data->bytes : 0, &fault) != 0) {
        sim_violate(w, "S15", "what was written at %s is no note: it %s (%zu)", t->path, fault.why, fault.at);
        return;
    }
    n->mzxid = t->zxid;
    n->set_hash = note.set_hash;
    if (t->kind == DIVVY_TESTING_SET) note_answer_due(w, n->session);
    const dv_plan_set *set = sim_note_set(w, &note, n->session);
    for (size_t i = 0; set && i < note.given_count; i++) {
        const dv_note_given *g = &note.given[i];
        check_given(w, n, &(sim_given){sim_item_of_name(set->names[g->item]), g->sequence, g->seen});
    }
    take_list(w, n, set, note.leaving, set ? note.leaving_count : 0, true);
    take_list(w, n, set, note.ready, set ? note.ready_count : 0, false);
    note_ready(w, n);
    sim_steps_note(w, n, &note, set);
    dv_note_clear(&note);
}

/* What a member's note says is leaving is the first place. What it says is ready is any of its places, and a request
 * that was lost may come late, and leave more than one. */
static bool note_means(const sim_world *w, const divvy_testing_transaction *t, const sim_note *n, size_t item) {
    const sim_node *first = first_of(w, item);
    if (n->leaving[item]) return first && strcmp(first->name, strrchr(t->path, '/') + 1) == 0;
    return count_places(w, item, n->session) == 1;
}

/* A place goes: nothing that stands in a note of its member's says that it is there. */
static void check_place_gone(sim_world *w, const divvy_testing_transaction *t, size_t item) {
    const sim_note *n = t->session_id == t->ephemeral_owner ? standing_note(w, t->session_id) : NULL;
    if (!n || sim_plan_step_of(w, NULL, DV_MEM_TXN_SESSION_END) || !(n->leaving[item] || n->ready[item]) ||
        is_excused(w, n))
        return;
    if (!note_means(w, t, n, item)) return;
    sim_violate(w, "S15", "%s was deleted, and the note of its member says that %s is %s", t->path, w->items[item],
                n->leaving[item] ? "leaving" : "ready");
}

/* ---- S19: nobody enters before it is prepared, if the owner can wait ---- */

static void check_entered(sim_world *w, const divvy_testing_transaction *t, size_t item) {
    const sim_member *m = sim_member_of_session(w, t->session_id);
    const divvy_partitioner *p = m && !m->ended ? m->partitioner : NULL;
    const dv_item *own = p && p->handover && p->totals.leaving == 0 ? sim_item_of(m, item) : NULL;
    if (!own || !own->life.wanted || !own->life.contender || !own->take.owner ||
        own->take.owner->standing != DV_NOTE_THERE)
        return;
    if (own->life.stage != DV_STAGE_PREPARING || !dv_handover_can(p) || sim_session_touched(w, t->session_id))
        return; /* without a note */
    bool late = dv_client_now(m->client) >= own->take.prepare_due;
    if (own->take.prepared) w->coverage->plan_meetings[SIM_MET_PREPARED]++;
    else if (late) w->coverage->plan_meetings[SIM_MET_PREPARE_TIMEOUT]++;
    else
        sim_violate(w, "S19", "%s enters the queue of %s, and its user has %lld ms left to prepare", m->name,
                    w->items[item], (long long)(own->take.prepare_due - dv_client_now(m->client)));
}

/* ---- transactions ---- */

void sim_notes_transaction(sim_world *w, const divvy_testing_transaction *t) {
    const char *name = NULL;
    size_t item = sim_item_of_path(w, t->path, &name);
    bool created = t->kind == DIVVY_TESTING_CREATE, deleted = t->kind == DIVVY_TESTING_DELETE;
    if (deleted) note_touched(w, t);
    if (item != SIZE_MAX && created && t->ephemeral_owner) check_entered(w, t, item);
    if (item != SIZE_MAX && deleted) check_place_gone(w, t, item);
    if (strncmp(t->path, notes_path, sizeof notes_path - 1) != 0) return;
    if (deleted) {
        sim_note *n = note_at(w, t->path + sizeof notes_path - 1);
        for (size_t i = 0; n && n->stands && i < w->script->items; i++) {
            if (n->leaving[i]) n->leaving_ms[i] = w->now_ms;
            if (n->ready[i]) n->ready_ms[i] = w->now_ms;
        }
        if (n) n->stands = false;
    } else {
        note_written(w, t, sim_plan_step_of(w, t->path, created ? DV_MEM_TXN_CREATE : DV_MEM_TXN_SET));
    }
}
