/* The client's side of its death watch. SPDX-License-Identifier: Apache-2.0
 *
 * Rule C10 of docs/protocol.md. A death watch is a process beside ours that ends our session when our process has
 * ended. It knows the session by the will that we tell it, over a socket. That no watch lives costs time alone: then
 * the session ends by its timeout. */
#ifndef DV_DEATH_WATCH_H
#define DV_DEATH_WATCH_H

#include "client/will.h"
#include "divvy/client.h"

typedef struct dv_death_watch dv_death_watch;

/* Starts the program divvy-death-watch, and waits until it watches this process. `config` is complete; what is needed
 * of it is copied. Returns 0, or DIVVY_ENOMEM, DIVVY_ESYSTEM or DIVVY_EUNSUPPORTED with a message. */
int dv_death_watch_start(dv_death_watch **out, const divvy_client_config *config);

/* The same for a watch that runs already, at the other end of socket_fd, which stays the caller's. */
int dv_death_watch_use(dv_death_watch **out, const divvy_client_config *config, int socket_fd);

/* Tells it of a session; the will before is void. A watch that has ended hears nothing. */
void dv_death_watch_tell(dv_death_watch *watch, int64_t session_id, int64_t timeout_ms,
                         const char password[DV_SESSION_PASSWORD_BYTES]);

/* Tells it that there is no session to be ended. NULL is fine. */
void dv_death_watch_forget(dv_death_watch *watch);

/* Tells it of a pool that the client has become a member of, or is one no longer: D45. `path` has the chroot. Pools for
 * which a will has no room are left out. NULL is fine. */
void dv_death_watch_joined(dv_death_watch *watch, const char *path, const char *member);
void dv_death_watch_left(dv_death_watch *watch, const char *path, const char *member);

/* Returns whether it lives, as far as the kernel has told. NULL: there is none. */
bool dv_death_watch_lives(const dv_death_watch *watch);

/* Lets go of it, without a word. NULL is fine. */
void dv_death_watch_free(dv_death_watch *watch);

/* Opens a descriptor that poll(2) finds readable when this process has ended, and not before. Returns -1 with errno
 * set; ENOSYS: the kernel has none. */
int dv_death_watch_self(void);

/* The descriptors of the program divvy-death-watch: its socket to us, and our process. */
enum { DV_DEATH_WATCH_SOCKET_FD = 3, DV_DEATH_WATCH_PROCESS_FD = 4 };

/* The byte that the program says first, once it watches. */
enum { DV_DEATH_WATCH_READY = 'r' };

#endif
