/* Work on a thread of its own that ends in one event. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_JOB_H
#define DV_JOB_H

#include <pthread.h>
#include <stdbool.h>

#include "znode/znode.h"

/* The head of a job. Its functions are the maker's. */
typedef struct dv_job {
    dv_event event;
    void (*work)(struct dv_job *job);              /* on the job's thread */
    void (*done)(struct dv_job *job, int64_t now); /* in the loop, after that; not where the job was dropped */
    void (*free)(struct dv_job *job);
    dv_sink sink;
    pthread_mutex_t mutex; /* guards `dropped`, and so the sink: nothing is posted to a client that went */
    pthread_cond_t dropping;
    bool dropped;
} dv_job;

/* Starts a job whose functions and sink are set. Returns false, and frees it, when no thread could be had. The thread
 * is detached: a server that does not answer must not hold up divvy_client_close(). */
bool dv_job_start(dv_job *job);
/* Waits, as a part of the work, until the time has passed or the job is dropped. Returns false then. */
bool dv_job_sleep(dv_job *job, int ms);
/* Gives the job up, with the client lock held. Its memory goes when its thread has ended. */
void dv_job_drop(dv_job *job);

#endif
