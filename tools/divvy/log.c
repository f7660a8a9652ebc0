/* The log: what goes to standard error. SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <divvy/divvy.h>

#include "command.h"
#include "nearest.h"
#include "text.h"

enum { FIELDS_MAX = 4 };

typedef struct {
    const char *name;
    int value;
} word;

static const word levels[] = {{"error", DIVVY_LOG_ERROR},
                              {"warn", DIVVY_LOG_WARN},
                              {"info", DIVVY_LOG_INFO},
                              {"debug", DIVVY_LOG_DEBUG},
                              {NULL, 0}};
static const word formats[] = {{"text", false}, {"logfmt", true}, {NULL, 0}};

/* One for the process, as standard error is. */
static struct {
    int level; /* the last one that is wanted */
    bool has_fields, is_journal;
    const char *keys[FIELDS_MAX], *values[FIELDS_MAX];
    size_t count;
} the_log = {.level = DIVVY_LOG_INFO};

static _Thread_local const char *about; /* a member; NULL: no one in particular */

/* ---- what is wanted ---- */

/* Sets *value where the environment has a word of the list. Returns 0, or -1 when it was told that it has another. */
static int read_word(const char *variable, const word *words, int *value) {
    const char *given = getenv(variable);
    if (!given || !*given) return 0;
    dv_nearest nearest = dv_nearest_to(given, strlen(given));
    char known[64] = "";
    for (const word *w = words; w->name; w++) {
        if (strcmp(w->name, given) == 0) {
            *value = w->value;
            return 0;
        }
        dv_nearest_try(&nearest, w->name);
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", w->name);
    }
    dv_command_misused(NULL, "%s: \"%.100s\" is not one of %s%s", variable, given, known,
                       dv_nearest_question(&nearest, ""));
    return -1;
}

/* systemd says by JOURNAL_STREAM which stream the journal reads. What is redirected since then is another. */
static bool is_journal(void) {
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat status;
    char ours[64];
    if (!stream || fstat(STDERR_FILENO, &status) != 0) return false;
    snprintf(ours, sizeof ours, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    return strcmp(stream, ours) == 0;
}

int dv_log_open(void) {
    the_log.is_journal = is_journal();
    int fields = the_log.is_journal;
    int error = read_word("DIVVY_LOG_FORMAT", formats, &fields);
    the_log.has_fields = fields;
    return error ? error : read_word("DIVVY_LOG", levels, &the_log.level);
}

void dv_log_field(const char *key, const char *value) {
    if (the_log.count == FIELDS_MAX) return;
    the_log.keys[the_log.count] = key;
    the_log.values[the_log.count++] = value;
}

void dv_log_about(const char *member) {
    about = member;
}

bool dv_log_takes(int level) {
    return level <= the_log.level;
}

void dv_log_all(void) {
    the_log.level = DIVVY_LOG_DEBUG;
}

bool dv_log_has_fields(void) {
    return the_log.has_fields;
}

/* ---- lines ---- */

static const char *level_name(int level) {
    const word *w = levels;
    while (w->name && w->value != level) w++;
    return w->name ? w->name : "error";
}

/* Returns the priority that syslog(3) has for the level. */
static int priority(int level) {
    static const int priorities[] = {
        [DIVVY_LOG_ERROR] = 3, [DIVVY_LOG_WARN] = 4, [DIVVY_LOG_INFO] = 6, [DIVVY_LOG_DEBUG] = 7};
    return priorities[level];
}

static void put_time(FILE *to) {
    struct timespec now;
    struct tm utc;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &utc));
    fprintf(to, "time=%s.%03ldZ ", text, now.tv_nsec / 1000000);
}

/* The journal has the time of each line itself. */
static void put_priority(FILE *to, int level) {
    if (the_log.is_journal) fprintf(to, "<%d>", priority(level));
}

void dv_log_put(FILE *to, const char *key, const char *value) {
    char *readable = dv_text_readable(value);
    const char *text = readable ? readable : "?";
    bool quoted = !*text || strpbrk(text, " \"=\\");
    fprintf(to, " %s=%s", key, quoted ? "\"" : "");
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') fputc('\\', to);
        fputc(*c, to);
    }
    if (quoted) fputc('"', to);
    free(readable);
}

void dv_log_begin(FILE *to, int level) {
    put_priority(to, level);
    if (!the_log.is_journal) put_time(to);
    fprintf(to, "level=%s", level_name(level));
    for (size_t i = 0; i < the_log.count; i++) dv_log_put(to, the_log.keys[i], the_log.values[i]);
    if (about) dv_log_put(to, "member", about);
}

static void put_text(FILE *to, int level, const char *message, const char *hint) {
    char *readable = dv_text_readable(message), *who = about ? dv_text_readable(about) : NULL;
    put_priority(to, level);
    fprintf(to, "divvy: %s%s%s%s", who ? who : "", who ? ": " : "", readable ? readable : message, hint);
    free(readable);
    free(who);
}

static void put_fields(FILE *to, int level, const char *message, const char *hint, const char *key, const char *value) {
    static const char warning[] = "warning: "; /* The level says so. */
    char *whole = NULL;
    if (strncmp(message, warning, sizeof warning - 1) == 0) message += sizeof warning - 1;
    dv_log_begin(to, level);
    if (key) dv_log_put(to, key, value);
    if (asprintf(&whole, "%s%s", message, hint) < 0) whole = NULL;
    dv_log_put(to, "msg", whole ? whole : message);
    free(whole);
}

void dv_log_write(int level, const char *message, const char *hint, const char *key, const char *value) {
    char *line = NULL;
    size_t bytes = 0;
    if (!dv_log_takes(level)) return;
    FILE *to = open_memstream(&line, &bytes);
    if (to && the_log.has_fields) put_fields(to, level, message, hint, key, value);
    else if (to) put_text(to, level, message, hint);
    if (to) fputc('\n', to);
    bool whole = to && fclose(to) == 0;
    /* Without memory the message alone. When stderr takes nothing, there is nobody left to tell. */
    if ((whole ? write(STDERR_FILENO, line, bytes) : dprintf(STDERR_FILENO, "divvy: %s%s\n", message, hint)) < 0)
        errno = 0;
    free(line);
}
