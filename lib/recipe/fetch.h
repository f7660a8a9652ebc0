/* Fetch: reads of many nodes of one directory, so many under way at a time. SPDX-License-Identifier: Apache-2.0
 *
 * A fetch frees itself when all that it has sent is answered. With the client lock held. */
#ifndef DV_FETCH_H
#define DV_FETCH_H

#include "recipe/request.h"

typedef struct dv_fetch dv_fetch;

/* Takes an answer, in the order of the names. An error that it returns stops the fetch. `path` lives until done(). */
typedef int (*dv_fetch_take_fn)(void *owner, const char *path, const dv_reply *reply, int64_t now);

typedef struct {
    dv_kind kind;  /* DV_GET or DV_EXISTS */
    size_t window; /* so many are under way at a time: each answer is held in memory */
    dv_fetch_take_fn take;
    /* The last call: all that was sent is answered. `error` is the first one, and the fetch is no more. */
    void (*done)(void *owner, int error, int64_t now);
} dv_fetch_kind;

/* Starts to read `count` nodes, at least one, whose names it copies. Returns 0, or DIVVY_ENOMEM: nothing is called. */
int dv_fetch_start(dv_fetch **out, divvy_client *client, const dv_fetch_kind *kind, const char *directory,
                   const char *const *names, size_t count, void *owner);
/* Sends no more. Answers still come; done() gets `error`, unless the fetch had one before. */
void dv_fetch_stop(dv_fetch *fetch, int error);
/* Sends no more, and calls nothing from now on: the owner may go. */
void dv_fetch_abandon(dv_fetch *fetch);
/* Keeps a place of the window, and done() away, for a request that the owner sends in take(): until it is answered. */
void dv_fetch_hold(dv_fetch *fetch);
void dv_fetch_release(dv_fetch *fetch, int64_t now);

/* Reads the data of the nodes, and waits. Nothing is called after it has returned. Returns 0, also for no names; the
 * first error; or that of dv_client_wait(). */
int dv_fetch_wait(divvy_client *client, const char *directory, const char *const *names, size_t count,
                  dv_fetch_take_fn take, void *owner, dv_deadline deadline);

#endif
