/*
 * A wall clock that jumps. SPDX-License-Identifier: Apache-2.0
 *
 * Loaded before the C library, it adds the int64_t in the file DIVVY_TEST_WALL_CLOCK, in seconds, to the wall clock of
 * its process, and to no other clock. The file is mapped, so a change counts at once. Not libfaketime: where that
 * leaves monotonic clocks alone, each timed wait on a condition ends at once, and Python's sleep fails with EINVAL.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_s;

__attribute__((constructor)) static void map_offset(void) {
    const char *name = getenv("DIVVY_TEST_WALL_CLOCK");
    int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) abort(); /* Without it nothing would jump, and nobody would know. */
    void *map = mmap(NULL, sizeof *offset_s, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) abort();
    offset_s = map;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (result == 0 && offset_s && is_wall) now->tv_sec += *offset_s;
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &exact);
    *now = (struct timeval){exact.tv_sec, exact.tv_nsec / 1000};
    return result;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
