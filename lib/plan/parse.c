/* The sticky plan's texts, read as hostile input. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D2 to D9. No text is copied before its length was compared with what it claims to be. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "plan/json.h"
#include "plan/tags.h"
#include "plan/text.h"
#include "znode/path.h"

/* ---- items ---- */

/* D4: only what dv_name_encode() writes, since an item has one name. */
static size_t take_item(dv_plan_json *j, char *to) {
    size_t bytes = dv_plan_json_copy(j, to);
    if (j->error != 0) return 0;
    if (bytes == 0) {
        dv_plan_json_fail(j, "has an empty item");
        return 0;
    }
    if (dv_name_is_plain(to)) return bytes;
    char *node = strdup(to), *again = malloc(bytes + 1);
    if (node == NULL || again == NULL) {
        dv_plan_json_fail_memory(j);
    } else {
        dv_name_decode(node, to, bytes + 1);
        bool same = dv_name_encode(to, again, bytes + 1) == bytes && strcmp(again, node) == 0;
        if (!same) dv_plan_json_fail(j, "has an item whose name is not encoded as it should be");
    }
    free(node);
    free(again);
    return strlen(to);
}

/* The names stand in `block`, one after the other. */
static void take_items(dv_plan_json *j, const dv_plan_root *root, const char **names, char *block) {
    size_t count = 0, used = 0;
    for (bool begun = false; dv_plan_json_element(j, &begun); count++) {
        if (count == root->set_count) {
            dv_plan_json_fail(j, "has more items than the root says");
            return;
        }
        names[count] = block + used;
        used += take_item(j, block + used) + 1;
        if (count > 0 && strcmp(names[count - 1], names[count]) >= 0) {
            dv_plan_json_fail(j, "has items that are not in order");
        }
    }
    dv_plan_json_end(j);
    if (count != root->set_count) dv_plan_json_fail(j, "has fewer items than the root says");
}

static dv_plan_set *take_set(dv_plan_json *j, const dv_plan_root *root, const char **names) {
    dv_plan_set *set = dv_plan_set_make(names, root->set_count);
    if (set == NULL) {
        dv_plan_json_fail_memory(j);
        return NULL;
    }
    if (dv_plan_root_has_set(root, set)) return set;
    dv_plan_json_fail(j, "has other items than the root says");
    dv_plan_set_unref(set);
    return NULL;
}

int dv_plan_items_parse(dv_plan_set **out, const dv_plan_root *root, const char *text, size_t bytes,
                        dv_plan_fault *fault) {
    dv_plan_json j;
    dv_plan_json_begin(&j, text, bytes);
    *out = NULL;
    /* An item takes four bytes, `"a",`, so the list of names is no longer than twice the text. */
    if (root->set_count > bytes / 4 + 1) {
        dv_plan_json_fail(&j, "is too short for its number of items");
        return dv_plan_fault_tell(&j, fault);
    }
    const char **names = (const char **)calloc(root->set_count + 1, sizeof *names);
    char *block = malloc(bytes + 1);
    if (names == NULL || block == NULL) {
        dv_plan_json_fail_memory(&j);
    } else {
        take_items(&j, root, names, block);
        if (j.error == 0) *out = take_set(&j, root, names);
    }
    free((void *)names);
    free(block);
    return dv_plan_fault_tell(&j, fault);
}

/* ---- members ---- */

