/* Time for tests: to wait for a condition, and to give up. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_WAIT_H
#define DV_TEST_WAIT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* CLOCK_MONOTONIC in milliseconds. */
static inline int64_t dv_test_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline void dv_test_sleep_ms(int ms) {
    struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}

/* Evaluates `condition` each millisecond until it holds, or until timeout_ms have passed; says whether it held. It is
 * evaluated once more after the deadline, so that a test process which did not get to run in time does not fail. */
#define DV_WAIT(condition, timeout_ms)                                     \
    (__extension__({                                                       \
        int64_t dv_wait_deadline_ms_ = dv_test_now_ms() + (timeout_ms);    \
        bool dv_wait_held_ = false;                                        \
        for (;;) {                                                         \
            bool dv_wait_last_ = dv_test_now_ms() >= dv_wait_deadline_ms_; \
            dv_wait_held_ = (condition);                                   \
            if (dv_wait_held_ || dv_wait_last_) break;                     \
            dv_test_sleep_ms(1);                                           \
        }                                                                  \
        dv_wait_held_;                                                     \
    }))

/* Ends the test program with a message: for a fixture that cannot do its work, from whatever thread. The servers go
 * too, by their watchdog. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void dv_test_die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("fixture: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

#endif
