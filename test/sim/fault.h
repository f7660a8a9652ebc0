/* A fault in the state at rest: check_liveness.c. SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include <stdbool.h>

typedef struct {
    char what[8];
    char text[320];
} sim_fault;

/* Says what is wrong. Returns false. */
__attribute__((format(printf, 3, 4))) bool sim_wrong(sim_fault *f, const char *what, const char *format, ...);

#endif
