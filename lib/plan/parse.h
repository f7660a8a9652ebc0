/* Shared by the parsers of the root and of its parts. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PLAN_PARSE_H
#define DV_PLAN_PARSE_H

#include "plan/json.h"
#include "plan/text.h"

/* The reader's error; the fault is filled if there is one. */
int dv_plan_fault_tell(const dv_plan_json *j, dv_plan_fault *fault);
/* A string of so many hex digits; 0: as few as it takes. */
uint64_t dv_plan_take_hex(dv_plan_json *j, size_t digits);
int64_t dv_plan_take_zxid(dv_plan_json *j);

#endif
