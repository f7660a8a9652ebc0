/* Messages of the command. SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

enum { MESSAGE_BYTES = 4096 };

__attribute__((format(printf, 2, 0))) static void say(const char *hint, const char *format, va_list arguments) {
    char message[MESSAGE_BYTES];
    vsnprintf(message, sizeof message, format, arguments);
    char *shown = dv_text_readable(message);
    char *line = NULL;
    int bytes = asprintf(&line, "divvy: %s%s\n", shown ? shown : message, hint);
    /* When stderr takes nothing, there is nobody left to tell. */
    if (bytes > 0 && write(STDERR_FILENO, line, (size_t)bytes) < 0) errno = 0;
    if (bytes > 0) free(line);
    free(shown);
}

void dv_command_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
}

int dv_command_misused(const char *command, const char *format, ...) {
    char hint[64];
    snprintf(hint, sizeof hint, " (see: divvy help%s%s)", command ? " " : "", command ? command : "");
    va_list arguments;
    va_start(arguments, format);
    say(hint, format, arguments);
    va_end(arguments);
    return DV_EXIT_USAGE;
}

int dv_command_printed(void) {
    /* A reader that has seen enough, as in `divvy help | head`, is no failure. */
    if (fflush(stdout) == 0 || errno == EPIPE) return DV_EXIT_DONE;
    dv_command_say("cannot write to standard output: %s", strerror(errno));
    return DV_EXIT_FAILED;
}

int dv_command_print(char *text) {
    if (!text) {
        dv_command_say("out of memory");
        return DV_EXIT_FAILED;
    }
    fputs(text, stdout);
    free(text);
    return dv_command_printed();
}
