/* The commits at P/plan and in the party: a mirror of both. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handovers.h"
#include "operator.h"
#include "testing/ensemble.h"
#include "znode/path.h"

static const char root_path[] = SIM_PLAN_PATH, party_path[] = "/pool/party/";

void *sim_plans_grown(void *array, size_t count, size_t *room, size_t bytes) {
    if (count < *room) return array;
    *room = *room ? 2 * *room : 8;
    array = realloc(array, *room * bytes);
    if (!array) abort();
    return array;
}

static struct sim_plans_truth *truth_of(const sim_world *w) {
    return w->plans_truth;
}

void sim_plans_truth_new(sim_world *w) {
    w->plans_truth = calloc(1, sizeof *w->plans_truth);
    if (!w->plans_truth) abort();
    w->plans_truth->handovers = calloc(1, sizeof *w->plans_truth->handovers);
    if (!w->plans_truth->handovers) abort();
    sim_operator_new(w);
}

void sim_plans_truth_free(sim_world *w) {
    struct sim_plans_truth *t = truth_of(w);
    sim_operator_free(w);
    for (size_t i = 0; i < t->count; i++) {
        dv_plan_free(t->versions[i].plan);
        free(t->versions[i].text);
    }
    for (size_t i = 0; i < t->child_count; i++) {
        free(t->children[i].data);
        free(t->children[i].before);
    }
    sim_history_free(t->past);
    for (size_t i = 0; i < t->party_count; i++) free(t->party[i].facts.zone);
    free(t->versions);
    free(t->children);
    free(t->party);
    free(t->absences);
    free(t->set_requests);
    sim_handovers_free(t->handovers);
    free(t);
    w->plans_truth = NULL;
}

const sim_plan_version *sim_plan_now(const sim_world *w) {
    const struct sim_plans_truth *t = truth_of(w);
    return t->present && t->count ? &t->versions[t->count - 1] : NULL;
}

const sim_plan_version *sim_plan_at(const sim_world *w, int64_t mzxid) {
    const struct sim_plans_truth *t = truth_of(w);
    for (size_t i = t->count; i-- > 0;) {
        if (t->versions[i].mzxid == mzxid) return &t->versions[i];
    }
    return NULL;
}

bool sim_plans_equal(const dv_plan *a, const dv_plan *b) {
    const dv_plan_options *x = &a->header.options, *y = &b->header.options;
    bool same = dv_plan_set_equal(a->set, b->set) && a->member_count == b->member_count &&
                memcmp(a->owners, b->owners, a->set->count * sizeof *a->owners) == 0 &&
                a->header.tag == b->header.tag && a->header.asked == b->header.asked && x->max_moves == y->max_moves &&
                x->round_timeout_ms == y->round_timeout_ms && a->header.is_balanced == b->header.is_balanced &&
                dv_loads_equal(a->loads, b->loads) && dv_wishes_equal(a->wishes, b->wishes);
    for (size_t m = 0; same && m < a->member_count; m++) {
        same = dv_plan_member_equal(&a->members[m], &b->members[m]);
    }
    return same;
}

/* ---- the party ---- */

bool sim_party_node_lived(const sim_party_node *p, int64_t zxid) {
    return p->czxid <= zxid && (p->gone_zxid == 0 || p->gone_zxid > zxid);
}

const sim_party_node *sim_party_node_named(const sim_world *w, const char *node) {
    const struct sim_plans_truth *t = truth_of(w);
    for (size_t i = t->party_count; i-- > 0;) {
        if (strcmp(t->party[i].node, node) == 0) return &t->party[i];
    }
    return NULL;
}

/* No server of the simulator loses its data, so no node says a later start than its own czxid. */
int64_t sim_party_node_start(const sim_party_node *p) {
    return p->facts.first_czxid ? p->facts.first_czxid : p->czxid;
}

static bool came_later(const sim_party_node *a, const sim_party_node *b) {
    int64_t a_start = sim_party_node_start(a), b_start = sim_party_node_start(b);
    return a_start > b_start || (a_start == b_start && a->czxid > b->czxid);
}

