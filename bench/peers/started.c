/* A command for `divvy lock` and `divvy elect` that tells when it has started. SPDX-License-Identifier: Apache-2.0
 *
 * usage: bench_started
 *
 * Prints the monotonic clock in seconds and `+`, as bench/timeline_member.c does, and works until a signal ends it. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%.6f +\n", (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
    fflush(stdout);
    for (;;) pause();
}
