/* The last changes of a plan, as they stand beside it: docs/protocol.md, D44. SPDX-License-Identifier: Apache-2.0 */
#include "plan/history.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "plan/json.h"

/* ---- parsing ---- */

static void take_name(dv_plan_json *j, dv_plan_named *who) {
    char *name = dv_plan_json_string(j, 0, DV_PLAN_NAME_BYTES_MAX);
    if (name == NULL) return;
    if (who->named == DV_PLAN_NAMED_MAX) dv_plan_json_fail(j, "names too many members");
    else strcpy(who->names[who->named++], name);
    free(name);
}

static void take_named(dv_plan_json *j, dv_plan_named *who) {
    static const char *const names[] = {"count", "names"};
    dv_plan_json_fields fields = {.names = names, .count = 2};
    for (int field; (field = dv_plan_json_field(j, &fields)) >= 0;) {
        if (field == 0) who->count = (uint32_t)dv_plan_json_integer(j, 0, DV_PLAN_SLOTS);
        else
            for (bool begun = false; dv_plan_json_element(j, &begun);) take_name(j, who);
    }
    if (who->named > who->count) dv_plan_json_fail(j, "names more members than it counts");
}

/* `reason` is all zeros. A later release may have reasons that this one does not know. */
static void take_reason(dv_plan_json *j, char *reason) {
    size_t bytes;
    const char *text = dv_plan_json_plain(j, DV_PLAN_REASON_BYTES_MAX, &bytes);
    bool good = bytes > 0;
    for (size_t i = 0; i < bytes; i++) good = good && text[i] >= 'a' && text[i] <= 'z';
    if (good) memcpy(reason, text, bytes);
    else dv_plan_json_fail(j, "has something else where a reason should be");
}

static void take_told(dv_plan_json *j, char told[DV_PLAN_TOLD_BYTES]) {
    char *text = dv_plan_json_string(j, 1, DV_PLAN_TOLD_BYTES - 1);
    if (text != NULL) strcpy(told, text);
    free(text);
}

static void take_change(dv_plan_json *j, dv_plan_change *change) {
    static const char *const names[] = {"generation", "reason", "at_ms", "took_ms", "moved", "joined", "left", "told"};
    enum { COUNT = sizeof names / sizeof names[0] };
    dv_plan_json_fields fields = {.names = names, .count = COUNT, .optional = UINT32_C(1) << (COUNT - 1)};
    for (int field; (field = dv_plan_json_field(j, &fields)) >= 0;) {
        switch (field) {
        case 0: change->generation = (uint64_t)dv_plan_json_integer(j, 1, DV_PLAN_INTEGER_MAX); break;
        case 1: take_reason(j, change->reason); break;
        case 2: change->at_ms = dv_plan_json_integer(j, 0, DV_PLAN_INTEGER_MAX); break;
        case 3: change->took_ms = dv_plan_json_integer(j, -1, DV_PLAN_INTEGER_MAX); break;
        case 4: change->moved = (uint32_t)dv_plan_json_integer(j, 0, DV_PLAN_ITEMS_MAX); break;
        case 5: take_named(j, &change->joined); break;
        case 6: take_named(j, &change->left); break;
        default: take_told(j, change->told); break;
        }
    }
}

int dv_plan_history_parse(dv_plan_history *out, const char *text, size_t bytes, dv_plan_fault *fault) {
    static const char *const names[] = {"changes"};
    dv_plan_json_fields fields = {.names = names, .count = 1};
    dv_plan_json j;
    dv_plan_json_begin(&j, text, bytes);
    out->count = 0;
    if (bytes > DV_PLAN_HISTORY_BYTES_MAX) dv_plan_json_fail(&j, "is too long");
    while (dv_plan_json_field(&j, &fields) == 0) {
        for (bool begun = false; dv_plan_json_element(&j, &begun);) {
            if (out->count == DV_PLAN_CHANGES_MAX) {
                dv_plan_json_fail(&j, "has too many changes");
                break;
            }
            dv_plan_change *change = &out->changes[out->count++];
            *change = (dv_plan_change){.took_ms = -1};
            take_change(&j, change);
        }
    }
    if (!dv_plan_json_end(&j)) out->count = 0;
    return dv_plan_fault_tell(&j, fault);
}

/* ---- what changes ---- */

void dv_plan_name_cut(char out[DV_PLAN_NAME_BYTES_MAX + 1], const char *identifier) {
    size_t bytes = strlen(identifier);
    if (bytes > DV_PLAN_NAME_BYTES_MAX) bytes = DV_PLAN_NAME_BYTES_MAX;
    while (bytes > 0 && ((unsigned char)identifier[bytes] & 0xc0) == 0x80) bytes--;
    memcpy(out, identifier, bytes);
    out[bytes] = '\0';
}

