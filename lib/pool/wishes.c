/* Wishes: the asks that stand in the plan afterwards. docs/protocol.md, D48. SPDX-License-Identifier: Apache-2.0 */
#include "pool/wishes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pool/whom.h"
#include "znode/path.h"

static dv_wish_kind kind_of(const dv_errand *e) {
    static const dv_wish_kind kinds[DV_ASK_KINDS] = {
        [DV_ASK_MOVE] = DV_WISH_MOVE,   [DV_ASK_NEED] = DV_WISH_NEED, [DV_ASK_OPTION] = DV_WISH_OPTION,
        [DV_ASK_PAUSE] = DV_WISH_PAUSE, [DV_ASK_PIN] = DV_WISH_PIN,
    };
    assert(e->rule->of_wishes);
    return kinds[e->ask.kind];
}

/* Returns the wish of that kind that stands; of a pin to be undone, the move too. */
static const dv_wish *standing(const dv_errand *e) {
    const dv_wishes *wishes = e->memory.plan->wishes;
    const dv_wish *found = dv_wishes_find(wishes, kind_of(e), e->ask.name);
    bool either = !found && e->ask.undo && e->ask.kind == DV_ASK_PIN;
    return either ? dv_wishes_find(wishes, DV_WISH_MOVE, e->ask.name) : found;
}

/* ---- what it is about ---- */

size_t dv_pool_item(const dv_plan *plan, const char *item) {
    const dv_plan_set *set = plan->set;
    if (set->count == 0) return SIZE_MAX;
    const char **found = bsearch(&item, (const void *)set->names, set->count, sizeof item, dv_name_compare);
    return found ? (size_t)(found - set->names) : SIZE_MAX;
}

/* A wish may be undone for an item that is no longer dealt; once it was, it is not looked for. */
int dv_wish_find_item(dv_errand *e) {
    bool undoes = e->ask.undo && (e->result.tried || standing(e));
    if (!undoes && dv_pool_item(e->memory.plan, e->ask.name) == SIZE_MAX)
        dv_errand_refuse(e, DIVVY_ENOENT, "the pool %s has no item %s", e->path, e->ask.name);
    return 0;
}

/* Returns whether the errand goes on, having found the item. */
static bool has_item(dv_errand *e) {
    dv_wish_find_item(e);
    return !e->result.error;
}

/* A pin is to an identifier, which has to be one member's. */
static void refuse_twins(dv_errand *e, const dv_plan_member *m) {
    size_t count = 0;
    for (size_t n = 0; n < e->memory.plan->member_count; n++)
        count += strcmp(dv_whom_identifier(&e->memory.plan->members[n]), dv_whom_identifier(m)) == 0;
    if (count > 1)
        dv_errand_refuse(
            e, DIVVY_EINVAL,
            "several members of the pool %s are %s, so nothing can be pinned to one; a move names its node", e->path,
            dv_whom_identifier(m));
}

/* A pin to a member that is not there waits for it. */
int dv_wish_find_pin(dv_errand *e) {
    if (!has_item(e) || e->ask.undo) return 0;
    int error = dv_whom_find(e, e->ask.value, false);
    const dv_plan_member *m = dv_whom_member(e);
    e->result.absent = !m || m->absent != 0;
    if (m && !e->result.error) refuse_twins(e, m);
    return error;
}

int dv_wish_find_move(dv_errand *e) {
    if (!has_item(e) || e->ask.undo) return 0;
    int error = dv_whom_find(e, e->ask.value, true);
    const dv_plan_member *m = dv_whom_member(e);
    if (m && m->leaving[0] != '\0')
        dv_errand_refuse(e, DIVVY_ESTATE, "%s leaves the pool %s, so nothing can be moved to it", e->ask.value,
                         e->path);
    if (m) e->result.absent = m->absent != 0;
    return error;
}

int dv_wish_find_needy(dv_errand *e) {
    const char *name = e->ask.name;
    return *name && name[strlen(name) - 1] == '*' ? 0 : dv_wish_find_item(e);
}

int dv_wish_find_option(dv_errand *e) {
    (void)e;
    return 0;
}

/* ---- what stands, and the event ---- */

/* Returns the value that the wish has in the plan: a pin names an identifier, a move a key (D12). */
static const char *value_of(const dv_errand *e) {
    const dv_errand_result *r = &e->result;
    bool names_key = e->ask.kind == DV_ASK_MOVE || (e->ask.kind == DV_ASK_PIN && r->is_static);
    if (!r->key) return e->ask.value;
    return names_key ? r->key : dv_identifier_of(r->key);
}

/* Whose the item was is for the step to note, so a pause has no value to compare. */
bool dv_wish_stands(dv_errand *e) {
    const dv_wish *wish = standing(e);
    if (e->ask.undo || !wish || e->ask.kind == DV_ASK_PAUSE) return e->ask.undo ? !wish : wish != NULL;
    return strcmp(wish->value, value_of(e)) == 0;
}

void dv_wish_tell(dv_errand *e) {
    const dv_ask *ask = &e->ask;
    const dv_wish *wish = standing(e);
    e->wish = (dv_wish_event){.undo = ask->undo,
                              .wish = {.kind = ask->undo && wish ? wish->kind : kind_of(e),
                                       .name = ask->name,
                                       .value = value_of(e),
                                       .by = ask->by,
                                       .why = ask->why,
                                       .at_ms = ask->at_ms}};
    e->events = (dv_plan_events){.wishes = &e->wish, .wish_count = 1};
    dv_errand_tell(e);
}

/* ---- options ---- */

typedef struct {
    const char *name, *wrong;
    bool whole; /* no point */
    double most;
} option;

static bool is_number(const char *text, bool whole) {
    size_t digits = strspn(text, "0123456789");
    const char *rest = text + digits;
    if (digits == 0 || strlen(text) > 20) return false;
    if (*rest == '.' && !whole) {
        size_t more = strspn(++rest, "0123456789");
        if (more == 0) return false;
        rest += more;
    }
    return *rest == '\0';
}

const char *dv_pool_option_check(const char *name, const char *value) {
    static const option options[] = {
        {"max-moves", "is a number of items, 0 to 4294967295; 0 is no limit", true, 4294967295.0},
        {"round-timeout", "is a number of milliseconds, 0 to 315360000000", true, 315360000000.0},
        {"imbalance-max", "is a share above the mean, 0 to 100, such as 0.2", false, 100},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const option *o = &options[i];
        if (strcmp(name, o->name) != 0) continue;
        return !value || (is_number(value, o->whole) && strtod(value, NULL) <= o->most) ? NULL : o->wrong;
    }
    return "is unknown; there are: imbalance-max, max-moves, round-timeout";
}
