/* Handles of host programs, and those of our clients that sit on them. SPDX-License-Identifier: Apache-2.0
 *
 * The handle knows one watcher function, one context, and requests that find their client through the registry here,
 * or nobody: docs/decisions.md says why. */
#ifndef DV_SHARED_H
#define DV_SHARED_H

#include "znode/apache/apache.h"

/* Puts the client on the handle; news of it are posted once this returns. 0, DIVVY_ELOST, DIVVY_EAUTH, DIVVY_ENOMEM. */
int dv_shared_enter(dv_apache *apache, zhandle_t *handle);

/* Takes it off. Its requests were completed before; answers are awaited for wait_ms, and find nobody after that.
 * Nothing is posted after this returns. With its last client gone the handle gets its watcher back, if `alive`. */
void dv_shared_leave(dv_apache *apache, bool alive, int wait_ms);

/* Returns whether the client sits on this very handle, and that is not known to be at its end. */
bool dv_shared_is_on(const dv_apache *apache, zhandle_t *handle);

/* Around what an answer does, and what is done to requests without one. */
void dv_shared_lock(void);
void dv_shared_unlock(void);
/* Takes the lock to give the handle a request. Returns false without it: the host may have closed an expired handle. */
bool dv_shared_begin(dv_shared *shared);
/* An answer came: with the lock held. */
void dv_shared_answered(dv_shared *shared);

/* Likewise: whether it is connected, by what has been heard. */
bool dv_shared_is_connected(const dv_shared *shared);

/* The watcher of all node watches on hosts' handles; its context is dv_shared_context. */
void dv_shared_on_watch(zhandle_t *handle, int type, int state, const char *path, void *context);
extern char dv_shared_context[];

#endif
