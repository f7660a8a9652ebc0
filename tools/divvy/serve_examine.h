/* The answers to what a page asks of ZooKeeper beyond what is followed. SPDX-License-Identifier: Apache-2.0
 *
 * All of it happens on the desk's thread (serve_desk.h), by sessions of its own. */
#ifndef DV_SERVE_EXAMINE_H
#define DV_SERVE_EXAMINE_H

#include <stddef.h>
#include <stdint.h>

struct dv_serve;

typedef enum { DV_SERVE_FINDINGS, DV_SERVE_EXPLAIN, DV_SERVE_CHANGES } dv_serve_subject;

typedef struct {
    dv_serve_subject subject;
    size_t pool;
    const char *item; /* to explain; NULL for the other subjects */
} dv_serve_question;

typedef struct {
    unsigned status;  /* of HTTP */
    char *text;       /* JSON where `status` is 200, else one line that says why; malloc'ed. NULL: no memory */
    int64_t fresh_ms; /* for so long it may be told again */
} dv_serve_answer;

typedef struct dv_serve_examiner dv_serve_examiner;

/* `stop_fd` is readable once the desk is to end; what is under way ends then. `serve` outlives the examiner. Returns
 * NULL when an allocation fails. */
dv_serve_examiner *dv_serve_examiner_new(struct dv_serve *serve, int stop_fd);
/* NULL is allowed. */
void dv_serve_examiner_free(dv_serve_examiner *examiner);

/* Asks ZooKeeper, for some seconds at the most. */
dv_serve_answer dv_serve_examine(dv_serve_examiner *examiner, const dv_serve_question *question);
/* Lets time pass until `wake_fd` or stop_fd is readable. The session is kept for a while, and then ended. */
void dv_serve_examiner_rest(dv_serve_examiner *examiner, int wake_fd);

#endif
