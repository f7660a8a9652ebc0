/* Errors: one list, and a message for each thread. SPDX-License-Identifier: Apache-2.0 */
#include "client/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

const char *divvy_strerror(int error) {
    if (error >= 0) return "success";
    switch (error) {
#define TEXT_CASE(name, number, text, retryable, fatal) \
    case name: return text;
        DIVVY_ERRORS(TEXT_CASE)
#undef TEXT_CASE
    default: return "unknown error";
    }
}

const char *divvy_errname(int error) {
    if (error >= 0) return "DIVVY_OK";
    switch (error) {
#define NAME_CASE(name, number, text, retryable, fatal) \
    case name: return #name;
        DIVVY_ERRORS(NAME_CASE)
#undef NAME_CASE
    default: return "DIVVY_EUNKNOWN";
    }
}

int divvy_error_retryable(int error) {
    switch (error) {
#define RETRYABLE_CASE(name, number, text, retryable, fatal) \
    case name: return retryable;
        DIVVY_ERRORS(RETRYABLE_CASE)
#undef RETRYABLE_CASE
    default: return 0;
    }
}

int divvy_error_fatal(int error) {
    switch (error) {
#define FATAL_CASE(name, number, text, retryable, fatal) \
    case name: return fatal;
        DIVVY_ERRORS(FATAL_CASE)
#undef FATAL_CASE
    default: return 0;
    }
}

const char *divvy_version(void) {
    return DIVVY_VERSION;
}
