/* The options and needs that operators have set, listed. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_OPERATOR_LIST_H
#define DV_OPERATOR_LIST_H

#include "operator.h"

/* Prints the pool's options, or its needs where `needs`, with who set them, when and why. Returns the exit code. */
int dv_operator_list(const char *command, bool needs, const dv_operator_options *options);

#endif
