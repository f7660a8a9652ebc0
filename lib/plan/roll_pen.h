/* The writer of a party's roll: one write at a time, at the version that was read. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, W19. Part of a roll watch, which outlives its requests. */
#ifndef DV_ROLL_PEN_H
#define DV_ROLL_PEN_H

#include "client/client.h"
#include "plan/roll.h"

typedef struct {
    /* The party that settled last, and our place in it. */
    dv_roll_party (*party)(void *owner, size_t *place);
    /* A request was answered, the last one perhaps; the owner may go. */
    void (*ended)(void *owner, int64_t now);
} dv_roll_pen_events;

typedef struct {
    divvy_client *client;
    const char *path;
    const dv_roll_pen_events *events;
    void *owner;

    dv_timer timer;
    bool is_wanted;    /* a party is to be written */
    bool is_under_way; /* a request */
    bool has_waited;   /* for others who know more of the roll */
    bool has_warned;
    char **before; /* the party that its step is to lead from, one block; NULL: not known */
    size_t before_count;
    int64_t before_pzxid; /* 0: no party has settled before, and no roll is of that one */
    char *text;           /* being written */
    int64_t written_pzxid;
} dv_roll_pen;

/* `path` lives as long as the pen. */
void dv_roll_pen_init(dv_roll_pen *pen, divvy_client *client, const char *path, const dv_roll_pen_events *events,
                      void *owner);
/* Keeps what settled before, unless an earlier one is still to be led from. Takes over the names. */
void dv_roll_pen_keep(dv_roll_pen *pen, char **names, size_t count, int64_t pzxid);
/* Frees what it keeps, unless it is to write. */
void dv_roll_pen_forget(dv_roll_pen *pen);
/* Writes the roll of the party that settled last, if nobody has written it until `at`. */
void dv_roll_pen_write(dv_roll_pen *pen, int64_t at, int64_t now);
/* There may be a connection again. */
void dv_roll_pen_go_on(dv_roll_pen *pen, int64_t now);
/* Writes nothing from now on. It may be freed once no request is under way. */
void dv_roll_pen_stop(dv_roll_pen *pen);

#endif
