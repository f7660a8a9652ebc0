/* The commands of a member's items: one runs for each item that is owned. SPDX-License-Identifier: Apache-2.0
 *
 * With `standby` in the config one also stands by for each item that is likely to be owned soon.
 *
 * The member of the pool tells what is owned, and until when it may be worked on. A revoked item may be released
 * when dv_supervisor_is_clear() says so. Everything here is called on one thread, and nothing waits. */
#ifndef DV_SUPERVISE_H
#define DV_SUPERVISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guardian.h"
#include "supervise_child.h"

typedef struct dv_supervisor dv_supervisor;

/* `config` is copied; what it points to, and `guardians`, outlive the supervisor. Returns 0, or -1 with errno set.
 * Release *out with dv_supervisor_close(). */
int dv_supervisor_open(dv_supervisor **out, const dv_supervise_config *config, dv_guardians *guardians);

/* Frees the supervisor. Guardians end the commands that still run, see guardian.h. NULL is allowed. */
void dv_supervisor_close(dv_supervisor *supervisor);

/* Items are owned from now on. */
void dv_supervisor_gain(dv_supervisor *supervisor, const char *const *names, const int64_t *tokens, size_t count);

/* Items are likely to be owned soon: their commands stand by. For a config with `standby`. */
void dv_supervisor_prepare(dv_supervisor *supervisor, const char *const *names, size_t count);

/* Ends the commands that stand by for items that are not owned: the session that these were to be owned in is over. */
void dv_supervisor_dismiss(dv_supervisor *supervisor);

/* Items are to be given back: their commands have the time to drain. */
void dv_supervisor_revoke(dv_supervisor *supervisor, const char *const *names, size_t count);

/* Ends the commands of items that may be somebody else's. Items that were given back have none left. A command that
 * stands by has the time to drain. */
void dv_supervisor_lose(dv_supervisor *supervisor, const char *const *names, size_t count);

/* For how long from now_ms on the session is certainly alive. To be told after each divvy_client_process(). 0 ends
 * everything. */
void dv_supervisor_set_time_left(dv_supervisor *supervisor, int64_t now_ms, int64_t left_ms);

/* Starts nothing more, and gives what runs drain_ms to end. May be repeated, to give less time. */
void dv_supervisor_end(dv_supervisor *supervisor, int64_t drain_ms);

/* Returns whether nothing works on an item but what is to. A command that stands by does not work on its item. */
bool dv_supervisor_is_clear(const dv_supervisor *supervisor);

/* Returns whether a command works on an item, or may be working on one that was lost. */
bool dv_supervisor_works(const dv_supervisor *supervisor);

/* Returns how many commands run, or may be running; those that stand by included. */
size_t dv_supervisor_running(const dv_supervisor *supervisor);

/* Returns why it cannot go on: an errno; 0: it can. */
int dv_supervisor_error(const dv_supervisor *supervisor);

/* For poll(2): a descriptor that is readable when dv_supervisor_process() has something to do; and how long until it
 * has by the clock, -1: no more. */
int dv_supervisor_fd(const dv_supervisor *supervisor);
int64_t dv_supervisor_next_ms(const dv_supervisor *supervisor);

/* Takes notice of what has happened to commands, and starts what is due. */
void dv_supervisor_process(dv_supervisor *supervisor);

#endif
