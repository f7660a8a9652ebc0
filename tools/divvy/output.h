/* Standard output, or what stands in for it, for a program that must not hang on it. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef DV_OUTPUT_H
#define DV_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    int instead_fd; /* written to instead of standard output; 0: none */
    int stop_fd;    /* readable when the process is asked to end; never read here */
    bool ended;     /* nothing more is written: the reader has gone, or writing failed */
    int error;      /* errno of the failure; 0 when just the reader has gone */
} dv_output;

/*
 * Writes all of it before it returns. A reader that is slow makes us wait, and rightly so: it has not heard yet what
 * it is told, that an item is revoked for example. Once we are asked to end it has one second more.
 */
void dv_output_write(dv_output *output, const char *bytes, size_t count);

/* Takes the answer of poll(2) for dv_output_fd(), asked for no events: notes that the reader has gone. */
void dv_output_heard(dv_output *output, short revents);

/* Where it is written to, for poll(2): -1, which poll passes over, when it has ended. */
int dv_output_fd(const dv_output *output);

/* To be called first of all. Descriptors 0 to 2 that are closed are opened on /dev/null, lest a socket gets the number
 * and is written to. Returns whether stdout was open. */
bool dv_output_prepare(void);

#endif
