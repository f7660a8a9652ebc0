/* The stand-in for the command where there is none: it lasts as long as standard input.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_HOLD_H
#define DV_HOLD_H

/* Prints "held TOKEN" or "held TOKEN SLOT" on stdout, as its environment says, and waits until standard input ends.
 * When it gets SIGTERM before that, because the lock's end is near, it prints "lost", and waits on. The holder of our
 * input should end it now, and SIGKILL comes in time. Returns the exit code. For dv_guardian_config. */
int dv_hold(void);

#endif
