/**
 * @file metrics.h
 * Metrics: what a client and all objects on it have done, and have now, as a text for Prometheus and its kind.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Names begin with `divvy_`, have their unit at the end, and counters `_total` behind that. The labels are few: `pool`
 * is a pool's path from the root of ZooKeeper; `recipe` is lock, read_lock, write_lock, semaphore or election. `state`,
 * `reason`, `kind` and `budget` have a handful of values each. No label grows with the items, the locks or the members.
 *
 *  - Session: its state, the time left, sessions lost, connections, requests and operations, round trips (histogram),
 *    watches, ephemeral nodes, and the budgets with their limits.
 *  - Each pool: state; items owned, leaving, revoked, waiting, preparing; rebalances by reason, and how long they took;
 *    how long items were waited for, and had no owner; number and age of the plan. Partitioners of one path on one
 *    client are shown together.
 *  - Locks and semaphores, by recipe: how many wait and are held, failures, losses, waits and holds. All of one recipe
 *    are shown together, whatever their paths, since a program may make a lock for each of a million paths.
 *  - Registries, all of them together: services announced, entries in live views, entries that were skipped.
 *
 * A program with several clients gives each a page of its own, since their samples have the same names and labels.
 *
 * docs/operations.md says what each metric means. Counters begin with the client, those of a pool with its partitioner.
 * Metrics of locks, semaphores and registries appear when the client's first one is made.
 */
#ifndef DIVVY_METRICS_H
#define DIVVY_METRICS_H

#include <stddef.h>

#include "divvy/client.h"

DIVVY_EXTERN_C_BEGIN

/**
 * Writes all metrics of a client as OpenMetrics 1.0: `application/openmetrics-text; version=1.0.0; charset=utf-8`.
 *
 * First copies the metrics, then calls `write` with one part of the text after the other, the last ending in `# EOF`.
 * divvy holds none of its locks while `write` runs, so it may take its time, and may call divvy. Sends nothing. Costs
 * some 25 microseconds, and 4 more for each thousand items.
 *
 * Ownership: `text` is good during the call of `write`, and has no NUL at its end. `user` is handed to it.
 * Thread: any, callbacks too. `write` runs in the calling thread, inside this call.
 * Source: https://openmetrics.io, version 1.0.
 *
 * @param write gets up to 4096 bytes; returns 0, or any other number to end the text there
 * @return 0, or
 *   DIVVY_EINVAL  client or write is NULL
 *   DIVVY_ENOMEM  allocation failed; nothing was written
 *   DIVVY_EFORK   called in the child of a fork
 *   another number, as `write` returned it
 */
DIVVY_API int divvy_metrics_write(divvy_client *client, int (*write)(void *user, const char *text, size_t bytes),
                                  void *user);

/**
 * Writes the same metrics in the older text format of Prometheus: `text/plain; version=0.0.4; charset=utf-8`. The
 * textfile collector of node_exporter and `promtool check metrics` read this one. The two differ only in the lines on
 * each family, where OpenMetrics names a counter without `_total`; names, labels and values of the samples are equal.
 *
 * Ownership, thread, parameters and results: as divvy_metrics_write().
 */
DIVVY_API int divvy_metrics_write_prometheus(divvy_client *client,
                                             int (*write)(void *user, const char *text, size_t bytes), void *user);

DIVVY_EXTERN_C_END

#endif