static bool are_namesakes(const sim_party_node *a, const sim_party_node *b) {
    return a != b && a->is_member && b->is_member && a->facts.is_static && b->facts.is_static &&
           strcmp(a->identifier, b->identifier) == 0;
}

const sim_party_node *sim_party_node_successor(const sim_world *w, const sim_party_node *p, int64_t zxid) {
    const struct sim_plans_truth *t = truth_of(w);
    const sim_party_node *last = p;
    for (size_t i = 0; i < t->party_count; i++) {
        const sim_party_node *other = &t->party[i];
        if (!are_namesakes(p, other) || !sim_party_node_lived(other, zxid)) continue;
        if (came_later(other, last)) last = other;
    }
    return last == p ? NULL : last;
}

bool sim_party_node_fenced(const sim_world *w, const sim_party_node *p, int64_t zxid) {
    return sim_party_node_successor(w, p, zxid);
}

/* S22, D31: it says no later start than its member had, and a later one than all whose first nodes were there when its
 * client was opened. */
static void check_start(sim_world *w, const sim_party_node *p) {
    const struct sim_plans_truth *t = truth_of(w);
    int64_t began, other_began, ms;
    if (!p->facts.is_static || !p->is_member || p->life == 0) return;
    sim_plan_begin_of_life(t, p, &began, &ms);
    if (sim_party_node_start(p) > began)
        sim_violate(w, "S22", "%s says that it came at 0x%llx, and had a node at 0x%llx", p->node,
                    (unsigned long long)sim_party_node_start(p), (unsigned long long)began);
    for (size_t i = 0; i < t->party_count; i++) {
        const sim_party_node *other = &t->party[i];
        if (!are_namesakes(p, other) || other->life == 0 || other->life == p->life) continue;
        sim_plan_begin_of_life(t, other, &other_began, &ms);
        if (other_began > p->opened_zxid || sim_party_node_start(p) > other_began) continue;
        sim_violate(w, "S22",
                    "%s says that it came at 0x%llx, and %s was there at 0x%llx, before its client was opened", p->node,
                    (unsigned long long)sim_party_node_start(p), other->node, (unsigned long long)other_began);
    }
}

int sim_party_level(const sim_world *w, int64_t zxid) {
    const struct sim_plans_truth *t = truth_of(w);
    int least = DV_LEVEL_PLAN;
    for (size_t i = 0; i < t->party_count; i++) {
        const sim_party_node *p = &t->party[i];
        if (p->is_member && sim_party_node_lived(p, zxid) && p->level < least) least = p->level;
    }
    return least;
}

/* `<guid>,a=<level>,s=<crc>-<identifier>`, or kazoo's `<32 hex digits>-<identifier>`. */
static void read_name(sim_party_node *p) {
    const char *dash = strchr(p->node, '-'), *a = strstr(p->node, ",a="), *s = strstr(p->node, ",s=");
    if (!dash) return;
    snprintf(p->identifier, sizeof p->identifier, "%s", dash + 1);
    p->is_member = (a && a < dash) || strspn(p->node, "0123456789abcdef") == 32;
    p->level = a && a < dash ? atoi(a + 3) : 0;
    p->tag = s && s < dash ? (uint32_t)strtoul(s + 3, NULL, 16) : 0;
}

static void note_party_node(sim_world *w, const divvy_testing_transaction *tx, const dv_mem_step *step) {
    struct sim_plans_truth *t = truth_of(w);
    const char *node = tx->path + sizeof party_path - 1;
    if (tx->kind == DIVVY_TESTING_DELETE) {
        for (size_t i = t->party_count; i-- > 0;) {
            if (t->party[i].gone_zxid == 0 && strcmp(t->party[i].node, node) == 0) t->party[i].gone_zxid = tx->zxid;
        }
        return;
    }
    t->party = sim_plans_grown(t->party, t->party_count, &t->party_room, sizeof *t->party);
    sim_party_node *p = &t->party[t->party_count++];
    *p = (sim_party_node){.session = tx->ephemeral_owner, .czxid = tx->zxid, .at_ms = tx->at_ms};
    snprintf(p->node, sizeof p->node, "%s", node);
    read_name(p);
    p->is_member &= tx->ephemeral_owner != 0;
    sim_plan_note_life(w, p);
    const char *data = step && step->data ? step->data->data : "";
    if (!dv_member_data_parse(data, step && step->data ? step->data->bytes : 0, &p->facts)) abort();
    check_start(w, p);
}

