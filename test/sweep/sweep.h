/* Sweeps: a scenario run again and again, each time with another thing going wrong. SPDX-License-Identifier: Apache-2.0
 *
 * A scenario is a short life of a recipe on the in-memory ensemble, in virtual time, the same each time. The first run
 * counts what can fail: allocations of the library, or requests that it sends. Then it is run once for each of them, in
 * each way. A scenario must come to its end whatever fails: a call may say so (SWEEP_DO tries it again), or recover.
 * Each call ends with an error that its header has, within its time, and there are never two owners: `check` looks at
 * each transaction. sweep_run() then looks whether anything is left: memory, nodes, room in budgets, listeners, timers.
 *
 * Answers are the codes of docs/protocol.md, B10, that are neither final nor say why a request cannot be done, and some
 * that nobody knows. A quota refuses only what grows. */
#ifndef DV_SWEEP_H
#define DV_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "client/client.h"
#include "divvy/divvy.h"
#include "divvy/testing.h"

/* In which way a thing fails. */
typedef enum {
    SWEEP_CLEAN,
    /* allocations */
    SWEEP_ONCE,  /* one is refused */
    SWEEP_BURST, /* that and those behind it, for a while */
    /* requests */
    SWEEP_UNSENT,       /* the connection breaks before it is sent; what was sent before is applied, unanswered */
    SWEEP_NOT_APPLIED,  /* the connection breaks, and it never reaches the server */
    SWEEP_APPLIED,      /* it is applied, and all that was not answered yet stays so */
    SWEEP_APPLIED_LATE, /* the same, but it is applied only some time after the reconnect */
    SWEEP_REPLY_LOST,   /* those before it are answered, its own answer is lost */
    SWEEP_REPLY_UNREAD, /* its answer comes, and there is no memory to copy it */
    SWEEP_REFUSED,      /* there is no memory to send it */
    /* answers: a server answers by a code that is no ordinary one */
    SWEEP_ANSWERED,        /* it is not carried out */
    SWEEP_ANSWERED_OFTEN,  /* that and those behind it of its client, four in all */
    SWEEP_ANSWERED_THOUGH, /* it is carried out; codes that leave it open */
    SWEEP_WAYS
} sweep_way;

enum { SWEEP_CLIENTS = 4, SWEEP_TIMEOUT_MS = 4000, SWEEP_WAIT_MS = 60000 };

typedef struct sweep {
    sweep_way way;
    size_t at; /* which fails; from 1 */
    int code;  /* of the answer */
    divvy_testing_ensemble *ensemble;
    divvy_client *clients[SWEEP_CLIENTS];
    size_t requests; /* sent so far, while armed */
    size_t failures; /* made so far */
    bool armed;
    int64_t burst_began; /* 0: not yet */
    /* Invariants that a scenario wants looked at on each transaction. */
    void (*check)(struct sweep *s, void *user);
    void *user;
    /* Paths below which nothing ephemeral, and no child, may be left when all has been given back. */
    const char *empty_paths[8];
} sweep;

typedef struct {
    const char *group, *name;
    void (*run)(sweep *s);
    bool no_ensemble; /* pure functions, or the native client */
} sweep_scenario;

extern const sweep_scenario sweep_scenarios[];

/* A violation: says what was being done, and ends the run. */
_Noreturn void sweep_fail(sweep *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define SWEEP_CHECK(s, what)                                                               \
    do {                                                                                   \
        if (!(what)) sweep_fail((s), "%s:%d: not so: %s", __FILE_NAME__, __LINE__, #what); \
    } while (0)

/* Returns whether this run is to go wrong in such a way, to show that it would be noticed (--self-check). */
bool sweep_is_spoilt(const sweep *s, const char *how);

/* ---- world.c ---- */
/* Opens and connects the n-th client. Nothing fails in that. */
divvy_client *sweep_open(sweep *s, int n);
/* From now on things fail. */
void sweep_begin(sweep *s);
/* Lets time go on. */
void sweep_pass(sweep *s, int64_t ms);
/* Until it is so: `bound_ms` of virtual time at most, else that is a hang. */
void sweep_until(sweep *s, bool (*met)(sweep *s, void *user), void *user, int64_t bound_ms, const char *what);
/* Returns whether a call may end so: because of what was made to fail. */
bool sweep_excuses(const sweep *s, int error);
size_t sweep_children(sweep *s, const char *path);
/* Closes all clients, after a look whether everything was given back. */
void sweep_end(sweep *s);

/* The call ends with `wanted`; one that failed for what we made fail is made again. */
#define SWEEP_DO_AS(s, wanted, call)                                                                                 \
    do {                                                                                                             \
        int sweep_error = (call);                                                                                    \
        for (int sweep_i = 0; sweep_i < 60 && sweep_error != (wanted) && sweep_excuses((s), sweep_error); sweep_i++) \
            sweep_error = (call);                                                                                    \
        if (sweep_error != (wanted))                                                                                 \
            sweep_fail((s), "%s:%d: %s: %s", __FILE_NAME__, __LINE__, #call, divvy_errname(sweep_error));            \
    } while (0)
#define SWEEP_DO(s, call) SWEEP_DO_AS(s, 0, call)

/* ---- seam.c ---- */
/* Stands between a client and its backend from now on. */
void sweep_seam_put(sweep *s, divvy_client *client);

#endif
