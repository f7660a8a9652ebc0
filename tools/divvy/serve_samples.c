/* How many items of a pool were where. SPDX-License-Identifier: Apache-2.0 */
#include "serve_samples.h"

#include <stdbool.h>
#include <string.h>

static void merge(dv_serve_sample *into, const dv_serve_sample *later) {
    if (later->items > into->items) into->items = later->items;
    if (later->unowned > into->unowned) into->unowned = later->unowned;
    if (later->moving > into->moving) into->moving = later->moving;
    if (later->members < into->members) into->members = later->members;
}

static bool says_the_same(const dv_serve_sample *a, const dv_serve_sample *b) {
    return a->items == b->items && a->unowned == b->unowned && a->moving == b->moving && a->members == b->members;
}

/* Makes two neighbours one. The last sample stays as it is, since it still goes on. */
static void make_room(dv_serve_samples *s, int64_t now_ms) {
    size_t best = 0;
    double least = 0;
    for (size_t i = 0; i + 2 < s->count; i++) {
        double span = (double)(s->list[i + 2].ms - s->list[i].ms), part = span / (double)(now_ms - s->list[i].ms + 1);
        if (i > 0 && part >= least) continue;
        best = i;
        least = part;
    }
    merge(&s->list[best], &s->list[best + 1]);
    s->count--;
    memmove(&s->list[best + 1], &s->list[best + 2], (s->count - best - 1) * sizeof *s->list);
}

void dv_serve_samples_add(dv_serve_samples *samples, const dv_serve_sample *sample) {
    dv_serve_sample *list = samples->list;
    for (size_t i = samples->count; i > 0 && list[i - 1].ms > sample->ms; i--) list[i - 1].ms = sample->ms;
    if (samples->count > 0 && says_the_same(&list[samples->count - 1], sample)) return;
    if (samples->count == DV_SERVE_SAMPLES_MAX) make_room(samples, sample->ms);
    list[samples->count++] = *sample;
}

/* ---- a part of them ---- */

/* Makes of `count` samples at most two for each of SPANS equal spans of time. */
static size_t thin(const dv_serve_sample *s, size_t count, dv_serve_sample *out) {
    enum { SPANS = (DV_SERVE_POINTS_MAX - 1) / 2 };
    double span_ms = (double)(s[count - 1].ms - s[0].ms + 1) / SPANS;
    size_t made = 0;
    for (size_t i = 0, next = 0; i < count; i = next) {
        int span = (int)((double)(s[i].ms - s[0].ms) / span_ms);
        dv_serve_sample peak = s[i];
        for (next = i + 1; next < count && (int)((double)(s[next].ms - s[0].ms) / span_ms) == span; next++)
            merge(&peak, &s[next]);
        if (next > i + 1) out[made++] = peak;
        out[made++] = s[next - 1];
    }
    return made;
}

size_t dv_serve_samples_between(const dv_serve_samples *samples, int64_t from_ms, int64_t to_ms,
                                dv_serve_sample out[DV_SERVE_POINTS_MAX]) {
    const dv_serve_sample *list = samples->list;
    size_t first = 0, end = samples->count;
    while (first + 1 < samples->count && list[first + 1].ms <= from_ms) first++;
    while (end > 0 && list[end - 1].ms > to_ms) end--;
    if (end <= first) return 0;
    size_t count = end - first;
    if (count > DV_SERVE_POINTS_MAX) {
        out[0] = list[first];
        return 1 + thin(&list[first + 1], count - 1, &out[1]);
    }
    memcpy(out, &list[first], count * sizeof *out);
    return count;
}
