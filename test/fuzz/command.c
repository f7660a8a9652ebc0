/* Fuzzes the command line, and the files that it names. SPDX-License-Identifier: Apache-2.0
 *
 * An input is a line for each word, the first a digit that says which subcommand; behind an empty line stands what is
 * in every file that is opened: fopen() is ours here (--wrap), so that nothing outside is looked at. */
#include <unistd.h>

#include "base/utf8.h"
#include "divvy/announce_options.h"
#include "divvy/duration.h"
#include "divvy/item_list.h"
#include "divvy/lock_options.h"
#include "divvy/partition_options.h"
#include "divvy/text.h"
#include "fuzz.h"
#include "recipe/record.h"

enum { WORDS_MAX = 40 };

static const uint8_t *file_bytes;
static size_t file_count;

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode) {
    if (!file_bytes) return __real_fopen(path, mode);
    return file_count ? fmemopen((void *)(uintptr_t)file_bytes, file_count, "r") : NULL;
}

static void check_texts(const char *word) {
    int64_t ms;
    if (dv_duration_parse(word, &ms) == 0) FUZZ_CHECK(ms >= 0 && ms <= DV_DURATION_MAX_MS);
    char *plain = dv_text_plain(word), *readable = dv_text_readable(word),
         *line = plain ? dv_text_json_line(plain) : NULL;
    if (!plain || !readable || !line) abort();
    FUZZ_CHECK(dv_is_utf8(plain) && dv_is_utf8(readable));
    for (const char *at = readable; *at; at++) FUZZ_CHECK((unsigned char)*at >= 0x20 && *at != 0x7f);
    FUZZ_CHECK(dv_is_utf8(line) && line[strlen(line) - 1] == '\n');
    for (const char *const *unseen = (const char *const[]){"\u200b", "\u202e", "\u2066", "\ufeff", NULL}; *unseen;
         unseen++)
        FUZZ_CHECK(!strstr(readable, *unseen) && !strstr(line, *unseen));
    free(plain);
    free(readable);
    free(line);
}

static void check_list(const dv_item_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        FUZZ_CHECK(*list->names[i]);
        if (i > 0) FUZZ_CHECK(strcmp(list->names[i - 1], list->names[i]) < 0);
    }
}

static void parse(uint8_t which, int argc, char **argv) {
    if (which % 3 == 0) {
        dv_lock_options lock;
        if (dv_lock_options_parse(&lock, argc, argv) == 0) FUZZ_CHECK(lock.path && *lock.path == '/');
        dv_lock_options_free(&lock);
    } else if (which % 3 == 1) {
        dv_partition_options partition;
        if (dv_partition_options_parse(&partition, argc, argv) == 0) {
            FUZZ_CHECK(partition.path && partition.list.count > 0);
            check_list(&partition.list);
        }
        dv_partition_options_free(&partition);
    } else {
        dv_announce_options announce;
        if (dv_announce_options_parse(&announce, argc, argv) == 0)
            FUZZ_CHECK(announce.role && announce.port >= 0 && announce.port <= 65535);
        dv_announce_options_free(&announce);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static bool ready;
    /* "-" is standard input; help would be all that is seen. Messages go to standard error, which libFuzzer can
     * close. */
    if (!ready) ready = freopen("/dev/null", "r", stdin) && freopen("/dev/null", "w", stdout);
    fuzz_input in = fuzz_begin(data, bytes);
    uint8_t which = fuzz_byte(&in);
    char name[] = "command";
    char *argv[WORDS_MAX + 2] = {name}, *kept[WORDS_MAX];
    int argc = 1;
    while (in.at < in.end && *in.at != '\n' && argc <= WORDS_MAX) {
        kept[argc - 1] = argv[argc] = fuzz_text(&in, '\n');
        check_texts(argv[argc++]);
    }
    (void)fuzz_byte(&in);
    file_bytes = in.at;
    file_count = (size_t)(in.end - in.at);
    int words = argc - 1;
    parse(which, argc, argv);
    file_bytes = NULL;
    for (int i = 0; i < words; i++) free(kept[i]);
    return 0;
}