/* ---- the root's children ---- */

sim_plan_child *sim_plan_child_of(struct sim_plans_truth *t, const char *name) {
    for (size_t i = 0; i < t->child_count; i++) {
        if (strcmp(t->children[i].name, name) == 0) return &t->children[i];
    }
    return NULL;
}

static bool names_chunk(const dv_plan_part *part, const char *name) {
    for (size_t c = 0; c < part->chunk_count; c++) {
        if (strcmp(part->chunks[c].name, name) == 0) return true;
    }
    return false;
}

static bool root_names(const sim_plan_version *v, const char *name) {
    dv_plan_root root;
    if (dv_plan_root_parse(&root, v->text, v->bytes, NULL) != 0) return false;
    bool named = names_chunk(&root.items, name) || names_chunk(&root.base, name) || names_chunk(&root.loads, name) ||
                 names_chunk(&root.wishes, name);
    for (size_t d = 0; d < root.delta_count; d++) named |= names_chunk(&root.deltas[d].part, name);
    dv_plan_root_clear(&root);
    return named;
}

/* S11: garbage only, and nothing that the root, as it stands, needs. */
static void check_collected(sim_world *w, const divvy_testing_transaction *tx, const char *name) {
    const sim_plan_version *v = sim_plan_now(w);
    uint64_t generation;
    if (sim_is_admin(w, tx->session_id)) return;
    if (!dv_plan_chunk_parse(name, &generation)) sim_violate(w, "S11", "%s was deleted, and is no chunk", tx->path);
    else if (!v || !v->header.guid[0] || root_names(v, name))
        sim_violate(w, "D30", "%s was deleted, and is needed", tx->path);
    else if (generation > v->header.generation)
        sim_violate(w, "D30", "%s was deleted, and generation %llu stands there", tx->path,
                    (unsigned long long)v->header.generation);
    w->coverage->plan_meetings[SIM_MET_GARBAGE]++;
}

static void note_child(sim_world *w, const divvy_testing_transaction *tx, const dv_mem_step *step) {
    struct sim_plans_truth *t = truth_of(w);
    const char *name = tx->path + sizeof root_path;
    sim_plan_child *child = sim_plan_child_of(t, name);
    if (tx->kind == DIVVY_TESTING_DELETE) {
        check_collected(w, tx, name);
        if (!child) return;
        free(child->data);
        free(child->before);
        *child = t->children[--t->child_count];
        return;
    }
    if (child) {
        uint64_t generation;
        bool is_chunk = dv_plan_chunk_parse(name, &generation);
        if (is_chunk && !sim_is_admin(w, tx->session_id)) sim_violate(w, "D1", "%s was written twice", tx->path);
        free(child->before);
        child->before = child->data;
        child->before_bytes = child->bytes;
    } else {
        t->children = sim_plans_grown(t->children, t->child_count, &t->child_room, sizeof *t->children);
        child = &t->children[t->child_count++];
        *child = (sim_plan_child){0};
        snprintf(child->name, sizeof child->name, "%s", name);
    }
    child->mzxid = tx->zxid;
    child->bytes = step->data ? step->data->bytes : 0;
    child->data = malloc(child->bytes + 1);
    if (!child->data) abort();
    if (child->bytes) memcpy(child->data, step->data->data, child->bytes);
}

/* ---- the root ---- */

static bool has_deltas(const sim_plan_version *v) {
    dv_plan_root root;
    if (dv_plan_root_parse(&root, v->text, v->bytes, NULL) != 0) return false;
    bool has = root.delta_count > 0;
    dv_plan_root_clear(&root);
    return has;
}

