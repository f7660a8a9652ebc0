/* A member of the chaos test: one process that uses all recipes at once and writes down what it believes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Times are CLOCK_BOOTTIME in milliseconds, asked of the kernel itself: that clock is the same for all processes of the
 * machine, whatever a library that was put before libc tells them.
 *
 * What is written is what is certain. A belief begins after the library has said yes, and ends with the last time at
 * which we asked and it did so; if that is earlier there was none for certain. Each line is one write to the log:
 *   H time pid                                       the process has begun
 *   U time session until                             by the session clock it is alive until then
 *   B time kind object session token slots           believed from now on; slots of a semaphore, else "-"
 *   E last seen kind object token why                believed at `last` for the last time, and found out at `seen`
 *   C asked told session ttl role nonce attempt      the unique role is ours, by a claim asked for then
 *   D time role                                      the claim is given up
 *   R asked told ttl role id attempt                 a lookup returned this entry as healthy
 *   W time count id...                               the live view has these
 *   P time count name...                             the party has these
 *   K time token name                                it was told who leads; 0 and "-": nobody
 *   T time from to                                   the partitioner's states, as they were told
 *   L asked told what timeout result                 a waiting call that took longer than it was given
 *   J from to                                        the process did not get to run, or not enough
 *   N time jump by                                   the wall clock has jumped
 *   V time rule text                                 a violation that the process saw by itself
 *   Q time                                           a regular end */
#ifndef CHAOS_MEMBER_H
#define CHAOS_MEMBER_H

#include "divvy/divvy.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHAOS_ROOT "/chaos"
#define CHAOS_ROLE "worker"
#define CHAOS_UNIQUE "master"

enum {
    CHAOS_ITEMS = 12,
    CHAOS_LOCKS = 2,
    CHAOS_POLL_MS = 8,
    CHAOS_CALL_MS = 1500,     /* the timeout of calls that wait */
    CHAOS_HOLD_MS = 250,      /* for so long a lock is held at most */
    CHAOS_RELEASE_MS = 150,   /* so long takes the user to stop work on what was revoked, at most */
    CHAOS_HANDOVER_MS = 1000, /* an owner waits for a next owner at most */
    CHAOS_HASTY_MS = 400,     /* one that prepares slowly itself: shorter than some need */
    CHAOS_PREPARE_MS = 700,   /* a user prepares for at most */
    CHAOS_FAST_MS = 100,      /* one that is fast */
    CHAOS_TTL_S = 2,
};

/* How the user of a partitioner prepares for items that are handed over to it. */
typedef enum {
    CHAOS_UNPREPARED,     /* it does not */
    CHAOS_PREPARES_FAST,  /* and says so */
    CHAOS_PREPARES_SLOW,  /* now and then longer than it may */
    CHAOS_PREPARES_NEVER, /* it never says that it is prepared */
} chaos_preparing;

typedef struct {
    divvy_client *client;
    const char *name;
    bool eager, rejoins;
    chaos_preparing preparing;
    atomic_bool stopping;
    atomic_uint shifts; /* how often it was asked to have more or fewer items: SIGUSR1 */
} chaos_member;

/* ---- member.c ---- */

int64_t chaos_now_ms(void);
void chaos_sleep_ms(int ms);
__attribute__((format(printf, 1, 2))) void chaos_log(const char *format, ...);
/* 0 to below - 1. Thread: any. */
int chaos_random(int below);
/* Writes a line if a waiting call took longer than it was given and a second. */
void chaos_log_call(const char *what, int64_t asked_ms, int64_t timeout_ms, int result);

/* ---- a belief in something that says yes or no ---- */

typedef struct {
    const char *kind, *object;
    bool held;
    int64_t token, last_ms;
} chaos_belief;

/* The session with which `token` is held is what it was before and after the question. */
void chaos_believe(chaos_belief *belief, int64_t session, int64_t token, const char *slots);
/* A yes to a question asked at asked_ms. */
void chaos_confirm(chaos_belief *belief, int64_t asked_ms);
/* A no. */
void chaos_lose(chaos_belief *belief);
/* It is given up right after this call. */
void chaos_give_up(chaos_belief *belief);

/* ---- threads, each until m->stopping ---- */

void *chaos_items_run(void *member);     /* member_items.c */
void *chaos_lock_run(void *member);      /* member_claims.c */
void *chaos_rw_run(void *member);        /* member_claims.c */
void *chaos_semaphore_run(void *member); /* member_claims.c */
void *chaos_election_run(void *member);  /* member_elections.c */
void *chaos_services_run(void *member);  /* member_services.c */
void *chaos_lookup_run(void *member);    /* member_services.c */
void *chaos_party_run(void *member);     /* member_services.c */

#endif
