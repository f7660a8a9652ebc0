/* The roll of a party, as it stands in ZooKeeper: docs/protocol.md, W19. SPDX-License-Identifier: Apache-2.0 */
#include "plan/roll.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/texts.h"
#include "divvy/error.h"
#include "plan/growing.h"
#include "plan/json.h"

enum { NAME_BYTES_MAX = DV_PLAN_KEY_BYTES_MAX };

uint32_t dv_roll_sum(const char *const *names, size_t count) {
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++) sum = dv_crc32(sum, names[i], strlen(names[i]) + 1);
    return sum;
}

void dv_roll_clear(dv_roll *roll) {
    free(roll->steps);
    free((void *)(uintptr_t)roll->names);
    free(roll->block);
    *roll = (dv_roll){0};
}

/* ---- reading ---- */

/* The block has as many bytes as the text. So each name has room where it stands, with its NUL instead of a quote. */
static void take_name(dv_plan_json *j, dv_roll *roll, size_t first) {
    char *name = roll->block + (j->at - j->begin);
    size_t bytes = j->error == 0 ? dv_plan_json_copy(j, name) : 0;
    if (j->error != 0) return;
    if (bytes == 0 || bytes > NAME_BYTES_MAX || strchr(name, '/')) dv_plan_json_fail(j, "has a name that is none");
    bool is_first = roll->name_count == first;
    if (j->error == 0 && !is_first && strcmp(roll->names[roll->name_count - 1], name) >= 0)
        dv_plan_json_fail(j, "has names that are not in order");
    void *larger = j->error == 0
                       ? dv_plan_with_room(j, (void *)(uintptr_t)roll->names, roll->name_count, sizeof *roll->names)
                       : NULL;
    if (larger == NULL) return;
    roll->names = larger;
    roll->names[roll->name_count++] = name;
}

static size_t take_names(dv_plan_json *j, dv_roll *roll) {
    size_t first = roll->name_count;
    for (bool begun = false; dv_plan_json_element(j, &begun);) take_name(j, roll, first);
    return roll->name_count - first;
}

static void take_step(dv_plan_json *j, dv_roll *roll) {
    bool inner = false;
    dv_roll_step step = {0};
    if (roll->step_count == DV_ROLL_STEPS_MAX) dv_plan_json_fail(j, "has too many steps");
    dv_plan_json_element(j, &inner);
    step.from = dv_plan_take_zxid(j);
    if (!dv_plan_json_element(j, &inner)) dv_plan_json_fail(j, "has a step without names that came");
    step.came = take_names(j, roll);
    if (!dv_plan_json_element(j, &inner)) dv_plan_json_fail(j, "has a step without names that went");
    step.went = take_names(j, roll);
    if (dv_plan_json_element(j, &inner)) dv_plan_json_fail(j, "tells too much of a step");
    void *larger = j->error == 0 ? dv_plan_with_room(j, roll->steps, roll->step_count, sizeof *roll->steps) : NULL;
    if (larger == NULL) return;
    roll->steps = larger;
    roll->steps[roll->step_count++] = step;
}

static void take_steps(dv_plan_json *j, dv_roll *roll) {
    for (bool begun = false; dv_plan_json_element(j, &begun);) take_step(j, roll);
}

static void take_field(dv_plan_json *j, dv_roll *roll, int field) {
    switch (field) {
    case 0: dv_plan_json_integer(j, DV_ROLL_VERSION, DV_ROLL_VERSION); break;
    case 1: roll->pzxid = dv_plan_take_zxid(j); break;
    case 2: roll->place = (size_t)dv_plan_json_integer(j, 0, DV_ROLL_PLACE_MAX); break;
    case 3: roll->count = (size_t)dv_plan_json_integer(j, 0, DV_ROLL_PARTY_MAX); break;
    case 4: roll->sum = (uint32_t)dv_plan_take_hex(j, 8); break;
    default: take_steps(j, roll); break;
    }
}