static void count(sim_world *w, const sim_plan_version *before, const sim_plan_version *v) {
    uint64_t *met = w->coverage->plan_meetings;
    dv_plan_root root;
    met[SIM_MET_WRITTEN]++;
    met[SIM_MET_REPAIRED] += before && (!before->plan || sim_plan_is_restored(before));
    met[SIM_MET_RESTORED] += before && before->plan && sim_plan_is_restored(before);
    for (size_t m = 0; m < v->plan->member_count; m++) met[SIM_MET_LEAVING] += v->plan->members[m].leaving[0] != '\0';
    if (v->plan->header.reason == DV_PLAN_SET) met[SIM_MET_SET]++;
    if (dv_plan_root_parse(&root, v->text, v->bytes, NULL) != 0) return;
    met[SIM_MET_CHUNKS] += root.base.chunk_count > 0;
    met[SIM_MET_DELTA] += root.delta_count > 0;
    bool has_new_base = before && root.delta_count == 1 && strcmp(root.base_guid, before->header.guid) == 0;
    met[SIM_MET_NEW_BASE] += has_new_base && has_deltas(before);
    dv_plan_root_clear(&root);
}

static void read_header(sim_plan_version *v) {
    dv_plan_root root;
    if (dv_plan_root_parse(&root, v->text, v->bytes, NULL) != 0) return;
    v->header = root.header;
    dv_plan_root_clear(&root);
}

/* Since it was written, chunks of it may have been deleted. */
static void look_again(struct sim_plans_truth *t, sim_plan_version *v) {
    dv_plan *plan;
    dv_plan_fault fault;
    if (!t->chunks_spoiled || !v->plan) return;
    int error = sim_plan_read(t, v->text, v->bytes, &plan, &fault);
    dv_plan_free(plan);
    v->now_broken = error != 0;
}

static void trace_parts(sim_world *w, const dv_plan *plan) {
    dv_plan_text text;
    if (plan->wishes && dv_wishes_print(&text, plan->wishes) == 0) {
        sim_trace(w, "       wishes%s: %.*s", plan->header.is_balanced ? "" : ", not in force", (int)text.count,
                  text.bytes);
        free(text.bytes);
    }
    if (plan->loads && dv_loads_print(&text, plan->loads) == 0) {
        sim_trace(w, "       loads%s: %.*s", plan->header.is_balanced ? "" : ", not in force", (int)text.count,
                  text.bytes);
        free(text.bytes);
    }
}

static void trace_plan(sim_world *w, const sim_plan_version *v) {
    char text[600] = "";
    size_t used = 0;
    if (!w->trace || !v->plan) return;
    for (size_t m = 0; m < v->plan->member_count && used < sizeof text - 120; m++) {
        const dv_plan_member *member = &v->plan->members[m];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s", m ? "; " : "",
                                 strchr(member->key, '-') ? strchr(member->key, '-') + 1 : member->key,
                                 member->absent ? " (absent)" : "", member->leaving[0] ? " (leaves)" : "");
        for (size_t i = 0; i < v->plan->set->count && used < sizeof text - 20; i++) {
            if (v->plan->owners[i] != member->slot) continue;
            used += (size_t)snprintf(text + used, sizeof text - used, " %d", atoi(v->plan->set->names[i] + 5));
        }
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "; on their way");
    for (size_t i = 0; i < v->plan->moved_count && used < sizeof text - 20; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, " %d", atoi(v->plan->set->names[v->plan->moved[i]] + 5));
    sim_trace(w, "       generation %llu, %s, party 0x%llx: %s", (unsigned long long)v->header.generation,
              dv_plan_reason_text(v->header.reason), (unsigned long long)v->header.pzxid, text);
    trace_parts(w, v->plan);
}

/* Returns the life of the partitioner that has the session; 0: none has. */
static uint64_t life_of(const sim_world *w, int64_t session) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        if (m->phase != SIM_ABSENT && m->partitioner && divvy_client_session_id(m->client) == session) return m->life;
    }
    return 0;
}