static void take_member(dv_plan_json *j, dv_plan_member *m) {
    static const char *const names[] = {"slot",   "key",     "static",     "weight", "zone", "rejoin_delay_ms",
                                        "absent", "leaving", "configured", "tags",   "cap"};
    enum { COUNT = sizeof names / sizeof names[0] };
    dv_plan_json_fields fields = {.names = names, .count = COUNT, .optional = UINT32_C(7) << (COUNT - 3)};
    *m = (dv_plan_member){0};
    for (int field; (field = dv_plan_json_field(j, &fields)) >= 0;) {
        switch (field) {
        case 0: m->slot = (uint32_t)dv_plan_json_integer(j, 0, DV_PLAN_SLOTS - 1); break;
        case 1: m->key = dv_plan_json_string(j, 1, DV_PLAN_KEY_BYTES_MAX); break;
        case 2: m->is_static = dv_plan_json_integer(j, 0, 1) == 1; break;
        case 3: m->weight = (uint32_t)dv_plan_json_integer(j, 0, UINT32_MAX); break;
        case 4: m->zone = dv_plan_json_string(j, 0, DV_PLAN_ZONE_BYTES_MAX); break;
        case 5: m->rejoin_delay_ms = dv_plan_json_integer(j, 0, DV_PLAN_INTEGER_MAX); break;
        case 6: m->absent = dv_plan_take_zxid(j); break;
        case 7: m->leaving = dv_plan_json_string(j, 0, DV_PLAN_KEY_BYTES_MAX); break;
        case 8:
            m->configured = (uint32_t)dv_plan_json_integer(j, 0, UINT32_MAX);
            m->says_configured = true;
            break;
        case 9: m->tags = dv_plan_json_string(j, 1, DV_TAGS_BYTES - 1); break;
        default: m->cap = (uint32_t)dv_plan_json_integer(j, 1, UINT32_MAX); break;
        }
    }
    if (m->tags == NULL && j->error == 0 && (m->tags = strdup("")) == NULL) dv_plan_json_fail_memory(j);
    if (m->absent != 0 && !m->is_static) dv_plan_json_fail(j, "has an absent member that is not static");
}

/* The next of a list of members, slots ascending. False: no more, or a fault; then there is nothing to clear. */
static bool next_member(dv_plan_json *j, bool *begun, int64_t *last_slot, dv_plan_member *m) {
    if (!dv_plan_json_element(j, begun)) return false;
    take_member(j, m);
    if (m->slot <= *last_slot) dv_plan_json_fail(j, "has members that are not in the order of their slots");
    *last_slot = m->slot;
    if (j->error == 0) return true;
    dv_plan_member_clear(m);
    return false;
}

static void add_member(dv_plan_json *j, dv_plan *plan, const dv_plan_member *m) {
    if (!dv_plan_add_member(plan, m)) dv_plan_json_fail_memory(j);
}

/* ---- the base ---- */

typedef struct {
    const char *owners;
    size_t owners_bytes, width;
} base_fields;

static void take_base_members(dv_plan_json *j, dv_plan *plan) {
    dv_plan_member m;
    int64_t last_slot = -1;
    for (bool begun = false; next_member(j, &begun, &last_slot, &m); dv_plan_member_clear(&m)) add_member(j, plan, &m);
}

/* Returns whether these are digits. */
static bool take_owner(const char *from, size_t width, uint32_t *slot) {
    uint32_t value = 0, none = 1;
    for (size_t n = 0; n < width; n++) {
        char c = from[n];
        if (dv_is_digit(c)) value = value * DV_PLAN_DIGITS + (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'z') value = value * DV_PLAN_DIGITS + (uint32_t)(c - 'a') + 10;
        else return false;
        none *= DV_PLAN_DIGITS;
    }
    *slot = value == none - 1 ? DV_PLAN_NO_SLOT : value;
    return true;
}

/* Takes the owners of the base text. D5: a number of fixed width for each item. */
static void take_owners(dv_plan_json *j, dv_plan *plan, const base_fields *base) {
    assert(base->owners != NULL);
    if (base->width != dv_plan_owner_width(plan)) {
        dv_plan_json_fail(j, "has another width than its slots need");
        return;
    }
    if (base->owners_bytes != base->width * plan->set->count) {
        dv_plan_json_fail(j, "has another number of owners than of items");
        return;
    }
    for (size_t i = 0; i < plan->set->count; i++) {
        if (take_owner(base->owners + i * base->width, base->width, &plan->owners[i])) continue;
        dv_plan_json_fail(j, "has an owner that is no number");
        return;
    }
}