/* The party's pzxid may come last in the text. */
static void check_steps(dv_plan_json *j, const dv_roll *roll) {
    int64_t last = 0;
    for (size_t i = 0; i < roll->step_count; i++) {
        if (roll->steps[i].from <= last) dv_plan_json_fail(j, "has steps that are not in order");
        last = roll->steps[i].from;
    }
    if (roll->pzxid <= last) dv_plan_json_fail(j, "leads nowhere");
}

int dv_roll_parse(dv_roll *out, const char *text, size_t bytes, dv_plan_fault *fault) {
    static const char *const names[] = {"v", "pzxid", "place", "count", "sum", "steps"};
    dv_plan_json_fields fields = {.names = names, .count = sizeof names / sizeof names[0]};
    dv_plan_json j;
    bool is_newer = false;
    dv_plan_json_begin(&j, text, bytes);
    *out = (dv_roll){0};
    if (bytes > DV_ROLL_BYTES_MAX) dv_plan_json_fail(&j, "is too long");
    else is_newer = dv_plan_is_newer(&j, DV_ROLL_VERSION);
    if (is_newer) return DIVVY_EUNSUPPORTED;
    if (j.error == 0) out->block = malloc(bytes + 1);
    if (j.error == 0 && !out->block) dv_plan_json_fail_memory(&j);
    for (int field; (field = dv_plan_json_field(&j, &fields)) >= 0;) take_field(&j, out, field);
    if (dv_plan_json_end(&j)) check_steps(&j, out);
    if (j.error != 0) dv_roll_clear(out);
    return dv_plan_fault_tell(&j, fault);
}

/* ---- following ---- */

static bool has(const char *const *names, size_t count, const char *name, size_t *at) {
    while (*at < count && strcmp(names[*at], name) < 0) ++*at;
    return *at < count && strcmp(names[*at], name) == 0;
}

/* Merges a step into `from`. Returns the number of names in `to`, or SIZE_MAX where the step is none from there. */
static size_t take(const char *const *from, size_t count, const char *const *names, const dv_roll_step *step,
                   const char **to) {
    const char *const *came = names, *const *went = names + step->came;
    size_t c = 0, w = 0, made = 0;
    for (size_t i = 0; i < count; i++) {
        while (c < step->came && strcmp(came[c], from[i]) < 0) to[made++] = came[c++];
        if (c < step->came && strcmp(came[c], from[i]) == 0) return SIZE_MAX;
        if (w < step->went && strcmp(went[w], from[i]) == 0) w++;
        else to[made++] = from[i];
    }
    while (c < step->came) to[made++] = came[c++];
    return w == step->went ? made : SIZE_MAX;
}

int dv_roll_follow(const dv_roll *roll, const dv_roll_party *from, char ***names) {
    static const char *const none[1];
    const char *const *of_steps = roll->name_count > 0 ? roll->names : none;
    size_t first = 0, at = 0, count = from->count;
    *names = NULL;
    while (first < roll->step_count && roll->steps[first].from != from->pzxid) {
        at += roll->steps[first].came + roll->steps[first].went;
        first++;
    }
    if (first == roll->step_count && roll->pzxid != from->pzxid) return DIVVY_ENOENT;
    size_t room = count + roll->name_count + 1;
    const char **one = calloc(room, sizeof *one), **other = calloc(room, sizeof *other);
    bool is_memory = one && other;
    if (is_memory && count > 0) memcpy((void *)(uintptr_t)one, from->names, count * sizeof *one);
    for (size_t i = first; is_memory && count != SIZE_MAX && i < roll->step_count; i++) {
        count = take(one, count, of_steps + at, &roll->steps[i], other);
        at += roll->steps[i].came + roll->steps[i].went;
        const char **swap = one;
        one = other;
        other = swap;
    }
    bool is_right = is_memory && count == roll->count && dv_roll_sum(one, count) == roll->sum;
    if (is_right) *names = dv_texts_copy(one, count);
    free((void *)(uintptr_t)one);
    free((void *)(uintptr_t)other);
    if (is_right) return *names ? 0 : DIVVY_ENOMEM;
    return is_memory ? DIVVY_EPROTO : DIVVY_ENOMEM;
}

