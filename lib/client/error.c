/* Errors: one list, and a message for each thread. SPDX-License-Identifier: Apache-2.0 */
#include "client/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "divvy/divvy.h"

static _Thread_local dv_message outermost;
static _Thread_local dv_message *innermost; /* NULL: the outermost */

static dv_message *current(void) {
    return innermost ? innermost : &outermost;
}

void dv_message_begin(dv_message *frame) {
    frame->outer = innermost;
    frame->client = NULL;
    frame->message[0] = '\0';
    innermost = frame;
}

void dv_message_end(dv_message *frame) {
    assert(innermost == frame);
    innermost = frame->outer;
}

void dv_fail_text(const divvy_client *client, const char *format, ...) {
    dv_message *last = current();
    va_list arguments;
    va_start(arguments, format);
    last->client = client;
    vsnprintf(last->message, sizeof last->message, format, arguments);
    va_end(arguments);
}

const char *divvy_client_error(const divvy_client *client) {
    const dv_message *last = current();
    return last->client == client ? last->message : "";
}

typedef struct {
    int number;
    const char *name, *text;
    bool retryable, fatal;
} kind;

static const kind *find(int error) {
    static const kind success = {.name = "DIVVY_OK", .text = "success"};
    static const kind unknown = {.name = "DIVVY_EUNKNOWN", .text = "unknown error"};
    static const kind kinds[] = {
#define ROW(name, number, text, retryable, fatal) {number, #name, text, retryable, fatal},
        DIVVY_ERRORS(ROW)
#undef ROW
    };
    if (error >= 0) return &success;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].number == error) return &kinds[i];
    }
    return &unknown;
}

const char *divvy_strerror(int error) {
    return find(error)->text;
}

const char *divvy_errname(int error) {
    return find(error)->name;
}

int divvy_error_retryable(int error) {
    return find(error)->retryable;
}

int divvy_error_fatal(int error) {
    return find(error)->fatal;
}

const char *divvy_version(void) {
    return DIVVY_VERSION;
}
