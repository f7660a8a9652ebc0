/* Reads which mutant this process has, and where it notes those that it reaches. SPDX-License-Identifier: Apache-2.0 */
#include "mutant.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

unsigned dv_mutant;
unsigned char *dv_mutant_reached;

/* Maps the file, so that the notes outlive a process that crashes, and those of child processes are kept too. */
static void map(const char *path) {
    struct stat status;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) {
        perror(path);
        abort();
    }
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED) abort();
    dv_mutant_reached = bytes;
}

__attribute__((constructor)) static void begin(void) {
    const char *number = getenv("DIVVY_MUTANT"), *path = getenv("DIVVY_MUTANT_MAP");
    if (number) dv_mutant = (unsigned)strtoul(number, NULL, 10);
    if (path) map(path);
}