/* ---- printing ---- */

/* Adds those of `names` that are not among `others`. */
static void print_difference(dv_growing *g, const dv_roll_party *names, const dv_roll_party *others) {
    size_t at = 0, added = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (has(others->names, others->count, names->names[i], &at)) continue;
        if (added++ > 0) dv_grow_text(g, ",");
        dv_grow_string(g, names->names[i]);
    }
}

static void print_step(dv_growing *g, const dv_roll_party *before, const dv_roll_party *to) {
    dv_grow_format(g, "[\"%" PRIx64 "\",[", (uint64_t)before->pzxid);
    print_difference(g, to, before);
    dv_grow_text(g, "],[");
    print_difference(g, before, to);
    dv_grow_text(g, "]]");
}

static void print_names(dv_growing *g, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (i > 0) dv_grow_text(g, ",");
        dv_grow_string(g, names[i]);
    }
}

static size_t measure_step(const char *const *names, const dv_roll_step *step) {
    size_t bytes = sizeof "[\"0123456789abcdef\",[],[]],";
    for (size_t i = 0; i < step->came + step->went; i++) bytes += strlen(names[i]) + 3;
    return bytes;
}

/* Adds the newest of the old steps, as many as have room beside `used` bytes. */
static void print_old_steps(dv_growing *g, const dv_roll *old, size_t used) {
    size_t first = old->step_count, at = old->name_count, kept = 1;
    while (first > 0) {
        const dv_roll_step *step = &old->steps[first - 1];
        size_t from = at - step->came - step->went;
        used += measure_step(old->names + from, step);
        if (used > DV_ROLL_KEPT_BYTES || ++kept > DV_ROLL_STEPS_MAX) break;
        at = from;
        first--;
    }
    for (size_t i = first; i < old->step_count; i++) {
        const dv_roll_step *step = &old->steps[i];
        dv_grow_format(g, "[\"%" PRIx64 "\",[", (uint64_t)step->from);
        print_names(g, old->names + at, step->came);
        dv_grow_text(g, "],[");
        print_names(g, old->names + at + step->came, step->went);
        dv_grow_text(g, "]],");
        at += step->came + step->went;
    }
}

int dv_roll_print(dv_plan_text *out, const dv_roll *old, const dv_roll_party *before, const dv_roll_party *to,
                  size_t place) {
    dv_growing g = {0}, step = {0};
    size_t list_bytes = 0;
    assert(!before || before->pzxid < to->pzxid);
    for (size_t i = 0; i < to->count; i++) list_bytes += strlen(to->names[i]) + 4;
    size_t most = list_bytes / 2 > DV_ROLL_KEPT_BYTES ? list_bytes / 2 : DV_ROLL_KEPT_BYTES;
    if (before) print_step(&step, before, to);
    bool fits = before && step.count <= most && step.count < DV_ROLL_BYTES_MAX - DV_ROLL_KEPT_BYTES - 256;
    dv_grow_format(
        &g, "{\"v\":%d,\"pzxid\":\"%" PRIx64 "\",\"place\":%zu,\"count\":%zu,\"sum\":\"%08" PRIx32 "\",\"steps\":[",
        DV_ROLL_VERSION, (uint64_t)to->pzxid, place < DV_ROLL_PLACE_MAX ? place : DV_ROLL_PLACE_MAX, to->count,
        dv_roll_sum(to->names, to->count));
    if (fits && old) print_old_steps(&g, old, step.count);
    if (fits) dv_grow(&g, step.bytes, step.count);
    dv_grow_text(&g, "]}");
    g.failed |= step.failed;
    free(step.bytes);
    return dv_grown(out, &g);
}
