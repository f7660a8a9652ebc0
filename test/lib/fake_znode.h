/* A scripted backend of the seam, for unit tests of recipes. SPDX-License-Identifier: Apache-2.0
 *
 * A client made by hand on a virtual clock, in manual mode. The library's requests are kept, in order, until the
 * test answers them. Nothing moves but by a call of the test, and after each call the loop has done all that was
 * due. fake_tree.h answers from a few nodes instead of by hand. */
#ifndef DV_FAKE_ZNODE_H
#define DV_FAKE_ZNODE_H

#include "client/client.h"

typedef struct dv_fake dv_fake;

/* The session's id, and what the names of its attempts begin with, followed by 1, 2, 3, ... */
#define DV_FAKE_SESSION 1
#define DV_FAKE_GUID "0000000000100000000000"

/* A request of the library that nobody has answered yet. */
typedef struct dv_fake_request {
    struct dv_fake_request *next; /* a younger one */
    dv_op *ops;
    size_t count;
    bool is_multi;
    dv_reply_fn done;
    dv_multi_fn multi_done;
    void *context;
    dv_watch *watch;
    int64_t sent_at;
    uint64_t connection;
} dv_fake_request;

/* A client that is not connected yet. `config` as for divvy_client_open(); NULL: all defaults. */
dv_fake *dv_fake_open(const divvy_client_config *config);
/* The link goes and the client is closed; the last object on it takes the fake along. */
void dv_fake_close(dv_fake *fake);
divvy_client *dv_fake_client(dv_fake *fake);

/* The clock stands still but here: timers fire on the way, each at its very time. */
int64_t dv_fake_now(const dv_fake *fake);
void dv_fake_advance(dv_fake *fake, int64_t ms);
/* R3: advances to when nothing of ours is looked for that may come late. */
void dv_fake_end_latecomers(dv_fake *fake);
/* The clock goes on while nobody runs the loop. */
void dv_fake_sleep(dv_fake *fake, int64_t ms);
/* Does what is due now, and all that follows from it. */
void dv_fake_run(dv_fake *fake);

/* Returns whether a recipe has set any. */
bool dv_fake_has_timers(const dv_fake *fake);

/* DIVVY_CONNECTED; DIVVY_SUSPENDED, with the answers of all that is under way lost; DIVVY_LOST, DIVVY_AUTH_FAILED. */
void dv_fake_session(dv_fake *fake, divvy_session_state state);
bool dv_fake_is_connected(const dv_fake *fake);

/* The session was there before we connect to it, as a host's is. */
void dv_fake_resume(dv_fake *fake);

/* Heartbeats of the session are answered at once and seen by nobody, unless they are held: then they are requests like
 * others. */
void dv_fake_hold_beats(dv_fake *fake, bool held);

/* The requests under way, oldest first. As text: "create /q, ephemeral /y/#1-x, sequential /q/#2__lock__, get! /a,
 * multi [delete /a; delete /b], check /". In it '#' is the guid's beginning and '!' a watch. The text is good until
 * the next call. */
const dv_fake_request *dv_fake_oldest(const dv_fake *fake);
const char *dv_fake_pending(dv_fake *fake);

/* The oldest request is answered. For a multi there is one reply for each operation; NULL: none, as it failed. */
void dv_fake_answer(dv_fake *fake, const dv_reply *reply);
void dv_fake_answer_multi(dv_fake *fake, int error, const dv_reply *replies);
/* The watch that was given to a read of `path` fires; false when there is none. `armed`: only if that was answered. */
bool dv_fake_fire(dv_fake *fake, const char *path, dv_watch_kind kind, bool armed);
bool dv_fake_is_watched(const dv_fake *fake, const char *path);

#endif
