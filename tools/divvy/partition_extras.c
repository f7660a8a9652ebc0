/* The options of `divvy partition` for loads, rules of the deal, and quarantine. SPDX-License-Identifier: Apache-2.0 */
#include "partition_extras.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "duration.h"
#include "load_lines.h"
#include "plan/tags.h"
#include "workers/failures.h"

enum { LOAD_INTERVAL_MS = 10000, MEMBERS_WAIT_MS = 60000, UNIT_BYTES_MAX = 16, WINDOW_MAX_MS = 24 * 3600 * 1000 };

/* The floor of --balance cpu: so much of the processors. */
static const double cpu_floor = 0.05;

static char message[512];

__attribute__((format(printf, 1, 2))) static const char *say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return message;
}

/* ---- loads ---- */

static bool is_unit(const char *text) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_/%.-";
    size_t bytes = strlen(text);
    return bytes >= 1 && bytes <= UNIT_BYTES_MAX && strspn(text, allowed) == bytes;
}

static const char *wrong_floor(dv_partition_options *o) {
    const char *text = o->load_floor_text;
    if (!text || dv_load_number(text, strlen(text), &o->load_floor) == DV_LOAD_LINE_GOOD) return NULL;
    return say("--load-floor: \"%.100s\" is no load; give a number from 0 up, such as 0.5", text);
}

static const char *wrong_unit(const dv_partition_options *o) {
    if (!o->load_unit) return NULL;
    if (o->balance == DV_BALANCE_CPU) return "--load-unit is for --load-command; --balance cpu measures cores";
    if (is_unit(o->load_unit)) return NULL;
    return say("--load-unit: \"%.100s\" is no unit; give 1 to %d of a-z, 0-9, \"_\", \"/\", \"%%\", \".\" and \"-\"",
               o->load_unit, UNIT_BYTES_MAX);
}

static const char *wrong_loads(dv_partition_options *o) {
    bool measures = o->balance == DV_BALANCE_CPU;
    if (measures && o->load_command) return "give --balance or --load-command, not both: a pool has one kind of load";
    if (measures && !o->arguments)
        return "--balance cpu measures a command, which stands behind --; --load-command is for other loads";
    if (o->load_command && !*o->load_command) return "--load-command cannot be empty";
    if (!measures && !o->load_command) {
        if (o->load_interval_ms >= 0) return "--load-interval is for loads; give --balance cpu or --load-command, too";
        if (o->load_unit) return "--load-unit is for loads; give --load-command, too";
        if (o->load_floor_text) return "--load-floor is for loads; give --balance cpu or --load-command, too";
        return NULL;
    }
    const char *wrong = wrong_unit(o);
    return wrong ? wrong : wrong_floor(o);
}

/* ---- rules of the deal ---- */

static const char *wrong_rules(const dv_partition_options *o) {
    char tags[DV_TAGS_BYTES];
    const char *why = o->tags && *o->tags ? dv_tags_make(tags, o->tags) : NULL;
    if (o->tags && !*o->tags) return "--tags: there is no tag in it; without the option the member has none";
    if (why) return say("--tags: a tag of \"%.100s\" %s; write them as gpu,ssd", o->tags, why);
    if (o->min_members_wait_ms >= 0 && o->min_members == 0)
        return "--min-members-wait is for --min-members; give that, too";
    return NULL;
}

/* ---- quarantine ---- */

/* Reads "5/10m". */
static const char *wrong_quarantine(dv_partition_options *o) {
    const char *text = o->quarantine;
    if (!text) return NULL;
    if (!o->arguments) return "--quarantine is for a command, which stands behind --";
    char *end = NULL;
    unsigned long failures = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    if (!end || *end != '/')
        return say("--quarantine: \"%.100s\" is no N/DURATION; give how many failures within which time, such as 5/10m",
                   text);
    if (failures < 1 || failures > DV_FAILURES_MAX)
        return say("--quarantine: \"%.100s\": an item can be paused after 1 to %d failures", text, DV_FAILURES_MAX);
    int64_t window_ms = 0;
    int error = dv_duration_parse(end + 1, &window_ms);
    if (error == -1)
        return say("--quarantine: \"%.100s\": what stands behind / is no duration; give " DV_DURATION_FORMS, text);
    if (error || window_ms < 1 || window_ms > WINDOW_MAX_MS)
        return say("--quarantine: \"%.100s\": the duration may be 1ms to %dh", text, WINDOW_MAX_MS / 3600000);
    o->quarantine_failures = failures;
    o->quarantine_window_ms = window_ms;
    return NULL;
}

/* ---- all ---- */

/* Returns the first option that only plans can keep to, or NULL. */
static const char *needs_plan(const dv_partition_options *o) {
    if (o->balance != DV_BALANCE_NONE) return "balance";
    if (o->load_command) return "load-command";
    if (o->tags) return "tags";
    if (o->cap) return "cap";
    if (o->min_members) return "min-members";
    return o->quarantine ? "quarantine" : NULL;
}

const char *dv_partition_extras_wrong(dv_partition_options *o) {
    const char *wrong = wrong_loads(o);
    if (!wrong) wrong = wrong_rules(o);
    if (!wrong) wrong = wrong_quarantine(o);
    if (wrong || o->assign == DIVVY_ASSIGN_AUTO || !needs_plan(o)) return wrong;
    return say("--%s needs a pool that follows a plan; leave --assign out, here and at all other members",
               needs_plan(o));
}

void dv_partition_extras_finish(dv_partition_options *o) {
    if (o->load_interval_ms < 0) o->load_interval_ms = LOAD_INTERVAL_MS;
    if (o->min_members_wait_ms < 0) o->min_members_wait_ms = MEMBERS_WAIT_MS;
    if (o->balance != DV_BALANCE_CPU) return;
    o->load_unit = "cores";
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (!o->load_floor_text) o->load_floor = cpu_floor * (double)(online > 0 ? online : 1);
}
