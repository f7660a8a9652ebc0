/* Metrics: the figures of a client as a text, for the command. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_METRICS_H
#define DV_METRICS_H

#include "base/openmetrics.h"
#include "divvy/metrics.h"

/* Writes as divvy_metrics_write() does, in either format; `common` stands on each sample. NULL: none does. */
int dv_client_write_metrics(divvy_client *client, dv_metrics_format format, const dv_metric_label *common,
                            dv_metrics_write_fn write, void *user);

#endif
