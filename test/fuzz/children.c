/* Fuzzes lists of children: of a party, of queues, of semaphores' pools. SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "partitioner/partitioner.h"
#include "recipe/queue.h"
#include "recipe/slots.h"
#include "znode/sequence.h"

enum { CHILDREN_MAX = 32 };

static void check_member(const char *name) {
    char *node = fuzz_copy(name, strlen(name) + 1);
    dv_member member = dv_member_parse(node);
    FUZZ_CHECK(member.node == node && member.identifier);
    if (member.kind == DV_KAZOO) FUZZ_CHECK(dv_member_is_kazoo(node) && strchr(node, '-') == node + 32);
    if (member.kind != DV_STRAY) FUZZ_CHECK(member.identifier == strchr(node, '-') + 1);
    if (member.kind == DV_DIVVY) {
        FUZZ_CHECK(member.ability && member.ability_bytes > 0 && member.level >= -1);
        FUZZ_CHECK(member.ability > node && member.ability + member.ability_bytes < member.identifier);
    }
    free(node);
}

static void check_queue(const char *const *names, size_t count) {
    static const dv_queue_kind *const kinds[] = {&dv_exclusive_queue, &dv_lock_queue, &dv_write_queue, &dv_read_queue};
    const char **contenders = calloc(count + 1, sizeof *contenders);
    if (!contenders) abort();
    size_t found = dv_queue_contenders(names, count, contenders);
    FUZZ_CHECK(found <= count);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t i = 0; i < found; i++) {
            int32_t own, other;
            if (!dv_sequence_parse(contenders[i], kinds[k]->marker, &own)) continue;
            const char *before = dv_queue_before(kinds[k], names, count, contenders[i], own);
            if (!before) continue;
            bool blocks = dv_sequence_parse(before, "__lock__", &other) ||
                          (kinds[k] == &dv_write_queue && dv_sequence_parse(before, "__rlock__", &other));
            FUZZ_CHECK(blocks && dv_sequence_compare(other, own) < 0);
        }
    }
    free(contenders);
    if (count > 0) FUZZ_CHECK(dv_queue_find(names, count, names[0]) == names[0]);
    (void)dv_queue_has_kazoo(names, count);
}

/* J3, J4: the first is the first of all candidates, and nobody outranks the last. */
static void check_election(const char *const *names, size_t count) {
    const char **candidates = calloc(count + 1, sizeof *candidates);
    if (!candidates) abort();
    size_t found = dv_queue_candidates(names, count, candidates);
    const char *first = dv_queue_first(names, count);
    FUZZ_CHECK(found <= count && (found > 0) == (first != NULL));
    if (found > 0) FUZZ_CHECK(strcmp(first, candidates[0]) == 0);
    for (size_t i = 0; i < count; i++) {
        int preference = dv_queue_preference(names[i]);
        FUZZ_CHECK(preference >= 0 && preference <= DV_PREFERENCE_MAX);
        FUZZ_CHECK(!dv_queue_outranked(names, count, names[i], -1)); /* the last number of all */
    }
    free(candidates);
}

static void check_slots(const char *name) {
    dv_slots slots, again;
    if (!dv_slots_parse(name, &slots)) return;
    FUZZ_CHECK(slots.run_count > 0 && slots.run_count <= DV_RUNS_MAX && slots.count > 0);
    char tags[DV_SLOT_TAGS_BYTES], whole[DV_SLOT_TAGS_BYTES + 32];
    FUZZ_CHECK(dv_slots_print(&slots, tags) < sizeof tags);
    snprintf(whole, sizeof whole, "aaaaaaaaaaabbbbbbbbbbbc%s", tags);
    FUZZ_CHECK(dv_slots_parse(whole, &again));
    FUZZ_CHECK(again.count == slots.count && again.run_count == slots.run_count);
    FUZZ_CHECK(dv_slots_at(&slots, 0) >= 0 && dv_slots_at(&slots, slots.count) == -1);
}

/* E4: what is chosen is free, within the limit, and as much as was asked for. */
static void check_choice(const char *const *names, size_t count, uint32_t limit, uint32_t wanted) {
    dv_slots slots;
    if (wanted == 0 || limit == 0 || dv_slots_choose(names, count, limit, wanted, &slots) != DV_POOL_ROOM) return;
    FUZZ_CHECK(slots.count == wanted && wanted <= limit);
    int before = -1;
    for (uint32_t i = 0; i < wanted; i++) {
        int slot = dv_slots_at(&slots, i);
        FUZZ_CHECK(slot > before && (uint32_t)slot < limit);
        before = slot;
        for (size_t n = 0; n < count; n++) {
            dv_slots taken;
            if (!dv_slots_parse(names[n], &taken)) continue;
            for (size_t r = 0; r < taken.run_count; r++)
                FUZZ_CHECK((uint32_t)slot < taken.runs[r].first ||
                           (uint32_t)slot - taken.runs[r].first >= taken.runs[r].count);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_input in = fuzz_begin(data, bytes);
    uint32_t limit = fuzz_byte(&in) % 64, wanted = fuzz_byte(&in) % 24, read_limit;
    dv_limit_state state = dv_limit_parse((const char *)in.at, (size_t)(in.end - in.at), &read_limit);
    if (state == DV_LIMIT_SET) FUZZ_CHECK(read_limit <= INT32_MAX);
    fuzz_lines lines = fuzz_take_lines(&in, CHILDREN_MAX);
    const char *const *names = (const char *const *)lines.texts;
    for (size_t i = 0; i < lines.count; i++) {
        check_member(names[i]);
        check_slots(names[i]);
    }
    check_queue(names, lines.count);
    check_election(names, lines.count);
    (void)dv_pool_has_kazoo(names, lines.count);
    check_choice(names, lines.count, limit, wanted);
    fuzz_free_lines(&lines);
    return 0;
}
