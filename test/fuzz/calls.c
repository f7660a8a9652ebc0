/* Fuzzes sequences of calls and faults: histories of the simulator (test/sim) whose events are drawn from the input,
 * with all of its checkers. SPDX-License-Identifier: Apache-2.0
 *
 * Byte 0: what members do (pools, locks, registries). Bytes 1 to 3: the seed of all that stands around the events, as
 * sim's. Then eight bytes for each event: kind, distance, and what it is about. An input that shows a violation is told
 * in words by `fuzz_calls FILE` with DIVVY_FUZZ_TRACE=1. */
#include "fuzz.h"
#include "sim.h"

enum { EVENT_BYTES = 8, EVENTS_MAX = 60, GAP_UNITS = 16 };

/* Returns whether a history that was drawn so may have such events: their own switches say so. */
static bool belongs(const sim_script *s, sim_kind kind) {
    if (kind == SIM_SEQUENCE_END && !s->sequence_ends) return false;
    if (kind == SIM_WALL_CLOCK && !s->wall_clocks) return false;
    return sim_kind_belongs(kind, s->theme);
}

static sim_kind take_kind(const sim_script *s, uint8_t byte) {
    sim_kind kind = (sim_kind)(byte % SIM_KINDS);
    while (!belongs(s, kind)) kind = (sim_kind)((kind + 1) % SIM_KINDS);
    return kind;
}

static void take_events(sim_script *s, fuzz_input *in) {
    int64_t at_ms = 1, unit_ms = s->timeout_ms / 8 / GAP_UNITS + 1;
    for (s->count = 0; s->count < EVENTS_MAX && (in->at < in->end || s->count < 2); s->count++) {
        sim_kind kind = take_kind(s, fuzz_byte(in));
        uint32_t gap = fuzz_byte(in);
        sim_event *event = &s->events[s->count];
        *event = (sim_event){.at_ms = at_ms, .kind = s->count < 2 ? SIM_JOIN : kind};
        event->a = fuzz_byte(in);
        event->b = fuzz_number(in, 2);
        event->c = fuzz_number(in, 2);
        event->d = fuzz_byte(in);
        at_ms += (gap % GAP_UNITS) * unit_ms * (gap >= 240 ? 6 : 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static sim_script script;
    static sim_coverage coverage;
    if (bytes < 4 + 2 * EVENT_BYTES) return 0;
    fuzz_input in = fuzz_begin(data, bytes);
    uint8_t theme = fuzz_byte(&in) % 3;
    sim_script_draw(&script, fuzz_number(&in, 3), SIM_KAZOO_SOMETIMES, (sim_theme)theme);
    if (script.profile == SIM_CHURN) script.profile = SIM_MIXED; /* which has no faults, and is checked for that */
    take_events(&script, &in);
    bool trace = getenv("DIVVY_FUZZ_TRACE") != NULL;
    sim_violation violation;
    if (trace) sim_script_print(&script);
    if (!sim_history(&script, NULL, trace, &coverage, &violation)) {
        fprintf(stderr, "violation of %s at %lld ms: %s\n", violation.what, (long long)violation.at_ms, violation.text);
        abort();
    }
    return 0;
}
