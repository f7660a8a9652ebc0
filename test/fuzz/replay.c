/* Runs a fuzz target on a corpus, without clang: each file, and each of its beginnings. SPDX-License-Identifier:
 * Apache-2.0
 */
#include <dirent.h>
#include <errno.h>

#include "fuzz.h"

enum { BEGINNINGS_MAX = 2048 };

static size_t file_count, run_count;

static void run(const char *path, const uint8_t *data, size_t bytes) {
    (void)path;
    uint8_t *copy = (uint8_t *)fuzz_copy(data, bytes);
    LLVMFuzzerTestOneInput(copy, bytes);
    free(copy);
    run_count++;
}

static void replay_file(const char *path, bool beginnings) {
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(1 << 20);
    if (!file || !data) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        exit(2);
    }
    size_t bytes = fread(data, 1, 1 << 20, file);
    fclose(file);
    fprintf(stderr, "replay: %s\n", path); /* the last one that is told is the one that failed */
    file_count++;
    run(path, data, bytes);
    for (size_t i = 0; beginnings && i < bytes && i < BEGINNINGS_MAX; i++) run(path, data, i);
    free(data);
}

int main(int argc, char **argv) {
    bool beginnings = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--whole") == 0) {
            beginnings = false;
            continue;
        }
        DIR *folder = opendir(argv[i]);
        if (!folder) {
            replay_file(argv[i], beginnings);
            continue;
        }
        for (struct dirent *entry; (entry = readdir(folder));) {
            char path[4096];
            if (entry->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            replay_file(path, beginnings);
        }
        closedir(folder);
    }
    printf("replay: %zu files, %zu inputs\n", file_count, run_count);
    return file_count > 0 ? 0 : 2; /* an empty corpus shows nothing */
}
