/* Asking a pool for something, on a look: the errand of a command. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ASKING_H
#define DV_ASKING_H

#include "look.h"
#include "pool/errand.h"

/* Carries out what is asked of the pool at `path`, within the look's time. Returns 0 with *out, to be dropped before
 * the look is closed; or the exit code when it was told on stderr what is wrong. */
int dv_asking_run(dv_errand **out, dv_look *look, const dv_look_options *options, const char *path, const dv_ask *ask);
/* NULL: does nothing. */
void dv_asking_drop(dv_errand *errand, const dv_look *look);

#endif