static void take_base(dv_plan_json *j, dv_plan *plan) {
    static const char *const names[] = {"members", "width", "owners"};
    dv_plan_json_fields fields = {.names = names, .count = sizeof names / sizeof names[0]};
    base_fields base = {0};
    for (int field; (field = dv_plan_json_field(j, &fields)) >= 0;) {
        if (field == 0) take_base_members(j, plan);
        else if (field == 1) base.width = (size_t)dv_plan_json_integer(j, 1, DV_PLAN_WIDTH_MAX);
        else base.owners = dv_plan_json_plain(j, SIZE_MAX, &base.owners_bytes);
    }
    if (dv_plan_json_end(j)) take_owners(j, plan, &base);
}

int dv_plan_from_base(dv_plan **out, dv_plan_set *set, const char *text, size_t bytes, dv_plan_fault *fault) {
    dv_plan_json j;
    dv_plan_json_begin(&j, text, bytes);
    *out = NULL;
    dv_plan *plan = NULL;
    if (set->count > bytes) dv_plan_json_fail(&j, "is too short for its number of items");
    else if ((plan = dv_plan_make(dv_plan_set_ref(set))) == NULL) dv_plan_json_fail_memory(&j);
    else take_base(&j, plan);
    if (j.error == 0) *out = plan;
    else dv_plan_free(plan);
    return dv_plan_fault_tell(&j, fault);
}

/* ---- deltas ---- */

static void apply_members(dv_plan_json *j, dv_plan *plan) {
    size_t before = plan->member_count, at = 0;
    int64_t last_slot = -1;
    dv_plan_member m;
    for (bool begun = false; next_member(j, &begun, &last_slot, &m); dv_plan_member_clear(&m)) {
        while (at < before && plan->members[at].slot < m.slot) at++;
        if (at == before || plan->members[at].slot != m.slot) {
            add_member(j, plan, &m);
            continue;
        }
        dv_plan_member old = plan->members[at];
        plan->members[at] = m;
        m = old;
    }
    dv_plan_sort_members(plan);
}

static void apply_gone(dv_plan_json *j, dv_plan *plan) {
    size_t at = 0, kept = 0;
    for (bool begun = false; dv_plan_json_element(j, &begun);) {
        uint32_t slot = (uint32_t)dv_plan_json_integer(j, 0, DV_PLAN_SLOTS - 1);
        while (at < plan->member_count && plan->members[at].slot < slot) plan->members[kept++] = plan->members[at++];
        if (at == plan->member_count || plan->members[at].slot != slot) {
            dv_plan_json_fail(j, "takes members away that are not there");
            break;
        }
        dv_plan_member_clear(&plan->members[at++]);
    }
    while (at < plan->member_count) plan->members[kept++] = plan->members[at++];
    plan->member_count = kept;
}

/* One owner and its new items; `seen` has a bit for each item. */
static void apply_moves_to(dv_plan_json *j, dv_plan *plan, uint8_t *seen, int64_t *last_slot) {
    bool begun = false;
    if (!dv_plan_json_element(j, &begun)) {
        dv_plan_json_fail(j, "has moves to nobody");
        return;
    }
    int64_t slot = dv_plan_json_integer(j, -1, DV_PLAN_SLOTS - 1);
    if (slot <= *last_slot) dv_plan_json_fail(j, "has moves that are not in the order of slots");
    *last_slot = slot;
    if (slot >= 0 && dv_plan_member_at(plan, (uint32_t)slot) == NULL) dv_plan_json_fail(j, "has moves to no member");
    int64_t last = -1;
    while (dv_plan_json_element(j, &begun)) {
        int64_t item = dv_plan_json_integer(j, 0, (int64_t)plan->set->count - 1);
        if (j->error == 0 && (item <= last || (seen[item / 8] & 1u << item % 8))) {
            dv_plan_json_fail(j, "moves an item twice, or not in their order");
        }
        if (j->error != 0) return;
        last = item;
        seen[item / 8] |= (uint8_t)(1u << item % 8);
        plan->owners[item] = slot < 0 ? DV_PLAN_NO_SLOT : (uint32_t)slot;
    }
}