static void note_root(sim_world *w, const divvy_testing_transaction *tx, const dv_mem_step *step) {
    struct sim_plans_truth *t = truth_of(w);
    sim_plan_version *before = t->present && t->count ? &t->versions[t->count - 1] : NULL;
    if (before) look_again(t, before);
    bool foreign = sim_is_admin(w, tx->session_id);
    sim_plan_version v = {.mzxid = tx->zxid,
                          .at_ms = tx->at_ms,
                          .foreign = foreign,
                          .by_operator = sim_is_operator(w, tx->session_id),
                          .writer = life_of(w, tx->session_id)};
    v.bytes = step->data ? step->data->bytes : 0;
    v.text = malloc(v.bytes + 1);
    if (!v.text) abort();
    if (v.bytes) memcpy(v.text, step->data->data, v.bytes);
    dv_plan_fault fault = {.why = "?"};
    int error = sim_plan_read(t, v.text, v.bytes, &v.plan, &fault);
    read_header(&v);
    if (v.plan) v.plan->mzxid = v.mzxid;
    v.newer = error == DIVVY_EUNSUPPORTED;
    trace_plan(w, &v);
    sim_wishes_note(&v, t->count ? &t->versions[t->count - 1] : NULL, t->chunks_spoiled);
    if (foreign) {
        if (v.newer) t->newer_at = w->now_ms;
        t->spoiled_at = w->now_ms;
    } else if (!v.plan && t->chunks_spoiled) {
        t->spoiled_at = w->now_ms; /* A base that its writer has read, and that nobody else will read. */
    } else if (!v.plan) {
        sim_violate(w, "D23", "what a member wrote at %s is broken: it %s (%zu)", tx->path, fault.why, fault.at);
    } else {
        sim_plan_check_written(w, before, &v);
        count(w, before, &v);
    }
    if (!foreign) sim_history_check(w, &v);
    if (v.plan) sim_plan_note_absences(w, &v);
    sim_plan_note_asked(w, &v);
    sim_plan_note_configured(w, &v);
    t->versions = sim_plans_grown(t->versions, t->count, &t->room, sizeof *t->versions);
    t->versions[t->count++] = v;
    t->present = true;
}

const dv_mem_step *sim_plan_step_of(const sim_world *w, const char *path, dv_mem_step_kind kind) {
    const dv_mem *mem = w->ensemble;
    const dv_mem_txn *txn = mem->history[mem->history_count - 1];
    for (size_t i = 0; i < txn->count; i++) {
        const dv_mem_step *step = &txn->steps[i];
        bool of_path = !path || (step->path && strcmp(step->path->text, path) == 0);
        if (step->kind == kind && of_path) return step;
    }
    return NULL;
}

bool sim_plans_transaction(sim_world *w, const divvy_testing_transaction *tx) {
    if (!tx->path) return false;
    sim_notes_transaction(w, tx);
    sim_loads_transaction(w, tx);
    sim_history_note_written(w, tx);
    bool set = tx->kind == DIVVY_TESTING_SET, created = tx->kind == DIVVY_TESTING_CREATE;
    const dv_mem_step *step = set       ? sim_plan_step_of(w, tx->path, DV_MEM_TXN_SET)
                              : created ? sim_plan_step_of(w, tx->path, DV_MEM_TXN_CREATE)
                                        : NULL;
    if (strncmp(tx->path, party_path, sizeof party_path - 1) == 0) {
        if (!set) note_party_node(w, tx, step);
        return false;
    }
    if (strncmp(tx->path, root_path, sizeof root_path - 1) != 0) return false;
    if (tx->path[sizeof root_path - 1] == '/') {
        note_child(w, tx, step);
    } else if (tx->path[sizeof root_path - 1] == '\0') {
        if (tx->kind == DIVVY_TESTING_DELETE) truth_of(w)->present = false;
        if (tx->kind == DIVVY_TESTING_DELETE && !sim_is_admin(w, tx->session_id))
            sim_violate(w, "S11", "%s was deleted by a member", tx->path);
        truth_of(w)->root_version = created ? 0 : truth_of(w)->root_version + 1;
        bool empty = created && !sim_is_admin(w, tx->session_id) && (!step->data || step->data->bytes == 0);
        if (empty && !sim_plan_step_of(w, tx->path, DV_MEM_TXN_SET))
            sim_violate(w, "D27", "%s was made empty", tx->path);
        if ((set || created) && !empty) note_root(w, tx, step);
    } else {
        return false;
    }
    return true;
}
