/* Signals and the limit of open files, as they were when we were started. SPDX-License-Identifier: Apache-2.0 */
#include "dispositions.h"

#include <stddef.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

static sigset_t mask, ignored;
static struct rlimit files; /* where opens_more */
static bool opens_more;

void dv_dispositions_remember(void) {
    sigemptyset(&mask);
    sigemptyset(&ignored);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number <= SIGRTMAX; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN) sigaddset(&ignored, number);
    }
}

bool dv_dispositions_ignored(int number) {
    return sigismember(&ignored, number) == 1;
}

int dv_dispositions_receive(const sigset_t *signals) {
    return sigprocmask(SIG_BLOCK, signals, NULL) == 0 ? signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
}

int dv_dispositions_receive_ends(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    return dv_dispositions_receive(&signals);
}

void dv_dispositions_open_more(void) {
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    struct rlimit most = {.rlim_cur = files.rlim_max, .rlim_max = files.rlim_max};
    opens_more = setrlimit(RLIMIT_NOFILE, &most) == 0;
}

void dv_dispositions_restore_files(pid_t process) {
    if (opens_more) prlimit(process, RLIMIT_NOFILE, &files, NULL);
}

void dv_dispositions_restore(void) {
    dv_dispositions_restore_files(0);
    for (int number = 1; number <= SIGRTMAX; number++) {
        /* Those that cannot be set, SIGKILL and such, need not be. */
        struct sigaction action = {.sa_handler = dv_dispositions_ignored(number) ? SIG_IGN : SIG_DFL};
        sigemptyset(&action.sa_mask);
        sigaction(number, &action, NULL);
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);
}
