/* Telling the runner something, from wherever one is. SPDX-License-Identifier: Apache-2.0
 *
 * All of this is async-signal-safe. */
#include <errno.h>
#include <unistd.h>

#include "workers/workers.h"

void dv_workers_wake(const divvy_workers *w) {
    uint64_t one = 1;
    ssize_t written = write(w->wake_fd, &one, sizeof one); /* It fails where the runner is awake for sure. */
    (void)written;
}

int divvy_workers_stop(divvy_workers *w) {
    if (!w) return DIVVY_EINVAL;
    if (w->pid != getpid()) return DIVVY_EFORK;
    int error = errno;
    atomic_fetch_add(&w->asked, 1);
    dv_workers_wake(w);
    errno = error;
    return 0;
}