static void apply_moves(dv_plan_json *j, dv_plan *plan) {
    uint8_t *seen = calloc(plan->set->count / 8 + 1, 1);
    if (seen == NULL) {
        dv_plan_json_fail_memory(j);
        return;
    }
    int64_t last_slot = -2;
    for (bool begun = false; dv_plan_json_element(j, &begun);) apply_moves_to(j, plan, seen, &last_slot);
    free(seen);
}

int dv_plan_apply(dv_plan *plan, const char *text, size_t bytes, dv_plan_fault *fault) {
    static const char *const names[] = {"members", "gone", "moves"};
    static void (*const apply[])(dv_plan_json *, dv_plan *) = {apply_members, apply_gone, apply_moves};
    dv_plan_json j;
    dv_plan_json_begin(&j, text, bytes);
    dv_plan_json_fields fields = {.names = names, .count = 3};
    dv_plan_json values[3];
    for (int field; (field = dv_plan_json_field(&j, &fields)) >= 0;) {
        values[field] = j;
        dv_plan_json_value(&j);
        values[field].end = j.at;
    }
    dv_plan_json_end(&j);
    for (int field = 0; j.error == 0 && field < 3; field++) { /* D6: in this order, however they stand */
        apply[field](&values[field], plan);
        if (!dv_plan_json_end(&values[field])) j = values[field];
    }
    return dv_plan_fault_tell(&j, fault);
}

/* ---- the whole ---- */

static int by_key(const void *left, const void *right) {
    const dv_plan_member *a = *(const dv_plan_member *const *)left;
    const dv_plan_member *b = *(const dv_plan_member *const *)right;
    return a->is_static != b->is_static ? (a->is_static ? 1 : -1) : strcmp(a->key, b->key);
}

static void check_keys(dv_plan_json *j, const dv_plan *plan) {
    size_t count = plan->member_count;
    const dv_plan_member **sorted = (const dv_plan_member **)calloc(count + 1, sizeof *sorted);
    if (sorted == NULL) {
        dv_plan_json_fail_memory(j);
        return;
    }
    for (size_t m = 0; m < count; m++) sorted[m] = &plan->members[m];
    qsort((void *)sorted, count, sizeof *sorted, by_key);
    for (size_t m = 1; m < count; m++) {
        if (by_key(&sorted[m - 1], &sorted[m]) == 0) dv_plan_json_fail(j, "has two members of one key");
    }
    free((void *)sorted);
}

static void check_owners(dv_plan_json *j, const dv_plan *plan) {
    bool known[DV_PLAN_SLOTS] = {0};
    for (size_t m = 0; m < plan->member_count; m++) known[plan->members[m].slot] = true;
    for (size_t i = 0; i < plan->set->count; i++) {
        uint32_t slot = plan->owners[i];
        if (slot == DV_PLAN_NO_SLOT || (slot < DV_PLAN_SLOTS && known[slot])) continue;
        dv_plan_json_fail(j, "has an owner that is no member");
        return;
    }
}

int dv_plan_complete(dv_plan *plan, dv_plan_root *root, dv_plan_fault *fault) {
    dv_plan_json j; /* for its fault only */
    dv_plan_json_begin(&j, NULL, 0);
    uint32_t sum = 0;
    if (!dv_plan_root_has_set(root, plan->set)) dv_plan_json_fail(&j, "has other items than the root says");
    check_keys(&j, plan);
    check_owners(&j, plan);
    if (j.error == 0 && dv_plan_sum(&sum, plan) != 0) dv_plan_json_fail_memory(&j);
    if (sum != root->sum) dv_plan_json_fail(&j, "has another sum than the root says");
    if (j.error == 0) {
        free(plan->moved);
        plan->moved = root->moved;
        plan->moved_count = root->moved_count;
        root->moved = NULL;
        root->moved_count = 0;
    }
    plan->header = root->header;
    return dv_plan_fault_tell(&j, fault);
}
