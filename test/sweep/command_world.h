/* What a command of the sweeps calls instead of the system and of the library. SPDX-License-Identifier: Apache-2.0
 *
 * The command's objects are those of `divvy`, in which command_symbols.txt gives some calls these names. So a command
 * that reads ZooKeeper has a client on the ensemble, and the ensemble's time; and its allocations are counted. */
#ifndef DV_SWEEP_COMMAND_WORLD_H
#define DV_SWEEP_COMMAND_WORLD_H

#include <poll.h>
#include <time.h>

#include "sweep.h"

#define SWEEP_COMMAND_POOL "/pool/p"
enum { SWEEP_COMMAND_MEMBERS = 2 };

/* What a command finds: a pool with rules, a lock that one holds and one waits for, a service. */
typedef struct {
    divvy_partitioner *members[SWEEP_COMMAND_MEMBERS];
    divvy_lock *locks[SWEEP_COMMAND_MEMBERS];
    divvy_registry *registry;
} sweep_command_found;

void sweep_command_begin(sweep *s, sweep_command_found *found);
void sweep_command_end(sweep *s, sweep_command_found *found);

/* Sets on whose ensemble commands work from now on. */
void sweep_command_world(sweep *s);

/* Sends this process SIGTERM once the ensemble's clock has gone on so far. Commands take it as their user's wish. */
void sweep_command_end_after(int64_t ms);

/* Tells that this is a child of a command: it has the machine's clock, and no part in the ensemble. */
void sweep_command_is_child(void);

/* Returns the port at which something answers as a server does to srvr, conf and cons. It lasts until the process
 * ends. */
int sweep_command_server(void);

/* Ends what diverts stdout and stderr while a command runs; commands.c. Does nothing elsewhere. */
void sweep_command_restore(void);

int sweep_client_open(divvy_client **out, const divvy_client_config *config);
int sweep_client_open_to_look(divvy_client **out, const divvy_client_config *config);
int sweep_client_open_watched(divvy_client **out, const divvy_client_config *config, int watch_fd);
int sweep_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int sweep_poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t bytes);
int sweep_clock_gettime(clockid_t clock, struct timespec *out);

#endif
