/* Differences made on purpose, one kind at a time: the proof that each kind is noticed. SPDX-License-Identifier:
 * Apache-2.0
 */
#include "conformance.h"

breakage breakage_now = BREAK_NOTHING;
static unsigned chances, broken;

const char *breakage_name(breakage b) {
    static const char *const names[BREAKAGES] = {
        [BREAK_NOTHING] = "nothing",
        [BREAK_ERROR] = "error",
        [BREAK_MULTI_ERROR] = "multi-error",
        [BREAK_NAME] = "name",
        [BREAK_DATA] = "data",
        [BREAK_CHILD] = "child",
        [BREAK_VERSION] = "version",
        [BREAK_OWNER] = "owner",
        [BREAK_DATA_BYTES] = "data-bytes",
        [BREAK_CHILDREN] = "children",
        [BREAK_CZXID] = "czxid",
        [BREAK_MZXID] = "mzxid",
        [BREAK_PZXID] = "pzxid",
        [BREAK_TIME] = "time",
        [BREAK_WATCH_LOST] = "watch-lost",
        [BREAK_WATCH_TWICE] = "watch-twice",
        [BREAK_WATCH_KIND] = "watch-kind",
        [BREAK_WATCH_LATE] = "watch-late",
        [BREAK_NEWS] = "news",
    };
    return names[b];
}

/* Not at the first chance, so that it is not only the first of its kind that is looked at. */
bool breaks(const world *w, breakage b) {
    enum { FIRST = 3, EVERY = 5 };
    if (breakage_now != b || w->index != 1) return false;
    bool now = ++chances >= FIRST && (chances - FIRST) % EVERY == 0;
    if (now) broken++;
    return now;
}

void breakage_reset(void) {
    chances = broken = 0;
}

unsigned breakage_count(void) {
    return broken;
}
