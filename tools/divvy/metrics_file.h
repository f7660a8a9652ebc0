/* The file of --metrics: the metrics of a client, for node_exporter's textfile collector. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef DV_METRICS_FILE_H
#define DV_METRICS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <divvy/divvy.h>

/* All fields but `path` begin as 0. */
typedef struct {
    const char *path; /* NULL: no metrics are written, and the calls below do nothing */
    int64_t due_ms, interval_ms;
    bool failed; /* the last write; told */
} dv_metrics_file;

/* Tries to write next to the file. Returns 0, or the exit code when the reason was told. */
int dv_metrics_file_check(const char *path, const char *command);

/* Replaces the file if that is due by `now_ms`: at once, then a second later, then ever less often, every 10 seconds in
 * the end. A failure is told once, and tried again. */
void dv_metrics_file_step(dv_metrics_file *file, divvy_client *client, int64_t now_ms);

/* Returns how long it takes until it is due, for poll(2); -1: never. */
int64_t dv_metrics_file_until_ms(const dv_metrics_file *file, int64_t now_ms);

/* Replaces the file for the last time. */
void dv_metrics_file_end(dv_metrics_file *file, divvy_client *client);

#endif
