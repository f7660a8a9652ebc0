/* Told: what an errand does, in one sentence for the history (D44). SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pool/errand.h"

typedef struct {
    char *text;
    size_t bytes, at;
} sentence;

__attribute__((format(printf, 2, 3))) static void say(sentence *s, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(s->text + s->at, s->bytes - s->at, format, arguments);
    va_end(arguments);
    s->at += bytes < 0 ? 0 : (size_t)bytes;
    if (s->at >= s->bytes) s->at = s->bytes - 1;
}

static void say_weight(sentence *s, const dv_errand *e) {
    const char *member = e->ask.name;
    if (e->ask.weight == DV_ASK_CONFIGURED_WEIGHT)
        say(s, "gave %s its own weight back, %" PRIu32, member, e->result.weight);
    else if (e->result.weight == 0) say(s, "drained %s", member);
    else say(s, "gave %s the weight %" PRIu32, member, e->result.weight);
}

static void say_what(sentence *s, const dv_errand *e) {
    const dv_ask *ask = &e->ask;
    switch (ask->kind) {
    case DV_ASK_WEIGHT: say_weight(s, e); break;
    case DV_ASK_FORGET: say(s, "forgot %s, which was absent: others get its items", ask->name); break;
    case DV_ASK_MOVE: say(s, "moved %s to %s", ask->name, ask->value); break;
    case DV_ASK_PIN:
        if (ask->undo) say(s, "unpinned %s", ask->name);
        else say(s, "pinned %s to %s", ask->name, ask->value);
        break;
    case DV_ASK_PAUSE: say(s, "%s %s", ask->undo ? "resumed" : "paused", ask->name); break;
    case DV_ASK_NEED:
        if (ask->undo) say(s, "let %s need no tag", ask->name);
        else say(s, "let %s need the tag %s", ask->name, ask->value);
        break;
    default:
        if (ask->undo) say(s, "set %s to its default", ask->name);
        else say(s, "set %s to %s", ask->name, ask->value);
    }
}

void dv_errand_tell(dv_errand *e) {
    sentence s = {.text = e->told, .bytes = sizeof e->told};
    say(&s, "%s ", *e->ask.by ? e->ask.by : "somebody");
    say_what(&s, e);
    if (*e->ask.why) say(&s, ": %s", e->ask.why);
    e->events.told = e->told;
}
