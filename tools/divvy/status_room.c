/* How full the sessions of a pool's members are. SPDX-License-Identifier: Apache-2.0 */
#include "status_room.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* A session has other nodes, too: those of the member in the party and among the notes. */
enum { OTHERS_BYTES = 2048 };

void dv_status_room_count(dv_status *status, size_t root_bytes) {
    /* As the library counts: 4 bytes for each path, and one more, as the number of a place may get a sign. */
    size_t each = root_bytes + strlen("/locks//") + 4 + 1;
    for (size_t i = 0; i < status->member_count; i++) status->members[i].path_bytes = 0;
    for (size_t i = 0; i < status->item_count; i++) {
        const dv_status_item *item = &status->items[i];
        if (!item->head || item->member == DV_NO_MEMBER) continue;
        status->members[item->member].path_bytes += each + strlen(item->node) + strlen(item->head);
    }
}

size_t dv_status_room_short(const dv_status_member *m) {
    if (!m->entry || m->item_count == 0 || m->entry->item_count <= m->item_count) return 0;
    /* The next item may have a longer name than most. */
    size_t kept = OTHERS_BYTES + 2 * (m->path_bytes / m->item_count);
    return m->path_bytes + kept >= DV_SESSION_PATH_BYTES ? m->entry->item_count - m->item_count : 0;
}

size_t dv_status_room_sessions(const dv_status *status, const dv_status_member *m) {
    size_t sessions = 0;
    assert(m->item_count > 0 && m->entry);
    for (size_t i = 0; i < status->member_count; i++) {
        const dv_status_member *other = &status->members[i];
        if (other == m || (m->pid && other->pid == m->pid && strcmp(other->host, m->host) == 0)) sessions++;
    }
    return sessions * ((m->entry->item_count + m->item_count - 1) / m->item_count);
}

void dv_status_room_print(const dv_status *status, FILE *to) {
    const dv_status_member *first = NULL;
    size_t count = 0, unowned = 0;
    for (size_t i = 0; i < status->member_count; i++) {
        size_t lacking = dv_status_room_short(&status->members[i]);
        if (lacking && !first) first = &status->members[i];
        count += lacking > 0;
        unowned += lacking;
    }
    if (!first) return;
    char *name = dv_text_readable(first->identifier);
    fprintf(to,
            "full: the session of %s holds %zu of the %zu items of its share, and has no room for more; start more "
            "members, or it with --sessions %zu; or divide fewer, larger items (divvy help bucket)",
            name ? name : "?", first->item_count, first->entry->item_count, dv_status_room_sessions(status, first));
    if (count > 1) fprintf(to, "; so it is with %zu members and %zu items in all", count, unowned);
    fputs("\n", to);
    free(name);
}
