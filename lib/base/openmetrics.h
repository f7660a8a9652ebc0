/* Metrics as a text that Prometheus reads, without memory of its own. SPDX-License-Identifier: Apache-2.0
 *
 * The text is OpenMetrics 1.0, or Prometheus's older format, which node_exporter's textfile collector and `promtool
 * check metrics` read: there HELP and TYPE of a counter name its `_total`. No text satisfies the readers of both.
 * A family is begun, then all of its samples follow, those of one set of labels together. Numbers are integers with a
 * decimal point put in, so the host's locale cannot spoil them. */
#ifndef DV_OPENMETRICS_H
#define DV_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"

typedef enum {
    DV_METRICS_OPENMETRICS, /* application/openmetrics-text; version=1.0.0; charset=utf-8 */
    DV_METRICS_PROMETHEUS,  /* text/plain; version=0.0.4; charset=utf-8 */
} dv_metrics_format;

typedef enum {
    DV_METRIC_GAUGE,
    DV_METRIC_COUNTER,
    DV_METRIC_HISTOGRAM,
} dv_metric_type;

/* One metric. All texts are ours, and static; a unit stands at the end of the name too. */
typedef struct {
    const char *name; /* without `_total` */
    dv_metric_type type;
    const char *unit; /* NULL: none */
    const char *help;
} dv_metric_family;

typedef struct {
    const char *name;  /* ours, and static */
    const char *value; /* any bytes; those that are not UTF-8 are shown as `%` and two hex digits */
} dv_metric_label;

/* The receiver of the text. Returns 0, or an error that ends it. */
typedef int (*dv_metrics_write_fn)(void *user, const char *text, size_t bytes);

typedef struct {
    dv_metrics_format format;
    dv_metrics_write_fn write;
    void *user;
    dv_metric_label common; /* of each sample; `name` NULL: none */
    int error;              /* the first that `write` returned; nothing is written from then on */
    const dv_metric_family *family;
    bool family_shown; /* a family without samples is not shown */
    size_t used;
    char buffer[4096];
} dv_metrics_writer;

void dv_metrics_begin(dv_metrics_writer *writer, dv_metrics_format format, dv_metrics_write_fn write, void *user);
/* Puts the label in front of those of each sample from now on. Its value lives as long as the writer. */
void dv_metrics_label_all(dv_metrics_writer *writer, const dv_metric_label *label);
/* Ends the text and hands out the rest of it. Returns 0, or the first error that `write` returned. */
int dv_metrics_end(dv_metrics_writer *writer);

/* Begins a family, which lives until the next one is begun. */
void dv_metrics_family(dv_metrics_writer *writer, const dv_metric_family *family);
void dv_metrics_put(dv_metrics_writer *writer, const dv_metric_label *labels, size_t label_count, uint64_t value);
/* Writes a sample in seconds, of a gauge or a counter, from microseconds. */
void dv_metrics_put_us(dv_metrics_writer *writer, const dv_metric_label *labels, size_t label_count, uint64_t value_us);
/* Writes a sample of a histogram, in seconds. */
void dv_metrics_put_histogram(dv_metrics_writer *writer, const dv_metric_label *labels, size_t label_count,
                              const dv_histogram *histogram);

#endif
