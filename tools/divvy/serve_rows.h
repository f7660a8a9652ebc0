/* One row of a table of divvy serve's page, as JSON. SPDX-License-Identifier: Apache-2.0
 *
 * Each adds an object to the array, and returns whether there was memory for it. */
#ifndef DV_SERVE_ROWS_H
#define DV_SERVE_ROWS_H

#include "serve.h"
#include "serve_holdups.h"
#include "serve_past.h"
#include "table_json.h"

bool dv_serve_row_item(cJSON *array, const dv_serve_item *item);
/* As far as it is known of the past: the state is that of dv_serve_past_state(). */
bool dv_serve_row_past(cJSON *array, const dv_serve_past_item *item);
bool dv_serve_row_member(cJSON *array, const dv_serve_member *member);
bool dv_serve_row_holdup(cJSON *array, const dv_serve_holdup *holdup);
bool dv_serve_row_event(cJSON *array, const dv_serve_event *event);
bool dv_serve_row_sample(cJSON *array, const dv_serve_sample *sample);
bool dv_serve_row_lock(cJSON *array, const dv_lock_entry *entry);
bool dv_serve_row_service(cJSON *array, const dv_services *services, const dv_entry *entry);

#endif
