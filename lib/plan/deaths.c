/* The last members of a pool that died: docs/protocol.md, D45. SPDX-License-Identifier: Apache-2.0 */
#include "plan/deaths.h"

#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "plan/json.h"

/* A change of the plan is written so long before and after the deaths that it may come of: a death is written down when
 * its session has ended, and members wait for their leave boundary. */
enum { BEFORE_MS = 5000, AFTER_MS = 60000 };

/* ---- parsing ---- */

static void take_death(dv_plan_json *j, dv_plan_death *death) {
    static const char *const names[] = {"name", "session", "at_ms", "seen_ms"};
    dv_plan_json_fields fields = {.names = names, .count = sizeof names / sizeof names[0]};
    *death = (dv_plan_death){.at_ms = 0};
    for (int field; (field = dv_plan_json_field(j, &fields)) >= 0;) {
        char *name = field == 0 ? dv_plan_json_string(j, 0, DV_PLAN_NAME_BYTES_MAX) : NULL;
        if (name != NULL) strcpy(death->name, name);
        free(name);
        if (field == 1) death->session = (int64_t)dv_plan_take_hex(j, 0);
        if (field == 2) death->at_ms = dv_plan_json_integer(j, 0, DV_PLAN_INTEGER_MAX);
        if (field == 3) death->seen_ms = dv_plan_json_integer(j, 0, DV_PLAN_INTEGER_MAX);
    }
}

int dv_plan_deaths_parse(dv_plan_deaths *out, const char *text, size_t bytes, int64_t written_ms,
                         dv_plan_fault *fault) {
    static const char *const names[] = {"deaths"};
    dv_plan_json_fields fields = {.names = names, .count = 1};
    dv_plan_json j;
    dv_plan_json_begin(&j, text, bytes);
    out->count = 0;
    if (bytes > DV_PLAN_DEATHS_BYTES_MAX) dv_plan_json_fail(&j, "is too long");
    while (dv_plan_json_field(&j, &fields) == 0) {
        for (bool begun = false; dv_plan_json_element(&j, &begun);) {
            if (out->count < DV_PLAN_DEATHS_MAX) take_death(&j, &out->deaths[out->count++]);
            else dv_plan_json_fail(&j, "has too many deaths");
        }
    }
    if (!dv_plan_json_end(&j)) out->count = 0;
    if (out->count > 0 && out->deaths[out->count - 1].at_ms == 0) out->deaths[out->count - 1].at_ms = written_ms;
    return dv_plan_fault_tell(&j, fault);
}

/* ---- the next ---- */

void dv_plan_deaths_add(dv_plan_deaths *deaths, const dv_plan_death *death) {
    if (deaths->count == DV_PLAN_DEATHS_MAX)
        memmove(deaths->deaths, deaths->deaths + 1, --deaths->count * sizeof *deaths->deaths);
    deaths->deaths[deaths->count] = *death;
    deaths->deaths[deaths->count++].at_ms = 0;
}

/* ---- whose, and when ---- */

const dv_plan_death *dv_plan_deaths_of(const dv_plan_deaths *deaths, const char *identifier) {
    char name[DV_PLAN_NAME_BYTES_MAX + 1];
    dv_plan_name_cut(name, identifier);
    for (size_t n = deaths->count; n-- > 0;) {
        if (strcmp(deaths->deaths[n].name, name) == 0) return &deaths->deaths[n];
    }
    return NULL;
}

static bool tells_of(const dv_plan_named *who, const char *name) {
    for (size_t n = 0; n < who->named; n++) {
        if (strcmp(who->names[n], name) == 0) return true;
    }
    return false;
}

static bool names(const dv_plan_change *c, const char *name) {
    return tells_of(&c->joined, name) || tells_of(&c->left, name);
}

/* Looks between the changes before and after that name the member: when it has come back, it died another time. */
const dv_plan_death *dv_plan_deaths_behind(const dv_plan_deaths *deaths, const dv_plan_history *history, size_t change,
                                           const char *name) {
    const dv_plan_change *c = &history->changes[change];
    const dv_plan_death *found = NULL;
    int64_t from_ms = c->at_ms - AFTER_MS, until_ms = c->at_ms + BEFORE_MS;
    if (c->at_ms == 0) return NULL;
    for (size_t n = 0; n < history->count; n++) {
        const dv_plan_change *other = &history->changes[n];
        if (n == change || other->at_ms == 0 || !names(other, name)) continue;
        if (n < change && other->at_ms > from_ms) from_ms = other->at_ms;
        if (n > change && other->at_ms < until_ms) until_ms = other->at_ms;
    }
    for (size_t n = 0; n < deaths->count; n++) {
        const dv_plan_death *death = &deaths->deaths[n];
        if (death->at_ms >= from_ms && death->at_ms <= until_ms && strcmp(death->name, name) == 0) found = death;
    }
    return found;
}
