/* Messages of the command. SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <divvy/divvy.h>

#include "log.h"

enum { MESSAGE_BYTES = 4096 };

/* `level` 0: a warning where the message says so, else an error. */
__attribute__((format(printf, 3, 0))) static void say(int level, const char *hint, const char *format,
                                                      va_list arguments) {
    static const char warning[] = "warning: ";
    char message[MESSAGE_BYTES];
    vsnprintf(message, sizeof message, format, arguments);
    if (!level) level = strncmp(message, warning, sizeof warning - 1) == 0 ? DIVVY_LOG_WARN : DIVVY_LOG_ERROR;
    dv_log_write(level, message, hint, NULL, NULL);
}

void dv_command_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(0, "", format, arguments);
    va_end(arguments);
}

void dv_command_tell(int level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(level, "", format, arguments);
    va_end(arguments);
}

void dv_command_warn(int code, const char *message) {
    char *text = NULL;
    if (asprintf(&text, "warning: %s", message) < 0) text = NULL;
    dv_log_write(DIVVY_LOG_WARN, text ? text : message, "", "warning", divvy_warning_name(code));
    free(text);
}

void dv_command_log(int level, const char *message) {
    static const char *const names[] = {"", "error", "warn", "info", "debug"};
    char *text = NULL;
    if (level < DIVVY_LOG_ERROR || level > DIVVY_LOG_DEBUG) level = DIVVY_LOG_DEBUG;
    bool plain = !dv_log_has_fields();
    if (plain && asprintf(&text, "log %s: %s", names[level], message) < 0) text = NULL;
    dv_log_write(level, text ? text : message, "", "from", "library");
    free(text);
}

int dv_command_misused(const char *command, const char *format, ...) {
    char hint[64];
    snprintf(hint, sizeof hint, " (see: divvy help%s%s)", command ? " " : "", command ? command : "");
    va_list arguments;
    va_start(arguments, format);
    say(DIVVY_LOG_ERROR, hint, format, arguments);
    va_end(arguments);
    return DV_EXIT_USAGE;
}

int dv_command_failed(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(DIVVY_LOG_ERROR, "", format, arguments);
    va_end(arguments);
    return DV_EXIT_FAILED;
}

int dv_command_out_of_memory(void) {
    return dv_command_failed("out of memory");
}

int dv_command_printed(void) {
    /* A reader that has seen enough, as in `divvy help | head`, is no failure. */
    if (fflush(stdout) == 0 || errno == EPIPE) return DV_EXIT_DONE;
    return dv_command_failed("cannot write to standard output: %s", strerror(errno));
}

int dv_command_print(char *text) {
    if (!text) return dv_command_out_of_memory();
    fputs(text, stdout);
    free(text);
    return dv_command_printed();
}

bool dv_command_has_terminal(void) {
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) close(fd);
    return fd >= 0;
}