/* P2: an identifier follows the first '-' of a node's name. */
static void add_name(dv_plan_named *who, const dv_plan_member *m) {
    who->count++;
    if (who->named == DV_PLAN_NAMED_MAX) return;
    const char *dash = m->is_static ? NULL : strchr(m->key, '-'), *name = dash != NULL ? dash + 1 : m->key;
    dv_plan_name_cut(who->names[who->named++], name);
}

/* A member keeps its slot as long as the plan has it. */
static const dv_plan_member *same_in(const dv_plan *plan, const dv_plan_member *m) {
    const dv_plan_member *other = plan != NULL ? dv_plan_member_at(plan, m->slot) : NULL;
    return other != NULL && other->is_static == m->is_static && strcmp(other->key, m->key) == 0 ? other : NULL;
}

static bool is_there(const dv_plan_member *m) {
    return m != NULL && m->leaving[0] == '\0' && m->absent == 0;
}

static void tell_members(dv_plan_change *out, const dv_plan *before, const dv_plan *after) {
    for (size_t n = 0; n < after->member_count; n++) {
        const dv_plan_member *m = &after->members[n];
        if (is_there(m) && !is_there(same_in(before, m))) add_name(&out->joined, m);
    }
    for (size_t n = 0; before != NULL && n < before->member_count; n++) {
        const dv_plan_member *m = &before->members[n], *now = same_in(after, m);
        bool goes = is_there(m) ? !is_there(now) : m->leaving[0] == '\0' && (now == NULL || now->leaving[0] != '\0');
        if (goes) add_name(&out->left, m);
    }
}

/* Both sets are sorted. */
static uint32_t count_moved(const dv_plan *before, const dv_plan *after) {
    bool kept[DV_PLAN_SLOTS] = {0};
    for (size_t n = 0; n < after->member_count; n++) {
        const dv_plan_member *m = &after->members[n];
        kept[m->slot] = same_in(before, m) != NULL;
    }
    uint32_t moved = 0;
    size_t old = 0;
    bool same_set = before->set == after->set;
    for (size_t i = 0; i < after->set->count; i++) {
        int order = same_set ? 0 : 1;
        if (same_set) old = i;
        while (!same_set && old < before->set->count &&
               (order = strcmp(before->set->names[old], after->set->names[i])) < 0)
            old++;
        if (old == before->set->count) break;
        uint32_t owner = before->owners[old];
        if (order == 0 && owner != DV_PLAN_NO_SLOT) moved += after->owners[i] != owner || !kept[owner];
    }
    return moved;
}

void dv_plan_change_tell(dv_plan_change *out, const dv_plan *before, const dv_plan *after) {
    *out = (dv_plan_change){.generation = after->header.generation, .took_ms = -1};
    if (before != NULL && before->header.generation == 0) before = NULL; /* D28 */
    strcpy(out->reason, dv_plan_reason_text(after->header.reason));
    strcpy(out->told, after->told);
    tell_members(out, before, after);
    if (before != NULL) out->moved = count_moved(before, after);
}

/* ---- the next ---- */

/* The newest change was written together with the node that says so: its time is the node's. */
static void complete_newest(dv_plan_history *history, const dv_plan_memory *memory, dv_plan_handed handed) {
    dv_plan_change *newest = &history->changes[history->count - 1];
    const dv_plan_past *past = &memory->past;
    if (newest->at_ms != 0) return;
    newest->at_ms = past->written_ms;
    if (handed.mzxid != past->mzxid || handed.ms == 0) return;
    newest->took_ms = handed.ms > past->written_ms ? handed.ms - past->written_ms : 0;
}

int dv_plan_history_next(dv_plan_text *out, const dv_plan_memory *memory, const dv_plan *next, dv_plan_handed handed) {
    dv_plan_history *history = malloc(sizeof *history);
    if (history == NULL) return DIVVY_ENOMEM;
    int error = dv_plan_history_parse(history, memory->past.text.bytes, memory->past.text.count, NULL);
    if (error != DIVVY_ENOMEM) {
        if (history->count > 0) complete_newest(history, memory, handed);
        if (history->count == DV_PLAN_CHANGES_MAX)
            memmove(history->changes, history->changes + 1, --history->count * sizeof *history->changes);
        dv_plan_change_tell(&history->changes[history->count++], memory->plan, next);
        error = dv_plan_print_history(out, history);
    }
    free(history);
    return error;
}
