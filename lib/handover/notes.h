/* The notes of other members: read, with a watch, while an item of ours needs them. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, T2 to T6. With the client lock held. */
#ifndef DV_NOTES_H
#define DV_NOTES_H

#include "client/client.h"
#include "handover/note.h"

typedef struct dv_notes dv_notes;

typedef enum {
    DV_NOTE_UNREAD, /* asked for, or to be asked for */
    DV_NOTE_THERE,
    DV_NOTE_ABSENT, /* none is there, or none that can be read: its member is treated as one without */
} dv_note_standing;

/* One member's note, as it was read last. Looked at by its owner, written by notes.c alone. */
typedef struct dv_note_view {
    dv_note_standing standing;
    dv_note note;       /* while it is there */
    int64_t mzxid;      /* of that */
    int64_t written_ms; /* by the servers' clock; 0: it is as it was made */
    bool was_there;     /* once, since it is wanted */
    dv_notes *of;
    struct dv_note_view *next;
    bool wanted; /* since the last sweep */
    bool dropped;
    bool reading, look_again;
    size_t cost; /* of the watch, in the budget */
    dv_watch watch;
    char *path;
    const char *name; /* the last part of it: the member's node */
} dv_note_view;

/* A view was read, and says something else. From the loop. */
typedef void (*dv_notes_changed_fn)(void *owner, dv_note_view *view, int64_t now);

/* `directory`, P/notes, lives as long. Returns NULL when an allocation fails. */
dv_notes *dv_notes_new(divvy_client *client, const char *directory, dv_notes_changed_fn changed, void *owner);
/* Nothing is called from now on. NULL is allowed. */
void dv_notes_free(dv_notes *notes);
/* The note of that member's node, read from now on; one for each node. Valid until the first dv_notes_sweep() before
 * which nobody wanted it again. Returns NULL when an allocation fails. */
dv_note_view *dv_notes_want(dv_notes *notes, const char *node);
/* Wants a view that one has. NULL is allowed. */
dv_note_view *dv_notes_keep(dv_note_view *view);
/* Gives up those that nobody has wanted or kept since the last sweep. */
void dv_notes_sweep(dv_notes *notes);
/* Returns the first of all views; `next` leads to the others. NULL: none. */
const dv_note_view *dv_notes_first(const dv_notes *notes);
/* A connection is there, or memory: reads what was not read. */
void dv_notes_connected(dv_notes *notes);

#endif
