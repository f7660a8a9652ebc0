/* Whole pools as metrics for Prometheus. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SERVE_METRICS_H
#define DV_SERVE_METRICS_H

#include "base/openmetrics.h"
#include "serve.h"

/* Returns the text, malloc'ed, or NULL when an allocation fails. With the lock of dv_serve held. */
char *dv_serve_metrics(const dv_serve *serve, dv_metrics_format format);

#endif
