/* Judged: which children of a semaphore's pool were seen to be leases. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/judged.h"

#include <stdlib.h>
#include <string.h>

static size_t find_place(const dv_judged *judged, const char *name, bool *found) {
    size_t from = 0, to = judged->count;
    *found = false;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = strcmp(judged->verdicts[middle].name, name);
        if (order == 0) *found = true;
        if (order == 0) return middle;
        if (order < 0) from = middle + 1;
        else to = middle;
    }
    return from;
}

void dv_judged_note(dv_judged *judged, const char *name, bool is_lease) {
    bool found;
    size_t at = find_place(judged, name, &found);
    if (found) return;
    dv_verdict *grown = realloc(judged->verdicts, (judged->count + 1) * sizeof *grown);
    if (!grown) return;
    judged->verdicts = grown;
    char *copy = strdup(name);
    if (!copy) return;
    memmove(&grown[at + 1], &grown[at], (judged->count - at) * sizeof *grown);
    grown[at] = (dv_verdict){.name = copy, .is_lease = is_lease};
    judged->count++;
}

bool dv_judged_knows(const dv_judged *judged, const char *name) {
    bool found;
    find_place(judged, name, &found);
    return found;
}

static void forget_those_gone(dv_judged *judged) {
    size_t kept = 0;
    for (size_t i = 0; i < judged->count; i++) {
        if (judged->verdicts[i].stays) judged->verdicts[kept++] = judged->verdicts[i];
        else free(judged->verdicts[i].name);
    }
    judged->count = kept;
}

size_t dv_judged_sift(dv_judged *judged, const char *const *names, size_t count, const char **leases) {
    size_t sifted = 0;
    for (size_t i = 0; i < judged->count; i++) judged->verdicts[i].stays = false;
    for (size_t i = 0; i < count; i++) {
        bool found;
        size_t at = find_place(judged, names[i], &found);
        if (found) judged->verdicts[at].stays = true;
        if (!found || judged->verdicts[at].is_lease) leases[sifted++] = names[i];
    }
    forget_those_gone(judged);
    return sifted;
}

void dv_judged_clear(dv_judged *judged) {
    for (size_t i = 0; i < judged->count; i++) free(judged->verdicts[i].name);
    free(judged->verdicts);
    *judged = (dv_judged){NULL, 0};
}
